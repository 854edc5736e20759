"""The paper's figures, drawn from their data: white is 1 and black is 0, as in the paper."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from probdice.paper.canvas import BLUE, GREY, RED, add_scale, blended, figure_of, plain, show
from probdice.paper.claims import Sweep
from probdice.paper.figures import (
    DegradationTable,
    DiceForms,
    PixelSimilarities,
    TwoRegions,
)
from probdice.paper.study import PAPER_PEARSON, PAPER_SLOPE, Fit, Study
from probdice.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "draw_degradation_table",
    "draw_dice_forms",
    "draw_pixel_similarities",
    "draw_study",
    "draw_sweep",
    "draw_two_regions",
]


def draw_dice_forms(data: DiceForms) -> "Figure":
    """Both forms side by side; what cannot occur is hatched, the undefined corner ringed."""
    figure = figure_of(8.6, 4.1)
    axes = figure.subplots(1, 2)
    for place, values, title in (
        (axes[0], data.s1, "S₁ form: 2a / (1 + a − b)"),
        (axes[1], data.s2, "S₂ form: a + b"),
    ):
        place.set_facecolor("#f3e7d3")
        place.fill_between([0, 1], [1, 0], 1, facecolor="none", edgecolor="#c9b48e", hatch="///")
        shown = place.imshow(
            np.ma.masked_invalid(values), origin="lower", extent=(0, 1, 0, 1), **GREY
        )
        place.contour(
            data.foreground,
            data.background,
            np.ma.masked_invalid(values),
            levels=[0.25, 0.5, 0.75],
            colors=BLUE,
            linewidths=0.9,
        )
        place.set_title(title)
        place.set_xlabel("a: fraction foreground in both")
        place.set_ylabel("b: fraction background in both")
        place.text(
            0.66,
            0.66,
            "cannot occur",
            ha="center",
            va="center",
            bbox={"boxstyle": "round,pad=0.2", "fc": "#f3e7d3", "ec": "none"},
        )
    for place, text in ((axes[0], "undefined"), (axes[1], "1")):
        place.plot([0], [1], "o", ms=11, mfc="none", mec=RED, mew=2, clip_on=False, zorder=5)
        place.annotate(
            f"all background: {text}",
            (0.03, 0.985),
            (0.2, 0.93),
            color=RED,
            va="center",
            bbox={"boxstyle": "round,pad=0.2", "fc": "white", "ec": "none"},
        )
    add_scale(figure, shown, list(axes), "coefficient (lines at 0.25, 0.5, 0.75)")
    return figure


def draw_two_regions(data: TwoRegions, *, references: Sequence[float] = (0.5, 0.9)) -> "Figure":
    """f₁ and f₂ over all pairs of probabilities, and along rows of a fixed reference."""
    figure = figure_of(12.2, 4.1)
    axes = figure.subplots(1, 3, width_ratios=[1, 1, 1.15])
    for place, values, title in (
        (axes[0], data.f1, "f₁, absolute"),
        (axes[1], data.f2, "f₂, Aitchison"),
    ):
        shown = place.imshow(values, origin="lower", extent=(0, 1, 0, 1), **GREY)
        place.contour(
            data.probability,
            data.probability,
            values,
            levels=[0.25, 0.5, 0.75],
            colors=BLUE,
            linewidths=0.9,
        )
        place.set_title(title)
        place.set_xlabel("prediction: probability of region 1")
        place.set_ylabel("reference: probability of region 1")
    add_scale(figure, shown, list(axes[:2]), "similarity (lines at 0.25, 0.5, 0.75)")
    for reference, colour in zip(references, (BLUE, RED), strict=False):
        row = int(np.argmin(np.abs(data.probability - reference)))
        axes[2].plot(
            data.probability, data.f1[row], "--", color=colour, label=f"f₁, reference {reference:g}"
        )
        axes[2].plot(
            data.probability, data.f2[row], "-", color=colour, label=f"f₂, reference {reference:g}"
        )
    axes[2].set_title("a reference held fixed")
    axes[2].set_xlabel("prediction: probability of region 1")
    axes[2].set_ylabel("similarity")
    axes[2].set_ylim(0, 1.02)
    axes[2].set_xlim(0, 1)
    axes[2].grid(alpha=0.3)
    axes[2].legend(loc="lower center", fontsize=8, ncols=2)
    axes[2].set_box_aspect(1)
    return figure


def draw_pixel_similarities(data: PixelSimilarities) -> "Figure":
    """The reference, and for each prediction its picture, f₁ and f₂."""
    rows = len(data.predictions)
    figure = figure_of(9.6, 2.55 * rows + 0.2)
    axes = figure.subplots(rows, 4, squeeze=False)
    for row in range(rows):
        show(axes[row, 0], blended(data.reference) if row == 0 else None, "reference")
        show(axes[row, 1], blended(data.predictions[row]), f"prediction {row + 1}")
        for column, maps, scores, name in ((2, data.f1, data.d1, "₁"), (3, data.f2, data.d2, "₂")):
            place = axes[row, column]
            shown = place.imshow(maps[row], **GREY)
            show(place, None, f"f{name}: D{name} = {scores[row]:.4f}", hide=False)
    add_scale(figure, shown, list(axes[:, 2:].ravel()), "similarity")
    return figure


def draw_degradation_table(data: DegradationTable) -> "Figure":
    """Every image and its degraded versions, with D₁ and D₂ beneath."""
    rows, columns = len(data.references), len(data.versions) + 1
    figure = figure_of(1.62 * columns, 1.86 * rows + 0.3)
    axes = figure.subplots(rows, columns, squeeze=False)
    for row, (name, reference) in enumerate(data.references.items()):
        show(axes[row, 0], blended(reference), "reference" if row == 0 else "")
        axes[row, 0].set_ylabel(name, fontsize=9)
        for column, prediction in enumerate(data.predictions[name]):
            place = axes[row, column + 1]
            show(place, blended(prediction), data.versions[column].name if row == 0 else "")
            place.set_xlabel(
                f"D₁ {data.d1[row, column]:.3f}   D₂ {data.d2[row, column]:.3f}", fontsize=8
            )
    return figure


def draw_sweep(data: Sweep) -> "Figure":
    """Spearman's correlation of score and strength for every image and degradation."""
    figure = figure_of(12.2, 0.42 * len(data.images) + 2.0)
    axes = figure.subplots(1, 2, sharey=True)
    for place, similarity, title in ((axes[0], "absolute", "D₁"), (axes[1], "aitchison", "D₂")):
        table = data.spearman(similarity)
        shown = place.imshow(table, cmap="PuOr_r", vmin=-1, vmax=1, aspect="auto")
        for (row, column), value in np.ndenumerate(table):
            place.text(
                column,
                row,
                "–" if np.isnan(value) else f"{value:.2f}".replace("-", "−"),
                ha="center",
                va="center",
                fontsize=9,
                color="white" if abs(value) > 0.6 else "black",
            )
        place.set_title(f"{title}: Spearman's ρ of score and strength")
        place.set_xticks(range(len(data.degradations)), data.degradations)
        place.set_yticks(range(len(data.images)), data.images)
    figure.colorbar(shown, ax=list(axes), label="ρ (−1: falls throughout)", shrink=0.9)
    return figure


