"""Read segmentations, and write label maps, probabilities and similarity maps.

Each family of formats has its own module. `FORMATS` lists the formats in the order in which they
are tried. The first format that recognises a file reads it. Third-party libraries are imported only
when a format requires them.
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
from probdice.data.surface import Surface
from probdice.data.value_checks import MASK, Sums
from probdice.errors import (
    FormatError,
    GeometryError,
    InputError,
    ProbdiceError,
    TooLargeError,
)
from probdice.files.annot import ANNOT
from probdice.files.background_images import BackgroundImage, background_image_of, read_photograph
from probdice.files.bids import label_table
from probdice.files.cifti import CIFTI, of_cifti
from probdice.files.dicom import DICOM
from probdice.files.gifti import GIFTI, of_gifti
from probdice.files.hdf5 import HDF5
from probdice.files.interpretation import (
    ignore_option,
    segmentation_of,
    segmentation_of_many,
    without_single_region,
)
from probdice.files.itk import ITK, METAIMAGE, of_simpleitk
from probdice.files.matlab import MATLAB
from probdice.files.model import ContainedArray, Format, Image, Source
from probdice.files.name_tables import NamesInput, with_names, with_region_name
from probdice.files.nifti import NIFTI, of_nibabel
from probdice.files.numpy_files import NPY, NPZ
from probdice.files.raster import BMP, JPEG, PNG, TIFF
from probdice.files.sources import names_of, open_source, parts_of
from probdice.files.surface_meshes import surface_of
from probdice.files.unsupported import file_type
from probdice.files.writing import (
    check_vertices,
    payload_of,
    replacing_store,
    write_atomically,
)
from probdice.files.zarr import ZARR, NewStore, is_upright
from probdice.options.checks import as_max_bytes, as_number, as_priority
from probdice.text.escaping import printable

__all__ = [
    "FORMATS",
    "Readable",
    "contents_of",
    "read",
    "read_background_image",
    "read_case",
    "read_mask",
    "read_surface",
    "streaming",
    "write",
    "write_file",
]

# A path, a nibabel or SimpleITK image, or several paths or images, one per region.
Readable: TypeAlias = str | os.PathLike[str] | Sequence[Any] | Mapping[str, Any] | Any

# CIFTI precedes NIfTI because CIFTI is NIfTI-2 with a header extension. DICOM precedes TIFF
# because some DICOM files start like TIFF. MATLAB precedes HDF5 because MATLAB 7.3 files are HDF5.
# ITK is last because it also reads other formats in this list.
FORMATS: tuple[Format, ...] = (
    *(ANNOT, GIFTI, CIFTI),
    *(NIFTI, NPY, NPZ, PNG, DICOM, TIFF, JPEG, BMP, MATLAB, HDF5, ZARR, METAIMAGE, ITK),
)


def read(
    path: "Readable",
    *,
    names: "NamesInput | None" = None,
    scale: float | None = None,
    sums: Sums = "error",
    priority: str | Sequence[str] = (),
    ignore: Iterable[int] | int = (),
    max_bytes: int | None = None,
) -> Segmentation:
    """Read a segmentation from a file, or from one file per region.

    If a file has one number per voxel and all numbers are whole, they are labels, whatever their
    stored type. If any of these numbers is fractional, all numbers are probabilities of a single
    foreground region. If a file has several numbers per voxel, each number is the probability of
    one region. In .npy files and in .npz files of other programs, the first axis of a
    floating-point array is the region axis, unless all numbers are whole and at least one is
    neither 0 nor 1. Arrays remain on disk if the format allows this. "Voxel" and "pixel" both mean
    one element of an image.

    Parameters
    ----------
    path : path, image, sequence or mapping
        A NIfTI, MGZ, NPY, NPZ, TIFF, PNG, BMP or MATLAB file or, for surfaces, a FreeSurfer
        annotation, GIFTI or CIFTI file. Other formats require an extra: `itk` for MHA, NRRD and
        other SimpleITK formats, `dicom` for DICOM SEG, `hdf5` for HDF5 and MATLAB 7.3, and `zarr`
        for Zarr and OME-Zarr in a folder or at a URL. To select an array inside a file, add a colon
        and the path of the array: ``file.h5:/path``, ``file.npz:key``, ``file.mat:groundTruth/0``.
        To select an array inside a Zarr store, pass the path of the array:
        ``volume.zarr/labels/cells``. If there are several paths (a list, ``"a.nii.gz,b.nii.gz"``,
        or a pattern with ``*``), each file is one region. The region names are the parts in which
        the file names differ: ``pve_0.nii.gz`` and ``pve_1.nii.gz`` are regions 0 and 1. To set
        names, use ``{"csf": "pve_0.nii.gz", …}`` or ``"csf=pve_0.nii.gz,…"``. A nibabel or
        SimpleITK image in memory gives the same result as its file.
    names : mapping, sequence or path, optional
        Names of labels or regions: ``{label: name}``, a list that starts with label 0 or the first
        region, or the path of a table. A table is a FreeSurfer or 3D Slicer colour table, an
        ITK-SNAP label description, a BIDS dseg.tsv, an FSL .lut or .xml, CSV or JSON. A table may
        name labels that the image does not contain. By default, the label names of a BIDS file such
        as ``sub-…_dseg.nii.gz`` are read from the dseg.tsv of its data set.
    scale : float, optional
        Value that means probability 1: 100 for percentages, 255 for 8-bit maps. With `scale`, all
        values are read as probabilities.
    sums : {"error", "normalise", "background"}, optional
        How to treat probabilities that do not sum to 1, as in `Segmentation.from_probabilities`.
        Overlapping masks require `priority`, "normalise" or "background". For overlapping masks,
        "normalise" and "background" are equivalent: a shared voxel is divided equally among its
        masks, and voxels outside all masks are background.
    priority : sequence of str, optional
        Region names in order of priority for overlapping masks of 0 and 1:
        ``("tumour", "kidney")``. A shared voxel is assigned to the first of these regions that
        contains it. The result is a label map.
    ignore : int or iterable of int, optional
        Labels whose voxels are excluded from the comparison. Only a reference may have ignored
        labels.
    max_bytes : int, optional
        Maximum memory, in bytes, for the decompressed values of one file. The default is all memory
        of the machine, container or cluster job. Values that remain on disk are not limited.

    Returns
    -------
    Segmentation
        The segmentation. If the format stores a geometry, its coordinates are in millimetres and
        increase to the right, anterior and superior (RAS).

    Raises
    ------
    FormatError
        If a file is missing or corrupt, has an unknown format, or is not a segmentation.
    GeometryError
        If the files of one segmentation are not on the same grid.
    MissingExtraError
        If the format requires an extra that is not installed.
    TooLargeError
        If the values require more memory than `max_bytes`.

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
    names: "NamesInput | None",
    scale: float | None,
    sums: Sums,
    priority: str | Sequence[str],
    ignore: Iterable[int] | int,
    max_bytes: int | None,
) -> Segmentation:
    """Read one case like `read`, but allow unknown regions in `priority`.

    Each name in `priority` that is not a region of this case adds a note of kind "priority".
    """
    scale = as_number(scale)
    sums = as_sums(sums)
    ignored = several_labels(ignore, "ignore")
    order = as_priority(priority)
    limit = _memory_limit(max_bytes)
    parts = parts_of(path)
    source = ",".join(part.source for part in parts)
    if len(parts) == 1:
        with _naming(source):
            segmentation = segmentation_of(
                _image(parts[0].file, limit), scale=scale, sums=sums, ignore=ignored, priority=order
            )
            if parts[0].name:
                segmentation = with_region_name(segmentation, parts[0].name)
    else:
        if ignored:
            raise InputError(
                ignore_option(ignored),
                f" applies to label maps, but these {len(parts)} files contain one region each. "
                f"To exclude voxels, use ",
                MASK,
            )
        images = []
        for part in parts:
            with _naming(part.source):
                images.append((part.source, _image(part.file, limit)))
        segmentation = segmentation_of_many(
            images, names_of(parts), scale=scale, sums=sums, priority=order
        )
    if names is not None:
        segmentation = with_names(segmentation, names)
    elif segmentation.crisp and len(parts) == 1 and (table := label_table(parts[0].source)):
        segmentation = with_names(segmentation, table, required=False)
    return replace(segmentation, source=source)


