"""The result of an evaluation: statistics over its records, and the files that it writes."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.result import Comparison
from probdice.errors import InputError, Note, Words, as_words
from probdice.evaluation.conclusion import conclusion, conclusion_sentences, summary_line
from probdice.evaluation.criteria import Criterion, criterion_of
from probdice.evaluation.exchanged_labels import (
    LabelDifference,
    label_difference,
    label_order,
    labels_mean_the_same,
    labels_of_references,
    stored_value,
    with_equal_labels,
)
from probdice.evaluation.external_columns import ExternalColumn
from probdice.evaluation.folders import NO_PATTERNS, Folder, Patterns, as_name
from probdice.evaluation.journal import read_lines
from probdice.evaluation.pairing import Missing
from probdice.evaluation.ranking import (
    Rank,
    Scores,
    case_ranks,
    joint_ranks,
)
from probdice.evaluation.rater_comparison import RaterComparison
from probdice.evaluation.record import Record, full_path
from probdice.evaluation.remarks import notes_on, remarks_on
from probdice.evaluation.result_files import cases_frame, regions_frame, write_pages, write_results
from probdice.evaluation.showing import evaluation_as_html
from probdice.evaluation.statistics import Aggregate, Difference, Summary, differences, summarise
from probdice.evaluation.summary import invalid_summary, read_summary, summary_of, with_names
from probdice.evaluation.tables import ExtraColumns
from probdice.files.sources import natural
from probdice.method.matching import GivenGroups
from probdice.method.region_labels import Label, listed
from probdice.metrics.registry import REGISTRY
from probdice.options import (
    CompareOptions,
    EvaluateOptions,
    MissingRule,
    Scheme,
    StatisticsOptions,
    given_from_list,
)
from probdice.text.formatting import decimal, quantity

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from probdice.pictures.evaluations import EvaluationKind

__all__ = ["Counts", "Evaluation"]

NO_EXTRA_COLUMNS = ExtraColumns()
WORST = 5  # cases in the list of worst cases
MAX_PRINTED_FAILURES = 5
MAX_LISTED_CASES = 10


@dataclass(frozen=True)
class Counts:
    """The number of reference cases, and the numbers of scored, failed and missing cases."""

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
        One record for every case and method that is not in `missing`, including failed cases.
    missing : tuple of Missing
        One entry for every case of a method that lacks the reference or the prediction.
    reference : str
        The folder of the reference.
    methods : dict of str to str
        The folder of every method.
    options : CompareOptions
        The options for comparing the two sides of a case.
    statistics : StatisticsOptions
        The options for means, tests and ranks over the cases.
    words : {"python", "command"}
        Whether notes and errors in files and pages use the option names of Python or of the command
        line.
    out : Path or None
        The results folder; None if no results folder was given.
    others : ExtraColumns
        Additional columns of the table of cases.
    correspondences : dict of str to GivenGroups
        The groups of every method, if one correspondence applies to all of its cases.
    subjects : dict of str to str, or None
        The subject of every case; None if every case is its own subject.
    external_columns : tuple of ExternalColumn
        Measures that were read from tables.
    mask : str or None
        The folder of the masks.
    image : str or None
        The folder of the images that were segmented.
    surface : tuple of str
        Surface files, on which case pages show vertex values.
    patterns : Patterns
        The file name patterns of every folder.
    image_channels : dict of str to tuple of str
        The files that were left out as channels of nnU-Net's images. The keys are "reference",
        "mask" and the names of methods; the paths are relative to the folder.
    probabilities : bool
        Whether nnU-Net's probabilities were read instead of its label maps.
    rater_comparison : RaterComparison or None
        The agreement between methods and raters, and inter-rater agreement; None without raters.
    raters : tuple of str
        The methods that are raters. Their files are read with the options of the reference.

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
    options: CompareOptions
    statistics: StatisticsOptions
    words: Words = "python"
    out: Path | None = None
    others: ExtraColumns = NO_EXTRA_COLUMNS
    correspondences: dict[str, GivenGroups] = field(default_factory=dict)
    subjects: dict[str, str] | None = None
    external_columns: tuple[ExternalColumn, ...] = ()
    mask: str | None = None
    image: str | None = None
    surface: tuple[str, ...] = ()
    patterns: Patterns = NO_PATTERNS
    image_channels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    probabilities: bool = False
    rater_comparison: RaterComparison | None = None
    raters: tuple[str, ...] = ()

    @classmethod
    def load(cls, out: Folder) -> "Evaluation":
        """Read the results folder of a finished run."""
        out = Path(out)
        content = read_summary(out)
        path_of = partial(full_path, folder=out)
        records = {}
        try:
            options = with_names(CompareOptions.from_dict(content["options"]), path_of)
            agreement = content["rater_comparison"]
            correspondences = {
                name: given_from_list(groups) for name, groups in content["correspondences"].items()
            }
            evaluation = cls(
                records=(),
                missing=tuple(Missing(**entry) for entry in content["missing"]),
                reference=path_of(content["reference"]),
                methods={name: path_of(path) for name, path in content["methods"].items()},
                options=options,
                statistics=StatisticsOptions.from_summary(content),
                words=as_words(content["words"]),
                out=out,
                others=ExtraColumns.from_dict(content["others"]),
                correspondences=correspondences,
                subjects=content["subjects"],
                external_columns=tuple(
                    ExternalColumn(**{**entry, "file": path_of(entry["file"])})
                    for entry in content["external_columns"]
                ),
                mask=None if content["mask"] is None else path_of(content["mask"]),
                image=None if content["image"] is None else path_of(content["image"]),
                surface=tuple(path_of(path) for path in content.get("surface", ())),
                patterns=Patterns(**content["patterns"]),
                image_channels={
                    name: tuple(files) for name, files in content.get("image_channels", {}).items()
                },
                probabilities=content["probabilities"],
                rater_comparison=None
                if agreement is None
                else RaterComparison.from_dict(agreement).with_paths(path_of),
                raters=tuple(content.get("raters", ())),
            )
            jobs = [(case, method) for case, method in content["jobs"]]
            version = content["versions"].get("probdice")
            method_options = {
                name: evaluation.options_of(name).to_dict() for name in evaluation.methods
            }
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise InputError(invalid_summary(out / "summary.json")) from error
        for line in read_lines(out):
            if (line["version"], line["options"]) == (version, method_options.get(line["method"])):
                with suppress(InputError):  # an invalid line is ignored
                    records[line["case"], line["method"]] = Record.from_line(line, out)
        if missing_jobs := [job for job in jobs if job not in records]:
            raise InputError(
                f"{out}: cases.jsonl has no valid line for case {missing_jobs[0][0]!r} "
                f"of method {missing_jobs[0][1]!r}. Run the evaluation "
                f"again with this output folder."
            )
        return replace(evaluation, records=tuple(records[job] for job in jobs))

    def options_of(self, method: str) -> CompareOptions:
        """Return the options of the final comparisons of a method."""
        options = self.options.between_raters() if method in self.raters else self.options
        groups = self.correspondences.get(method)
        return options if groups is None else options.with_groups(groups)

    @cached_property
    def cases(self) -> tuple[str, ...]:
        """The names of the cases of the reference, in natural order."""
        compared_cases = {record.case for record in self.records}
        missing_cases = {entry.case for entry in self.missing if entry.side == "prediction"}
        return tuple(sorted(compared_cases | missing_cases, key=natural))

    @property
    def missing_rule(self) -> MissingRule:
        """How a missing or failed case of a method counts in means and ranks."""
        return self.statistics.missing

    @property
    def rank_by(self) -> tuple[str, ...]:
        """The measures that rank the methods."""
        return self.statistics.rank_by

    @property
    def scheme(self) -> Scheme:
        """The ranking scheme, which orders the methods (see `evaluate`)."""
        return self.statistics.scheme

    @property
    def measures(self) -> tuple[str, ...]:
        """All measures. The ranking measures come first."""
        external_names = (column.name for column in self.external_columns)
        derived_measures = (f"dice:{name}" for name in self.others.derived_regions)
        return tuple(
            dict.fromkeys(
                (*self.rank_by, *self.others.measures, *derived_measures, *external_names)
            )
        )

    @property
    def failures(self) -> tuple[Record, ...]:
        """The records of cases that could not be compared."""
        return tuple(record for record in self.records if record.comparison is None)

    @cached_property
    def counts(self) -> dict[str, Counts]:
        """The numbers of scored, failed and missing cases of every method."""
        counts = {}
        for name in self.methods:
            method_records = [record for record in self.records if record.method == name]
            failed_count = sum(record.comparison is None for record in method_records)
            cases = len(self.cases)
            counts[name] = Counts(
                cases, len(method_records) - failed_count, failed_count, cases - len(method_records)
            )
        return counts

    @cached_property
    def labels_agree(self) -> bool:
        """Whether equal reference labels mostly mean the same region in different cases."""
        return labels_mean_the_same(
            (method, comparison)
            for method in self.methods
            for comparison in self.comparisons(method)
        )

    @cached_property
    def label_differences(self) -> dict[str, LabelDifference]:
        """Matched pairs of different labels, per method that uses only labels of the reference.

        The result is empty if `labels_agree` is false, or if equal labels are matched
        (``match="labels"``).
        """
        if not self.labels_agree or self.options.match == "labels":
            return {}
        labels = labels_of_references(
            comparison for method in self.methods for comparison in self.comparisons(method)
        )
        differences = (
            label_difference(name, self.comparisons(name), labels) for name in self.methods
        )
        return {
            difference.method: difference for difference in differences if difference is not None
        }

    @cached_property
    def remarks(self) -> dict[str, tuple[str, ...]]:
        """Remarks that help to interpret the results of every method."""
        return {name: remarks_on(self, name) for name in self.methods}

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """Notes about the whole run."""
        return notes_on(self)

    def title(self, measure: str) -> str:
        """Return the title of a measure in text and figures."""
        return self._criterion(measure).title

    def higher_is_better(self, measure: str) -> bool:
        """Return whether higher values of a measure are better."""
        return self._criterion(measure).higher_is_better

    def values(self, measure: str | None = None) -> dict[str, NDArray[np.float64]]:
        """Return, for every method, the values of a measure in the order of `cases`.

        Missing values are NaN.

        The default measure is the first of `rank_by`, as in other functions of this class except
        `ranks`.
        """
        key = self.rank_by[0] if measure is None else measure
        if key not in self._values:
            self._values[key] = self._over_cases(self._criterion(key).value)
        return {name: values.copy() for name, values in self._values[key].items()}

    def summaries(self, measure: str | None = None) -> dict[str, Summary]:
        """Return statistics of a measure for every method, such as the mean and the 95 % CI.

        If a value of any method is infinite, all methods are summarised by the median.
        """
        owners, method_values = self._subjects_of_cases, self._counted_values(measure)
        infinite = any(np.isinf(values).any() for values in method_values.values())
        aggregate: Aggregate = "median" if infinite else "mean"
        return {
            name: summarise(values, subjects=owners, aggregate=aggregate)
            for name, values in method_values.items()
        }

    def equal_labels_means(self, measure: str | None = None) -> dict[str, float]:
        """Return the means after matching equal labels, for each method in `label_differences`.

        These are the means of an evaluation with ``match="labels"`` and without merging. Cases
        whose labels cannot be compared count as failed. A mean is NaN if all cases fail, or if the
        measure, such as a boundary distance, cannot be computed from the stored overlaps. To
        compute such a mean, evaluate with ``match="labels"``.
        """
        key = self.rank_by[0] if measure is None else measure
        if key not in REGISTRY:
            return dict.fromkeys(self.label_differences, nan)
        records = self.equal_labels_records
        values = self._over_cases(lambda record: stored_value(record, key), records)
        scored = self._over_cases(_is_scored, records)
        actual_values, means = self.values(key), {}
        for name in self.label_differences:
            has_no_value = np.isnan(values[name]) & ~np.isnan(actual_values[name])
            has_no_value &= scored[name] == 1
            counted_values = self._with_missing(values[name], scored[name], key)
            means[name] = nan if has_no_value.any() else summarise(counted_values).mean
        return means

    @cached_property
    def equal_labels_records(self) -> tuple[Record, ...]:
        """The records of methods in `label_differences`, as if equal labels had been matched."""
        return tuple(
            with_equal_labels(record)
            for record in self.records
            if record.method in self.label_differences
        )

    def differences(self, measure: str | None = None) -> tuple[Difference, ...]:
        """Compare every pair of methods on the cases for which both have a value."""
        return differences(self._counted_values(measure), subjects=self._subjects_of_cases)

    def joint_differences(self) -> tuple[Difference, ...]:
        """Compare every pair of methods using all measures of `rank_by`.

        With several measures, differences are computed from the mean rank within a case; lower is
        better.
        """
        if len(self.rank_by) == 1:
            return self.differences()
        ranks_by_case = case_ranks(self._scores(self.rank_by), missing=self.missing_rule)
        return differences(ranks_by_case, subjects=self._subjects_of_cases)

    def ranks(
        self, measure: str | None = None, *, scheme: Scheme | None = None
    ) -> tuple[Rank, ...]:
        """Rank the methods from best to worst. `missing_rule` determines how missing cases count.

        If a method was scored in a case but has no value of a measure, such as the adjusted score
        of a constant image, the ranking by this measure excludes the case for all methods.

        Parameters
        ----------
        measure : str, optional
            The measure; all measures of `rank_by` together by default.
        scheme : str, optional
            The ranking scheme; `scheme` of the evaluation by default.
        """
        return joint_ranks(
            self._scores(self.rank_by if measure is None else (measure,)),
            missing=self.missing_rule,
            scheme=self.scheme if scheme is None else scheme,
            subjects=self._subjects_of_cases,
        )

    def worst(self, measure: str | None = None, count: int = WORST) -> dict[str, list[str]]:
        """Return, for every method, the cases with the worst values, the worst case first."""
        sign = 1 if self.higher_is_better(measure or self.rank_by[0]) else -1
        worst_cases = {}
        for name, values in self.values(measure).items():
            known_count = min(count, int(np.sum(~np.isnan(values))))
            order = np.argsort(sign * values, kind="stable")[:known_count]
            worst_cases[name] = [self.cases[k] for k in order]
        return worst_cases

    def regions(self) -> dict[tuple[str, Label], Summary]:
        """Summarise the Dice per method and reference label, over the cases with this label.

        A merged region has the Dice of its group. An unmatched region has a Dice of 0. Faint groups
        (`Group.faint`) are ignored.
        """
        dice = self.region_dice()
        order = list(self.methods)
        keys = sorted(dice, key=lambda key: (order.index(key[0]), label_order(key[1])))
        return {
            key: summarise(
                list(dice[key].values()),
                subjects=None if self.subjects is None else [self.subjects[k] for k in dice[key]],
            )
            for key in keys
        }

    def derived_regions(self) -> dict[tuple[str, str], Summary]:
        """Summarise the Dice per method and derived region, over the cases with this region.

        With ``missing="zero"``, the Dice of missing and failed cases is 0.
        """
        dice = {name: self.summaries(f"dice:{name}") for name in self.others.derived_regions}
        return {
            (method, name): dice[name][method]
            for method in self.methods
            for name in self.others.derived_regions
        }

    def region_dice(self) -> dict[tuple[str, Label], dict[str, float]]:
        """Return the Dice of every case, per method and reference label, without faint groups."""
        dice: dict[tuple[str, Label], dict[str, float]] = {}
        for record in self.records:
            for group in record.comparison.groups if record.comparison else ():
                for label in () if group.faint else group.reference:
                    dice.setdefault((record.method, label), {})[record.case] = group.dice
        return dice

    def comparison(self, case: str, method: str | None = None) -> Comparison:
        """Return the comparison of one case, without its images."""
        if method is None and len(self.methods) == 1:
            method = next(iter(self.methods))
        record = self.record(case, method)
        if record.comparison is None:
            raise InputError(f"case {case} of {method} failed: {record.error}")
        return record.comparison

    def comparisons(self, method: str) -> list[Comparison]:
        """Return the comparisons of the scored cases of a method, without their images."""
        return [
            record.comparison
            for record in self.records
            if record.method == method and record.comparison is not None
        ]

    def record(self, case: str, method: str | None) -> Record:
        """Return the record of one case and one method."""
        record = self._by_name.get((as_name(case), as_name(method or "")))
        if record is None:
            if method is None and case in self.cases:
                raise InputError(
                    f"method: expected one of {', '.join(self.methods)}, because case {case!r} has "
                    f"several methods"
                )
            of_method = "" if method is None else f" of method {method!r}"
            raise InputError(
                f"no case {case!r}{of_method}; the methods are "
                f"{', '.join(self.methods)}, and the cases are "
                f"{listed(self.cases, MAX_LISTED_CASES)}"
            )
        return record

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Return the content of summary.json as built-in Python types, with None instead of NaN."""
        return summary_of(self)

    @property
    def conclusion(self) -> str:
        """Sentences about the winner, significant differences, and agreement with raters."""
        return conclusion(self.summary)

    @property
    def conclusion_sentences(self) -> tuple[str, ...]:
        """The sentences of `conclusion`, starting with the most important sentence."""
        return conclusion_sentences(self.summary)

    def cases_frame(self) -> "pandas.DataFrame":
        """Return the content of cases.csv as a pandas data frame."""
        return cases_frame(self)

    def regions_frame(self) -> "pandas.DataFrame":
        """Return the content of regions.csv as a pandas data frame."""
        return regions_frame(self)

    def write(
        self,
        out: Folder,
        *,
        parquet: bool = False,
        table_columns: Sequence[str] = (),
        booktabs: bool = False,
    ) -> None:
        """Write all tables, how.md and summary.json. Each file is written completely or not at all.

        Parameters
        ----------
        out : path
            An existing folder.
        parquet : bool, optional
            Whether to write cases.parquet and regions.parquet too (requires pandas and pyarrow).
        table_columns : sequence of str, optional
            The columns of table.md and table.tex, in addition to the method: names in
            `publication_table.TABLE_COLUMNS` or names of measures. By default, all columns that
            apply to the run.
        booktabs : bool, optional
            Whether table.tex uses the rules of the LaTeX package booktabs.
        """
        options = EvaluateOptions(parquet=parquet, columns=tuple(table_columns), booktabs=booktabs)
        write_results(self, Path(out), options)

    def report(
        self,
        path: Folder | None = None,
        *,
        reports: str = "worst:5",
        workers: int | None = None,
        progress: Callable[[int, int, str], None] | None = None,
    ) -> Path:
        """Write the HTML report and the pages of selected cases. See `report.write_evaluation`.

        The cases with a page are compared again, one at a time, to create the images. If files of a
        case are missing or have changed, the page shows the recorded numbers and a notice.

        Parameters
        ----------
        path : path, optional
            The file to write; report.html in the results folder by default. The case pages are
            written to a folder next to it, which has the name of the file with the suffix
            ``_cases`` instead of ``.html``.
        reports : str, optional
            The cases that get a page: ``"all"``, ``"none"`` or ``"worst:N"``. For each method,
            ``"worst:N"`` selects the N worst cases by the first ranking measure. With several
            methods, the N cases with the worst mean over methods are also selected.
        workers : int, optional
            The number of threads; all cores by default. The pages do not depend on this number.
        progress : callable, optional
            Called after every case page with the number of finished case pages, their total number,
            and the problem with this page ("" if there is none).

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
        return write_pages(self, path, reports=reports, workers=workers, progress=progress)

    def plot(
        self,
        kind: "EvaluationKind" = "distributions",
        *,
        measure: str | None = None,
        ax: "Axes | Iterable[Axes] | None" = None,
        figsize: tuple[float, float] | None = None,
    ) -> "Figure":
        """Draw a Matplotlib figure. See `pictures.evaluations.plot_evaluation`.

        Parameters
        ----------
        kind : str, optional
            The picture to draw, "distributions" by default. `plot_evaluation` lists all kinds.
        measure : str, optional
            The measure to show; the first of `rank_by` by default.
        ax : Axes or several, optional
            The axes to draw on, one per panel. By default, a new figure is created.
        figsize : (float, float), optional
            Width and height of the new figure in inches.
        """
        from probdice.pictures.evaluations import plot_evaluation

        return plot_evaluation(self, kind, measure=measure, ax=ax, figsize=figsize)

    def __repr__(self) -> str:
        """Return one line without computing statistics. `print` computes and shows statistics."""
        methods = ", ".join(map(repr, self.methods))
        return f"Evaluation({len(self.records)} comparisons of {methods})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the same text as `print` in IPython."""
        printer.text(str(self))

    def __str__(self) -> str:
        counts = [
            {"method": name, **vars(method_counts)} for name, method_counts in self.counts.items()
        ]
        lines = [
            f"Evaluation ({self.options.similarity.name}): "
            f"{quantity(len(self.cases), 'case')}, {quantity(len(self.methods), 'method')}: "
            f"{summary_line(counts)}"
        ]
        for name, summary in self.summaries().items():
            lines.append(
                f"  {name}: {summary.aggregate} {self.title(self.rank_by[0])} "
                f"{decimal(summary.value)} over {summary.n}, 95 % CI {summary.interval}"
            )
        lines += [
            f"  failed: {record.case} ({record.method}): {record.error.partition(chr(10))[0]}"
            for record in self.failures[:MAX_PRINTED_FAILURES]
        ]
        if len(self.failures) > MAX_PRINTED_FAILURES:
            lines.append(
                f"  … and {quantity(len(self.failures) - MAX_PRINTED_FAILURES, 'more failure')}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return evaluation_as_html(self)

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Record]:
        return {(record.case, record.method): record for record in self.records}

    @cached_property
    def _values(self) -> dict[str, dict[str, NDArray[np.float64]]]:
        """A cache for `values`."""
        return {}

    @cached_property
    def _criteria(self) -> dict[str, Criterion]:
        """A cache for `_criterion`."""
        return {}

    def _criterion(self, measure: str) -> Criterion:
        if measure not in self._criteria:
            self._criteria[measure] = criterion_of(measure, self.others, self.external_columns)
        return self._criteria[measure]

    @cached_property
    def _subjects_of_cases(self) -> list[str] | None:
        """The subject of every case, in the order of `cases`."""
        subjects = self.subjects
        return None if subjects is None else [subjects[case] for case in self.cases]

    def _scores(self, measures: Iterable[str]) -> dict[str, Scores]:
        """Return the values of the given measures.

        If a method was scored in a case but has no value of a measure, this measure is NaN for all
        methods in this case.
        """
        scored_by_method = self._over_cases(_is_scored)
        scores = {}
        for measure in measures:
            values = self.values(measure)
            undefined_cases = np.zeros(len(self.cases), np.bool_)
            for name, scored_cases in scored_by_method.items():
                undefined_cases |= (scored_cases == 1) & np.isnan(values[name])
            for name in values:
                values[name][undefined_cases] = nan
            scores[measure] = Scores(values, self.higher_is_better(measure))
        return scores

    def _counted_values(self, measure: str | None) -> dict[str, NDArray[np.float64]]:
        """Return the values that are included in means."""
        key = self.rank_by[0] if measure is None else measure
        values, scored = self.values(key), self._over_cases(_is_scored)
        return {name: self._with_missing(values[name], scored[name], key) for name in values}

    def _with_missing(
        self, values: NDArray[np.float64], scored: NDArray[np.float64], measure: str
    ) -> NDArray[np.float64]:
        """Return the values of a method, after the rule for missing cases has been applied.

        With the rule "zero", unscored cases count as 0, or as infinity if lower values are better.
        The other rules do not change the values. `scored` is 1 for scored cases.
        """
        if self.missing_rule != "zero":
            return values
        worst_value = 0.0 if self.higher_is_better(measure) else inf
        return np.where(scored == 1, values, worst_value)

    def _over_cases(
        self, value: Callable[[Record], float], records: Iterable[Record] | None = None
    ) -> dict[str, NDArray[np.float64]]:
        """Return, for every method, the value of each case; NaN for cases without a record.

        All records of the evaluation are used if `records` is None.
        """
        case_indices = {case: k for k, case in enumerate(self.cases)}
        values = {name: np.full(len(case_indices), nan) for name in self.methods}
        for record in self.records if records is None else records:
            values[record.method][case_indices[record.case]] = value(record)
        return values


def _is_scored(record: Record) -> float:
    """Return 1 for a scored case and 0 for a failed case."""
    return float(record.comparison is not None)
