"""Convert arrays of other libraries to NumPy.

A library is recognised by the names of its types, so it need not be imported.

| array | conversion |
|---|---|
| NumPy array, memory map | not copied, read in blocks |
| Zarr array, h5py dataset, Dask array | not copied, read in blocks of whole chunks |
| torch tensor | detached and, on another device, copied to the CPU; bfloat16 becomes float32 |
| JAX or CuPy array | copied from its device; bfloat16 becomes float32 |
| xarray DataArray | replaced by its data; a dimension such as "region" is the region axis |
| other array with a DLPack or NumPy protocol | converted with this protocol |
"""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probdice.errors import InputError

__all__ = [
    "AnyArray",
    "Array",
    "Chunks",
    "as_array",
    "chunks_of",
    "has_type",
    "in_memory",
    "is_reopenable",
    "region_dimension",
    "regular_chunks",
    "type_named",
]

# Singular names that mark an xarray dimension as the region axis; plurals also work.
REGION_DIMENSIONS = ("region", "class", "label", "channel")


class Array(Protocol):
    """An array that can be read in blocks, such as an ndarray or an h5py dataset."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __getitem__(self, index: Any, /) -> Any: ...


class Exchangeable(Protocol):
    """An array of another library that supports DLPack."""

    def __dlpack__(self) -> Any: ...


AnyArray: TypeAlias = ArrayLike | Array | Exchangeable
Chunks: TypeAlias = tuple[tuple[int, ...], ...]  # the lengths of the chunks along each axis


def as_array(value: Any) -> Array:
    """Convert a value to an array that can be read in blocks, without copying it if possible."""
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            raise InputError(
                "is a NumPy masked array, whose mask would be ignored. Pass array.data instead, "
                "and pass mask=~array.mask to the comparison."
            )
        return value if value.dtype.kind != "V" else _widen(value)
    if isinstance(value, list | tuple | int | float):
        return _convert(value)
    if isinstance(value, str | bytes | PathLike):
        raise InputError(
            f"expected an array, found a path, {str(value)!r}. Read the file first with "
            f"probdice.read(path)."
        )
    if has_type(value, "torch", "Tensor"):
        return _of_torch(value)
    if has_type(value, "zarr", "Array") and hasattr(value, "store_path"):  # Zarr 3 or later
        from probdice.files.chunks import with_size_limits

        return cast(Array, with_size_limits(value))
    if has_type(value, "xarray", "DataArray"):
        return as_array(value.data)
    for library, name in (("nibabel", "FileBasedImage"), ("SimpleITK", "Image")):
        if has_type(value, library, name):
            raise InputError(
                f"expected an array, found {type_named(value)}, whose geometry would be ignored. "
                f"Convert the image first with probdice.read(image)."
            )
    library = type(value).__module__.split(".")[0]
    if library == "cupy":
        return as_array(value.get())
    # Slicing is slow for JAX arrays and has another meaning for pandas columns.
    if library not in ("jax", "jaxlib", "pandas") and _can_slice(value):
        return cast(Array, value)
    if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
        return _of_dlpack(value)
    return _convert(value)


def in_memory(array: Array) -> NDArray[Any]:
    """Read all values of an array, and return them as an ndarray."""
    return np.asarray(array[(slice(None),) * len(array.shape)])


def chunks_of(array: Array) -> Chunks | None:
    """Return the lengths of an array's chunks along each axis, or None if it has no chunks.

    Zarr and HDF5 store the shape of one chunk; Dask stores the lengths of all chunks along each
    axis.
    """
    chunks = getattr(array, "chunks", None)
    return regular_chunks(array.shape, chunks) if isinstance(chunks, tuple) else None


def regular_chunks(shape: Sequence[int], chunks: Sequence[int | tuple[int, ...]]) -> Chunks | None:
    """Return the lengths of all chunks along each axis.

    Return None if `chunks` does not have one entry per axis. An entry that is a single length
    applies to all chunks along the axis, except that the last chunk may be shorter.
    """
    if len(chunks) != len(shape):
        return None
    lengths = []
    for size, length in zip(shape, chunks, strict=True):
        if isinstance(length, tuple):
            lengths.append(length)
        else:
            full_chunks, remainder = divmod(size, max(int(length), 1))
            lengths.append((int(length),) * full_chunks + ((remainder,) if remainder else ()))
    return tuple(lengths)


def is_reopenable(array: Any) -> bool:
    """Return whether the array is known to be readable from its store in another process."""
    if has_type(array, "zarr", "Array"):
        return not has_type(array.store, "zarr", "MemoryStore")
    return bool(getattr(array, "reopenable", False))


def region_dimension(value: object) -> tuple[int, tuple[int | str, ...] | None] | None:
    """Return the region axis of an xarray DataArray, and the names of the regions.

    The names are None if the axis has no coordinates. Return None if `value` is not a DataArray or
    has no region axis.
    """
    if not has_type(value, "xarray", "DataArray"):
        return None
    array = cast(Any, value)
    region_axes = [
        axis for axis, dimension in enumerate(array.dims) if str(dimension).lower() in _DIMENSIONS
    ]
    if not region_axes:
        return None
    if len(region_axes) > 1:
        raise InputError(
            f"several dimensions could be the region axis: "
            f"{', '.join(str(array.dims[axis]) for axis in region_axes)}. Rename all of these "
            f"dimensions except one."
        )
    dimension = array.dims[region_axes[0]]
    if dimension not in array.coords:
        return region_axes[0], None
    return region_axes[0], tuple(_label(name) for name in array.coords[dimension].values.tolist())


_DIMENSIONS = {form for name in REGION_DIMENSIONS for form in (name, f"{name}s", f"{name}es")}


def has_type(value: object, library: str, name: str) -> bool:
    """Return whether a value is an instance of a library's class, without importing the library."""
    return any(
        kind.__name__ == name and kind.__module__.split(".")[0] == library
        for kind in type(value).__mro__
    )


