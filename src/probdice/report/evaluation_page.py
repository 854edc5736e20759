"""The report of an evaluation: methods side by side, and every case."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

from probdice.method.matching import Fixed, Given, listed
from probdice.method.scoring import NeedsImages
from probdice.metrics.registry import MISSING_RULES
from probdice.options import TOLERANCE, Options
from probdice.pictures.colours import PALETTE
from probdice.report.encoding import shortened
from probdice.report.facts import RULES, Fact
from probdice.report.inline_charts import Chart, charts_of
from probdice.text.formatting import decimal, percent

if TYPE_CHECKING:
    from probdice.evaluation import Evaluation
    from probdice.method.sides import Both
    from probdice.report.cases import Pages

__all__ = ["EvaluationPage", "evaluation_page"]

WORDS = {
    "score": ("Score", "after matching and merging; 1 means equal"),
    "adjusted_score": ("Adjusted score", "0 is chance level, 1 means equal"),
    "matched_score": ("Matched score", "before merging, with one-to-one matching"),
    "explained_reference": (
        "Reference explained",
        "share of its variance that the prediction explains; splitting regions does not lower it",
    ),
    "explained_prediction": (
        "Prediction explained",
        "share of its variance that the reference explains; merging regions does not lower it",
    ),
    "mean_dice": ("Mean Dice", "over all groups of a case; unmatched regions count as 0"),
    "lowest_dice": ("Lowest Dice", "over all groups of a case; unmatched regions count as 0"),
    "foreground_dice": ("Foreground Dice", "mean over all groups of a case except the background"),
}
LISTED = 2000  # failures and labels in a table
LONGEST = 2000  # characters of a message
LEFT, TOP, STEP, RADIUS = 60, 50, 64, 24  # of the rank stability figure, in pixels

Shown = Callable[[float | None], str]


@dataclass(frozen=True)
class Cell:
    """A table cell: the value to sort by, the text to show, and a remark."""

    value: float | None
    text: str
    about: str = ""


@dataclass(frozen=True)
class MethodRow:
    """A method by one measure."""

    name: str
    colour: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Pair:
    """Two methods by one measure."""

    first: str
    second: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Blob:
    """The share of bootstrap samples in which a method has a place, as the area of a disc."""

    x: float
    y: float
    radius: float
    colour: str
    title: str
    own: bool  # whether it is the place of the method in the ranking


@dataclass(frozen=True)
class Stability:
    """Rank stability: how often every method has every place, methods ordered by place."""

    width: int
    height: int
    blobs: tuple[Blob, ...]
    methods: tuple[tuple[float, str], ...]  # position and a short name
    places: tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class MeasureBlock:
    """All methods by one measure, the best first."""

    key: str
    name: str
    about: str
    heads: tuple[tuple[str, str], ...]  # the headings of the cells of a row, each with a remark
    methods: tuple[MethodRow, ...]
    pairs: tuple[Pair, ...]
    stability: Stability | None


@dataclass(frozen=True)
class PlaceRow:
    """The places of a method by every measure."""

    name: str
    colour: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class RegionRow:
    """A label of the reference, and its Dice by every method."""

    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class FailedCase:
    """A case without a score, and the reason."""

    case: str
    method: str
    message: str


@dataclass(frozen=True)
class RaterTable:
    """Agreement of methods and raters with each rater, and inter-rater agreement."""

    measure: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


@dataclass(frozen=True)
class EvaluationPage:
    """Everything on the page of an evaluation."""

    title: str
    subtitle: str
    rule: str
    remarks: tuple[str, ...]
    methods: tuple[tuple[str, str, str], ...]  # name, folder, colour
    measures: tuple[MeasureBlock, ...]
    places: tuple[PlaceRow, ...]
    rater_comparison: RaterTable | None
    regions: tuple[RegionRow, ...]
    hidden_regions: int
    charts: tuple[Chart, ...]
    headline: str
    unscored: tuple[FailedCase, ...]
    hidden_unscored: int
    options: tuple[Fact, ...]
    data: dict[str, Any]


def evaluation_page(evaluation: Evaluation, pages: Pages, title: str | None) -> EvaluationPage:
    """The page, with links to the pages of cases."""
    summary = evaluation.summary
    colours = {name: PALETTE[k % len(PALETTE)] for k, name in enumerate(evaluation.methods)}
    regions = _regions(summary, list(evaluation.methods))
    unscored = _failed_cases(summary)
    scored = len(evaluation.records) - len(evaluation.failures)
    counts = f"{_count(len(evaluation.cases), 'case')}, {_count(len(colours), 'method')}"
    return EvaluationPage(
        title=shortened(title, 200) if title else f"Evaluation: {counts}",
        subtitle=f"{scored} scored, {len(evaluation.failures)} failed, "
        f"{len(evaluation.missing)} missing; reference: {_reference(summary)}",
        rule=_missing_rule(summary),
        remarks=_remarks(summary),
        methods=tuple(
            (shortened(name), shortened(folder, 1000), colours[name])
            for name, folder in summary["methods"].items()
        ),
        measures=tuple(_block(key, summary, colours) for key in summary["measures"]),
        places=_places(summary, colours) if len(colours) > 1 else (),
        rater_comparison=_rater_comparison(summary),
        regions=regions[:LISTED],
        hidden_regions=max(0, len(regions) - LISTED),
        charts=charts_of(evaluation),
        headline=_headline(evaluation),
        unscored=unscored[:LISTED],
        hidden_unscored=max(0, len(unscored) - LISTED),
        options=_options(evaluation),
        data=_data(evaluation, pages, colours),
    )


def _headline(evaluation: Evaluation) -> str:
    """The numbers of failed and missing cases by method, or ""."""
    parts = []
    for name, counts in evaluation.counts.items():
        unscored = [
            f"{count} {word}"
            for count, word in ((counts.failed, "failed"), (counts.missing, "missing"))
            if count
        ]
        if unscored:
            cases = _count(counts.cases, "case")
            parts.append(f"{shortened(name)}: {' and '.join(unscored)} of {cases}")
    return "; ".join(parts)


def _chance(evaluation: Evaluation) -> dict[str, float | None]:
    """The mean chance level of the measures that have one."""
    levels = []
    for record in evaluation.records:
        with suppress(NeedsImages):
            if record.comparison is not None:
                levels.append(record.comparison.chance)
    defined = [level for level in levels if not isnan(level)]
    return {
        "score": sum(defined) / len(defined) if defined else None,
        "adjusted_score": 0.0,
    }


def _block(key: str, summary: dict[str, Any], colours: dict[str, str]) -> MeasureBlock:
    name, about = WORDS[key]
    content = summary["measures"][key]
    entries = {entry["method"]: entry for entry in content["methods"]}
    counts = {entry["method"]: entry for entry in summary["counts"]}
    differing = any(entry["equal_labels"] is not None for entry in entries.values())
    equal_labels = ("Equal labels", "The mean if equal labels are matched")
    heads = (
        ("Place", "By the mean rank over the cases; 1 is the best, equal methods share a place"),
        ("Stability", "Share of bootstrap samples of the cases in which the method has this place"),
        ("Mean", ""),
        ("95 % CI", "Bootstrap confidence interval of the mean over the cases"),
        *([equal_labels] if differing else []),
        ("Median", ""),
        ("Quartiles", "From the lower to the upper quartile"),
        ("Lowest", ""),
        ("Cases", ""),
    )
    rows = []
    for rank in content["ranks"]:
        method = rank["method"]
        entry, count = entries[method], counts[method]
        cells = (
            _ranked(rank),
            Cell(rank["kept"], percent(rank["kept"], 0)),
            _cell(entry["mean"]),
            _interval(entry["interval"]),
            *([_cell(entry["equal_labels"])] if differing else []),
            _cell(entry["median"]),
            _quartiles(entry),
            _cell(entry["lowest"]),
            Cell(entry["n"], f"{entry['n']} of {count['cases']}", _absent(count)),
        )
        rows.append(MethodRow(shortened(method), colours[method], cells))
    pairs = tuple(
        Pair(
            shortened(entry["first"]),
            shortened(entry["second"]),
            (
                _cell(entry["mean"], _signed),
                _interval(entry["interval"], _signed),
                Cell(entry["p_holm"], _probability(entry["p_holm"]), entry["reason"]),
                Cell(entry["n"], str(entry["n"])),
            ),
        )
        for entry in content["differences"]
    )
    stability = _stability(content["ranks"], colours)
    return MeasureBlock(key, name, about, heads, tuple(rows), pairs, stability)


def _stability(ranks: list[dict[str, Any]], colours: dict[str, str]) -> Stability | None:
    """Rank stability as a figure; None for a single method or too few cases."""
    drawn = [rank for rank in ranks if rank["shares"]]
    if len(drawn) < 2:
        return None
    blobs = tuple(
        Blob(
            x=LEFT + STEP * column,
            y=TOP + STEP * (place - 1),
            radius=round(RADIUS * share**0.5, 2),
            colour=colours[rank["method"]],
            title=f"{shortened(rank['method'])}: place {place} in {percent(share)} of samples",
            own=place == rank["place"],
        )
        for column, rank in enumerate(drawn)
        for place, share in enumerate(rank["shares"], 1)
        if share
    )
    size = STEP * len(drawn)
    return Stability(
        LEFT + size,
        TOP + size,
        blobs,
        tuple((LEFT + STEP * k, shortened(rank["method"], 9)) for k, rank in enumerate(drawn)),
        tuple((TOP + STEP * k, k + 1) for k in range(len(drawn))),
    )


def _places(summary: dict[str, Any], colours: dict[str, str]) -> tuple[PlaceRow, ...]:
    """The place of every method by every measure, the best method first."""
    by_measure = [
        {rank["method"]: rank for rank in content["ranks"]}
        for content in summary["measures"].values()
    ]
    rows = []
    for method in by_measure[0]:
        ranks = [ranks[method] for ranks in by_measure]
        cells = tuple(
            Cell(
                rank["place"],
                "–" if rank["place"] is None else str(rank["place"]),
                "" if rank["kept"] is None else f"stability {percent(rank['kept'], 0)}",
            )
            for rank in ranks
        )
        rows.append(PlaceRow(shortened(method), colours[method], cells))
    return tuple(rows)


def _reference(summary: dict[str, Any]) -> str:
    """The folder of the reference, and whether that holds the mean of raters."""
    agreement = summary["yardstick"]
    if agreement is None or not agreement["reference_is_mean"]:
        return str(summary["reference"])
    return f"mean of {_count(len(agreement['raters']), 'rater')} ({summary['reference']})"


def _missing_rule(summary: dict[str, Any]) -> str:
    """The rule for missing and failed cases, in a sentence."""
    rule = summary["missing_rule"]
    return f"Missing and failed cases {MISSING_RULES[rule]} (missing: {rule})."


def _remarks(summary: dict[str, Any]) -> tuple[str, ...]:
    """The remarks on methods, and the notes on the whole run."""
    remarks = (
        f"{shortened(method)}: {text}"
        for method, texts in summary["remarks"].items()
        for text in texts
    )
    return (*remarks, *summary["notes"])


def _rater_comparison(summary: dict[str, Any]) -> RaterTable | None:
    """Agreement with each rater; inter-rater agreement is over the cases of the method."""
    content = summary["yardstick"]
    if content is None:
        return None
    raters, methods = list(content["raters"]), content["methods"]
    nothing = Cell(None, "–")
    rows = []
    for name, means in sorted(content["means"].items(), key=lambda row: row[0] not in methods):
        cells = [_cell(means[rater]) if rater in means else nothing for rater in raters]
        if name in methods:
            own, baseline = methods[name], content["baselines"][name]
            cells += [Cell(own["n"], str(own["n"])), *_mean_cells(own), *_mean_cells(baseline)]
        else:
            cells += [nothing] * 5
        rows.append((shortened(name), tuple(cells)))
    among = content["among"]
    blank = [nothing] * len(raters)
    last = (*blank, Cell(among["n"], str(among["n"])), nothing, nothing, *_mean_cells(among))
    rows.append(("inter-rater agreement", last))
    heads = (*map(shortened, raters), "Cases", "Mean", "95 % CI", "Raters", "95 % CI (raters)")
    return RaterTable(WORDS[content["measure"]][0], heads, tuple(rows))


def _mean_cells(summary: dict[str, Any]) -> list[Cell]:
    return [_cell(summary["mean"]), _interval(summary["interval"])]


def _regions(summary: dict[str, Any], methods: list[str]) -> tuple[RegionRow, ...]:
    """One row per label, in the order of the summary, and one column per method."""
    table: dict[str, dict[str, dict[str, Any]]] = {}
    for entry in summary["regions"]:
        table.setdefault(str(entry["label"]), {})[entry["method"]] = entry
    rows = []
    for label, by_method in table.items():
        cells = []
        for method in methods:
            entry = by_method.get(method)
            if entry is None:
                cells.append(Cell(None, "–"))
                continue
            interval = _interval(entry["interval"])
            about = f"{interval.text}, " if interval.value is not None else ""
            cells.append(_cell(entry["mean"], about=f"{about}{_count(entry['n'], 'case')}"))
        rows.append(RegionRow(shortened(label), tuple(cells)))
    return tuple(rows)


def _failed_cases(summary: dict[str, Any]) -> tuple[FailedCase, ...]:
    failed = [
        FailedCase(one["case"], shortened(one["method"]), shortened(one["error"], LONGEST))
        for one in summary["failures"]
    ]
    missing = [
        FailedCase(one["case"], shortened(one["method"]), f"no {one['side']}")
        for one in summary["missing"]
    ]
    return (*failed, *missing)


def _options(evaluation: Evaluation) -> tuple[Fact, ...]:
    """Options that are not the defaults, and versions."""
    options, summary = evaluation.options, evaluation.summary
    facts = [
        Fact("Similarity", (str(options.similarity),)),
        Fact("Regions", (_rule(options),)),
        Fact("Merging", (options.merge,)),
    ]
    if options.correspondence == "set":
        facts.append(Fact("Correspondence", ("one for all cases of a method",)))
    if options.ignore:
        facts.append(Fact("Ignored labels", (shortened(listed(options.ignore), 300),)))
    if set(options.sums) != {"error"}:
        facts.append(Fact("Sums", _per_side(options.sums.map(str))))
    if options.scale is not None:
        facts.append(Fact("Scale", (f"{options.scale:g} where values exceed 1",)))
    if set(options.scales) != {None}:
        facts.append(Fact("Scale", _per_side(options.scales.map(_divisor))))
    if options.ignore_geometry:
        facts.append(Fact("Geometry", ("ignored",)))
    elif options.tolerance != TOLERANCE:
        facts.append(Fact("Geometry", (f"within {options.tolerance:g} voxels",)))
    if summary["mask"] is not None:
        facts.append(Fact("Masks", (shortened(summary["mask"], 1000),)))
    if patterns := _patterns(summary["patterns"]):
        facts.append(Fact("Patterns", (patterns,)))
    if summary["yardstick"] is not None:
        raters = summary["yardstick"]["raters"].items()
        folders = tuple(f"{shortened(name)}: {shortened(path, 1000)}" for name, path in raters)
        facts.append(Fact("Raters", folders))
    facts.append(Fact("Ranked by", (WORDS[summary["rank_by"]][0],)))
    versions = {**summary["versions"], "Python": summary["environment"]["python"]}
    made_with = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (*facts, Fact("Made with", (made_with,)))


def _patterns(patterns: dict[str, Any]) -> str:
    """The patterns that were given."""
    others = {name: text for name, text in patterns.items() if name != "methods"}
    given = others | patterns["methods"]
    return shortened(", ".join(f"{name}: {text}" for name, text in given.items() if text), 1000)


def _rule(options: Options) -> str:
    """How regions were matched."""
    if isinstance(options.match, Fixed):
        pairs = ", ".join(f"{first} ↔ {second}" for first, second in options.match.pairs)
        return shortened(f"{pairs} as given, other regions by overlap", 300)
    return (
        "as in an earlier comparison" if isinstance(options.match, Given) else RULES[options.match]
    )


def _per_side(values: Both[str]) -> tuple[str, ...]:
    """The values of both sides."""
    return (f"reference {values.reference}, prediction {values.prediction}",)


def _divisor(scale: float | None) -> str:
    return "as it is" if scale is None else f"divided by {scale:g}"


def _data(evaluation: Evaluation, pages: Pages, colours: dict[str, str]) -> dict[str, Any]:
    """The data of every case, for the dots and the table."""
    methods, measures = list(evaluation.methods), list(evaluation.measures)
    background = evaluation.others.background
    place = {case: k for k, case in enumerate(evaluation.cases)}
    means = {
        key: [
            [entry["mean"], entry["interval"]["low"], entry["interval"]["high"]]
            for entry in evaluation.summary["measures"][key]["methods"]
        ]
        for key in measures
    }
    return {
        "measures": measures,
        "names": [WORDS[key][0] for key in measures],
        "means": means,
        "chance": _chance(evaluation),
        "together": {
            str(place[case]): address for (case, method), address in pages.items() if not method
        },
        "methods": [shortened(name) for name in methods],
        "colours": [colours[name] for name in methods],
        "cases": [shortened(case, 200) for case in evaluation.cases],
        "records": [
            [
                place[record.case],
                methods.index(record.method),
                *(_as_shown(record.value(measure, background)) for measure in evaluation.measures),
                pages.get((record.case, record.method), ""),
            ]
            for record in evaluation.records
            if record.comparison is not None
        ],
    }


def _as_shown(value: float) -> float | None:
    """The value with the digits that are shown, which keeps the page small."""
    return None if isnan(value) else float(decimal(value))


def _ranked(rank: dict[str, Any]) -> Cell:
    interval = rank["place_interval"]
    if rank["n"] == 0 or rank["place"] is None:
        return Cell(None, "–", "no ranked case")
    about = f"mean rank {rank['mean_rank']:.2f} over {_count(rank['n'], 'case')}"
    if rank["last"]:
        about += f", last on {rank['last']}"
    text = f"{rank['place']:g}"
    if interval["kind"] != "withheld" and interval["low"] != interval["high"]:
        text += f" ({interval['low']:g} to {interval['high']:g})"
    return Cell(rank["place"], text, about)


def _interval(interval: dict[str, Any], shown: Shown = decimal) -> Cell:
    if interval["kind"] == "withheld" or interval["low"] is None:
        return Cell(None, "withheld", interval["reason"])
    text = f"{shown(interval['low'])} to {shown(interval['high'])}"
    return Cell(interval["low"], text, interval["reason"])


def _quartiles(entry: dict[str, Any]) -> Cell:
    if entry["lower_quartile"] is None:
        return Cell(None, "–")
    low, high = entry["lower_quartile"], entry["upper_quartile"]
    return Cell(low, f"{decimal(low)} to {decimal(high)}")


def _cell(value: float | None, shown: Shown = decimal, about: str = "") -> Cell:
    return Cell(value, shown(value), about)


def _signed(value: float | None) -> str:
    """A difference with its sign."""
    return f"+{decimal(value)}" if value is not None and value >= 0 else decimal(value)


def _probability(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.0001" if p < 0.0001 else decimal(p)


def _absent(count: dict[str, Any]) -> str:
    """How many cases are missing, and how many failed."""
    kinds = [f"{count[kind]} {kind}" for kind in ("missing", "failed") if count[kind]]
    return ", ".join(kinds)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
