"""Rows of the tables that benchmarks print, and the loop that measures times."""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of a table: a number with its unit, and the time that it was computed from."""

    work: str
    value: float
    unit: str
    goal: str = ""
    seconds: float | None = None

    @property
    def measured(self) -> str:
        """The number as text."""
        time = "" if self.seconds is None else f" ({_duration(self.seconds)})"
        if self.value < 0.005:
            return f"less than 0.01 {self.unit}{time}"
        return f"{self.value:.{2 if self.value < 10 else 0}f} {self.unit}{time}"


Benchmark = Callable[[], Iterable[Row]]


def times(work: str, seconds: float, limit: float, against: str, goal: str = "") -> Row:
    """Return the row of a time as a multiple of another time."""
    return Row(work, seconds / limit, f"× {against}", goal, seconds)


def faster(work: str, seconds: float, other: float, tool: str, goal: str = "") -> Row:
    """Return the row of a speed-up relative to another tool."""
    return Row(work, other / seconds, f"× faster than {tool}", goal, seconds)


def least(
    *works: Callable[[], Any], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the shortest time of each function in seconds. The functions run alternately."""
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for k, work in enumerate(works):
            start = clock()
            work()
            best[k] = min(best[k], clock() - start)
    return best


def run(benchmarks: Sequence[Benchmark], description: str, marker: str = "figures") -> None:
    """Measure all rows and print a Markdown table. Options insert it into a page or write JSON.

    `marker` is the name of the two comments of the page between which the table is inserted.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    names = [benchmark.__name__ for benchmark in benchmarks]
    parser.add_argument("--only", nargs="*", default=names, choices=names, metavar="NAME")
    parser.add_argument("--into", type=Path, metavar="PAGE")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    rows = []
    lines = ["| work | measured | goal |", "|---|---|---|"]
    print("\n".join(lines))
    for benchmark in benchmarks:
        if benchmark.__name__ in options.only:
            for row in benchmark():
                rows.append(row)
                lines.append(f"| {row.work} | {row.measured} | {row.goal} |")
                print(lines[-1], flush=True)
    if options.into is not None:
        from fuzz.figures import put

        put(options.into, marker, "\n".join(lines))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows]), encoding="utf-8")


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"
