"""The page of several raters: inter-rater agreement, consensus and disagreement."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from probdice.errors import Words, as_words, in_words
from probdice.pictures.rater_plots import region_colours
from probdice.report.encoding import shortened
from probdice.report.facts import Fact, volume
from probdice.report.headline import Figure
from probdice.report.image_layers import background_images_of
from probdice.report.rater_slices import RaterSlices, display_name, rater_slices
from probdice.report.rendering import render, write_page
from probdice.report.slice_stacks import SLICE_SCRIPTS
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from probdice.files.background_images import BackgroundImage
    from probdice.files.inputs import Comparable
    from probdice.method.overlap import Floats
    from probdice.raters import Agreement, Consensus

__all__ = ["RatersPage", "raters_page", "write_consensus"]

LISTED = 200  # common regions in the table
STEPS = 8  # shades of a matrix cell


@dataclass(frozen=True)
class Cell:
    """A number in a matrix, and its shade: 0 for the lowest value, `STEPS` for 1."""

    text: str
    shade: int


@dataclass(frozen=True)
class Matrix:
    """A number for every pair of raters, with similar raters adjacent."""

    key: str
    name: str
    about: str
    names: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class RaterRow:
    """A rater compared with the other raters and with the consensus."""

    name: str
    regions: int
    numbers: tuple[str, ...]


@dataclass(frozen=True)
class RegionRow:
    """A common region: the raters that have it, and their labels."""

    label: str
    colour: str
    raters: str
    mean_dice: str
    lowest_dice: str
    volume: str
    called: tuple[str, ...]


@dataclass(frozen=True)
class RatersPage:
    """Everything on the page."""

    title: str
    subtitle: str
    figures: tuple[Figure, ...]
    sentences: tuple[str, ...]
    notes: tuple[str, ...]
    slices: RaterSlices | None  # None for values at vertices
    matrices: tuple[Matrix, ...]
    raters: tuple[RaterRow, ...]
    names: tuple[str, ...]
    regions: tuple[RegionRow, ...]
    hidden_regions: int
    has_millilitres: bool
    options: tuple[Fact, ...]


def write_consensus(
    consensus: Consensus,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    words: Words = "python",
    image: BackgroundImage | Comparable | None = None,
) -> None:
    """Write the page of a consensus."""
    page = raters_page(consensus, title, words, image)
    text = render(
        "raters.html",
        {"page": page},
        style="assets/page.css",
        extra_styles=("assets/evaluation.css",),
        scripts=SLICE_SCRIPTS if page.slices is not None else (),
    )
    write_page(Path(path), text)


def raters_page(
    consensus: Consensus,
    title: str | None = None,
    words: Words = "python",
    image: BackgroundImage | Comparable | None = None,
) -> RatersPage:
    """The page as data."""
    agreement = consensus.agreement
    layer = None
    if image is not None:
        (layer,) = background_images_of(consensus.images, consensus.options, [image])
    geometry = consensus.segmentation.geometry
    on_grid = geometry is None or geometry.on_grid
    colours, labels = region_colours(consensus), consensus.segmentation.regions
    return RatersPage(
        title=shortened(title, 200) if title else f"{len(consensus.names)} raters",
        subtitle=_subtitle(consensus),
        figures=_figures(agreement),
        sentences=_sentences(agreement),
        notes=tuple(in_words(note.message, as_words(words)) for note in consensus.notes),
        slices=rater_slices(consensus, layer) if on_grid else None,
        matrices=_matrices(agreement),
        raters=_rater_rows(consensus),
        names=tuple(shortened(name, 40) for name in consensus.names),
        regions=tuple(_region_row(consensus, label, k, colours[k])
                      for k, label in enumerate(labels[:LISTED])),
        hidden_regions=max(len(labels) - LISTED, 0),
        has_millilitres=any(one.pixel_volume is not None for one in agreement.regions),
        options=_options(consensus),
    )  # fmt: skip


def _subtitle(consensus: Consensus) -> str:
    size = " × ".join(str(n) for n in consensus.segmentation.shape)
    pixels = volume(consensus.pixels)
    return f"{len(consensus.segmentation.regions)} common regions, {pixels} pixels ({size})"


def _figures(agreement: Agreement) -> tuple[Figure, ...]:
    others = [one.score for one in agreement.others]
    return (
        Figure("Inter-rater score", decimal(agreement.mean_score), "mean over all pairs"),
        Figure("Adjusted score", decimal(agreement.mean_adjusted_score), "0 is chance level"),
        Figure(
            "Explained",
            decimal(agreement.mean_explained),
            "share of one rater that another explains, mean",
        ),
        Figure(
            "Rater vs other raters",
            decimal(float(np.mean(others))),
            f"from {decimal(min(others))} to {decimal(max(others))}",
        ),
        *_weakest_region(agreement),
    )


def _weakest_region(agreement: Agreement) -> list[Figure]:
    """The common region with the lowest mean Dice, if raters have regions."""
    known = [region for region in agreement.regions if not isnan(region.mean_dice)]
    if not known:
        return []
    weakest = min(known, key=lambda region: region.mean_dice)
    about = f"region {shortened(weakest.label, 40)}, mean over all pairs"
    return [Figure("Lowest region Dice", decimal(weakest.mean_dice), about)]


def _sentences(agreement: Agreement) -> tuple[str, ...]:
    others = [one for one in agreement.others if not isnan(one.score)]
    best = max(others, key=lambda one: one.score)
    worst = min(others, key=lambda one: one.score)
    mean = float(np.mean([one.score for one in others]))
    return (
        f"On average, a rater reaches a score of {decimal(mean)} compared with the mean of the "
        f"other raters. A method with the same score agrees with the raters as well as a rater.",
        f"{display_name(best.name)} agrees most with the other raters ({decimal(best.score)}), "
        f"{display_name(worst.name)} agrees least ({decimal(worst.score)}).",
    )


def _matrices(agreement: Agreement) -> tuple[Matrix, ...]:
    names = tuple(shortened(agreement.names[k], 40) for k in agreement.order)
    order = list(agreement.order)
    tables = (
        ("score", "Score", "1 means equal", agreement.score),
        (
            "adjusted",
            "Adjusted score",
            "0 is chance level, 1 means equal",
            agreement.adjusted_score,
        ),
        (
            "explained",
            "Explained",
            "share of the row's rater that the column's rater explains",
            agreement.explained,
        ),
    )
    return tuple(
        Matrix(key, name, about, names, _cells(table[np.ix_(order, order)]))
        for key, name, about, table in tables
    )


def _cells(table: Floats) -> tuple[tuple[Cell, ...], ...]:
    known = table[~np.isnan(table)]
    lowest = float(known.min()) if known.size else 0.0
    span = max(1 - lowest, 1e-9)

    def shade(value: float) -> int:
        return 0 if isnan(value) else round(STEPS * (value - lowest) / span)

    return tuple(
        tuple(Cell(decimal(value, 3), shade(value)) for value in row) for row in table.tolist()
    )


def _rater_rows(consensus: Consensus) -> tuple[RaterRow, ...]:
    return tuple(
        RaterRow(
            display_name(rater.name),
            len(rater.correspondence),
            (
                decimal(one.score),
                decimal(one.adjusted_score),
                decimal(one.explained),
                decimal(rater.accuracy),
            ),
        )
        for k in consensus.agreement.order
        for rater, one in ((consensus.raters[k], consensus.agreement.others[k]),)
    )


def _region_row(consensus: Consensus, label: object, k: int, colour: str) -> RegionRow:
    called = []
    for rater in consensus.raters:
        own = [str(name) for name, common in rater.correspondence.items() if common == label]
        called.append(shortened(", ".join(own), 24) if own else "–")
    count = sum(name != "–" for name in called)
    region = consensus.agreement.regions[k]
    return RegionRow(
        shortened(label, 40),
        colour,
        f"{count} of {len(called)}",
        decimal(region.mean_dice),
        decimal(region.lowest_dice),
        volume(float(consensus.volumes[k]), region.pixel_volume),
        tuple(called),
    )


def _options(consensus: Consensus) -> tuple[Fact, ...]:
    from probdice.version import __version__

    how = "mean of the raters"
    if consensus.method == "staple":
        how = f"STAPLE, {consensus.iterations} iterations"
    return (
        Fact("Consensus", (how,)),
        Fact("Pixels", (volume(consensus.pixels),)),
        Fact("Made with", (f"probdice {__version__}",)),
    )