def read_mask(path: Readable, *, max_bytes: int | None = None) -> Segmentation:
    """Read a mask of whole numbers from a file or an image. Value 0 means outside the mask."""
    parts = parts_of(path)
    if len(parts) > 1:
        raise InputError(
            f"expected one mask file, found {len(parts)}. Combine the masks into one file."
        )
    with _naming(parts[0].source):
        image = _image(parts[0].file, _memory_limit(max_bytes))
        if image.assumed:  # the first axis of a plain array of 0.0 and 1.0 is spatial
            image = replace(image, regions=None)
        image = without_single_region(image)
        if image.regions is not None:
            raise FormatError(
                f"contains {image.array.shape[image.regions]} values per voxel, expected a mask "
                f"with one value per voxel. Select or combine the channels first."
            )
        segmentation = segmentation_of(image, scale=None, sums="error", ignore=())
    return replace(segmentation, source=parts[0].source)


def read_background_image(path: Readable) -> BackgroundImage:
    """Read a background image to show under segmentations. JPEG and PNG images may be in colour."""
    parts = parts_of(path)
    if len(parts) > 1:
        raise InputError(f"expected one background image file, found {len(parts)}")
    (part,) = parts
    with _naming(part.source):
        source = open_source(part.file, memory()) if isinstance(part.file, str) else None
        if source is not None and (file_format := _format(source)) in (JPEG, PNG):
            image = read_photograph(source, png=file_format is PNG)
        else:
            image = background_image_of(_image(part.file, memory()))
    return replace(image, name=part.name or os.path.basename(part.source))


