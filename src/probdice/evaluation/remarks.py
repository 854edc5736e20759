"""Sentences about an evaluation: remarks on every method, and notes on the whole run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from probdice.comparison.from_files import scaled_note
from probdice.errors import Note, Option, in_words
from probdice.evaluation.case_files import SUFFIXES
from probdice.evaluation.conclusion import join_names
from probdice.evaluation.derivatives import bids_note
from probdice.evaluation.intervals import MIN_RELIABLE_SUBJECTS, MIN_SUBJECTS
from probdice.evaluation.patterns import CASE, pattern_option
from probdice.evaluation.record import Record
from probdice.files.sources import natural
from probdice.method.background import named_background
from probdice.method.region_labels import listed
from probdice.method.sides import Side
from probdice.metrics.registry import MISSING_RULES
from probdice.text.formatting import decimal, quantity

if TYPE_CHECKING:
    from probdice.evaluation.results import Evaluation

__all__ = ["notes_on", "rater_file_notes", "remarks_on"]

MAX_LISTED_CASES = 10
EXAMPLES = 3  # number of files, or of cases with a different scale, listed in a note


def remarks_on(evaluation: "Evaluation", method: str) -> tuple[str, ...]:
    """Return remarks that help to interpret the results of a method."""
    counts, texts = evaluation.counts[method], []
    if evaluation.rater_comparison is not None:
        texts.append(evaluation.rater_comparison.sentence(method))
    unscored_texts = [
        f"{count} {word}"
        for count, word in ((counts.missing, "missing"), (counts.failed, "failed"))
        if count
    ]
    if unscored_texts:
        cases = f"{' and '.join(unscored_texts)} of {quantity(counts.cases, 'case')}"
        texts.append(f"{cases}, which {MISSING_RULES[evaluation.missing_rule]}")
    if method in evaluation.label_differences:
        texts.append(str(evaluation.label_differences[method]))
        texts.append(_with_equal_labels(evaluation, method))
    return tuple(texts)


def notes_on(evaluation: "Evaluation") -> tuple[Note, ...]:
    """Return notes about the whole run."""
    notes = [
        *_ignored_label_notes(evaluation),
        *_background_notes(evaluation),
        *_scan_notes(evaluation),
        *_scale_notes(evaluation),
    ]
    if not evaluation.labels_agree:
        text = (
            "Equal labels of the reference seem to mean different regions in different cases, so "
            "regions are not summarised over cases."
        )
        notes.append(Note("labels", (text,)))
    notes += _few_cases_notes(evaluation)
    for column in evaluation.external_columns:
        direction = "higher" if column.higher_is_better else "lower"
        text = (
            f"{column.name} is read from {Path(column.file).name}; {direction} values are better."
        )
        notes.append(Note("column", (text,)))
    file_notes = (
        *bids_note(_found_by_default(evaluation)),
        *_channel_notes(evaluation.image_channels, _folder_count(evaluation)),
    )
    return (*file_notes, *notes, *_rater_notes(evaluation))


def rater_file_notes(rater: str, evaluation: "Evaluation") -> tuple[Note, ...]:
    """Return notes about reading the files of a rater, who is the reference of the evaluation."""
    channels = evaluation.image_channels.get("reference")
    return (
        *(_channel_notes({rater: channels}, _folder_count(evaluation)) if channels else ()),
        *_scale_note(evaluation, evaluation.records, "reference", rater, "reference"),
    )


def _folder_count(evaluation: "Evaluation") -> int:
    """Return the number of folders with segmentations or masks."""
    return 1 + len(evaluation.methods) + (evaluation.mask is not None)


def _channel_notes(channels: Mapping[str, Sequence[str]], folder_count: int) -> Iterator[Note]:
    """Yield a note about the channels of nnU-Net's images that were left out, by folder name."""
    if not channels:
        return
    names = {"reference": "the reference", "mask": "the masks"}
    parts = [
        f"{len(files)} of {names.get(name, name)} ({listed(files, EXAMPLES)})"
        for name, files in channels.items()
    ]
    text = (
        f"Files that look like channels of nnU-Net's images were left out: {join_names(parts)}. If "
        f"these files are cases, use "
    )
    patterns = {name: _case_pattern(files[0]) for name, files in channels.items()}
    yield Note("channels", (text, pattern_option(patterns, folder_count), "."))


