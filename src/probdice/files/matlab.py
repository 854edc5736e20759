"""MATLAB: `file.mat:variable`, `file.mat:cell/0`, `file.mat:struct/field`.

Cells are counted from 0. A struct with a field `Segmentation`, as in BSDS, means that field.
MATLAB's numbers are floating by default: whole ones are labels, others along three axes
or more are probabilities with the regions last, as MATLAB has them. Version 7.3 is HDF5 and needs
the extra `hdf5`.

The child process parses files, with SciPy up to version 7. SciPy does not verify the check sum of a
packed variable whose stream lacks its end: one in 3,000 mutants was read to other values. So the
streams are unpacked once before, which also tells how much memory the variables take.
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
from probdice.files.contained_images import expect, impossible
from probdice.files.containment import NUMBERS, Answer, contained, grant
from probdice.files.corrupt import DEFLATE_RATIO, check_memory, check_size, library_call
from probdice.files.hdf5 import check_dataset, datasets, filling, opened
from probdice.files.interpretation import fraction_in
from probdice.files.model import Content, Format, Image, Source, meaning_of, need
from probdice.files.packed import unpack_pieces

__all__ = ["MATLAB"]

HEADER, TAG = 128, 8  # bytes: of the file, and of a variable before its content
COMPRESSED = 15  # the type of a packed variable


def _recognises(source: Source) -> bool:
    return source.head[:7] == b"MATLAB "


def _read(source: Source) -> Image:
    if _is_hdf5(source):
        (array,) = _contained(source, read_newer, source.inside, source.max_bytes).arrays
        array = array.T
    else:
        (array,) = _contained(source, read_older, source.inside, source.max_bytes).arrays
    floating = array.dtype.kind == "f" and array.ndim > 2 and fraction_in(array) is not None
    return Image(array, regions=array.ndim - 1 if floating else None, assumed=True)


def _contents(source: Source) -> list[Content]:
    """Every array of more than one number."""
    if _is_hdf5(source):
        answer = _contained(source, list_newer)
    else:
        answer = _contained(source, list_older, source.max_bytes)
    contents = []
    try:
        for path, lengths, name in answer.value:
            shape = tuple(int(length) for length in lengths)
            dtype = np.dtype(name if NUMBERS.fullmatch(name) else "void")
            meaning = meaning_of(shape, dtype, len(shape) - 1 if len(shape) > 2 else None)
            contents.append(Content(str(path), shape, dtype, meaning))
    except (TypeError, ValueError):
        raise impossible() from None
    return contents


MATLAB = Format("MATLAB", (".mat",), _recognises, _read, contents=_contents)


def _is_hdf5(source: Source) -> bool:
    return source.head.startswith(b"MATLAB 7.3")


def _contained(source: Source, reader: Any, *arguments: Any) -> Answer:
    library = "scipy.io"
    if _is_hdf5(source):
        expect("h5py", "hdf5", "reading MATLAB 7.3")
        library = "h5py"
    most = source.max_bytes
    return contained(reader, source.path, *arguments, library=library, max_bytes=most)


# -- versions 5 to 7, in the child process ---------------------------------------------------------


def read_older(file: str, inside: str, max_bytes: int) -> Answer:
    """The array at a path inside the file, or the only one."""
    steps = [step for step in inside.split("/") if step]
    variables = _variables(file, steps[:1], max_bytes)
    with library_call():  # cells may lie in each other without end
        paths = [path for path, _ in _arrays(variables)]
        if not steps:
            if len(paths) != 1:
                raise FormatError(
                    f"holds {len(paths)} arrays ({_listed(paths)}): say which one, as in "
                    f"file.mat:{paths[0] if paths else 'name'}"
                )
            steps = paths[0].split("/")
        value = variables.get(steps[0])
        for step in steps[1:]:
            value = _entered(value, step)
        value = _opened(value)
    if not _is_numbers(value):
        if steps[0] not in variables:
            paths = [path for path, _ in _arrays(_variables(file, [], max_bytes))]
        raise FormatError(f"has no array at {inside!r}; it holds {_listed(paths)}")
    return Answer(None, (value,))


def list_older(file: str, max_bytes: int) -> Answer:
    """The path, shape and type of every array of more than one number."""
    with library_call():
        found = _arrays(_variables(file, [], max_bytes))
        return Answer([[path, array.shape, array.dtype.str] for path, array in found])


def _variables(file: str, names: list[str], max_bytes: int) -> Mapping[str, Any]:
    """The variables of a file by their names; all of them, or these."""
    io = need("scipy.io", "all", "reading MATLAB")
    grant(_unpacked_size(file, max_bytes))
    with library_call():
        content = io.loadmat(file, variable_names=names or None)
    return {name: value for name, value in content.items() if not name.startswith("__")}


def _unpacked_size(file: str, max_bytes: int) -> int:
    """The bytes of all variables; check sums of packed ones are verified."""
    with open(file, "rb") as stream:
        content = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    order = {b"IM": "<", b"MI": ">"}.get(bytes(content[126:128]))
    if order is None:
        raise FormatError("is corrupt or incomplete: its header does not say its byte order")
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
    """One step down: a cell or struct by its number, a field by its name; else None."""
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
    """The array inside a cell of one element, or a struct that has a field `Segmentation`."""
    if _is_cells(value) and value.size == 1:
        return _opened(value.item())
    if _is_structs(value) and "Segmentation" in value.dtype.names:
        return _opened(_field(value, "Segmentation"))
    return value


def _field(structs: NDArray[Any], name: str) -> Any:
    """What a struct holds by this name; a cell for each of several structs."""
    fields = structs[name].ravel(order="F")
    return fields[0] if fields.size == 1 else fields


def _arrays(variables: Mapping[str, Any]) -> list[tuple[str, NDArray[Any]]]:
    """Every array of more than one number, and its path."""
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
    """Whether it is an array of structs or of objects; functions and opaque objects are none."""
    kind = type(value).__name__
    return (
        isinstance(value, np.ndarray)
        and bool(value.dtype.names)
        and kind not in ("MatlabFunction", "MatlabOpaque")
    )


# -- version 7.3, in the child process -------------------------------------------------------------


def read_newer(file: str, inside: str, max_bytes: int) -> Answer:
    """A variable of HDF5, with the axes the other way round; cells are not followed."""
    h5py = need("h5py", "hdf5", "reading MATLAB 7.3")
    content = opened(h5py, file)
    variables = _newer_variables(h5py, content)
    wanted = inside.strip("/") or (next(iter(variables)) if len(variables) == 1 else "")
    if wanted not in variables:
        raise FormatError(
            f"is of version 7.3 and holds {_listed([f'/{name}' for name in variables])}: say "
            f"which one, as in file.mat:variable; save it with -v7 where the array lies in a cell"
        )
    dataset = variables[wanted]
    check_dataset(dataset, Path(file))
    shape = tuple(dataset.shape)
    needed = dataset.dtype.itemsize * math.prod(shape)
    check_size(needed, Path(file).stat().st_size, shape, ratio=DEFLATE_RATIO)
    check_memory(needed, shape, max_bytes)
    grant(needed)
    return Answer(None, (filling(content, dataset, (), shape),))


def list_newer(file: str) -> Answer:
    """The path, shape and type of every variable."""
    h5py = need("h5py", "hdf5", "reading MATLAB 7.3")
    with library_call(), opened(h5py, file) as content:
        return Answer(
            [
                [name, tuple(reversed(dataset.shape)), dataset.dtype.str]
                for name, dataset in _newer_variables(h5py, content).items()
            ]
        )


def _newer_variables(h5py: Any, content: Any) -> dict[str, Any]:
    """Every data set but those that only cells refer to."""
    found = datasets(h5py, content).items()
    return {name.strip("/"): item for name, item in found if not name.startswith("/#refs#")}


def _listed(paths: list[str]) -> str:
    return ", ".join(paths[:12]) + (", …" if len(paths) > 12 else "") or "no arrays of numbers"
