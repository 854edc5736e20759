"""Run a pass over all blocks as Dask tasks, on the active scheduler.

There is one task per block, and additional tasks add the results in a tree. Tasks are created and
submitted in rounds, so that neither the scheduler nor this process ever has all tasks in memory.
Each task receives its inputs: the tasks that compute the chunks of a Dask array, the location of a
store that every worker can read, or the values of an array in the memory of this process.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from probdice.data.arrays import Array, Chunks, has_type, is_reopenable
from probdice.data.segmentation import Segmentation
from probdice.engine.blocks import Blocks
from probdice.engine.dask_graphs import box_of, chunks_of_blocks, fused_tasks, origin_of
from probdice.engine.dask_schedulers import selected_scheduler
from probdice.engine.grids import Block, Grid
from probdice.engine.passes import Pass
from probdice.engine.threads import watcher
from probdice.errors import ProbdiceError

__all__ = ["DaskScheduler", "image_from_blocks", "runs_on_dask"]

R = TypeVar("R")

ROUND = 64  # largest number of blocks per round on a cluster
LOCAL_ROUND = 1024  # the same number for local schedulers, which process one round at a time
ROUND_TASKS = 2**15  # largest number of tasks per round for Dask arrays with many chunks per block
FAN = 8  # number of results that one task adds
TASKS_PER_THREAD = 4  # queued on a cluster


def runs_on_dask(blocks: Blocks) -> bool:
    """Return whether Dask runs the passes over these blocks.

    Dask always runs passes over Dask arrays. If the user has selected a scheduler, with a cluster
    client or in Dask's configuration, Dask also runs passes over stores that every worker can read.
    """
    arrays = _arrays(blocks)
    if any(has_type(array, "dask", "Array") for array in arrays):
        return True
    return any(is_reopenable(array) for array in arrays) and selected_scheduler() is not None


class DaskScheduler:
    """Runs passes as Dask tasks on the active scheduler."""

    def run(self, task: Pass[R], blocks: Blocks) -> R:
        """Return the sum of all results. The order of summation does not depend on the workers."""
        return task.add(_rounds(task, blocks))


def image_from_blocks(
    visit: Callable[[Blocks, Block], NDArray[Any]],
    blocks: Blocks,
    dtype: np.dtype[Any],
    rows: int | None,
) -> Any:
    """Return a Dask array of the results of `visit` for every block.

    The array has a first axis of length `rows`, unless `rows` is None.
    """
    from dask import array as library

    arrays = _arrays(blocks)
    work = _work(visit, blocks, [None] * len(arrays))
    axes = tuple(range(1, len(blocks.shape) + 1))
    pairs: list[Any] = []
    for k, array in enumerate(arrays):
        source: Any = array
        if not has_type(source, "dask", "Array"):
            source = library.from_array(array, chunks=chunks_of_blocks(blocks.blocks, array.shape))
        region_axes = (-1 - k,) * (len(array.shape) - len(axes))  # region axes are independent
        pairs += [
            source.rechunk(chunks_of_blocks(blocks.blocks, array.shape)),
            (*region_axes, *axes),
        ]
    return library.blockwise(
        partial(_piece, work, dtype=dtype),
        axes if rows is None else (0, *axes),
        *pairs,
        new_axes={} if rows is None else {0: rows},
        concatenate=True,
        align_arrays=False,
        dtype=dtype,
        meta=np.empty((0,) * (len(axes) + (rows is not None)), dtype),
    )


def _piece(work: "_Work", *values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the result of one block, which does not depend on the block's position."""
    shape = values[0].shape[-len(work.sides[0].shape) :]
    block = Block(tuple(slice(0, length) for length in shape), 0)
    piece: NDArray[Any] = work(block, *values).astype(dtype, copy=False)
    return piece


def _arrays(blocks: Blocks) -> list[Array]:
    """Return the arrays of the sides, and the mask if there is one."""
    arrays = [side.array for side in blocks.sides]
    return arrays if blocks.mask is None else [*arrays, blocks.mask]


