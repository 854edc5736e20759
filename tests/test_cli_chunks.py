"""The commands on Zarr stores: Dask schedulers, and images that are written block by block."""

import nibabel
import numpy as np
import pytest
from extras import require

require("dask", "distributed", "zarr")

import dask
import zarr
from distributed import LocalCluster
from test_cli_compare import compare_files, error_of, run
from test_files_zarr import ome

import probdice
from probdice.engine import blocks as engine_blocks

SHAPE = (20, 24, 28)
rng = np.random.default_rng(0)
REFERENCE = rng.integers(0, 5, SHAPE).astype(np.uint16)
PREDICTION = np.where(rng.random(SHAPE) < 0.8, REFERENCE + 10, 3).astype(np.uint16)
EXPECTED = probdice.compare(REFERENCE, PREDICTION)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(engine_blocks, "BLOCK_BYTES", 2**14)
    monkeypatch.setattr(engine_blocks, "MAX_BLOCK_BYTES", 2**15)


@pytest.fixture
def stores(tmp_path):
    names = {"image-label": {"properties": [{"label-value": 1, "name": "one"}]}}
    return [
        str(ome(tmp_path / f"{name}.zarr", array, scale=[2.0, 1.0, 1.0], extra=names))
        for name, array in (("reference", REFERENCE), ("prediction", PREDICTION))
    ]


@pytest.fixture(scope="module")
def address():
    with (
        dask.config.set(
            {"distributed.worker.profile.enabled": False}
        ),  # the profiler can hang in Python 3.11
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            protocol="tcp://",
            host="127.0.0.1",
            dashboard_address=":0",
        ) as cluster,
    ):
        yield cluster.scheduler_address


def test_zarr_stores_are_compared(stores):
    assert compare_files(*stores).score == EXPECTED.score


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_local_schedulers_give_the_same_result(stores, scheduler):
    result = compare_files(*stores, "--scheduler", scheduler, "--workers", 2)
    assert result.overlap.to_dict()["savings"] == EXPECTED.overlap.to_dict()["savings"]


@pytest.mark.parametrize("scheduler", [False, True])
def test_images_are_written_block_by_block(stores, scheduler, request, tmp_path, monkeypatch):
    options = ["--scheduler", request.getfixturevalue("address")] if scheduler else []
    monkeypatch.setattr("probdice.files.write", None)  # it would keep a whole image in memory
    out = tmp_path / "map.zarr", tmp_path / "relabelled.zarr"
    result = compare_files(*stores, "--map", out[0], "--relabelled", out[1], *options)
    assert result.score == EXPECTED.score
    assert np.array_equal(np.asarray(probdice.read(out[0]).array), EXPECTED.map())
    relabelled = probdice.read(out[1])
    assert np.array_equal(np.asarray(relabelled.array), EXPECTED.relabelled().array)
    assert relabelled.names[1] == "one"
    assert np.allclose(relabelled.geometry.spacing, (2e-3, 1e-3, 1e-3))
    assert zarr.open(out[0] / "0").chunks == (10, 12, 14)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_probabilities_are_written_block_by_block(tmp_path):
    p = rng.random((3, *SHAPE)).astype(np.float32) + np.float32(0.01)
    p /= p.sum(0)
    store = ome(tmp_path / "p.zarr", p, axes="czyx")
    done = run("compare", store, store, "--relabelled", tmp_path / "out.zarr")
    assert done.code == 0, done.err
    assert probdice.compare(store, tmp_path / "out.zarr", match="labels").score == 1


def test_a_folder_and_a_store_with_an_input_are_not_replaced(stores, tmp_path):
    (tmp_path / "folder.zarr").mkdir()
    message = error_of(*stores, "--map", tmp_path / "folder.zarr", code=2)
    assert "is a folder, expected a file name" in message
    message = error_of(f"{stores[0]}/0", stores[1], "--map", stores[0], code=2)
    assert "contains an input file (REFERENCE); choose another output store" in message


def test_a_scheduler_without_a_zarr_store_is_rejected(tmp_path):
    nibabel.save(nibabel.Nifti1Image(REFERENCE, np.eye(4)), tmp_path / "a.nii")
    files = [tmp_path / "a.nii"] * 2
    assert "--scheduler has no effect" in error_of(*files, "--scheduler", "threads")
    assert "must be 'threads', 'processes' or an address" in error_of(*files, "--scheduler", "x")


def test_info_describes_a_zarr_store(stores, tmp_path):
    done = run("info", stores[0])
    assert done.code == 0 and "20 × 24 × 28" in done.out and "0.002 0.001 0.001 mm" in done.out
    done = run("info", tmp_path)
    assert done.code == 1
    zarr.create_group(tmp_path / "g.zarr")
    for name in ("a", "b"):
        ome(tmp_path / "g.zarr" / name, REFERENCE)
    done = run("info", tmp_path / "g.zarr")
    assert f"{tmp_path / 'g.zarr'}/a" in done.out.replace("\n", "") and "a label map" in done.out


def test_evaluate_distributes_cases_over_a_cluster(address, tmp_path):
    for name in ("truth", "mine"):
        (tmp_path / name).mkdir()
        for case in range(5):
            labels = REFERENCE if name == "truth" else np.where(rng.random(SHAPE) < 0.9, 1, 2)
            np.save(tmp_path / name / f"case{case}.npy", labels.astype(np.uint8))
    (tmp_path / "mine" / "case4.npy").write_bytes(b"corrupt")
    folders = [tmp_path / "truth", tmp_path / "mine"]
    tables = []
    for out, options in (("local", []), ("cluster", ["--scheduler", address])):
        command = ["evaluate", *folders, "-o", tmp_path / out, "--reports", "none", *options]
        done = run(*command)
        assert done.code == 1  # because of the corrupt case
        assert "case4" in done.err
        lines = (tmp_path / out / "cases.csv").read_text().splitlines()
        tables.append([line.split(",")[:4] for line in lines])
    assert tables[0] == tables[1] and len(tables[0]) >= 5
