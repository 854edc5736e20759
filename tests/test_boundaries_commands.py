"""Boundary distances on the command line and in evaluations, with numbers worked by hand.

A square of 6 × 6 pixels is moved by 2 pixels. Its outline has 20 straight segments of length 1 and
4 corners of length √½. On each side, 8 segments of the edges along the movement, 2 segments of the
edge inside the other square, and 2 corners are within 1 pixel of the other outline. The 2 segments
inside the other square are not within half a pixel.
"""

import csv
import json
from math import inf, sqrt

import numpy as np
import pytest
from typer.testing import CliRunner

from probdice import Comparison, InputError
from probdice.cli.app import app
from probdice.evaluation import Evaluation, compare_again, evaluate

OUTLINE = 20 + 4 * sqrt(0.5)
WITHIN_1 = (10 + 2 * sqrt(0.5)) / OUTLINE
WITHIN_HALF = (8 + 2 * sqrt(0.5)) / OUTLINE


def pair(missed=False):
    """The moved square, and a region that does not move or is missing in the prediction."""
    reference, prediction = np.zeros((2, 14, 16), np.uint8)
    reference[4:10, 4:10] = prediction[4:10, 6:12] = 1
    reference[1:3, 13:15] = 2
    if not missed:
        prediction[1:3, 13:15] = 2
    return reference, prediction


@pytest.fixture
def folders(tmp_path):
    for name in ("truth", "mine"):
        (tmp_path / name).mkdir()
    for case, missed in (("a", False), ("b", True)):
        for name, labels in zip(("truth", "mine"), pair(missed), strict=True):
            np.save(tmp_path / name / f"{case}.npy", labels)
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "160"})


