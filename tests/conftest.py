"""Set up all tests: one cache of compiled kernels, one BLAS thread, and no worker processes."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent
# Test processes share the cores, and threads of BLAS and torch would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba_cache"))

# A background job of a script ignores interrupts, and the processes that tests start would inherit
# this setting.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("probdice", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("probdice")


class LocalWorker:
    """Scores cases of `evaluate` in this process. Starting a worker process takes a second.

    Requests pass through JSON, as on their way to a worker process.
    """

    def __init__(self) -> None:
        self.alive = True
        self.process = self

    def answer(self, request: Any, threads: int, compiling: Callable[[], None]) -> str:
        from probdice.evaluation.case_scoring import Request, score_case

        return score_case(Request.from_dict(json.loads(json.dumps(request.to_dict()))), threads)

    def kill(self) -> None:
        """Ignore the end of the run: the case finishes."""

    def stop(self) -> None:
        self.alive = False


@pytest.fixture(scope="session", autouse=True)
def worker_class() -> Iterator[type]:
    """Let `evaluate` use `LocalWorker`, and return the class of worker processes."""
    from probdice.evaluation import running

    original = running._Worker
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "_Worker", LocalWorker)
        yield original


@pytest.fixture
def worker_processes(worker_class: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `evaluate` start worker processes, as outside the tests."""
    monkeypatch.setattr("probdice.evaluation.running._Worker", worker_class)


@pytest.fixture
def short_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the child process that parses files spend 1 s of CPU time per file instead of 5."""
    monkeypatch.setattr("probdice.files.containment.SECONDS", 1.0)
