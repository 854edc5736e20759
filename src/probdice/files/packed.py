"""Decompress streams with a limited amount of memory, and verify their checksums.

Streams are decompressed with isal or, if isal is not installed, with zlib, which takes twice as
long.
"""

import mmap
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from probdice.errors import FormatError
from probdice.files.corrupt import corrupt

__all__ = [
    "gzip_module",
    "is_gzipped",
    "unpack",
    "unpack_pieces",
    "verify_stream",
    "zlib_module",
]

MAX_TRAILING_BYTES = 1 << 26  # most bytes that may follow the values, such as metadata in MGH files
PIECE = 1 << 20


def is_gzipped(head: bytes) -> bool:
    """Return whether `head` contains the first bytes of a gzipped file."""
    return head[:2] == b"\x1f\x8b"


def unpack(path: Path, size: int, trailing: int = 0) -> bytes:
    """Decompress a gzipped file, and return the first `size` bytes and up to `trailing` more.

    The result is shorter if the decompressed file is shorter. The checksum is at the end of the
    file, so the remaining bytes are also decompressed, and then discarded. If more than
    `MAX_TRAILING_BYTES` bytes remain, an error is raised, because a small file may decompress to
    terabytes.
    """
    whole = _unpack_at_once(path, size, trailing)
    if whole is not None:
        return whole
    content, left, surplus = [], size + trailing, 0
    for piece in unpack_pieces(_pieces(path, 0, path.stat().st_size), gzipped=True):
        content.append(piece[:left])
        surplus += len(piece) - len(content[-1])
        left -= len(content[-1])
        _check_surplus(surplus, size)
    return b"".join(content)


def _unpack_at_once(path: Path, size: int, trailing: int) -> bytes | None:
    """Decompress the values of a file in one call, or return None if this is not possible.

    The file must have a single gzip member, at least `size` bytes, and few bytes after the values.
    Several calls would each have to wait for the GIL while another thread runs Python code. The
    waits would take longer than the decompression.
    """
    unpacker = zlib_module().decompressobj(wbits=31)
    with (
        _decompression(),
        path.open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as packed,
    ):
        content: bytes = unpacker.decompress(packed, size + trailing)
        unpacker.decompress(unpacker.unconsumed_tail, PIECE)
    complete = unpacker.eof and not unpacker.unused_data and len(content) >= size
    return content if complete else None


def verify_stream(path: Path, start: int, stop: int, size: int) -> int:
    """Return the decompressed size of a zlib or gzip stream, after verifying its checksum.

    The stream is between the bytes `start` and `stop` of the file, and its expected decompressed
    size is `size`. An error is raised if the actual size is far larger.
    """
    with path.open("rb") as stream:
        stream.seek(start)
        gzipped = is_gzipped(stream.read(2))
    count = 0
    for piece in unpack_pieces(_pieces(path, start, stop), gzipped=gzipped):
        count += len(piece)
        _check_surplus(count - size, size)
    return count


def unpack_pieces(
    pieces: Iterable[bytes | memoryview], *, gzipped: bool = False
) -> Iterator[bytes]:
    """Yield the content of a zlib stream, or of consecutive gzip members, in small pieces.

    The checksum is verified at the end of a stream. Bytes that follow the stream are ignored.
    """
    module = zlib_module()
    unpacker = module.decompressobj(wbits=31 if gzipped else 15)
    with _decompression():
        for piece in pieces:
            rest: Any = piece
            while len(rest):
                if unpacker.eof:
                    if not gzipped or rest[:1] != b"\x1f":
                        return
                    unpacker = module.decompressobj(wbits=31)
                yield unpacker.decompress(rest, PIECE)
                rest = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
        while not unpacker.eof:
            content = unpacker.decompress(b"", PIECE)
            if not content and not unpacker.eof:
                raise corrupt("its compressed values end too early")
            yield content


def _pieces(path: Path, start: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes from `start` to `stop` of a file, in small pieces."""
    with path.open("rb") as stream:
        stream.seek(start)
        while piece := stream.read(min(PIECE, max(0, stop - stream.tell()))):
            yield piece


@contextmanager
def _decompression() -> Iterator[None]:
    """Convert the errors of zlib and isal to `FormatError`."""
    try:
        yield
    except (zlib.error, zlib_module().error) as error:
        raise corrupt(f"its values cannot be decompressed ({error})") from error


def gzip_module() -> Any:
    """Return the gzip module of isal if it is installed, otherwise that of Python."""
    try:
        from isal import igzip
    except ImportError:
        import gzip

        return gzip
    return igzip


def zlib_module() -> Any:
    """Return the zlib module of isal if it is installed, otherwise that of Python."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib
    return isal_zlib


def _check_surplus(surplus: int, size: int) -> None:
    if surplus > MAX_TRAILING_BYTES:
        raise FormatError(
            f"decompresses to far more than the {size} bytes that its header describes. The header "
            f"may be corrupt. Write the file again."
        )
