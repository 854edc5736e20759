"""Images cut into blocks, and blocks made ready for a kernel."""

import numpy as np
import pytest

from probdice import Segmentation, compare
from probdice.engine import blocks as engine_blocks
from probdice.engine.blocks import Block, Blocks, Crisp, cut


def soft(regions, shape, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    p = rng.random((regions, *shape), dtype=np.float32) ** 4
    return (p / p.sum(0)).astype(dtype)


def test_arrays_are_not_copied_where_they_lie_well():
    p = soft(3, (20, 30, 40))
    for array, axis in ((p, 0), (np.asfortranarray(np.moveaxis(p, 0, -1)), -1)):
        segmentation = Segmentation.from_probabilities(array, axis=axis)
        blocks = Blocks(segmentation, segmentation)
        rows = blocks.ready(blocks.blocks[0]).sides[0].rows
        assert np.shares_memory(rows, array)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 4), (5, 1, 6), (2, 3, 4, 5)])
@pytest.mark.parametrize("most", [1, 3, 7, 1000])
def test_blocks_cover_every_pixel_once_in_order(shape, most):
    count = np.zeros(shape, int)
    position = 0
    for block in cut(shape, most):
        assert block.start == position
        assert count[block.box].size == block.stop - block.start <= most
        count[block.box] += 1
        position = block.stop
    assert np.all(count == 1)


def test_float16_and_mixed_types_meet():
    p = soft(3, (40, 50), dtype=np.float16).astype(np.float64)
    half = Segmentation.from_probabilities(p.astype(np.float16))
    double = Segmentation.from_probabilities(p)
    assert compare(half, double, match="labels").score == 1


def small_blocks(monkeypatch, *sides, mask=None, pixels=3):
    monkeypatch.setattr(engine_blocks, "FEWEST_PIXELS", pixels)
    monkeypatch.setattr(engine_blocks, "BLOCK_BYTES", 1)
    return Blocks(*sides, mask=mask)


def test_a_block_has_at_least_the_fewest_pixels_however_many_regions():
    labels = np.zeros(3 * engine_blocks.FEWEST_PIXELS, np.uint8)
    many = np.zeros((4000, labels.size), np.float16)
    many[0] = 1
    blocks = Blocks(Segmentation.from_labels(labels), Segmentation.from_probabilities(many))
    assert [block.stop - block.start for block in blocks.blocks] == [4096] * 3
    assert engine_blocks.BLOCK_BYTES == 2**24


def test_pixels_outside_the_mask_and_ignored_labels_are_left_out(monkeypatch):
    reference = Segmentation.from_labels([1, 2, 255, 1, 2, 2, 2], ignore=[255])
    prediction = Segmentation.from_probabilities([[0.5] * 7, [0.5] * 7])
    mask = np.array([1, 1, 1, 0, 1, 1, 1])
    blocks = small_blocks(monkeypatch, reference, prediction, mask=mask)
    assert not blocks.whole
    ready = [blocks.ready(block) for block in blocks.blocks]
    assert [None if part.inside is None else part.inside.tolist() for part in ready] == [
        [0, 1],
        [1, 2],
        None,
    ]
    labels = [part.sides[0].labels[part.sides[0].codes].tolist() for part in ready]
    assert labels == [[1, 2], [2, 2], [2]]
    assert [part.sides[1].size for part in ready] == [2, 2, 1]


def test_labels_of_a_block_are_codes(monkeypatch):
    labels = Segmentation.from_labels(np.array([7.0, 7.0, -5.0, np.nan, 2.5, 9.0]))
    blocks = small_blocks(monkeypatch, labels)
    first, second = (blocks.ready(block) for block in blocks.blocks)
    assert isinstance(first.sides[0], Crisp)
    assert first.sides[0].labels[first.sides[0].codes].tolist() == [7, 7, -5]
    assert first.faults == (None,)
    assert (second.faults[0].kind, second.faults[0].count, second.faults[0].first) == (
        "fraction",
        2,
        0,
    )


def test_the_traversal_follows_the_memory_of_the_larger_array():
    p = np.asfortranarray(soft(2, (3, 4, 5)))
    blocks = Blocks(Segmentation.from_probabilities(p), Segmentation.from_labels(p[0] > 0.5))
    assert blocks.order == (2, 1, 0)
    assert blocks.place(1) == (1, 0, 0)
    flat = np.arange(60)
    assert blocks.image(flat)[1, 0, 0] == 1
    assert blocks.image(flat).shape == (3, 4, 5)


def test_label_maps_are_read_as_they_lie():
    labels = np.zeros((30, 40), np.int8)
    both = [Segmentation.from_labels(labels)] * 2
    block = Block((slice(0, 30), slice(None)), 0, 1200)
    assert all(np.shares_memory(side, labels) for side in Blocks(*both).labels_of(block))
    assert Blocks(*both, mask=labels == 0).labels_of(block) is None
    assert Blocks(both[0], Segmentation.from_labels(labels > 0)).labels_of(block) is None
    swapped = Segmentation.from_labels(labels.astype(">i2"))
    assert Blocks(both[0], swapped).labels_of(block) is None


def test_an_image_without_pixels_has_no_blocks_to_fill():
    empty = Segmentation.from_labels(np.zeros((0, 3), int))
    assert sum(block.stop - block.start for block in Blocks(empty, empty).blocks) == 0


def test_what_is_not_aligned_in_memory_is_copied():
    packed = np.zeros(7, np.dtype([("pad", "u1"), ("value", "f4")]))
    packed["value"] = [1, 0, 1, 0, 1, 0, 1]
    p = np.stack([packed["value"], 1 - packed["value"]])
    odd = np.frombuffer(b"x" + p.tobytes(), np.uint8)[1:].view("f4").reshape(p.shape)
    assert compare(odd, p, match="labels").score == 1
    assert compare(Segmentation.from_labels(packed["value"]), [1, 0, 1, 0, 1, 0, 1]).score == 1
