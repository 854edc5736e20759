"""Run a function on all blocks in threads of this process."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["run", "watched", "watcher"]

B = TypeVar("B")
R = TypeVar("R")

# The watcher is called with the number of finished blocks and the number of all blocks in a pass.
watcher: ContextVar[Callable[[int, int], None] | None] = ContextVar("watcher", default=None)


def run(visit: Callable[[B], R], blocks: Sequence[B], workers: int) -> Iterator[R]:
    """Return an iterator over the results in the order of the blocks.

    Sums of the results therefore do not depend on the number of workers.
    """
    if min(workers, len(blocks)) < 2:
        return watched(map(visit, blocks), len(blocks))
    return watched(_ahead(visit, blocks, workers), len(blocks))


def watched(results: Iterable[R], total: int) -> Iterator[R]:
    """Yield the same results. The watcher is called before each result, and may raise an error."""
    watch = watcher.get()
    for count, result in enumerate(results, start=1):
        if watch is not None:
            watch(count, total)
        yield result


def _ahead(visit: Callable[[B], R], blocks: Sequence[B], workers: int) -> Iterator[R]:
    """Yield results that are computed ahead of time by `workers` threads."""
    with ThreadPoolExecutor(workers) as pool:
        ahead: deque[Future[R]] = deque()
        try:
            for block in blocks:
                ahead.append(pool.submit(visit, block))
                if len(ahead) > 2 * workers:  # limits the results in memory
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:  # an interrupt does not wait for blocks that have not started
            for future in ahead:
                future.cancel()
