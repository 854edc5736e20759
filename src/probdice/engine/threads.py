"""Run a pass over all blocks on the threads of this machine, and what the machine has."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

__all__ = ["cores", "memory", "run", "watcher"]

B = TypeVar("B")
R = TypeVar("R")

# Called with the blocks done and the blocks in all, through every pass over the pixels.
watcher: ContextVar[Callable[[int, int], None] | None] = ContextVar("watcher", default=None)


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> int:
    """What this machine, or the container, has: bytes."""
    available = 2**33  # where nothing can be known
    with suppress(AttributeError, ValueError, OSError):
        available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        available = min(available, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return available


def run(visit: Callable[[B], R], blocks: Sequence[B], workers: int) -> Iterator[R]:
    """The results of all blocks, in their order, so that sums do not depend on the workers.

    Whoever watches is told of each.
    """
    watch = watcher.get()
    results = (
        map(visit, blocks) if min(workers, len(blocks)) < 2 else _ahead(visit, blocks, workers)
    )
    for done, result in enumerate(results, start=1):
        if watch is not None:
            watch(done, len(blocks))
        yield result


def _ahead(visit: Callable[[B], R], blocks: Sequence[B], workers: int) -> Iterator[R]:
    """Results from as many threads as there are workers."""
    with ThreadPoolExecutor(workers) as pool:
        ahead: deque[Future[R]] = deque()
        try:
            for block in blocks:
                ahead.append(pool.submit(visit, block))
                if len(ahead) > 2 * workers:  # no more results wait than are needed
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:  # an interrupt need not wait for blocks that nobody has begun
            for future in ahead:
                future.cancel()
