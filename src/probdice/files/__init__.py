"""Reading segmentations, and writing maps and label images.

Each module holds one family of formats; `FORMATS` is the one list of them, asked in turn whether
they know the first bytes of a file. The libraries behind a format are imported when it is used.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from probdice.data.arrays import chunks_of, has_type
from probdice.data.geometry import Geometry
from probdice.data.machine import memory
from probdice.data.segmentation import Segmentation, as_sums, several_labels
from probdice.data.value_checks import MASK, Sums
from probdice.errors import (
    FormatError,
    GeometryError,
    InputError,
    ProbdiceError,
    TooLargeError,
)
from probdice.files.background_images import Underlay, photograph, underlay_of
from probdice.files.dicom import DICOM
from probdice.files.hdf5 import HDF5
from probdice.files.interpretation import ignoring, segmentation_of, segmentation_of_many
from probdice.files.itk import ITK, METAIMAGE, of_simpleitk
from probdice.files.matlab import MATLAB
from probdice.files.model import Content, Format, Image, Source
from probdice.files.name_tables import Names, called, named
from probdice.files.nifti import NIFTI, of_nibabel
from probdice.files.numpy_files import NPY, NPZ
from probdice.files.raster import BMP, JPEG, PNG, TIFF
from probdice.files.sources import names_of, open_source, parts_of
from probdice.files.unsupported import described
from probdice.files.writing import payload_of, replacing_store, write_atomically
from probdice.files.zarr import ZARR, NewStore, streams
from probdice.options import as_max_bytes, as_priority, as_scale
from probdice.text.escaping import printable

__all__ = [
    "FORMATS",
    "Readable",
    "contents_of",
    "read",
    "read_case",
    "read_mask",
    "read_underlay",
    "streaming",
    "write",
]

# A path, an image of nibabel or SimpleITK, or several of them, one for each region.
Readable: TypeAlias = str | os.PathLike[str] | Sequence[Any] | Mapping[str, Any] | Any

# DICOM before TIFF, which some of its files start like; MATLAB before HDF5, which its newer files
# are; ITK last, since it knows the others as well.
FORMATS: tuple[Format, ...] = (
    *(NIFTI, NPY, NPZ, PNG, DICOM, TIFF, JPEG, BMP, MATLAB, HDF5, ZARR, METAIMAGE, ITK),
)


def read(
    path: "Readable",
    *,
    names: "Names | None" = None,
    scale: float | None = None,
    sums: Sums = "error",
    priority: str | Sequence[str] = (),
    ignore: Iterable[int] | int = (),
    max_bytes: int | None = None,
) -> Segmentation:
    """Read a segmentation from a file, or from one file per region.

    Whole numbers, one per pixel, are labels, whatever type they are stored in. One number with a
    fraction per pixel is the probability of a single foreground. Several numbers per pixel are
    the probabilities of as many regions. Arrays stay on disk where the format allows it.

    Parameters
    ----------
    path : path, image, or sequence or mapping of them
        NIfTI, MGZ, NPY, NPZ, TIFF, PNG, BMP or MATLAB; with the extras `itk`, `dicom`, `hdf5` and
        `zarr` also MHA, NRRD and what else SimpleITK reads, DICOM SEG, HDF5, and Zarr and OME-Zarr,
        in a folder or behind a URL. What lies inside a file follows a colon: ``file.h5:/path``,
        ``file.npz:key``, ``file.mat:groundTruth/0``; what lies inside a Zarr store is a path:
        ``volume.zarr/labels/cells``. Several paths (a
        list, ``"a.nii.gz,b.nii.gz"``, or a pattern with ``*``) are one region each, named after
        what differs in their names: ``pve_0.nii.gz`` and ``pve_1.nii.gz`` are regions 0 and 1.
        ``{"csf": "pve_0.nii.gz", …}`` or ``"csf=pve_0.nii.gz,…"`` gives them names. An image of
        nibabel or SimpleITK is read like its file.
    names : mapping, sequence or path, optional
        Names of labels or regions, as ``{label: name}``, as a list that starts with label 0 or the
        first region, or the path of a table: FreeSurfer's or 3D Slicer's colours, ITK-SNAP's label
        description, BIDS' dseg.tsv, CSV or JSON. A table may name more labels than there are.
    scale : float, optional
        The number that stands for certainty: 100 for percent, 255 for bytes. It makes any map one
        of probabilities.
    sums : {"error", "normalise", "background"}, optional
        What to do where probabilities do not sum to 1, as in `Segmentation.from_probabilities`.
        Masks that overlap need `priority`, or "normalise" or "background", which then mean the
        same: shared pixels are divided, and what no mask covers is background.
    priority : sequence of str, optional
        For masks of 0 and 1 that overlap, the names of regions, the first of which gets a pixel
        that several claim: ``("tumour", "kidney")``. The result is a label map.
    ignore : int or iterable of int, optional
        One label or several whose pixels are left out of the comparison; only for a reference.
    max_bytes : int, optional
        How much memory the values of one file may take where they have to be unpacked; all that
        the machine has by default. Values that stay on disk do not count.

    Returns
    -------
    Segmentation
        With its geometry, in millimetres (right, anterior, superior), where the format has one.

    Raises
    ------
    FormatError
        When a file is missing, damaged, of no known format, or not a segmentation.
    GeometryError
        When files of one segmentation do not lie on one grid.
    MissingExtraError
        When the format needs an extra that is not installed.
    TooLargeError
        When the values would take more memory than `max_bytes`.

    Examples
    --------
    >>> import tempfile, os
    >>> import numpy as np
    >>> from probdice import read
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = os.path.join(folder.name, "labels.npy")
    >>> np.save(file, np.array([[0, 0, 2], [0, 1, 2]], dtype=np.uint8))
    >>> segmentation = read(file, ignore=[2])
    >>> segmentation.crisp, segmentation.shape, segmentation.ignore
    (True, (2, 3), (2,))
    >>> read(file, names={0: "air", 1: "bone", 2: "tissue"}).names[2]
    'tissue'
    >>> read(file, scale=2).array[0]
    array([0., 0., 1.], dtype=float32)
    >>> del segmentation
    >>> folder.cleanup()
    """
    segmentation = read_case(
        path,
        names=names,
        scale=scale,
        sums=sums,
        priority=priority,
        ignore=ignore,
        max_bytes=max_bytes,
    )
    for note in segmentation.notes:
        if note.kind == "priority":
            raise InputError(f"{segmentation.source}: ", *note.message)
    return segmentation


def read_case(
    path: "Readable",
    *,
    names: "Names | None",
    scale: float | None,
    sums: Sums,
    priority: str | Sequence[str],
    ignore: Iterable[int] | int,
    max_bytes: int | None,
) -> Segmentation:
    """Read one of many cases, as `read` does.

    `priority` may name regions that this case lacks. That is a note of kind "priority".
    """
    scale = as_scale(scale)
    sums = as_sums(sums)
    ignored = several_labels(ignore, "ignore")
    order = as_priority(priority)
    most = _most(max_bytes)
    parts = parts_of(path)
    source = ",".join(part.source for part in parts)
    if len(parts) == 1:
        with _naming(source):
            segmentation = segmentation_of(
                _image(parts[0].file, most), scale=scale, sums=sums, ignore=ignored, priority=order
            )
            if parts[0].name:
                segmentation = called(segmentation, parts[0].name)
    else:
        if ignored:
            raise InputError(
                ignoring(ignored),
                f" names labels, but {len(parts)} files are one region each; leave pixels out "
                f"with ",
                MASK,
            )
        images = []
        for part in parts:
            with _naming(part.source):
                images.append((part.source, _image(part.file, most)))
        segmentation = segmentation_of_many(
            images, names_of(parts), scale=scale, sums=sums, priority=order
        )
    if names is not None:
        segmentation = named(segmentation, names)
    return replace(segmentation, source=source)


def read_mask(path: Readable, *, max_bytes: int | None = None) -> Segmentation:
    """A mask from a file or an image of another library: whole numbers, of which 0 is outside."""
    parts = parts_of(path)
    if len(parts) > 1:
        raise InputError(f"a mask is one file, found {len(parts)}")
    with _naming(parts[0].source):
        image = _image(parts[0].file, _most(max_bytes))
        if image.assumed:  # in a plain array of 0.0 and 1.0 the first axis is one of space
            image = replace(image, regions=None)
        segmentation = segmentation_of(image, scale=None, sums="error", ignore=())
    return replace(segmentation, source=parts[0].source)


def read_underlay(path: Readable) -> Underlay:
    """An image to show under segmentations; photographs (JPEG, PNG) may be in colour."""
    parts = parts_of(path)
    if len(parts) > 1:
        raise InputError(f"an image is one file, found {len(parts)}")
    (part,) = parts
    with _naming(part.source):
        source = open_source(part.file, memory()) if isinstance(part.file, str) else None
        if source is not None and (form := _format(source)) in (JPEG, PNG):
            underlay = photograph(source, png=form is PNG)
        else:
            underlay = underlay_of(_image(part.file, memory()))
    return replace(underlay, name=part.name or os.path.basename(part.source))


def write(
    path: str | os.PathLike[str],
    segmentation_or_map: Segmentation | ArrayLike,
    geometry: Geometry | None = None,
) -> None:
    """Write a segmentation, or a map such as that of the similarity, in the format of the suffix.

    `read` returns the same segmentation: labels, names, kind, shape, and geometry or its absence. A
    format that cannot hold all of this refuses. The file appears under its name only when it is
    complete: it is written beside it, flushed to the disk, and then renamed. A failure leaves what
    was there before.

    Parameters
    ----------
    path : path
        Ending in .nii, .nii.gz, .mgz, .npy, .npz, .tif or .png; with the extra `itk` also in .nrrd,
        .seg.nrrd or .mha, with `zarr` in .zarr. An .npy holds neither geometry nor names.
    segmentation_or_map : Segmentation or array_like
        A label map is stored in the smallest integer type that holds its labels. Probabilities are
        stored as they are compared (a background added, divided by the sum, …), regions last in
        NIfTI, MGZ, NRRD and MHA and first elsewhere; those of a single foreground as one map, but
        in .npy as two regions. An array of integers is a label map, one of floating numbers a map,
        stored as float32; NaN stays NaN.
    geometry : Geometry, optional
        Where the image lies; that of the segmentation by default.

    Raises
    ------
    InputError
        When the format cannot hold what is to be written.
    FormatError
        When the file cannot be written: no such folder, no permission, a full disk.

    Examples
    --------
    >>> import tempfile, os
    >>> import numpy as np
    >>> from probdice import Geometry, Segmentation, read, write
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = os.path.join(folder.name, "labels.nii.gz")
    >>> geometry = Geometry((2, 2, 1), np.diag([0.5, 0.5, 2.0, 1.0]))
    >>> write(file, Segmentation.from_labels([[[1], [1]], [[2], [300]]], geometry=geometry))
    >>> stored = read(file)
    >>> stored.array[:, :, 0].tolist(), stored.array.dtype.name, stored.geometry.spacing
    ([[1, 1], [2, 300]], 'int16', (0.5, 0.5, 2.0))
    >>> folder.cleanup()
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be that of the file to write, found {path!r}")
    with _naming(os.fspath(path), "written"):
        form = _format_of_suffix(os.fspath(path))
        payload = payload_of(segmentation_or_map, geometry)
        write_atomically(os.fspath(path), form, payload)


