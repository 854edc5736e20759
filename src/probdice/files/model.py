"""What the readers have in common: a `Source` goes in, an `Image` comes out.

A reader says what the file says and no more; `meaning` decides whether that is a label map or
probabilities. Readers raise short errors, and `read` puts the name of the file in front.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from probdice.data.geometry import Geometry
from probdice.data.segmentation import Array
from probdice.errors import MissingExtraError
from probdice.method.region_labels import Label

__all__ = [
    "Content",
    "Format",
    "Image",
    "Payload",
    "Source",
    "as_colour",
    "as_label",
    "lps_to_ras",
    "meaning_of",
    "need",
]


@dataclass(frozen=True)
class Source:
    """A file to be read."""

    path: Path
    inside: str  # what follows the colon: the data set, key or variable; or ""
    head: bytes  # the first bytes, unpacked where the file is gzipped
    gzipped: bool
    max_bytes: int  # what its values may take where they have to lie in memory
    store: str = ""  # a folder or a URL that holds chunks; or ""

    @property
    def name(self) -> str:
        return self.path.name.lower()


@dataclass(frozen=True, eq=False)
class Image:
    """What a file holds, in the words of its format."""

    array: Array
    regions: int | None = None  # the axis of the regions, where there is one
    assumed: bool = False  # that axis is our rule for plain arrays, not the word of the file
    # "values": look at them; "regions": probabilities that keep the axis of a single region;
    # "foreground": the probability of one, with labels and names of both regions.
    kind: Literal["values", "labels", "probabilities", "regions", "foreground"] = "values"
    affine: NDArray[np.float64] | None = None  # to millimetres, RAS
    slope: float = 1.0
    inter: float = 0.0
    label_names: Mapping[int, str] = field(default_factory=dict)
    region_labels: Sequence[int | None] | None = None  # the number of each region
    region_names: Sequence[Label | None] | None = None  # whole numbers only without region_labels
    colours: Mapping[int, str] = field(default_factory=dict)  # by label, or by number of the region
    beside: Path | None = None  # another file, whose geometry this image has


@dataclass(frozen=True)
class Content:
    """One of the arrays in a container: the path inside it, and what it could be read as."""

    inside: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    meaning: str
    joint: str = ":"  # what stands between the container and the path


@dataclass(frozen=True, eq=False)
class Payload:
    """What is to be written: labels are integers, all else is floating, regions first.

    A foreground is one array, with the labels and names of both regions; a map is no segmentation.
    """

    array: NDArray[Any]
    kind: Literal["labels", "probabilities", "foreground", "map"]
    geometry: Geometry | None
    label_names: Mapping[int, str] = field(default_factory=dict)
    region_labels: Sequence[int | None] = ()
    region_names: Sequence[str | None] = ()
    colours: Mapping[int, str] = field(default_factory=dict)

    @property
    def labels(self) -> bool:
        return self.kind == "labels"

    @property
    def regions(self) -> bool:
        """Whether the first axis is that of the regions."""
        return self.kind == "probabilities"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the image."""
        return self.array.shape[self.regions :]


@dataclass(frozen=True)
class Format:
    """A family of files: how to know one, read one and, where we can, write one."""

    name: str
    suffixes: tuple[str, ...]
    recognises: Callable[[Source], bool]
    read: Callable[[Source], Image]
    writes: tuple[str, ...] = ()
    write: Callable[[Path, Payload], None] | None = None
    contents: Callable[[Source], list[Content]] | None = None  # of a container of several arrays
    folder: bool = False  # whether what is written is a folder


def meaning_of(
    shape: tuple[int, ...], dtype: np.dtype[Any], regions: int | None, *, labels: bool = True
) -> str:
    """What an array could be, by its shape and type alone.

    `regions` is the axis that would be that of the regions, `labels` whether whole floating
    numbers are labels.
    """
    if dtype.kind not in "biuf":
        return "no numbers"
    if math.prod(shape) <= 1:
        return "a single number"
    if dtype.kind != "f":
        return "a label map"
    probabilities = "the probability of one foreground"
    if regions is not None:
        probabilities = f"probabilities of {shape[regions]} regions"
    return f"labels if all are whole, else {probabilities}" if labels else probabilities


def need(module: str, extra: str, what: str) -> Any:
    """The module, or an error that says which extra holds it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{what} needs {module.split('.')[0]}, which is not installed: "
            f'pip install "probdice[{extra}]"'
        ) from error


def as_colour(values: Sequence[Any], most: float) -> str | None:
    """Red, green and blue from 0 to `most` as "#RRGGBB"; None where they are no such numbers."""
    try:
        red, green, blue = (round(255 * float(value) / most) for value in values)
    except (TypeError, ValueError, OverflowError):
        return None
    if not all(0 <= value <= 255 for value in (red, green, blue)):
        return None
    return f"#{red:02X}{green:02X}{blue:02X}"


def as_label(name: str) -> Label:
    """The name of a region: an integer where it is a whole number, as the labels of a map are."""
    whole = name.isascii() and name.isdecimal() and len(name) < 19  # of 64 bits
    return int(name) if whole else name


def lps_to_ras(affine: NDArray[np.float64]) -> NDArray[np.float64]:
    """ITK and DICOM count left and posterior as positive; we count right and anterior."""
    return np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine
