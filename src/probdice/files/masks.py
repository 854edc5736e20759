"""Count the pixels that several masks share, and assign them to regions by priority.

There is one mask per region. For example, the pixels of a tumour in a kidney may be in both masks.
Dividing these pixels equally is rarely intended, so `priority` sets the region to which they are
assigned.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import Array
from probdice.data.geometry import Geometry
from probdice.data.lazy_arrays import boxes
from probdice.data.pixel_words import PixelWords, words_for_axes
from probdice.data.segmentation import Segmentation
from probdice.data.value_checks import SUMS_BACKGROUND
from probdice.errors import FormatError, InputError, Note, Option
from probdice.method.region_labels import Label, listed, shown_labels

__all__ = [
    "OverlappingMasks",
    "SharedPixels",
    "label_map_by_priority",
    "priority_option",
    "shared_pixels",
]

SUGGESTED = 4  # largest number of names in a suggested option


class OverlappingMasks(FormatError):
    """Masks overlap, and no option sets how to assign the shared pixels."""


@dataclass(frozen=True)
class SharedPixels:
    """The number of pixels that are in several masks, and the names of these masks.

    The names are sorted by the size of the mask, smallest first.
    """

    pixels: int
    names: tuple[Label, ...]
    words: PixelWords

    @property
    def text(self) -> str:
        """Description of the problem for messages."""
        verb = "is" if self.pixels == 1 else "are"
        count = f"{self.pixels} {self.words.of(self.pixels)} {verb}"
        return f"{count} in several masks ({listed(self.names)})"

    @property
    def error(self) -> "OverlappingMasks":
        """Error that is raised if no option is set."""
        its, it = ("its", "it") if self.pixels == 1 else ("their", "them")
        return OverlappingMasks(
            f"{self.text}, so {its} label is ambiguous. To assign {it} to one region by priority, "
            f"use ",
            self.option,
            f". To divide {it} equally, pass ",
            SUMS_BACKGROUND,
        )

    @property
    def note(self) -> Note:
        """Note that reports the shared pixels, which are divided equally."""
        verb, it = ("is", "it") if self.pixels == 1 else ("are", "them")
        return Note(
            "claimed",
            (
                f"{self.text} and {verb} divided equally. To assign {it} to one region by "
                f"priority, use ",
                self.option,
            ),
        )

    @property
    def option(self) -> Option:
        """Suggested priority, with smaller regions first because they are often inside others."""
        names = [str(name) for name in self.names[:SUGGESTED]]
        python = f"priority=({', '.join(repr(name) for name in names)})".replace("'", '"')
        return Option("priority", ",".join(names), python=python)


def shared_pixels(
    masks: Sequence[Array], names: Sequence[Label], geometry: Geometry | None
) -> SharedPixels:
    """Count the pixels that are in several masks, and find the names of these masks."""
    pixels = 0
    volumes = np.zeros(len(masks), np.int64)
    sharing = np.zeros(len(masks), np.bool_)
    for box in boxes(masks[0]):
        blocks = [np.asarray(mask[box]) != 0 for mask in masks]
        volumes += [np.count_nonzero(block) for block in blocks]
        is_shared = np.add.reduce(blocks, dtype=np.uint16) > 1
        pixels += int(np.count_nonzero(is_shared))
        sharing |= [bool((block & is_shared).any()) for block in blocks]
    order = [k for k in np.argsort(volumes, kind="stable").tolist() if sharing[k]]
    words = words_for_axes(len(masks[0].shape), geometry)
    return SharedPixels(pixels, tuple(names[k] for k in order), words)


def label_map_by_priority(
    masks: Sequence[Array],
    labels: Sequence[int | None],
    names: Mapping[int, str],
    priority: Sequence[str],
    geometry: Geometry | None,
    colours: Mapping[int, str],
) -> Segmentation:
    """Create a label map in which shared pixels are assigned by priority.

    A shared pixel is assigned to the first region in `priority` that contains it. Regions keep
    their labels if all labels are positive. Otherwise, regions are numbered from 1. Regions that
    are not in `priority` have the lowest priority. If two of these regions share a pixel that is in
    no region of `priority`, an error is raised. Each name in `priority` that is not a region adds a
    note of kind "priority".
    """
    shown = shown_labels(labels, names)
    index_of = {str(label): k for k, label in enumerate(shown)}
    unknown = [name for name in priority if name not in index_of]
    first = [index_of[name] for name in priority if name in index_of]
    last = [k for k in range(len(masks)) if k not in first]
    codes: NDArray[np.uint16] = np.zeros(tuple(masks[0].shape), np.uint16)
    shared = undecided = 0
    for box in boxes(masks[0]):
        blocks = [np.asarray(mask[box]) != 0 for mask in masks]
        shared += int(np.count_nonzero(np.add.reduce(blocks, dtype=np.uint16) > 1))
        for k in reversed([*first, *last]):
            codes[box][blocks[k]] = k + 1
        if len(last) > 1:
            is_shared = np.add.reduce([blocks[k] for k in last], dtype=np.uint16) > 1
            for k in first:
                is_shared &= ~blocks[k]
            undecided += int(np.count_nonzero(is_shared))
    regions = f", but the regions are {listed(shown, 20)}"
    words = words_for_axes(codes.ndim, geometry)
    if undecided:
        their = "its" if undecided == 1 else "their"
        raise InputError(
            priority_option(priority),
            f" names {listed(unknown)}{regions}; it" if unknown else "",
            f" leaves {undecided} shared {words.of(undecided)} unassigned, because it names none "
            f"of {their} masks. Add names of these regions: "
            f"{listed([shown[k] for k in last], 20)}.",
        )
    positive_labels = [label for label in labels if label is not None and 0 < label < 2**63]
    if len(positive_labels) == len(masks):
        numbers, called = positive_labels, {positive_labels[k]: name for k, name in names.items()}
    else:
        numbers = list(range(1, len(masks) + 1))
        called = {number: str(label) for number, label in zip(numbers, shown, strict=True)}
    if "background" not in called.values() and not codes.all():
        called[0] = "background"
    notes: tuple[Note, ...] = ()
    if shared:
        count = f"{shared} {words.of(shared)} {'was' if shared == 1 else 'were'}"
        text = f"{count} in several masks and assigned by priority ({listed(priority)})"
        notes = (Note("claimed", (text,)),)
    for name in unknown:
        notes += (Note("priority", (priority_option(priority), f" names {name}", regions)),)
    kind = np.min_scalar_type(max(numbers))
    return Segmentation(
        np.array([0, *numbers], kind)[codes],
        crisp=True,
        names=called,
        geometry=geometry,
        notes=notes,
        colours={numbers[k]: colour for k, colour in colours.items()},
    )


def priority_option(priority: Sequence[str]) -> Option:
    """Return the option `priority` with these names, for messages."""
    return Option("priority", ",".join(priority), python=f"priority={tuple(priority)}")
