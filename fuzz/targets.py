"""The fuzzing targets: all code that parses external files.

A target has a name, a function that reads a mutant and uses all of its values, and the modules
whose executed lines are counted. Its seeds in `corpus` have the same name.
"""

import ctypes
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["TARGETS", "Target"]

LARGEST = 1 << 24  # largest number of values that are read from a mutant


@dataclass(frozen=True)
class Target:
    """One kind of input: its name, a function that uses the file at a path, and the tested modules.

    If checksums cover the file, the result of `use` is compared with those of the valid files.
    """

    name: str
    use: Callable[[str], Any]
    modules: tuple[str, ...]


def read_image(path: str) -> Any:
    """Read a segmentation as `compare` and `info` do."""
    from probdice.data.lazy_arrays import blocks
    from probdice.files import contents_of, read
    from probdice.files.sidecars import files_read

    files_read(path)
    segmentation = read(path)
    values, count = [], 0
    for block in blocks(segmentation.array):
        values.append(np.array(block))
        count += block.size
        if count > LARGEST:
            break
    contents_of(path)
    return segmentation.array.shape, b"".join(value.tobytes() for value in values)


def touched(path: str) -> None:
    """Read all values of a segmentation once."""
    from probdice.data.lazy_arrays import blocks
    from probdice.files import read

    for block in blocks(read(path).array):
        block.max(initial=0)


def load_overlap_alone(path: str) -> None:
    """Read an overlap without computing anything."""
    from probdice import Overlap

    Overlap.load(path)


def look_at(path: str) -> None:
    """Read all values of a background image once."""
    from probdice.files import read_background_image

    np.asarray(read_background_image(path).array[...]).max(initial=0)


def read_names(path: str) -> Any:
    """Read derived regions from dataset.json, or names of labels and of channels from a table."""
    from probdice.files.name_tables import read_names, read_unions

    if path.endswith("dataset.json"):
        return read_unions(path)
    return read_names(path), read_names(path, channels=True)


def read_subjects(path: str) -> Any:
    """Read a table with cases, subjects, and numbers that other programs computed."""
    from probdice.files.columns import parse_number, read_columns

    rows = read_columns(path, ("case", "subject", "seconds"))
    return [
        (case, subject, parse_number(text, "seconds", at)) for at, (case, subject, text) in rows
    ]


def read_manifest(path: str) -> Any:
    from probdice.evaluation.manifest import Manifest

    manifest = Manifest.read(path)
    repr(manifest)
    return manifest.to_dict()


def call_child(path: str) -> None:
    """Run a reader that misbehaves in the child process, and check that no resources remain."""
    from fuzz.child_acts import act
    from probdice.errors import FormatError
    from probdice.files import containment

    _adopt_orphans()
    before, processes = _open_resources(), _children()
    limits = containment.SECONDS, containment.WALL
    containment.SECONDS, containment.WALL = 0.3, (0.0, 0.5)  # most acts take no time
    try:
        containment.run_in_child(act, Path(path), returns=None, library="json", max_bytes=1 << 20)
    except FormatError as error:  # does not include the file name
        raise FormatError(f"{path}: ", *error.args) from error
    except (RuntimeError, OSError) as error:  # the child reported an error of the reader
        if not isinstance(error, OSError) and "in the child process" not in str(error):
            raise
    finally:
        containment.SECONDS, containment.WALL = limits
        _check_leftovers(before, processes)


@cache
def _adopt_orphans() -> None:
    """Become the parent of remaining processes of the child process, to list them (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def _check_leftovers(before: dict[str, int], processes: set[int]) -> None:
    """Raise if more than one child process, socket or shared memory remains (Linux)."""
    added = {kind: count - before[kind] for kind, count in _open_resources().items()}
    added["processes"] = len(_running(_children() - processes))
    if any(count > 1 for count in added.values()):
        raise AssertionError(f"resources are left: {added}")


def _open_resources() -> dict[str, int]:
    """Count the shared memories and sockets of this process (Linux)."""
    return {
        "shared memories": Path("/proc/self/maps").read_text().count("memfd:probdice"),
        "sockets": sum("socket:" in _target(file) for file in Path("/proc/self/fd").iterdir()),
    }


def _children() -> set[int]:
    """Return the child processes of this process (Linux)."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(process) for file in tasks for process in file.read_text().split()}


def _running(processes: set[int]) -> set[int]:
    """Return the running processes. A process that was killed may take a moment to end."""
    deadline = time.monotonic() + 5
    while len(processes) > 1 and time.monotonic() < deadline:
        processes = {process for process in processes if not _has_ended(process)}
        time.sleep(0.001)
    return processes


def _has_ended(process: int) -> bool:
    """Return whether a process has ended. An adopted process is also reaped."""
    from probdice.files.containment import _Child

    if _Child.current is not None and process == _Child.current.process.pid:
        return False
    return os.waitpid(process, os.WNOHANG)[0] == process


