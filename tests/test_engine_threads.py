"""Passes on threads: the order of results, watching, interrupting."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from probdice import Aitchison, compare
from probdice.data.machine import cores
from probdice.engine.threads import run, watcher

pytestmark = pytest.mark.filterwarnings("ignore::probdice.ProbdiceWarning")


def soft(regions, shape, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    p = rng.random((regions, *shape), dtype=np.float32) ** 4
    return (p / p.sum(0)).astype(dtype)


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


def test_cores_respect_affinity():
    code = """
        import os
        os.sched_setaffinity(0, {0})
        from probdice.data.machine import cores
        print(cores())
    """
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system has no affinity")
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "1"
    assert cores() >= 1


def test_an_interrupt_stops_the_threads_before_the_next_blocks():
    begun = []

    def visit(block):
        begun.append(block)
        if block == 5:
            signal.raise_signal(signal.SIGINT)  # runs the handler in the main thread
        time.sleep(0.005)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = threading.active_count()
    try:
        with pytest.raises(KeyboardInterrupt):
            list(run(visit, range(10_000), 2))
    finally:
        signal.signal(signal.SIGINT, handler)
    assert len(begun) < 5_000
    assert threading.active_count() == before


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_results_come_in_the_order_of_the_blocks(workers):
    def visit(block):
        time.sleep(0.01 if block % 3 == 0 else 0)
        return block * 10

    assert list(run(visit, range(20), workers)) == [block * 10 for block in range(20)]


@pytest.mark.parametrize("workers", [1, 3])
def test_the_watcher_is_called_after_each_block(workers):
    seen = []
    token = watcher.set(lambda done, blocks: seen.append((done, blocks)))
    try:
        list(run(lambda block: block, range(4), workers))
    finally:
        watcher.reset(token)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    list(run(lambda block: block, range(4), workers))
    assert len(seen) == 4


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_in_a_block_is_raised_and_the_rest_is_not_begun(workers):
    begun = []

    def visit(block):
        begun.append(block)
        if block == 2:
            raise KeyError(block)
        time.sleep(0.005)

    before = threading.active_count()
    with pytest.raises(KeyError):
        list(run(visit, range(1000), workers))
    assert len(begun) < 100
    assert threading.active_count() == before
