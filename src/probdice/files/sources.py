"""From what the user wrote to files: a path, a list, a glob, `name=file`, `file.h5:/path`."""

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
from probdice.files.model import Source, as_label
from probdice.files.packed import is_gzipped
from probdice.method.region_labels import Label

__all__ = [
    "HEAD",
    "Part",
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

HEAD = 4096  # bytes; the longest magic number lies within the first 2056
INSIDE = (".h5", ".hdf5", ".hdf", ".ilp", ".npz", ".mat")  # the suffixes a colon may follow
EXPECTED = "the path of a file, an image, or a list of them, one for each region"
NAMED = re.compile(r"\s*([^=/\\:]+?)\s*=\s*(.+)")  # csf=pve_0.nii.gz; not ./a=b.nii.gz


@dataclass(frozen=True)
class Part:
    """One thing to read: a path, or an image of another library; and what the user calls it."""

    file: Any
    name: str = ""

    @property
    def source(self) -> str:
        """Its path, as far as there is one."""
        if isinstance(self.file, str):
            return self.file
        return _filename(self.file) or f"a {type_named(self.file)}"


def parts_of(path: Any) -> list[Part]:
    """What is to be read, one part for each region, in their order."""
    if isinstance(path, str | os.PathLike):
        parts = _split(_text(path))
    elif is_image(path):
        parts = [Part(path)]
    elif isinstance(path, Mapping):
        parts = [
            Part(item if is_image(item) else _only(_text(item), str(name)), str(name))
            for name, item in path.items()
        ]
    elif not isinstance(path, Iterable) or isinstance(path, bytes):
        raise InputError(f"path must be {EXPECTED}, found {path!r}")
    else:
        parts = []
        for item in path:
            parts += [Part(item)] if is_image(item) else _split(_text(item))
    if not parts:
        raise InputError(f"path is empty, expected {EXPECTED}")
    unnamed = [part.source for part in parts if not part.name]
    if unnamed and len(unnamed) < len(parts):
        raise InputError(
            f"some of the files have a name and {unnamed[0]} has none; write name=file for each "
            f"of them, or for none"
        )
    return parts


def split_paths(path: Any) -> list[str]:
    """The files that `path` names, in the order of their regions."""
    return [part.file for part in parts_of(path) if isinstance(part.file, str)]


def is_image(value: object) -> bool:
    """Whether it is an image of nibabel or SimpleITK, which knows where it lies."""
    return has_type(value, "nibabel", "FileBasedImage") or has_type(value, "SimpleITK", "Image")


def open_source(path: str, max_bytes: int = sys.maxsize) -> Source:
    """The file and its first bytes; it exists, can be read and is not empty."""
    if is_url(path):
        return Source(Path(path), "", b"", False, max_bytes, store=path)
    file, inside = split_inside(path)
    try:
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a zero byte in it
        if "\0" not in path and any(is_store(folder) for folder in file.parents):
            return Source(file, "", b"", False, max_bytes, store=os.path.abspath(file))
        raise FormatError("no such file") from None
    if stat.S_ISDIR(mode):
        if is_store(file):
            return Source(file, "", b"", False, max_bytes, store=os.path.abspath(file))
        raise FormatError(
            "is a folder, expected a file; for one file per region, list the files or use a glob"
        )
    if not stat.S_ISREG(mode):
        raise FormatError(
            "is a pipe, a socket or a device, expected a file; save what it holds to a file first"
        )
    with file.open("rb") as stream:
        head = stream.read(16 * HEAD)
    if not head:
        raise FormatError("is empty (0 bytes); was it written completely?")
    gzipped = is_gzipped(head)
    if gzipped:
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, HEAD)
        except zlib.error as error:
            raise FormatError(f"is gzipped, but damaged: {error}") from error
    return Source(file, inside, head[:HEAD], gzipped, max_bytes)


def is_url(path: str) -> bool:
    """Whether it names something on a server, such as s3://bucket/volume.zarr."""
    return re.match(r"[a-z][a-z0-9+.-]+://", path) is not None


