"""Read MATLAB files: `file.mat:variable`, `file.mat:cell/0`, `file.mat:struct/field`.

Cells are numbered from 0. If a struct has a field `Segmentation`, as in BSDS, this field is read.
MATLAB's numbers are floating-point by default. An array of whole numbers contains labels. Any other
array contains probabilities: with three or more axes, the last axis is the region axis; with two
axes, there is one foreground region. Files of version 7.3 are HDF5 and require the extra `hdf5`.

Files are parsed in the child process (`containment`): files of version 7.3 by h5py, and files of
older versions by SciPy. SciPy does not verify the checksum of a compressed variable whose stream is
truncated:
in a test, it read wrong values from one of 3,000 corrupted files. This module therefore
decompresses the streams first, which also determines the memory that the variables require.
"""

import math
import mmap
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import FormatError
from probdice.files.child_messages import Dtype, Size
from probdice.files.containment import ReaderResult, grant, run_in_child
from probdice.files.corrupt import (
    DEFLATE_RATIO,
    check_memory,
    check_size,
    corrupt,
    library_call,
    select_name,
)
from probdice.files.hdf5 import check_dataset, datasets, filling_of, open_file
from probdice.files.interpretation import fraction_in
from probdice.files.model import ContainedArray, Format, Image, Source, expect, meaning_of, need
from probdice.files.packed import unpack_pieces

__all__ = ["MATLAB"]

HEADER, TAG = 128, 8  # sizes in bytes of the file header and of the tag of a variable
COMPRESSED = 15  # type code of a compressed variable


def _recognises(source: Source) -> bool:
    return source.head[:7] == b"MATLAB "


def _read(source: Source) -> Image:
    if _is_hdf5(source):
        array = _run_in_child(source, read_newer, source.inside, source.max_bytes).arrays[0].T
    else:
        array = _run_in_child(source, read_older, source.inside, source.max_bytes).arrays[0]
    floating = array.dtype.kind == "f" and array.ndim > 2 and fraction_in(array) is not None
    return Image(array, regions=array.ndim - 1 if floating else None, assumed=True)


def _contents(source: Source) -> list[ContainedArray]:
    """List every array. In files up to version 7, arrays of a single number are not listed."""
    reader = list_newer if _is_hdf5(source) else list_older
    contents = []
    arrays = list[tuple[str, list[Size], Dtype]]
    for path, lengths, name in _run_in_child(
        source, reader, source.max_bytes, returns=arrays
    ).value:
        shape, dtype = tuple(lengths), np.dtype(name)
        meaning = meaning_of(shape, dtype, len(shape) - 1 if len(shape) > 2 else None)
        contents.append(ContainedArray(path, shape, dtype, meaning))
    return contents


MATLAB = Format("MATLAB", (".mat",), _recognises, _read, contents=_contents)


def _is_hdf5(source: Source) -> bool:
    return source.head.startswith(b"MATLAB 7.3")


def _run_in_child(
    source: Source, reader: Any, *arguments: Any, returns: Any = None
) -> ReaderResult:
    library = "scipy.io"
    if _is_hdf5(source):
        expect("h5py", "hdf5", "reading MATLAB 7.3")
        library = "h5py"
    max_bytes = source.max_bytes
    answer = run_in_child(
        reader, source.path, *arguments, returns=returns, library=library, max_bytes=max_bytes
    )
    if returns is None and len(answer.arrays) != 1:
        raise corrupt(f"the result of {library} is invalid")
    return answer


# -- versions 5 to 7, in the child process ---------------------------------------------------------


def read_older(file: str, inside: str, max_bytes: int) -> ReaderResult:
    """Read the array at the path `inside`, or the only array."""
    steps = [step for step in inside.split("/") if step]
    variables = _variables(file, steps[:1], max_bytes)
    with library_call():  # nested cells may exceed the recursion limit
        if not steps:
            paths = [path for path, _ in _arrays(variables)]
            steps = select_name("", paths, "arrays", "file.mat:").split("/")
        value = variables.get(steps[0])
        for step in steps[1:]:
            value = _entered(value, step)
        value = _opened(value)
        if not _is_numbers(value):
            paths = [path for path, _ in _arrays(variables or _variables(file, [], max_bytes))]
            select_name(inside, paths, "arrays", "file.mat:")  # always raises
    return ReaderResult(None, (value,))


def list_older(file: str, max_bytes: int) -> ReaderResult:
    """List the path, shape and type of every array with more than one number."""
    with library_call():
        arrays = _arrays(_variables(file, [], max_bytes))
        return ReaderResult([[path, array.shape, array.dtype.str] for path, array in arrays])


def _variables(file: str, names: list[str], max_bytes: int) -> Mapping[str, Any]:
    """Read the variables with these names, or all variables if `names` is empty."""
    io = need("scipy.io", "all", "reading MATLAB")
    grant(_unpacked_size(file, max_bytes))
    with library_call():
        content = io.loadmat(file, variable_names=names or None)
    return {name: value for name, value in content.items() if not name.startswith("__")}


