"""What is compared: a segmentation, crisp or probabilistic.

A `Segmentation` remembers an array and how to read it; it never copies or converts it. The
structure (types, axes, names) is checked here, the values are checked while they are read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import (
    AnyArray,
    Array,
    Chunks,
    as_array,
    chunks_of,
    has_type,
    region_dimension,
    travels,
)
from probdice.data.geometry import Geometry
from probdice.data.value_checks import (
    Fault,
    Reading,
    Sums,
    as_probabilities,
    examine_labels,
    examine_values,
)
from probdice.errors import GeometryError, InputError, Note, Option
from probdice.method.region_labels import (
    COLOUR,
    Label,
    as_channels,
    shown_labels,
    shown_names,
    whole_number,
)
from probdice.method.similarity import Aitchison, ilr_basis
from probdice.text.formatting import short_paths

if TYPE_CHECKING:
    from probdice.metrics.components import Instances

__all__ = [
    "Array",
    "Segmentation",
    "as_array",
    "as_sums",
    "reordered",
    "several_labels",
]


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
    labels : tuple of int or None
        The number of each channel of a probabilistic segmentation, as a label map would have it;
        None for a channel without one. Empty for a label map, whose labels are found when it is
        read.
    names : mapping of int to str
        Names by label, or by channel of a probabilistic segmentation. Regions may share a name.
    regions : tuple of int or str
        How the channels of a probabilistic segmentation are shown: by name, else by number, else
        by channel. A name that several share is followed by the number.
    shape : tuple of int
        Shape of the image.
    geometry : Geometry or None
        Where the image lies, if known.
    source : str
        The file it came from, or "".
    notes : tuple of Note
        What is worth knowing about how it was read; a comparison repeats it.
    colours : mapping of int to str
        Colours such as "#0072B2" by label, or by number of the channel, where the source has them.
    origins : mapping of int to int or str
        The class of each connected component of a label map of components; empty for others.

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
    labels: tuple[int | None, ...] = ()
    names: Mapping[int, str] = field(default_factory=dict)
    ignore: tuple[int, ...] = ()
    reading: Reading = "error"
    geometry: Geometry | None = None
    source: str = ""
    notes: tuple[Note, ...] = ()
    colours: Mapping[int, str] = field(default_factory=dict)
    origins: Mapping[int, Label] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the structure; the values are checked while they are read."""
        object.__setattr__(self, "array", as_array(self.array))
        if not isinstance(self.names, Mapping):
            raise InputError(f"names must be a mapping of labels to names, found {self.names!r}")
        object.__setattr__(self, "ignore", several_labels(self.ignore, "ignore"))
        if not isinstance(self.geometry, Geometry | None):
            raise InputError(f"geometry must be a Geometry or None, found {self.geometry!r}")
        for colour in self.colours.values():
            if not COLOUR.fullmatch(str(colour)):
                raise InputError(f"colours must be like '#0072B2', found {colour!r}")
        if self.crisp:
            self._check_labels()
        else:
            self._check_regions()
        if self.geometry is not None and self.geometry.shape != self.shape:
            raise InputError(
                f"geometry is that of an image of shape {self.geometry.shape}, "
                f"found shape {self.shape}"
            )

    def _check_labels(self) -> None:
        dtype = self.array.dtype
        if dtype.kind not in "biuf" or dtype.itemsize > 8:
            raise InputError(f"labels must be whole numbers, found {dtype}")
        if self.labels or self.reading != "error":
            raise InputError(
                f"a label map has no channels and no reading, found labels={self.labels} and "
                f"reading={self.reading!r}; use from_probabilities or from_logits"
            )

    def _check_regions(self) -> None:
        if self.reading not in get_args(Reading):
            raise InputError(f"reading must be one of {get_args(Reading)}, found {self.reading!r}")
        if self.ignore:
            raise InputError(
                f"ignore is for labels of a label map, found ignore={self.ignore}; use from_labels"
            )
        if self.reading == "softmax" and self.array.dtype.kind != "f":
            raise InputError(f"logits must be floating, found {self.array.dtype}")
        _check_floating(self.array.dtype, "probabilities")
        if self.reading == "foreground":
            expected = 2
        elif not self.array.shape:
            raise InputError("probabilities need an axis of regions, found a single number")
        else:
            expected = self.array.shape[0] + (self.reading == "background")
        labels, _ = as_channels(self.labels, None, expected)
        object.__setattr__(self, "labels", labels)
        if not all(0 <= channel < expected for channel in self.names):
            raise InputError(f"names must be those of {expected} channels, found {self.names!r}")
        _check_distinct([label for label in labels if label is not None])
        _check_distinct(self.regions)

    @classmethod
    def from_labels(
        cls,
        array: "AnyArray",
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
            floating numbers that are whole. Tensors and arrays of other libraries work as well.
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
        if not isinstance(array, np.ndarray) and region_dimension(array) is not None:
            raise InputError(
                f"labels have one number for each pixel, found an array with the dimensions "
                f"{getattr(array, 'dims', ())}, one of them of regions; use from_probabilities"
            )
        if names is None:
            numbered: Mapping[int, str] = {}
        else:
            pairs = names.items() if isinstance(names, Mapping) else enumerate(names)
            numbered = {whole_number(label, "names"): str(name) for label, name in pairs}
        return cls(
            as_array(array),
            crisp=True,
            names=numbered,
            ignore=several_labels(ignore, "ignore"),
            geometry=geometry,
        )

    @classmethod
    def from_probabilities(
        cls,
        array: "AnyArray",
        *,
        axis: int | None = 0,
        labels: Sequence[int | None] | None = None,
        names: Sequence[Label | None] | None = None,
        sums: Sums = "error",
        geometry: Geometry | None = None,
    ) -> "Segmentation":
        """Probabilities of every region.

        Parameters
        ----------
        array : array_like
            Probabilities, of type float16, float32 or float64, or a one-hot array of integers.
            Tensors and arrays of other libraries work as well; bfloat16 becomes float32.
        axis : int or None, optional
            The axis of the regions. None when there is none: the array is then the probability
            of a single foreground, and the regions are 0 (its complement) and 1. In an xarray
            DataArray a dimension called region, class, label or channel is that of the regions.
        labels : sequence of int, optional
            The number of each region, which is what a label map has; None for a region without
            one. By default 0, 1, …, unless there are names.
        names : sequence of str, optional
            The name of each region, or None; a whole number in the place of a name is a label. By
            default the coordinates of an xarray dimension. Regions with different labels may
            share a name.
        sums : {"error", "normalise", "background"}, optional
            What to do where the probabilities of a pixel do not sum to 1 (to within 1e-3):
            refuse, divide by the sum ("normalize" too), or add a region called "background" for
            what is missing (and divide where the sum exceeds 1).
        geometry : Geometry, optional
            Where the image lies.

        Examples
        --------
        >>> from probdice import Segmentation
        >>> Segmentation.from_probabilities([[0.5, 0.0], [0.4, 0.0]], sums="background")
        Segmentation(regions=(0, 1, 'background'), shape=(2,), float64, sums='background')
        >>> Segmentation.from_probabilities([0.9, 0.2, 0.1], axis=None)
        Segmentation(regions=(0, 1), shape=(3,), float64, foreground)
        >>> organs = Segmentation.from_probabilities(
        ...     [[0.9, 0.2], [0.1, 0.8]], labels=[0, 17], names=["background", "liver"]
        ... )
        >>> organs.regions, organs.labels
        (('background', 'liver'), (0, 17))
        """
        how = as_sums(sums)
        if axis is None:
            if how != "error":
                raise InputError(
                    f"sums={sums!r} does not go with axis=None: a single foreground and its "
                    f"complement always sum to 1"
                )
            numbers, called = as_channels(labels, names, 2)
            return cls(
                as_array(array),
                crisp=False,
                labels=numbers,
                names=called,
                reading="foreground",
                geometry=geometry,
            )
        axis, names = _by_dimension(array, axis, names)
        array = _regions_first(array, axis, "probabilities")
        numbers, called = as_channels(labels, names, array.shape[0])
        if how == "background":
            called[len(numbers)] = "background"
            numbers = (*numbers, None)
        return cls(array, crisp=False, labels=numbers, names=called, reading=how, geometry=geometry)

    @classmethod
    def from_logits(
        cls,
        array: "AnyArray",
        *,
        axis: int = 0,
        labels: Sequence[int | None] | None = None,
        names: Sequence[Label | None] | None = None,
        geometry: Geometry | None = None,
    ) -> "Segmentation":
        """Logits of every region: the softmax along `axis` gives the probabilities.

        What underflows is kept as the smallest positive number, since a softmax is never
        certain. The parameters are those of `from_probabilities`.

        Examples
        --------
        >>> from probdice import Segmentation, compare
        >>> logits = Segmentation.from_logits([[0.0, 2.0], [0.0, -2.0]])
        >>> round(compare(logits, [[0.5, 0.5], [0.5, 0.5]], match="labels").score, 6)
        0.758993
        """
        axis, names = _by_dimension(array, axis, names)
        array = _regions_first(array, axis, "logits")
        numbers, called = as_channels(labels, names, array.shape[0])
        return cls(
            array, crisp=False, labels=numbers, names=called, reading="softmax", geometry=geometry
        )

    @classmethod
    def from_ilr(
        cls,
        array: "AnyArray",
        *,
        axis: int = 0,
        labels: Sequence[int | None] | None = None,
        names: Sequence[Label | None] | None = None,
        geometry: Geometry | None = None,
    ) -> "Segmentation":
        """Isometric log-ratio coordinates: one fewer than there are regions.

        The basis is that of Egozcue et al. (2003), each region against the geometric mean of those
        before it: z_k = √(k / (k + 1)) · log((p₁ ⋯ p_k)^(1/k) / p_{k+1}). Euclidean distances
        between coordinates are Aitchison distances between probabilities.

        Parameters
        ----------
        array : array_like
            Coordinates, any real numbers, along `axis`; the whole array is converted at once.
        axis, labels, names, geometry
            As for `from_logits`; there is one region more than there are coordinates.

        Examples
        --------
        >>> from probdice import Segmentation
        >>> segmentation = Segmentation.from_ilr([[0.0, 1.0], [0.0, 0.0]])
        >>> segmentation.probabilities().round(4)
        array([[0.3333, 0.576 ],
               [0.3333, 0.14  ],
               [0.3333, 0.284 ]])
        """
        values = _regions_first(array, axis, "coordinates")
        whole = np.asarray(values[(slice(None),) * len(values.shape)])
        if whole.dtype.kind != "f":
            raise InputError(f"coordinates must be floating, found {whole.dtype}")
        dtype = np.result_type(whole.dtype, np.float32)
        basis = ilr_basis(len(whole) + 1).astype(dtype)
        logits = np.tensordot(basis.T, whole.astype(dtype), axes=1)
        return cls.from_logits(logits, labels=labels, names=names, geometry=geometry)

    @classmethod
    def concatenate(cls, images: Iterable["Segmentation"]) -> "Segmentation":
        """The pixels of several images as one, for one correspondence over a whole data set.

        Parameters
        ----------
        images : iterable of Segmentation
            All label maps, or all probabilities with the same regions read in the same way. Their
            shapes may differ; geometry is dropped.

        Examples
        --------
        >>> import probdice
        >>> from probdice import Segmentation
        >>> references = [Segmentation.from_labels(x) for x in ([1, 1, 2], [2, 2])]
        >>> predictions = [Segmentation.from_labels(x) for x in ([5, 5, 7], [7, 5])]
        >>> probdice.compare(Segmentation.concatenate(references),
        ...                  Segmentation.concatenate(predictions)).score
        0.8
        """
        several = list(images)
        if not several:
            raise InputError("images is empty: expected at least one segmentation")
        first = several[0]
        for image in several[1:]:
            if (image.crisp, image.labels, image.reading) != (
                first.crisp,
                first.labels,
                first.reading,
            ):
                raise InputError(f"images must be alike, found {first!r} and {image!r}")
            if image.ignore != first.ignore or dict(image.names) != dict(first.names):
                raise InputError(
                    "images must have the same names and ignore the same labels, found "
                    f"{dict(first.names)}, {first.ignore} and {dict(image.names)}, {image.ignore}"
                )
        flat = [
            np.asarray(image.array).reshape((*image.array.shape[:1], -1) if image._rows else (-1,))
            for image in several
        ]
        array = np.concatenate(flat, axis=-1)
        return replace(first, array=array, geometry=None, source="", notes=())

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the image."""
        shape = self.array.shape
        return tuple(shape[1:] if self._rows else shape)

    @cached_property
    def regions(self) -> tuple[Label, ...]:
        """How the channels are shown: by name, else by number, else by channel."""
        return shown_labels(self.labels, self.names)

    @property
    def _rows(self) -> bool:
        """Whether the first axis of the array is that of the regions."""
        return not self.crisp and self.reading != "foreground"

    def probabilities(self) -> NDArray[Any]:
        """The probabilities of every region as they are compared, regions first.

        Sums are mended, a background is added, the softmax is taken. Of a label map it is one
        row of zeros and ones for every label that occurs, in ascending order.

        Examples
        --------
        >>> from probdice import Segmentation
        >>> Segmentation.from_probabilities([[0.5, 0.0]], sums="background").probabilities()
        array([[0.5, 0. ],
               [0.5, 1. ]])
        >>> Segmentation.from_labels([3, 1, 3]).probabilities()
        array([[0., 1., 0.],
               [1., 0., 1.]], dtype=float32)
        """
        array = np.asarray(self.array[(slice(None),) * len(self.array.shape)])
        if array.dtype.kind == "b":  # a boolean is true whatever its byte
            array = array.view(np.uint8) != 0
        if self.crisp:
            flat = array.reshape(-1)
            fault = examine_labels(flat) if flat.dtype.kind == "f" else None
            self.refuse(fault)
            labels = np.unique(array)
            rows = array == labels.reshape(-1, *(1,) * array.ndim)
            return np.asarray(rows, np.float32)
        dtype = np.result_type(array.dtype, np.float32)
        values = array.astype(dtype).reshape((array.shape[0] if self._rows else 1, -1))
        self.refuse(examine_values(values, self.reading))
        return as_probabilities(values, self.reading).reshape(-1, *self.shape)

    def to_ilr(self, *, floor: float = 0.0) -> NDArray[np.float64]:
        """The isometric log-ratio coordinates of every pixel; see `from_ilr` for the basis.

        Parameters
        ----------
        floor : float, optional
            Probabilities below this are raised to it, as by ``Aitchison(floor=…)``: a 0 has no
            logarithm, and is refused without it.

        Returns
        -------
        ndarray of float64
            Coordinates, one fewer than there are regions, then the axes of the image.

        Examples
        --------
        >>> from probdice import Segmentation
        >>> Segmentation.from_probabilities([[0.6, 0.2], [0.4, 0.8]]).to_ilr().round(4)
        array([[ 0.2867, -0.9803]])
        """
        floor = Aitchison(floor).floor
        p = self.probabilities().astype(np.float64)
        if len(p) < 2:
            raise InputError("coordinates need at least two regions, found one")
        p = np.maximum(p, floor)
        if not p.all():
            place = tuple(int(k) for k in np.argwhere(~(p > 0).all(axis=0))[0])
            raise InputError(
                f"probability 0 at pixel {place} has no logarithm, and so no coordinates; pass ",
                Option("floor", "1e-3"),
                " to raise such values to it",
            )
        return np.asarray(np.tensordot(ilr_basis(len(p)), np.log(p), axes=1))

    def refuse(self, fault: Fault | None) -> None:
        """Raise what is amiss in the values, if anything is, by pixels in C order."""
        if fault is not None:
            first, worst = (
                tuple(int(k) for k in np.unravel_index(pixel, self.shape))
                for pixel in (fault.first, fault.worst)
            )
            prefix = f"{short_paths(self.source)[0]}: " if self.source else ""
            raise InputError(prefix, *fault.message(first, worst))

    def components(
        self, *, background: Label | None, connectivity: int | None = None
    ) -> "Instances":
        """The connected components of a label map, as a label map of instances.

        Needs connected-components-3d (extra `instances`) and the whole image in memory.

        Parameters
        ----------
        background : int, str or None
            The label that is not divided; it keeps its number, as do labels that are ignored.
            It must be said; None where there is none.
        connectivity : {4, 8, 6, 18, 26}, optional
            How many neighbours a pixel has: 4 or 8 in two dimensions, 6, 18 or 26 in three. All
            of them, 8 or 26, by default.

        Returns
        -------
        Instances
            A `Segmentation` whose labels are numbers from 1 on and whose names, such as
            ``"liver#2"``, say which label each came from; `origins` has that as a mapping.

        Examples
        --------
        >>> import probdice
        >>> lesions = probdice.Segmentation.from_labels([[1, 0, 1], [0, 0, 1]])
        >>> lesions.components(background=0).array
        array([[1, 0, 2],
               [0, 0, 2]], dtype=uint16)
        """
        from probdice.metrics.components import instances_of

        return instances_of(self, background=background, connectivity=connectivity)

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
        order, flips, apart = self.geometry.steps_onto(geometry)
        if not apart <= tolerance:
            if not np.isfinite(apart):
                raise GeometryError("in no order of the axes do the grids have the same size")
            raise GeometryError(
                f"corners lie up to {apart:.3g} pixels apart",
                *(() if tolerance == 0.1 else (f", more than {tolerance:g}",)),
            )
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
        """How a label of a label map is shown: by its name, or by its number."""
        return self._shown_names.get(number, number)

    @cached_property
    def _shown_names(self) -> Mapping[int, str]:
        return shown_names(self.names, lambda label: label)

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

    @property
    def chunks(self) -> Chunks | None:
        chunks = chunks_of(self.array)
        if chunks is None:
            return None
        lengths = [chunks[axis] for axis in self.order]
        return tuple(part[::-1] if k in self.flips else part for k, part in enumerate(lengths))

    @property
    def travels(self) -> bool:
        return travels(self.array)

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
    if not flips and tuple(order) == tuple(range(len(order))):
        return array
    order = (*range(first), *(first + axis for axis in order))
    flips = tuple(first + axis for axis in flips)
    if isinstance(array, np.ndarray):
        return np.flip(array.transpose(order), flips)
    if has_type(array, "dask", "Array"):  # it stays one, so that its chunks are computed as tasks
        steps = (slice(None, None, -1 if k in flips else 1) for k in range(len(order)))
        return cast(Array, cast(Any, array).transpose(order)[tuple(steps)])
    return _Reordered(array, order, flips)


def _by_dimension(
    array: AnyArray, axis: int, names: Sequence[Label | None] | None
) -> tuple[int, Sequence[Label | None] | None]:
    """The axis of the regions and their names, where an xarray DataArray says them itself."""
    if axis != 0 or isinstance(array, np.ndarray):
        return axis, names
    dimension = region_dimension(array)
    if dimension is None:
        return axis, names
    return dimension[0], dimension[1] if names is None else names


def _regions_first(value: AnyArray, axis: int, what: str) -> Array:
    """A view of `value` with the axis of the regions in front."""
    array = as_array(value)
    _check_floating(array.dtype, what)
    axes = len(array.shape)
    axis = whole_number(axis, "axis")
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


def _check_distinct(names: Sequence[Label]) -> None:
    seen: set[str] = set()
    for name in names:
        if str(name) in seen:  # labels of both sides correspond as text
            raise InputError(
                f"regions must differ, found {name!r} twice; give them different labels or names"
            )
        seen.add(str(name))


def several_labels(labels: Iterable[int] | int, what: str) -> tuple[int, ...]:
    """Labels, of which there may be a single one."""
    single = isinstance(labels, str) or getattr(labels, "ndim", None) == 0
    given = tuple(labels) if isinstance(labels, Iterable) and not single else (labels,)
    for label in given:
        if isinstance(label, bool):  # more likely meant as "yes" than as label 1
            raise InputError(f"{what} must hold whole numbers, found {label!r}")
    return tuple(whole_number(label, what) for label in given)


def as_sums(sums: object) -> Sums:
    """One of the ways to mend sums; "normalize" is the same as "normalise"."""
    if isinstance(sums, str):
        word = "normalise" if sums == "normalize" else sums
        if word in get_args(Sums):
            return cast(Sums, word)
    raise InputError(f"sums must be 'error', 'normalise' or 'background', found {sums!r}")
