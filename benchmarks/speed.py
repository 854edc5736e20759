"""The passes over the pixels against what memory can deliver, and against other tools.

    python -m benchmarks.speed [--json FILE]

Everything in one run on the same arrays; each time is the least of several.
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
from probdice.blocks import Pair
from probdice.kernels import absolute, aitchison
from probdice.segmentation import as_segmentation
from probdice.similarity import Absolute

WORKERS = 2
SLAB = 2**18


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
    options = parser.parse_args()
    rows = []
    for part in PARTS:
        for row in part():
            rows.append(row)
            print(
                f"{row.work:64} {row.seconds:9.4f} {row.ratio:9.2f} × {row.against:42} {row.goal}"
            )
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


def least(work: Callable[[], Any], times: int = 7) -> float:
    """The shortest time of several."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def read(*arrays: NDArray[Any]) -> None:
    """Sum all arrays once, with as many threads as there are workers."""
    parts = [part for array in arrays for part in np.array_split(array.reshape(-1), 8)]
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(np.sum, parts))


def soft(regions: int, pixels: int, seed: int) -> NDArray[np.float32]:
    p = np.random.default_rng(seed).random((regions, pixels), dtype=np.float32)
    return p / p.sum(axis=0)


@numba.njit(nogil=True, error_model="numpy")
def table_absolute(p, q, start, size, listed, found):  # type: ignore[no-untyped-def]
    for done in range(start, start + size, absolute.BLOCK):
        step = min(absolute.BLOCK, start + size - done)
        absolute.differences(p, done, listed, q, done, listed, step, found)


@numba.njit(nogil=True, error_model="numpy")
def table_aitchison(p, q, start, size, listed, found, p_logits, q_logits):  # type: ignore[no-untyped-def]
    for done in range(start, start + size, aitchison.BLOCK):
        step = min(aitchison.BLOCK, start + size - done)
        aitchison._logits(p, done, listed, step, 0.0, p_logits)
        aitchison._logits(q, done, listed, step, 0.0, q_logits)
        aitchison._losses(p_logits, listed.size, q_logits, listed.size, step, found)


def soft_pairs() -> list[Row]:
    """8 against 8 regions, 8 M pixels, float32."""
    regions, pixels = 8, 8_000_000
    p, q = soft(regions, pixels, 0), soft(regions, pixels, 1)
    listed = np.arange(regions)

    def in_slabs(kernel: Callable[..., None], *scratch: tuple[int, int]) -> None:
        def visit(start: int) -> None:
            found = np.empty((regions + 1, regions + 3))
            rows = [np.empty(shape, np.float32) for shape in scratch]
            kernel(p, q, start, min(SLAB, pixels - start), listed, found, *rows)

        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(visit, range(0, pixels, SLAB)))

    logits = (2 * (regions + 1), aitchison.BLOCK)
    ours: dict[str, tuple[Callable[[], Any], float]] = {
        "pair table, absolute": (lambda: in_slabs(table_absolute), 1.3),
        "pair table, aitchison": (lambda: in_slabs(table_aitchison, logits, logits), 5),
        "whole compare, absolute": (lambda: probdice.compare(p, q, workers=WORKERS), 3),
        "whole compare, aitchison": (
            lambda: probdice.compare(p, q, similarity="aitchison", workers=WORKERS),
            10,
        ),
    }
    for work, _ in ours.values():
        work()
    limit = least(lambda: read(p, q), 15)
    rows = [Row("read both arrays (sum, two threads)", limit, "read", 1, "the limit")]
    for name, (work, goal) in ours.items():
        seconds = least(work)
        rows.append(Row(name, seconds, "read", seconds / limit, f"at most {goal:g} ×"))
    for name, peer in soft_peers(p, q).items():
        seconds = least(peer, 1)
        rows.append(Row(f"the same table by {name}", seconds, "read", seconds / limit, ""))
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
        print("torch is not installed: its row is left out")
    else:
        torch.set_num_threads(WORKERS)
        tensors = torch.from_numpy(p), torch.from_numpy(q)
        peers["torch.cdist"] = lambda: torch.cdist(*tensors, p=1)
    return peers


def atlas() -> list[Row]:
    """100 compact regions against 100 others."""
    from scipy.spatial.distance import cdist

    shape, regions = (91, 109, 91), 100
    p, q = (compact_probabilities(shape, regions, seed) for seed in (0, 1))
    pair = Pair(as_segmentation(p), as_segmentation(q), None, WORKERS)
    pair.tally(Absolute())
    ours = least(lambda: pair.tally(Absolute()), 3)
    flat = [side.reshape(regions, -1) for side in (p, q)]
    theirs = least(lambda: cdist(*flat, "cityblock"), 1)
    work = "pair table, absolute, 100 × 100 compact regions, 91×109×91"
    return [Row(work, ours, "scipy cdist cityblock, faster by", theirs / ours, "at least 100 ×")]


def compact_probabilities(shape: tuple[int, ...], regions: int, seed: int) -> NDArray[np.float32]:
    """Every pixel in the cells of its two nearest centres."""
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


def compact_labels(size: int, labels: int, seed: int) -> NDArray[np.uint8]:
    """Cells of 13 pixels."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, labels, (size // 13 + 1,) * 3, dtype=np.uint8)
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

    def tally(*sides: NDArray[Any]) -> Callable[[], Any]:
        pair = Pair(*(as_segmentation(side) for side in sides), mask=None, workers=WORKERS)
        pair.tally(Absolute())
        return lambda: pair.tally(Absolute())

    ours, gapped = tally(a, b), tally(*wide)
    images = [SimpleITK.GetImageFromArray(side) for side in (a, b)]
    overlap = SimpleITK.LabelOverlapMeasuresImageFilter()
    SimpleITK.ProcessObject.SetGlobalDefaultNumberOfThreads(WORKERS)
    seconds = least(ours)
    work = "label map × label map, 256³, 20 labels, uint8"
    rows = []
    peers: dict[str, tuple[Callable[[], Any], str]] = {
        "SimpleITK LabelOverlapMeasures": (lambda: overlap.Execute(*images), "at least 5 ×"),
        "skimage contingency_table": (lambda: contingency_table(a, b), "at least 30 ×"),
        "np.bincount": (lambda: np.bincount(a.ravel() * np.int32(20) + b.ravel()), ""),
    }
    for name, (peer, goal) in peers.items():
        rows.append(Row(work, seconds, f"{name}, faster by", least(peer, 3) / seconds, goal))
    slower = least(gapped)
    work = "the same, int32 labels gapped up to 5·10⁸"
    return [*rows, Row(work, slower, "uint8", slower / seconds, "at most 3 ×")]


def mixed() -> list[Row]:
    """A label map against 8 soft regions, 256³ pixels."""
    labels = compact_labels(256, 8, 0)
    q = soft(8, labels.size, 1).reshape(8, *labels.shape)
    pair = Pair(as_segmentation(labels), as_segmentation(q), None, WORKERS)
    pair.tally(Absolute())
    limit = least(lambda: read(labels, q), 10)
    seconds = least(lambda: pair.tally(Absolute()))
    work = "label map × 8 soft regions, 256³, absolute"
    return [Row(work, seconds, "read", seconds / limit, "at most 2 ×")]


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
    """Memory-mapped input with the regions last, so that every slab must be copied."""
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
    """Import, and the first comparison of a process, with and without compiled kernels."""

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


PARTS = (soft_pairs, atlas, label_maps, mixed, memory, start_up)

if __name__ == "__main__":
    main()
