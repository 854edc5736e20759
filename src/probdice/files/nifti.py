"""Read NIfTI, Analyze and FreeSurfer images (.mgh, .mgz), and write .nii, .nii.gz, .mgh and .mgz.

NIfTI and Analyze images may consist of two files (.hdr and .img). Values are memory-mapped or
decompressed. Files are written with nibabel, which also reads the rarer headers. The axes are those
of the file (i, j, k), followed by the region axis. The formats are three-dimensional, so a 2-D
image is stored with a third axis of length 1.

**Geometry.** In NIfTI files, the sform is used if it is valid. Otherwise, the qform is used. The
affine is converted to millimetres. A NIfTI image without a valid sform or qform has no geometry,
because tools make different assumptions in this case (nibabel centres and flips the image, and ITK
does neither).
Two images without geometry can be compared. Comparing an image without geometry with an image that
has a geometry requires `ignore_geometry`. Images in Analyze format have no geometry.
"""

import math
import mmap
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape, unescape
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import has_type, type_named
from probdice.errors import FormatError, InputError
from probdice.files.corrupt import DEFLATE_RATIO, check_memory, check_size, corrupt, library_call
from probdice.files.description import DESCRIPTION, description_in, description_of, with_description
from probdice.files.headers import Header, affine_of, header_of, is_header
from probdice.files.model import Format, Image, Payload, Source, as_colour, rgb_of
from probdice.files.packed import gzip_module, is_gzipped, unpack
from probdice.files.sources import open_source

__all__ = ["NIFTI", "of_nibabel", "other_half", "stored_values"]

HEADER = 352  # number of bytes in a NIfTI-1 header, including the extension flag
MAX_SEARCHED_BYTES = 1 << 24  # largest number of bytes that are searched for a label table
MAX_AXIS_LENGTH = 32767  # in NIfTI-1
MAX_TRAILER_BYTES = 1 << 22  # largest number of bytes that are read after the values of an MGH file
MGH_COMMAND = 3  # tag of a command line in the history of the image
LABEL = re.compile(
    r'<Label\s([^>]*?Key="(-?\d+)"[^>]*)>(?:<!\[CDATA\[(.*?)\]\]>|([^<]*))', re.DOTALL
)
SHARE = r'{}="([\d.]+)"'  # the value of red, green or blue, from 0 to 1


def _recognises(source: Source) -> bool:
    if _stem(source.path, ".img"):
        return _with_suffix(source.path, ".img", ".hdr") is not None
    return is_header(source.head)


def _read(source: Source) -> Image:
    head, data_path = source.head, source.path
    half = other_half(source.path)
    if half is not None and _stem(source.path, ".img"):
        head = open_source(str(half)).head
    elif half is not None:
        data_path = half
    elif _stem(source.path, ".hdr"):
        raise FormatError(
            "is a header without values: expected an .img file in the same folder. Copy both files."
        )
    header = header_of(head)
    values, extensions = stored_values(data_path, header, head, source.max_bytes)
    array, regions = _axes(values)
    no_geometry = _is_mgh(head) and head[28:30] == b"\0\0"  # goodRASFlag is 0
    image = Image(
        array,
        regions=regions,
        affine=None if no_geometry else header.affine,
        **_label_table(extensions),
        slope=header.slope,
        inter=header.inter,
    )
    return with_description(image, description_in(extensions))


def of_nibabel(image: Any) -> Image:
    """Convert a nibabel image to an `Image`. If possible, the stored values are scaled later."""
    if not hasattr(image, "affine") or len(image.shape) < 1:
        raise FormatError(
            f"is a {type_named(image)}, which is not an image on a grid. Pass an array of its "
            f"values."
        )
    values, slope, inter = image.dataobj, 1.0, 0.0
    if hasattr(values, "get_unscaled") and hasattr(values, "inter"):
        with library_call():
            values, slope, inter = values.get_unscaled(), values.slope, values.inter
    with library_call():
        array, regions = _axes(np.asanyarray(values))
    # nibabel gives a NIfTI or Analyze image without geometry a default affine.
    guessed = has_type(image, "nibabel", "AnalyzeImage")
    affine = affine_of(image.header) if guessed else image.affine
    stored = b"".join(_raw(part) for part in getattr(image.header, "extensions", ()))
    result = Image(
        array,
        regions=regions,
        affine=affine,
        slope=float(slope),
        inter=float(inter),
        **_label_table(stored),
    )
    return with_description(result, description_in(stored))