# -- one block -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Part:
    """The values of one box of an array. The box starts at `start`."""

    shape: tuple[int, ...]
    values: NDArray[Any]
    start: tuple[int, ...] = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def chunks(self) -> Chunks:
        return tuple((length,) for length in self.shape)

    def __getitem__(self, index: tuple[slice, ...]) -> NDArray[Any]:
        first = len(self.shape) - len(self.start)  # the box contains all regions
        box = (
            slice(part.start - start, part.stop - start)
            for part, start in zip(index[first:], self.start, strict=True)
        )
        return self.values[(slice(None),) * first + tuple(box)]


@dataclass(frozen=True, eq=False)
class _Work:
    """The function and the inputs that all tasks of a pass share.

    `stores` has one entry per side and, if there is a mask, one entry for the mask. An entry is the
    store from which a task reads the values, or None if the values are passed to the task.
    """

    visit: Callable[[Blocks, Block], Any]
    sides: tuple[Segmentation, ...]
    shapes: tuple[tuple[int, ...], ...]
    stores: tuple[Array | None, ...]
    halo: int = 0

    def __call__(self, block: Block, *values: NDArray[Any]) -> Any:
        """Return the result of one block."""
        iterator = iter(values)
        image_shape = self.sides[0].shape
        around = block if not self.halo else block.around(self.halo, image_shape)
        start = tuple(part.start for part in around.box)
        try:
            parts = [
                _Part(
                    shape,
                    np.asarray(next(iterator) if store is None else store[box_of(around, shape)]),
                    start,
                )
                for shape, store in zip(self.shapes, self.stores, strict=True)
            ]
            sides = [
                replace(side, array=part) for side, part in zip(self.sides, parts, strict=False)
            ]
            mask = parts[len(sides)] if len(parts) > len(sides) else None
            return self.visit(Blocks(*sides, mask=mask), block)
        except ProbdiceError:
            raise
        except Exception as error:
            raise _failure(block, error) from error


def _visit_block(work: _Work, block: Block, compute: Callable[..., list[Any]], *inputs: Any) -> Any:
    try:
        values = compute(*inputs)
    except Exception as error:
        raise _failure(block, error) from error
    return work(block, *values)


def _failure(block: Block, error: Exception) -> ProbdiceError:
    return ProbdiceError(f"chunks at {block}: {type(error).__name__}: {error}")


# -- all blocks ----------------------------------------------------------------------------------


def _work(
    visit: Callable[[Blocks, Block], Any],
    blocks: Blocks,
    stores: Sequence[Array | None],
    halo: int = 0,
) -> _Work:
    """Return the shared inputs of tasks, without the values of the arrays."""
    bare: dict[str, Any] = {"colours": {}, "geometry": None, "notes": ()}
    empty = [_Part(tuple(array.shape), np.empty(0, array.dtype)) for array in _arrays(blocks)]
    return _Work(
        visit,
        tuple(
            replace(side, array=part, names={} if side.crisp else side.names, **bare)
            for side, part in zip(blocks.sides, empty, strict=False)
        ),
        tuple(part.shape for part in empty),
        tuple(stores),
        halo,
    )


def _tasks(task: Pass[Any], blocks: Blocks) -> Callable[[Grid], list[Any]]:
    """Return a function that creates the tasks for the given blocks."""
    from dask import delayed

    arrays = [origin_of(array) for array in _arrays(blocks)]
    stores = [array if is_reopenable(array) else None for array in arrays]
    work = _work(task.visit, blocks, stores, task.halo)
    sent = [array for array in arrays if not is_reopenable(array)]
    name = f"{task.name}-{uuid4().hex}"

    def tasks(batch: Grid) -> list[Any]:
        # With its own key, this object is sent once per worker instead of once per task.
        shared_work = delayed(work, name=f"{name}-work-{batch[0]}", traverse=False)
        visit_block = delayed(_visit_block, pure=False)
        return [
            visit_block(shared_work, block, *arguments, dask_key_name=f"{name}-{block}")
            for block, arguments in zip(batch, fused_tasks(sent, batch, task.halo), strict=True)
        ]

    return tasks


