"""Files that are damaged: what libraries raise on them, and headers that ask for too much."""

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

DEFLATE_RATIO = 1032  # zlib, gzip and zip unpack a byte to at most so many
MANY, CRUMB = 1 << 14, 1024  # no more chunks than that of fewer bytes
PROGRAMMING_ERRORS = (AssertionError, AttributeError, NameError, TypeError)


@contextmanager
def library_call() -> Iterator[None]:
    """Around a call into the library of a format: what it raises means that the file is damaged.

    Libraries raise anything at all on a damaged file, hence the wide net; nothing but such calls
    belongs inside. What the operating system refuses, a lack of memory, our own errors and
    programming errors of our own code come out as they are.
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
        raise FormatError(f"is damaged or incomplete: {reason}") from error


def check_size(needed: int, stored: int, shape: tuple[int, ...], *, ratio: int = 1) -> None:
    """Refuse a header that asks for more than the file can hold, before memory is taken for it.

    `stored` is the number of bytes in the file, each of which unpacks to at most `ratio`.
    """
    if needed > stored * ratio:
        packed = "" if ratio == 1 else " packed"
        raise FormatError(
            f"is damaged or incomplete: its header describes an image of shape {shape}, "
            f"{needed} bytes, but the file holds {max(stored, 0)}{packed}; copy or write it again"
        )


def check_memory(needed: int, shape: tuple[int, ...], most: int) -> None:
    """Refuse values that have to lie in memory and take more of it than they may."""
    if needed > most:
        raise TooLargeError(
            f"holds an image of shape {shape}, which takes {needed} bytes of memory; at most "
            f"{most} are allowed: pass ",
            Option("max_bytes", needed),
            " to allow it, or store the values unpacked (.npy, .nii, .h5), which stay on disk",
        )


def whole_number(value: Any, name: str) -> int:
    """A whole number that a file holds under some name."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise FormatError(
            f"is damaged: its {name} must be a whole number, found {value!r}"
        ) from None


def _raised_by_us(error: Exception) -> bool:
    """Whether the error was raised by code of this package, not by what it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    return module.split(".")[0] == "probdice"


def check_crumbs(shape: Sequence[int], chunks: Sequence[int], itemsize: int) -> None:
    """Refuse very many tiny chunks: each takes time and memory beside its values."""
    count = math.prod(
        -(-length // max(chunk, 1)) for length, chunk in zip(shape, chunks, strict=True)
    )
    size = math.prod(chunks) * itemsize
    if 0 < size < CRUMB and count > MANY:
        raise FormatError(
            f"has {count:,} chunks of {size} bytes: expected at least {CRUMB:,} bytes in each "
            f"where there are so many; store it in larger chunks"
        )
