"""Compare two layers step by step, with progress and cancellation. This module does not use Qt."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from probdice.comparison.comparing import compare_images, images_of
from probdice.comparison.result import Comparison
from probdice.data.segmentation import Segmentation
from probdice.engine.threads import watcher
from probdice.errors import ProbdiceError
from probdice.method.overlap import Integers
from probdice.method.sides import Both
from probdice.napari.group_places import group_places
from probdice.napari.group_summary import GroupSummary
from probdice.napari.layer_input import LayerGrid
from probdice.napari.layer_output import (
    LayerData,
    ShownGroups,
    map_layer,
    reference_layers,
    relabelled_layers,
)
from probdice.options import CompareOptions

__all__ = ["Cancelled", "ComparedLayers", "Outcome", "Steps"]

PAUSE = 0.05  # smallest number of seconds between two updates of the progress


class Cancelled(ProbdiceError):
    """The user cancelled the computation.

    Examples
    --------
    >>> from probdice.napari.layer_comparison import Cancelled, Steps
    >>> steps = Steps(show=print, cancelled=lambda: True)
    >>> try:
    ...     steps.begin("comparing")
    ... except Cancelled as error:
    ...     print(error)
    cancelled
    """


class Steps:
    """The current step and its progress. If the user cancels, `Cancelled` is raised.

    Parameters
    ----------
    show : callable
        Called with the step, the number of finished blocks and the total number of blocks. Both
        numbers are 0 if the length of the step is unknown.
    cancelled : callable
        A function that returns whether the user has cancelled. It is called at the start of every
        step and after every block of a pass.

    Examples
    --------
    >>> from probdice.napari.layer_comparison import Steps
    >>> Steps(show=print, cancelled=lambda: False).begin("comparing")
    comparing 0 0
    """

    def __init__(self, show: Callable[[str, int, int], None], cancelled: Callable[[], bool]):
        self._show, self._is_cancelled = show, cancelled
        self._step = ""
        self._last_shown = 0.0

    def begin(self, step: str) -> None:
        """Begin a step."""
        self._check()
        self._step = step
        self._show(step, 0, 0)

    def advance(self, blocks: int, total: int) -> None:
        """Report the finished blocks of the current pass over the pixels."""
        self._check()
        if blocks == total or monotonic() - self._last_shown > PAUSE:
            self._last_shown = monotonic()
            self._show(self._step, blocks, total)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Report the progress of all passes over the pixels in the `with` block."""
        token = watcher.set(self.advance)
        try:
            yield
        finally:
            watcher.reset(token)

    def _check(self) -> None:
        if self._is_cancelled():
            raise Cancelled("cancelled")


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a comparison for the widget.

    Attributes
    ----------
    comparison : Comparison
        The comparison, with its score, groups and notes already computed.
    shown : ShownGroups
        The labels and colours of the groups.
    layers : tuple
        The data, arguments and type of each new layer.
    places : ndarray of int
        For each group, the pixel that `group_places` returns.
    """

    comparison: Comparison
    shown: ShownGroups
    layers: tuple[LayerData, ...]
    positions: Integers


@dataclass(frozen=True, eq=False)
class ComparedLayers:
    """Two layers to compare, as segmentations.

    Attributes
    ----------
    sides : Both of Segmentation
        The segmentations.
    names : Both of str
        The names of the layers.
    grid : LayerGrid
        The grid of the reference.
    colormap : colormap or None
        The colours of the reference if it is a Labels layer.
    """

    sides: Both[Segmentation]
    names: Both[str]
    grid: LayerGrid
    colormap: Any = None

    def compare(
        self,
        options: CompareOptions,
        steps: Steps,
        show_summary: Callable[[GroupSummary], None] = lambda summary: None,
    ) -> Outcome:
        """Compare the layers.

        `show_summary` is called with the summary before layers are created.
        """
        with steps.watching():
            steps.begin("comparing")
            images = images_of(self.sides.reference, self.sides.prediction, options)
            comparison = compare_images(images, options)
            steps.begin("listing the groups")
            show_summary(GroupSummary.of(comparison))
            steps.begin("finding the largest differences")
            positions = group_places(comparison)
            steps.begin("computing the similarity map")
            similarity = map_layer(comparison, self.grid, "similarity map")
            steps.begin("relabelling the prediction")
            relabelled_prediction = comparison.relabelled()
            shown_groups = ShownGroups.of(comparison, relabelled_prediction, self.colormap)
            name, workers = f"{self.names.prediction} relabelled", images.workers
            layers = (
                *reference_layers(
                    self.sides.reference, shown_groups, self.grid, self.names.reference, workers
                ),
                *relabelled_layers(relabelled_prediction, shown_groups, self.grid, name, workers),
                similarity,
            )
            steps.begin("showing")
        return Outcome(comparison, shown_groups, layers, positions)
