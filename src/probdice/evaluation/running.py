"""Processes over cases, and threads inside a case, within the cores and the memory there are.

There are as many shares as `workers`, each of one core and an equal part of half the machine's
memory. A case takes one share; one whose images need more memory takes as many as it needs, all of
them at most, and works with as many threads. So large cases run one at a time on all cores, small
ones side by side on one core each. When fewer cases than free shares are left, they divide them
among themselves.

Files are read by worker processes alone, be there ever so few: a damaged file can kill the process
that reads it, which then costs its own case and no other.
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
from probdice.evaluation.case_scoring import OVERHEAD, Request, bytes_needed, scored, unscored
from probdice.evaluation.pairing import ROLES
from probdice.evaluation.worker import COMPILING, READY
from probdice.files.sources import split_inside
from probdice.method.similarity import Similarity

__all__ = ["run", "run_on_cluster"]

TINY = 2**22  # bytes of images in all; less is done before a second process has started
AHEAD = 3  # cases that are under way for each thread of a cluster
SHOWN = 3  # files of a side in a message
START = "import json, sys; sys.path = json.loads(sys.argv[1])\n"
START += "from probdice.evaluation.worker import main; main()"


def run(
    requests: Sequence[Request], workers: int, compiling: Callable[[], None] | None = None
) -> Generator[str, None, None]:
    """The lines of the journal, each as soon as its case is finished.

    `compiling` is called, by any thread, when a process begins to compile a kernel.
    """
    if any(not _importable(request.options.similarity) for request in requests):
        yield from (scored(request, workers) for request in requests)
        return
    needs = [bytes_needed(request.job) for request in requests]
    share = max(1, memory() // 2 // workers)
    shares = [min(workers, -(-need // share)) for need in needs]
    if sum(needs) - OVERHEAD * len(needs) < TINY:
        # Neither a second process nor a second thread is worth its start.
        shares, workers = [1] * len(requests), 1
    yield from _shared_out(requests, shares, workers, compiling or (lambda: None))


def run_on_cluster(requests: Sequence[Request], address: str) -> Generator[str, None, None]:
    """The same on the workers of a cluster of Dask, a case a task, in the order of finishing.

    As many cases as keep the workers busy are under way, not all of them.
    """
    from probdice.engine.dask import connected

    with connected(address) as client:
        from distributed import as_completed

        def submitted(request: Request) -> Any:
            future = client.submit(scored, _located(request), 1, pure=False, retries=1)
            asked[future.key] = request
            return future

        asked: dict[str, Request] = {}
        waiting = iter(requests)
        busy = AHEAD * max(1, sum(client.nthreads().values()))
        futures = as_completed([submitted(request) for request in islice(waiting, busy)])
        for future in futures:
            request = asked.pop(future.key)
            error = future.exception()
            if error is None:
                yield future.result()
            else:  # a damaged file can kill the process that reads it
                yield unscored(request, f"{type(error).__name__}: {error}")
            for request in islice(waiting, 1):
                futures.add(submitted(request))


def _importable(similarity: Similarity) -> bool:
    """Whether other processes can import its class; one of a script or notebook they cannot."""
    kind = type(similarity)
    return kind.__module__ != "__main__" and "<locals>" not in kind.__qualname__


def _located(request: Request) -> Request:
    """The same with the files where a process in another folder finds them."""

    def absolute(path: str) -> str:
        file, inside = split_inside(path)
        return os.path.abspath(file) + (f":{inside}" if inside else "")

    job = request.job
    reference, prediction, mask = (
        tuple(absolute(path) for path in job.files(role)) for role in ROLES
    )
    return replace(request, job=replace(job, reference=reference, prediction=prediction, mask=mask))


def _shared_out(
    requests: Sequence[Request],
    shares: Sequence[int],
    workers: int,
    compiling: Callable[[], None],
) -> Generator[str, None, None]:
    waiting = deque(zip(requests, shares, strict=True))
    running: dict[Future[str], tuple[_Worker, int]] = {}
    idle: list[_Worker] = []
    finished: list[Future[str]] = []
    free = workers
    threads = ThreadPoolExecutor(workers)  # each only waits for the answer of a process
    try:
        while waiting or running or finished:
            while waiting and waiting[0][1] <= free:
                taken = max(waiting[0][1], free // len(waiting))
                request, _ = waiting.popleft()
                worker = idle.pop() if idle else _Worker()
                running[threads.submit(worker.answer, request, taken, compiling)] = worker, taken
                free -= taken
            for future in finished:  # while the next cases are being compared
                yield future.result()
            finished = list(wait(running, return_when=FIRST_COMPLETED).done) if running else []
            for future in finished:
                worker, taken = running.pop(future)
                free += taken
                if worker.alive:
                    idle.append(worker)
    finally:
        for worker, _ in running.values():
            worker.process.kill()  # whoever waits for it stops it
        threads.shutdown()
        for worker in idle:
            worker.stop()


class _Worker:
    """A process that scores one case after the other."""

    def __init__(self) -> None:
        self.complaints = tempfile.TemporaryFile()  # noqa: SIM115
        self.alive, self.ready = True, False
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            encoding="ascii",
        )

    def answer(self, request: Request, threads: int, compiling: Callable[[], None]) -> str:
        """The line for a request; that of a failed case, where the process does not survive it."""
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
        self.alive = False
        self.process.wait()
        death = self._death()
        self.stop()
        if not self.ready:
            raise ProbdiceError(f"the process that should compare cases cannot start: it {death}")
        job = request.job
        sides = f"{_listed(job.reference)} and {_listed(job.prediction)}"
        return unscored(request, f"the process that compared {sides} {death}")

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self.alive = False
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self.complaints.close()

    def _death(self) -> str:
        code = self.process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        self.complaints.seek(0)
        last_lines = self.complaints.read()[-2000:].decode(errors="replace").strip().splitlines()
        reason = " (out of memory?)" if code == -9 else f": {last_lines[-1]}" if last_lines else ""
        return f"{how}{reason}"


def _listed(paths: Sequence[str]) -> str:
    more = f", … {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return ", ".join(paths[:SHOWN]) + more
