"""Time of the parts of kernels, of an evaluated case, and of the command.

    python -m benchmarks.profile [--only absolute …] [--into docs/explanation/speed.md]

The parts are the functions that the kernels call. All parts of a kernel run alternately on one core
and, unless a row names memory, on pixels that stay in the cache. Each time is the least of many.
Except in `update`, processor time is measured, which excludes the time of other processes.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numba
import numpy as np
from isal import igzip

import benchmarks.command
import benchmarks.folder
import probdice
from benchmarks.speed import compact_labels, photograph_labels, soft
from benchmarks.table import Row, least, run
from probdice.data.segmentation import Segmentation
from probdice.engine.compiled import AbsoluteKernels, AitchisonKernels
from probdice.engine.kernels import absolute as absolute_kernels
from probdice.engine.kernels import aitchison as aitchison_kernels
from probdice.engine.kernels import label_rows, labels, rows, tiles
from probdice.engine.moment_passes import distributions_pass, moments_pass
from probdice.engine.overlap_pass import FEW_CELLS, overlap_pass
from probdice.engine.pair import SegmentationPair
from probdice.engine.similarity_kernels import RowGroups
from probdice.evaluation.case_scoring import Request, files_of, inputs_of, score_case
from probdice.evaluation.pairing import Job
from probdice.files.interpretation import beyond_one
from probdice.files.sidecars import fingerprint
from probdice.method.chance import BINS
from probdice.method.sides import Both
from probdice.method.similarity import Absolute, Aitchison
from probdice.options import CompareOptions

REGIONS = 8
CACHED, FAR = 4096, 2**20  # pixels that stay in the cache, and pixels that do not
BLOCK = 8192  # pixels of a block that two passes visit one after the other
CALLS, ROUNDS = 20, 200
Work = Callable[[], Any]
shortest = partial(least, clock=time.process_time)


def absolute() -> Iterator[Row]:
    """Measure the kernel of the absolute similarity."""
    p, q = soft(REGIONS, CACHED, 0), soft(REGIONS, CACHED, 1)
    kernels = AbsoluteKernels(Absolute())
    largest = p.max(axis=0)
    yield from parts(
        "absolute",
        lambda: kernels.pairs(p, 0, q, 0, CACHED),
        {
            "minima of all pairs": lambda: minima(p, q, p, q),
            "of these, prefetching the next pixels": (
                lambda: minima(p, q, p, q),
                lambda: minima(p, q, p[:0], q[:0]),
            ),
            "checks, volumes and counts": lambda: survey_both(p, q),
            "of these, counts of the most likely region": lambda: count_both(p, q, largest),
        },
    )
    far = soft(REGIONS, FAR, 2), soft(REGIONS, FAR, 3)
    yield from memory_row("absolute", lambda: kernels.pairs(far[0], 0, far[1], 0, FAR))


def aitchison() -> Iterator[Row]:
    """Measure the two kernels of the Aitchison similarity: pairs, and the score."""
    p, q = soft(REGIONS, CACHED, 0), soft(REGIONS, CACHED, 1)
    kernels = AitchisonKernels(Aitchison())
    step = aitchison_kernels.STEP
    buffers = aitchison_buffers(p, step)
    logits = np.random.default_rng(0).standard_normal((REGIONS, step), dtype=np.float32)
    yield from parts(
        "aitchison, pairs",
        lambda: kernels.pairs(p, 0, q, 0, CACHED),
        {
            "checks, volumes and counts": lambda: survey_rest_both(p, q, step),
            "logarithms": lambda: logits_both(p, q, *buffers),
            "pairs of logits": lambda: similarities(logits, logits, CACHED // step),
        },
    )
    groups = np.arange(REGIONS + 1), np.arange(REGIONS)
    sides = soft(REGIONS, FAR, 2), soft(REGIONS, FAR, 3)
    f, differences = np.empty(FAR, np.float32), np.zeros(REGIONS)

    def score(p: Any, q: Any, start: int, size: int) -> None:
        of_p, of_q = RowGroups(p, start, *groups), RowGroups(q, start, *groups)
        kernels.pixels(of_p, of_q, size, differences, f[:size])

    yield from parts("aitchison, score", lambda: score(p, q, 0, CACHED), {})

    def in_turn() -> None:
        kernels.pairs(sides[0], 0, sides[1], 0, FAR)
        score(*sides, 0, FAR)

    def together() -> None:
        for start in range(0, FAR, BLOCK):
            kernels.pairs(sides[0], start, sides[1], start, BLOCK)
            score(*sides, start, BLOCK)

    yield from memory_row("aitchison, pairs", lambda: kernels.pairs(sides[0], 0, sides[1], 0, FAR))
    yield from memory_row("aitchison, score", lambda: score(*sides, 0, FAR))
    separate, joint = shortest(in_turn, together, rounds=20)
    yield Row("aitchison, pairs and score block by block", joint / separate, "× two passes")


def label_map() -> Iterator[Row]:
    """Measure the kernel of a label map and probabilities, with runs of 13 pixels."""
    values = compact_labels(64, REGIONS, 0).reshape(-1)[:CACHED].copy()
    q = soft(REGIONS, CACHED, 1)
    slots, found = np.full(1024, -1, np.int32), np.empty(256, values.dtype)
    codes = np.empty(CACHED, np.int32)
    count = labels.encode(values, slots, found, codes)
    kernels = AbsoluteKernels(Absolute())
    bounds, counts = np.empty(CACHED + 1, np.int64), np.zeros(count, np.int64)
    run_count = find_runs(codes, bounds, counts)
    into = np.zeros((count, REGIONS))

    def encode() -> None:
        slots[:] = -1
        labels.encode(values, slots, found, codes)

    def everything() -> None:
        encode()
        kernels.label_pairs(codes, count, q, 0)

    yield from parts(
        "a label map and probabilities",
        everything,
        {
            "numbering the labels": encode,
            "checks, volumes and counts": lambda: survey_one(q),
            "runs of equal labels": lambda: find_runs(codes, bounds, counts),
            "sums over the runs": lambda: sum_runs(codes, bounds[: run_count + 1], q, into),
        },
    )


def small_map() -> Iterator[Row]:
    """Measure the share of the kernel in a comparison of small label maps."""
    a, b = (photograph_labels((64, 64), 20, seed) for seed in (0, 1))
    flat = a.reshape(-1), b.reshape(-1)
    whole, kernel = shortest(
        lambda: probdice.compare(a, b).score,
        lambda: labels.count_range(*flat, FEW_CELLS),
        rounds=2000,
    )
    work = "compare of two label maps 64×64, int64: kernel"
    yield Row(work, 100 * kernel / whole, "% of the time")


def case() -> Iterator[Row]:
    """Measure the parts of one case of `evaluate`, as in `benchmarks/folder.py`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        benchmarks.folder.make(folder, 1)
        paths = [str(folder / side / "case0.nii.gz") for side in ("reference", "prediction")]
        files = {"reference": (paths[0],), "prediction": (paths[1],), "mask": ()}
        job = Job("case0", "prediction", files, {})
        inputs = inputs_of(job, Both(None, None), verify=False)
        request = Request(job, CompareOptions.of(), inputs, files_of(job, folder), "")
        sides = [np.ascontiguousarray(np.moveaxis(_values(path), -1, 0)) for path in paths]
        images = SegmentationPair(*map(Segmentation.from_probabilities, sides), None, 1)
        keys = Both(*(np.arange(len(side)) for side in sides))
        passes: Any = (
            overlap_pass(Absolute()),
            distributions_pass(BINS[0]),
            moments_pass(keys),
        )
        blocks = images.blocks

        def visit(*tasks: Any) -> Work:
            return lambda: [task.visit(blocks, block) for task in tasks for block in blocks.blocks]

        def together() -> None:
            for block in blocks.blocks:
                for task in passes:
                    task.visit(blocks, block)

        works: dict[str, Work] = {
            "decompression": lambda: [_unpacked(path) for path in paths],
            "SHA-256 of the files": lambda: [fingerprint(path) for path in paths],
            "BLAKE2b of the files, instead of SHA-256": lambda: [
                blake2b(Path(path).read_bytes()).digest() for path in paths
            ],
            "check for percentages": lambda: [beyond_one(side) for side in sides],
            "overlap": visit(passes[0]),
            "histograms for chance": visit(passes[1]),
            "moments for explained shares": visit(passes[2]),
        }
        whole: Work = partial(score_case, request, 1)
        shortest(whole, *works.values(), rounds=1)
        seconds, *each = shortest(whole, *works.values(), rounds=20)
        separate, joint = shortest(visit(*passes), together, rounds=20)
    work = "a case of 96³ × 4 as .nii.gz, compared in one process"
    yield Row(work, 1e3 * seconds, "ms")
    for part, own in zip(works, each, strict=True):
        yield Row(f"a case: {part}", 1e3 * own, f"ms, {100 * own / seconds:.0f} % of the case")
    yield Row("a case: all three passes block by block", joint / separate, "× three passes")


