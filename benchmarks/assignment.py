"""Time the assignment: small tables, grids of cells, and random tables.

    python -m benchmarks.assignment [--json FILE]

Run it from the root of the project. It uses the tables of tests/test_assignment.py, and compares
10,000 random tables with SciPy's dense solver. If OR-tools is installed, its min-cost flow solves
the same grids, and the totals must agree.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.test_assignment import certify, dense_total, random_table, shifted_grid, shuffled

from probdice.method import assignment
from probdice.method.assignment import largest_total

Table = tuple[NDArray[Any], NDArray[Any], NDArray[Any], tuple[int, int]]

TABLES = 10_000
POINTS = 60  # pixels per cell edge


@dataclass(frozen=True)
class Row:
    """One line of the output."""

    work: str
    pairs: int
    seconds: float
    goal: str
    flow_seconds: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    rows = []
    for part in (small, grids, random_tables):
        for row in part():
            rows.append(row)
            flow = "" if row.flow_seconds is None else f"OR-tools {row.flow_seconds:8.3f} s"
            print(f"{row.work:64} {row.pairs:8} {row.seconds:12.6f} s {row.goal:16} {flow}")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


def timed(work: Callable[[], Any], times: int) -> tuple[float, Any]:
    """The shortest of several times, and the result."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


def small() -> Iterator[Row]:
    """Tables of small images."""
    rng = np.random.default_rng(0)
    for regions in (5, 20):
        table = rng.integers(1, 50, (regions, regions))
        for name, extra, goal in (
            ("nothing to solve", 1000, "at most 15 µs"),
            ("to be solved", 0, ""),
        ):
            rows, columns = np.divmod(np.arange(table.size), regions)
            savings = (table + extra * np.eye(regions, dtype=np.int64)).ravel()
            arguments = rows, columns, savings, table.shape
            seconds, _ = timed(lambda a=arguments: largest_total(*a), 300)
            yield Row(f"{regions} × {regions}, {name}", table.size, seconds, goal)


def grids() -> Iterator[Row]:
    """Cells of two grids."""
    assignment._sparse(*shifted_grid(3, 2, 1, wrap=True))  # compiles both loops
    cases: dict[str, tuple[Callable[[], Table], str]] = {
        "46³ cells, shifted by a sixth": (lambda: shifted_grid(46, 6, 1), "at most 0.5 s"),
        "46³ cells, jittered by 0.3": (lambda: jittered_grid(46, 0.3), "at most 1.5 s"),
        "46³ cells, jittered by 0.5": (lambda: jittered_grid(46, 0.5), "at most 1.5 s"),
        "46³ cells, jittered by 3": (lambda: jittered_grid(46, 3), "at most 1.5 s"),
        "46³ cells, shifted by half": (lambda: shifted_grid(46, 2, 1), "at most 5 s"),
        "the same, shuffled": (lambda: shuffled(*shifted_grid(46, 2, 1)), "at most 5 s"),
        "the same, wrapped": (
            lambda: shuffled(*shifted_grid(46, 2, 1, wrap=True)),
            "at most 5 s",
        ),
        "46³ cells, shifted by half, ± 1 %": (lambda: noisy_grid(46, 0.01), "at most 5 s"),
        "46³ cells, shifted by half, ± 30 %": (lambda: noisy_grid(46, 0.3), "at most 5 s"),
        "100³ cells, shifted by a sixth": (lambda: shifted_grid(100, 6, 1), "at most 10 s"),
        "100³ cells, shifted by half, shuffled": (lambda: shuffled(*shifted_grid(100, 2, 1)), ""),
        "46³ cells, half, clipped": (lambda: pixel_grid(46), "at most 5 s"),
        "46³ cells, half, wrapped": (lambda: pixel_grid(46, wrap=True), "at most 5 s"),
        "46³ cells, half, clipped, 5 % moved": (lambda: pixel_grid(46, moved=0.05), "at most 5 s"),
        "46³ cells, half, wrapped, 5 % moved": (
            lambda: pixel_grid(46, wrap=True, moved=0.05),
            "at most 5 s",
        ),
        "46³ cells, 3, 2, 1 sixths, clipped": (lambda: pixel_grid(46, (3, 2, 1)), "at most 5 s"),
        "46³ cells, half, clipped, merged in twos": (
            lambda: pixel_grid(46, merged=True),
            "at most 5 s",
        ),
        "46³ cells, half, clipped, soft": (lambda: pixel_grid(46, soft=True), "at most 5 s"),
        "46³ cells, half, wrapped, soft": (
            lambda: pixel_grid(46, wrap=True, soft=True),
            "at most 5 s",
        ),
        "60³ cells, half, clipped": (lambda: pixel_grid(60), ""),
        "60³ cells, half, clipped, 5 % moved": (lambda: pixel_grid(60, moved=0.05), ""),
        "60³ cells, half, clipped, soft": (lambda: pixel_grid(60, soft=True), ""),
        "100³ cells, a sixth, clipped": (lambda: pixel_grid(100, (1, 1, 1)), ""),
        "100³ cells, half, clipped": (lambda: pixel_grid(100), ""),
    }
    for name, (make, goal) in cases.items():
        table = make()
        large, whole = table[2].size > 2 * 10**6, table[2].dtype == np.int64
        seconds, chosen = timed(lambda t=table: largest_total(*t), 1 if large else 3)
        total = table[2][chosen].sum()
        if whole and not large:
            certify(*table, chosen)
        scale = 1 if whole else 2**20
        rounded = np.rint(table[2] * scale).astype(np.int64)
        flow = None if large else flow_total(*table[:2], rounded, table[3])
        if flow is not None and abs(flow[1] / scale - total) > (0 if whole else 1e-9 * total):
            raise SystemExit(f"{name}: the total is {total}, that of OR-tools {flow[1]}")
        yield Row(name, table[2].size, seconds, goal, flow[0] if flow else None)


