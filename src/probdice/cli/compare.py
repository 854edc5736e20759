"""`probdice compare`: the main job."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

import typer

from probdice.cli.options import (
    DebugOption,
    FloorOption,
    IgnoreGeometryOption,
    IgnoreOption,
    JsonOption,
    MapOption,
    MaskOption,
    MatchOption,
    MergeName,
    MergeOption,
    PredictionArgument,
    QuietOption,
    ReferenceArgument,
    RelabelledOption,
    ReportOption,
    ScaleOption,
    SimilarityName,
    SimilarityOption,
    SumsOption,
    ToleranceOption,
    WorkersOption,
    scales_of,
    similarity_of,
    sums_of,
)
from probdice.cli.outcome import answering
from probdice.cli.outputs import check_outputs, rehearse, write_text
from probdice.cli.progress import Progress, progress
from probdice.cli.sides import Inputs, Sides, read_sides
from probdice.cli.streams import print_text

if TYPE_CHECKING:
    from probdice.cli.display import Promise
    from probdice.result import Comparison
    from probdice.similarity import Similarity

__all__ = ["Outputs", "Question", "compare", "run"]

TRIED = 2**31  # values that may be read to say what merging would give, a second or so


@dataclass(frozen=True)
class Question:
    """What is asked of the two sides."""

    similarity: "Similarity"
    match: bool = True
    merge: MergeName = MergeName.none
    workers: int | None = None


@dataclass(frozen=True)
class Outputs:
    """The files to write; JSON goes to standard output as "-"."""

    map: str | None = None
    relabelled: str | None = None
    report: str | None = None
    json: str | None = None
    quiet: bool = False

    def check(self, inputs: Inputs) -> None:
        """Refuse what could not be written."""
        check_outputs(
            {
                "--map": self.map,
                "--relabelled": self.relabelled,
                "--report": self.report,
                "--json": self.json,
            },
            images=("--map", "--relabelled"),
            inputs={
                "REFERENCE": inputs.reference,
                "PREDICTION": inputs.prediction,
                "--mask": inputs.mask,
            },
        )


def compare(
    reference: ReferenceArgument,
    prediction: PredictionArgument,
    similarity: SimilarityOption = SimilarityName.absolute,
    floor: FloorOption = None,
    match: MatchOption = True,
    merge: MergeOption = MergeName.none,
    mask: MaskOption = None,
    ignore: IgnoreOption = None,
    workers: WorkersOption = None,
    sums: SumsOption = None,
    scale: ScaleOption = None,
    geometry_tolerance: ToleranceOption = None,
    ignore_geometry: IgnoreGeometryOption = False,
    map_: MapOption = None,
    relabelled: RelabelledOption = None,
    report: ReportOption = None,
    json: JsonOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Compare two segmentations of one image.

    Regions need not carry the same labels, nor be equally many: which is which is found out.
    """
    if merge is not MergeName.none and not match:
        raise typer.BadParameter(
            "regions are only merged into matched ones: leave out --no-match", param_hint="--merge"
        )
    if ignore_geometry and geometry_tolerance is not None:
        raise typer.BadParameter(
            "does not go with --ignore-geometry", param_hint="--geometry-tolerance"
        )
    inputs = Inputs(
        reference,
        prediction,
        mask,
        tuple(ignore or ()),
        sums_of(sums),
        scales_of(scale),
        geometry_tolerance,
        ignore_geometry,
    )
    question = Question(similarity_of(similarity, floor), match, merge, workers)
    outputs = Outputs(map_, relabelled, report, json, quiet)
    with answering(debug=debug):
        outputs.check(inputs)
        run(inputs, question, outputs)


