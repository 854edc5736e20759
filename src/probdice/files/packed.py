"""Decompress streams only as far as needed, and verify their checksums.

isal takes half the time of zlib; zlib is used on platforms without isal.
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

SURPLUS = 1 << 26  # bytes that may follow the values; MGH files end with scan metadata
PIECE = 1 << 20


def is_gzipped(head: bytes) -> bool:
    """Return whether these are the first bytes of a gzipped file."""
    return head[:2] == b"\x1f\x8b"


def unpack(path: Path, size: int, trailing: int = 0) -> bytes:
    """Decompress the first `size` bytes of a gzipped file and up to `trailing` further bytes.

    The result is shorter if the file is. The checksum is at the end, so the remaining bytes are
    decompressed and dropped. More than `SURPLUS` of them are an error, because a small file may
    decompress to more than fits in memory or time.
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
            f"is gzipped, but corrupt or incomplete ({error}). Copy or write it again"
        ) from error
    return content


def _unpack_at_once(path: Path, size: int, trailing: int) -> bytes | None:
    """Decompress a file with a single gzip member in one call; None for other files.

    A gzip stream acquires the GIL every half megabyte and may wait for it longer than the
    decompression takes while another thread runs Python code.
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
    """Count the bytes of a zlib or gzip stream in a file; raise if its checksum is wrong.

    The stream is between the bytes `start` and `stop` of the file and should contain `size` bytes.
    """
    return sum(len(piece) for piece in unpack_stream(path, start, stop, size))


def unpack_stream(path: Path, start: int, stop: int, size: int) -> Iterator[bytes]:
    """Yield the content of such a stream in pieces; the last one verifies the checksum."""
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
                    raise FormatError(
                        "is corrupt or incomplete: its compressed values end too early"
                    )
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
                f"is corrupt: its values cannot be decompressed ({error}). Write it again"
            ) from error


def unpack_pieces(pieces: Iterable[memoryview]) -> Iterator[bytes]:
    """Yield the content of a zlib stream in memory; the last bytes verify the checksum.

    The content is yielded in small pieces to avoid several copies of the whole.
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
                raise FormatError("is corrupt or incomplete: its compressed values end too early")
            yield content
    except zlib.error as error:
        raise FormatError(
            f"is corrupt: its values cannot be decompressed ({error}). Write it again"
        ) from error


def gzip_module() -> Any:
    """Return isal's gzip module, or Python's."""
    try:
        from isal import igzip
    except ImportError:
        import gzip

        return gzip
    return igzip


def zlib_module() -> Any:
    """Return isal's zlib module, or Python's."""
    try:
        from isal import isal_zlib
    except ImportError:
        import zlib

        return zlib
    return isal_zlib


def _packing_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that gzip and zlib raise on corrupt streams."""
    import zlib

    return OSError, EOFError, zlib.error, zlib_module().error


def _check_surplus(surplus: int, size: int) -> None:
    if surplus > SURPLUS:
        raise FormatError(
            f"decompresses to far more than the {size} bytes that its header describes. The header "
            f"may be corrupt: write it again"
        )
