"""The headline of a page: the main measures of a comparison, and sentences that explain them."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING

from probdice.errors import Words, in_words
from probdice.method.scoring import NeedsImages
from probdice.method.sides import SIDES, Side, other
from probdice.metrics.registry import REGISTRY
from probdice.metrics.verdict import (
    available,
    explained_of,
    largest_pair,
    lowest_matched,
    mean_without,
    name_in_text,
    side_of,
    unmatched_in_words,
    words_of,
    worst_group,
)
from probdice.report.encoding import shortened
from probdice.report.facts import merged_of
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
    "tiles_of",
]

MAX_UNRELATED_SCORE = 0.4  # unrelated images can reach adjusted scores below this value
MAX_NOTE_LENGTH = 2000  # characters of a note
WITHOUT_IMAGES = (
    ", because this comparison does not contain the images. Compare the segmentations again to "
    "compute it."
)
NOTES_WITH_ICON = ("apart", "crossed", "unmatched")  # kinds of notes that have an icon


@dataclass(frozen=True)
class Sentence:
    """A sentence of the headline, with the name of its icon."""

    text: str
    drawing: str


@dataclass(frozen=True)
class Figure:
    """A measure in the headline: name, value and a short explanation."""

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


def tiles_of(comparison: Comparison) -> tuple[Figure, ...]:
    """Return the five measures at the top of the page."""
    unmatched = sum(len(labels) for labels in comparison.unmatched.values())
    counts = unmatched_in_words(comparison)
    adjusted = decimal(available(lambda: comparison.adjusted_score))
    explained = [decimal(share) for share in explained_of(comparison).values()]
    return (
        _dice_figure(comparison),
        Figure("Adjusted score", adjusted, REGISTRY["adjusted_score"].remark),
        Figure("Explained", " / ".join(explained), "of the reference / of the prediction"),
        _worst_figure(comparison),
        Figure("Unmatched", str(unmatched), counts or "every region is matched"),
    )


def figures_of(comparison: Comparison) -> tuple[Figure, ...]:
    """Return the other measures, which are shown in the section "Details"."""
    score = decimal(available(lambda: comparison.score))
    figures = [Figure("Score", score, _scale_of(_chance(comparison)))]
    if comparison.merges:
        before = decimal(available(lambda: comparison.matched_score))
        figures.append(Figure("Before merging", before, merged_of(comparison)))
    if comparison.background is not None:
        chance = decimal(available(lambda: comparison.foreground_chance))
        adjusted = decimal(available(lambda: comparison.adjusted_foreground_score))
        figures += [
            Figure("Mean Dice", decimal(comparison.mean_dice), "with the background"),
            Figure("Pooled Dice", decimal(comparison.pooled_dice), "of all foreground groups"),
            Figure("Foreground score", decimal(comparison.foreground_score), _scale_of(chance)),
            Figure("Adjusted foreground score", adjusted, REGISTRY["adjusted_score"].remark),
        ]
    return tuple(figures)


def scale_of(comparison: Comparison) -> Scale | None:
    """Return the scale of score and chance level, or None if either is unknown."""
    score, chance = available(lambda: comparison.score), available(lambda: comparison.chance)
    if isnan(score) or isnan(chance):
        return None
    about = f"Scale from 0 to 1: chance level {decimal(chance)}, score {decimal(score)}"
    return Scale(round(100 * score, 3), round(100 * chance, 3), about)


def sentences_of(comparison: Comparison) -> tuple[Sentence, ...]:
    """Return sentences that explain the measures in the headline."""
    return (
        Sentence(_score_sentence(comparison), "score"),
        *(Sentence(_explained_sentence(comparison, side), side) for side in SIDES),
    )


def notes_of(comparison: Comparison, notice: str, words: Words) -> tuple[Sentence, ...]:
    """Return the notice and the caveat, if there are any, followed by the notes of a comparison."""
    sentences = [
        Sentence(
            in_words(note.message, words), note.kind if note.kind in NOTES_WITH_ICON else "note"
        )
        for note in comparison.notes
    ]
    first = [text for text in (notice, _caveat(comparison)) if text]
    sentences = [*(Sentence(text, "note") for text in first), *sentences]
    return tuple(Sentence(_sentence(one.text), one.drawing) for one in sentences)


def _sentence(text: str) -> str:
    """Shorten a note, and capitalise its first word if this word consists only of letters."""
    short = shortened(text, MAX_NOTE_LENGTH)
    first, *_ = short.split(maxsplit=1) or [""]
    return short[:1].upper() + short[1:] if first.isalpha() else short


def _dice_figure(comparison: Comparison) -> Figure:
    """Return the foreground Dice if the comparison has a background, and the mean Dice otherwise.

    If a pair may be the background, the explanation contains the mean Dice without this pair.
    """
    if comparison.background is not None:
        dice = decimal(comparison.foreground_dice)
        return Figure("Foreground Dice", dice, "without the background")
    about = "unmatched regions count as 0"
    pair = largest_pair(comparison)
    if pair is not None and not isnan(mean_without(comparison, pair)):
        about = f"{decimal(mean_without(comparison, pair))} without {name_in_text(pair)}"
    return Figure("Mean Dice", decimal(comparison.mean_dice), about)


def _worst_figure(comparison: Comparison) -> Figure:
    """Return the lowest Dice and, if its region is unmatched, the lowest Dice of a match."""
    worst = worst_group(comparison.groups)
    if worst is None:
        return Figure("Worst region", decimal(nan), "no Dice is known")
    lowest = lowest_matched(comparison.groups)
    about = name_in_text(worst)
    if side_of(worst):
        about += ", unmatched"
        if lowest is not None:
            about += f"; lowest matched {decimal(lowest.dice)}"
    return Figure("Worst region", decimal(worst.dice), about)


def _scale_of(chance: str) -> str:
    is_known = chance != decimal(nan)
    return f"{chance} is chance level, 1 means identical" if is_known else "1 means identical"


def _chance(comparison: Comparison) -> str:
    """Return the chance level, with its standard error if the level was estimated by sampling."""
    level, error = available(lambda: comparison.chance), available(lambda: comparison.chance_error)
    return f"{decimal(level)} ± {decimal(error)}" if error > 0 else decimal(level)


def _score_sentence(comparison: Comparison) -> str:
    """Return a sentence about the score and its distance from chance level."""
    score, chance = available(lambda: comparison.score), available(lambda: comparison.chance)
    if isnan(score):
        return f"The score is not available{WITHOUT_IMAGES}"
    counts_pixels = comparison.overlap.crisp and comparison.similarity.disagreement == 1
    separable = comparison.similarity.separable
    words = words_of(comparison)
    if counts_pixels:
        text = f"{percent(score)} of the {words.many} have corresponding labels"
    elif separable:
        share = f"{percent(score)} of the probability per {words.one}"
        text = f"On average, both sides agree on {share}"
    else:
        text = f"The mean similarity per {words.one} is {decimal(score, 3)} (1 means identical)"
    if isnan(chance):
        return f"{text}."
    level = percent(chance) if counts_pixels or separable else decimal(chance, 3)
    adjusted = comparison.adjusted_score
    if isnan(adjusted):
        return f"{text}. The chance level is also {level}, so the score is not informative."
    if adjusted < 0:
        return f"{text}. The score is below the chance level of {level}."
    return (
        f"{text}. The chance level for regions of these sizes is {level}, so the score is "
        f"{percent(adjusted, 0)} of the way from the chance level to 1."
    )


def _caveat(comparison: Comparison) -> str:
    """Return a warning if 0 ≤ adjusted score < `MAX_UNRELATED_SCORE`, or ""."""
    if not 0 <= available(lambda: comparison.adjusted_score) < MAX_UNRELATED_SCORE:
        return ""
    return (
        "Segmentations of unrelated images reach adjusted scores of 0.2 to 0.3, because images are "
        "smooth and have similar layouts. An adjusted score below 0.4 may not be meaningful."
    )


def _explained_sentence(comparison: Comparison, side: Side) -> str:
    """Return a sentence about the share of one side that the other side explains."""
    opposite = other(side)
    try:
        share = comparison.explained[side]
    except NeedsImages:
        return f"The explained share of the {side} is not available{WITHOUT_IMAGES}"
    if isnan(share):
        everywhere = f"the same at every {words_of(comparison).one}"
        return f"The {side} is {everywhere}, so its explained share is undefined."
    return (
        f"The {opposite} explains {percent(share)} of the {side}. The share is high if every "
        f"region of the {opposite} is inside one region of the {side}, and low if most regions "
        f"of the {opposite} extend over several regions of the {side}."
    )
