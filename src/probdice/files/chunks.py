"""Arrays of Zarr (extra `zarr`), unpacked to no more than their metadata describe, without detours.

The codecs of Zarr take memory for whatever a chunk says that it holds, and a few bytes may say
gigabytes. Here each codec that can do so is told how much a chunk may hold: where the packed bytes
say a size that is held against it, else they are unpacked up to there.

Zarr reads on threads of its own, between which each chunk goes to and fro. That is good for stores
that answer late. What lies on this machine is read on the thread that asks for it, and into memory
that earlier chunks have had: new pages for each take as long as unpacking it where a process gives
freed ones back at once, as Dask's workers do.

Both rely on parts of Zarr that are not public. Where a version of Zarr has changed them, chunks are
read as Zarr reads them, without these bounds.
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

__all__ = ["bounded"]

_PROTOTYPE: Any = None if default_buffer_prototype is None else default_buffer_prototype()
_Array: Any = object if _PROTOTYPE is None else _PROTOTYPE.nd_buffer

Args = TypeVarTuple("Args")
R = TypeVar("R")

KEPT = 1 << 27  # bytes of memory of one size that are kept for chunks and boxes to come
PIECES = 16  # the same, of small sizes
SLACK = 1 << 20  # bytes for what codecs add to a chunk
WIDEST = 16  # bytes of a number; filters of format 2 may store wider numbers than they give
ZSTD, SKIPPABLE = 0xFD2FB528, 0x184D2A50  # what frames of Zstandard start with
ZSTD_BLOCK = 1 << 17  # bytes that a packed block of Zstandard gives at most


def bounded(array: Any) -> Any:
    """The array of Zarr, whose chunks are refused where they unpack to too much."""
    try:
        return _bounded(array)
    except (AttributeError, TypeError):  # parts that are not public have changed
        return array


def _bounded(array: Any) -> Any:
    BytesBytesCodec._decode_single  # noqa: B018  # raises an AttributeError where it has changed
    metadata = array.metadata
    if metadata.zarr_format == 3:
        metadata = replace(metadata, codecs=_bounded_codecs(metadata.codecs))
    else:
        size = math.prod(array.chunks) * array.dtype.itemsize
        most = size * (WIDEST if metadata.filters else 1)
        filters = metadata.filters and tuple(_within(codec, most) for codec in metadata.filters)
        metadata = replace(metadata, filters=filters, compressor=_within(metadata.compressor, most))
    kind = Near if _is_near(array.store) else zarr.Array
    return kind(zarr.AsyncArray(metadata=metadata, store_path=array.store_path))


def _is_near(store: Any) -> bool:
    """Whether a store lies on this machine."""
    if isinstance(store, FsspecStore):
        return store.fs.protocol == "file" or "file" in tuple(store.fs.protocol)
    return isinstance(store, LocalStore | MemoryStore | ZipStore)


class Near(zarr.Array):  # type: ignore[misc]
    """An array whose chunks are read and unpacked on the thread that asks for them."""

    def __getitem__(self, selection: Any) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            with suppress(AttributeError, TypeError), closing(_AtOnce()) as loop:
                return loop.run_until_complete(self._selected(selection))
        return super().__getitem__(selection)  # as in a notebook: no thread runs two loops

    async def _selected(self, selection: Any) -> Any:
        into = INTO_LENT if self.shards is None else None  # shards are put together by Zarr alone
        try:
            return await self.async_array.getitem(selection, prototype=into)
        finally:  # after an error, chunks that others still wait for are not wanted
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)


class _AtOnce(asyncio.SelectorEventLoop):
    """A loop that does on its own thread what is meant for others."""

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Args], R], *args: *Args
    ) -> asyncio.Future[R]:
        """What the function gives, called at once."""
        future: asyncio.Future[R] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def _bounded_codecs(codecs: Any) -> list[Any]:
    """The codecs of an array of format 3; those inside of shards as well."""
    result = []
    for codec in codecs:
        if isinstance(codec, ShardingCodec):
            inner, index = _bounded_codecs(codec.codecs), _bounded_codecs(codec.index_codecs)
            result.append(replace(codec, codecs=inner, index_codecs=index))
        elif not isinstance(codec, Bounded) and _name_of(codec) in {*SIZES, *STREAMS}:
            result.append(Bounded(codec))
        else:
            result.append(codec)
    return result


def _name_of(codec: Any) -> str:
    """What a codec of format 3 is called in metadata; those of numcodecs have a prefix."""
    return str(codec.to_dict()["name"]).removeprefix("numcodecs.")


@dataclass(frozen=True)
class Bounded(BytesBytesCodec):  # type: ignore[misc]
    """A codec of format 3 that refuses chunks which unpack to more than their array describes."""

    codec: Any
    is_fixed_size = False

    def to_dict(self) -> Any:
        """The codec as it stands in metadata."""
        return self.codec.to_dict()

    def evolve_from_array_spec(self, array_spec: Any) -> "Bounded":
        """The codec for chunks of this kind."""
        return Bounded(self.codec.evolve_from_array_spec(array_spec))

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        """The size of a packed chunk, where it is known."""
        return int(self.codec.compute_encoded_size(input_byte_length, chunk_spec))

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        kind = getattr(chunk_spec.dtype, "to_native_dtype", lambda: chunk_spec.dtype)()
        most = math.prod(chunk_spec.shape) * kind.itemsize + SLACK
        content = memoryview(chunk_bytes.as_numpy_array()).cast("B")
        name, settings = _name_of(self.codec), self.to_dict().get("configuration", {})
        unpacked = await asyncio.to_thread(_unpacked, name, settings, content, most)
        return chunk_spec.prototype.buffer.from_array_like(np.frombuffer(unpacked, np.uint8))


class Within(Codec):  # type: ignore[misc]
    """A codec of format 2 that refuses what unpacks to more than `most` bytes."""

    codec_id = "bounded"

    def __init__(self, codec: Any, most: int) -> None:
        self.codec, self.most = codec, most

    def get_config(self) -> Any:
        """The codec as it stands in metadata."""
        return self.codec.get_config()

    def encode(self, buf: Any) -> Any:
        """The packed bytes."""
        return self.codec.encode(buf)

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The unpacked bytes."""
        content, most = memoryview(buf).cast("B"), self.most + SLACK
        unpacked = _unpacked(self.codec.codec_id, self.codec.get_config(), content, most)
        return unpacked if out is None else ndarray_copy(unpacked, out)


