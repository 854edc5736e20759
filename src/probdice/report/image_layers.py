"""The background images of a page, reduced to the size limit, and their initial windows."""

from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.pixel_words import PixelWords
from probdice.engine.pair import SegmentationPair
from probdice.errors import InputError, ProbdiceError
from probdice.files.background_images import BackgroundImage, onto_grid
from probdice.files.inputs import Comparable, as_background_image
from probdice.files.sources import is_image
from probdice.options import CompareOptions
from probdice.pictures.views import View
from probdice.report.encoding import encoded, shortened

__all__ = ["background_images_of", "packed_layer"]

LEVELS = (4095, 255)  # possible largest stored values; the first that fits the size limit is used
RANGE = (0.02, 99.98)  # percentiles between which values are stored
WINDOW = (1.0, 99.0)  # percentiles of foreground values that limit the initial window
WINDOW_EXTENT = 2.5  # extent of the initial window beyond the quartiles, in interquartile ranges
MAX_SAMPLED_VALUES = 2**20  # for percentiles
SLICES = 8  # slices that estimate the compressed size
SIZE_ESTIMATE_TOLERANCE = 1.3  # an estimate above this multiple of the limit is too large


def background_images_of(
    images: SegmentationPair, options: CompareOptions, image: Any
) -> tuple[BackgroundImage, ...]:
    """Return the given images, on the grid of the segmentations."""
    reference = images.reference
    single = not isinstance(image, list | tuple) or is_image(image)
    layers = []
    for number, value in enumerate([image] if single else image):
        title = "image" if single else f"image {number + 1}"
        try:
            layer = as_background_image(value, reference.shape)
            is_array = layer.geometry is None and not layer.name  # an array without geometry
            if options.ignore_geometry:
                layer = BackgroundImage(layer.array, layer.colour, None, layer.name)
            resampled = onto_grid(
                layer,
                reference.geometry,
                reference.shape,
                tolerance=options.geometry_tolerance,
                placed=not is_array,
            )
        except ProbdiceError as error:
            file = "" if str(error).startswith(_file(value)) else _file(value)
            raise error.prefixed(f"{title}: {file}") from None
        layers.append(resampled)
    names = [layer.name or f"image {k + 1}" for k, layer in enumerate(layers)]
    if len(set(names)) < len(names):
        names = [f"{name} ({k + 1})" for k, name in enumerate(names)]
    return tuple(
        BackgroundImage(single.array, single.colour, single.geometry, name)
        for single, name in zip(layers, names, strict=True)
    )


def packed_layer(
    layer: BackgroundImage,
    view: View,
    regions: NDArray[np.bool_],
    limit: int,
    words: PixelWords,
) -> tuple[dict[str, Any], str]:
    """Return an image of at most `limit` bytes as JSON data, and a sentence about its reduction.

    `regions` marks the foreground pixels of the view. The values of these pixels determine the
    initial window.
    """
    values = np.asarray(layer.array[(slice(None),) * len(layer.array.shape)])
    if not np.isfinite(values).any():
        raise InputError(f"{layer.name}: expected finite values, found only NaN or infinity")
    values = np.nan_to_num(values.astype(np.float32), posinf=0, neginf=0)
    low, high = (0.0, 255.0) if layer.colour else _value_range(values, RANGE)
    for step in count(1):
        block_means = _means(values, step, len(layer.shape))
        for levels in LEVELS if not layer.colour else LEVELS[1:]:
            grey_values = np.clip((block_means - low) * (levels / (high - low)), 0, levels)
            codes = np.rint(grey_values).astype("u1" if levels == 255 else "<u2")
            # Compressing a few slices shows whether the image is far too large.
            sample = codes[:: max(1, codes.shape[0] // SLICES)] if codes.ndim else codes
            if (
                len(encoded(sample)) * (codes.size / sample.size)
                > SIZE_ESTIMATE_TOLERANCE * limit * 4 / 3
            ):
                continue
            text = encoded(codes, level=6)
            if len(text) <= limit * 4 / 3 or block_means.size <= 1:
                window = (low, high) if layer.colour else _window(values, view, regions)
                content = {
                    "name": shortened(layer.name),
                    "colour": layer.colour,
                    "step": step,
                    "shape": list(block_means.shape[: len(layer.shape)]),
                    "wide": levels > 255,
                    "levels": levels,
                    "low": float(low),
                    "high": float(high),
                    "window": [float(f"{edge:.4g}") for edge in window],
                    "values": text,
                }
                return content, _reduction(layer, step, levels, words)
    raise AssertionError  # the loop ends by returning


def _file(value: Comparable) -> str:
    """Return the prefix of a message about a file."""
    return "" if not isinstance(value, str) else f"{value}: "


def _means(values: NDArray[np.float32], step: int, axes: int) -> NDArray[np.float32]:
    """Return the means of blocks with a length of `step` pixels along each axis."""
    if step == 1:
        return values
    counts = np.ones((1,) * values.ndim, np.float32)
    for axis in range(axes):
        starts = np.arange(0, values.shape[axis], step)
        values = np.add.reduceat(values, starts, axis=axis, dtype=np.float32)
        sizes = np.diff([*starts, starts[-1] + step]).astype(np.float32)
        shape = [1] * values.ndim
        shape[axis] = -1
        counts = counts * sizes.reshape(shape)
    means: NDArray[np.float32] = values / counts
    return means


def _window(
    values: NDArray[np.float32], view: View, regions: NDArray[np.bool_]
) -> tuple[float, float]:
    """Return the initial window: the values shown as black and white."""
    view_values = values[np.ix_(*(np.asarray(indices) for indices in view.ranges))]
    inside = view_values[regions]
    sample = inside if inside.size else view_values
    low, high = _value_range(sample, WINDOW)
    first, third = (float(value) for value in np.percentile(sample, (25, 75)))
    reach = WINDOW_EXTENT * (third - first)
    if reach <= 0:
        return low, high
    # Limit the window, so that air or bright vessels do not reduce the contrast of tissue.
    return max(low, first - reach), min(high, third + reach)


def _value_range(values: NDArray[np.float32], share: tuple[float, float]) -> tuple[float, float]:
    """Return two distinct values between which most values lie."""
    flat = values.reshape(-1)
    sample = flat[:: max(1, flat.size // MAX_SAMPLED_VALUES)]
    low, high = (float(value) for value in np.percentile(sample, share))
    if low < high:
        return low, high
    low, high = float(flat.min()), float(flat.max())
    return (low, high) if low < high else (low, low + 1)


def _reduction(layer: BackgroundImage, step: int, levels: int, words: PixelWords) -> str:
    """Return a sentence about the reduction of an image, or ""."""
    texts = []
    if step > 1:
        texts.append(f"means over {step} {words.many} along each axis")
    if levels < LEVELS[0] and not layer.colour:
        texts.append(f"{levels + 1} grey levels")
    return f"{layer.name}: {', '.join(texts)}." if texts else ""
