"""Surfaces and exact distances between them, by the method and by all pairs."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from boundaries_reference import (
    directed,
    distances,
    numbers,
    percentile,
    sizes,
    summary,
    surface,
)
from boundary_images import images_of
from hypothesis import given, settings
from hypothesis import strategies as st

from probdice.engine import surface_distances as surfaces
from probdice.engine.kernels import surface_summary as kernels
from probdice.engine.kernels.surface_shapes import polygons, shapes_for
from probdice.engine.surface_distances import Outlines
from probdice.method.sides import Both

CASES = json.loads(Path(__file__).with_name("boundaries.json").read_text())["cases"]
PERCENTILES, TOLERANCES = (95.0, 50.0), (0.5, 1.0, 2.0)
NAMES = ("hd", "assd", "masd", "hd95", "hd50", "nsd@0.5", "nsd@1", "nsd@2")


def outlines(reference, prediction, affine=None, groups=1, **options):
    """The outlines of label maps of group numbers, or of probabilities of one group per channel."""
    lists = [[group] for group in range(groups)]
    return Outlines(images_of(reference, prediction, affine, **options), Both(lists, lists))


def sets(*arrays):
    """Sets of pixels as group 0 of label maps."""
    return [array.astype(np.int32) - 1 for array in arrays]


def measured(both, levels=()):
    """The numbers of every group and level, by name."""
    values = both.numbers(percentiles=PERCENTILES, tolerances=TOLERANCES, levels=levels)
    return dict(zip(NAMES, values.transpose(2, 0, 1), strict=True))


def found(reference, prediction, affine, mask=None, workers=2):
    """The numbers of one pair of sets, by the engine."""
    both = outlines(*sets(reference, prediction), affine, mask=mask, workers=workers)
    return {name: values.item() for name, values in measured(both).items()}


def agree(values, expected, tolerance=1e-9):
    for name in NAMES:
        assert values[name] == pytest.approx(expected[name], abs=tolerance, nan_ok=True), name


def unpacked(case, side):
    """A set of pixels from its run lengths, which start with those outside."""
    runs = [np.full(length, k % 2 == 1) for k, length in enumerate(case[side])]
    return np.concatenate(runs).reshape(case["shape"])


def random_affine(rng, dimensions, shear):
    """Random spacing and rotation, and axes that are not orthogonal."""
    affine = np.eye(dimensions + 1)
    turned = np.linalg.qr(rng.normal(size=(dimensions, dimensions)))[0]
    oblique = np.eye(dimensions) + shear * rng.uniform(-1, 1, (dimensions, dimensions))
    affine[:-1, :-1] = turned @ oblique @ np.diag(rng.uniform(0.3, 4, dimensions))
    affine[:-1, -1] = rng.uniform(-100, 100, dimensions)
    return affine


def random_pair(rng, dimensions, most=5):
    """Two sets in a small image, from nearly empty to nearly full."""
    shape = rng.integers(1, most + 1, dimensions)
    return [rng.random(shape) < rng.choice([0.1, 0.5, 0.9]) for _ in range(2)]


@pytest.fixture(params=["small", "large"])
def way(request, monkeypatch):
    """Both ways through the engine: many small groups at once, and one large group."""
    if request.param == "large":
        monkeypatch.setattr(surfaces, "MAX_UNDIVIDED_CELLS", -1)
        monkeypatch.setattr(surfaces, "SURFACE_CELLS_PER_TASK", 7)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_known_cases_agree(case, way):
    affine = np.diag([*case["spacing"], 1])
    values = found(unpacked(case, "reference"), unpacked(case, "prediction"), affine)
    expected = dict(case["expected"])
    expected |= {f"nsd@{float(t):g}": value for t, value in expected.pop("nsd").items()}
    agree(values, expected)


@pytest.mark.parametrize("case", CASES[:3] + CASES[-2:], ids=lambda case: case["name"])
def test_the_reference_implementation_agrees_with_the_known_cases(case):
    affine = np.diag([*case["spacing"], 1])
    sides = unpacked(case, "reference"), unpacked(case, "prediction")
    values = numbers(*sides, affine, PERCENTILES, TOLERANCES)
    expected = dict(case["expected"])
    expected |= {f"nsd@{float(t):g}": value for t, value in expected.pop("nsd").items()}
    agree(values, expected)


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from([2, 3]), st.sampled_from([0.0, 0.4]))
def test_random_sets_agree_with_all_pairs_for_any_affine(seed, dimensions, shear):
    rng = np.random.default_rng(seed)
    affine = random_affine(rng, dimensions, shear)
    reference, prediction = random_pair(rng, dimensions)
    mask = rng.random(reference.shape) < 0.9 if seed % 2 else None
    values = found(reference, prediction, affine, mask)
    agree(values, numbers(reference, prediction, affine, PERCENTILES, TOLERANCES, mask))


@pytest.mark.parametrize("shear", [0.0, 0.4])
@pytest.mark.parametrize("spacing", [(1, 1, 1), (20, 1, 0.5), (0.1, 7, 7)])
def test_sets_that_are_far_apart_agree_with_all_pairs(spacing, shear, way):
    rng = np.random.default_rng(3)
    reference, prediction = np.zeros((2, 30, 40, 50), bool)
    reference[2:5, 3:6, 2:4] = rng.random((3, 3, 2)) < 0.6
    prediction[25:28, 30:33, 41:45] = rng.random((3, 3, 4)) < 0.6
    prediction[3, 36, 47] = True
    affine = np.diag([*spacing, 1.0])
    affine[:3, :3] = (np.eye(3) + shear * rng.uniform(-1, 1, (3, 3))) @ affine[:3, :3]

    def cropped(side):  # the reference implementation visits every cell in Python
        low = np.argwhere(side).min(axis=0)
        high = np.argwhere(side).max(axis=0) + 1
        part = surface(side[tuple(map(slice, low, high))], affine)
        return part + affine[:3, :3] @ low

    one, two = cropped(reference), cropped(prediction)
    expected = summary(
        (distances(one.mean(axis=1), two), sizes(one)),
        (distances(two.mean(axis=1), one), sizes(two)),
        PERCENTILES,
        TOLERANCES,
    )
    agree(found(reference, prediction, affine), expected)


def test_every_configuration_of_a_cell_has_the_elements_of_the_method():
    """Centroids and areas of 2 × 2 × 2 pixels, and distances to one pixel beside them."""
    affine = np.diag([2.0, 1.0, 0.7, 1.0])
    other = np.zeros((2, 2, 2), bool)
    other[0, 1, 0] = True
    for bits in product((False, True), repeat=8):
        if not any(bits):
            continue
        inside = np.array(bits).reshape(2, 2, 2)
        elements = outlines(*sets(inside, other), affine).elements(0, 0.5)
        one, two = directed(inside, other, affine)
        centroids = surface(inside, affine).mean(axis=1)
        rows = np.column_stack([elements.reference.points @ affine[:3, :3], one_of(elements)])
        expected = np.column_stack([centroids, one[1], one[0]])
        np.testing.assert_allclose(in_order(rows), in_order(expected), atol=1e-12)
        np.testing.assert_allclose(
            np.sort(elements.prediction.distances), np.sort(two[0]), atol=1e-12
        )


def one_of(elements):
    return np.column_stack([elements.reference.weights, elements.reference.distances])


def in_order(rows):
    return rows[np.lexsort(rows.round(9).T)]


def test_diagonal_pixels_are_separate():
    assert len(polygons(0b10000001, 3)) == 2  # across the cell
    assert sorted(map(len, polygons(0b00001001, 3))) == [3, 3]  # across a face
    assert len(polygons(0b01101001, 3)) == 4  # every second pixel
    two = np.eye(2, dtype=bool)
    apart = surface(np.array([[True, False, False], [False, False, True]]), np.eye(3))
    elements = outlines(*sets(two, two)).elements(0, 0.5).reference
    assert elements.weights.sum() == pytest.approx(8 * np.sqrt(0.5))
    assert len(apart) == elements.weights.size == 8


def test_a_flat_polygon_is_one_facet_with_four_elements():
    shapes = shapes_for(np.eye(3))
    half = 0b00001111  # the pixels with dz = 0
    assert np.diff(shapes.element_starts)[half] == 4
    assert np.diff(shapes.facet_starts)[half] == 1
    assert shapes.sizes[shapes.element_starts[half]] == pytest.approx(0.25)


def test_results_do_not_depend_on_the_number_of_workers(way):
    rng = np.random.default_rng(0)
    labels = [rng.integers(-1, 4, (9, 12, 11)) for _ in range(2)]

    affine = np.diag([3.0, 1.0, 1.0, 1.0])
    one, many = (measured(outlines(*labels, affine, 4, workers=workers)) for workers in (1, 3))
    for name in NAMES:
        np.testing.assert_array_equal(one[name], many[name])


def test_results_do_not_depend_on_memory_order(way):
    rng = np.random.default_rng(1)
    reference, prediction = rng.random((2, 6, 9, 7)) < 0.3
    affine = random_affine(rng, 3, 0.2)
    values = found(reference, prediction, affine)
    for change in (np.asfortranarray, lambda x: x[::-1][::-1], lambda x: x.copy().T.copy().T):
        agree(found(change(reference), change(prediction), affine), values, 1e-12)
    agree(found(np.asfortranarray(reference), prediction, affine), values, 1e-12)


def test_many_groups_at_once_are_the_same_as_one_at_a_time(monkeypatch):
    monkeypatch.setattr(surfaces, "BOX_CELLS_PER_TASK", 500)
    monkeypatch.setattr(surfaces, "MAX_UNDIVIDED_CELLS", 400)
    rng = np.random.default_rng(2)
    labels = rng.integers(-1, 30, (2, 8, 10, 9))
    labels[:, 2:6, 2:8] //= 10  # some groups are larger, and some regions are empty
    affine = np.diag([2.0, 1.0, 1.5, 1.0])
    values = measured(outlines(*labels, affine, 31))
    for group in range(31):
        alone = found(*(side == group for side in labels), affine)
        agree({name: values[name][group, 0] for name in NAMES}, alone)
    assert np.isnan(values["hd"][30])


def test_groups_may_share_regions():
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 4, (2, 6, 9))
    lists = [[0, 1], [1, 2], [3], [0, 2, 3]]
    both = Outlines(images_of(*labels), Both(lists, lists))
    values = measured(both)
    for group, members in enumerate(lists):
        alone = found(*(np.isin(side, members) for side in labels), np.eye(3))
        agree({name: values[name][group, 0] for name in NAMES}, alone)


def test_a_label_map_against_probabilities_is_the_set_at_every_level():
    rng = np.random.default_rng(4)
    labels = rng.integers(-1, 2, (6, 7))
    maps = rng.random((2, 6, 7))
    values = measured(outlines(labels, maps, groups=2), levels=(0.2, 0.7))
    for group, (k, level) in product(range(2), enumerate((0.2, 0.7))):
        expected = found(labels == group, maps[group] > level, np.eye(3))
        agree({name: values[name][group, k] for name in NAMES}, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_probability_equal_to_a_level_is_outside(dtype):
    maps = np.full((1, 3, 3), 0.3, dtype)
    maps[0, 1, 1] = 0.31
    elements = outlines(maps, maps).elements(0, 0.3).reference
    assert elements.weights.sum() == pytest.approx(4 * np.sqrt(0.5))  # around one pixel


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 40))
def test_weighted_percentiles_agree_with_sorting(seed, size):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, size) / 2 if seed % 2 else rng.random(size)
    weights = rng.random(size)
    asked = np.array([100.0, 95.0, 50.0, 10.0, 0.001])
    numbers = np.empty(3 + asked.size)
    shared = rng.random() if seed % 3 else 0.0
    one = kernels.Directed(values.copy(), weights.copy(), shared, False)
    two = kernels.Directed(np.zeros(1), np.ones(1), 0.0, False)
    kernels.summarise(one, two, asked, np.empty(0), numbers)
    values, weights = np.append(values, 0.0), np.append(weights, shared)
    expected = [percentile(values, weights, p) for p in asked]
    np.testing.assert_array_equal(numbers[3:], expected)
