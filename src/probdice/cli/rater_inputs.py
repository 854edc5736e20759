"""Options and file reading of the commands for several raters."""

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
    """Rules for matching the regions of raters."""

    overlap = "overlap"
    labels = "labels"


FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES",
        show_default=False,
        help="Two or more segmentations of one image, one per rater, each in a form that compare "
        "accepts.",
    ),
]
RaterMatchOption = Annotated[
    RaterMatchName,
    typer.Option(
        "--match",
        metavar="HOW",
        rich_help_panel=COMPARING,
        help="How regions are matched: overlap (largest overlap; labels are ignored) or labels "
        "(equal labels).",
    ),
]
RaterSumsOption = Annotated[
    SumsName,
    typer.Option(
        "--sums",
        metavar="HOW",
        rich_help_panel=READING,
        help="How to handle probabilities that do not sum to 1: error, normalise (divide by the "
        "sum) or background (add the missing probability as a region).",
    ),
]


def names_of(files: Sequence[str]) -> list[str]:
    """Return a short, unique name for every rater: the file name or, if needed, the path."""
    if len(set(files)) < len(files):
        raise typer.BadParameter("a file occurs twice; give every rater once", param_hint="FILES")
    file_names = [PurePath(file).name for file in files]
    for names in ([name.split(".")[0] for name in file_names], file_names):
        if len(set(names)) == len(names) and all(names):
            return names
    return list(files)


def panel_of_files(
    files: Sequence[str], *, mask: str | None, workers: int | None, options: "Options"
) -> "Panel":
    """Read the segmentations of all raters, with short names."""
    from probdice.files import read, read_mask
    from probdice.raters.panel import panel_of

    if len(files) < 2:
        raise typer.BadParameter(
            f"expected two or more files, found {len(files)}", param_hint="FILES"
        )
    max_bytes = options.max_bytes
    sides = {}
    for name, file in zip(names_of(files), files, strict=True):
        side = read(file, sums=options.sums.reference, max_bytes=max_bytes)
        sides[name] = side.without_geometry() if options.ignore_geometry else side
    inside = None if mask is None else read_mask(mask, max_bytes=max_bytes)
    if inside is not None and options.ignore_geometry:
        inside = inside.without_geometry()
    return panel_of(
        sides,
        match=cast("RaterMatch", options.match),  # the option has no other values
        similarity=options.similarity,
        mask=inside,
        workers=workers,
        tolerance=options.tolerance,
    )
