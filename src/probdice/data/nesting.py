"""Convert nested channels (whole ⊇ core ⊇ enhancing) to a partition of the image."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.pixel_words import PixelWords
from probdice.data.value_checks import TOLERANCE
from probdice.errors import InputError

__all__ = ["partition_of"]


def partition_of(channels: NDArray[Any], words: PixelWords) -> NDArray[Any]:
    """Return the regions between nested channels. Errors use `words` for elements of the image.

    The regions are the background, the differences between successive channels, and the last
    channel. Channels and regions are along the first axis. For booleans and integers, return a
    label map in which the label of a pixel is the number of channels that contain the pixel.
    """
    if channels.dtype.kind not in "biuf":
        raise InputError(f"channels must be booleans, integers or floats, found {channels.dtype}")
    _check_range(channels, words)
    _check_nested(channels, words)
    if channels.dtype.kind != "f":
        counts: NDArray[np.int64] = channels.sum(axis=0, dtype=np.int64)
        return counts
    # The running minimum removes rounding errors, so that the differences are not negative.
    inner = np.minimum.accumulate(np.clip(channels, 0, 1), axis=0)
    if inner.dtype == np.float16:
        inner = inner.astype(np.float32)
    limits = np.concatenate([np.ones_like(inner[:1]), inner, np.zeros_like(inner[:1])])
    regions: NDArray[Any] = limits[:-1] - limits[1:]
    return regions


def _check_range(channels: NDArray[Any], words: PixelWords) -> None:
    with np.errstate(invalid="ignore"):
        outside = ~((channels >= 0) & (channels <= 1 + TOLERANCE))
    if channels.dtype.kind in "iu":
        outside |= channels > 1
    if outside.any():
        channel, *position = (int(k) for k in np.argwhere(outside)[0])
        raise InputError(
            f"channel {channel} is {channels[(channel, *position)]} at {words.one} "
            f"{tuple(position)}, expected masks of 0 and 1 or probabilities. If the channels are "
            f"logits, apply a sigmoid first."
        )


def _check_nested(channels: NDArray[Any], words: PixelWords) -> None:
    excess = channels[1:].astype(np.float64) - channels[:-1]
    if not excess.size or excess.max() <= TOLERANCE:
        return
    inner, *position = (int(k) for k in np.unravel_index(int(excess.argmax()), excess.shape))
    values = channels[(inner + 1, *position)], channels[(inner, *position)]
    raise InputError(
        f"channels are not nested: channel {inner + 1} is {values[0]:g} and channel {inner} is "
        f"{values[1]:g} at {words.one} {tuple(position)}. Order the channels so that each channel "
        f"is inside the previous channel."
    )