def _unpacked_size(file: str, max_bytes: int) -> int:
    """Return the total size of all variables, after verifying checksums of compressed variables."""
    with open(file, "rb") as stream:
        content = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    order = {b"IM": "<", b"MI": ">"}.get(bytes(content[126:128]))
    if order is None:
        raise corrupt("its header has no byte order")
    total, start = 0, HEADER
    while start + TAG <= len(content):
        kind, size = struct.unpack(f"{order}2I", content[start : start + TAG])
        variable = content[start + TAG : start + TAG + size]
        check_size(size, len(variable), (size,))
        for part in unpack_pieces((variable,)) if kind == COMPRESSED else (variable,):
            total += len(part)
            check_memory(total, (total,), max_bytes)
        start += TAG + size
    return total


def _entered(value: Any, step: str) -> Any:
    """Return the cell or struct with the index `step`, or the field with the name `step`.

    Return None if it does not exist.
    """
    if not _is_cells(value) and not _is_structs(value):
        return None
    if step.isdecimal():
        items = value.ravel(order="F")
        if int(step) >= items.size:
            return None
        return items[int(step)] if _is_cells(value) else items[int(step) : int(step) + 1]
    if _is_cells(value):
        return _entered(value.item(), step) if value.size == 1 else None
    return _field(value, step) if step in value.dtype.names else None


def _opened(value: Any) -> Any:
    """Return the array in a cell with one element, or in a struct's field `Segmentation`.

    Other values are returned unchanged.
    """
    if _is_cells(value) and value.size == 1:
        return _opened(value.item())
    if _is_structs(value) and "Segmentation" in value.dtype.names:
        return _opened(_field(value, "Segmentation"))
    return value


def _field(structs: NDArray[Any], name: str) -> Any:
    """Return the field of a struct or, for several structs, an array with the field of each."""
    fields = structs[name].ravel(order="F")
    return fields[0] if fields.size == 1 else fields


def _arrays(variables: Mapping[str, Any]) -> list[tuple[str, NDArray[Any]]]:
    """Return every array with more than one number, with its path."""
    return [pair for name, value in variables.items() for pair in _arrays_in(value, name)]


def _arrays_in(value: Any, prefix: str) -> Iterator[tuple[str, NDArray[Any]]]:
    value = _opened(value)
    if _is_numbers(value):
        if value.size > 1:
            yield prefix, value
        return
    steps: Iterable[tuple[object, Any]] = ()
    if _is_cells(value):
        steps = enumerate(value.ravel(order="F"))
    elif _is_structs(value):
        steps = ((name, _field(value, name)) for name in value.dtype.names)
    for step, inner in steps:
        yield from _arrays_in(inner, f"{prefix}/{step}")


def _is_numbers(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"


def _is_cells(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object and value.ndim > 0


def _is_structs(value: Any) -> bool:
    """Return whether a value is an array of structs, and not a function or an opaque object."""
    plain = type(value).__name__ not in ("MatlabFunction", "MatlabOpaque")
    return isinstance(value, np.ndarray) and bool(value.dtype.names) and plain


# -- version 7.3, in the child process -------------------------------------------------------------


def read_newer(file: str, inside: str, max_bytes: int) -> ReaderResult:
    """Read an HDF5 variable. The order of its axes is the reverse of MATLAB's.

    Cells are not supported.
    """
    h5py = need("h5py", "hdf5", "reading MATLAB 7.3")
    content = open_file(h5py, file)
    variables = _newer_variables(h5py, content)
    try:
        name = select_name(inside.strip("/"), list(variables), "variables", "file.mat:")
    except FormatError as error:
        hint = " Arrays in cells of version 7.3 are not listed: save them with -v7."
        raise FormatError(*error.args, hint) from None
    dataset = variables[name]
    check_dataset(dataset, Path(file))
    shape = tuple(dataset.shape)
    needed = dataset.dtype.itemsize * math.prod(shape)
    check_size(needed, Path(file).stat().st_size, shape, ratio=DEFLATE_RATIO)
    check_memory(needed, shape, max_bytes)
    grant(needed)
    return ReaderResult(None, (filling_of(content, dataset, (), shape),))


def list_newer(file: str, max_bytes: int) -> ReaderResult:
    """List the path, shape and type of every variable."""
    h5py = need("h5py", "hdf5", "reading MATLAB 7.3")
    with library_call(), open_file(h5py, file) as content:
        variables = _newer_variables(h5py, content).items()
        return ReaderResult([[name, item.shape[::-1], item.dtype.str] for name, item in variables])


def _newer_variables(h5py: Any, content: Any) -> dict[str, Any]:
    """Return a mapping from paths to all numeric datasets, except datasets in cells."""
    items = datasets(h5py, content).items()
    return {name.strip("/"): item for name, item in items if not name.startswith("/#refs#")}
