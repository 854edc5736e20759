"""`python -m fuzz.torture`: check random comparisons with the reference implementation.

The reference implementations are tests/oracles.py and tests/boundaries_reference.py. The seed and
the number of a case determine two segmentations, a mask and options. The score of every case is
compared with that of the reference implementation, and one randomly chosen check of `CHECKS` is
run. The first three failing cases of each check are reduced and printed as Python code.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from fuzz import checks, metric_checks
from fuzz.checks import Check, score_of_the_groups
from fuzz.random_cases import Case, case_of

CHECKS = checks.CHECKS + metric_checks.CHECKS


def failure_of(case: Case, check: Check) -> str | None:
    """Return a description of the failure of a case, or None."""
    try:
        for actual, expected, tolerance in check(case):
            a, b = np.asarray(actual, float), np.asarray(expected, float)
            if a.shape != b.shape:
                return f"shape {a.shape}, expected {b.shape}"
            if not np.allclose(a, b, rtol=0, atol=tolerance, equal_nan=True):
                worst = np.abs(a - b).max()
                return f"found {a.tolist()}, expected {b.tolist()}, {worst:.2g} apart"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


# Reduction -------------------------------------------------------------------------------------


def shrunk(case: Case, check: Check) -> Case:
    """Reduce a case while the same check fails with a failure of the same kind."""
    kind = _kind(failure_of(case, check))
    while True:
        simpler = next((c for c in _simpler(case) if _kind(failure_of(c, check)) == kind), None)
        if simpler is None:
            return case
        case = simpler


def _kind(failure: str | None) -> str:
    """Return the first word of a failure, such as the name of an exception."""
    return failure.split()[0] if failure else ""


def _simpler(case: Case) -> Iterator[Case]:
    """Yield slightly simpler cases."""
    if case.mask is not None:
        yield replace(case, mask=None)
    for options in ({"merge": "none"}, {"workers": 1}, {"floor": 0.0}, {"similarity": "absolute"}):
        if any(getattr(case, name) != value for name, value in options.items()):
            yield replace(case, **options)  # type: ignore[arg-type]
    spatial = case.reference.ndim - (case.reference.dtype.kind == "f")
    for axis in range(spatial):
        size = case.reference.shape[axis - spatial]
        for start, stop in ((0, size // 2), (size // 2, size), (0, size - 1), (1, size)):
            if 0 < stop - start < size:
                part = (..., slice(start, stop), *[slice(None)] * (spatial - 1 - axis))
                mask = None if case.mask is None else case.mask[part]
                sides = (side[part] for side in case.sides)
                yield replace(case, **dict(zip(SIDES, sides, strict=True)), mask=mask)
    for name in SIDES:
        side = getattr(case, name)
        if side.dtype.kind == "f":
            if len(side) > 1:
                yield replace(case, **{name: np.concatenate([side[:1] + side[1:2], side[2:]])})
            rounded = np.round(side[1:].astype(float) * 4) / 4
            coarse = np.concatenate([1 - rounded.sum(axis=0, keepdims=True), rounded])
            if coarse.min() >= 0 and not np.array_equal(coarse, side):
                yield replace(case, **{name: coarse.astype(side.dtype)})
        else:
            values = np.unique(side)
            if values.tolist() != list(range(len(values))):
                yield replace(case, **{name: np.searchsorted(values, side)})
            if len(values) > 1:
                yield replace(case, **{name: np.where(side == values[-1], values[0], side)})


SIDES = ("reference", "prediction")


def main() -> None:
    """Run cases until the count or the time limit is reached."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.torture", description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, help="file for the counts so far")
    parsed = parser.parse_args()
    print(f"seed {parsed.seed}", flush=True)
    start = reported = time.monotonic()
    counts: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for number in range(parsed.first, parsed.first + parsed.cases):
        case = case_of(parsed.seed, number)
        chosen = CHECKS[int(np.random.default_rng([parsed.seed, number, 1]).integers(len(CHECKS)))]
        for check in {score_of_the_groups, chosen}:
            failure = failure_of(case, check)
            counts[check.__name__] += 1
            if failure is None:
                continue
            failed[check.__name__] += 1
            if failed[check.__name__] <= 3:
                small = shrunk(case, check)
                print(f"case {number}: {check.__name__}: {failure}")
                print(f"{small.shown()}\n{check.__name__}: {failure_of(small, check)}", flush=True)
        now = time.monotonic()
        last = number == parsed.first + parsed.cases - 1 or now - start > parsed.seconds
        if last or now - reported > 60:
            reported = now
            cases = number + 1 - parsed.first
            print(f"{cases} cases from {parsed.first}, {sum(counts.values())} checks, ", end="")
            print(
                f"{sum(failed.values())} failures {dict(failed)}, {now - start:.0f} s", flush=True
            )
            if parsed.log:
                when = datetime.now(UTC).isoformat(timespec="seconds")
                line = {"kind": "torture", "when": when, "seed": parsed.seed, "cases": cases}
                line |= {"checks": sum(counts.values()), "faults": sum(failed.values())}
                parsed.log.write_text(json.dumps(line) + "\n")
        if last:
            break
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
