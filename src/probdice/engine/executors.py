"""Executors, which run a pass over all blocks and report progress."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from probdice.data.arrays import has_type, is_reopenable
from probdice.data.machine import cores
from probdice.engine.blocks import Blocks
from probdice.engine.grids import Block
from probdice.engine.passes import Pass
from probdice.engine.threads import run, watched, watcher
from probdice.errors import InputError

__all__ = [
    "Executor",
    "Threads",
    "executor_for",
    "image_from_blocks",
    "run_pass",
    "uses_threads",
    "using",
]

R = TypeVar("R")
Visit = Callable[[Blocks, Block], NDArray[Any]]
Casting = Literal["safe", "same_kind"]  # of NumPy


class Executor(Protocol):
    """An object that runs a pass over all blocks and adds the results in the order of the blocks.

    Blocks and passes can be pickled, so an executor can send them to other processes.
    """

    def run(self, task: Pass[R], blocks: Blocks) -> R:
        """Return the sum of the results of all blocks."""


@dataclass(frozen=True)
class Threads:
    """Executor that uses threads of this process. The default is one thread per core."""

    workers: int | None = None

    def run(self, task: Pass[R], blocks: Blocks) -> R:
        """Return the sum of the results of all blocks."""
        return task.add(run(partial(task.visit, blocks), blocks.blocks, self.workers or cores()))


_executor: ContextVar[Executor | None] = ContextVar("executor", default=None)


@contextmanager
def using(executor: Executor) -> Iterator[None]:
    """While this context is active, run passes with this executor.

    Passes that write to the memory of this process still run in this process.
    """
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


def run_pass(
    task: Pass[R], blocks: Blocks, workers: int | None = None, *, local: bool = False
) -> R:
    """Return the sum of the results of all blocks.

    With `local`, the pass writes to the memory of this process and therefore runs in this process.
    The executor selected with `using` is then ignored, because it may use other processes.
    """
    executor = None if local else _executor.get()
    if executor is not None:
        add = partial(_add_and_report, task.add, len(blocks.blocks))
        return executor.run(replace(task, add=add), blocks)
    if blocks.single_block is None:
        return executor_for(blocks, workers, local=local).run(task, blocks)
    result, watch = task.visit(blocks, blocks.single_block), watcher.get()
    if watch is not None:
        watch(1, 1)
    return task.add((result,))


def uses_threads(blocks: Blocks) -> bool:
    """Return whether passes over these blocks run in threads and `using` selects no executor."""
    return _executor.get() is None and isinstance(executor_for(blocks, None), Threads)


def executor_for(blocks: Blocks, workers: int | None, *, local: bool = False) -> Executor:
    """Return the default executor for these blocks. An executor set with `using` takes precedence.

    Dask runs passes over Dask arrays. If the user has selected a Dask scheduler, Dask also runs
    passes over stores that every worker can read. With `local`, passes always run in threads.
    Threads and Dask report their own progress.
    """
    if blocks.chunked and not local:
        from probdice.engine.dask import DaskScheduler, runs_on_dask

        if runs_on_dask(blocks):
            return DaskScheduler()
    return Threads(workers)


def _add_and_report(add: Callable[[Iterable[R]], R], total: int, results: Iterable[R]) -> R:
    """Add results, and report each result to the watcher of this process, if there is one."""
    return add(watched(results, total))


def image_from_blocks(
    visit: Visit,
    blocks: Blocks,
    dtype: DTypeLike,
    workers: int | None,
    *,
    rows: int | None = None,
    into: Any = None,
) -> Any:
    """Return an image that consists of the results of `visit` for all blocks.

    The image has a first axis of length `rows`, unless `rows` is None. The image is written block
    by block to the array `into` or, without `into`, to a new array. For Dask arrays without `into`,
    the result is a Dask array that is computed lazily.
    """
    first_axis = () if rows is None else (rows,)
    if into is None and any(has_type(side.array, "dask", "Array") for side in blocks.sides):
        from probdice.engine import dask

        return dask.image_from_blocks(visit, blocks, np.dtype(dtype), rows)
    if into is None:
        into = blocks.image(np.empty((*first_axis, *blocks.shape), dtype))
    else:
        _check_output(into, (*first_axis, *blocks.sides[0].shape), np.dtype(dtype))
    write = Pass(partial(_write, visit=visit, into=into), _nothing)
    run_pass(write, blocks, workers, local=not is_reopenable(into))
    return into


def _check_output(into: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Reject an output array with another shape, or with a type that cannot store the values."""
    expected = f"into: expected an array of shape {shape} that can store {dtype} values"
    if not (hasattr(into, "shape") and hasattr(into, "dtype")):
        raise InputError(f"{expected}, found {into!r:.60}")
    casting: Casting = "safe" if dtype.kind in "iu" else "same_kind"
    if tuple(into.shape) != shape or not np.can_cast(dtype, into.dtype, casting):
        raise InputError(f"{expected}, found shape {tuple(into.shape)} and type {into.dtype}")


def _write(blocks: Blocks, block: Block, visit: Visit, into: Any) -> None:
    values = blocks.image(visit(blocks, block))
    box = blocks.box(block)
    into[box if values.ndim == len(box) else (slice(None), *box)] = values


def _nothing(results: Iterable[None]) -> None:
    deque(results, maxlen=0)
