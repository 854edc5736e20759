"""Images cut into blocks, and blocks made ready for a kernel."""

import gc
import weakref

import numpy as np
import pytest

from probdice import InputError, Segmentation, compare
from probdice.engine import blocks as engine_blocks
from probdice.engine.blocks import Blocks
from probdice.engine.decode import Crisp
from probdice.engine.grids import Block, Store, cut, cut_along_chunks


def soft(regions, shape, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    p = rng.random((regions, *shape), dtype=np.float32) ** 4
    return (p / p.sum(0)).astype(dtype)


def test_arrays_in_a_suitable_layout_are_not_copied():
    p = soft(3, (20, 30, 40))
    for array, axis in ((p, 0), (np.asfortranarray(np.moveaxis(p, 0, -1)), -1)):
        segmentation = Segmentation.from_probabilities(array, axis=axis)
        blocks = Blocks(segmentation, segmentation)
        rows = blocks.decode(blocks.blocks[0]).sides[0].rows
        assert np.shares_memory(rows, array)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 4), (5, 1, 6), (2, 3, 4, 5)])
@pytest.mark.parametrize("most", [1, 3, 7, 1000])
def test_blocks_cover_every_pixel_once_in_order(shape, most):
    count = np.zeros(shape, int)
    position = 0
    for block in cut(shape, most):
        assert block.start == position
        assert count[block.box].size == block.size <= most
        count[block.box] += 1
        position += block.size
    assert np.all(count == 1)


def test_float16_and_mixed_types_are_compared():
    p = soft(3, (40, 50), dtype=np.float16).astype(np.float64)
    half = Segmentation.from_probabilities(p.astype(np.float16))
    double = Segmentation.from_probabilities(p)
    assert compare(half, double, match="labels").score == 1


def small_blocks(monkeypatch, *sides, mask=None, pixels=3):
    monkeypatch.setattr(engine_blocks, "MIN_BLOCK_PIXELS", pixels)
    monkeypatch.setattr(engine_blocks, "BLOCK_BYTES", 1)
    return Blocks(*sides, mask=mask)


def test_a_block_has_the_minimum_of_pixels_for_any_number_of_regions():
    labels = np.zeros(3 * engine_blocks.MIN_BLOCK_PIXELS, np.uint8)
    many = np.zeros((4000, labels.size), np.float16)
    many[0] = 1
    blocks = Blocks(Segmentation.from_labels(labels), Segmentation.from_probabilities(many))
    assert [block.size for block in blocks.blocks] == [4096] * 3
    assert engine_blocks.BLOCK_BYTES == 2**24


def test_pixels_outside_the_mask_and_ignored_labels_are_left_out(monkeypatch):
    reference = Segmentation.from_labels([1, 2, 255, 1, 2, 2, 2], ignore=[255])
    prediction = Segmentation.from_probabilities([[0.5] * 7, [0.5] * 7])
    mask = np.array([1, 1, 1, 0, 1, 1, 1])
    blocks = small_blocks(monkeypatch, reference, prediction, mask=mask)
    assert not blocks.includes_all
    ready = [blocks.decode(block) for block in blocks.blocks]
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
    first, second = (blocks.decode(block) for block in blocks.blocks)
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
    assert blocks.position_of(1) == (1, 0, 0)
    values = np.arange(60).reshape(5, 4, 3)
    assert blocks.image(values)[1, 0, 0] == 1
    assert blocks.image(values).shape == (3, 4, 5)


def test_label_maps_are_read_without_a_copy():
    labels = np.zeros((30, 40), np.int8)
    both = [Segmentation.from_labels(labels)] * 2
    block = Block((slice(0, 30), slice(0, 40)), 0)
    assert all(np.shares_memory(side, labels) for side in Blocks(*both).labels_of(block))
    assert Blocks(*both, mask=labels == 0).labels_of(block) is None
    assert Blocks(both[0], Segmentation.from_labels(labels > 0)).labels_of(block) is None
    swapped = Segmentation.from_labels(labels.astype(">i2"))
    assert Blocks(both[0], swapped).labels_of(block) is None


