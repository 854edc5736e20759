"""Zarr stores for benchmarks: one counts fetched chunks, and the other generates its chunks."""

from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import MemoryStore, WrapperStore


def cells(box: tuple[slice, ...], edge: int, shift: int, count: int) -> NDArray[np.uint32]:
    """Return a block of a shifted volume with `count` cubic cells along each axis."""
    places = [(np.arange(part.start, part.stop) + shift) // edge % count for part in box]
    z, y, x = (place.astype(np.uint32) for place in places)
    plane = y[:, None] * np.uint32(count) + x
    volume: NDArray[np.uint32] = z[:, None, None] * np.uint32(count * count) + plane + np.uint32(1)
    return volume


class Counting(WrapperStore[Any]):
    """A store that counts how often each chunk is fetched, and therefore decoded."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.fetched: dict[str, int] = {}

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        if "c/" in key:
            self.fetched[key] = self.fetched.get(key, 0) + 1
        return await self._store.get(key, prototype or default_buffer_prototype(), byte_range)


class Generated(WrapperStore[Any]):
    """A volume of cells whose chunks are generated when they are fetched."""

    def __init__(self, store: Any, shape: tuple[int, ...], chunk: int, edge: int, shift: int):
        super().__init__(store)
        self.shape, self.chunk, self.edge, self.shift = shape, chunk, edge, shift

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        prototype = prototype or default_buffer_prototype()
        if not key.startswith("c/"):
            return await self._store.get(key, prototype, byte_range)
        starts = [int(k) * self.chunk for k in key.split("/")[1:]]
        box = tuple(slice(start, start + self.chunk) for start in starts)
        count = -(-max(self.shape) // self.edge)
        values = cells(box, self.edge, self.shift, count)
        return prototype.buffer.from_bytes(values.tobytes())


def generated(shape: tuple[int, ...], chunk: int, edge: int, shift: int) -> Any:
    """Return the array of a generated store."""
    memory = MemoryStore()
    zarr.create_array(
        memory, shape=shape, chunks=(chunk,) * 3, dtype="uint32", compressors=None, filters=None
    )
    return zarr.open(Generated(memory, shape, chunk, edge, shift), mode="r+")
