"""Chunks of Zarr (extra `zarr`), unpacked to no more than the metadata of their array describe.

The codecs of Zarr take memory for whatever a chunk says that it holds, and a few bytes may say
gigabytes. Here each codec that can do so is told how much a chunk may hold: where the packed bytes
say a size that is held against it, else they are unpacked up to there.
"""

import asyncio
import bz2
import lzma
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import zarr
from numcodecs.abc import Codec
from numcodecs.compat import ndarray_copy
from zarr.abc.codec import BytesBytesCodec
from zarr.codecs import ShardingCodec

from probdice.files.packed import zlib_module

__all__ = ["bounded"]

SLACK = 1 << 20  # bytes for what codecs add to a chunk
WIDEST = 16  # bytes of a number; filters of format 2 may store wider numbers than they give
ZSTD, SKIPPABLE = 0xFD2FB528, 0x184D2A50  # what frames of Zstandard start with
ZSTD_BLOCK = 1 << 17  # bytes that a packed block of Zstandard gives at most


def bounded(array: Any) -> Any:
    """The array of Zarr, whose chunks are refused where they unpack to too much."""
    metadata = array.metadata
    if metadata.zarr_format == 3:
        metadata = replace(metadata, codecs=_bounded_codecs(metadata.codecs))
    else:
        size = math.prod(array.chunks) * array.dtype.itemsize
        most = size * (WIDEST if metadata.filters else 1)
        filters = metadata.filters and tuple(_within(codec, most) for codec in metadata.filters)
        metadata = replace(metadata, filters=filters, compressor=_within(metadata.compressor, most))
    return zarr.Array(zarr.AsyncArray(metadata=metadata, store_path=array.store_path))


def _bounded_codecs(codecs: Any) -> list[Any]:
    """The codecs of an array of format 3; those inside of shards as well."""
    result = []
    for codec in codecs:
        if isinstance(codec, ShardingCodec):
            inner, index = _bounded_codecs(codec.codecs), _bounded_codecs(codec.index_codecs)
            result.append(replace(codec, codecs=inner, index_codecs=index))
        elif _name_of(codec) in {*CHECKS, *STREAMS}:
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
        if name in STREAMS:
            unpacked = await asyncio.to_thread(_unpacked, name, settings, content, most)
            return chunk_spec.prototype.buffer.from_bytes(unpacked)
        CHECKS[name](content, most)
        return await self.codec._decode_single(chunk_bytes, chunk_spec)


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
        content, most, name = memoryview(buf).cast("B"), self.most + SLACK, self.codec.codec_id
        if name in STREAMS:
            unpacked = _unpacked(name, self.codec.get_config(), content, most)
            return unpacked if out is None else ndarray_copy(unpacked, out)
        CHECKS[name](content, most)
        return self.codec.decode(buf, out)


def _within(codec: Any, most: int) -> Any:
    if codec is None or isinstance(codec, Within) or codec.codec_id not in {*CHECKS, *STREAMS}:
        return codec
    return Within(codec, most)


# What a chunk unpacks to, held against the most it may be ----------------------------------------


def _check(size: int, most: int) -> None:
    if size > most:
        raise ValueError(f"it unpacks to more than the {most - SLACK} bytes of a chunk")


def _check_number(place: int) -> Callable[[memoryview, int], None]:
    """For packed bytes that say their size in four bytes at a place (Blosc, LZ4)."""

    def check(content: memoryview, most: int) -> None:
        if len(content) >= place + 4:
            _check(struct.unpack_from("<I", content, place)[0], most)

    return check


def _unpacked(name: str, settings: Mapping[str, Any], content: memoryview, most: int) -> bytes:
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


def _check_zstandard(content: memoryview, most: int) -> None:
    """By the size that a frame says, or by what its blocks can hold."""
    size, place = 0, 0
    while place + 5 <= len(content):
        (magic,) = struct.unpack_from("<I", content, place)
        if magic & ~0xF == SKIPPABLE:
            place += 8 + int.from_bytes(content[place + 4 : place + 8], "little")
            continue
        if magic != ZSTD:
            return
        flags = content[place + 4]
        single, sums = flags >> 5 & 1, flags >> 2 & 1
        place += 5 + (not single) + (0, 1, 2, 4)[flags & 3]
        width = (single, 2, 4, 8)[flags >> 6]
        if width:  # the codec takes memory for so many
            said = int.from_bytes(content[place : place + width], "little")
            _check(said + (256 if width == 2 else 0), most)
        place += width
        last = False
        while not last and place + 3 <= len(content):
            header = int.from_bytes(content[place : place + 3], "little")
            last, kind, length = bool(header & 1), header >> 1 & 3, header >> 3
            size += ZSTD_BLOCK if kind == 2 else length
            _check(size, most)
            place += 3 + (1 if kind == 1 else length)
        place += 4 * sums


CHECKS: dict[str, Callable[[memoryview, int], None]] = {
    "blosc": _check_number(4),
    "lz4": _check_number(0),
    "zstd": _check_zstandard,
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