def _write(path: Path, payload: Payload) -> None:
    nibabel = import_module("nibabel")
    axes = payload.array.ndim - payload.regions
    if axes > 3:
        raise InputError(
            f"NIfTI and MGH store images with up to 3 axes, found {axes}. Write .npz or .tif."
        )
    array = np.moveaxis(payload.array, 0, -1) if payload.regions else payload.array
    shape: tuple[int, ...] = array.shape[:axes] + (1,) * (3 - axes) + array.shape[axes:]
    array = array.reshape(shape)
    affine = None
    if payload.geometry is not None:
        affine = np.eye(4)
        rows = [*range(axes), 3]
        affine[np.ix_(rows, rows)] = payload.geometry.affine
    if path.name.lower().endswith((".mgh", ".mgz")):
        # A last axis of length 1 is not stored.
        stored = array.reshape(shape[:3]) if shape[3:] == (1,) else array
        image = nibabel.MGHImage(_for_mgh(stored), affine)
        image.header["goodRASFlag"] = payload.geometry is not None
        description = description_of(payload, names=True, shape=axes < 3)
        trailer = _mgh_trailer(description) if description else b""
    else:
        if max(shape) > MAX_AXIS_LENGTH:
            raise InputError(
                f"NIfTI stores up to {MAX_AXIS_LENGTH} voxels or regions along an axis, found "
                f"{max(shape)}. Write .nrrd, .zarr or .npz."
            )
        image = nibabel.Nifti1Image(array, affine, dtype=array.dtype)
        _place(image, affine)
        description, trailer = description_of(payload, shape=axes < 3), b""
        if description:
            _extend(image, "comment", f"{DESCRIPTION} {description}\0")
        if payload.labels and (payload.label_names or payload.colours):
            _extend(image, "caret", _caret_table(payload))
    with _opened(path) as stream:
        image.to_file_map({"image": nibabel.FileHolder(fileobj=stream)})
        stream.write(trailer)


NIFTI = Format(
    name="NIfTI or MGH",
    suffixes=(".nii", ".nii.gz", ".hdr", ".img", ".hdr.gz", ".img.gz", ".mgh", ".mgz"),
    recognises=_recognises,
    read=_read,
    writes=(".nii", ".nii.gz", ".mgh", ".mgz"),
    write=_write,
)


def _is_mgh(head: bytes) -> bool:
    return head[:4] == b"\0\0\0\x01"


def other_half(path: Path) -> Path | None:
    """Return the header file of an .img file, the value file of an .hdr file, or None."""
    for suffix, other in ((".img", ".hdr"), (".hdr", ".img")):
        if _stem(path, suffix):
            return _with_suffix(path, suffix, other)
    return None


def stored_values(
    path: Path, header: Header, head: bytes, max_bytes: int
) -> tuple[NDArray[Any], bytes]:
    """Return the unscaled stored values, memory-mapped or decompressed, and the extensions.

    The extensions are the bytes between the header and the values in NIfTI-1, or the bytes after
    the values in MGH. They are empty in other formats.
    """
    needed = header.offset + header.dtype.itemsize * math.prod(header.shape)
    with path.open("rb") as stream:
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    content: bytes | mmap.mmap = mapped
    trailing = MAX_TRAILER_BYTES if _is_mgh(head) else 0
    if is_gzipped(mapped[:2]):
        check_size(needed, len(mapped), header.shape, ratio=DEFLATE_RATIO)
        check_memory(needed, header.shape, max_bytes)
        content = unpack(path, needed, trailing)
    if len(content) < needed:
        raise corrupt(
            f"it has {len(content)} bytes, expected {needed} for an array of shape {header.shape} "
            f"and type {header.dtype}"
        )
    if trailing:
        extensions = bytes(content[needed : needed + trailing])
    else:
        last = min(header.offset, MAX_SEARCHED_BYTES) if head[344:347] == b"n+1" else 0
        extensions = bytes(content[HEADER:last])
    values = np.ndarray(header.shape, header.dtype, buffer=content, offset=header.offset, order="F")
    return values, extensions


def _raw(extension: Any) -> bytes:
    """Return the bytes of a nibabel extension, or b"" if nibabel has parsed the extension."""
    content = extension.content if hasattr(extension, "content") else extension.get_content()
    return content if isinstance(content, bytes) else b""


