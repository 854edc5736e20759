"""Time of passes over the pixels, relative to memory bandwidth and to other tools.

    python -m benchmarks.speed [--json FILE]

All measurements are from one run on the same arrays; each time is the least of several.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import probdice
from benchmarks.baseline import hungarian_accuracy

WORKERS = 2


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    work: str
    seconds: float
    against: str
    ratio: float
    goal: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--only", nargs="*", default=[], help="functions of this file")
    options = parser.parse_args()
    rows = []
    for benchmark in BENCHMARKS:
        if options.only and benchmark.__name__ not in options.only:
            continue
        for row in benchmark():
            rows.append(row)
            print(
                f"{row.work:64} {row.seconds:9.4f} {row.ratio:9.2f} × {row.against:42} {row.goal}"
            )
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


def least(work: Callable[[], Any], times: int = 7) -> float:
    """The shortest of several times."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


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
    """The same with a compiled loop."""
    slices = [piece for array in arrays for piece in np.array_split(array.reshape(-1), 8)]
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(compiled_sum, slices))


def soft(regions: int, pixels: int, seed: int) -> NDArray[np.float32]:
    p = np.random.default_rng(seed).random((regions, pixels), dtype=np.float32)
    return p / p.sum(axis=0)


def soft_pairs() -> list[Row]:
    """8 × 8 regions, 8 M pixels, float32."""
    p, q = soft(8, 8_000_000, 0), soft(8, 8_000_000, 1)
    goals = {
        ("overlap", "absolute"): 1.3,
        ("overlap", "aitchison"): 5,
        ("compare", "absolute"): 1.4,
        ("compare", "aitchison"): 8,
    }
    compiled_read(p, q)
    limit = least(lambda: read(p, q), 15)
    faster = least(lambda: compiled_read(p, q), 15)
    rows = [
        Row("read both arrays (np.sum, two threads)", limit, "read", 1, "the limit"),
        Row("read both arrays (a compiled loop, two threads)", faster, "read", faster / limit, ""),
    ]
    for (name, similarity), goal in goals.items():

        def work(name: str = name, similarity: str = similarity) -> Any:
            result = getattr(probdice, name)(p, q, similarity=similarity, workers=WORKERS)
            return result.score if name == "compare" else result

        work()
        seconds = least(work)
        label = f"{name}, {similarity}, 8 × 8 regions, 8 M pixels, float32"
        rows.append(Row(label, seconds, "read", seconds / limit, f"at most {goal:g} ×"))
    for name, peer in soft_peers(p, q).items():
        seconds = least(peer, 1)
        rows.append(Row(f"the absolute table by {name}", seconds, "read", seconds / limit, ""))
    return rows


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
    """100 × 100 compact regions."""
    from scipy.spatial.distance import cdist

    shape, regions = (91, 109, 91), 100
    p, q = (compact_probabilities(shape, regions, seed) for seed in (0, 1))
    probdice.overlap(p, q)
    ours = least(lambda: probdice.overlap(p, q, workers=WORKERS), 3)
    flat = [side.reshape(regions, -1) for side in (p, q)]
    theirs = least(lambda: cdist(*flat, "cityblock"), 1)
    work = "overlap, absolute, 100 × 100 compact regions, 91×109×91"
    return [Row(work, ours, "scipy cdist cityblock, faster by", theirs / ours, "at least 100 ×")]


