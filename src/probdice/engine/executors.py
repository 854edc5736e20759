"""Run a pass over all blocks, with a choice of executors and reports of progress."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from probdice.data.arrays import has_type, travels
from probdice.data.machine import cores
from probdice.engine.blocks import Blocks
from probdice.engine.grids import Block
from probdice.engine.passes import Pass
from probdice.engine.threads import run, watcher

__all__ = ["Executor", "Threads", "executor_for", "image", "run_pass", "using"]

R = TypeVar("R")
Visit = Callable[[Blocks, Block], NDArray[Any]]


class Executor(Protocol):
    """Runs a pass over all blocks and adds the results in the order of the blocks.

    Blocks and the functions of a pass can be pickled for other processes.
    """

    def run(self, task: Pass[R], blocks: Blocks) -> R:
        """Return the sum of the results of all blocks."""


@dataclass(frozen=True)
class Threads:
    """Runs passes on threads of this process. By default, there are as many threads as cores."""

    workers: int | None = None

    def run(self, task: Pass[R], blocks: Blocks) -> R:
        """Return the sum of the results of all blocks."""
        return task.add(run(partial(task.visit, blocks), blocks.blocks, self.workers or cores()))


_chosen: ContextVar[Executor | None] = ContextVar("executor", default=None)


@contextmanager
def using(executor: Executor) -> Iterator[None]:
    """Run passes with this executor, except those that write to the memory of this process."""
    token = _chosen.set(executor)
    try:
        yield
    finally:
        _chosen.reset(token)


def run_pass(
    task: Pass[R], blocks: Blocks, workers: int | None = None, *, local: bool = False
) -> R:
    """Return the sum of the results of all blocks.

    With `local`, the pass runs in this process, because it writes to memory of this process.
    `local` takes precedence over `using`, whose executor may run in other processes.
    """
    chosen, watch = None if local else _chosen.get(), watcher.get()
    if chosen is not None:
        if watch is None:
            return chosen.run(task, blocks)
        return chosen.run(_reporting(task, watch, len(blocks.blocks)), blocks).result
    if blocks.only is None:
        return executor_for(blocks, workers, local=local).run(task, blocks)
    result = task.add((task.visit(blocks, blocks.only),))
    if watch is not None:
        watch(1, 1)
    return result


def executor_for(blocks: Blocks, workers: int | None, *, local: bool = False) -> Executor:
    """Return the executor of these blocks if the user has not chosen an executor with `using`.

    Dask runs passes over Dask arrays, and over stores that every worker can read if the user has
    chosen a scheduler. Threads and Dask report their progress themselves.
    """
    if blocks.followed and not local:
        from probdice.engine.dask import DaskScheduler, runs_on_dask

        if runs_on_dask(blocks):
            return DaskScheduler()
    return Threads(workers)


@dataclass(frozen=True)
class _Counted(Generic[R]):
    """The sum of the results of some blocks, their number, and whether they were reported."""

    result: R
    blocks: int = 1
    reported: bool = False


def _reporting(task: Pass[R], watch: Callable[[int, int], None], total: int) -> Pass[_Counted[R]]:
    """Return a pass with the same results that also counts blocks and reports them to `watch`.

    Results that were added in another process are reported when they are added in this process.
    """
    return Pass(_CountedVisit(task.visit), _CountedSum(task.add, watch, total), task.halo)


@dataclass(frozen=True)
class _CountedVisit(Generic[R]):
    func: Callable[[Blocks, Block], R]

    def __call__(self, blocks: Blocks, block: Block) -> _Counted[R]:
        return _Counted(self.func(blocks, block))


class _CountedSum(Generic[R]):
    def __init__(
        self,
        add: Callable[[Iterable[R]], R],
        watch: Callable[[int, int], None] | None,
        total: int,
    ) -> None:
        self.add, self.watch, self.total, self.done = add, watch, total, 0

    def __reduce__(self) -> tuple[Any, ...]:
        return _CountedSum, (self.add, None, self.total)  # the watcher is in this process

    def __call__(self, results: Iterable[_Counted[R]]) -> _Counted[R]:
        count = 0

        def counted() -> Iterator[R]:
            nonlocal count
            for one in results:
                count += one.blocks
                if self.watch is not None and not one.reported:
                    self.done += one.blocks
                    self.watch(self.done, self.total)
                yield one.result

        result = self.add(counted())
        return _Counted(result, count, self.watch is not None)


def image(
    visit: Visit,
    blocks: Blocks,
    dtype: DTypeLike,
    workers: int | None,
    *,
    rows: int | None = None,
    into: Any = None,
) -> Any:
    """Return an image of the results of `visit` for every block, with `rows` values per pixel.

    The image is written `into` an array block by block, or into a new array. For Dask arrays, the
    result is a Dask array that is computed lazily.
    """
    if into is None and any(has_type(side.array, "dask", "Array") for side in blocks.sides):
        from probdice.engine import dask

        return dask.image(visit, blocks, np.dtype(dtype), rows)
    values = into
    if into is None:
        values = np.empty((*(() if rows is None else (rows,)), *blocks.shape), dtype)
    write = Pass(partial(_write, visit=visit, into=values), _nothing)
    run_pass(write, blocks, workers, local=not travels(values))
    return blocks.image(values) if into is None else into


def _write(blocks: Blocks, block: Block, visit: Visit, into: Any) -> None:
    values = visit(blocks, block)
    box = block.box if values.ndim == len(block.box) else (slice(None), *block.box)
    into[box] = values


def _nothing(results: Iterable[None]) -> None:
    deque(results, maxlen=0)