def _case_pattern(file: str) -> str:
    """Return a pattern that matches files with the suffix of the given file."""
    folder, _, name = file.rpartition("/")
    suffix = next(suffix for suffix in SUFFIXES if name.lower().endswith(suffix))
    return f"{CASE}/*{suffix}" if folder else f"{CASE}{suffix}"


def _scale_notes(evaluation: "Evaluation") -> Iterator[Note]:
    """Yield notes about a common scale that was applied to only some files of a folder."""
    yield from _scale_note(
        evaluation, evaluation.records, "reference", "the reference", "reference"
    )
    for name in evaluation.methods:
        records = [record for record in evaluation.records if record.method == name]
        option_side: Side = "reference" if name in evaluation.raters else "prediction"
        yield from _scale_note(evaluation, records, "prediction", name, option_side)


def _scale_note(
    evaluation: "Evaluation", records: Iterable[Record], side: Side, name: str, option_side: Side
) -> Iterator[Note]:
    """Yield a note if the common scale was applied to some probability maps, but not to all.

    `name` is the name of the folder of the maps, and `option_side` is the side of the option that
    always scales these maps.
    """
    scale = evaluation.options.common_scale
    if scale is None:
        return
    is_scaled = {
        record.case: scaled_note(side, scale) in record.comparison.notes
        for record in records
        if record.comparison is not None and not record.comparison.overlap.side(side).crisp
    }
    unscaled_cases = [case for case in is_scaled if not is_scaled[case]]
    if not 0 < len(unscaled_cases) < len(is_scaled):
        return
    text = (
        f"The scale {scale:g} was applied to {len(is_scaled) - len(unscaled_cases)} of "
        f"{len(is_scaled)} probability maps of {name}. It was not applied to maps without values "
        f"above 1.5 ({listed(unscaled_cases, EXAMPLES)}). To apply it to all of them, use "
    )
    fix = Option("scale", f"{option_side}:{scale:g}", f'scale={{"{option_side}": {scale:g}}}')
    yield Note("scaled", (text, fix, "."))


def _found_by_default(evaluation: "Evaluation") -> dict[str, tuple[str, list[str]]]:
    """Return the folder and files of the reference and of each method, if they have no pattern."""
    by_folder = {}
    if evaluation.patterns.reference is None:
        files = [file for record in evaluation.records for file in record.reference]
        by_folder["reference"] = evaluation.reference, files
    for name, folder in evaluation.methods.items():
        if evaluation.patterns.methods.get(name) is None:
            records = [record for record in evaluation.records if record.method == name]
            by_folder[name] = folder, [file for record in records for file in record.prediction]
    return by_folder


def _ignored_label_notes(evaluation: "Evaluation") -> Iterator[Note]:
    """Yield a note about each ignored label that is absent from all cases."""
    notes_by_record = [
        [note for note in record.comparison.notes if note.kind == "ignore"]
        for record in evaluation.records
        if record.comparison is not None
    ]
    for note in notes_by_record[0] if notes_by_record else ():
        if all(note in record_notes for record_notes in notes_by_record):
            yield Note("ignore", (f"{str(note).removesuffix('.')} of any case.",))


def _background_notes(evaluation: "Evaluation") -> Iterator[Note]:
    """Return a note if the background is absent from all cases."""
    comparisons = [
        record.comparison for record in evaluation.records if record.comparison is not None
    ]
    background = comparisons[0].options.background if comparisons else None
    if background is not None and all(
        region is None for comparison in comparisons for region in comparison.background_regions
    ):
        text = ": no case has this background, so every region is foreground."
        yield Note("background", (named_background(background), text))


