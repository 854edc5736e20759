"""Pictures of an evaluation: cases, regions, pairs of methods, volumes and ranks."""

from dataclasses import replace

import nibabel
import numpy as np
import pytest

from probdice import InputError
from probdice.evaluation import Evaluation, evaluate
from probdice.pictures.evaluations import plot_evaluation, stacked
from probdice.pictures.volume_plots import limits_of, volumes_of

CASES = 8


def moved(labels, k):
    """Labels with a boundary shifted by k pixels."""
    changed = labels.copy()
    changed[:, 10 : 10 + k] = 1
    return changed


@pytest.fixture(scope="module")
def result(tmp_path_factory) -> Evaluation:
    """Two methods over eight cases of two labels: constant and increasing errors."""
    folder = tmp_path_factory.mktemp("evaluation")
    labels = np.repeat([1, 2], 10).astype(np.uint8)[None, :, None].repeat(4, 0).repeat(3, 2)
    for name, shift in (("truth", lambda k: 0), ("near", lambda k: 1), ("far", lambda k: 2 + k)):
        (folder / name).mkdir()
        for k in range(CASES):
            image = nibabel.Nifti1Image(moved(labels, shift(k)), np.diag([1.0, 2.0, 5.0, 1.0]))
            nibabel.save(image, folder / name / f"case{k}.nii.gz")
    methods = {name: folder / name for name in ("near", "far")}
    return evaluate(folder / "truth", methods, out=folder / "out", workers=1)


def dots(ax, colour=None):
    """The x of every dot of a colour; dots are small circles."""
    return [
        x
        for line in ax.lines
        if line.get_marker() == "o" and (colour is None or line.get_color() == colour)
        for x in line.get_xdata()
    ]


def test_every_case_of_every_method_is_a_dot(result):
    ax = result.plot("distributions").axes[0]
    expected = [*result.values()["near"], *result.values()["far"]]
    assert sorted(dots(ax)) == pytest.approx(sorted(expected))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["near", "far"]
    assert ax.get_xlabel() == "score"
    means = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "D"]
    assert means == pytest.approx([19 / 20, np.mean([1 - (2 + k) / 20 for k in range(8)])])


def test_another_measure_can_be_drawn(result):
    assert result.plot("distributions", measure="lowest_dice").axes[0].get_xlabel() == "lowest Dice"
    for kind in ("regions", "volumes"):
        with pytest.raises(InputError, match="measure cannot be used with kind="):
            result.plot(kind, measure="score")


def test_equal_values_are_stacked_in_both_directions():
    values = np.array([0.5, 0.1, 0.5, np.nan, 0.5, 0.5])
    known, places = stacked(values, (0.0, 1.0))
    assert known.tolist() == [0.1, 0.5, 0.5, 0.5, 0.5]
    assert places.tolist() == [0, 0, 1, -1, 2]


def test_regions_are_ordered_by_their_mean_dice(result):
    figure = result.plot("regions")
    ax = figure.axes[0]
    regions = result.regions()
    means = {k: np.mean([regions[name, k].mean for name in ("near", "far")]) for k in (1, 2)}
    order = [text.get_text() for text in ax.get_yticklabels()]
    assert order == [str(label) for label in sorted(means, key=means.get)]
    assert len(dots(ax)) == 2 * 2 * CASES
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["near", "far"]


def test_labels_that_do_not_fit_on_a_page_are_reported(result):
    figure = plot_evaluation(result, "regions", figsize=(5, 1.7))
    title = figure.legends[0].get_title().get_text()
    assert title == "1 of 2 labels, with the lowest mean Dice"


def test_differences_are_computed_per_case(result):
    ax = result.plot("differences").axes[0]
    expected = [(1 + k) / 20 for k in range(CASES)]
    assert sorted(dots(ax)) == pytest.approx(expected)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["near − far"]
    with pytest.raises(InputError, match="requires at least two methods"):
        _only(result, "near").plot("differences")


def _only(result, method):
    """The same evaluation with one method only."""
    records = tuple(record for record in result.records if record.method == method)
    return replace(result, records=records, methods={method: result.methods[method]})


def test_volumes_of_both_sides_are_in_millilitres(result):
    volumes = volumes_of(result, "near")
    # Ten columns of 4 × 3 pixels of 10 mm³, and one column more or less.
    assert volumes.unit == "mL"
    assert sorted(set(volumes.reference.round(9))) == [1.2]
    assert sorted(set(volumes.prediction.round(9))) == [1.08, 1.32]
    figure = result.plot("volumes")
    assert [ax.get_title() for ax in figure.axes] == ["near (16 regions)", "far (16 regions)"]
    first = figure.axes[0].lines[0]
    assert sorted(set(np.round(first.get_ydata(), 6))) == [
        round(-100 * 0.12 / 1.14, 6),
        round(100 * 0.12 / 1.26, 6),
    ]


def test_limits_of_agreement_are_two_deviations_around_the_mean():
    mean, low, high = limits_of(np.array([1.0, 2.0, 3.0]))
    assert (mean, low, high) == pytest.approx((2, 2 - 1.96, 2 + 1.96))
    assert np.isnan(limits_of(np.zeros(0))).all()


def test_ranks_are_in_the_order_of_the_ranking(result):
    ax = result.plot("ranks").axes[0]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["1. near", "2. far"]
    assert dots(ax) == [1, 2]


@pytest.mark.parametrize("kind", ["distributions", "regions", "differences", "ranks"])
def test_an_evaluation_is_drawn_into_given_axes(result, kind, tmp_path):
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert result.plot(kind, ax=right) is figure
    assert right.has_data() and not left.has_data()
    figure.savefig(tmp_path / "figure.pdf")


def test_volumes_needs_one_axes_per_method(result):
    from matplotlib.figure import Figure

    axes = Figure().subplots(1, 3)
    result.plot("volumes", ax=axes[:2])
    with pytest.raises(InputError, match="has 2 panels, but ax has 3 axes"):
        result.plot("volumes", ax=axes)


def test_impossible_pictures_of_an_evaluation_raise_an_error(result):
    with pytest.raises(InputError, match="kind must be one of 'distributions', 'regions'"):
        result.plot("violins")


def test_regions_needs_labels_with_the_same_meaning_in_every_case(result):
    other = _only(result, "near")
    other.__dict__["labels_agree"] = False
    with pytest.raises(InputError, match="requires labels with the same meaning in every case"):
        other.plot("regions")
