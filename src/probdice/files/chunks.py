"""Limit the decompressed size of Zarr chunks, and read local stores on the calling thread.

Zarr's codecs allocate as much memory as a chunk declares, and a few bytes may declare gigabytes.
This module limits each codec to the size that follows from the metadata of the array. A size that
the compressed bytes declare must be within the limit. If the compressed bytes declare no size, an
error is raised as soon as the decompressed bytes exceed the limit.

Zarr reads chunks on its own threads, which is efficient for slow remote stores. Local stores are
read on the calling thread instead, into memory that earlier chunks used. In processes that
immediately return freed memory to the system, such as Dask workers, allocating new memory pages for
each chunk takes as long as decompression.

Both features rely on private functions of Zarr. If a Zarr version changes these functions, Zarr
reads the chunks on its own threads and without the limits.
"""

import asyncio
import bz2
import lzma
import math
import struct
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, TypeVarTuple

import numpy as np
import zarr
from numcodecs import LZ4, Blosc, Zstd
from numcodecs.abc import Codec
from numcodecs.compat import ndarray_copy
from numpy.typing import NDArray
from zarr.abc.codec import BytesBytesCodec
from zarr.codecs import ShardingCodec
from zarr.storage import FsspecStore, LocalStore, MemoryStore, ZipStore

from probdice.files.packed import zlib_module

try:
    from zarr.core.buffer import default_buffer_prototype
except ImportError:
    default_buffer_prototype = None

__all__ = ["with_size_limits"]

_PROTOTYPE: Any = None if default_buffer_prototype is None else default_buffer_prototype()
_Array: Any = object if _PROTOTYPE is None else _PROTOTYPE.nd_buffer

Args = TypeVarTuple("Args")
R = TypeVar("R")

MAX_FREE_BYTES = 1 << 27  # largest total size in bytes of the free pieces of one size
PIECES = 16  # largest number of free pieces of one size that are kept for reuse
MAX_CODEC_OVERHEAD = 1 << 20  # largest number of bytes that codecs may add to a chunk
# Largest factor by which filters of Zarr format 2 may increase the size of a number.
MAX_FILTER_GROWTH = 16
ZSTD, SKIPPABLE = 0xFD2FB528, 0x184D2A50  # magic numbers of Zstandard frames
ZSTD_BLOCK = 1 << 17  # largest decompressed size of a Zstandard block in bytes


def with_size_limits(array: Any) -> Any:
    """Return the Zarr array with a limit on the decompressed size of its chunks."""
    try:
        return _with_size_limits(array)
    except (AttributeError, TypeError):  # private parts of Zarr have changed
        return array


def _with_size_limits(array: Any) -> Any:
    BytesBytesCodec._decode_single  # noqa: B018  # raises AttributeError if Zarr has changed
    metadata = array.metadata
    if metadata.zarr_format == 3:
        metadata = replace(metadata, codecs=_bounded_v3(metadata.codecs))
    else:
        size = math.prod(array.chunks) * array.dtype.itemsize
        max_bytes = size * (MAX_FILTER_GROWTH if metadata.filters else 1)
        filters = metadata.filters and tuple(
            _bounded_v2(codec, max_bytes) for codec in metadata.filters
        )
        metadata = replace(
            metadata, filters=filters, compressor=_bounded_v2(metadata.compressor, max_bytes)
        )
    kind = LocalArray if _is_local(array.store) else zarr.Array
    return kind(zarr.AsyncArray(metadata=metadata, store_path=array.store_path))


def _is_local(store: Any) -> bool:
    """Return whether a store is on this machine."""
    if isinstance(store, FsspecStore):
        return store.fs.protocol == "file" or "file" in tuple(store.fs.protocol)
    return isinstance(store, LocalStore | MemoryStore | ZipStore)


class LocalArray(zarr.Array):  # type: ignore[misc]
    """An array whose chunks are read and decompressed on the calling thread."""

    def __getitem__(self, selection: Any) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            with suppress(AttributeError, TypeError), closing(_SameThreadLoop()) as loop:
                return loop.run_until_complete(self._selected(selection))
        return super().__getitem__(selection)  # as in a notebook, where a loop is already running

    async def _selected(self, selection: Any) -> Any:
        into = REUSED_MEMORY if self.shards is None else None  # Zarr allocates memory for shards
        try:
            return await self.async_array.getitem(selection, prototype=into)
        finally:  # after an error, cancel the remaining chunks
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)


