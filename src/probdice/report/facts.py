"""What was run, as lines of a page: options, versions, files and where they lie."""

import platform
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from probdice.numbers_shown import percent
from probdice.report.packing import shortened
from probdice.result import Comparison, listed
from probdice.segmentation import Segmentation
from probdice.solution import SIDES

__all__ = ["Fact", "measure_of", "names_of", "options_of", "sides_of", "size_of", "volume"]


@dataclass(frozen=True)
class Fact:
    """A line of what was run: one value for both sides, or one for each."""

    name: str
    values: tuple[str, ...]


def options_of(comparison: Comparison) -> tuple[Fact, ...]:
    """What was asked for, and of which software."""
    from probdice import __version__

    facts = [
        Fact("Similarity", (measure_of(comparison),)),
        Fact("Regions", ("matched" if comparison.match else "equal labels correspond",)),
        Fact("Merging", (comparison.merge,)),
        Fact("Pixels compared", (volume(comparison.pixels),)),
    ]
    if (omitted := _omitted(comparison)) is not None:
        facts.append(omitted)
    versions = f"probdice {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    return (*facts, Fact("Made with", (versions,)))


def _omitted(comparison: Comparison) -> Fact | None:
    """By what pixels were left out, and how many."""
    if comparison._work is None:
        return None
    pair = comparison._work[0].pair
    reasons = ["mask"] if pair.mask is not None else []
    if labels := pair.reference.ignore:
        reasons.append(f"ignored label{'s' * (len(labels) > 1)} {listed(labels)}")
    if not reasons:
        return None
    total = int(np.prod(pair.reference.shape, dtype=np.int64))
    count = total - comparison.pixels
    share = f"{volume(count)} of {volume(total)} pixels ({percent(count / total)})"
    return Fact("Left out by", (f"{' and '.join(reasons)}: {share}",))


def sides_of(comparison: Comparison) -> tuple[Fact, ...]:
    """What each side was."""
    empty = tuple(
        shortened(listed(comparison.empty[side]), 300) if comparison.empty[side] else "none"
        for side in SIDES
    )
    if comparison._work is None:
        return (Fact("Empty regions", empty),)
    sides = [comparison._work[0].pair.side(side) for side in SIDES]
    facts = [
        Fact("File", tuple(shortened(side.source, 1000) or "an array" for side in sides)),
        Fact("Kind", tuple(_kind(side) for side in sides)),
        Fact("Empty regions", empty),
    ]
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
    return " × ".join(str(n) for n in side.shape) or "one pixel"


def names_of(comparison: Comparison) -> tuple[str, str]:
    """Short names of the sides: the files', or what they are."""
    if comparison._work is None:
        return "Reference", "prediction"
    pair = comparison._work[0].pair
    return (
        _name(pair.reference.source) or "Reference",
        _name(pair.prediction.source) or "prediction",
    )


def _name(source: str) -> str:
    """The last part of a path and what lies inside the file; of several files, the first."""
    first, *more = source.split(",")
    file, colon, inside = first.partition(":")
    if len(file) == 1:  # the drive of a Windows path
        file, colon, inside = first, "", ""
    name = PurePath(file).name + colon + inside
    return shortened(name, 90) + (f" (+{len(more)})" if more else "")


def measure_of(comparison: Comparison) -> str:
    """The similarity, with its floor."""
    if comparison.floor:
        return f"{comparison.similarity} (floor {comparison.floor:g})"
    return comparison.similarity


def volume(pixels: float) -> str:
    """A volume in pixels, in groups of three digits."""
    text = f"{pixels:,.0f}" if pixels >= 100 or pixels == int(pixels) else f"{pixels:,.1f}"
    return text.replace(",", "\u2009")
