"""The headline of a page: the main numbers of a comparison, and sentences that explain them."""

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

DOUBTFUL = 0.4  # unrelated images can reach adjusted scores below this
LONGEST = 2000  # characters of a note
DRAWN = ("apart", "crossed", "unmatched")  # kinds of notes that have an icon


@dataclass(frozen=True)
class Sentence:
    """A sentence of the headline, with the name of its icon."""

    text: str
    drawing: str


@dataclass(frozen=True)
class Figure:
    """A number of the headline, with its name and a short explanation."""

    name: str
    value: str
    about: str = ""


@dataclass(frozen=True)
class Scale:
    """The score and the chance level in per cent, with a text alternative for the figure."""

    score: float
    chance: float
    about: str

    @property
    def start(self) -> float:
        """The left end of the bar between chance level and score."""
        return min(self.score, self.chance)

    @property
    def length(self) -> float:
        """The length of the bar."""
        return abs(self.score - self.chance)


def figures_of(comparison: Comparison) -> tuple[Figure, ...]:
    """The numbers of the headline. Dice, adjusted score and explained shares precede the score."""
    score, adjusted = _known(lambda: comparison.score), _known(lambda: comparison.adjusted_score)
    unmatched = {side: len(comparison.unmatched[side]) for side in SIDES}
    figures = [
        Figure("Mean Dice", decimal(comparison.mean_dice), "unmatched regions count as 0"),
        Figure("Adjusted score", decimal(adjusted), f"0 is chance level ({_chance(comparison)})"),
        *(_explained_figure(comparison, side) for side in SIDES),
        _lowest_figure(comparison),
        Figure(
            "Unmatched",
            str(sum(unmatched.values())),
            counted(unmatched) if any(unmatched.values()) else "every region is matched",
        ),
        Figure("Score", decimal(score), "1 means equal"),
    ]
    if comparison.merges:
        before = decimal(_known(lambda: comparison.matched_score))
        figures.append(Figure("Before merging", before, merged_of(comparison)))
    return tuple(figures)


def scale_of(comparison: Comparison) -> Scale | None:
    """The scale of score and chance level, or None if one of them is unknown."""
    score, chance = _known(lambda: comparison.score), _known(lambda: comparison.chance)
    if isnan(score) or isnan(chance):
        return None
    about = f"Scale from 0 to 1: chance level {decimal(chance)}, score {decimal(score)}"
    return Scale(round(100 * score, 3), round(100 * chance, 3), about)


def sentences_of(comparison: Comparison) -> tuple[Sentence, ...]:
    """Sentences that explain the numbers of the headline."""
    all_matched: tuple[Sentence, ...] = ()
    if not any(comparison.unmatched[side] for side in SIDES):
        all_matched = (Sentence("Every region is matched.", "unmatched"),)
    return (
        Sentence(" ".join(_score_sentences(comparison)), "score"),
        *(Sentence(_explained_sentence(comparison, side), side) for side in SIDES),
        *all_matched,
    )


def notes_of(comparison: Comparison, notice: str, words: Words) -> tuple[Sentence, ...]:
    """The notes of a comparison, after the notice if there is one."""
    sentences = [
        Sentence(in_words(note.message, words), note.kind if note.kind in DRAWN else "note")
        for note in comparison.notes
    ]
    if notice:
        sentences.insert(0, Sentence(notice, "note"))
    return tuple(Sentence(_sentence(one.text), one.drawing) for one in sentences)


def _sentence(text: str) -> str:
    """Shorten a note and capitalise its first word, unless that may be a file name."""
    short = shortened(text, LONGEST)
    first, *_ = short.split(maxsplit=1) or [""]
    return short[:1].upper() + short[1:] if first.isalpha() else short


def _explained_figure(comparison: Comparison, side: Side) -> Figure:
    share = _known(lambda: comparison.explained[side])
    return Figure(f"{side.capitalize()} explained", decimal(share), f"by the {other(side)}")


def _lowest_figure(comparison: Comparison) -> Figure:
    lowest = comparison.lowest
    pair = f"{listed(lowest.reference, 2)} ↔ {listed(lowest.prediction, 2)}"
    return Figure("Lowest Dice", decimal(lowest.dice), shortened(pair, 60))


def _chance(comparison: Comparison) -> str:
    """The chance level, with its standard error if it was estimated by sampling."""
    level, error = _known(lambda: comparison.chance), _known(lambda: comparison.chance_error)
    return f"{decimal(level)} ± {decimal(error)}" if error > 0 else decimal(level)


def _score_sentences(comparison: Comparison) -> tuple[str, ...]:
    """Sentences about the score and its distance from chance level."""
    score, chance = _known(lambda: comparison.score), _known(lambda: comparison.chance)
    if isnan(score):
        return ("The score needs the images.",)
    counts_pixels = comparison.overlap.crisp and comparison.similarity.disagreement == 1
    separable = comparison.similarity.separable
    if counts_pixels:
        what = f"{percent(score)} of the pixels have corresponding labels"
    elif separable:
        what = f"On average, both sides agree on {percent(score)} of the probability per pixel"
    else:
        what = f"The mean similarity per pixel is {decimal(score, 3)} (1 means equal)"
    if isnan(chance):
        return (f"{what}.",)
    level = percent(chance) if counts_pixels or separable else decimal(chance, 3)
    adjusted = comparison.adjusted_score
    if isnan(adjusted):
        return (f"{what}. Chance level is {level} too, so the score is not informative.",)
    if adjusted < 0:
        return (f"{what}. This is below the chance level of {level}.",)
    explanation = (
        f"{what}. Chance level for regions of these sizes is {level}, so the score is "
        f"{percent(adjusted, 0)} of the way from chance to identity."
    )
    if adjusted >= DOUBTFUL:
        return (explanation,)
    return (
        explanation,
        "Segmentations of unrelated images reach adjusted scores of 0.2 to 0.3, because images "
        "are smooth and have similar layouts. A score in this range may not be meaningful.",
    )


def _explained_sentence(comparison: Comparison, side: Side) -> str:
    """A sentence about the share of one side that the other side explains."""
    across = other(side)
    try:
        share = comparison.explained[side]
    except NeedsImages:
        return f"The explained share of the {side} needs the images."
    if isnan(share):
        return f"The {side} is the same at every pixel, so its explained share is undefined."
    return (
        f"The {across} explains {percent(share)} of the {side}. It explains all if every region of "
        f"the {across} lies inside one region of the {side}, and little if most regions extend "
        f"over several."
    )


def _known(number: Callable[[], float]) -> float:
    """A number, or NaN if it needs images that are no longer available."""
    try:
        return number()
    except NeedsImages:
        return nan
