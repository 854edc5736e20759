"""`RegionDice`: a torchmetrics metric that compares segmentations."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from hashlib import sha256
from math import isnan, nan, prod
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor
from torchmetrics import Metric

from probdice.comparison.comparing import compare_images, compare_overlap
from probdice.comparison.result import Comparison
from probdice.data.segmentation import several_labels
from probdice.errors import InputError, Option, TooLargeError
from probdice.method.merging import Merging
from probdice.method.overlap import MAX_TABLE_PAIRS
from probdice.method.region_labels import Label
from probdice.method.similarity import Similarity
from probdice.options import CompareOptions, GivenBackground, Match
from probdice.torch.batches import (
    Activation,
    Batch,
    as_batch,
    check_alike,
    check_mask,
    check_side,
    compared_pixels,
    one_of,
    uncompiled,
)
from probdice.torch.class_labels import (
    background_of,
    classes_of,
    clusters_of,
    number_of_regions,
)
from probdice.torch.scalars import in_steps, keys, mean_of_steps, scalars
from probdice.torch.sums import Sums, images_of, sums_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from probdice.pictures import Kind

__all__ = ["RegionDice"]

CorrespondenceScope = Literal["set", "image"]


class RegionDice(Metric):
    r"""Compare predictions and targets with any number of regions and any labels.

    Sums over the pixels of all batches and processes are accumulated in a state of fixed size.
    Images are not stored. By default, `compute` matches the regions once for all data. It returns
    the score (for the absolute similarity, the mean of 1 − ½ Σ|p − q| over the pixels) and other
    metrics under this correspondence. Probabilities are never converted to labels.

    Parameters
    ----------
    num_classes : int
        Number of classes of the targets, whose labels are 0, 1, ….
    num_clusters : int, optional
        Number of classes or clusters of the predictions; `num_classes` by default.
    activation : {"softmax", "sigmoid"}, optional
        Converts floating-point `preds` to probabilities: ``"softmax"`` for logits of several
        channels, ``"sigmoid"`` for logits of a single foreground. By default, `preds` contains
        probabilities.
    similarity : str or Similarity, optional
        As in `probdice.compare`. Any similarity other than absolute requires
        ``correspondence="image"``.
    match, merge
        As in `probdice.compare`. ``match="labels"`` is for supervised training.
        ``merge="prediction"`` assigns several clusters to one class (many-to-one).
    correspondence : {"set", "image"}, optional
        ``"set"``: one correspondence for all data. ``"image"``: every image has its own
        correspondence, and the results are means over the images.
    ignore_index : int or iterable of int, optional
        Target labels whose pixels are excluded.
    background : int, str or mapping of side to int or str, optional
        As in `probdice.compare`. A single label is a class, and the background of the predictions
        is the cluster at the same position. A mapping contains a class (``"reference"``) and a
        cluster (``"prediction"``). Foreground measures exclude the background.
    names : sequence of str, optional
        Names of the classes. With ``match="labels"``, the clusters have the same names.
    **kwargs
        Arguments of `torchmetrics.Metric`, such as ``sync_on_compute`` and ``process_group``.

    Attributes
    ----------
    result : Comparison
        The comparison computed by `compute`, with its groups, merges and notes.
    mapping : dict
        The class of every matched region of the predictions.

    Notes
    -----
    `update` accepts labels (N, …) of any integer type, and probabilities or logits (N, C, …) in
    float16, bfloat16, float32 or float64, with or without gradients. A single floating-point
    channel belongs to region 1, and region 0 is its complement. Targets may also be soft. Compiled
    kernels compute the sums of CPU tensors; on other devices, torch computes them.

    `compute` returns the same keys for every input:

    - ``score`` and ``matched_score`` (after and before merging), which for two label maps are the
      pixel accuracy under the correspondence;
    - ``chance`` and ``adjusted_score`` (NaN if both sides are soft);
    - ``explained_reference``, the share of the reference that the prediction explains (1 if the
      prediction only subdivides reference regions), and ``explained_prediction``, the same with the
      sides exchanged; both are NaN unless both sides are label maps, and the share of a side with
      one region is always NaN;
    - ``accuracy`` (share of pixels that agree), and the means ``mean_accuracy``, ``mean_dice`` and
      ``mean_iou`` over the classes. Unlike ``result.mean_dice`` and ``foreground_dice``, these
      means include an unmatched cluster only if ``match="labels"`` and the cluster has the label of
      a class;
    - with a background, ``foreground_dice``, ``pooled_dice``, ``foreground_score``,
      ``adjusted_foreground_score``, and the means ``foreground_accuracy`` and ``foreground_iou``
      over the other classes;
    - per class, ``accuracy_0``, ``dice_0``, ``iou_0`` and so on. The values are 0 for an unmatched
      class, and NaN for a class that does not occur in the target or whose group is faint
      (`Group.faint`). With ``match="labels"``, a class that occurs only in the predictions has Dice
      and IoU 0.

    The sums remain in float64 and int64: ``.to(torch.float16)`` and half-precision trainers do not
    convert them. `update` and `compute` run outside compiled graphs.

    The accumulated sums are not sufficient for a similarity other than absolute, or for groups of
    several regions if both sides are soft. In these cases, ``correspondence="image"`` is required;
    otherwise, an error is raised.

    Examples
    --------
    >>> import torch
    >>> from probdice.torch import RegionDice
    >>> metric = RegionDice(2, 3)
    >>> metric.update(torch.tensor([[0, 0, 2], [2, 1, 1]]), torch.tensor([[1, 1, 0], [0, 0, 0]]))
    >>> values = metric.compute()
    >>> round(values["accuracy"].item(), 6), metric.mapping
    (0.666667, {0: 1, 1: 0})
    >>> many_to_one = RegionDice(2, 3, merge="prediction")
    >>> many_to_one.merge_state(metric)
    >>> many_to_one.result.score
    1.0
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False

    options_digest: Tensor
    pixels: Tensor
    kinds: Tensor
    reference_volumes: Tensor
    prediction_volumes: Tensor
    reference_likeliest: Tensor
    prediction_likeliest: Tensor
    savings: Tensor
    totals: Tensor
    counts: Tensor

    def __init__(
        self,
        num_classes: int,
        num_clusters: int | None = None,
        *,
        activation: Activation = None,
        similarity: str | Similarity = "absolute",
        match: Match = "overlap",
        merge: Merging = "none",
        correspondence: CorrespondenceScope = "set",
        ignore_index: Iterable[int] | int | None = None,
        background: GivenBackground = None,
        names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if num_clusters is None:
            num_clusters = num_classes
        self.regions = (
            number_of_regions(num_classes, "num_classes"),
            number_of_regions(num_clusters, "num_clusters"),
        )
        if self.regions[0] * self.regions[1] > MAX_TABLE_PAIRS:
            raise TooLargeError(
                f"a table of {self.regions[0]} × {self.regions[1]} regions does not fit in memory"
            )
        self.activation = one_of(Activation, activation, "activation")
        self.classes = classes_of(names, self.regions[0])
        self.clusters = clusters_of(self.classes if match == "labels" else (), self.regions[1])
        self._has_names = names is not None
        self.background = background_of(background, self.classes, self.clusters)
        self.options = CompareOptions.of(
            similarity=similarity, match=match, merge=merge, background=self.background
        )
        self.correspondence = one_of(CorrespondenceScope, correspondence, "correspondence")
        if correspondence == "set" and not self.options.similarity.separable:
            raise InputError(
                f"similarity {self.options.similarity.name} requires the pixels of every image, "
                f"but the metric stores only sums over all images. Use ",
                Option("correspondence", "image"),
                " or ",
                Option("similarity", "absolute"),
                ".",
            )
        self.ignored = () if ignore_index is None else several_labels(ignore_index, "ignore_index")
        self._result: Comparison | None = None
        self._add_states()

    def _add_states(self) -> None:
        states: dict[str, Tensor]
        if self.correspondence == "set":
            # For each side, the number of images with probabilities and the number with labels.
            states = {"kinds": torch.zeros(2, 2, dtype=torch.int64)}
            states |= Sums.zeros(self.regions).by_name()
        else:
            size = len(self.keys)
            states = {
                "totals": torch.zeros(size, 2, dtype=torch.int64),
                "counts": torch.zeros(size, dtype=torch.int64),
            }
        for name, default in states.items():
            self.add_state(name, default, dist_reduce_fx="sum")
        # In a collection, torchmetrics lets metrics share one state if their states are equal after
        # the first batch. The digest separates metrics whose sums may differ in a later batch.
        self.add_state("options_digest", self._digest(), dist_reduce_fx=_last_digest)

    def _digest(self) -> Tensor:
        """Return 8 bytes of a hash of the options on which the sums depend."""
        options: list[object] = [self.regions, self.activation, sorted(self.ignored)]
        if self.correspondence == "image":
            options += [self.options, self.classes]
        digest = sha256(repr(options).encode()).digest()[:8]
        return torch.tensor(list(digest), dtype=torch.int64)

    @property
    def keys(self) -> list[str]:
        """The names of all values that `compute` returns."""
        return keys(self.classes, foreground=self.background is not None)

    def extra_repr(self) -> str:
        """Return the options for `repr`."""
        options: dict[str, object] = {
            "num_classes": self.regions[0],
            "num_clusters": self.regions[1],
            "activation": self.activation,
            "similarity": str(self.options.similarity),
            "match": self.options.match,
            "merge": self.options.merge,
            "correspondence": self.correspondence,
            "ignore_index": self.ignored,
            "background": self.background,
            "names": list(self.classes) if self._has_names else None,
        }
        return ", ".join(f"{name}={value!r}" for name, value in options.items())

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = "") -> Metric:
        """Move the sums to another device. The sums keep their type, so they are not rounded."""

        def move(tensor: Tensor) -> Tensor:
            result = fn(tensor)
            same_type = result.dtype == tensor.dtype
            return result if same_type else tensor.to(result.device)

        return super()._apply(move, exclude_state)

    def update(self, preds: Tensor, target: Tensor, mask: Tensor | None = None) -> None:
        """Add a batch.

        Parameters
        ----------
        preds : Tensor
            Labels (N, …), or probabilities or logits (N, C, …).
        target : Tensor
            Labels (N, …) or probabilities (N, C, …).
        mask : Tensor of bool, optional
            The pixels (N, …) to include. Values elsewhere are ignored.
        """
        uncompiled(self._add_batch)(preds, target, mask)

    def _add_batch(self, preds: Tensor, target: Tensor, mask: Tensor | None) -> None:
        reference = as_batch(target, "target", self.regions[0], ignored_labels=self.ignored)
        prediction = as_batch(preds, "preds", self.regions[1], activation=self.activation)
        check_alike(prediction, reference)
        images = len(reference)
        if mask is not None:
            flat_shape = images, prod(reference.shape)
            mask = check_mask(mask, (images, *reference.shape)).reshape(flat_shape)
        if self.correspondence == "image":
            for k in range(images):
                image = slice(k, k + 1)
                inside = None if mask is None else mask[image]
                self._add_image(prediction[image], reference[image], inside)
            return
        if not self._from_sums(prediction, reference):
            raise InputError(
                "preds and target are both probabilities. Groups of several regions then require "
                "the pixels of every image, but the metric stores only sums over all images. Use ",
                Option("correspondence", "image"),
                ", ",
                Option("merge", "none"),
                ", or labels on one side.",
            )
        for name, part in sums_of(prediction, reference, mask).by_name().items():
            state = getattr(self, name)
            state += part.to(state.device)
        for side, batch in enumerate((reference, prediction)):
            self.kinds[side, int(batch.crisp)] += images

    def _from_sums(self, prediction: Batch, reference: Batch) -> bool:
        """Return whether the metrics can be computed from sums over pixels."""
        if not self.options.similarity.separable:
            return False
        if prediction.crisp or reference.crisp:
            return True
        return self.options.matching.one_to_one

    def _add_image(self, prediction: Batch, reference: Batch, mask: Tensor | None) -> None:
        """Score one image with its own correspondence, and add its metrics to the totals."""
        result = self._compare_image(prediction, reference, mask)
        if result is None:
            return
        values = scalars(result, self.classes)
        totals, counts = torch.zeros_like(self.totals.cpu()), torch.zeros_like(self.counts.cpu())
        for k, key in enumerate(self.keys):
            value = values.get(key, nan)
            if not isnan(value):
                totals[k] = torch.tensor(in_steps(value))
                counts[k] = 1
        self.totals += totals.to(self.totals.device)
        self.counts += counts.to(self.counts.device)

    def _compare_image(
        self, prediction: Batch, reference: Batch, mask: Tensor | None
    ) -> Comparison | None:
        """Compare one image; return None if all pixels are excluded."""
        if self._from_sums(prediction, reference):
            sums = sums_of(prediction, reference, mask)
            return self._compare(sums, (reference.crisp, prediction.crisp))
        inside = compared_pixels(reference, mask)
        for side in (reference, prediction):
            check_side(side.probabilities(), inside)
        if not bool(inside.any()):
            return None
        names = (self.classes, self.clusters) if self._has_names else ((), ())
        return compare_images(images_of(prediction, reference, mask, names), self.options)

    def _compare(self, sums: Sums, crisp: tuple[bool, bool]) -> Comparison | None:
        """Compute a comparison from sums over pixels; return None if there are no pixels."""
        if not int(sums.pixels):
            return None
        overlap = sums.overlap(crisp, (self.classes, self.clusters), self.options.similarity)
        return compare_overlap(overlap, self.options)

    def compute(self) -> dict[str, Tensor]:
        """Return all metrics as scalar tensors."""
        device = self.options_digest.device
        return {
            key: torch.tensor(value, dtype=torch.float64, device=device)
            for key, value in uncompiled(self._values)().items()
        }

    def _values(self) -> dict[str, float]:
        """Return all metrics; NaN if there are no pixels."""
        if self.correspondence == "image":
            return self._means()
        self._result = self._compare_set()
        if self._result is None:
            return dict.fromkeys(self.keys, nan)
        return scalars(self._result, self.classes)

    def _means(self) -> dict[str, float]:
        """Return the mean of every metric over the images for which the metric is defined."""
        rows = zip(self.keys, self.totals.tolist(), self.counts.tolist(), strict=True)
        return {key: mean_of_steps(total, count) for key, total, count in rows}

    def _compare_set(self) -> Comparison | None:
        kinds = self.kinds.tolist()
        for name, (soft, crisp) in zip(("target", "preds"), kinds, strict=True):
            if soft and crisp:
                raise InputError(
                    f"{name} contained labels in {crisp} images and probabilities in {soft}. The "
                    f"sums of both kinds cannot be added. Reset the metric, and use either labels "
                    f"or probabilities."
                )
        sums = Sums(*(getattr(self, entry.name) for entry in fields(Sums)))
        return self._compare(sums, (bool(kinds[0][1]), bool(kinds[1][1])))

    def merge_state(self, incoming_state: "dict[str, Any] | Metric") -> None:
        """Add the sums of another metric, whose options must give the same sums.

        Parameters
        ----------
        incoming_state : RegionDice or dict
            Another metric, or its ``metric_state``.
        """
        state, other_options = incoming_state, ""
        if not isinstance(state, dict):
            state, other_options = state.metric_state, f", found {state.extra_repr()}"
        if not torch.equal(state["options_digest"].cpu(), self._digest()):
            raise InputError(
                f"a metric with other options cannot be added: expected {self.extra_repr()}"
                f"{other_options}"
            )
        super().merge_state(incoming_state)
        self._computed = None  # otherwise torchmetrics would return the previous result
        self._update_count += max(getattr(incoming_state, "_update_count", 1), 1)

    @property
    def result(self) -> Comparison:
        """The comparison of the data of all processes."""
        if self.correspondence == "image":
            raise InputError(
                "every image has its own correspondence, so there is no single result. Use ",
                Option("correspondence", "set"),
                ".",
            )
        self.compute()
        if self._result is None:
            raise InputError(
                "there is no result: no pixels were added, or mask and ignore_index exclude all "
                "pixels. Call update with pixels to include."
            )
        return self._result

    @property
    def mapping(self) -> dict[Label, Label]:
        """The class of every matched region of the predictions.

        If several classes were merged, the value is the class that was matched before merging.
        """
        merged_labels = {merge.region for merge in self.result.merges if merge.side == "reference"}
        mapping: dict[Label, Label] = {}
        for group in self.result.groups:
            matched_labels = [label for label in group.reference if label not in merged_labels]
            mapping |= {label: matched_labels[0] for label in group.prediction if matched_labels}
        return dict(sorted(mapping.items()))

    def plot(self, kind: "Kind" = "correspondence") -> "Figure":
        """Draw the result as a Matplotlib figure.

        Parameters
        ----------
        kind : {"correspondence", "overlap"}, optional
            The correspondence, or the Dice of every pair of overlapping regions.
        """
        return self.result.plot(kind)


def _last_digest(states: Tensor) -> Tensor:
    """Return the last digest. The digests of all processes are equal."""
    return states[-1]