def read_surface(path: str) -> Surface:
    """Read the surface mesh of one hemisphere, on which the values of vertices are drawn."""
    with _naming(path):
        return surface_of(open_source(path, memory()))


def write(
    path: str | os.PathLike[str],
    segmentation_or_map: Segmentation | ArrayLike,
    geometry: Geometry | None = None,
) -> None:
    """Write a segmentation or a map, such as a similarity map, in the format of the suffix.

    `read` restores the same segmentation, with its labels, names, kind and shape, and with its
    geometry if there is one. If the format cannot store all of these properties, `write` raises
    `InputError`. Ignored labels are stored like all other labels. A file is replaced atomically:
    `write` creates a temporary file in the same folder, flushes it to disk, and renames it. If
    writing fails, an existing file remains unchanged. A Zarr store, which is a folder, is replaced
    when the new store is complete, but not atomically.

    Parameters
    ----------
    path : path
        A file name that ends in .nii, .nii.gz, .mgh, .mgz, .npy, .npz, .tif, .tiff or .png or, for
        the vertices of surfaces, in .annot, .label.gii, .func.gii, .shape.gii, .dlabel.nii or
        .dscalar.nii. Writing .nrrd, .seg.nrrd and .mha requires the extra `itk`, and writing .zarr
        requires the extra `zarr`. An .npy file stores neither geometry nor names.
    segmentation_or_map : Segmentation or array_like
        A label map is stored in the first of the types uint8, int16, uint16, int32, uint32, int64
        and uint64 that can represent its labels, or in an integer type that the format requires.
        Probabilities are stored as `compare` uses them, after the segmentation's option `sums` is
        applied. With ``sums="normalise"``, for example, they are divided by their sum. The region
        axis is last in NIfTI, MGZ, NRRD and MHA, and first in other formats. The probability of a
        single foreground region is stored as one map; in .npy, background and foreground are stored
        as two regions. An array of integers or booleans is a label map. A floating-point array is a
        map, which is stored as float32 with its geometry. NaN is preserved.
    geometry : Geometry, optional
        Position of the image in space. The default is the geometry of the segmentation.

    Raises
    ------
    InputError
        If the format cannot store the data.
    FormatError
        If the file cannot be written, for example because the folder is missing or the disk is
        full.

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
        raise InputError(f"path must be the path of the file to write, found {path!r}")
    write_file(os.fspath(path), segmentation_or_map, geometry)


def write_file(
    path: str,
    segmentation_or_map: Segmentation | ArrayLike,
    geometry: Geometry | None = None,
    *,
    has_lock: bool = False,
) -> None:
    """Write a segmentation or a map. For `has_lock`, see `atomic_files.replacing`."""
    with _naming(path, "written"):
        file_format = _format_of_suffix(path)
        payload = payload_of(segmentation_or_map, geometry)
        check_vertices(file_format, payload)
        write_atomically(path, file_format, payload, has_lock=has_lock)


@contextmanager
def streaming(
    path: str, geometry: Geometry | None, like: Segmentation
) -> Iterator[NewStore | None]:
    """Yield a Zarr store for writing an image block by block, or None if this is not possible.

    Writing block by block requires a path that ends in .zarr and a chunked input (`like`). If there
    is a geometry, its axes must need neither reordering nor flipping. Otherwise, the whole image
    must be written at once.
    """
    chunks = chunks_of(like.array)
    if not path.lower().endswith(ZARR.writes) or chunks is None or not is_upright(geometry):
        yield None
        return
    lengths = tuple(part[0] for part in chunks[-len(like.shape) :])
    with _naming(path, "written"), replacing_store(Path(path)) as folder:
        yield NewStore(folder, geometry, lengths)


def contents_of(path: str) -> list[ContainedArray]:
    """List the arrays in a container such as .npz, .mat or .h5.

    Return [] for other files, and if the path selects an array inside a file.
    """
    with _naming(path):
        source = open_source(path)
        file_format = _format(source)
        if source.inside or file_format.contents is None:
            return []
        return file_format.contents(source)


def _memory_limit(max_bytes: int | None) -> int:
    """Return the memory limit for the values of a file: `max_bytes` or, by default, all memory."""
    return as_max_bytes(max_bytes) or memory()


def _image(file: Any, max_bytes: int) -> Image:
    """Read a file with the first format that recognises it, or convert a library's image."""
    if not isinstance(file, str):
        if has_type(file, "SimpleITK", "Image"):
            return of_simpleitk(file, max_bytes=max_bytes)
        if has_type(file, "nibabel", "GiftiImage"):
            return of_gifti(file)
        return of_cifti(file) if has_type(file, "nibabel", "Cifti2Image") else of_nibabel(file)
    source = open_source(file, max_bytes)
    file_format = _format(source)
    if source.gzipped and file_format not in (NIFTI, ITK):
        raise FormatError(
            f"is a gzipped {file_format.name} file, which is not supported. Decompress it."
        )
    image = _with_printable_names(file_format.read(source))
    if image.geometry_file is None:
        return image
    with _naming(str(image.geometry_file)):
        label_source = open_source(str(image.geometry_file), max_bytes)
        label_image = _format(label_source).read(label_source)
    shape = image.array.shape[1:]
    if tuple(label_image.array.shape) != tuple(shape):
        raise GeometryError(
            f"contains probabilities of shape {shape} (x, y, z), but the label image in the same "
            f"folder, {image.geometry_file.name}, has shape {tuple(label_image.array.shape)}. "
            f"Replace it by the label image of the same case, or remove it."
        )
    return replace(image, affine=label_image.affine)


