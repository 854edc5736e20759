"""The options of the commands, and from the words of the user to what the library takes.

Here words are only taken apart. What may be said is checked where the library checks it, by
`Options.of`; what it refuses is wrong usage.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

import typer

if TYPE_CHECKING:
    from probdice.data.value_checks import Sums
    from probdice.method.region_labels import Label
    from probdice.method.sides import Side
    from probdice.method.similarity import Similarity
    from probdice.options import Correspondence, GivenNames, Match, Options

__all__ = [
    "COMPARING",
    "OUTPUT",
    "READING",
    "CorrespondenceName",
    "DebugOption",
    "FloorOption",
    "IgnoreGeometryOption",
    "IgnoreOption",
    "JsonOption",
    "MapOption",
    "MaskOption",
    "MatchOption",
    "MaxBytesOption",
    "MeasureName",
    "MergeName",
    "MergeOption",
    "MissingName",
    "NamesOption",
    "PredictionArgument",
    "PredictionNamesOption",
    "PriorityOption",
    "QuietOption",
    "ReferenceArgument",
    "ReferenceNamesOption",
    "RelabelledOption",
    "ReportOption",
    "ScaleOption",
    "SchedulerOption",
    "SimilarityName",
    "SimilarityOption",
    "SumsName",
    "SumsOption",
    "ToleranceOption",
    "WorkersOption",
    "command_line",
    "file_of_match",
    "match_of",
    "names_in",
    "options_of",
    "priority_of",
    "scale_of",
    "similarity_of",
    "sums_of",
    "usage",
]

T = TypeVar("T")

RULES = ("overlap", "paper", "labels")  # of matching, by name
# Panels of the help.
COMPARING, READING, RANKING, OUTPUT = "The comparison", "Reading", "The ranking", "Output"


class SimilarityName(StrEnum):
    """The similarities by name."""

    absolute = "absolute"
    aitchison = "aitchison"


class CorrespondenceName(StrEnum):
    """Whether every case has a correspondence, or all of them have one."""

    case = "case"
    set = "set"


class MergeName(StrEnum):
    """The sides whose spare regions may be merged."""

    none = "none"
    prediction = "prediction"
    reference = "reference"
    both = "both"


class MissingName(StrEnum):
    """How a case that a method lacks enters means and ranks."""

    worst = "worst"
    zero = "zero"
    exclude = "exclude"


class MeasureName(StrEnum):
    """What methods can be told apart by."""

    score = "score"
    adjusted_score = "adjusted_score"
    matched_score = "matched_score"
    explained_reference = "explained_reference"
    explained_prediction = "explained_prediction"
    mean_dice = "mean_dice"
    lowest_dice = "lowest_dice"
    foreground_dice = "foreground_dice"


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
        "a.nii.gz,b.nii.gz, 'pve_*.nii.gz' or csf=pve_0.nii.gz,grey=pve_1.nii.gz.",
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
    str,
    typer.Option(
        metavar="HOW",
        rich_help_panel=COMPARING,
        help="Which region is which: overlap (the pairs with the largest total overlap), paper "
        "(the paper's rule), labels (equal labels correspond), 0=csf,1=grey (prediction=reference, "
        "the rest by overlap), or the file that --json wrote for an earlier comparison.",
        autocompletion=lambda: list(RULES),
    ),
]
MergeOption = Annotated[
    MergeName,
    typer.Option(
        metavar="SIDE",
        rich_help_panel=COMPARING,
        help="The side whose spare regions may join matched ones: none, prediction, reference or "
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
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE",
        rich_help_panel=COMPARING,
        help="Work on Dask: threads, processes, or the address of a scheduler, tcp://host:8786. "
        "For what is stored in chunks (Zarr).",
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
NamesOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=READING,
        help="A table of what labels are called, for both sides: FreeSurfer's or 3D Slicer's "
        "colours, ITK-SNAP's label description, BIDS' dseg.tsv, CSV or JSON.",
    ),
]
ReferenceNamesOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", rich_help_panel=READING, help="The same for the reference."),
]
PredictionNamesOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", rich_help_panel=READING, help="The same for the prediction."),
]
PriorityOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        rich_help_panel=READING,
        help="Where masks overlap, the first of these regions gets the pixel: tumour,kidney. For "
        "one side: reference:NAMES.",
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
MaxBytesOption = Annotated[
    int | None,
    typer.Option(
        "--max-bytes",
        min=1,
        metavar="N",
        rich_help_panel=READING,
        help="How much memory the values of one file may take where they have to be unpacked; all "
        "that the machine has by default.",
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
ImageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--image",
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="Show the page's regions on this image, such as the scan. Can be repeated.",
    ),
]
BackgroundOption = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        rich_help_panel=COMPARING,
        help="The label, or its name, that is no foreground on either side; none where there is "
        "none. For --indices and --components.",
    ),
]
IndicesOption = Annotated[
    bool,
    typer.Option(
        "--indices",
        metavar="",
        rich_help_panel=OUTPUT,
        help="Show the numbers of other fields too: Rand, variation of information, covering, "
        "mean IoU, and with --background which instances were found.",
    ),
]
ComponentsOption = Annotated[
    bool,
    typer.Option(
        "--components",
        metavar="",
        rich_help_panel=COMPARING,
        help="Compare the connected components of both label maps, each a region of its own. "
        "Needs --background and the extra instances.",
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


def options_of(
    *,
    similarity: SimilarityName = SimilarityName.absolute,
    floor: float | None = None,
    match: str = "overlap",
    merge: MergeName = MergeName.none,
    ignore: Sequence[int] | None = None,
    sums: Sequence[str] | None = None,
    scale: Sequence[str] | None = None,
    names: str | None = None,
    reference_names: str | None = None,
    prediction_names: str | None = None,
    priority: Sequence[str] | None = None,
    ignore_geometry: bool = False,
    geometry_tolerance: float | None = None,
    correspondence: "Correspondence" = "case",
    max_bytes: int | None = None,
) -> "Options":
    """What the options that compare and evaluate share ask for.

    What does not fit is wrong usage; only a file of --match that cannot be read is an error of the
    library, like every other file.
    """
    from probdice.options import Options

    rule = match_of(match)
    tables: dict[Side, GivenNames] = {
        "reference": reference_names or names,
        "prediction": prediction_names or names,
    }
    with usage():
        return Options.of(
            similarity=similarity_of(similarity, floor),
            match=rule,
            merge=merge.value,
            ignore=ignore or (),
            sums=sums_of(sums),
            scale=scale_of(scale),
            names=tables,
            priority=priority_of(priority),
            ignore_geometry=ignore_geometry,
            geometry_tolerance=geometry_tolerance,
            correspondence=correspondence,
            max_bytes=max_bytes,
        )


@contextmanager
def usage(option: str | None = None) -> Iterator[None]:
    """Turn what the library refuses of options into wrong usage."""
    from probdice.errors import InputError

    try:
        yield
    except InputError as error:
        raise typer.BadParameter(error.in_command(), param_hint=option) from None


def similarity_of(name: SimilarityName, floor: float | None) -> "Similarity":
    """The similarity that the two options ask for."""
    from probdice.method.similarity import Absolute, Aitchison

    if name is SimilarityName.aitchison:
        with usage("--floor"):
            return Aitchison(floor or 0.0)
    if floor is not None:
        raise typer.BadParameter("only --similarity aitchison has a floor", param_hint="--floor")
    return Absolute()


def match_of(word: str) -> "Match":
    """What --match asks for: a rule, pairs of labels, or an earlier comparison."""
    if word in RULES:
        return word
    file = file_of_match(word)
    if file is not None:
        return _earlier(file)
    pairs: dict[Label, Label] = {}
    for pair in word.split(","):
        prediction, equals, reference = (text.strip() for text in pair.partition("="))
        if not (prediction and equals and reference):
            raise typer.BadParameter(
                "expected overlap, paper, labels, pairs of labels such as 0=csf,1=grey "
                "(prediction=reference), or a .json file that --json wrote for an earlier "
                f"comparison, found {word!r}",
                param_hint="--match",
            )
        if _label(prediction) in pairs:
            raise typer.BadParameter(
                f"names prediction label {prediction} twice", param_hint="--match"
            )
        pairs[_label(prediction)] = _label(reference)
    return pairs


def background_of(word: str | None) -> "Label | None":
    """What --background says: a label, a name, or none."""
    return None if word is None or word == "none" else _label(word)


def file_of_match(word: str) -> Path | None:
    """The file that --match names, if it names one."""
    if not word.lower().endswith(".json") or ("=" in word and not os.path.exists(word)):
        return None
    return Path(word)


def sums_of(words: Sequence[str] | None) -> "Sums | dict[Side, Sums]":
    """What --sums asks for."""
    sums = _per_side(words, "--sums", lambda word: cast("Sums", word))
    return "error" if sums is None else sums


def priority_of(words: Sequence[str] | None) -> "Sequence[str] | dict[Side, Sequence[str]]":
    """What --priority asks for."""
    return _per_side(words, "--priority", names_in) or ()


def names_in(word: str) -> Sequence[str]:
    """Names with commas between them."""
    return [name.strip() for name in word.split(",") if name.strip()]


def scale_of(words: Sequence[str] | None) -> "float | dict[Side, float] | None":
    """What --scale asks for.

    A scale for both sides is only for those that need it, one for a side is for what it holds.
    """
    if len({":" in word for word in words or ()}) > 1:
        raise typer.BadParameter(
            "give one number for both sides, or name the side of each", param_hint="--scale"
        )
    return _per_side(words, "--scale", _number)


def _per_side(
    words: Sequence[str] | None, option: str, parse: Callable[[str], T]
) -> "T | dict[Side, T] | None":
    """A value for both sides as it is; otherwise, one for each side that is named."""
    from probdice.method.sides import SIDES

    both: T | None = None
    sides: dict[Side, T] = {}
    for word in words or ():
        side, colon, value = word.rpartition(":")
        if not colon:
            both = parse(value)
        elif side in SIDES:
            sides[side] = parse(value)
        else:
            raise typer.BadParameter(
                f"expected reference: or prediction: before the value, found {word!r}",
                param_hint=option,
            )
    if both is None or not sides:
        return sides or both
    return {side: sides.get(side, both) for side in SIDES}


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise typer.BadParameter(
            f"expected a positive number, such as 100 or 255, found {word!r}", param_hint="--scale"
        ) from None


def _label(word: str) -> "Label":
    return int(word) if re.fullmatch("-?[0-9]{1,18}", word) else word


def _earlier(file: Path) -> "Match":
    """The comparison that --json wrote to a file."""
    from probdice.comparison.result import Comparison
    from probdice.errors import FormatError, InputError

    try:
        return Comparison.from_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FormatError(f"{file}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise FormatError(f"{file}: cannot be read: {reason}") from error
    except InputError as error:
        raise error.prefixed(f"{file}: is not what --json wrote: ") from error


def command_line(context: typer.Context) -> str:
    """What was typed, in full words and quoted where a shell needs it."""
    import shlex
    from enum import Enum

    words, flags = ["probdice", context.info_name or ""], []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[parameter.name or ""]
        for one in value if isinstance(value, list | tuple) else (value,):
            text = str(one.value if isinstance(one, Enum) else one)
            if parameter.param_type_name == "argument":
                words.append(text)
            else:
                flag = max(parameter.opts, key=len)
                flags += [flag] if isinstance(one, bool) else [flag, text]
    return shlex.join([*words, *flags])
