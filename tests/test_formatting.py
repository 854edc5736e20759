"""Formatting of numbers: rounding, percentages and volumes."""

from math import nan, nextafter

import numpy as np
import pytest

from probdice.text.formatting import decimal, millilitres, percent


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, "1.0000"),
        (nextafter(1.0, 0.0), "0.9999"),
        (0.99996, "0.9999"),
        (0.99994, "0.9999"),
        (0.625, "0.6250"),
        (0.00004, "0.0000"),
        (0.0, "0.0000"),
        (-0.00004, "0.0000"),
        (-0.25, "-0.2500"),
        (-0.99996, "-0.9999"),
        (-1.0, "-1.0000"),
        (1.5, "1.5000"),
        (nan, "–"),
        (None, "–"),
        (np.float32(0.99999), "0.9999"),
        (1, "1.0000"),
    ],
)
def test_numbers_below_1_are_never_rounded_to_1(value: float | None, expected: str) -> None:
    assert decimal(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, "100.0 %"),
        (nextafter(1.0, 0.0), "99.9 %"),
        (0.9995, "99.9 %"),
        (0.9994, "99.9 %"),
        (0.5, "50.0 %"),
        (0.0001, "0.0 %"),
        (0.0, "0.0 %"),
        (nan, "–"),
        (None, "–"),
    ],
)
def test_fractions_below_1_are_never_rounded_to_100_percent(
    value: float | None, expected: str
) -> None:
    assert percent(value) == expected


def test_the_number_of_decimals_is_an_option() -> None:
    assert (decimal(0.996, 2), decimal(0.9, 0), decimal(0.4, digits=0)) == ("0.99", "0", "0")
    assert (percent(0.999, 0), percent(0.99999, digits=3)) == ("99 %", "99.999 %")


@pytest.mark.parametrize(
    ("pixels", "pixel_volume", "expected"),
    [
        (54_372, 8.0, "435 mL"),
        (12_345, 1.0, "12.3 mL"),
        (3, 8.0, "0.024 mL"),
        (0, 8.0, "0 mL"),
        (5e8, 8.0, "4,000,000 mL"),
        (54_372, None, ""),
    ],
)
def test_volumes_are_formatted_in_millilitres(pixels, pixel_volume, expected):
    assert millilitres(pixels, pixel_volume) == expected
