"""Passes as tasks of Dask: the same results on every scheduler, and failures that name a chunk."""

import os

import numpy as np
import pytest
from extras import require

require("dask", "distributed", "zarr")

import dask
import dask.array as da
import zarr
from distributed import Client, LocalCluster

from probdice import InputError, ProbdiceError, Segmentation, compare
from probdice.engine import blocks as engine_blocks
from probdice.engine import dask as engine_dask
from probdice.engine import dask_graphs, dask_schedulers
from probdice.engine.threads import watcher

SHAPE = (40, 45, 50)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Blocks so small that there are many."""
    monkeypatch.setattr(engine_blocks, "BLOCK_BYTES", 2**15)
    monkeypatch.setattr(engine_blocks, "MAX_BLOCK_BYTES", 2**17)


@pytest.fixture(scope="module")
def cluster():
    with (
        dask.config.set({"distributed.worker.profile.enabled": False}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        yield client


@pytest.fixture(params=["synchronous", "threads", "cluster"])
def scheduler(request):
    """Every scheduler in turn."""
    if request.param == "cluster":
        request.getfixturevalue("client")
        yield "cluster"
        return
    with dask.config.set(scheduler=request.param):
        yield request.param


def labels(seed=0, shape=SHAPE):
    return np.random.default_rng(seed).integers(0, 7, shape).astype(np.uint16)


def soft(regions, seed=0):
    p = np.random.default_rng(seed).random((regions, *SHAPE)) + 1e-3
    return p / p.sum(0)


def stored(folder, array, chunks, name):
    target = zarr.create_array(folder / name, shape=array.shape, chunks=chunks, dtype=array.dtype)
    target[...] = array
    return zarr.open(folder / name, mode="r")


def test_label_maps_give_identical_results(scheduler):
    p, q = labels(0), labels(1)
    expected = compare(p, q, merge="both")
    result = compare(
        da.from_array(p, chunks=13), da.from_array(q, chunks=(40, 9, 50)), merge="both"
    )
    assert len(result.images.blocks.blocks) > 3
    assert result.to_json() == expected.to_json()


def test_stores_run_where_a_scheduler_is_chosen(scheduler, tmp_path, monkeypatch):
    p, q = labels(0), labels(1)
    stores = stored(tmp_path, p, (16, 16, 16), "p"), stored(tmp_path, q, (24, 24, 24), "q")
    ran = []
    run = engine_dask.DaskScheduler.run

    def counted(self, task, blocks):
        ran.append(task.name)
        return run(self, task, blocks)

    monkeypatch.setattr(engine_dask.DaskScheduler, "run", counted)
    assert compare(*stores).to_json() == compare(p, q).to_json()
    assert ran == ["checked_overlap"]


def test_stores_run_on_threads_where_none_is_chosen(tmp_path, monkeypatch):
    p = labels(0)
    store = stored(tmp_path, p, (16, 16, 16), "p")
    monkeypatch.setattr(engine_dask.DaskScheduler, "run", None)
    assert compare(store, p).score == 1


@pytest.mark.parametrize("similarity", ["absolute", "aitchison"])
def test_soft_results_agree(scheduler, similarity):
    p, q = soft(3, 0), soft(4, 1)
    expected = compare(p, q, similarity=similarity, merge="both")
    result = compare(
        da.from_array(p, chunks=(1, 20, 20, 20)),
        da.from_array(q, chunks=(4, 13, 45, 17)),
        similarity=similarity,
        merge="both",
    )
    for name in ("score", "matched_score", "chance"):
        assert abs(getattr(result, name) - getattr(expected, name)) <= 1e-12
    for side in ("reference", "prediction"):
        assert abs(result.explained[side] - expected.explained[side]) <= 1e-12
    assert [group.prediction for group in result.groups] == [
        group.prediction for group in expected.groups
    ]


def test_soft_results_are_the_same_to_the_bit_on_every_scheduler(client, tmp_path):
    p, q = (da.from_array(soft(3, seed), chunks=(3, 16, 16, 16)) for seed in (0, 1))
    on_cluster = compare(p, q).to_json()
    with dask.config.set(scheduler="threads"):
        assert compare(p, q).to_json() == on_cluster


def test_processes_give_the_numbers_of_threads(tmp_path):
    p, q = labels(0), labels(1)
    stores = stored(tmp_path, p, (16, 16, 16), "p"), stored(tmp_path, q, (24, 24, 24), "q")
    with dask_schedulers.scheduled("processes", 2):
        assert compare(*stores).to_json() == compare(p, q).to_json()


def test_masks_ignored_labels_and_names(scheduler):
    p, q, mask = labels(0), labels(1), labels(2) > 1
    names = {1: "one", 2: "two"}
    expected = compare(Segmentation.from_labels(p, ignore=3, names=names), q, mask=mask)
    for given in (mask, da.from_array(mask, chunks=11)):
        reference = Segmentation.from_labels(da.from_array(p, chunks=13), ignore=3, names=names)
        result = compare(reference, da.from_array(q, chunks=17), mask=given)
        assert result.to_json() == expected.to_json()


def test_an_array_in_memory_against_a_dask_array(scheduler):
    p, q = labels(0), labels(1)
    assert compare(p, da.from_array(q, chunks=20)).to_json() == compare(p, q).to_json()


def test_a_map_of_dask_arrays_is_a_dask_array(scheduler):
    p, q, mask = labels(0), labels(1), labels(2) > 1
    expected = compare(p, q, mask=mask).map()
    result = compare(da.from_array(p, chunks=13), da.from_array(q, chunks=17), mask=mask)
    image = result.map()
    assert isinstance(image, da.Array)
    assert image.dtype == np.float32 and image.shape == SHAPE
    assert np.array_equal(image.compute(), expected, equal_nan=True)


def test_a_map_of_probabilities_is_a_dask_array():
    p, q = soft(3, 0), soft(4, 1)
    image = compare(da.from_array(p, chunks=(3, 20, 20, 20)), q).map()
    assert isinstance(image, da.Array)
    assert np.abs(image.compute() - compare(p, q).map()).max() <= 1e-6


def test_the_relabelled_prediction_is_a_dask_array(scheduler):
    p, q = labels(0), labels(1)
    relabelled = compare(p, da.from_array(q, chunks=17)).relabelled()
    assert isinstance(relabelled.array, da.Array)
    expected = compare(p, q).relabelled()
    assert np.array_equal(relabelled.array.compute(), expected.array)
    assert relabelled.array.dtype == expected.array.dtype
    p, q = soft(3, 0), soft(4, 1)
    regrouped = compare(
        p, da.from_array(q, chunks=(4, 20, 20, 20)), merge="prediction"
    ).relabelled()
    assert isinstance(regrouped.array, da.Array)
    expected = compare(p, q, merge="prediction").relabelled()
    assert np.abs(regrouped.probabilities() - expected.probabilities()).max() <= 1e-12


def test_an_array_is_written_to_chunk_by_chunk(scheduler, tmp_path):
    p, q = labels(0), labels(1)
    stores = stored(tmp_path, p, (16, 16, 16), "p"), stored(tmp_path, q, (24, 24, 24), "q")
    target = zarr.create_array(tmp_path / "map", shape=SHAPE, chunks=(7, 45, 50), dtype="float32")
    result = compare(*stores)
    assert result.map(into=target) is target
    assert np.array_equal(target[...], compare(p, q).map())


def test_the_pixel_of_an_error_is_that_of_the_whole_image(scheduler):
    p = soft(2)
    p[0, 31, 2, 49] = 1.5
    with pytest.raises(InputError, match=r"1.5 at voxel \(31, 2, 49\)"):
        compare(da.from_array(p, chunks=(2, 16, 16, 16)), soft(2, 1))


def broken(values, block_info=None):
    if block_info and block_info[0]["chunk-location"] == (1, 0, 2):
        raise KeyError("no such tile")
    return values


def test_a_failing_task_names_the_chunk(scheduler):
    p = da.from_array(labels(0), chunks=(20, 45, 16)).map_blocks(broken, dtype=np.uint16)
    with pytest.raises(ProbdiceError, match=r"chunks at \[20:40, .*, 32:48\]: KeyError"):
        compare(p, labels(1))


def test_a_store_that_fails_names_the_chunk(scheduler, tmp_path):
    store = stored(tmp_path, labels(0), (20, 45, 50), "p")
    (tmp_path / "p" / "c" / "1" / "0" / "0").write_bytes(b"damaged")
    with pytest.raises(ProbdiceError, match=r"chunks at \[20:40"):
        compare(store, labels(1))


def test_progress_is_over_blocks(scheduler):
    seen = []
    token = watcher.set(lambda done, blocks: seen.append((done, blocks)))
    try:
        result = compare(da.from_array(labels(0), chunks=13), labels(1))
    finally:
        watcher.reset(token)
    blocks = len(result.images.blocks.blocks)
    assert seen[-1] == (blocks, blocks)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_tasks_are_submitted_in_rounds(client, monkeypatch):
    monkeypatch.setattr(engine_dask, "ROUND", 4)
    sizes = []
    compute = client.compute
    monkeypatch.setattr(
        client, "compute", lambda task: sizes.append(len(task.dask)) or compute(task)
    )
    p, q = labels(0), labels(1)
    result = compare(da.from_array(p, chunks=10), q)
    assert result.to_json() == compare(p, q).to_json()
    assert len(sizes) >= len(result.images.blocks.blocks) / 4
    assert max(sizes) < 100  # of 100 chunks and the tasks that read them


def test_arrays_in_the_memory_of_workers_are_not_moved(client):
    p, q = labels(0), labels(1)
    held = da.from_array(p, chunks=13).persist()
    assert compare(held, da.from_array(q, chunks=17)).to_json() == compare(p, q).to_json()


def test_tasks_that_all_blocks_need_are_done_once():
    p, q = labels(0) + 3, labels(1)
    done = []

    def counted(values):
        done.append(values.shape)
        return values

    whole = da.from_array(p, chunks=SHAPE).map_blocks(counted, meta=p[:0]).rechunk(13)
    with dask.config.set(scheduler="synchronous"):
        result = compare(whole - whole.min(), q)
    assert result.to_json() == compare(p - 3, q).to_json()
    assert len(result.images.blocks.blocks) > 5
    assert done == [SHAPE]


def test_the_scheduler_gets_one_task_per_block_for_any_number_of_chunks(client, monkeypatch):
    sizes = []
    compute = client.compute
    monkeypatch.setattr(
        client, "compute", lambda task: sizes.append(len(task.dask)) or compute(task)
    )
    p, q = labels(0), labels(1)
    result = compare(*(da.from_array(x, chunks=5) for x in (p, q)))  # 720 chunks each
    assert result.to_json() == compare(p, q).to_json()
    assert sum(sizes) < 2 * len(result.images.blocks.blocks) + 10


def test_a_dask_array_that_only_reads_a_store_is_read_by_blocks(scheduler, tmp_path):
    p, q = labels(0), labels(1)
    store = stored(tmp_path, p, (9, 9, 9), "p")
    expected = compare(p, q).to_json()
    for array in (da.from_zarr(store), da.from_zarr(store, chunks=20), da.from_array(store)):
        assert dask_graphs.origin_of(array).store_path == store.store_path
        assert compare(array, q).to_json() == expected
        assert isinstance(compare(array, q).map(), da.Array)


def test_a_dask_array_that_computes_is_not_replaced_by_its_store(tmp_path):
    p, q = labels(0), labels(1)
    store = stored(tmp_path, p, (9, 9, 9), "p")

    def reversed_labels(array, index, *_, **__):
        return 6 - np.asarray(array[index])

    other = da.from_array(store, getitem=reversed_labels)
    assert compare(other, q).to_json() == compare(6 - p, q).to_json()
    for array in (other, da.from_zarr(store) + 1, da.from_array(p), da.from_zarr(store)[::-1]):
        assert dask_graphs.origin_of(array) is array


def test_flipped_axes_stay_tasks():
    from probdice import Geometry

    p = labels(0)
    here = Geometry(SHAPE, np.eye(4))
    affine = np.diag([-1.0, 1.0, 1.0, 1.0])
    affine[0, 3] = SHAPE[0] - 1
    flipped = Segmentation.from_labels(
        da.from_array(p[::-1], chunks=13), geometry=Geometry(SHAPE, affine)
    )
    result = compare(Segmentation.from_labels(p, geometry=here), flipped)
    assert result.score == 1
    assert isinstance(result.images.prediction.array, da.Array)


def test_threads_are_used_inside_a_dask_task(client):
    def inner():
        from probdice.engine.dask_schedulers import selected_scheduler

        return selected_scheduler() is None, os.getpid()

    assert client.submit(inner).result()[0]


def test_an_address_without_a_scheduler_is_rejected(monkeypatch):
    monkeypatch.setattr(dask_schedulers, "TIMEOUT", 0.5)
    with pytest.raises(InputError, match=r"no Dask scheduler responds at tcp://127\.0\.0\.1:1"):  # noqa: SIM117
        with dask_schedulers.scheduled("tcp://127.0.0.1:1"):
            pass
    with pytest.raises(InputError, match="must be 'threads', 'processes' or an address"):  # noqa: SIM117
        with dask_schedulers.scheduled("slurm"):
            pass


def test_pixels_at_which_regions_are_the_likeliest_add_up_over_chunks(scheduler):
    p = np.random.default_rng(3).dirichlet([1, 1, 0.01], (20, 30)).transpose(2, 0, 1)
    truth = labels(4, (20, 30)) % 2
    chunked = Segmentation.from_probabilities(da.from_array(p, chunks=(3, 7, 11)))
    table = compare(da.from_array(truth, chunks=(7, 11)), chunked).overlap
    expected = (p.max(axis=0) - p <= 1e-6).sum(axis=(1, 2))
    assert table.prediction.likeliest.tolist() == expected.tolist()
