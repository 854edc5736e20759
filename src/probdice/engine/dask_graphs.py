"""Create the tasks that compute, for each block of a pass, the values of Dask arrays."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np

from probdice.data.arrays import Array, Chunks, as_array, has_type, is_reopenable
from probdice.engine.grids import Block, Grid

__all__ = ["box_of", "chunks_of_blocks", "fused_tasks", "origin_of"]


def fused_tasks(arrays: Sequence[Array], batch: Grid, halo: int) -> list[list[Any]]:
    """Return, per block, the function that computes the values of these arrays, and its arguments.

    Most tasks of a Dask array read one chunk. A task that only one block requires is fused with the
    task of that block, because the scheduler would otherwise receive thousands of tasks. Tasks that
    several blocks require remain separate.
    """
    from dask.core import get_dependencies
    from dask.delayed import Delayed

    graph: dict[Any, Any] = {}
    held_chunks: dict[Any, Any] = {}  # chunks that are already in the memory of workers
    block_keys: list[list[Any]] = [[] for _ in batch]
    for array in arrays:
        keys, tasks = _graph(array, batch, halo)
        graph |= tasks
        held_chunks |= _held_chunks(array)
        for k, key in enumerate(keys):
            block_keys[k].append(key)
    graph |= held_chunks
    # The owner of a task is None if several blocks require the task.
    owner: dict[Any, int | None] = dict.fromkeys(held_chunks)
    for k, keys in enumerate(block_keys):
        waiting = list(keys)
        while waiting:
            key = waiting.pop()
            if key in owner and owner[key] in (k, None):
                continue
            owner[key] = None if key in owner else k
            waiting += get_dependencies(graph, key)
    common = {key: graph[key] for key, k in owner.items() if k is None and key not in held_chunks}
    separate_tasks = {**{key: Delayed(key, common) for key in common}, **held_chunks}
    tasks_of_blocks: list[dict[Any, Any]] = [{} for _ in batch]
    inputs = [
        {key: separate_tasks[key] for key in keys if key in separate_tasks} for keys in block_keys
    ]
    for key, block in owner.items():
        if block is not None:
            tasks_of_blocks[block][key] = graph[key]
            dependencies = get_dependencies(graph, key)
            inputs[block] |= {
                other: separate_tasks[other] for other in dependencies if other in separate_tasks
            }
    return [
        [
            partial(_compute_values, tasks_of_blocks[k], block_keys[k], list(results)),
            *results.values(),
        ]
        for k, results in enumerate(inputs)
    ]


def _compute_values(
    tasks: dict[Any, Any], keys: list[Any], names: list[Any], *inputs: Any
) -> list[Any]:
    """Return the values of these keys. `inputs` contains the results of the tasks in `names`."""
    from dask import get

    values: list[Any] = get({**tasks, **dict(zip(names, inputs, strict=True))}, keys)
    return values


def _held_chunks(array: Array) -> dict[Any, Any]:
    """Return the chunks of an array that are in the memory of workers."""
    distributed = sys.modules.get("distributed")
    if distributed is None or not has_type(array, "dask", "Array"):
        return {}
    return {future.key: future for future in distributed.futures_of(array)}


def _graph(array: Array, batch: Grid, halo: int) -> tuple[list[Any], dict[Any, Any]]:
    """Return one key per block, and the tasks that compute the part of the array in each block."""
    boxes = [
        box_of(block.around(halo, batch.shape) if halo else block, array.shape) for block in batch
    ]
    if not has_type(array, "dask", "Array"):
        name = uuid4().hex
        values = {(name, k): np.asarray(array[box]) for k, box in enumerate(boxes)}
        return list(values), values
    import dask

    dask_array: Any = array
    if halo:
        parts = dask.optimize(*(dask_array[box].rechunk(-1) for box in boxes))
    else:
        part = dask_array[box_of(batch, array.shape)]
        parts = dask.optimize(part.rechunk(chunks_of_blocks(batch, array.shape), method="tasks"))
    keys = [key for part in parts for key in dask.core.flatten(part.__dask_keys__())]
    return keys, {key: task for part in parts for key, task in part.__dask_graph__().items()}


def origin_of(array: Array) -> Array:
    """Return the store of a Dask array that only reads a store, such as a result of `from_zarr`.

    All chunks of a block can then be read with one call instead of one call per chunk. Other arrays
    are returned unchanged.
    """
    if not has_type(array, "dask", "Array"):
        return array
    from dask.array.core import getter

    dask_array: Any = array
    origin = f"original-{dask_array.name}"
    layers = getattr(dask_array.__dask_graph__(), "layers", {})
    if set(layers) != {dask_array.name, origin}:
        return array
    reads = getattr(getattr(layers[dask_array.name], "task", None), "func", None) is getter
    store: Array = layers[origin].get(origin)
    if (
        reads
        and is_reopenable(store)
        and (store.shape, store.dtype) == (dask_array.shape, dask_array.dtype)
    ):
        return as_array(store)
    return array


def chunks_of_blocks(grid: Grid, shape: tuple[int, ...]) -> Chunks:
    """Return chunks that are identical to the blocks. The region axis is one chunk."""
    return (*((length,) for length in shape[: len(shape) - len(grid.shape)]), *grid.lengths)


def box_of(block: Block | Grid, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the box of a block in an array whose first axis may be the region axis."""
    return (slice(None),) * (len(shape) - len(block.box)) + block.box
