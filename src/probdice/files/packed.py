"""Packed streams: unpacked no further than needed, and their check sums verified.

isal unpacks in half the time of zlib, which serves on the platforms that isal does not know.
"""

import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from probdice.errors import FormatError

__all__ = [
    "gzip_module",
    "is_gzipped",
    "unpack",
    "unpack_pieces",
    "unpack_stream",
    "verify_stream",
    "zlib_module",
]

SURPLUS = 1 << 26  # bytes that may follow the values; MGH files end in notes on the scan
PIECE = 1 << 20


def is_gzipped(head: bytes) -> bool:
    """Whether these are the first bytes of a gzipped file."""
    return head[:2] == b"\x1f\x8b"


def unpack(path: Path, size: int, trailing: int = 0) -> bytes:
    """The first `size` bytes of a gzipped file, or fewer where it holds fewer.

    And up to `trailing` bytes that follow them.

    The check sum comes last, so what follows is unpacked and dropped; no more than `SURPLUS` of
    it, since a file of few bytes may unpack to more than there is memory or time for.
    """
    try:
        whole = _unpack_at_once(path, size, trailing)
        if whole is not None:
            return whole
        with path.open("rb") as stream, gzip_module().open(stream, "rb") as packed:
            content: bytes = packed.read(size + trailing)
            surplus = 0
            while piece := packed.read(PIECE):
                surplus += len(piece)
                _check_surplus(surplus, size)
    except _packing_errors() as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FormatError(
            f"is gzipped, but incomplete or damaged ({error}); copy or write it again"
        ) from error
    return content


def _unpack_at_once(path: Path, size: int, trailing: int) -> bytes | None:
    """The same by a single call, for a file of one member that holds no more; else None.

    A stream asks for the interpreter's lock every half megabyte, and may have to wait for it longer
    than it unpacks while another thread runs Python code.
    """
    unpacker = zlib_module().decompressobj(wbits=31)
    with (
        path.open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as packed,
    ):
        content: bytes = unpacker.decompress(packed, size + trailing)
    unpacker.decompress(unpacker.unconsumed_tail, PIECE)
    complete = unpacker.eof and not unpacker.unused_data and len(content) >= size
    return content if complete else None


def verify_stream(path: Path, start: int, stop: int, size: int) -> int:
    """How many bytes a zlib or gzip stream in a file holds; refused where its check sum is wrong.

    It lies between the bytes `start` and `stop` of the file and should hold `size` bytes.
    """
    return sum(len(piece) for piece in unpack_stream(path, start, stop, size))


def unpack_stream(path: Path, start: int, stop: int, size: int) -> Iterator[bytes]:
    """What `verify_stream` counts, piece by piece; its check sum is verified with the last one."""
    zlib = zlib_module()
    count = 0
    with path.open("rb") as stream:
        stream.seek(start)
        gzipped = is_gzipped(stream.read(2))
        stream.seek(start)
        unpacker = zlib.decompressobj(wbits=31 if gzipped else 15)
        try:
            while True:
                left = max(0, stop - stream.tell())
                piece = unpacker.unconsumed_tail or stream.read(min(PIECE, left))
                content = unpacker.decompress(piece, PIECE)
                if not piece and not content and not unpacker.eof:
                    raise FormatError("is damaged or incomplete: its packed values end too early")
                count += len(content)
                _check_surplus(count - size, size)
                yield content
                if unpacker.eof:
                    if count >= size or not gzipped:
                        return
                    # A gzipped file may have several members, one after the other.
                    stream.seek(-len(unpacker.unused_data), 1)
                    if not is_gzipped(stream.read(2)):
                        return
                    stream.seek(-2, 1)
                    unpacker = zlib.decompressobj(wbits=31)
        except (zlib.error, EOFError) as error:
            raise FormatError(
                f"is damaged: its packed values cannot be unpacked ({error}); write it again"
            ) from error


def unpack_pieces(pieces: Iterable[memoryview]) -> Iterator[bytes]:
    """What a zlib stream that lies in memory holds; its check sum is verified with the last bytes.

    It comes a little at a time, since all of it at once is copied several times.
    """
    zlib = zlib_module()
    unpacker = zlib.decompressobj()
    try:
        for piece in pieces:
            for start in range(0, len(piece), PIECE):
                part = piece[start : start + PIECE]
                while len(part) and not unpacker.eof:
                    yield unpacker.decompress(part, PIECE)
                    part = unpacker.unconsumed_tail
        while not unpacker.eof:
            content = unpacker.decompress(b"", PIECE)
            if not content and not unpacker.eof:
                raise FormatError("is damaged or incomplete: its packed values end too early")
            yield content
    except zlib.error as error:
        raise FormatError(
            f"is damaged: its packed values cannot be unpacked ({error}); write it again"
        ) from error


def gzip_module() -> Any:
    """isal's gzip, or Python's own."""
    try:
        from isal import igzip
    except ImportError:
        import gzip

        return gzip
    return igzip


def zlib_module() -> Any:
    """isal's zlib, or Python's own."""
    try:
        from isal import isal_zlib
    except ImportError:
        import zlib

        return zlib
    return isal_zlib


def _packing_errors() -> tuple[type[Exception], ...]:
    """What gzip and zlib raise on damaged streams; gzip's own error is an OSError."""
    import zlib

    return OSError, EOFError, zlib.error, zlib_module().error


def _check_surplus(surplus: int, size: int) -> None:
    if surplus > SURPLUS:
        raise FormatError(
            f"unpacks to far more than the {size} bytes that its header describes; "
            f"is the header damaged? Write it again"
        )
