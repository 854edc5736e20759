"""The two sides and their order."""

from probdice.method.sides import SIDES, Both, other


def test_the_reference_comes_first():
    assert SIDES == ("reference", "prediction")
    assert [other(side) for side in SIDES] == ["prediction", "reference"]


def test_a_pair_of_values_per_side():
    both = Both(1, 2)
    assert (both["reference"], both["prediction"]) == (1, 2)
    assert list(both) == [1, 2]
    assert both.map(lambda number: number + 1) == Both(2, 3)
    assert both.to_dict() == {"reference": 1, "prediction": 2}
    assert list(both.to_dict()) == list(SIDES)
