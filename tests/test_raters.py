"""Several raters: common regions, the mean, STAPLE and inter-rater agreement."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import probdice
from probdice import Geometry, InputError, Segmentation, TooLargeError
from probdice.options import METHODS, Method
from probdice.raters.fusing import (
    FUSIONS,
    Evidence,
    Fusion,
    Model,
    _confusion_matrices,
    expected_counts,
    staple,
)
from probdice.raters.panel import RaterMatch, panel_of
from probdice.raters.region_matching import match_regions


def noisy(labels, share, regions, seed):
    """A label map with some pixels replaced at random."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(labels.shape) < share
    return np.where(wrong, rng.integers(0, regions, labels.shape), labels)


def soft(labels, regions, seed):
    """Probabilities whose largest values mostly follow a label map."""
    rng = np.random.default_rng(seed)
    values = rng.random((regions, *labels.shape)) + 2 * (
        labels == np.arange(regions)[:, None, None]
    )
    return values / values.sum(axis=0)


def by_content(segmentation):
    """The maps of all regions, independent of labels."""
    return sorted(row.tobytes() for row in segmentation.probabilities())


TRUTH = np.repeat(np.repeat(np.arange(6).reshape(2, 3), 5, axis=0), 4, axis=1)
PEOPLE = [noisy(TRUTH, share, 6, seed) for seed, share in enumerate((0.1, 0.2, 0.3, 0.5))]


def test_the_mean_does_not_depend_on_the_labels_of_raters():
    renamed = [np.array([3, 5, 1, 0, 9, 7])[PEOPLE[1]], PEOPLE[0], 40 + PEOPLE[2]]
    mean = probdice.consensus(renamed).segmentation
    assert len(mean.regions) == 6
    counts = sum((np.arange(6)[:, None, None] == rater).astype(int) for rater in PEOPLE[:3])
    expected_maps = sorted((row / np.float32(3)).astype(np.float32).tobytes() for row in counts)
    assert by_content(mean) == expected_maps


@pytest.mark.parametrize("method", ["mean", "staple"])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_order_and_labels_of_raters_do_not_matter(method, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    raters = [noisy(TRUTH, 0.3, int(n), int(rng.integers(99))) for n in rng.integers(1, 8, 4)]
    before = probdice.consensus(raters, method=method)
    order = rng.permutation(4)
    renamed = [rng.permutation(9)[raters[k]] for k in order]
    after = probdice.consensus(renamed, method=method)
    assert by_content(before.segmentation) == by_content(after.segmentation)
    first, second = probdice.agreement(raters), probdice.agreement(renamed)
    assert np.array_equal(first.score[np.ix_(order, order)], second.score)
    assert [first.others[k].score for k in order] == [one.score for one in second.others]


def test_order_and_channels_of_soft_raters_do_not_matter():
    raters = [soft(rater, 6, seed) for seed, rater in enumerate(PEOPLE[:3])]
    rng = np.random.default_rng(5)
    for method in ("mean", "staple"):
        before = probdice.consensus(raters, method=method).segmentation.probabilities()
        exchanged = [raters[k][rng.permutation(6)] for k in (2, 0, 1)]
        after = probdice.consensus(exchanged, method=method).segmentation.probabilities()
        ordered = [np.array(sorted(rows.reshape(6, -1).tolist())) for rows in (before, after)]
        assert np.allclose(*ordered, rtol=0, atol=1e-12)


def test_symmetric_raters_are_ordered_by_content():
    # Every rater agrees equally well with every other one, and every region overlaps two others
    # equally: only the positions of regions break the tie.
    raters = [np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0]), np.array([0, 1, 0, 1])]
    results = set()
    for order in ([0, 1, 2], [1, 2, 0], [2, 1, 0]):
        for swapped in (0, 1):
            given_maps = [raters[k] if k else (raters[k] + swapped) % 2 for k in order]
            results.add(tuple(by_content(probdice.consensus(given_maps).segmentation)))
    assert len(results) == 1


def test_a_region_of_some_raters_is_a_region_of_the_consensus():
    raters = [[1, 1, 1, 1, 2, 2], [1, 1, 1, 3, 2, 2], [5, 5, 5, 6, 4, 4]]
    consensus = probdice.consensus(raters)
    maps = dict(
        zip(consensus.segmentation.regions, consensus.segmentation.probabilities(), strict=True)
    )
    assert consensus.segmentation.regions == (1, 2, 3)
    assert maps[3].tolist() == pytest.approx([0, 0, 0, 2 / 3, 0, 0])
    assert [rater.correspondence for rater in consensus.raters] == [
        {1: 1, 2: 2},
        {1: 1, 3: 3, 2: 2},
        {5: 1, 6: 3, 4: 2},
    ]


