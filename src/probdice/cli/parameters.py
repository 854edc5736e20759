"""Arguments and options of the commands, and their conversion to library options.

This module only parses text. `Options.of` checks the values, and an `InputError` that it raises
becomes a usage error.
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
    "usage_errors",
]

T = TypeVar("T")

MATCHING_RULES = ("overlap", "paper", "labels")
# Titles of option groups in the help.
COMPARING, READING, RANKING, OUTPUT = "Comparison", "Reading", "Ranking", "Output"


class SimilarityName(StrEnum):
    """Names of similarities."""

    absolute = "absolute"
    aitchison = "aitchison"


class CorrespondenceName(StrEnum):
    """Scope of a correspondence: one per case, or one for all cases of a method."""

    case = "case"
    set = "set"


class MergeName(StrEnum):
    """Sides whose unmatched regions may be merged."""

    none = "none"
    prediction = "prediction"
    reference = "reference"
    both = "both"


class MissingName(StrEnum):
    """How missing and failed cases of a method count in means and ranks."""

    worst = "worst"
    zero = "zero"
    exclude = "exclude"


class MeasureName(StrEnum):
    """Measures that can rank methods."""

    score = "score"
    adjusted_score = "adjusted_score"
    matched_score = "matched_score"
    explained_reference = "explained_reference"
    explained_prediction = "explained_prediction"
    mean_dice = "mean_dice"
    lowest_dice = "lowest_dice"
    foreground_dice = "foreground_dice"


class SumsName(StrEnum):
    """How to handle probabilities that do not sum to 1."""

    error = "error"
    normalise = "normalise"
    background = "background"


ReferenceArgument = Annotated[
    str,
    typer.Argument(
        metavar="REFERENCE",
        show_default=False,
        help="Reference segmentation (ground truth): a file; an array in a file (file.h5:/path or "
        "file.npz:key); or one file per region (a.nii.gz,b.nii.gz, 'pve_*.nii.gz' or "
        "csf=pve_0.nii.gz,grey=pve_1.nii.gz).",
    ),
]
PredictionArgument = Annotated[
    str,
    typer.Argument(
        metavar="PREDICTION",
        show_default=False,
        help="Predicted segmentation, in any of the forms of REFERENCE.",
    ),
]

SimilarityOption = Annotated[
    SimilarityName,
    typer.Option(
        metavar="NAME",
        rich_help_panel=COMPARING,
        help="absolute compares differences of probabilities, aitchison compares their ratios.",
    ),
]
FloorOption = Annotated[
    float | None,
    typer.Option(
        metavar="F",
        rich_help_panel=COMPARING,
        help="With aitchison, raise probabilities below F to F. Without a floor, the distance "
        "between 0 and any other probability is infinite.",
    ),
]
MatchOption = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        rich_help_panel=COMPARING,
        help="How regions are matched: overlap (largest total overlap), paper (the paper's rule), "
        "labels (equal labels), pairs of labels prediction=reference such as 0=csf,1=grey (other "
        "regions by overlap), or a .json file from an earlier compare --json.",
        autocompletion=lambda: list(MATCHING_RULES),
    ),
]
MergeOption = Annotated[
    MergeName,
    typer.Option(
        metavar="SIDE",
        rich_help_panel=COMPARING,
        help="Merge unmatched regions of this side into matched ones: none, prediction, reference "
        "or both.",
    ),
]
MaskOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=COMPARING,
        help="Compare only voxels where this file is not 0.",
    ),
]
IgnoreOption = Annotated[
    list[int] | None,
    typer.Option(
        metavar="LABEL",
        rich_help_panel=COMPARING,
        help="Exclude voxels with this label in the reference. Can be repeated.",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        rich_help_panel=COMPARING,
        help="Number of threads; by default, the number of cores.",
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        metavar="SCHEDULER",
        rich_help_panel=COMPARING,
        help="Run on Dask: threads, processes, or the address of a scheduler (tcp://host:8786). "
        "Needs a Zarr store on at least one side.",
    ),
]
SumsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOW",
        rich_help_panel=READING,
        help="How to handle probabilities that do not sum to 1: error (the default), normalise "
        "(divide by the sum) or background (add the missing probability as a region). For one "
        "side: reference:HOW or prediction:HOW.",
        autocompletion=lambda: list(SumsName),
    ),
]
ScaleOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="S",
        rich_help_panel=READING,
        help="Value that means probability 1: 100 for percentages, 255 for 8-bit maps. Label maps "
        "(one whole number per voxel) and values up to 1 are not scaled. reference:S or "
        "prediction:S always scales that side.",
    ),
]
NamesOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=READING,
        help="Table of label names for both sides: a FreeSurfer or 3D Slicer colour table, an "
        "ITK-SNAP label description, a BIDS dseg.tsv, CSV or JSON.",
    ),
]
ReferenceNamesOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", rich_help_panel=READING, help="Table of label names for the reference."
    ),
]
PredictionNamesOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", rich_help_panel=READING, help="Table of label names for the prediction."
    ),
]
PriorityOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        rich_help_panel=READING,
        help="Where masks overlap, assign the voxel to the first of these regions, such as "
        "tumour,kidney. For one side: reference:NAMES or prediction:NAMES.",
    ),
]
ToleranceOption = Annotated[
    float | None,
    typer.Option(
        "--geometry-tolerance",
        min=0.0,
        metavar="T",
        rich_help_panel=READING,
        help="Largest allowed distance between the corners of two grids, in voxels; 0.1 by "
        "default.",
    ),
]
MaxBytesOption = Annotated[
    int | None,
    typer.Option(
        "--max-bytes",
        min=1,
        metavar="N",
        rich_help_panel=READING,
        help="Largest size of the decompressed values of one file, in bytes; by default, the "
        "memory of the machine.",
    ),
]
IgnoreGeometryOption = Annotated[
    bool,
    typer.Option(
        "--ignore-geometry",
        metavar="",
        rich_help_panel=READING,
        help="Ignore image geometry; compare in array order.",
    ),
]
MapOption = Annotated[
    str | None,
    typer.Option(
        "--map",
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="Write an image with the similarity at every voxel.",
    ),
]
RelabelledOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="Write the prediction with the labels of the reference.",
    ),
]
ReportOption = Annotated[
    str | None,
    typer.Option(
        "--report",
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="Write a report (one HTML file).",
    ),
]
ImageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--image",
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="Background image of the report, such as the scan. Can be repeated.",
    ),
]
BackgroundOption = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        rich_help_panel=COMPARING,
        help="Label of the background on both sides, or its name; none if there is no background. "
        "Needs --indices or --components.",
    ),
]
IndicesOption = Annotated[
    bool,
    typer.Option(
        "--indices",
        metavar="",
        rich_help_panel=OUTPUT,
        help="Also print other indices: Rand, variation of information, covering, mean IoU and, "
        "with --background, detected instances.",
    ),
]
ComponentsOption = Annotated[
    bool,
    typer.Option(
        "--components",
        metavar="",
        rich_help_panel=COMPARING,
        help="Compare the connected components of both label maps as separate regions. Needs "
        "--background and the extra 'instances'.",
    ),
]
JsonOption = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="Write the result as JSON. With -, print only the JSON.",
    ),
]
QuietOption = Annotated[
    bool,
    typer.Option("--quiet", "-q", metavar="", rich_help_panel=OUTPUT, help="Print only the score."),
]
DebugOption = Annotated[
    bool,
    typer.Option(
        "--debug", metavar="", rich_help_panel=OUTPUT, help="Print the traceback of an error."
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
    """Convert the options that compare and evaluate share.

    An invalid value raises a usage error. A --match file that cannot be read raises `FormatError`,
    like any other file.
    """
    from probdice.options import Options

    rule = match_of(match)
    tables: dict[Side, GivenNames] = {
        "reference": reference_names or names,
        "prediction": prediction_names or names,
    }
    with usage_errors():
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
def usage_errors(option: str | None = None) -> Iterator[None]:
    """Turn an `InputError` into a usage error of this option."""
    from probdice.errors import InputError

    try:
        yield
    except InputError as error:
        raise typer.BadParameter(error.in_command(), param_hint=option) from None


def similarity_of(name: SimilarityName, floor: float | None) -> "Similarity":
    """Convert --similarity and --floor."""
    from probdice.method.similarity import Absolute, Aitchison

    if name is SimilarityName.aitchison:
        with usage_errors("--floor"):
            return Aitchison(floor or 0.0)
    if floor is not None:
        raise typer.BadParameter("needs --similarity aitchison", param_hint="--floor")
    return Absolute()


def match_of(word: str) -> "Match":
    """Convert --match: a rule, pairs of labels, or an earlier comparison."""
    if word in MATCHING_RULES:
        return word
    file = file_of_match(word)
    if file is not None:
        return _read_comparison(file)
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
                f"prediction label {prediction} occurs twice", param_hint="--match"
            )
        pairs[_label(prediction)] = _label(reference)
    return pairs


def background_of(word: str | None) -> "Label | None":
    """Convert --background: a label, a name, or none."""
    return None if word is None or word == "none" else _label(word)


def file_of_match(word: str) -> Path | None:
    """Return the file that --match names, or None for a rule or pairs of labels."""
    if not word.lower().endswith(".json") or ("=" in word and not os.path.exists(word)):
        return None
    return Path(word)


def sums_of(words: Sequence[str] | None) -> "Sums | dict[Side, Sums]":
    """Convert --sums."""
    sums = _per_side(words, "--sums", lambda word: cast("Sums", word))
    return "error" if sums is None else sums


def priority_of(words: Sequence[str] | None) -> "Sequence[str] | dict[Side, Sequence[str]]":
    """Convert --priority."""
    return _per_side(words, "--priority", names_in) or ()


def names_in(word: str) -> Sequence[str]:
    """Split names at commas."""
    return [name.strip() for name in word.split(",") if name.strip()]


def scale_of(words: Sequence[str] | None) -> "float | dict[Side, float] | None":
    """Convert --scale.

    A scale for both sides leaves label maps and values up to 1 unchanged. A scale for one side
    always applies.
    """
    if len({":" in word for word in words or ()}) > 1:
        raise typer.BadParameter(
            "give one number for both sides, or name the side of each number", param_hint="--scale"
        )
    return _per_side(words, "--scale", _number)


def _per_side(
    words: Sequence[str] | None, option: str, parse: Callable[[str], T]
) -> "T | dict[Side, T] | None":
    """Return one value for both sides, or a dictionary of values by side."""
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


def _read_comparison(file: Path) -> "Match":
    """Read a comparison that --json wrote."""
    from probdice.comparison.result import Comparison
    from probdice.errors import FormatError, InputError

    try:
        return Comparison.from_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FormatError(f"{file}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise FormatError(f"{file}: cannot be read: {reason}") from error
    except InputError as error:
        raise error.prefixed(f"{file}: not a JSON file written by --json: ") from error


def command_line(context: typer.Context) -> str:
    """Return the command line with long option names, quoted for a shell."""
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
