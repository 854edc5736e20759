"""What is worth knowing about a comparison."""

import numpy as np

from probdice import compare
from probdice.errors import in_command


def kinds(result):
    return [note.kind for note in result.notes]


def test_a_comparison_without_surprises_has_no_notes():
    assert compare([1, 1, 2], [1, 1, 2]).notes == ()


def test_regions_without_a_partner_are_counted_and_the_option_is_named():
    (note,) = compare([1, 1, 2, 2], [5, 5, 5, 5]).notes
    assert note.kind == "unmatched"
    assert "--merge reference" in in_command(note.message)


def test_labels_that_were_exchanged_are_said():
    assert kinds(compare([1, 1, 1, 2, 2], [2, 2, 2, 1, 1])) == ["crossed"]
    assert kinds(compare([1, 1, 1, 2, 2], [2, 2, 2, 1, 1], match="labels")) == []


def test_pairs_of_the_papers_rule_that_share_no_pixel_are_counted():
    reference, prediction = np.repeat([1, 2, 3], [6, 2, 8]), np.repeat([5, 6, 7], [8, 5, 3])
    assert kinds(compare(reference, prediction, match="paper")) == ["apart"]
    assert "apart" not in kinds(compare(reference, prediction))


def test_labels_that_an_earlier_comparison_does_not_know_are_named():
    earlier = compare([1, 1, 2, 2], [5, 5, 6, 6])
    result = compare([1, 1, 2, 3], [5, 5, 6, 6], match=earlier)
    assert "1 reference label is missing" in str(
        next(note for note in result.notes if note.kind == "unknown")
    )


def test_labels_0_and_1_of_which_the_mask_leaves_none():
    result = compare([[0, 0], [1, 0]], [[0, 0], [0, 1]], mask=[[True, True], [False, False]])
    assert result.notes == ()
