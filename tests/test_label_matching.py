"""match="labels": equal names if both sides have names, otherwise equal numbers."""

import json
from pathlib import Path

import numpy as np
import pytest
from test_cli_compare import run

import probdice
from probdice import Comparison, InputError, Overlap, Segmentation, compare

REFERENCE = Segmentation.from_labels([0, 0, 1, 1, 2], names={1: "liver", 2: "spleen"})
SOFT = np.array([[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]])


def notes(result: Comparison, kind: str) -> list[str]:
    return [str(note) for note in result.notes if note.kind == kind]


def test_equal_numbers_correspond_if_one_side_has_names() -> None:
    for first, second in (
        (REFERENCE, [0, 0, 1, 1, 2]),
        ([0, 0, 1, 1, 2], REFERENCE),
        (REFERENCE, SOFT),
    ):
        result = compare(first, second, match="labels")
        assert (result.score, result.labels_by) == (1.0, "number")
        assert "match='labels' by number" in str(result)
        assert result.to_dict()["labels_by"] == "number"


def test_equal_names_correspond_where_both_sides_have_names() -> None:
    other = Segmentation.from_labels([0, 0, 7, 7, 1], names={7: "liver", 1: "spleen"})
    result = compare(REFERENCE, other, match="labels")
    assert (result.score, result.labels_by) == (1.0, "name")
    assert notes(result, "differing") == [
        "1 number has different names on the two sides (1: 'liver' and 'spleen'). Regions were "
        "matched by name.",
        "2 names have different numbers on the two sides ('liver': 1 and 7, 'spleen': 2 and 1). "
        "Regions were matched by name.",
    ]
    soft = Segmentation.from_probabilities(SOFT, names=["air", "liver", "spleen"])
    assert compare(REFERENCE, soft, match="labels").score == 0.6  # 0 has a number, air a name


def test_a_region_without_a_name_corresponds_by_number_beside_named_ones() -> None:
    named = Segmentation.from_labels([0, 0, 5, 5, 2], names={0: "background", 5: "liver"})
    result = compare(REFERENCE, named, match="labels")
    assert (result.score, result.labels_by) == (1.0, "name")


def test_names_that_regions_share_do_not_identify_them() -> None:
    names = {1: "kidney", 2: "mass", 3: "mass"}
    first = Segmentation.from_labels([1, 2, 2, 3], names=names)
    result = compare(first, Segmentation.from_labels([1, 2, 2, 3], names=names), match="labels")
    assert result.score == 1.0
    assert [group.reference for group in result.groups] == [
        ("kidney",),
        ("mass (2)",),
        ("mass (3)",),
    ]
    other = Segmentation.from_labels([1, 2, 2, 3], names={1: "kidney", 2: "cyst", 3: "tumour"})
    assert compare(first, other, match="labels").score == 1.0


def test_only_names_and_only_numbers_is_an_error() -> None:
    named = Segmentation.from_probabilities(SOFT, names=["air", "liver", "spleen"])
    with pytest.raises(InputError, match=r"the prediction has names \(air, liver, spleen\)"):
        compare([0, 0, 1, 1, 2], named, match="labels")
    with pytest.raises(InputError, match=r"the reference has names"):
        compare(named, [0, 0, 1, 1, 2], match="labels")
    with pytest.raises(InputError, match=r"no label in common \(compared by name\)"):
        compare(
            Segmentation.from_labels([1, 1], names={1: "liver"}),
            Segmentation.from_labels([1, 1], names={1: "spleen"}),
            match="labels",
        )


def test_labels_below_and_above_2_to_the_63_are_compared_as_integers() -> None:
    large = np.array([0, 2**63, 2**64 - 1, 2**64 - 1], np.uint64)
    assert compare(large, large, match="labels").score == 1.0
    assert compare(np.array([0, -1, 5, 5]), large, match="labels").score == 0.25


def test_a_mapping_may_name_a_named_label_by_its_number() -> None:
    result = compare(REFERENCE, [0, 0, 5, 5, 2], match={5: 1})
    assert result.groups[1].reference == ("liver",)
    assert compare(REFERENCE, [0, 0, 5, 5, 2], match={5: "liver"}).score == 1.0


def test_channels_of_a_file_are_taken_by_number_with_a_note(tmp_path: Path) -> None:
    np.save(tmp_path / "soft.npy", SOFT)
    np.save(tmp_path / "labels.npy", np.array([0, 0, 1, 1, 2]))
    result = compare(tmp_path / "labels.npy", tmp_path / "soft.npy", match="labels")
    assert result.score == 1.0
    assert notes(result, "assumed") == [
        f"prediction ({tmp_path / 'soft.npy'}): the channels have no labels. "
        "Channel k was assigned label k."
    ]
    assert compare([0, 0, 1, 1, 2], SOFT, match="labels").notes == ()
    np.save(tmp_path / "other.npy", np.array([0, 0, 17, 17, 53]))
    done = run("compare", tmp_path / "other.npy", tmp_path / "soft.npy", "--match", "labels")
    assert done.code == 1
    assert "the channels of the prediction have no labels" in done.message
    assert "the labels of the reference (0, 17, 53) are not all channel numbers" in done.message
    both = compare(tmp_path / "soft.npy", tmp_path / "soft.npy", match="labels")
    assert (both.score, len(notes(both, "assumed"))) == (1.0, 2)


