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
        assert result[f"nsd_{float(tolerance):g}"][foreground] == pytest.approx(value, abs=1e-9)


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


def test_distances_survive_a_file(squares, tmp_path):
    volumes = [np.stack([np.zeros_like(side), side, side, np.zeros_like(side)]) for side in squares]
    for name, volume in zip(("a", "b"), volumes, strict=True):
        probdice.write(tmp_path / f"{name}.nii.gz", placed(volume, (5.0, 0.5, 0.5)))
    result = compare(tmp_path / "a.nii.gz", tmp_path / "b.nii.gz").boundaries()
    assert result.unit == "mm"
    assert result["hd"][1] == pytest.approx(0.5, abs=1e-6)


def test_images_of_one_dimension_have_no_boundaries():
    with pytest.raises(InputError, match="boundaries need images of two or three axes"):
        compare([1, 1, 2], [1, 2, 2]).boundaries()


def test_boundaries_need_the_images(squares):
    with pytest.raises(InputError, match=r"boundaries\(\) needs the images"):
        compare(*squares).detach().boundaries()
