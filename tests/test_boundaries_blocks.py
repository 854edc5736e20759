"""Boundary distances of images that are read in blocks: cuts, workers, stores and Dask."""

import numpy as np
import pytest

from probdice import Geometry, Segmentation, compare
from probdice.engine import blocks as engine_blocks
from probdice.engine import surface_distances
from probdice.engine.executors import Threads, using

TOLERANCES = (0.5, 1.5)


class Lazy:
    """An array in chunks that can only be sliced."""

    def __init__(self, array, *chunk):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.chunks = tuple(
            tuple(np.diff([*range(0, n, step), n]).tolist())
            for n, step in zip(array.shape, chunk, strict=True)
        )

    def __getitem__(self, index):
        return self.array[index]


def random_labels(shape, seed, groups=3):
    rng = np.random.default_rng(seed)
    field = rng.normal(size=(groups + 1, *shape))
    maps = []
    for _ in range(2):
        noisy = field + 0.4 * rng.normal(size=field.shape)
        for axis in range(1, field.ndim):
            noisy = (np.roll(noisy, 1, axis) + 2 * noisy + np.roll(noisy, -1, axis)) / 4
        maps.append(noisy.argmax(axis=0).astype(np.int16))
    return maps


def random_probabilities(shape, seed):
    rng = np.random.default_rng(seed)
    field = rng.normal(size=(3, *shape))
    sides = []
    for _ in range(2):
        weights = np.exp(2 * field + 0.5 * rng.normal(size=field.shape))
        sides.append(weights / weights.sum(axis=0))
    return sides


def placed(array, affine, crisp=True):
    make = Segmentation.from_labels if crisp else Segmentation.from_probabilities
    shape = array.shape if crisp else array.shape[1:]
    return make(array, geometry=Geometry(shape, affine))


AFFINE = np.array([[0, -0.7, 0, 4], [2.5, 0, 0.1, 0], [0, 0.2, 1.3, 0], [0, 0, 0, 1.0]])


def affine_for(shape):
    return AFFINE if len(shape) == 3 else AFFINE[[0, 1, 3]][:, [0, 1, 3]]


