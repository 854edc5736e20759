"""Validate LZW streams in TIFF files, because imagecodecs does not check their codes."""

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import kernel

__all__ = ["is_valid"]

CLEAR, END, FIRST, MAX_CODES = 256, 257, 258, 4096  # special codes, and the largest number of codes


@kernel
def is_valid(packed: NDArray[np.uint8]) -> bool:
    """Return whether every code of a stream is defined when it is used.

    Initially, codes have 9 bits. The highest bit is stored first. The width increases by one bit,
    up to 12 bits, each time the table is nearly full. Each code defines a new code, except the
    first code after a clear code. A code may be equal to the new code that it defines.
    """
    width, next_code = 9, FIRST
    fresh = True
    bits, buffer = 0, np.int64(0)
    for k in range(packed.size):
        buffer = (buffer << 8 | np.int64(packed[k])) & 0xFFFFFF
        bits += 8
        if bits < width:
            continue
        bits -= width
        code = buffer >> bits & ((1 << width) - 1)
        if code == END:
            return True
        if code == CLEAR:
            width, next_code, fresh = 9, FIRST, True
        elif fresh:
            if code > CLEAR:
                return False
            fresh = False
        else:
            if code > next_code or next_code == MAX_CODES:
                return False
            next_code += 1
            if next_code == (1 << width) - 1 and width < 12:
                width += 1
    return True
