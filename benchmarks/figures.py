"""Measure figures of the README and the documentation again, and report changed figures.

    python -m benchmarks.figures

The command takes about a minute on an idle machine. Figures that require downloaded data or many
minutes are not checked; their pages name the command that prints them. Each figure is read from its
page with a pattern, so a change to the sentence may require a change to this script. A time or a
ratio of times may be worse than its figure by the factor `FACTOR`, because machines differ. Other
numbers must agree. A time in seconds that exceeds its limit is not judged while other processes use
the cores.
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
FACTOR = 2.0  # a time or a ratio of times may be worse by this factor
BENCHMARKS = (speed.small_maps, speed.small_soft, speed.label_maps, speed.many_regions)
IN_SECONDS = ("compare, 97,336", "compare, adjusted score", "import")  # not relative to other code
ROUNDS = 200  # samples for the coverage of confidence intervals; the page uses 2,000


@dataclass(frozen=True)
class Figure:
    """A number stated on a page, the measured number, and the limits for the measured number."""

    page: str
    what: str
    stated: float
    measured: float
    lowest: float = -np.inf
    highest: float = np.inf
    in_seconds: bool = False

    @property
    def verdict(self) -> str:
        """The result of comparing the measured number with the limits."""
        if self.lowest <= self.measured <= self.highest:
            return "holds"
        return "not judged: busy" if self.in_seconds and _is_busy() else FAILED


def read_number(page: str, pattern: str) -> float:
    """Return the number on a page that the only group of the pattern matches."""
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    match = re.search(pattern, text)
    if match is None:
        raise SystemExit(f"{page}: no text matches {pattern!r}. Update benchmarks/figures.py.")
    return float(match[1].replace("−", "-"))


def at_most(page: str, what: str, stated: float, measured: float) -> Figure:
    """Return the figure of a time, or of a ratio to the time of other code."""
    in_seconds = what.startswith(IN_SECONDS)
    return Figure(page, what, stated, measured, highest=stated * FACTOR, in_seconds=in_seconds)


def at_least(page: str, what: str, stated: float, measured: float) -> Figure:
    """Return the figure of a speed-up relative to other code."""
    return Figure(page, what, stated, measured, lowest=stated / FACTOR)


def equal(page: str, what: str, stated: float, measured: float, tolerance: float) -> Figure:
    """Return the figure of a number that does not depend on the machine."""
    return Figure(page, what, stated, measured, stated - tolerance, stated + tolerance)


def _is_busy() -> bool:
    """Return whether other processes also use the cores."""
    return os.getloadavg()[0] > (os.cpu_count() or 1) + 1


def speed_rows(text: str) -> dict[tuple[str, str], str]:
    """Return the measured values of the speed page, by work and by the other tool."""
    rows = {}
    for work, measured in re.findall(r"^\| ([^|]+) \| ([^|]+) \|", text, re.MULTILINE):
        tool = re.search(r"× faster than ([^(]+[^( ])", measured)
        rows[work, tool[1] if tool else ""] = measured
    return rows


def speed_figures() -> Iterator[Figure]:
    """Yield the rows of the speed page, and the README figures that are taken from them."""
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
    yield quoted(r"97,336 cells each in ([\d.]+) s", at_most, jittered)
    small = "compare, two label maps 64×64, 20 labels, uint8"
    yield quoted(r"64 × 64 pixels takes ([\d.]+) × as long", at_most, small)


def import_figure() -> Figure:
    """Return the least of five times of `import probdice`, without the import of NumPy."""
    page = "docs/reference/python.md"
    stated = read_number(page, r"takes less than ([\d.]+) s in addition to importing NumPy")
    code = "import time, numpy; start = time.perf_counter(); import probdice; "
    code += "print(time.perf_counter() - start)"
    command = [sys.executable, "-c", code]
    times = [float(subprocess.check_output(command, text=True)) for _ in range(5)]
    return at_most(page, "import probdice, in seconds", stated, min(times))


def background_figure() -> Figure:
    """Return the adjusted score if the pixels of the common background are left out."""
    page = "docs/explanation/method.md"
    stated = read_number(page, r"10 % foreground would have an adjusted score of (−\d\.\d+)")
    reference = np.array([1] * 10 + [0] * 9)  # 19 of 100 pixels are foreground on at least one side
    prediction = np.array([1] + [0] * 9 + [1] * 9)
    measured = probdice.compare(reference, prediction, match="labels").adjusted_score
    return equal(page, "adjusted score without the common background", stated, measured, 0.005)


def coverage_figures() -> Iterator[Figure]:
    """Yield the coverage of confidence intervals over ten cases, within three standard errors."""
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
    """Yield all figures, measured one after the other."""
    yield background_figure()
    yield import_figure()
    yield from coverage_figures()
    yield from speed_figures()


def main() -> None:
    """Print all figures, and exit with code 1 if a figure does not hold."""
    failed = 0
    for figure in figures():
        failed += figure.verdict == FAILED
        numbers = f"{figure.stated:9.3f} {figure.measured:9.3f}"
        print(f"{numbers}  {figure.verdict:16}  {figure.page}: {figure.what}", flush=True)
    if failed:
        sys.exit(f"{failed} figures do not hold (columns: stated, measured)")


if __name__ == "__main__":
    main()
