"""`python -m fuzz.torture`: check random comparisons with the reference implementation.

The reference implementation is tests/oracles.py. The seed and the number of a case determine two
segmentations, a mask and options. The score of every case is compared with that of the reference
implementation, and one more check of `CHECKS` is chosen at random. A failing case is reduced as
long as the same check fails, and printed as Python code.
"""

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import oracles

from probdice import Aitchison, Comparison, Overlap, Segmentation, compare, overlap, read, write
from probdice.engine import blocks

EXACT = 5e-6  # tolerance of float32 sums over few pixels
SUFFIXES = (".npy", ".npz", ".nii", ".nii.gz", ".mgz", ".tif", ".mha", ".nrrd", ".png")
MERGES = ("none", "prediction", "reference", "both")


@dataclass(frozen=True, eq=False)
class Case:
    """One comparison: integer arrays are labels, floating arrays are probabilities."""

    reference: Any
    prediction: Any
    mask: Any
    similarity: str
    floor: float
    merge: str
    workers: int

    @cached_property
    def options(self) -> dict[str, Any]:
        similarity = Aitchison(self.floor) if self.similarity == "aitchison" else "absolute"
        return {"similarity": similarity, "merge": self.merge, "mask": self.mask}

    @cached_property
    def sides(self) -> tuple[Any, Any]:
        return self.reference, self.prediction

    @cached_property
    def result(self) -> Comparison:
        return quietly(*self.sides, **self.options, workers=self.workers)

    @cached_property
    def rows(self) -> tuple[Any, Any]:
        """Both sides in the form of the oracle: non-empty regions, pixels in the mask."""
        p, q = (_rows(side, self.mask) for side in self.sides)
        return p[p.sum(1) > 0], q[q.sum(1) > 0]

    @cached_property
    def f(self) -> Any:
        return oracles.f_of(self.similarity, self.floor)

    @cached_property
    def table(self) -> Any:
        """The overlaps by the oracle."""
        return oracles.overlaps(*self.rows, self.f)

    @cached_property
    def unique(self) -> bool:
        """Whether no other matching has nearly the same total."""
        totals = sorted(
            sum(self.table[pair] for pair in pairs)
            for pairs in oracles.all_pairings(*self.table.shape)
            if all(self.table[pair] for pair in pairs)
        )
        return len(totals) < 2 or totals[-1] - totals[-2] > 1e-5

    def shown(self) -> str:
        """The case as Python code."""
        aitchison = f"Aitchison({self.floor})" if self.similarity == "aitchison" else "Absolute()"
        return (
            f"reference = {_array(self.reference)}\nprediction = {_array(self.prediction)}\n"
            f"compare(reference, prediction, mask={_array(self.mask)}, similarity={aitchison}, "
            f"merge={self.merge!r}, workers={self.workers})"
        )


def case_of(seed: int, number: int) -> Case:
    """The case of a number."""
    random = np.random.default_rng([seed, number])
    shape = tuple(random.integers(1, 5, random.integers(1, 4)).tolist())
    while int(np.prod(shape)) > 18:
        shape = shape[1:]
    mask = random.random(shape) < 0.7
    mask.reshape(-1)[0] = True
    return Case(
        _segmentation(random, shape),
        _segmentation(random, shape),
        mask if random.random() < 0.3 else None,
        str(random.choice(["absolute", "aitchison"])),
        float(random.choice([0.0, 0.0, 1e-3, 0.05])),
        str(random.choice(MERGES)),
        int(random.choice([1, 2, 4])),
    )


def _segmentation(random: np.random.Generator, shape: tuple[int, ...]) -> Any:
    regions = int(random.integers(1, 5))
    if random.random() < 0.4:
        labels = random.integers(0, regions, shape) * int(random.choice([1, 3, 100]))
        return labels.astype(random.choice(["u1", "i2", ">i4", "i8"])) + 0
    p = random.dirichlet(np.full(regions, random.choice([0.2, 0.7, 3.0])), shape)
    if random.random() < 0.4:
        p = np.where(random.random(p.shape) < 0.3, 0, p)
        p[..., 0] += p.sum(-1) == 0
        p /= p.sum(-1, keepdims=True)
    dtype = random.choice(["f2", "f4", ">f4", "f8"])
    if dtype == "f2":  # fractions that the type represents exactly
        p = random.multinomial(512, p / p.sum(-1, keepdims=True)) / 512
    p = np.moveaxis(p, -1, 0).astype(dtype)
    return np.asfortranarray(p) if random.random() < 0.3 else np.ascontiguousarray(p)


def _rows(side: Any, mask: Any) -> Any:
    inside = slice(None) if mask is None else np.asarray(mask).reshape(-1)
    if side.dtype.kind in "iu":
        return oracles.one_hot(side.reshape(-1)[inside])
    return side.reshape(len(side), -1).astype(np.float64)[:, inside]


