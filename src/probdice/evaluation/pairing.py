"""Pair the references of all cases with the predictions of every method."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from probdice.errors import InputError, Option
from probdice.evaluation.case_files import (
    MAX_LISTED_NAMES,
    SUFFIXES,
    Files,
    find_cases,
    find_image_channels,
    find_methods,
    name_regions,
)
from probdice.evaluation.derivatives import MASKS
from probdice.evaluation.folders import Patterns
from probdice.evaluation.patterns import CASE, METHOD, pattern_option
from probdice.files.sources import natural
from probdice.method.region_labels import listed
from probdice.method.sides import SIDES, Side
from probdice.text.formatting import quantity

__all__ = ["ROLES", "Job", "Missing", "Role", "omitted_image_channels", "pair"]

Role = Literal["reference", "prediction", "mask"]  # the role of a file of a case
ROLES: tuple[Role, ...] = ("reference", "prediction", "mask")

BIDS_NAME = re.compile(r"sub-[^_]+(?:_ses-[^_]+)?_(.+)")  # group 1 is the text after the case name


@dataclass(frozen=True)
class Job:
    """One case of one method: the files by role, and the region names of each side.

    A side has region names if it has one file per region. A case without reference files fails.
    """

    case: str
    method: str
    files: dict[Role, tuple[str, ...]]
    regions: dict[Side, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Missing:
    """A case that lacks the reference or the prediction of a method.

    Attributes
    ----------
    case : str
        The case.
    method : str
        The method.
    side : {"reference", "prediction"}
        The side that is missing.
    """

    case: str
    method: str
    side: Side


def pair(
    reference: Path,
    methods: Mapping[str, Path],
    *,
    patterns: Patterns,
    mask: Path | None = None,
    probabilities: bool = False,
    failed_cases: Collection[str] = (),
) -> tuple[tuple[Job, ...], tuple[Missing, ...], dict[str, Path]]:
    """Return the jobs in the order of cases, the missing cases, and the folder of every method.

    A pattern with ``{method}`` finds all methods in its folder. Cases in `failed_cases` have no
    consensus as reference, so their jobs have no reference files.
    """
    reference_files = find_cases(reference, patterns.reference, probabilities=False)
    reference_files |= dict.fromkeys(failed_cases, ())
    reference_regions = name_regions(reference, patterns.reference, reference_files)
    prediction_files: dict[str, Files] = {}
    prediction_regions: dict[str, Files] = {}
    folders: dict[str, Path] = {}
    for name, folder in methods.items():
        pattern = patterns.methods[name]
        if pattern is not None and METHOD in pattern:
            by_method = find_methods(folder, pattern, reference_files)
        else:
            by_method = {name: find_cases(folder, pattern, probabilities=probabilities)}
            if folder.resolve() == reference.resolve():
                _check_sides_differ(folder, reference_files, by_method[name])
        for method in by_method:
            if method in folders:
                raise InputError(
                    f"{folder}: two methods have the name {method!r}; rename one of them"
                )
            prediction_files[method], folders[method] = by_method[method], folder
            prediction_regions[method] = name_regions(folder, pattern, by_method[method], method)
    masks: Files = {}
    if mask is not None:
        masks = find_cases(mask, patterns.mask, probabilities=False, suffixes=(MASKS,))
        _check_masks(mask, masks, reference_files)
    cases = sorted(
        {*reference_files, *(case for files in prediction_files.values() for case in files)},
        key=natural,
    )
    jobs = []
    missing = []
    for case in cases:
        for name, files in prediction_files.items():
            if case in reference_files and case in files:
                paths = (reference_files[case], files[case], masks.get(case, ()))
                regions: dict[Side, tuple[str, ...]] = {
                    side: side_regions[case]
                    for side, side_regions in zip(
                        SIDES, (reference_regions, prediction_regions[name]), strict=True
                    )
                    if side_regions.get(case)
                }
                jobs.append(Job(case, name, dict(zip(ROLES, paths, strict=True)), regions))
            elif case in reference_files:
                missing.append(Missing(case, name, "prediction"))
            elif case in files:
                missing.append(Missing(case, name, "reference"))
    if not jobs:
        raise _no_common_case(reference, reference_files, folders, prediction_files, patterns)
    return tuple(jobs), tuple(missing), folders


def omitted_image_channels(
    reference: Path, methods: Mapping[str, Path], *, patterns: Patterns, mask: Path | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the files that `pair` omits because they are channels of nnU-Net's images.

    The keys are "reference", "mask" and the names of methods, without folders that have no such
    files.
    """
    folders = {"reference": (reference, patterns.reference)}
    if mask is not None:
        folders["mask"] = (mask, patterns.mask)
    by_method = {name: (folder, patterns.methods[name]) for name, folder in methods.items()}
    channels = {
        name: find_image_channels(folder, pattern)
        for name, (folder, pattern) in (folders | by_method | folders).items()
    }
    return {name: files for name, files in channels.items() if files}


