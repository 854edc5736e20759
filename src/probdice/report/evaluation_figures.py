"""Figures on the page of an evaluation: means with confidence intervals, and rank stability.

Positions along the axis of a plot are percentages of the width of the plot, so that the text size
does not depend on the screen width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Any

from probdice.report.encoding import shortened
from probdice.report.page_tables import centre_of
from probdice.text.formatting import decimal, percent

__all__ = ["IntervalPlot", "Stability", "interval_plot", "round_ticks", "stability_figure"]

DIGITS = 3  # digits of the values beside the plot
ROW, HEAD, FOOT = 44, 22, 26  # heights: row of a method, label of the raters, axis
THIRD = 33  # per cent of the axis; a label this close to an end is aligned to stay inside
INSET = 2.0  # empty margin on both sides of a plot, in per cent of its width
TICKS = 6  # largest number of ticks on the axis of a plot
LABEL = 28  # largest number of characters of a method name in a figure
LEFT, TOP, STEP, RADIUS = 190, 62, 62, 19  # layout of the rank stability figure, in pixels


@dataclass(frozen=True)
class MethodDot:
    """The mean of a method and its confidence interval. Unknown positions are None."""

    name: str
    colour: str
    value: str
    y: int
    x: float | None
    low: float | None
    high: float | None
    with_raters: float | None  # mean agreement with the raters, to compare with the band


@dataclass(frozen=True)
class Band:
    """Inter-rater agreement and its confidence interval."""

    x: float
    low: float
    width: float
    label: str
    label_x: float
    anchor: str


@dataclass(frozen=True)
class IntervalPlot:
    """The mean of every method with its 95 % confidence interval, in the order of the table."""

    height: int
    bottom: int
    dots: tuple[MethodDot, ...]
    band: Band | None
    ticks: tuple[tuple[float, str], ...]
    axis: str


@dataclass(frozen=True)
class Blob:
    """A disc for one method and one place.

    Its area is proportional to the share of bootstrap samples in which the method has this place.
    """

    x: float
    y: float
    radius: float
    colour: str
    share: str
    title: str
    is_ranked_place: bool  # whether this is the place of the method in the ranking


@dataclass(frozen=True)
class Stability:
    """Rank stability of every method at every place, with the methods ordered by place."""

    width: int
    height: int
    left: int
    blobs: tuple[Blob, ...]
    methods: tuple[tuple[float, str], ...]  # position and a short name
    places: tuple[tuple[float, int], ...]
    tied: bool  # whether the shares of a place sum to more than 1


def interval_plot(
    key: str, title: str, summary: dict[str, Any], colours: dict[str, str]
) -> IntervalPlot | None:
    """Return the plot of a measure, or None if no method has a finite value."""
    content = summary["measures"][key]
    entries = {entry["method"]: centre_of(entry) for entry in content["methods"]}
    order = [rank["method"] for rank in content["ranks"]]
    raters = summary["rater_comparison"]
    raters = raters if raters is not None and raters["measure"] == key else None
    agreement = None if raters is None else centre_of(raters["inter_rater"])
    with_raters = {} if raters is None else raters["methods"]
    rater_means = {method: centre_of(entry)[0] for method, entry in with_raters.items()}
    all_values = [
        *entries.values(),
        *([] if agreement is None else [agreement]),
        tuple(rater_means.values()),
    ]
    finite = [
        value for values in all_values for value in values if value is not None and isfinite(value)
    ]
    if not finite:
        return None
    low, high = _limits(finite)

    def position(value: float | None) -> float | None:
        if value is None or not isfinite(value):
            return None
        return round(INSET + (100 - 2 * INSET) * (value - low) / (high - low), 3)

    dots = []
    for k, method in enumerate(order):
        x, start, end = (position(value) for value in entries[method])
        y, text = HEAD + ROW * k + ROW - 10, _value_text(entries[method])
        name = shortened(method, LABEL)
        dots.append(
            MethodDot(
                name, colours[method], text, y, x, start, end, position(rater_means.get(method))
            )
        )
    bottom = HEAD + ROW * len(dots) + 6
    ticks = tuple((position(tick) or 0.0, f"{tick:g}") for tick in round_ticks(low, high))
    better = "higher" if content["higher_is_better"] else "lower"
    medians = any(entry["aggregate"] == "median" for entry in content["methods"])
    kind = "mean, or median if a value is infinite" if medians else "mean"
    axis = f"{title}, {kind} over the cases with 95 % CI ({better} is better)"
    band = None if agreement is None else _band(position, agreement)
    return IntervalPlot(bottom + FOOT, bottom, tuple(dots), band, ticks, axis)


def round_ticks(low: float, high: float) -> list[float]:
    """Return at most `TICKS` equally spaced round numbers from `low` to `high`.

    The spacing is 1, 2 or 5 times a power of ten.
    """
    unit = 10.0 ** floor(log10((high - low) / TICKS))
    step = next(s * unit for s in (1, 2, 5, 10, 20) if (high - low) / (s * unit) <= TICKS - 1)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [float(f"{k * step:.6g}") for k in range(first, last + 1)]


def stability_figure(ranks: list[dict[str, Any]], colours: dict[str, str]) -> Stability | None:
    """Return the figure, or None if fewer than two methods have a known rank stability."""
    entries = [rank for rank in ranks if rank["shares"]]
    if len(entries) < 2:
        return None
    blobs = tuple(
        Blob(
            x=LEFT + STEP * (place - 0.5),
            y=TOP + STEP * row,
            radius=round(RADIUS * share**0.5, 2),
            colour=colours[rank["method"]],
            share="< 1 %" if share < 0.005 else percent(share, 0),
            title=f"{shortened(rank['method'])}: place {place} in {percent(share)} of samples",
            is_ranked_place=place == rank["place"],
        )
        for row, rank in enumerate(entries)
        for place, share in enumerate(rank["shares"], 1)
        if share
    )
    size = STEP * len(entries)
    return Stability(
        LEFT + size,
        TOP + size - 24,
        LEFT,
        blobs,
        tuple((TOP + STEP * k, shortened(rank["method"], 24)) for k, rank in enumerate(entries)),
        tuple((LEFT + STEP * (k + 0.5), k + 1) for k in range(len(entries))),
        any(
            sum(shares) > 1.005
            for shares in zip(*(rank["shares"] for rank in entries), strict=True)
        ),
    )


def _limits(values: list[float]) -> tuple[float, float]:
    """Return the ends of the axis, with a margin around all values.

    The axis extends below 0 only if a value is negative, and above 1 only if a value exceeds 1.
    """
    low, high = min(values), max(values)
    margin = 0.08 * (high - low) or 0.05 * abs(high) or 0.05
    floor_, ceiling = (0.0 if low >= 0 else low - margin), (1.0 if high <= 1 else high + margin)
    return max(low - margin, floor_), min(high + margin, ceiling)


def _value_text(values: tuple[float | None, ...]) -> str:
    centre, low, high = values
    if low is None or high is None:
        return decimal(centre, DIGITS)
    return f"{decimal(centre, DIGITS)} ({decimal(low, DIGITS)}–{decimal(high, DIGITS)})"


def _band(
    position: Callable[[float | None], float | None], agreement: tuple[float | None, ...]
) -> Band | None:
    """Return the raters' band. Without a confidence interval, the band is a line."""
    centre, low, high = (position(value) for value in agreement)
    if centre is None:
        return None
    start, end = (centre, centre) if low is None or high is None else (low, high)
    anchor, label_x = "middle", centre
    if centre < THIRD:
        anchor, label_x = "start", end
    elif centre > 100 - THIRD:
        anchor, label_x = "end", start
    label = f"between raters {_value_text(agreement)}"
    return Band(centre, start, round(end - start, 3), label, label_x, anchor)
