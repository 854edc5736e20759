"""Corrupt files: convert errors of third-party libraries, and check the sizes in headers."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from probdice.errors import FormatError, Option, ProbdiceError, TooLargeError

__all__ = [
    "DEFLATE_RATIO",
    "check_crumbs",
    "check_memory",
    "check_size",
    "library_call",
    "whole_number",
]

DEFLATE_RATIO = 1032  # largest compression ratio of zlib, gzip and zip
MANY, CRUMB = 1 << 14, 1024  # at most MANY chunks may be smaller than CRUMB bytes
PROGRAMMING_ERRORS = (AssertionError, AttributeError, NameError, TypeError)


@contextmanager
def library_call() -> Iterator[None]:
    """Convert exceptions of a third-party reader to `FormatError`.

    Libraries raise exceptions of any type on a corrupt file, so all types are converted; only
    library calls belong inside. Errors of the operating system, `MemoryError`, `ProbdiceError` and
    programming errors in this package pass unchanged.
    """
    try:
        yield
    except (ProbdiceError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        if isinstance(error, PROGRAMMING_ERRORS) and _raised_by_us(error):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FormatError(f"is corrupt or incomplete: {reason}") from error


def check_size(needed: int, stored: int, shape: tuple[int, ...], *, ratio: int = 1) -> None:
    """Reject a header that describes more data than the file can contain.

    `stored` is the number of bytes in the file, and `ratio` the largest compression ratio.
    """
    if needed > stored * ratio:
        compressed = "" if ratio == 1 else " compressed"
        raise FormatError(
            f"is corrupt or incomplete: its header describes an image of shape {shape}, "
            f"{needed} bytes, but the file contains {max(stored, 0)}{compressed} bytes. Copy or "
            f"write it again"
        )


def check_memory(needed: int, shape: tuple[int, ...], most: int) -> None:
    """Reject values that need more than `most` bytes of memory."""
    if needed > most:
        raise TooLargeError(
            f"contains an image of shape {shape}, which takes {needed} bytes of memory; the limit "
            f"is {most}. To allow it, use ",
            Option("max_bytes", needed),
            ". Uncompressed files (.npy, .nii, .h5) stay on disk and have no limit",
        )


def whole_number(value: Any, name: str) -> int:
    """Convert the header field `name` to an integer."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise FormatError(
            f"is corrupt: its {name} must be a whole number, found {value!r}"
        ) from None


def _raised_by_us(error: Exception) -> bool:
    """Return whether code of this package raised the error, not a library that it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    return module.split(".")[0] == "probdice"


def check_crumbs(shape: Sequence[int], chunks: Sequence[int], itemsize: int) -> None:
    """Reject very many tiny chunks, because each chunk costs time and memory of its own."""
    count = math.prod(
        -(-length // max(chunk, 1)) for length, chunk in zip(shape, chunks, strict=True)
    )
    size = math.prod(chunks) * itemsize
    if 0 < size < CRUMB and count > MANY:
        raise FormatError(
            f"has {count:,} chunks of {size} bytes: with more than {MANY:,} chunks, each must have "
            f"at least {CRUMB:,} bytes. Store it in larger chunks"
        )
