"""Types that all readers share. A reader converts a `Source` to an `Image`.

A reader returns only the content of the file. `interpretation` determines whether the values are
labels or probabilities. Readers raise short errors, which `read` prefixes with the file name.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from probdice.data.geometry import Geometry
from probdice.data.segmentation import Array
from probdice.data.vertex_space import VertexSpace
from probdice.errors import MissingExtraError
from probdice.method.region_labels import Label

__all__ = [
    "ContainedArray",
    "Entry",
    "Format",
    "Image",
    "Kind",
    "Payload",
    "Source",
    "as_colour",
    "as_label",
    "expect",
    "lps_to_ras",
    "meaning_of",
    "need",
    "rgb_of",
]


# "values" are labels or probabilities, depending on the numbers. "regions" are probabilities whose
# region axis is kept even if there is only one region. "foreground" is one probability per
# pixel, with the labels and names of both regions.
Kind = Literal["values", "labels", "probabilities", "regions", "foreground"]


@dataclass(frozen=True)
class Source:
    """A file to be read."""

    path: Path
    inside: str  # the dataset, key or variable after the colon, or ""
    head: bytes  # the first bytes, decompressed if the file is gzipped
    gzipped: bool
    max_bytes: int  # memory limit for values that cannot remain on disk
    store: str = ""  # folder or URL of a Zarr store, or ""

    @property
    def name(self) -> str:
        return self.path.name.lower()


@dataclass(frozen=True, eq=False)
class Image:
    """The content of a file, before interpretation."""

    array: Array
    regions: int | None = None  # the region axis, if there is one
    assumed: bool = False  # whether `regions` is assumed, because no metadata define the axes
    kind: Kind = "values"
    affine: NDArray[np.float64] | None = None  # maps pixel indices to millimetres (RAS)
    slope: float = 1.0
    inter: float = 0.0
    label_names: Mapping[int, str] = field(default_factory=dict)
    region_labels: Sequence[int | None] | None = None  # the label of each region
    region_names: Sequence[Label | None] | None = None  # a whole number is a label, not a name
    colours: Mapping[int, str] = field(default_factory=dict)  # by label, or by region index
    geometry_file: Path | None = None  # another file that contains the geometry
    vertices: VertexSpace | None = None  # the surfaces to which the values belong, if any


class Entry(NamedTuple):
    """The name and the colour of one label."""

    name: str
    colour: str | None = None


@dataclass(frozen=True)
class ContainedArray:
    """One array in a container, with its path and the meaning that `read` gives to its values."""

    inside: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    meaning: str
    joint: str = ":"  # the separator between container and path


@dataclass(frozen=True, eq=False)
class Payload:
    """The data to write: integer labels or floating-point values.

    Regions are along the first axis. A foreground is stored as one array of probabilities, with the
    labels and names of both regions. A map is not a segmentation.
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
        """Whether the first axis is the region axis."""
        return self.kind == "probabilities"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the image."""
        return self.array.shape[self.regions :]


@dataclass(frozen=True)
class Format:
    """A file format, with functions that recognise, read and, if supported, write files."""

    name: str
    suffixes: tuple[str, ...]
    recognises: Callable[[Source], bool]
    read: Callable[[Source], Image]
    writes: tuple[str, ...] = ()
    write: Callable[[Path, Payload], None] | None = None
    contents: Callable[[Source], list[ContainedArray]] | None = (
        None  # lists the arrays of a container
    )
    folder: bool = False  # whether the format writes a folder
    surfaces: bool = False  # whether the format stores values of vertices instead of a grid


def meaning_of(
    shape: tuple[int, ...], dtype: np.dtype[Any], regions: int | None, *, labels: bool = True
) -> str:
    """Describe how an array would be interpreted, based only on its shape and type.

    `regions` is the region axis if the values are probabilities. `labels` sets whether whole
    floating-point numbers are labels.
    """
    if dtype.kind not in "biuf":
        return "not numeric"
    if math.prod(shape) <= 1:
        return "a single number"
    if dtype.kind != "f":
        return "a label map"
    probabilities = "the probability of one foreground region"
    if regions is not None:
        probabilities = f"probabilities of {shape[regions]} regions"
    if not labels:
        return probabilities
    return f"labels if all values are whole, otherwise {probabilities}"


def need(module: str, extra: str, what: str) -> Any:
    """Import a module, or raise an error that names the extra that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise _missing(module.split(".")[0], extra, what) from error


def expect(library: str, extra: str, what: str) -> None:
    """Raise the same error as `need` if a library is not installed, without importing it."""
    if sys.modules.get(library, ...) is None or find_spec(library) is None:
        raise _missing(library, extra, what)


def _missing(library: str, extra: str, what: str) -> MissingExtraError:
    return MissingExtraError(
        f"{what} needs {library}, which is not installed. Install it with "
        f'pip install "probdice[{extra}]"'
    )


def as_colour(values: Sequence[Any], max_value: float) -> str | None:
    """Convert red, green and blue (0 to `max_value`) to "#RRGGBB", or invalid values to None."""
    try:
        red, green, blue = (round(255 * float(value) / max_value) for value in values)
    except (TypeError, ValueError, OverflowError):
        return None
    if not all(0 <= value <= 255 for value in (red, green, blue)):
        return None
    return f"#{red:02X}{green:02X}{blue:02X}"


def rgb_of(colour: str) -> tuple[float, float, float]:
    """Convert a colour such as "#0072B2" to red, green and blue between 0 and 1."""
    red, green, blue = bytes.fromhex(colour[1:])
    return red / 255, green / 255, blue / 255


def as_label(name: str) -> Label:
    """Convert the name of a region to an integer label if it is a whole number."""
    whole = name.isascii() and name.isdecimal() and len(name) < 19  # fits in 64 bits
    return int(name) if whole else name


def lps_to_ras(affine: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert an affine from LPS coordinates, as in ITK and DICOM, to RAS coordinates."""
    return np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine
