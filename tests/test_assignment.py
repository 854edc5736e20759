"""Linear assignment: exact totals, certified by dual variables."""

import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from probdice.method import assignment, assignment_kernels
from probdice.method.assignment import largest_total, least_total

KINDS = ("square", "wide", "tall", "tied", "dominant")


def random_table(seed):
    """Rows, columns, savings and shape of a table. The seed selects its kind and its data type."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    shape = tuple(int(n) for n in rng.integers(1, 40, 2))
    if kind == "square":
        shape = shape[0], shape[0]
    elif kind == "wide":
        shape = min(shape), max(shape) + 20
    elif kind == "tall":
        shape = max(shape) + 20, min(shape)
    table = rng.integers(1, 4 if kind == "tied" else 1000, shape)
    if kind == "dominant":  # a background that overlaps many regions and is larger than them
        table[rng.integers(shape[0])] += 1000
        table[:, rng.integers(shape[1])] += 1000
    table[rng.random(shape) > rng.uniform(0.05, 1)] = 0
    rows, columns = table.nonzero()
    savings = table[rows, columns]
    if seed // len(KINDS) % 2:
        savings = savings * (rng.random(savings.size) + 1e-3)
    order = rng.permutation(rows.size)
    return rows[order], columns[order], savings[order], shape


def dense_total(rows, columns, savings, shape):
    """The largest total, computed by SciPy from the dense table."""
    table = np.zeros(shape)
    table[rows, columns] = savings
    return table[linear_sum_assignment(table, maximize=True)].sum()


def shifted_grid(cells, width, shift, wrap=False, clip=False):
    """Overlaps of a grid of cells³ cubes with edges of `width` pixels and its shifted copy.

    With `clip`, both grids have the same number of cells. At the border, the cells of one side are
    larger, and those of the other side are smaller.
    """
    pixels = np.arange(cells * width)
    a, b = pixels // width, (pixels + shift) // width
    b = b % cells if wrap else np.minimum(b, cells - 1) if clip else b
    shape = cells, int(b.max()) + 1
    table = np.zeros(shape, np.int64)
    np.add.at(table, (a, b), 1)
    i, j = table.nonzero()
    s = table[i, j]

    def of_three(x, n):
        return ((x[:, None, None] * n + x[:, None]) * n + x).ravel()

    savings = (s[:, None, None] * s[:, None] * s).ravel()
    return of_three(i, shape[0]), of_three(j, shape[1]), savings, (shape[0] ** 3, shape[1] ** 3)


def shuffled(rows, columns, savings, shape, seed=0):
    """The same table with regions renumbered and pairs in another order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(rows.size)
    rows, columns = rng.permutation(shape[0])[rows], rng.permutation(shape[1])[columns]
    return rows[order], columns[order], savings[order], shape


def certify(rows, columns, savings, shape, chosen):
    """Prove with dual variables that `chosen` has the largest total.

    For every pair, u_i + v_j ≥ saving; for chosen pairs, the two are equal. All u and v are at
    least 0, and they are 0 for unmatched rows and columns. The savings are integers, and the
    largest such v is found by iteration.
    """
    assert (np.diff(chosen) > 0).all()
    i, j, s = rows[chosen], columns[chosen], savings[chosen]
    assert np.unique(i).size == np.unique(j).size == chosen.size
    v = np.zeros(shape[1], np.int64)
    v[j] = s
    order = np.argsort(rows, kind="stable")
    present, starts = np.unique(rows[order], return_index=True)
    for _ in range(shape[0] + 2):
        u = np.zeros(shape[0], np.int64)
        gains = savings[order] - v[columns[order]]
        u[present] = np.maximum(np.maximum.reduceat(gains, starts), 0)
        if (v[j] == s - u[i]).all():
            break
        v[j] = s - u[i]
    assert (v >= 0).all() and (u >= 0).all()
    assert (u[rows] + v[columns] >= savings).all()
    assert (u[i] + v[j] == s).all()
    assert u.sum() + v.sum() == s.sum()


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_random_tables_reach_the_dense_total(kind):
    for seed in range(kind, 1500, len(KINDS)):
        table = random_table(seed)
        best = dense_total(*table)
        for choose in (largest_total, assignment._sparse):
            if table[0].size == 0:
                continue
            chosen = choose(*table)
            total = table[2][chosen].sum()
            if table[2].dtype == np.int64:
                assert total == best, seed
                certify(*table, chosen)
            else:
                assert total == pytest.approx(best, rel=1e-12), seed
                assert np.unique(table[0][chosen]).size == chosen.size
                assert np.unique(table[1][chosen]).size == chosen.size


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_random_tables_by_steps_reach_the_dense_total(kind, monkeypatch):
    monkeypatch.setattr(assignment, "MAX_BIDS_PER_ROW", 0)
    monkeypatch.setattr(assignment, "PATIENCE", 0)
    for seed in range(kind, 1500, len(KINDS)):
        # If steps are too coarse or bids end early, only the following searches become slower.
        monkeypatch.setattr(assignment, "STEPS", ((seed % 13, seed % 9),))
        rows, columns, savings, _ = table = random_table(seed)
        if rows.size == 0:
            continue
        chosen = assignment._sparse(*table)
        assert np.unique(rows[chosen]).size == np.unique(columns[chosen]).size == chosen.size
        assert savings[chosen].sum() == pytest.approx(dense_total(*table), rel=1e-12), seed
        if savings.dtype == np.int64:
            certify(*table, chosen)


