"""Other metrics, compared with hand computations, reference implementations and other tools."""

import doctest
import json
import pickle
from fractions import Fraction
from itertools import permutations
from math import comb, isnan, log2
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pytest import approx

from probdice import Comparison, InputError, Overlap, Segmentation, compare, overlap
from probdice.metrics.registry import description_of

EXACT = {"rel": 1e-12, "abs": 1e-12}

# Results of torchmetrics 1.9.0 and MONAI 1.6.1 for these two maps, by the named functions.
REFERENCE = np.array(
    [
        [3, 2, 2, 3, 2, 3, 3, 0],
        [0, 1, 1, 3, 3, 0, 1, 3],
        [0, 3, 0, 1, 3, 1, 1, 1],
        [2, 1, 3, 1, 1, 2, 2, 2],
        [2, 3, 3, 3, 2, 2, 1, 3],
        [1, 0, 3, 0, 3, 2, 0, 0],
    ]
)
PREDICTION = np.array(
    [
        [2, 2, 2, 2, 2, 2, 2, 0],
        [0, 1, 1, 2, 2, 0, 1, 2],
        [0, 0, 0, 2, 2, 2, 1, 1],
        [2, 2, 2, 1, 1, 2, 2, 2],
        [2, 2, 0, 2, 2, 2, 1, 2],
        [1, 0, 2, 0, 1, 2, 0, 0],
    ]
)

maps = hnp.arrays(np.int64, 24, elements=st.integers(0, 4))


def random_maps(seed, shape=(30, 40), labels=(7, 9)):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, labels[0], shape)
    return a, np.where(
        rng.random(shape) < 0.6, a * 3 % labels[1], rng.integers(0, labels[1], shape)
    )


def table_of(a, b):
    return np.array([[np.sum((a == i) & (b == j)) for j in np.unique(b)] for i in np.unique(a)])


# -- by hand ---------------------------------------------------------------------------------------


def test_a_region_split_in_two_by_hand():
    indices = overlap([1, 1, 2, 2, 2, 2], [5, 5, 7, 7, 8, 8]).indices()
    assert indices.rand == 11 / 15  # of 15 pairs of pixels, the 4 across 7 and 8 disagree
    assert indices.rand_precision == 1
    assert indices.rand_recall == 3 / 7
    assert indices.adjusted_rand == approx(4 / 9, **EXACT)
    assert indices.adapted_rand_error == 1 - 24 / 32
    assert indices.variation_split == approx(2 / 3, **EXACT)
    assert indices.variation_merge == 0
    assert indices.mutual_information == approx(log2(3) - 2 / 3, **EXACT)
    assert indices.nmi_min == approx(1, **EXACT)
    assert indices.nmi_joint == approx((log2(3) - 2 / 3) / log2(3), **EXACT)
    assert indices.covering == approx({"reference": 2 / 3, "prediction": 2 / 3}, **EXACT)
    assert indices.achievable_accuracy == approx({"reference": 1, "prediction": 2 / 3}, **EXACT)
    assert indices.under_segmentation_error == 0
    assert indices.over_segmentation_error == approx(4 / 6, **EXACT)
    assert indices.accuracy == approx(4 / 6, **EXACT)
    # Groups: 1 ↔ 5, 2 ↔ 7 with half of it, 8 alone.
    assert indices.mean_iou == approx(1.5 / 3, **EXACT)
    assert indices.weighted_iou == approx((2 + 4 / 2) / 6, **EXACT)
    assert indices.mean_dice == approx((1 + 2 / 3) / 3, **EXACT)
    assert indices.kappa == approx((4 / 6 - 12 / 36) / (1 - 12 / 36), **EXACT)


