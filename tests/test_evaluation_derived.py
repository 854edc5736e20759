"""Derived regions of a folder of cases: through files and the command, with numbers by hand."""

import csv
import json
from pathlib import Path

import nibabel
import numpy as np
import pytest
from numpy.typing import NDArray
from pytest import approx
from typer.testing import CliRunner

from probdice import Geometry, InputError, Segmentation, compare, write
from probdice.cli.app import app
from probdice.comparison.result import Comparison
from probdice.evaluation import Evaluation, evaluate

RUNNER = CliRunner()
LABELS = (0, 17, 53)
UNIONS = {"whole": (17, 53), "core": (53,)}
WORDS = ("--derived", "whole=17,53", "--derived", "core=53")
AFFINE = np.diag([2.0, 2.0, 2.5, 1.0])  # 10 mm³ per voxel
CASES = ("a", "b", "c")


def labels_of(seed: int, *, with_core: bool = True) -> NDArray[np.int64]:
    """A disc of 17 around a disc of 53."""
    rows, columns, _ = np.indices((12, 14, 3))
    distance = np.hypot(rows - 6 - 0.7 * seed, columns - 7 + 0.4 * seed)
    labels = np.where(distance < 5, 17, 0)
    return np.where(distance < 2.5, 53, labels) if with_core else labels


