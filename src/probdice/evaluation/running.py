"""Run cases in worker processes of one or more threads, within the available cores and memory.

There are `workers` slots. Each slot has one core, and the slots share half of the machine's memory
equally. A case takes one slot, or several slots if its images need more memory, and uses one thread
per slot. The largest cases therefore run one at a time on all cores, and small cases run in
parallel on one core each. If fewer cases than free slots remain, the free slots are divided among
these cases.

Worker processes read the images. If they cannot import the similarity, the main process reads the
images instead. If a corrupt file crashes a worker process, only the case of this file fails.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from probdice.data.machine import memory
from probdice.errors import ProbdiceError
from probdice.evaluation.case_scoring import (
    OVERHEAD,
    Request,
    bytes_needed,
    failed_line,
    score_case,
)
from probdice.evaluation.worker import COMPILING, READY
from probdice.files.sources import split_inside
from probdice.method.region_labels import listed
from probdice.method.sides import SIDES
from probdice.method.similarity import Similarity

__all__ = ["WorkerPool", "run", "run_on_cluster"]

MIN_PARALLEL_BYTES = 2**22  # total bytes of images below which one process is fastest
CASES_PER_THREAD = 3  # submitted to a Dask cluster
MAX_LISTED_FILES = 3  # per side
START = "import json, sys; sys.path = json.loads(sys.argv[1])\n"
START += "from probdice.evaluation.worker import main; main()"


def run(
    requests: Sequence[Request],
    workers: int,
    pool: "WorkerPool",
    compiling: Callable[[], None] | None = None,
) -> Generator[str, None, None]:
    """Yield the lines of the journal in the order of completion.

    Idle processes of the pool are used first. Processes that have not ended are returned to the
    pool.
    `compiling` is called, from any thread, when a process starts to compile a kernel.
    """
    if any(not _is_importable(request.options.similarity) for request in requests):
        yield from (score_case(request, workers) for request in requests)
        return
    needs = [bytes_needed(request.job) for request in requests]
    slot_memory = max(1, memory() // 2 // workers)
    slots = [min(workers, -(-need // slot_memory)) for need in needs]
    if sum(needs) - OVERHEAD * len(needs) < MIN_PARALLEL_BYTES:
        # Starting a second process or thread would take longer than the cases.
        slots, workers = [1] * len(requests), 1
    yield from _run_in_slots(requests, slots, workers, pool, compiling or (lambda: None))


def run_on_cluster(requests: Sequence[Request], address: str) -> Generator[str, None, None]:
    """Score each case as one Dask task, and yield the journal lines in the order of completion.

    Only enough cases to keep the Dask workers busy are submitted at a time.
    """
    from probdice.engine.dask_schedulers import connected

    with connected(address) as client:
        from distributed import as_completed

        def submit(request: Request) -> Any:
            future = client.submit(
                score_case, _with_absolute_paths(request), 1, pure=False, retries=1
            )
            submitted_requests[future.key] = request
            return future

        submitted_requests: dict[str, Request] = {}
        pending_requests = iter(requests)
        task_limit = CASES_PER_THREAD * max(1, sum(client.nthreads().values()))
        futures = as_completed(
            [submit(request) for request in islice(pending_requests, task_limit)]
        )
        for future in futures:
            request = submitted_requests.pop(future.key)
            error = future.exception()
            if error is None:
                yield future.result()
            else:  # a corrupt file can crash the process that reads it
                yield failed_line(request, f"{type(error).__name__}: {error}")
            for request in islice(pending_requests, 1):
                futures.add(submit(request))


def _is_importable(similarity: Similarity) -> bool:
    """Return whether other processes can import the class of a similarity.

    They cannot import a class that is defined in the user's script or inside a function.
    """
    kind = type(similarity)
    return kind.__module__ != "__main__" and "<locals>" not in kind.__qualname__


def _with_absolute_paths(request: Request) -> Request:
    def absolute(path: str) -> str:
        file, inside = split_inside(path)
        return os.path.abspath(file) + (f":{inside}" if inside else "")

    files = {role: tuple(map(absolute, paths)) for role, paths in request.job.files.items()}
    return replace(request, job=replace(request.job, files=files))


def _run_in_slots(
    requests: Sequence[Request],
    slots: Sequence[int],
    workers: int,
    pool: "WorkerPool",
    compiling: Callable[[], None],
) -> Generator[str, None, None]:
    pending_requests = deque(zip(requests, slots, strict=True))
    running_workers: dict[Future[str], tuple[_Worker, int]] = {}
    finished_futures: list[Future[str]] = []
    free_threads = workers
    threads = ThreadPoolExecutor(workers)  # each thread waits for one process
    try:
        while pending_requests or running_workers or finished_futures:
            while pending_requests and pending_requests[0][1] <= free_threads:
                worker_threads = max(pending_requests[0][1], free_threads // len(pending_requests))
                request, _ = pending_requests.popleft()
                worker = pool.take()
                future = threads.submit(worker.answer, request, worker_threads, compiling)
                running_workers[future] = worker, worker_threads
                free_threads -= worker_threads
            for future in finished_futures:  # while workers compare the next cases
                yield future.result()
            finished_futures = (
                list(wait(running_workers, return_when=FIRST_COMPLETED).done)
                if running_workers
                else []
            )
            for future in finished_futures:
                worker, worker_threads = running_workers.pop(future)
                free_threads += worker_threads
                pool.give_back(worker)
    finally:
        for worker, _ in running_workers.values():
            worker.process.kill()
        threads.shutdown()
        for worker, _ in running_workers.values():
            worker.stop()


class WorkerPool:
    """Idle worker processes, which a run uses again for its next reference.

    Leaving the context stops all idle processes.
    """

    def __init__(self) -> None:
        self._idle_workers: list[_Worker] = []

    def take(self) -> "_Worker":
        """Return an idle worker, or start one. Workers that were killed while idle are dropped."""
        while self._idle_workers:
            worker = self._idle_workers.pop()
            if worker.alive:
                return worker
            worker.stop()
        return _Worker()

    def give_back(self, worker: "_Worker") -> None:
        """Keep a worker for the next case, unless its process has ended."""
        if worker.alive:
            self._idle_workers.append(worker)

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self._idle_workers:
            worker.stop()


class _Worker:
    """A process that scores one case at a time."""

    def __init__(self) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.ready = False
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            encoding="ascii",
        )

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self.process.poll() is None

    def answer(self, request: Request, threads: int, compiling: Callable[[], None]) -> str:
        """Return the journal line for a request. If the process crashes, the case fails."""
        assert self.process.stdin is not None and self.process.stdout is not None
        line = ""
        with suppress(OSError):
            self.ready = self.ready or self.process.stdout.readline() == f"{READY}\n"
            self.process.stdin.write(json.dumps([threads, request.to_dict()]) + "\n")
            self.process.stdin.flush()
            while (line := self.process.stdout.readline()) == f"{COMPILING}\n":
                compiling()
        if line.endswith("\n"):
            return line[:-1]
        self.process.wait()
        exit_reason = self._exit_reason()
        self.stop()
        if not self.ready:
            raise ProbdiceError(f"cannot start the worker process: it {exit_reason}")
        files = request.job.files
        sides = " and ".join(listed(files[side], MAX_LISTED_FILES) for side in SIDES)
        return failed_line(request, f"the worker process {exit_reason} while it compared {sides}")

    def stop(self) -> None:
        """Kill the process and close its streams."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self.errors.close()

    def _exit_reason(self) -> str:
        code = self.process.returncode
        ending = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        self.errors.seek(0)
        last_lines = self.errors.read()[-2000:].decode(errors="replace").strip().splitlines()
        reason = " (out of memory?)" if code == -9 else f": {last_lines[-1]}" if last_lines else ""
        return f"{ending}{reason}"