def test_values_published_by_scikit_learn():
    """The examples of its documentation."""
    indices = overlap([0, 0, 1, 2], [0, 0, 1, 1]).indices()
    assert indices.rand == approx(0.8333333333333334, **EXACT)
    assert indices.adjusted_rand == approx(0.5714285714285714, **EXACT)
    assert overlap([0, 0, 1, 1], [0, 0, 1, 2]).indices().adjusted_rand == approx(4 / 7, **EXACT)
    assert overlap([0, 0, 0, 0], [0, 1, 2, 3]).indices().adjusted_rand == 0
    assert overlap([0, 0, 1, 1], [0, 1, 0, 1]).indices().adjusted_rand == -0.5
    assert overlap([0, 0, 1, 1], [1, 1, 0, 0]).indices().adjusted_mutual_information() == 1
    assert overlap([0, 0, 0, 0], [0, 1, 2, 3]).indices().adjusted_mutual_information() == 0
    actual = ["negative", "positive", "negative", "neutral", "positive"]
    predicted = ["negative", "positive", "negative", "neutral", "negative"]
    words = sorted(set(actual))
    numbers = [[words.index(word) for word in side] for side in (actual, predicted)]
    assert compare(*numbers, match="labels").indices().kappa == approx(0.6875, **EXACT)


def test_values_published_by_scikit_image():
    """The examples of its tests, computed as in docs/explanation/indices.md."""
    assert overlap([1, 2, 3, 4], [1, 1, 8, 8]).indices().variation_of_information == 1
    ignoring = Segmentation.from_labels([[1, 0], [2, 3]], ignore=0)
    indices = overlap(ignoring, [[1, 1], [1, 0]]).indices()
    assert indices.variation_split == 0
    assert indices.variation_merge == approx(2 / 3, **EXACT)
    indices = overlap([[2, 1], [1, 2]], [[1, 2], [3, 1]]).indices()
    precision, recall = indices.rand_precision, indices.rand_recall
    assert (precision, recall) == (1.0, 0.5)  # scikit-image returns them in the opposite order
    assert 1 - 2 * precision * recall / (precision + recall) == approx(1 / 3, **EXACT)


def test_values_of_torchmetrics_and_monai():
    result = compare(REFERENCE, PREDICTION, match="labels", background=0)
    indices = result.indices()
    assert indices.rand == approx(0.7251772880554199, abs=1e-7)  # clustering.rand_score
    assert indices.adjusted_rand == approx(0.3879544138908386, abs=1e-7)
    assert indices.nmi_arithmetic == approx(0.5499561429023743, abs=1e-7)
    assert indices.adjusted_mutual_information() == approx(0.5209798216819763, abs=1e-7)
    assert indices.kappa == approx(0.4899328947067261, abs=1e-7)  # cohen_kappa
    assert indices.mean_iou == approx(0.4794742166996002, abs=1e-7)  # jaccard_index, macro
    assert indices.weighted_iou == approx(0.41985023021698, abs=1e-7)  # the same, weighted
    # DiceMetric, reduction="none": 0.9, 0.8182, 0.5789, 0
    assert indices.mean_dice == approx((0.9 + 9 / 11 + 11 / 19) / 4, **EXACT)
    assert indices.mean_foreground_dice == approx((9 / 11 + 11 / 19) / 3, **EXACT)


# -- reference implementations and other tools -----------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_like_scikit_learn_on_random_maps(seed):
    metrics = pytest.importorskip("sklearn.metrics")
    a, b = random_maps(seed)
    x, y = a.ravel(), b.ravel()
    indices = overlap(a, b).indices()
    confusion = metrics.pair_confusion_matrix(x, y)
    assert indices.rand == approx(metrics.rand_score(x, y), **EXACT)
    assert indices.adjusted_rand == approx(metrics.adjusted_rand_score(x, y), **EXACT)
    assert indices.rand_precision == approx(confusion[1, 1] / confusion[:, 1].sum(), **EXACT)
    assert indices.rand_recall == approx(confusion[1, 1] / confusion[1].sum(), **EXACT)
    information = metrics.mutual_info_score(x, y) / np.log(2)
    assert indices.mutual_information == approx(information, **EXACT)
    for average in ("min", "max", "arithmetic", "geometric"):
        normalised = metrics.normalized_mutual_info_score(x, y, average_method=average)
        assert getattr(indices, f"nmi_{average}") == approx(normalised, **EXACT)
        adjusted = metrics.adjusted_mutual_info_score(x, y, average_method=average)
        ours = indices.adjusted_mutual_information(average=average)
        assert ours == approx(adjusted, **EXACT)
    indices = compare(a, b, match="labels").indices()
    assert indices.accuracy == approx(metrics.accuracy_score(x, y), **EXACT)
    assert indices.kappa == approx(metrics.cohen_kappa_score(x, y), **EXACT)
    assert indices.mean_iou == approx(metrics.jaccard_score(x, y, average="macro"), **EXACT)
    assert indices.weighted_iou == approx(metrics.jaccard_score(x, y, average="weighted"), **EXACT)
    assert indices.mean_dice == approx(metrics.f1_score(x, y, average="macro"), **EXACT)


