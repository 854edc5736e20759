"""Run a pass over all blocks as tasks of Dask, on the scheduler that is active.

One task a block; their results are added in a tree, by tasks as well. The tasks are made and sent
in rounds, so that neither the scheduler nor this process ever holds all of them. What a task needs
travels with it: the tasks that make the chunks of a Dask array, the place of a store that can be
read from anywhere, or the values themselves of what lies in the memory of this process.
"""

import sys
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

from probdice.data.arrays import Array, Chunks, as_array, has_type, travels
from probdice.data.machine import cores
from probdice.data.segmentation import Segmentation
from probdice.engine.blocks import Blocks
from probdice.engine.grids import Block, Grid
from probdice.engine.passes import Pass
from probdice.engine.threads import watcher
from probdice.errors import InputError, MissingExtraError, ProbdiceError

__all__ = ["DaskScheduler", "connected", "image", "in_charge", "scheduled"]

R = TypeVar("R")

ROUND = 64  # blocks whose tasks are sent to a cluster at once
LOCAL_ROUND = 1024  # the same for the schedulers of one machine, which work on one round at a time
ROUND_TASKS = 2**15  # of Dask arrays with many chunks to a block, that are sent at once
FAN = 8  # results that are added by one task
TIMEOUT = 10  # seconds for a scheduler to answer
AHEAD = 4  # tasks that wait for each thread of a cluster


def in_charge(blocks: Blocks) -> bool:
    """Whether Dask runs the passes over these blocks.

    It always does for Dask arrays; for stores that can be read from anywhere it does where the
    user has chosen a scheduler: a client of a cluster, or by Dask's configuration.
    """
    arrays = _arrays(blocks)
    if any(has_type(array, "dask", "Array") for array in arrays):
        return True
    return any(travels(array) for array in arrays) and _scheduler() is not None


class DaskScheduler:
    """Tasks of Dask, on the scheduler that is active."""

    def run(self, task: Pass[R], blocks: Blocks) -> R:
        """The sum over all blocks, added up in an order that the workers do not change."""
        return task.add(_rounds(task, blocks))


def image(
    visit: Callable[[Blocks, Block], NDArray[Any]],
    blocks: Blocks,
    dtype: np.dtype[Any],
    rows: int | None,
) -> Any:
    """A Dask array of what `visit` gives of every block, in one row or several."""
    from dask import array as library

    arrays = _arrays(blocks)
    work = _work(visit, blocks, [None] * len(arrays))
    axes = tuple(range(1, len(blocks.shape) + 1))
    pairs: list[Any] = []
    for k, array in enumerate(arrays):
        source: Any = array
        if not has_type(source, "dask", "Array"):
            source = library.from_array(array, chunks=_lengths(blocks.blocks, array.shape))
        own = (-1 - k,) * (len(array.shape) - len(axes))  # each has regions of its own
        pairs += [source.rechunk(_lengths(blocks.blocks, array.shape)), (*own, *axes)]
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
    """One block of an image; where it lies does not matter."""
    shape = values[0].shape[-len(work.sides[0].shape) :]
    block = Block(tuple(slice(0, length) for length in shape), 0)
    piece: NDArray[Any] = work(block, *values).astype(dtype, copy=False)
    return piece


