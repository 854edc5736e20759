"""Masks, one for each region: who claims a pixel, and who gets it where several do.

A tumour lies inside its kidney, so both masks hold its pixels. Sharing them equally is nobody's
meaning; `priority` says which region comes first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import Array
from probdice.data.geometry import Geometry
from probdice.data.segmentation import Segmentation
from probdice.data.value_checks import BACKGROUND
from probdice.errors import FormatError, InputError, Note, Option
from probdice.method.matching import listed
from probdice.method.region_labels import Label, shown_labels

__all__ = ["Claims", "OverlappingMasks", "claims_of", "settled"]

BLOCK = 1 << 22  # pixels that are looked at together
SUGGESTED = 4  # names in a message


class OverlappingMasks(FormatError):
    """Several masks claim a pixel, and nobody said whose it is."""


@dataclass(frozen=True)
class Claims:
    """How many pixels several masks hold, and those masks, the smallest first."""

    pixels: int
    names: tuple[Label, ...]

    @property
    def text(self) -> str:
        """How many, and by whom."""
        count = "1 pixel is" if self.pixels == 1 else f"{self.pixels} pixels are"
        return f"{count} claimed by several of the masks ({listed(self.names)})"

    @property
    def refusal(self) -> "OverlappingMasks":
        """The error where nobody said what to do."""
        return OverlappingMasks(
            f"{self.text}, so there is no one label for them; pass ",
            self.option,
            " to say which region comes first, or ",
            BACKGROUND,
            " to share such pixels equally",
        )

    @property
    def shared(self) -> Note:
        """The note where such pixels are divided."""
        return Note(
            "claimed",
            (
                f"{self.text} and shared equally; ",
                self.option,
                " would give each of them to the region that comes first",
            ),
        )

    @property
    def option(self) -> Option:
        """The remedy: what is smaller lies inside what is larger."""
        names = [str(name) for name in self.names[:SUGGESTED]]
        python = f"priority=({', '.join(repr(name) for name in names)})".replace("'", '"')
        return Option("priority", ",".join(names), python=python)


def claims_of(masks: Sequence[Array], names: Sequence[Label]) -> Claims:
    """The pixels that several masks of 0 and 1 hold."""
    pixels = 0
    volumes = np.zeros(len(masks), np.int64)
    sharing = np.zeros(len(masks), np.bool_)
    for box in _boxes(masks[0].shape):
        blocks = [np.asarray(mask[box]) != 0 for mask in masks]
        volumes += [np.count_nonzero(block) for block in blocks]
        several = np.add.reduce(blocks, dtype=np.uint16) > 1
        pixels += int(np.count_nonzero(several))
        sharing |= [bool((block & several).any()) for block in blocks]
    order = [k for k in np.argsort(volumes, kind="stable").tolist() if sharing[k]]
    return Claims(pixels, tuple(names[k] for k in order))


def settled(
    masks: Sequence[Array],
    labels: Sequence[int | None],
    names: Mapping[int, str],
    priority: Sequence[str],
    geometry: Geometry | None,
    colours: Mapping[int, str],
) -> Segmentation:
    """The label map in which every pixel belongs to the first region that claims it.

    Regions keep their labels where all have one that can stand beside the 0 of the background;
    else they are numbered from 1.

    Regions that `priority` does not name come last; where two of those claim a pixel that none
    before them does, nothing says whose it is. Each name in `priority` that is no region is a note
    of kind "priority".
    """
    shown = shown_labels(labels, names)
    places = {str(label): k for k, label in enumerate(shown)}
    unknown = [name for name in priority if name not in places]
    first = [places[name] for name in priority if name in places]
    last = [k for k in range(len(masks)) if k not in first]
    shape = tuple(masks[0].shape)
    codes: NDArray[np.uint16] = np.zeros(shape, np.uint16)
    claimed = unsettled = 0
    for box in _boxes(shape):
        blocks = [np.asarray(mask[box]) != 0 for mask in masks]
        claimed += int(np.count_nonzero(np.add.reduce(blocks, dtype=np.uint16) > 1))
        for k in reversed([*first, *last]):
            codes[box][blocks[k]] = k + 1
        if len(last) > 1:
            several = np.add.reduce([blocks[k] for k in last], dtype=np.uint16) > 1
            for k in first:
                several &= ~blocks[k]
            unsettled += int(np.count_nonzero(several))
    regions = f", but the regions are {listed(shown, 20)}"
    if unsettled:
        raise InputError(
            _option(priority),
            f" names {listed(unknown)}{regions}; it" if unknown else "",
            f" leaves {unsettled} pixels that several of the other masks claim: name more of "
            f"{listed([shown[k] for k in last], 20)}",
        )
    given = [label for label in labels if label is not None and 0 < label < 2**63]
    if len(given) == len(masks):
        numbers, called = given, {given[k]: name for k, name in names.items()}
    else:
        numbers = list(range(1, len(masks) + 1))
        called = {number: str(label) for number, label in zip(numbers, shown, strict=True)}
    if "background" not in called.values() and not codes.all():
        called[0] = "background"
    notes: tuple[Note, ...] = ()
    if claimed:
        count = "1 pixel was" if claimed == 1 else f"{claimed} pixels were"
        text = f"{count} claimed by several masks and went to the first of {listed(priority)}"
        notes = (Note("claimed", (text,)),)
    for name in unknown:
        notes += (Note("priority", (_option(priority), f" names {name}", regions)),)
    kind = np.min_scalar_type(max(numbers))
    return Segmentation(
        np.array([0, *numbers], kind)[codes],
        crisp=True,
        names=called,
        geometry=geometry,
        notes=notes,
        colours={numbers[k]: colour for k, colour in colours.items()},
    )


def _option(priority: Sequence[str]) -> Option:
    return Option("priority", ",".join(priority), python=f"priority={tuple(priority)}")


def _boxes(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """The image in boxes along its last axis, which is the slowest of the files of our field."""
    if not shape:
        yield ()
        return
    step = max(1, BLOCK // max(prod(shape[:-1]), 1))
    for start in range(0, shape[-1], step):
        yield (*(slice(None) for _ in shape[:-1]), slice(start, start + step))
