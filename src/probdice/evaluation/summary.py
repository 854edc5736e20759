"""The content of summary.json: the options and statistics of an evaluation."""

import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probdice.errors import InputError, Message, Note, in_words
from probdice.evaluation.folders import Folder, relative_path
from probdice.evaluation.journal import read_lines
from probdice.evaluation.paired_test import CORRECTION, TEST
from probdice.evaluation.publishing import ALL_MEASURES
from probdice.evaluation.ranking import Rank, kendall
from probdice.evaluation.statistics import Summary
from probdice.files.atomic_files import null_for_nan
from probdice.metrics.component_measures import stratum_rows
from probdice.options import SCHEMES, CompareOptions
from probdice.text.formatting import quantity
from probdice.version import __version__

if TYPE_CHECKING:
    from probdice.evaluation.results import Evaluation

__all__ = [
    "FORMAT_VERSION",
    "as_json",
    "invalid_summary",
    "read_summary",
    "summary_of",
    "with_relative_paths",
]

FORMAT_VERSION = 6  # of summary.json
PACKAGES = ("numpy", "scipy", "numba", "nibabel")  # packages whose versions are recorded
KEYS: dict[str, type] = {  # required keys and their types, in addition to the format
    "options": dict,
    "words": str,
    "versions": dict,
    "environment": dict,
    "reference": str,
    "methods": dict,
    "patterns": dict,
    "probabilities": bool,
    "missing_rule": str,
    "rank_by": list,
    "scheme": str,
    "titles": dict,
    "test": str,
    "correction": str,
    "external_columns": list,
    "jobs": list,
    "others": dict,
    "counts": list,
    "missing": list,
    "correspondences": dict,
    "failures": list,
    "labels": dict,
    "remarks": dict,
    "notes": list,
    "ranking": dict,
    "measures": dict,
    "regions": list,
    "derived": list,
    "components": list,
}
INFINITE = "\x00inf"  # cannot occur in a name


def summary_of(evaluation: "Evaluation") -> dict[str, Any]:
    """Return the content of summary.json as built-in Python types, with None instead of NaN."""

    def relative(path: str) -> str:
        return relative_path(path, evaluation.out or Path())

    content = {
        "format": FORMAT_VERSION,
        **_run(evaluation, relative),
        **_cases(evaluation),
        "subjects": evaluation.subjects,
        "rater_comparison": _rater_comparison(evaluation, relative),
        "labels": {
            "agree": evaluation.labels_agree,
            "differing": [
                asdict(difference) for difference in evaluation.label_differences.values()
            ],
        },
        "remarks": {name: list(texts) for name, texts in evaluation.remarks.items()},
        "notes": [with_relative_paths(evaluation, note.message) for note in evaluation.notes],
        "titles": {measure: evaluation.title(measure) for measure in evaluation.measures},
        "ranking": _ranking(evaluation),
        "measures": {
            measure: _measure_statistics(evaluation, measure) for measure in evaluation.measures
        },
        "regions": _by_label(evaluation.regions() if evaluation.labels_agree else {}),
        "components": _components(evaluation),
        "derived": _by_label(evaluation.derived_regions()),
    }
    json_content: dict[str, Any] = null_for_nan(content)
    return json_content