def draw_study(study: Study, *, title: str = "") -> "Figure":
    """Ranks by score against average human ranks, with the line of best fit and the paper's."""
    figure = figure_of(8.4, 5.2)
    place = figure.subplots()
    x = np.array([point.human_rank for point in study.points])
    y = np.array([point.score_rank for point in study.points])
    ends = np.array([min(x.min(), y.min()) - 0.4, max(x.max(), y.max()) + 0.4])
    shapes = "os^Dv<>ph*"
    for k, image in enumerate(study.images):
        of_image = np.array([point.image == image for point in study.points])
        # A little apart, or points of several images would hide each other.
        turn = 2 * np.pi * k / len(study.images)
        apart = 0.1 if len(study.images) > 1 else 0.0
        place.scatter(
            x[of_image] + apart * np.cos(turn),
            y[of_image] + apart * np.sin(turn),
            s=34,
            marker=shapes[k % len(shapes)],
            alpha=0.85,
            edgecolors="white",
            linewidths=0.5,
            label=plain(image),
        )
    fit = study.overall
    if np.isfinite(fit.slope):
        place.plot(ends, fit.intercept + fit.slope * ends, color=BLUE, label="line of best fit")
    middle = x.mean()
    place.plot(
        ends,
        middle + PAPER_SLOPE * (ends - middle),
        color=RED,
        ls="--",
        lw=1.2,
        label=f"the paper's slope, {PAPER_SLOPE}",
    )
    place.set_xlim(*ends)
    place.set_ylim(*ends)
    place.set_aspect("equal")
    place.set_anchor("W")
    place.grid(alpha=0.3)
    place.set_xlabel(
        "rank by known degradation strength (stand-in)"
        if study.stand_in
        else "average human rank (1 is most similar)"
    )
    place.set_ylabel("rank by score (1 is most similar)")
    place.set_title(plain(title or study.title), loc="left", wrap=True, fontsize=10)
    place.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize=8, frameon=False)
    place.text(1.04, 0.0, _summary(fit), transform=place.transAxes, va="bottom", fontsize=9)
    return figure


def _summary(fit: Fit) -> str:
    def line(name: str, value: float, interval: Interval, paper: str) -> str:
        text = f"{name} {value:.2f}"
        if np.isfinite(interval.low):
            text += f" [{interval.low:.2f}, {interval.high:.2f}]"
        return text.replace("-", "−") + paper

    return "\n".join(
        [
            line("slope", fit.slope, fit.slope_interval, f"\n   the paper: {PAPER_SLOPE}"),
            line("Pearson", fit.pearson, fit.pearson_interval, f"\n   the paper: {PAPER_PEARSON}"),
            line("Spearman", fit.spearman, fit.spearman_interval, ""),
            "in brackets: 95 % bootstrap",
            "points are drawn a little apart",
        ]
    )
