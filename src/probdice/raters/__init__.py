"""Several raters of one image: how they agree, and what they agree on."""

from collections.abc import Mapping, Sequence

from probdice.files.inputs import Comparable
from probdice.method.similarity import Similarity
from probdice.raters.agreements import AgainstOthers, Agreement, agreement_of
from probdice.raters.consensus_result import Consensus, Method, Rater, consensus_of
from probdice.raters.panel import Panel, RaterMatch, Raters, panel_of

__all__ = [
    "AgainstOthers",
    "Agreement",
    "Consensus",
    "Method",
    "Panel",
    "Rater",
    "RaterMatch",
    "Raters",
    "agreement",
    "consensus",
]


def consensus(
    raters: Raters,
    *,
    method: Method = "mean",
    match: RaterMatch = "overlap",
    weights: Sequence[float] | Mapping[str, float] | None = None,
    mask: Comparable | None = None,
    workers: int | None = None,
) -> Consensus:
    """What several raters of one image agree on, as a probabilistic segmentation.

    First a common set of regions is found: that of the largest sum of overlaps, over all pairs of
    raters, of regions taken to be the same, climbed from the rater who agrees best with all
    others. Neither the order of raters nor the labels of any of them change it. A region that only
    some raters have is a region of the consensus too.

    Parameters
    ----------
    raters : sequence or mapping of name to Segmentation, array_like, path or image
        At least two segmentations of one image, label maps or probabilities. Without names they
        are called 1, 2, ….
    method : {"mean", "staple"}, optional
        The mean of the raters; or STAPLE (Warfield, Zou & Wells 2004) in its multi-label form,
        which estimates how reliable each rater is for every region. Two regions and label maps
        give what ITK's STAPLEImageFilter gives.
    match : {"overlap", "labels"}, optional
        Which regions are the same: found by overlap, or those with equal labels.
    weights : sequence or mapping of float, optional
        How much each rater counts in the mean; all alike by default.
    mask : array_like, Segmentation, path or image, optional
        Pixels that count, as in `compare`.
    workers : int, optional
        Threads; the result does not depend on them.

    Returns
    -------
    Consensus

    Examples
    --------
    >>> import probdice
    >>> probdice.consensus({"anna": [1, 1, 2, 2], "ben": [7, 7, 7, 9], "eva": [5, 5, 4, 4]})
    Consensus (mean) of 3 raters: 2 regions over 4 pixels
      anna  2 regions   expected right 0.9167
       ben  2 regions   expected right 0.8333
       eva  2 regions   expected right 0.9167
    """
    panel = panel_of(raters, match=match, mask=mask, workers=workers)
    return consensus_of(panel, method, weights)


def agreement(
    raters: Raters,
    *,
    similarity: str | Similarity = "absolute",
    match: RaterMatch = "overlap",
    mask: Comparable | None = None,
    workers: int | None = None,
) -> Agreement:
    """How several raters of one image agree: every pair, and each with the mean of the others.

    Parameters
    ----------
    raters, match, mask, workers
        As for `consensus`.
    similarity : {"absolute", "aitchison"}, Absolute or Aitchison, optional
        How two probability vectors are compared.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> import probdice
    >>> probdice.agreement([[1, 1, 2, 2], [7, 7, 7, 9], [5, 5, 4, 4]])
    Agreement of 3 raters over 4 pixels
      mean of all pairs: score 0.8333   adjusted 0.6667   explained 0.5556
      each against the mean of the others:
        1  score 0.8750   adjusted 0.7500   explained 0.8182
        2  score 0.7500   adjusted 0.5000   explained 0.3333
        3  score 0.8750   adjusted 0.7500   explained 0.8182
    """
    panel = panel_of(raters, match=match, similarity=similarity, mask=mask, workers=workers)
    return agreement_of(panel)
