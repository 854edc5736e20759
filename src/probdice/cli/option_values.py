"""Convert the text of command-line options to the values that `probdice.options` checks."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from probdice.method.matching import RULES
from probdice.method.sides import SIDES, Side

if TYPE_CHECKING:
    from probdice.method.region_labels import Label
    from probdice.options import Match

__all__ = ["PARSERS", "file_of_match"]

T = TypeVar("T")


def file_of_match(word: str) -> Path | None:
    """Return the file given to --match; None if the value is a rule or pairs of labels."""
    if not word.lower().endswith(".json") or ("=" in word and not os.path.exists(word)):
        return None
    return Path(word)


def _match(word: str) -> "Match":
    """Convert --match: a rule, pairs of labels, or an earlier comparison."""
    if word in RULES:
        return word
    file = file_of_match(word)
    if file is not None:
        return _read_comparison(file)
    pairs: dict[Label, Label] = {}
    for pair in word.split(","):
        prediction, equals, reference = (text.strip() for text in pair.partition("="))
        if not (prediction and equals and reference):
            raise typer.BadParameter(
                f"expected {', '.join(RULES)}, pairs of labels such as 0=csf,1=grey "
                "(prediction=reference), or a .json file that compare --json wrote, "
                f"found {word!r}",
                param_hint="--match",
            )
        if _label(prediction) in pairs:
            raise typer.BadParameter(
                f"prediction label {prediction} occurs twice; assign one reference label to every "
                "prediction label",
                param_hint="--match",
            )
        pairs[_label(prediction)] = _label(reference)
    return pairs


def _read_comparison(file: Path) -> "Match":
    """Read a comparison that compare --json wrote."""
    from probdice.comparison.result import Comparison
    from probdice.errors import FormatError, InputError

    try:
        return Comparison.from_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FormatError(f"{file}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise FormatError(f"{file}: cannot be read: {reason}") from error
    except InputError as error:
        raise error.prefixed(f"{file}: not a JSON file written by compare --json: ") from error


def _background(words: Sequence[str]) -> "Label | dict[Side, Label] | None":
    """Convert --background: none, one label or name for both sides, or one for each side."""
    background = None if list(words) == ["none"] else _per_side(words, None, _label)
    if isinstance(background, dict) and len(background) == 1:
        raise typer.BadParameter(
            f"expected reference:LABEL and prediction:LABEL, or one LABEL for both, found only "
            f"{words[0]}",
            param_hint="--background",
        )
    return background


def _derived(words: Sequence[str]) -> "dict[str, tuple[Label, ...]]":
    """Convert --derived: unions of labels or names, or the path of nnU-Net's dataset.json."""
    from probdice.files.name_tables import read_unions

    unions: dict[str, tuple[Label, ...]] = {}
    for word in words:
        name, equals, members = word.partition("=")
        if not equals and word.lower().endswith(".json"):
            unions |= read_unions(word)
            continue
        labels = [_label(text) for text in _split(members)]
        if not name.strip() or not labels:
            raise typer.BadParameter(
                f"expected NAME=LABEL,LABEL,… or a .json file, found {word!r}",
                param_hint="--derived",
            )
        unions[name.strip()] = tuple(labels)
    return unions


def _scale(words: Sequence[str]) -> "float | dict[Side, float] | None":
    """Convert --scale: one number for both sides, or one number for each named side."""
    if len({":" in word for word in words}) > 1:
        raise typer.BadParameter(
            "expected one number for both sides, or reference:NUMBER and prediction:NUMBER, found "
            f"{', '.join(words)}",
            param_hint="--scale",
        )
    return _per_side(words, "--scale", _number)


def _per_side(
    words: Sequence[str], option: str | None, parse: Callable[[str], T]
) -> "T | dict[Side, T] | None":
    """Return one value for both sides, or a dictionary of values by side.

    A prefix that is not a side, such as `left:`, raises a usage error. If `option` is None, such a
    prefix is part of the value instead.
    """
    common_value: T | None = None
    side_values: dict[Side, T] = {}
    for word in words:
        side, colon, value = word.partition(":")
        if side in SIDES and colon:
            side_values[side] = parse(value)
        elif not colon or option is None:
            common_value = parse(word)
        else:
            raise typer.BadParameter(
                f"expected 'reference:' or 'prediction:' before the value, found {word!r}",
                param_hint=option,
            )
    if common_value is None or not side_values:
        return side_values or common_value
    return {side: side_values.get(side, common_value) for side in SIDES}


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise typer.BadParameter(
            f"expected a positive number, such as 100 or 255, found {word!r}", param_hint="--scale"
        ) from None


def _sizes(word: str) -> list[float]:
    """Convert --strata to numbers."""
    try:
        return [float(text) for text in word.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"expected numbers separated by commas, such as 0,100,1000, found {word!r}",
            param_hint="--strata",
        ) from None


def _labels(word: str) -> "list[Label]":
    return [_label(text.strip()) for text in word.split(",")]


def _label(word: str) -> "Label":
    return int(word) if re.fullmatch("-?[0-9]{1,18}", word) else word


def _split(word: str) -> list[str]:
    return [text.strip() for text in word.split(",") if text.strip()]


PARSERS: dict[str, Callable[[Any], Any]] = {  # for options whose text must be converted
    "background": _background,
    "components": lambda word: True if word == "all" else _labels(word),
    "derived": _derived,
    "match": _match,
    "names": lambda words: _per_side(words, None, str),  # a path may contain a colon
    "nested": lambda words: _per_side(words, "--nested", _labels),
    "priority": lambda words: _per_side(words, "--priority", _split),
    "scale": _scale,
    "strata": _sizes,
    "sums": lambda words: _per_side(words, "--sums", str),
}
