"""The files that a command writes: looked at before the work begins, complete when it ends."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probdice.data.geometry import Geometry
    from probdice.data.segmentation import Segmentation

__all__ = ["check_outputs", "rehearse", "stand_in", "write_text"]


def check_outputs(
    outputs: Mapping[str, str | None],
    *,
    images: Iterable[str] = (),
    inputs: Mapping[str, str | None],
) -> None:
    """Refuse what could not be written, by option, before minutes are spent on it.

    `images` are the options whose files are written in the format of their suffix; `inputs` are
    the arguments that name files to read, under the names that messages give them.
    """
    from probdice.files import FORMATS
    from probdice.files.sidecars import files_read

    suffixes = tuple(suffix for form in FORMATS if form.write is not None for suffix in form.writes)
    files = {
        Path(os.path.realpath(file)): name
        for name, argument in inputs.items()
        if argument
        for file in files_read(argument)
    }
    used = {_identity(file): f"an input, read for {name}" for file, name in files.items()}
    for option, path in outputs.items():
        if path is None or (path == "-" and option == "--json"):
            continue
        if option == "--report" and not path.lower().endswith((".html", ".htm")):
            _refuse(option, path, "is a page, so its name must end in .html")
        if option in images and not path.lower().endswith(suffixes):
            _refuse(option, path, f"has no suffix that probdice writes: {', '.join(suffixes)}")
        target = Path(os.path.realpath(path))  # a link is written through, not replaced
        if target.is_symlink():
            _refuse(option, path, "is a symbolic link that leads in a circle")
        if target.is_dir():
            _check_store(option, path, target, files)
        folder = target.parent if os.path.islink(path) else Path(path).parent
        if not folder.is_dir():
            _refuse(option, path, f"there is no folder {folder}")
        if not os.access(folder, os.W_OK):
            _refuse(option, path, f"the folder {folder} cannot be written to")
        identity = _identity(target)
        if identity in used:
            _refuse(option, path, f"is also {used[identity]}; write to another file")
        used[identity] = f"written by {option}"


def _check_store(option: str, path: str, target: Path, files: Mapping[Path, str]) -> None:
    """A folder is replaced where it is a store and is to be one, unless it is read from."""
    from probdice.files.sources import is_store

    if not path.lower().endswith(".zarr") or not is_store(target):
        _refuse(option, path, "is a folder, expected the name of a file")
    for file, name in files.items():
        if target in (file, *file.parents):
            _refuse(option, path, f"holds an input, read for {name}; write to another store")


def _identity(file: Path) -> tuple[int, int, str]:
    """The same for two names of one file; of a file still to be made, its folder and its name."""
    with suppress(OSError):
        status = os.stat(file)
        return status.st_dev, status.st_ino, ""
    folder = os.stat(file.parent)
    return folder.st_dev, folder.st_ino, file.name


def stand_in(shape: tuple[int, ...], geometry: "Geometry | None", *, crisp: bool) -> "Segmentation":
    """One pixel of a segmentation of this kind, to try whether a format holds it."""
    import numpy as np

    from probdice.data.geometry import Geometry
    from probdice.data.segmentation import Segmentation

    pixel = (1,) * len(shape)
    place = None if geometry is None else Geometry(pixel, geometry.affine)
    if crisp:
        return Segmentation.from_labels(np.ones(pixel, np.uint8), geometry=place)
    return Segmentation.from_probabilities(np.full((2, *pixel), 0.5, np.float32), geometry=place)


def rehearse(path: str, value: "Segmentation | NDArray[Any]") -> None:
    """Write something small of the same kind elsewhere: a PNG, say, cannot hold a map."""
    from probdice.errors import ProbdiceError
    from probdice.files import FORMATS
    from probdice.files.writing import payload_of

    form = next(form for form in FORMATS if form.write and path.lower().endswith(form.writes))
    assert form.write is not None
    with tempfile.TemporaryDirectory() as folder:
        try:
            form.write(Path(folder, Path(path).name), payload_of(value, None))
        except ProbdiceError as error:
            raise error.prefixed(f"{path}: ") from error


def write_text(path: str, text: str) -> None:
    """Write a text file, all of it or nothing."""
    from probdice.errors import FormatError
    from probdice.files.atomic_files import replacing

    target = Path(path)
    try:
        if target.exists() and not target.is_file():  # a pipe, /dev/null
            target.write_text(text, encoding="utf-8")
            return
        with replacing(target) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FormatError(f"{path}: cannot be written: {error.strerror or error}") from error


def _refuse(option: str, path: str, why: str) -> None:
    raise typer.BadParameter(f"{path}: {why}", param_hint=option)
