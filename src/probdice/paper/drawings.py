"""Draw the figures of the paper. In grey images, white is 1 and black is 0, as in the paper."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.result import Comparison
from probdice.data.segmentation import Segmentation
from probdice.paper import figures
from probdice.paper.study import PAPER_PEARSON, PAPER_SLOPE, Fit, Study
from probdice.pictures.colours import NEUTRAL, PALETTE, triples
from probdice.synthesis import probabilities

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RED, BLUE, GREEN = "#d1242f", "#1f6fc4", "#1a7f37"
GREY: dict[str, Any] = {"cmap": "gray", "vmin": 0.0, "vmax": 1.0, "interpolation": "nearest"}
CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9}
MARKERS = "os^Dv<>ph*"


def draw_dice_forms(data: figures.ValuePlane) -> "Figure":
    """Draw both forms of the coefficient side by side. The impossible area is hatched."""
    figure = new_figure(8.6, 4.1)
    axes = figure.subplots(1, 2)
    ground = "#f3e7d3"
    for ax, values, title, corner in (
        (axes[0], data.first, "S₁ form: 2a / (1 + a − b)", "undefined"),
        (axes[1], data.second, "S₂ form: a + b", "1"),
    ):
        ax.set_facecolor(ground)
        ax.fill_between([0, 1], [1, 0], 1, facecolor="none", edgecolor="#c9b48e", hatch="///")
        image = _plane(ax, data.ticks, np.ma.masked_invalid(values), title)
        ax.set_xlabel("a: fraction foreground in both")
        ax.set_ylabel("b: fraction background in both")
        label = {"boxstyle": "round,pad=0.2", "ec": "none"}
        ax.text(0.66, 0.66, "impossible", **CENTRED | {"fontsize": 10}, bbox=label | {"fc": ground})
        ax.plot([0], [1], "o", ms=11, mfc="none", mec=RED, mew=2, clip_on=False, zorder=5)
        text = f"all background: {corner}"
        ax.text(0.2, 0.93, text, color=RED, va="center", bbox=label | {"fc": "white"})
    add_scale(figure, image, list(axes), "coefficient (lines at 0.25, 0.5, 0.75)")
    return figure


def draw_two_regions(data: figures.ValuePlane) -> "Figure":
    """Draw f₁ and f₂ for all pairs of probabilities, and as curves for two fixed references."""
    figure = new_figure(12.2, 4.1)
    axes = figure.subplots(1, 3, width_ratios=[1, 1, 1.15])
    for ax, values, title in (
        (axes[0], data.first, "f₁, absolute"),
        (axes[1], data.second, "f₂, Aitchison"),
    ):
        image = _plane(ax, data.ticks, values, title)
        ax.set_ylabel("reference: probability of region 1")
    add_scale(figure, image, list(axes[:2]), "similarity (lines at 0.25, 0.5, 0.75)")
    for reference, colour in ((0.5, BLUE), (0.9, RED)):
        row = int(np.argmin(np.abs(data.ticks - reference)))
        for values, line, name in ((data.first, "--", "f₁"), (data.second, "-", "f₂")):
            label = f"{name}, reference {reference:g}"
            axes[2].plot(data.ticks, values[row], line, color=colour, label=label)
    axes[2].set(title="fixed reference", ylabel="similarity", xlim=(0, 1), ylim=(0, 1.02))
    for ax in axes:
        ax.set_xlabel("prediction: probability of region 1")
    axes[2].grid(alpha=0.3)
    axes[2].legend(loc="lower center", fontsize=8, ncols=2)
    axes[2].set_box_aspect(1)
    return figure


def draw_pixel_similarities(
    reference: Segmentation,
    predictions: Sequence[Segmentation],
    results: Mapping[str, Sequence[Comparison]],
) -> "Figure":
    """Draw the reference, and each prediction with its maps of f₁ and f₂."""
    figure = new_figure(9.6, 2.55 * len(predictions) + 0.2)
    axes = figure.subplots(len(predictions), 4, squeeze=False)
    show(axes[0, 0], blended_colours(reference), "reference")
    for ax in axes[1:, 0]:
        ax.set_axis_off()
    for row, prediction in enumerate(predictions):
        show(axes[row, 1], blended_colours(prediction), f"prediction {row + 1}")
        for ax, (name, comparisons) in zip(axes[row, 2:], results.items(), strict=True):
            digit, result = figures.SUBSCRIPTS[name], comparisons[row]
            title = f"f{digit}: D{digit} = {result.score:.4f}"
            image = show(ax, result.map(), title, **GREY)
    add_scale(figure, image, list(axes[:, 2:].ravel()), "similarity")
    return figure


def draw_degradation_table(data: figures.DegradationTable) -> "Figure":
    """Draw every image and its degraded versions, with D₁ and D₂ below."""
    rows, columns = len(data.references), len(figures.VERSIONS) + 1
    figure = new_figure(1.62 * columns, 1.86 * rows + 0.3)
    axes = figure.subplots(rows, columns, squeeze=False)
    for row, (name, reference) in enumerate(data.references.items()):
        titles = ["reference", *(version.name for version in figures.VERSIONS)]
        pictures = [reference, *data.predictions[name]]
        for ax, title, picture in zip(axes[row], titles, pictures, strict=True):
            show(ax, blended_colours(picture), title if row == 0 else "")
        axes[row, 0].set_ylabel(name, fontsize=9)
    for ax, (_, _, scores) in zip(axes[:, 1:].ravel(), data.cells, strict=True):
        ax.set_xlabel(f"D₁ {scores['D1']:.3f}   D₂ {scores['D2']:.3f}", fontsize=8)
    return figure


def draw_sweep(data: figures.Sweep) -> "Figure":
    """Draw the rank correlation between score and strength for every image and degradation."""
    images = list(data.scores["D1"])
    figure = new_figure(12.2, 0.42 * len(images) + 2.0)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, (name, digit) in zip(axes, figures.SUBSCRIPTS.items(), strict=True):
        table = data.spearman(name)
        image = ax.imshow(table, cmap="PuOr_r", vmin=-1, vmax=1, aspect="auto")
        for (row, column), value in np.ndenumerate(table):
            colour = "white" if abs(value) > 0.6 else "black"
            ax.text(column, row, figures.signed(value), color=colour, **CENTRED)
        ax.set_title(f"D{digit}: Spearman's ρ of score and strength")
        ax.set_xticks(range(len(data.strengths)), data.strengths)
        ax.set_yticks(range(len(images)), images)
    figure.colorbar(image, ax=list(axes), label="ρ (−1: falls at every step)", shrink=0.9)
    return figure


def draw_study(study: Study, *, title: str = "") -> "Figure":
    """Draw ranks by score against average human ranks, with the regression line."""
    figure = new_figure(8.4, 5.2)
    ax = figure.subplots()
    x = np.array([point.human_rank for point in study.points])
    y = np.array([point.score_rank for point in study.points])
    ends = np.array([min(x.min(), y.min()) - 0.4, max(x.max(), y.max()) + 0.4])
    for k, image in enumerate(study.images):
        of_image = np.array([point.image == image for point in study.points])
        # Points are shifted slightly, so that points of different images do not hide each other.
        angle = 2 * np.pi * k / len(study.images)
        shift = 0.1 if len(study.images) > 1 else 0.0
        ax.scatter(
            x[of_image] + shift * np.cos(angle),
            y[of_image] + shift * np.sin(angle),
            s=34,
            marker=MARKERS[k % len(MARKERS)],
            alpha=0.85,
            edgecolors="white",
            linewidths=0.5,
            label=_escape_dollars(image),
        )
    fit = study.overall
    if np.isfinite(fit.slope):
        ax.plot(ends, fit.intercept + fit.slope * ends, color=BLUE, label="line of best fit")
    paper = x.mean() + PAPER_SLOPE * (ends - x.mean())
    label = f"the paper's slope, {PAPER_SLOPE}"
    ax.plot(ends, paper, color=RED, ls="--", lw=1.2, label=label)
    human = "rank by known degradation strength (no human data)"
    ax.set(
        xlim=ends,
        ylim=ends,
        aspect="equal",
        anchor="W",
        xlabel=human if study.stand_in else "average human rank (1 is most similar)",
        ylabel="rank by score (1 is most similar)",
    )
    ax.grid(alpha=0.3)
    ax.set_title(_escape_dollars(title or study.title), loc="left", wrap=True, fontsize=10)
    ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize=8, frameon=False)
    summary = _summary(fit, is_shifted=len(study.images) > 1)
    ax.text(1.04, 0.0, summary, transform=ax.transAxes, va="bottom", fontsize=9)
    return figure


def new_figure(width: float, height: float) -> "Figure":
    """Create an empty figure. The width and the height are in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def colours(count: int) -> NDArray[np.float64]:
    """Return a colour per region. Up to three regions are red, green and blue, as in the paper."""
    if count <= 3:
        return np.eye(3)[:count] * 0.92
    cycle = NEUTRAL, *PALETTE
    return triples(tuple(cycle[k % len(cycle)] for k in range(count)))


