"""The prediction in the words of the reference."""

from itertools import count
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    numbers, names = problem.regions["reference"].keys, problem.regions["reference"].names
    used = set(problem.tally.labels("reference").tolist())
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
    least, most = min(new.values()), max(new.values())
    dtype = np.result_type(
        np.min_scalar_type(least), np.min_scalar_type(most), *_integer(prediction.array.dtype)
    )
    flat = np.empty(prod(reader.shape), dtype)
    for slab in reader.slabs:
        part = reader.read(slab).sides[0]
        assert isinstance(part, Crisp)
        labels = np.array([new[int(label)] for label in part.labels], dtype)
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


def _integer(dtype: np.dtype[Any]) -> list[np.dtype[Any]]:
    """The type of a label map, where it is one of integers."""
    return [dtype] if dtype.kind in "iu" else []
