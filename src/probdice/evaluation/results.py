"""The result of an evaluation: records in, statistics and files out."""

import json
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.atomic_files import null_for_nan
from probdice.comparison import Comparison
from probdice.errors import InputError, Message, Note, Option, Words, as_words, in_words
from probdice.evaluation.again import compare_again
from probdice.evaluation.environment import environment
from probdice.evaluation.folders import NO_PATTERNS, Folder, Patterns, relative_path
from probdice.evaluation.journal import FORMAT, locked, read_lines, replace_file
from probdice.evaluation.labels import (
    Exchange,
    exchanges,
    label_order,
    labels_mean_the_same,
    labels_score,
    one_label_set,
)
from probdice.evaluation.pairing import Missing, find_images
from probdice.evaluation.publishing import (
    RULES,
    files_csv,
    how_made,
    ranking_csv,
    table_md,
    table_tex,
)
from probdice.evaluation.record import NAMES, Measure, Record, located
from probdice.evaluation.showing import evaluation_as_html
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
from probdice.evaluation.yardstick import Yardstick
from probdice.files.sources import natural
from probdice.formatting import decimal
from probdice.matching import Given
from probdice.options import Options, as_workers, given_from_list
from probdice.region_labels import Label
from probdice.statistics import (
    FEW,
    FEWEST,
    MISSING,
    Difference,
    MissingRule,
    Rank,
    Summary,
    differences,
    ranks,
    summarise,
)

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from probdice.pictures.evaluations import EvaluationKind

__all__ = ["Counts", "Evaluation", "as_measure", "as_missing_rule", "read_summary"]

SUMMARY: dict[str, type] = {  # what summary.json holds, besides its format
    "options": dict,
    "words": str,
    "versions": dict,
    "environment": dict,
    "reference": str,
    "methods": dict,
    "patterns": dict,
    "probabilities": bool,
    "missing_rule": str,
    "rank_by": str,
    "jobs": list,
    "others": dict,
    "counts": list,
    "missing": list,
    "correspondences": dict,
    "failures": list,
    "labels": dict,
    "remarks": dict,
    "notes": list,
    "measures": dict,
    "regions": list,
}
NO_OTHERS = Others()
PAGE = "report.html"  # in the folder of the results
WORST = 5  # cases that are named
SHOWN = 5  # failures in a printed result, and exchanges of labels in a remark