@contextmanager
def streaming(
    path: str, geometry: Geometry | None, like: Segmentation
) -> Iterator[NewStore | None]:
    """A store that an image can be written to block by block; None where it is written whole.

    Blocks are written to a store in which the image lies as it is, where the image it is made from
    is stored in chunks too.
    """
    chunks = chunks_of(like.array)
    if not path.lower().endswith(ZARR.writes) or chunks is None or not streams(geometry):
        yield None
        return
    lengths = tuple(part[0] for part in chunks[-len(like.shape) :])
    with _naming(path, "written"), replacing_store(Path(path)) as folder:
        yield NewStore(folder, geometry, lengths)


def contents_of(path: str) -> list[Content]:
    """The arrays in a container of several, such as .npz, .mat or .h5; none for other files."""
    with _naming(path):
        source = open_source(path)
        form = _format(source)
        if source.inside or form.contents is None:
            return []
        return form.contents(source)


def _most(max_bytes: int | None) -> int:
    """The memory that the values of a file may take: that of the machine, or what the user says."""
    return memory() if max_bytes is None else as_max_bytes(max_bytes)


def _image(file: Any, max_bytes: int) -> Image:
    """What a file holds, by the first format that knows it, or an image of another library."""
    if not isinstance(file, str):
        if has_type(file, "SimpleITK", "Image"):
            return of_simpleitk(file, max_bytes=max_bytes)
        return of_nibabel(file)
    source = open_source(file, max_bytes)
    form = _format(source)
    if source.gzipped and form not in (NIFTI, ITK):
        raise FormatError(f"is a gzipped {form.name} file, which is not read as it is; unpack it")
    image = _with_printable_names(form.read(source))
    if image.beside is None:
        return image
    with _naming(str(image.beside)):
        label_source = open_source(str(image.beside), max_bytes)
        label_image = _format(label_source).read(label_source)
    shape = image.array.shape[1:]
    if tuple(label_image.array.shape) != tuple(shape):
        raise GeometryError(
            f"holds probabilities of shape {shape} (x, y, z), but the label image beside it, "
            f"{image.beside.name}, has shape {tuple(label_image.array.shape)}"
        )
    return replace(image, affine=label_image.affine)