def softened(labels: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    noise = np.random.default_rng(seed).dirichlet(np.ones(3), labels.shape)
    crisp = np.stack([labels == label for label in LABELS])
    return 0.7 * crisp + 0.3 * np.moveaxis(noise, -1, 0)


def dice_of(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    return float(2 * np.minimum(p, q).sum() / (p.sum() + q.sum()))


REFERENCE = {case: labels_of(0, with_core=case != "c") for case in CASES}
CRISP = {case: labels_of(k + 1, with_core=case != "c") for k, case in enumerate(CASES)}
SOFT = {case: softened(labels_of(2 - k, with_core=case != "c"), k) for k, case in enumerate(CASES)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("derived")
    geometry = Geometry((12, 14, 3), AFFINE)
    for name in ("reference", "crisp", "soft"):
        (place / name).mkdir()
    for case in CASES:
        for name, maps in (("reference", REFERENCE), ("crisp", CRISP)):
            segmentation = Segmentation.from_labels(maps[case], geometry=geometry)
            write(place / name / f"{case}.nii.gz", segmentation)
        soft = Segmentation.from_probabilities(SOFT[case], labels=LABELS, geometry=geometry)
        write(place / "soft" / f"{case}.nii.gz", soft)
    return place


def run(folder: Path, out: Path, *words: str, expected: int = 0) -> str:
    sides = [str(folder / name) for name in ("reference", "crisp", "soft")]
    done = RUNNER.invoke(
        app,
        ["evaluate", *sides, "-o", str(out), "--match", "labels", "--reports", "none", *words],
    )
    assert done.exit_code == expected, done.output
    return done.output


@pytest.fixture(scope="module")
def results(folder: Path) -> tuple[Path, str]:
    """A finished run with boundaries, and its output."""
    out = folder / "results"
    ranking = ("--rank-by", "dice:whole", "--rank-by", "dice:core", "--rank-by", "hd95:whole")
    return out, run(folder, out, *WORDS, "--boundaries", "--tolerance", "1", *ranking)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def by_hand(method: str, case: str, members: tuple[int, ...]) -> float:
    p = np.isin(REFERENCE[case], members).astype(float)
    if method == "crisp":
        return dice_of(p, np.isin(CRISP[case], members).astype(float))
    return dice_of(p, SOFT[case][[LABELS.index(one) for one in members]].sum(axis=0))


def test_tables_have_the_dice_of_every_union(results: tuple[Path, str]) -> None:
    out, output = results
    rows = {(row["method"], row["case"]): row for row in rows_of(out / "cases.csv")}
    for method in ("crisp", "soft"):
        for case in CASES:
            cell = rows[method, case]["dice:whole"]
            assert float(cell) == approx(by_hand(method, case, (17, 53)), rel=1e-6)
        for case in "ab":
            cell = rows[method, case]["dice:core"]
            assert float(cell) == approx(by_hand(method, case, (53,)), rel=1e-6)
        assert rows[method, "c"]["dice:core"] == ""  # neither a label map nor a likeliest region

    regions = [row for row in rows_of(out / "regions.csv") if row["derived"] == "whole"]
    assert len(regions) == 6
    whole = next(row for row in regions if (row["method"], row["case"]) == ("crisp", "b"))
    assert (whole["reference"], whole["prediction"], whole["group"]) == ("17;53", "17;53", "")
    assert float(whole["dice"]) == approx(by_hand("crisp", "b", (17, 53)), rel=1e-9)
    assert float(whole["reference_ml"]) == approx((REFERENCE["b"] > 0).sum() / 100, rel=1e-9)

    means = {
        (row["measure"], row["method"]): float(row["mean"])
        for row in rows_of(out / "ranking.csv")
        if row["measure"].startswith("dice:")
    }
    for method in ("crisp", "soft"):
        hand = np.mean([by_hand(method, case, (17, 53)) for case in CASES])
        assert means["dice:whole", method] == approx(hand, rel=1e-6)
        assert f"{hand:.4f} (3)" in output.partition("Dice of derived regions")[2]
        core = np.mean([by_hand(method, case, (53,)) for case in "ab"])
        assert means["dice:core", method] == approx(core, rel=1e-6)
    how = (out / "how.md").read_text(encoding="utf-8")
    assert "a single region: whole (17, 53); core (53)." in how


def test_boundaries_of_unions(results: tuple[Path, str]) -> None:
    rows = {(row["method"], row["case"]): row for row in rows_of(results[0] / "cases.csv")}
    geometry = Geometry((12, 14, 3), AFFINE)
    unions = (
        Segmentation.from_labels(np.isin(maps["a"], (17, 53)).astype(int), geometry=geometry)
        for maps in (REFERENCE, CRISP)
    )
    expected = compare(*unions, match="labels").boundaries(tolerances=[1])
    for name in ("hd95", "nsd@1"):
        assert float(rows["crisp", "a"][f"{name}:whole"]) == approx(expected[name][1], rel=1e-9)
    row = next(row for row in rows_of(results[0] / "regions.csv") if row["derived"] == "whole")
    assert row["hd"] == rows[row["method"], row["case"]]["hd:whole"]


def test_the_page_shows_derived_regions(results: tuple[Path, str]) -> None:
    page = (results[0] / "report.html").read_text(encoding="utf-8")
    assert "whole (17, 53)" in page
    assert "mean Dice of derived regions and of every reference label" in page


def test_requested_unions_are_stored_with_a_comparison(results: tuple[Path, str]) -> None:
    lines = (results[0] / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    stored = Comparison.from_dict(json.loads(lines[0])["comparison"])
    derived = stored.requested_derived()
    assert derived is not None
    assert [region.name for region in derived] == ["whole", "core"]
    again = Comparison.from_json(stored.to_json())
    assert again.requested_derived() == derived
    names = again.numbers.known("derived_boundaries").names
    assert names == ("hd", "hd95", "assd", "masd", "nsd@1")


def test_another_ranking_of_a_finished_run_compares_nothing(
    folder: Path, results: tuple[Path, str]
) -> None:
    out = results[0]
    before = (out / "cases.jsonl").read_bytes()
    run(folder, out, *WORDS, "--boundaries", "--tolerance", "1", "--rank-by", "dice:core")
    assert (out / "cases.jsonl").read_bytes() == before
    evaluation = Evaluation.load(out)
    assert evaluation.rank_by == ("dice:core",)
    assert evaluation.title("dice:whole") == "Dice of whole"
    hand = [by_hand("soft", case, (17, 53)) for case in CASES]
    assert evaluation.values("dice:whole")["soft"].tolist() == approx(hand, rel=1e-6)
    assert evaluation.derived_regions()["soft", "whole"].mean == approx(np.mean(hand), rel=1e-6)


def test_a_member_that_no_case_has_is_an_error(folder: Path, tmp_path: Path) -> None:
    output = run(folder, tmp_path, "--derived", "x=17,99", expected=1)
    assert "derived region 'x' contains 99, which no case has." in output


@pytest.mark.parametrize(
    "text", ["{whole = [17, 53], core = 53}", '["dataset.json"]'], ids=["table", "file"]
)
def test_a_configuration_file_has_derived_regions(folder: Path, tmp_path: Path, text: str) -> None:
    unions = {"labels": {"background": 0, "whole": [17, 53], "core": 53}}
    (tmp_path / "dataset.json").write_text(json.dumps(unions))
    (tmp_path / "run.toml").write_text(f"derived = {text}")
    run(folder, tmp_path / "out", "--config", str(tmp_path / "run.toml"), "--quiet")
    assert dict(Evaluation.load(tmp_path / "out").options.derived) == UNIONS


def test_a_region_to_rank_by_must_exist(folder: Path) -> None:
    with pytest.raises(InputError, match=r"refers to region 'cor'.*: 0, 17, 53, core, whole"):
        evaluate(
            folder / "reference",
            {"crisp": folder / "crisp"},
            match="labels",
            derived=UNIONS,
            rank_by="dice:cor",
        )


@pytest.mark.parametrize(("match", "correspondence"), [("labels", "set"), ({7: 17, 8: 53}, "case")])
def test_false_regions_of_a_case_without_the_reference_region_count(
    tmp_path: Path, match: object, correspondence: str
) -> None:
    """The second case has no core in the reference; the prediction has one of a single pixel."""
    seven, eight = (17, 53) if match == "labels" else (7, 8)
    maps = {
        "reference": {"a": [0, 0, 17, 53, 53, 0], "b": [0, 0, 17, 17, 0, 0]},
        "method": {"a": [0, 0, seven, eight, eight, 0], "b": [0, 0, seven, seven, eight, 0]},
    }
    for name, cases in maps.items():
        (tmp_path / name).mkdir()
        for case, labels in cases.items():
            np.save(tmp_path / name / f"{case}.npy", np.array(labels))
    result = evaluate(
        tmp_path / "reference",
        tmp_path / "method",
        match=match,
        correspondence=correspondence,
        derived=UNIONS,
    )
    assert result.values("dice:whole")["method"].tolist() == approx([1, 2 * 2 / 5])
    assert result.values("dice:core")["method"].tolist() == approx([1, 0])


def test_nested_channels_are_read_from_files(folder: Path, tmp_path: Path) -> None:
    """Whole ⊇ core as the channels of one file, as one file per channel, and as masks."""
    whole, core = SOFT["a"][1:].sum(axis=0), SOFT["a"][2]
    images = {
        "channels": np.stack([whole, core], axis=-1),
        "whole": whole,
        "core": core,
        "masks": np.stack([CRISP["a"] > 0, CRISP["a"] == 53], axis=-1).astype(np.uint8),
    }
    for name, values in images.items():
        nibabel.save(nibabel.Nifti1Image(values, AFFINE), tmp_path / f"{name}.nii.gz")
    for names, method in (("channels", "soft"), ("whole core", "soft"), ("masks", "crisp")):
        prediction = ",".join(str(tmp_path / f"{name}.nii.gz") for name in names.split())
        words = ["--match", "labels", "--nested", "prediction:0,17,53", *WORDS, "--json", "-"]
        reference = str(folder / "reference" / "a.nii.gz")
        done = RUNNER.invoke(app, ["compare", reference, prediction, *words])
        assert done.exit_code == 0, done.output
        derived = json.loads(done.stdout)["derived"]
        for name, members in UNIONS.items():
            hand = by_hand(method, "a", members)
            assert derived[name]["dice"] == approx(hand, rel=1e-6), (names, name)


def test_nested_channels_have_one_label_each(folder: Path) -> None:
    files = [str(folder / name / "a.nii.gz") for name in ("reference", "soft")]
    done = RUNNER.invoke(app, ["compare", *files, "--nested", "prediction:0,17"])
    assert done.exit_code == 1
    output = " ".join(done.output.split())
    assert "(1 for labels 0, 17), found 3 channels. List the label of the background" in output
    assert "for example --nested 0,1,2." in output