def blended_colours(segmentation: Segmentation) -> NDArray[np.float64]:
    """Return the colour of every pixel: the mean of the region colours, weighted by probability."""
    values, regions = probabilities(segmentation)
    picture = np.tensordot(np.moveaxis(values, 0, -1), colours(len(regions)), axes=1)
    return np.asarray(np.clip(picture, 0, 1), np.float64)


def show(ax: Any, picture: NDArray[Any], title: str, **options: Any) -> Any:
    """Show an image without ticks."""
    image = ax.imshow(picture, **{"interpolation": "nearest"} | options)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(title, fontsize=10)
    return image


def add_scale(figure: Any, image: Any, axes: list[Any], label: str) -> None:
    """Add a colour bar from black (0) to white (1)."""
    bar = figure.colorbar(image, ax=axes, shrink=0.85, pad=0.02)
    bar.set_ticks([0, 0.25, 0.5, 0.75, 1])
    bar.set_label(label)


def _plane(ax: Any, ticks: NDArray[Any], values: NDArray[Any], title: str) -> Any:
    """Draw values over the unit square, with contour lines at 0.25, 0.5 and 0.75."""
    image = ax.imshow(values, origin="lower", extent=(0, 1, 0, 1), **GREY)
    levels = [0.25, 0.5, 0.75]
    ax.contour(ticks, ticks, values, levels=levels, colors=BLUE, linewidths=0.9)
    ax.set_title(title)
    return image


def _summary(fit: Fit, *, is_shifted: bool) -> str:
    lines = []
    for name, value, interval, paper in (
        ("slope", fit.slope, fit.slope_interval, PAPER_SLOPE),
        ("Pearson", fit.pearson, fit.pearson_interval, PAPER_PEARSON),
        ("Spearman", fit.spearman, fit.spearman_interval, None),
    ):
        has_interval = np.isfinite(interval.low)
        brackets = (
            f" [{figures.signed(interval.low)}, {figures.signed(interval.high)}]"
            if has_interval
            else ""
        )
        lines.append(f"{name} {figures.signed(value)}{brackets}")
        lines += [f"   the paper: {paper}"] if paper else []
    if any("[" in line for line in lines):
        lines.append("in brackets: 95 % bootstrap CI")
    lines += ["points are shifted slightly"] if is_shifted else []
    return "\n".join(lines)


def _escape_dollars(text: str) -> str:
    """Escape dollar signs, which mark mathematical text in Matplotlib."""
    return text.replace("$", r"\$")
