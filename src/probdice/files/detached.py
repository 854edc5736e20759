"""Where NRRD and MetaImage headers say that the values lie, and whether they are intact.

SimpleITK does not verify the check sums of packed values: it prints a line and returns what it
has, so that a flipped bit would be read as other values. It also takes all the memory that a
header asks for. Hence the values are looked at here before it reads them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from probdice.errors import FormatError
from probdice.files.damage import DEFLATE_RATIO, check_size, whole_number
from probdice.files.packed import is_gzipped, verify_stream

__all__ = ["check_metaimage", "check_nrrd", "value_files"]

LONGEST = 1 << 24  # bytes; headers list every segment of a segmentation, but end somewhere
MOST_FILES = 1 << 16
# What a byte unpacks to at most: a number may be one character, and eight bytes in memory.
UNPACKING = {"raw": 1, "text": 8, "packed": DEFLATE_RATIO}
Encoding = Literal["raw", "packed", "text"]


@dataclass(frozen=True)
class _Values:
    """The values of an image: files, and in each the byte at which they start."""

    encoding: Encoding
    files: tuple[tuple[Path, int], ...]
    skipped: int = 0  # bytes before the values, once unpacked
    packed_size: int | None = None  # bytes of packed values in each file, where the header says so


def check_metaimage(path: Path, shape: tuple[int, ...], needed: int) -> None:
    """Refuse a MetaImage whose values are missing, too few or damaged."""
    _check(_metaimage(path), shape, needed)


def check_nrrd(path: Path, shape: tuple[int, ...], needed: int) -> None:
    """Refuse an NRRD file whose values are missing, too few or damaged."""
    _check(_nrrd(path), shape, needed)


def value_files(path: Path) -> list[Path]:
    """The files in which the values of a MetaImage or an NRRD file lie; that may be itself."""
    with path.open("rb") as stream:
        values = _nrrd(path) if stream.read(4) == b"NRRD" else _metaimage(path)
    return [file for file, _ in values.files]


def _check(values: _Values, shape: tuple[int, ...], needed: int) -> None:
    for file, _ in values.files:
        if not file.is_file():
            raise FormatError(f"its values should lie in {file.name}, which is no file beside it")
    needed += values.skipped
    sizes = [file.stat().st_size - start for file, start in values.files]
    check_size(needed, sum(sizes), shape, ratio=UNPACKING[values.encoding])
    if values.encoding != "packed":
        return
    unpacked = 0
    for (file, start), size in zip(values.files, sizes, strict=True):
        stop = start + (size if values.packed_size is None else values.packed_size)
        unpacked += verify_stream(file, start, stop, needed // len(values.files))
    if unpacked < needed:
        raise FormatError(
            f"is damaged or incomplete: its header describes {needed} bytes of values, found "
            f"{unpacked}; copy or write it again"
        )


def _metaimage(path: Path) -> _Values:
    fields: dict[str, str] = {}
    with path.open("rb") as stream:
        for line in _lines(stream):
            key, _, value = line.partition("=")
            fields[key.strip().lower()] = value.strip()
            if key.strip().lower() == "elementdatafile":
                break
        names = [line.strip() for line in _lines(stream)] if _is_list(fields) else []
        end = stream.tell()
    name = fields.get("elementdatafile", "")
    if not name:
        raise FormatError("is damaged or incomplete: its header does not say where the values lie")
    encoding: Encoding = (
        "packed" if fields.get("compresseddata", "")[:1] in ("T", "t", "1") else "raw"
    )
    if fields.get("binarydata", "")[:1] in ("F", "f", "0"):
        encoding = "text"
    packed_size = _number(fields, "compresseddatasize") or None
    if name.lower() == "local":
        return _Values(encoding, ((path, end),), packed_size=packed_size)
    start = max(0, _number(fields, "headersize"))
    names = names or _numbered(name) or [name]
    files = tuple((path.parent / name, start) for name in names if name)
    return _Values(encoding, files, packed_size=packed_size if len(files) == 1 else None)


def _number(fields: dict[str, str], name: str) -> int:
    return whole_number(fields.get(name) or "0", name)


def _is_list(fields: dict[str, str]) -> bool:
    return fields.get("elementdatafile", "").lower().split()[:1] == ["list"]


def _nrrd(path: Path) -> _Values:
    fields: dict[str, str] = {}
    names: list[str] = []
    with path.open("rb") as stream:
        lines = _lines(stream)
        for line in lines:
            if not line.strip("\r\n"):
                break
            key, separator, value = line.partition(": ")
            if separator and not line.startswith("#"):
                fields[key.strip().lower().replace(" ", "")] = value.strip()
            if key.lower().replace(" ", "") == "datafile" and value.split()[:1] == ["LIST"]:
                names = [line.strip() for line in lines if line.strip()]
        end = stream.tell()
    name = fields.get("datafile", "")
    encoding = _nrrd_encoding(fields.get("encoding", "").lower())
    skip = _number(fields, "byteskip")
    if not name:
        files: tuple[tuple[Path, int], ...] = ((path, end),)
    else:
        names = names or _numbered(name) or [name]
        files = tuple((path.parent / name, 0) for name in names)
    lines_to_skip = _number(fields, "lineskip")
    if lines_to_skip:
        files = tuple((file, _after_lines(file, start, lines_to_skip)) for file, start in files)
    if encoding == "packed" and any(not _starts_gzipped(file, start) for file, start in files):
        raise FormatError("is damaged: its values should be gzipped, but are not")
    return _Values(encoding, files, skipped=max(skip, 0))


def _nrrd_encoding(name: str) -> Encoding:
    if name in ("gz", "gzip"):
        return "packed"
    if name in ("txt", "text", "ascii", "hex"):
        return "text"
    if name == "raw":
        return "raw"
    raise FormatError(f"its values are encoded as {name!r}, expected raw, gzip, text or hex")


def _starts_gzipped(file: Path, start: int) -> bool:
    if not file.is_file():  # which is said later
        return True
    with file.open("rb") as stream:
        stream.seek(start)
        return is_gzipped(stream.read(2))


def _lines(stream: BinaryIO) -> Iterator[str]:
    while line := stream.readline(LONGEST):
        if stream.tell() > LONGEST:
            raise FormatError("is damaged: its header does not end")
        yield line.decode(errors="surrogateescape")


def _after_lines(file: Path, start: int, count: int) -> int:
    """The byte after so many lines."""
    if not file.is_file():
        return start
    with file.open("rb") as stream:
        stream.seek(start)
        for _ in range(min(count, LONGEST)):
            if not stream.readline(LONGEST):
                break
        return stream.tell()


def _numbered(pattern: str) -> list[str]:
    """The files of a pattern such as "slice%03d.raw 1 20 1"; none where it is no pattern."""
    number = r"\s+(\d{1,9})"
    match = re.fullmatch(
        rf"([^%]*%0?\d?d[^%\s]*){number}{number}(?:{number})?(?:{number})?", pattern
    )
    if match is None:
        return []
    first, last, step = int(match[2]), int(match[3]), int(match[4] or 1)
    return [match[1] % number for number in range(first, last + 1, step or 1)[:MOST_FILES]]