def _target(file: Path) -> str:
    try:
        return str(file.readlink())
    except OSError:  # the descriptor that lists the folder
        return ""


def load_overlap(path: str) -> Any:
    from probdice import Overlap

    overlap = Overlap.load(path)
    repr(overlap)
    overlap.compare()
    return overlap.to_dict()


def read_comparison(path: str) -> Any:
    from probdice import Comparison
    from probdice.errors import FormatError, ProbdiceError

    try:
        text = Path(path).read_bytes().decode()
    except UnicodeDecodeError:
        return None
    try:
        result = Comparison.from_json(text)
        repr(result)
        return result.to_json()
    except ProbdiceError as error:  # does not include the file name
        raise FormatError(f"{path}: ", *error.args) from error


def load_evaluation(path: str) -> Any:
    from probdice.evaluation import Evaluation

    result = Evaluation.load(Path(path).parent)
    repr(result)
    for record in result.records:
        repr(record.comparison)
    return None


def read_answers(path: str) -> Any:
    from probdice.errors import ProbdiceError
    from probdice.paper.answers import read_rankings, read_scores

    try:
        return read_scores(path)
    except ProbdiceError:
        return read_rankings(path)


def read_background_image(path: str) -> Any:
    """Read a background image. Photographs may be in colour."""
    from probdice.files import read_background_image

    image = read_background_image(path)
    return image.array.shape, np.asarray(image.array[...]).tobytes()


def read_surface(path: str) -> Any:
    from probdice.files import read_surface
    from probdice.pictures.surface_views import views_of

    surface = read_surface(path)
    if len(surface.points) < LARGEST:
        views_of(surface, width=8)
    return surface.points.tobytes(), surface.triangles.tobytes()


@cache
def _evaluate_command() -> Any:
    import typer

    from probdice.cli.app import app

    return typer.main.get_command(app).commands["evaluate"]  # type: ignore[attr-defined]


def read_configuration(path: str) -> Any:
    """Read the options of `evaluate` from a file, and check them."""
    import typer

    from probdice.cli.parameters import check_options
    from probdice.errors import FormatError
    from probdice.options import EvaluateOptions
    from probdice.options.declaration import declarations

    try:
        context = _evaluate_command().make_context("evaluate", ["--config", path])
        names = declarations(EvaluateOptions).keys() & context.params.keys()
        given = {name: context.params[name] for name in names if context.params[name]}
        return repr(check_options(EvaluateOptions, given))
    except typer.BadParameter as error:
        message = error.message.partition("\n")[0]
        raise FormatError(f"{path}: {message.removeprefix(f'{path}: ')}") from error


COMMON = ("files.sources", "files.interpretation", "data.lazy_arrays", "files.corrupt")

TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target("nifti", read_image, ("files.nifti", "files.headers", "files.packed")),
        Target("npy", read_image, ("files.numpy_files", *COMMON)),
        Target("npz", read_image, ("files.numpy_files",)),
        Target("tiff", read_image, ("files.raster",)),
        Target("png", read_image, ("files.raster",)),
        Target("bmp", read_image, ("files.raster",)),
        Target("matlab", read_image, ("files.matlab",)),
        Target("hdf5", read_image, ("files.hdf5",)),
        Target("zarr", read_image, ("files.zarr",)),
        Target("nrrd", read_image, ("files.itk", "files.value_files", "files.segments")),
        Target("metaimage", read_image, ("files.itk", "files.value_files")),
        Target("other_itk", read_image, ("files.itk",)),
        Target("dicom", read_image, ("files.dicom",)),
        Target("unsupported", read_image, ("files.unsupported",)),
        Target("names", read_names, ("files.name_tables", "files.fsl_tables")),
        Target("bids", read_image, ("files.bids", "files.sidecars")),
        Target("description", read_image, ("files.description",)),
        Target("subjects", read_subjects, ("files.columns",)),
        Target("manifest", read_manifest, ("evaluation.manifest",)),
        Target("child", call_child, ("files.containment", "files.child_messages")),
        Target("overlap", load_overlap, ("method.overlap_files",)),
        Target("comparison", read_comparison, ("comparison.json_form",)),
        Target("journal", load_evaluation, ("evaluation.journal", "evaluation.record")),
        Target("photograph", read_background_image, ("files.background_images",)),
        Target("configuration", read_configuration, ("cli.configuration",)),
        Target("answers", read_answers, ("paper.answers",)),
        Target("annot", read_image, ("files.annot", "files.surface_maps")),
        Target("gifti", read_image, ("files.gifti", "files.surface_maps")),
        Target("cifti", read_image, ("files.cifti", "files.surface_maps")),
        Target("surface", read_surface, ("files.surface_meshes",)),
    )
}
