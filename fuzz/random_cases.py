"""Random comparisons: two segmentations, a mask and options, determined by a seed and a number."""

import sys
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import boundaries_reference
import oracles

from probdice import Aitchison, Comparison, compare

__all__ = [
    "EXACT",
    "Case",
    "boundaries_reference",
    "case_of",
    "groups_of",
    "is_label_map",
    "oracles",
    "quietly",
    "rows_of",
]

EXACT = 5e-6  # tolerance of float32 sums over few pixels
MERGES = ("none", "prediction", "reference", "both")


@dataclass(frozen=True, eq=False)
class Case:
    """One comparison. Integer arrays are labels, and floating-point arrays are probabilities."""

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

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the image."""
        shape: tuple[int, ...] = self.reference.shape
        return shape if is_label_map(self.reference) else shape[1:]

    @cached_property
    def sides(self) -> tuple[Any, Any]:
        return self.reference, self.prediction

    @cached_property
    def result(self) -> Comparison:
        return quietly(*self.sides, **self.options, workers=self.workers)

    @cached_property
    def rows(self) -> tuple[Any, Any]:
        """Both sides as the oracle expects them: non-empty regions, and only pixels in the mask."""
        p, q = (rows_of(side, self.mask) for side in self.sides)
        return p[p.sum(1) > 0], q[q.sum(1) > 0]

    @cached_property
    def f(self) -> Any:
        return oracles.f_of(self.similarity, self.floor)

    @cached_property
    def table(self) -> Any:
        """The overlaps according to the oracle."""
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
        """Return the case as Python code."""
        aitchison = f"Aitchison({self.floor})" if self.similarity == "aitchison" else "Absolute()"
        return (
            f"reference = {_array(self.reference)}\nprediction = {_array(self.prediction)}\n"
            f"compare(reference, prediction, mask={_array(self.mask)}, similarity={aitchison}, "
            f"merge={self.merge!r}, workers={self.workers})"
        )


def case_of(seed: int, number: int) -> Case:
    """Return the case with this number."""
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
    if dtype == "f2":  # float16 represents these fractions exactly
        p = random.multinomial(512, p / p.sum(-1, keepdims=True)) / 512
    p = np.moveaxis(p, -1, 0).astype(dtype)
    return np.asfortranarray(p) if random.random() < 0.3 else np.ascontiguousarray(p)


def is_label_map(side: Any) -> bool:
    """Return whether an array has integer labels instead of probabilities."""
    return bool(side.dtype.kind in "iu")


def rows_of(side: Any, mask: Any) -> Any:
    """Return the probabilities in the mask, with one row per region and one column per pixel."""
    inside = slice(None) if mask is None else np.asarray(mask).reshape(-1)
    if is_label_map(side):
        return oracles.one_hot(side.reshape(-1)[inside])
    return side.reshape(len(side), -1).astype(np.float64)[:, inside]


def _array(array: Any) -> str:
    return "None" if array is None else f"np.array({array.tolist()}, {array.dtype.str!r})"


def quietly(*sides: Any, **options: Any) -> Comparison:
    """Compare without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compare(*sides, **options)


def groups_of(result: Comparison) -> list[tuple[list[int], list[int]]]:
    """Return the groups as indices of non-empty regions."""
    return [
        (
            sorted(result.reference_labels.index(label) for label in group.reference),
            sorted(result.prediction_labels.index(label) for label in group.prediction),
        )
        for group in result.groups
    ]