def process() -> Iterator[Row]:
    """Measure the processor time of `probdice compare` for large and for small files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large = [str(folder / f"{side}.nii.gz") for side in ("reference", "prediction")]
        small = [str(folder / f"{side}.npy") for side in ("reference", "prediction")]
        for seed, (path, other) in enumerate(zip(large, small, strict=True)):
            benchmarks.command.make(path, seed)
            np.save(other, soft(4, 64, seed))
        for title, paths in (("two .nii.gz files, 160³ × 6", large), ("two small .npy", small)):
            seconds = min(_processor_time(paths) for _ in range(4))
            yield Row(f"probdice compare, {title}: processor time of all cores", seconds, "s")
        (unpacking,) = shortest(lambda: [_unpacked(path) for path in large], rounds=4)
        yield Row("decompression of the two .nii.gz files", unpacking, "s")


def update() -> Iterator[Row]:
    """Measure the share of the softmax in `RegionDice.update` of logits."""
    if find_spec("torchmetrics"):
        from benchmarks.training import logits_and_metric

        preds, target, metric = logits_and_metric(soft=False)
        whole, softmax = least(
            lambda: metric.update(preds, target), lambda: preds.softmax(1), rounds=50
        )
        work = "RegionDice.update, logits (8, 27, 128, 128), labels: softmax"
        yield Row(work, 100 * softmax / whole, "% of the time")


def parts(
    name: str, whole: Work, works: dict[str, Work | tuple[Work, Work]], pixels: int = CACHED
) -> Iterator[Row]:
    """Yield the time of a kernel per pixel, and of its parts.

    The time of a part with two functions is the difference of their times.
    """
    flat: list[Work] = [whole]
    for work in works.values():
        flat.extend(work if isinstance(work, tuple) else (work,))
    repeated = [partial(_repeat, work) for work in flat]
    shortest(*repeated, rounds=1)  # compiles the functions
    seconds = iter(shortest(*repeated, rounds=ROUNDS))
    nanoseconds = 1e9 / (CALLS * pixels)
    total = next(seconds)
    yield Row(name, total * nanoseconds, "ns per pixel")
    for part, work in works.items():
        own = next(seconds) - (next(seconds) if isinstance(work, tuple) else 0)
        share = f"ns per pixel, {100 * own / total:.0f} % of the kernel"
        yield Row(f"{name}: {part}", own * nanoseconds, share)


def memory_row(name: str, work: Work) -> Iterator[Row]:
    """Yield the time per pixel for data outside the cache."""
    shortest(work, rounds=1)
    (seconds,) = shortest(work, rounds=20)
    yield Row(f"{name}, data in memory", 1e9 * seconds / FAR, "ns per pixel")


def aitchison_buffers(p: Any, step: int) -> tuple[Any, ...]:
    """Return the largest value and the sum of the other values of each pixel, and buffers."""
    largest = p.max(axis=0)
    rest = p.sum(axis=0) - largest
    empty = np.empty((0, step), p.dtype)
    return largest, rest, np.arange(REGIONS), np.empty((REGIONS, step), p.dtype), empty


def _repeat(work: Work) -> None:
    for _ in range(CALLS):
        work()


def _unpacked(path: str) -> bytes:
    with igzip.open(path) as stream:
        return bytes(stream.read())


def _values(path: str) -> Any:
    import nibabel

    return np.asarray(nibabel.load(path).dataobj)  # type: ignore[attr-defined]


def _processor_time(paths: list[str]) -> float:
    command = [str(Path(sys.executable).with_name("probdice")), "compare", *paths]
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - (
        before.children_user + before.children_system
    )  # fmt: skip


# The measured functions can be called only from compiled code, so each has a compiled caller below.


@numba.njit
def minima(p, q, p_next, q_next):  # type: ignore[no-untyped-def]
    every = np.arange(p.shape[0])
    into = np.empty((p.shape[0] + tiles.PADDING, q.shape[0] + tiles.PADDING))
    size = p.shape[1]
    absolute_kernels._minima(p, 0, every, q, 0, every, size, into, p_next, 0, q_next, 0)
    return into


@numba.njit
def survey_one(p):  # type: ignore[no-untyped-def]
    volumes, likeliest = np.empty(p.shape[0]), np.zeros(p.shape[0], np.int64)
    return rows.survey(p, 0, p.shape[1], volumes, likeliest)


@numba.njit
def survey_both(p, q):  # type: ignore[no-untyped-def]
    return survey_one(p) & survey_one(q)


@numba.njit
def count_both(p, q, largest):  # type: ignore[no-untyped-def]
    total = np.zeros(p.shape[0], np.int64)
    for first in range(0, p.shape[1], rows.SPAN):
        last = min(first + rows.SPAN, p.shape[1])
        rows.count_likeliest(p, first, last, largest[first:last], total)
        rows.count_likeliest(q, first, last, largest[first:last], total)
    return total


@numba.njit
def survey_rest_both(p, q, step):  # type: ignore[no-untyped-def]
    largest, rest = np.empty(step, p.dtype), np.empty(step, p.dtype)
    volumes, likeliest = np.empty(p.shape[0]), np.zeros(p.shape[0], np.int64)
    sound = True
    for first in range(0, p.shape[1], step):
        sound &= rows.survey_rest(p, first, first + step, largest, rest, volumes, likeliest)
        sound &= rows.survey_rest(q, first, first + step, largest, rest, volumes, likeliest)
    return sound


@numba.njit
def logits_both(p, q, largest, rest, listed, logits, alones):  # type: ignore[no-untyped-def]
    losses = np.empty(p.shape[0])
    step = logits.shape[1]
    zeros = False
    for first in range(0, p.shape[1], step):
        last = first + step
        for side in (p, q):
            zeros |= aitchison_kernels._logits(
                side, first, listed, step, 0.0, largest[first:last], rest[first:last], -np.inf,
                logits, alones, losses,
            )  # fmt: skip
    return zeros


@numba.njit
def similarities(p, q, steps):  # type: ignore[no-untyped-def]
    every = np.arange(p.shape[0])
    into = np.empty((p.shape[0] + tiles.PADDING, q.shape[0] + tiles.PADDING))
    for _ in range(steps):
        aitchison_kernels._savings(p, every, q, every, p.shape[1], False, into, p, 0, q, 0)
    return into


@numba.njit
def find_runs(codes, bounds, counts):  # type: ignore[no-untyped-def]
    return label_rows._runs(codes, bounds, counts)


@numba.njit
def sum_runs(codes, bounds, q, into):  # type: ignore[no-untyped-def]
    every = np.arange(q.shape[0])
    label_rows._group_sums(codes, bounds, q, 0, every, every, 1.0, into)


if __name__ == "__main__":
    benches = (absolute, aitchison, label_map, small_map, case, process, update)
    run(benches, __doc__, marker="parts")