def type_named(value: object) -> str:
    """Return the name of a value's type, preceded by its library, such as torch.Tensor."""
    library = type(value).__module__.split(".")[0]
    return type(value).__name__ if library == "builtins" else f"{library}.{type(value).__name__}"


def _can_slice(value: Any) -> bool:
    return hasattr(value, "shape") and isinstance(getattr(value, "dtype", None), np.dtype)


def _convert(value: Any) -> NDArray[Any]:
    """Convert a value with any protocol that NumPy supports."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"must be an array with rows of equal length: {error}") from None
    except (TypeError, RuntimeError, BufferError) as error:
        raise InputError(
            f"found {type_named(value)}, which NumPy cannot convert ({_reason(error)}). "
            f"Pass a NumPy array."
        ) from None
    if array.dtype.kind == "O":
        raise InputError(f"must be an array of numbers, found {_description(value)}")
    return array if array.dtype.kind != "V" else _widen(array)


def _of_torch(tensor: Any) -> NDArray[Any]:
    """Convert a tensor on any device, with or without gradients."""
    try:
        tensor = tensor.detach()
        if str(tensor.layout) != "torch.strided":
            tensor = tensor.to_dense()
        if str(tensor.dtype).startswith(("torch.bfloat16", "torch.float8")):
            tensor = tensor.float()
        return np.asarray(tensor.cpu().resolve_conj().resolve_neg().numpy())
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise InputError(
            f"found a tensor of {tensor.dtype} on {tensor.device} whose values cannot be read "
            f"({_reason(error)}). Pass a NumPy array."
        ) from None


def _of_dlpack(value: Any) -> NDArray[Any]:
    """Convert an array with DLPack, and copy it from another device if possible."""
    try:
        return np.from_dlpack(value)
    except (TypeError, RuntimeError, BufferError, ValueError):
        pass
    try:
        return np.from_dlpack(value, device="cpu", copy=True)
    except (TypeError, RuntimeError, BufferError, ValueError) as error:
        raise InputError(
            f"found {type_named(value)}, which NumPy cannot convert ({_reason(error)}). Copy the "
            f"array to host memory first."
        ) from None


def _widen(array: NDArray[Any]) -> NDArray[Any]:
    """Convert bfloat16 and float8, which are not NumPy types, to float32."""
    if array.dtype.name.startswith(("bfloat16", "float8")):
        return array.astype(np.float32)
    return array


def _label(name: object) -> int | str:
    """Convert an xarray coordinate to a label: an integer for a whole number, else a string."""
    if isinstance(name, int | float) and not isinstance(name, bool) and float(name).is_integer():
        return int(name)
    return str(name)


def _description(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return f"a {type_named(value)} of {type_named(value[0])}"
    return type_named(value)


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else f"{text[:200]}…"