def jittered_grid(cells: int, amount: float) -> Table:
    """Points in the cells of two sets of centres, each randomly displaced from a grid."""
    from scipy.spatial import cKDTree

    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(*[np.arange(cells) + 0.5] * 3, indexing="ij"), axis=-1)
    points = rng.random((POINTS * cells**3, 3)) * cells
    centres = [grid.reshape(-1, 3) + rng.uniform(-amount, amount, (cells**3, 3)) for _ in "ab"]
    a, b = (cKDTree(side).query(points, workers=2)[1] for side in centres)
    pairs, counts = np.unique(a * cells**3 + b, return_counts=True)
    return pairs // cells**3, pairs % cells**3, counts, (cells**3, cells**3)


def pixel_grid(
    cells: int,
    shifts: tuple[int, int, int] = (3, 3, 3),
    *,
    wrap: bool = False,
    moved: float = 0,
    merged: bool = False,
    soft: bool = False,
) -> Table:
    """Cells of 6³ pixels and the same cells shifted and renumbered.

    Shifted cells are clipped at the border or wrapped around. Options move some pixels to a
    neighbouring cell, merge pairs of cells of the first side, and increase overlaps at random by up
    to a thousandth.
    """
    rng = np.random.default_rng(0)
    pixels = np.arange(6 * cells)

    def of_axes(axes: list[NDArray[Any]]) -> NDArray[Any]:
        x, y, z = axes
        return ((x[:, None, None] * cells + y[:, None]) * cells + z).ravel()

    a = of_axes([pixels // 6 // (2 if merged and k == 0 else 1) for k in range(3)])
    places = [(pixels + shift) // 6 for shift in shifts]
    b = of_axes([p % cells if wrap else np.minimum(p, cells - 1) for p in places])
    if moved > 0:
        at = rng.integers(0, b.size, int(moved * b.size))
        to = np.array(np.unravel_index(b[at], (cells,) * 3))
        to[rng.integers(0, 3, at.size), np.arange(at.size)] += rng.choice([-1, 1], at.size)
        b[at] = np.ravel_multi_index(np.clip(to, 0, cells - 1), (cells,) * 3)
    pairs, savings = np.unique(a * cells**3 + rng.permutation(cells**3)[b], return_counts=True)
    rows, columns = np.divmod(pairs, cells**3)
    if soft:
        savings = savings * (1 + 1e-3 * rng.random(savings.size))
    return rows, columns, savings, (int(rows.max()) + 1, cells**3)


def noisy_grid(cells: int, share: float) -> Table:
    """Cells shifted by half, with nearly equal overlaps."""
    rows, columns, savings, shape = shifted_grid(cells, 2, 1, wrap=True)
    noise = np.random.default_rng(0).uniform(-share, share, savings.size)
    return rows, columns, np.rint(1000 * savings * (1 + noise)).astype(np.int64), shape


def flow_total(
    rows: NDArray[Any], columns: NDArray[Any], savings: NDArray[Any], shape: tuple[int, int]
) -> tuple[float, int] | None:
    """Seconds and total of OR-tools; a row may stay unassigned."""
    try:
        from ortools.graph.python import min_cost_flow
    except ImportError:
        return None
    every_row, every_column = np.arange(shape[0]), np.arange(shape[1]) + shape[0]
    sink = sum(shape)
    start = time.perf_counter()
    flow = min_cost_flow.SimpleMinCostFlow()
    tails = np.concatenate([rows, every_row, every_column])
    heads = np.concatenate([columns + shape[0], np.full(sink, sink)])
    costs = np.concatenate([-savings, np.zeros(sink, np.int64)])
    flow.add_arcs_with_capacity_and_unit_cost(tails, heads, np.ones_like(tails), costs)
    flow.set_nodes_supplies(every_row, np.ones_like(every_row))
    flow.set_node_supply(sink, -shape[0])
    if flow.solve() != flow.OPTIMAL:
        raise SystemExit("OR-tools found no optimum")
    return time.perf_counter() - start, -int(flow.optimal_cost())


def random_tables() -> Iterator[Row]:
    """Compare both solvers of the module with SciPy's dense solver."""
    pairs = 0
    start = time.perf_counter()
    for seed in range(TABLES):
        table = random_table(seed)
        if table[0].size == 0:
            continue
        best = dense_total(*table)
        for choose in (largest_total, assignment._sparse):
            total = table[2][choose(*table)].sum()
            if abs(total - best) > (0 if table[2].dtype == np.int64 else 1e-12 * best):
                raise SystemExit(f"random table {seed}: the total is {total}, not {best}")
        pairs += table[0].size
    yield Row(f"{TABLES} random tables, all optimal", pairs, time.perf_counter() - start, "")


if __name__ == "__main__":
    main()
