"""Eight teams of a lesion challenge with two measures, every table computed again with NumPy.

The first five teams are those of test_challenge.py. Of the three others, one predicts nothing, one
merges all lesions of a class, and one exchanges two classes.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest import approx
from scipy import ndimage
from scipy.optimize import linear_sum_assignment
from scipy.stats import kendalltau, rankdata

from probdice.cli.ranking_output import show_summary
from probdice.evaluation import Evaluation, evaluate

pytest.importorskip("cc3d")
Labels = NDArray[np.int64]
CASES, HARD, CLASSES = 7, 5, (1, 2, 3)  # cases from 5 on are hard
TEAMS = ("right", "easy", "broken", "swapped", "shifted", "empty", "merging", "exchanged")
MEASURES = ("foreground_dice", "components_f1")


def truth(case: int) -> Labels:
    """Lesions of three classes; the number of lesions of class 1 differs between cases."""
    labels = np.zeros((24, 24), np.int64)
    for k in range(2 + case % 3):
        labels[2:5, 2 + 5 * k : 5 + 5 * k] = 1
    labels[8:12, 3:8] = labels[8:12, 12:15] = 2
    labels[16:19, 4 : 8 + case % 2] = labels[21, 20] = 3
    return labels


def predictions(case: int) -> dict[str, Labels]:
    """The predictions of all teams that have this case as a valid file."""
    reference = truth(case)
    right = reference.copy()
    right[3, 2 : 4 + 8 * (case >= HARD)] = 0
    merged = right.copy()
    for label in CLASSES:
        rows, columns = np.nonzero(right == label)
        box = merged[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        box[box == 0] = label
    found = {
        "right": right,
        "swapped": np.array([0, 1, 3, 2])[right],
        "shifted": np.roll(right, 1, axis=1),
        "empty": np.zeros_like(right),
        "merging": merged,
        "exchanged": np.array([0, 2, 1, 3])[right],
    }
    return found | ({} if case >= HARD else {"easy": right})


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    root = tmp_path_factory.mktemp("lesions")
    for name in ("reference", *TEAMS):
        (root / name).mkdir()
    for case in range(CASES):
        np.save(root / "reference" / f"case{case}", truth(case))
        (root / "broken" / f"case{case}.npy").write_text("no image")
        for team, labels in predictions(case).items():
            np.save(root / team / f"case{case}", labels)
    return evaluate(
        root / "reference",
        {team: root / team for team in TEAMS},
        out=root / "out",
        match="labels",
        background=0,
        components=True,
        strata=(0, 10),
        rank_by=MEASURES,
        workers=1,
    )


def rows_of(result: Evaluation, name: str) -> list[dict[str, str]]:
    assert result.out is not None
    with (Path(result.out) / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def pieces(labels: Labels, label: int) -> list[NDArray[np.bool_]]:
    """The connected components of a class."""
    numbers, count = ndimage.label(labels == label, np.ones((3, 3)))
    return [numbers == k for k in range(1, count + 1)]


def jaccard(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    return float((first & second).sum() / (first | second).sum())


def one_to_one(sides: list[list[NDArray[np.bool_]]]) -> list[list[float]]:
    """The Jaccard index of every component with its partner of largest total overlap."""
    reference, predicted = sides
    values = [[0.0] * len(side) for side in sides]
    common = np.array([[(r & p).sum() for p in predicted] for r in reference])
    if common.size:
        for i, j in zip(*linear_sum_assignment(-common), strict=True):
            values[0][i] = values[1][j] = jaccard(reference[i], predicted[j])
    return values


def many_to_one(sides: list[list[NDArray[np.bool_]]]) -> list[list[float]]:
    """The largest of: one-to-one, the union of its parts, and the whole that it is part of."""
    values = one_to_one(sides)
    for side in (0, 1):
        for i, whole in enumerate(sides[side]):
            parts = [
                j for j, one in enumerate(sides[1 - side]) if (one & whole).sum() > one.sum() / 2
            ]
            if parts:
                value = jaccard(whole, np.any([sides[1 - side][j] for j in parts], axis=0))
                values[side][i] = max(values[side][i], value)
                for j in parts:
                    values[1 - side][j] = max(values[1 - side][j], value)
    return values


def by_class(case: int, predicted: Labels, many: bool) -> Iterator[tuple[int, int, int, float]]:
    """Found, missed and false components and the F1 of every class of a case."""
    for label in CLASSES:
        sides = [pieces(labels, label) for labels in (truth(case), predicted)]
        if sides[0] or sides[1]:
            own, other = (many_to_one if many else one_to_one)(sides)
            found, false = (sum(v >= 0.5 for v in own), sum(v < 0.5 for v in other))
            missed = len(own) - found
            yield found, missed, false, 2 * found / (2 * found + missed + false)


def foreground_dice(case: int, predicted: Labels) -> float:
    masks = [(truth(case) == label, predicted == label) for label in CLASSES]
    return float(np.mean([2 * (a & b).sum() / (a.sum() + b.sum()) for a, b in masks]))


def values() -> dict[str, NDArray[np.float64]]:
    """Per measure, the values of every team and case; NaN for missing and failed cases."""
    table = {measure: np.full((len(TEAMS), CASES), np.nan) for measure in MEASURES}
    for case in range(CASES):
        for team, labels in predictions(case).items():
            place = TEAMS.index(team), case
            table["foreground_dice"][place] = foreground_dice(case, labels)
            f1 = [numbers[-1] for numbers in by_class(case, labels, many=False)]
            table["components_f1"][place] = np.mean(f1)
    return table


def test_every_case_has_its_status_dice_and_components(result: Evaluation) -> None:
    rows = {(row["case"], row["method"]): row for row in rows_of(result, "cases.csv")}
    assert len(rows) == CASES * len(TEAMS)
    for case in range(CASES):
        scored = predictions(case)
        for team in TEAMS:
            row = rows[f"case{case}", team]
            if team not in scored:
                assert row["status"] == ("missing" if team == "easy" else "failed")
                continue
            assert row["status"] == "scored"
            assert float(row["foreground_dice"]) == approx(foreground_dice(case, scored[team]))
            for ending, many in (("", False), ("_many", True)):
                classes = np.array(list(by_class(case, scored[team], many)))
                counts = [row[f"components_{n}{ending}"] for n in ("found", "missed", "false")]
                assert [int(count) for count in counts] == classes[:, :3].sum(axis=0).tolist()
                assert float(row[f"components_f1{ending}"]) == approx(classes[:, 3].mean())


def test_the_other_three_teams_by_hand(result: Evaluation) -> None:
    """Case 0 has the lesions 2 of class 1, 2 of class 2 and 2 of class 3."""
    rows = {row["method"]: row for row in rows_of(result, "cases.csv") if row["case"] == "case0"}
    names = [f"components_{n}" for n in ("found", "missed", "false")]
    many = [f"{name}_many" for name in names]
    assert [rows["empty"][name] for name in names] == ["0", "6", "0"]
    assert rows["empty"]["foreground_dice"] == "0.0"
    # Class 1: lesions of 9 pixels and a prediction of 3 × 8; class 2: lesions of 20 and 12 pixels
    # and a prediction of 4 × 12; class 3: lesions of 12 and 1 pixels and one prediction of 6 × 17.
    assert [rows["merging"][name] for name in names] == ["0", "6", "3"]
    # Jaccard with the union of both lesions: 18 / 24, 32 / 48 and 13 / 102.
    assert [rows["merging"][name] for name in many] == ["4", "2", "1"]
    # Class 3 alone is right; the lesions of class 1 and 2 do not overlap each other.
    assert [rows["exchanged"][name] for name in names] == ["2", "4", "4"]
    assert float(rows["exchanged"]["foreground_dice"]) == approx(1 / 3)


def test_every_component_and_stratum_is_counted(result: Evaluation) -> None:
    rows = rows_of(result, "components.csv")
    strata = {
        (row["method"], row["class"], row["from"]): row for row in rows_of(result, "strata.csv")
    }
    for team in TEAMS:
        own = [row for row in rows if row["method"] == team]
        sizes: dict[str, list[int]] = {"reference": [], "prediction": []}
        for case in range(CASES):
            scored = predictions(case)
            for side, labels in (("reference", truth(case)), ("prediction", scored.get(team))):
                for label in CLASSES if labels is not None and team in scored else ():
                    sizes[side] += [int(piece.sum()) for piece in pieces(labels, label)]
        for side, expected in sizes.items():
            assert sorted(float(r["volume"]) for r in own if r["side"] == side) == sorted(expected)
        small, large = (strata[team, "all", low] for low in ("0.0", "10.0"))
        for row, members in (
            (small, [size for size in sizes["reference"] if size < 10]),
            (large, [size for size in sizes["reference"] if size >= 10]),
        ):
            assert int(row["found"]) + int(row["missed"]) == len(members)
            assert int(row["found_many"]) + int(row["missed_many"]) == len(members)


def test_the_terminal_shows_both_ways_to_match_components(
    result: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    """Class 2 has lesions of 20 and 12 pixels in every case; `merging` covers both by 48 pixels.

    One-to-one, the Jaccard index is 20/48 and Dice is 40/68 and 0. Many-to-one, the Jaccard index
    of both is 32/48 and Dice is 64/80.
    """
    show_summary(result.summary, "out")
    output = capsys.readouterr().out
    definition = (
        "all neighbours, no minimum size; a component is found if the Jaccard index with its match "
        "is at least 0.5"
    )
    assert definition in output
    lines = [line.split() for line in output.partition("class 2")[2].splitlines()]
    start = next(k for k, line in enumerate(lines) if line[:4] == ["merging", "10", "and", "more"])
    assert "size, pixels" in output
    one, many = lines[start][4:], lines[start + 1]
    assert one == ["one-to-one", "0", "14", "7", "0.0000", "–", "0.0000", "0.2941"]
    assert many == ["many-to-one", "14", "0", "0", "1.0000", "0.6667", "0.6667", "0.8000"]


def test_the_ranking_of_two_measures(result: Evaluation) -> None:
    """Ranks per measure and case, where ties share the mean rank and missing cases are last."""
    costs = [np.where(np.isnan(v), np.inf, -v.round(12)) for v in values().values()]
    within = np.array([rankdata(one, axis=0) for one in costs])
    means = within.mean(axis=(0, 2))
    places = rankdata(means, method="min")
    rows = {(row["measure"], row["method"]): row for row in rows_of(result, "ranking.csv")}
    for k, team in enumerate(TEAMS):
        assert float(rows["all", team]["mean_rank"]) == approx(means[k])
        assert int(rows["all", team]["place"]) == places[k]
        for measure, ranks in zip(MEASURES, within, strict=True):
            assert float(rows[measure, team]["mean_rank"]) == approx(ranks.mean(axis=1)[k])
            own = rankdata(ranks.mean(axis=1), method="min")
            assert int(rows[measure, team]["place"]) == own[k]
    assert [team for team in TEAMS if places[TEAMS.index(team)] == 1] == ["right"]
    assert places[TEAMS.index("broken")] == 8
    (agreement,) = (
        one["tau"]
        for one in result.summary["ranking"]["measure_agreement"]
        if (one["first"], one["second"]) == MEASURES
    )
    by_measure = [rankdata(ranks.mean(axis=1), method="min") for ranks in within]
    assert agreement == approx(kendalltau(*by_measure).statistic)


def test_means_conclusion_and_table(result: Evaluation) -> None:
    for measure, table in values().items():
        summaries = result.summaries(measure)
        for k, team in enumerate(TEAMS):
            known = table[k][~np.isnan(table[k])]
            assert summaries[team].n == known.size
            assert summaries[team].mean == approx(
                known.mean() if known.size else np.nan, nan_ok=True
            )
    assert str(result).splitlines()[0].endswith("8 methods: 47 scored, 2 missing, 7 failed")
    assert result.conclusion.startswith("“right” is first by foreground Dice and component F1")
    assert result.out is not None
    table_md = (Path(result.out) / "table.md").read_text(encoding="utf-8").splitlines()
    order = [rank.method for rank in result.ranks()]
    assert [line.split(" | ")[1] for line in table_md[2:10]] == order
    assert "easy: 2 missing of 7 cases" in " ".join(table_md)
    assert "broken: 7 failed of 7 cases" in " ".join(table_md)
