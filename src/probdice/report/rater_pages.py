"""The page of several raters: inter-rater agreement, consensus and disagreement."""

from __future__ import annotations

import os
from base64 import b64encode
from dataclasses import dataclass
from io import BytesIO
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import Words, as_words, in_words
from probdice.pictures.rater_plots import region_colours, slices_of
from probdice.report.encoding import shortened
from probdice.report.facts import Fact, volume
from probdice.report.headline import Figure
from probdice.report.rendering import render, write_page
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    from probdice.method.overlap import Floats
    from probdice.raters import Agreement, Consensus

__all__ = ["RatersPage", "raters_page", "write_consensus"]

LISTED = 200  # common regions in the table
PIXELS = 2**20  # per image
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
class Picture:
    """An image that is embedded in the page."""

    name: str
    source: str
    width: int
    height: int
    about: str


@dataclass(frozen=True)
class RegionRow:
    """A common region: the raters that have it, and their labels."""

    label: str
    colour: str
    raters: str
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
    pictures: tuple[Picture, ...]
    where: str
    most_bits: str
    matrices: tuple[Matrix, ...]
    raters: tuple[RaterRow, ...]
    names: tuple[str, ...]
    regions: tuple[RegionRow, ...]
    hidden_regions: int
    options: tuple[Fact, ...]


def write_consensus(
    consensus: Consensus,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    words: Words = "python",
) -> None:
    """Write the page of a consensus."""
    page = raters_page(consensus, title, words)
    write_page(Path(path), render("raters.html", {"page": page}, style="assets/page.css"))


def raters_page(
    consensus: Consensus, title: str | None = None, words: Words = "python"
) -> RatersPage:
    """The page as data."""
    agreement = consensus.agreement
    slices = slices_of(consensus, None)
    most = max(float(np.nanmax(slices.entropy, initial=0)), 1.0)
    pictures = [
        _picture("Consensus", slices.consensus, slices.plane.aspect),
        _picture("Disagreement", _disagreement_colours(slices.entropy / most), slices.plane.aspect),
        *(_picture(_display_name(name), image, slices.plane.aspect)
          for name, image in slices.raters.items()),
    ]  # fmt: skip
    colours, labels = region_colours(consensus), consensus.segmentation.regions
    return RatersPage(
        title=shortened(title, 200) if title else f"{len(consensus.names)} raters",
        subtitle=_subtitle(consensus),
        figures=_figures(agreement),
        sentences=_sentences(agreement),
        notes=tuple(in_words(note.message, as_words(words)) for note in consensus.notes),
        pictures=tuple(pictures),
        where=slices.where,
        most_bits=f"{most:.2f}",
        matrices=_matrices(agreement),
        raters=_rater_rows(consensus),
        names=tuple(shortened(name, 40) for name in consensus.names),
        regions=tuple(_region_row(consensus, label, k, colours[k])
                      for k, label in enumerate(labels[:LISTED])),
        hidden_regions=max(len(labels) - LISTED, 0),
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
    )


def _sentences(agreement: Agreement) -> tuple[str, ...]:
    others = [one for one in agreement.others if not isnan(one.score)]
    best = max(others, key=lambda one: one.score)
    worst = min(others, key=lambda one: one.score)
    mean = float(np.mean([one.score for one in others]))
    return (
        f"On average, a rater reaches a score of {decimal(mean)} compared with the mean of the "
        f"other raters. A method with the same score agrees with the raters as well as a rater.",
        f"{_display_name(best.name)} agrees most with the other raters ({decimal(best.score)}), "
        f"{_display_name(worst.name)} agrees least ({decimal(worst.score)}).",
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
            _display_name(rater.name),
            len(rater.correspondence),
            (
                decimal(one.score),
                decimal(one.adjusted_score),
                decimal(one.explained),
                decimal(rater.accuracy),
            ),
        )
        for rater, one in zip(consensus.raters, consensus.agreement.others, strict=True)
    )


def _region_row(consensus: Consensus, label: object, k: int, colour: str) -> RegionRow:
    called = []
    for rater in consensus.raters:
        own = [str(name) for name, common in rater.correspondence.items() if common == label]
        called.append(shortened(", ".join(own), 24) if own else "–")
    count = sum(name != "–" for name in called)
    return RegionRow(
        shortened(label, 40),
        colour,
        f"{count} of {len(called)}",
        volume(float(consensus.volumes[k])),
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


def _display_name(name: str) -> str:
    return f"Rater {name}" if name.isdigit() else shortened(name, 60)


def _picture(name: str, image: NDArray[Any], aspect: float) -> Picture:
    """Embed an image as PNG. Images with more than `PIXELS` pixels are subsampled."""
    from PIL import Image

    step = max(1, int(np.ceil(np.sqrt(image.shape[0] * image.shape[1] / PIXELS))))
    reduced = image[::step, ::step]
    stream = BytesIO()
    Image.fromarray(np.rint(255 * np.clip(reduced, 0, 1)).astype(np.uint8)).save(stream, "PNG")
    source = "data:image/png;base64," + b64encode(stream.getvalue()).decode("ascii")
    height = max(1, round(reduced.shape[0] * aspect))
    return Picture(name, source, reduced.shape[1], height, f"{name}, one colour per common region")


def _disagreement_colours(values: Floats) -> NDArray[np.float64]:
    """Disagreement relative to its maximum as colours; grey outside the mask."""
    from matplotlib import colormaps

    colours = np.asarray(colormaps["inferno"](np.nan_to_num(values)))[..., :3]
    colours[np.isnan(values)] = 0.5
    return colours
