"""Check the stored values of an image and convert them to labels or probabilities.

Values are checked in the pass that reads them. The error message names the first pixel with an
invalid value and suggests a fix. No other module converts stored values to probabilities.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from probdice.data.pixel_words import PixelWords
from probdice.errors import InputError, Option

__all__ = [
    "MASK",
    "MAX_EXCESS_ABOVE_ONE",
    "SUMS_BACKGROUND",
    "SUMS_NORMALISE",
    "Fault",
    "InvalidValues",
    "Reading",
    "Sums",
    "as_probabilities",
    "decoded",
    "examine_labels",
    "examine_values",
    "invalid_values",
    "scale_of_labels",
    "whole_numbers",
    "zeros_and_ones",
]

Sums = Literal["error", "normalise", "background"]
Reading = Literal["error", "normalise", "background", "foreground", "softmax"]

TOLERANCE = 1e-3  # largest accepted deviation of a sum from 1, and excess of a value above 1
LABEL_LIMIT = 2.0**63  # labels are 64-bit integers
# Largest excess of a value above 1 if `sums` is "normalise" or "background".
MAX_EXCESS_ABOVE_ONE = 0.5
MAX_MAP_LABELS = 100  # a map with at most this many labels is never treated as 8-bit probabilities
MAX_VALUE_GAP = 8  # largest gap between neighbouring values of 8-bit probabilities
# Smallest correlation between the volumes of consecutive labels in 8-bit probabilities. Measured
# correlations are at least 0.9 in 8-bit probabilities and about 0.6 in atlases.
MIN_VOLUME_CORRELATION = 0.8
ROUNDING = 1e-6  # a smaller missing probability is a rounding error, not background

SUMS_NORMALISE, SUMS_BACKGROUND = (
    Option(
        "sums", sums, python=f'sums="{sums}" to probdice.read or Segmentation.from_probabilities'
    )
    for sums in ("normalise", "background")
)
MASK = Option("mask", "FILE", python="mask=…")


def decoded(
    values: NDArray[Any], reading: Reading, into: NDArray[Any] | None = None
) -> "tuple[NDArray[Any], Fault | None]":
    """Return stored values as probabilities, and the `Fault` of invalid values or None."""
    fault = examine_values(values, reading)
    return as_probabilities(values, reading, into), fault


def zeros_and_ones(values: NDArray[Any]) -> NDArray[Any]:
    """Convert the bytes of a boolean array to 0 and 1. Files may contain other bytes."""
    if values.dtype != np.bool_:
        return values
    content = values.view(np.uint8)
    return values if content.max(initial=0) <= 1 else content != 0


def as_probabilities(
    values: NDArray[Any], reading: Reading, into: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Convert stored floating-point values to probabilities, with regions along the first axis.

    If the number of regions does not change, `values` is overwritten. Otherwise, the result is
    written to `into`, which has one more row. The result is undefined for invalid values, which
    `examine_values` reports.
    """
    if reading == "error":
        return values
    with np.errstate(all="ignore"):
        if reading == "softmax":
            np.subtract(values, values.max(axis=0), out=values)
            np.exp(values, out=values)
            values /= values.sum(axis=0)
            # A softmax is never 0: values that underflow become the smallest positive number.
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
    """Sum probabilities in float64, because the differences of the sums from 1 are small."""
    sums: NDArray[np.float64] = values.sum(axis=0, dtype=np.float64)
    return sums