class _SameThreadLoop(asyncio.SelectorEventLoop):
    """An event loop that runs functions on its own thread instead of in an executor."""

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Args], R], *args: *Args
    ) -> asyncio.Future[R]:
        """Call the function immediately and return its result as a future."""
        future: asyncio.Future[R] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def _bounded_v3(codecs: Any) -> list[Any]:
    """Add limits to the codecs of a format 3 array, including codecs inside shards."""
    result = []
    for codec in codecs:
        if isinstance(codec, ShardingCodec):
            inner, index = _bounded_v3(codec.codecs), _bounded_v3(codec.index_codecs)
            result.append(replace(codec, codecs=inner, index_codecs=index))
        elif not isinstance(codec, BoundedCodecV3) and _name_of(codec) in {*SIZES, *STREAMS}:
            result.append(BoundedCodecV3(codec))
        else:
            result.append(codec)
    return result


def _name_of(codec: Any) -> str:
    """Return the name in a format 3 codec's metadata, without the prefix "numcodecs."."""
    return str(codec.to_dict()["name"]).removeprefix("numcodecs.")


@dataclass(frozen=True)
class BoundedCodecV3(BytesBytesCodec):  # type: ignore[misc]
    """A format 3 codec that rejects a chunk if it decompresses to more bytes than expected."""

    codec: Any
    is_fixed_size = False

    def to_dict(self) -> Any:
        """Return the metadata of the codec."""
        return self.codec.to_dict()

    def evolve_from_array_spec(self, array_spec: Any) -> "BoundedCodecV3":
        """Return the codec for chunks with this specification."""
        return BoundedCodecV3(self.codec.evolve_from_array_spec(array_spec))

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        """Return the compressed size of a chunk, if it is known."""
        return int(self.codec.compute_encoded_size(input_byte_length, chunk_spec))

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        kind = getattr(chunk_spec.dtype, "to_native_dtype", lambda: chunk_spec.dtype)()
        max_bytes = math.prod(chunk_spec.shape) * kind.itemsize + MAX_CODEC_OVERHEAD
        content = memoryview(chunk_bytes.as_numpy_array()).cast("B")
        name, settings = _name_of(self.codec), self.to_dict().get("configuration", {})
        unpacked = await asyncio.to_thread(_unpacked, name, settings, content, max_bytes)
        return chunk_spec.prototype.buffer.from_array_like(np.frombuffer(unpacked, np.uint8))


