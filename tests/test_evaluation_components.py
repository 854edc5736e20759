"""Connected components (lesions) of a folder of cases: through files and the command, by hand."""

import csv
import re
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest import approx
from typer.testing import CliRunner

from probdice import Geometry, InputError, Segmentation, compare, write
from probdice.cli.app import app
from probdice.evaluation import Evaluation, evaluate
from probdice.method.sides import Side
from probdice.metrics.component_table import (
    ComponentTable,
    MatchMode,
    component_table,
    count_components,
)

pytest.importorskip("cc3d")
RUNNER = CliRunner()
AFFINE = np.diag([2.0, 2.0, 2.5, 1.0])  # 10 mm³ per voxel


def maps() -> dict[str, dict[str, NDArray[np.int64]]]:
    """Reference and prediction of two cases, with lesions of the classes 17 and 53.

    | lesion of case a | class | reference | prediction | common | Jaccard |
    |---|---|---|---|---|---|
    | (1:3, 1:3) | 17 | 4 | 6 | 4 | 2/3 |
    | (1:3, 6:9) | 17 | 6 | 6 voxels of class 53 | 0 | 0 |
    | (5:7, 1:3) | 53 | 4 | 4 | 4 | 1 |
    | (5, 10) | 17 | 1 | – | 0 | 0 |
    | (7, 18) | 17 | – | 1 | 0 | 0 |

    Case b has one lesion of class 17 with 12 voxels, and the prediction has 3 of them.
    """
    reference, prediction = (
        {case: np.zeros((8, 20, 1), np.int64) for case in "ab"} for _ in range(2)
    )
    reference["a"][1:3, 1:3] = reference["a"][1:3, 6:9] = reference["a"][5, 10] = 17
    prediction["a"][1:3, 1:4] = prediction["a"][7, 18] = 17
    reference["a"][5:7, 1:3] = prediction["a"][5:7, 1:3] = prediction["a"][1:3, 6:9] = 53
    reference["b"][2:5, 2:6] = prediction["b"][2:5, 2] = 17
    return {"reference": reference, "method": prediction}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("components")
    for name, cases in maps().items():
        (place / name).mkdir()
        for case, labels in cases.items():
            geometry = Geometry(labels.shape, AFFINE)
            write(
                place / name / f"{case}.nii.gz", Segmentation.from_labels(labels, geometry=geometry)
            )
    return place


def run(folder: Path, out: Path, *words: str, expected: int = 0) -> str:
    sides = [str(folder / name) for name in ("reference", "method")]
    shared = ["--match", "labels", "--background", "0"]
    pages = () if "--reports" in words else ("--reports", "none")
    done = RUNNER.invoke(app, ["evaluate", *sides, "-o", str(out), *shared, *pages, *words])
    assert done.exit_code == expected, done.output
    return done.output


@pytest.fixture(scope="module")
def results(folder: Path) -> tuple[Path, str]:
    words = ("--components", "all", "--strata", "0,30,100", "--rank-by", "components_f1")
    return folder / "results", run(folder, folder / "results", *words)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_cases_have_counts_and_qualities_over_classes_and_per_class(
    results: tuple[Path, str],
) -> None:
    first, second = rows_of(results[0] / "cases.csv")
    counts = [first[f"components_{name}"] for name in ("found", "missed", "false")]
    assert counts == ["2", "2", "2"]
    assert [first[f"components_{name}:17"] for name in ("found", "missed", "false")] == [
        *("1", "2", "1")
    ]
    # Class 17: 1 found, 2 missed, 1 false; class 53: 1 found, 1 false.
    assert float(first["components_f1:17"]) == approx(2 / 5)
    assert float(first["components_f1:53"]) == approx(2 / 3)
    assert float(first["components_f1"]) == approx((2 / 5 + 2 / 3) / 2)
    assert float(first["components_sq:17"]) == approx(2 / 3)
    assert float(first["components_pq:17"]) == approx(2 / 5 * 2 / 3)
    assert float(first["components_pq"]) == approx((2 / 5 * 2 / 3 + 2 / 3) / 2)
    assert float(first["components_dice:17"]) == approx((0.8 + 0 + 0) / 3)
    # The only lesion of case b has a Jaccard index of 3/12, below the threshold.
    assert [second[f"components_{name}"] for name in ("found", "missed", "false")] == [
        *("0", "1", "1")
    ]
    assert (second["components_pq"], second["components_sq"]) == ("0.0", "")
    assert second["components_f1:53"] == ""


