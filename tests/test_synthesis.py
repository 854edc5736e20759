"""Phantoms and degradations: common properties, and values worked by hand."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from probdice import Geometry, Segmentation, compare
from probdice.errors import InputError
from probdice.synthesis import (
    DEGRADATIONS,
    PHANTOMS,
    blur,
    brain_section,
    deform,
    demo_pair,
    grow,
    merge,
    nested_ellipses,
    noise,
    permute,
    probabilities,
    shrink,
    soften,
    split,
    stripes,
    touching_cells,
    voronoi,
)

SHAPES = [(20, 26), (12, 14, 10)]
STRENGTHS = {"split": 2, "merge": 2, "permute": 3}
ROUNDING = 3e-7  # error of a sum of a few float32 numbers


def values_of(segmentation: Segmentation) -> NDArray[Any]:
    return np.asarray(segmentation.array)


def sums(segmentation: Segmentation) -> NDArray[Any]:
    return np.asarray(values_of(segmentation).sum(axis=0, dtype=np.float64))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PHANTOMS)
def test_phantoms_are_probabilities(name: str, shape: tuple[int, ...]) -> None:
    phantom = PHANTOMS[name](shape)
    values = values_of(phantom)
    assert phantom.shape == shape
    assert values.dtype == np.float32
    assert values.min() > 0
    np.testing.assert_allclose(sums(phantom), 1, atol=ROUNDING)


@pytest.mark.parametrize("name", PHANTOMS)
def test_phantoms_depend_only_on_the_seed(name: str) -> None:
    first, again, other = (values_of(PHANTOMS[name]((40, 40), seed=seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("phantom", [nested_ellipses, voronoi, touching_cells, stripes])
def test_phantoms_have_the_requested_number_of_regions(
    phantom: Callable[..., Segmentation],
) -> None:
    values = values_of(phantom((64, 64), regions=5, softness=0, doubt=0))
    assert set(np.unique(values)) == {0, 1}
    assert (values.reshape(5, -1).sum(axis=1) > 0).all()


def test_ellipses_are_nested() -> None:
    labels = values_of(nested_ellipses((64, 64), regions=4, softness=0, doubt=0)).argmax(axis=0)
    for k in range(1, 4):
        rows, columns = np.nonzero(labels >= k)
        outer_rows, outer_columns = np.nonzero(labels >= k - 1)
        assert outer_rows.min() <= rows.min() and rows.max() <= outer_rows.max()
        assert outer_columns.min() <= columns.min() and columns.max() <= outer_columns.max()
    assert labels[0, 0] == 0 and labels[32, 32] == 3


def test_cells_touch() -> None:
    labels = values_of(touching_cells((96, 96), regions=3, softness=0, doubt=0)).argmax(axis=0)
    pairs = np.sort(np.stack([labels[:, 1:].ravel(), labels[:, :-1].ravel()]), axis=0)
    down = np.sort(np.stack([labels[1:].ravel(), labels[:-1].ravel()]), axis=0)
    assert {(1, 2)} <= {tuple(pair) for pair in np.hstack([pairs, down]).T}


def test_brain_section_is_named_and_has_all_regions() -> None:
    section = brain_section((64, 64), softness=0, doubt=0)
    assert section.regions == ("background", "fluid", "grey matter", "white matter")
    volumes = values_of(section).reshape(4, -1).sum(axis=1)
    assert (volumes > 50).all()


def test_doubt_is_spread_evenly() -> None:
    soft = soften([[0, 1]], 2, softness=0, doubt=0.1)
    np.testing.assert_allclose(values_of(soft)[:, 0], [[0.95, 0.05], [0.05, 0.95]], rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": (5,)}, "two or three axes"),
        ({"shape": (5, 0)}, "at least one pixel"),
        ({"regions": 1}, "at least 2"),
        ({"softness": -1}, "softness"),
        ({"softness": np.nan}, "softness"),
        ({"doubt": 1}, "doubt"),
    ],
)
def test_phantoms_reject_invalid_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        voronoi(**arguments)
    with pytest.raises(InputError, match="between 0 and 1"):
        soften([0, 2], 2)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", DEGRADATIONS)
def test_degradations_keep_probabilities(name: str, shape: tuple[int, ...]) -> None:
    geometry = Geometry(shape, np.diag([2.0] * len(shape) + [1.0]))
    reference = Segmentation.from_probabilities(
        values_of(voronoi(shape, regions=4)), geometry=geometry
    )
    before = values_of(reference).copy()
    spoilt = DEGRADATIONS[name](reference, STRENGTHS.get(name, 1.5), seed=3)
    values = values_of(spoilt)
    assert values.dtype == np.float32 and values.min() >= 0
    np.testing.assert_allclose(sums(spoilt), 1, atol=ROUNDING)
    assert spoilt.geometry is geometry
    assert not np.array_equal(values, before)
    assert np.array_equal(values_of(reference), before)  # the input is unchanged


@pytest.mark.parametrize("name", DEGRADATIONS)
def test_degradations_are_the_identity_at_strength_0(name: str) -> None:
    for reference in (brain_section((16, 16)), Segmentation.from_labels([[3, 1], [1, 2]])):
        before = values_of(reference).copy()
        same = DEGRADATIONS[name](reference, 0, seed=5)
        assert values_of(same).tobytes() == before.tobytes()
        assert same.regions == reference.regions
        assert same.crisp is reference.crisp


@pytest.mark.parametrize("name", DEGRADATIONS)
def test_degradations_are_reproducible(name: str) -> None:
    reference = voronoi((24, 24), regions=6)
    strength = STRENGTHS.get(name, 1.5)
    first, again, other = (
        values_of(DEGRADATIONS[name](reference, strength, seed=seed)) for seed in (1, 1, 4)
    )
    assert np.array_equal(first, again)
    if name in ("deform", "noise", "split", "merge", "permute"):
        assert first.shape != other.shape or not np.array_equal(first, other)


@pytest.mark.parametrize("strength", [-1, np.nan, np.inf])
@pytest.mark.parametrize("name", DEGRADATIONS)
def test_degradations_reject_an_invalid_strength(name: str, strength: float) -> None:
    with pytest.raises(InputError, match="strength must be"):
        DEGRADATIONS[name](stripes((8, 8)), strength)


@pytest.mark.parametrize("degrade", [split, merge, permute])
def test_counted_degradations_reject_fractions(degrade: Callable[..., Segmentation]) -> None:
    with pytest.raises(InputError, match="non-negative integer"):
        degrade(stripes((8, 8)), 1.5)


@pytest.mark.parametrize("name", ["blur", "deform", "noise"])
def test_small_strengths_change_little(name: str) -> None:
    reference = brain_section((32, 32))
    change = np.abs(values_of(DEGRADATIONS[name](reference, 1e-4)) - values_of(reference))
    assert change.max() < 1e-3


@pytest.mark.parametrize("degrade", [blur, deform])
def test_constant_probabilities_stay_constant(degrade: Callable[..., Segmentation]) -> None:
    constant = np.stack([np.full((9, 9), p, np.float32) for p in (0.2, 0.3, 0.5)])
    np.testing.assert_allclose(values_of(degrade(constant, 3.0)), constant, rtol=1e-6)


def test_blur_of_a_step_is_symmetric() -> None:
    step = np.repeat([[1.0, 0.0], [0.0, 1.0]], 8, axis=1)
    values = values_of(blur(step, 1.0))
    np.testing.assert_allclose(values[0], values[1][::-1], atol=1e-12)
    # Half the weight of the pixel itself lies beyond the edge: (1 + 0.39905) / 2 by the
    # normalised Gaussian exp(-x²/2) over the pixels -4 to 4.
    weights = np.exp(-(np.arange(-4, 5) ** 2) / 2)
    centre = weights[4] / weights.sum()
    assert values[0, 7] == pytest.approx((1 + centre) / 2, abs=1e-12)


def test_deform_moves_no_pixel_further_than_its_strength() -> None:
    ramp = np.linspace(0, 1, 101)[:, None] * np.ones(60)
    moved = values_of(deform(np.stack([ramp, 1 - ramp]), 4.0, seed=2))
    change = np.abs(moved[0] - ramp)
    assert change.max() <= 0.04 + 1e-9
    assert change.max() > 0.01


def test_noise_has_its_strength_in_log_ratios() -> None:
    even = np.full((2, 200, 200), 0.5)
    values = values_of(noise(even, 0.7, seed=1))
    log_ratio = np.log(values[0] / values[1])
    # The difference of two normal deviates of standard deviation 0.7; 40 000 of them.
    assert log_ratio.std() == pytest.approx(0.7 * np.sqrt(2), rel=0.02)
    assert log_ratio.mean() == pytest.approx(0, abs=0.02)


def test_noise_does_not_change_certain_pixels() -> None:
    certain = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    values = values_of(noise(certain, 2.0))
    assert values[:, :2].tolist() == [[1, 0], [0, 1]]
    assert values[0, 2] != 0.5


def test_grow_and_shrink_by_hand() -> None:
    # One row; the last region, 1, has the probabilities p.
    p = np.array([0.0, 0.0, 0.2, 0.8, 1.0, 1.0])
    image = np.stack([1 - p, p])
    grown = values_of(grow(image, 1))[1]
    np.testing.assert_allclose(grown, [0, 0.2, 0.8, 1, 1, 1], atol=1e-12)
    half = values_of(grow(image, 0.5))[1]
    np.testing.assert_allclose(half, [0, 0.1, 0.5, 0.9, 1, 1], atol=1e-12)
    shrunk = values_of(shrink(image, 2))[1]
    np.testing.assert_allclose(shrunk, [0, 0, 0, 0, 0.2, 0.8], atol=1e-12)
    other = values_of(grow(image, 1, region=0))[0]
    np.testing.assert_allclose(other, [1, 1, 1, 0.8, 0.2, 0], atol=1e-12)


def test_grow_reduces_others_in_proportion_and_shrink_adds_to_the_nearest() -> None:
    image = np.array([[0.6, 0.3, 0.0], [0.2, 0.1, 0.0], [0.2, 0.6, 1.0]])
    grown = values_of(grow(image, 1))
    np.testing.assert_allclose(grown[:, 0], [0.3, 0.1, 0.6], atol=1e-12)  # 3 to 1, as before
    crisp = np.array([[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 1, 0]], float)
    shrunk = values_of(shrink(crisp, 1))
    assert shrunk.tolist() == [[1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]]


def test_a_single_region_can_neither_grow_nor_shrink() -> None:
    alone = np.ones((1, 5))
    assert values_of(grow(alone, 2)).tolist() == alone.tolist()
    assert values_of(shrink(alone, 2)).tolist() == alone.tolist()


def test_an_unknown_region_is_named() -> None:
    with pytest.raises(InputError, match=r"one of \(0, 1, 2, 3\), found 'liver'"):
        grow(stripes((8, 8)), 1, region="liver")


def test_split_cuts_a_region_in_two() -> None:
    reference = brain_section((32, 32))
    cut = split(reference, 1, region="fluid")
    before, after = values_of(reference), values_of(cut)
    assert cut.regions[-1] == "fluid 2"
    np.testing.assert_allclose(after[1] + after[4], before[1], atol=1e-7)
    assert np.array_equal(np.delete(after, (1, 4), axis=0), np.delete(before, 1, axis=0))
    assert after[4].sum() == pytest.approx(before[1].sum() / 2, rel=0.5)


def test_split_names_are_new() -> None:
    assert split(stripes((8, 8)), 2).regions == (0, 1, 2, 3, 4, 5)
    twice = split(brain_section((8, 8)), 2, region="fluid").regions
    assert twice[-2:] == ("fluid 2", "fluid 3")


def test_split_is_undone_by_merging() -> None:
    reference = voronoi((24, 24), regions=3)
    result = compare(reference, split(reference, 2), merge="both")
    assert result.score == pytest.approx(1, abs=1e-6)
    assert len(result.merges) == 2
    assert result.matched_score < 0.95


def test_merge_adds_probabilities() -> None:
    reference = voronoi((24, 24), regions=4)
    joined = merge(reference, 1, seed=2)
    assert len(joined.regions) == 3
    gone = (set(reference.regions) - set(joined.regions)).pop()
    volumes = dict(zip(reference.regions, values_of(reference).sum(axis=(1, 2)), strict=True))
    after = dict(zip(joined.regions, values_of(joined).sum(axis=(1, 2)), strict=True))
    grown = [label for label in joined.regions if after[label] > volumes[label] + 1]
    assert after[grown[0]] == pytest.approx(volumes[grown[0]] + volumes[gone], rel=1e-5)
    assert len(merge(reference, 9).regions) == 1


@pytest.mark.parametrize("similarity", ["absolute", "aitchison"])
def test_permuted_labels_score_1_once_matched(similarity: str) -> None:
    reference = voronoi((24, 24), regions=5)
    shuffled = permute(reference, 7, seed=1)
    assert shuffled.regions == reference.regions
    assert sorted(map(bytes, values_of(shuffled))) == sorted(map(bytes, values_of(reference)))
    assert compare(reference, shuffled, similarity=similarity).score == 1
    assert compare(reference, shuffled, similarity=similarity, match="labels").score < 0.9


def test_label_maps_and_arrays_become_probabilities() -> None:
    assert values_of(permute([7, 5, 5], 1)).tolist() == [[1, 0, 0], [0, 1, 1]]
    named = Segmentation.from_labels([1, 2], names={1: "left", 2: "right"})
    assert blur(named, 1.0).regions == ("left", "right")


def test_probabilities_use_the_options_of_the_segmentation() -> None:
    foreground = Segmentation.from_probabilities([0.25, 1.0], axis=None)
    assert probabilities(foreground)[0].tolist() == [[0.75, 0.0], [0.25, 1.0]]
    logits = Segmentation.from_logits([[0.0], [np.log(3)]])
    np.testing.assert_allclose(probabilities(logits)[0], [[0.25], [0.75]], atol=1e-12)
    missing = Segmentation.from_probabilities([[0.5, 0.0], [0.25, 0.0]], sums="background")
    values, regions = probabilities(missing)
    assert values.tolist() == [[0.5, 0], [0.25, 0], [0.25, 1]]
    assert regions == (0, 1, "background")
    scaled = Segmentation.from_probabilities([[0.125], [0.375]], sums="normalise")
    assert probabilities(scaled)[0].tolist() == [[0.25], [0.75]]


def test_invalid_probabilities_are_rejected() -> None:
    with pytest.raises(InputError, match=r"probabilities sum to 0\.75 at pixel"):
        blur([[0.5, 0.25], [0.5, 0.5]], 1)
    with pytest.raises(InputError, match=r"^segmentation: must contain labels"):
        blur(np.array(["a", "b"]), 1)


def test_ignored_labels_are_rejected() -> None:
    with pytest.raises(InputError, match="ignores labels"):
        blur(Segmentation.from_labels([1, 255], ignore=[255]), 1)


def test_float64_stays_float64() -> None:
    values = values_of(blur(np.array([[0.25, 1], [0.75, 0]]), 1))
    assert values.dtype == np.float64


def test_demo_pair_shows_over_segmentation() -> None:
    reference, prediction = demo_pair(shape=(32, 36, 30))
    again = demo_pair(shape=(32, 36, 30))[1]
    assert values_of(prediction).tobytes() == values_of(again).tobytes()
    assert reference.geometry is not None and reference.geometry is prediction.geometry
    assert reference.geometry.spacing == (5, 5, 5)
    for side in (reference, prediction):
        np.testing.assert_allclose(sums(side), 1, atol=2 * ROUNDING)
    result = compare(reference, prediction, merge="both")
    assert len(result.merges) == 3
    assert result.matched_score < 0.9 < result.score < 0.99


def test_importing_synthesis_is_light() -> None:
    heavy = "{'scipy', 'matplotlib', 'skimage', 'numba', 'pandas'}"
    code = f"import sys, probdice.synthesis; print(sorted({heavy} & set(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
