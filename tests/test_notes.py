"""Notes on a comparison."""

import numpy as np

from probdice import Segmentation, compare
from probdice.errors import in_command


def kinds(result):
    return [note.kind for note in result.notes]


def test_an_unremarkable_comparison_has_no_notes():
    assert compare([1, 1, 2, 2], [1, 1, 2, 2]).notes == ()


def test_the_note_on_unmatched_regions_names_the_option():
    (note,) = compare([1, 1, 2, 2], [5, 5, 5, 5]).notes
    assert note.kind == "unmatched"
    assert "--merge reference" in in_command(note.message)


def test_exchanged_labels_get_a_note():
    assert kinds(compare([1, 1, 2, 2], [2, 2, 1, 1])) == ["crossed"]
    assert kinds(compare([1, 1, 2, 2], [2, 2, 1, 1], match="labels")) == []


def test_matched_pairs_that_do_not_overlap_get_a_note():
    reference, prediction = np.repeat([1, 2, 3], [6, 2, 8]), np.repeat([5, 6, 7], [8, 5, 3])
    assert kinds(compare(reference, prediction, match="paper")) == ["apart"]
    assert "apart" not in kinds(compare(reference, prediction))


def test_labels_missing_from_an_earlier_comparison_get_a_note():
    earlier = compare([1, 1, 2, 2], [5, 5, 6, 6])
    result = compare([1, 1, 2, 3], [5, 5, 6, 6], match=earlier)
    assert "1 reference label is missing" in str(
        next(note for note in result.notes if note.kind == "unknown")
    )


def test_labels_0_and_1_with_one_label_outside_the_mask():
    result = compare([[0, 0], [1, 0]], [[0, 0], [0, 1]], mask=[[True, True], [False, False]])
    assert kinds(result) == ["background"]  # one pair covers both pixels


def test_boundaries_of_a_volume_with_one_slice_get_a_note():
    reference, prediction = np.zeros((2, 14, 14), np.uint8)
    reference[4:10, 4:10] = prediction[4:10, 5:11] = 1
    flat = compare(reference, prediction)
    assert flat.boundaries()["hd95"].tolist() == [1.0, 1.0]
    assert "slice" not in kinds(flat)
    slab = compare(reference[None], prediction[None])
    assert slab.boundaries()["hd95"][1] < 1
    assert "slice" in kinds(slab)
    assert "slice" not in kinds(compare(reference[None], prediction[None]))


def test_the_note_on_unmatched_regions_keeps_the_merging_of_the_other_side():
    reference = np.repeat([1, 2, 3], [6, 2, 8])
    prediction = np.repeat([5, 6, 7], [8, 5, 3])  # 2 and 7 are unmatched
    result = compare(reference, prediction, merge="prediction")
    (note,) = [str(note) for note in result.notes if note.kind == "unmatched"]
    assert note.endswith('use merge="both".')


def test_negative_labels_with_names_are_no_sign_of_an_intensity_image():
    unnamed = Segmentation.from_labels([-1, 0, 1])
    named = Segmentation.from_labels([-1, 0, 1], names={-1: "unlabelled"})
    notes = [str(note) for note in compare(unnamed, named).notes if note.kind == "negative"]
    assert len(notes) == 1 and notes[0].startswith("The reference has negative labels (-1).")
