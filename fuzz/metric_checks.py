"""Checks of a random comparison: metrics, backgrounds, other grids, labels and the command line.

Boundaries are compared with tests/boundaries_reference.py, and all other numbers with
tests/oracles.py or with plain loops in this module.
"""

import json
import tempfile
from itertools import product
from typing import Any

import numpy as np
from typer.testing import CliRunner

from fuzz.checks import MEMORY, Check, Found
from fuzz.random_cases import (
    EXACT,
    Case,
    boundaries_reference,
    groups_of,
    is_label_map,
    oracles,
    quietly,
    rows_of,
)
from probdice import Comparison, Geometry, Segmentation, Similarity
from probdice.cli.app import app

__all__ = ["CHECKS"]

LEVELS = (0.3, 0.6)
TOLERANCE = 0.9
NUMBERS = ("hd", "hd95", "assd", "masd", f"nsd@{TOLERANCE}")
DTYPES = ("i1", "u1", ">i2", "u2", "i4", ">u4", "i8", "u8")


class Hellinger(Similarity):
    """A similarity without compiled kernels."""

    name = "hellinger of the fuzz tests"

    def __call__(self, p: Any, q: Any, *, axis: int = 0) -> Any:
        squares = (np.sqrt(p) - np.sqrt(q)) ** 2
        return 1 - np.sqrt(np.clip(squares.sum(axis=axis) / 2, 0, 1))


def boundaries(case: Case) -> Found:
    """Check the distances between the outlines of one group on a grid with a random affine."""
    if len(case.shape) < 2:
        return
    affine = _affine(case, np.random.default_rng(case.reference.size))
    placed = _placed(case.reference, affine), _placed(case.prediction, affine)
    result = quietly(*placed, **case.options)
    measured = result.boundaries(tolerances=[TOLERANCE], levels=LEVELS)
    k = case.reference.size % len(result.groups)
    group = groups_of(result)[k]
    p, q = oracles.grouped(*case.rows, [group])
    if any(np.abs(side - level).min() < 1e-5 for side in (p, q) for level in LEVELS):
        return
    inside = np.ones(case.shape, bool) if case.mask is None else case.mask
    levels = []
    for level in LEVELS:
        sets = np.zeros((2, *case.shape), bool)
        sets[0][inside], sets[1][inside] = p[0] > level, q[0] > level
        levels.append(boundaries_reference.numbers(*sets, affine, (95,), (TOLERANCE,), case.mask))
    for name in NUMBERS:
        values = [level[name] for level in levels if not np.isnan(level[name])]
        yield measured[name][k], np.mean(values) if values else np.nan, 1e-9


def derived_regions(case: Case) -> Found:
    """Check the union of every second group that has a reference region."""
    groups = [group for group in case.result.groups if group.reference][::2]
    labels = tuple(label for group in groups for label in group.reference)
    (region,) = case.result.derived({"union": labels})
    own = [
        ([case.result.reference_labels.index(label) for label in labels]),
        [case.result.prediction_labels.index(one) for group in groups for one in group.prediction],
    ]
    p, q = (side[0] for side in oracles.grouped(*case.rows, [own]))
    common = float(np.minimum(p, q).sum())
    tolerance = EXACT * p.size
    yield region.dice, 2 * common / (p.sum() + q.sum()), EXACT
    yield region.jaccard, common / np.maximum(p, q).sum(), EXACT
    yield [region.reference_volume, region.prediction_volume], [p.sum(), q.sum()], tolerance


def background(case: Case) -> Found:
    """Check the foreground numbers if the last region of both sides is the background."""
    sides = {
        side: getattr(case.result, f"{side}_labels")[-1] for side in ("reference", "prediction")
    }
    options = case.options | {"merge": "none", "similarity": "absolute"}
    result = quietly(*case.sides, **options, background=sides)
    p, q = case.rows
    pair = [len(p) - 1], [len(q) - 1]
    groups = groups_of(result)
    yield float(pair in groups), 1.0, 0
    groups.remove(pair)
    dice = oracles.dice_of_counted(p, q, groups)
    yield result.foreground_dice, np.mean(dice) if dice else np.nan, EXACT
    if not dice:  # no foreground region is counted
        return
    volume = sum(a[0].sum() + b[0].sum() for a, b in (oracles.grouped(p, q, [g]) for g in groups))
    common = sum(np.minimum(p[a], q[b]).sum() for a, b in groups if a and b)
    union = p.shape[1] - np.minimum(p[-1], q[-1]).sum()
    yield result.pooled_dice, 2 * common / volume, EXACT
    yield result.foreground_score, common / union, EXACT


def faint_regions(case: Case) -> Found:
    """Check that the mean and the lowest Dice exclude faint groups."""
    dice = oracles.dice_of_counted(*case.rows, groups_of(case.result))
    yield case.result.mean_dice, np.mean(dice) if dice else np.nan, EXACT
    yield case.result.lowest_dice, min(dice) if dice else np.nan, EXACT


def own_similarity(case: Case) -> Found:
    """Check the weights, the overlaps and the score of a similarity that is written in NumPy."""
    f = Hellinger()
    result = quietly(*case.sides, **case.options | {"similarity": f})
    p, q = case.rows
    yield result.weights, oracles.weights(p, q, f), EXACT
    yield result.score, oracles.score(*oracles.grouped(p, q, groups_of(result)), f), EXACT