def test_every_component_has_a_row(results: tuple[Path, str]) -> None:
    rows = rows_of(results[0] / "components.csv")
    assert len(rows) == 4 + 4 + 1 + 1
    first = rows[0]
    assert (first["case"], first["side"], first["class"], first["found"]) == (
        *("a", "reference", "17", "True"),
    )
    assert (float(first["volume"]), first["unit"]) == (40.0, "mm³")
    assert [float(first[axis]) for axis in "xyz"] == [3.0, 3.0, 0.0]  # indices (1.5, 1.5, 0)
    assert float(first["dice"]) == approx(0.8)
    missed = [row for row in rows if row["side"] == "reference" and row["found"] == "False"]
    assert [float(row["volume"]) for row in missed] == [60.0, 10.0, 120.0]
    assert float(missed[-1]["dice"]) == approx(2 * 3 / 15)
    assert [missed[0][axis] for axis in "ijk"] == ["1", "7", "0"]  # the middle of (1:3, 6:9)


def test_strata_count_components_by_their_own_size(results: tuple[Path, str]) -> None:
    rows = {(row["class"], row["from"]): row for row in rows_of(results[0] / "strata.csv")}
    table = {
        key: tuple(int(row[name]) for name in ("found", "missed", "false"))
        for key, row in rows.items()
    }
    assert table["all", "0.0"] == (0, 1, 1)  # below 30 mm³
    assert table["all", "30.0"] == (2, 1, 2)  # 30 to 100 mm³; the false ones have 60 and 30 mm³
    assert table["all", "100.0"] == (0, 1, 0)
    assert table["53", "30.0"] == (1, 0, 1)
    assert rows["all", "100.0"]["to"] == ""


def test_the_output_states_how_components_are_defined(results: tuple[Path, str]) -> None:
    out, output = results
    definition = (
        "all neighbours, no minimum size; a component is found if the Jaccard index with its match "
        "is at least 0.5"
    )
    assert definition in output
    how = (out / "how.md").read_text(encoding="utf-8")
    assert "connected by all neighbours, and matched one to one within corresponding classes" in how
    evaluation = Evaluation.load(out)
    assert evaluation.title("components_f1") == "component F1"
    assert evaluation.values()["method"].tolist() == approx([(2 / 5 + 2 / 3) / 2, 0])
    assert evaluation.values("components_missed:17")["method"].tolist() == [2, 1]
    assert not evaluation.higher_is_better("components_missed:17")


def test_missed_and_false_components_link_to_their_place(folder: Path, tmp_path: Path) -> None:
    """The table of components, and the table of the report."""
    run(folder, tmp_path, "--components", "all", "--reports", "all")
    rows = rows_of(tmp_path / "components.csv")
    missed = next(row for row in rows if row["class"] == "17" and row["volume"] == "60.0")
    assert missed["page"] == "report_cases/0000-a-method.html#at=1.7.0"
    assert (tmp_path / "report_cases/0000-a-method.html").exists()
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    section = page.partition('id="component-errors"')[2].partition("</section>")[0]
    links = re.findall(r'href="report_cases/0000-a-method.html#at=([0-9.]+)"', section)
    assert links == ["1.7.0", "1.7.0", "5.10.0", "7.18.0"]  # 60 (missed and false), 10, 10 mm³
    run(folder, tmp_path, "--components", "all")
    assert not any(row["page"] for row in rows_of(tmp_path / "components.csv"))


