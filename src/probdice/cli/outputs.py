"""Check output files before a command starts, and write text files atomically."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from probdice.cli.streams import print_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probdice.data.geometry import Geometry
    from probdice.data.segmentation import Segmentation

__all__ = ["check_format", "check_outputs", "sample_segmentation", "write_json", "write_text"]


def check_outputs(
    outputs: Mapping[str, str | None],
    *,
    images: Iterable[str] = (),
    inputs: Mapping[str, str | None],
) -> None:
    """Reject outputs that cannot be written, before the computation starts.

    `outputs` and `inputs` contain the path given for each option or argument. `images` lists the
    options whose files are images, in a format that the suffix selects.
    """
    from probdice.files import FORMATS
    from probdice.files.sidecars import files_read

    suffixes = tuple(
        suffix
        for file_format in FORMATS
        if file_format.write is not None
        for suffix in file_format.writes
    )
    files = {
        Path(os.path.realpath(file)): name
        for name, argument in inputs.items()
        if argument
        for file in files_read(argument)
    }
    uses = {_identity(file): f"an input file ({name})" for file, name in files.items()}
    for option, path in outputs.items():
        if path is None or (path == "-" and option == "--json"):
            continue
        if option == "--report" and not path.lower().endswith((".html", ".htm")):
            _reject(option, path, "a report is an HTML file; its name must end in .html or .htm")
        if option in images and not path.lower().endswith(suffixes):
            _reject(option, path, f"unsupported suffix; expected one of {', '.join(suffixes)}")
        target = Path(os.path.realpath(path))  # write to the target of a link
        if target.is_symlink():
            _reject(option, path, "is a circular symbolic link")
        if target.is_dir():
            _check_store(option, path, target, files)
        folder = target.parent if os.path.islink(path) else Path(path).parent
        if not folder.is_dir():
            _reject(option, path, f"the folder {folder} does not exist")
        if not os.access(folder, os.W_OK):
            _reject(option, path, f"the folder {folder} is not writable")
        identity = _identity(target)
        if identity in uses:
            _reject(option, path, f"is also {uses[identity]}; choose another output file")
        uses[identity] = f"written by {option}"


def _check_store(option: str, path: str, target: Path, files: Mapping[Path, str]) -> None:
    """Reject a folder, unless it is a Zarr store that can be replaced and contains no input."""
    from probdice.files.sources import is_store

    if not path.lower().endswith(".zarr") or not is_store(target):
        _reject(option, path, "is a folder, expected a file name")
    for file, name in files.items():
        if target in (file, *file.parents):
            _reject(option, path, f"contains an input file ({name}); choose another output store")


def _identity(file: Path) -> tuple[int, int, str]:
    """Return a key that is equal for all paths of one file. The file need not exist yet."""
    with suppress(OSError):
        status = os.stat(file)
        if status.st_ino:  # some network file systems have no inode numbers
            return status.st_dev, status.st_ino, ""
    folder = os.stat(file.parent)
    name = file.name if folder.st_ino else str(file)
    return folder.st_dev, folder.st_ino, name.casefold()  # macOS and Windows ignore case


def sample_segmentation(
    shape: tuple[int, ...], geometry: "Geometry | None", *, crisp: bool
) -> "Segmentation":
    """Return a one-pixel segmentation, to test whether a format can store segmentations."""
    import numpy as np

    from probdice.data.segmentation import Segmentation

    one_pixel = (1,) * len(shape)
    pixel_geometry = None if geometry is None else geometry.of_one_pixel()
    if crisp:
        return Segmentation.from_labels(np.ones(one_pixel, np.uint8), geometry=pixel_geometry)
    return Segmentation.from_probabilities(
        np.full((2, *one_pixel), 0.5, np.float32), geometry=pixel_geometry
    )


def check_format(
    path: str, value: "Segmentation | NDArray[Any]", geometry: "Geometry | None" = None
) -> None:
    """Raise an error if the format of an output file cannot store `value`, which has one pixel."""
    from probdice.errors import ProbdiceError
    from probdice.files import FORMATS
    from probdice.files.writing import check_vertices, payload_of

    file_format = next(
        file_format
        for file_format in FORMATS
        if file_format.write and path.lower().endswith(file_format.writes)
    )
    assert file_format.write is not None
    with tempfile.TemporaryDirectory() as folder:
        try:
            payload = payload_of(value, None if geometry is None else geometry.of_one_pixel())
            check_vertices(file_format, payload)
            file_format.write(Path(folder, Path(path).name), payload)
        except ProbdiceError as error:
            raise error.prefixed(f"{path}: ") from error


def write_text(path: str, text: str) -> None:
    """Write a text file atomically."""
    from probdice.errors import FormatError
    from probdice.files.atomic_files import replacing

    target = Path(path)
    try:
        if target.exists() and not target.is_file():  # such as a pipe or /dev/null
            target.write_text(text, encoding="utf-8", newline="\n")
            return
        with replacing(target) as partial:
            partial.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise FormatError(f"{path}: cannot be written: {error.strerror or error}") from error


def write_json(path: str, text: str) -> bool:
    """Print JSON if the path is "-"; otherwise, write a file. Return whether JSON was printed."""
    if path == "-":
        print_text(f"{text}\n")
        return True
    write_text(path, f"{text}\n")
    return False


def _reject(option: str, path: str, reason: str) -> None:
    raise typer.BadParameter(f"{path}: {reason}", param_hint=option)
