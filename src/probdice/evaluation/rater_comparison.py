"""Compare the agreement between methods and raters with inter-rater agreement.

Every rater is the reference of an evaluation in which all methods and all other raters are
compared with this rater. Methods and raters are therefore in the same tables. For each case, a
method's agreement with the raters is the mean over the raters, and inter-rater agreement is the
mean over all pairs of raters. A method is compared with inter-rater agreement on the cases for
which both values exist.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from probdice.comparison.from_files import read_side
from probdice.data.machine import is_file_name
from probdice.data.segmentation import Segmentation
from probdice.errors import InputError, Note, Option, ProbdiceError
from probdice.evaluation.case_scoring import as_paths, message_of
from probdice.evaluation.intervals import Interval
from probdice.evaluation.journal import replace_file
from probdice.evaluation.patterns import SPANNING
from probdice.evaluation.record import Record
from probdice.evaluation.statistics import Aggregate, Summary, summarise
from probdice.files import read_mask, write_file
from probdice.options import CompareOptions
from probdice.raters.consensus_result import consensus_of
from probdice.raters.panel import panel_of
from probdice.text.formatting import decimal, quantity
from probdice.version import __version__

if TYPE_CHECKING:
    from probdice.evaluation.results import Evaluation

__all__ = [
    "CONSENSUS",
    "RaterComparison",
    "Standing",
    "check_raters",
    "rater_comparison_of",
    "write_consensus",
]

CONSENSUS = "consensus"  # folder of the raters' means; reserved name
SUFFIX = ".npz"  # files in this format store numbers, names and geometry
DIGITS = 3


@dataclass(frozen=True)
class RaterFile:
    """A file of a rater.

    Attributes
    ----------
    rater : str
        Name of the rater.
    case : str
        Name of the case.
    file : str
        The full path of the file.
    bytes : int or None
        The size of the file in bytes; None if the file could not be read.
    sha256 : str or None
        The SHA-256 of the file; None if the file could not be read.
    """

    rater: str
    case: str
    file: str
    bytes: int | None
    sha256: str | None


@dataclass(frozen=True)
class Standing:
    """The agreement of a method with the raters, compared with inter-rater agreement, as text.

    Attributes
    ----------
    level : {"below", "at", "above"} or None
        Where the method is relative to the 95 % CI of inter-rater agreement; None without a
        confidence interval.
    result : str
        The level, the measure and the number of cases.
    value : str
        The agreement of the method with the raters; "" if no case has inter-rater agreement.
    baseline : str
        Inter-rater agreement with its 95 % CI; "" if no case has inter-rater agreement.
    """

    level: Literal["below", "at", "above"] | None
    result: str
    value: str = ""
    baseline: str = ""

    def __str__(self) -> str:
        return f"{self.result}: {self.value} vs {self.baseline}" if self.value else self.result


@dataclass(frozen=True)
class RaterComparison:
    """Agreement between methods and raters, and inter-rater agreement.

    If a value of any method or rater is infinite, all values are summarised by the median.

    Attributes
    ----------
    measure : str
        The measure of agreement.
    raters : dict of str to str
        The folder of every rater.
    inter_rater : Summary
        Inter-rater agreement over all cases for which it exists.
    methods : dict of str to Summary
        Each method's agreement with the raters, over the cases that have inter-rater agreement.
    baselines : dict of str to Summary
        Inter-rater agreement over the cases of each method in `methods`.
    means : dict of str to dict of str to float
        The mean or median of the measure for every method or rater (first key) against every other
        rater (second key).
    cases : dict of str to tuple of str
        The cases of every rater.
    files : tuple of RaterFile
        The files of the raters that were read as references.
    excluded_cases : dict of str to Note
        Cases that are excluded because no consensus of the raters could be computed, each with the
        reason, such as an unreadable file or images on different grids.
    reference_is_mean : bool
        Whether the mean of the raters is the reference of the evaluation.
    title : str
        The title of the measure.
    higher_is_better : bool
        Whether higher values of the measure mean better agreement.
    notes : tuple of Note
        Notes about reading the files of the raters.
    """

    measure: str
    raters: dict[str, str]
    inter_rater: Summary
    methods: dict[str, Summary]
    baselines: dict[str, Summary]
    means: dict[str, dict[str, float]]
    cases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    files: tuple[RaterFile, ...] = ()
    excluded_cases: dict[str, Note] = field(default_factory=dict)
    reference_is_mean: bool = False
    title: str = "score"
    higher_is_better: bool = True
    notes: tuple[Note, ...] = ()

    def standing(self, method: str) -> Standing:
        """Compare the agreement of a method with inter-rater agreement."""
        method_summary, baseline = self.methods[method], self.baselines[method]
        if not baseline.n:
            return Standing(None, "no case to compare with inter-rater agreement")
        count_text = f"{method_summary.n} of " if method_summary.n < self.inter_rater.n else ""
        cases = f"on {count_text}{quantity(self.inter_rater.n, 'case')}"
        measure_text = "" if self.measure == "score" else f" ({self.title})"
        agreement = f"inter-rater agreement{measure_text} {cases}"
        value, mean = (decimal(one.value, DIGITS) for one in (method_summary, baseline))
        if baseline.interval.kind == "withheld":
            no_interval = f"no confidence interval: {baseline.interval.reason}"
            return Standing(None, f"compared with {agreement}", value, f"{mean} ({no_interval})")
        low, high = baseline.interval.low, baseline.interval.high
        level: Literal["below", "at", "above"] = "at"
        if method_summary.value < low:
            level = "below" if self.higher_is_better else "above"
        elif method_summary.value > high:
            level = "above" if self.higher_is_better else "below"
        interval = f"95 % CI {decimal(low, DIGITS)}–{decimal(high, DIGITS)}"
        return Standing(level, f"{level} {agreement}", value, f"{mean} ({interval})")

    def sentence(self, method: str) -> str:
        """Return text that compares the agreement of a method with inter-rater agreement."""
        return str(self.standing(method))

    def with_paths(self, path_of: Callable[[str], str]) -> "RaterComparison":
        """Return the comparison with `path_of` applied to the paths of all folders and files."""
        raters = {name: path_of(path) for name, path in self.raters.items()}
        files = tuple(replace(file, file=path_of(file.file)) for file in self.files)
        return replace(self, raters=raters, files=files)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as built-in Python types, with the `sentence` of every method."""
        return {
            **asdict(replace(self, excluded_cases={}, notes=())),
            "excluded_cases": {case: note.to_dict() for case, note in self.excluded_cases.items()},
            "notes": [note.to_dict() for note in self.notes],
            "sentences": {name: self.sentence(name) for name in self.methods},
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "RaterComparison":
        """Restore a comparison from the result of `to_dict`."""
        return cls(
            content["measure"],
            dict(content["raters"]),
            _summary(content["inter_rater"]),
            {name: _summary(entry) for name, entry in content["methods"].items()},
            {name: _summary(entry) for name, entry in content["baselines"].items()},
            {name: _numbers(row) for name, row in content["means"].items()},
            {name: tuple(cases) for name, cases in content["cases"].items()},
            tuple(RaterFile(**file) for file in content["files"]),
            {case: Note.from_dict(entry) for case, entry in content["excluded_cases"].items()},
            content["reference_is_mean"],
            content["title"],
            content["higher_is_better"],
            tuple(Note.from_dict(entry) for entry in content.get("notes", ())),
        )


def check_raters(raters: Mapping[str, str], methods: Iterable[str]) -> None:
    """Reject a single rater, and names that are ambiguous, reserved or invalid as folder names."""
    if len(raters) < 2:
        raise InputError(f"raters: expected at least two, found {len(raters)}")
    for name in raters:
        if name in methods or name in ("reference", "prediction", "mask", CONSENSUS):
            raise InputError(
                f"raters: {name!r} is the name of a method or a reserved name; rename this rater"
            )
        if not is_file_name(name) or name.startswith("."):
            raise InputError(
                f"raters: {name!r} is not a valid folder name on all systems; rename this rater"
            )
    folders: dict[str, str] = {}
    for name in raters:
        other = folders.setdefault(name.casefold(), name)
        if other != name:
            raise InputError(
                f"raters: {other!r} and {name!r} differ only in upper and lower case letters and "
                f"would share a folder on macOS and Windows; rename one of them"
            )


def rater_comparison_of(
    evaluations: Mapping[str, "Evaluation"],
    methods: Iterable[str],
    raters: Mapping[str, str],
    measure: str,
    excluded_cases: Mapping[str, Note],
    *,
    reference_is_mean: bool,
    notes: tuple[Note, ...],
) -> RaterComparison:
    """Compute the comparison from the evaluations with each rater as reference."""
    values: dict[str, dict[str, dict[str, float]]] = {}  # by method or rater, reference rater, case
    for rater, evaluation in evaluations.items():
        for name, by_case in evaluation.values(measure).items():
            values.setdefault(name, {})[rater] = {
                case: value
                for case, value in zip(evaluation.cases, by_case.tolist(), strict=True)
                if case not in excluded_cases and not np.isnan(value)
            }

    methods = list(methods)
    first_evaluation = next(iter(evaluations.values()))
    subjects: dict[str, str] = {}
    for evaluation in evaluations.values():
        subjects |= evaluation.subjects or {}

    rater_means = _mean_by_case(values, raters)
    method_means = {name: _mean_by_case(values, [name]) for name in methods}
    case_means = [rater_means, *method_means.values()]
    infinite = any(np.isinf(value) for by_case in case_means for value in by_case.values())
    aggregate: Aggregate = "median" if infinite else "mean"

    def summary_over_cases(by_case: Mapping[str, float]) -> Summary:
        owners = [subjects[case] for case in by_case] if subjects else None
        return summarise(list(by_case.values()), subjects=owners, aggregate=aggregate)

    rated_means = {
        name: {case: value for case, value in method_means[name].items() if case in rater_means}
        for name in methods
    }
    return RaterComparison(
        measure,
        dict(raters),
        summary_over_cases(rater_means),
        {name: summary_over_cases(rated_means[name]) for name in methods},
        {
            name: summary_over_cases({case: rater_means[case] for case in rated_means[name]})
            for name in methods
        },
        {
            name: {rater: _centre(by_case.values(), aggregate) for rater, by_case in rows.items()}
            for name, rows in ((name, values[name]) for name in (*methods, *raters))
        },
        {rater: evaluation.cases for rater, evaluation in evaluations.items()},
        tuple(_files(evaluations)),
        dict(excluded_cases),
        reference_is_mean,
        first_evaluation.title(measure),
        first_evaluation.higher_is_better(measure),
        notes,
    )


def _mean_by_case(
    values: Mapping[str, Mapping[str, Mapping[str, float]]], names: Collection[str]
) -> dict[str, float]:
    """Return one mean per case, over all comparisons of the given methods or raters."""
    by_case: dict[str, list[float]] = {}
    for name in names:
        for cases in values.get(name, {}).values():
            for case, value in cases.items():
                by_case.setdefault(case, []).append(value)
    return {case: float(np.mean(case_values)) for case, case_values in by_case.items()}


def _files(evaluations: Mapping[str, "Evaluation"]) -> Iterator[RaterFile]:
    """Yield every file of the raters that was read as a reference, sorted by rater."""
    for rater, evaluation in evaluations.items():
        files: dict[str, RaterFile] = {}
        for record in evaluation.records:
            for file, size, content in record.files_of("reference"):
                if file not in files or files[file].sha256 is None:
                    files[file] = RaterFile(rater, record.case, file, size, content)
        yield from files.values()


def write_consensus(
    evaluations: Mapping[str, "Evaluation"], options: CompareOptions, out: Path, workers: int
) -> tuple[str | None, dict[str, Note]]:
    """Write the mean of the raters for every case that at least two raters segmented.

    `out` must be locked. The files are written to a subfolder of `out`. A file is not written again
    if the options and the files of the raters are unchanged. Return the pattern of the files if
    case names contain folders, and the reason for every consensus that could not be computed.
    """
    records_by_case: dict[str, dict[str, Record]] = {}
    for rater, evaluation in evaluations.items():
        for record in evaluation.records:
            records_by_case.setdefault(record.case, {})[rater] = record
    settings = {"raters": sorted(evaluations), "options": options.to_dict(), "version": __version__}
    settings_file = out / f"{CONSENSUS}.json"
    sources = {
        case: {
            rater: [*record.inputs["reference"], *record.inputs["mask"]]
            for rater, record in by_rater.items()
        }
        for case, by_rater in records_by_case.items()
    }
    recorded_sources = _recorded_sources(settings_file, settings)
    settings_file.unlink(missing_ok=True)  # an interrupted run may leave a consensus of other files
    failures: dict[str, Note] = {}
    (out / CONSENSUS).mkdir(parents=True, exist_ok=True)
    for case, by_rater in records_by_case.items():
        if len(by_rater) < 2:
            continue
        target = out / CONSENSUS / f"{case}{SUFFIX}"
        if target.exists() and recorded_sources.get(case) == sources[case]:
            continue
        try:
            mean = _mean_segmentation(by_rater, options, workers)
            target.parent.mkdir(parents=True, exist_ok=True)
            write_file(str(target), mean, has_lock=True)
        except (ProbdiceError, MemoryError) as error:
            failures[case] = Note("failed", ("no consensus of the raters: ", *message_of(error)))
            del sources[case]
    replace_file(settings_file, json.dumps(settings | {"sources": sources}).encode())
    has_folders = any("/" in case for case in records_by_case)
    return f"{SPANNING}{SUFFIX}" if has_folders else None, failures


def _recorded_sources(settings_file: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rater files of every consensus that an earlier run wrote with these settings."""
    try:
        content = json.loads(settings_file.read_text(encoding="utf-8"))
        sources: dict[str, Any] = content.pop("sources")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # no file, or invalid
        return {}
    return sources if content == json.loads(json.dumps(settings)) else {}


def _mean_segmentation(
    by_rater: Mapping[str, Record], options: CompareOptions, workers: int
) -> Segmentation:
    """Return the mean of the raters of one case. Their files are read as references.

    Regions are matched inside the mask of the case.
    """
    if options.ignore:
        raise InputError(
            Option("ignore", options.ignore[0]),
            " applies to label maps, but the consensus of raters contains probabilities. To select "
            "pixels, use ",
            Option("mask", "DIR", python="mask=…"),
            ", or evaluate against label maps that probdice consensus --labels wrote.",
        )
    sides = {}
    for rater, record in by_rater.items():
        paths = as_paths(record.reference, record.regions.get("reference", ()))
        side, _ = read_side(paths, options, "reference", one_of_many=True)
        sides[rater] = side.without_geometry() if options.ignore_geometry else side
    paths = as_paths(next(iter(by_rater.values())).mask)
    mask = read_mask(paths, max_bytes=options.max_bytes) if paths else None
    if mask is not None and options.ignore_geometry:
        mask = mask.without_geometry()
    background = options.background
    panel = panel_of(
        sides,
        match="labels" if options.match == "labels" else "overlap",
        mask=mask,
        workers=workers,
        tolerance=options.geometry_tolerance,
        background=None if background is None else background.reference,
        resample=options.resample,
    )
    return consensus_of(panel, "mean", None).segmentation


def _centre(values: Collection[float], aggregate: Aggregate) -> float:
    """Return the mean or the median of values, or NaN if there are none."""
    centre = np.mean if aggregate == "mean" else np.median
    return float(centre(list(values))) if values else float("nan")


def _summary(content: Mapping[str, Any]) -> Summary:
    return Summary(**{**_numbers(content), "interval": Interval(**_numbers(content["interval"]))})


def _numbers(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy with NaN in place of None, which represents NaN in JSON data."""
    return {name: float("nan") if value is None else value for name, value in content.items()}
