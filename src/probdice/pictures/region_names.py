"""Shorten the names of regions, and keep different names distinct."""

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

from probdice.method.region_labels import Label

__all__ = ["MAX_NAME_LENGTH", "plain", "short_names"]

MAX_NAME_LENGTH = 26  # characters of a name in a picture of an evaluation


def short_names(labels: Sequence[Label], max_length: int) -> list[str]:
    """Shorten labels to at most `max_length` characters each. Different labels remain different.

    The end of a long name is removed. If the result equals another name, the middle is removed
    instead, or else the common beginning. If the name is still not unique, a number is added.

    Examples
    --------
    >>> from probdice.pictures.region_names import short_names
    >>> short_names(["left cerebral cortex", "left cerebral white matter", "stem"], 12)
    ['left …cortex', 'left …matter', 'stem']
    """
    texts = [" ".join(str(label).split()) for label in labels]
    names = {text: text for text in texts if len(text) <= max_length}
    head, tail = max_length - 1 - max_length // 2, max_length // 2
    for omission in ("end", "middle", "beginning"):
        long_texts = [text for text in dict.fromkeys(texts) if text not in names]
        prefix_length = _prefix_length(long_texts)
        candidates = {
            text: {
                "end": f"{text[: max_length - 1]}…",
                "middle": f"{text[:head]}…{text[-tail:]}",
                "beginning": f"…{text[prefix_length : prefix_length + max_length - 1]}",
            }[omission]
            for text in long_texts
        }
        counts = Counter([*names.values(), *candidates.values()])
        names |= {text: name for text, name in candidates.items() if counts[name] == 1}
    used_names = set(names.values())
    for number, text in enumerate(dict.fromkeys(texts), start=1):
        if text not in names:
            ending = f"…{number}"
            while (name := text[: max_length - len(ending)] + ending) in used_names:
                ending = f"…{ending}"
            names[text] = name
            used_names.add(name)
    return [plain(names[text]) for text in texts]


def plain(text: str) -> str:
    """Escape dollar signs, which mark mathematical text in Matplotlib."""
    return text.replace("$", r"\$")


def _prefix_length(texts: Sequence[str]) -> int:
    """Return the length of the common prefix of all texts."""
    letters = zip(*texts, strict=False)
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, letters))