def test_an_image_without_pixels_has_no_blocks_to_fill():
    empty = Segmentation.from_labels(np.zeros((0, 3), int))
    assert sum(block.size for block in Blocks(empty, empty).blocks) == 0


def test_arrays_that_are_not_aligned_in_memory_are_copied():
    packed = np.zeros(7, np.dtype([("pad", "u1"), ("value", "f4")]))
    packed["value"] = [1, 0, 1, 0, 1, 0, 1]
    p = np.stack([packed["value"], 1 - packed["value"]])
    odd = np.frombuffer(b"x" + p.tobytes(), np.uint8)[1:].view("f4").reshape(p.shape)
    assert compare(odd, p, match="labels").score == 1
    assert compare(Segmentation.from_labels(packed["value"]), [1, 0, 1, 0, 1, 0, 1]).score == 1


# -- blocks that follow chunks -------------------------------------------------------------------


class Chunked:
    """An array that is stored in chunks and counts how often each of them is decoded."""

    def __init__(self, array, chunks):
        self.array, self.chunks = array, chunks
        self.shape, self.dtype = array.shape, array.dtype
        self.decoded = np.zeros([-(-n // c) for n, c in zip(self.shape, chunks, strict=True)], int)
        self.largest = 0

    def __getitem__(self, box):
        touched = tuple(
            slice(part.start // c, -(-part.stop // c)) if part.start is not None else slice(None)
            for part, c in zip(box, self.chunks, strict=True)
        )
        self.decoded[touched] += 1
        values = self.array[box]
        self.largest = max(self.largest, values.nbytes)
        return values


def labels(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 9, shape).astype(np.uint32)


def test_chunks_of_equal_grids_are_decoded_once(monkeypatch):
    monkeypatch.setattr(engine_blocks, "BLOCK_BYTES", 2**17)
    monkeypatch.setattr(engine_blocks, "MAX_BLOCK_BYTES", 2**19)
    p, q = (Chunked(labels((90, 70, 83), seed), (16, 16, 16)) for seed in (0, 1))
    result = compare(p, q, workers=2)
    assert len(result.images.blocks.blocks) > 10
    assert (p.decoded == 1).all() and (q.decoded == 1).all()
    assert result.to_json() == compare(p.array, q.array).to_json()


def test_chunks_of_unequal_grids_are_decoded_at_most_twice_on_average(monkeypatch):
    monkeypatch.setattr(engine_blocks, "BLOCK_BYTES", 2**17)
    monkeypatch.setattr(engine_blocks, "MAX_BLOCK_BYTES", 2**19)
    p = Chunked(labels((96, 96, 96), 0), (16, 16, 16))
    q = Chunked(labels((96, 96, 96), 1), (24, 24, 24))
    result = compare(p, q)
    assert result.to_json() == compare(p.array, q.array).to_json()
    count = p.decoded.size + q.decoded.size
    assert (p.decoded.sum() + q.decoded.sum()) / count <= 2
    assert p.largest + q.largest <= 2**19


def test_64_and_96_share_blocks_of_192():
    stores = [Store(((64,) * 12,) * 3, 1), Store(((96,) * 8,) * 3, 1)]
    assert cut_along_chunks((768,) * 3, stores, 2**21, 2**23).lengths == ((192,) * 4,) * 3


def test_small_chunks_are_put_together_and_large_ones_are_read_in_parts():
    small = cut_along_chunks((1000,) * 3, [Store(((10,) * 100,) * 3, 1)], 10**6, 4 * 10**6)
    assert len(small) < 2000
    assert all(edge % 10 == 0 for edges in small.cuts for edge in edges)
    large = cut_along_chunks((1000,) * 3, [Store(((500,) * 2,) * 3, 1)], 10**6, 4 * 10**6)
    assert max(block.size for block in large) <= 4 * 10**6
    assert all(500 in edges for edges in large.cuts)


def test_chunks_of_any_lengths_are_followed():
    chunks = ((3, 50, 1, 46), (100,), (20, 20, 60))
    grid = cut_along_chunks((100, 100, 100), [Store(chunks, 1)], 10**5, 4 * 10**5)
    assert {0, 3, 53, 54, 100} >= set(grid.cuts[0])
    assert sum(block.size for block in grid) == 10**6


def test_blocks_consist_of_whole_chunks_of_the_output():
    target = ((7,) * 14 + (2,), (100,))
    grid = cut_along_chunks((100, 100), [Store(((10,) * 10, (10,) * 10), 1)], 1500, 1500, target)
    assert all(edge % 7 == 0 for edge in grid.cuts[0][:-1])
    assert set(grid.cuts[1]) == {0, 100}


@pytest.mark.parametrize("ignore", [(), (3,)])
@pytest.mark.parametrize("masked", [False, True])
def test_a_block_is_read_once_for_all_passes(ignore, masked):
    p = Chunked(labels((40, 40), 0), (16, 16))
    q = Chunked(labels((40, 40), 1), (16, 16))
    mask = Chunked(labels((40, 40), 2) > 2, (16, 16)) if masked else None
    reference = Segmentation.from_labels(p, ignore=ignore)
    result = compare(reference, q, mask=mask)
    assert (p.decoded == 1).all() and (q.decoded == 1).all()
    plain = Segmentation.from_labels(p.array, ignore=ignore)
    expected = compare(plain, q.array, mask=None if mask is None else mask.array)
    assert result.to_json() == expected.to_json()


@pytest.mark.parametrize("similarity", ["absolute", "aitchison"])
def test_soft_results_do_not_depend_on_the_chunks(monkeypatch, similarity):
    monkeypatch.setattr(engine_blocks, "BLOCK_BYTES", 2**17)
    monkeypatch.setattr(engine_blocks, "MAX_BLOCK_BYTES", 2**19)
    p, q = soft(3, (50, 60, 40), 1) + np.float32(1e-3), soft(4, (50, 60, 40), 2) + np.float32(1e-3)
    p, q = p / p.sum(0), q / q.sum(0)
    results = [
        compare(Chunked(p, (3, *a)), Chunked(q, (2, *b)), merge="both", similarity=similarity)
        for a, b in (
            [(50, 60, 40), (50, 60, 40)],
            [(16, 16, 16), (16, 16, 16)],
            [(7, 60, 11), (13, 20, 40)],
        )
    ]
    assert len({len(result.images.blocks.blocks) for result in results}) == 3
    for name in ("score", "matched_score", "chance"):
        numbers = [getattr(result, name) for result in results]
        assert max(numbers) - min(numbers) <= 1e-12
    for side in ("reference", "prediction"):
        numbers = [result.explained[side] for result in results]
        assert max(numbers) - min(numbers) <= 1e-12
    maps = [result.map() for result in results]
    assert np.abs(maps[0] - maps[1]).max() <= 1e-6 and np.abs(maps[0] - maps[2]).max() <= 1e-6


def test_the_pixel_of_an_error_is_that_of_the_whole_image(monkeypatch):
    monkeypatch.setattr(engine_blocks, "MIN_BLOCK_PIXELS", 64)
    monkeypatch.setattr(engine_blocks, "BLOCK_BYTES", 1)
    monkeypatch.setattr(engine_blocks, "MAX_BLOCK_BYTES", 1)
    p = soft(2, (20, 20))
    p[0, 3, 17] = p[0, 13, 2] = 1.5
    for array in (p, Chunked(p, (2, 8, 8)), Chunked(p, (2, 20, 5))):
        with pytest.raises(InputError, match=r"1.5 at pixel \(3, 17\) \(the first of 2 such"):
            compare(array, p[:, ::-1])


def test_values_are_freed_with_the_blocks():
    """Without the garbage collector, which a worker with few objects seldom runs."""
    p = Chunked(np.arange(24, dtype=np.int32).reshape(2, 3, 4), (1, 3, 4))
    blocks = Blocks(Segmentation.from_labels(p), Segmentation.from_labels(p))
    gc.disable()
    try:
        sides = blocks.decode(blocks.blocks[0]).sides
        values = [weakref.ref(side.codes.base) for side in sides]  # buffers of the blocks
        del sides
        assert all(reference() is not None for reference in values)
        del blocks
        assert all(reference() is None for reference in values)
    finally:
        gc.enable()
