"""Base-2 logarithms of ratios of probabilities, computed from the bits of their values."""

import math

from probdice.compiler.jit import exponent, inner, mantissa
from probdice.engine.kernels.rows import Rows

# The logit of probability 1. It is far from all other logits. Unlike infinity minus infinity, its
# difference from itself is 0.
CERTAIN_LOGIT = 1e30
UPSCALE = 2.0**64  # scales subnormal numbers to normal numbers, which have an exponent


@inner
def log_ratio(a: Rows, b: Rows, floor: float, into: Rows) -> None:
    """Write log₂(a/b) to `into`, with values below `floor` replaced by `floor`.

    Without a floor, the result is ±`CERTAIN_LOGIT` where a or b is 0, and meaningless where both
    are 0.
    """
    real = a.dtype.type
    low, none = real(floor), real(0)
    for k in range(a.size):
        x, y = max(a[k], low), max(b[k], low)
        logarithm = _logarithm(min(x, y) * real(UPSCALE) / max(x, y), a)
        logarithm = real(-CERTAIN_LOGIT) if min(x, y) == none else logarithm
        into[k] = logarithm if x < y else -logarithm


@inner
def log_ratio_positive(a: Rows, b: Rows, into: Rows) -> None:
    """Write log₂(a/b) of positive numbers to `into`."""
    for k in range(a.size):
        x, y = a[k], b[k]
        logarithm = _logarithm(min(x, y) * a.dtype.type(UPSCALE) / max(x, y), a)
        into[k] = logarithm if x < y else -logarithm


@inner
def _logarithm(ratio: float, like: Rows) -> float:
    """Return log₂ of a ratio of at most 1 that was multiplied by UPSCALE, in the type of `like`.

    The natural logarithm of a mantissa m is 2 artanh s with s = (m − 1)/(m + 1). The series of
    artanh in s² converges quickly.
    """
    real = like.dtype.type
    one = real(1)
    m = mantissa(ratio)
    power = exponent(ratio) - exponent(real(UPSCALE))
    large = m > real(math.sqrt(2))
    m = m * real(0.5) if large else m
    power = power + one if large else power
    s = (m - one) / (m + one)
    t = s * s
    if like.itemsize == 4:
        tail = t * (real(1 / 3) + t * (real(1 / 5) + t * real(1 / 7)))
    else:
        tail = t * real(1 / 21)
        for term in (1 / 19, 1 / 17, 1 / 15, 1 / 13, 1 / 11, 1 / 9, 1 / 7, 1 / 5, 1 / 3):
            tail = t * (tail + real(term))
    return power + (s + s * tail) * real(2 / math.log(2))


@inner
def logit(a: Rows, b: Rows, floor: float, into: Rows, at: int) -> None:
    """Write the logit of (a, b) to two rows of `into`.

    The first row is log₂(a/b). With a floor, the second row is −1 where only a is 0, 1 where only b
    is 0, and 0 elsewhere.
    """
    real = a.dtype.type
    log_ratio(a, b, floor, into[2 * at])
    absent = into[2 * at + 1]
    if floor > 0:  # without a floor, the logits already contain this information
        for k in range(a.size):
            absent[k] = real(b[k] == 0) - real(a[k] == 0)