class BoundedCodecV2(Codec):  # type: ignore[misc]
    """A format 2 codec that limits chunks to `max_bytes` + `MAX_CODEC_OVERHEAD` bytes."""

    codec_id = "bounded"

    def __init__(self, codec: Any, max_bytes: int) -> None:
        self.codec, self.max_bytes = codec, max_bytes

    def get_config(self) -> Any:
        """Return the metadata of the codec."""
        return self.codec.get_config()

    def encode(self, buf: Any) -> Any:
        """Compress bytes."""
        return self.codec.encode(buf)

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Decompress bytes."""
        content, max_bytes = memoryview(buf).cast("B"), self.max_bytes + MAX_CODEC_OVERHEAD
        unpacked = _unpacked(self.codec.codec_id, self.codec.get_config(), content, max_bytes)
        return unpacked if out is None else ndarray_copy(unpacked, out)


def _bounded_v2(codec: Any, max_bytes: int) -> Any:
    if (
        codec is None
        or isinstance(codec, BoundedCodecV2)
        or codec.codec_id not in {*SIZES, *STREAMS}
    ):
        return codec
    return BoundedCodecV2(codec, max_bytes)


# Decompressed sizes and their limit ---------------------------------------------------------------


def _check(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise ValueError(
            f"it decompresses to more than the {max_bytes - MAX_CODEC_OVERHEAD} bytes of a chunk"
        )


def _unpacked(name: str, settings: Mapping[str, Any], content: memoryview, max_bytes: int) -> Any:
    """Decompress `content` to at most `max_bytes` bytes. Return bytes or a byte array."""
    if name in STREAMS:
        return _streamed(name, settings, content, max_bytes)
    codec, size_of = SIZES[name]
    size = size_of(content, max_bytes)
    return codec.decode(content, None if size is None else reused_bytes(size))


def _streamed(name: str, settings: Mapping[str, Any], content: memoryview, max_bytes: int) -> bytes:
    """Decompress one or more consecutive streams that do not declare their size."""
    parts, size = [], 0
    rest: Any = content
    while len(rest):
        unpacker = STREAMS[name](settings)
        while not unpacker.eof:
            part = unpacker.decompress(rest, max_bytes - size + 1)
            size += len(part)
            _check(size, max_bytes)
            parts.append(part)
            rest = getattr(unpacker, "unconsumed_tail", b"")
            if not (part or rest or unpacker.eof):
                raise EOFError("the compressed stream is truncated")
        rest = unpacker.unused_data
    return b"".join(parts)


def _number_at(offset: int) -> Callable[[memoryview, int], int | None]:
    """Return a function that reads and checks the decompressed size in the 4 bytes at `offset`."""

    def size_of(content: memoryview, max_bytes: int) -> int | None:
        if len(content) < offset + 4:
            return None
        size: int = struct.unpack_from("<I", content, offset)[0]
        _check(size, max_bytes)
        return size

    return size_of


def _size_of_zstandard(content: memoryview, max_bytes: int) -> int | None:
    """Check the sizes of all Zstandard blocks, and return the declared size of a single frame.

    Return None if there are several frames or the frame does not declare its size.
    """
    size, offset = 0, 0
    frames: list[int | None] = []  # declared sizes
    while offset + 5 <= len(content):
        (magic,) = struct.unpack_from("<I", content, offset)
        if magic & ~0xF == SKIPPABLE:
            offset += 8 + int.from_bytes(content[offset + 4 : offset + 8], "little")
            continue
        if magic != ZSTD:
            return None
        flags = content[offset + 4]
        single, sums = flags >> 5 & 1, flags >> 2 & 1
        offset += 5 + (not single) + (0, 1, 2, 4)[flags & 3]
        width = (single, 2, 4, 8)[flags >> 6]
        declared = None
        if width:  # the codec allocates this many bytes
            declared = int.from_bytes(content[offset : offset + width], "little")
            declared += 256 if width == 2 else 0
            _check(declared, max_bytes)
        frames.append(declared)
        offset += width
        last = False
        while not last and offset + 3 <= len(content):
            header = int.from_bytes(content[offset : offset + 3], "little")
            last, kind, length = bool(header & 1), header >> 1 & 3, header >> 3
            size += ZSTD_BLOCK if kind == 2 else length
            _check(size, max_bytes)
            offset += 3 + (1 if kind == 1 else length)
        offset += 4 * sums
    return frames[0] if len(frames) == 1 else None


# Codecs whose compressed bytes may declare the decompressed size, and functions that read it.
SIZES: dict[str, tuple[Any, Callable[[memoryview, int], int | None]]] = {
    "blosc": (Blosc(), _number_at(4)),
    "lz4": (LZ4(), _number_at(0)),
    "zstd": (Zstd(), _size_of_zstandard),
}

# For each codec, a function that takes the settings of the codec and returns a decompressor.
STREAMS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "gzip": lambda _: zlib_module().decompressobj(wbits=31),
    "zlib": lambda _: zlib_module().decompressobj(),
    "bz2": lambda _: bz2.BZ2Decompressor(),
    "lzma": lambda settings: lzma.LZMADecompressor(
        settings.get("format", lzma.FORMAT_XZ), filters=settings.get("filters")
    ),
}


# Memory reuse -------------------------------------------------------------------------------------

Free: TypeAlias = deque[NDArray[np.uint8]]

# Free pieces of memory: item n contains the pieces of 2**n bytes.
_free: list[Free] = [
    deque(maxlen=min(PIECES, MAX_FREE_BYTES >> n)) for n in range(MAX_FREE_BYTES.bit_length())
]


def reused_bytes(size: int) -> NDArray[np.uint8]:
    """Return a byte array whose memory is reused once no object refers to the array.

    The memory of an array with more than `MAX_FREE_BYTES` bytes is not reused.
    """
    power = max(size - 1, 0).bit_length()
    if power >= len(_free):
        return np.empty(size, np.uint8)
    try:
        memory = _free[power].pop()
    except IndexError:
        memory = np.empty(1 << power, np.uint8)
    return np.asarray(_ReusedMemory(memory, _free[power]))[:size]


class _ReusedMemory:
    """The owner of reused memory. Once the owner is deleted, the memory is available again."""

    def __init__(self, memory: NDArray[np.uint8], free: Free) -> None:
        self.memory, self.free = memory, free
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        self.free.append(self.memory)


class _ReusedBuffer(_Array):  # type: ignore[misc]
    """A buffer in reused memory, to which Zarr writes values."""

    @classmethod
    def empty(
        cls, shape: tuple[int, ...], dtype: Any, order: Literal["C", "F"] = "C"
    ) -> "_ReusedBuffer":
        """Return an uninitialised array."""
        kind = np.dtype(dtype)
        if kind.hasobject:
            return cls(np.empty(shape, kind, order))
        return cls(
            np.ndarray(shape, kind, reused_bytes(math.prod(shape) * kind.itemsize), order=order)
        )


REUSED_MEMORY = None if _PROTOTYPE is None else _PROTOTYPE._replace(nd_buffer=_ReusedBuffer)
