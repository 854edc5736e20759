"""Time of passes over the pixels, relative to memory bandwidth and to other tools.

    python -m benchmarks.speed [--only soft_pairs …] [--into PAGE]

Functions that are compared run on the same arrays, most of them alternately. Each time is the least
of several runs, or the time of the only run of a slow tool.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import probdice
from benchmarks.baseline import hungarian_accuracy
from benchmarks.table import Row, faster, least, run, times

WORKERS = 2
CALLS = 200  # calls of a kernel, each with a few pixels


def read(*arrays: NDArray[Any]) -> None:
    """Sum all arrays once, with one thread per worker."""
    slices = [piece for array in arrays for piece in np.array_split(array.reshape(-1), 8)]
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(np.sum, slices))


@numba.njit(nogil=True, fastmath=True)
def compiled_sum(values):  # type: ignore[no-untyped-def]
    total = values.dtype.type(0)
    for k in range(values.size):
        total += values[k]
    return total


def compiled_read(*arrays: NDArray[Any]) -> None:
    """Sum all arrays once with a compiled loop."""
    slices = [piece for array in arrays for piece in np.array_split(array.reshape(-1), 8)]
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(compiled_sum, slices))


def soft(regions: int, pixels: int, seed: int) -> NDArray[np.float32]:
    p = np.random.default_rng(seed).random((regions, pixels), dtype=np.float32)
    return p / p.sum(axis=0)


def soft_pairs() -> list[Row]:
    """Measure 8 × 8 regions with 8 M pixels in float32."""
    p, q = soft(8, 8_000_000, 0), soft(8, 8_000_000, 1)
    goals = {
        ("overlap", "absolute"): 1.4,
        ("overlap", "aitchison"): 5,
        ("compare", "absolute"): 1.4,
        ("compare", "aitchison"): 7,
    }

    def work(name: str, similarity: str) -> Callable[[], Any]:
        if name == "overlap":
            return lambda: probdice.overlap(p, q, similarity=similarity, workers=WORKERS)
        return lambda: probdice.compare(p, q, similarity=similarity, workers=WORKERS).score

    works = [work(*names) for names in goals]
    least(lambda: compiled_read(p, q), *works, rounds=1)  # compiles the kernels
    limit, compiled, *seconds = least(
        lambda: read(p, q), lambda: compiled_read(p, q), *works, rounds=15
    )
    rows = [
        times("read both arrays (np.sum, two threads)", limit, limit, "read", "the limit"),
        times("read both arrays (a compiled loop, two threads)", compiled, limit, "read"),
    ]
    for ((name, similarity), goal), own in zip(goals.items(), seconds, strict=True):
        title = f"{name}, {similarity}, 8 × 8 regions, 8 M pixels, float32"
        rows.append(times(title, own, limit, "read", f"at most {goal:g} ×"))
    for name, peer in soft_peers(p, q).items():
        title = f"all absolute overlaps with {name}"
        rows.append(times(title, *least(peer, rounds=1), limit, "read"))
    return rows


def likeliest() -> list[Row]:
    """Measure the share of the kernel time for counting the most likely regions."""
    from probdice.engine.compiled import AbsoluteKernels, AitchisonKernels
    from probdice.engine.kernels.rows import count_likeliest
    from probdice.method.similarity import Absolute, Aitchison

    @numba.njit
    def counts(rows, largest):  # type: ignore[no-untyped-def]
        total = np.zeros(rows.shape[0], np.int64)
        count_likeliest(rows, 0, rows.shape[1], largest, total)
        return total

    p, q = soft(8, 1024, 0), soft(8, 1024, 1)
    largest = p.max(axis=0)

    def count() -> None:
        for _ in range(2 * CALLS):
            counts(p, largest)

    def pairs(kernels: Any) -> Callable[[], Any]:
        return lambda: [kernels.pairs(p, 0, q, 0, p.shape[1]) for _ in range(CALLS)]

    works = count, pairs(AbsoluteKernels(Absolute())), pairs(AitchisonKernels(Aitchison()))
    least(*works, rounds=1)
    counting, *kernels = least(*works, rounds=20)
    return [
        Row(f"counting the most probable region, 8 × 8 regions, {name}", 100 * counting / own,
            "% of the kernel for data in the cache")
        for name, own in zip(("absolute", "aitchison"), kernels, strict=True)
    ]  # fmt: skip


def soft_peers(p: NDArray[Any], q: NDArray[Any]) -> dict[str, Callable[[], Any]]:
    from scipy.spatial.distance import cdist

    peers: dict[str, Callable[[], Any]] = {
        "a NumPy loop": lambda: [[np.abs(a - b).sum() for b in q] for a in p],
        "scipy cdist": lambda: cdist(p, q, "cityblock"),
    }
    try:
        import torch
    except ImportError:
        print("torch is not installed; its row is left out")
    else:
        torch.set_num_threads(WORKERS)
        tensors = torch.from_numpy(p), torch.from_numpy(q)
        peers["torch.cdist"] = lambda: torch.cdist(*tensors, p=1)
    return peers


def atlas() -> list[Row]:
    """Measure 100 × 100 compact regions."""
    from scipy.spatial.distance import cdist

    shape, regions = (91, 109, 91), 100
    p, q = (compact_probabilities(shape, regions, seed) for seed in (0, 1))
    probdice.overlap(p, q)
    (seconds,) = least(lambda: probdice.overlap(p, q, workers=WORKERS), rounds=5)
    flat = [side.reshape(regions, -1) for side in (p, q)]
    (other,) = least(lambda: cdist(*flat, "cityblock"), rounds=1)
    work = "overlap, absolute, 100 × 100 compact regions, 91×109×91"
    return [faster(work, seconds, other, "scipy cdist cityblock", "at least 100 ×")]


def compact_probabilities(shape: tuple[int, ...], regions: int, seed: int) -> NDArray[np.float32]:
    """Return probabilities in which every pixel belongs to its two nearest centres."""
    rng = np.random.default_rng(seed)
    centres = rng.random((regions, 3)) * shape
    grid = np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"), axis=-1)
    from scipy.spatial import cKDTree

    distance, nearest = cKDTree(centres).query(grid.reshape(-1, 3), k=2)
    share = (distance[:, 1] / distance.sum(axis=1)).astype(np.float32)
    p = np.zeros((regions, share.size), np.float32)
    pixels = np.arange(share.size)
    p[nearest[:, 0], pixels] = share
    p[nearest[:, 1], pixels] = 1 - share
    return p.reshape(regions, *shape)


def compact_labels(size: int, labels: int, seed: int) -> NDArray[Any]:
    """Return a label map of cubic cells with an edge of 13 pixels."""
    rng = np.random.default_rng(seed)
    dtype = np.uint8 if labels <= 256 else np.uint16
    cells = rng.integers(0, labels, (size // 13 + 1,) * 3, dtype=dtype)
    for axis in range(3):
        cells = np.repeat(cells, 13, axis=axis).take(range(size), axis=axis)
    return np.ascontiguousarray(cells)


def label_maps() -> list[Row]:
    """Measure label maps of 256³ pixels with 20 labels."""
    import SimpleITK
    from skimage.metrics import contingency_table

    a, b = compact_labels(256, 20, 0), compact_labels(256, 20, 1)
    spread = np.sort(np.random.default_rng(2).integers(0, 5 * 10**8, 20)).astype(np.int32)
    wide = spread[a], spread[b]
    images = [SimpleITK.GetImageFromArray(side) for side in (a, b)]
    overlap = SimpleITK.LabelOverlapMeasuresImageFilter()
    SimpleITK.ProcessObject.SetGlobalDefaultNumberOfThreads(WORKERS)
    peers: dict[str, tuple[Callable[[], Any], str]] = {
        "SimpleITK LabelOverlapMeasures": (lambda: overlap.Execute(*images), "at least 5 ×"),
        "skimage contingency_table": (lambda: contingency_table(a, b), "at least 30 ×"),
        "np.bincount": (lambda: np.bincount(a.ravel() * np.int32(20) + b.ravel()), ""),
    }
    ours = (
        lambda: probdice.overlap(a, b, workers=WORKERS),
        lambda: probdice.overlap(*wide, workers=WORKERS),
    )
    least(*ours, rounds=1)  # compiles the kernels
    seconds, gaps = least(*ours, rounds=10)
    others = least(*(peer for peer, _ in peers.values()), rounds=3)
    work = "overlap of two label maps, 256³, 20 labels, uint8"
    rows = [
        faster(work, seconds, other, name, goal)
        for (name, (_, goal)), other in zip(peers.items(), others, strict=True)
    ]
    work = "the same, int32 labels with gaps, up to 5·10⁸"
    return [*rows, times(work, gaps, seconds, "uint8", "at most 3 ×")]


def small_maps() -> list[Row]:
    """Measure comparisons of label maps of typical sizes, relative to hand-written code."""
    rows = []
    for shape, compare_goal, overlap_goal in (((321, 481), 1.0, 0.7), ((64, 64), 3.0, None)):
        for dtype in (np.uint8, np.int64):
            a, b = (photograph_labels(shape, 20, seed).astype(dtype) for seed in (0, 1))
            name = f"two label maps {shape[0]}×{shape[1]}, 20 labels, {np.dtype(dtype).name}"
            assert abs(probdice.compare(a, b).score - hungarian_accuracy(a, b)) < 1e-12
            limit, compare, overlap = least(
                lambda a=a, b=b: hungarian_accuracy(a, b),  # type: ignore[misc]
                lambda a=a, b=b: probdice.compare(a, b).score,  # type: ignore[misc]
                lambda a=a, b=b: probdice.overlap(a, b),  # type: ignore[misc]
                rounds=300,
            )
            goal = f"at most {compare_goal:g} ×"
            rows.append(times(f"compare, {name}", compare, limit, "NumPy + SciPy", goal))
            if overlap_goal:
                goal = f"at most {overlap_goal:g} ×"
                rows.append(times(f"overlap, {name}", overlap, limit, "NumPy + SciPy", goal))
    return rows


def photograph_labels(shape: tuple[int, int], labels: int, seed: int) -> NDArray[np.int64]:
    """Return a label map in which every pixel has the label of its nearest centre."""
    from scipy.spatial import cKDTree

    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"), axis=-1)
    nearest = cKDTree(rng.random((labels, 2)) * shape).query(grid.reshape(-1, 2))[1]
    return np.asarray(nearest, np.int64).reshape(shape)


def small_soft() -> list[Row]:
    """Measure the adjusted score and the explained shares of a small crop, as in training."""
    p, q = (soft(4, 96 * 96, seed).reshape(4, 96, 96) for seed in (0, 1))

    def work() -> tuple[float, dict[str, float]]:
        result = probdice.compare(p, q)
        return result.adjusted_score, result.explained

    work()
    (seconds,) = least(work, rounds=100)
    name = "compare, adjusted score and explained, 4 × 96×96"
    return [Row(name, seconds * 1e3, "ms", "at most 0.8 ms")]


def many_regions() -> list[Row]:
    """Measure the comparison of a grid of 46³ cells with a shifted copy."""
    rows = []
    for name, shift, jitter, goal in (
        ("shifted by a sixth of a cell", 1, 0.0, 5),
        ("jittered", 1, 0.1, 5),
        ("shifted by half a cell", 3, 0.0, 15),
    ):
        a, b = cells(46, 6, 0, 0.0), cells(46, 6, shift, jitter)

        def work(a: Any = a, b: Any = b) -> float:
            result = probdice.compare(a, b)
            return result.score + result.chance + result.explained["reference"]

        work()
        (seconds,) = least(work, rounds=2)
        title = f"compare, 97,336 × 97,336 cells, 21 M pixels, {name}"
        rows.append(Row(title, seconds, "s", f"at most {goal} s"))
    return rows


def cells(count: int, size: int, shift: int, jitter: float) -> NDArray[np.int32]:
    """Return a shifted grid of cells. A share `jitter` of pixels has the label of another cell."""
    line = np.minimum((np.arange(count * size) + shift) // size, count - 1)
    labels = line[:, None, None] * count**2 + line[None, :, None] * count + line[None, None, :]
    rng = np.random.default_rng(0)
    if jitter:
        moved = rng.random(labels.shape) < jitter
        labels[moved] = np.roll(labels, size, axis=rng.integers(3))[moved]
    return rng.permutation(count**3)[labels].astype(np.int32)


def maps_of_labels() -> list[Row]:
    """Measure the similarity map of 256³ pixels with 2,000 labels, and the JSON of the result."""
    a, b = (compact_labels(256, 2000, seed) for seed in (0, 1))
    result = probdice.compare(a, b, workers=WORKERS)
    result.map()
    limit, seconds = least(lambda: read(a, b), result.map, rounds=10)
    title = "map() of label maps, 256³, 2,000 labels"
    rows = [times(title, seconds, limit, "read", "at most 3 ×")]
    near = a.copy()
    near[::3] = np.roll(a, 5, axis=1)[::3]
    result = probdice.compare(a, near, workers=WORKERS)
    (seconds,) = least(result.to_json, rounds=2)
    size = len(result.to_json()) / 1e6
    title = f"to_json of 2,000 × 2,000 regions ({size:.1f} MB)"
    return [*rows, Row(title, seconds, "s", "at most 1 s and 5 MB")]


def mixed() -> list[Row]:
    """Measure a label map and 8 soft regions with 256³ pixels."""
    labels = compact_labels(256, 8, 0)
    q = soft(8, labels.size, 1).reshape(8, *labels.shape)
    probdice.overlap(labels, q)
    limit, seconds = least(
        lambda: read(labels, q),
        lambda: probdice.overlap(labels, q, workers=WORKERS),
        rounds=10,
    )
    work = "overlap of a label map and 8 soft regions, 256³, absolute"
    return [times(work, seconds, limit, "read", "at most 1.6 ×")]


MEMORY = """
import sys, threading, numpy as np, probdice