def _array(array: Any) -> str:
    return "None" if array is None else f"np.array({array.tolist()}, {array.dtype.str!r})"


def quietly(*sides: Any, **options: Any) -> Comparison:
    """Compare without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compare(*sides, **options)


# Checks: each yields actual and expected values ---------------------------------------------------

Found = Iterator[tuple[Any, Any, float]]  # two arrays or numbers, and the tolerance


def weights(case: Case) -> Found:
    yield case.result.weights, oracles.weights(*case.rows, case.f), EXACT


def overlaps(case: Case) -> Found:
    meeting = case.result.overlap
    table = np.zeros((len(meeting.reference.occupied), len(meeting.prediction.occupied)))
    for i, j, value in zip(
        np.searchsorted(meeting.reference.occupied, meeting.meeting.rows),
        np.searchsorted(meeting.prediction.occupied, meeting.meeting.columns),
        meeting.overlaps,
        strict=True,
    ):
        table[i, j] = value
    yield table, case.table, EXACT


def score_of_the_groups(case: Case) -> Found:
    expected = oracles.score(*oracles.grouped(*case.rows, _groups(case.result)), case.f)
    yield case.result.score, expected, EXACT
    yield float(0 <= case.result.score <= 1), 1.0, 0


def matching(case: Case) -> Found:
    """The pairs have the largest total overlap."""
    result = quietly(*case.sides, **case.options | {"merge": "none"})
    pairs = [(a[0], b[0]) for a, b in _groups(result) if a and b]
    best = oracles.match(*case.rows, case.f)
    total = sum(case.table[pair] for pair in pairs)
    yield total, sum(case.table[pair] for pair in best), EXACT


def merging(case: Case) -> Found:
    if not case.unique or case.merge == "none":
        return
    p, q = case.rows
    meeting = (p > 0).astype(int) @ (q > 0).T.astype(int) > 0
    if np.any(meeting & (oracles.overlaps(p, q, case.f) < EXACT)):
        return  # regions that overlap only below the floor do so only for the oracle
    sides = {"both": ("prediction", "reference")}.get(case.merge, (case.merge,))
    pairs = oracles.match(*case.rows, case.f)
    matched, alone, joins = oracles.merge(*case.rows, case.f, pairs, sides)
    gains = sorted(join[-1] for join in joins)
    if any(b - a < 1e-4 for a, b in pairwise(gains)):
        return
    yield [join.gain for join in case.result.merges], [join[-1] for join in joins], EXACT
    expected = sorted((sorted(a), sorted(b)) for a, b in [*matched, *alone])
    yield float(sorted(_groups(case.result)) == expected), 1.0, 0


def chance(case: Case) -> Found:
    if case.similarity == "absolute" and case.merge == "none" and case.rows[0].shape[1] <= 8:
        yield case.result.chance, oracles.chance(*case.rows), EXACT


def explained(case: Case) -> Found:
    p, q = case.rows
    if not all(side.var(axis=1).sum() > 1e-2 and _conditioned(side) for side in (p, q)):
        return
    yield case.result.explained["reference"], oracles.explained(p, q), 1e-5
    yield case.result.explained["prediction"], oracles.explained(q, p), 1e-5


def _conditioned(p: Any) -> bool:
    values = np.linalg.svd(p - p.mean(axis=1, keepdims=True), compute_uv=False)
    return not np.any((values < 2e-2 * values.max()) & (values > 1e-12 * values.max()))


def map_of_similarity(case: Case) -> Found:
    groups = _groups(case.result)
    p, q = oracles.grouped(*case.rows, groups)
    inside = slice(None) if case.mask is None else case.mask.reshape(-1)
    expected = [case.f(a, b) for a, b in zip(p.T, q.T, strict=True)]
    yield case.result.map().reshape(-1)[inside], expected, 1e-4 if case.floor == 0 else 1e-5


def cuts_and_threads(case: Case) -> Found:
    before = blocks.FEWEST_PIXELS, blocks.BLOCK_BYTES
    blocks.FEWEST_PIXELS, blocks.BLOCK_BYTES = 1, 32
    try:
        one, four = (quietly(*case.sides, **case.options, workers=n) for n in (1, 4))
    finally:
        blocks.FEWEST_PIXELS, blocks.BLOCK_BYTES = before
    yield float(one.to_dict() == four.to_dict()), 1.0, 0
    yield one.weights, case.result.weights, EXACT


def overlaps_add_up(case: Case) -> Found:
    if case.mask is not None:
        return
    flat = [s.reshape(-1) if s.dtype.kind in "iu" else s.reshape(len(s), -1) for s in case.sides]
    half = flat[0].shape[-1] // 2
    if not half:
        return
    similarity = case.options["similarity"]
    whole = overlap(*flat, similarity=similarity)
    first, second = (
        overlap(*(side[..., part] for side in flat), similarity=similarity)
        for part in (slice(half), slice(half, None))
    )
    yield (first + second).overlaps, whole.overlaps, 0 if whole.crisp else 1e-6


def order_of_pixels(case: Case) -> Found:
    if not case.unique:
        return
    spatial = case.reference.ndim - (case.reference.dtype.kind == "f")

    def turned(array: Any) -> Any:
        first = array.ndim - spatial
        axes = (*range(first), *reversed(range(first, array.ndim)))
        return np.flip(array.transpose(axes), -1).astype(array.dtype.newbyteorder())

    mask = None if case.mask is None else turned(case.mask)
    moved = quietly(*map(turned, case.sides), **case.options | {"mask": mask, "merge": "none"})
    yield moved.score, case.result.matched_score, EXACT


def exchanged(case: Case) -> Found:
    other = quietly(*case.sides[::-1], **case.options)
    yield other.weights.T, case.result.weights, EXACT
    if case.unique:
        yield other.matched_score, case.result.matched_score, EXACT


def renamed(case: Case) -> Found:
    if not case.unique:
        return
    p, q = case.sides
    q = q[::-1] if q.dtype.kind == "f" else 70 - q.astype(np.int64)
    yield quietly(p, q, **case.options).matched_score, case.result.matched_score, EXACT


def itself(case: Case) -> Found:
    for side in case.sides:
        same = quietly(side, side, **case.options | {"merge": "none"}, match="labels")
        yield same.score, 1.0, 0


def stored(case: Case) -> Found:
    text = case.result.to_json()
    yield float(Comparison.from_json(text).to_json() == text), 1.0, 0


def in_a_file(case: Case) -> Found:
    """Labels, probabilities and the overlap are unchanged after writing and reading."""
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        file = f"{folder}/a.npz"
        case.result.overlap.save(file)
        loaded, kept = Overlap.load(file).to_dict(), case.result.overlap.to_dict()
        yield float(loaded == kept), 1.0, 0
        for number, side in enumerate(case.sides):
            if side.ndim - (side.dtype.kind == "f") > 3:
                continue
            suffix = SUFFIXES[(side.size + number) % len(SUFFIXES)]
            if suffix == ".png" and (side.dtype.kind == "f" or side.ndim != 2):
                suffix = ".npz"
            if suffix in (".mha", ".nrrd", ".tif") and side.ndim - (side.dtype.kind == "f") < 2:
                suffix = ".npy"
            segmentation = _made(side)
            write(f"{folder}/b{suffix}", segmentation)
            again = read(f"{folder}/b{suffix}")
            if again.crisp != segmentation.crisp or len(again.regions) != len(segmentation.regions):
                continue  # whole floating numbers in a file are read as labels
            expected = segmentation.array if segmentation.crisp else segmentation.probabilities()
            values = again.array if again.crisp else again.probabilities()
            yield np.asarray(values).reshape(-1), np.asarray(expected).reshape(-1), 1e-7


def _made(side: Any) -> Segmentation:
    if side.dtype.kind in "iu":
        return Segmentation.from_labels(side)
    return Segmentation.from_probabilities(side)


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _groups(result: Comparison) -> list[tuple[list[int], list[int]]]:
    """The groups as indices of non-empty regions."""
    return [
        (
            sorted(result.reference_labels.index(label) for label in group.reference),
            sorted(result.prediction_labels.index(label) for label in group.prediction),
        )
        for group in result.groups
    ]


CHECKS: tuple[Callable[[Case], Found], ...] = (
    *(weights, overlaps, score_of_the_groups, matching, merging, chance, explained),
    *(map_of_similarity, cuts_and_threads, overlaps_add_up, order_of_pixels, exchanged),
    *(renamed, itself, stored, in_a_file),
)


def failure_of(case: Case, check: Callable[[Case], Found]) -> str | None:
    """The failure, or None."""
    try:
        for actual, expected, tolerance in check(case):
            a, b = np.asarray(actual, float), np.asarray(expected, float)
            if a.shape != b.shape:
                return f"shape {a.shape}, expected {b.shape}"
            equal = (np.abs(a - b) <= tolerance) | (np.isnan(a) & np.isnan(b))
            if not np.all(equal):
                worst = np.abs(a - b).max()
                return f"found {a.tolist()}, expected {b.tolist()}, {worst:.2g} apart"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


# Reduction -------------------------------------------------------------------------------------


def shrunk(case: Case, check: Callable[[Case], Found]) -> Case:
    """Reduce a case while the same check fails."""
    kind = _kind(failure_of(case, check))
    while True:
        simpler = next((c for c in _simpler(case) if _kind(failure_of(c, check)) == kind), None)
        if simpler is None:
            return case
        case = simpler


def _kind(failure: str | None) -> str:
    """The first word of a failure, such as the name of an exception."""
    return failure.split()[0] if failure else ""


def _simpler(case: Case) -> Iterator[Case]:
    """Slightly simpler cases."""
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
