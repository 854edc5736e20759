"""`Segmentation`: a crisp or probabilistic segmentation of one image.

A `Segmentation` stores an array and the interpretation of its values. NumPy arrays, memory maps and
arrays in files are not copied. This module checks types, axes and names. Values are checked when
they are read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import AnyArray, Array, as_array, in_memory, region_dimension
from probdice.data.geometry import Geometry
from probdice.data.lazy_arrays import reordered
from probdice.data.pixel_words import pixel_words, words_for_axes
from probdice.data.value_checks import (
    Fault,
    Reading,
    Sums,
    decoded,
    examine_labels,
    zeros_and_ones,
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
from probdice.method.regions import as_integers
from probdice.method.similarity import Aitchison, ilr_basis
from probdice.text.formatting import short_paths

if TYPE_CHECKING:
    from probdice.data.resampling import Interpolation
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
    """A segmentation of one image: a label map, or the probability of every region per pixel.

    Create a segmentation with `from_labels`, `from_probabilities`, `from_logits` or another method
    whose name starts with ``from_``. `from_labels`, `from_probabilities` and `from_logits` do not
    copy NumPy arrays: a memory map remains a memory map, and a comparison reads it in blocks. In
    this documentation, "pixel" also means voxel.

    Attributes
    ----------
    array : ndarray or sliceable array
        The label map, or the values with the regions along the first axis.
    crisp : bool
        Whether the segmentation is a label map.
    labels : tuple of int or None
        The label of each channel of a probabilistic segmentation, or None for a channel without a
        label. The tuple is empty for a label map, whose labels are known only after its values
        have been read.
    names : mapping of int to str
        Names of regions. The keys are labels for a label map, and channel indices for a
        probabilistic segmentation. Regions may share a name.
    ignore : tuple of int
        The labels whose pixels are excluded from the comparison. Only a label map can have ignored
        labels.
    reading : {"error", "normalise", "background", "foreground", "softmax"}
        How the values of a probabilistic segmentation are converted to probabilities. The values
        "error", "normalise" and "background" are those of the option `sums`. "foreground" means
        the probability of a single region, and "softmax" means logits.
    regions : tuple of int or str
        The name by which each channel of a probabilistic segmentation is displayed. A channel
        without a name is displayed as its label or, if it has no label, as its index. If several
        regions share a name, the label is appended to the name, as in "mass (2)".
    shape : tuple of int
        Shape of the image.
    geometry : Geometry or None
        Position of the image in space, if known.
    source : str
        The file from which the segmentation was read, or "".
    notes : tuple of Note
        Notes from reading the file, which are added to the notes of a comparison.
    colours : mapping of int to str
        Colours of regions, such as "#0072B2", with the same keys as `names`. The mapping is empty
        if the source does not define colours.
    origins : mapping of int to int or str
        The original name or label of each connected component in a label map of components. The
        mapping is empty for other segmentations.

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
        """Check types, axes and names. Values are checked when they are read."""
        if type(self.array) is not np.ndarray or self.array.dtype.kind == "V":
            object.__setattr__(self, "array", as_array(self.array))
        if type(self.names) is not dict and not isinstance(self.names, Mapping):
            raise InputError(
                f"names must be a mapping from labels or channel indices to names, found "
                f"{self.names!r}"
            )
        if type(self.ignore) is not tuple or self.ignore:
            object.__setattr__(self, "ignore", several_labels(self.ignore, "ignore"))
        for colour in self.colours.values():
            if not COLOUR.fullmatch(str(colour)):
                raise InputError(f"colours must be like '#0072B2', found {colour!r}")
        if self.crisp:
            self._check_labels()
        else:
            self._check_regions()
        if self.geometry is not None:
            self._check_geometry()

    def _check_geometry(self) -> None:
        if not isinstance(self.geometry, Geometry):
            raise InputError(f"geometry must be a Geometry or None, found {self.geometry!r}")
        if self.geometry.shape != self.shape:
            raise InputError(
                f"geometry has shape {self.geometry.shape}, but the image has shape {self.shape}"
            )

    def _check_labels(self) -> None:
        dtype = self.array.dtype
        if dtype.kind not in "biuf" or dtype.itemsize > 8:
            raise InputError(f"labels must be whole numbers of at most 64 bits, found {dtype}")
        if self.labels or self.reading != "error":
            raise InputError(
                f"labels and reading do not apply to a label map, found labels={self.labels} and "
                f"reading={self.reading!r}. Omit them. If the array contains probabilities or "
                f"logits, use from_probabilities or from_logits."
            )

    def _check_regions(self) -> None:
        if self.reading not in get_args(Reading):
            raise InputError(f"reading must be one of {get_args(Reading)}, found {self.reading!r}")
        if self.ignore:
            raise InputError(
                f"ignore applies to label maps only, but this segmentation contains probabilities, "
                f"found ignore={self.ignore}. To exclude pixels, pass a mask to the comparison. If "
                f"the array is a label map, use from_labels."
            )
        if self.reading == "softmax" and self.array.dtype.kind != "f":
            raise InputError(f"logits must be floating-point numbers, found {self.array.dtype}")
        _check_floating(self.array.dtype, "probabilities")
        if self.reading == "foreground":
            expected = 2
        elif not self.array.shape:
            raise InputError("probabilities require a region axis, found a single number")
        else:
            expected = self.array.shape[0] + (self.reading == "background")
        labels, _ = as_channels(self.labels, None, expected)
        object.__setattr__(self, "labels", labels)
        if not all(0 <= channel < expected for channel in self.names):
            raise InputError(
                f"the keys of names must be channel indices from 0 to {expected - 1}, found "
                f"{self.names!r}"
            )
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
        """Create a label map.

        Parameters
        ----------
        array : array_like
            One label per pixel: integers of any type, booleans (labels 0 and 1), or floating-point
            whole numbers. Tensors and arrays of other libraries are also accepted.
        ignore : int or iterable of int, optional
            Labels whose pixels are excluded from the comparison. Only a reference may have ignored
            labels.
        names : mapping or sequence, optional
            Names of labels: ``{label: name}``, or a list that starts with label 0. Labels without
            a name are displayed as numbers. A named label without pixels is an empty region.
        geometry : Geometry, optional
            Position of the image in space.

        Examples
        --------
        >>> import probdice
        >>> reference = probdice.Segmentation.from_labels([1, 1, 2, 255], ignore=[255])
        >>> probdice.compare(reference, [1, 1, 2, 2]).pixels
        3
        """
        if not isinstance(array, np.ndarray) and region_dimension(array) is not None:
            raise InputError(
                f"a label map has one number per pixel, found an array with the dimensions "
                f"{getattr(array, 'dims', ())}, one of which is the region axis. Use "
                f"from_probabilities or, if this dimension is not a region axis, rename or remove "
                f"it."
            )
        entries = {} if names is None else names
        if isinstance(entries, str) or not isinstance(entries, Iterable):
            raise InputError(f"names: expected a mapping or a sequence of names, found {entries!r}")
        pairs = entries.items() if isinstance(entries, Mapping) else enumerate(entries)
        names_by_label = {whole_number(label, "names"): str(name) for label, name in pairs}
        labels = several_labels(ignore, "ignore")
        return cls(
            as_array(array), crisp=True, names=names_by_label, ignore=labels, geometry=geometry
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
        """Create a segmentation from the probabilities of every region.

        Parameters
        ----------
        array : array_like
            Probabilities of type float16, float32 or float64, or a one-hot array of integers or
            booleans. Tensors and arrays of other libraries are also accepted; bfloat16 becomes
            float32.
        axis : int or None, optional
            The region axis. With None, the array contains the probability of a single foreground
            region. By default, this region has label 1, and its complement has label 0. If `axis`
            is 0 and the array is an xarray DataArray with a dimension called region, class, label
            or channel, this dimension is the region axis.
        labels : sequence of int, optional
            The label of each region, as in a label map, or None for a region without a label. The
            default is 0, 1, …, unless names are given.
        names : sequence of str, optional
            The name of each region, or None for a region without a name. A whole number in this
            list is used as a label. For an xarray DataArray, the default is the coordinates of the
            region axis. Regions with different labels may share a name.
        sums : {"error", "normalise", "background"}, optional
            How to treat sums of probabilities that are not 1. "error" raises an error if a sum
            deviates from 1 by more than 1e-3. "normalise" (or "normalize") divides the
            probabilities of every pixel by their sum. "background" adds a region called
            "background" with the missing probability, and divides by the sum if the sum exceeds 1.
            Sums are checked when the values are read.
        geometry : Geometry, optional
            Position of the image in space.

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
        reading = as_sums(sums)
        if axis is None:
            if reading != "error":
                raise InputError(
                    f"sums={sums!r} cannot be combined with axis=None: the probabilities of a "
                    f"single foreground region and its complement always sum to 1. Omit sums or "
                    f"axis."
                )
            values = as_array(array)
            numbers, channel_names = as_channels(labels, names, 2)
            return cls(
                values, False, numbers, channel_names, reading="foreground", geometry=geometry
            )
        axis, names = _by_dimension(array, axis, names)
        array = _regions_first(array, axis, "probabilities")
        numbers, channel_names = as_channels(labels, names, array.shape[0])
        if reading == "background":
            channel_names[len(numbers)] = "background"
            numbers = (*numbers, None)
        return cls(
            array,
            crisp=False,
            labels=numbers,
            names=channel_names,
            reading=reading,
            geometry=geometry,
        )

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
        """Create a segmentation from logits. Probabilities are the softmax of logits along `axis`.

        A probability that underflows is replaced by the smallest positive number, because a softmax
        is never exactly 0. The array contains floating-point logits, and `axis` cannot be None. All
        parameters except `array` have the same meaning as in `from_probabilities`.

        Examples
        --------
        >>> from probdice import Segmentation, compare
        >>> logits = Segmentation.from_logits([[0.0, 2.0], [0.0, -2.0]])
        >>> round(compare(logits, [[0.5, 0.5], [0.5, 0.5]], match="labels").score, 6)
        0.758993
        """
        axis, names = _by_dimension(array, axis, names)
        array = _regions_first(array, axis, "logits")
        numbers, channel_names = as_channels(labels, names, array.shape[0])
        return cls(
            array,
            crisp=False,
            labels=numbers,
            names=channel_names,
            reading="softmax",
            geometry=geometry,
        )

    @classmethod
    def from_nested(
        cls,
        array: "AnyArray",
        *,
        axis: int = 0,
        labels: Sequence[int | None] | None = None,
        names: Sequence[str | None] | None = None,
        geometry: Geometry | None = None,
    ) -> "Segmentation":
        """Create a segmentation from nested channels, such as whole tumour ⊇ core ⊇ enhancing.

        The regions are the background (1 minus the first channel), the differences between
        successive channels, and the last channel. If the channels are booleans or integers, the
        result is a label map. If the channels are floating-point numbers, such as sigmoid outputs,
        the result is probabilistic. To compare the channels themselves, use `Comparison.derived`.
        The first channel is the union of regions 1, 2, …; the second channel is the union of
        regions 2, 3, ….

        Parameters
        ----------
        array : array_like
            Channels along `axis`, from the outermost to the innermost: booleans, integers 0 and 1,
            or probabilities. No channel may exceed the previous channel by more than 1e-3. The
            whole array is read into memory.
        axis : int, optional
            The axis of the channels.
        labels : sequence of int, optional
            The label of each region, starting with the background. The default is 0, 1, ….
        names : sequence of str, optional
            The name of each region, starting with the background.
        geometry : Geometry, optional
            Position of the image in space.

        Examples
        --------
        >>> from probdice import Segmentation
        >>> whole, core = [0.9, 0.8, 0.1], [0.6, 0.1, 0.0]
        >>> tumour = Segmentation.from_nested([whole, core], names=["background", "oedema", "core"])
        >>> tumour.array.round(2)
        array([[0.1, 0.2, 0.9],
               [0.3, 0.7, 0.1],
               [0.6, 0.1, 0. ]])
        >>> Segmentation.from_nested([[True, True, False], [True, False, False]]).array.tolist()
        [2, 1, 0]
        """
        from probdice.data.nesting import partition_of

        channels = in_memory(_regions_first(array, axis, "channels"))
        numbers, channel_names = as_channels(labels, names, len(channels) + 1)
        position = geometry if isinstance(geometry, Geometry) else None  # `cls` checks the type
        regions = partition_of(channels, words_for_axes(channels.ndim - 1, position))
        if channels.dtype.kind == "f":
            return cls(regions, crisp=False, labels=numbers, names=channel_names, geometry=geometry)
        keys = [k if number is None else number for k, number in enumerate(numbers)]
        return cls(
            np.array(keys, np.int64)[regions],
            crisp=True,
            names={keys[k]: name for k, name in channel_names.items()},
            geometry=geometry,
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
        """Create a segmentation from isometric log-ratio coordinates.

        In the basis of Egozcue et al. (2003), coordinate k compares the geometric mean of the first
        k regions with the next region: z_k = √(k / (k + 1)) · log((p₁ ⋯ p_k)^(1/k) / p_{k+1}).
        Euclidean distances between coordinates are Aitchison distances between probabilities.

        Parameters
        ----------
        array : array_like
            Coordinates (any real numbers) along `axis`. The whole array is read into memory.
        axis, labels, names, geometry
            The same as in `from_logits`, except that the dimension names of an xarray DataArray are
            ignored. The number of regions is the number of coordinates plus 1.

        Examples
        --------
        >>> from probdice import Segmentation
        >>> segmentation = Segmentation.from_ilr([[0.0, 1.0], [0.0, 0.0]])
        >>> segmentation.probabilities().round(4)
        array([[0.3333, 0.576 ],
               [0.3333, 0.14  ],
               [0.3333, 0.284 ]])
        """
        values = in_memory(_regions_first(array, axis, "coordinates"))
        if values.dtype.kind != "f":
            raise InputError(f"coordinates must be floating-point numbers, found {values.dtype}")
        dtype = np.result_type(values.dtype, np.float32)
        basis = ilr_basis(len(values) + 1).astype(dtype)
        logits = np.tensordot(basis.T, values.astype(dtype), axes=1)
        return cls.from_logits(logits, labels=labels, names=names, geometry=geometry)

    @classmethod
    def concatenate(cls, images: Iterable["Segmentation"]) -> "Segmentation":
        """Combine the pixels of several images, so that regions are matched for a whole data set.

        Parameters
        ----------
        images : iterable of Segmentation
            Label maps, or probabilistic segmentations with the same regions and the same
            `reading`. All images must have the same names and ignored labels. Their shapes may
            differ. Their geometry is ignored.

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
        image_list = list(images)
        if not image_list:
            raise InputError("images is empty: expected at least one segmentation")
        first = image_list[0]
        for image in image_list[1:]:
            properties, expected = ((s.crisp, s.labels, s.reading) for s in (image, first))
            if properties != expected:
                raise InputError(
                    f"images must all be label maps, or probabilistic with the same regions and "
                    f"reading, found {first!r} and {image!r}"
                )
            if image.ignore != first.ignore or dict(image.names) != dict(first.names):
                raise InputError(
                    "images must have the same names and ignore the same labels, found "
                    f"{dict(first.names)}, {first.ignore} and {dict(image.names)}, {image.ignore}"
                )
        flat = [
            np.asarray(image.array).reshape((*image.array.shape[:1], -1) if image._rows else (-1,))
            for image in image_list
        ]
        kinds = {array.dtype.kind for array in flat}
        if kinds == {"i", "u"} and np.result_type(*flat).kind == "f":
            # NumPy would convert uint64 and int64 to float64, which cannot represent all labels.
            flat = [as_integers(array) for array in flat]
            if len({array.dtype for array in flat}) > 1:
                raise InputError(
                    "images with labels of at least 2⁶³ cannot be combined with images of a signed "
                    "integer type. Convert all label maps to uint64, or renumber the labels."
                )
        array = np.concatenate(flat, axis=-1)
        return replace(first, array=array, geometry=None, source="", notes=())

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the image."""
        if self.crisp:
            return tuple(self.array.shape)
        return tuple(self.array.shape[1:] if self._rows else self.array.shape)

    @cached_property
    def regions(self) -> tuple[Label, ...]:
        """The name, label or index by which each channel is displayed."""
        return shown_labels(self.labels, self.names)

    @property
    def _rows(self) -> bool:
        """Whether the first axis of the array is the region axis."""
        return not self.crisp and self.reading != "foreground"

    def probabilities(self) -> NDArray[Any]:
        """Return the probabilities that a comparison uses, with the regions along the first axis.

        Depending on `reading`, probabilities are divided by their sum, a background is added, the
        complement of a foreground is added, or the softmax is applied. For a label map, the result
        has one row of zeros and ones per label that occurs, in ascending order of labels.

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
        array = zeros_and_ones(in_memory(self.array))
        if self.crisp:
            if array.dtype.kind == "f":
                self.raise_if_invalid(examine_labels(array.reshape(-1)))
            labels = np.unique(array)
            rows = array == labels.reshape(-1, *(1,) * array.ndim)
            return np.asarray(rows, np.float32)
        dtype = np.result_type(array.dtype, np.float32)
        values = array.astype(dtype).reshape((array.shape[0] if self._rows else 1, -1))
        probabilities, fault = decoded(values, self.reading)
        self.raise_if_invalid(fault)
        return probabilities.reshape(-1, *self.shape)

    def to_ilr(self, *, floor: float = 0.0) -> NDArray[np.float64]:
        """Return the isometric log-ratio coordinates of every pixel, in the basis of `from_ilr`.

        Parameters
        ----------
        floor : float, optional
            Probabilities below `floor` are replaced by `floor`, as in ``Aitchison(floor=…)``.
            Without a floor, a probability of 0 raises an error because it has no logarithm.

        Returns
        -------
        ndarray of float64
            Array with the coordinates along the first axis, followed by the image axes. The number
            of coordinates is the number of regions minus 1.

        Examples
        --------
        >>> from probdice import Segmentation
        >>> Segmentation.from_probabilities([[0.6, 0.2], [0.4, 0.8]]).to_ilr().round(4)
        array([[ 0.2867, -0.9803]])
        """
        floor = Aitchison(floor).floor
        p = self.probabilities().astype(np.float64)
        if len(p) < 2:
            raise InputError("coordinates require at least two regions, found one")
        p = np.maximum(p, floor)
        if not p.all():
            position = tuple(int(k) for k in np.argwhere(~(p > 0).all(axis=0))[0])
            pixel = pixel_words(self).one
            raise InputError(
                f"probability 0 at {pixel} {position} has no logarithm and no coordinates. To "
                f"replace small probabilities by a minimum, use ",
                Option("floor", 1e-3),
                ".",
            )
        return np.asarray(np.tensordot(ilr_basis(len(p)), np.log(p), axes=1))

    def raise_if_invalid(self, fault: Fault | None) -> None:
        """Raise an error for invalid values, unless `fault` is None.

        The pixels in `fault` are numbered in C order.
        """
        if fault is not None:
            first, worst = (
                tuple(int(k) for k in np.unravel_index(pixel, self.shape))
                for pixel in (fault.first, fault.worst)
            )
            prefix = f"{short_paths(self.source)[0]}: " if self.source else ""
            raise InputError(prefix, *fault.message(first, worst, pixel_words(self)))

    def components(
        self, *, background: Label | None, connectivity: int | None = None
    ) -> "Instances":
        """Return the connected components of a label map as a label map of instances.

        This method requires connected-components-3d (extra `instances`) and reads the whole image
        into memory.

        Parameters
        ----------
        background : int, str or None
            The label that is not divided into components. The background and ignored labels keep
            their numbers. This argument is required. Pass None if there is no background.
        connectivity : {2, 4, 8, 6, 18, 26}, optional
            Number of neighbours of a pixel: 2 in 1-D, 4 or 8 in 2-D, and 6, 18 or 26 in 3-D. The
            default is the largest number for the dimension of the image: 2, 8 or 26.

        Returns
        -------
        Instances
            A `Segmentation` whose components have names such as ``"liver#2"`` and the labels
            1, 2, …. The labels of the background and of ignored regions are skipped. `origins` maps
            each new label to the name of its original label, or to the label if it has no name.

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
        """Return this segmentation with its axes in the order and direction of `geometry`.

        Values are not interpolated. Apart from the order and direction of their axes, the grids
        must agree within `tolerance` pixels at every corner.

        Examples
        --------
        >>> import numpy as np
        >>> from probdice import Geometry, Segmentation
        >>> target = Geometry((2, 3), np.diag([1.0, 1.0, 1.0]))
        >>> rotated = Geometry((3, 2), np.array([[0, 1, 0], [-1, 0, 2], [0, 0, 1.0]]))
        >>> labels = Segmentation.from_labels([[5, 6], [3, 4], [1, 2]], geometry=rotated)
        >>> np.asarray(labels.onto(target).array).tolist()
        [[1, 3, 5], [2, 4, 6]]
        """
        if self.geometry is None:
            raise GeometryError("has no geometry, so it cannot be aligned with another grid")
        order, flips, distance = self.geometry.steps_onto(geometry)
        if not distance <= tolerance:
            is_default = tolerance == 0.1 or not np.isfinite(distance)
            raise GeometryError(
                self.geometry.obstacle(geometry, distance),
                *(() if is_default else (f", more than {tolerance:g}",)),
            )
        first = len(self.array.shape) - len(order)  # 1 if the first axis is the region axis
        array = reordered(self.array, order, flips, first)
        return replace(self, array=array, geometry=geometry)

    def resampled(
        self,
        geometry: Geometry,
        resample: "Interpolation" = "linear",
        *,
        background: Label | None = None,
    ) -> "Segmentation":
        """Return this segmentation on another grid.

        If both grids lie on the same lattice (parallel axes, equal spacing, offset by whole
        pixels), the segmentation is cropped or padded and keeps its values. Otherwise, its values
        are interpolated. Blocks are computed when they are read.

        Parameters
        ----------
        geometry : Geometry
            The target grid, including its shape.
        resample : {"linear", "nearest"}, optional
            "linear" interpolates probabilities or the indicators of labels, so a label map
            becomes probabilistic. "nearest" copies the values of the nearest pixel.
        background : int or str, optional
            Label or name of the region to which all pixels outside the field of view are assigned.
            This argument is required if the target grid has pixels outside the field of view.

        Examples
        --------
        >>> import numpy as np
        >>> from probdice import Geometry, Segmentation
        >>> labels = Segmentation.from_labels([1, 1, 2, 2], geometry=Geometry((4,), np.eye(2)))
        >>> labels.resampled(Geometry((2,), [[1, 0.5], [0, 1]])).probabilities()
        array([[1. , 0.5],
               [0. , 0.5]], dtype=float32)
        >>> longer = Geometry((6,), [[1, -1], [0, 1]])
        >>> np.asarray(labels.resampled(longer, background=0).array)
        array([0, 1, 1, 2, 2, 0])
        """
        from probdice.data import resampling

        if not isinstance(resample, str) or resample not in get_args(resampling.Interpolation):
            raise InputError(f"resample must be 'linear' or 'nearest', found {resample!r}")
        resampled, view = resampling.resample(self, geometry, resample, background=background)
        if view is not None:
            outside = int(np.prod(view.shape)) - int(np.count_nonzero(view[...]))
            if outside:
                pixels = words_for_axes(len(view.shape)).of(outside)
                raise GeometryError(
                    f"the field of view of the image does not contain {outside} {pixels} of the "
                    f"grid. Set background to the label or name of the region outside the field of "
                    f"view."
                )
        return resampled

    def without_geometry(self) -> "Segmentation":
        """Return the same segmentation without geometry, for a comparison in array order.

        Examples
        --------
        >>> import numpy as np
        >>> from probdice import Geometry, Segmentation
        >>> geometry = Geometry((2,), np.diag([3.0, 1.0]))
        >>> Segmentation.from_labels([1, 2], geometry=geometry).without_geometry().geometry is None
        True
        """
        return replace(self, geometry=None)

    def label(self, number: int) -> Label:
        """Return the name by which a label of a label map is displayed, or the label if unnamed."""
        return self._shown_names.get(number, number)

    @cached_property
    def _shown_names(self) -> Mapping[int, str]:
        return shown_names(self.names, lambda label: label)

    def __repr__(self) -> str:
        kind = "label map" if self.crisp else f"regions={self.regions}"
        parts = [kind, f"shape={self.shape}", str(self.array.dtype)]
        if self.reading in ("foreground", "softmax"):
            parts.append(self.reading)
        elif self.reading != "error":
            parts.append(f"sums={self.reading!r}")
        if self.source:
            parts.append(f"source={self.source!r}")
        return f"Segmentation({', '.join(parts)})"


def _by_dimension(
    array: AnyArray, axis: int, names: Sequence[Label | None] | None
) -> tuple[int, Sequence[Label | None] | None]:
    """Return the region axis and the region names.

    If `axis` is 0, both are taken from the dimensions and coordinates of an xarray DataArray.
    Given names take precedence.
    """
    if axis != 0 or isinstance(array, np.ndarray):
        return axis, names
    dimension = region_dimension(array)
    if dimension is None:
        return axis, names
    return dimension[0], dimension[1] if names is None else names


def _regions_first(value: AnyArray, axis: int, content: str) -> Array:
    """Return `value` as an array with the region axis first."""
    array = as_array(value)
    _check_floating(array.dtype, content)
    axes = len(array.shape)
    axis = whole_number(axis, "axis")
    if not -axes <= axis < axes:
        raise InputError(
            f"{content} have no axis {axis}: their shape is {array.shape}. Set axis to the region "
            f"axis."
        )
    axis %= axes
    if array.shape[axis] == 0:
        raise InputError(f"{content} have no regions: axis {axis} is empty (shape {array.shape})")
    if axis == 0:
        return array
    return reordered(array, (axis, *(k for k in range(axes) if k != axis)), ())


def _check_floating(dtype: np.dtype[Any], content: str) -> None:
    """Reject types other than booleans, integers and floats of at most 64 bits."""
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise InputError(
            f"{content} must be float16, float32 or float64, found {dtype}. "
            f"Convert the array with astype first."
        )


def _check_distinct(names: Sequence[Label]) -> None:
    used_names: set[str] = set()
    for name in names:
        if str(name) in used_names:  # the label 1 and the name "1" would be ambiguous
            raise InputError(
                f"regions must differ, found {name!r} twice. Use different labels or names."
            )
        used_names.add(str(name))


def several_labels(labels: Iterable[int] | int, option: str) -> tuple[int, ...]:
    """Convert one or more labels to a tuple."""
    single = isinstance(labels, str) or getattr(labels, "ndim", None) == 0
    all_labels = tuple(labels) if isinstance(labels, Iterable) and not single else (labels,)
    for label in all_labels:
        if isinstance(label, bool):  # True more likely means "yes" than label 1
            raise InputError(f"{option} must contain whole numbers, found {label!r}")
    return tuple(whole_number(label, option) for label in all_labels)


def as_sums(sums: object) -> Sums:
    """Check the option `sums`, and return it with "normalise" in place of "normalize"."""
    if isinstance(sums, str):
        word = "normalise" if sums == "normalize" else sums
        if word in get_args(Sums):
            return cast(Sums, word)
    raise InputError(f"sums must be 'error', 'normalise' or 'background', found {sums!r}")
