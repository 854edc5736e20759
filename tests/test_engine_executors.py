"""Any executor runs any pass, with the same result."""

import pickle
import random
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest

from probdice import Segmentation, agreement, compare, consensus
from probdice.engine.blocks import Blocks
from probdice.engine.executors import Threads, executor_for, run_pass, using
from probdice.engine.grids import Block, cut
from probdice.engine.passes import Pass, summed
from probdice.engine.sample_passes import count_pass
from probdice.engine.threads import watcher


class Shuffled:
    """Visits the blocks in a random order and each of them twice, as a cluster may."""

    def __init__(self):
        self.tasks = []

    def run(self, task, blocks):
        self.tasks.append(task.name)
        order = list(enumerate(blocks.blocks)) * 2
        random.Random(0).shuffle(order)
        results = {k: task.visit(blocks, block) for k, block in order}
        ordered = [results[k] for k in sorted(results)]
        parts = [task.add(ordered[k : k + 3]) for k in range(0, len(ordered), 3)]
        return task.add(parts)


class Copied(Shuffled):
    """Visits copies of the blocks, as another process does."""

    def run(self, task, blocks):
        visit, copies = pickle.loads(pickle.dumps((task.visit, blocks)))
        return super().run(replace(task, visit=visit), copies)


@pytest.fixture(autouse=True)
def many_blocks(monkeypatch):
    monkeypatch.setattr("probdice.engine.blocks.BLOCK_BYTES", 1)
    monkeypatch.setattr("probdice.engine.blocks.MIN_BLOCK_PIXELS", 64)


@pytest.fixture
def maps():
    rng = np.random.default_rng(5)
    shape = 20, 30
    return {
        "soft": rng.dirichlet(np.full(4, 0.4), shape).transpose(2, 0, 1),
        "other soft": rng.dirichlet(np.full(3, 0.4), shape).transpose(2, 0, 1),
        "labels": rng.integers(0, 5, shape),
        "other labels": rng.integers(3, 7, shape),
    }


def numbers_of(result):
    return [
        result.score,
        result.matched_score,
        result.chance,
        *result.explained.values(),
        *(group.dice for group in result.groups),
        *result.map().reshape(-1).tolist(),
        *result.relabelled().array.reshape(-1).tolist(),
    ]