def _within(codec: Any, most: int) -> Any:
    if codec is None or isinstance(codec, Within) or codec.codec_id not in {*SIZES, *STREAMS}:
        return codec
    return Within(codec, most)


# What a chunk unpacks to, held against the most it may be ----------------------------------------


def _check(size: int, most: int) -> None:
    if size > most:
        raise ValueError(f"it unpacks to more than the {most - SLACK} bytes of a chunk")


def _unpacked(name: str, settings: Mapping[str, Any], content: memoryview, most: int) -> Any:
    """What packed bytes unpack to: bytes, or an array of them."""
    if name in STREAMS:
        return _streamed(name, settings, content, most)
    codec, size_of = SIZES[name]
    size = size_of(content, most)
    return codec.decode(content, None if size is None else lent(size))


def _streamed(name: str, settings: Mapping[str, Any], content: memoryview, most: int) -> bytes:
    """What a stream that does not say its size unpacks to, or several, one after the other."""
    parts, size = [], 0
    rest: Any = content
    while len(rest):
        unpacker = STREAMS[name](settings)
        while not unpacker.eof:
            part = unpacker.decompress(rest, most - size + 1)
            size += len(part)
            _check(size, most)
            parts.append(part)
            rest = getattr(unpacker, "unconsumed_tail", b"")
            if not (part or rest or unpacker.eof):
                raise EOFError("it ends in the middle")
        rest = unpacker.unused_data
    return b"".join(parts)