def test_classes_connectivity_smallest_size_and_threshold(folder: Path, tmp_path: Path) -> None:
    words = ("--components", "17", "--minimum-size", "20", "--connectivity", "6")
    run(folder, tmp_path, *words, "--component-threshold", "0.2")
    first, second = rows_of(tmp_path / "cases.csv")
    assert [first[f"components_{name}"] for name in ("found", "missed", "false")] == [
        *("1", "1", "0")
    ]
    assert second["components_found"] == "1"
    assert {row["class"] for row in rows_of(tmp_path / "components.csv")} == {"17"}


def test_invalid_requests_are_rejected(folder: Path, tmp_path: Path) -> None:
    output = run(folder, tmp_path, "--rank-by", "components_f1", expected=1)
    assert "components_f1 requires --components all" in " ".join(output.split())
    output = run(folder, tmp_path, "--strata", "0,10", expected=2)
    assert "has no effect without components" in " ".join(output.split())
    output = run(folder, tmp_path, "--components", "all", "--strata", "0;10", expected=2)
    assert "such as 0,100,1000, found '0;10'" in " ".join(output.replace("│", " ").split())


def test_components_need_a_reference_beside_raters(folder: Path) -> None:
    with pytest.raises(InputError, match="the consensus of raters contains probabilities"):
        evaluate(
            None,
            {"other": folder / "method"},
            raters={"first": folder / "reference", "second": folder / "method"},
            match="labels",
            background=0,
            components=True,
        )


def test_components_of_probabilities_are_rejected() -> None:
    soft = [[1.0, 0.4], [0.0, 0.6]]
    result = compare([0, 1], soft, background=0)
    with pytest.raises(InputError, match="but the prediction contains probabilities"):
        component_table(result)


def test_components_correspond_by_the_groups_of_the_comparison() -> None:
    """Other labels, diagonal neighbours, and a mask."""
    reference = np.array([[1, 0, 0, 2], [0, 1, 0, 2], [0, 0, 0, 0]])
    prediction = np.array([[8, 0, 0, 9], [0, 8, 0, 0], [9, 0, 0, 0]])
    inside = np.ones((3, 4), bool)
    inside[2] = False
    for mask, false in ((None, 2), (inside, 1)):
        result = compare(reference, prediction, background=0, mask=mask)
        table = component_table(result)
        assert table.labels == ("1", "2")
        assert table.counts(0.6).false == false
        assert table.counts(0.5).found == 2
    assert component_table(result, connectivity=4).counts(0.5).found == 3
    assert ComponentTable.from_dict(table.to_dict()) == table


def line(*regions: tuple[slice, int], length: int = 40) -> NDArray[np.int64]:
    labels = np.zeros(length, np.int64)
    for place, label in regions:
        labels[place] = label
    return labels


def counts_of(
    table: ComponentTable, reading: MatchMode, threshold: float = 0.5, label: str | None = None
) -> tuple[float, ...]:
    counts = table.counts(threshold, label, reading=reading)
    return counts.found, counts.missed, counts.false, counts.f1, counts.panoptic_quality


def test_a_lesion_in_pieces_and_merged_lesions_are_found_many_to_one() -> None:
    """Lesion 0:10 in three pieces, and lesions 20:24 and 26:30 under the prediction 20:30."""
    reference = line((slice(0, 10), 1), (slice(20, 24), 1), (slice(26, 30), 1))
    prediction = line((slice(0, 4), 1), (slice(5, 8), 1), (slice(9, 13), 1), (slice(20, 30), 1))
    table = component_table(compare(reference, prediction, match="labels", background=0))
    # One-to-one: Jaccard 4/10 for the first lesion and 4/10 for one of the two others.
    assert [row.jaccard for row in table.rows] == approx([0.4, 0.4, 0, 0.4, 0, 0, 0.4])
    assert counts_of(table, "one") == (0, 3, 4, 0, 0)
    # The pieces 0:4 and 5:8 are parts; 9:13 has 1 of 4 pixels in the lesion. Jaccard 7/10; 8/10.
    many = [row.jaccard_many for row in table.rows]
    assert many == approx([0.7, 0.8, 0.8, 0.7, 0.7, 0, 0.8])
    assert [row.parts for row in table.rows] == [2, 0, 0, 0, 0, 0, 2]
    f1 = 2 * 3 / (2 * 3 + 0 + 1)
    assert counts_of(table, "many") == approx((3, 0, 1, f1, f1 * (0.7 + 0.8 + 0.8) / 3))
    assert table.rows[0].dice_many == approx(14 / 17)


