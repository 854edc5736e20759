"""What was run, as lines of a page: options, versions, files and where they lie."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from probdice.method.matching import listed
from probdice.method.sides import SIDES, Side
from probdice.report.encoding import shortened
from probdice.text.formatting import millilitres, percent

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.data.segmentation import Segmentation

__all__ = [
    "Fact",
    "counted",
    "extent",
    "merged_of",
    "names_of",
    "options_of",
    "sides_of",
    "size_of",
    "volume",
]

RULES = {
    "overlap": "matched by the largest total overlap",
    "paper": "matched by the paper's rule",
    "labels": "equal labels correspond",
}


@dataclass(frozen=True)
class Fact:
    """A line of what was run: one value for both sides, or one for each."""

    name: str
    values: tuple[str, ...]


def options_of(comparison: Comparison) -> tuple[Fact, ...]:
    """What was asked for, and of which software."""
    from probdice.version import __version__

    facts = [
        Fact("Similarity", (str(comparison.similarity),)),
        Fact("Regions", (_rule(comparison),)),
        Fact("Merging", (_merging(comparison),)),
        Fact("Pixels compared", (volume(comparison.pixels, comparison.pixel_volume),)),
    ]
    if (omitted := _omitted(comparison)) is not None:
        facts.append(omitted)
    versions = f"probdice {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    return (*facts, Fact("Made with", (versions,)))


def _rule(comparison: Comparison) -> str:
    """How regions were made to correspond."""
    rule = comparison.match
    if comparison.labels_by is not None:
        return f"{RULES['labels']}, by {comparison.labels_by}"
    if isinstance(rule, str):
        return RULES[rule]
    if isinstance(rule, dict):
        pairs = ", ".join(f"{prediction} ↔ {reference}" for prediction, reference in rule.items())
        return shortened(f"{pairs} as given, the rest by overlap", 300)
    return "as in an earlier comparison"


def _merging(comparison: Comparison) -> str:
    """Which sides might be merged, and what was."""
    if comparison.merge == "none":
        return "none"
    allowed = "both sides" if comparison.merge == "both" else comparison.merge
    return f"{allowed} allowed, {merged_of(comparison)}"


def merged_of(comparison: Comparison) -> str:
    """How many regions of which side were merged."""
    counts = {side: sum(merge.side == side for merge in comparison.merges) for side in SIDES}
    return f"{counted(counts)} merged"


def counted(counts: Mapping[Side, int]) -> str:
    """How many regions of each side: "2 reference and 1 prediction regions"."""
    texts = [f"{count} {side}" for side, count in counts.items() if count]
    return f"{' and '.join(texts) or 'no'} {'region' if sum(counts.values()) == 1 else 'regions'}"


def _omitted(comparison: Comparison) -> Fact | None:
    """By what pixels were left out, and how many."""
    images = comparison.images
    if images is None:
        return None
    reasons = ["mask"] if images.mask is not None else []
    if labels := images.reference.ignore:
        reasons.append(f"ignored label{'s' * (len(labels) > 1)} {listed(labels)}")
    if not reasons:
        return None
    total = prod(images.reference.shape)
    count = total - comparison.pixels
    share = f"{volume(count)} of {volume(total)} pixels ({percent(count / total)})"
    return Fact("Left out by", (f"{' and '.join(reasons)}: {share}",))


def sides_of(comparison: Comparison, images: tuple[str, ...] = ()) -> tuple[Fact, ...]:
    """What each side was, and the names of the images under them."""
    empty = tuple(
        shortened(listed(comparison.empty[side]), 300) if comparison.empty[side] else "none"
        for side in SIDES
    )
    if comparison.images is None:
        return (Fact("Empty regions", empty),)
    sides = list(comparison.images.sides)
    facts = [
        Fact("File", tuple(shortened(side.source, 1000) or "an array" for side in sides)),
        Fact("Kind", tuple(_kind(side) for side in sides)),
        Fact("Empty regions", empty),
    ]
    if images:
        facts.append(Fact("Shown on", (shortened(listed(images), 300),)))
    if all(side.geometry is None for side in sides):
        facts.append(Fact("Size", tuple(size_of(side) for side in sides)))
        return (*facts, Fact("Place", ("unknown, taken to be the same",)))
    described = [side.geometry.describe() if side.geometry else {} for side in sides]
    facts += [
        Fact(key.capitalize(), tuple(entry.get(key, "unknown") for entry in described))
        for key in described[0]
    ]
    return tuple(facts)


def _kind(side: Segmentation) -> str:
    if side.crisp:
        return f"label map, {side.array.dtype}"
    reading = {
        "error": "",
        "normalise": ", divided by their sum",
        "background": ", what is missing to 1 as background",
        "foreground": ", of one foreground",
        "softmax": ", from logits",
    }[side.reading]
    return f"probabilities of {len(side.regions)} regions, {side.array.dtype}{reading}"


def size_of(side: Segmentation) -> str:
    """The shape of an image."""
    return " × ".join(str(n) for n in side.shape) or "one pixel"


def names_of(comparison: Comparison) -> tuple[str, str]:
    """Short names of the sides: the files', or what they are."""
    if comparison.images is None:
        return "Reference", "prediction"
    reference, prediction = comparison.images.sides.map(lambda side: _name(side.source))
    return reference or "Reference", prediction or "prediction"


def _name(source: str) -> str:
    """The name of a file and of what lies inside it; of several files, the first."""
    first, *more = source.split(",")
    file, colon, inside = first.partition(":")
    if len(file) == 1:  # the drive of a Windows path
        file, colon, inside = first, "", ""
    name = PurePath(file).name + colon + inside
    return shortened(name, 90) + (f" (+{len(more)})" if more else "")


def volume(pixels: float, pixel_volume: float | None = None, *, unit: str = "") -> str:
    """A volume in pixels, in groups of three digits; in millilitres too where these are known."""
    text = f"{pixels:,.0f}" if pixels >= 100 or pixels == int(pixels) else f"{pixels:,.1f}"
    size = millilitres(pixels, pixel_volume)
    text = f"{text}{unit} ({size})" if size else f"{text}{unit}"
    return text.replace(",", "\u2009")


def extent(pixels: float, pixel_volume: float | None, *, unit: bool = True) -> str:
    """A volume in millilitres, or in pixels where nobody knows how large they are."""
    size = millilitres(pixels, pixel_volume)
    if not size:
        return volume(pixels) + (" px" if unit else "")
    return (size if unit else size.removesuffix(" mL")).replace(",", "\u2009")