@pytest.mark.parametrize("seed", range(4))
def test_like_scikit_image_on_random_maps(seed):
    metrics = pytest.importorskip("skimage.metrics")
    a, b = random_maps(seed)
    indices = overlap(Segmentation.from_labels(a, ignore=0), b).indices()
    split, merge = metrics.variation_of_information(a, b, ignore_labels=[0])
    assert indices.variation_split == approx(split, **EXACT)
    assert indices.variation_merge == approx(merge, **EXACT)
    error, recall, precision = metrics.adapted_rand_error(a, b, ignore_labels=[0])
    assert indices.rand_precision == approx(precision, **EXACT)
    assert indices.rand_recall == approx(recall, **EXACT)
    f1 = 2 * precision * recall / (precision + recall)
    assert 1 - f1 == approx(error, **EXACT)


@pytest.mark.parametrize("seed", range(3))
def test_segments_by_their_definitions(seed):
    a, b = random_maps(seed, shape=(9, 11))
    indices = overlap(a, b).indices()
    sets = [[np.flatnonzero(side == label) for label in np.unique(side)] for side in (a, b)]
    for first, second, side, across in (
        (*sets, "reference", "prediction"),
        (*sets[::-1], "prediction", "reference"),
    ):
        covered = labelled = leaked = 0.0
        for one in first:
            shared = [np.intersect1d(one, two).size for two in second]
            unions = [np.union1d(one, two).size for two in second]
            covered += one.size * max(n / u for n, u in zip(shared, unions, strict=True))
            labelled += max(shared)
            leaked += sum(min(n, one.size - n) for n in shared)
        assert indices.covering[side] == approx(covered / a.size, **EXACT)
        assert indices.achievable_accuracy[across] == approx(labelled / a.size, **EXACT)
        error = "over" if side == "reference" else "under"
        assert getattr(indices, f"{error}_segmentation_error") == approx(leaked / a.size, **EXACT)
    assert indices.explained == compare(a, b).explained


def snemi_error(reference, prediction):
    """The error by the steps of SNEMI3D_metrics, which adds some counts divided by n."""
    n = reference.size
    table = np.zeros((reference.max() + 1, prediction.max() + 1))
    np.add.at(table, (reference.ravel(), prediction.ravel()), 1)
    a, b, c = table[1:].sum(axis=1), table[1:, 1:].sum(axis=0), table[1:, 0]
    together = (table[1:, 1:] ** 2).sum() + c.sum() / n
    precision = together / ((b**2).sum() + c.sum() / n)
    recall = together / (a**2).sum()
    return 1 - 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize("seed", range(3))
def test_the_adapted_rand_error_follows_the_script_of_snemi(seed):
    a, b = random_maps(seed)
    error = overlap(a, b).indices(background=0).adapted_rand_error
    assert error == approx(snemi_error(a, b), **EXACT)
    without = overlap(a, b).indices().adapted_rand_error
    assert without == approx(snemi_error(a + 1, b + 1), **EXACT)


def test_expected_information_is_the_mean_over_all_ways_to_shuffle():
    a, b = [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 1]
    values = [overlap(list(order), b).indices().mutual_information for order in permutations(a)]
    indices = overlap(a, b).indices()
    mean = float(np.mean(values))
    entropy = (indices.mutual_information * 2 + indices.variation_of_information) / 2
    expected = (indices.mutual_information - mean) / (entropy - mean)
    assert indices.adjusted_mutual_information() == approx(expected, **EXACT)