def _with_printable_names(image: Image) -> Image:
    if not image.label_names and image.region_names is None:
        return image
    regions = image.region_names
    return replace(
        image,
        label_names={label: printable(name) for label, name in image.label_names.items()},
        region_names=None
        if regions is None
        else [printable(name) if isinstance(name, str) else name for name in regions],
    )


def _format(source: Source) -> Format:
    for form in FORMATS:
        if form.recognises(source):
            return form
    what, start = described(source), f"(it starts with {source.head[:8]!r})"
    for form in FORMATS:
        if source.name.endswith(form.suffixes):
            but = ("is ", *what) if what else (f"does not hold one {start}; is it complete?",)
            raise FormatError(f"is named like a {form.name} file but ", *but)
    if what:
        raise FormatError("is no segmentation: it is ", *what)
    known = ", ".join(form.name for form in FORMATS if form is not JPEG)
    raise FormatError(f"is of no known format {start}; probdice reads {known}")


def _format_of_suffix(path: str) -> Format:
    for form in FORMATS:
        if path.lower().endswith(form.writes) and form.write is not None:
            return form
    known = ", ".join(suffix for form in FORMATS for suffix in form.writes)
    raise InputError(f"has no suffix that probdice writes: expected one of {known}")


@contextmanager
def _naming(path: str, done: str = "read") -> Iterator[None]:
    """Put the name of the file in front of every error.

    Only errors of ours, of the operating system and of memory are about the file; readers turn
    those of the libraries they call into ours. All others are faults of this package, and pass.
    Numbers of a damaged file may overflow; what then is not finite is refused where it is used.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except ProbdiceError as error:
        if str(error).startswith(f"{path}: "):  # values that were read late name their file
            raise
        said = [printable(part) if isinstance(part, str) else part for part in error.args]
        raise type(error)(*said).prefixed(f"{path}: ") from error
    except MemoryError as error:
        raise TooLargeError(f"{path}: does not fit in memory") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise FormatError(f"{path}: cannot be {done}: {reason}") from error
