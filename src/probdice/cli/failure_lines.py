"""Lines about the failed cases of an evaluation."""

import re
from collections import Counter

from probdice.text.escaping import printable
from probdice.text.formatting import quantity

__all__ = ["Failures"]

MAX_OF_ONE_KIND = 3  # maximum number of printed failures of each kind
MAX_LENGTH = 300  # characters per printed failure


class Failures:
    """Lines about failed cases, limited to the first few failures of every kind."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.last: dict[str, str] = {}

    def line(self, case: str, method: str, error: str) -> str:
        """Return the line for a failed case.

        Return "" if `MAX_OF_ONE_KIND` lines about this kind of failure were already returned.
        """
        message = error.strip().partition("\n")[0]
        kind = _kind(message.replace(case, ""))
        self.counts[kind] += 1
        if self.counts[kind] > MAX_OF_ONE_KIND:
            return ""
        self.last[kind] = printable(f"{case} ({method})")
        line = printable(f"{case} ({method}): {message}")
        return line if len(line) <= MAX_LENGTH else f"{line[: MAX_LENGTH - 1]}…"

    def remaining_lines(self) -> list[str]:
        """Return one line per kind with omitted failures: their number and an example."""
        return [
            f"{quantity(count - MAX_OF_ONE_KIND, 'more failure')} like {self.last[kind]}"
            for kind, count in self.counts.items()
            if count > MAX_OF_ONE_KIND
        ]


def _kind(message: str) -> str:
    """Return a message without paths and numbers, which differ between cases."""
    return re.sub(r"\S*[/\\]\S*|[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", "", message)
