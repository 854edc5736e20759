"""MATLAB: `file.mat:variable`, `file.mat:cell/0`, `file.mat:struct/field`.

Cells are counted from 0. A struct with a field `Segmentation`, as in BSDS, means that field.
MATLAB's numbers are floating unless told otherwise: whole ones are labels, others along three axes
or more are probabilities with the regions last, as MATLAB has them. Version 7.3 is HDF5 and needs
the extra `hdf5`.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import FormatError
from probdice.files.hdf5 import datasets
from probdice.files.meaning import fraction_in
from probdice.files.model import Format, Image, Source, need

__all__ = ["MATLAB"]


def _recognises(source: Source) -> bool:
    return source.head[:7] == b"MATLAB "


def _read(source: Source) -> Image:
    if source.head.startswith(b"MATLAB 7.3"):
        array = _newer(source.path, source.inside)
    else:
        array = _older(source.path, source.inside)
    if array.dtype.kind not in "biuf":
        raise FormatError(f"holds {array.dtype} there, expected an array of numbers")
    floating = array.dtype.kind == "f" and array.ndim > 2 and fraction_in(array) is not None
    return Image(array, regions=array.ndim - 1 if floating else None, assumed=True)


MATLAB = Format("MATLAB", (".mat",), _recognises, _read)


def _older(path: Path, inside: str) -> NDArray[Any]:
    """Versions 5 to 7."""
    loadmat = import_module("scipy.io").loadmat
    variables = {k: v for k, v in loadmat(path).items() if not k.startswith("__")}
    steps = [step for step in inside.split("/") if step]
    if not steps:
        there = _paths(variables)
        if len(there) != 1:
            raise FormatError(
                f"holds {len(there)} arrays ({_listed(there)}): say which one, as in "
                f"file.mat:{there[0] if there else 'name'}"
            )
        steps = there[0].split("/")
    value: Any = variables
    for number, step in enumerate(steps):
        value = _entered(value, step)
        if value is None:
            where = "/".join(steps[: number + 1])
            raise FormatError(f"has no {where!r}; it holds {_listed(_paths(variables))}")
    value = _opened(value)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        raise FormatError(f"has no array at {inside!r}; it holds {_listed(_paths(variables))}")
    return value


def _newer(path: Path, inside: str) -> NDArray[Any]:
    """Version 7.3: HDF5, with the axes the other way round; cells are not followed."""
    h5py = need("h5py", "hdf5", "reading MATLAB 7.3")
    with h5py.File(path, "r") as file:
        there = [name for name in datasets(h5py, file) if not name.startswith("/#refs#")]
        wanted = inside.strip("/") or (there[0].strip("/") if len(there) == 1 else "")
        if f"/{wanted}" not in there:
            raise FormatError(
                f"is of version 7.3 and holds {_listed(there)}: say which one, as in "
                f"file.mat:variable; save it with -v7 where the array lies in a cell"
            )
        return np.asarray(file[wanted][()]).T


def _opened(value: Any) -> Any:
    """The array inside a struct of one element that has a field `Segmentation`."""
    if isinstance(value, np.ndarray) and value.dtype == object and value.size == 1:
        return _opened(value.flat[0])
    names = getattr(getattr(value, "dtype", None), "names", None)
    if names and "Segmentation" in names:
        return _opened(_entered(value, "Segmentation"))
    return value


def _entered(value: Any, step: str) -> Any:
    """One step down: a variable, a cell by its number, a field by its name."""
    if isinstance(value, dict):
        return value.get(step)
    if not isinstance(value, np.ndarray | np.void):
        return None
    names = value.dtype.names
    if names is None and value.dtype != object:
        return None
    if step.isdecimal():
        cells = value.ravel(order="F")
        return cells[int(step)] if int(step) < cells.size else None
    if names is None and value.size == 1:
        return _entered(value.flat[0], step)
    if names is None or step not in names:
        return None
    field = value[step]
    return field.flat[0] if isinstance(field, np.ndarray) and field.size == 1 else field


def _paths(value: Any, prefix: str = "") -> list[str]:
    """Every array of numbers with at least two axes of more than one element, by its path."""
    value = _opened(value) if prefix else value
    if isinstance(value, dict):
        return [path for k, v in value.items() for path in _paths(v, f"{prefix}{k}")]
    if not isinstance(value, np.ndarray | np.void):
        return []
    if value.dtype.names:
        fields = ((name, _entered(value, name)) for name in value.dtype.names)
        return [path for name, v in fields for path in _paths(v, f"{prefix}/{name}")]
    if value.dtype == object:
        cells = value.ravel(order="F")
        return [path for k, v in enumerate(cells) for path in _paths(v, f"{prefix}/{k}")]
    return [prefix] if value.dtype.kind in "biuf" and value.size > 1 else []


def _listed(paths: list[str]) -> str:
    return ", ".join(paths[:12]) + (", …" if len(paths) > 12 else "") or "no arrays of numbers"
