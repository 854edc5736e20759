"""What is compared: a segmentation, crisp or probabilistic.

A `Segmentation` remembers an array and how to read it; it never copies or converts it. The
structure (types, axes, names) is checked here, the values are checked while they are read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from os import PathLike, fspath
from typing import Any, Literal, Protocol, SupportsIndex, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probdice.errors import GeometryError, InputError
from probdice.geometry import Geometry

__all__ = [
    "Array",
    "Geometry",
    "Label",
    "Segmentation",
    "as_array",
    "as_segmentation",
    "reordered",
]

Label = int | str
Sums = Literal["error", "normalise", "background"]
Reading = Literal["error", "normalise", "background", "foreground", "softmax"]


class Array(Protocol):
    """What can be sliced into blocks: an ndarray, a memory map, a data set in a file."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __getitem__(self, index: Any, /) -> Any: ...


@dataclass(frozen=True, eq=False, repr=False)
class Segmentation:
    """A segmentation of one image: a label map, or a probability of every region per pixel.

    Make one with `from_labels`, `from_probabilities` or `from_logits`. The array is kept as it
    is (a memory map stays one) and read in blocks when it is compared.

    Attributes
    ----------
    array : ndarray or what slices like one
        The label map, or the values with the regions along the first axis.
    crisp : bool
        Whether it is a label map.
    regions : tuple of int or str
        Labels of the channels of a probabilistic segmentation; empty for a label map, whose
        labels are found when it is read.
    shape : tuple of int
        Shape of the image.
    geometry : Geometry or None
        Where the image lies, if known.
    source : str
        The file it came from, or "".

    Examples
    --------
    >>> from probdice import Segmentation
    >>> Segmentation.from_labels([[1, 1], [2, 7]], names={7: "vessel"})
    Segmentation(label map, shape=(2, 2), int64)
    >>> Segmentation.from_probabilities([[0.9, 0.2], [0.1, 0.8]], names=["grey", "white"])
    Segmentation(regions=('grey', 'white'), shape=(2,), float64)
    """

    array: Array
    crisp: bool
    regions: tuple[Label, ...] = ()
    names: Mapping[int, str] = field(default_factory=dict)
    ignore: tuple[int, ...] = ()
    reading: Reading = "error"
    geometry: Geometry | None = None
    source: str = ""

    @classmethod
    def from_labels(
        cls,
        array: ArrayLike | Array,
        *,
        ignore: Iterable[int] | int = (),
        names: Mapping[int, str] | Sequence[str] | None = None,
        geometry: Geometry | None = None,
    ) -> "Segmentation":
        """A label map.

        Parameters
        ----------
        array : array_like
            One label per pixel: integers of any type and size, booleans (labels 0 and 1), or
            floating numbers that are whole.
        ignore : int or iterable of int, optional
            Labels whose pixels are left out of the comparison. Only a reference may have them.
        names : mapping or sequence, optional
            Names of labels, as ``{label: name}`` or as a list that starts with label 0. Labels
            without a name keep their number; a named label that no pixel has is an empty region.
        geometry : Geometry, optional
            Where the image lies.

        Examples
        --------
        >>> import probdice
        >>> reference = probdice.Segmentation.from_labels([1, 1, 2, 255], ignore=[255])
        >>> probdice.compare(reference, [1, 1, 2, 2]).pixels
        3
        """
        array = as_array(array)
        if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise InputError(f"labels must be whole numbers, found {array.dtype}")
        if names is None:
            names = {}
        elif not isinstance(names, Mapping):
            names = dict(enumerate(names))
        _check_distinct(list(names.values()))
        return cls(
            array,
            crisp=True,
            names={_whole(label, "names"): str(name) for label, name in names.items()},
            ignore=tuple(_whole(label, "ignore") for label in _several(ignore)),
            geometry=_fitting(geometry, array.shape),
        )

    @classmethod
    def from_probabilities(
        cls,
        array: ArrayLike | Array,
        *,
        axis: int | None = 0,
        names: Sequence[Label] | None = None,
        sums: Sums = "error",
        geometry: Geometry | None = None,
    ) -> "Segmentation":
        """Probabilities of every region.

        Parameters
        ----------
        array : array_like
            Probabilities, of type float16, float32 or float64, or a one-hot array of integers.
        axis : int or None, optional
            The axis of the regions. None when there is none: the array is then the probability
            of a single foreground, and the regions are 0 (its complement) and 1.
        names : sequence, optional
            A label for each region; 0, 1, … by default.
        sums : {"error", "normalise", "background"}, optional
            What to do where the probabilities of a pixel do not sum to 1 (to within 1e-3):
            refuse, divide by the sum, or add a region called "background" for what is missing
            (and divide where the sum exceeds 1).
        geometry : Geometry, optional
            Where the image lies.

        Examples
        --------
        >>> from probdice import Segmentation
        >>> Segmentation.from_probabilities([[0.5, 0.0], [0.4, 0.0]], sums="background")
        Segmentation(regions=(0, 1, 'background'), shape=(2,), float64, sums='background')
        >>> Segmentation.from_probabilities([0.9, 0.2, 0.1], axis=None)
        Segmentation(regions=(0, 1), shape=(3,), float64, foreground)
        """
        if sums not in get_args(Sums):
            raise InputError(f"sums must be 'error', 'normalise' or 'background', found {sums!r}")
        if axis is None:
            if sums != "error":
                raise InputError(
                    f"sums={sums!r} does not go with axis=None: a single foreground and its "
                    f"complement always sum to 1"
                )
            array = as_array(array)
            _check_floating(array.dtype, "probabilities")
            regions = _region_names(names, 2)
            return cls(
                array,
                crisp=False,
                regions=regions,
                reading="foreground",
                geometry=_fitting(geometry, array.shape),
            )
        array = _regions_first(array, axis, "probabilities")
        regions = _region_names(names, array.shape[0])
        if sums == "background":
            regions = (*regions, "background")
            _check_distinct(regions)
        return cls(
            array,
            crisp=False,
            regions=regions,
            reading=sums,
            geometry=_fitting(geometry, array.shape[1:]),
        )

    @classmethod
    def from_logits(
        cls,
        array: ArrayLike | Array,
        *,
        axis: int = 0,
        names: Sequence[Label] | None = None,
        geometry: Geometry | None = None,
    ) -> "Segmentation":
        """Logits of every region: the softmax along `axis` gives the probabilities.

        What underflows is kept as the smallest positive number, since a softmax is never
        certain. The parameters are those of `from_probabilities`.

        Examples
        --------
        >>> from probdice import Segmentation, compare
        >>> logits = Segmentation.from_logits([[0.0, 2.0], [0.0, -2.0]])
        >>> round(compare(logits, [[0.5, 0.5], [0.5, 0.5]], match=False).score, 6)
        0.758993
        """
        array = _regions_first(array, axis, "logits")
        if array.dtype.kind != "f":
            raise InputError(f"logits must be floating, found {array.dtype}")
        return cls(
            array,
            crisp=False,
            regions=_region_names(names, array.shape[0]),
            reading="softmax",
            geometry=_fitting(geometry, array.shape[1:]),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the image."""
        if self.crisp or self.reading == "foreground":
            return self.array.shape
        return self.array.shape[1:]

    def onto(self, geometry: Geometry, *, tolerance: float = 0.1) -> "Segmentation":
        """This segmentation with its axes in the order and direction of `geometry`.

        Nothing is interpolated: the grids must be the same up to the order and direction of
        their axes, to within `tolerance` pixels at every corner.

        Examples
        --------
        >>> import numpy as np
        >>> from probdice import Geometry, Segmentation
        >>> here = Geometry((2, 3), np.diag([1.0, 1.0, 1.0]))
        >>> there = Geometry((3, 2), np.array([[0, 1, 0], [-1, 0, 2], [0, 0, 1.0]]))
        >>> labels = np.array([[5, 6], [3, 4], [1, 2]])
        >>> np.asarray(Segmentation.from_labels(labels, geometry=there).onto(here).array).tolist()
        [[1, 3, 5], [2, 4, 6]]
        """
        if self.geometry is None:
            raise GeometryError("it has no geometry, so it cannot be laid onto another grid")
        steps = self.geometry.steps_onto(geometry, tolerance)
        if steps is None:
            raise GeometryError(
                f"in no order and direction of the axes does every corner lie within "
                f"{tolerance:g} pixel (--geometry-tolerance)"
            )
        order, flips = steps
        first = len(self.array.shape) - len(order)  # 1 where an axis of regions comes first
        array = reordered(self.array, order, flips, first)
        return replace(self, array=array, geometry=geometry)

    def without_geometry(self) -> "Segmentation":
        """The same array, to be compared by array order alone.

        Examples
        --------
        >>> import numpy as np
        >>> from probdice import Geometry, Segmentation
        >>> here = Geometry((2,), np.diag([3.0, 1.0]))
        >>> Segmentation.from_labels([1, 2], geometry=here).without_geometry().geometry is None
        True
        """
        return replace(self, geometry=None)

    def label(self, number: int) -> Label:
        """The name of a label of a label map, or the label itself."""
        return self.names.get(number, number)

    def __repr__(self) -> str:
        what = "label map" if self.crisp else f"regions={self.regions}"
        parts = [what, f"shape={self.shape}", str(self.array.dtype)]
        if self.reading in ("foreground", "softmax"):
            parts.append(self.reading)
        elif self.reading != "error":
            parts.append(f"sums={self.reading!r}")
        if self.source:
            parts.append(f"source={self.source!r}")
        return f"Segmentation({', '.join(parts)})"


def as_segmentation(value: object) -> Segmentation:
    """A Segmentation as it is, integers as a label map, floating numbers as probabilities."""
    if isinstance(value, Segmentation):
        return value
    if isinstance(value, str | PathLike):
        raise InputError(f"found the path {fspath(value)!r}; read it first: probdice.read(path)")
    array = as_array(cast(ArrayLike, value))
    if array.dtype.kind in "biu":
        return Segmentation.from_labels(array)
    if array.dtype.kind == "f":
        return Segmentation.from_probabilities(array)
    raise InputError(
        f"must hold labels (integers) or probabilities (floating numbers), found {array.dtype}"
    )


@dataclass(frozen=True, eq=False)
class _Reordered:
    """An array that can only be sliced, with its axes reordered and flipped as blocks are taken."""

    array: Array
    order: tuple[int, ...]
    flips: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape[axis] for axis in self.order)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    def __getitem__(self, index: tuple[slice, ...]) -> NDArray[Any]:
        taken: list[slice] = [slice(None)] * len(self.order)
        for k, (axis, part) in enumerate(zip(self.order, index, strict=True)):
            start, stop, _ = part.indices(self.shape[k])
            if k in self.flips:
                start, stop = self.shape[k] - stop, self.shape[k] - start
            taken[axis] = slice(start, stop)
        block = np.asarray(self.array[tuple(taken)]).transpose(self.order)
        return np.flip(block, self.flips)


def reordered(array: Array, order: Sequence[int], flips: Sequence[int], first: int = 0) -> Array:
    """`array` with the axes after the first `first` ones reordered, then flipped."""
    order = (*range(first), *(first + axis for axis in order))
    flips = tuple(first + axis for axis in flips)
    if isinstance(array, np.ndarray):
        return np.flip(array.transpose(order), flips)
    return _Reordered(array, order, flips)


def as_array(value: ArrayLike | Array) -> Array:
    """An ndarray, or what already slices like one."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "shape") and isinstance(getattr(value, "dtype", None), np.dtype):
        return cast(Array, value)
    try:
        return np.asarray(value)
    except ValueError as error:
        raise InputError(f"must be an array of one shape: {error}") from None


def _regions_first(value: ArrayLike | Array, axis: int, what: str) -> Array:
    """A view of `value` with the axis of the regions in front."""
    array = as_array(value)
    _check_floating(array.dtype, what)
    axes = len(array.shape)
    axis = _whole(axis, "axis")
    if not -axes <= axis < axes:
        raise InputError(
            f"{what} have no axis {axis}: their shape is {array.shape}, "
            f"and one axis must be that of the regions"
        )
    axis %= axes
    if array.shape[axis] == 0:
        raise InputError(f"{what} have no regions: axis {axis} of shape {array.shape} is empty")
    if axis == 0:
        return array
    return reordered(array, (axis, *(k for k in range(axes) if k != axis)), ())


def _check_floating(dtype: np.dtype[Any], what: str) -> None:
    """Only what a block can turn into float32 or float64 without loss of meaning."""
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise InputError(
            f"{what} must be float16, float32 or float64, found {dtype}; "
            f"convert them with astype first"
        )


def _region_names(names: Sequence[Label] | None, count: int) -> tuple[Label, ...]:
    """One label per region; the numbers from 0 without names."""
    if names is None:
        return tuple(range(count))
    if isinstance(names, str | Mapping) or len(names) != count:
        raise InputError(f"names must be a list of {count} names, one a region, found {names!r}")
    labels = tuple(str(name) if isinstance(name, str) else _whole(name, "names") for name in names)
    _check_distinct(labels)
    return labels


def _check_distinct(names: Sequence[Label]) -> None:
    seen: set[Label] = set()
    for name in names:
        if name in seen:
            raise InputError(f"names must differ, found {name!r} twice")
        seen.add(name)


def _several(labels: Iterable[int] | int) -> Iterable[int]:
    """Labels, of which there may be a single one."""
    return labels if isinstance(labels, Iterable) else (labels,)


def _whole(value: object, what: str) -> int:
    """A whole number, as which a label or an axis is given."""
    try:
        return index(cast(SupportsIndex, value))
    except TypeError:
        raise InputError(f"{what} must hold whole numbers, found {value!r}") from None


def _fitting(geometry: Geometry | None, shape: tuple[int, ...]) -> Geometry | None:
    if geometry is not None and geometry.shape != tuple(shape):
        raise InputError(
            f"geometry is that of an image of shape {geometry.shape}, found shape {tuple(shape)}"
        )
    return geometry