def is_store(folder: Path) -> bool:
    """Whether a folder is an array or a group of Zarr."""
    return any((folder / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup"))


def names_of(parts: Sequence[Part]) -> list[Label]:
    """What the user calls the regions, or what differs in the names of their files.

    Images without a file are counted from 0.
    """
    if parts[0].name:
        return [as_label(part.name) for part in parts]
    if all(isinstance(part.file, str) or _filename(part.file) for part in parts):
        return region_names([part.source for part in parts])
    return list(range(len(parts)))


def region_names(paths: Sequence[str]) -> list[Label]:
    """What differs in the names of the files: 0, 1 for pve_0.nii.gz, pve_1.nii.gz.

    Whole numbers become integers, as the labels of a label map are.
    """
    names = _differences(paths)
    labels = [as_label(name) for name in names]
    return labels if len(set(labels)) == len(labels) else list(names)


def _differences(paths: Sequence[str]) -> list[str]:
    """What differs in the names of the files, or where that is not distinct, more of the names."""
    stems = []
    for path in paths:
        file, inside = split_inside(path)
        name = file.name.lstrip(".")
        stems.append(name.split(".")[0] + (f"/{inside.strip('/')}" if inside else ""))
    # Whole words and whole numbers are compared, so that gre|y and gre|en stay themselves.
    words = [re.findall(r"[^\W\d_]+|\d+|[\W_]+", stem) for stem in stems]
    start = _common(words)
    end = _common([list(reversed(part[start:])) for part in words])
    names = ["".join(part[start : len(part) - end]).strip("_-. /") for part in words]
    if all(names) and len(set(names)) == len(names):
        return names
    return stems if len(set(stems)) == len(stems) else list(paths)


def _filename(image: Any) -> str:
    """The file of an image of nibabel, or ""."""
    return (image.get_filename() or "") if hasattr(image, "get_filename") else ""


def _text(path: object) -> str:
    """A path as text."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str) or not text:
        raise InputError(f"path must be {EXPECTED}, found {path!r}")
    return text


def _split(path: str) -> list[Part]:
    # os.path.exists, unlike that of a Path, takes a long list for a file that does not exist.
    if os.path.exists(split_inside(path)[0]):
        return [Part(path)]
    texts = [text.strip() for text in path.split(",") if text.strip()]
    parts: list[Part] = []
    for text in texts or [path]:
        named = None if os.path.exists(split_inside(text)[0]) else NAMED.fullmatch(text)
        if named:
            parts.append(Part(_only(named[2], named[1]), named[1]))
        else:
            parts += [Part(file) for file in _matches(text)]
    return parts


def _matches(text: str) -> list[str]:
    """The files that match a pattern; what is none is itself."""
    if not has_magic(text) or is_url(text) or os.path.exists(split_inside(text)[0]):
        return [text]
    matches = sorted(glob(text, recursive=True), key=natural)
    if not matches:
        raise FormatError(f"{text}: no file matches this pattern")
    return matches


def _only(text: str, name: str) -> str:
    """The one file that a name stands before."""
    files = _matches(text)
    if len(files) > 1:
        raise FormatError(
            f"{text}: {len(files)} files match this pattern, but {name!r} is the name of one region"
        )
    return files[0]


def split_inside(path: str) -> tuple[Path, str]:
    """The file, and what is named inside it; a colon may also be part of the file's name."""
    for colon in (match.start() for match in re.finditer(":", path)):
        file = path[:colon]
        if file.lower().endswith(INSIDE) and not os.path.exists(path):
            return Path(file), path[colon + 1 :]
    return Path(path), ""


def natural(name: str) -> list[tuple[int, str]]:
    """An order in which pve_2 comes before pve_10; of 1 and 01, which are equal, that of texts."""
    parts = re.split(r"(\d+)", name)
    numbered = [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
    return [*numbered, (0, name)]


def _common(lists: Sequence[Sequence[str]]) -> int:
    """How many leading items all lists share."""
    count = 0
    for column in zip(*lists, strict=False):
        if len(set(column)) > 1:
            break
        count += 1
    return count
