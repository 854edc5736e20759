"""Messages between this process and its child: JSON, errors, and arrays in shared memory.

A message consists of 8 bytes that contain the length of the JSON text in bytes, followed by this
text. A malicious file might take control of the child, so the parent checks every field and never
unpickles data.
"""

import json
import math
import mmap
import os
import re
import socket
import struct
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypedDict,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import numpy as np
from numpy.typing import NDArray

from probdice.data import machine
from probdice.errors import (
    FormatError,
    GeometryError,
    InputError,
    MissingExtraError,
    Note,
    ProbdiceError,
    TooLargeError,
)

__all__ = [
    "MAX_MESSAGE_BYTES",
    "Dtype",
    "Filling",
    "Malformed",
    "ReaderResult",
    "SharedLayout",
    "Size",
    "conforms",
    "error_from_dict",
    "error_to_dict",
    "library_failure",
    "map_memory",
    "send_message",
]

MAX_MESSAGE_BYTES = 1 << 26
MAX_AXES = 32
TOO_MUCH = "needs far more memory than expected for a file of this size"
NO_MEMORY = re.compile(r"bad_alloc|memory allocation|allocate memory")  # in errors of libraries
TYPES = np.typecodes["AllInteger"] + np.typecodes["Float"] + "?"
NUMBERS = frozenset(order + np.dtype(code).str[1:] for code in TYPES for order in "<>|")
ERRORS = {
    error.__name__: error
    for error in (FormatError, GeometryError, InputError, MissingExtraError, TooLargeError)
}

Size: TypeAlias = Annotated[int, range(1 << 63).__contains__]
Dtype: TypeAlias = Annotated[str, NUMBERS.__contains__]


@dataclass(frozen=True, eq=False)
class Filling:
    """An array in C order that the function `fill` writes directly into shared memory."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill: Callable[[NDArray[Any]], object]


@dataclass(frozen=True, eq=False)
class ReaderResult:
    """The result of a reader: a JSON value and numeric arrays.

    An array may be given as a `Filling`; the parent still receives an ordinary array.
    """

    value: Any
    arrays: tuple[Any, ...] = ()


class Malformed(Exception):
    """The child sent an invalid message."""


def conforms(value: object, kind: Any) -> bool:
    """Return whether a JSON value conforms to a type.

    Parameters
    ----------
    value : object
        The value that `json.loads` returned.
    kind : type
        A JSON type, a union, a `Literal`, ``list[…]`` or a `TypedDict`. ``object`` allows any
        value, and ``tuple[…]`` means a list of fixed length. For ``Annotated[type, test]``,
        ``test(value)`` must also be true.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is object:
        return True
    if origin is Annotated:
        return conforms(value, arguments[0]) and bool(arguments[1](value))
    if origin is UnionType:
        return any(conforms(value, argument) for argument in arguments)
    if origin is Literal:
        return value in arguments
    if is_typeddict(kind):
        fields = get_type_hints(kind, include_extras=True)
        has_fields = isinstance(value, dict) and set(value) == set(fields)
        return has_fields and all(conforms(value[name], fields[name]) for name in fields)  # type: ignore[index]
    if isinstance(value, list) and origin is list:
        return all(conforms(item, arguments[0]) for item in value)
    if isinstance(value, list) and origin is tuple:
        return len(value) == len(arguments) and all(map(conforms, value, arguments))
    return type(value) is (NoneType if kind is None else kind)  # isinstance(True, int) is true


def send_message(
    connection: socket.socket, message: dict[str, Any], descriptor: int | None = None
) -> None:
    """Send a message, optionally with an open file."""
    content = json.dumps(message).encode()
    content = struct.pack("<Q", len(content)) + content
    if descriptor is not None:
        content = content[socket.send_fds(connection, [content[:8]], [descriptor]) :]
    connection.sendall(content)


# -- arrays ----------------------------------------------------------------------------------------


class _LayoutValue(TypedDict):
    dtype: Dtype
    shape: list[Size]
    axes: list[Size]


@dataclass(frozen=True)
class SharedLayout:
    """The layout of an array whose axes are permuted to C order in shared memory."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def space(self) -> int:
        """The size of the array in bytes, rounded up so that the next array is aligned."""
        nbytes = math.prod(self.shape) * self.dtype.itemsize
        return max(64, -(-nbytes // 64) * 64)

    @classmethod
    def of(cls, array: NDArray[Any] | Filling) -> "SharedLayout":
        """Return a layout that keeps the memory order of an array."""
        if isinstance(array, Filling):
            return cls(array.dtype, array.shape, tuple(range(len(array.shape))))
        order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        shape = tuple(array.shape[axis] for axis in order)
        return cls(array.dtype, shape, tuple(int(axis) for axis in np.argsort(order)))

    @classmethod
    def checked(cls, content: Any) -> "SharedLayout":
        """Check the layout in a message and return it."""
        if not conforms(content, _LayoutValue):
            raise Malformed
        shape, axes = content["shape"], content["axes"]
        if len(shape) > MAX_AXES or sorted(axes) != list(range(len(shape))):
            raise Malformed
        return cls(np.dtype(content["dtype"]), tuple(shape), tuple(axes))

    def to_dict(self) -> dict[str, Any]:
        """Return the layout as a dictionary for JSON."""
        return {"dtype": self.dtype.str, "shape": self.shape, "axes": self.axes}


def map_memory(descriptor: int, size: int) -> mmap.mmap | NDArray[np.uint8]:
    """Map the first `size` bytes of a memory file if it is sealed. Otherwise, copy the bytes."""
    if not size or os.fstat(descriptor).st_size < size:
        raise Malformed
    if machine.is_sealed(descriptor, write=True):
        return mmap.mmap(descriptor, size, mmap.MAP_PRIVATE, mmap.PROT_READ)
    content = np.empty(size, np.uint8)
    start = 0
    while start < size:
        count = os.preadv(descriptor, [content[start:].data], start)
        if not count:
            raise Malformed
        start += count
    return content


# -- errors ----------------------------------------------------------------------------------------


def library_failure(library: str, reason: str) -> FormatError:
    """Return the error for a file that a library could not parse."""
    return FormatError(
        f"{library} {reason}. The file is probably corrupt or incomplete: copy or write it again."
    )


def error_to_dict(error: Exception, library: str) -> dict[str, Any]:
    """Convert the error of a reader to a dictionary for JSON."""
    is_expected = isinstance(error, ProbdiceError)
    if NO_MEMORY.search(str(error.__cause__)) or (
        isinstance(error, MemoryError) and not is_expected
    ):
        error = library_failure(library, TOO_MUCH)
    if type(error).__name__ in ERRORS:
        message = [part if isinstance(part, str) else asdict(part) for part in error.args]
        return {"kind": type(error).__name__, "message": message}
    if isinstance(error, OSError) and error.errno is not None:
        return {"kind": "OSError", "message": [error.errno, error.strerror]}
    return {"kind": "fault", "message": "".join(traceback.format_exception(error))}


def error_from_dict(content: Any) -> Exception:
    """Restore the error that a reader raised."""
    if not isinstance(content, dict) or set(content) != {"kind", "message"}:
        raise Malformed
    kind, message = content["kind"], content["message"]
    if isinstance(kind, str) and kind in ERRORS:
        try:
            return ERRORS[kind](*Note.from_dict(content).message)
        except (InputError, TypeError, KeyError):
            raise Malformed from None
    if kind == "OSError" and isinstance(message, list) and len(message) == 2:
        return OSError(*message)
    if kind == "fault":  # a bug in this package
        return RuntimeError(f"a reader failed in the child process:\n{message}")
    raise Malformed
