"""Compare a folder of predictions with the manifest of a challenge, without the references."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from probdice.comparison.comparing import images_of
from probdice.comparison.from_files import read_side
from probdice.comparison.notes import intensities
from probdice.data.segmentation import Segmentation
from probdice.data.value_checks import InvalidValues
from probdice.engine.pair import SegmentationPair
from probdice.errors import GeometryError, InputError, ProbdiceError
from probdice.evaluation.case_files import find_cases, name_regions
from probdice.evaluation.case_scoring import as_paths
from probdice.evaluation.folders import Folder
from probdice.evaluation.manifest import Manifest, RequiredGrid, kind_of
from probdice.files.interpretation import beyond_one
from probdice.files.sources import natural, split_inside
from probdice.method.label_matching import label_pairs
from probdice.method.overlap import Overlap, Pairs, Regions
from probdice.method.region_labels import listed
from probdice.method.similarity import Absolute

__all__ = ["Problem", "SubmissionCheck", "check_submission"]

FORMAT_VERSION = 1
UNSCORED = "This case cannot be scored."
KINDS = {"labels": "a label map", "probabilities": "probabilities"}
VALUE_FIXES = {
    "fraction": "Store a label map as whole numbers.",
    "infinite": "Replace NaN and infinite values.",
    "negative": "Store probabilities instead of logits, and clip negative rounding errors to 0.",
    "above": "Divide all values by the value that means probability 1.",
    "nothing": "Set one region, such as the background, to 1 at these voxels.",
    "sum": "Divide the values of every voxel by their sum.",
}


@dataclass(frozen=True)
class Problem:
    """A problem with a submission.

    Attributes
    ----------
    kind : {"names", "missing", "extra", "unreadable", "kind", "grid", "values", "labels"}
        The kind of problem.
    severity : {"error", "warning"}
        Errors must be corrected before the evaluation; warnings need not be.
    cases : tuple of str
        The cases that have the problem.
    problem : str
        A description of the problem, with the expected and the actual values.
    consequence : str
        The effect on the evaluation.
    fix : str
        How to correct the submission.
    """

    kind: Literal["names", "missing", "extra", "unreadable", "kind", "grid", "values", "labels"]
    severity: Literal["error", "warning"]
    cases: tuple[str, ...]
    problem: str
    consequence: str
    fix: str

    def __str__(self) -> str:
        return f"{self.severity} ({self.kind}): {self.problem}. {self.consequence} {self.fix}"


@dataclass(frozen=True)
class SubmissionCheck:
    """The problems of a submission, and whether it can be evaluated.

    Attributes
    ----------
    expected : int
        The number of cases of the challenge.
    checked : int
        The number of these cases that the submission contains.
    problems : tuple of Problem
        Errors and warnings.
    """

    expected: int
    checked: int
    problems: tuple[Problem, ...]

    @property
    def valid(self) -> bool:
        """Whether the submission has no errors."""
        return not any(problem.severity == "error" for problem in self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return {
            "format": FORMAT_VERSION,
            "valid": self.valid,
            "expected": self.expected,
            "checked": self.checked,
            "problems": [asdict(problem) for problem in self.problems],
        }


def check_submission(
    submission: Folder,
    manifest: Manifest,
    *,
    max_bytes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SubmissionCheck:
    """Check that a folder of predictions can be evaluated. One case is read at a time.

    Files are read, aligned and checked as in `evaluate`. The masks of the evaluation are not
    available, so values outside the masks are also checked.

    Parameters
    ----------
    submission : path
        The folder of predictions.
    manifest : Manifest
        The manifest of the challenge.
    max_bytes : int, optional
        Maximum memory, in bytes, for the decompressed values of one file. The default is the
        memory of the machine.
    progress : callable, optional
        Called before each case is checked, with the number of finished cases and the number of
        cases to check.

    Returns
    -------
    SubmissionCheck

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from probdice.evaluation import EvaluateOptions, Manifest, check_submission
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     truth, mine = Path(folder, "truth"), Path(folder, "mine")
    ...     truth.mkdir(), mine.mkdir()
    ...     np.save(truth / "a.npy", np.array([[0, 0, 1], [0, 2, 2]]))
    ...     np.save(mine / "a.npy", np.array([[0, 0, 1], [0, 7, 7]]))
    ...     manifest = Manifest.of(truth, EvaluateOptions.of(match="labels"))
    ...     result = check_submission(mine, manifest)
    (None, None)
    >>> result.valid, result.problems[0].problem
    (False, 'case a: label 7 is not allowed; expected 0, 1, 2')
    """
    folder = Path(submission)
    options = replace(manifest.options, max_bytes=max_bytes)
    try:
        files = find_cases(folder, manifest.pattern, probabilities=manifest.probabilities)
    except InputError as error:
        text, fix = error.in_command(), "Correct the file names."
        problem = Problem("names", "error", (), text, "The cases cannot be identified.", fix)
        return SubmissionCheck(len(manifest.cases), 0, (problem,))
    regions = name_regions(folder, manifest.pattern, files)
    problems = list(_case_name_problems(folder, files, manifest))
    present_cases = [case for case in manifest.cases if case in files]
    for k, case in enumerate(present_cases):
        if progress is not None:
            progress(k, len(present_cases))
        paths = as_paths(files[case], regions.get(case, ()))
        try:
            segmentation, _ = read_side(paths, options, "prediction", one_of_many=True)
            problems += _content_problems(case, segmentation, replace(manifest, options=options))
        except (ProbdiceError, MemoryError, OSError) as error:
            text = error.in_command() if isinstance(error, ProbdiceError) else str(error)
            text = f"case {case}: {text.rstrip('.')}"
            fix = "Correct the file; probdice info FILE shows how it is read."
            problems.append(Problem("unreadable", "error", (case,), text, UNSCORED, fix))
    return SubmissionCheck(len(manifest.cases), len(present_cases), tuple(problems))


def _case_name_problems(
    folder: Path, files: Mapping[str, tuple[str, ...]], manifest: Manifest
) -> Iterator[Problem]:
    """Return the problems with missing and unknown cases."""
    missing = [case for case in manifest.cases if case not in files]
    extra = sorted(files.keys() - manifest.cases.keys(), key=natural)
    if missing:
        example = (manifest.pattern or "{case}.nii.gz").replace("{case:path}", "{case}")
        example = example.replace("{case}", missing[0])
        suffix_hint = "" if manifest.pattern else ", or the same name with another supported suffix"
        other_files = _other_files(folder, files)
        fix = f"Add one file per case, such as {example}{suffix_hint}."
        if other_files:
            fix += f" These files belong to no case: {listed(other_files)}."
        verb = "has" if len(missing) == 1 else "have"
        text = f"{len(missing)} of {len(manifest.cases)} cases {verb} no file ({listed(missing)})"
        yield Problem(
            "missing", "error", tuple(missing), text, "Missing cases cannot be scored.", fix
        )
    if extra:
        cases = "1 case is" if len(extra) == 1 else f"{len(extra)} cases are"
        text = f"{cases} not part of the challenge ({listed(extra)})"
        consequence = "The evaluation ignores these files."
        fix = "Remove the files, or rename them if they belong to missing cases."
        yield Problem("extra", "warning", tuple(extra), text, consequence, fix)


def _other_files(folder: Path, files: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the visible files of the folder that belong to no case."""
    case_files = {split_inside(path)[0].name for paths in files.values() for path in paths}
    names = [
        file.name for file in folder.iterdir() if file.is_file() and file.name not in case_files
    ]
    return sorted((name for name in names if not name.startswith(".")), key=natural)


