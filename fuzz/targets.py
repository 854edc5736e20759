"""What is fuzzed: everything that parses bytes which somebody else wrote.

A target is a name (that of its seeds in `corpus`), what is done with a mutant, and the modules
whose lines say how far the mutants came. Done with it means read it, touch all values, and use it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["TARGETS", "Target"]

LARGEST = 1 << 24  # values of a mutant that are looked at


@dataclass(frozen=True)
class Target:
    """One kind of input: what is done with a mutant, given its path, and by which modules.

    The result of `use` is compared with that of the honest file where check sums cover it.
    """

    name: str
    use: Callable[[str], Any]
    modules: tuple[str, ...]


def read_image(path: str) -> Any:
    """Read a segmentation as `compare` and `info` do."""
    from probdice.files import contents_of, read
    from probdice.files.lazy import blocks

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
    """Read a segmentation, and every value of it once."""
    from probdice.files import read
    from probdice.files.lazy import blocks

    for block in blocks(read(path).array):
        block.max(initial=0)


def load_overlap_alone(path: str) -> None:
    """Read an overlap, and compute nothing from it."""
    from probdice import Overlap

    Overlap.load(path)


def look_at(path: str) -> None:
    """Read an image to look at, and every value of it once."""
    from probdice.files import read_underlay

    np.asarray(read_underlay(path).array[...]).max(initial=0)


def read_names(path: str) -> Any:
    from probdice.files.name_tables import read_names

    return read_names(path)


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
    except ProbdiceError as error:  # which cannot know the name of the file
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


def read_underlay(path: str) -> Any:
    """Read an image to look at; photographs may be in colour."""
    from probdice.files import read_underlay

    underlay = read_underlay(path)
    return underlay.array.shape, np.asarray(underlay.array[...]).tobytes()


@cache
def _evaluate_command() -> Any:
    import typer

    from probdice.cli.app import app

    return typer.main.get_command(app).commands["evaluate"]  # type: ignore[attr-defined]


def read_configuration(path: str) -> Any:
    """Take the options of `evaluate` from a file."""
    import typer

    from probdice.cli.configuration import load_configuration
    from probdice.errors import FormatError

    try:
        return load_configuration(typer.Context(_evaluate_command()), path)
    except typer.BadParameter as error:
        raise FormatError(error.message.partition("\n")[0]) from error


COMMON = ("files.sources", "files.meaning", "files.lazy", "files.damage")

TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target("nifti", read_image, ("files.nifti", "files.headers", "files.packed")),
        Target("npy", read_image, ("files.arrays", *COMMON)),
        Target("npz", read_image, ("files.arrays",)),
        Target("tiff", read_image, ("files.images",)),
        Target("png", read_image, ("files.images",)),
        Target("bmp", read_image, ("files.images",)),
        Target("matlab", read_image, ("files.matlab",)),
        Target("hdf5", read_image, ("files.hdf5",)),
        Target("zarr", read_image, ("files.zarr",)),
        Target("nrrd", read_image, ("files.itk", "files.value_files", "files.segments")),
        Target("metaimage", read_image, ("files.itk", "files.value_files")),
        Target("other_itk", read_image, ("files.itk",)),
        Target("dicom", read_image, ("files.dicom",)),
        Target("strangers", read_image, ("files.strangers",)),
        Target("names", read_names, ("files.names",)),
        Target("overlap", load_overlap, ("overlaps",)),
        Target("comparison", read_comparison, ("comparison_json",)),
        Target("journal", load_evaluation, ("evaluation.journal", "evaluation.record")),
        Target("photograph", read_underlay, ("files.underlays",)),
        Target("configuration", read_configuration, ("cli.configuration",)),
        Target("answers", read_answers, ("paper.answers",)),
    )
}
