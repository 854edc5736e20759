"""Measure figures of the README and the documentation again, and fail if one no longer holds.

    python -m benchmarks.figures

Takes about a minute on an idle machine. Figures that need downloaded data or many minutes are not
checked; their pages name the command that prints them. Each figure is read from its page, so a
sentence that was changed without this script is an error. A time or a ratio of times may be worse
than its figure by `FACTOR`, because machines differ; other numbers must agree. Times in seconds are
not judged while other processes use the cores.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import probdice
from benchmarks import intervals, speed

__all__ = ["Figure", "figures", "main", "read_number", "speed_rows"]

ROOT = Path(__file__).parent.parent
FAILED = "DOES NOT HOLD"
FACTOR = 2.0  # by which a time or a ratio of times may be worse
BENCHMARKS = (speed.small_maps, speed.small_soft, speed.label_maps, speed.many_regions)
IN_SECONDS = ("compare, 97,336", "compare, adjusted score", "import")  # not relative to other code
ROUNDS = 200  # of the coverage of confidence intervals; the page has 2,000


@dataclass(frozen=True)
class Figure:
    """A number of a page, the number measured now, and the limits in which it holds."""

    page: str
    what: str
    stated: float
    measured: float
    lowest: float = -np.inf
    highest: float = np.inf
    in_seconds: bool = False

    @property
    def verdict(self) -> str:
        """Whether the measured number is within the limits."""
        if self.lowest <= self.measured <= self.highest:
            return "holds"
        return "not judged: busy" if self.in_seconds and _is_busy() else FAILED


def read_number(page: str, pattern: str) -> float:
    """The number that a sentence of a page states; the pattern has one group."""
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    match = re.search(pattern, text)
    if match is None:
        raise SystemExit(f"{page}: no text matches {pattern!r}. Update benchmarks/figures.py.")
    return float(match[1].replace("−", "-"))


def at_most(page: str, what: str, stated: float, measured: float) -> Figure:
    """A time, or a ratio to the time of other code."""
    in_seconds = what.startswith(IN_SECONDS)
    return Figure(page, what, stated, measured, highest=stated * FACTOR, in_seconds=in_seconds)


def at_least(page: str, what: str, stated: float, measured: float) -> Figure:
    """How many times faster than other code."""
    return Figure(page, what, stated, measured, lowest=stated / FACTOR)


def equal(page: str, what: str, stated: float, measured: float, tolerance: float) -> Figure:
    """A number that does not depend on the machine."""
    return Figure(page, what, stated, measured, stated - tolerance, stated + tolerance)


def _is_busy() -> bool:
    """Whether more processes than this one wait for the cores."""
    return os.getloadavg()[0] > (os.cpu_count() or 1) + 1


def speed_rows(text: str) -> dict[tuple[str, str], str]:
    """The table of the speed page: what was measured, by work and by the tool compared with."""
    rows = {}
    for work, measured in re.findall(r"^\| ([^|]+) \| ([^|]+) \|", text, re.MULTILINE):
        tool = re.search(r"× faster than ([^(]+[^( ])", measured)
        rows[work, tool[1] if tool else ""] = measured
    return rows


def speed_figures() -> Iterator[Figure]:
    """Rows of the speed page, and the figures of the README that come from them."""
    page = "docs/explanation/speed.md"
    table = speed_rows((ROOT / page).read_text(encoding="utf-8"))
    ratios: dict[tuple[str, str], float] = {}
    for benchmark in BENCHMARKS:
        for row in benchmark():
            _, _, tool = row.unit.partition("× faster than ")
            ratios[row.work, tool] = row.value
    for (work, tool), ratio in ratios.items():
        if (work, tool) not in table:
            raise SystemExit(f"{page}: the table has no row {work!r} {tool}. Add it.")
        stated = float(table[work, tool].split()[0])
        limit = at_least if tool else at_most
        yield limit(page, f"{work} {tool}".strip(), stated, ratio)

    def quoted(pattern: str, limit: Callable[..., Figure], work: str, tool: str = "") -> Figure:
        return limit("README.md", work, read_number("README.md", pattern), ratios[work, tool])

    maps = "overlap of two label maps, 256³, 20 labels, uint8"
    peer = "SimpleITK LabelOverlapMeasures"
    yield quoted(r"label maps ([\d.]+) × faster than SimpleITK", at_least, maps, peer)
    jittered = "compare, 97,336 × 97,336 cells, 21 M pixels, jittered"
    yield quoted(r"97,336 cells each compared in ([\d.]+) s", at_most, jittered)
    small = "compare, two label maps 64×64, 20 labels, uint8"
    yield quoted(r"64 × 64 pixels takes ([\d.]+) × as long", at_most, small)


def import_figure() -> Figure:
    """The time of `import probdice` beyond that of NumPy, the least of five."""
    page = "docs/reference/python.md"
    stated = read_number(page, r"takes less than ([\d.]+) s beyond importing NumPy")
    code = "import time, numpy; start = time.perf_counter(); import probdice; "
    code += "print(time.perf_counter() - start)"
    command = [sys.executable, "-c", code]
    times = [float(subprocess.check_output(command, text=True)) for _ in range(5)]
    return at_most(page, "import probdice, in seconds", stated, min(times))


def background_figure() -> Figure:
    """The adjusted score if the pixels of the common background are left out."""
    page = "docs/explanation/method.md"
    stated = read_number(page, r"10 % foreground would have an adjusted score of (−\d\.\d+)")
    reference = np.array([1] * 10 + [0] * 9)  # of 100 independent pixels, those with foreground
    prediction = np.array([1] + [0] * 9 + [1] * 9)
    measured = probdice.compare(reference, prediction, match="labels").adjusted_score
    return equal(page, "adjusted score without the common background", stated, measured, 0.005)


def coverage_figures() -> Iterator[Figure]:
    """Coverage of confidence intervals over ten cases, within three standard errors."""
    page = "docs/explanation/statistics.md"
    names = {"symmetric": "symmetric values", "skewed": "skewed values", "one": "one case in ten"}
    for name, (draw, mean) in intervals.DISTRIBUTIONS.items():
        row = names[name.split()[0].rstrip(":")]
        pattern = rf"\| {row}[^|]*\| [\d.]+ % \| ([\d.]+) %"
        stated = read_number(page, pattern) / 100
        measured = intervals.coverage(draw, mean, 10, ROUNDS)
        error = 3 * (stated * (1 - stated) / ROUNDS) ** 0.5
        yield equal(page, f"coverage, 10 cases, {row}", stated, measured, error)


def figures() -> Iterator[Figure]:
    """All figures, measured one after the other."""
    yield background_figure()
    yield import_figure()
    yield from coverage_figures()
    yield from speed_figures()


def main() -> None:
    """Print all figures; exit with code 1 if one does not hold."""
    failed = 0
    for figure in figures():
        failed += figure.verdict == FAILED
        numbers = f"{figure.stated:9.3f} {figure.measured:9.3f}"
        print(f"{numbers}  {figure.verdict:16}  {figure.page}: {figure.what}", flush=True)
    if failed:
        sys.exit(f"{failed} figures do not hold (stated, measured)")


if __name__ == "__main__":
    main()
