"""Options, input, output and tables that the commands for several raters share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from probdice.cli.outputs import check_outputs, write_text
from probdice.cli.parameters import argument, check_options, flag, option
from probdice.cli.progress import ProgressDisplay
from probdice.cli.streams import print_text
from probdice.options import CompareOptions
from probdice.text.formatting import decimal, short_paths

if TYPE_CHECKING:
    from rich.console import RenderableType

    from probdice.files.background_images import BackgroundImage
    from probdice.raters import Agreement, Consensus, Panel, RaterMatch

__all__ = [
    "FilesArgument",
    "RaterAllOption",
    "RaterCsvOption",
    "RaterImageOption",
    "RaterMatchName",
    "RaterMatchOption",
    "RaterRun",
    "names_of",
    "region_table",
]

MAX_REGIONS = 20  # regions in a printed table, unless all regions are requested


class RaterMatchName(StrEnum):
    """Rules for matching the regions of raters."""

    overlap = "overlap"
    labels = "labels"


FilesArgument = Annotated[
    list[str],
    argument(
        "FILES",
        "Two or more segmentations of one image, one per rater, each in a form that compare "
        "accepts.",
    ),
]
RaterMatchOption = Annotated[
    RaterMatchName,
    option(
        "Comparison",
        "HOW",
        "How to match regions: overlap (largest total overlap; labels are ignored) or labels "
        "(equal labels).",
        "--match",
    ),
]
RaterImageOption = Annotated[
    str | None,
    option("Output", "FILE", "Image to show behind the regions in the report, such as the scan."),
]
RaterCsvOption = Annotated[
    str | None,
    option(
        "Output",
        "FILE",
        "Write a CSV table with the Dice and volumes of every region and pair of raters.",
    ),
]
RaterAllOption = Annotated[
    bool, flag("Output", "Print all regions, not only the worst 20.", "--all")
]


@dataclass(frozen=True)
class RaterRun:
    """The files that a command for several raters reads and writes."""

    files: Sequence[str]
    mask: str | None
    image: str | None
    report: str | None
    json: str | None
    csv: str | None
    quiet: bool

    @property
    def prints_tables(self) -> bool:
        """Whether the command prints tables, not only the score or the JSON."""
        return not self.quiet and self.json != "-"

    def check(
        self, user_options: dict[str, Any], match: RaterMatchName, images: dict[str, str | None]
    ) -> CompareOptions:
        """Check and return the options, and check all output files.

        `images` maps options to the paths of the images to write.
        """
        options = check_options(CompareOptions, user_options | {"match": match.value})
        inputs = {f"FILES ({file})": file for file in self.files}
        check_outputs(
            images | {"--report": self.report, "--json": self.json, "--csv": self.csv},
            images=tuple(images),
            inputs=inputs | {"--mask": self.mask, "--image": self.image},
        )
        return options

    def read(
        self, options: CompareOptions, workers: int | None
    ) -> "tuple[Panel, BackgroundImage | None]":
        """Read the segmentations of all raters, and the background image of the report."""
        from probdice.files import read, read_mask
        from probdice.raters.panel import panel_of

        if len(self.files) < 2:
            raise typer.BadParameter(
                f"expected two or more files, found {len(self.files)}", param_hint="FILES"
            )
        names = options.names.reference
        sides = {
            name: read(
                file,
                sums=options.sums.reference,
                names=dict(names) if isinstance(names, tuple) else names,
                ignore=options.ignore,
                max_bytes=options.max_bytes,
            )
            for name, file in zip(names_of(self.files), self.files, strict=True)
        }
        mask = None if self.mask is None else read_mask(self.mask, max_bytes=options.max_bytes)
        if options.ignore_geometry:
            sides = {name: side.without_geometry() for name, side in sides.items()}
            mask = None if mask is None else mask.without_geometry()
        panel = panel_of(
            sides,
            match=cast("RaterMatch", options.match),  # the option has no other values
            similarity=options.similarity,
            mask=mask,
            workers=workers,
            tolerance=options.geometry_tolerance,
            background=None if options.background is None else options.background.reference,
            resample=options.resample,
        )
        return panel, self._background_image(panel, options)

    def _background_image(
        self, panel: "Panel", options: CompareOptions
    ) -> "BackgroundImage | None":
        """Read the background image, so that an invalid file is rejected early."""
        if self.image is None:
            return None
        if self.report is None:
            raise typer.BadParameter(
                "requires --report, which shows the image", param_hint="--image"
            )
        from probdice.report.image_layers import background_images_of

        pair = panel.segmentations.pair(*panel.names[:2])
        (layer,) = background_images_of(pair, options, [self.image])
        return layer

    def write(
        self,
        result: "Agreement | Consensus",
        agreement: "Agreement",
        consensus: "Callable[[], Consensus]",
        layer: "BackgroundImage | None",
        display: ProgressDisplay,
    ) -> list[str]:
        """Write the report, the JSON file and the CSV file, and return one line per file."""
        file_lines = []
        if self.report is not None:
            from probdice.report.rater_pages import write_consensus

            display.begin("writing the report")
            write_consensus(consensus(), self.report, words="command", image=layer)
            file_lines.append(f"{self.report}: report")
        if self.json is not None and self.json != "-":
            write_text(self.json, result.to_json() + "\n")
            file_lines.append(f"{self.json}: all results")
        if self.csv is not None:
            write_text(self.csv, agreement.to_csv())
            file_lines.append(f"{self.csv}: one row per region and pair of raters")
        return file_lines

    def print(
        self,
        result: "Agreement | Consensus",
        agreement: "Agreement",
        parts: "list[RenderableType]",
        file_lines: Sequence[str],
    ) -> None:
        """Print the JSON (--json -), only the score (--quiet), or `parts`."""
        if self.json == "-":
            print_text(result.to_json() + "\n")
        elif self.quiet:
            print_text(f"{decimal(agreement.mean_score)}\n")
        else:
            from probdice.cli.display import show

            show(*parts, file_lines=file_lines)


def names_of(files: Sequence[str]) -> list[str]:
    """Return a unique name for every rater: the file name without suffixes.

    If these names are not unique, return the file names, the ends of the paths that distinguish the
    files, or the whole paths.
    """
    if len(set(files)) < len(files):
        raise typer.BadParameter("a file occurs twice; list every rater once", param_hint="FILES")
    file_names = [PurePath(file).name for file in files]
    for names in ([name.split(".")[0] for name in file_names], file_names, short_paths(*files)):
        if len(set(names)) == len(names) and all(names):
            return list(names)
    return list(files)


def region_table(
    agreement: "Agreement", pixels: str, *, all_regions: bool
) -> "list[RenderableType]":
    """Return a table of Dice and volumes (worst regions first) and the number of omitted rows."""
    from probdice.cli.terminal_tables import plain_table

    has_volume = any(region.pixel_volume is not None for region in agreement.regions)
    unit = "mL" if has_volume else pixels
    table = plain_table("region", ">mean Dice", ">lowest Dice", f"volume of each rater, {unit}")
    order = agreement.worst_first
    printed = order if all_regions else order[:MAX_REGIONS]
    for region in (agreement.regions[k] for k in printed):
        volumes = " / ".join(text.removesuffix(" mL") for text in region.shown_volumes())
        dice = decimal(region.mean_dice), decimal(region.lowest_dice)
        table.add_row(region.shown_label, *dice, volumes)
    hidden_count = len(order) - len(printed)
    omission_notes = (
        [f"… {hidden_count:,} more regions; --all prints all regions"] if hidden_count else []
    )
    return [table, *omission_notes]
