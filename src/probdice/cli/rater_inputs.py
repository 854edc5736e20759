"""Options and file reading of the commands for several raters."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from probdice.cli.terminal_tables import FittingTable
    from probdice.files.background_images import BackgroundImage
    from probdice.options import CompareOptions
    from probdice.raters import Agreement, Panel, RaterMatch

__all__ = [
    "FilesArgument",
    "RaterCsvOption",
    "RaterImageOption",
    "RaterMatchName",
    "RaterMatchOption",
    "background_image",
    "names_of",
    "panel_of_files",
    "region_table",
]

MAX_REGIONS = 30  # regions in a table of the terminal


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
        rich_help_panel="Comparison",
        help="How regions are matched: overlap (largest overlap; labels are ignored) or labels "
        "(equal labels).",
    ),
]

RaterImageOption = Annotated[
    str | None,
    typer.Option(
        "--image",
        metavar="FILE",
        rich_help_panel="Output",
        help="Background image of the report, such as the scan.",
    ),
]
RaterCsvOption = Annotated[
    str | None,
    typer.Option(
        "--csv",
        metavar="FILE",
        rich_help_panel="Output",
        help="Write a CSV table with one row per region and pair of raters: Dice and volumes.",
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
    files: Sequence[str], *, mask: str | None, workers: int | None, options: "CompareOptions"
) -> "Panel":
    """Read the segmentations of all raters, with short names."""
    from probdice.files import read, read_mask
    from probdice.raters.panel import panel_of

    if len(files) < 2:
        raise typer.BadParameter(
            f"expected two or more files, found {len(files)}", param_hint="FILES"
        )
    max_bytes, names = options.max_bytes, options.names.reference
    sides = {}
    for name, file in zip(names_of(files), files, strict=True):
        side = read(
            file,
            sums=options.sums.reference,
            names=dict(names) if isinstance(names, tuple) else names,
            ignore=options.ignore,
            max_bytes=max_bytes,
        )
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
        tolerance=options.geometry_tolerance,
        background=None if options.background is None else options.background.reference,
        resample=options.resample,
    )


def background_image(
    panel: "Panel", options: "CompareOptions", image: str | None, report: str | None
) -> "BackgroundImage | None":
    """Read the background image of the report; reject a wrong one before the computation."""
    if image is None:
        return None
    if report is None:
        raise typer.BadParameter("needs --report, which shows the image", param_hint="--image")
    from probdice.report.image_layers import background_images_of

    (layer,) = background_images_of(panel.several.pair(*panel.names[:2]), options, [image])
    return layer


def region_table(agreement: "Agreement") -> "tuple[FittingTable | str, ...]":
    """Dice and volumes per region for the terminal, and the number of regions left out."""
    from probdice.cli.terminal_tables import plain_table
    from probdice.text.formatting import decimal

    known = any(region.pixel_volume is not None for region in agreement.regions)
    unit = "mL" if known else "pixels"
    table = plain_table("region", ">mean Dice", ">lowest Dice", f"volume of each rater, {unit}")
    for region in agreement.regions[:MAX_REGIONS]:
        volumes = " / ".join(text.removesuffix(" mL") for text in region.shown_volumes())
        dice = decimal(region.mean_dice), decimal(region.lowest_dice)
        table.add_row(str(region.label), *dice, volumes)
    hidden = len(agreement.regions) - MAX_REGIONS
    return table, *([f"… and {hidden} more regions; --csv and --json list all"] * (hidden > 0))