def table(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_compare_prints_boundaries_and_stores_them(folders):
    files = folders / "truth" / "a.npy", folders / "mine" / "a.npy"
    options = "--match", "labels", "--boundaries", "--tolerance", "1", "--tolerance", "0.5"
    done = run("compare", *files, *options, "--json", folders / "a.json")
    assert done.exit_code == 0, done.output
    assert "Boundaries (pixels): 3 groups" in done.stdout
    (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith("          1")]
    assert row[2:4] == ["2.0000", "2.0000"]
    assert row[6:] == ["0.5000", f"{WITHIN_HALF:.4f}"]
    stored = json.loads((folders / "a.json").read_text())["boundaries"]
    assert stored["groups"][1]["nsd@1"] == pytest.approx(WITHIN_1)
    assert stored["groups"][1]["nsd@0.5"] == pytest.approx(WITHIN_HALF)
    assert stored["means"]["hd"]["mean"] == pytest.approx(4 / 3)


def test_a_missed_region_is_infinite_in_json_unless_there_is_a_penalty(folders):
    files = folders / "truth" / "b.npy", folders / "mine" / "b.npy"
    done = run("compare", *files, "--match", "labels", "--boundaries", "--json", "-")
    assert json.loads(done.stdout)["boundaries"]["groups"][2]["hd"] == "Infinity"
    restored = Comparison.from_json(done.stdout).boundaries()
    assert restored["hd"][2] == inf
    done = run(
        "compare", *files, "--match", "labels", "--boundaries", "--infinite", 50, "--json", "-"
    )
    assert json.loads(done.stdout)["boundaries"]["groups"][2]["hd"] == 50


def test_a_tolerance_without_boundaries_is_rejected(folders):
    files = folders / "truth" / "a.npy", folders / "mine" / "a.npy"
    done = run("compare", *files, "--tolerance", "1")
    assert done.exit_code == 2
    assert "--tolerance 1.0 has no effect without boundaries" in done.stderr
    with pytest.raises(InputError, match=r"tolerance=1\.0 has no effect without boundaries"):
        evaluate(folders / "truth", folders / "mine", tolerance=1)


def test_evaluate_writes_distances_of_cases_and_regions(folders):
    done = run(
        "evaluate", folders / "truth", folders / "mine", "-o", folders / "out", "--match", "labels",
        "--background", "0", "--boundaries", "--tolerance", "1", "--tolerance", "0.5",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    whole, missed = table(folders / "out" / "cases.csv")
    assert float(whole["hd95"]) == 1  # the mean of 2 and 0: the background is excluded
    assert float(whole["nsd@1"]) == pytest.approx((WITHIN_1 + 1) / 2)
    assert float(whole["nsd@0.5"]) == pytest.approx((WITHIN_HALF + 1) / 2)
    assert whole["infinite_distances"] == "0"
    assert (missed["hd95"], missed["assd"]) == ("inf", "inf")
    assert float(missed["finite_hd95"]) == 2
    assert missed["infinite_distances"] == "1"
    assert float(missed["nsd@1"]) == pytest.approx(WITHIN_1 / 2)
    regions = {(row["case"], row["reference"]): row for row in table(folders / "out/regions.csv")}
    assert float(regions["a", "1"]["hd"]) == 2
    assert float(regions["a", "2"]["hd"]) == 0
    assert regions["b", "2"]["hd"] == "inf"
    assert regions["b", "2"]["nsd@1"] == "0.0"
    how = (folders / "out" / "how.md").read_text()
    assert "Podobnik and Vrtovec, MeshMetrics, arXiv:2509.05670" in how
    assert "within 1, 0.5" in how
    page = next((folders / "out" / "report_cases").glob("*-a-mine.html")).read_text()
    assert 'id="boundaries"' in page


def test_a_penalty_makes_the_means_of_cases_finite(folders):
    result = evaluate(
        folders / "truth", folders / "mine", match="labels", background=0, boundaries=True,
        infinite=50,
    )  # fmt: skip
    frame = result.cases_frame().set_index("case")
    assert frame.loc["b", "hd"] == 26  # the mean of 2 and 50
    assert frame.loc["b", "finite_hd"] == 2
    assert result.regions_frame()["hd"].tolist()[-1] == 50


def test_the_journal_stores_the_distances(folders):
    options = {"match": "labels", "boundaries": True, "tolerance": [1], "out": folders / "out"}
    seen = []
    first = evaluate(folders / "truth", folders / "mine", **options)
    again = evaluate(folders / "truth", folders / "mine", **options, progress=seen.append)
    assert (seen[0].resumed, len(seen)) == (2, 1)  # nothing was computed again
    loaded = Evaluation.load(folders / "out")
    for result in (again, loaded):
        assert result.cases_frame().equals(first.cases_frame())
        assert result.regions_frame().equals(first.regions_frame())
    compared = compare_again(loaded.records[0], loaded.options)
    assert compared.boundaries(tolerances=[1])["nsd@1"][1] == pytest.approx(WITHIN_1)
    options["tolerance"] = [0.5]  # another tolerance: all cases are computed again
    other = evaluate(folders / "truth", folders / "mine", **options)
    assert other.regions_frame()["nsd@0.5"][1] == pytest.approx(WITHIN_HALF)


def test_methods_are_ranked_by_distances_where_infinite_is_the_worst(folders):
    """The method `exact` has no error; `mine` misses a region in case b."""
    (folders / "exact").mkdir()
    for case in ("a", "b"):
        np.save(folders / "exact" / f"{case}.npy", pair()[0])
    result = evaluate(
        folders / "truth", {"mine": folders / "mine", "exact": folders / "exact"}, match="labels",
        background=0, boundaries=True, tolerance=1, rank_by="hd95", out=folders / "out",
    )  # fmt: skip
    assert [rank.method for rank in result.ranks()] == ["exact", "mine"]
    assert result.values("hd95")["mine"].tolist() == [1, inf]
    assert result.values("nsd@1")["mine"][0] == pytest.approx((WITHIN_1 + 1) / 2)
    assert result.values("hd95:1")["mine"].tolist() == [2, 2]
    assert result.values("hd95")["exact"].tolist() == [0, 0]
    assert Evaluation.load(folders / "out").values("hd95")["mine"].tolist() == [1, inf]
