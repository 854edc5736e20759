"""The result of an evaluation: statistics over its records, and the files that it writes."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.result import Comparison
from probdice.errors import InputError, Message, Note, Option, Words, as_words, in_words
from probdice.evaluation.environment import environment
from probdice.evaluation.exchanged_labels import (
    LabelDifference,
    equal_labels_value,
    label_difference,
    label_order,
    labels_mean_the_same,
)
from probdice.evaluation.folders import NO_PATTERNS, Folder, Patterns, as_name, relative_path
from probdice.evaluation.journal import FORMAT, locked, read_lines, replace_file
from probdice.evaluation.pairing import Missing, find_images
from probdice.evaluation.publishing import (
    files_csv,
    how_made,
    ranking_csv,
    table_md,
    table_tex,
)
from probdice.evaluation.rater_comparison import Yardstick
from probdice.evaluation.recompare import compare_again
from probdice.evaluation.record import Record, located
from probdice.evaluation.showing import evaluation_as_html
from probdice.evaluation.statistics import (
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
from probdice.files.atomic_files import null_for_nan
from probdice.files.sources import natural
from probdice.method.matching import Given, listed
from probdice.method.region_labels import Label
from probdice.metrics.registry import MISSING_RULES, REGISTRY, MeasureName, title_of
from probdice.options import Options, as_workers, given_from_list
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from probdice.pictures.evaluations import EvaluationKind

__all__ = ["Counts", "Evaluation", "as_measure", "as_missing_rule", "read_summary"]

SUMMARY: dict[str, type] = {  # keys of summary.json besides its format
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
PAGE = "report.html"  # in the results folder
WORST = 5  # cases that are named
SHOWN = 5  # failures in a printed result
NAMED = 10  # cases in a note


@dataclass(frozen=True)
class Counts:
    """How many cases the reference has, and how many of them a method has scored or not."""

    cases: int
    scored: int
    failed: int
    missing: int


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The cases of one or more methods, with statistics and ranks.

    Attributes
    ----------
    records : tuple of Record
        Every case of every method that has both sides, the failed ones too.
    missing : tuple of Missing
        Cases of a method that lack the reference or the prediction.
    reference : str
        The folder of the reference.
    methods : dict of str to str
        The folder of every method.
    options : Options
        All options that change a score.
    words : {"python", "command"}
        Whether notes and errors in files and pages name options as in Python or as on the command
        line.
    out : Path or None
        The results folder.
    others : Others
        Additional columns of the table of cases.
    correspondences : dict of str to Given
        The groups of every method, if all of its cases share one correspondence.
    missing_rule : {"worst", "zero", "exclude"}
        How a missing or failed case of a method counts in means and ranks.
    rank_by : str
        The measure that ranks the methods.
    mask : str or None
        The folder of the masks.
    image : str or None
        The folder of the images that were segmented.
    patterns : Patterns
        The patterns that found the cases of every folder.
    probabilities : bool
        Whether nnU-Net's probabilities were read instead of its label maps.
    yardstick : Yardstick or None
        Agreement of the methods with several raters, and inter-rater agreement.

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
    rank_by: MeasureName = "score"
    mask: str | None = None
    image: str | None = None
    patterns: Patterns = NO_PATTERNS
    probabilities: bool = False
    yardstick: Yardstick | None = None

    @classmethod
    def load(cls, out: Folder) -> "Evaluation":
        """Read the results folder of a finished run."""
        out = Path(out)
        content = read_summary(out)
        latest = {}
        try:
            options = _with_names(Options.from_dict(content["options"]), lambda x: located(x, out))
            correspondences = {
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
                correspondences=correspondences,
                missing_rule=as_missing_rule(content["missing_rule"]),
                rank_by=content["rank_by"],
                mask=None if content["mask"] is None else located(content["mask"], out),
                image=None if content["image"] is None else located(content["image"], out),
                patterns=Patterns(**content["patterns"]),
                probabilities=content["probabilities"],
                yardstick=_rater_comparison(content["yardstick"], out),
            )
            jobs = [(case, method) for case, method in content["jobs"]]
            version = content["versions"].get("probdice")
            wanted = {name: evaluation.options_of(name).to_dict() for name in evaluation.methods}
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise InputError(_not_a_summary(out / "summary.json")) from error
        for line in read_lines(out):
            if (line["version"], line["options"]) == (version, wanted.get(line["method"])):
                with suppress(InputError):  # an invalid line is ignored
                    latest[line["case"], line["method"]] = Record.from_line(line, out)
        if absent := [job for job in jobs if job not in latest]:
            raise InputError(
                f"{out}: cases.jsonl has no line for {absent[0]}; evaluate into this folder again"
            )
        return replace(evaluation, records=tuple(latest[job] for job in jobs))

    def options_of(self, method: str) -> Options:
        """The options of the final comparisons of a method."""
        groups = self.correspondences.get(method)
        return self.options if groups is None else self.options.given(groups)

    @cached_property
    def cases(self) -> tuple[str, ...]:
        """The names of the cases of the reference, in natural order."""
        compared = {record.case for record in self.records}
        missing = {one.case for one in self.missing if one.side == "prediction"}
        return tuple(sorted(compared | missing, key=natural))

    @property
    def measures(self) -> tuple[MeasureName, ...]:
        """All measures, starting with the one used for ranking."""
        return (self.rank_by, *(one for one in self.others.measures if one != self.rank_by))

    @property
    def failures(self) -> tuple[Record, ...]:
        """The cases that could not be compared."""
        return tuple(record for record in self.records if record.comparison is None)

    @cached_property
    def counts(self) -> dict[str, Counts]:
        """How many cases of every method were scored, failed or are missing."""
        counts = {}
        for name in self.methods:
            tried = [record for record in self.records if record.method == name]
            failed = sum(record.comparison is None for record in tried)
            cases = len(self.cases)
            counts[name] = Counts(cases, len(tried) - failed, failed, cases - len(tried))
        return counts

    @cached_property
    def labels_agree(self) -> bool:
        """Whether a label of the reference means the same region in every case."""
        return labels_mean_the_same(
            (record.method, record.comparison)
            for record in self.records
            if record.comparison is not None
        )

    @cached_property
    def label_differences(self) -> dict[str, LabelDifference]:
        """Methods that use the labels of the reference, but are matched to different labels.

        Empty if labels do not mean the same in every case.
        """
        if not self.labels_agree or self.options.match == "labels":
            return {}
        labels = frozenset(
            label
            for record in self.records
            if record.comparison is not None
            for label in record.comparison.reference_labels
        )
        differences = (label_difference(name, self._scored(name), labels) for name in self.methods)
        return {one.method: one for one in differences if one is not None}

    @cached_property
    def remarks(self) -> dict[str, tuple[str, ...]]:
        """Sentences about every method that readers of its score need to know."""
        return {name: tuple(self._remarks(name)) for name in self.methods}

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """Notes about the whole run."""
        ignored = [
            [note for note in record.comparison.notes if note.kind == "ignore"]
            for record in self.records
            if record.comparison is not None
        ]
        notes = [
            Note("ignore", (*note.message, " of any case"))
            for note in (ignored[0] if ignored else ())
            if all(note in others for others in ignored)
        ]
        if not self.labels_agree:
            text = (
                "A label of the reference does not mean the same region in every case. Regions are "
                "not summarised."
            )
            notes.append(Note("labels", (text,)))
        few = min((counts.scored for counts in self.counts.values() if counts.scored), default=FEW)
        if FEWEST <= few < FEW:
            text = (
                f"With {few} cases, 95 % confidence intervals may be too narrow. Use at least "
                f"{FEW} cases."
            )
            notes.append(Note("few", (text,)))
        return (*notes, *self._rater_notes())

    def values(self, measure: MeasureName | None = None) -> dict[str, NDArray[np.float64]]:
        """A measure of every method over `cases`; NaN for missing and failed cases.

        In all methods, the default measure is `rank_by`.
        """
        measure = self.rank_by if measure is None else as_measure(measure, self.others)
        if measure not in self._values:
            background = self.others.background
            self._values[measure] = self._over_cases(lambda one: one.value(measure, background))
        return {name: values.copy() for name, values in self._values[measure].items()}

    def summaries(self, measure: MeasureName | None = None) -> dict[str, Summary]:
        """Mean, median, spread and 95 % confidence interval of every method."""
        return {name: summarise(values) for name, values in self._counted(measure).items()}

    def equal_labels_means(self, measure: MeasureName | None = None) -> dict[str, float]:
        """The mean of a measure if equal labels are matched, of methods in `label_differences`.

        NaN if the measure of a case needs the images. Evaluate with ``match="labels"`` instead.
        """
        measure = self.rank_by if measure is None else as_measure(measure, self.others)
        background, differing = self.others.background, self.label_differences
        values = self._over_cases(
            lambda record: (
                equal_labels_value(record, measure, background)
                if record.method in differing
                else nan
            )
        )
        ranked, means = self.values(measure), {}
        for name in differing:
            unknown = np.isnan(values[name]) & ~np.isnan(ranked[name])
            counted = self._with_missing(name, values[name])
            means[name] = nan if unknown.any() else summarise(counted).mean
        return means

    def differences(self, measure: MeasureName | None = None) -> tuple[Difference, ...]:
        """Every pair of methods, on the cases that both have."""
        return differences(self._counted(measure))

    def ranks(self, measure: MeasureName | None = None) -> tuple[Rank, ...]:
        """The methods from best to worst; `missing_rule` decides about missing cases.

        A case that was scored but has no value, such as the adjusted score of a constant image, is
        left out of the ranking for all methods.
        """
        values = self.values(measure)
        undefined = np.zeros(len(self.cases), np.bool_)
        for name, scored in self._over_cases(lambda one: float(one.comparison is not None)).items():
            undefined |= (scored == 1) & np.isnan(values[name])
        for name in values:
            values[name][undefined] = nan
        direction = REGISTRY[measure or self.rank_by].higher_is_better
        return ranks(values, missing=self.missing_rule, higher_is_better=direction)

    def worst(self, measure: MeasureName | None = None, count: int = WORST) -> dict[str, list[str]]:
        """The cases with the worst values of every method, the worst first."""
        sign = 1 if REGISTRY[measure or self.rank_by].higher_is_better else -1
        worst = {}
        for name, values in self.values(measure).items():
            known = min(count, int(np.sum(~np.isnan(values))))
            order = np.argsort(sign * values, kind="stable")[:known]
            worst[name] = [self.cases[k] for k in order]
        return worst

    def regions(self) -> dict[tuple[str, Label], Summary]:
        """The Dice of every label of the reference, per method, over the cases that have it.

        A merged region has the Dice of its group. An unmatched region has a Dice of 0. Faint
        groups (`Group.faint`) do not count.
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
        """The content of summary.json: all of the above as plain types, with None for NaN."""
        content = {
            "format": FORMAT,
            "options": _with_names(self.options, self._relative_path).to_dict(),
            "words": self.words,
            **environment(),
            "reference": self._relative_path(self.reference),
            "methods": {name: self._relative_path(folder) for name, folder in self.methods.items()},
            "mask": None if self.mask is None else self._relative_path(self.mask),
            "image": None if self.image is None else self._relative_path(self.image),
            "patterns": asdict(self.patterns),
            "probabilities": self.probabilities,
            "missing_rule": self.missing_rule,
            "rank_by": self.rank_by,
            "yardstick": self._rater_comparison_summary(),
            "jobs": [[record.case, record.method] for record in self.records],
            "others": asdict(self.others),
            "counts": [{"method": name, **asdict(one)} for name, one in self.counts.items()],
            "missing": [asdict(one) for one in self.missing],
            "correspondences": {
                method: [[list(labels) for labels in group] for group in given.groups]
                for method, given in self.correspondences.items()
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
                "differing": [asdict(one) for one in self.label_differences.values()],
            },
            "remarks": {name: list(texts) for name, texts in self.remarks.items()},
            "notes": [self._published(note.message) for note in self.notes],
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
        """The content of cases.csv as a pandas data frame."""
        return as_frame(self._case_rows(), self._case_columns)

    def regions_frame(self) -> "pandas.DataFrame":
        """The content of regions.csv as a pandas data frame."""
        return as_frame(region_rows(self.records), REGIONS)

    def write(self, out: Folder, *, parquet: bool = False) -> None:
        """Write all tables, how.md and summary.json. Each file is written completely or not at all.

        Parameters
        ----------
        out : path
            An existing folder.
        parquet : bool, optional
            Whether to write cases.parquet and regions.parquet too (needs pandas and pyarrow).
        """
        out = Path(out)
        raters = () if self.yardstick is None else self.yardstick.files
        files = files_csv(self.records, raters, out)
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
            # The last one: if it exists, the run is finished.
            (
                "summary.json",
                json.dumps(self.summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
            ),
        ):
            # Names that are not valid text have lone surrogates; their escapes are valid JSON.
            replace_file(out / name, text.encode(errors="backslashreplace"))

    def report(
        self,
        path: Folder | None = None,
        *,
        reports: str = "worst:5",
        workers: int | None = None,
        progress: Callable[[int, int, str], None] | None = None,
    ) -> Path:
        """Write the HTML report and pages of the worst cases. See `report.write_evaluation`.

        Cases are compared again for the images of their pages, one at a time. If files of a case
        are gone or have changed, its page shows the recorded numbers and a notice.

        Parameters
        ----------
        path : path, optional
            The file to write; report.html in the results folder by default. The pages of cases
            are in a folder of the same name with ``_cases``.
        reports : str, optional
            The cases that get a page: ``"worst:5"`` (the five with the lowest values of every
            method by the measure that ranks), another number, ``"all"`` or ``"none"``.
        workers : int, optional
            The number of threads; all cores by default. The pages do not depend on it.
        progress : callable, optional
            Called after every page of a case with the number of finished pages, the number of all
            pages, and the problem with this page, or "".

        Returns
        -------
        Path
            The path of the report.

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
        lock: AbstractContextManager[None]
        if path is not None:
            page, lock = Path(path), nullcontext()
        elif self.out is not None:
            page, lock = self.out / PAGE, locked(self.out)
        else:
            raise InputError(
                "path: expected the file to write, found None, and the results are not in a folder"
            )

        def again(case: str, method: str) -> Comparison:
            record = self._record(case, method)
            return compare_again(
                record, self.options_of(method), seen_from=page.parent, workers=workers
            )

        images = {}
        if self.image is not None:
            images = find_images(Path(self.image), self.patterns.image, self.cases)
        with lock:
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
        measure: MeasureName | None = None,
        ax: "Axes | Iterable[Axes] | None" = None,
        figsize: tuple[float, float] | None = None,
    ) -> "Figure":
        """Draw a Matplotlib figure. See `pictures.evaluations.plot_evaluation`.

        Parameters
        ----------
        kind : str, optional
            "distributions", "regions", "differences", "volumes" or "ranks".
        measure : str, optional
            The measure to show; `rank_by` by default.
        ax : Axes or several, optional
            The axes to draw on, as many as the picture has panels; a new figure by default.
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
            f"{len(self.failures)} failed, {len(self.missing)} missing"
        ]
        for name, summary in self.summaries().items():
            lines.append(
                f"  {name}: mean {title_of(self.rank_by)} {decimal(summary.mean)} over "
                f"{summary.n}, "
                f"95 % CI {summary.interval}"
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
        """With the additional columns before the notes."""
        place = CASES.index("notes")
        return (*CASES[:place], *self.others.columns, *CASES[place:])

    def _record(self, case: str, method: str | None) -> Record:
        record = self._by_name.get((as_name(case), as_name(method or "")))
        if record is None:
            raise InputError(
                f"no case {case!r} of method {method!r}; the methods are "
                f"{', '.join(self.methods)}, and the cases are {listed(self.cases, NAMED)}"
            )
        return record

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Record]:
        return {(record.case, record.method): record for record in self.records}

    @cached_property
    def _values(self) -> dict[MeasureName, dict[str, NDArray[np.float64]]]:
        """A cache for `values`."""
        return {}

    def _counted(self, measure: MeasureName | None) -> dict[str, NDArray[np.float64]]:
        """The values that enter means."""
        values = self.values(measure)
        return {name: self._with_missing(name, values[name]) for name in values}

    def _with_missing(self, method: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of a method with 0 for missing and failed cases, if the rule is "zero"."""
        if self.missing_rule != "zero":
            return values
        scored = self._over_cases(lambda record: float(record.comparison is not None))
        return np.where(scored[method] == 1, values, 0.0)

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
        unscored = [
            f"{count} {word}"
            for count, word in ((counts.missing, "missing"), (counts.failed, "failed"))
            if count
        ]
        if unscored:
            cases = f"{' and '.join(unscored)} of {counts.cases} case{'s' * (counts.cases != 1)}"
            texts.append(f"{cases}, which {MISSING_RULES[self.missing_rule]}")
        if method in self.label_differences:
            texts.append(str(self.label_differences[method]))
            texts.append(self._with_equal_labels(method))
        return texts

    def _with_equal_labels(self, method: str) -> str:
        """The measure that ranks if equal labels are matched, and how to rank by that."""
        measure, mean = title_of(self.rank_by), self.equal_labels_means()[method]
        use = in_words((Option("match", "labels"),), self.words)
        if np.isnan(mean):
            return f"the mean {measure} with equal labels needs the images: use {use}"
        return (
            f"with equal labels, the mean {measure} is {decimal(mean)} instead of "
            f"{decimal(self.summaries()[method].mean)}; if equal labels mean the same region, use "
            f"{use}"
        )

    def _rater_notes(self) -> Iterator[Note]:
        """Cases that a rater lacks, and cases that the comparison with the raters lacks."""
        if self.yardstick is None:
            return
        by_rater = self.yardstick.cases
        cases = {*self.cases, *(case for own in by_rater.values() for case in own)}
        for rater, own in by_rater.items():
            absent = sorted(cases.difference(own), key=natural)
            if absent:
                text = (
                    f"Rater {rater} lacks {len(absent)} of {len(cases)} cases "
                    f"({listed(absent, NAMED)}). The other raters are used for them."
                )
                yield Note("raters", (text,))
        if self.yardstick.reference_is_mean:  # then these cases are among the failures
            return
        for case, reason in self.yardstick.left_out.items():
            yield Note("raters", (f"{case} is not compared with the raters: ", *reason.message))

    def _rater_comparison_summary(self) -> dict[str, Any] | None:
        if self.yardstick is None:
            return None
        folders = {name: self._relative_path(path) for name, path in self.yardstick.raters.items()}
        files = tuple(
            replace(file, file=self._relative_path(file.file)) for file in self.yardstick.files
        )
        left_out = {
            case: Note(note.kind, (self._published(note.message),))
            for case, note in self.yardstick.left_out.items()
        }
        return replace(self.yardstick, raters=folders, files=files, left_out=left_out).to_dict()

    def _relative_path(self, path: str) -> str:
        """A path relative to the results folder, so that others can use it."""
        return relative_path(path, self.out or Path())

    def _published(self, message: Message) -> str:
        """A message with paths relative to the results folder."""
        text = in_words(message, self.words)
        raters = () if self.yardstick is None else self.yardstick.raters.values()
        mask = [self.mask] if self.mask else []
        for folder in (self.reference, *self.methods.values(), *mask, *raters):
            for spelling in {str(Path(folder)), os.path.abspath(folder)}:
                if os.path.isabs(spelling):
                    text = text.replace(spelling, self._relative_path(folder))
        return text

    def _over_cases(self, value: Callable[[Record], float]) -> dict[str, NDArray[np.float64]]:
        place = {case: k for k, case in enumerate(self.cases)}
        values = {name: np.full(len(place), nan) for name in self.methods}
        for record in self.records:
            values[record.method][place[record.case]] = value(record)
        return values

    def _measured(self, measure: MeasureName) -> dict[str, Any]:
        worst, values = self.worst(measure), self.values(measure)
        equal_labels = self.equal_labels_means(measure)
        place = {case: k for k, case in enumerate(self.cases)}
        return {
            "methods": [
                {
                    "method": name,
                    **asdict(summary),
                    "equal_labels": equal_labels.get(name),
                    "worst": [[case, float(values[name][place[case]])] for case in worst[name]],
                }
                for name, summary in self.summaries(measure).items()
            ],
            "differences": [asdict(pair) for pair in self.differences(measure)],
            "ranks": [asdict(rank) for rank in self.ranks(measure)],
        }


def as_measure(measure: object, others: Others) -> MeasureName:
    """A measure, checked."""
    if measure == "foreground_dice" and measure not in others.measures:
        raise InputError("foreground_dice needs a background; pass ", Option("background", 0))
    for known in others.measures:
        if measure == known:
            return known
    raise InputError(f"measure must be one of {', '.join(others.measures)}, found {measure!r}")


def as_missing_rule(rule: object) -> MissingRule:
    """The rule for missing and failed cases, checked."""
    for known in MISSING:
        if rule == known:
            return known
    raise InputError(f"missing must be one of {', '.join(MISSING)}, found {rule!r}")


def _with_names(options: Options, path_of: Callable[[str], str]) -> Options:
    """The same options with other paths of the tables of names."""
    return replace(
        options,
        names=options.names.map(lambda names: path_of(names) if isinstance(names, str) else names),
    )


def read_summary(out: Folder) -> dict[str, Any]:
    """The content of summary.json of a finished run."""
    out = Path(out)
    path = out / "summary.json"
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        started = sum("comparison" in line for line in read_lines(out))
        hint = (
            f"a run in this folder is not finished ({started} cases are); run the same command "
            f"again to continue"
            if started
            else "expected a results folder of evaluate"
        )
        raise InputError(f"{path}: no such file; {hint}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        version = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise InputError(
            f"{path}: expected a summary of format {FORMAT}, found {version}, which another "
            f"version of probdice wrote; evaluate into this folder again"
        )
    if not all(isinstance(content.get(key), kind) for key, kind in SUMMARY.items()):
        raise InputError(_not_a_summary(path))
    return content


def _not_a_summary(path: Path) -> str:
    return f"{path}: not a valid summary; evaluate into this folder again"


def _rater_comparison(content: dict[str, Any] | None, out: Path) -> Yardstick | None:
    """Read the comparison with raters from the summary, with full paths."""
    if content is None:
        return None
    agreement = Yardstick.from_dict(content)
    return replace(
        agreement,
        raters={name: located(path, out) for name, path in agreement.raters.items()},
        files=tuple(replace(file, file=located(file.file, out)) for file in agreement.files),
    )
