"""The result of an evaluation: records in, statistics and files out."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.atomic_files import null_for_nan
from probdice.comparison import Comparison
from probdice.errors import InputError, Note, Words, as_words, in_words
from probdice.evaluation.again import compare_again
from probdice.evaluation.environment import environment
from probdice.evaluation.folders import Folder
from probdice.evaluation.journal import FORMAT, locked, read_lines, replace_file
from probdice.evaluation.pairing import Missing
from probdice.evaluation.record import MEASURES, Measure, Record
from probdice.evaluation.tables import (
    CASES,
    REGIONS,
    Others,
    Row,
    as_csv,
    as_frame,
    as_parquet,
    case_rows,
    region_rows,
)
from probdice.files.sources import natural
from probdice.formatting import decimal
from probdice.matching import Given
from probdice.options import Options, as_workers, given_from_list
from probdice.segmentation import Label
from probdice.statistics import Difference, Rank, Summary, differences, ranks, summarise

if TYPE_CHECKING:
    import pandas

__all__ = ["Evaluation", "read_summary"]

SUMMARY: dict[str, type] = {  # what summary.json holds, besides its format
    "options": dict,
    "words": str,
    "versions": dict,
    "environment": dict,
    "reference": str,
    "methods": dict,
    "jobs": list,
    "others": dict,
    "missing": list,
    "correspondences": dict,
    "failures": list,
    "notes": list,
    "measures": dict,
    "regions": list,
}
NO_OTHERS = Others()
PAGE = "report.html"  # in the folder of the results
WORST = 5  # cases that are named
SHOWN = 5  # failures in a printed result


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Cases of several methods, and what can be said of them.

    Attributes
    ----------
    records : tuple of Record
        Every case of every method that has both sides, the failed ones too.
    missing : tuple of Missing
        What had no partner.
    reference : str
        The folder of the reference.
    methods : dict of str to str
        The folder of every method.
    options : Options
        Everything that changes a score.
    words : {"python", "command"}
        How notes and errors in files and pages name the options that they recommend.
    out : Path or None
        Where the results lie.
    others : Others
        Which numbers of other fields the table of cases has too.
    correspondences : dict of str to Given
        The groups of every method, where all of its cases have one correspondence.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from probdice.evaluation import Evaluation, evaluate
    >>> folder = tempfile.TemporaryDirectory()
    >>> truth, mine, out = (os.path.join(folder.name, name) for name in ("truth", "mine", "out"))
    >>> os.mkdir(truth), os.mkdir(mine)
    (None, None)
    >>> np.save(os.path.join(truth, "a"), np.array([1, 1, 2, 2]))
    >>> np.save(os.path.join(mine, "a"), np.array([5, 5, 5, 8]))
    >>> result = evaluate(truth, {"mine": mine}, out=out)
    >>> sorted(os.listdir(out))
    ['.lock', 'cases.csv', 'cases.jsonl', 'regions.csv', 'summary.json']
    >>> Evaluation.load(out).values("score")
    {'mine': array([0.75])}
    >>> result.regions()["mine", 1].mean
    0.8
    >>> result.comparison("a").groups[1]
    Group(reference=(2,), prediction=(8,), dice=0.666667)
    >>> folder.cleanup()
    """

    records: tuple[Record, ...]
    missing: tuple[Missing, ...]
    reference: str
    methods: dict[str, str]
    options: Options
    words: Words = "python"
    out: Path | None = None
    others: Others = NO_OTHERS
    correspondences: dict[str, Given] = field(default_factory=dict)

    @classmethod
    def load(cls, out: Folder) -> "Evaluation":
        """Read back the folder of a finished run."""
        out = Path(out)
        content = read_summary(out)
        latest = {}
        version, asked = content["versions"].get("probdice"), content["options"]
        try:
            options = Options.from_dict(asked)
            found = {
                name: given_from_list(groups) for name, groups in content["correspondences"].items()
            }
            of_set = {name: options.given(groups).to_dict() for name, groups in found.items()}
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise InputError(_not_a_summary(out / "summary.json")) from error
        for line in read_lines(out):
            wanted = of_set.get(line["method"], asked)
            if (line["version"], line["options"]) == (version, wanted):
                with suppress(InputError):  # as if it had never been written
                    latest[line["case"], line["method"]] = Record.from_line(line)
        try:
            missing = tuple(Missing(**one) for one in content["missing"])
            jobs = [(case, method) for case, method in content["jobs"]]
            words = as_words(content["words"])
            others = Others(**content["others"])
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise InputError(_not_a_summary(out / "summary.json")) from error
        if absent := [job for job in jobs if job not in latest]:
            raise InputError(
                f"{out}: cases.jsonl has no line for {absent[0]}; evaluate into this folder again"
            )
        return cls(
            records=tuple(latest[job] for job in jobs),
            missing=missing,
            reference=content["reference"],
            methods=content["methods"],
            options=options,
            words=words,
            out=out,
            others=others,
            correspondences=found,
        )

    def options_of(self, method: str) -> Options:
        """The options by which the cases of a method were compared in the end."""
        found = self.correspondences.get(method)
        return self.options if found is None else self.options.given(found)

    @cached_property
    def cases(self) -> tuple[str, ...]:
        """The names of the cases, in their natural order."""
        return tuple(sorted({record.case for record in self.records}, key=natural))

    @property
    def failures(self) -> tuple[Record, ...]:
        """The cases that could not be scored."""
        return tuple(record for record in self.records if record.comparison is None)

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """What is worth knowing about the run as a whole."""
        absent = [
            [note for note in record.comparison.notes if note.kind == "ignore"]
            for record in self.records
            if record.comparison is not None
        ]
        return tuple(
            Note("ignore", (*note.message, " of any case"))
            for note in (absent[0] if absent else ())
            if all(note in others for others in absent)
        )

    def values(self, measure: Measure = "score") -> dict[str, NDArray[np.float64]]:
        """A measure of every method over `cases`; NaN where there is none."""
        if measure not in MEASURES:
            raise InputError(f"measure must be one of {', '.join(MEASURES)}, found {measure!r}")
        return self._over_cases(lambda record: record.value(measure))

    def summaries(self, measure: Measure = "score") -> dict[str, Summary]:
        """Mean, median, spread and interval of every method."""
        return {name: summarise(values) for name, values in self.values(measure).items()}

    def differences(self, measure: Measure = "score") -> tuple[Difference, ...]:
        """Every pair of methods on the cases they share."""
        return differences(self.values(measure))

    def ranks(self, measure: Measure = "score") -> tuple[Rank, ...]:
        """The methods from best to worst, on the cases that all share."""
        return ranks(self.values(measure))

    def worst(self, measure: Measure = "score", count: int = WORST) -> dict[str, list[str]]:
        """The cases with the lowest values of every method, the lowest first."""
        lowest = {}
        for name, values in self.values(measure).items():
            order = np.argsort(values, kind="stable")[: min(count, int(np.sum(~np.isnan(values))))]
            lowest[name] = [self.cases[k] for k in order]
        return lowest

    def regions(self) -> dict[tuple[str, Label], Summary]:
        """The Dice of every label of the reference, per method, over the cases that have it.

        A region that was merged has the Dice of its group, one without a partner has 0.
        """
        dice: dict[tuple[str, Label], list[float]] = {}
        for record in self.records:
            for group in record.comparison.groups if record.comparison else ():
                for label in group.reference:
                    dice.setdefault((record.method, label), []).append(group.dice)
        order = list(self.methods)
        keys = sorted(dice, key=lambda key: (order.index(key[0]), _label_order(key[1])))
        return {key: summarise(dice[key]) for key in keys}

    def comparison(self, case: str, method: str | None = None) -> Comparison:
        """The comparison of one case, without its images."""
        if method is None and len(self.methods) == 1:
            method = next(iter(self.methods))
        record = self._record(case, method)
        if record.comparison is None:
            raise InputError(f"case {case} of {method} failed: {record.error}")
        return record.comparison

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All of the above as plain types, NaN as None: what summary.json holds."""
        content = {
            "format": FORMAT,
            "options": self.options.to_dict(),
            "words": self.words,
            **environment(),
            "reference": self.reference,
            "methods": self.methods,
            "jobs": [[record.case, record.method] for record in self.records],
            "others": asdict(self.others),
            "missing": [asdict(one) for one in self.missing],
            "correspondences": {
                method: [[list(labels) for labels in group] for group in found.groups]
                for method, found in self.correspondences.items()
            },
            "failures": [
                {
                    "case": record.case,
                    "method": record.method,
                    "error": in_words(record.failure.message, self.words),
                }
                for record in self.records
                if record.failure is not None
            ],
            "notes": [in_words(note.message, self.words) for note in self.notes],
            "measures": {measure: self._measured(measure) for measure in MEASURES},
            "regions": [
                {"method": method, "label": label, **asdict(summary)}
                for (method, label), summary in self.regions().items()
            ],
        }
        plain: dict[str, Any] = null_for_nan(content)
        return plain

    def cases_frame(self) -> "pandas.DataFrame":
        """The content of cases.csv as a table of pandas."""
        return as_frame(self._case_rows(), self._case_columns)

    def regions_frame(self) -> "pandas.DataFrame":
        """The content of regions.csv as a table of pandas."""
        return as_frame(region_rows(self.records), REGIONS)

    def write(self, out: Folder, *, parquet: bool = False) -> None:
        """Write cases.csv, regions.csv and summary.json, each complete or not at all.

        Parameters
        ----------
        out : path
            An existing folder.
        parquet : bool, optional
            Whether to write cases.parquet and regions.parquet as well (needs pandas and pyarrow).
        """
        out = Path(out)
        replace_file(out / "cases.csv", as_csv(self._case_rows(), self._case_columns))
        replace_file(out / "regions.csv", as_csv(region_rows(self.records), REGIONS))
        if parquet:
            replace_file(out / "cases.parquet", as_parquet(self.cases_frame()))
            replace_file(out / "regions.parquet", as_parquet(self.regions_frame()))
        text = json.dumps(self.summary, indent=1, ensure_ascii=False, allow_nan=False)
        # A name that is no text holds lone surrogates; their escapes are JSON and read back.
        replace_file(out / "summary.json", f"{text}\n".encode(errors="backslashreplace"))

    def report(
        self,
        path: Folder | None = None,
        *,
        reports: str = "worst:5",
        workers: int | None = None,
        progress: Callable[[int, int, str], None] | None = None,
    ) -> Path:
        """Write a page to look at, and pages of the worst cases. See `report.write_evaluation`.

        Cases are compared again for the images of their pages, one at a time. Where the files of
        one are gone or have changed, its page shows what the journal holds, and says so.

        Parameters
        ----------
        path : path, optional
            Where to; report.html in the folder of the results by default. The pages of cases go
            into the folder of the same name with ``_cases``.
        reports : str, optional
            Which cases get a page of their own: ``"worst:5"`` (the five with the lowest score, of
            every method), another number, ``"all"`` or ``"none"``.
        workers : int, optional
            Threads; all cores by default. The pages do not depend on it.
        progress : callable, optional
            Called after every page of a case: how many are done, of how many, and what is wrong
            with this one, or "".

        Returns
        -------
        Path
            That of the page.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np
        >>> from probdice.evaluation import evaluate
        >>> folder = tempfile.TemporaryDirectory()
        >>> for name, labels in (("truth", [[1, 1, 2, 2]]), ("mine", [[5, 5, 5, 8]])):
        ...     os.mkdir(os.path.join(folder.name, name))
        ...     np.save(os.path.join(folder.name, name, "a"), np.array(labels))
        >>> truth, mine, out = (os.path.join(folder.name, n) for n in ("truth", "mine", "out"))
        >>> evaluate(truth, mine, out=out).report(reports="all").name
        'report.html'
        >>> os.listdir(os.path.join(out, "report_cases"))
        ['0000-a-mine.html']
        >>> folder.cleanup()
        """
        from probdice.report import write_evaluation

        workers = as_workers(workers)
        hold: AbstractContextManager[None]
        if path is not None:
            page, hold = Path(path), nullcontext()
        elif self.out is not None:
            page, hold = self.out / PAGE, locked(self.out)
        else:
            raise InputError("path must say where the page goes: the results are in no folder")

        def again(case: str, method: str) -> Comparison:
            return compare_again(
                self._record(case, method), self.options_of(method), workers=workers
            )

        with hold:
            write_evaluation(
                self, page, reports=reports, again=again, progress=progress, words=self.words
            )
        return page

    def __repr__(self) -> str:
        scored = len(self.records) - len(self.failures)
        cases, methods = len(self.cases), len(self.methods)
        lines = [
            f"Evaluation ({self.options.similarity.name}): {cases} case{'s' * (cases != 1)}, "
            f"{methods} method{'s' * (methods != 1)}: {scored} scored, "
            f"{len(self.failures)} failed, {len(self.missing)} without a partner"
        ]
        for name, summary in self.summaries().items():
            lines.append(
                f"  {name}: mean score {decimal(summary.mean)} over {summary.n}, "
                f"95 % interval {summary.interval}"
            )
        lines += [
            f"  failed: {record.case} ({record.method}): {record.error.partition(chr(10))[0]}"
            for record in self.failures[:SHOWN]
        ]
        if len(self.failures) > SHOWN:
            lines.append(f"  … and {len(self.failures) - SHOWN} more failures")
        return "\n".join(lines)

    def _case_rows(self) -> list[Row]:
        return case_rows(self.records, self.missing, list(self.methods), self.words, self.others)

    @property
    def _case_columns(self) -> tuple[str, ...]:
        """The numbers of other fields stand before the notes."""
        place = CASES.index("notes")
        return (*CASES[:place], *self.others.columns, *CASES[place:])

    def _record(self, case: str, method: str | None) -> Record:
        record = self._by_name.get((case, method or ""))
        if record is None:
            raise InputError(
                f"no case {case!r} of method {method!r}; the methods are "
                f"{', '.join(self.methods)}, and the cases {', '.join(self.cases[:10])}"
                f"{', …' if len(self.cases) > 10 else ''}"
            )
        return record

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Record]:
        return {(record.case, record.method): record for record in self.records}

    def _over_cases(self, value: Callable[[Record], float]) -> dict[str, NDArray[np.float64]]:
        place = {case: k for k, case in enumerate(self.cases)}
        values = {name: np.full(len(place), nan) for name in self.methods}
        for record in self.records:
            values[record.method][place[record.case]] = value(record)
        return values

    def _measured(self, measure: Measure) -> dict[str, Any]:
        worst, values = self.worst(measure), self.values(measure)
        place = {case: k for k, case in enumerate(self.cases)}
        return {
            "methods": [
                {
                    "method": name,
                    **asdict(summary),
                    "worst": [[case, float(values[name][place[case]])] for case in worst[name]],
                }
                for name, summary in self.summaries(measure).items()
            ],
            "differences": [asdict(pair) for pair in self.differences(measure)],
            "ranks": [asdict(rank) for rank in self.ranks(measure)],
        }


def _label_order(label: Label) -> tuple[int, int, list[tuple[int, str]]]:
    """Numbers by size, then names."""
    return (0, label, []) if isinstance(label, int) else (1, 0, natural(label))


def read_summary(out: Folder) -> dict[str, Any]:
    """What summary.json of a finished run holds."""
    out = Path(out)
    path = out / "summary.json"
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        started = sum("comparison" in line for line in read_lines(out))
        hint = (
            f"a run was begun there ({started} cases are finished) and not ended; start it again "
            f"to continue"
            if started
            else "expected the folder that evaluate wrote into"
        )
        raise InputError(f"{path}: no such file; {hint}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        version = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise InputError(
            f"{path}: expected a summary of format {FORMAT}, found {version}; another version of "
            f"probdice wrote it, so evaluate into this folder again"
        )
    if not all(isinstance(content.get(key), kind) for key, kind in SUMMARY.items()):
        raise InputError(_not_a_summary(path))
    return content


def _not_a_summary(path: Path) -> str:
    return f"{path}: is not as evaluate wrote it; evaluate into this folder again"
