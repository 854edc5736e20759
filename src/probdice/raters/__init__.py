"""Several raters of one image: inter-rater agreement and consensus."""

from collections.abc import Mapping, Sequence

from probdice.data.resampling import Interpolation
from probdice.files.inputs import Comparable
from probdice.method.region_labels import Label
from probdice.method.similarity import Similarity
from probdice.options import Method
from probdice.raters.agreements import AgainstOthers, Agreement, agreement_of
from probdice.raters.consensus_result import Consensus, Rater, consensus_of
from probdice.raters.panel import Panel, RaterMatch, Raters, panel_of
from probdice.raters.region_agreement import RegionAgreement

__all__ = [
    "AgainstOthers",
    "Agreement",
    "Consensus",
    "Method",
    "Panel",
    "Rater",
    "RaterMatch",
    "Raters",
    "RegionAgreement",
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
    background: Label | None = None,
    resample: Interpolation | None = None,
    workers: int | None = None,
) -> Consensus:
    """Combine several raters (annotators) of one image into a probabilistic segmentation.

    First, the regions of all raters are matched to common regions. With ``match="overlap"``, a
    local search increases the overlap of matched regions, summed over all pairs of raters. The
    search starts from the rater who agrees best with all others, and ends when no new match of one
    rater's regions increases the sum. The matches then depend neither on the order of raters nor on
    their labels. A region that only some raters have is also a region of the consensus.

    Parameters
    ----------
    raters : sequence or mapping of name to Segmentation, array_like, path or image
        At least two segmentations of one image, as label maps or probabilities. The raters of a
        sequence are named 1, 2, …. A pixel is excluded if any rater has an ignored label at this
        pixel (``Segmentation.from_labels(..., ignore=255)`` or ``read(..., ignore=255)``).
    method : {"mean", "staple"}, optional
        The mean of the raters, or multi-label STAPLE (Warfield, Zou & Wells 2004), which estimates
        the reliability of each rater for every region. For label maps with two regions, STAPLE
        returns the same result as ITK's STAPLEImageFilter.
    match : {"overlap", "labels"}, optional
        How to match regions of different raters: by overlap, or by equal labels, which are names if
        every rater has names and numbers otherwise.
    weights : sequence or mapping of float, optional
        The weight of each rater in the mean. All weights are equal by default. Weights cannot be
        combined with ``method="staple"``.
    mask : array_like, Segmentation, path or image, optional
        The pixels to use (see `compare`).
    background : int or str, optional
        The label or name of the background of all raters. The backgrounds of all raters are matched
        with each other, whatever the value of `match`. A name applies to raters without names if
        all other raters who have this name use the same number for it.
    resample : {"linear", "nearest"}, optional
        How to resample raters onto the grid with the smallest pixels (see `compare`). If some
        pixels are outside the field of view of a rater, a `background` is required.
    workers : int, optional
        The number of threads. The result does not depend on this number.

    Returns
    -------
    Consensus

    Examples
    --------
    >>> import probdice
    >>> probdice.consensus({"anna": [1, 1, 2, 2], "ben": [7, 7, 7, 9], "eva": [5, 5, 4, 4]})
    Consensus (mean) of 3 raters: 2 regions over 4 pixels
      anna  2 regions   expected accuracy 0.9167
       ben  2 regions   expected accuracy 0.8333
       eva  2 regions   expected accuracy 0.9167
    """
    panel = panel_of(
        raters,
        match=match,
        mask=mask,
        workers=workers,
        background=background,
        resample=resample,
    )
    return consensus_of(panel, method, weights)


def agreement(
    raters: Raters,
    *,
    similarity: str | Similarity = "absolute",
    match: RaterMatch = "overlap",
    mask: Comparable | None = None,
    background: Label | None = None,
    resample: Interpolation | None = None,
    workers: int | None = None,
) -> Agreement:
    """Compute the agreement of every pair of raters, and of each rater with the mean of the others.

    Parameters
    ----------
    raters, match, mask, background, resample, workers
        The same as for `consensus`, with two differences. With a background, the result includes
        foreground measures. With `resample` and without a background, pixels outside the field of
        view of a rater are excluded, and a note reports their number.
    similarity : str or Similarity, optional
        The similarity of two probability vectors, as in `compare`.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> import probdice
    >>> probdice.agreement([[1, 1, 2, 2], [7, 7, 7, 9], [5, 5, 4, 4]])
    Agreement of 3 raters over 4 pixels
      mean over all pairs: Dice 0.8222   score 0.8333   adjusted 0.6667   explained 0.5556
      each rater vs the mean of the others:
        1  score 0.8750   adjusted 0.7500   explained 0.8182
        2  score 0.7500   adjusted 0.5000   explained 0.3333
        3  score 0.8750   adjusted 0.7500   explained 0.8182
      per region: Dice over all pairs, and the volume of each rater in pixels:
        2  mean 0.7778   lowest 0.6667   volumes 2 / 1 / 2
        1  mean 0.8667   lowest 0.8000   volumes 2 / 3 / 2
    """
    panel = panel_of(
        raters,
        match=match,
        similarity=similarity,
        mask=mask,
        workers=workers,
        background=background,
        resample=resample,
    )
    return agreement_of(panel)