def _scan_notes(evaluation: "Evaluation") -> Iterator[Note]:
    """Return a note about files that were read as label maps but look like scans."""
    names = {
        f"{record.case} of {'the reference' if _names_reference(note) else record.method}"
        for record in evaluation.records
        if record.comparison is not None
        for note in record.comparison.notes
        if note.kind == "intensities"
    }
    if names:
        looks = (
            "1 file looks like a scan or a photograph, not a label map"
            if len(names) == 1
            else f"{len(names)} files look like scans or photographs, not label maps"
        )
        ordered_names = sorted(names, key=natural)
        text = f"{looks} ({listed(ordered_names, MAX_LISTED_CASES)}). Use segmentations instead."
        yield Note("intensities", (text,))


def _names_reference(note: Note) -> bool:
    return str(note.message[0]).startswith("reference")


def _few_cases_notes(evaluation: "Evaluation") -> Iterator[Note]:
    """Return a note if there are too few cases or subjects for reliable confidence intervals."""
    subjects = evaluation.subjects
    if subjects is None:
        numbers, word = [counts.scored for counts in evaluation.counts.values()], "cases"
    else:
        subjects_of_method: dict[str, set[str]] = {}
        for record in evaluation.records:
            if record.comparison is not None:
                subjects_of_method.setdefault(record.method, set()).add(subjects[record.case])
        numbers, word = (list(map(len, subjects_of_method.values())), "subjects")
    fewest = min((number for number in numbers if number), default=MIN_RELIABLE_SUBJECTS)
    if MIN_SUBJECTS <= fewest < MIN_RELIABLE_SUBJECTS:
        text = (
            f"With {fewest} {word}, 95 % confidence intervals may be too narrow. Use at least "
            f"{MIN_RELIABLE_SUBJECTS} {word}."
        )
        yield Note("few", (text,))


def _with_equal_labels(evaluation: "Evaluation", method: str) -> str:
    """Return a remark on the mean of the ranking measure that equal labels would give."""
    measure = evaluation.title(evaluation.rank_by[0])
    mean = evaluation.equal_labels_means()[method]
    use = in_words((Option("match", "labels"),), evaluation.words)
    records = [record for record in evaluation.equal_labels_records if record.method == method]
    count = evaluation.counts[method].scored
    failed_count = count - sum(record.comparison is not None for record in records)
    failed = ""
    if failed_count:
        failed = f" ({failed_count} of {quantity(count, 'case')} cannot be compared by labels)"
    if np.isnan(mean) and failed_count == count:
        return f"with equal labels, the mean {measure} does not exist{failed}"
    if np.isnan(mean):
        return f"the mean {measure} with equal labels is not stored; to compute it, use {use}"
    return (
        f"with equal labels, the mean {measure} is {decimal(mean)}{failed} instead of "
        f"{decimal(evaluation.summaries()[method].mean)}; if equal labels mean the same region, "
        f"use {use}"
    )


def _rater_notes(evaluation: "Evaluation") -> Iterator[Note]:
    """Yield notes on the files of raters, missing cases and cases that are not compared."""
    rater_comparison = evaluation.rater_comparison
    if rater_comparison is None:
        return
    yield from rater_comparison.notes
    by_rater = rater_comparison.cases
    cases = {
        *evaluation.cases,
        *(case for rater_cases in by_rater.values() for case in rater_cases),
    }
    for rater, rater_cases in by_rater.items():
        missing_cases = sorted(cases.difference(rater_cases), key=natural)
        if missing_cases:
            text = (
                f"Rater {rater} lacks {len(missing_cases)} of {len(cases)} cases "
                f"({listed(missing_cases, MAX_LISTED_CASES)}). For these cases, the other raters "
                f"are used."
            )
            yield Note("raters", (text,))
    if rater_comparison.reference_is_mean:  # then the excluded cases are among the failures
        return
    for case, reason in rater_comparison.excluded_cases.items():
        yield Note("raters", (f"{case} is not compared with the raters: ", *reason.message))
