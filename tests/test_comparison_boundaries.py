"""Boundary distances of a comparison, from arrays and files to numbers."""

import json
from pathlib import Path

import numpy as np
import pytest

import probdice
from probdice import Geometry, InputError, Segmentation, compare

CASES = json.loads((Path(__file__).parent / "boundaries.json").read_text())["cases"]


def mask_of(case, side):
    runs = case[side]
    inside = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    return inside.reshape(case["shape"])


def placed(labels, spacing):
    affine = np.diag([*spacing, 1.0])
    return Segmentation.from_labels(labels, geometry=Geometry(labels.shape, affine))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_label_maps_agree_with_independent_values(case):
    sides = [placed(mask_of(case, side).astype(np.uint8), case["spacing"])
             for side in ("reference", "prediction")]  # fmt: skip
    if not all(side.array.any() for side in sides):
        pytest.skip("a label map without the region is tested by the numbers of empty sets")
    expected = case["expected"]
    tolerances = [float(tolerance) for tolerance in expected.get("nsd", {})]
    result = compare(*sides, match="labels").boundaries(tolerances=tolerances)
    foreground = result.groups.reference.index((1,))
    assert result.unit == "mm"
    for name in ("hd", "hd95", "assd", "masd"):
        assert result[name][foreground] == pytest.approx(expected[name], abs=1e-9)
    for tolerance, value in expected.get("nsd", {}).items():
        assert result[f"nsd@{float(tolerance):g}"][foreground] == pytest.approx(value, abs=1e-9)


@pytest.fixture
def squares():
    reference, prediction = np.zeros((2, 14, 14), np.uint8)
    reference[4:10, 4:10] = prediction[4:10, 5:11] = 1
    return reference, prediction


def test_one_hot_probabilities_equal_the_label_map(squares):
    labels = compare(*squares, match="labels").boundaries(tolerances=[0.5])
    one_hot = [np.stack([side == 0, side == 1]).astype(float) for side in squares]
    soft = compare(*one_hot, match="labels").boundaries(tolerances=[0.5])
    mixed = compare(squares[0], one_hot[1], match="labels").boundaries(tolerances=[0.5])
    for name in labels.names:
        np.testing.assert_allclose(soft[name], labels[name], atol=1e-12)
        np.testing.assert_allclose(mixed[name], labels[name], atol=1e-12)


def test_labels_need_not_agree(squares):
    renamed = compare(squares[0], squares[1] * 41 + 7).boundaries()
    np.testing.assert_allclose(renamed["hd"], compare(*squares).boundaries()["hd"])


def test_a_missed_region_is_infinitely_far_unless_a_penalty_is_set(squares):
    reference, prediction = squares
    reference[0:2, 0:2] = 2
    result = compare(reference, prediction, match="labels")
    missed = result.boundaries().groups.reference.index((2,))
    assert result.boundaries()["hd95"][missed] == np.inf
    assert result.boundaries(infinite=50)["hd95"][missed] == 50
    assert result.boundaries().means["hd"].infinite == 1


def test_pixels_outside_the_mask_have_no_surface(squares):
    reference, prediction = squares
    prediction[0, 0] = 1  # far from the reference
    mask = np.ones(reference.shape, bool)
    mask[:3] = False
    masked = compare(reference, prediction, match="labels", mask=mask).boundaries()
    whole = compare(reference, prediction, match="labels").boundaries()
    assert masked["hd"][1] == 1 < whole["hd"][1]


def test_distances_are_read_back_from_a_file(squares, tmp_path):
    volumes = [np.stack([np.zeros_like(side), side, side, np.zeros_like(side)]) for side in squares]
    for name, volume in zip(("a", "b"), volumes, strict=True):
        probdice.write(tmp_path / f"{name}.nii.gz", placed(volume, (5.0, 0.5, 0.5)))
    result = compare(tmp_path / "a.nii.gz", tmp_path / "b.nii.gz").boundaries()
    assert result.unit == "mm"
    assert result["hd"][1] == pytest.approx(0.5, abs=1e-6)