@dataclass(frozen=True)
class Fault:
    """Invalid values of one kind. Pixels are numbered in the order in which they are read.

    `first` is the first pixel with an invalid value, and `worst` is the pixel whose sum of
    probabilities deviates most from 1.
    """

    kind: str
    count: int
    first: int
    value: float
    worst: int = 0
    worst_sum: float = 1.0
    all_whole: bool = False
    highest: float = 0.0
    foreground: bool = False  # whether the image has one value per pixel

    def __add__(self, other: "Fault") -> "Fault":
        """Combine the invalid values of two parts of an image.

        The kind and the value are those of the first invalid pixel.
        """
        if other.first < self.first:
            return other + self
        later = other
        worse = later if abs(later.worst_sum - 1) > abs(self.worst_sum - 1) else self
        return replace(
            self,
            count=self.count + (later.count if later.kind == self.kind else 0),
            worst=worse.worst,
            worst_sum=worse.worst_sum,
            all_whole=self.all_whole and later.all_whole,
            highest=max(self.highest, later.highest),
        )

    def moved(self, number: Callable[[int], int]) -> "Fault":
        """Return the same invalid values with renumbered pixels."""
        return replace(self, first=number(self.first), worst=number(self.worst))

    def message(
        self, position: tuple[int, ...], worst_position: tuple[int, ...], words: PixelWords
    ) -> list[str | Option]:
        """Return a message with the problem, its position and the fix."""
        return [f"{self.problem(position, worst_position, words)}. ", *self._remedy(words), "."]

    def problem(
        self, position: tuple[int, ...], worst_position: tuple[int, ...], words: PixelWords
    ) -> str:
        """Describe the problem and its position."""
        count_text = f" (the first of {self.count} such {words.many})" if self.count > 1 else ""
        at = f"at {words.one} {position}{count_text}"
        problem = {
            "fraction": f"label {self.value:g} {at} is not a 64-bit whole number",
            "infinite": f"found {self.value:g} {at}, expected a finite number",
            "negative": f"probability {self.value:g} {at} is negative",
            "above": f"probability {self.value:g} {at} is above 1",
            "nothing": f"all probabilities are 0 {at}, so they cannot be divided by their sum",
            "sum": f"probabilities sum to {self.value:.6g} {at}",
        }[self.kind]
        worst_sum = f"{self.worst_sum:.6g}"
        if self.kind == "sum" and worst_sum != f"{self.value:.6g}":
            problem += f"; the worst sum is {worst_sum} at {words.one} {worst_position}"
        return problem

    def _remedy(self, words: PixelWords) -> list[str | Option]:
        if self.kind == "fraction" and isnan(self.value):
            return [f"Replace NaN by a label, or exclude these {words.many} with ", MASK]
        if self.kind == "fraction":
            command = "A label map contains whole numbers. Check that the file is a label map"
            return [_either("Use Segmentation.from_probabilities for probabilities", command)]
        if self.kind == "infinite":
            return [f"Replace NaN and infinite values, or exclude their {words.many} with ", MASK]
        if self.kind == "negative":
            python = "Use Segmentation.from_logits for logits, or clip rounding errors to 0"
            command = "Clip rounding errors to 0, and store probabilities instead of logits"
            return [_either(python, command)]
        missing: list[str | Option] = [
            "To add the missing probability as a region, pass ",
            SUMS_BACKGROUND,
        ]
        if self.kind == "nothing":
            return [*missing, f". To exclude these {words.many}, use ", MASK]
        remedies: list[list[str | Option]] = []
        if self.kind == "sum" and self.all_whole and self.highest <= 1 and self.value < 1:
            remedies.append(missing)  # masks of 0 and 1 that do not cover the image
        if self.all_whole:
            python = "Use Segmentation.from_labels if these whole numbers are labels"
            command = f"Store one label per {words.one} if these whole numbers are labels"
            remedies.append([_either(python, command)])
        for full, name in ((100, "percentages"), (255, "values up to 255")):
            if full / 2 < self.highest <= full:
                command = f"For {name}, use --scale {full}"
                remedies.append([_either(f"Divide {name} by {full}", command)])
        if remedies and self.foreground and not self.all_whole:
            remedies.append(["Resample label maps with nearest-neighbour interpolation"])
        if self.kind == "sum" and not self.all_whole:
            if self.worst_sum > 0:
                remedies.append(["To divide by the sum, pass ", SUMS_NORMALISE])
                missing[1] = Option("sums", "background")  # SUMS_NORMALISE names the functions
            if self.value < 1:
                remedies.append(missing)
        if not remedies:
            return [
                "Divide probabilities by the value that means 1. Resample label maps with "
                "nearest-neighbour interpolation. If the values are intensities of a scan, pass "
                "its segmentation instead"
            ]
        message = list(remedies[0])
        for remedy in remedies[1:]:
            message += [". ", *remedy]
        return message


