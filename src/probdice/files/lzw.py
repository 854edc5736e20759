"""Streams of LZW in TIFF, looked through before a library unpacks them: it trusts their codes."""

import numpy as np
from numpy.typing import NDArray

from probdice.compiler.jit import kernel

__all__ = ["is_sound"]

CLEAR, END, FIRST, MOST = 256, 257, 258, 4096  # codes, and how many there can be


@kernel
def is_sound(packed: NDArray[np.uint8]) -> bool:
    """Whether every code of a stream stands for something when it comes.

    Codes have 9 bits, the highest first, and one more whenever the table is about to need it. Each
    but the first after a clear code makes a new one, which it may itself be.
    """
    width, following = 9, FIRST
    fresh = True
    bits, held = 0, np.int64(0)
    for k in range(packed.size):
        held = (held << 8 | np.int64(packed[k])) & 0xFFFFFF
        bits += 8
        if bits < width:
            continue
        bits -= width
        code = held >> bits & ((1 << width) - 1)
        if code == END:
            return True
        if code == CLEAR:
            width, following, fresh = 9, FIRST, True
        elif fresh:
            if code > CLEAR:
                return False
            fresh = False
        else:
            if code > following or following == MOST:
                return False
            following += 1
            if following == (1 << width) - 1 and width < 12:
                width += 1
    return True
