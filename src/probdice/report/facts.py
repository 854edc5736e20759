"""The settings section of a page: options, versions, files and geometries."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from math import prod
from os.path import commonprefix
from typing import TYPE_CHECKING

import numpy as np

from probdice.files.sources import is_url, split_inside
from probdice.method.region_labels import listed
from probdice.method.sides import SIDES, Side
from probdice.metrics.verdict import words_of
from probdice.report.encoding import shortened
from probdice.report.option_facts import Fact, option_facts, rule_words
from probdice.text.formatting import millilitres, percent, short_paths

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.data.segmentation import Segmentation

__all__ = [
    "extent",
    "merged_of",
    "options_of",
    "sides_of",
    "size_of",
    "title_of",
    "volume",
]

LENGTHS = {"spacing": ", mm", "origin": ", mm"}  # units of the geometry


def options_of(comparison: Comparison) -> tuple[Fact, ...]:
    """Return the options of a comparison, and software versions."""
    from probdice.version import __version__

    compared_volume = volume(comparison.pixels, comparison.pixel_volume)
    facts = [
        Fact("Similarity", (str(comparison.similarity),)),
        Fact("Regions", (rule_words(comparison.options, comparison.labels_by),)),
        Fact("Merging", (_merging(comparison),)),
        Fact(f"{words_of(comparison).many.capitalize()} compared", (compared_volume,)),
    ]
    if (omission := _omission(comparison)) is not None:
        facts.append(omission)
    facts += option_facts(comparison.options, comparison.numbers.known("boundaries"))
    versions = f"probdice {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    return (*facts, Fact("Made with", (versions,)))


def _merging(comparison: Comparison) -> str:
    """Return the sides whose regions may be merged, and the number of merged regions."""
    if comparison.merge == "none":
        return "none"
    merging_sides = "both sides" if comparison.merge == "both" else comparison.merge
    return f"{merging_sides} allowed, {merged_of(comparison)}"


def merged_of(comparison: Comparison) -> str:
    """Return the number of merged regions per side as text."""
    counts = {side: sum(merge.side == side for merge in comparison.merges) for side in SIDES}
    return f"{_region_counts(counts)} merged"


def _region_counts(counts: Mapping[Side, int]) -> str:
    """Return the number of regions per side, such as "2 reference and 1 prediction regions"."""
    texts = [f"{count} {side}" for side, count in counts.items() if count]
    return f"{' and '.join(texts) or 'no'} {'region' if sum(counts.values()) == 1 else 'regions'}"


def _omission(comparison: Comparison) -> Fact | None:
    """Return the number of excluded pixels and the reasons, or None if there is no reason."""
    images = comparison.images
    if images is None:
        return None
    reasons = ["mask"] if images.mask is not None else []
    if images.outside_counts:
        reasons.append("field of view of the prediction")
    if labels := images.reference.ignore:
        reasons.append(f"ignored label{'s' * (len(labels) > 1)} {listed(labels)}")
    if not reasons:
        return None
    total = prod(images.reference.shape)
    count = total - comparison.pixels
    words = words_of(comparison).of(total)
    share = f"{volume(count)} of {volume(total)} {words} ({percent(count / total)})"
    return Fact("Excluded by", (f"{' and '.join(reasons)}: {share}",))


def sides_of(comparison: Comparison, images: tuple[str, ...] = ()) -> tuple[Fact, ...]:
    """Return facts about each side, and the names of the images under the segmentations."""
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
        facts.append(Fact("Background images", (shortened(listed(images), 300),)))
    if all(side.geometry is None for side in sides):
        facts.append(Fact("Size", tuple(size_of(side) for side in sides)))
        return (*facts, Fact("Geometry", ("unknown, assumed equal",)))
    geometries = [side.geometry.describe() if side.geometry else {} for side in sides]
    facts += [
        Fact(
            key.capitalize() + LENGTHS.get(key, ""),
            tuple(entry.get(key, "unknown") for entry in geometries),
        )
        for key in geometries[0]
    ]
    return tuple(facts)


def _kind(side: Segmentation) -> str:
    if side.crisp:
        return f"label map, {side.array.dtype}"
    reading = {
        "error": "",
        "normalise": ", divided by their sum",
        "background": ", remainder to 1 as background",
        "foreground": ", of a single foreground",
        "softmax": ", from logits",
    }[side.reading]
    return f"probabilities of {len(side.regions)} regions, {side.array.dtype}{reading}"


def size_of(side: Segmentation) -> str:
    """Return the shape of an image."""
    return " × ".join(str(n) for n in side.shape) or "one pixel"


def title_of(comparison: Comparison) -> str:
    """Return the names of both files with their sides, or "Reference and prediction" for arrays."""
    if comparison.images is None:
        return "Reference and prediction"
    sources = comparison.images.sides.map(lambda side: side.source)
    reference, prediction = sources.map(_name)
    if reference and reference == prediction:
        reference, prediction = (shortened(path, 90) for path in short_paths(*sources))
    if not reference and not prediction:
        return "Reference and prediction"
    first = f"{reference} (reference)" if reference else "Reference"
    return f"{first} and {prediction} (prediction)" if prediction else f"{first} and prediction"


def _name(source: str) -> str:
    """Return the file names of a side with the paths inside the files.

    Names with a common beginning are written as "pve_{0,1,2}.nii".
    """
    names = []
    for part in source.split(","):
        file, inside = split_inside(part)
        names.append(part if is_url(part) else file.name + (f":{inside}" if inside else ""))
    beginning = commonprefix(names)  # noqa: RUF071 (by character)
    if len(names) == 1 or not beginning:
        return shortened(", ".join(names), 90)
    others = [name.removeprefix(beginning) for name in names]
    ending = commonprefix([name[::-1] for name in others])[::-1]  # noqa: RUF071
    differences = ",".join(name.removesuffix(ending) for name in others)
    return shortened(f"{beginning}{{{differences}}}{ending}", 90)


def volume(pixels: float, pixel_volume: float | None = None, *, unit: str = "") -> str:
    """Return a volume in pixels, and in millilitres if the pixel size is known."""
    text = f"{pixels:,.0f}" if pixels >= 100 or pixels == int(pixels) else f"{pixels:,.1f}"
    size = millilitres(pixels, pixel_volume)
    text = f"{text}{unit} ({size})" if size else f"{text}{unit}"
    return text.replace(",", "\u202f")


def extent(pixels: float, pixel_volume: float | None) -> str:
    """Return the number of millilitres, or of pixels if the pixel size is unknown, as text."""
    size = millilitres(pixels, pixel_volume)
    return size.removesuffix(" mL").replace(",", "\u202f") if size else volume(pixels)