def _with_printable_names(image: Image) -> Image:
    labels = {label: printable(name) for label, name in image.label_names.items()}
    regions = image.region_names and [
        printable(name) if isinstance(name, str) else name for name in image.region_names
    ]
    return replace(image, label_names=labels, region_names=regions)


def _format(source: Source) -> Format:
    for file_format in FORMATS:
        if file_format.recognises(source):
            return file_format
    description, start = file_type(source), f"(it starts with {source.head[:8]!r})"
    for file_format in FORMATS:
        if source.name.endswith(file_format.suffixes):
            if description:
                raise FormatError(
                    f"not a {file_format.name} file despite its name: it is ", *description
                )
            raise FormatError(
                f"not a {file_format.name} file despite its name {start}. It may be "
                "incomplete: copy or write it again."
            )
    if description:
        raise FormatError("not a segmentation file: it is ", *description)
    readable = ", ".join(file_format.name for file_format in FORMATS if file_format is not JPEG)
    raise FormatError(f"unknown file format {start}; probdice reads {readable}")


def _format_of_suffix(path: str) -> Format:
    for file_format in FORMATS:
        if path.lower().endswith(file_format.writes) and file_format.write is not None:
            return file_format
    writable = ", ".join(suffix for file_format in FORMATS for suffix in file_format.writes)
    raise InputError(f"unsupported file name suffix for writing: expected one of {writable}")


@contextmanager
def _naming(path: str, action: str = "read") -> Iterator[None]:
    """Prefix errors with the name of the file.

    This applies to `ProbdiceError`, and to `OSError` and `MemoryError`, which become `FormatError`
    and `TooLargeError`. Readers convert errors of third-party libraries to `FormatError`. Any other
    exception is a bug and passes unchanged.
    NumPy's warnings about overflowing values of a corrupt file are suppressed, because infinite
    values are rejected later.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except ProbdiceError as error:
        if str(error).startswith(f"{path}: "):  # errors of lazily read values already name the file
            raise
        message = [printable(part) if isinstance(part, str) else part for part in error.args]
        raise type(error)(*message).prefixed(f"{path}: ") from error
    except MemoryError as error:
        raise TooLargeError(f"{path}: does not fit in memory") from error
    except OSError as error:
        raise FormatError(f"{path}: cannot be {action}: {error.strerror or error}") from error
