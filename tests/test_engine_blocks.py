"""Slabs, workers, memory and labels: everything between an array and a kernel."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from probdice import Absolute, Aitchison, Segmentation, compare
from probdice.blocks import default_workers
from probdice.segmentation import Segmentation as S
from probdice.slabs import Reader, _cut

pytestmark = pytest.mark.filterwarnings("ignore::probdice.ProbdiceWarning")


def soft(regions, shape, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    p = rng.random((regions, *shape), dtype=np.float32) ** 4
    return (p / p.sum(0)).astype(dtype)


@pytest.mark.parametrize("regions", [(1, 1), (1, 5), (2, 3), (7, 4), (8, 8), (13, 9), (137, 5)])
@pytest.mark.parametrize("similarity", [Absolute(), Aitchison(), Aitchison(0.01)])
def test_any_numbers_of_regions(regions, similarity):
    p, q = soft(regions[0], (37, 41)), soft(regions[1], (37, 41), seed=1)
    p[0, :20] = 0  # zero throughout some blocks
    p[-1, :20] += 1 - p[:, :20].sum(0)
    result = compare(p, q, similarity=similarity)
    others = [np.delete(side, i, 0).sum(0) for side, i in ((p, 0), (q, regions[1] - 1))]
    aux_p, aux_q = np.stack([p[0], others[0]]), np.stack([q[-1], others[1]])
    expected = 1 - similarity(aux_p, aux_q).mean()
    assert result.weights[0, -1] == pytest.approx(expected, abs=3e-6)
    assert [g.reference_volume for g in result.groups if g.reference == (0,)] == pytest.approx(
        [p[0].sum(dtype="f8")]
    )


@pytest.mark.parametrize("similarity", [Absolute(), Aitchison(), Aitchison(0.01)])
def test_a_region_that_is_zero_in_some_blocks_is_counted_there_too(similarity):
    p, q = np.zeros((6, 30_000), np.float32), np.zeros((5, 30_000), np.float32)
    for k, start in enumerate(range(0, 30_000, 5000)):
        p[k, start : start + 5000] = 0.9
        p[(k + 1) % 6, start : start + 5000] = 0.1
    q[0], q[1, ::2], q[2, 1::2] = 0.5, 0.5, 0.5
    q[4, :100] = q[0, :100]
    q[0, :100] = 0
    result = compare(p, q, similarity=similarity)
    q = q[[0, 1, 2, 4]]
    for i in range(6):
        for j in range(4):
            a = np.stack([p[i], np.delete(p, i, 0).sum(0)])
            b = np.stack([q[j], np.delete(q, j, 0).sum(0)])
            assert result.weights[i, j] == pytest.approx(1 - similarity(a, b).mean(), abs=2e-6)


@pytest.mark.parametrize("similarity", [Absolute(), Aitchison(), Aitchison(0.01)])
def test_a_label_map_against_probabilities_is_its_one_hot_array(similarity):
    rng = np.random.default_rng(0)
    labels = np.repeat(rng.integers(0, 9, 700), rng.integers(1, 60, 700))
    q = soft(6, (labels.size,))
    q[:, : labels.size // 3] = 0
    q[0, : labels.size // 3] = 1
    one_hot = np.stack([labels == k for k in range(9)]).astype(np.float32)
    for sides in ((labels, q), (q, labels)):
        dense = [one_hot if side is labels else side for side in sides]
        result, expected = (
            compare(*sides, similarity=similarity),
            compare(*dense, similarity=similarity),
        )
        np.testing.assert_allclose(result.weights, expected.weights, atol=1e-6)
        assert result.score == pytest.approx(expected.score, abs=1e-6)


def test_arrays_are_not_copied_where_they_lie_well():
    p = soft(3, (20, 30, 40))
    for array, axis in ((p, 0), (np.asfortranarray(np.moveaxis(p, 0, -1)), -1)):
        segmentation = S.from_probabilities(array, axis=axis)
        reader = Reader(segmentation, segmentation)
        rows = reader.read(reader.slabs[0]).sides[0].rows
        assert np.shares_memory(rows, array)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 4), (5, 1, 6), (2, 3, 4, 5)])
@pytest.mark.parametrize("most", [1, 3, 7, 1000])
def test_slabs_cover_every_pixel_once_in_order(shape, most):
    count = np.zeros(shape, int)
    position = 0
    for slab in _cut(shape, most):
        assert slab.start == position
        assert count[slab.box].size == slab.stop - slab.start <= most
        count[slab.box] += 1
        position = slab.stop
    assert np.all(count == 1)


@pytest.mark.parametrize("kinds", ["soft", "mixed", "crisp"])
@pytest.mark.parametrize("similarity", ["absolute", "aitchison"])
def test_the_result_is_the_same_to_the_bit_for_any_workers(kinds, similarity):
    shape = (50, 60, 70)
    p, q = soft(4, shape, 1), soft(6, shape, 2)
    p, q = p + np.float32(1e-3), q + np.float32(1e-3)
    p, q = p / p.sum(0), q / q.sum(0)
    if kinds != "soft":
        p = p.argmax(0)
    if kinds == "crisp":
        q = q.argmax(0)
    options = {"similarity": Aitchison(1e-6) if similarity == "aitchison" else similarity}
    results = [
        compare(p, q, merge="both", workers=workers, **options).to_json() for workers in (1, 2, 5)
    ]
    assert results[0] == results[1] == results[2]


def test_default_workers_respect_affinity():
    code = """
        import os
        os.sched_setaffinity(0, {0})
        from probdice.blocks import default_workers
        print(default_workers())
    """
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system has no affinity")
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "1"
    assert default_workers() >= 1


def test_thousands_of_regions_are_counted_by_the_pairs_that_occur():
    rng = np.random.default_rng(0)
    a = rng.permutation(100_000)[np.arange(400_000) // 4] * 5000
    b = np.arange(400_000) // 400_000
    start = time.perf_counter()
    result = compare(a, b, merge="both")
    assert result.score == 1
    assert len(result.merges) == 99_999
    assert time.perf_counter() - start < 30  # a few seconds where nothing else runs


def test_many_crisp_regions_are_quick():
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 1000, (91, 109, 91))
    permuted = rng.permutation(1000)[centres]
    compare(centres[:2], permuted[:2])
    start = time.perf_counter()
    result = compare(centres, permuted)
    assert result.score == 1
    assert time.perf_counter() - start < 10  # about half a second where nothing else runs


def test_memory_stays_bounded_on_memory_maps(tmp_path):
    """Anonymous memory does not grow with what lies in files."""
    code = """
        import sys, numpy as np, probdice, probdice.kernels

        def anonymous():
            with open("/proc/self/smaps_rollup") as lines:
                return next(int(l.split()[1]) for l in lines if l.startswith("Anonymous:")) / 1024

        p = np.load(sys.argv[1], mmap_mode="r")
        q = np.load(sys.argv[2], mmap_mode="r")
        def sides(p, q):
            make = probdice.Segmentation.from_probabilities
            return make(p, sums="normalise"), make(q, sums="normalise")

        probdice.compare(*sides(p[:, :2], q[:, :2]), similarity="aitchison")
        before = anonymous()
        import threading
        highest = [0.0]
        done = threading.Event()
        def watch():
            while not done.wait(0.002):
                highest[0] = max(highest[0], anonymous())
        watcher = threading.Thread(target=watch); watcher.start()
        probdice.compare(*sides(p, q), similarity="aitchison", merge="both")
        done.set(); watcher.join()
        print(highest[0] - before)
    """
    if not os.path.exists("/proc/self/smaps_rollup"):
        pytest.skip("this system does not tell anonymous memory")
    for name, regions in (("p", 6), ("q", 7)):
        # Regions last and Fortran order: nothing can be taken as it lies.
        array = np.lib.format.open_memmap(
            tmp_path / name, mode="w+", dtype=np.float32, shape=(regions, 120, 200, 300)
        )
        for k in range(120):
            array[:, k] = soft(regions, (200, 300), seed=k)
        array.flush()
        del array
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), tmp_path / "p", tmp_path / "q"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(out.stdout) < 200  # MB, of 374 MB in the files


def test_an_interrupt_stops_the_threads_soon(tmp_path):
    code = """
        import numpy as np, probdice
        p = np.random.default_rng(0).random((40, 100, 200, 200), dtype=np.float32)
        p /= p.sum(0)
        probdice.compare(p[:, :1], p[:, :1], similarity="aitchison")
        print("ready", flush=True)
        try:
            while True:
                probdice.compare(p, p, similarity="aitchison", workers=2)
        except KeyboardInterrupt:
            print("stopped", flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    start = time.perf_counter()
    out, _ = process.communicate(timeout=30)
    assert out == "stopped\n"
    assert time.perf_counter() - start < 5


def test_without_a_folder_for_the_cache_kernels_compile_anyway(tmp_path):
    code = """
        import numba.core.caching as caching
        def no_folder(*args, **kwargs):
            raise RuntimeError("cannot cache function: no locator available")
        caching.FunctionCache.__init__ = no_folder
        import probdice
        print(probdice.compare([1, 1, 2], [5, 5, 6]).score)
    """
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "1.0"


def test_float16_and_mixed_types_meet():
    p = soft(3, (40, 50), dtype=np.float16).astype(np.float64)
    half = Segmentation.from_probabilities(p.astype(np.float16))
    double = Segmentation.from_probabilities(p)
    assert compare(half, double, match="labels").score == 1
