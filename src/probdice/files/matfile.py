"""The elements of MATLAB's files of versions 5 to 7 ("Level 5 MAT-files").

A file is a header of 128 bytes and one element for each variable. An element is a type, a number of
bytes and the bytes themselves; an array consists of further elements: its flags, its shape, its
name and its values, or for cells and structs the arrays that they hold. Every size is held against
the bytes that there are before it is used. SciPy's reader is not used since damaged files end it,
and the process with it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import FormatError
from probdice.files.damage import DEFLATE_RATIO, check_memory
from probdice.files.packed import unpack_pieces

__all__ = ["Cells", "Struct", "Value", "variables_of"]

HEADER = 128
TAG = 8  # bytes: the type of an element, and its size
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8"}
NUMBERS |= {13: "u8"}
INT8, UINT8, INT32, UINT32, MATRIX, COMPRESSED = 1, 2, 5, 6, 14, 15
CELL, STRUCT, OBJECT, NUMERIC = 1, 2, 3, range(6, 16)  # classes; others hold no numbers for us
COMPLEX = 0x800
DEEPEST = 64  # how deep cells and structs may lie in each other


@dataclass(frozen=True, eq=False)
class Cells:
    """A cell array, in MATLAB's order."""

    items: tuple["Value", ...]


@dataclass(frozen=True, eq=False)
class Struct:
    """An array of structs, in MATLAB's order; the fields of each by their names."""

    names: tuple[str, ...]
    items: tuple[dict[str, "Value"], ...]


Value = NDArray[Any] | Cells | Struct | None  # None: text, complex and sparse numbers, functions


def variables_of(content: memoryview, max_bytes: int) -> dict[str, Value]:
    """The variables of a file by their names; those that are packed may take so much memory."""
    order = {b"IM": "<", b"MI": ">"}.get(bytes(content[126:128]))
    if order is None:
        raise FormatError("is damaged or incomplete: its header does not say its byte order")
    variables: dict[str, Value] = {}
    for kind, element in _Elements(content[HEADER:], order, padded=False):
        if kind == COMPRESSED:
            kind, element = _unpacked(element, order, max_bytes)
            max_bytes -= len(element)
        if kind != MATRIX:
            raise _damaged(f"element of type {kind} where a variable must be")
        name, value = _array(element, order, DEEPEST)
        if name:
            variables[name] = value
    return variables