def test_unions_may_share_regions(squares):
    """Whole and core of a nested object, each compared as a mask of its own."""
    sides = [side + np.roll(side, 1, axis=0) for side in squares]  # labels 0, 1 and 2
    result = compare(*sides, match="labels")
    unions = {"whole": (1, 2), "core": 2}
    boundaries = result.boundaries(derived=unions, tolerances=[0.5])
    assert boundaries.groups.reference == [("whole",), ("core",)]
    for k, label in enumerate((1, 2)):
        masks = [(side >= label).astype(np.uint8) for side in sides]
        alone = compare(*masks, match="labels").boundaries(tolerances=[0.5])
        for name in boundaries.names:
            assert boundaries[name][k] == alone[name][1]
        weights = [
            result.group(at).reference.weights for result, at in ((boundaries, k), (alone, 1))
        ]
        np.testing.assert_array_equal(*weights)


def test_unions_of_probabilities_are_sums(squares):
    reference, prediction = (side.astype(float) for side in squares)
    soft = [np.stack([1 - side, 0.3 * side, 0.7 * side]) for side in (reference, prediction)]
    boundaries = compare(*soft, match="labels").boundaries(derived={"whole": (1, 2)})
    assert boundaries.by_level("hd").tolist() == [[1.0] * 9]
    with pytest.raises(InputError, match="derived region 'x' contains 9, which neither side has"):
        compare(*squares).boundaries(derived={"x": 9})


def test_the_groups_as_csv_have_the_distances(squares):
    result = compare(*squares, match="labels")
    assert "hd95" not in result.to_csv()
    result.boundaries(tolerances=[0.5])
    header, _, row = result.to_csv().splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    assert (cells["hd95"], cells["nsd@0.5"]) == ("1.0", "0.5")


def test_images_of_one_dimension_have_no_boundaries():
    with pytest.raises(InputError, match="boundaries require images with two or three axes"):
        compare([1, 1, 2], [1, 2, 2]).boundaries()


def test_boundaries_need_the_images(squares):
    with pytest.raises(InputError, match=r"boundaries\(\) requires the images"):
        compare(*squares).detach().boundaries()


def test_the_comparison_stores_the_last_boundaries_also_in_json(squares):
    result = compare(*squares, match="labels")
    assert "boundaries" not in result.to_dict()
    boundaries = result.boundaries(tolerances=[0.5])
    again = probdice.Comparison.from_json(result.to_json()).boundaries(tolerances=[0.5])
    assert repr(again) == repr(boundaries)
    assert again["nsd@0.5"][1] == 0.5
    assert "boundaries (pixels): hd 1.0000" in str(result)
    assert result.detach().boundaries(tolerances=[0.5]).means["hd"].mean == 1
    with pytest.raises(InputError, match=r"boundaries\(\) requires the images"):
        result.detach().boundaries(tolerances=[0.7])


def test_boundaries_that_do_not_fit_the_groups_are_rejected(squares):
    result = compare(*squares, match="labels")
    result.boundaries()
    content = result.to_dict()
    content["boundaries"]["groups"].pop()
    with pytest.raises(InputError, match="the boundaries do not match the groups"):
        probdice.Comparison.from_dict(content)


def test_json_contains_the_last_penalty_for_missing_regions():
    labels = np.ones((4, 4), int)
    labels[1:3, 1:3] = 2
    result = compare(labels, np.ones((4, 4), int))
    result.boundaries()
    assert result.to_dict()["boundaries"]["infinite"] is None
    result.boundaries(infinite=20)
    assert result.to_dict()["boundaries"]["infinite"] == 20


def test_tolerances_that_differ_in_the_eighth_digit_have_their_own_names(squares):
    boundaries = compare(*squares, match="labels").boundaries(tolerances=[0.49999999, 0.5])
    assert boundaries.names[-2:] == ("nsd@0.49999999", "nsd@0.5")


def test_the_note_on_single_slices_does_not_depend_on_when_notes_are_read():
    labels = np.ones((4, 4, 1), int)
    labels[1:3, 1:3] = 2
    result = compare(labels, labels)
    assert "slice" not in [note.kind for note in result.notes]
    result.boundaries()
    assert "slice" in [note.kind for note in result.notes]
    assert [note.kind for note in result.detach().notes].count("slice") == 1