def compact_probabilities(shape: tuple[int, ...], regions: int, seed: int) -> NDArray[np.float32]:
    """Every pixel belongs to the cells of its two nearest centres."""
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
    """Cells of 13 pixels."""
    rng = np.random.default_rng(seed)
    dtype = np.uint8 if labels <= 256 else np.uint16
    cells = rng.integers(0, labels, (size // 13 + 1,) * 3, dtype=dtype)
    for axis in range(3):
        cells = np.repeat(cells, 13, axis=axis).take(range(size), axis=axis)
    return np.ascontiguousarray(cells)


def label_maps() -> list[Row]:
    """256³ pixels, 20 labels."""
    import SimpleITK
    from skimage.metrics import contingency_table

    a, b = compact_labels(256, 20, 0), compact_labels(256, 20, 1)
    spread = np.sort(np.random.default_rng(2).integers(0, 5 * 10**8, 20)).astype(np.int32)
    wide = spread[a], spread[b]
    images = [SimpleITK.GetImageFromArray(side) for side in (a, b)]
    overlap = SimpleITK.LabelOverlapMeasuresImageFilter()
    SimpleITK.ProcessObject.SetGlobalDefaultNumberOfThreads(WORKERS)
    probdice.overlap(a, b), probdice.overlap(*wide)
    seconds = least(lambda: probdice.overlap(a, b, workers=WORKERS))
    work = "overlap of two label maps, 256³, 20 labels, uint8"
    rows = []
    peers: dict[str, tuple[Callable[[], Any], str]] = {
        "SimpleITK LabelOverlapMeasures": (lambda: overlap.Execute(*images), "at least 5 ×"),
        "skimage contingency_table": (lambda: contingency_table(a, b), "at least 30 ×"),
        "np.bincount": (lambda: np.bincount(a.ravel() * np.int32(20) + b.ravel()), ""),
    }
    for name, (peer, goal) in peers.items():
        rows.append(Row(work, seconds, f"{name}, faster by", least(peer, 3) / seconds, goal))
    slower = least(lambda: probdice.overlap(*wide, workers=WORKERS))
    work = "the same, int32 labels with gaps, up to 5·10⁸"
    return [*rows, Row(work, slower, "uint8", slower / seconds, "at most 3 ×")]


def small_maps() -> list[Row]:
    """Label maps of typical image sizes, compared with hand-written code."""
    rows = []
    for shape, compare_goal, overlap_goal in (((321, 481), 1.0, 0.7), ((64, 64), 3.0, None)):
        for dtype in (np.uint8, np.int64):
            a, b = (photograph_labels(shape, 20, seed).astype(dtype) for seed in (0, 1))
            name = f"two label maps {shape[0]}×{shape[1]}, 20 labels, {np.dtype(dtype).name}"
            assert abs(probdice.compare(a, b).score - hungarian_accuracy(a, b)) < 1e-12
            limit = least(lambda a=a, b=b: hungarian_accuracy(a, b), 300)  # type: ignore[misc]
            seconds = least(lambda a=a, b=b: probdice.compare(a, b).score, 300)  # type: ignore[misc]
            goal = f"at most {compare_goal:g} ×"
            rows.append(Row(f"compare, {name}", seconds, "NumPy + SciPy", seconds / limit, goal))
            if overlap_goal:
                seconds = least(lambda a=a, b=b: probdice.overlap(a, b), 300)  # type: ignore[misc]
                goal = f"at most {overlap_goal:g} ×"
                row = Row(f"overlap, {name}", seconds, "NumPy + SciPy", seconds / limit, goal)
                rows.append(row)
    return rows


def photograph_labels(shape: tuple[int, int], labels: int, seed: int) -> NDArray[np.int64]:
    """Regions of a photograph: every pixel has the label of the nearest of some centres."""
    from scipy.spatial import cKDTree

    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"), axis=-1)
    nearest = cKDTree(rng.random((labels, 2)) * shape).query(grid.reshape(-1, 2))[1]
    return np.asarray(nearest, np.int64).reshape(shape)


def small_soft() -> list[Row]:
    """All numbers of a crop in a training loop."""
    p, q = (soft(4, 96 * 96, seed).reshape(4, 96, 96) for seed in (0, 1))

    def work() -> tuple[float, dict[str, float]]:
        result = probdice.compare(p, q)
        return result.adjusted_score, result.explained

    work()
    seconds = least(work, 100)
    name = "compare, adjusted score and explained, 4 × 96×96"
    return [Row(name, seconds, "one millisecond", seconds * 1000, "at most 1 ms")]


def many_regions() -> list[Row]:
    """A grid of 46³ cells and a shifted copy, from label maps to groups."""
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
        seconds = least(work, 2)
        title = f"compare, 97,336 × 97,336 cells, 21 M pixels, {name}"
        rows.append(Row(title, seconds, "one second", seconds, f"at most {goal} s"))
    return rows


def cells(count: int, size: int, shift: int, jitter: float) -> NDArray[np.int32]:
    """A grid of cells, shifted along every axis; some pixels have the label of another cell."""
    line = np.minimum((np.arange(count * size) + shift) // size, count - 1)
    labels = line[:, None, None] * count**2 + line[None, :, None] * count + line[None, None, :]
    rng = np.random.default_rng(0)
    if jitter:
        moved = rng.random(labels.shape) < jitter
        labels[moved] = np.roll(labels, size, axis=rng.integers(3))[moved]
    return rng.permutation(count**3)[labels].astype(np.int32)


def maps_of_labels() -> list[Row]:
    """f at every pixel of label maps, 256³, 2,000 labels; and the same result as JSON."""
    a, b = (compact_labels(256, 2000, seed) for seed in (0, 1))
    result = probdice.compare(a, b, workers=WORKERS)
    result.map(), compiled_read(a, b)
    limit = least(lambda: read(a, b), 10)
    seconds = least(result.map, 3)
    rows = [
        Row("map() of label maps, 256³, 2,000 labels", seconds, "read", seconds / limit,
            "at most 3 ×")
    ]  # fmt: skip
    near = a.copy()
    near[::3] = np.roll(a, 5, axis=1)[::3]
    result = probdice.compare(a, near, workers=WORKERS)
    seconds = least(result.to_json, 2)
    size = len(result.to_json()) / 1e6
    goal = "at most 1 s and 5 MB"
    title = f"to_json of 2,000 × 2,000 regions ({size:.1f} MB)"
    return [*rows, Row(title, seconds, "one second", seconds, goal)]


def mixed() -> list[Row]:
    """A label map and 8 soft regions, 256³ pixels."""
    labels = compact_labels(256, 8, 0)
    q = soft(8, labels.size, 1).reshape(8, *labels.shape)
    probdice.overlap(labels, q)
    limit = least(lambda: read(labels, q), 10)
    seconds = least(lambda: probdice.overlap(labels, q, workers=WORKERS))
    work = "overlap of a label map and 8 soft regions, 256³, absolute"
    return [Row(work, seconds, "read", seconds / limit, "at most 1.5 ×")]


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
    """Memory-mapped input with the regions last, so that every block must be copied."""
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
    work = f"extra anonymous memory in MB, for {size:.0f} MB of memory-mapped input"
    return [Row(work, extra, "the input", extra / size, "at most 200 MB")]


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
    """Import time, and the first comparison of a process with and without cached kernels."""

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
    one = "one second"
    return [
        Row("import probdice, beyond numpy", imports, one, imports, "at most 0.2 s"),
        Row("first compare ever, beyond a warm one", cold, one, cold, "at most 8 s"),
        Row("first compare of a process, beyond a warm one", cached, one, cached, "at most 1 s"),
    ]


BENCHMARKS = (
    small_maps,
    small_soft,
    soft_pairs,
    atlas,
    label_maps,
    mixed,
    maps_of_labels,
    many_regions,
    memory,
    start_up,
)

if __name__ == "__main__":
    main()