def _content_problems(
    case: str, segmentation: Segmentation, manifest: Manifest
) -> Iterator[Problem]:
    """Yield the problems with the kind, grid, values and labels of one prediction."""
    kind = kind_of(segmentation)
    if kind not in manifest.kinds and not _may_be_probabilities(segmentation):
        expected = " or ".join(KINDS[accepted_kind] for accepted_kind in manifest.kinds)
        text = f"case {case}: the file contains {KINDS[kind]}, expected {expected}"
        fix = f"Store {expected}."
        yield Problem("kind", "error", (case,), text, "This kind of file is not accepted.", fix)
    grid = manifest.cases[case]
    try:
        images = images_of(grid.blank(), segmentation, manifest.options)
        images.check_field_of_view()
    except InputError as error:
        yield _grid_problem(case, segmentation, grid, error)
        return
    try:
        regions = images.overlap(Absolute()).prediction
    except InvalidValues as error:
        text, fix = f"case {case}: {error.problem}", VALUE_FIXES[error.kind]
        yield Problem("values", "error", (case,), text, UNSCORED, fix)
        return
    yield from _label_problems(case, images, regions, manifest)


def _may_be_probabilities(segmentation: Segmentation) -> bool:
    """Return whether the values of a label map may be probabilities of one region (all 0 or 1)."""
    array = segmentation.array
    return segmentation.crisp and array.dtype.kind == "f" and beyond_one(array) is None


