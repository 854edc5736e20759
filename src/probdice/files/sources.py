"""Parse the user's paths: one path, a list, a pattern, `name=file` or `file.h5:/path`."""

import os
import re
import stat
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from probdice.data.arrays import has_type, type_named
from probdice.errors import FormatError, InputError
from probdice.files.corrupt import corrupt
from probdice.files.model import Source, as_label
from probdice.files.packed import is_gzipped
from probdice.method.region_labels import Label

__all__ = [
    "HEAD",
    "NamedInput",
    "is_image",
    "is_store",
    "is_url",
    "names_of",
    "natural",
    "open_source",
    "parts_of",
    "region_names",
    "split_inside",
    "split_paths",
]

HEAD = 4096  # largest size of `Source.head` in bytes; magic numbers end before byte 2056
# Suffixes after which a colon and the path of an array inside the file may follow.
INSIDE = (".h5", ".hdf5", ".hdf", ".ilp", ".npz", ".mat", ".gii", ".dlabel.nii", ".dscalar.nii")
EXPECTED = "the path of a file, an image, or a list of them, one per region"
NAMED_FILE = re.compile(r"\s*([^=/\\:]+?)\s*=\s*(.+)")  # csf=pve_0.nii.gz; not ./a=b.nii.gz


@dataclass(frozen=True)
class NamedInput:
    """One input: a path or an image of another library, and the name that the user gave it."""

    file: Any
    name: str = ""

    @property
    def source(self) -> str:
        """Path of the input, or its type if it has no path."""
        if isinstance(self.file, str):
            return self.file
        return _filename(self.file) or f"a {type_named(self.file)}"


def parts_of(path: Any) -> list[NamedInput]:
    """Return the only input, or one input per region in the order of the regions."""
    if isinstance(path, str | os.PathLike):
        parts = _split(_text(path))
    elif is_image(path):
        parts = [NamedInput(path)]
    elif isinstance(path, Mapping):
        parts = [
            NamedInput(item if is_image(item) else _only(_text(item), str(name)), str(name))
            for name, item in path.items()
        ]
    elif not isinstance(path, Iterable) or isinstance(path, bytes):
        raise InputError(f"path must be {EXPECTED}, found {path!r}")
    else:
        parts = []
        for item in path:
            parts += [NamedInput(item)] if is_image(item) else _split(_text(item))
    if not parts:
        raise InputError(f"path must be {EXPECTED}, found nothing")
    unnamed = [part.source for part in parts if not part.name]
    if unnamed and len(unnamed) < len(parts):
        raise InputError(
            f"{unnamed[0]} has no region name, but other files have one. Write name=file for all "
            f"files or for none."
        )
    return parts


def split_paths(path: Any) -> list[str]:
    """Return the files of `path`, in the order of their regions."""
    return [part.file for part in parts_of(path) if isinstance(part.file, str)]


def is_image(value: object) -> bool:
    """Return whether a value is a nibabel or SimpleITK image, which has a geometry."""
    return has_type(value, "nibabel", "FileBasedImage") or has_type(value, "SimpleITK", "Image")


def open_source(path: str, max_bytes: int = sys.maxsize) -> Source:
    """Open a file and read its first bytes. Raise an error if the file is missing or empty."""
    if is_url(path):
        return Source(Path(path), "", b"", False, max_bytes, store=path)
    file, inside = split_inside(path)
    try:
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: null byte in path
        if "\0" not in path and any(is_store(folder) for folder in file.parents):
            return Source(file, "", b"", False, max_bytes, store=_store(file))
        raise FormatError("no such file") from None
    if stat.S_ISDIR(mode):
        if is_store(file):
            return Source(file, "", b"", False, max_bytes, store=_store(file))
        raise FormatError(
            "is a folder, expected a file. For one file per region, use a pattern such as "
            "'folder/*.nii.gz'. To compare folders of cases, use evaluate."
        )
    if not stat.S_ISREG(mode):
        raise FormatError(
            "is a pipe, a socket or a device, expected a file. Save the data to a file first."
        )
    with file.open("rb") as stream:
        head = stream.read(16 * HEAD)
    if not head:
        raise FormatError("is empty (0 bytes). Copy or write it again.")
    gzipped = is_gzipped(head)
    if gzipped:
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, HEAD)
        except zlib.error as error:
            raise corrupt(f"it cannot be decompressed ({error})") from error
    return Source(file, inside, head[:HEAD], gzipped, max_bytes)


def _store(file: Path) -> str:
    """Return the absolute path of a Zarr store with slashes as in a URL, including on Windows."""
    return Path(os.path.abspath(file)).as_posix()