def _number_at(place: int) -> Callable[[memoryview, int], int | None]:
    """The size, where packed bytes say it in four bytes at a place (Blosc, LZ4)."""

    def size_of(content: memoryview, most: int) -> int | None:
        if len(content) < place + 4:
            return None
        size: int = struct.unpack_from("<I", content, place)[0]
        _check(size, most)
        return size

    return size_of


def _size_of_zstandard(content: memoryview, most: int) -> int | None:
    """The size, where there is one frame that says it; else what its blocks can hold is checked."""
    size, place = 0, 0
    frames: list[int | None] = []  # what each says
    while place + 5 <= len(content):
        (magic,) = struct.unpack_from("<I", content, place)
        if magic & ~0xF == SKIPPABLE:
            place += 8 + int.from_bytes(content[place + 4 : place + 8], "little")
            continue
        if magic != ZSTD:
            return None
        flags = content[place + 4]
        single, sums = flags >> 5 & 1, flags >> 2 & 1
        place += 5 + (not single) + (0, 1, 2, 4)[flags & 3]
        width = (single, 2, 4, 8)[flags >> 6]
        said = None
        if width:  # the codec takes memory for so many
            said = int.from_bytes(content[place : place + width], "little")
            said += 256 if width == 2 else 0
            _check(said, most)
        frames.append(said)
        place += width
        last = False
        while not last and place + 3 <= len(content):
            header = int.from_bytes(content[place : place + 3], "little")
            last, kind, length = bool(header & 1), header >> 1 & 3, header >> 3
            size += ZSTD_BLOCK if kind == 2 else length
            _check(size, most)
            place += 3 + (1 if kind == 1 else length)
        place += 4 * sums
    return frames[0] if len(frames) == 1 else None


# Codecs whose packed bytes may say their size, and how they do.
SIZES: dict[str, tuple[Any, Callable[[memoryview, int], int | None]]] = {
    "blosc": (Blosc(), _number_at(4)),
    "lz4": (LZ4(), _number_at(0)),
    "zstd": (Zstd(), _size_of_zstandard),
}

# By the settings of the codec.
STREAMS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "gzip": lambda _: zlib_module().decompressobj(wbits=31),
    "zlib": lambda _: zlib_module().decompressobj(),
    "bz2": lambda _: bz2.BZ2Decompressor(),
    "lzma": lambda settings: lzma.LZMADecompressor(
        settings.get("format", lzma.FORMAT_XZ), filters=settings.get("filters")
    ),
}


# Memory that is used again ------------------------------------------------------------------------

Free: TypeAlias = deque[NDArray[np.uint8]]

# By the power of two that is their size.
_free: list[Free] = [deque(maxlen=min(PIECES, KEPT >> n)) for n in range(KEPT.bit_length())]


def lent(size: int) -> NDArray[np.uint8]:
    """An array of so many bytes, whose memory is used again once nothing refers to it."""
    power = max(size - 1, 0).bit_length()
    if power >= len(_free):
        return np.empty(size, np.uint8)
    try:
        memory = _free[power].pop()
    except IndexError:
        memory = np.empty(1 << power, np.uint8)
    return np.asarray(_Loan(memory, _free[power]))[:size]


class _Loan:
    """What an array of lent memory is based on, as are all views of it; it goes when they do."""

    def __init__(self, memory: NDArray[np.uint8], free: Free) -> None:
        self.memory, self.free = memory, free
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        self.free.append(self.memory)


class _Lent(_Array):  # type: ignore[misc]
    """What Zarr puts values into."""

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: Any, order: Literal["C", "F"] = "C") -> "_Lent":
        """An array of any values."""
        kind = np.dtype(dtype)
        if kind.hasobject:
            return cls(np.empty(shape, kind, order))
        return cls(np.ndarray(shape, kind, lent(math.prod(shape) * kind.itemsize), order=order))


INTO_LENT = None if _PROTOTYPE is None else _PROTOTYPE._replace(nd_buffer=_Lent)
