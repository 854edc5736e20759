"""Calibration of a probabilistic prediction: identities, conventions and chance values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import probdice
from probdice import InputError, Segmentation
from probdice.engine import blocks


def dirichlet(regions, pixels, seed, spread=0.5):
    return np.random.default_rng(seed).dirichlet([spread] * regions, size=pixels).T


def drawn(prediction, seed):
    """Labels drawn from the probabilities: the prediction is calibrated."""
    u = np.random.default_rng(seed).random(prediction.shape[1])
    return np.minimum((u > prediction.cumsum(axis=0)).sum(axis=0), len(prediction) - 1)


def calibration(reference, prediction, **options):
    return probdice.compare(reference, prediction, match="labels").calibration(**options)


def test_expected_and_maximum_error_are_worked_by_hand():
    prediction = np.array([[0.9, 0.9, 0.6, 0.6, 0.6], [0.1, 0.1, 0.4, 0.4, 0.4]])
    result = calibration([0, 1, 0, 0, 0], prediction, bins=10).likely
    # Two predictions of 0.9, one of them correct; three of 0.6, all correct.
    assert result.predicted.tolist() == pytest.approx([0.6, 0.9])
    assert result.observed.tolist() == pytest.approx([1, 0.5])
    assert result.expected_error == pytest.approx((3 * 0.4 + 2 * 0.4) / 5)
    assert result.maximum_error == pytest.approx(0.4)
    assert result.lower.tolist() == pytest.approx([0.5, 0.8])
    assert result.upper.tolist() == pytest.approx([0.6, 0.9])


def test_errors_are_those_of_torchmetrics():
    torch = pytest.importorskip("torch", reason="needs torch")
    module = pytest.importorskip("torchmetrics.functional.classification", reason="needs torch")
    prediction = dirichlet(4, 3000, 0)
    labels = drawn(dirichlet(4, 3000, 1), 2)
    result = calibration(labels, prediction, bins=12).likely
    for norm, ours in (("l1", result.expected_error), ("max", result.maximum_error)):
        theirs = module.multiclass_calibration_error(
            torch.tensor(prediction.T), torch.tensor(labels), 4, n_bins=12, norm=norm
        )
        assert ours == pytest.approx(float(theirs), abs=1e-6)


@pytest.mark.parametrize("binning", ["width", "mass"])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), crisp=st.booleans(), bins=st.integers(1, 30))
def test_the_parts_of_brier_add_up(binning, seed, crisp, bins):
    prediction = dirichlet(3, 200, seed)
    reference = drawn(prediction, seed + 1) if crisp else dirichlet(3, 200, seed + 2)
    truth = np.eye(3)[reference].T if crisp else reference
    result = calibration(reference, prediction, bins=bins, binning=binning)
    brier = result.brier
    assert brier.score == pytest.approx(((prediction - truth) ** 2).sum(axis=0).mean())
    parts = brier.reliability - brier.resolution + brier.uncertainty
    within = brier.variance_within - 2 * brier.covariance_within
    assert parts + within == pytest.approx(brier.score, abs=1e-12)
    assert brier.uncertainty == pytest.approx(truth.var(axis=1).sum())


def test_parts_of_brier_of_equal_predictions_are_murphys():
    prediction = np.array([[0.75] * 4 + [0.25] * 4, [0.25] * 4 + [0.75] * 4])
    brier = calibration([0, 0, 0, 1, 1, 1, 1, 1], prediction, bins=4).brier
    assert brier.variance_within == pytest.approx(0) and brier.covariance_within == pytest.approx(0)
    # Per region: 0.75 occurs with its probability; 0.25 never occurs.
    assert brier.reliability == pytest.approx(2 * (0.25**2) / 2)
    assert brier.uncertainty == pytest.approx(2 * 3 / 8 * 5 / 8)
    assert brier.resolution == pytest.approx(2 * (0.375**2 + 0.375**2) / 2)


def test_log_loss_counts_infinite_terms():
    prediction = np.array([[0.5, 1.0, 0.25], [0.5, 0.0, 0.75]])
    result = calibration([0, 1, 1], prediction)
    assert result.infinite == 1
    assert result.log_loss == pytest.approx(-(np.log(0.5) + np.log(0.75)) / 2)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), crisp=st.booleans())
def test_fuzzy_dice_is_the_size_weighted_mean_over_all_thresholds(seed, crisp):
    # Values are multiples of 1/8, so all thresholds are eight, each for an eighth of [0, 1).
    rng = np.random.default_rng(seed)
    p, q = (rng.integers(0, 9, 60) / 8 for _ in range(2))
    p = (p > 0.5).astype(float) if crisp else p
    result = probdice.compare(np.stack([p, 1 - p]), np.stack([q, 1 - q]), match="labels")
    thresholds = [k / 8 for k in range(8)]
    sizes = [int((p > t).sum() + (q > t).sum()) for t in thresholds]
    region = result.calibration(thresholds=thresholds).regions[0]
    if sum(sizes):
        weighted = np.dot(region.dice, sizes) / sum(sizes)
        assert result.groups[0].dice == pytest.approx(weighted)


def test_thresholded_dice_is_that_of_qubiq():
    consensus = np.array([1, 2 / 3, 1 / 3, 0], np.float32)  # of three raters
    prediction = np.array([0.95, 0.5, 0.5, 0.05], np.float32)
    sides = [Segmentation.from_probabilities(x, axis=None) for x in (consensus, prediction)]
    result = probdice.compare(*sides, match="labels").calibration()
    region = next(one for one in result.regions if one.reference == (1,))
    assert result.thresholds == tuple(k / 10 for k in range(1, 10))
    expected = [1, 1, 1, 0.8, 2 / 3, 2 / 3, 1, 1, 1]
    assert region.dice == pytest.approx(expected)
    assert region.mean_dice == pytest.approx(np.mean(expected))


def test_two_empty_masks_agree():
    sides = [Segmentation.from_probabilities(np.array([0.2, 0.1]), axis=None)] * 2
    region = probdice.compare(*sides, match="labels").calibration(thresholds=[0.5]).regions[1]
    assert region.dice == (1.0,)


@pytest.mark.parametrize("soft", [False, True])
def test_a_calibrated_predictor_is_within_the_chance_limits(soft):
    below, errors, chance = 0, [], []
    for seed in range(60):
        prediction = dirichlet(3, 400, seed)
        reference = drawn(prediction, 1000 + seed)
        if soft:  # the mean of five raters with the same distribution
            several = [np.eye(3)[drawn(prediction, 5 * seed + k)].T for k in range(5)]
            reference = np.mean(several, axis=0)
        likely = calibration(reference, prediction).likely
        below += likely.expected_error <= likely.chance_expected_limit
        errors.append(likely.expected_error)
        chance.append(likely.chance_expected_error)
    assert below >= 52  # 57 are expected
    assert np.mean(errors) == pytest.approx(np.mean(chance), rel=0.1)


def test_only_a_label_map_as_reference_has_a_band_of_calibrated_predictors():
    prediction = np.repeat([[0.8], [0.2]], 100, axis=1)
    crisp = calibration(np.repeat([0, 1], [80, 20]), prediction)
    soft = calibration(prediction, prediction)
    (band,) = crisp.plot().axes[0].collections
    # 0.8 ± 1.96 · √(0.8 · 0.2 / 100)
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.7216, 0.8784))
    assert crisp.plot().axes[0].get_legend() is not None
    assert not soft.plot().axes[0].collections and soft.plot().axes[0].get_legend() is None


def test_an_overconfident_predictor_exceeds_the_chance_limits():
    prediction = dirichlet(3, 2000, 0)
    labels = drawn(prediction, 1)
    sharper = prediction**3 / (prediction**3).sum(axis=0)
    likely = calibration(labels, sharper).likely
    assert likely.expected_error > 2 * likely.chance_expected_limit


def test_equal_masses_are_as_equal_as_equal_predictions_allow():
    prediction = dirichlet(3, 3000, 4)
    pixels = calibration(drawn(prediction, 5), prediction, binning="mass", bins=10).likely.pixels
    assert pixels.sum() == 3000 and pixels.size == 10
    assert pixels.min() > 270 and pixels.max() < 330
    certain = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert calibration([0, 0, 1], certain, binning="mass").likely.pixels.tolist() == [3]


def test_groups_are_those_of_the_comparison():
    prediction = np.array([[0.1, 0.2, 0.7], [0.6, 0.2, 0.2], [0.3, 0.6, 0.1]])
    result = probdice.compare([7, 7, 5], prediction, merge="prediction")
    regions = result.calibration().regions
    assert [(one.reference, one.prediction) for one in regions] == [
        (group.reference, group.prediction) for group in result.groups
    ]
    assert result.calibration().regions[1].brier.score == pytest.approx(
        (0.1**2 + 0.2**2 + 0.3**2) / 3
    )


def test_blocks_and_masks_change_nothing(monkeypatch):
    prediction = dirichlet(3, 900, 6).reshape(3, 30, 30)
    labels = drawn(prediction.reshape(3, -1), 7).reshape(30, 30)
    mask = np.random.default_rng(8).random((30, 30)) > 0.3
    whole = probdice.compare(labels, prediction, mask=mask, match="labels").calibration()
    alone = calibration(labels[mask], prediction[:, mask])
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1)
    monkeypatch.setattr(blocks, "MIN_BLOCK_PIXELS", 100)
    cut = probdice.compare(labels, prediction, mask=mask, match="labels").calibration()
    for other in (alone, cut):
        assert other.likely.expected_error == pytest.approx(whole.likely.expected_error)
        assert other.brier.score == pytest.approx(whole.brier.score)
        assert other.log_loss == pytest.approx(whole.log_loss)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 0}, "bins must be a whole number from 1"),
        ({"bins": 2.5}, "bins must be a whole number"),
        ({"binning": "equal"}, "binning must be 'width' or 'mass'"),
        ({"thresholds": [0.5, 1.0]}, "thresholds must be distinct numbers"),
        ({"thresholds": [0.5, 0.5]}, "thresholds must be distinct numbers"),
    ],
)
def test_invalid_options_are_rejected(options, message):
    with pytest.raises(InputError, match=message):
        calibration([0, 1], [[0.5, 0.5], [0.5, 0.5]], **options)


def test_calibration_needs_the_images():
    result = probdice.compare([0, 1], [[0.5, 0.5], [0.5, 0.5]]).detach()
    with pytest.raises(InputError, match=r"calibration\(\) requires the images"):
        result.calibration()