def same(one, two):
    for name in one.names:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few chunks."""
    monkeypatch.setattr(engine_blocks, "BLOCK_BYTES", 64)
    monkeypatch.setattr(engine_blocks, "MAX_BLOCK_BYTES", 256)
    monkeypatch.setattr(engine_blocks, "MIN_BLOCK_PIXELS", 16)


@pytest.mark.parametrize(
    ("shape", "chunk"), [((13, 11), (4, 5)), ((9, 8, 10), (4, 3, 10)), ((9, 8, 10), (9, 8, 3))]
)
@pytest.mark.parametrize("masked", [False, True])
def test_label_maps_give_the_same_numbers_for_any_cut(shape, chunk, masked, small_blocks):
    reference, prediction = random_labels(shape, 1)
    mask = np.random.default_rng(2).random(shape) < 0.9 if masked else None
    affine = affine_for(shape)
    options = {"tolerances": TOLERANCES, "percentiles": (95, 50)}
    whole = compare(placed(reference, affine), placed(prediction, affine), mask=mask)
    lazy = [placed(Lazy(side, *chunk), affine) for side in (reference, prediction)]
    result = compare(*lazy, mask=mask)
    assert len(result.images.blocks.blocks) > 3
    same(result.boundaries(**options), whole.boundaries(**options))


@pytest.mark.parametrize("shape", [(13, 11), (7, 8, 6)])
def test_probabilities_give_the_same_numbers_for_any_cut(shape, small_blocks):
    sides = random_probabilities(shape, 3)
    affine = affine_for(shape)
    whole = compare(*(placed(side, affine, crisp=False) for side in sides), match="labels")
    lazy = [placed(Lazy(side, 3, *(4 for _ in shape)), affine, crisp=False) for side in sides]
    result = compare(*lazy, match="labels")
    expected = whole.boundaries(tolerances=TOLERANCES)
    boundaries = result.boundaries(tolerances=TOLERANCES)
    assert boundaries.levels == expected.levels
    for name in expected.names:
        np.testing.assert_array_equal(boundaries.by_level(name), expected.by_level(name))


def test_a_label_map_against_probabilities_is_the_set_at_every_level(small_blocks):
    labels, probabilities = (
        random_labels((12, 10), 4, groups=2)[0],
        random_probabilities((12, 10), 4)[1],
    )
    expected = compare(labels, probabilities, match="labels").boundaries()
    lazy = compare(Lazy(labels, 5, 5), Lazy(probabilities, 3, 5, 5), match="labels").boundaries()
    same(lazy, expected)


@pytest.mark.parametrize("workers", [1, 3])
def test_results_do_not_depend_on_workers_or_on_the_size_of_bricks(
    workers, small_blocks, monkeypatch
):
    monkeypatch.setattr(surface_distances, "MAX_UNDIVIDED_CELLS", -1)
    monkeypatch.setattr(surface_distances, "MAX_DENSE_CELLS", 0)
    rng = np.random.default_rng(6)
    reference, prediction = np.zeros((2, 40, 36, 45), np.uint8)
    reference[3:20, 4:18, 5:30] = rng.random((17, 14, 25)) < 0.9
    prediction[15:38, 10:30, 20:44] = rng.random((23, 20, 24)) < 0.9
    affine = np.diag([4.0, 1.0, 0.5, 1.0])
    expected = compare(placed(reference, affine), placed(prediction, affine)).boundaries()
    lazy = [placed(Lazy(side, 16, 16, 16), affine) for side in (reference, prediction)]
    same(compare(*lazy, workers=workers).boundaries(), expected)


def test_the_elements_of_a_group_are_the_same(small_blocks):
    reference, prediction = random_labels((9, 8, 10), 5)
    affine = affine_for((9, 8, 10))
    whole = compare(placed(reference, affine), placed(prediction, affine)).boundaries()
    lazy = [placed(Lazy(side, 4, 4, 4), affine) for side in (reference, prediction)]
    parts = compare(*lazy).boundaries()
    for k in range(len(whole)):
        for side in ("reference", "prediction"):
            for name in ("points", "distances", "weights"):
                one, two = getattr(whole.group(k)[side], name), getattr(parts.group(k)[side], name)
                np.testing.assert_allclose(two, one, atol=1e-12)


# -- stores and schedulers -------------------------------------------------------------------------


@pytest.fixture
def pair():
    return random_labels((20, 18, 16), 7)


def test_zarr_stores_are_read_in_blocks(pair, tmp_path, small_blocks):
    zarr = pytest.importorskip("zarr")
    stores = []
    for name, labels in zip(("a", "b"), pair, strict=True):
        store = zarr.create_array(tmp_path / name, shape=labels.shape, chunks=(8, 8, 8), dtype="i2")
        store[:] = labels
        stores.append(store)
    result = compare(*stores)
    assert len(result.images.blocks.blocks) > 4
    same(result.boundaries(tolerances=TOLERANCES), compare(*pair).boundaries(tolerances=TOLERANCES))


@pytest.mark.parametrize("masked", [False, True])
def test_dask_runs_the_same_pass(pair, masked, small_blocks):
    dask = pytest.importorskip("dask.array")
    mask = np.random.default_rng(0).random(pair[0].shape) < 0.95 if masked else None
    expected = compare(*pair, mask=mask).boundaries(tolerances=TOLERANCES)
    arrays = [dask.from_array(labels, chunks=(7, 9, 16)) for labels in pair]
    boundaries = compare(*arrays, mask=mask).boundaries(tolerances=TOLERANCES)
    same(boundaries, expected)
    np.testing.assert_array_equal(
        boundaries.group(1).prediction.distances, expected.group(1).prediction.distances
    )


def test_every_block_is_visited_once_with_a_halo_of_one_pixel(pair, small_blocks):
    """The pass goes through the executor, which an application can replace."""
    tasks = []

    class Recorded(Threads):
        def run(self, task, blocks):
            tasks.append((task.name, task.halo, len(blocks.blocks)))
            return super().run(task, blocks)

    result = compare(*(Lazy(labels, 8, 8, 8) for labels in pair))
    with using(Recorded(2)):
        boundaries = result.boundaries()
    assert tasks == [("cells", 1, len(result.images.blocks.blocks))]
    same(boundaries, compare(*pair).boundaries())


def test_a_memory_map_in_fortran_order_gives_the_same_numbers(pair, tmp_path):
    maps = []
    for name, labels in zip(("a", "b"), pair, strict=True):
        np.save(tmp_path / f"{name}.npy", np.asfortranarray(labels))
        maps.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    affine = np.diag([3.0, 1.0, 0.5, 1.0])
    expected = compare(*(placed(side, affine) for side in pair)).boundaries()
    boundaries = compare(*(placed(side, affine) for side in maps)).boundaries()
    for name in expected.names:
        np.testing.assert_allclose(boundaries[name], expected[name], atol=1e-12)


def test_memory_is_bounded_by_the_surface(monkeypatch):
    """Two distant balls in a large image: the box of the group is never stored."""
    monkeypatch.setattr(surface_distances, "MAX_DENSE_CELLS", 2**16)
    sizes = []
    assemble = surface_distances.surfaces.assemble
    monkeypatch.setattr(
        surface_distances.surfaces, "assemble", lambda *arguments: kept(assemble(*arguments), sizes)
    )
    monkeypatch.setattr(surface_distances, "MAX_UNDIVIDED_CELLS", 0)
    labels = np.zeros((200, 200, 200), np.uint8)
    for centre in ((12, 12, 12), (188, 188, 188)):
        labels[tuple(slice(k - 8, k + 8) for k in centre)] = 1
    moved = np.roll(labels, 3, axis=2)
    lazy = [Lazy(side, 100, 100, 100) for side in (labels, moved)]
    boundaries = compare(*lazy, match="labels").boundaries()
    assert boundaries["hd"][1] == 3
    box = 190**3
    # The whole background has a surface all around the image; the balls do not.
    assert max(sizes[2:]) < box / 20


def kept(surface, sizes):
    sizes.append(surface.pyramid.bricks.size + surface.pyramid.nodes.size)
    return surface
