"""From what the user wrote to files: a path, a list, a glob, `file.h5:/path`."""

import os
import re
import stat
import zlib
from collections.abc import Iterable, Sequence
from glob import glob, has_magic
from pathlib import Path

from probdice.errors import FormatError, InputError
from probdice.files.model import Source, as_label
from probdice.files.packed import is_gzipped
from probdice.segmentation import Label

__all__ = ["HEAD", "natural", "open_source", "region_names", "split_inside", "split_paths"]

HEAD = 4096  # bytes; the longest magic number lies within the first 2056
INSIDE = (".h5", ".hdf5", ".hdf", ".ilp", ".npz", ".mat")  # the suffixes a colon may follow
EXPECTED = "the path of a file, or a list of paths, one for each region"


def split_paths(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The files that `path` names, in the order of their regions."""
    if isinstance(path, str | os.PathLike):
        return _split(_text(path))
    if not isinstance(path, Iterable) or isinstance(path, bytes):
        raise InputError(f"path must be {EXPECTED}, found {path!r}")
    paths = [part for item in path for part in _split(_text(item))]
    if not paths:
        raise InputError(f"path is an empty list, expected {EXPECTED}")
    return paths


def open_source(path: str) -> Source:
    """The file and its first bytes; it exists, can be read and is not empty."""
    file, inside = split_inside(path)
    try:
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a zero byte in it
        raise FormatError("no such file") from None
    if stat.S_ISDIR(mode):
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
    return Source(file, inside, head[:HEAD], gzipped)


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


def _text(path: object) -> str:
    """A path as text."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str) or not text:
        raise InputError(f"path must be {EXPECTED}, found {path!r}")
    return text


def _split(path: str) -> list[str]:
    # os.path.exists, unlike that of a Path, takes a long list for a file that does not exist.
    if os.path.exists(split_inside(path)[0]):
        return [path]
    parts = [part.strip() for part in path.split(",") if part.strip()]
    files: list[str] = []
    for part in parts or [path]:
        if has_magic(part) and not os.path.exists(split_inside(part)[0]):
            matches = sorted(glob(part, recursive=True), key=natural)
            if not matches:
                raise FormatError(f"{part}: no file matches this pattern")
            files += matches
        else:
            files.append(part)
    return files


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