class InvalidValues(InputError):
    """The values of a segmentation are neither valid labels nor valid probabilities.

    Attributes
    ----------
    kind : str
        "fraction", "infinite", "negative", "above", "nothing" or "sum", as in `Fault.problem`.
    problem : str
        The message without the file and the fix.
    """

    kind: str = ""
    problem: str = ""

    @classmethod
    def of(
        cls,
        prefix: str,
        fault: Fault,
        position: tuple[int, ...],
        worst_position: tuple[int, ...],
        words: PixelWords,
    ) -> Self:
        """Create the error for invalid values. `prefix` is the name of the file or the side."""
        error = cls(prefix, *fault.message(position, worst_position, words))
        error.kind, error.problem = fault.kind, fault.problem(position, worst_position, words)
        return error


def _either(python: str, command: str) -> Option:
    """Return a fix with one text for Python and one for the command line."""
    return Option("remedy", python=python, command=command)


def whole_numbers(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the floating-point values that are valid labels."""
    with np.errstate(invalid="ignore", over="ignore"):
        is_whole: NDArray[np.bool_] = (values == np.floor(values)) & (np.abs(values) < LABEL_LIMIT)
    return is_whole


def scale_of_labels(labels: NDArray[Any], volumes: NDArray[Any]) -> int | None:
    """Return 100 or 255 if the labels of a map look like 8-bit probabilities, else None.

    A map looks like 8-bit probabilities if it has more than 100 labels from 0 to at most 255
    without large gaps, and if the volumes of consecutive labels are strongly correlated. In an
    atlas or in superpixels, they are less correlated.
    """
    if labels.size <= MAX_MAP_LABELS or int(labels[0]) != 0 or int(labels[-1]) > 255:
        return None
    if not volumes.all() or int(np.diff(labels.astype(np.int64)).max()) > MAX_VALUE_GAP:
        return None
    log_volumes = np.log(volumes[1:-1].astype(np.float64))
    if (
        np.ptp(log_volumes) == 0
        or np.corrcoef(log_volumes[:-1], log_volumes[1:])[0, 1] < MIN_VOLUME_CORRELATION
    ):
        return None
    return 100 if int(labels[-1]) <= 100 else 255


def examine_labels(values: NDArray[Any]) -> Fault | None:
    """Return the `Fault` of floating-point values that are not valid labels, or None."""
    bad = ~whole_numbers(values)
    if not bad.any():
        return None
    first = int(np.argmax(bad))
    return Fault("fraction", int(bad.sum()), first, float(values[first]))


def examine_values(rows: NDArray[Any], reading: Reading) -> Fault | None:
    """Return the `Fault` of values that are not valid probabilities or logits, or None.

    Values must be finite. Unless they are logits, they must also be at least 0 and, within a
    tolerance, at most 1. If `reading` is "error", the values of a pixel must sum to 1 within
    `TOLERANCE`. If `reading` is "normalise", the sum must not be 0.
    """
    if rows.size == 0:
        return None
    tests, sums = _tests(rows, reading)
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
    finite_values = rows[np.isfinite(rows)]
    return Fault(
        kind,
        int(tests[kind].sum()),
        first,
        float(value),
        worst,
        float(sums[worst]),
        all_whole=bool((finite_values == np.floor(finite_values)).all()),
        highest=float(finite_values.max(initial=0)),
        foreground=reading == "foreground",
    )


def invalid_values(rows: NDArray[Any], reading: Reading) -> NDArray[np.bool_]:
    """Return a mask of the pixels whose values `examine_values` reports as invalid."""
    invalid: NDArray[np.bool_] = np.logical_or.reduce(list(_tests(rows, reading)[0].values()))
    return invalid


def _tests(
    rows: NDArray[Any], reading: Reading
) -> tuple[dict[str, NDArray[np.bool_]], NDArray[np.float64]]:
    """Return one mask of invalid pixels per kind of fault, and the sum of the values per pixel."""
    limit = 1 + (MAX_EXCESS_ABOVE_ONE if reading in ("normalise", "background") else TOLERANCE)
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
    return tests, sums