def _grid_problem(
    case: str, segmentation: Segmentation, grid: RequiredGrid, error: InputError
) -> Problem:
    """Describe how the grid of a file differs from the grid of its case."""
    expected, geometry = grid.geometry, segmentation.geometry
    if expected is not None and geometry is not None:
        _, _, distance = geometry.steps_onto(expected)
        reason = geometry.mismatch(expected)
        reason = f"{geometry.obstacle(expected, distance)}{f' ({reason})' if reason else ''}"
    elif expected is None and geometry is None:
        reason = f"shape {segmentation.shape}, expected {grid.shape}"
    elif geometry is None:
        reason = "the file lacks the spacing, origin and direction of the case"
    else:
        reason = "the file has spacing, origin and direction, but the case has none"
    if isinstance(error, GeometryError) and expected is not None and expected.on_grid:
        fix = "Resample the segmentation onto the grid of the image, and copy the image header."
    else:
        fix = "Store the prediction with the shape and in the file format of the image."
    text = f"case {case}: the file is not on the expected grid: {reason}"
    return Problem("grid", "error", (case,), text, UNSCORED, fix)


def _label_problems(
    case: str, images: SegmentationPair, regions: Regions, manifest: Manifest
) -> Iterator[Problem]:
    """Return the problems with labels, such as labels that no reference contains."""
    segmentation = images.prediction
    no_indices = np.zeros(0, np.int64)
    pairs = Pairs(no_indices, no_indices, np.zeros(0))
    _, known_indices = label_pairs(Overlap(Absolute(), 1, manifest.regions, regions, pairs))
    added_key = segmentation.array.shape[0] if segmentation.reading == "background" else None
    unknown_labels = [
        regions.label(k)
        for k in regions.occupied.tolist()
        if k not in known_indices and (added_key is None or int(regions.keys[k]) != added_key)
    ]
    if regions.crisp and (scan_warning := intensities(segmentation, regions.keys, regions.volumes)):
        fix = "Check that the file is a segmentation."
        text = f"case {case}: {scan_warning.rstrip('.')}"
        yield Problem("labels", "warning", (case,), text, "Every value is read as a region.", fix)
    if not unknown_labels:
        return
    verb = "label {} is" if len(unknown_labels) == 1 else "labels {} are"
    text = f"case {case}: {verb.format(listed(unknown_labels))}"
    allowed_labels = listed(manifest.regions.labels, 20)
    if manifest.strict_labels:
        yield Problem(
            *("labels", "error", (case,), f"{text} not allowed; expected {allowed_labels}"),
            *(
                "Labels that are not allowed match no reference region.",
                "Use the labels of the challenge.",
            ),
        )
    else:
        yield Problem(
            *(
                "labels",
                "warning",
                (case,),
                f"{text} in no reference; the references contain {allowed_labels}",
            ),
            "Labels need not agree, because regions are matched by overlap.",
            "If equal labels must mean the same region, use the labels of the challenge.",
        )
