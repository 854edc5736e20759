"""Errors about corrupt files, and checks of the sizes that headers declare."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from probdice.errors import FormatError, Option, ProbdiceError, TooLargeError
from probdice.method.region_labels import listed

__all__ = [
    "DEFLATE_RATIO",
    "check_chunk_size",
    "check_memory",
    "check_size",
    "corrupt",
    "library_call",
    "one_line",
    "refuse_entities",
    "select_name",
    "whole_number",
]

DEFLATE_RATIO = 1032  # largest compression ratio of zlib, gzip and zip
SMALLEST_CHUNK = 1024  # smallest size of a chunk in bytes, if there are many chunks
MAX_SMALL_CHUNKS = 1 << 14  # largest number of smaller chunks
PROGRAMMING_ERRORS = (AssertionError, AttributeError, NameError, TypeError)


def corrupt(reason: str) -> FormatError:
    """Return the error for a corrupt file, with the reason and the advice to copy it again."""
    return FormatError(f"is corrupt or incomplete: {reason}. Copy or write it again.")


def one_line(error: Exception) -> str:
    """Return the message of an exception on one line, or its type if it has no message."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


@contextmanager
def library_call() -> Iterator[None]:
    """Convert exceptions of a third-party reader to `FormatError`.

    Libraries raise exceptions of any type for corrupt files. All exceptions are therefore
    converted, except errors of the operating system, `MemoryError`, `ProbdiceError` and programming
    errors in this package. Only library calls should be inside the `with` block.
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
        raise corrupt(one_line(error)) from error


def _raised_by_us(error: Exception) -> bool:
    """Return whether the error was raised in this package, and not in a library."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    return module.split(".")[0] == "probdice"


def check_size(needed: int, stored: int, content: tuple[int, ...] | str, *, ratio: int = 1) -> None:
    """Reject a header that describes more data than the file can contain.

    `needed` is the size of the data in bytes, `stored` is the number of bytes in the file, and
    `ratio` is the largest compression ratio. `content` is the shape of the image, or describes data
    of another kind, such as "a mesh of 4 vertices and 2 triangles".
    """
    if needed > stored * ratio:
        compressed = "" if ratio == 1 else " compressed"
        described = content if isinstance(content, str) else f"an image of shape {content}"
        raise corrupt(
            f"its header describes {described} ({needed} bytes), but the file contains "
            f"{max(stored, 0)}{compressed} bytes"
        )


def check_memory(needed: int, content: tuple[int, ...] | str, max_bytes: int) -> None:
    """Reject values that require more than `max_bytes` bytes of memory.

    `content` is the shape of the array, or describes values of another kind.
    """
    if needed > max_bytes:
        described = content if isinstance(content, str) else f"an array of shape {content}"
        raise TooLargeError(
            f"contains {described}, which takes {needed} bytes of memory; the limit is "
            f"{max_bytes}. To allow it, use ",
            Option("max_bytes", needed),
            ". Uncompressed files (.npy, .nii, .h5) remain on disk and have no limit.",
        )


def check_chunk_size(shape: Sequence[int], chunks: Sequence[int], itemsize: int) -> None:
    """Reject a very large number of tiny chunks, because each chunk takes time and memory."""
    count = math.prod(
        -(-length // max(chunk, 1)) for length, chunk in zip(shape, chunks, strict=True)
    )
    size = math.prod(chunks) * itemsize
    if 0 < size < SMALLEST_CHUNK and count > MAX_SMALL_CHUNKS:
        raise FormatError(
            f"has {count:,} chunks of {size} bytes: with more than {MAX_SMALL_CHUNKS:,} chunks, "
            f"each must have at least {SMALLEST_CHUNK:,} bytes. Store it in larger chunks."
        )


def refuse_entities(*_: Any) -> NoReturn:
    """Reject a declaration of XML entities, because their expansion can take unlimited time."""
    raise FormatError("declares XML entities, which are not supported. Remove them.")


def whole_number(value: Any, name: str) -> int:
    """Convert the value of the header field `name` to an integer."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise corrupt(f"its {name} must be a whole number, found {value!r}") from None


def select_name(
    wanted: str, names: Sequence[str], kind: str, example: str, shown: Sequence[str] = ()
) -> str:
    """Return the name that the user selected, or the only name in the file.

    Parameters
    ----------
    wanted : str
        The name that the user selected, or "" if the user selected none.
    names : sequence of str
        All names that can be selected.
    kind : str
        A plural noun for the named objects, such as "datasets".
    example : str
        The text before a name in a path, such as "file.h5:".
    shown : sequence of str, optional
        The names that the error message lists. The default is `names`.
    """
    if wanted in names:
        return wanted
    if not wanted and len(names) == 1:
        return names[0]
    available = listed(shown or names, 12) if names else "none"
    if wanted:
        raise FormatError(f"contains no {kind[:-1]} {wanted!r}. Available {kind}: {available}.")
    if not names:
        raise FormatError(f"contains no {kind} that can be read.")
    raise FormatError(
        f"contains {len(names)} {kind} ({available}). Select one, for example {example}{names[0]}."
    )