def test_many_to_one_never_finds_fewer_components() -> None:
    generator = np.random.default_rng(5)
    for _ in range(20):
        reference, prediction = (generator.random((2, 24, 24)) < 0.45).astype(np.int64)
        table = component_table(compare(reference, prediction, match="labels", background=0))
        assert all(row.jaccard_many >= row.jaccard for row in table.rows)
        for threshold in (0.1, 0.5, 0.8):
            found, missed, false, *_ = counts_of(table, "one", threshold)
            more, fewer, less, *_ = counts_of(table, "many", threshold)
            assert more >= found and fewer <= missed and less <= false


@pytest.mark.parametrize(("voxels", "size"), [(100, 2.7), (15, 0.405), (37, 0.999)])
def test_a_component_of_exactly_the_given_size_reaches_it(voxels: int, size: float) -> None:
    # A voxel of 0.3³ mm has 0.027 mm³, but the product in floating point is slightly different.
    labels = np.zeros((voxels + 2, 3, 3), np.int64)
    labels[1:-1, 1, 1] = 1
    geometry = Geometry(labels.shape, np.diag([0.3, 0.3, 0.3, 1.0]))
    segmentation = Segmentation.from_labels(labels, geometry=geometry)
    result = compare(segmentation, segmentation, background=0)
    table = component_table(result, minimum=size)
    assert table.left_out == {"reference": 0, "prediction": 0}
    assert count_components(table.rows, 0.5, sizes=(0, size)).found == 0
    assert count_components(table.rows, 0.5, sizes=(size, inf)).found == 1
    above = 0.027 * (voxels + 0.5)
    assert component_table(result, minimum=above).left_out == {"reference": 1, "prediction": 1}
    assert count_components(table.rows, 0.5, sizes=(0, above)).found == 1


@pytest.mark.parametrize(
    ("side", "reference", "prediction", "counts"),
    [
        ("prediction", [0, 1, 1, 2, 2, 2], [0, 1, 1, 0, 0, 0], (0, 1, 0)),
        ("reference", [0, 1, 1, 0, 0, 0], [0, 1, 1, 2, 2, 2], (0, 0, 1)),
    ],
)
def test_a_table_of_one_side_names_labels_that_only_the_other_side_has(
    side: Side,
    reference: list[int],
    prediction: list[int],
    counts: tuple[int, int, int],
    tmp_path: Path,
) -> None:
    # In case a, both sides have the tumour. In case b, the side with the names lacks it.
    for folder, labels in (("truth", reference), ("method", prediction)):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "a.npy", np.array([[0, 1, 1, 2, 2, 2]]))
        np.save(tmp_path / folder / "b.npy", np.array([labels]))
    (tmp_path / "names.json").write_text('{"0": "air", "1": "kidney", "2": "tumour"}')
    result = evaluate(
        tmp_path / "truth",
        tmp_path / "method",
        match="labels",
        background=0,
        names={side: tmp_path / "names.json"},
        derived={"T": "tumour"},
        components=("tumour",),
    )
    for case, dice, expected in (("a", 1, (1, 0, 0)), ("b", 0, counts)):
        comparison = result.comparison(case)
        derived, table = comparison.requested_derived(), comparison.requested_components()
        assert derived is not None
        assert table is not None
        assert derived["T"].dice == dice
        found = table.counts(0.5)
        assert (found.found, found.missed, found.false) == expected


def test_the_voxel_of_a_component_lies_in_it() -> None:
    """The centroid of a ring is outside the ring."""
    reference = np.zeros((9, 9), np.int64)
    reference[1:8, 1:8] = 1
    reference[2:7, 2:7] = 0
    table = component_table(compare(reference, np.zeros_like(reference), background=0))
    (row,) = table.rows
    assert row.place == (4.0, 4.0)
    assert reference[row.voxel] == 1


