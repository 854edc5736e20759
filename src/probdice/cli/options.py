"""The options of the commands, and the parsing that Typer leaves to us."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar, cast

import typer

if TYPE_CHECKING:
    from probdice.segmentation import Sums
    from probdice.similarity import Similarity

__all__ = [
    "DebugOption",
    "FloorOption",
    "IgnoreGeometryOption",
    "IgnoreOption",
    "JsonOption",
    "MapOption",
    "MaskOption",
    "MatchOption",
    "MergeName",
    "MergeOption",
    "PerSide",
    "PredictionArgument",
    "QuietOption",
    "ReferenceArgument",
    "RelabelledOption",
    "ReportOption",
    "ScaleOption",
    "SimilarityName",
    "SimilarityOption",
    "SumsName",
    "SumsOption",
    "ToleranceOption",
    "WorkersOption",
    "scales_of",
    "similarity_of",
    "sums_of",
]

T = TypeVar("T")

COMPARING, READING, OUTPUT = "The comparison", "Reading", "Output"  # panels of the help


class SimilarityName(StrEnum):
    """The similarities by name."""

    absolute = "absolute"
    aitchison = "aitchison"


class MergeName(StrEnum):
    """The sides whose spare regions may be merged."""

    none = "none"
    prediction = "prediction"
    reference = "reference"
    both = "both"


class SumsName(StrEnum):
    """What to do where probabilities do not sum to 1."""

    error = "error"
    normalise = "normalise"
    background = "background"


ReferenceArgument = Annotated[
    str,
    typer.Argument(
        metavar="REFERENCE",
        show_default=False,
        help="A file; a part of one as file.h5:/path or file.npz:key; or one file per region as "
        "a.nii.gz,b.nii.gz or 'pve_*.nii.gz'.",
    ),
]
PredictionArgument = Annotated[
    str,
    typer.Argument(metavar="PREDICTION", show_default=False, help="The same for the other side."),
]

SimilarityOption = Annotated[
    SimilarityName,
    typer.Option(
        metavar="NAME",
        rich_help_panel=COMPARING,
        help="absolute looks at differences between probabilities, aitchison at their ratios.",
    ),
]
FloorOption = Annotated[
    float | None,
    typer.Option(
        metavar="F",
        rich_help_panel=COMPARING,
        help="With aitchison, raise smaller probabilities to this: a contradicted certainty is "
        "then not infinitely far off.",
    ),
]
MatchOption = Annotated[
    bool,
    typer.Option(
        "--match/--no-match",
        metavar="",
        show_default=False,
        rich_help_panel=COMPARING,
        help="Find out which region is which (the default), or let equal labels correspond.",
    ),
]
MergeOption = Annotated[
    MergeName,
    typer.Option(
        metavar="SIDE",
        rich_help_panel=COMPARING,
        help="Spare regions of this side may join matched ones: none, prediction, reference or "
        "both.",
    ),
]
MaskOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", rich_help_panel=COMPARING, help="Compare only where this file is not 0."
    ),
]
IgnoreOption = Annotated[
    list[int] | None,
    typer.Option(
        metavar="LABEL",
        rich_help_panel=COMPARING,
        help="Leave out the pixels with this label in the reference. Can be repeated.",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        rich_help_panel=COMPARING,
        help="Threads; as many as there are cores by default.",
    ),
]
SumsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOW",
        rich_help_panel=READING,
        help="Where probabilities do not sum to 1: error (the default), normalise (divide by the "
        "sum), background (add what is missing as a region). For one side: reference:HOW.",
        autocompletion=lambda: list(SumsName),
    ),
]
ScaleOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="S",
        rich_help_panel=READING,
        help="The number that stands for certainty: 100 for percent, 255 for bytes. Label maps "
        "(whole numbers, one a pixel) and values within 1 stay as they are; prediction:S scales "
        "that side whatever it holds.",
    ),
]
ToleranceOption = Annotated[
    float | None,
    typer.Option(
        "--geometry-tolerance",
        min=0.0,
        metavar="T",
        rich_help_panel=READING,
        help="How many pixels the corners of the two grids may lie apart; 0.1 by default.",
    ),
]
IgnoreGeometryOption = Annotated[
    bool,
    typer.Option(
        "--ignore-geometry",
        metavar="",
        rich_help_panel=READING,
        help="Compare by place in the array, wherever the images lie.",
    ),
]
MapOption = Annotated[
    str | None,
    typer.Option(
        "--map",
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="Write an image of the similarity at every pixel.",
    ),
]
RelabelledOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="Write the prediction with the reference's labels.",
    ),
]
ReportOption = Annotated[
    str | None,
    typer.Option(
        "--report",
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="Write a page to look at, one HTML file.",
    ),
]
JsonOption = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="Write the result as JSON; - prints it, and nothing else.",
    ),
]
QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", metavar="", rich_help_panel=OUTPUT, help="Print the score alone."
    ),
]
DebugOption = Annotated[
    bool,
    typer.Option(
        "--debug", metavar="", rich_help_panel=OUTPUT, help="Show the traceback of an error."
    ),
]


@dataclass(frozen=True)
class PerSide(Generic[T]):
    """A value for both sides, and values that hold for one of them."""

    both: T | None = None
    sides: dict[str, T] = field(default_factory=dict)

    def of(self, side: str) -> T | None:
        """The value that holds for a side."""
        return self.sides.get(side, self.both)


def similarity_of(name: SimilarityName, floor: float | None) -> "Similarity":
    """The similarity that the two options ask for."""
    from probdice.errors import InputError
    from probdice.similarity import Absolute, Aitchison

    if name is SimilarityName.absolute:
        if floor is not None:
            raise typer.BadParameter(
                "only --similarity aitchison has a floor", param_hint="--floor"
            )
        return Absolute()
    try:
        return Aitchison(floor or 0.0)
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint="--floor") from None


def sums_of(words: Sequence[str] | None) -> PerSide["Sums"]:
    """What --sums asks for."""

    def parse(word: str) -> "Sums":
        if word not in list(SumsName):
            raise ValueError(f"expected error, normalise or background, found {word!r}")
        return cast("Sums", word)

    return _per_side(words, "--sums", parse)


def scales_of(words: Sequence[str] | None) -> PerSide[float]:
    """What --scale asks for."""

    def parse(word: str) -> float:
        try:
            scale = float(word)
        except ValueError:
            scale = -1.0
        if not 0 < scale < float("inf"):
            raise ValueError(f"expected a positive number, such as 100 or 255, found {word!r}")
        return scale

    return _per_side(words, "--scale", parse)


def _per_side(words: Sequence[str] | None, option: str, parse: Callable[[str], T]) -> PerSide[T]:
    both: T | None = None
    sides: dict[str, T] = {}
    for word in words or ():
        side, colon, value = word.rpartition(":")
        if colon and side not in ("reference", "prediction"):
            raise typer.BadParameter(
                f"expected reference: or prediction: before the value, found {word!r}",
                param_hint=option,
            )
        try:
            parsed = parse(value)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint=option) from None
        if side:
            sides[side] = parsed
        else:
            both = parsed
    return PerSide(both, sides)