def run(inputs: Inputs, question: Question, outputs: Outputs) -> "Comparison":
    """Read, compare, write the files, and only then print."""
    silent = outputs.quiet or outputs.json == "-"
    with progress(shown=not outputs.quiet) as display:
        display.say("reading")
        sides = read_sides(inputs)
        _rehearse(sides, outputs)
        result, promises = _compared(sides, question, display, silent)
        written = _write(result, sides, outputs, display)
    if outputs.json == "-":
        print_text(result.to_json() + "\n")
    elif outputs.quiet:
        print_text(f"{result.score!r}\n")
    else:
        from probdice.cli.display import show_comparison

        title = f"{inputs.reference} ↔ {inputs.prediction}"
        show_comparison(result, title, promises, written)
    return result


def _rehearse(sides: Sides, outputs: Outputs) -> None:
    """Find out what cannot be written before the work, not after."""
    import numpy as np

    from probdice.segmentation import Segmentation

    pixel = np.ones((1,) * len(sides.reference.shape), np.float32)
    if outputs.map is not None:
        rehearse(outputs.map, pixel)
    if outputs.relabelled is not None:
        crisp = sides.prediction.crisp
        like = Segmentation.from_labels if crisp else Segmentation.from_probabilities
        rehearse(outputs.relabelled, like(pixel if crisp else pixel[None]))


def _compared(
    sides: Sides, question: Question, display: Progress, silent: bool
) -> "tuple[Comparison, list[Promise]]":
    """The result with our remarks, and what --merge would give."""
    import probdice

    def ask(merge: str) -> "Comparison":
        return probdice.compare(
            sides.reference,
            sides.prediction,
            similarity=question.similarity,
            match=question.match,
            merge=cast(Literal["none", "prediction", "reference", "both"], merge),
            mask=sides.mask,
            workers=question.workers,
        )

    display.say("comparing")
    result = ask(question.merge.value)
    result = replace(result, notes=(*sides.remarks, *_doubts(result), *result.notes))
    if silent:
        return result, []
    from probdice.cli.display import Promise

    display.say("merging, to see what it would give")
    spare = [side for side, labels in result.unmatched.items() if labels]
    promises = [
        Promise(side, ask(side)) for side in spare if question.match and _quick(sides, result, side)
    ]
    display.say("chance")
    assert result.chance is not None  # computed here, while the bar is shown
    return result, promises


def _doubts(result: "Comparison") -> list[str]:
    """What looks like a mistake in the files that were given."""
    labels = {"reference": result.reference_labels, "prediction": result.prediction_labels}
    return [
        f"the {side} has negative labels: is it an image of intensities, not a segmentation?"
        for side, side_labels in labels.items()
        if any(isinstance(label, int) and label < 0 for label in side_labels)
    ]


def _quick(sides: Sides, result: "Comparison", side: str) -> bool:
    """Whether merging needs no or few passes over the pixels."""
    segmentation = sides.reference if side == "reference" else sides.prediction
    if segmentation.crisp:
        return True
    regions = len(result.reference_labels) + len(result.prediction_labels)
    passes = 2 + sum(len(labels) for labels in result.unmatched.values())
    return result.pixels * regions * passes <= TRIED


def _write(
    result: "Comparison", sides: Sides, outputs: Outputs, display: Progress
) -> Sequence[str]:
    """The files that were asked for, and a word on each."""
    from probdice.files import write

    written = []
    if outputs.map is not None:
        display.say("map")
        write(outputs.map, result.map(), sides.geometry)
        written.append(f"{outputs.map}: the similarity at every pixel")
    if outputs.relabelled is not None:
        display.say("relabelling")
        segmentation = result.relabelled()
        write(outputs.relabelled, segmentation, sides.geometry)
        regions = ", ".join(map(str, segmentation.regions))  # most formats hold no names
        order = f", regions in this order: {regions}" if regions else ""
        written.append(f"{outputs.relabelled}: the prediction with the reference's labels{order}")
    if outputs.report is not None:
        display.say("page")
        result.report(outputs.report)
        written.append(f"{outputs.report}: a page to open in a browser")
    if outputs.json is not None and outputs.json != "-":
        write_text(outputs.json, result.to_json() + "\n")
        written.append(f"{outputs.json}: all numbers")
    return written
