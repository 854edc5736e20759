"""Checks of a random comparison: scores, matching, merging, chance, the map and files.

Each check yields actual and expected values with their tolerance. Most expected values come from
the reference implementation, tests/oracles.py.
"""

import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.random_cases import EXACT, Case, groups_of, oracles, quietly
from probdice import Comparison, Overlap, Segmentation, overlap, read, write
from probdice.engine import blocks

__all__ = ["CHECKS", "MEMORY", "Check", "Found", "score_of_the_groups"]

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a folder in memory
SUFFIXES = (".npy", ".npz", ".nii", ".nii.gz", ".mgz", ".tif", ".mha", ".nrrd", ".png")

Found = Iterator[tuple[Any, Any, float]]  # two arrays or numbers, and the tolerance
Check = Callable[[Case], Found]


def weights(case: Case) -> Found:
    yield case.result.weights, oracles.weights(*case.rows, case.f), EXACT


def overlaps(case: Case) -> Found:
    overlapping = case.result.overlap
    table = np.zeros((len(overlapping.reference.occupied), len(overlapping.prediction.occupied)))
    for i, j, value in zip(
        np.searchsorted(overlapping.reference.occupied, overlapping.pairs.rows),
        np.searchsorted(overlapping.prediction.occupied, overlapping.pairs.columns),
        overlapping.overlaps,
        strict=True,
    ):
        table[i, j] = value
    yield table, case.table, EXACT


def score_of_the_groups(case: Case) -> Found:
    expected = oracles.score(*oracles.grouped(*case.rows, groups_of(case.result)), case.f)
    yield case.result.score, expected, EXACT
    yield float(0 <= case.result.score <= 1), 1.0, 0


def matching(case: Case) -> Found:
    """Check that the pairs have the largest total overlap."""
    result = quietly(*case.sides, **case.options | {"merge": "none"})
    pairs = [(a[0], b[0]) for a, b in groups_of(result) if a and b]
    best = oracles.match(*case.rows, case.f)
    total = sum(case.table[pair] for pair in pairs)
    yield total, sum(case.table[pair] for pair in best), EXACT


def merging(case: Case) -> Found:
    if not case.unique or case.merge == "none":
        return
    p, q = case.rows
    overlapping = (p > 0).astype(int) @ (q > 0).T.astype(int) > 0
    if np.any(overlapping & (oracles.overlaps(p, q, case.f) < EXACT)):
        return  # only the oracle counts overlaps of probabilities below the floor
    sides = {"both": ("prediction", "reference")}.get(case.merge, (case.merge,))
    pairs = oracles.match(*case.rows, case.f)
    matched, alone, joins = oracles.merge(*case.rows, case.f, pairs, sides)
    gains = sorted(join[-1] for join in joins)
    if any(b - a < 1e-4 for a, b in pairwise(gains)) or any(abs(gain) < 1e-4 for gain in gains):
        return  # rounding decides which merge comes first
    yield [join.gain for join in case.result.merges], [join[-1] for join in joins], EXACT
    # If gains tie, the groups may differ, but their scores are equal.
    merged = [oracles.grouped(p, q, groups) for groups in (groups_of(case.result), matched + alone)]
    yield oracles.score(*merged[0], case.f), oracles.score(*merged[1], case.f), EXACT


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
    groups = groups_of(case.result)
    p, q = oracles.grouped(*case.rows, groups)
    inside = slice(None) if case.mask is None else case.mask.reshape(-1)
    expected = [case.f(a, b) for a, b in zip(p.T, q.T, strict=True)]
    yield case.result.map().reshape(-1)[inside], expected, 1e-4 if case.floor == 0 else 1e-5


def cuts_and_threads(case: Case) -> Found:
    before = blocks.MIN_BLOCK_PIXELS, blocks.BLOCK_BYTES
    blocks.MIN_BLOCK_PIXELS, blocks.BLOCK_BYTES = 1, 32
    try:
        one, four = (quietly(*case.sides, **case.options, workers=n) for n in (1, 4))
    finally:
        blocks.MIN_BLOCK_PIXELS, blocks.BLOCK_BYTES = before
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
    """Check that writing and reading change neither values nor the overlap."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
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
            if suffix == ".npy" and side.dtype.kind == "f" and len(side) == 1:
                suffix = ".npz"
            segmentation = _made(side)
            write(f"{folder}/b{suffix}", segmentation)
            again = read(f"{folder}/b{suffix}")
            if again.crisp != segmentation.crisp or len(again.regions) != len(segmentation.regions):
                continue  # floating-point files with whole numbers are read as labels
            expected = segmentation.array if segmentation.crisp else segmentation.probabilities()
            values = again.array if again.crisp else again.probabilities()
            yield np.asarray(values).reshape(-1), np.asarray(expected).reshape(-1), 1e-7


def _made(side: Any) -> Segmentation:
    if side.dtype.kind in "iu":
        return Segmentation.from_labels(side)
    return Segmentation.from_probabilities(side)


CHECKS: tuple[Check, ...] = (
    *(weights, overlaps, score_of_the_groups, matching, merging, chance, explained),
    *(map_of_similarity, cuts_and_threads, overlaps_add_up, order_of_pixels, exchanged),
    *(renamed, itself, stored, in_a_file),
)
