"""MATLAB: `file.mat:variable`, `file.mat:cell/0`, `file.mat:struct/field`.

Cells are counted from 0. A struct with a field `Segmentation`, as in BSDS, means that field.
MATLAB's numbers are floating by default: whole ones are labels, others along three axes
or more are probabilities with the regions last, as MATLAB has them. Version 7.3 is HDF5 and needs
the extra `hdf5`.
"""

import math
import mmap
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import FormatError
from probdice.files.damage import DEFLATE_RATIO, check_memory, check_size, library_call
from probdice.files.hdf5 import check_dataset, datasets, opened
from probdice.files.matfile import Cells, Struct, Value, variables_of
from probdice.files.meaning import fraction_in
from probdice.files.model import Content, Format, Image, Source, meaning_of, need

__all__ = ["MATLAB"]


def _recognises(source: Source) -> bool:
    return source.head[:7] == b"MATLAB "


def _read(source: Source) -> Image:
    array = _newer(source) if source.head.startswith(b"MATLAB 7.3") else _older(source)
    if array.dtype.kind not in "biuf":
        raise FormatError(f"holds {array.dtype}, expected an array of numbers")
    floating = array.dtype.kind == "f" and array.ndim > 2 and fraction_in(array) is not None
    return Image(array, regions=array.ndim - 1 if floating else None, assumed=True)


def _contents(source: Source) -> list[Content]:
    """Every array of more than one number."""
    if source.head.startswith(b"MATLAB 7.3"):
        h5py = need("h5py", "hdf5", "reading MATLAB 7.3")
        with library_call(), opened(h5py, source.path) as file:
            arrays = {
                name.strip("/"): (tuple(reversed(item.shape)), item.dtype)
                for name, item in datasets(h5py, file).items()
                if not name.startswith("/#refs#")
            }
    else:
        found = _arrays(_variables(source))
        arrays = {path: (array.shape, array.dtype) for path, array in found.items()}
    return [
        Content(
            path, shape, dtype, meaning_of(shape, dtype, len(shape) - 1 if len(shape) > 2 else None)
        )
        for path, (shape, dtype) in arrays.items()
    ]


MATLAB = Format("MATLAB", (".mat",), _recognises, _read, contents=_contents)


def _older(source: Source) -> NDArray[Any]:
    """Versions 5 to 7."""
    variables = _variables(source)
    inside = source.inside
    steps = [step for step in inside.split("/") if step]
    if not steps:
        paths = _paths(variables)
        if len(paths) != 1:
            raise FormatError(
                f"holds {len(paths)} arrays ({_listed(paths)}): say which one, as in "
                f"file.mat:{paths[0] if paths else 'name'}"
            )
        steps = paths[0].split("/")
    value: Value = Struct(tuple(variables), (variables,))
    for number, step in enumerate(steps):
        value = _entered(value, step)
        if value is None:
            where = "/".join(steps[: number + 1])
            raise FormatError(f"has no {where!r}; it holds {_listed(_paths(variables))}")
    value = _opened(value)
    if not isinstance(value, np.ndarray):
        raise FormatError(f"has no array at {inside!r}; it holds {_listed(_paths(variables))}")
    return value


def _variables(source: Source) -> dict[str, Value]:
    with source.path.open("rb") as stream:
        content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    return variables_of(memoryview(content), source.max_bytes)


def _newer(source: Source) -> NDArray[Any]:
    """Version 7.3: HDF5, with the axes the other way round; cells are not followed."""
    h5py = need("h5py", "hdf5", "reading MATLAB 7.3")
    with opened(h5py, source.path) as file:
        variables = datasets(h5py, file)
        names = [name for name in variables if not name.startswith("/#refs#")]
        wanted = source.inside.strip("/") or (names[0].strip("/") if len(names) == 1 else "")
        if f"/{wanted}" not in names:
            raise FormatError(
                f"is of version 7.3 and holds {_listed(names)}: say which one, as in "
                f"file.mat:variable; save it with -v7 where the array lies in a cell"
            )
        dataset = variables[f"/{wanted}"]
        check_dataset(dataset, source.path)
        needed = dataset.dtype.itemsize * math.prod(dataset.shape)
        check_size(needed, source.path.stat().st_size, dataset.shape, ratio=DEFLATE_RATIO)
        check_memory(needed, dataset.shape, source.max_bytes)
        with library_call():
            return np.asarray(dataset[()]).T


def _opened(value: Value) -> Value:
    """The array inside a cell of one element, or a struct that has a field `Segmentation`."""
    if isinstance(value, Cells) and len(value.items) == 1:
        return _opened(value.items[0])
    if isinstance(value, Struct) and "Segmentation" in value.names:
        return _opened(_field(value, "Segmentation"))
    return value


def _entered(value: Value, step: str) -> Value:
    """One step down: a cell or struct by its number, a field by its name."""
    if not isinstance(value, Cells | Struct):
        return None
    if step.isdecimal():
        if int(step) >= len(value.items):
            return None
        if isinstance(value, Struct):
            return Struct(value.names, (value.items[int(step)],))
        return value.items[int(step)]
    if isinstance(value, Cells):
        return _entered(value.items[0], step) if len(value.items) == 1 else None
    return _field(value, step) if step in value.names else None


def _field(struct: Struct, name: str) -> Value:
    """What a struct holds by this name, whatever the name: one value, or one of each element."""
    fields = tuple(item[name] for item in struct.items)
    return fields[0] if len(fields) == 1 else Cells(fields)


def _paths(variables: dict[str, Value]) -> list[str]:
    """The paths of every array of more than one number."""
    return list(_arrays(variables))


def _arrays(variables: dict[str, Value]) -> dict[str, NDArray[Any]]:
    """Every array of more than one number, by its path."""
    return dict(pair for name, value in variables.items() for pair in _arrays_in(value, name))


def _arrays_in(value: Value, prefix: str) -> list[tuple[str, NDArray[Any]]]:
    value = _opened(value)
    if isinstance(value, np.ndarray):
        return [(prefix, value)] if value.size > 1 else []
    steps: Iterable[tuple[object, Value]] = ()
    if isinstance(value, Cells):
        steps = enumerate(value.items)
    elif isinstance(value, Struct):
        steps = ((name, _field(value, name)) for name in value.names)
    return [pair for step, inner in steps for pair in _arrays_in(inner, f"{prefix}/{step}")]


def _listed(paths: list[str]) -> str:
    return ", ".join(paths[:12]) + (", …" if len(paths) > 12 else "") or "no arrays of numbers"
