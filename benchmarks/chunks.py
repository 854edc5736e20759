"""Chunked stores: how often chunks are decoded, time with threads and with Dask, and memory.

    python -m benchmarks.chunks [--edge 1024] [--only decoded threads …] [--json FILE]

The volumes contain cubic cells, and the prediction is shifted by a few pixels. All files are in a
temporary folder. `--edge` is the edge length of the volume on disk in pixels, and `--huge` is the
edge length of the generated volume.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array
import zarr
from distributed import Client, LocalCluster
from zarr.storage import MemoryStore

import probdice
from benchmarks.stores import Counting, cells, generated
from probdice.data.segmentation import Segmentation
from probdice.engine.blocks import Blocks

WORKERS = 2
CELL, SHIFT = 22, 7  # pixels; a volume of 1024³ pixels has 103,823 cells
CHUNK = 64


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    work: str
    measured: str
    goal: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edge", type=int, default=1024, help="edge of the volume on disk")
    parser.add_argument("--huge", type=int, default=2048, help="edge of the generated volume")
    parser.add_argument("--small", type=int, default=47, help="number of small chunks per axis")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="functions of this file")
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--client", nargs=2, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        print(json.dumps(_client(options.client[0], int(options.client[1]))))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for benchmark in (decoded, on_disk, small_chunks, made_up, killed):
            if not options.only or benchmark.__name__ in options.only:
                for row in benchmark(options, Path(folder)):
                    rows.append(row)
                    print(f"{row.work:72} {row.measured:44} {row.goal}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


def decoded(options: argparse.Namespace, folder: Path) -> list[Row]:
    """Count how often chunks are decoded."""
    edge, rows = min(options.edge, 384), []
    for chunks, goal in (((64, 64), "once"), ((64, 96), "at most twice on average")):
        arrays, stores = [], []
        for chunk, shift in zip(chunks, (0, SHIFT), strict=True):
            memory = MemoryStore()
            _filled(memory, edge, chunk, shift)
            stores.append(Counting(memory))
            arrays.append(zarr.open(stores[-1], mode="r+"))
        probdice.compare(*arrays, workers=WORKERS)
        fetched = [count for store in stores for count in store.fetched.values()]
        work = f"chunks of {chunks[0]}³ and {chunks[1]}³, {edge}³ pixels: each is decoded"
        rows.append(Row(work, f"{sum(fetched) / len(fetched):.2f} times", goal))
    return rows


def on_disk(options: argparse.Namespace, folder: Path) -> list[Row]:
    """Compare the times of threads and Zarr, of Dask and threads, and of two workers and one."""
    edge = options.edge
    names = "reference", "prediction"
    for name, shift in zip(names, (0, SHIFT), strict=True):
        _filled(folder / name, edge, CHUNK, shift)
    arrays = [zarr.open(folder / name, mode="r") for name in names]
    blocks = Blocks(*(Segmentation.from_labels(array) for array in arrays)).blocks
    what = f"{edge}³ uint32, {(-(-edge // CELL)) ** 3:,} cells, chunks of {CHUNK}³"

    def decode() -> None:
        boxes = [(array, block.box) for block in blocks for array in arrays]
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(lambda job: job[0][job[1]].size, boxes))

    def overlap() -> Any:
        return probdice.overlap(*arrays, workers=WORKERS)

    expected = probdice.compare(*arrays, workers=WORKERS)
    times = _alternately({"decode": decode, "threads": overlap}, options.rounds)
    ratio = times["threads"] / times["decode"]
    rows = [
        Row(f"decode both, {what}", f"{times['decode']:.1f} s", ""),
        Row(
            "overlap with two threads, relative to decoding by Zarr",
            f"{times['threads']:.1f} s, {ratio:.2f} ×",
            "at most 1.3 ×",
        ),
    ]
    seconds = {}
    for workers in (1, 2):
        with cluster(workers):
            overlap()  # imports and kernels
            seconds[workers] = min(_seconds(overlap) for _ in range(options.rounds))
    with cluster(2):
        same = probdice.compare(*arrays).to_json() == expected.to_json()
        lazy = [dask.array.from_zarr(folder / name) for name in names]
        as_arrays = min(_seconds(lambda: probdice.overlap(*lazy)) for _ in range(options.rounds))
    efficiency = seconds[1] / seconds[2] / 2
    against = seconds[2] / times["threads"]
    rows += [
        Row("overlap with Dask, one worker", f"{seconds[1]:.1f} s", ""),
        Row(
            "overlap with Dask, two workers",
            f"{seconds[2]:.1f} s, efficiency {efficiency:.2f}",
            "at least 0.75",
        ),
        Row("Dask relative to threads", f"{against:.2f} ×", "at most 1.4 ×"),
        Row(
            "Dask arrays of the same data, relative to threads",
            f"{as_arrays:.1f} s, {as_arrays / times['threads']:.2f} ×",
            "at most 1.4 ×",
        ),
        Row("the result with Dask", "the same to the bit" if same else "DIFFERS", "to the bit"),
    ]
    table = overlap()
    took = _seconds(lambda: table.compare().score)
    rows.append(Row(f"matching and score ({expected.score:.4f})", f"{took:.2f} s", ""))
    return rows


def small_chunks(options: argparse.Namespace, folder: Path) -> list[Row]:
    """Measure the memory of the client for very many chunks in a store and in a Dask array."""
    rows = []
    for kind in ("zarr", "dask"):
        done = _in_process("--client", kind, str(options.small))
        work = f"{options.small**3:,} chunks of 16³ ({kind}), two workers: peak of the client"
        measured = f"{done['client']:.0f} MB ({done['seconds']:.0f} s)"
        rows.append(Row(work, measured, "below 500 MB"))
    return rows


def made_up(options: argparse.Namespace, folder: Path) -> list[Row]:
    """Compare volumes that are not stored: their chunks are generated when they are read."""
    done = _in_process("--client", "huge", str(options.huge))
    work = f"{options.huge**3 / 2**30:.1f} G pixels, generated when read, two workers"
    peaks = ", ".join(f"{peak:.0f}" for peak in [done["client"], *done["workers"]])
    measured = f"{done['seconds']:.0f} s; peaks {peaks} MB (client, workers)"
    return [Row(work, measured, "completes; each process below 1 GB")]


def killed(options: argparse.Namespace, folder: Path) -> list[Row]:
    """Check that the result does not change when a worker is killed."""
    edge = min(options.edge, 384)
    arrays = [generated((edge,) * 3, 32, CELL, shift) for shift in (0, SHIFT)]
    expected = probdice.compare(*arrays).to_json()
    with cluster(2):
        probdice.overlap(*arrays)  # imports and kernels
        took = _seconds(lambda: probdice.overlap(*arrays))
    same = died = 0
    rng = random.Random(0)
    for _ in range(options.kills):
        with cluster(2) as client:
            probdice.overlap(*arrays)
            pids = set(client.run(os.getpid).values())
            delay = rng.uniform(0.05, 0.95) * took
            timer = threading.Timer(delay, os.kill, (rng.choice(sorted(pids)), signal.SIGKILL))
            timer.start()
            same += probdice.compare(*arrays).to_json() == expected
            timer.join()
            died += not pids <= set(client.run(os.getpid, on_error="ignore").values())
    work = f"a worker killed while {edge}³ pixels are compared ({took:.1f} s)"
    return [Row(work, f"{died} times; {same} of {options.kills} results equal", "to the bit")]


# -- parts ---------------------------------------------------------------------------------------


@contextmanager
def cluster(workers: int) -> Any:
    """Yield a Dask client with worker processes that decode on their only thread.

    On Python 3.11, Dask's profiler may block its threads: see docs/how-to/large.md.
    """
    environment = {"ZARR_THREADING__MAX_WORKERS": "1", "ZARR_ASYNC__CONCURRENCY": "1"}
    settings = {
        "distributed.nanny.environ": environment,
        "distributed.worker.profile.enabled": False,
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as local,
        Client(local) as client,
    ):
        yield client


def _filled(store: Any, edge: int, chunk: int, shift: int) -> None:
    """Write a volume of cells to a store."""
    array = zarr.create_array(store, shape=(edge,) * 3, chunks=(chunk,) * 3, dtype="uint32")
    for first in range(0, edge, chunk):
        box = slice(first, min(first + chunk, edge)), slice(0, edge), slice(0, edge)
        array[box] = cells(box, CELL, shift, -(-edge // CELL))


def _alternately(works: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the shortest time of each function. The functions run alternately."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            best[name] = min(best[name], _seconds(work))
    return best


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _in_process(*words: str) -> dict[str, Any]:
    """Return the measurements of a client that runs in a separate process."""
    command = [sys.executable, "-m", "benchmarks.chunks", *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _client(kind: str, size: int) -> dict[str, Any]:
    """Compare on a cluster of two workers, and return the peak memory of all processes in MB."""
    chunk = 128 if kind == "huge" else 16
    edge = size if kind == "huge" else chunk * size
    arrays = [generated((edge,) * 3, chunk, CELL, shift) for shift in (0, SHIFT)]
    if kind == "dask":
        arrays = [dask.array.from_zarr(array) for array in arrays]
    with cluster(2) as client:
        seconds = _seconds(lambda: probdice.compare(*arrays).score)
        workers = list(client.run(_peak).values())
    return {"seconds": seconds, "client": _peak(), "workers": workers}


def _peak() -> float:
    """Return the peak memory of this process in MB, which child processes do not inherit."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1024


if __name__ == "__main__":
    main()