def test_a_second_round_of_matching_improves_the_first():
    # Rater 1 pairs its region 0 with either region of rater 0; only rater 2 breaks the tie.
    volumes = [np.array([2, 2]), np.array([4]), np.array([4])]

    def pairs(rows, columns, savings):
        from probdice.method.overlap import Pairs

        return Pairs(*(np.array(part) for part in (rows, columns, savings)))

    tables = {
        (0, 1): pairs([0, 1], [0, 0], [2, 2]),
        (0, 2): pairs([0, 1], [0, 0], [1, 3]),
        (1, 2): pairs([0], [0], [4]),
    }
    tables |= {
        (j, i): pairs(table.columns, table.rows, table.savings) for (i, j), table in tables.items()
    }
    first, second, third = match_regions(volumes, tables)
    assert second == third == [first[1]]


def test_equal_labels_are_matched_on_request():
    consensus = probdice.consensus([[1, 1, 2, 2], [2, 2, 1, 1]], match="labels")
    assert consensus.segmentation.probabilities().tolist() == [[0.5] * 4] * 2
    assert probdice.agreement([[1, 1, 2, 2], [2, 2, 1, 1]], match="labels").score[0, 1] == 0


def named(labels, names):
    return Segmentation.from_labels(np.array(labels), names=names)


SWAPPED = {
    "anna": named([1, 1, 1, 2], {1: "a", 2: "b"}),
    "ben": named([2, 2, 2, 1], {1: "b", 2: "a"}),  # the same regions by name, none by number
}


def test_regions_of_all_raters_correspond_by_name_if_every_rater_has_names():
    agreement = probdice.agreement(SWAPPED, match="labels")
    assert agreement.score.tolist() == [[1, 1], [1, 1]]
    assert [one.score for one in agreement.others] == [1, 1]
    assert {region.label: region.dice[0, 1] for region in agreement.regions} == {"a": 1, "b": 1}


@pytest.mark.parametrize("order", [("anna", "ben", "eva"), ("eva", "ben", "anna")])
def test_regions_of_all_raters_correspond_by_number_if_one_rater_has_no_names(order):
    raters = {**SWAPPED, "eva": [1, 1, 1, 2]}
    agreement = probdice.agreement({name: raters[name] for name in order}, match="labels")
    places = {name: k for k, name in enumerate(order)}
    anna, ben, eva = (places[name] for name in ("anna", "ben", "eva"))
    assert agreement.score[anna, ben] == agreement.score[ben, eva] == 0
    assert agreement.score[anna, eva] == 1
    # The mean of ben and eva is 0.5 everywhere, and that of anna and eva equals anna.
    assert [agreement.others[k].score for k in (anna, ben, eva)] == [0.5, 0, 0.5]
    for region in agreement.regions:
        assert region.dice[anna, ben] == 0 and region.dice[anna, eva] == 1
    consensus = probdice.consensus(raters, match="labels")
    assert consensus.segmentation.labels == (1, 2)
    two_thirds = pytest.approx([2 / 3, 2 / 3, 2 / 3, 1 / 3])
    assert consensus.segmentation.probabilities()[0].tolist() == two_thirds
    assert consensus.raters[1].correspondence.keys() == {"a", "b"}  # names are still displayed


def test_a_region_keeps_its_name_if_another_region_gets_its_number():
    raters = [
        named([1, 1, 1, 2], {1: "a", 2: "c"}),
        named([1, 1, 1, 2], {1: "b", 2: "c"}),
        named([1, 1, 1, 2], {1: "a", 2: "c"}),
        named([1, 1, 2, 2], {1: "b", 2: "c"}),
    ]
    agreement = probdice.agreement(raters, match="labels")
    assert {region.label for region in agreement.regions} == {"a", "b", "c"}
    # By name, the scores of the second rater are 1/4, 1/4 and 3/4.
    assert agreement.others[1].score == pytest.approx(5 / 12)
    assert agreement.others[0].score == pytest.approx((1 / 4 + 1 + 1 / 4) / 3)