@pytest.mark.parametrize(
    "sides", [("soft", "other soft"), ("labels", "soft"), ("labels", "other labels")]
)
@pytest.mark.parametrize("similarity", ["absolute", "aitchison"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.filterwarnings("ignore::probdice.ProbdiceWarning")
def test_a_third_executor_gives_the_same_comparison(maps, sides, similarity, masked):
    mask = maps["labels"] != 2 if masked else None
    options = {"similarity": similarity, "merge": "both", "mask": mask}
    arrays = [maps[name] for name in sides]
    expected = numbers_of(compare(*arrays, **options))
    executor = Copied()
    with using(executor):
        numbers = numbers_of(compare(*arrays, **options))
    # Sums of sums differ from sums by rounding.
    np.testing.assert_allclose(numbers, expected, rtol=1e-11, atol=1e-11)
    assert "checked_overlap" in executor.tasks
    assert "write" not in executor.tasks  # the images are in the memory of this process


def test_a_third_executor_gives_the_same_calibration(maps):
    expected = compare(maps["labels"] % 3, maps["other soft"]).calibration()
    with using(Copied()):
        calibration = compare(maps["labels"] % 3, maps["other soft"]).calibration()
    assert calibration.brier.score == pytest.approx(expected.brier.score, abs=1e-12)


@pytest.mark.parametrize("sides", [("labels", "other labels"), ("soft", "other soft")])
def test_a_third_executor_gives_the_same_boundaries(maps, sides):
    result = compare(*(maps[name] for name in sides))
    expected = result.boundaries(levels=[0.4])
    executor = Copied()
    with using(executor):
        boundaries = compare(*(maps[name] for name in sides)).boundaries(levels=[0.4])
    np.testing.assert_allclose(boundaries["hd"], expected["hd"], rtol=1e-12)
    assert "cells" in executor.tasks


@pytest.mark.parametrize("kind", ["labels", "soft"])
def test_a_third_executor_gives_the_same_consensus(maps, kind):
    raters = {"a": maps[kind], "b": np.roll(maps[kind], 1, axis=-1), "c": maps[kind]}
    expected = consensus(raters, method="staple"), agreement(raters)
    executor = Copied()
    with using(executor):
        result = consensus(raters, method="staple"), agreement(raters)
        probabilities = result[0].segmentation.probabilities()
    np.testing.assert_allclose(probabilities, expected[0].segmentation.probabilities(), atol=1e-9)
    assert result[1].mean_score == pytest.approx(expected[1].mean_score, abs=1e-12)
    assert "described" in executor.tasks
    assert ("combinations" if kind == "labels" else "worked") in executor.tasks


class Processes:
    """Sends the blocks once to another process, which visits them."""

    def run(self, task, blocks):
        with ProcessPoolExecutor(1, get_context("spawn"), _hold, (task.visit, blocks)) as pool:
            return task.add(pool.map(_visit_held, blocks.blocks))


_held = []


def _hold(*visit_and_blocks):
    _held[:] = visit_and_blocks


def _visit_held(block):
    visit, blocks = _held
    return visit(blocks, block)


def test_an_executor_runs_in_another_process_and_reports_its_progress(maps):
    sides = (Segmentation.from_labels(maps[name]) for name in ("labels", "other labels"))
    blocks = Blocks(*sides, mask=maps["labels"] != 2)
    progress = []
    token = watcher.set(lambda done, total: progress.append((done, total)))
    try:
        with using(Processes()):
            counts = run_pass(count_pass(), blocks, 2)
    finally:
        watcher.reset(token)
    assert sum(counts.values()) == np.count_nonzero(maps["labels"] != 2)
    assert progress == [(k, len(blocks.blocks)) for k in range(1, len(blocks.blocks) + 1)]
    assert len(progress) > 3


def test_every_task_is_run_by_threads_unless_something_else_is_chosen(maps):
    blocks = Blocks(Segmentation.from_labels(maps["labels"]))
    assert executor_for(blocks, 3) == Threads(3)


def edges_between(blocks, block):
    """Pairs of neighbours along the first axis with different labels, each counted once."""
    around = block.around(1, blocks.shape)
    labels = blocks.decode(around).sides[0].values.reshape(around.shape)
    first = block.box[0].start - around.box[0].start
    last = first + block.shape[0]
    rows = labels[first : last + 1]
    rows = rows[:, block.box[1].start - around.box[1].start :][:, : block.shape[1]]
    return int((rows[1:] != rows[:-1]).sum())


def test_a_pass_with_a_halo_reads_the_neighbours_of_its_block(maps):
    labels = maps["labels"]
    blocks = Blocks(Segmentation.from_labels(labels))
    task = Pass(edges_between, summed, halo=1)
    expected = int((labels[1:] != labels[:-1]).sum())
    assert len(blocks.blocks) > 3
    assert Threads(2).run(task, blocks) == expected
    assert Shuffled().run(task, blocks) == expected


def test_dask_sends_the_halo_with_every_block(maps):
    dask_array = pytest.importorskip("dask.array")
    labels = maps["labels"]
    task = Pass(edges_between, summed, halo=1)
    chunked = dask_array.from_array(labels, chunks=(7, 11))
    blocks = Blocks(Segmentation.from_labels(chunked))
    assert len(blocks.blocks) > 3
    executor = executor_for(blocks, 2)
    assert type(executor).__name__ == "DaskScheduler"
    assert executor.run(task, blocks) == int((labels[1:] != labels[:-1]).sum())


def test_a_block_grows_only_as_far_as_the_image_reaches():
    (block,) = cut((4, 6), 100)
    assert block.around(2, (4, 6)).box == block.box
    inner = Block((slice(1, 2), slice(2, 4)), 8)
    assert inner.around(2, (4, 6)).box == (slice(0, 4), slice(0, 6))
