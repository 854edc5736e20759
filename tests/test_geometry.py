"""Geometry of an image."""

import math

import numpy as np
import pytest

from probdice import Geometry, GeometryError, ProbdiceError, Segmentation, compare

AFFINE = np.array([[0, -2.0, 5], [3, 0, -1], [0, 0, 1]])


def test_properties_of_an_affine():
    geometry = Geometry((4, 6), AFFINE)
    assert geometry.spacing == (3, 2)
    assert geometry.origin == (5, -1)
    assert geometry.direction.tolist() == [[0, -1], [1, 0]]
    assert geometry.pixel_volume == 6
    assert geometry.describe() == {
        "size": "4 × 6",
        "spacing": "3 2",
        "origin": "5 -1",
        "direction": "0 -1; 1 0",
    }


def test_equal_geometries_are_equal_and_have_one_hash():
    one, twin = Geometry((2,), [[1, 0], [0, 1]]), Geometry([np.int64(2)], np.eye(2) * 1.0)
    assert one == twin and hash(one) == hash(twin)
    negative = Geometry((2,), [[1, -0.0], [0, 1]])
    assert one == negative and hash(one) == hash(negative)
    assert one != Geometry((3,), np.eye(2))
    assert one != Geometry((2,), [[1, 0.5], [0, 1]])
    assert one != "a geometry"
    assert len({one, twin, negative}) == 1


def test_an_affine_is_copied_and_read_only():
    affine = np.eye(2)
    geometry = Geometry((2,), affine)
    affine[0, 0] = 9
    assert geometry.affine[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        geometry.affine[0, 0] = 2


@pytest.mark.parametrize(
    ("shape", "affine", "message"),
    [
        ((2, 2), np.eye(4), "affine must be 3 × 3 for an image with 2 axes"),
        ((2, 2), np.diag([1, 0, 1]), "must be finite and invertible"),
        ((2,), [[math.nan, 0], [0, 1]], "must be finite"),
        ((2,), "abc", "affine must contain numbers, found"),
        (2, np.eye(2), "shape must contain whole numbers"),
        ((2.5,), np.eye(2), "shape must contain whole numbers"),
    ],
)
def test_invalid_geometries_are_rejected(shape, affine, message):
    with pytest.raises(ProbdiceError, match=message):
        Geometry(shape, affine)


def test_the_steps_onto_another_grid():
    geometry = Geometry((4, 6), AFFINE)
    assert geometry.steps_onto(geometry) == ((0, 1), (), 0)
    # The same pixels with axes exchanged and the first of them reversed.
    turned = Geometry((6, 4), AFFINE @ [[0, 1, 0], [-1, 0, 5], [0, 0, 1]])
    order, flips, apart = turned.steps_onto(geometry)
    assert (order, flips) == ((1, 0), (1,))
    assert apart == pytest.approx(0, abs=1e-12)
    moved = Geometry((4, 6), AFFINE + np.array([[0, 0, 0], [0, 0, 3], [0, 0, 0]]))
    assert moved.steps_onto(geometry)[2] == pytest.approx(1)
    assert Geometry((5, 6), AFFINE).steps_onto(geometry)[2] == math.inf
    assert Geometry((4,), np.eye(2)).steps_onto(geometry)[2] == math.inf


def test_more_tolerance_is_recommended_only_where_it_helps():
    image = Segmentation.from_labels([1, 2], geometry=Geometry((2,), np.eye(2)))
    shifted = Segmentation.from_labels([1, 2], geometry=Geometry((2,), [[1, 0.5], [0, 1]]))
    elsewhere = Segmentation.from_labels([1, 2], geometry=Geometry((2,), [[1, 5.5], [0, 1]]))
    longer = Segmentation.from_labels([1, 2, 2], geometry=Geometry((3,), np.eye(2)))
    with pytest.raises(GeometryError, match="raise the tolerance with") as caught:
        compare(image, shifted)
    assert "--geometry-tolerance T" in caught.value.in_command()
    with pytest.raises(GeometryError, match="If only a header is wrong") as caught:
        compare(image, elsewhere)
    assert "compare in array order with --ignore-geometry." in caught.value.in_command()
    assert "raise the tolerance" not in str(caught.value)
    with pytest.raises(GeometryError) as caught:
        compare(image, longer)
    assert "raise the tolerance" not in str(caught.value)
    assert "header" not in str(caught.value)