@contextmanager
def scheduled(scheduler: str, workers: int | None = None) -> Iterator[None]:
    """Make passes over stores run on a scheduler: "threads", "processes", or an address."""
    try:
        import dask
    except ImportError:
        raise MissingExtraError(
            'a scheduler needs dask, which is not installed: pip install "probdice[dask]"'
        ) from None
    if scheduler == "threads":
        with dask.config.set(scheduler="threads", num_workers=workers or cores()):
            yield
    elif scheduler == "processes":
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        # One pool for all rounds: a process takes seconds to start.
        with (
            ProcessPoolExecutor(workers or cores(), get_context("spawn")) as pool,
            dask.config.set(scheduler="processes", pool=pool),
        ):
            yield
    else:
        with connected(scheduler):
            yield


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the cluster at an address."""
    if "://" not in address:
        raise InputError(
            f"scheduler must be 'threads', 'processes' or the address of one, such as "
            f"tcp://host:8786, found {address!r}"
        )
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError(
            'a cluster needs distributed, which is not installed: pip install "probdice[dask]"'
        ) from None
    try:
        client = Client(address, timeout=TIMEOUT)
    except (OSError, ValueError) as error:
        raise InputError(f"no scheduler of Dask answers at {address}: {error}") from None
    with client:
        yield client


def _scheduler() -> Any:
    """What runs tasks, where the user has chosen something; inside of a task, nothing is."""
    if "dask" not in sys.modules:
        return None
    distributed = sys.modules.get("distributed")
    if distributed is not None:
        try:
            distributed.get_worker()
        except ValueError:
            pass
        else:
            return None
    from dask.base import get_scheduler

    return get_scheduler()


def _arrays(blocks: Blocks) -> list[Array]:
    """Those of the sides, and the mask."""
    arrays = [side.array for side in blocks.sides]
    return arrays if blocks.mask is None else [*arrays, blocks.mask]


# -- one block -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Part:
    """An array of which one box is known, starting at `start`."""

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
        first = len(self.shape) - len(self.start)  # an axis of regions is known whole
        box = (
            slice(part.start - start, part.stop - start)
            for part, start in zip(index[first:], self.start, strict=True)
        )
        return self.values[(slice(None),) * first + tuple(box)]


@dataclass(frozen=True, eq=False)
class _Work:
    """What all tasks of a pass share: what to do, and with what.

    `stores` are the arrays of the sides, and the mask, that are read where the task runs; None
    for those whose values come with the task.
    """

    visit: Callable[[Blocks, Block], Any]
    sides: tuple[Segmentation, ...]
    shapes: tuple[tuple[int, ...], ...]
    stores: tuple[Array | None, ...]
    halo: int = 0

    def __call__(self, block: Block, *values: NDArray[Any]) -> Any:
        """The result of one block."""
        given = iter(values)
        whole = self.sides[0].shape
        around = block if not self.halo else block.around(self.halo, whole)
        start = tuple(part.start for part in around.box)
        try:
            parts = [
                _Part(
                    shape,
                    np.asarray(next(given) if store is None else store[_box(around, shape)]),
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


def _visited(work: _Work, block: Block, made: Callable[..., list[Any]], *shared: Any) -> Any:
    try:
        values = made(*shared)
    except Exception as error:
        raise _failure(block, error) from error
    return work(block, *values)


def _made(tasks: dict[Any, Any], keys: list[Any], names: list[Any], *shared: Any) -> list[Any]:
    """What these keys stand for, where tasks need results of others, of these names."""
    from dask import get

    values: list[Any] = get({**tasks, **dict(zip(names, shared, strict=True))}, keys)
    return values


def _box(block: Block | Grid, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """The block in an array that may have an axis of regions before the others."""
    return (slice(None),) * (len(shape) - len(block.box)) + block.box


def _failure(block: Block, error: Exception) -> ProbdiceError:
    return ProbdiceError(f"chunks at {block}: {type(error).__name__}: {error}")


# -- all blocks ----------------------------------------------------------------------------------


def _work(
    visit: Callable[[Blocks, Block], Any],
    blocks: Blocks,
    stores: Sequence[Array | None],
    halo: int = 0,
) -> _Work:
    """What tasks share; stores are read by the tasks themselves."""
    bare: dict[str, Any] = {"colours": {}, "geometry": None, "notes": ()}
    nothing = [_Part(tuple(array.shape), np.empty(0, array.dtype)) for array in _arrays(blocks)]
    return _Work(
        visit,
        tuple(
            replace(side, array=part, names={} if side.crisp else side.names, **bare)
            for side, part in zip(blocks.sides, nothing, strict=False)
        ),
        tuple(part.shape for part in nothing),
        tuple(stores),
        halo,
    )


def _tasks(task: Pass[Any], blocks: Blocks) -> Callable[[Grid], list[Any]]:
    """Makes the tasks of some blocks."""
    from dask import delayed

    arrays = [_origin(array) for array in _arrays(blocks)]
    stores = [array if travels(array) else None for array in arrays]
    work = _work(task.visit, blocks, stores, task.halo)
    sent = [array for array in arrays if not travels(array)]
    name = f"{task.name}-{uuid4().hex}"

    def tasks(some: Grid) -> list[Any]:
        # One key: it goes to each worker once, not with each task.
        shared = delayed(work, name=f"{name}-work-{some[0]}", traverse=False)
        visited = delayed(_visited, pure=False)
        return [
            visited(shared, block, *made, dask_key_name=f"{name}-{block}")
            for block, made in zip(some, _fused(sent, some, task.halo), strict=True)
        ]

    return tasks


def _fused(arrays: Sequence[Array], some: Grid, halo: int) -> list[list[Any]]:
    """For every block what makes the values of these arrays, and what that is called with.

    Tasks of Dask arrays that one block alone needs, mostly chunks to be read, are done where it
    is visited: for the scheduler they would be thousands. Those that several need stay tasks.
    """
    from dask.core import get_dependencies
    from dask.delayed import Delayed

    graph: dict[Any, Any] = {}
    held: dict[Any, Any] = {}  # what workers have already
    wanted: list[list[Any]] = [[] for _ in some]
    for array in arrays:
        keys, tasks = _graph(array, some, halo)
        graph |= tasks
        held |= _held(array)
        for k, key in enumerate(keys):
            wanted[k].append(key)
    graph |= held
    owner: dict[Any, int | None] = dict.fromkeys(held)  # the block; None where several need it
    for k, keys in enumerate(wanted):
        waiting = list(keys)
        while waiting:
            key = waiting.pop()
            if key in owner and owner[key] in (k, None):
                continue
            owner[key] = None if key in owner else k
            waiting += get_dependencies(graph, key)
    common = {key: graph[key] for key, k in owner.items() if k is None and key not in held}
    shared = {**{key: Delayed(key, common) for key in common}, **held}
    own: list[dict[Any, Any]] = [{} for _ in some]
    needed = [{key: shared[key] for key in keys if key in shared} for keys in wanted]
    for key, block in owner.items():
        if block is not None:
            own[block][key] = graph[key]
            others = get_dependencies(graph, key)
            needed[block] |= {other: shared[other] for other in others if other in shared}
    return [
        [partial(_made, own[k], wanted[k], list(results)), *results.values()]
        for k, results in enumerate(needed)
    ]


def _held(array: Array) -> dict[Any, Any]:
    """The chunks of an array that lie in the memory of workers."""
    distributed = sys.modules.get("distributed")
    if distributed is None or not has_type(array, "dask", "Array"):
        return {}
    return {future.key: future for future in distributed.futures_of(array)}


def _graph(array: Array, some: Grid, halo: int) -> tuple[list[Any], dict[Any, Any]]:
    """A key for what the array has of every block, and the tasks behind them."""
    boxes = [_box(block.around(halo, some.shape) if halo else block, array.shape) for block in some]
    if not has_type(array, "dask", "Array"):
        name = uuid4().hex
        values = {(name, k): np.asarray(array[box]) for k, box in enumerate(boxes)}
        return list(values), values
    import dask

    whole: Any = array
    if halo:
        parts = dask.optimize(*(whole[box].rechunk(-1) for box in boxes))
    else:
        part = whole[_box(some, array.shape)]
        parts = dask.optimize(part.rechunk(_lengths(some, array.shape), method="tasks"))
    keys = [key for part in parts for key in dask.core.flatten(part.__dask_keys__())]
    return keys, {key: made for part in parts for key, made in part.__dask_graph__().items()}


def _origin(array: Array) -> Array:
    """The store behind a Dask array that does nothing but read it, as `from_zarr` makes them.

    Read as such, all chunks of a block take one call instead of one each. Any other array is
    returned as it is.
    """
    if not has_type(array, "dask", "Array"):
        return array
    from dask.array.core import getter

    whole: Any = array
    origin = f"original-{whole.name}"
    layers = getattr(whole.__dask_graph__(), "layers", {})
    if set(layers) != {whole.name, origin}:
        return array
    reads = getattr(getattr(layers[whole.name], "task", None), "func", None) is getter
    store: Array = layers[origin].get(origin)
    if reads and travels(store) and (store.shape, store.dtype) == (whole.shape, whole.dtype):
        return as_array(store)
    return array


def _lengths(grid: Grid, shape: tuple[int, ...]) -> Chunks:
    """Chunks that are the blocks; all regions, where the array has some, are in one."""
    return (*((length,) for length in shape[: len(shape) - len(grid.shape)]), *grid.lengths)


def _rounds(task: Pass[R], blocks: Blocks) -> Iterator[R]:
    """The sum of every round, in their order; a watcher is called with the blocks done."""
    tasks, grid, add = _tasks(task, blocks), blocks.blocks, task.add
    arrays: list[Any] = [_origin(array) for array in _arrays(blocks)]
    sources = sum(len(one.__dask_graph__()) for one in arrays if has_type(one, "dask", "Array"))
    most = max(1, ROUND_TASKS * len(grid) // max(sources, 1))
    scheduler = _scheduler()
    client = getattr(scheduler, "__self__", None)
    if has_type(client, "distributed", "Client"):
        yield from _on_cluster(client, tasks, grid, min(most, ROUND), add)
    else:
        yield from _on_this_machine(tasks, grid, min(most, LOCAL_ROUND), add)


def _on_this_machine(
    tasks: Callable[[Grid], list[Any]],
    grid: Grid,
    most: int,
    add: Callable[[Iterable[R]], R],
) -> Iterator[R]:
    from dask.callbacks import Callback

    watch, done = watcher.get(), 0

    def count(key: Any, *_: Any) -> None:
        nonlocal done
        if watch is not None and key in keys:
            done += 1
            watch(done, len(grid))

    for some in grid.rounds(most):
        leaves = tasks(some)
        keys = {leaf.key for leaf in leaves}
        with Callback(posttask=count), _blaming(some, leaves):
            result = _tree(leaves, add).compute()
        yield result


def _on_cluster(
    client: Any,
    tasks: Callable[[Grid], list[Any]],
    grid: Grid,
    most: int,
    add: Callable[[Iterable[R]], R],
) -> Iterator[R]:
    watch, done = watcher.get(), 0
    ahead = max(2, -(-AHEAD * sum(client.nthreads().values()) // most))
    running: deque[tuple[Any, Grid, list[Any]]] = deque()
    rounds = grid.rounds(most)
    try:
        while True:
            for some in islice(rounds, ahead - len(running)):
                leaves = tasks(some)
                running.append((client.compute(_tree(leaves, add)), some, leaves))
            if not running:
                return
            future, some, leaves = running[0]
            with _blaming(some, leaves):
                result = future.result()
            running.popleft()
            done += len(some)
            if watch is not None:
                watch(done, len(grid))
            yield result
    finally:
        for future, _, _ in running:
            future.cancel()


def _tree(tasks: list[Any], add: Callable[[Iterable[R]], R]) -> Any:
    """One task that gives the sum of all, always added in the same order."""
    from dask import delayed

    join = delayed(add, pure=False)
    while len(tasks) > 1:
        tasks = [join(tasks[k : k + FAN]) for k in range(0, len(tasks), FAN)]
    return tasks[0]


@contextmanager
def _blaming(some: Grid, leaves: list[Any]) -> Iterator[None]:
    """Errors name the block in which they occurred.

    What our tasks raise already does. The error of a task that makes a chunk of a Dask array comes
    out as it is, so the blocks of the round are tried one by one.
    """
    try:
        yield
    except ProbdiceError:
        raise
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            blamed = next((b for b, leaf in zip(some, leaves, strict=True)
                           if str(leaf.key) in str(error)), some[0])  # fmt: skip
            raise _failure(blamed, error) from error
        for block, leaf in zip(some, leaves, strict=True):
            try:
                leaf.compute()
            except ProbdiceError:
                raise
            except Exception as again:
                raise _failure(block, again) from again
        raise