def test_expected_information_of_large_volumes_keeps_its_digits():
    """Expected values use integers, because floating-point factorials lose eight digits."""
    import mpmath

    rng = np.random.default_rng(0)
    a = rng.permutation(np.repeat([0, 1, 2], [40_000, 10_000, 7]))
    b = np.roll(a, 1)
    pixels = a.size
    indices = overlap(a, b).indices()
    table = table_of(a, b)
    with mpmath.workdps(40):
        expected = mpmath.mpf(0)
        for r in table.sum(axis=1).tolist():
            for c in table.sum(axis=0).tolist():
                # All other overlaps together have a probability below 1e-30.
                mean, width = r * c / pixels, 12 * (r * c / pixels) ** 0.5 + 60
                low = max(1, r + c - pixels, int(mean - width))
                for n in range(low, min(r, c, int(mean + width)) + 1):
                    ways = mpmath.binomial(r, n) * mpmath.binomial(pixels - r, c - n)
                    share = ways / mpmath.binomial(pixels, c)
                    expected += share * n / pixels * mpmath.log(mpmath.mpf(pixels) * n / (r * c), 2)
        joint = indices.variation_of_information + indices.mutual_information
        entropy = (joint + indices.mutual_information) / 2
        adjusted = (indices.mutual_information - expected) / (entropy - expected)
    assert indices.adjusted_mutual_information() == approx(float(adjusted), rel=1e-9, abs=1e-13)


# -- the background --------------------------------------------------------------------------------


def test_mean_foreground_dice_counts_false_classes_and_skips_absent_ones():
    names = {0: "nothing", 1: "liver", 2: "spleen", 3: "kidney"}
    reference = Segmentation.from_labels([0, 0, 1, 1, 1, 1], names=names)
    prediction = Segmentation.from_labels([0, 2, 1, 1, 0, 0], names=names)
    for background in (0, "nothing"):
        indices = compare(reference, prediction, match="labels", background=background).indices()
        # Liver 2/3, spleen 0 because it was invented; no side has a kidney.
        assert indices.mean_foreground_dice == approx((2 / 3 + 0) / 2, **EXACT)
        assert indices.mean_dice == approx((2 / 5 + 2 / 3 + 0) / 3, **EXACT)


def test_without_a_background_nothing_is_foreground():
    assert isnan(overlap([0, 1], [0, 1]).indices().mean_foreground_dice)
    assert isnan(overlap([0, 0], [0, 0]).indices(background=0).mean_foreground_dice)


def test_no_region_is_matched_to_the_background():
    result = compare([1, 1, 1, 0], [0, 0, 0, 7], background=0)
    groups = [(group.reference, group.prediction) for group in result.groups]
    assert groups == [((0,), (0,)), ((1,), ()), ((), (7,))]
    assert result.indices().mean_foreground_dice == 0