class _Elements:
    """The elements that lie one after the other in some bytes."""

    def __init__(self, content: memoryview, order: str, *, padded: bool = True) -> None:
        self.content, self.order, self.padded = content, order, padded
        self.start = 0

    def __iter__(self) -> Iterator[tuple[int, memoryview]]:
        while self.start < len(self.content):
            yield self.next()

    def next(self) -> tuple[int, memoryview]:
        """The type and the bytes of the next element."""
        tag = self.content[self.start : self.start + 8]
        if len(tag) < 8:
            raise _damaged("an element is cut off")
        kind, size = (int(number) for number in np.frombuffer(tag, self.order + "u4"))
        if kind >> 16:  # up to four bytes fit into the tag itself
            kind, size = kind & 0xFFFF, kind >> 16
            if size > 4:
                raise _damaged(f"a short element of {size} bytes")
            self.start += 8
            return kind, tag[4 : 4 + size]
        first = self.start + 8
        if size > len(self.content) - first:
            raise _damaged(f"an element of {size} bytes where {len(self.content) - first} are left")
        # Elements start at multiples of 8 bytes, but for packed variables.
        self.start = first + (size if not self.padded or kind == COMPRESSED else -(-size // 8) * 8)
        return kind, self.content[first : first + size]

    def numbers(self, *kinds: int) -> NDArray[Any]:
        """The next element as numbers of one of these types."""
        kind, content = self.next()
        if kind not in kinds:
            raise _damaged(f"an element of type {kind}, expected one of {kinds}")
        dtype = np.dtype(self.order + NUMBERS[kind])
        if len(content) % dtype.itemsize:
            raise _damaged(f"{len(content)} bytes for numbers of {dtype.itemsize} bytes each")
        return np.frombuffer(content, dtype)

    def text(self) -> str:
        """The next element as a name."""
        return self.numbers(INT8, UINT8).tobytes().decode("latin-1").rstrip("\0")


def _unpacked(packed: memoryview, order: str, max_bytes: int) -> tuple[int, memoryview]:
    """The one element that a packed variable holds, its check sum verified."""
    content = bytearray()
    kind, size = 0, -1
    for piece in unpack_pieces((packed,)):
        content += piece
        if size < 0 and len(content) >= TAG:
            kind, size = (int(number) for number in np.frombuffer(content[:TAG], order + "u4"))
            if size > DEFLATE_RATIO * len(packed):
                raise _damaged(f"a variable of {size} bytes packed into {len(packed)}")
            check_memory(size, (size,), max_bytes)
        if len(content) > TAG + max(size, 0):
            break
    if len(content) != TAG + size:
        raise _damaged("a packed variable has another size than it says")
    return kind, memoryview(content).toreadonly()[TAG:]


def _array(content: memoryview, order: str, depth: int) -> tuple[str, Value]:
    """The name and the value of an array."""
    if not len(content):  # how an empty field or cell is stored
        return "", None
    elements = _Elements(content, order)
    flags = elements.numbers(UINT32)
    if flags.size != 2:
        raise _damaged(f"{flags.size} numbers as the flags of an array, expected 2")
    kind = int(flags[0]) & 0xFF
    if kind not in (CELL, STRUCT, OBJECT, *NUMERIC):
        return _name_of_others(kind, elements), None
    shape = tuple(int(length) for length in elements.numbers(INT32))
    if len(shape) < 2 or len(shape) > 32 or any(length < 0 for length in shape):
        raise _damaged(f"an array of shape {shape}")
    name = elements.text()
    count = math.prod(shape)
    if kind in NUMERIC:
        return name, None if int(flags[0]) & COMPLEX else _numbers(elements, shape)
    # An array takes at least its tag.
    if depth == 0 or count > len(content) // 8:
        raise _damaged(f"an array of shape {shape} in {len(content)} bytes")
    if kind == CELL:
        return name, Cells(tuple(_nested(elements, depth) for _ in range(count)))
    if kind == OBJECT:
        elements.text()  # its class
    return name, _struct(elements, count, depth)


def _numbers(elements: _Elements, shape: tuple[int, ...]) -> NDArray[Any]:
    """The values of an array, in the type in which they are stored."""
    values = elements.numbers(*NUMBERS)
    if values.size != math.prod(shape):
        raise _damaged(f"{values.size} numbers for an array of shape {shape}")
    return values.reshape(shape, order="F")


def _struct(elements: _Elements, count: int, depth: int) -> Struct:
    length = elements.numbers(INT32)
    text = elements.numbers(INT8, UINT8).tobytes()
    if length.size != 1 or length[0] < 1 or len(text) % int(length[0]):
        raise _damaged("the names of the fields of a struct")
    step = int(length[0])
    names = tuple(
        text[start : start + step].split(b"\0")[0].decode("latin-1")
        for start in range(0, len(text), step)
    )
    if count * len(names) * 8 > len(elements.content):
        raise _damaged(f"{count} structs of {len(names)} fields in {len(elements.content)} bytes")
    items = tuple({name: _nested(elements, depth) for name in names} for _ in range(count))
    return Struct(names, items)


def _nested(elements: _Elements, depth: int) -> Value:
    kind, content = elements.next()
    if kind != MATRIX:
        raise _damaged(f"an element of type {kind} where an array must be")
    return _array(content, elements.order, depth - 1)[1]


def _name_of_others(kind: int, elements: _Elements) -> str:
    """The name of an array that holds no numbers for us, such as text."""
    if kind in (4, 5):  # text and sparse numbers have a shape and a name; functions do not
        elements.numbers(INT32)
        return elements.text()
    return ""


def _damaged(what: str) -> FormatError:
    return FormatError(f"is damaged or incomplete: {what}; copy or write it again")
