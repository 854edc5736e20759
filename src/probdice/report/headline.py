"""The headline of a page: the numbers of a comparison, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING

from probdice.errors import Words, in_words
from probdice.method.matching import listed
from probdice.method.scoring import NeedsImages
from probdice.method.sides import SIDES, Side, other
from probdice.report.encoding import shortened
from probdice.report.facts import counted, merged_of
from probdice.text.formatting import decimal, percent

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison

__all__ = [
    "Figure",
    "Scale",
    "Sentence",
    "figures_of",
    "notes_of",
    "scale_of",
    "sentences_of",
]

DOUBTFUL = 0.4  # adjusted scores below this may be those of unrelated images
LONGEST = 2000  # characters of a note
DRAWN = ("apart", "crossed", "unmatched")  # the kinds of notes that have a drawing


@dataclass(frozen=True)
class Sentence:
    """A sentence of the headline, and the drawing beside it: what a low value looks like."""

    text: str
    drawing: str


@dataclass(frozen=True)
class Figure:
    """A number of the headline, and a word of what it is."""

    name: str
    value: str
    about: str = ""


@dataclass(frozen=True)
class Scale:
    """The score and chance on a line from 0 to 100 per cent, and the same in words."""

    score: float
    chance: float
    about: str

    @property
    def start(self) -> float:
        """Where the bar between the two starts."""
        return min(self.score, self.chance)

    @property
    def length(self) -> float:
        """How long it is."""
        return abs(self.score - self.chance)


def figures_of(comparison: Comparison) -> tuple[Figure, ...]:
    """The headline: regions, chance and what is explained before the score."""
    score, adjusted = _known(lambda: comparison.score), _known(lambda: comparison.adjusted_score)
    spare = {side: len(comparison.unmatched[side]) for side in SIDES}
    figures = [
        Figure("Mean Dice", decimal(comparison.mean_dice), "an unmatched region counts as 0"),
        Figure("Adjusted score", decimal(adjusted), f"0 is chance, at {_chance(comparison)}"),
        *(_explained_figure(comparison, side) for side in SIDES),
        _lowest_figure(comparison),
        Figure(
            "Unmatched",
            str(sum(spare.values())),
            counted(spare) if any(spare.values()) else "every region is matched",
        ),
        Figure("Score", decimal(score), "1 is equal"),
    ]
    if comparison.merges:
        before = decimal(_known(lambda: comparison.matched_score))
        figures.append(Figure("Before merging", before, merged_of(comparison)))
    return tuple(figures)


def scale_of(comparison: Comparison) -> Scale | None:
    """Where the score and chance lie, as far as both are known."""
    score, chance = _known(lambda: comparison.score), _known(lambda: comparison.chance)
    if isnan(score) or isnan(chance):
        return None
    about = f"chance lies at {decimal(chance)} and the score at {decimal(score)}"
    return Scale(round(100 * score, 3), round(100 * chance, 3), f"On a line from 0 to 1, {about}")


def sentences_of(comparison: Comparison) -> tuple[Sentence, ...]:
    """What the numbers of the headline mean, a sentence each."""
    partners: tuple[Sentence, ...] = ()
    if not any(comparison.unmatched[side] for side in SIDES):
        partners = (Sentence("Every region has a partner on the other side.", "unmatched"),)
    return (
        Sentence(" ".join(_score_sentences(comparison)), "score"),
        *(Sentence(_explained_sentence(comparison, side), side) for side in SIDES),
        *partners,
    )


def notes_of(comparison: Comparison, notice: str, words: Words) -> tuple[Sentence, ...]:
    """What is worth knowing, after a notice; regions without a partner are among it."""
    sentences = [
        Sentence(in_words(note.message, words), note.kind if note.kind in DRAWN else "note")
        for note in comparison.notes
    ]
    if notice:
        sentences.insert(0, Sentence(notice, "note"))
    return tuple(Sentence(_sentence(one.text), one.drawing) for one in sentences)


def _sentence(text: str) -> str:
    """A note as a sentence: it starts like one, unless with the name of a file, and is not long."""
    short = shortened(text, LONGEST)
    first, *_ = short.split(maxsplit=1) or [""]
    return short[:1].upper() + short[1:] if first.isalpha() else short


def _explained_figure(comparison: Comparison, side: Side) -> Figure:
    share = _known(lambda: comparison.explained[side])
    return Figure(f"Explained of the {side}", decimal(share), f"by the {other(side)}")


def _lowest_figure(comparison: Comparison) -> Figure:
    lowest = comparison.lowest
    pair = f"{listed(lowest.reference, 2)} ↔ {listed(lowest.prediction, 2)}"
    return Figure("Lowest Dice", decimal(lowest.dice), shortened(pair, 60))


def _chance(comparison: Comparison) -> str:
    """The chance level, with its standard error where it was sampled."""
    level, error = _known(lambda: comparison.chance), _known(lambda: comparison.chance_error)
    return f"{decimal(level)} ± {decimal(error)}" if error > 0 else decimal(level)


def _score_sentences(comparison: Comparison) -> tuple[str, ...]:
    """What the score means, and how far it is from chance."""
    score, chance = _known(lambda: comparison.score), _known(lambda: comparison.chance)
    if isnan(score):
        return ("To compute the score, the images are needed.",)
    counts_pixels = comparison.overlap.crisp and comparison.similarity.disagreement == 1
    separable = comparison.similarity.separable
    if counts_pixels:
        what = f"{percent(score)} of the pixels carry corresponding labels"
    elif separable:
        what = f"On average the two agree on {percent(score)} of the probability at a pixel"
    else:
        what = (
            f"The mean similarity of the probabilities at a pixel is {decimal(score, 3)} "
            f"(1 is equal)"
        )
    if isnan(chance):
        return (f"{what}.",)
    level = percent(chance) if counts_pixels or separable else decimal(chance, 3)
    adjusted = comparison.adjusted_score
    if isnan(adjusted):
        return (f"{what}, but unrelated pixels would reach {level} too: it says nothing.",)
    if adjusted < 0:
        return (f"{what}, less than the {level} that unrelated pixels would reach.",)
    covered = (
        f"{what}; unrelated pixels with regions of these sizes would reach {level}, so "
        f"{percent(adjusted, 0)} of the way from chance to identity is covered."
    )
    if adjusted >= DOUBTFUL:
        return (covered,)
    return (
        covered,
        "Segmentations of unrelated images reach adjusted scores of 0.2 to 0.3, because images "
        "are smooth and alike in layout. A score in this range may mean nothing.",
    )


def _explained_sentence(comparison: Comparison, side: Side) -> str:
    """How much of one side the other one determines."""
    across = other(side)
    try:
        share = comparison.explained[side]
    except NeedsImages:
        return f"To say how much of the {side} is explained, the images are needed."
    if isnan(share):
        return f"The {side} is the same at every pixel: there is nothing to explain."
    return (
        f"The {across} explains {percent(share)} of the {side}: all of it if every region of the "
        f"{across} lay inside one region of the {side}, little where they straddle several."
    )


def _known(number: Callable[[], float]) -> float:
    """A number, or NaN where it would need images that are gone."""
    try:
        return number()
    except NeedsImages:
        return nan