def _check_sides_differ(
    folder: Path,
    reference_files: Files,
    prediction_files: Files,
) -> None:
    """Reject cases whose two sides are the same files, because both sides would always be equal."""
    for case, files in prediction_files.items():
        sides = files, reference_files.get(case, ())
        names = [[Path(file).name for file in side] for side in sides]
        if names[0] == names[1]:
            raise InputError(
                f"{folder}: reference and prediction of case {case} are the same files; give the "
                f"folder of the predictions, or one pattern per side"
            )


def _check_masks(
    mask: Path,
    masks: Files,
    reference_files: Files,
) -> None:
    """Reject cases without a mask, because they would not be comparable with masked cases."""
    unmasked_cases = [case for case in sorted(reference_files, key=natural) if case not in masks]
    if unmasked_cases:
        cases = "1 case has" if len(unmasked_cases) == 1 else f"{len(unmasked_cases)} cases have"
        example = f"{CASE}_mask.nii.gz"
        raise InputError(
            f"{mask}: {cases} no mask ({listed(unmasked_cases, MAX_LISTED_NAMES)}), but every case "
            f"needs one. If the names differ, give a pattern for the masks, such as ",
            Option(
                "pattern",
                python=f"pattern={{'mask': {example!r}}}",
                command=f"--pattern 'mask:{example}'",
            ),
            ".",
        )


def _no_common_case(
    reference: Path,
    reference_files: Mapping[str, object],
    methods: Mapping[str, Path],
    prediction_files: Mapping[str, Mapping[str, object]],
    given_patterns: Patterns,
) -> InputError:
    folders = {"reference": (reference, reference_files, given_patterns.reference)}
    folders |= {
        name: (methods[name], prediction_files[name], given_patterns.methods.get(name))
        for name in methods
    }
    lines, patterns = [], {}
    for name, (folder, cases, given_pattern) in folders.items():
        names = sorted(cases, key=natural)
        contents = listed(names, MAX_LISTED_NAMES) if names else "no supported file"
        deeper_files = [] if cases else _deeper_files(folder)
        if deeper_files and given_pattern is not None:
            contents = f"no file matches {given_pattern!r}, found for example {deeper_files[0]}"
        elif deeper_files:
            patterns[name] = _pattern_for(deeper_files[0])
            count = quantity(len(deeper_files), "file")
            contents = f"{count} in subfolders, such as {deeper_files[0]}"
        lines.append(f"  {folder}: {contents}")
    message = "\n".join(
        ["no case has both a reference and a prediction. Cases per folder:", *lines, ""]
    )
    if not patterns and given_patterns.reference is not None:
        return InputError(f"{message}Change the pattern so that it matches the file names.")
    if not patterns:
        return InputError(
            f"{message}If the names differ, give a pattern such as '{CASE}_seg.nii.gz'."
        )
    option = pattern_option(patterns, len(folders))
    return InputError(f"{message}Files in nested subfolders require a pattern; use ", option)


def _deeper_files(folder: Path) -> list[str]:
    """Return the files with supported suffixes below a folder, BIDS label maps first."""
    files = [
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*")
        if file.name.lower().endswith(SUFFIXES) and not file.name.startswith(".")
    ]
    return sorted(files, key=lambda file: ("_dseg." not in file, natural(file)))


def _pattern_for(file: str) -> str:
    """Return a pattern that matches the given file and files with similar names.

    In BIDS file names, the subject and session form the case name.
    """
    name = file.rpartition("/")[2]
    if bids := BIDS_NAME.fullmatch(name):
        return f"**/{CASE}_{bids[1]}"
    return f"**/{CASE}{next(suffix for suffix in SUFFIXES if name.lower().endswith(suffix))}"
