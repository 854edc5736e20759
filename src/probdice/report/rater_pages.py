"""The page of several raters: inter-rater agreement, consensus and disagreement."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from probdice.data.pixel_words import PixelWords, pixel_words
from probdice.errors import Words, as_words, in_words
from probdice.method.region_labels import listed
from probdice.metrics.verdict import (
    HIGH_ADJUSTED_SCORE,
    HIGH_DICE,
    HIGH_EXPLAINED_SHARE,
    overlap_in_words,
)
from probdice.pictures.rater_plots import region_colours
from probdice.report.encoding import shortened
from probdice.report.facts import volume
from probdice.report.headline import Figure
from probdice.report.image_layers import background_images_of
from probdice.report.option_facts import Fact
from probdice.report.page_tables import NOTHING, Cell, Column, Table, cell_of, shade_of, text_cell
from probdice.report.rater_slices import RaterSlices, display_names, rater_slices
from probdice.report.rendering import render, write_page
from probdice.report.slice_stacks import SLICE_SCRIPTS
from probdice.text.formatting import decimal, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from probdice.files.background_images import BackgroundImage
    from probdice.files.inputs import Comparable
    from probdice.method.overlap import Floats
    from probdice.raters import Agreement, Consensus
    from probdice.raters.region_agreement import RegionAgreement

__all__ = ["RatersPage", "raters_page", "write_consensus"]

MAX_TABLE_ROWS = 200  # common regions
MAX_NAMED_RATERS = 6  # in the subtitle
MATRIX_DIGITS = 3
# Smallest range of scores for which the verdict names the rater who agrees least.
MIN_SCORE_RANGE = 0.05
ABSENT = "not used"  # remark on a region that a rater does not have


@dataclass(frozen=True)
class RaterMatrix:
    """One measure of every pair of raters. Similar raters are adjacent."""

    name: str
    about: str
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class RatersPage:
    """The content of the page."""

    title: str
    subtitle: str
    verdict: str
    pixel: str  # the word for a pixel
    tiles: tuple[Figure, ...]
    notes: tuple[str, ...]
    slices: RaterSlices | None  # None for values at vertices
    names: tuple[str, ...]  # similar raters are adjacent
    matrices: tuple[RaterMatrix, ...]
    region_matrix: RaterMatrix | None  # the Dice of the region with the lowest mean
    region_dice: dict[str, Any]  # the Dice of every region, so that readers can select a region
    raters: Table
    regions: Table
    hidden_regions: int
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
    slices = SLICE_SCRIPTS if page.slices is not None else ()
    text = render(
        "raters.html",
        {"page": page},
        style="assets/page.css",
        extra_styles=("assets/evaluation.css",),
        scripts=(
            "assets/numbers.js",
            "assets/tables.js",
            "assets/region_matrix.js",
            *slices,
            "assets/paper.js",
        ),
    )
    write_page(Path(path), text)


def raters_page(
    consensus: Consensus,
    title: str | None = None,
    words: Words = "python",
    image: BackgroundImage | Comparable | None = None,
) -> RatersPage:
    """Return the data of the page."""
    agreement = consensus.agreement
    layer = None
    if image is not None:
        (layer,) = background_images_of(consensus.images, consensus.options, [image])
    geometry = consensus.segmentation.geometry
    on_grid = geometry is None or geometry.on_grid
    channels = list(agreement.worst_first[:MAX_TABLE_ROWS])
    regions = tuple(agreement.regions[k] for k in channels)
    weakest = next((one for one in regions[:1] if one.rater_count > 1 and not one.faint), None)
    words_for_pixels = pixel_words(consensus.segmentation)
    names = display_names(agreement.names)
    return RatersPage(
        title=shortened(title, 200) if title else f"Agreement of {len(consensus.names)} raters",
        subtitle=_subtitle(consensus),
        verdict=_verdict(agreement, names, weakest, words_for_pixels),
        pixel=words_for_pixels.one,
        tiles=_tiles(agreement, weakest),
        notes=tuple(in_words(note.message, as_words(words)) for note in consensus.notes),
        slices=rater_slices(consensus, layer, channels) if on_grid else None,
        names=tuple(names[k] for k in agreement.order),
        matrices=_matrices(agreement),
        region_matrix=_matrix("Dice", "", regions[0].dice, agreement) if regions else None,
        region_dice=_region_dice(agreement, regions),
        raters=_rater_table(consensus),
        regions=_region_table(consensus, channels),
        hidden_regions=len(agreement.regions) - len(regions),
        options=_options(consensus),
    )


def _subtitle(consensus: Consensus) -> str:
    """Return a line that describes the raters, the common regions and the image."""
    names = display_names(consensus.names)
    tail = [f"and {len(names) - MAX_NAMED_RATERS} more"] if len(names) > MAX_NAMED_RATERS else []
    size = " × ".join(str(n) for n in consensus.segmentation.shape)
    regions = f"{len(consensus.segmentation.regions)} regions"
    words = pixel_words(consensus.segmentation)
    return (
        f"{', '.join([*names[:MAX_NAMED_RATERS], *tail])}: {regions}, {volume(consensus.pixels)} "
        f"{words.many} of a {size} image"
    )


def _mean_dice(agreement: Agreement) -> tuple[str, float]:
    """Return the name and the value of the Dice that the headline shows."""
    if agreement.foreground_dice is not None:
        return "foreground Dice", agreement.mean_foreground_dice
    return "mean Dice", agreement.mean_dice


def _mean_of_shared(agreement: Agreement) -> float:
    """Return the mean Dice of the regions that at least two raters have.

    Return NaN if there are no such regions, or if all regions belong to several raters.
    """
    counted = [one for one in agreement.regions if not one.faint]
    dice = [one.mean_dice for one in counted if one.rater_count > 1]
    return float(np.mean(dice)) if 0 < len(dice) < len(counted) else nan


def _verdict(
    agreement: Agreement, names: Sequence[str], weakest: RegionAgreement | None, words: PixelWords
) -> str:
    """Return a sentence about inter-rater agreement, the worst region and the raters."""
    parts = _overlap(agreement, words)
    if weakest is not None and len(agreement.regions) > 1:
        mean = decimal(weakest.mean_dice, 2)
        parts.append(f"weakest in {_name_in_text(weakest)} (Dice {mean})")
    ranking = sorted(
        (one.adjusted_score, name)
        for one, name in zip(agreement.others, names, strict=True)
        if not isnan(one.adjusted_score)
    )
    if len(ranking) > 2:
        (lowest, least), (highest, _) = ranking[0], ranking[-1]
        low, high = decimal(lowest, 2), decimal(highest, 2)
        if highest - lowest >= MIN_SCORE_RANGE:
            parts.append(f"{least} agrees least with the other raters (adjusted score {low})")
        else:
            scores = f"adjusted score {low}" if low == high else f"adjusted scores {low} to {high}"
            parts.append(f"every rater agrees about equally well with the others ({scores})")
    return "; ".join(parts) + "."


def _overlap(agreement: Agreement, words: PixelWords) -> list[str]:
    """Return clauses about the overlap of regions, with the thresholds of `verdict`."""
    name, dice = _mean_dice(agreement)
    shared = _mean_of_shared(agreement)
    mean = f"{name} {decimal(dice, 2)}"
    if not isnan(shared) and agreement.foreground_dice is None:
        mean += f", {decimal(shared, 2)} without regions that only one rater has"
    overlap = f"{overlap_in_words(dice)} between raters ({mean})"
    adjusted, explained = agreement.mean_adjusted_score, agreement.mean_explained
    if dice < HIGH_DICE and adjusted >= HIGH_ADJUSTED_SCORE:
        agreeing = f"but most {words.many} agree (adjusted score {decimal(adjusted, 2)})"
        return [f"{overlap}, {agreeing}"]
    if dice < HIGH_DICE and explained >= HIGH_EXPLAINED_SHARE:
        share = percent(explained, 0)
        return [overlap, f"the same regions, split differently (mean explained share {share})"]
    return [overlap]


def _tiles(agreement: Agreement, weakest: RegionAgreement | None) -> tuple[Figure, ...]:
    """Return the five measures at the top of the page."""
    name, dice = _mean_dice(agreement)
    shared = _mean_of_shared(agreement)
    about = "mean over all pairs of raters"
    if not isnan(shared) and agreement.foreground_dice is None:
        about = f"{decimal(shared)} without regions that only one rater has"
    region = "no region is shared by several raters"
    if weakest is not None:
        count = f"{weakest.rater_count} of {len(agreement.names)} raters"
        region = f"{_name_in_text(weakest)}, {count}"
    counted = [one for one in agreement.regions if not one.faint]
    unshared, total = sum(one.rater_count == 1 for one in counted), len(counted)
    return (
        Figure(name.capitalize().replace("dice", "Dice"), decimal(dice), about),
        Figure("Adjusted score", decimal(agreement.mean_adjusted_score), "0 is chance level"),
        Figure("Explained", decimal(agreement.mean_explained), "of one rater by another"),
        Figure("Worst region", decimal(None if weakest is None else weakest.mean_dice), region),
        Figure("Only one rater", str(unshared), f"of {total} regions, with Dice 0"),
    )


def _name_in_text(region: RegionAgreement) -> str:
    name = shortened(region.label, 40)
    return name if isinstance(region.label, str) else f"region {name}"


def _matrices(agreement: Agreement) -> tuple[RaterMatrix, ...]:
    tables = (
        ("Score", "1 means identical", agreement.score),
        ("Adjusted score", "0 is chance level, 1 means identical", agreement.adjusted_score),
        (
            "Explained",
            "share of the variance of the row's rater that the column's rater explains",
            agreement.explained,
        ),
    )
    return tuple(_matrix(*entry, agreement) for entry in tables)


def _matrix(name: str, about: str, values: Floats, agreement: Agreement) -> RaterMatrix:
    order = list(agreement.order)
    rows = tuple(
        tuple(Cell(value, decimal(value, MATRIX_DIGITS), shade=shade_of(value)) for value in row)
        for row in values[np.ix_(order, order)].tolist()
    )
    return RaterMatrix(name, about, rows)


def _region_dice(agreement: Agreement, regions: tuple[RegionAgreement, ...]) -> dict[str, Any]:
    """Return the names of the regions and, per region, the upper triangle of the Dice matrix."""
    order = list(agreement.order)
    upper = np.triu_indices(len(order), 1)
    dice = [region.dice[np.ix_(order, order)][upper].round(MATRIX_DIGITS) for region in regions]
    return {
        "names": [shortened(region.label, 40) for region in regions],
        "dice": [values.tolist() for values in dice],
    }


def _rater_table(consensus: Consensus) -> Table:
    names = ("Regions", "Score", "Adjusted score", "Explained by the others")
    accuracy = Column("Accuracy", "Expected share of correctly marked pixels, given the consensus")
    rows = []
    raters = display_names(consensus.names)
    for k in consensus.agreement.order:
        rater, one = consensus.raters[k], consensus.agreement.others[k]
        numbers = (one.score, one.adjusted_score, one.explained, rater.accuracy)
        count = len(rater.correspondence)
        rows.append(
            (
                text_cell(raters[k]),
                Cell(count, str(count)),
                *(cell_of(number) for number in numbers),
            )
        )
    columns = (Column("Rater", number=False), *map(Column, names), accuracy)
    return Table("Each rater compared with the mean of all other raters", columns, tuple(rows))


def _region_table(consensus: Consensus, channels: list[int]) -> Table:
    """Return one row per common region, with Dice, volume, and the mean Dice of every rater."""
    agreement, colours = consensus.agreement, region_colours(consensus)
    names = display_names(agreement.names)
    in_millilitres = any(one.pixel_volume is not None for one in agreement.regions)
    unit = "mL" if in_millilitres else pixel_words(consensus.segmentation).many
    columns = (
        Column("Region", number=False),
        Column("Raters", "Number of raters with this region"),
        Column("Mean Dice", "Over all pairs of raters"),
        Column("Lowest Dice", "Over all pairs of raters"),
        Column(f"Mean volume, {unit}"),
        *(Column(names[k]) for k in agreement.order),
    )
    rows = []
    for channel in channels:
        region, size = agreement.regions[channel], float(consensus.volumes[channel])
        name = shortened(region.shown_label, 40)
        cells = [_rater_cell(consensus, region, k) for k in agreement.order]
        count = sum(cell.about != ABSENT for cell in cells)
        amount = size if region.pixel_volume is None else size * region.pixel_volume / 1000
        text = f"{amount:,.0f}" if amount >= 1000 else f"{amount:.4g}"  # without exponents
        rows.append(
            (
                Cell(name, name, colour=colours[channel]),
                Cell(count, f"{count} of {len(cells)}"),
                _dice_cell(region.mean_dice),
                _dice_cell(region.lowest_dice),
                Cell(amount, text.replace(",", "\u202f")),
                *cells,
            )
        )
    return Table("Common regions", columns, tuple(rows))


def _rater_cell(consensus: Consensus, region: RegionAgreement, k: int) -> Cell:
    """Return a rater's mean Dice with all other raters, and the rater's labels if they differ."""
    rater = consensus.raters[k]
    labels = [label for label, common in rater.correspondence.items() if common == region.label]
    others = region.counted_pairs[k] & (np.arange(region.volumes.size) != k)
    dice = region.dice[k, others]
    cell = _dice_cell(float(dice.mean())) if dice.size else NOTHING
    about = f"label {shortened(listed(labels), 24)}" if labels else ABSENT
    return replace(cell, about="" if labels == [region.label] else about)


def _dice_cell(dice: float) -> Cell:
    return Cell(None if isnan(dice) else dice, decimal(dice), shade=shade_of(dice))


def _options(consensus: Consensus) -> tuple[Fact, ...]:
    from probdice.version import __version__

    return (
        Fact("Consensus method", (consensus.method_text,)),
        Fact(pixel_words(consensus.segmentation).many.capitalize(), (volume(consensus.pixels),)),
        Fact("Made with", (f"probdice {__version__}",)),
    )