def _label_table(extensions: bytes) -> dict[str, Any]:
    """Read the names and colours in a label table of Connectome Workbench or Caret."""
    if b"<LabelTable>" not in extensions:
        return {}
    table = extensions.partition(b"<LabelTable>")[2].partition(b"</LabelTable>")[0]
    labels = LABEL.findall(table.decode("utf-8", "replace"))
    texts = {int(key): literal or unescape(text) for _, key, literal, text in labels}
    names = {key: text.strip() for key, text in texts.items() if text.strip()}
    colours = {}
    for attributes, key, _, _ in labels:
        shares = [re.search(SHARE.format(name), attributes) for name in ("Red", "Green", "Blue")]
        if colour := as_colour([share and share[1] for share in shares], 1.0):
            colours[int(key)] = colour
    return {"label_names": names, "colours": colours}


def _axes(values: NDArray[Any]) -> tuple[NDArray[Any], int | None]:
    """Return the values with three spatial axes, and the index of the region axis or None.

    At most one additional axis, the region axis, may be longer than 1.
    """
    space = values.shape[:3] + (1,) * (3 - values.ndim)
    further = [n for n in values.shape[3:] if n != 1]
    if len(further) > 1:
        raise FormatError(
            f"has shape {values.shape}: expected three spatial axes and at most one region axis"
        )
    return values.reshape(*space, *further, order="F"), (3 if further else None)


def _stem(path: Path, suffix: str) -> str:
    """Return the path without this suffix (and without .gz), or "" if it has another suffix."""
    name = str(path)[: -len(".gz")] if path.name.lower().endswith(".gz") else str(path)
    return name[: -len(suffix)] if name.lower().endswith(suffix) else ""


def _with_suffix(path: Path, suffix: str, other: str) -> Path | None:
    """Return the file with the suffix `other` in the same folder, or None if it does not exist."""
    stem = _stem(path, suffix)
    for ending in (other, other + ".gz", other.upper()):
        if (candidate := Path(stem + ending)).is_file():
            return candidate
    return None


def _for_mgh(array: NDArray[Any]) -> NDArray[Any]:
    """Convert values to one of the four types that FreeSurfer reads."""
    if array.dtype.kind == "f":
        return array.astype(np.float32)
    if array.dtype in (np.uint8, np.int16, np.int32):
        return array
    lowest, highest = (int(array.min()), int(array.max())) if array.size else (0, 0)
    if lowest < -(1 << 31) or highest >= 1 << 31:
        raise InputError(
            f"MGH stores labels from −2³¹ to 2³¹ − 1, found {lowest} to {highest}. "
            f"Write .nii.gz or .npz."
        )
    return array.astype(np.int32)


def _mgh_trailer(description: str) -> bytes:
    """Encode a description as a command line, which FreeSurfer stores after the values."""
    text = f"{DESCRIPTION} {description}\0".encode()
    return MGH_COMMAND.to_bytes(4, "big") + len(text).to_bytes(8, "big") + text


def _extend(image: Any, kind: str, text: str) -> None:
    """Add an extension to a NIfTI header."""
    nifti1 = import_module("nibabel.nifti1")
    image.header.extensions.append(nifti1.Nifti1Extension(kind, text.encode()))


def _caret_table(payload: Payload) -> str:
    """Encode the names and colours of labels in the format of Connectome Workbench."""
    rows = []
    for label in sorted({*payload.label_names, *payload.colours}):
        shares = ""
        if colour := payload.colours.get(label):
            red, green, blue = rgb_of(colour)
            shares = f' Red="{red:.6f}" Green="{green:.6f}" Blue="{blue:.6f}" Alpha="1"'
        name = escape(payload.label_names.get(label, ""))
        rows.append(f'<Label Key="{label}"{shares}>{name}</Label>')
    return (
        '<?xml version="1.0" encoding="UTF-8"?><CaretExtension><VolumeInformation Index="0">'
        f"<LabelTable>{''.join(rows)}</LabelTable><VolumeType>Label</VolumeType>"
        "</VolumeInformation></CaretExtension>"
    )


def _place(image: Any, affine: NDArray[np.float64] | None) -> None:
    """Set both sform and qform, so that every reader uses the same geometry."""
    image.header.set_xyzt_units("mm")
    if affine is not None:
        image.set_sform(affine, code="scanner")
        image.set_qform(affine, code="scanner")
        # A quaternion cannot represent shear. A missing qform is better than a wrong qform.
        if not np.allclose(image.get_qform(), affine, atol=1e-4):
            image.set_qform(None, code="unknown")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file for writing, with compression if its suffix is .gz or .mgz.

    Identical images result in identical files, because the compressed file stores neither a name
    nor a time.
    """
    with path.open("wb") as stream:
        if not path.name.lower().endswith((".gz", ".mgz")):
            yield stream
            return
        gzip = gzip_module()
        kind = gzip.IGzipFile if hasattr(gzip, "IGzipFile") else gzip.GzipFile
        with kind(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
            yield packed
