"""The prediction in the words of the reference."""

from itertools import count
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.segmentation import Label, Segmentation
from probdice.slabs import Crisp, Reader, Soft
from probdice.solution import Problem, Solution

__all__ = ["relabelled"]


def relabelled(problem: Problem, solution: Solution) -> Segmentation:
    """The prediction with the reference's label for every group, over the whole image."""
    merged = {join.region for join in solution.joins if join.side == "reference"}
    groups: list[tuple[int | None, list[int]]] = []  # index in the reference, keys of regions
    for group, keys in zip(
        solution.groups, problem.keys("prediction", solution.groups), strict=True
    ):
        partner = next((k for k in group.reference if k not in merged), None)
        if keys:
            groups.append((partner, keys))
    grouped = {key for _, keys in groups for key in keys}
    every = problem.tally.labels("prediction").tolist()
    groups += [(None, [int(key)]) for key in every if int(key) not in grouped]
    if problem.pair.prediction.crisp:
        return _relabelled_map(problem, groups)
    return _regrouped(problem, groups)


def _relabelled_map(problem: Problem, groups: list[tuple[int | None, list[int]]]) -> Segmentation:
    """A label map with other labels."""
    reference, prediction = problem.pair.reference, problem.pair.prediction
    numbers, names = _numbers(problem), problem.regions["reference"].names
    used = {*problem.tally.labels("reference").tolist(), *numbers}
    wanted = used | {key for _, keys in groups for key in keys}
    free = (number for number in count(max(wanted) + 1))
    new: dict[int, int] = {}
    told: dict[int, str] = {}
    for partner, keys in groups:
        if partner is not None:
            number, name = numbers[partner], names[partner]
        else:
            number = next(free) if keys[0] in used else keys[0]
            name = f"{prediction.label(keys[0])} (unmatched)"
        new |= dict.fromkeys(keys, number)
        if isinstance(name, str):
            told[number] = name
    reader = Reader(prediction)
    dtype = _holding(prediction.array.dtype, min(new.values()), max(new.values()))
    flat = np.empty(prod(reader.shape), dtype)
    for slab in reader.slabs:
        part = reader.read(slab).sides[0]
        assert isinstance(part, Crisp)
        # What is no label, outside a mask, reads as one that need not occur elsewhere.
        labels = np.array([new.get(int(label), 0) for label in part.labels], dtype)
        flat[slab.start : slab.stop] = labels[part.codes]
    return Segmentation.from_labels(
        reader.image(flat), names=told, geometry=reference.geometry or prediction.geometry
    )


def _regrouped(problem: Problem, groups: list[tuple[int | None, list[int]]]) -> Segmentation:
    """Probabilities with the regions of each group added up."""
    reference, prediction = problem.pair.reference, problem.pair.prediction
    names = problem.regions["reference"].names
    told: list[Label] = [
        names[partner] if partner is not None else f"{prediction.regions[keys[0]]} (unmatched)"
        for partner, keys in groups
    ]
    reader = Reader(prediction)
    rows: NDArray[Any] = np.empty((len(groups), prod(reader.shape)), reader.dtype)
    for slab in reader.slabs:
        part = reader.read(slab).sides[0]
        assert isinstance(part, Soft)
        for row, (_, keys) in zip(rows[:, slab.start : slab.stop], groups, strict=True):
            row[:] = part.rows[keys, part.start : part.start + part.size].sum(axis=0)
    return Segmentation.from_probabilities(
        reader.image(rows), names=told, geometry=reference.geometry or prediction.geometry
    )


def _numbers(problem: Problem) -> list[int]:
    """A number for every region of the reference: its label, or what stands for its name."""
    regions = problem.regions["reference"]
    if problem.pair.reference.crisp:
        return list(regions.keys)
    given = {name for name in regions.names if isinstance(name, int)}
    free = (number for number in count() if number not in given)
    return [name if isinstance(name, int) else next(free) for name in regions.names]


def _holding(dtype: np.dtype[Any], least: int, most: int) -> np.dtype[Any]:
    """The type of a label map if it holds these labels, and else a larger one."""
    for larger in (dtype, np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint64)):
        if larger.kind in "iu" and np.iinfo(larger).min <= least and most <= np.iinfo(larger).max:
            return larger
    raise InputError(f"no integer type holds labels from {least} to {most}")
