"""Connected components (lesions) of a folder of cases: through files and the command, by hand."""

import csv
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest import approx
from typer.testing import CliRunner

from probdice import Geometry, InputError, Segmentation, compare, write
from probdice.cli.app import app
from probdice.evaluation import Evaluation
from probdice.metrics.component_table import ComponentTable, component_table

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
    shared = ["--match", "labels", "--background", "0", "--reports", "none"]
    done = RUNNER.invoke(app, ["evaluate", *sides, "-o", str(out), *shared, *words])
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
    assert "all neighbours, at least 0 mm³ or voxels; found: Jaccard of at least 0.5" in output
    how = (out / "how.md").read_text(encoding="utf-8")
    assert "connected by all neighbours, and matched one to one within corresponding classes" in how
    evaluation = Evaluation.load(out)
    assert evaluation.title("components_f1") == "component F1"
    assert evaluation.values()["method"].tolist() == approx([(2 / 5 + 2 / 3) / 2, 0])
    assert evaluation.values("components_missed:17")["method"].tolist() == [2, 1]
    assert not evaluation.higher_is_better("components_missed:17")


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
    assert "components_f1 needs --components all" in " ".join(output.split())
    output = run(folder, tmp_path, "--strata", "0,10", expected=2)
    assert "has no effect without components" in " ".join(output.split())


def test_components_of_probabilities_are_rejected() -> None:
    soft = [[1.0, 0.4], [0.0, 0.6]]
    result = compare([0, 1], soft, background=0)
    with pytest.raises(InputError, match="components need label maps, but the prediction holds"):
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