def other_grid(case: Case) -> Found:
    """Check the linear interpolation of a prediction on another grid with plain loops."""
    random = np.random.default_rng(case.prediction.size)
    axes = len(case.shape)
    source = _affine(case, random)
    if case.workers == 2:  # the grids differ by whole pixels
        source = np.eye(axes + 1)
        source[:-1, -1] = random.integers(-1, 2, axes)
    values = case.prediction
    if is_label_map(values):
        values = (np.unique(values).reshape(-1, *[1] * axes) == values).astype(float)
    places = np.reshape([*np.indices(case.shape), np.ones(case.shape)], (axes + 1, -1))
    if np.abs(source @ places - places).max() < 0.2 and case.workers != 2:
        return  # the grids are equal within the tolerance
    resampled, view = _interpolated(values.astype(float), np.linalg.inv(source), case.shape)
    mask = view if case.mask is None else view & case.mask
    if not mask.any():
        return
    placed = _placed(case.reference, np.eye(axes + 1)), _placed(case.prediction, source)
    options = case.options | {"similarity": "absolute", "merge": "none"}
    result = quietly(*placed, **options, resample="linear")
    p, q = rows_of(case.reference, mask), rows_of(resampled, mask)
    p, q = p[p.sum(1) > 0], q[q.sum(1) > 1e-9]
    if len(q) == len(result.prediction_labels):
        expected = oracles.score(*oracles.grouped(p, q, groups_of(result)), oracles.absolute)
        yield result.score, expected, 3e-4  # positions are rounded by up to 1e-4 pixels
    yield result.pixels, mask.sum(), 0


def _interpolated(values: Any, inverse: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return the probabilities on the standard grid, and which of its pixels are in the image."""
    result, view = np.zeros((len(values), *shape)), np.zeros(shape, bool)
    for pixel in np.ndindex(shape):
        place = (inverse @ [*pixel, 1])[:-1]
        if np.any((place < -0.5) | (place > np.array(shape) - 0.5)):
            continue
        view[pixel] = True
        place = np.clip(place, 0, np.array(shape) - 1)
        first = np.minimum(np.floor(place).astype(int), np.maximum(np.array(shape) - 2, 0))
        for step in product((0, 1), repeat=len(shape)):
            weight = np.prod(np.where(step, place - first, 1 - (place - first)))
            if weight:
                result[(slice(None), *pixel)] += weight * values[(slice(None), *(first + step))]
    return result, view


def label_numbers(case: Case) -> Found:
    """Check that numbers, types, memory order and strides of labels do not change the result."""
    if not case.unique:
        return
    random = np.random.default_rng(case.reference.size)
    sides, back = [], []
    for side in case.sides:
        if not is_label_map(side):
            sides.append(side)
            back.append(None)
            continue
        dtype = np.dtype(str(random.choice(DTYPES)))
        values, places = np.unique(side, return_inverse=True)
        limits = np.iinfo(dtype)
        numbers = sorted({int(limits.min), int(limits.max), 0, 1, 7, 100})
        chosen = [numbers[k] for k in random.permutation(len(numbers))[: len(values)]]
        changed = np.array(chosen, dtype)[places.reshape(side.shape)]
        sides.append(changed[..., ::-1][..., ::-1] if case.workers == 2 else changed)
        back.append(dict(zip(chosen, values.tolist(), strict=True)))
    result = quietly(*sides, **case.options | {"merge": "none"})
    yield result.score, case.result.matched_score, EXACT

    def pairs(result: Comparison, *names: Any) -> list[list[int]]:
        return sorted(
            [names[0].get(a, a), names[1].get(b, b)]
            for group in result.groups
            for a in group.reference
            for b in group.prediction
        )

    expected = quietly(*case.sides, **case.options | {"merge": "none"})
    found = pairs(result, *(one or {} for one in back))
    yield float(found == pairs(expected, {}, {})), 1.0, 0


def command_line(case: Case) -> Found:
    """Check the score and the mean Dice that `probdice compare` prints for files."""
    if any(not is_label_map(side) and len(side) == 1 for side in case.sides):
        return  # a single map in a file is read as the probability of the foreground
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        names = [f"{folder}/{name}.npy" for name in ("reference", "prediction", "mask")]
        for name, array in zip(names, (*case.sides, case.mask), strict=True):
            if array is not None:
                np.save(name, array)
        command = ["compare", *names[:2], "--similarity", case.similarity, "--merge", case.merge]
        command += ["--floor", str(case.floor)] if case.similarity == "aitchison" else []
        command += ["--mask", names[2]] if case.mask is not None else []
        done = CliRunner().invoke(app, [*command, "--json", "-", "--quiet"])
        assert done.exit_code == 0, done.output
        result = Comparison.from_dict(json.loads(done.stdout))
    groups = groups_of(result)
    yield result.score, oracles.score(*oracles.grouped(*case.rows, groups), case.f), EXACT
    dice = oracles.dice_of_counted(*case.rows, groups)
    yield result.mean_dice, np.mean(dice) if dice else np.nan, EXACT


def _affine(case: Case, random: np.random.Generator) -> Any:
    """Return the affine of a rotated, scaled and sheared grid."""
    affine = np.eye(len(case.shape) + 1)
    affine[:-1] += random.uniform(-0.3, 0.3, affine[:-1].shape)
    return affine


def _placed(side: Any, affine: Any) -> Segmentation:
    if is_label_map(side):
        return Segmentation.from_labels(side, geometry=Geometry(side.shape, affine))
    return Segmentation.from_probabilities(side, geometry=Geometry(side.shape[1:], affine))


CHECKS: tuple[Check, ...] = (
    *(boundaries, derived_regions, background, faint_regions, own_similarity, other_grid),
    *(label_numbers, command_line),
)
