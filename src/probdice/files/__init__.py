"""Reading segmentations, and writing maps and label images.

Each module holds one family of formats; `FORMATS` is the one list of them, asked in turn whether
they know the first bytes of a file. The libraries behind a format are imported when it is used.
"""

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from typing import get_args

from numpy.typing import ArrayLike

from probdice.errors import FormatError, GeometryError, InputError, ProbdiceError, TooLargeError
from probdice.files.arrays import NPY, NPZ
from probdice.files.dicom import DICOM
from probdice.files.hdf5 import HDF5
from probdice.files.images import JPEG, PNG, TIFF
from probdice.files.itk import ITK
from probdice.files.matlab import MATLAB
from probdice.files.meaning import segmentation_of, segmentation_of_many
from probdice.files.model import Format, Image, Source
from probdice.files.nifti import NIFTI
from probdice.files.sources import open_source, region_names, split_paths
from probdice.files.writing import payload_of, write_atomically
from probdice.segmentation import Geometry, Segmentation, Sums

__all__ = ["FORMATS", "read", "write"]

# DICOM before TIFF, which some of its files start like; MATLAB before HDF5, which its newer files
# are; ITK last, since it knows the others as well.
FORMATS: tuple[Format, ...] = (NIFTI, NPY, NPZ, PNG, DICOM, TIFF, JPEG, MATLAB, HDF5, ITK)


def read(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    scale: float | None = None,
    sums: Sums = "error",
    ignore: Iterable[int] | int = (),
) -> Segmentation:
    """Read a segmentation from a file, or from one file per region.

    Whole numbers, one per pixel, are labels, whatever type they are stored in. One number with a
    fraction per pixel is the probability of a single foreground. Several numbers per pixel are
    the probabilities of as many regions. Arrays stay on disk where the format allows it.

    Parameters
    ----------
    path : path or sequence of paths
        NIfTI, MGZ, NPY, NPZ, TIFF or PNG; with the extras `itk`, `dicom` and `hdf5` also NRRD, MHA
        and what else SimpleITK reads, DICOM SEG, and HDF5; MATLAB. What lies inside a file follows
        a colon: ``file.h5:/path``, ``file.npz:key``, ``file.mat:groundTruth/0``. Several paths (a
        list, ``"a.nii.gz,b.nii.gz"``, or a pattern with ``*``) are one region each, named after
        what differs in their names: ``pve_0.nii.gz`` and ``pve_1.nii.gz`` are regions 0 and 1.
    scale : float, optional
        The number that stands for certainty: 100 for percent, 255 for bytes. It makes any map one
        of probabilities.
    sums : {"error", "normalise", "background"}, optional
        What to do where probabilities do not sum to 1, as in `Segmentation.from_probabilities`.
        Segments that overlap need "normalise" or "background", which then mean the same: shared
        pixels are divided, and what no segment covers is background.
    ignore : int or iterable of int, optional
        One label or several whose pixels are left out of the comparison; only for a reference.

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
    >>> read(file, scale=2).array[0]
    array([0., 0., 1.], dtype=float32)
    >>> del segmentation
    >>> folder.cleanup()
    """
    if scale is not None and not (isinstance(scale, Real) and math.isfinite(scale) and scale > 0):
        raise InputError(f"scale must be a positive number, such as 100 or 255, found {scale!r}")
    if sums not in get_args(Sums):
        raise InputError(f"sums must be 'error', 'normalise' or 'background', found {sums!r}")
    ignored = tuple(ignore) if isinstance(ignore, Iterable) else (ignore,)
    paths = split_paths(path)
    if len(paths) == 1:
        with _naming(paths[0]):
            image = _image(paths[0])
            segmentation = segmentation_of(image, scale=scale, sums=sums, ignore=ignored)
        return replace(segmentation, source=paths[0])
    if ignored:
        raise InputError(
            f"ignore={list(ignored)} names labels, but {len(paths)} files are one region each; "
            f"leave pixels out with a mask instead"
        )
    images = []
    for file in paths:
        with _naming(file):
            images.append((file, _image(file)))
    segmentation = segmentation_of_many(images, region_names(paths), scale=scale, sums=sums)
    return replace(segmentation, source=",".join(paths))


def write(
    path: str | os.PathLike[str],
    segmentation_or_map: Segmentation | ArrayLike,
    geometry: Geometry | None = None,
) -> None:
    """Write a segmentation, or a map such as that of the similarity, in the format of the suffix.

    The file appears under its name only when it is complete: it is written beside it, flushed to
    the disk, and then renamed. A failure leaves what was there before.

    Parameters
    ----------
    path : path
        Ending in .nii, .nii.gz, .mgz, .npy, .npz, .tif or .png; with the extra `itk` also in .nrrd,
        .seg.nrrd or .mha. The suffixes .npy, .tif and .png hold no geometry.
    segmentation_or_map : Segmentation or array_like
        A label map is stored in the smallest integer type that holds its labels. Probabilities are
        stored as they are compared (a background added, divided by the sum, …), regions last in
        NIfTI, MGZ, NRRD and MHA and first elsewhere; those of a single foreground as one map. An
        array of integers is a label map, one of floating numbers a map, stored as float32; NaN
        stays NaN.
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


def _image(path: str) -> Image:
    """What the file holds, by the first format that knows it."""
    source = open_source(path)
    form = _format(source)
    if source.gzipped and form not in (NIFTI, ITK):
        raise FormatError(f"is a gzipped {form.name} file, which is not read as it is; unpack it")
    image = form.read(source)
    if image.beside is None:
        return image
    with _naming(str(image.beside)):
        label_source = open_source(str(image.beside))
        label_image = _format(label_source).read(label_source)
    shape = image.array.shape[1:]
    if tuple(label_image.array.shape) != tuple(shape):
        raise GeometryError(
            f"holds probabilities of shape {shape} (x, y, z), but the label image beside it, "
            f"{image.beside.name}, has shape {tuple(label_image.array.shape)}"
        )
    return replace(image, affine=label_image.affine)


def _format(source: Source) -> Format:
    for form in FORMATS:
        if form.recognises(source):
            return form
    start = source.head[:8]
    for form in FORMATS:
        if source.name.endswith(form.suffixes):
            raise FormatError(
                f"is named like a {form.name} file but does not hold one (it starts with "
                f"{start!r}); is it complete, and the name right?"
            )
    known = ", ".join(form.name for form in FORMATS if form is not JPEG)
    raise FormatError(f"is of no known format (it starts with {start!r}); probdice reads {known}")


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
    """
    try:
        yield
    except ProbdiceError as error:
        if str(error).startswith(f"{path}: "):  # values that were read late name their file
            raise
        raise type(error)(f"{path}: {error}") from error
    except MemoryError as error:
        raise TooLargeError(f"{path}: does not fit in memory") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise FormatError(f"{path}: cannot be {done}: {reason}") from error