@pytest.mark.parametrize("noise", [0, 0.001, 0.05])
def test_long_searches_give_way_to_steps(noise, monkeypatch):
    rows, columns, savings, shape = shuffled(*shifted_grid(16, 6, 3, clip=True))
    rng = np.random.default_rng(0)
    savings = np.rint(10_000 * savings * (1 + noise * rng.uniform(-1, 1, savings.size)))
    table = rows, columns, savings.astype(np.int64), shape
    used = []
    monkeypatch.setattr(assignment, "PATIENCE", 1)
    refine = assignment_kernels.refine
    monkeypatch.setattr(assignment_kernels, "refine", lambda *a: used.append(a) or refine(*a))
    certify(*table, largest_total(*table))
    assert len(used) == 1


def test_a_clipped_grid_takes_seconds():
    # All cells are matched only if all lines of cells move at once. With one search per unmatched
    # row, this took a minute.
    table = shuffled(*shifted_grid(46, 6, 3, clip=True))
    largest_total(*shifted_grid(9, 6, 3, clip=True))
    start = time.process_time()
    chosen = largest_total(*table)
    assert time.process_time() - start < 60
    assert table[2][chosen].sum() == 141**3


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize(("width", "shift"), [(2, 1), (6, 1), (9, 4)])
def test_every_cell_of_a_shifted_grid_is_matched(width, shift, wrap):
    table = shuffled(*shifted_grid(9, width, shift, wrap))
    chosen = largest_total(*table)
    assert chosen.size == 729
    certify(*table, chosen)
    rows, columns, savings, shape = table
    swapped = columns, rows, savings, shape[::-1]
    certify(*swapped, largest_total(*swapped))


@pytest.mark.parametrize("noise", [1, 10, 300])
def test_nearly_equal_overlaps_are_certified(noise):
    rows, columns, savings, shape = shifted_grid(9, 2, 1)
    savings = 1000 * savings + np.random.default_rng(noise).integers(-noise, noise, savings.size)
    for table in ((rows, columns, savings, shape), (columns, rows, savings, shape[::-1])):
        certify(*table, assignment._sparse(*table))


@pytest.mark.parametrize("side", [0, 1])
def test_a_region_that_meets_all_others(side):
    rows, columns, savings, _ = shuffled(*shifted_grid(7, 2, 1, wrap=True))
    rows, columns = np.append(rows, np.full(343, 343)), np.append(columns, np.arange(343))
    savings = np.append(3 * savings, np.random.default_rng(0).integers(1, 6, 343))
    table = (rows, columns, savings, (344, 343))
    if side:
        table = columns, rows, savings, (343, 344)
    certify(*table, assignment._sparse(*table))


def test_long_auctions_terminate():
    rows, columns = np.divmod(np.arange(300 * 300), 300)
    savings = (rows + 1) * (columns + 1)
    chosen = largest_total(rows, columns, savings, (300, 300))
    assert np.array_equal(rows[chosen], columns[chosen])
    assert savings[chosen].sum() == 300 * 301 * 601 // 6


@pytest.mark.parametrize("choose", [largest_total, assignment._sparse])
def test_worked_by_hand(choose):
    rows, columns = np.array([0, 0, 1, 2]), np.array([0, 1, 0, 1])
    # Row 2 is unmatched: rows 0 and 1 save 4 + 3, rows 0 and 2 save 5 + 1, rows 1 and 2 save 3 + 1.
    assert choose(rows, columns, np.array([5, 4, 3, 1]), (3, 2)).tolist() == [1, 2]
    assert choose(rows, columns, np.array([5.0, 4.0, 0.5, 1.0]), (3, 2)).tolist() == [0, 3]


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 2), (1000, 1000)])
def test_no_region_meets_another(shape):
    none = np.empty(0, np.int64)
    for savings in (none, np.empty(0)):
        chosen = largest_total(none, none, savings, shape)
        assert chosen.dtype == np.int64 and chosen.size == 0


@pytest.mark.parametrize("shape", [(3, 2), (1000, 2000)])
def test_savings_of_very_different_size(shape):
    # The other tiny pair, (1, 1), saves half as much. The total would be smaller by only 1e-12.
    rows, columns = np.array([0, 1, 1, 2, 2]), np.array([0, 0, 1, 0, 1])
    savings = np.array([1.0, 2e-12, 1e-12, 2e-12, 2e-12])
    assert largest_total(rows, columns, savings, shape).tolist() == [0, 4]


def test_the_largest_counts_do_not_overflow():
    rows, columns = np.divmod(np.arange(4), 2)
    savings = np.full(4, 2**60)
    assert savings[assignment._sparse(rows, columns, savings, (2, 2))].sum() == 2**61


@pytest.mark.parametrize("choose", [largest_total, assignment._sparse])
def test_the_pairs_are_always_the_same_and_arguments_are_unchanged(choose):
    table = shuffled(*shifted_grid(6, 2, 1))
    copies = [array.copy() for array in table[:3]]
    first = choose(*table)
    assert np.array_equal(first, choose(*table))
    for array, copy in zip(table, copies, strict=False):
        assert np.array_equal(array, copy)


def test_solvers_are_loaded_only_when_needed():
    code = """
import sys
import numpy as np
from probdice.method.assignment import largest_total
pairs = np.arange(5)
assert largest_total(pairs, pairs, pairs + 1, (5, 5)).tolist() == [0, 1, 2, 3, 4]
assert "numba" not in sys.modules and "scipy.optimize" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_dense_tables_have_the_same_pairs_as_scipy():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        rows = rng.integers(1, 12)
        shape = rows, rows + rng.integers(0, 5)
        table = rng.integers(0, 6, shape) if rng.random() < 0.5 else rng.normal(size=shape)
        assert least_total(table).tolist() == linear_sum_assignment(table)[1].tolist()
