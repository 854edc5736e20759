"""A pass with a halo, run as the architecture page describes, against NumPy on the whole array."""

import pickle

import numpy as np
import pytest

from probdice import Segmentation
from probdice.engine.decode import Crisp
from probdice.engine.grids import Block, cut
from probdice.engine.pair import SegmentationPair
from probdice.engine.passes import Pass, summed

SHAPE = 6, 7, 8
HALO = 2


def neighbour_products(blocks, block):
    """Per side, Σ v(x)·v(y) of pixels y that are `HALO` after x, and before it, on each axis.

    v is the label or the probability of channel 1, and 0 outside the mask and the image.
    """
    around = block.around(HALO, blocks.shape)
    ready = blocks.decode(around)
    totals = []
    for side in ready.sides:
        if isinstance(side, Crisp):
            values = side.values.astype(float)
        else:
            values = side.rows[1, side.start : side.start + side.size].astype(float)
        image = np.pad(around.shaped(values, ready.inside, 0), HALO)
        own = tuple(
            slice(part.start - outer.start + HALO, part.stop - outer.start + HALO)
            for part, outer in zip(block.box, around.box, strict=True)
        )
        totals += [
            (image[own] * np.roll(image, step, axis=blocks.order.index(axis))[own]).sum()
            for axis in range(len(SHAPE))
            for step in (-HALO, HALO)
        ]
    return np.array(totals)


def whole_products(sides, mask):
    totals = []
    for side in sides:
        values = side[1] if side.ndim > len(SHAPE) else side
        image = np.where(mask, values, 0.0)
        for axis in range(len(SHAPE)):
            lines = np.moveaxis(image, axis, 0)
            totals += [(lines[HALO:] * lines[:-HALO]).sum()] * 2
    return totals


def soft(dtype, seed):
    values = np.random.default_rng(seed).dirichlet(np.full(3, 0.5), SHAPE)
    return np.moveaxis(values, -1, 0).astype(dtype, order="C")


def labels(seed):
    return np.random.default_rng(seed).integers(0, 4, SHAPE).astype(np.uint8)


def stored(values, order):
    """The same values with the pixels of every channel in this memory order."""
    if order == "C":
        return values
    axes = (*range(values.ndim - len(SHAPE)), *reversed(range(values.ndim)))[: values.ndim]
    return np.ascontiguousarray(values.transpose(axes)).transpose(axes)


def segmentation(values):
    if values.ndim > len(SHAPE):
        return Segmentation.from_probabilities(values)
    return Segmentation.from_labels(values)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("pixels", [5, 8, 50, 112, 1000])  # parts of rows, rows, slices, the image
@pytest.mark.parametrize(
    "sides",
    [
        (soft(np.float32, 1), soft(np.float32, 2)),
        (soft(np.float64, 1), soft(np.float32, 2)),
        (labels(1), soft(np.float64, 2)),
        (labels(1), labels(2)),
    ],
    ids=["float32", "float64", "mixed", "labels"],
)
def test_a_pass_with_a_halo_reads_the_neighbours(monkeypatch, sides, pixels, masked, order):
    monkeypatch.setattr("probdice.engine.blocks.BLOCK_BYTES", 1)
    monkeypatch.setattr("probdice.engine.blocks.MIN_BLOCK_PIXELS", pixels)
    mask = np.random.default_rng(3).random(SHAPE) < 0.7 if masked else None
    given = [segmentation(stored(side, order)) for side in sides]
    images = SegmentationPair.of(*given, mask=mask, workers=3)
    assert (len(images.blocks.blocks) > 2) == (pixels < 1000)
    totals = images._run(Pass(neighbour_products, summed, halo=HALO))
    copy = pickle.loads(pickle.dumps(images.blocks))  # for another process
    assert copy.order == images.blocks.order
    expected = whole_products(sides, True if mask is None else mask)
    np.testing.assert_allclose(totals, expected, rtol=1e-6)


def test_a_halo_is_read_from_memory_next_to_a_store(monkeypatch):
    """One side in memory, the other a Dask array, whose chunks the blocks follow."""
    dask_array = pytest.importorskip("dask.array")
    sides = soft(np.float64, 1), soft(np.float64, 2)
    chunked = dask_array.from_array(sides[1], chunks=(3, 3, 3, 4))
    monkeypatch.setattr("probdice.engine.blocks.BLOCK_BYTES", 1)
    monkeypatch.setattr("probdice.engine.blocks.MIN_BLOCK_PIXELS", 30)
    images = SegmentationPair.of(segmentation(sides[0]), segmentation(chunked), workers=2)
    assert len(images.blocks.blocks) > 4
    totals = images._run(Pass(neighbour_products, summed, halo=HALO))
    np.testing.assert_allclose(totals, whole_products(sides, True), rtol=1e-12)


@pytest.mark.parametrize("shape", [(), (5,), (4, 6), (1, 3, 5), (3, 1, 4)])
def test_the_range_of_a_box_is_the_numbers_of_its_pixels(shape):
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    for block in cut(shape, 4):
        for halo in (0, 1):
            box = block.around(halo, shape).box
            pixels = numbers[box].reshape(-1)
            consecutive = np.array_equal(pixels, np.arange(pixels[0], pixels[0] + pixels.size))
            found = Block(box, 0).range_in(shape)
            assert (found is not None) == consecutive
            assert found is None or list(found) == pixels.tolist()