def test_the_command_line_and_json_report_which_labels_were_used(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[0, 0, 1], [1, 2, 2]]))
    (tmp_path / "t.csv").write_text("1,liver\n2,spleen\n")
    arguments = ("compare", tmp_path / "a.npy", tmp_path / "a.npy", "--match", "labels")
    done = run(*arguments, "--json", tmp_path / "j.json")
    assert done.code == 0, done.err
    assert "equal labels matched by number" in " ".join(done.out.split())
    content = json.loads((tmp_path / "j.json").read_text())
    assert (content["score"], content["labels_by"]) == (1.0, "number")
    named = run(*arguments, "--names", tmp_path / "t.csv")
    assert "equal labels matched by name" in " ".join(named.out.split())


def test_a_relabelled_prediction_agrees_with_the_reference_by_label(tmp_path: Path) -> None:
    first = np.array([[[0, 0], [17, 17]], [[53, 53], [53, 0]]], np.uint8)
    place = probdice.Geometry((2, 2, 2), np.eye(4))
    named = Segmentation.from_labels(first, names={17: "liver", 53: "spleen"}, geometry=place)
    probdice.write(tmp_path / "a.nrrd", named)
    renamed = Segmentation.from_labels(np.choose(first % 5, [9, 0, 5, 8]), geometry=place)
    probdice.write(tmp_path / "b.nii.gz", renamed)
    done = run(
        "compare", tmp_path / "a.nrrd", tmp_path / "b.nii.gz", "--relabelled", tmp_path / "c.nii.gz"
    )
    assert done.code == 0, done.err
    assert compare(tmp_path / "a.nrrd", tmp_path / "c.nii.gz", match="labels").score == 1.0


def folder_of(place: Path, cases: dict[str, list[int]]) -> Path:
    place.mkdir()
    for name, values in cases.items():
        np.save(place / f"{name}.npy", np.array([values, values], np.uint8))
    return place


def test_a_mapping_may_name_labels_that_a_case_lacks(tmp_path: Path) -> None:
    reference = folder_of(tmp_path / "r", {"a": [0, 1, 2, 3], "b": [0, 1, 1, 2]})
    method = folder_of(tmp_path / "m", {"a": [0, 5, 6, 7], "b": [0, 5, 5, 6]})
    arguments = ("evaluate", reference, method, "-o", tmp_path / "out")
    done = run(*arguments, "--match", "5=1,6=2,7=3")
    assert done.code == 0, done.err
    table = (tmp_path / "out" / "cases.csv").read_text()
    assert table.count("1.0") >= 2
    done = run(*arguments, "--match", "5=1,6=2,9=3")
    assert done.code == 1
    assert done.message.count("match names 9, which no case has") == 1
    with pytest.raises(InputError, match="match names 9, which neither side has"):
        compare([0, 1], [0, 5], match={9: 1})


def test_many_labels_are_matched_as_arrays() -> None:
    labels = np.arange(200_000)
    regions = probdice.overlap(labels, labels)
    calls = Overlap.compare(regions, match="labels")
    assert calls.score == 1.0
    assert "_places" not in regions.reference.__dict__  # no Python object per label


def test_labels_of_channels_may_need_unsigned_integers():
    reference = np.array([2**63, 2**64 - 1, 5], np.uint64)
    prediction = Segmentation.from_probabilities(np.eye(3), labels=[2**64 - 1, 2**63, 5])
    result = compare(reference, prediction, match="labels")
    assert result.score == pytest.approx(1 / 3)
    assert result.unmatched == {"reference": (), "prediction": ()}


@pytest.mark.parametrize(("label", "dtype"), [(-3, np.int64), (2**63, np.uint64)])
def test_channels_may_have_negative_labels_and_labels_of_at_least_2_to_the_63(
    label: int, dtype: type
) -> None:
    other = 2**63 if label == -3 else -3
    probabilities = np.array([[0.0, 0.0, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.5, 1.0]])
    prediction = Segmentation.from_probabilities(probabilities, labels=[other, label, 5])
    result = compare(np.array([label, 5, 5, 5], dtype), prediction, match="labels")
    assert result.score == 0.875  # only the third pixel differs, by 0.5
    assert {(group.reference, group.prediction) for group in result.groups} == {
        ((label,), (label,)),
        ((5,), (5,)),
        ((), (other,)),
    }
    mixed = compare(prediction, prediction, match="labels")
    assert mixed.score == 1.0
    assert all(group.reference == group.prediction for group in mixed.groups)
