"""Pictures of an evaluation: values per case and per region, differences, and rankings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import ceil, isfinite, isnan
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.pictures.canvas import DOTS, PAGE, PlotRequest, canvas_for, request_of, tidy
from probdice.pictures.colours import PALETTE
from probdice.pictures.region_names import MAX_NAME_LENGTH, short_names
from probdice.pictures.volume_plots import draw_volumes
from probdice.text.formatting import decimal, quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from probdice.evaluation import Evaluation
    from probdice.evaluation.intervals import Interval
    from probdice.method.region_labels import Label

__all__ = ["EvaluationKind", "plot_evaluation", "stacked"]

EvaluationKind = Literal["distributions", "regions", "differences", "volumes", "ranks", "schemes"]

BINS = 60  # bins along an axis in which values are stacked

Floats = NDArray[np.float64]


def plot_evaluation(
    evaluation: Evaluation,
    kind: EvaluationKind = "distributions",
    *,
    measure: str | None = None,
    ax: Axes | Iterable[Axes] | None = None,
    figsize: tuple[float, float] | None = None,
) -> Figure:
    """Draw an evaluation.

    Parameters
    ----------
    evaluation : Evaluation
        The cases of one or more methods.
    kind : str, optional
        The picture to draw:

        - "distributions": one row per method, with one dot per case, the quartiles, and the mean
          (or the median if a value is infinite) with its 95 % confidence interval;
        - "regions": one row per reference label and method, with the Dice of every case as a dot,
          and the quartiles. The labels must mean the same in every case;
        - "differences": one row per pair of methods, drawn as in "distributions", with the
          difference of the methods for each of their common cases;
        - "volumes": Bland–Altman plots of volume differences against mean volumes, with limits of
          agreement, which contain 95 % of a normal distribution;
        - "ranks": the mean rank of every method with its 95 % confidence interval;
        - "schemes": the place (final rank) of every method under every ranking scheme, which shows
          whether the winner depends on the scheme.

        If not all labels of "regions" fit on one page, only the labels with the lowest mean are
        shown. In "schemes", the area of a disc shows the share of bootstrap samples in which the
        method has this place.
    measure : str, optional
        The measure to draw. The default is the first ranking measure, or all ranking measures for
        "ranks" and "schemes". This option cannot be used with "regions" or "volumes".
    ax : Axes or several, optional
        Axes to draw on: one per method for "volumes", otherwise one. By default, a new figure is
        created.
    figsize : (float, float), optional
        Width and height of the new figure in inches. By default, the size depends on `kind` and on
        the evaluation.

    Returns
    -------
    matplotlib.figure.Figure
        The new figure, or the figure of `ax`.

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
    >>> result = evaluate(truth, mine, out=out)
    >>> result.plot("regions").axes[0].get_xlabel()
    'Dice'
    >>> folder.cleanup()
    """
    if kind not in get_args(EvaluationKind):
        kinds = ", ".join(repr(name) for name in get_args(EvaluationKind))
        raise InputError(f"kind must be one of {kinds}, found {kind!r}")
    if measure is not None and kind in ("regions", "volumes"):
        raise InputError(f"measure cannot be used with kind={kind!r}. Omit measure.")
    request = request_of(kind, ax=ax, figsize=figsize)
    return DRAWING_FUNCTIONS[kind](evaluation, measure, request)


@dataclass(frozen=True, eq=False)
class DotRow:
    """A row of dots, and the mean (or median) and confidence interval drawn above the dots."""

    name: str
    colour: str
    values: Floats
    mean: float
    interval: Interval


def draw_distributions(evaluation: Evaluation, measure: str | None, request: PlotRequest) -> Figure:
    """Draw one dot per case, with one row per method."""
    values, summaries = evaluation.values(measure), evaluation.summaries(measure)
    names = short_names(list(evaluation.methods), MAX_NAME_LENGTH)
    rows = [
        DotRow(name, colour, values[method], summaries[method].value, summaries[method].interval)
        for method, name, colour in zip(evaluation.methods, names, _colours(), strict=False)
    ]
    canvas = canvas_for(request, (6.4, _height(len(rows), 0.5)))
    _draw_rows(canvas.axes[0], rows)
    canvas.axes[0].set_xlabel(f"{_title(evaluation, measure)}{_infinite_note(rows)}")
    return canvas.figure


def draw_regions(evaluation: Evaluation, measure: str | None, request: PlotRequest) -> Figure:
    """Draw the Dice of every reference label for all methods."""
    from matplotlib.lines import Line2D

    if not evaluation.labels_agree:
        raise InputError(
            "kind='regions' requires labels with the same meaning in every case, but the meaning "
            "of the labels seems to differ between cases. If it is the same, assign names to the "
            "labels."
        )
    dice = {
        key: np.array(list(by_case.values())) for key, by_case in evaluation.region_dice().items()
    }
    methods = list(evaluation.methods)
    labels = sorted({label for _, label in dice}, key=lambda label: _mean(dice, methods, label))
    height = request.figsize[1] if request.figsize else PAGE
    row = 0.16 * len(methods) + 0.1
    fitting = max(int((height - 1.2) / row), 1)
    visible_labels = labels[:fitting]
    canvas = canvas_for(request, (6.4, min(row * len(visible_labels) + 1.2, PAGE)))
    ax = canvas.axes[0]
    colours = dict(zip(methods, _colours(), strict=False))
    step = 0.8 / max(len(methods), 1)
    for k, label in enumerate(visible_labels):
        for n, method in enumerate(methods):
            values = dice.get((method, label), np.zeros(0))
            y = k + (n - (len(methods) - 1) / 2) * step
            _dots(ax, values, y, colours[method], spread=step / 2, span=(0.0, 1.0))
            _bar(ax, values, y, colours[method])
    ax.set_yticks(
        range(len(visible_labels)), short_names(visible_labels, MAX_NAME_LENGTH), fontsize=8
    )
    ax.set(xlim=(-0.02, 1.02), ylim=(len(visible_labels) - 0.4, -0.6), xlabel="Dice")
    tidy(ax, grid="y")
    names = short_names(methods, MAX_NAME_LENGTH)
    handles = [
        Line2D([], [], color=colours[method], marker="o", ms=4, lw=1.4, label=name)
        for method, name in zip(methods, names, strict=True)
    ]
    title = None
    if len(visible_labels) < len(labels):
        title = f"{len(visible_labels)} of {len(labels):,} labels, with the lowest mean Dice"
    canvas.legend(list(handles), columns=4, title=title)
    return canvas.figure


def draw_differences(evaluation: Evaluation, measure: str | None, request: PlotRequest) -> Figure:
    """Draw the difference per case for every pair of methods."""
    from probdice.evaluation.statistics import gaps

    pairs = evaluation.differences(measure)
    if not pairs:
        raise InputError("kind='differences' requires at least two methods, found one")
    values = evaluation.values(measure)
    visible_pairs = pairs[: max(int((PAGE - 1) / 0.5), 1)]
    rows = [
        DotRow(
            f"{first} − {second}",
            "#555555",
            gaps(values[pair.first], values[pair.second]),
            pair.median if isnan(pair.mean) else pair.mean,
            pair.interval,
        )
        for pair, first, second in zip(
            visible_pairs,
            short_names([pair.first for pair in visible_pairs], MAX_NAME_LENGTH // 2),
            short_names([pair.second for pair in visible_pairs], MAX_NAME_LENGTH // 2),
            strict=True,
        )
    ]
    canvas = canvas_for(request, (6.4, _height(len(rows), 0.5)))
    ax = canvas.axes[0]
    _draw_rows(ax, rows)
    ax.axvline(0, color="#999999", linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    title = _title(evaluation, measure)
    ax.set_xlabel(f"difference of {title} per case{_infinite_note(rows)}")
    if len(visible_pairs) < len(pairs):
        canvas.add_title(f"the first {len(visible_pairs)} of {len(pairs)} pairs of methods")
    return canvas.figure


def draw_ranks(evaluation: Evaluation, measure: str | None, request: PlotRequest) -> Figure:
    """Draw the mean rank of every method, with the best method at the top."""
    ranks = evaluation.ranks(measure)
    canvas = canvas_for(request, (6.4, _height(len(ranks), 0.34)))
    ax = canvas.axes[0]
    colours = dict(zip(evaluation.methods, _colours(), strict=False))
    names = short_names([rank.method for rank in ranks], MAX_NAME_LENGTH)
    for y, rank in enumerate(ranks):
        if isnan(rank.mean_rank):
            continue
        if rank.mean_rank_interval.kind != "withheld":
            ends = rank.mean_rank_interval.low, rank.mean_rank_interval.high
            ax.plot(ends, (y, y), color=colours[rank.method], linewidth=2, solid_capstyle="butt")
        ax.plot(rank.mean_rank, y, "o", color=colours[rank.method], ms=6, mec="white", mew=0.6)
    places = [f"{rank.place}. " if rank.place is not None else "" for rank in ranks]
    ax.set_yticks(range(len(ranks)), [f"{k}{name}" for k, name in zip(places, names, strict=True)])
    ax.set(
        xlim=(0.9, len(ranks) + 0.1),
        ylim=(len(ranks) - 0.4, -0.6),
        xticks=range(1, len(ranks) + 1, ceil(len(ranks) / 12)),
        xlabel=f"mean rank by {_titles(evaluation, measure)}, 1 is best; lines are 95 % CIs",
    )
    tidy(ax, grid="x")
    return canvas.figure


def draw_schemes(evaluation: Evaluation, measure: str | None, request: PlotRequest) -> Figure:
    """Draw the place of every method under every ranking scheme."""
    from probdice.options import SCHEMES

    if len(evaluation.methods) < 2:
        raise InputError("kind='schemes' requires at least two methods, found one")
    by_scheme = {
        scheme: {rank.method: rank for rank in evaluation.ranks(measure, scheme=scheme)}
        for scheme in SCHEMES
    }
    methods = [name for name, rank in by_scheme[evaluation.scheme].items() if rank.place]
    canvas = canvas_for(request, (6.4, _height(len(methods), 0.5)))
    ax = canvas.axes[0]
    colours = dict(zip(evaluation.methods, _colours(), strict=False))
    names = dict(zip(methods, short_names(methods, MAX_NAME_LENGTH), strict=True))
    columns = range(len(SCHEMES))
    for method in methods:
        ranks = [by_scheme[scheme][method] for scheme in SCHEMES]
        shift = 0.12 * (methods.index(method) / len(methods) - 0.5)  # separates tied methods
        places = [(rank.place or len(methods)) + shift for rank in ranks]
        ax.plot(columns, places, "-", color=colours[method], linewidth=1.6, zorder=2)
        areas = [160 * (1.0 if isnan(rank.stability) else rank.stability) + 8 for rank in ranks]
        ax.scatter(columns, places, s=areas, color=colours[method], zorder=3, linewidths=0)
        ax.annotate(names[method], (columns[-1] + 0.12, places[-1]), va="center", fontsize=8)
    titles = [f"{scheme}\n(used)" if scheme == evaluation.scheme else scheme for scheme in SCHEMES]
    ax.set_xticks(columns, titles, fontsize=8)
    ax.set(xlim=(-0.3, len(SCHEMES) - 0.3), ylim=(len(methods) + 0.5, 0.5))
    ax.set(yticks=range(1, len(methods) + 1), ylabel="place")
    ax.set_xlabel(f"ranking by {_titles(evaluation, measure)}; area: rank stability", fontsize=8)
    tidy(ax, grid="y")
    return canvas.figure


DRAWING_FUNCTIONS: dict[str, Callable[[Evaluation, str | None, PlotRequest], Figure]] = {
    "distributions": draw_distributions,
    "regions": draw_regions,
    "differences": draw_differences,
    "volumes": draw_volumes,
    "ranks": draw_ranks,
    "schemes": draw_schemes,
}


def stacked(values: Floats, span: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return the sorted finite values, and the position of each in a stack of similar values.

    Positions are 0, 1, −1, 2, −2, …, so that a stack grows in both directions.
    """
    finite_values = np.sort(values[np.isfinite(values)])
    width = (span[1] - span[0]) / BINS or 1.0
    bins = np.floor((finite_values - span[0]) / width).astype(np.int64)
    first = np.searchsorted(bins, bins, side="left")
    order = np.arange(finite_values.size) - first
    places = np.where(order % 2 == 1, (order + 1) // 2, -(order // 2))
    return finite_values, places.astype(np.float64)


def _draw_rows(ax: Axes, rows: Sequence[DotRow]) -> None:
    all_values = np.concatenate([row.values[np.isfinite(row.values)] for row in rows])
    span = (float(all_values.min()), float(all_values.max())) if all_values.size else (0.0, 1.0)
    for y, row in enumerate(rows):
        _dots(ax, row.values, y + 0.12, row.colour, spread=0.26, span=span)
        _bar(ax, row.values, y - 0.26, row.colour)
        if not isfinite(row.mean):
            continue
        if row.interval.kind != "withheld":
            ends = row.interval.low, min(row.interval.high, span[1])
            ax.plot(ends, (y - 0.26,) * 2, color="black", linewidth=1.2, zorder=4)
        ax.plot(row.mean, y - 0.26, "D", color="black", ms=4, zorder=5)
        ax.annotate(
            decimal(row.mean, 3),
            (row.mean, y - 0.26),
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=7,
        )
    ax.set_yticks(range(len(rows)), [row.name for row in rows], fontsize=8)
    ax.set_ylim(len(rows) - 0.4, -0.8)
    tidy(ax)


def _dots(
    ax: Axes, values: Floats, y: float, colour: str, *, spread: float, span: tuple[float, float]
) -> None:
    """Draw every value as a dot.

    Dots of nearly equal values are stacked above and below `y`, at a distance of at most `spread`.
    """
    finite, places = stacked(values, span)
    most = float(np.abs(places).max(initial=0))
    step = min(0.07, spread / most) if most else 0.0
    ax.plot(finite, y + step * places, "o", ms=DOTS, color=colour, alpha=0.65, mew=0, zorder=2)


def _bar(ax: Axes, values: Floats, y: float, colour: str) -> None:
    """Draw the quartiles and the median."""
    finite_values = values[np.isfinite(values)]
    if finite_values.size > 1:
        low, median, high = np.quantile(finite_values, (0.25, 0.5, 0.75))
        ax.plot((low, high), (y, y), color=colour, linewidth=3.5, alpha=0.35, zorder=3)
        ax.plot(median, y, "|", color=colour, ms=7, mew=1.6, zorder=3)


def _mean(
    dice: dict[tuple[str, Label], Floats], methods: Sequence[str], label: Label
) -> tuple[float, str]:
    """Return the sort key of a region: its mean over all methods, followed by its name."""
    values = np.concatenate([dice.get((method, label), np.zeros(0)) for method in methods])
    finite_values = values[~np.isnan(values)]
    mean = float(finite_values.mean()) if finite_values.size else float("nan")
    return (2.0 if isnan(mean) else mean, str(label))


def _title(evaluation: Evaluation, measure: str | None) -> str:
    return evaluation.title(evaluation.rank_by[0] if measure is None else measure)


def _titles(evaluation: Evaluation, measure: str | None) -> str:
    """Return the titles of the measures of a ranking."""
    *first_titles, last = map(evaluation.title, [measure] if measure else evaluation.rank_by)
    return f"{', '.join(first_titles)} and {last}" if first_titles else last


def _infinite_note(rows: Sequence[DotRow]) -> str:
    """Return a remark about infinite values, which cannot be drawn."""
    count = sum(int(np.isinf(row.values).sum()) for row in rows)
    return f" ({quantity(count, 'infinite value')} not drawn)" if count else ""


def _colours() -> Iterator[str]:
    """Return the colours of the methods, in order. The HTML report uses the same colours."""
    return cycle(PALETTE)


def _height(rows: int, row: float) -> float:
    return min(row * rows + 0.9, PAGE)