def _rounds(task: Pass[R], blocks: Blocks) -> Iterator[R]:
    """Yield the sum of each round, in order, and report finished blocks to the watcher."""
    tasks, grid, add = _tasks(task, blocks), blocks.blocks, task.add
    arrays: list[Any] = [origin_of(array) for array in _arrays(blocks)]
    sources = sum(
        len(array.__dask_graph__()) for array in arrays if has_type(array, "dask", "Array")
    )
    max_blocks = max(1, ROUND_TASKS * len(grid) // max(sources, 1))
    scheduler = selected_scheduler()
    client = getattr(scheduler, "__self__", None)
    if has_type(client, "distributed", "Client"):
        yield from _on_cluster(client, tasks, grid, min(max_blocks, ROUND), add)
    else:
        yield from _on_this_machine(tasks, grid, min(max_blocks, LOCAL_ROUND), add)


def _on_this_machine(
    tasks: Callable[[Grid], list[Any]],
    grid: Grid,
    max_blocks: int,
    add: Callable[[Iterable[R]], R],
) -> Iterator[R]:
    from dask.callbacks import Callback

    watch, finished_count = watcher.get(), 0

    def count(key: Any, *_: Any) -> None:
        nonlocal finished_count
        if watch is not None and key in keys:
            finished_count += 1
            watch(finished_count, len(grid))

    for batch in grid.rounds(max_blocks):
        leaves = tasks(batch)
        keys = {leaf.key for leaf in leaves}
        with Callback(posttask=count), _naming_block(batch, leaves):
            result = _tree(leaves, add).compute()
        yield result


def _on_cluster(
    client: Any,
    tasks: Callable[[Grid], list[Any]],
    grid: Grid,
    max_blocks: int,
    add: Callable[[Iterable[R]], R],
) -> Iterator[R]:
    watch, finished_count = watcher.get(), 0
    ahead = max(2, -(-TASKS_PER_THREAD * sum(client.nthreads().values()) // max_blocks))
    running: deque[tuple[Any, Grid, list[Any]]] = deque()
    rounds = grid.rounds(max_blocks)
    try:
        while True:
            for batch in islice(rounds, ahead - len(running)):
                leaves = tasks(batch)
                running.append((client.compute(_tree(leaves, add)), batch, leaves))
            if not running:
                return
            future, batch, leaves = running[0]
            with _naming_block(batch, leaves):
                result = future.result()
            running.popleft()
            finished_count += len(batch)
            if watch is not None:
                watch(finished_count, len(grid))
            yield result
    finally:
        for future, _, _ in running:
            future.cancel()


def _tree(tasks: list[Any], add: Callable[[Iterable[R]], R]) -> Any:
    """Return one task that adds all results, always in the same order."""
    from dask import delayed

    join = delayed(add, pure=False)
    while len(tasks) > 1:
        tasks = [join(tasks[k : k + FAN]) for k in range(0, len(tasks), FAN)]
    return tasks[0]


@contextmanager
def _naming_block(batch: Grid, leaves: list[Any]) -> Iterator[None]:
    """Replace an error with a `ProbdiceError` that names the block in which it occurred.

    Errors from tasks of this module already name the block. After an error in a task that computes
    a chunk of a Dask array, the blocks of the round are computed one by one to find the block.
    """
    try:
        yield
    except ProbdiceError:
        raise
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            failed_block = next((b for b, leaf in zip(batch, leaves, strict=True)
                           if str(leaf.key) in str(error)), batch[0])  # fmt: skip
            raise _failure(failed_block, error) from error
        for block, leaf in zip(batch, leaves, strict=True):
            try:
                leaf.compute()
            except ProbdiceError:
                raise
            except Exception as block_error:
                raise _failure(block, block_error) from block_error
        raise