def test_channels_that_have_only_a_name_are_not_matched_by_their_index():
    # The unused channel 0 has no number, and must not be taken for region 0.
    values = np.array([[0.0, 0.0], [0.9, 0.2], [0.1, 0.8]])
    soft = Segmentation.from_probabilities(values, labels=[None, 0, 1], names=["x", None, None])
    agreement = probdice.agreement({"soft": soft, "eva": [0, 1], "ida": [0, 1]}, match="labels")
    assert agreement.score[0].tolist() == pytest.approx([1, 0.85, 0.85])
    assert agreement.others[0].score == pytest.approx(0.85)


@pytest.mark.parametrize("match", get_args(RaterMatch))
@pytest.mark.parametrize("background", [0, "air"])
@pytest.mark.parametrize("with_names", [[0], [2], [0, 1, 2]])
def test_the_name_of_the_background_applies_to_raters_without_names(match, background, with_names):
    labels = [0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [0, 0, 0, 0, 1]
    names = [{0: "air", 1: "bone"} if k in with_names else {} for k in range(3)]
    raters = [named(*pair) for pair in zip(labels, names, strict=True)]
    agreement = probdice.agreement(raters, match=match, background=background)
    dice = agreement.foreground_dice[np.triu_indices(3, 1)]
    assert dice.tolist() == pytest.approx([4 / 5, 2 / 3, 1 / 2])
    # The means of the others at the pixels of the bone have the volumes 2, 1.5 and 2.5.
    others = [one.foreground_dice for one in agreement.others]
    assert others == pytest.approx([2 * 1.5 / 4, 2 * 1.5 / 4.5, 2 * 1 / 3.5])
    consensus = probdice.consensus(raters, match=match, background=background)
    assert consensus.segmentation.regions[consensus.background] == "air"


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_raters_with_other_names_lack_a_background_given_by_name(order):
    names = {1: "a", 2: "b"}
    raters = [
        named([1, 1, 2, 2, 1], names),
        named([1, 2, 2, 2, 1], names),
        named([0, 0, 2, 2, 1], {0: "air", **names}),
    ]
    ordered = [raters[k] for k in order]
    agreement = probdice.agreement(ordered, match="labels", background="air")
    i, j, k = (order.index(k) for k in range(3))
    assert agreement.foreground_dice[i, j] == pytest.approx((4 / 5 + 4 / 5) / 2)
    assert agreement.foreground_dice[i, k] == pytest.approx((2 / 4 + 1) / 2)
    assert probdice.consensus(ordered, match="labels", background="air").background is not None


def test_a_background_name_with_several_numbers_does_not_apply_to_raters_without_names():
    raters = {
        "anna": named([0, 1], {0: "air"}), "ben": named([5, 1], {5: "air"}), "eva": [0, 1],
    }  # fmt: skip
    with pytest.raises(InputError, match=r"no region of eva \(0, 1\) has this name.*\(0, 5\)"):
        probdice.agreement(raters, background="air")
    with pytest.raises(InputError, match="no region is called 'water'"):
        probdice.agreement(raters, background="water")


def test_the_mean_uses_weights():
    raters = {"a": [1, 1, 2], "b": [1, 2, 2]}
    mean = probdice.consensus(raters, weights={"a": 3, "b": 1}).segmentation.probabilities()
    assert mean.tolist() == [[1, 0.75, 0], [0, 0.25, 1]]


def test_the_mean_of_soft_raters_uses_their_probabilities():
    raters = [np.array([[0.9, 0.2], [0.1, 0.8]]), np.array([0, 1])]
    mean = probdice.consensus(raters).segmentation.probabilities()
    assert np.allclose(mean, [[0.95, 0.1], [0.05, 0.9]])


def test_binary_staple_equals_itk():
    sitk = pytest.importorskip("SimpleITK", reason="needs the extra itk")
    truth = np.indices((12, 40, 40))[1] > 15
    raters = [noisy(truth, share, 2, seed) for seed, share in enumerate((0.1, 0.2, 0.4))]
    raters = [rater.astype(np.uint8) for rater in raters]
    filter_ = sitk.STAPLEImageFilter()
    filter_.SetForegroundValue(1)
    image = filter_.Execute([sitk.GetImageFromArray(rater) for rater in raters])
    consensus = probdice.consensus(raters, method="staple", match="labels")
    probabilities = consensus.segmentation.probabilities()[1]
    assert np.allclose(probabilities, sitk.GetArrayFromImage(image), rtol=0, atol=1e-6)
    for k, rater in enumerate(consensus.raters):
        assert rater.sensitivity[1] == pytest.approx(filter_.GetSensitivity()[k], abs=1e-6)
        assert rater.specificity[1] == pytest.approx(filter_.GetSpecificity()[k], abs=1e-6)
    assert consensus.iterations == filter_.GetElapsedIterations()


def by_hand():
    """Three pixels of each of three regions on which all agree, and one on which they do not."""
    agreed = [1] * 3 + [2] * 3 + [3] * 3
    panel = panel_of(
        [[*agreed, 1], [*agreed, 1], [*agreed, 2]], match="labels", mask=None, workers=1
    )
    common = panel.common(("1", "2", "3"))
    return common, Evidence(panel.segmentations.select(common.names), common)


def test_staple_has_probabilities_where_raters_disagree_only_outside_the_mask():
    raters = [[0, 0, 1, 1, 0], [0, 0, 1, 1, 1]]  # equal inside the mask, so θ allows no difference
    result = probdice.consensus(raters, method="staple", mask=[1, 1, 1, 1, 0])
    assert result.segmentation.probabilities().tolist() == [[1, 1, 0, 0, 0.5], [0, 0, 1, 1, 0.5]]


def test_multi_label_staple_equals_a_hand_computation():
    common, evidence = by_hand()
    mean = Model(np.ones(3), 3)
    theta = _confusion_matrices(expected_counts(evidence, mean))
    one, two, three = (common.labels.index(label) for label in (1, 2, 3))
    first, last = common.names.index("1"), common.names.index("3")
    # The pixel is 2/3 of region 1 and 1/3 of region 2, so region 1 has 3 2/3 pixels, on all of
    # which rater 1 marks 1; region 2 has 3 1/3, on 1/3 of which rater 1 marks 1.
    assert theta[first][one, one] == pytest.approx(1)
    assert theta[first][one, two] == pytest.approx(1 / 10)
    assert theta[first][two, two] == pytest.approx(9 / 10)
    assert theta[last][two, one] == pytest.approx(2 / 11)
    assert theta[last][two, two] == pytest.approx(1)
    assert theta[last][three, three] == pytest.approx(1)
    # π = 11/30, 10/30, 9/30; the pixel is 11/30 · 2/11 against 10/30 · 1/100.
    prior = np.empty(3)
    prior[[one, two, three]] = 11 / 30, 10 / 30, 9 / 30
    model = Model(np.ones(3), 3, prior, theta)
    decisions = [np.array([two if name == "3" else one]) for name in common.names]
    assert model(decisions, 1)[[one, two, three], 0].tolist() == pytest.approx([20 / 21, 1 / 21, 0])
    result = staple(evidence, mean)
    assert result.model.prior.tolist() == pytest.approx(prior.tolist())
    assert result.converged and result.model(decisions, 1)[one, 0] == pytest.approx(1, abs=1e-6)


def test_every_consensus_method_has_descriptions_and_a_function():
    assert get_args(Method) == tuple(METHODS) == tuple(FUSIONS)


def test_texts_take_the_name_of_the_method_from_the_table(monkeypatch):
    def stop_early(evidence, mean):
        return Fusion(mean, None, 5, converged=False)

    monkeypatch.setitem(FUSIONS, "staple", stop_early)
    monkeypatch.setitem(METHODS, "staple", replace(METHODS["staple"], title="Vote"))
    result = probdice.consensus([[[1, 1], [2, 2]], [[1, 1], [2, 1]]], method="staple")
    assert repr(result).startswith("Consensus (Vote, 5 iterations) of 2 raters")
    assert result.plot().axes[0].get_title() == "consensus of 2 raters (Vote)"
    assert "Vote did not converge within 5 iterations." in str(result.notes[-1])


def test_staple_treats_probabilities_of_0_and_1_like_label_maps():
    one_hot = [(np.arange(6)[:, None, None] == rater).astype(np.float32) for rater in PEOPLE]
    soft_one = probdice.consensus(one_hot, method="staple", match="labels")
    crisp_one = probdice.consensus(PEOPLE, method="staple", match="labels")
    assert np.allclose(
        soft_one.segmentation.probabilities(), crisp_one.segmentation.probabilities(), atol=1e-6
    )
    assert soft_one.raters[3].accuracy == pytest.approx(crisp_one.raters[3].accuracy)


def test_every_step_of_staple_increases_the_likelihood_of_soft_raters():
    raters = [soft(rater, 6, seed) for seed, rater in enumerate(PEOPLE[:3])]
    panel = panel_of(raters, match="labels", mask=None, workers=1)
    common = panel.common(panel.names)
    evidence = Evidence(panel.segmentations.select(common.names), common)
    prior, theta = (
        np.full(6, 1 / 6),
        _confusion_matrices(expected_counts(evidence, Model(np.ones(3), 6))),
    )

    def log_likelihood(decisions, counts):
        total = np.repeat(prior[:, None], counts.size, axis=1)
        for decision, of_rater in zip(decisions, theta, strict=True):
            total = total * (of_rater.T @ decision)
        return np.array(np.log(total.sum(axis=0)).sum())

    values = []
    for _ in range(8):
        values.append(float(evidence.total(log_likelihood)))
        theta = _confusion_matrices(expected_counts(evidence, Model(np.ones(3), 6, prior, theta)))
    assert np.all(np.diff(values) >= -1e-9)


def test_pixel_counts_above_the_precision_of_float32_are_exact():
    pattern = [[1, 1, 2, 2], [1, 1, 1, 2], [1, 2, 2, 2]]
    copies = 2**22 + 1
    raters = [np.tile(np.array(row, np.uint8), copies) for row in pattern]
    consensus = probdice.consensus(raters, method="staple", match="labels")
    small = probdice.consensus(pattern, method="staple", match="labels")
    assert consensus.pixels == 2**24 + 4
    for large_one, small_one in zip(consensus.raters, small.raters, strict=True):
        assert large_one.accuracy == pytest.approx(small_one.accuracy, rel=1e-9)
        assert np.allclose(large_one.confusion, small_one.confusion, rtol=1e-9, atol=0)
    mean = probdice.consensus(raters, match="labels").segmentation.array[:, -4:]
    assert np.allclose(mean, [[1, 2 / 3, 1 / 3, 0], [0, 1 / 3, 2 / 3, 1]])


def test_pixels_outside_the_mask_are_excluded():
    mask = np.array([1, 1, 1, 0])
    consensus = probdice.consensus([[1, 1, 2, 9], [1, 2, 2, 8]], mask=mask)
    assert consensus.pixels == 3 and consensus.segmentation.regions == (1, 2)
    assert consensus.entropy().tolist() == pytest.approx([0, 1, 0, np.nan], nan_ok=True)
    again = probdice.compare(consensus.segmentation, [1, 1, 2, 7], mask=mask)
    assert again.score == pytest.approx(5 / 6)


def test_the_consensus_has_the_geometry_of_the_raters():
    place = Geometry((2, 3), np.diag([2.0, 1.0, 1.0]))
    turned = Geometry((3, 2), np.array([[0, 2.0, 0], [-1, 0, 2], [0, 0, 1]]))
    labels = np.array([[1, 1, 2], [1, 2, 2]])
    raters = [
        Segmentation.from_labels(labels, geometry=place),
        Segmentation.from_labels(np.array([[2, 2], [1, 2], [1, 1]]), geometry=turned),
    ]
    for given_raters in (raters, raters[::-1]):
        consensus = probdice.consensus(given_raters)
        assert consensus.segmentation.geometry is not None
        assert probdice.compare(raters[0], consensus.segmentation).score == 1


def test_agreement_equals_compare():
    agreement = probdice.agreement({"a": PEOPLE[0], "b": PEOPLE[1], "c": PEOPLE[2]})
    result = probdice.compare(PEOPLE[0], PEOPLE[2])
    assert agreement.score[0, 2] == agreement.score[2, 0] == result.score
    assert agreement.adjusted_score[0, 2] == result.adjusted_score
    assert agreement.explained[0, 2] == result.explained["reference"]
    assert agreement.explained[2, 0] == result.explained["prediction"]
    mean = probdice.consensus(PEOPLE[1:3]).segmentation
    alone = probdice.compare(mean, PEOPLE[0])
    assert agreement.others[0].score == pytest.approx(alone.score)
    assert agreement.others[0].explained == pytest.approx(alone.explained["prediction"])


def test_similar_raters_are_adjacent_in_the_order():
    groups = [PEOPLE[0], 5 - PEOPLE[3].T.reshape(PEOPLE[3].shape), PEOPLE[1], PEOPLE[2]]
    order = probdice.agreement(groups).order
    assert order.index(1) in (0, 3)


def test_the_mean_works_for_more_regions_than_confusion_matrices_allow():
    many = np.arange(6000).reshape(60, 100)
    consensus = probdice.consensus([many, many[::-1]])
    assert len(consensus.segmentation.regions) == 6000
    with pytest.raises(TooLargeError, match="6,000 common regions"):
        _ = consensus.raters


NAMED = Segmentation.from_probabilities(
    [[0.5, 0.5], [0.5, 0.5]], labels=[0, None], names=[None, "rest"]
)
NAMED_TWICE = Segmentation.from_probabilities(
    [[0.5, 0.5], [0.25, 0.25], [0.25, 0.25]], labels=[0, 2, None], names=["air", "mass", "mass"]
)


@pytest.mark.parametrize(
    ("raters", "options", "message"),
    [
        ([[1, 2]], {}, "raters: expected at least 2, found 1"),
        (np.zeros((2, 2), int), {}, "raters must be a list or a mapping"),
        ([[1, 2], [1, 2]], {"method": "vote"}, "method must be 'mean' or 'staple'"),
        ([[1, 2], [1, 2]], {"match": "paper"}, "match must be 'overlap' or 'labels'"),
        ([[1, 2], [1, 2]], {"weights": [1]}, "weights: expected one weight for each of 2 raters"),
        ([[1, 2], [1, 2]], {"weights": [0, 0]}, "weights: expected numbers ≥ 0"),
        (
            [[1, 2], [1, 2]],
            {"weights": [1, 2], "method": "staple"},
            "weights cannot be combined with",
        ),
        ([[1, 2], [1, 2, 3]], {}, r"1 \(reference\) and 2 \(prediction\): .*shape"),
        ([[1, 2], [[0.5, 0.5], [0.5, 0.1]]], {}, "2: probabilities sum to 0.6 at pixel \\(1,\\)"),
        ([[1, 2], ["a"]], {}, "rater 2: "),
        (
            {"anna": NAMED, "ben": [0, 1]},
            {"match": "labels"},
            "anna: region 'rest' has a name but no integer label, and another rater has no names",
        ),
        (
            {"anna": NAMED_TWICE, "ben": NAMED_TWICE},
            {"match": "labels"},
            "region 'mass' has a name but no integer label, and its name is not unique, so",
        ),
    ],
)
def test_invalid_raters_and_options_are_rejected_by_name(raters, options, message):
    with pytest.raises(InputError, match=message):
        probdice.consensus(raters, **options)


def test_invalid_values_of_one_of_two_raters_are_reported_with_the_name_of_the_rater():
    raters = {"anna": [1, 2], "ben": [[0.5, 0.5], [0.5, 0.1]]}
    for function in (probdice.agreement, probdice.consensus):
        with pytest.raises(InputError, match=r"^ben: probabilities sum to 0\.6 at pixel \(1,\)"):
            function(raters)


def test_json_contains_everything_except_the_pixels():
    content = probdice.consensus(PEOPLE[:3], method="staple").to_dict()
    assert content["method"] == "staple" and content["iterations"] > 1
    assert len(content["raters"]) == len(content["agreement"]["others"]) == 3
    assert np.shape(content["raters"][0]["confusion"]) == (6, 6)


def test_the_score_against_the_mean_is_the_mean_of_scores_against_each_rater():
    mean = probdice.consensus(PEOPLE[1:], match="labels").segmentation
    against = [probdice.compare(other, PEOPLE[0], match="labels").score for other in PEOPLE[1:]]
    whole = probdice.compare(mean, PEOPLE[0], match="labels").score
    assert whole == pytest.approx(np.mean(against))


def test_the_overlap_of_backgrounds_does_not_change_the_matching_of_regions():
    first = np.zeros((4, 8, 8), int)
    first[0, :6], first[2, :2, :2] = 1, 2
    second = first.copy()
    second[0, 5:] = 1
    second[2, 1] = 0
    agreement = probdice.consensus([first, second], background=0).agreement
    dice = {region.label: region.mean_dice for region in agreement.regions}
    # 48 and 64 pixels of region 1, 4 and 2 pixels of region 2.
    assert dice[1] == pytest.approx(96 / 112) and dice[2] == pytest.approx(4 / 6)