def test_the_background_of_channels_is_a_channel():
    p = [[0.9, 0.2, 0.0], [0.1, 0.8, 1.0]]
    q = [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    indices = compare(p, q, match="labels", background=0).indices()
    assert indices.mean_foreground_dice == approx(2 * 1.8 / 3.9, **EXACT)


@pytest.mark.parametrize("background", [True, 1.5, [0]])
def test_a_background_is_one_label(background):
    with pytest.raises(InputError, match="background must be a label, a name, or"):
        overlap([0, 1], [0, 1]).indices(background=background)


def test_a_name_that_no_region_has_is_rejected():
    with pytest.raises(InputError, match="background=\"nil\": no region is called 'nil'"):
        overlap([0, 1], [0, 1]).indices(background="nil")


# -- probabilities ---------------------------------------------------------------------------------


def test_indices_of_label_maps_are_nan_for_probabilities_with_a_note():
    p = [[0.9, 0.7, 0.2, 0.1], [0.1, 0.3, 0.8, 0.9]]
    q = [[0.6, 0.5, 0.1, 0.0], [0.4, 0.5, 0.9, 1.0]]
    result = compare(p, q)
    indices = result.indices()
    assert indices.accuracy == approx(result.score, **EXACT)
    groups = result.groups
    assert indices.mean_iou == approx(sum(group.jaccard for group in groups) / 2, **EXACT)
    chance = (1.9 * 1.2 + 2.1 * 2.8) / 16
    assert indices.kappa == approx((result.score - chance) / (1 - chance), **EXACT)
    assert indices.explained == result.explained
    assert isnan(indices.rand) and isnan(indices.variation_split)
    assert isnan(indices.covering["reference"]) and isnan(indices.adjusted_mutual_information())
    assert [note.kind for note in indices.notes] == ["soft"]
    assert "defined only for two label maps" in str(indices.notes[0])


def test_one_hot_probabilities_agree_with_their_label_map():
    a, b = random_maps(1, shape=(6, 7), labels=(3, 4))
    one_hot = (b == np.arange(4)[:, None, None]).astype(np.float64)
    soft, crisp = (compare(a, side, background=0).indices() for side in (one_hot, b))
    for name in ("accuracy", "kappa", "mean_iou", "weighted_iou", "mean_foreground_dice"):
        assert getattr(soft, name) == approx(getattr(crisp, name), **EXACT)


def test_under_aitchison_shares_come_from_the_groups():
    rng = np.random.default_rng(0)
    p, q = (side / side.sum(axis=0) for side in rng.random((2, 3, 50)))
    match = {0: 0, 1: 1, 2: 2}
    absolute = compare(p, q, match=match).indices()
    aitchison = compare(p, q, match=match, similarity="aitchison").indices()
    assert aitchison.accuracy == approx(absolute.accuracy, **EXACT)
    assert aitchison.kappa == approx(absolute.kappa, **EXACT)


def test_without_images_explained_of_probabilities_is_nan_with_a_note():
    p = [[0.9, 0.2], [0.1, 0.8]]
    indices = overlap(p, p).indices()
    assert isnan(indices.explained["reference"])
    assert [note.kind for note in indices.notes] == ["soft", "images"]


# -- edges -----------------------------------------------------------------------------------------


def test_undefined_indices_are_nan():
    indices = overlap([3, 3], [5, 5]).indices()
    assert indices.rand == 1
    assert isnan(indices.adjusted_rand) and isnan(indices.nmi_arithmetic)
    assert isnan(indices.adjusted_mutual_information()) and isnan(indices.kappa)
    assert isnan(overlap([3], [5]).indices().rand)
    assert isnan(overlap([1, 2], [5, 6]).indices().rand_precision)


def test_a_hundred_thousand_labels_need_no_table():
    labels = np.repeat(np.arange(100_000, dtype=np.int32), 4)
    indices = overlap(labels, np.roll(labels, 2)).indices(background=0)
    assert indices.variation_split == approx(1, **EXACT)
    assert indices.covering["reference"] == approx(1 / 3, **EXACT)
    # By chance, nearly all overlaps are single pixels, so E = log₂(400,000 / 16) bits. The mutual
    # information is 1 bit larger, and the entropy of 100,000 equal regions is 2 bits larger.
    assert indices.adjusted_mutual_information() == approx(1 / 2, abs=1e-4)


def test_squares_of_pixel_counts_do_not_overflow_64_bits():
    def scaled(factor):
        content = overlap([1, 1, 2, 2, 2], [5, 6, 6, 6, 5]).to_dict()
        content["savings"] = [count * factor for count in content["savings"]]
        content["pixels"] *= factor
        for side in ("reference", "prediction"):
            content[side]["volumes"] = [volume * factor for volume in content[side]["volumes"]]
        return Overlap.from_dict(content).indices()

    large = scaled(10**11)
    assert large.adapted_rand_error == scaled(1).adapted_rand_error
    pairs = Fraction((4 + 1 + 1 + 1) * 10**22 - 5 * 10**11, (4 + 9) * 10**22 - 5 * 10**11)
    assert large.rand_recall == float(pairs)


def test_average_must_be_known():
    with pytest.raises(InputError, match="average must be"):
        overlap([1, 2], [1, 2]).indices().adjusted_mutual_information(average="mean")


def test_a_result_from_json_has_the_same_indices():
    a, b = random_maps(0)
    result = compare(a, b, merge="both", background=0)
    again = Comparison.from_json(result.to_json())
    assert again.indices() == result.indices()
    indices = result.indices()
    assert pickle.loads(pickle.dumps(indices)) == indices


def test_to_dict_has_every_number_once_and_fits_json():
    numbers = overlap([1, 1, 2, 2], [5, 5, 5, 8]).indices(background=1).to_dict()
    assert json.loads(json.dumps(numbers)) == numbers
    assert all(isinstance(value, float) for value in numbers.values())
    assert {"rand", "covering_reference", "explained_prediction"} <= set(numbers)


def test_printed_indices_name_missing_numbers():
    text = repr(overlap([[0.5, 1.0], [0.5, 0.0]], [1, 2]).indices(background=1))
    assert text.startswith("Indices (background=1)\n  rand ")
    assert "note: A side contains probabilities." in text


def test_the_examples_of_the_documentation_run():
    page = Path(__file__).parent.parent / "docs" / "explanation" / "indices.md"
    assert doctest.testfile(str(page), module_relative=False) == doctest.TestResults(0, 9)


# -- properties ------------------------------------------------------------------------------------


@given(maps, maps)
def test_bounds_and_symmetry(a, b):
    there, back = overlap(a, b).indices(), overlap(b, a).indices()
    for name, value in there.to_dict().items():
        if isnan(value) or name in ("variation_of_information", "mutual_information"):
            continue
        least = -1 if name in ("adjusted_rand", "kappa") else 0
        most = 3 if name.startswith(("variation", "under", "over")) else 1
        assert least <= value <= most, name
    assert there.rand == back.rand
    assert there.adjusted_rand == approx(back.adjusted_rand, nan_ok=True, **EXACT)
    assert there.rand_precision == approx(back.rand_recall, nan_ok=True)
    assert there.variation_split == approx(back.variation_merge, **EXACT)
    assert there.covering["reference"] == approx(back.covering["prediction"], **EXACT)
    assert there.under_segmentation_error == back.over_segmentation_error
    assert there.accuracy == back.accuracy
    assert there.accuracy == compare(a, b).score


def test_rankings_sort_every_index_in_its_direction():
    image = np.array([[0, 0, 1], [1, 2, 2]])
    values = compare(image, image, background=0).indices().to_dict()
    lower_is_better = [name for name in values if not description_of(name).higher_is_better]
    assert lower_is_better == [name for name, value in values.items() if value == 0]


@given(maps, st.permutations(range(5)))
def test_a_renamed_map_is_perfect(a, order):
    indices = overlap(a, np.array(order)[a]).indices()
    for name in ("rand", "nmi_min", "nmi_max", "nmi_joint", "accuracy", "mean_iou", "mean_dice"):
        assert getattr(indices, name) == 1 or isnan(getattr(indices, name))
    assert indices.variation_of_information == 0
    assert indices.adapted_rand_error == 0
    assert indices.covering == indices.achievable_accuracy == {"reference": 1, "prediction": 1}
    assert indices.under_segmentation_error == indices.over_segmentation_error == 0
    assert isnan(indices.adjusted_rand) or indices.adjusted_rand == 1
    adjusted = indices.adjusted_mutual_information()
    assert isnan(adjusted) or adjusted == approx(1, **EXACT)


@given(maps, st.integers(0, 4))
def test_a_refinement_splits_and_does_not_merge(a, label):
    finer = np.where((a == label) & (np.arange(a.size) % 2 == 0), 9, a)
    indices = overlap(a, finer).indices()
    assert indices.variation_merge == 0
    assert indices.achievable_accuracy["reference"] == 1
    assert indices.under_segmentation_error == 0
    assert isnan(indices.rand_precision) or indices.rand_precision == 1


@given(maps, maps)
def test_pairs_of_pixels_by_counting_them(a, b):
    indices = overlap(a, b).indices()
    same = [x[:, None] == x for x in (a, b)]
    upper = np.triu_indices(a.size, 1)
    first, second = (matrix[upper] for matrix in same)
    assert indices.rand == approx(np.mean(first == second), **EXACT)
    assert first.size == comb(a.size, 2)
    if second.any():
        assert indices.rand_precision == approx(np.mean(first[second]), **EXACT)
    else:
        assert isnan(indices.rand_precision)


def test_kappa_of_one_group_is_undefined_for_probabilities_too():
    prediction = np.full((3, 7), [[0.1], [0.3], [0.6]])  # rounding made κ 1.5
    result = compare([0] * 7, prediction, merge="both")
    assert len(result.groups) == 1
    assert np.isnan(result.indices().kappa)
