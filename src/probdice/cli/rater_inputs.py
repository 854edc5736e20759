"""What the commands for several raters share: their options, and reading the files."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, cast

import typer

from probdice.cli.parameters import COMPARING, READING, SumsName

if TYPE_CHECKING:
    from probdice.options import Options
    from probdice.raters import Panel, RaterMatch

__all__ = [
    "FilesArgument",
    "RaterMatchName",
    "RaterMatchOption",
    "RaterSumsOption",
    "names_of",
    "panel_of_files",
]


class RaterMatchName(StrEnum):
    """How regions of raters are made to correspond."""

    overlap = "overlap"
    labels = "labels"


FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES",
        show_default=False,
        help="One segmentation of the same image for each rater, two or more; each as in compare.",
    ),
]
RaterMatchOption = Annotated[
    RaterMatchName,
    typer.Option(
        "--match",
        metavar="HOW",
        rich_help_panel=COMPARING,
        help="Which regions are the same: overlap (those that overlap most, whatever their labels) "
        "or labels (equal labels).",
    ),
]
RaterSumsOption = Annotated[
    SumsName,
    typer.Option(
        "--sums",
        metavar="HOW",
        rich_help_panel=READING,
        help="Where probabilities do not sum to 1: error, normalise or background.",
    ),
]


def names_of(files: Sequence[str]) -> list[str]:
    """A short name for every rater: that of the file, or as much as tells them apart."""
    if len(set(files)) < len(files):
        raise typer.BadParameter("a file was named twice", param_hint="FILES")
    whole = [PurePath(file).name for file in files]
    for names in ([name.split(".")[0] for name in whole], whole):
        if len(set(names)) == len(names) and all(names):
            return names
    return list(files)


def panel_of_files(
    files: Sequence[str], *, mask: str | None, workers: int | None, options: "Options"
) -> "Panel":
    """The raters read, under short names."""
    from probdice.files import read, read_mask
    from probdice.raters.panel import panel_of

    if len(files) < 2:
        raise typer.BadParameter(f"two or more are needed, found {len(files)}", param_hint="FILES")
    most = options.max_bytes
    sides = {}
    for name, file in zip(names_of(files), files, strict=True):
        side = read(file, sums=options.sums.reference, max_bytes=most)
        sides[name] = side.without_geometry() if options.ignore_geometry else side
    inside = None if mask is None else read_mask(mask, max_bytes=most)
    if inside is not None and options.ignore_geometry:
        inside = inside.without_geometry()
    return panel_of(
        sides,
        match=cast("RaterMatch", options.match),  # which the option leaves no other choice
        similarity=options.similarity,
        mask=inside,
        workers=workers,
        tolerance=options.tolerance,
    )
