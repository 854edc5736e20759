"""Functions for files with values per vertex: label tables, selection of maps, and structures."""

import colorsys
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from probdice.data.pixel_words import words_for_axes
from probdice.data.vertex_space import Structure, VertexSpace
from probdice.errors import InputError
from probdice.files.corrupt import select_name
from probdice.files.description import with_description
from probdice.files.model import ContainedArray, Image, Payload, as_colour, meaning_of
from probdice.text.escaping import printable

__all__ = [
    "LabelRow",
    "Maps",
    "label_entries",
    "map_contents",
    "map_image",
    "map_name",
    "names_and_colours",
    "only_structure",
    "rows_to_write",
    "space_of",
    "structure_of_file",
]

# lh.aparc.annot, sub-01_hemi-L_dseg.label.gii, 100307.L.aparc.32k_fs_LR.label.gii
HEMISPHERE = re.compile(r"(?:^|[._-])(?:hemi-)?([lr])h?(?=[._-])", re.IGNORECASE)
HUE = 0.618034  # step between the hues of generated colours
INT32 = np.iinfo(np.int32)


class LabelRow(NamedTuple):
    """A row of a label table. The colour is "#RRGGBB", or "" if the label has no colour."""

    label: int
    name: str
    colour: str = ""


@dataclass(frozen=True, eq=False)
class Maps:
    """The maps of a GIFTI or CIFTI file.

    Attributes
    ----------
    values : ndarray
        Values with one row per map and one column per vertex.
    names : sequence of str
        The name of each map, or "" for a map without a name.
    space : VertexSpace
        The vertex of each column.
    tables : sequence of list of LabelRow or None
        The label table of each map, or None if the maps are not labels.
    description : str
        The description stored by `write`, or "".
    slope : float
        The factor by which the stored values are multiplied.
    inter : float
        The number that is added to the scaled values.
    """

    values: NDArray[Any]
    names: Sequence[str]
    space: VertexSpace
    tables: Sequence[Sequence[LabelRow]] | None = None
    description: str = ""
    slope: float = 1.0
    inter: float = 0.0

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The index of each map. Keys are the names of maps, and their indices as text."""
        numbers = {str(k): k for k in range(len(self.names))}
        return numbers | {name: k for k, name in reversed([*enumerate(self.names)]) if name}


def map_image(maps: Maps, inside: str) -> Image:
    """Convert the map that `inside` selects by name or index, or all maps, to an `Image`.

    If there are several label maps, `inside` must select one of them. Without `inside`, several
    maps of any other kind are read as the probabilities of regions.
    """
    number, shown = maps.numbers.get(inside, 0), _shown(maps)
    if inside not in maps.numbers and (inside or maps.tables is not None):
        kind = "maps" if maps.tables is None else "label maps"
        number = shown.index(select_name(inside, shown, kind, "file:"))
    image = Image(maps.values[number], vertices=maps.space, slope=maps.slope, inter=maps.inter)
    if maps.tables is not None:
        names, colours = names_and_colours(maps.tables[number])
        return replace(image, kind="labels", label_names=names, colours=colours)
    if inside:
        return image
    regions = [None if re.fullmatch(r"(#\d+)?", name) else name for name in maps.names]
    image = replace(image, region_names=regions if any(regions) else None)
    if len(regions) > 1:
        image = replace(image, array=maps.values, regions=0)
    return with_description(image, maps.description)


def map_contents(maps: Maps) -> list[ContainedArray]:
    """List the label maps of a file. Other maps are not listed: they are regions of one image."""
    if maps.tables is None:
        return []
    size, dtype = maps.values.shape[1:], np.dtype(np.int32)
    return [
        ContainedArray(name, size, dtype, meaning_of(size, dtype, None)) for name in _shown(maps)
    ]


def names_and_colours(table: Sequence[LabelRow]) -> tuple[dict[int, str], dict[int, str]]:
    """Return the names and the colours by label. A name that only repeats the label is ignored."""
    names = {
        label: name.strip()
        for label, name, _ in table
        if name.strip() and name.strip() != str(label)
    }
    return names, {label: colour for label, _, colour in table if colour}


def label_entries(rows: Sequence[tuple[Any, ...]]) -> list[LabelRow]:
    """Convert rows of label, name, red, green, blue and alpha to `LabelRow`.

    Colour values are between 0 and 1. A label with alpha 0, such as the medial wall, has no colour.
    """
    entries = []
    for label, name, *shades, alpha in rows:
        colour = None if alpha == 0 else as_colour(shades, 1.0)
        entries.append(LabelRow(int(label), str(name or ""), colour or ""))
    return entries


def rows_to_write(payload: Payload) -> list[LabelRow]:
    """Return one row for each label that occurs or has a name or a colour.

    The default name of a label is its number.
    """
    present: list[int] = np.unique(payload.array).tolist()
    if present and not INT32.min <= present[0] <= present[-1] <= INT32.max:
        raise InputError(
            f"surface formats store labels from −2³¹ to 2³¹ − 1, found {present[0]} to "
            f"{present[-1]}. Renumber them."
        )
    return [
        LabelRow(
            label,
            printable(payload.label_names.get(label, "")).strip() or str(label),
            payload.colours.get(label) or _generated(label),
        )
        for label in sorted({*present, *payload.label_names, *payload.colours})
    ]


def map_name(payload: Payload, number: int) -> str:
    """Return the name under which a map is stored.

    A map is stored under the name of its region or, if the region has no name, as #1, #2, …. A map
    that is not a segmentation is called "similarity".
    """
    if payload.kind == "map":
        return "similarity"
    name = payload.region_names[1 if payload.kind == "foreground" else number]
    return printable(name or "").strip() or f"#{number + 1}"


def space_of(payload: Payload) -> VertexSpace:
    """Return the vertex of each value to write. A 1-D array without geometry is one surface."""
    if isinstance(payload.geometry, VertexSpace):
        return payload.geometry
    if len(payload.shape) != 1 or payload.geometry is not None:
        size = " × ".join(map(str, payload.shape))
        pixels = words_for_axes(len(payload.shape)).many
        raise InputError(
            f"the format stores one value per vertex, found an image of {size} {pixels}. Write "
            f".nii.gz or .npz."
        )
    return VertexSpace.of_surface(payload.shape[0])


def only_structure(payload: Payload, name: str) -> Structure:
    """Return the surface to write, or raise an error if the format `name` cannot store it."""
    space = space_of(payload)
    if len(space.structures) > 1 or space.structures[0].used is not None:
        raise InputError(
            f"{name} stores all vertices of one surface, found {space.describe()['structures']}. "
            f"Write {'.dlabel.nii' if payload.labels else '.dscalar.nii'}."
        )
    return space.structures[0]


def structure_of_file(name: str) -> str:
    """Return the structure for a file name such as lh.aparc.annot, or "" if it is unknown."""
    sides = {match[1].lower() for match in HEMISPHERE.finditer(name)}
    if len(sides) != 1:
        return ""
    return "left cortex" if sides == {"l"} else "right cortex"


def _shown(maps: Maps) -> list[str]:
    """Return the text that selects each map: its name, or its index if it has no unique name.

    The first of several maps with the same name keeps the name.
    """
    return [
        name if name and maps.numbers[name] == k else str(k) for k, name in enumerate(maps.names)
    ]


def _generated(label: int) -> str:
    """Return a colour for a label without a colour. Consecutive labels have different hues."""
    shades = colorsys.hsv_to_rgb(label * HUE % 1, 0.5 + 0.1 * (label % 5), 0.9)
    return as_colour(shades, 1.0) or "#808080"