def is_url(path: str) -> bool:
    """Return whether a path is a URL such as s3://bucket/volume.zarr."""
    return re.match(r"[a-z][a-z0-9+.-]+://", path) is not None


def is_store(folder: Path) -> bool:
    """Return whether a folder is a Zarr array or group."""
    return any((folder / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup"))


def names_of(parts: Sequence[NamedInput]) -> list[Label]:
    """Return the user's region names, or the parts in which the file names differ.

    If any input is an image without a file, all inputs are numbered from 0.
    """
    if parts[0].name:
        return [as_label(part.name) for part in parts]
    if all(isinstance(part.file, str) or _filename(part.file) for part in parts):
        return region_names([part.source for part in parts])
    return list(range(len(parts)))


def region_names(paths: Sequence[str]) -> list[Label]:
    """Return the parts in which file names differ, such as 0 and 1 for pve_0.nii and pve_1.nii.

    Whole numbers become integers, like the labels of a label map, unless two of these integers are
    equal.
    """
    names = _differences(paths)
    labels = [as_label(name) for name in names]
    return labels if len(set(labels)) == len(labels) else list(names)


def _differences(paths: Sequence[str]) -> list[str]:
    """Return the differing parts of file names.

    If a differing part is empty, or two parts are equal, return the file names without extensions.
    If two of these names are equal, return the paths.
    """
    stems = []
    for path in paths:
        file, inside = split_inside(path)
        name = file.name.lstrip(".")
        stems.append(name.split(".")[0] + (f"/{inside.strip('/')}" if inside else ""))
    # Whole words and whole numbers are compared, so that grey and green do not become y and en.
    words = [re.findall(r"[^\W\d_]+|\d+|[\W_]+", stem) for stem in stems]
    start = _common(words)
    end = _common([list(reversed(part[start:])) for part in words])
    names = ["".join(part[start : len(part) - end]).strip("_-. /") for part in words]
    if all(names) and len(set(names)) == len(names):
        return names
    return stems if len(set(stems)) == len(stems) else list(paths)


def _filename(image: Any) -> str:
    """Return the file name of a nibabel image, or "" if it has no file."""
    return (image.get_filename() or "") if hasattr(image, "get_filename") else ""


def _text(path: object) -> str:
    """Convert a path to text."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str) or not text:
        raise InputError(f"path must be {EXPECTED}, found {path!r}")
    return text


def _split(path: str) -> list[NamedInput]:
    # For a long list of files, os.path.exists returns False, while Path.exists raises an error.
    if os.path.exists(split_inside(path)[0]):
        return [NamedInput(path)]
    texts = [text.strip() for text in path.split(",") if text.strip()]
    parts: list[NamedInput] = []
    for text in texts or [path]:
        named = None if os.path.exists(split_inside(text)[0]) else NAMED_FILE.fullmatch(text)
        if named:
            parts.append(NamedInput(_only(named[2], named[1]), named[1]))
        else:
            parts += [NamedInput(file) for file in _matches(text)]
    return parts


def _matches(text: str) -> list[str]:
    """Return the files that match a pattern, or the text itself if it is not a pattern."""
    if not has_magic(text) or is_url(text) or os.path.exists(split_inside(text)[0]):
        return [text]
    matches = sorted(glob(text, recursive=True), key=natural)
    if not matches:
        raise FormatError(f"{text}: no file matches this pattern")
    return matches


def _only(text: str, name: str) -> str:
    """Return the file of `name=file`, which must be a single file."""
    files = _matches(text)
    if len(files) > 1:
        raise FormatError(
            f"{text}: {len(files)} files match this pattern, but region {name!r} needs exactly one "
            f"file"
        )
    return files[0]


def split_inside(path: str) -> tuple[Path, str]:
    """Split `file.h5:/path` into the file and the path inside the file.

    The file name itself may also contain a colon.
    """
    for colon in (match.start() for match in re.finditer(":", path)):
        file = path[:colon]
        if file.lower().endswith(INSIDE) and not os.path.exists(path):
            return Path(file), path[colon + 1 :]
    return Path(path), ""


def natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts pve_2 before pve_10. Names with equal numbers are sorted as text."""
    parts = re.split(r"(\d+)", name)
    numbered = [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
    return [*numbered, (0, name)]


def _common(lists: Sequence[Sequence[str]]) -> int:
    """Count the leading items that all lists share."""
    count = 0
    for column in zip(*lists, strict=False):
        if len(set(column)) > 1:
            break
        count += 1
    return count
