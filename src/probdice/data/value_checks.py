"""What the numbers of an image mean: labels, or probabilities as they are compared.

Values are checked in the pass that reads them; what cannot be is reported with its pixel and a
remedy. This is the one place where values as they came become probabilities.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from probdice.errors import Option

__all__ = [
    "BACKGROUND",
    "FORGIVEN",
    "MASK",
    "NORMALISE",
    "Fault",
    "Reading",
    "Sums",
    "as_probabilities",
    "examine_labels",
    "examine_values",
    "scale_of_labels",
    "whole_numbers",
]

Sums = Literal["error", "normalise", "background"]
Reading = Literal["error", "normalise", "background", "foreground", "softmax"]

TOLERANCE = 1e-3  # how far the probabilities of a pixel may be from summing to 1
LARGEST = 2.0**63  # labels are integers of 64 bits
FORGIVEN = 0.5  # how far above 1 a value may be where it is then divided by the sum
MANY = 100  # labels up to which a map of them is no map of bytes
WIDEST_GAP = 8  # between neighbouring numbers of a map of bytes
SMOOTH = 0.8  # correlation of how often neighbours occur: bytes have 0.9 and more, atlases 0.6
ROUNDING = 1e-6  # less than this missing from a sum of 1 is no background

NORMALISE, BACKGROUND = (
    Option("sums", how, python=f'sums="{how}" to read or Segmentation.from_probabilities')
    for how in ("normalise", "background")
)
MASK = Option("mask", "FILE", python="mask=…")


def as_probabilities(
    values: NDArray[Any], reading: Reading, into: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Probabilities from floating values as they came, regions first.

    Where the number of regions stays the same, `values` itself is overwritten; else the result is
    written to `into`, which has one row more. Values that cannot be give whatever they give:
    `examine_values` reports them.
    """
    if reading == "error":
        return values
    with np.errstate(all="ignore"):
        if reading == "softmax":
            np.subtract(values, values.max(axis=0), out=values)
            np.exp(values, out=values)
            values /= values.sum(axis=0)
            # A softmax is never certain: what underflows is kept as the smallest positive number.
            np.maximum(values, np.finfo(values.dtype).smallest_subnormal, out=values)
            return values
        if reading == "normalise":
            np.divide(values, _sums(values), out=values, casting="same_kind")
            return values
        if into is None:
            into = np.empty((len(values) + 1, *values.shape[1:]), values.dtype)
        if reading == "foreground":
            np.subtract(1, values[0], out=into[0])
            np.clip(into[0], 0, 1, out=into[0])
            into[1] = values[0]
            return into
        sums = _sums(values)
        missing = np.maximum(1 - sums, 0)
        missing[missing < ROUNDING] = 0
        np.divide(values, np.maximum(sums, 1), out=into[:-1], casting="same_kind")
        into[-1] = missing
        return into


def _sums(values: NDArray[Any]) -> NDArray[np.float64]:
    """In float64: what is missing from 1 is small beside what is there."""
    sums: NDArray[np.float64] = values.sum(axis=0, dtype=np.float64)
    return sums


@dataclass(frozen=True)
class Fault:
    """What is amiss in some pixels; pixels are known by their number in the order of reading."""

    kind: str
    count: int
    first: int
    value: float
    worst: int = 0
    worst_sum: float = 1.0
    whole: bool = False
    highest: float = 0.0

    def __add__(self, other: "Fault") -> "Fault":
        """Both together: what is said is of the pixel that comes first."""
        if other.first < self.first:
            return other + self
        later = other
        worse = later if abs(later.worst_sum - 1) > abs(self.worst_sum - 1) else self
        return replace(
            self,
            count=self.count + (later.count if later.kind == self.kind else 0),
            worst=worse.worst,
            worst_sum=worse.worst_sum,
            whole=self.whole and later.whole,
            highest=max(self.highest, later.highest),
        )

    def moved(self, number: Callable[[int], int]) -> "Fault":
        """The same with its pixels numbered anew."""
        return replace(self, first=number(self.first), worst=number(self.worst))

    def message(self, place: tuple[int, ...], worst_place: tuple[int, ...]) -> list[str | Option]:
        """One sentence: what is where, and what to do about it."""
        what = {
            "fraction": f"label {self.value:g}{self._at(place)} is no whole number of 64 bits",
            "infinite": f"found {self.value:g}{self._at(place)}, where a finite number must be",
            "negative": f"probability {self.value:g}{self._at(place)} is negative",
            "above": f"probability {self.value:g}{self._at(place)} is above 1",
            "nothing": f"all probabilities are 0{self._at(place)}, so the sum divides none",
            "sum": f"probabilities sum to {self.value:.6g}{self._at(place)}",
        }[self.kind]
        if self.kind == "sum" and worst_place != place:
            what += f", at worst to {self.worst_sum:.6g} at pixel {worst_place}"
        return [f"{what}; ", *self._remedy()]

    def _at(self, place: tuple[int, ...]) -> str:
        more = f" (the first of {self.count} such pixels)" if self.count > 1 else ""
        return f" at pixel {place}{more}"

    def _remedy(self) -> list[str | Option]:
        if self.kind == "fraction":
            return [
                _either(
                    "use Segmentation.from_probabilities for probabilities",
                    "a label map holds whole numbers: is this an image, or one region's "
                    "probabilities?",
                )
            ]
        if self.kind == "infinite":
            return ["leave such pixels out with ", MASK, ", or fill them in"]
        if self.kind == "negative":
            return [
                _either(
                    "use Segmentation.from_logits for logits, or clip rounding errors to 0",
                    "clip rounding errors to 0, and store probabilities, not logits",
                )
            ]
        adds = ", which adds the missing part as a region"
        missing: list[str | Option] = ["pass ", BACKGROUND, adds]
        if self.kind == "nothing":
            return [*missing, ", or leave such pixels out with ", MASK]
        remedies: list[list[str | Option]] = []
        if self.whole:
            remedies.append(
                [
                    _either(
                        "use Segmentation.from_labels if these whole numbers are labels",
                        "store one label a pixel if these whole numbers are labels",
                    )
                ]
            )
        for full, name in ((100, "percentages"), (255, "values up to 255")):
            if full / 2 < self.highest <= full:
                remedies.append(
                    [_either(f"divide {name} by {full}", f"pass --scale {full} for {name}")]
                )
        if self.kind == "sum" and not self.whole:
            if self.worst_sum > 0:
                remedies.append(["pass ", NORMALISE, ", which divides by the sum"])
                missing[1] = Option("sums", "background")  # whose option it is has just been said
            if self.value < 1:
                remedies.append(missing)
        if not remedies:
            return ["divide by the value that stands for certainty"]
        message = list(remedies[0])
        for remedy in remedies[1:]:
            message += [", or ", *remedy]
        return message


