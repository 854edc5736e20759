"""The consensus of raters: a probabilistic segmentation, and the performance of each rater."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.segmentation import Segmentation
from probdice.engine.pair import SegmentationPair
from probdice.errors import GeometryError, InputError, Note, Option
from probdice.files.atomic_files import null_for_nan
from probdice.method.overlap import Floats
from probdice.method.region_labels import Label
from probdice.options import METHODS, CompareOptions, Method, as_method
from probdice.raters.agreements import Agreement, agreement_of
from probdice.raters.fused_array import Fused, fused_segmentation, label_map_of
from probdice.raters.fusing import FUSIONS, Evidence, Model, expected_counts
from probdice.raters.panel import Common, Panel
from probdice.text.formatting import decimal, quantity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from probdice.files.background_images import BackgroundImage
    from probdice.files.inputs import Comparable

__all__ = ["FORMAT_VERSION", "Consensus", "Rater", "consensus_of"]

FORMAT_VERSION = 1  # of to_dict and to_json


@dataclass(frozen=True, eq=False)
class Rater:
    """The performance of one rater relative to the consensus.

    Attributes
    ----------
    name : str
    correspondence : dict
        The common region to which each non-empty region of the rater belongs. The keys are the
        labels of the rater.
    confusion : ndarray
        The confusion matrix, with marked regions as rows and true regions as columns. Each value is
        the probability that the rater marks the region of the row at a pixel whose true region is
        that of the column. Each column sums to 1, or is NaN if the expected number of pixels of the
        true region is 0. The order of regions is that of `Consensus.segmentation`.
    sensitivity : ndarray
        For each common region, the probability that the rater marks the region at a pixel where
        this region is the true region.
    specificity : ndarray
        For each common region, the probability that the rater does not mark the region at a pixel
        where another region is the true region.
    accuracy : float
        The expected share of pixels that the rater marks correctly.

    Examples
    --------
    >>> import probdice
    >>> consensus = probdice.consensus([[1, 1, 2, 2], [7, 7, 7, 9], [5, 5, 4, 4]])
    >>> consensus.raters[1].correspondence, round(consensus.raters[1].accuracy, 4)
    ({7: 1, 9: 2}, 0.8333)
    """

    name: str
    correspondence: dict[Label, Label]
    confusion: Floats
    sensitivity: Floats
    specificity: Floats
    accuracy: float


@dataclass(frozen=True, eq=False, repr=False)
class Consensus:
    """The consensus of several raters, the result of `probdice.consensus`.

    Attributes
    ----------
    segmentation : Segmentation
        The probability of every common region. Probabilities are computed when they are read and
        are not stored in memory; ``segmentation.probabilities()`` returns the whole array.
    raters : tuple of Rater
        The performance of each rater, in the given order.
    names : tuple of str
        The names of the raters, in the given order.
    volumes : ndarray
        The mean volume of each common region over the raters, in pixels.
    method : str
        The method that combines the raters.
    iterations : int
        The number of iterations of STAPLE; 0 for the mean.
    agreement : Agreement
        Inter-rater agreement.
    notes : tuple of Note
        Notes about the result.

    Examples
    --------
    >>> import probdice
    >>> consensus = probdice.consensus([[1, 1, 2, 2], [7, 7, 7, 9], [5, 5, 4, 4]])
    >>> consensus.segmentation.regions
    (1, 2)
    >>> consensus.segmentation.probabilities().round(3)
    array([[1.   , 1.   , 0.333, 0.   ],
           [0.   , 0.   , 0.667, 1.   ]], dtype=float32)
    """

    method: Method
    segmentation: Segmentation
    iterations: int
    notes: tuple[Note, ...]
    _panel: Panel
    _common: Common
    _model: Model
    _joint: Floats | None

    @property
    def method_text(self) -> str:
        """The method and its number of iterations, for printed results and pages."""
        title = METHODS[self.method].title
        return f"{title}, {quantity(self.iterations, 'iteration')}" if self.iterations else title

    @property
    def pixels(self) -> int:
        """The number of compared pixels."""
        return next(iter(self._panel.comparisons.values())).pixels

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the raters, in the given order."""
        return self._panel.names

    @cached_property
    def volumes(self) -> Floats:
        """The mean volume of each common region over the raters, in pixels."""
        volumes = self._panel.volumes(self._common).mean(axis=1)
        return np.asarray(volumes[list(self._common.channels)])

    @cached_property
    def _pixels(self) -> Floats:
        """The expected number of pixels, rater × marked region × true region."""
        if self._joint is not None:
            return self._joint
        evidence = Evidence(self._panel.segmentations.select(self._common.names), self._common)
        return expected_counts(evidence, self._model)

    @cached_property
    def raters(self) -> tuple[Rater, ...]:
        """The performance of each rater relative to the consensus."""
        return tuple(self._rater(name) for name in self._panel.names)

    def _rater(self, name: str) -> Rater:
        common, panel = self._common, self._panel
        joint = self._pixels[common.names.index(name)]
        joint = joint[np.ix_(common.channels, common.channels)]
        true_pixels, marked_pixels = joint.sum(axis=0), joint.sum(axis=1)
        correct_pixels = np.diag(joint)
        total = joint.sum()
        confusion = np.divide(
            joint, true_pixels, out=np.full_like(joint, np.nan), where=true_pixels > 0
        )
        absent_pixels = total - true_pixels
        return Rater(
            name,
            {panel.label(name, key): common.labels[k] for key, k in common.of(name).items()},
            confusion,
            np.diag(confusion).copy(),
            np.divide(
                absent_pixels - marked_pixels + correct_pixels,
                absent_pixels,
                out=np.full_like(true_pixels, np.nan),
                where=absent_pixels > 0,
            ),
            float(correct_pixels.sum() / total),
        )

    @cached_property
    def agreement(self) -> Agreement:
        """The agreement between raters, and of each rater with the mean of the others."""
        return agreement_of(self._panel)

    def entropy(self) -> NDArray[np.float32]:
        """Return the entropy of the consensus per pixel, in bits, as a measure of disagreement.

        The entropy is 0 where one region has probability 1. Where all regions are equally probable,
        the entropy is log₂ of the number of regions. The entropy is NaN outside the mask and at
        pixels that any rater ignores.

        Examples
        --------
        >>> import probdice
        >>> probdice.consensus([[1, 1, 2, 2], [7, 7, 7, 9]]).entropy()
        array([0., 0., 1., 0.], dtype=float32)
        """
        result = np.empty(self.segmentation.shape, np.float32)
        for part, bits in self.entropies((slice(None),) * result.ndim):
            result[part] = bits
        return result

    def label_map(self) -> Segmentation:
        """Return the most probable region of every pixel, as a label map with the raters' labels.

        If several regions are equally probable (within 1e-9), the pixel gets the region with the
        smallest label. Regions that have only a name come last, sorted by name, and get the next
        free labels. Pixels that any rater ignores get a label that the label map ignores.

        Returns
        -------
        Segmentation
            A label map with the names and colours of the regions. The label of a region is the
            integer label that most raters use for it, unless another region has this label.

        Examples
        --------
        >>> import probdice
        >>> consensus = probdice.consensus([[1, 1, 2, 2], [7, 7, 7, 9], [5, 5, 4, 4]])
        >>> consensus.label_map().array.tolist()
        [1, 1, 2, 2]
        >>> probdice.consensus([[0, 17, 17], [0, 0, 17]]).label_map().array.tolist()  # a tie
        [0, 0, 17]
        """
        return label_map_of(self.probabilities, self.segmentation)

    @property
    def background(self) -> int | None:
        """The channel of the background; None if no background is given or no rater uses it."""
        return self._panel.background_channel(self._common)

    @property
    def images(self) -> SegmentationPair:
        """The images of the first two raters. A scan to show must be on their grid."""
        return self._panel.segmentations.pair(*self.names[:2])

    @property
    def options(self) -> CompareOptions:
        """The options of the pairwise comparisons."""
        return self._panel.options

    @property
    def probabilities(self) -> Fused:
        """The probabilities of the consensus and the raters' decisions, computed on access."""
        array = self.segmentation.array
        assert isinstance(array, Fused)
        return array

    def entropies(
        self, box: Sequence[slice]
    ) -> Iterator[tuple[tuple[slice, ...], NDArray[np.float64]]]:
        """Yield the position and the entropy of each part of a box."""
        mask = self._panel.segmentations.mask
        inside = None if mask is None else np.asarray(mask[tuple(box)]) != 0
        for part, p in self.probabilities.pieces(box):
            logarithms = np.log2(p, where=p > 0, out=np.zeros_like(p))
            bits = np.abs(np.sum(p * logarithms, axis=0))
            yield part, bits if inside is None else np.where(inside[part], bits, np.nan)

    def plot(self, *, place: Sequence[int] | None = None) -> "Figure":
        """Draw the consensus and the disagreement of raters as a Matplotlib figure.

        Parameters
        ----------
        place : sequence of int, optional
            For volumes, the index of a voxel in the slice to show. By default, the slice with the
            most disagreement is shown.

        Examples
        --------
        >>> import probdice
        >>> figure = probdice.consensus([[[1, 1], [2, 2]], [[7, 7], [7, 9]]]).plot()
        >>> [ax.get_title() for ax in figure.axes[:2]]
        ['consensus of 2 raters (mean)', 'disagreement']
        """
        from probdice.pictures.rater_plots import draw_consensus

        return draw_consensus(self, place)

    def report(
        self,
        path: str | PathLike[str],
        *,
        title: str | None = None,
        image: "BackgroundImage | Comparable | None" = None,
    ) -> None:
        """Write a self-contained HTML report that requires no network access.

        Parameters
        ----------
        path : path
            The file to write.
        title : str, optional
            The title of the page.
        image : path, array_like or image, optional
            The segmented image, such as the scan, on the grid of the raters. Regions are drawn over
            this image.

        Examples
        --------
        >>> import os, tempfile
        >>> import probdice
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = os.path.join(folder, "page.html")
        ...     probdice.consensus([[[1, 1], [2, 2]], [[7, 7], [7, 9]]]).report(page)
        ...     os.path.exists(page)
        True
        """
        from probdice.report.rater_pages import write_consensus

        write_consensus(self, path, title=title, image=image)

    def to_dict(self) -> dict[str, Any]:
        """Return all results except the segmentation as built-in types, with the format version.

        Examples
        --------
        >>> import probdice
        >>> content = probdice.consensus([[1, 1, 2, 2], [7, 7, 7, 9]]).to_dict()
        >>> content["regions"], content["raters"][1]["correspondence"]
        ([1, 2], [[7, 1], [9, 2]])
        """
        return {
            "format": FORMAT_VERSION,
            "method": self.method,
            "iterations": self.iterations,
            "pixels": self.pixels,
            "regions": list(self.segmentation.regions),
            "labels": list(self.segmentation.labels),
            "names": [self.segmentation.names.get(k) for k in range(len(self.segmentation.labels))],
            "raters": [
                {
                    "name": rater.name,
                    "correspondence": [list(pair) for pair in rater.correspondence.items()],
                    "confusion": rater.confusion.tolist(),
                    "sensitivity": rater.sensitivity.tolist(),
                    "specificity": rater.specificity.tolist(),
                    "accuracy": rater.accuracy,
                }
                for rater in self.raters
            ],
            "agreement": self.agreement.to_dict(),
            "notes": [str(note) for note in self.notes],
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """Return `to_dict` as JSON; NaN becomes null.

        Examples
        --------
        >>> import probdice
        >>> probdice.consensus([[1, 2], [3, 3]]).to_json()[:31]
        '{"format": 1, "method": "mean",'
        """
        return json.dumps(null_for_nan(self.to_dict()), indent=indent, allow_nan=False)

    def __repr__(self) -> str:
        width = max(len(rater.name) for rater in self.raters)
        region_count = quantity(len(self.segmentation.regions), "region")
        lines = [
            f"Consensus ({self.method_text}) of {len(self.raters)} raters: {region_count} over "
            f"{quantity(self.pixels, 'pixel')}"
        ]
        lines += [
            f"  {rater.name:>{width}}  {quantity(len(rater.correspondence), 'region')}   "
            f"expected accuracy {decimal(rater.accuracy)}"
            for rater in self.raters
        ]
        return "\n".join(lines)


def consensus_of(
    panel: Panel, method: Method, weights: Sequence[float] | Mapping[str, float] | None
) -> Consensus:
    """Compute the consensus of all raters of a panel."""
    words = METHODS[as_method(method)]
    rater_weights = _weights(panel.names, weights)
    if weights is not None and not words.accepts_weights:
        raise InputError(
            "weights cannot be combined with ",
            Option("method", method),
            f", because {words.title} estimates the reliability of raters. Omit weights.",
        )
    for note in panel.segmentations.notes:
        if note.kind == "outside":  # the consensus has a value at every pixel
            raise GeometryError(*note.message)
    common, notes = panel.common_regions, panel.notes
    model = Model(np.array([rater_weights[name] for name in common.names]), len(common.labels))
    fusion = FUSIONS[method](Evidence(panel.segmentations.select(common.names), common), model)
    model, iterations = fusion.model, fusion.iterations
    if not fusion.converged:
        text = f"{words.title} did not converge within {iterations} iterations."
        notes = (*notes, Note("unsettled", (text,)))
    segmentation = fused_segmentation(panel, common, model, common.channels)
    return Consensus(method, segmentation, iterations, notes, panel, common, model, fusion.joint)


def _weights(
    names: Sequence[str], weights: Sequence[float] | Mapping[str, float] | None
) -> dict[str, float]:
    if weights is None:
        return dict.fromkeys(names, 1.0)
    weights_by_name = (
        dict(weights) if isinstance(weights, Mapping) else dict(zip(names, weights, strict=False))
    )
    if set(weights_by_name) != set(names) or len(weights) != len(names):
        raise InputError(
            f"weights: expected one weight for each of {len(names)} raters, found {weights!r}"
        )
    values = np.array([weights_by_name[name] for name in names], np.float64)
    if not (np.all(np.isfinite(values)) and np.all(values >= 0) and values.any()):
        raise InputError(f"weights: expected numbers ≥ 0 with at least one > 0, found {weights!r}")
    return dict(zip(names, values.tolist(), strict=True))