@pytest.mark.parametrize(
    ("third", "expected"),
    [
        (None, (1, 0, 0, 1, 0.85)),  # test_simple_evaluation_maximize_matcher_overlaptwo
        (slice(39, 47), (1, 0, 1, 0.66666666, 0.56666666)),  # …_maximize_matcher_overlap
    ],
)
def test_values_of_panoptica_many_to_one(third: slice | None, expected: tuple[float, ...]) -> None:
    """panoptica, unit_tests/test_panoptic_evaluator.py, MaximizeMergeMatching: tp, fn, fp, rq, pq.

    Its images have 50 × 50 pixels, and all regions have the columns 10:20.
    """
    reference, prediction = np.zeros((2, 50, 50), np.int64)
    reference[20:40, 10:20] = 1
    for place in (slice(20, 35), slice(36, 38), *([] if third is None else [third])):
        prediction[place, 10:20] = 1
    table = component_table(compare(reference, prediction, match="labels", background=0))
    assert counts_of(table, "many") == approx(expected)
    counts = table.counts(0.5, reading="many")
    assert counts.segmentation_quality == approx(0.85)
    assert counts.dice == approx(0.9189189189189)


def test_values_of_panoptica_one_to_one() -> None:
    """panoptica, unit_tests/test_golden_values.py, GOLDEN_INSTANCE: one class."""
    reference, prediction = np.zeros((2, 50, 50), np.int64)
    reference[5:15, 5:15] = prediction[5:15, 5:15] = 1
    reference[20:30, 20:30] = prediction[21:30, 20:30] = 1
    reference[40:48, 5:13] = prediction[40:48, 40:48] = 1
    table = component_table(compare(reference, prediction, match="labels", background=0))
    expected = (2, 1, 1, 0.6666666666666666, 0.6333333333333333)
    assert counts_of(table, "one") == approx(expected)
    assert table.counts(0.5).segmentation_quality == approx(0.95)


def test_values_of_deeplab2_over_classes() -> None:
    """deeplab2, evaluation/panoptic_quality_test.py, test_predicted_non_contiguous_ignore_label.

    A column of the ignored class 9 between the first two columns separates the instances of class
    1, which components would join. deeplab2 requires a Jaccard index above 0.5.
    """
    reference = np.array([[0, 9, 9, 9], [1, 9, 2, 2], [1, 9, 9, 9]])
    prediction = np.array([[0, 0, 9, 9], [1, 9, 1, 1], [1, 9, 9, 9]])
    result = compare(reference, prediction, match="labels", background=9)
    table = component_table(result, connectivity=4)
    above = float(np.nextafter(0.5, 1))
    classes = [counts_of(table, "one", above, label) for label in "012"]
    found, missed, false, recognition, panoptic = np.mean(classes, axis=0)
    assert (panoptic, recognition) == approx((2 / 9, 2 / 9))
    assert (found, missed, false) == approx((1 / 3, 2 / 3, 2 / 3))
    # deeplab2 counts the quality of a class without a match as 0; it is undefined here.
    qualities = [table.counts(above, label).segmentation_quality for label in "012"]
    assert np.nansum(qualities) / 3 == approx(1 / 3)


@pytest.mark.parametrize("options", [{"correspondence": "set"}, {"match": {5: 1}}])
@pytest.mark.parametrize("components", [True, (1,)])
def test_false_components_without_a_reference_count_in_their_class(
    tmp_path: Path, options: dict[str, Any], components: Any
) -> None:
    # The second reference has no lesion, and the prediction has two.
    for folder, first, second in (
        ("truth", [0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]),
        ("method", [0, 5, 5, 0, 0, 0], [0, 5, 0, 5, 5, 0]),
    ):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "a", np.array([first]))
        np.save(tmp_path / folder / "b", np.array([second]))
    result = evaluate(
        tmp_path / "truth", tmp_path / "method", background=0, components=components, **options
    )
    table = result.comparison("b").requested_components()
    assert table is not None
    counts = table.counts(0.5, "1")
    assert (counts.found, counts.missed, counts.false, counts.f1) == (0, 0, 2, 0)
