"""From what the user wrote to files: a path, a list, a glob, `file.h5:/path`."""

import os
import re
import zlib
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path

from probdice.errors import FormatError, InputError
from probdice.files.model import Source

__all__ = ["HEAD", "open_source", "region_names", "split_paths"]

HEAD = 4096  # bytes; the longest magic number lies within the first 2056
INSIDE = (".h5", ".hdf5", ".hdf", ".ilp", ".npz", ".mat")  # the suffixes a colon may follow


def split_paths(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The files that `path` names, in the order of their regions."""
    if isinstance(path, str | os.PathLike):
        return _split(os.fspath(path))
    paths = [part for item in path for part in _split(os.fspath(item))]
    if not paths:
        raise InputError("path is an empty list: expected at least one file")
    return paths


def open_source(path: str) -> Source:
    """The file and its first bytes; it exists, can be read and is not empty."""
    file, inside = _split_inside(path)
    if not file.exists():
        raise FormatError("no such file")
    if file.is_dir():
        raise FormatError(
            "is a folder, expected a file; for one file per region, list the files or use a glob"
        )
    with file.open("rb") as stream:
        head = stream.read(16 * HEAD)
    if not head:
        raise FormatError("is empty (0 bytes); was it written completely?")
    gzipped = head[:2] == b"\x1f\x8b"
    if gzipped:
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, HEAD)
        except zlib.error as error:
            raise FormatError(f"is gzipped, but damaged: {error}") from error
    return Source(file, inside, head[:HEAD], gzipped)


def region_names(paths: Sequence[str]) -> list[str]:
    """What differs in the names of the files: "0", "1" for pve_0.nii.gz, pve_1.nii.gz."""
    stems = []
    for path in paths:
        file, inside = _split_inside(path)
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


def _split(path: str) -> list[str]:
    if _split_inside(path)[0].exists():
        return [path]
    parts = [part.strip() for part in path.split(",") if part.strip()]
    found: list[str] = []
    for part in parts or [path]:
        if has_magic(part) and not _split_inside(part)[0].exists():
            matches = sorted(glob(part, recursive=True), key=_natural)
            if not matches:
                raise FormatError(f"{part}: no file matches this pattern")
            found += matches
        else:
            found.append(part)
    return found


def _split_inside(path: str) -> tuple[Path, str]:
    """The file, and what is named inside it; a colon may also be part of the file's name."""
    for colon in (match.start() for match in re.finditer(":", path)):
        file = path[:colon]
        if file.lower().endswith(INSIDE) and not os.path.exists(path):
            return Path(file), path[colon + 1 :]
    return Path(path), ""


def _natural(path: str) -> list[tuple[int, str]]:
    """An order in which pve_2 comes before pve_10."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path)
    ]


def _common(lists: Sequence[Sequence[str]]) -> int:
    """How many leading items all lists share."""
    count = 0
    for column in zip(*lists, strict=False):
        if len(set(column)) > 1:
            break
        count += 1
    return count
