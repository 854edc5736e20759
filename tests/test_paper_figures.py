"""The data of the paper's figures at points worked by hand, the claims, and the drawings."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from probdice import Segmentation, compare
from probdice.errors import InputError
from probdice.paper import Answer, Scored, draw_study, rank_study
from probdice.paper.claims import (
    certainty_claim,
    crisp_claim,
    falling_claim,
    forms_claim,
    linear_claim,
    merging_claim,
    permutation_claim,
    steep_claim,
)
from probdice.paper.drawings import (
    draw_degradation_table,
    draw_dice_forms,
    draw_pixel_similarities,
    draw_sweep,
    draw_two_regions,
)
from probdice.paper.figures import (
    STRENGTHS,
    VERSIONS,
    DegradationTable,
    auxiliary,
    compare_quietly,
    degradation_table,
    degrade,
    dice_forms,
    merged_pair,
    pair_weight,
    sweep,
    two_regions,
)
from probdice.paper.region_correspondence import draw_merging, draw_pair_weight
from probdice.paper.sections import both_rules, stand_in_study
from probdice.synthesis import brain_section, deform, nested_ellipses, stripes, voronoi

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CRISP = (
    Segmentation.from_labels([1, 1, 1, 1, 2, 2, 2, 2]),
    Segmentation.from_labels([7, 7, 5, 5, 5, 9, 9, 9]),
)
SOFT = (
    Segmentation.from_probabilities([[0.9, 0.7, 0.2, 0.1], [0.1, 0.3, 0.8, 0.9]]),
    Segmentation.from_probabilities(
        [[0.6, 0.5, 0.1, 0.0], [0.3, 0.3, 0.1, 0.1], [0.1, 0.2, 0.8, 0.9]]
    ),
)


@pytest.fixture(scope="module")
def small() -> dict[str, Segmentation]:
    return {"stripes": stripes((40, 40)), "brain": brain_section((40, 40))}


@pytest.fixture(scope="module")
def table(small: dict[str, Segmentation]) -> DegradationTable:
    return degradation_table(small)


def test_the_two_forms_at_known_points() -> None:
    forms = dice_forms(5)  # steps of a quarter; rows are background, columns foreground
    # Four pixels, foreground {1, 2, 3} against {1, 3}: two foreground in both, one background.
    assert forms.first[1, 2] == pytest.approx(4 / 5)
    assert forms.second[1, 2] == pytest.approx(3 / 4)
    assert forms.first[0, 0] == 0 and forms.second[0, 0] == 0
    assert forms.first[0, 4] == 1 and forms.second[0, 4] == 1  # all foreground
    assert forms.first[3, 0] == 0 and forms.second[3, 0] == 0.75
    assert forms.first[3, 1] == 1 and forms.second[3, 1] == 1  # equal
    assert (
        np.isnan(forms.first[4, 0]) and forms.second[4, 0] == 1
    )  # all background: the undefined corner
    assert np.isnan(forms.first[3, 2]) and np.isnan(forms.second[3, 2])  # impossible


def test_f_of_two_regions_at_known_points() -> None:
    data = two_regions(11)  # steps of a tenth; rows are the reference
    np.testing.assert_allclose(data.first[9, [8, 7, 6]], [0.9, 0.8, 0.7], atol=1e-12)
    expected = [0.635560531405, 0.511628723387, 0.441118358899]
    np.testing.assert_allclose(data.second[9, [8, 7, 6]], expected, atol=1e-12)
    np.testing.assert_allclose(np.diag(data.first), 1)
    np.testing.assert_allclose(np.diag(data.second), 1)
    assert data.first[0, 10] == 0 and data.second[0, 10] == 0
    assert data.second[10, :10].max() == 0 and data.second[1:, 0].max() == 0
    np.testing.assert_allclose(data.second, data.second.T)


def test_pixel_similarities_by_hand() -> None:
    reference = Segmentation.from_probabilities([[0.9, 0.2], [0.1, 0.3], [0.0, 0.5]])
    prediction = Segmentation.from_probabilities([[0.7, 0.1], [0.3, 0.6], [0.0, 0.3]])
    by_hand = {"absolute": [0.8, 0.7], "aitchison": [0.511628723387, 0.48419074]}
    for similarity, f in by_hand.items():
        result = compare_quietly(reference, prediction, similarity)
        np.testing.assert_allclose(result.map(), f, atol=1e-6)
        assert result.score == pytest.approx(sum(f) / 2)
        assert compare_quietly(reference, reference, similarity).score == 1


def test_the_versions_are_seven_by_rising_strength() -> None:
    assert [version.strength for version in VERSIONS] == [1, 2, 3, 4, 5, 6, 7]
    assert len({version.name for version in VERSIONS}) == 7
    last = VERSIONS[-1]
    units = np.array([last.blur / 0.8, last.deform / 1.5, last.noise / 0.25])
    assert np.linalg.norm(units) == pytest.approx(7, abs=0.05)
    plain = replace(VERSIONS[0], blur=0.0)
    reference = stripes((8, 8))
    assert degrade(reference, plain) is reference


def test_the_table_holds_the_scores_of_its_pictures(
    table: DegradationTable, small: dict[str, Segmentation]
) -> None:
    assert table.scores["D1"].shape == table.scores["D2"].shape == (2, 7)
    assert list(table.references) == ["stripes", "brain"]
    prediction = table.predictions["brain"][2]
    for name, similarity in (("D1", "absolute"), ("D2", "aitchison")):
        result = compare(small["brain"], prediction, similarity=similarity, match="labels")
        assert table.scores[name][1, 2] == result.score
    again, other = degradation_table(small), degradation_table(small, seed=1)
    assert np.array_equal(again.scores["D2"], table.scores["D2"])
    assert not np.array_equal(other.scores["D2"], table.scores["D2"])


def test_a_pair_weight_is_one_minus_the_mean_of_f() -> None:
    data = pair_weight(*CRISP, (1, 7))
    assert data.auxiliaries[0].tolist() == [[1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]]
    assert data.f.tolist() == [1, 1, 0, 0, 1, 1, 1, 1]
    assert data.weight == 0.25
    np.testing.assert_allclose(data.weights, [[0.375, 0.25, 0.875], [0.625, 0.75, 0.125]])
    assert set(data.matched) == {(1, 7), (2, 9)}


@pytest.mark.parametrize("similarity", ["absolute", "aitchison"])
def test_a_pair_weight_is_that_of_the_comparison(similarity: str) -> None:
    reference = voronoi((24, 24), regions=3)
    prediction = deform(reference, 3)
    for i in range(3):
        for j in range(3):
            data = pair_weight(reference, prediction, (i, j), similarity=similarity)
            assert data.weight == pytest.approx(data.weights[i, j], abs=5e-6)


def test_auxiliaries_sum_the_other_regions() -> None:
    np.testing.assert_allclose(
        auxiliary(SOFT[1], [0, 2]), [[0.7, 0.7, 0.9, 0.9], [0.3, 0.3, 0.1, 0.1]]
    )


def test_merging_by_hand() -> None:
    data = merged_pair(*CRISP)
    assert dict(data.matched) == {1: 7, 2: 9}
    (step,) = data.steps
    assert (step.region, step.into) == (5, 1)
    assert (step.similarity_before, step.similarity_after) == (0.75, 0.875)
    # Dice of 1: 2·2 / (2 + 4) before, 2·4 / (5 + 4) after.
    assert step.dice_before == pytest.approx(2 / 3)
    assert step.dice_after == pytest.approx(8 / 9)
    assert data.result.matched_score == 0.625 and data.result.score == 0.875


def test_merging_of_probabilities_by_hand() -> None:
    (step,) = merged_pair(*SOFT).steps
    assert (step.region, step.into) == (1, 0)
    # Mean |p − q| of (0.6, 0.5, 0.1, 0) is 0.175, of (0.9, 0.8, 0.2, 0.1) 0.025.
    assert step.similarity_before == pytest.approx(0.825)
    assert step.similarity_after == pytest.approx(0.975)
    # Σ min 1.2 of Σp + Σq = 1.2 + 1.9, then 1.9 of 2.0 + 1.9.
    assert step.dice_before == pytest.approx(2.4 / 3.1)
    assert step.dice_after == pytest.approx(3.8 / 3.9)
    aitchison = merged_pair(*SOFT, similarity="aitchison").steps[0]
    assert (aitchison.region, aitchison.into) == (0, 0)
    gain = aitchison.similarity_after - aitchison.similarity_before
    assert gain == pytest.approx(0.32910048, abs=1e-7)


def test_merging_needs_the_larger_side_as_prediction() -> None:
    with pytest.raises(InputError, match="Exchange the two"):
        merged_pair(CRISP[1], CRISP[0])


def test_claims_about_f_hold() -> None:
    data = two_regions()
    assert linear_claim(data).holds
    assert certainty_claim(data).holds
    claim = steep_claim(data)
    # Next to the edges, f₂ falls to 0 in one step: the statement of the paper has exceptions there.
    assert not claim.holds and len(claim.exceptions) == 4
    assert claim.exceptions[0].startswith("reference 0.105, prediction moving towards 0")
    assert "larger than the decrease of f₁ at 318" in claim.measured


def test_claims_can_fail() -> None:
    data = two_regions(21)
    bent = replace(data, first=data.first**2)
    assert not linear_claim(bent).holds
    assert not certainty_claim(replace(data, second=np.maximum(data.second, 0.1))).holds
    assert steep_claim(replace(data, second=data.first)).exceptions
    forms = dice_forms(21)
    assert not forms_claim(replace(forms, first=np.nan_to_num(forms.first))).holds


def test_the_claim_about_the_corner_holds() -> None:
    claim = forms_claim(dice_forms())
    assert claim.holds
    assert "S₁ is undefined, S₂ is 1" in claim.measured


def test_the_claim_about_the_crisp_coefficient_holds(table: DegradationTable) -> None:
    claim = crisp_claim(table)
    assert claim.holds and "14 pairs" in claim.measured


def test_the_sweep_shows_every_degradation(small: dict[str, Segmentation]) -> None:
    data = sweep({"brain": small["brain"]})
    assert set(data.strengths) == {
        "blur", "deform", "noise", "grow", "shrink", "split", "merge"
    }  # fmt: skip
    assert all(data.scores["D1"]["brain"][kind][0] == 1 for kind in STRENGTHS)
    assert data.spearman("D1").shape == (1, 7)
    continuous = data.spearman("D2")[0, :5]
    np.testing.assert_allclose(continuous, -1)
    claim = falling_claim(data)
    # One unmatched region makes D₂ 0, and it cannot fall further.
    assert data.scores["D2"]["brain"]["split"][1:] == [0, 0, 0, 0]
    assert (
        "D₂, brain, split: ρ = −0.71; the score never rises, but is constant at some steps"
        in claim.exceptions
    )
    assert not claim.holds


def test_the_sweep_rejects_unknown_degradations(small: dict[str, Segmentation]) -> None:
    with pytest.raises(InputError, match="found melt"):
        sweep(small, strengths={"melt": (0, 1)})


def test_a_rise_is_an_exception() -> None:
    data = sweep({"stripes": stripes((16, 16))}, strengths={"blur": (0, 1, 2)})
    risen = replace(data, scores=data.scores | {"D1": {"stripes": {"blur": [1.0, 0.5, 0.75]}}})
    claim = falling_claim(risen)
    assert claim.exceptions == (
        "D₁, stripes, blur: ρ = −0.50; the score rises by up to 0.2500 between two strengths",
    )


def test_the_claims_about_shuffled_labels_and_merges_hold(small: dict[str, Segmentation]) -> None:
    assert permutation_claim(small).holds
    claim = merging_claim({"by hand": merged_pair(*CRISP)})
    assert claim.holds and "1 of 1 merges over 1 pairs" in claim.measured


def test_a_merge_that_lowers_dice_is_an_exception() -> None:
    # Merging 3 changes nothing: a quarter of the pixels is wrong in any case.
    reference = Segmentation.from_labels([1, 1, 1, 1, 1, 2, 2, 2])
    prediction = Segmentation.from_labels([1, 1, 1, 1, 3, 2, 2, 3])
    data = merged_pair(reference, prediction)
    assert data.steps[0].dice_after > data.steps[0].dice_before
    worse = replace(data, steps=(replace(data.steps[0], dice_after=0.1),))
    claim = merging_claim({"worse": worse})
    assert not claim.holds and claim.exceptions[0].startswith("worse: 3 is merged into")


def test_where_the_rules_differ_both_are_shown() -> None:
    # One pair joined, one region split: the paper pairs 7 with 2, which share no pixel.
    reference = Segmentation.from_labels([[1] * 6 + [2] * 2 + [3] * 8])
    prediction = Segmentation.from_labels([[5] * 8 + [6] * 5 + [7] * 3])
    methods = {"random walker": reference, "normalised cuts": reference, "watershed": prediction}
    rows = both_rules({"ellipses": nested_ellipses((24, 24))}, methods, 0)
    assert set(rows) == {"watershed and normalised cuts", "watershed and random walker"}
    row = rows["watershed and random walker"]
    assert row["paper"]["lowest_matched_dice"] == 0
    assert row["overlap"]["lowest_matched_dice"] == 10 / 13
    assert row["paper"]["matched_score"] == row["paper"]["score"] == 0.6875
    assert row["overlap"]["matched_score"] == 0.6875 and row["overlap"]["score"] == 1
    assert row["overlap"]["adjusted_score"] == 1


def texts_of(figure: "Figure") -> str:
    import matplotlib.text

    return " ".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))


def test_drawings_have_labels(
    tmp_path: Path, table: DegradationTable, small: dict[str, Segmentation]
) -> None:
    reference = nested_ellipses((24, 24), regions=3)
    study = stand_in_study(table, "D1")
    same = [compare_quietly(reference, reference)] * 2
    prediction = voronoi((24, 24), regions=4)
    drawn = {
        "undefined": draw_dice_forms(dice_forms(21)),
        "Aitchison": draw_two_regions(two_regions(21)),
        "D₁ = ": draw_pixel_similarities(reference, [reference] * 2, {"D1": same, "D2": same}),
        "D₂ ": draw_degradation_table(table),
        "Spearman's ρ": draw_sweep(sweep(small, strengths={"blur": (0, 2), "permute": (0,)})),
        "weights": draw_pair_weight(pair_weight(reference, prediction, (0, 1))),
        " into ": draw_merging(merged_pair(reference, prediction)),
        "known degradation strength": draw_study(study),
    }
    for k, (words, figure) in enumerate(drawn.items()):
        assert words in texts_of(figure)
        figure.savefig(tmp_path / f"{k}.png", dpi=40)
        assert (tmp_path / f"{k}.png").stat().st_size > 2000


def test_dollars_in_names_are_escaped(tmp_path: Path) -> None:
    study = rank_study(
        [Answer("Ann", "$\\frac$", "a", 1), Answer("Ann", "$\\frac$", "b", 2)],
        [Scored("$\\frac$", "a", 0.9), Scored("$\\frac$", "b", 0.1)],
    )
    draw_study(study, title="$x").savefig(tmp_path / "study.png", dpi=40)
