"""Several raters beside methods: what they reach among themselves is what methods are held to.

Every rater is the reference of an evaluation in which all methods and all other raters are
compared with it, so that methods and raters stand in the same tables. Per case, a method's
agreement with the raters is its mean over them, and the raters' agreement among themselves the mean
over all pairs of them.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from probdice.errors import InputError, ProbdiceError
from probdice.evaluation.patterns import SPANNING
from probdice.evaluation.record import NAMES, Measure
from probdice.files import write
from probdice.files.sides import read_side
from probdice.files.sources import split_inside
from probdice.formatting import decimal
from probdice.options import Options
from probdice.raters import RaterMatch, consensus
from probdice.segmentation import Segmentation
from probdice.statistics import Interval, Summary, summarise
from probdice.version import __version__

if TYPE_CHECKING:
    from probdice.evaluation.results import Evaluation

__all__ = ["CONSENSUS", "Yardstick", "check_raters", "write_consensus", "yardstick_of"]

CONSENSUS = "consensus"  # the folder of the raters' means, and a name that no rater may have
SUFFIX = ".npz"  # which holds numbers, names and geometry, compressed
FORMER = (".nii.gz", ".npy")  # of an older version, whose files have no labels
DIGITS = 3


@dataclass(frozen=True)
class Yardstick:
    """How methods agree with the raters, and the raters with each other.

    Attributes
    ----------
    measure : str
        By which.
    raters : dict of str to str
        The folder of every rater.
    among : Summary
        The raters' agreement among themselves, over the cases.
    methods : dict of str to Summary
        Each method's agreement with the raters, over the cases.
    means : dict of str to dict of str to float
        The mean of every method and rater (first) against every rater (second).
    """

    measure: Measure
    raters: dict[str, str]
    among: Summary
    methods: dict[str, Summary]
    means: dict[str, dict[str, float]]

    def sentence(self, method: str) -> str:
        """How a method compares with the raters."""
        own, among = self.methods[method], self.among
        against = f"{decimal(own.mean, DIGITS)} against {decimal(among.mean, DIGITS)}"
        by = "" if self.measure == "score" else f" by {NAMES[self.measure]}"
        if among.interval.kind == "withheld":
            return (
                f"agrees with the raters{by} to {decimal(own.mean, DIGITS)}, and they among "
                f"themselves to {decimal(among.mean, DIGITS)} ({among.interval.reason}, too few "
                f"to say more)"
            )
        low, high = among.interval.low, among.interval.high
        how = "as well as"
        if own.mean < low:
            how = "less well than"
        elif own.mean > high:
            how = "better than"
        interval = f"[{decimal(low, DIGITS)}, {decimal(high, DIGITS)}]"
        return f"agrees with the raters{by} {how} they agree among themselves: {against} {interval}"

    def to_dict(self) -> dict[str, Any]:
        """Plain types."""
        return {
            "measure": self.measure,
            "raters": self.raters,
            "among": asdict(self.among),
            "methods": {name: asdict(one) for name, one in self.methods.items()},
            "means": self.means,
            "sentences": {name: self.sentence(name) for name in self.methods},
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Yardstick":
        """Back from plain types."""
        return cls(
            content["measure"],
            dict(content["raters"]),
            _summary(content["among"]),
            {name: _summary(one) for name, one in content["methods"].items()},
            {name: _numbers(row) for name, row in content["means"].items()},
        )


def check_raters(raters: Mapping[str, str], methods: Iterable[str]) -> None:
    """Refuse names that could not be told apart, and a single rater."""
    if len(raters) < 2:
        raise InputError(f"raters must be at least two, found {len(raters)}")
    for name in raters:
        if name in methods or name in ("reference", "prediction", "mask", CONSENSUS):
            raise InputError(f"raters must have names of their own, found {name!r}")
        if not name or os.sep in name or "/" in name or name.startswith("."):
            raise InputError(f"raters must have names that a folder can have, found {name!r}")


def yardstick_of(
    evaluations: Mapping[str, "Evaluation"],
    methods: Iterable[str],
    raters: Mapping[str, str],
    measure: Measure,
) -> Yardstick:
    """From the evaluations that have each rater as their reference."""
    values: dict[str, dict[str, dict[str, float]]] = {}  # who, against whom, case
    for rater, evaluation in evaluations.items():
        for name, found in evaluation.values(measure).items():
            cases = dict(zip(evaluation.cases, found.tolist(), strict=True))
            values.setdefault(name, {})[rater] = cases

    def over_cases(names: Iterable[str]) -> Summary:
        by_case: dict[str, list[float]] = {}
        for name in names:
            for cases in values.get(name, {}).values():
                for case, value in cases.items():
                    if not np.isnan(value):
                        by_case.setdefault(case, []).append(value)
        return summarise([float(np.mean(several)) for several in by_case.values()])

    methods = list(methods)
    means = {
        name: {rater: _mean(cases.values()) for rater, cases in values[name].items()}
        for name in (*methods, *raters)
    }
    return Yardstick(
        measure,
        dict(raters),
        over_cases(raters),
        {name: over_cases([name]) for name in methods},
        means,
    )


def write_consensus(
    evaluations: Mapping[str, "Evaluation"], options: Options, out: Path, workers: int
) -> str | None:
    """Write the mean of the raters of every case that at least two of them have.

    It goes into a folder of `out`. What is newer than all it was made of stays, so that a run that
    was interrupted goes on. Returns the pattern of the files where cases have folders in them.
    """
    files: dict[str, dict[str, tuple[str, ...]]] = {}
    for rater, evaluation in evaluations.items():
        for record in evaluation.records:
            files.setdefault(record.case, {})[rater] = record.reference
    made = {"raters": sorted(evaluations), "options": options.to_dict(), "version": __version__}
    note, same = out / f"{CONSENSUS}.json", False
    if note.exists():
        same = note.read_text(encoding="utf-8") == json.dumps(made)
    for case, by_rater in files.items():
        if len(by_rater) < 2:
            continue
        sources = [split_inside(file)[0] for paths in by_rater.values() for file in paths]
        target = out / CONSENSUS / f"{case}{SUFFIX}"
        if same and _newer(target, sources):
            continue
        try:
            mean = _mean_of(by_rater, options, workers)
            target.parent.mkdir(parents=True, exist_ok=True)
            write(target, mean)
            for suffix in FORMER:
                target.with_name(f"{target.name.removesuffix(SUFFIX)}{suffix}").unlink(
                    missing_ok=True
                )
        except ProbdiceError as error:
            raise error.prefixed(f"{case}: the raters have no consensus: ") from None
    note.write_text(json.dumps(made), encoding="utf-8")
    return f"{SPANNING}{SUFFIX}" if any("/" in case for case in files) else None


def _mean_of(
    by_rater: Mapping[str, tuple[str, ...]], options: Options, workers: int
) -> Segmentation:
    """The mean of the raters of one case, read as a reference is."""
    sides = {}
    for rater, paths in by_rater.items():
        side, _ = read_side(paths[0] if len(paths) == 1 else paths, options, "reference")
        sides[rater] = side.without_geometry() if options.ignore_geometry else side
    match: RaterMatch = "labels" if options.match == "labels" else "overlap"
    return consensus(sides, match=match, workers=workers).segmentation


def _newer(file: Path, sources: Iterable[Path]) -> bool:
    if not file.exists():
        return False
    written = file.stat().st_mtime_ns
    return all(source.exists() and source.stat().st_mtime_ns <= written for source in sources)


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def _summary(content: Mapping[str, Any]) -> Summary:
    return Summary(**{**_numbers(content), "interval": Interval(**_numbers(content["interval"]))})


def _numbers(content: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers as they were: JSON has null where there is none."""
    return {name: float("nan") if value is None else value for name, value in content.items()}