def anonymous():
    with open("/proc/self/smaps_rollup") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))

sides = [np.load(path, mmap_mode="r") for path in sys.argv[1:]]
sides = [probdice.Segmentation.from_probabilities(side, axis=-1) for side in sides]
warm = [np.full((2, 9), 0.5, np.float32)] * 2
probdice.compare(*warm, similarity="aitchison")
before, highest, done = anonymous(), 0, threading.Event()

def watch():
    global highest
    while not done.wait(0.002):
        highest = max(highest, anonymous())

watcher = threading.Thread(target=watch)
watcher.start()
probdice.compare(*sides, similarity="aitchison", workers=2)
done.set()
watcher.join()
print((highest - before) / 1024)
"""


def memory() -> list[Row]:
    """Measure the memory for memory-mapped input whose last axis is the region axis."""
    if not Path("/proc/self/smaps_rollup").exists():
        return []
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("p.npy", "q.npy")]
        for seed, path in enumerate(paths):
            np.save(path, np.moveaxis(soft(8, 160**3, seed).reshape(8, 160, 160, 160), 0, -1))
        size = sum(path.stat().st_size for path in paths) / 2**20
        out = subprocess.run(
            [sys.executable, "-c", MEMORY, *paths], capture_output=True, text=True, check=True
        )
    extra = float(out.stdout)
    work = f"extra anonymous memory, for {size:.0f} MB of memory-mapped input"
    return [Row(work, extra, "MB", "at most 200 MB")]


TIMED = """
import time
start = time.perf_counter()
import numpy as np
numpy = time.perf_counter()
import probdice
imported = time.perf_counter()
p = np.full((8, 64, 64), 0.125, np.float32)
def compare():
    start = time.perf_counter()
    probdice.compare(p, p)
    return time.perf_counter() - start
first, again = compare(), compare()
print(imported - numpy, first - again)
"""


def start_up() -> list[Row]:
    """Measure the import, and the first comparison with and without cached kernels."""

    def run(cache: str) -> tuple[float, ...]:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-c", TIMED]
        out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return tuple(float(word) for word in out.stdout.split())

    with tempfile.TemporaryDirectory() as cache:
        _, cold = run(cache)
        imports, cached = (
            min(times) for times in zip(*(run(cache) for _ in range(3)), strict=True)
        )
    return [
        Row("import probdice, after numpy", imports, "s", "at most 0.2 s"),
        Row("first compare on a machine, minus the second", cold, "s", "at most 8 s"),
        Row("first compare of a process, minus the second", cached, "s", "at most 1 s"),
    ]


BENCHMARKS = (
    small_maps,
    small_soft,
    soft_pairs,
    likeliest,
    atlas,
    label_maps,
    mixed,
    maps_of_labels,
    many_regions,
    memory,
    start_up,
)

if __name__ == "__main__":
    run(BENCHMARKS, __doc__)
