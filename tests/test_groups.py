"""Groups of regions: numbering, members and costs."""

import numpy as np
import pytest

from probdice import Aitchison, overlap
from probdice.method.groups import Groups, costs, known_from_table
from probdice.method.matching import pairs_as_groups

REFERENCE = np.array([1, 1, 1, 1, 2, 2, 2, 2])
SPLIT = np.array([7, 7, 5, 5, 5, 9, 9, 9])


def table(**options):
    return overlap(REFERENCE, SPLIT, **options)


def test_pairs_come_first_then_the_unmatched_regions_of_each_side():
    groups = pairs_as_groups(table(), np.array([1]), np.array([2]))
    assert groups.reference.tolist() == [1, 0]
    assert groups.prediction.tolist() == [2, 3, 0]
    assert (groups.matched, groups.count) == (1, 4)
    assert groups.unmatched("reference").tolist() == [0]
    assert groups.unmatched("prediction").tolist() == [0, 1]


def test_arbitrary_group_numbers_are_renumbered():
    groups = Groups.of_numbers(table(), np.array([9, 4]), np.array([4, -1, 9]))
    assert groups.reference.tolist() == [0, 1]
    assert groups.prediction.tolist() == [1, 2, 0]
    assert groups.matched == 2
    several = Groups.of_numbers(table(), np.array([3, 3]), np.array([3, 3, 8]))
    assert several.regions("reference", 0).tolist() == [0, 1]
    assert several.regions("prediction", 0).tolist() == [0, 1]
    assert several.regions("reference", 1).tolist() == []


def test_an_empty_region_belongs_to_no_group():
    masked = overlap([1, 2, 3], [4, 4, 4], mask=[True, True, False])
    for groups in (
        pairs_as_groups(masked, np.array([0]), np.array([0])),
        Groups.of_numbers(masked, np.array([0, -1, 0]), np.array([0])),
    ):
        assert groups.reference.tolist() == [0, 1, -1]
        assert groups.count == 2
        assert groups.unmatched("reference").tolist() == [1]


def test_costs_are_the_pixels_that_only_one_side_has():
    groups = Groups.of_numbers(table(), np.array([0, 1]), np.array([0, 0, 1]))
    # {1} against {5, 7}: one pixel of 5 is outside. {2} against {9}: one pixel of 2 is.
    assert costs(table(), groups).tolist() == [1, 1]
    alone = Groups.of_numbers(table(), np.array([-1, -1]), np.array([-1, -1, -1]))
    assert costs(table(), alone).tolist() == [4, 4, 3, 2, 3]


@pytest.mark.parametrize("similarity", ["absolute", "aitchison", Aitchison(0.01)])
def test_costs_of_pairs_and_of_crisp_groups_follow_from_the_table(similarity):
    soft = np.full((3, 8), 1 / 3)
    one, several = np.array([0, -1, -1]), np.array([0, 0, -1])
    both_soft = overlap(soft, soft, similarity=similarity)
    assert known_from_table(both_soft, Groups.of_numbers(both_soft, one, one)).all()
    assert not known_from_table(both_soft, Groups.of_numbers(both_soft, one, several))[0]
    mixed = overlap(SPLIT, soft, similarity=similarity)
    assert known_from_table(mixed, Groups.of_numbers(mixed, several, one)).all()
    assert not known_from_table(mixed, Groups.of_numbers(mixed, one, several))[0]
    crisp = overlap(SPLIT, SPLIT, similarity=similarity)
    assert known_from_table(crisp, Groups.of_numbers(crisp, several, several)).all()