def _either(python: str, command: str) -> Option:
    """What to do, for someone who calls functions and for someone who types commands."""
    return Option("remedy", python=python, command=command)


def whole_numbers(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which floating values can be labels."""
    with np.errstate(invalid="ignore", over="ignore"):
        whole: NDArray[np.bool_] = (values == np.floor(values)) & (np.abs(values) < LARGEST)
    return whole


def scale_of_labels(labels: NDArray[Any], volumes: NDArray[Any]) -> int | None:
    """100 or 255 where the labels of a map look like probabilities stored as bytes; or None.

    They then are more than a hundred, from 0 to 255 at most without large gaps, and neighbouring
    numbers are about equally frequent. Regions of an atlas or superpixels have volumes that say
    nothing about that of the next one.
    """
    if labels.size <= MANY or int(labels[0]) != 0 or int(labels[-1]) > 255:
        return None
    if not volumes.all() or int(np.diff(labels.astype(np.int64)).max()) > WIDEST_GAP:
        return None
    between = np.log(volumes[1:-1].astype(np.float64))
    if np.ptp(between) == 0 or np.corrcoef(between[:-1], between[1:])[0, 1] < SMOOTH:
        return None
    return 100 if int(labels[-1]) <= 100 else 255


def examine_labels(values: NDArray[Any]) -> Fault | None:
    """Floating labels must be whole."""
    bad = ~whole_numbers(values)
    if not bad.any():
        return None
    first = int(np.argmax(bad))
    return Fault("fraction", int(bad.sum()), first, float(values[first]))


def examine_values(rows: NDArray[Any], reading: Reading) -> Fault | None:
    """Rows of values as they came: finite, and but for logits from 0 to 1 with the right sum."""
    if rows.size == 0:
        return None
    limit = 1 + (FORGIVEN if reading in ("normalise", "background") else TOLERANCE)
    with np.errstate(invalid="ignore", over="ignore"):
        sums = rows.sum(axis=0, dtype=np.float64)
        tests = {"infinite": ~np.isfinite(rows).all(axis=0)}
        if reading != "softmax":
            tests["negative"] = (rows < 0).any(axis=0)
            tests["above"] = (rows > limit).any(axis=0)
        if reading == "error":
            tests["sum"] = ~(np.abs(sums - 1) <= TOLERANCE)
        if reading == "normalise":
            tests["nothing"] = sums == 0
    bad = np.logical_or.reduce(list(tests.values()))
    if not bad.any():
        return None
    first = int(np.argmax(bad))
    kind = next(kind for kind, test in tests.items() if test[first])
    column = rows[:, first].astype(np.float64)
    value = {
        "infinite": column[np.argmax(~np.isfinite(column))],
        "negative": column.min(),
        "above": column.max(),
        "sum": sums[first],
        "nothing": 0.0,
    }[kind]
    finite = np.isfinite(sums)
    deviation = np.where(finite, np.abs(sums - 1), -1)
    worst = int(np.argmax(deviation))
    known = rows[np.isfinite(rows)]
    return Fault(
        kind,
        int(tests[kind].sum()),
        first,
        float(value),
        worst,
        float(sums[worst]),
        whole=bool((known == np.floor(known)).all()),
        highest=float(known.max(initial=0)),
    )
