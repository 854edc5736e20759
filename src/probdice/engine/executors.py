"""Executors, which run a pass over all blocks, and the choice of the executor."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from probdice.data.arrays import has_type, travels
from probdice.engine.blocks import Blocks
from probdice.engine.grids import Block
from probdice.engine.passes import Pass
from probdice.engine.threads import run

__all__ = ["Executor", "Threads", "executor_for", "image", "using"]

R = TypeVar("R")
Visit = Callable[[Blocks, Block], NDArray[Any]]


class Executor(Protocol):
    """Runs a pass over all blocks and adds up the results in the order of the blocks.

    Blocks, and the function `visit` of a pass, can be pickled for other processes.
    """

    def run(self, task: Pass[R], blocks: Blocks) -> R:
        """Return the sum of the results of all blocks."""


@dataclass(frozen=True)
class Threads:
    """Runs passes on threads of this process."""

    workers: int

    def run(self, task: Pass[R], blocks: Blocks) -> R:
        """Return the sum of the results of all blocks."""
        return task.add(run(partial(task.visit, blocks), blocks.blocks, self.workers))


_chosen: ContextVar[Executor | None] = ContextVar("executor", default=None)


@contextmanager
def using(executor: Executor) -> Iterator[None]:
    """Run passes with this executor, except those that write to the memory of this process."""
    token = _chosen.set(executor)
    try:
        yield
    finally:
        _chosen.reset(token)


def executor_for(blocks: Blocks, workers: int, *, local: bool = False) -> Executor:
    """Return the executor for these blocks.

    Dask runs passes over Dask arrays, and over stores that every worker can read if the user has
    chosen a scheduler. With `local`, the pass runs in this process, because it writes to memory of
    this process. `local` takes precedence over `using`, whose executor may run in other processes.
    """
    if local:
        return Threads(workers)
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    if blocks.followed:
        from probdice.engine.dask import DaskScheduler, runs_on_dask

        if runs_on_dask(blocks):
            return DaskScheduler()
    return Threads(workers)


def image(
    visit: Visit,
    blocks: Blocks,
    dtype: DTypeLike,
    workers: int,
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
    executor_for(blocks, workers, local=not travels(values)).run(write, blocks)
    return blocks.image(values) if into is None else into


def _write(blocks: Blocks, block: Block, visit: Visit, into: Any) -> None:
    values = visit(blocks, block)
    box = block.box if values.ndim == len(block.box) else (slice(None), *block.box)
    into[box] = values


def _nothing(results: Iterable[None]) -> None:
    deque(results, maxlen=0)