def _run(evaluation: "Evaluation", relative: Callable[[str], str]) -> dict[str, Any]:
    """Return options, versions and folders, which are known before the run."""
    return {
        "options": with_names(evaluation.options, relative).to_dict(),
        "words": evaluation.words,
        "versions": {"probdice": __version__, **{name: _version(name) for name in PACKAGES}},
        "environment": {
            "python": platform.python_version(),
            "system": platform.system(),
            "machine": platform.machine(),
        },
        "reference": relative(evaluation.reference),
        "methods": {name: relative(folder) for name, folder in evaluation.methods.items()},
        "mask": None if evaluation.mask is None else relative(evaluation.mask),
        "image": None if evaluation.image is None else relative(evaluation.image),
        "surface": [relative(path) for path in evaluation.surface],
        "raters": list(evaluation.raters),
        "patterns": asdict(evaluation.patterns),
        "image_channels": {name: list(files) for name, files in evaluation.image_channels.items()},
        "probabilities": evaluation.probabilities,
        **evaluation.statistics.to_summary(),
        "test": TEST,
        "correction": CORRECTION,
        "others": asdict(evaluation.others),
        "external_columns": [
            asdict(replace(column, file=relative(column.file)))
            for column in evaluation.external_columns
        ],
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _cases(evaluation: "Evaluation") -> dict[str, Any]:
    """Return the cases of every method, and correspondences that apply to all cases."""
    return {
        "jobs": [[record.case, record.method] for record in evaluation.records],
        "counts": [{"method": name, **asdict(entry)} for name, entry in evaluation.counts.items()],
        "missing": [asdict(entry) for entry in evaluation.missing],
        "failures": [
            {
                "case": record.case,
                "method": record.method,
                "error": with_relative_paths(evaluation, record.failure.message),
            }
            for record in evaluation.records
            if record.failure is not None
        ],
        "correspondences": {
            method: [[list(labels) for labels in group] for group in correspondence.groups]
            for method, correspondence in evaluation.correspondences.items()
        },
    }


def _by_label(summaries: Mapping[Any, Summary]) -> list[dict[str, Any]]:
    return [
        {"method": method, "label": label, **asdict(summary)}
        for (method, label), summary in summaries.items()
    ]


def _components(evaluation: "Evaluation") -> list[dict[str, Any]]:
    """Return the measures of component detection per method, class and size range."""
    extra_columns = evaluation.others
    if not extra_columns.components:
        return []
    return [
        {"method": method, **row}
        for method in evaluation.methods
        for row in stratum_rows(
            evaluation.comparisons(method),
            extra_columns.component_threshold,
            extra_columns.component_classes,
            extra_columns.strata,
        )
    ]


def as_json(summary: Mapping[str, Any]) -> str:
    """Return the text of summary.json.

    JSON has no infinity, so infinite numbers are written as 1e999, which Python parses as infinite.

    Examples
    --------
    >>> import json
    >>> from probdice.evaluation.summary import as_json
    >>> json.loads(as_json({"mean": float("inf"), "low": float("-inf")}))
    {'mean': inf, 'low': -inf}
    """
    marked_summary = _with_infinite_marked(dict(summary))
    text = json.dumps(marked_summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    for sign in ("", "-"):
        text = text.replace(json.dumps(sign + INFINITE), f"{sign}1e999")
    return text


def read_summary(out: Folder) -> dict[str, Any]:
    """Read summary.json of a finished run."""
    out = Path(out)
    path = out / "summary.json"
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        scored_cases = sum("comparison" in line for line in read_lines(out))
        hint = (
            f"the run in this folder is not finished (its journal has "
            f"{quantity(scored_cases, 'comparison')}); run the same command again to continue"
            if scored_cases
            else "expected a results folder written by evaluate"
        )
        raise InputError(f"{path}: no such file; {hint}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT_VERSION:
        version = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise InputError(
            f"{path}: expected summary format {FORMAT_VERSION}, found {version}. The file was not "
            f"written by this version of probdice. Run the evaluation again with this output "
            f"folder."
        )
    if not all(isinstance(content.get(key), kind) for key, kind in KEYS.items()):
        raise InputError(invalid_summary(path))
    return content


def invalid_summary(path: Path) -> str:
    """Return the message about a summary that cannot be used."""
    return f"{path}: not a valid summary. Run the evaluation again with this output folder."


def with_relative_paths(evaluation: "Evaluation", message: Message) -> str:
    """Return a message with paths relative to the results folder."""
    text = in_words(message, evaluation.words)
    rater_comparison = evaluation.rater_comparison
    raters = () if rater_comparison is None else rater_comparison.raters.values()
    mask = [evaluation.mask] if evaluation.mask else []
    for folder in (evaluation.reference, *evaluation.methods.values(), *mask, *raters):
        for spelling in {str(Path(folder)), os.path.abspath(folder)}:
            if os.path.isabs(spelling):
                text = text.replace(spelling, relative_path(folder, evaluation.out or Path()))
    return text


def with_names(options: CompareOptions, path_of: Callable[[str], str]) -> CompareOptions:
    """Return the options with `path_of` applied to the paths of the tables of names."""
    return replace(
        options,
        names=options.names.map(lambda names: path_of(names) if isinstance(names, str) else names),
    )


def _measure_statistics(evaluation: "Evaluation", measure: str) -> dict[str, Any]:
    """Return the statistics, ranks and differences of the methods for one measure."""
    worst_cases, values = evaluation.worst(measure), evaluation.values(measure)
    equal_labels = evaluation.equal_labels_means(measure)
    case_indices = {case: k for k, case in enumerate(evaluation.cases)}
    return {
        "higher_is_better": evaluation.higher_is_better(measure),
        "methods": [
            {
                "method": name,
                **asdict(summary),
                "equal_labels": equal_labels.get(name),
                "worst": [
                    [case, float(values[name][case_indices[case]])] for case in worst_cases[name]
                ],
            }
            for name, summary in evaluation.summaries(measure).items()
        ],
        "differences": [asdict(pair) for pair in evaluation.differences(measure)],
        "ranks": [asdict(rank) for rank in evaluation.ranks(measure)],
    }


def _ranking(evaluation: "Evaluation") -> dict[str, Any]:
    """Return the ranking, the rankings by all schemes, and the agreement between rankings."""
    schemes = {scheme: evaluation.ranks(scheme=scheme) for scheme in SCHEMES}
    ranks = schemes[evaluation.scheme]
    by_measure = {measure: evaluation.ranks(measure) for measure in evaluation.rank_by}
    if len(by_measure) > 1:
        by_measure = {ALL_MEASURES: ranks, **by_measure}
    return {
        "ranks": [asdict(rank) for rank in ranks],
        "differences": [asdict(pair) for pair in evaluation.joint_differences()],
        "schemes": {
            name: [asdict(rank) for rank in scheme_ranks] for name, scheme_ranks in schemes.items()
        },
        "scheme_agreement": _agreement(schemes),
        "measure_agreement": _agreement(by_measure),
    }


def _agreement(rankings: Mapping[Any, tuple[Rank, ...]]) -> list[dict[str, Any]]:
    """Return Kendall's τ of every pair of rankings."""
    names = list(rankings)
    return [
        {"first": first, "second": second, "tau": kendall(rankings[first], rankings[second])}
        for k, first in enumerate(names)
        for second in names[k + 1 :]
    ]


def _rater_comparison(
    evaluation: "Evaluation", relative: Callable[[str], str]
) -> dict[str, Any] | None:
    rater_comparison = evaluation.rater_comparison
    if rater_comparison is None:
        return None
    excluded_cases = {
        case: Note(note.kind, (with_relative_paths(evaluation, note.message),))
        for case, note in rater_comparison.excluded_cases.items()
    }
    return replace(rater_comparison.with_paths(relative), excluded_cases=excluded_cases).to_dict()


def _with_infinite_marked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_infinite_marked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_infinite_marked(item) for item in value]
    if isinstance(value, float) and isinf(value):
        return INFINITE if value > 0 else f"-{INFINITE}"
    return value