@dataclass(frozen=True)
class Counts:
    """What became of the cases of a method: all that the reference has."""

    cases: int
    scored: int
    failed: int
    missing: int


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
    missing_rule : {"worst", "zero", "exclude"}
        How a case that a method lacks, or that failed, enters means and ranks.
    rank_by : str
        The measure by which methods are ranked.
    mask : str or None
        The folder of the masks.
    image : str or None
        The folder of the images that were segmented.
    patterns : Patterns
        By which patterns the cases of every folder were found.
    probabilities : bool
        Whether nnU-Net's probabilities were taken instead of its label maps.
    yardstick : Yardstick or None
        How methods agree with several raters, and these among themselves.

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
    ['.lock', 'cases.csv', 'cases.jsonl', 'files.csv', 'how.md', 'ranking.csv', 'regions.csv', \
'summary.json', 'table.md', 'table.tex']
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
    missing_rule: MissingRule = "worst"
    rank_by: Measure = "score"
    mask: str | None = None
    image: str | None = None
    patterns: Patterns = NO_PATTERNS
    probabilities: bool = False
    yardstick: Yardstick | None = None

    @classmethod
    def load(cls, out: Folder) -> "Evaluation":
        """Read back the folder of a finished run."""
        out = Path(out)
        content = read_summary(out)
        latest = {}
        try:
            options = _with_names(Options.from_dict(content["options"]), lambda x: located(x, out))
            found = {
                name: given_from_list(groups) for name, groups in content["correspondences"].items()
            }
            evaluation = cls(
                records=(),
                missing=tuple(Missing(**one) for one in content["missing"]),
                reference=located(content["reference"], out),
                methods={name: located(path, out) for name, path in content["methods"].items()},
                options=options,
                words=as_words(content["words"]),
                out=out,
                others=Others(**content["others"]),
                correspondences=found,
                missing_rule=as_missing_rule(content["missing_rule"]),
                rank_by=content["rank_by"],
                mask=None if content["mask"] is None else located(content["mask"], out),
                image=None if content["image"] is None else located(content["image"], out),
                patterns=Patterns(**content["patterns"]),
                probabilities=content["probabilities"],
                yardstick=_yardstick(content["yardstick"], out),
            )
            jobs = [(case, method) for case, method in content["jobs"]]
            version = content["versions"].get("probdice")
            wanted = {name: evaluation.options_of(name).to_dict() for name in evaluation.methods}
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise InputError(_not_a_summary(out / "summary.json")) from error
        for line in read_lines(out):
            if (line["version"], line["options"]) == (version, wanted.get(line["method"])):
                with suppress(InputError):  # as if it had never been written
                    latest[line["case"], line["method"]] = Record.from_line(line, out)
        if absent := [job for job in jobs if job not in latest]:
            raise InputError(
                f"{out}: cases.jsonl has no line for {absent[0]}; evaluate into this folder again"
            )
        return replace(evaluation, records=tuple(latest[job] for job in jobs))

    def options_of(self, method: str) -> Options:
        """The options by which the cases of a method were compared in the end."""
        found = self.correspondences.get(method)
        return self.options if found is None else self.options.given(found)

    @cached_property
    def cases(self) -> tuple[str, ...]:
        """The names of the cases of the reference, in their natural order."""
        scored = {record.case for record in self.records}
        lacking = {one.case for one in self.missing if one.side == "prediction"}
        return tuple(sorted(scored | lacking, key=natural))

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What methods can be told apart by, what they are ranked by first."""
        return (self.rank_by, *(one for one in self.others.measures if one != self.rank_by))

    @property
    def failures(self) -> tuple[Record, ...]:
        """The cases that could not be scored."""
        return tuple(record for record in self.records if record.comparison is None)

    @cached_property
    def counts(self) -> dict[str, Counts]:
        """What became of the cases of every method."""
        counts = {}
        for name in self.methods:
            tried = [record for record in self.records if record.method == name]
            failed = sum(record.comparison is None for record in tried)
            cases = len(self.cases)
            counts[name] = Counts(cases, len(tried) - failed, failed, cases - len(tried))
        return counts

    @cached_property
    def labels_agree(self) -> bool:
        """Whether labels of the reference mean the same in every case, by all signs."""
        return labels_mean_the_same(
            (record.method, record.comparison)
            for record in self.records
            if record.comparison is not None
        )

    @cached_property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Labels that methods exchange, where both sides use one set of labels."""
        if not self.labels_agree or self.options.match == "labels":
            return ()
        return tuple(one for name in self.methods for one in exchanges(name, self._scored(name)))

    @cached_property
    def labels_scores(self) -> dict[str, Summary]:
        """What methods score when equal labels correspond, where both sides use one set of them."""
        if not self.labels_agree or self.options.match == "labels":
            return {}
        return {
            name: summarise([labels_score(comparison) for comparison in self._scored(name)])
            for name in self.methods
            if one_label_set(self._scored(name))
        }

    @cached_property
    def remarks(self) -> dict[str, tuple[str, ...]]:
        """What has to be known to read the score of a method, in sentences."""
        return {name: tuple(self._remarks(name)) for name in self.methods}

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """What is worth knowing about the run as a whole."""
        absent = [
            [note for note in record.comparison.notes if note.kind == "ignore"]
            for record in self.records
            if record.comparison is not None
        ]
        notes = [
            Note("ignore", (*note.message, " of any case"))
            for note in (absent[0] if absent else ())
            if all(note in others for others in absent)
        ]
        if not self.labels_agree:
            text = "labels mean something else in every case, so regions are not summarised"
            notes.append(Note("labels", (text,)))
        few = min((counts.scored for counts in self.counts.values() if counts.scored), default=FEW)
        if FEWEST <= few < FEW:
            text = (
                f"intervals over fewer than {FEW} cases (here {few}) hold the mean less often than "
                f"95 % of the time"
            )
            notes.append(Note("few", (text,)))
        return tuple(notes)

    def values(self, measure: Measure | None = None) -> dict[str, NDArray[np.float64]]:
        """A measure of every method over `cases`; NaN where there is none.

        Here and below the measure is `rank_by` where none is named.
        """
        measure = self.rank_by if measure is None else as_measure(measure, self.others)
        if measure not in self._values:
            background = self.others.background
            self._values[measure] = self._over_cases(lambda one: one.value(measure, background))
        return {name: values.copy() for name, values in self._values[measure].items()}

    def summaries(self, measure: Measure | None = None) -> dict[str, Summary]:
        """Mean, median, spread and interval of every method."""
        return {name: summarise(values) for name, values in self._counted(measure).items()}

    def differences(self, measure: Measure | None = None) -> tuple[Difference, ...]:
        """Every pair of methods on the cases they share."""
        return differences(self._counted(measure))

    def ranks(self, measure: Measure | None = None) -> tuple[Rank, ...]:
        """The methods from best to worst, by `missing_rule`.

        A case that was scored but has no value, such as the adjusted score of a constant image, is
        not ranked for any method.
        """
        values = self.values(measure)
        undefined = np.zeros(len(self.cases), np.bool_)
        for name, scored in self._over_cases(lambda one: float(one.comparison is not None)).items():
            undefined |= (scored == 1) & np.isnan(values[name])
        for name in values:
            values[name][undefined] = nan
        return ranks(values, missing=self.missing_rule)

    def worst(self, measure: Measure | None = None, count: int = WORST) -> dict[str, list[str]]:
        """The cases with the lowest values of every method, the lowest first."""
        lowest = {}
        for name, values in self.values(measure).items():
            order = np.argsort(values, kind="stable")[: min(count, int(np.sum(~np.isnan(values))))]
            lowest[name] = [self.cases[k] for k in order]
        return lowest

    def regions(self) -> dict[tuple[str, Label], Summary]:
        """The Dice of every label of the reference, per method, over the cases that have it.

        A region that was merged has the Dice of its group, an unmatched one has 0. Faint groups
        (`Group.faint`) do not count.
        """
        dice = self.region_dice()
        order = list(self.methods)
        keys = sorted(dice, key=lambda key: (order.index(key[0]), label_order(key[1])))
        return {key: summarise(dice[key]) for key in keys}

    def region_dice(self) -> dict[tuple[str, Label], list[float]]:
        """Per method and label of the reference, the Dice of every case where its group counts."""
        dice: dict[tuple[str, Label], list[float]] = {}
        for record in self.records:
            for group in record.comparison.groups if record.comparison else ():
                for label in () if group.faint else group.reference:
                    dice.setdefault((record.method, label), []).append(group.dice)
        return dice

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
            "options": _with_names(self.options, self._from_here).to_dict(),
            "words": self.words,
            **environment(),
            "reference": self._from_here(self.reference),
            "methods": {name: self._from_here(folder) for name, folder in self.methods.items()},
            "mask": None if self.mask is None else self._from_here(self.mask),
            "image": None if self.image is None else self._from_here(self.image),
            "patterns": asdict(self.patterns),
            "probabilities": self.probabilities,
            "missing_rule": self.missing_rule,
            "rank_by": self.rank_by,
            "yardstick": self._yardstick_from_here(),
            "jobs": [[record.case, record.method] for record in self.records],
            "others": asdict(self.others),
            "counts": [{"method": name, **asdict(one)} for name, one in self.counts.items()],
            "missing": [asdict(one) for one in self.missing],
            "correspondences": {
                method: [[list(labels) for labels in group] for group in found.groups]
                for method, found in self.correspondences.items()
            },
            "failures": [
                {
                    "case": record.case,
                    "method": record.method,
                    "error": self._published(record.failure.message),
                }
                for record in self.records
                if record.failure is not None
            ],
            "labels": {
                "agree": self.labels_agree,
                "exchanged": [asdict(one) for one in self.exchanges],
                "scores": [
                    {"method": name, **asdict(one)} for name, one in self.labels_scores.items()
                ],
            },
            "remarks": {name: list(texts) for name, texts in self.remarks.items()},
            "notes": [in_words(note.message, self.words) for note in self.notes],
            "measures": {measure: self._measured(measure) for measure in self.measures},
            "regions": [
                {"method": method, "label": label, **asdict(summary)}
                for (method, label), summary in (
                    self.regions() if self.labels_agree else {}
                ).items()
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
        """Write all tables, how they were made and summary.json, each complete or not at all.

        Parameters
        ----------
        out : path
            An existing folder.
        parquet : bool, optional
            Whether to write cases.parquet and regions.parquet as well (needs pandas and pyarrow).
        """
        out = Path(out)
        files = files_csv(self.records, out)
        replace_file(out / "cases.csv", as_csv(self._case_rows(), self._case_columns))
        replace_file(out / "regions.csv", as_csv(region_rows(self.records), REGIONS))
        replace_file(out / "files.csv", files)
        if parquet:
            replace_file(out / "cases.parquet", as_parquet(self.cases_frame()))
            replace_file(out / "regions.parquet", as_parquet(self.regions_frame()))
        replace_file(out / "ranking.csv", ranking_csv(self.summary))
        for name, text in (
            ("table.md", table_md(self.summary)),
            ("table.tex", table_tex(self.summary)),
            ("how.md", how_made(self.summary, files)),
            # Last: where it is, the run is finished.
            (
                "summary.json",
                json.dumps(self.summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
            ),
        ):
            # A name that is no text holds lone surrogates; their escapes are JSON and read back.
            replace_file(out / name, text.encode(errors="backslashreplace"))

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
            Which cases get a page of their own: ``"worst:5"`` (the five with the lowest values of
            every method by what ranks), another number, ``"all"`` or ``"none"``.
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
            record = self._record(case, method)
            return compare_again(
                record, self.options_of(method), seen_from=page.parent, workers=workers
            )

        images = {}
        if self.image is not None:
            images = find_images(Path(self.image), self.patterns.image, self.cases)
        with hold:
            write_evaluation(
                self,
                page,
                reports=reports,
                again=again,
                images=images,
                progress=progress,
                words=self.words,
            )
        return page

    def plot(
        self,
        kind: "EvaluationKind" = "distributions",
        *,
        measure: Measure | None = None,
        ax: "Axes | Iterable[Axes] | None" = None,
        figsize: tuple[float, float] | None = None,
    ) -> "Figure":
        """A picture as a Matplotlib figure. See `pictures.evaluations.plot_evaluation`.

        Parameters
        ----------
        kind : str, optional
            "distributions", "regions", "differences", "volumes" or "ranks".
        measure : str, optional
            What methods are told apart by; `rank_by` by default.
        ax : Axes or several, optional
            Where to draw, as many as the picture has panels; a new figure by default.
        figsize : (float, float), optional
            Width and height of the new figure in inches.
        """
        from probdice.pictures.evaluations import plot_evaluation

        return plot_evaluation(self, kind, measure=measure, ax=ax, figsize=figsize)

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
                f"  {name}: mean {NAMES[self.rank_by]} {decimal(summary.mean)} over "
                f"{summary.n}, "
                f"95 % interval {summary.interval}"
            )
        lines += [
            f"  failed: {record.case} ({record.method}): {record.error.partition(chr(10))[0]}"
            for record in self.failures[:SHOWN]
        ]
        if len(self.failures) > SHOWN:
            lines.append(f"  … and {len(self.failures) - SHOWN} more failures")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return evaluation_as_html(self)

    def _case_rows(self) -> list[Row]:
        return case_rows(
            self.records, self.missing, list(self.methods), self._published, self.others
        )

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

    @cached_property
    def _values(self) -> dict[Measure, dict[str, NDArray[np.float64]]]:
        """What `values` has computed."""
        return {}

    def _counted(self, measure: Measure | None) -> dict[str, NDArray[np.float64]]:
        """The values that enter means: by the rule of zero, 0 for what is missing or failed."""
        values = self.values(measure)
        if self.missing_rule == "zero":
            scored = self._over_cases(lambda record: float(record.comparison is not None))
            for name in values:
                values[name][scored[name] != 1] = 0.0
        return values

    def _scored(self, method: str) -> list[Comparison]:
        return [
            record.comparison
            for record in self.records
            if record.method == method and record.comparison is not None
        ]

    def _remarks(self, method: str) -> list[str]:
        counts, texts = self.counts[method], []
        if self.yardstick is not None:
            texts.append(self.yardstick.sentence(method))
        lacking = [
            f"{count} {word}"
            for count, word in ((counts.missing, "missing"), (counts.failed, "failed"))
            if count
        ]
        if lacking:
            cases = f"{' and '.join(lacking)} of {counts.cases} case{'s' * (counts.cases != 1)}"
            texts.append(f"{cases}, which {RULES[self.missing_rule]}")
        found = [one for one in self.exchanges if one.method == method]
        for one in found[:SHOWN]:
            texts.append(str(one))
        if len(found) > SHOWN:
            texts.append(f"{len(found) - SHOWN} more exchanges of labels are in summary.json")
        if found and method in self.labels_scores:
            by_labels = decimal(self.labels_scores[method].mean)
            texts.append(f"with equal labels the mean score is {by_labels}")
        return texts

    def _yardstick_from_here(self) -> dict[str, Any] | None:
        if self.yardstick is None:
            return None
        folders = {name: self._from_here(path) for name, path in self.yardstick.raters.items()}
        return replace(self.yardstick, raters=folders).to_dict()

    def _from_here(self, path: str) -> str:
        """A path from the folder of the results: nobody else has our folders."""
        return relative_path(path, self.out or Path())

    def _published(self, message: Message) -> str:
        """A message of a case, with its folders as seen from that of the results."""
        text = in_words(message, self.words)
        for folder in (self.reference, *self.methods.values(), *([self.mask] if self.mask else ())):
            for spelling in {str(Path(folder)), os.path.abspath(folder)}:
                if os.path.isabs(spelling):
                    text = text.replace(spelling, self._from_here(folder))
        return text

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


def as_measure(measure: object, others: Others) -> Measure:
    """What methods are told apart by."""
    if measure == "foreground_dice" and measure not in others.measures:
        raise InputError(
            "foreground_dice needs to know what is no foreground; pass ", Option("background", 0)
        )
    for known in others.measures:
        if measure == known:
            return known
    raise InputError(f"measure must be one of {', '.join(others.measures)}, found {measure!r}")


def as_missing_rule(rule: object) -> MissingRule:
    """How a case that a method lacks enters means and ranks."""
    for known in MISSING:
        if rule == known:
            return known
    raise InputError(f"missing must be one of {', '.join(MISSING)}, found {rule!r}")


def _with_names(options: Options, path_of: Callable[[str], str]) -> Options:
    """The same with other paths of the tables of names."""
    return replace(
        options,
        names=options.names.map(lambda names: path_of(names) if isinstance(names, str) else names),
    )


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


def _yardstick(content: dict[str, Any] | None, out: Path) -> Yardstick | None:
    """Back from the summary, with full paths."""
    if content is None:
        return None
    yardstick = Yardstick.from_dict(content)
    return replace(
        yardstick, raters={name: located(path, out) for name, path in yardstick.raters.items()}
    )
