"""A challenge, through the command: five teams, of which one is right.

One team left out the hard cases, one sent files that cannot be read, one exchanged two labels, and
one shifted its images.
"""

import csv
import json
import re
import subprocess
from pathlib import Path

import nibabel
import numpy as np
import pytest
from commands import probdice
from numpy.typing import NDArray

TEAMS = ("right", "easy", "broken", "swapped", "shifted")
CASES, HARD = 10, 6  # cases from 6 on are hard
RULES = ("worst", "zero", "exclude")


def save(path: Path, labels: NDArray[np.int64]) -> None:
    nibabel.save(nibabel.Nifti1Image(labels.astype(np.uint8)[..., None], np.eye(4)), path)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("challenge")
    for name in ("reference", "masks", *TEAMS):
        (root / name).mkdir()
    y, x = np.mgrid[:40, :40]
    generator = np.random.default_rng(0)
    for k in range(CASES):
        truth = np.zeros((40, 40), np.int64)
        truth[(y - 18) ** 2 + (x - 20) ** 2 < (11 + k % 3) ** 2] = 1
        truth[(y - 18) ** 2 + (x - 16) ** 2 < 25] = 2
        truth[(y - 33) ** 2 + (x - 26) ** 2 < 16] = 3
        wrong = generator.random(truth.shape) < (0.15 if k >= HARD else 0.03)
        right = np.where(wrong, np.roll(truth, 3, axis=0), truth)
        case = f"case{k}.nii.gz"
        save(root / "reference" / case, truth)
        save(root / "masks" / f"case{k}_body.nii.gz", (truth > 0).astype(np.int64))
        save(root / "right" / case, right)
        if k < HARD:
            save(root / "easy" / case, right)
        (root / "broken" / case).write_bytes(b"no image at all")
        save(root / "swapped" / case, np.array([0, 1, 3, 2])[right])
        save(root / "shifted" / case, np.roll(right, 2, axis=1))
    return root


@pytest.fixture(scope="module")
def runs(root: Path) -> dict[str, "subprocess.CompletedProcess[str]"]:
    """The output of the command for every rule; cases are compared once."""
    return {
        rule: probdice(
            *("evaluate", "reference", *TEAMS, "-o", "out", "--missing", rule, "--reports", "none"),
            *("--workers", "1"),
            folder=root,
        )
        for rule in RULES
    }


def ranking(root: Path, measure: str) -> dict[str, dict[str, str]]:
    with (root / "out" / "ranking.csv").open(newline="", encoding="utf-8") as stream:
        return {row["method"]: row for row in csv.DictReader(stream) if row["measure"] == measure}


def places_in(text: str) -> list[tuple[str, str]]:
    """Places and methods in the first table of the output."""
    table = text.partition("place ")[2].partition("\n\n")[0]
    rows = [line.split() for line in table.splitlines()[1:]]
    return [(row[0], row[1]) for row in rows if len(row) > 2]


@pytest.mark.parametrize("rule", ["worst", "zero"])
def test_the_best_team_is_first_if_missing_cases_count(
    runs: dict[str, "subprocess.CompletedProcess[str]"], rule: str
) -> None:
    done = runs[rule]
    assert done.returncode == 1  # some cases failed
    places = places_in(done.stdout)
    assert places == [
        *(("1", "right"), ("1", "swapped"), ("3", "easy"), ("4", "shifted")),
        ("5", "broken"),
    ]


def test_excluding_cases_lets_the_easy_team_share_the_first_place(
    runs: dict[str, "subprocess.CompletedProcess[str]"],
) -> None:
    places = {method: place for place, method in places_in(runs["exclude"].stdout)}
    assert places == {"right": "1", "easy": "1", "swapped": "1", "shifted": "4", "broken": "–"}
    assert "are excluded from the ranking for all methods (exclude)" in runs["exclude"].stdout


def test_the_tables_contain_the_reasons_of_failures(
    root: Path, runs: dict[str, "subprocess.CompletedProcess[str]"]
) -> None:
    text = runs["zero"].stdout
    assert (
        "ranking by score (rank-then-aggregate); missing and failed cases rank last and count"
        in text
    )
    assert "easy: 4 missing of 10 cases, which rank last and count as 0 in means" in text
    assert "broken: 10 failed of 10 cases, which rank last and count as 0 in means" in text
    remark = (
        "different labels are matched in 10 of 10 cases (reference 2 to prediction 3 in 10, "
        "reference 3 to prediction 2 in 10)"
    )
    assert f"swapped: {remark}" in text
    assert "swapped: with equal labels, the mean score is " in text
    assert (
        "With 6 cases, 95 % confidence intervals may be too narrow. Use at least 50 cases." in text
    )
    last = root / "out"  # the rule of the last run
    for name in ("table.md", "table.tex", "how.md", "report.html"):
        assert remark in (last / name).read_text(encoding="utf-8"), name
        assert "missing: exclude" in (last / name).read_text() or name == "how.md"
    assert remark in ranking(root, "score")["swapped"]["remarks"]


def test_the_summary_has_rule_counts_and_differing_labels(
    root: Path, runs: dict[str, "subprocess.CompletedProcess[str]"]
) -> None:
    assert set(runs) == set(RULES)
    summary = json.loads((root / "out" / "summary.json").read_text(encoding="utf-8"))
    assert (summary["missing_rule"], summary["rank_by"]) == ("exclude", ["score"])
    counts = {one.pop("method"): one for one in summary["counts"]}
    assert counts["easy"] == {"cases": 10, "scored": 6, "failed": 0, "missing": 4}
    assert counts["broken"] == {"cases": 10, "scored": 0, "failed": 10, "missing": 0}
    assert summary["labels"]["agree"] is True
    assert summary["labels"]["differing"] == [
        {"method": "swapped", "cases": 10, "of": 10, "pairs": [[2, 3, 10], [3, 2, 10]]}
    ]
    scores = {one["method"]: one for one in summary["measures"]["score"]["methods"]}
    assert scores["right"]["mean"] == scores["swapped"]["mean"]
    expected = []
    for k in range(CASES):
        truth, team = (
            np.asarray(nibabel.load(root / name / f"case{k}.nii.gz").dataobj)
            for name in ("reference", "swapped")
        )
        expected.append(np.mean(truth == team))
    assert scores["swapped"]["equal_labels"] == pytest.approx(np.mean(expected))
    assert [scores[team]["equal_labels"] for team in TEAMS if team != "swapped"] == [None] * 4


def test_published_files_contain_no_absolute_path(
    root: Path, runs: dict[str, "subprocess.CompletedProcess[str]"]
) -> None:
    assert set(runs) == set(RULES)
    done = probdice(
        *("evaluate", root / "reference", *(root / team for team in TEAMS), "-o", root / "full"),
        *("--missing", "worst", "--reports", "worst:1", "--workers", "1", "-q"),
        folder=Path("/"),
    )
    assert done.returncode == 1
    files = [file for file in (root / "full").rglob("*") if file.is_file()]
    assert len(files) > 10
    named = [file.name for file in files if str(root).encode() in file.read_bytes()]
    # The journal keeps the original messages of failed cases.
    assert named == ["cases.jsonl"]
    with (root / "full" / "files.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == CASES * 5 + HARD
    assert rows[0]["file"] == "../reference/case0.nii.gz"
    assert all(re.fullmatch("[0-9a-f]{64}", row["sha256"]) for row in rows)


def test_foreground_dice_ranks_if_a_background_is_given(root: Path) -> None:
    words = "evaluate", "reference", "right", "shifted", "-o", "fore", "--background", "0"
    done = probdice(*words, "--reports", "none", "--mask", "masks", "--pattern",
                    "mask:{case}_body.nii.gz", folder=root)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "within masks: 10 cases, 2 methods" in done.stdout
    assert "ranking by foreground Dice" in done.stdout
    summary = json.loads((root / "fore" / "summary.json").read_text(encoding="utf-8"))
    assert (summary["rank_by"], summary["mask"]) == (["foreground_dice"], "../masks")
    assert summary["patterns"]["mask"] == "{case}_body.nii.gz"
    assert next(iter(summary["measures"])) == "foreground_dice"
    cases = (root / "fore" / "cases.csv").read_text(encoding="utf-8")
    assert "foreground_dice" in cases.splitlines()[0]


def test_a_saved_configuration_gives_the_same_files_from_anywhere(root: Path) -> None:
    words = (
        "evaluate",
        "reference",
        "right",
        "poor=shifted",
        "-o",
        "saved",
        "--rank-by",
        "mean_dice",
    )
    options = "--ignore", "9", "--reports", "none", "--save-config", "challenge.toml"
    assert probdice(*words, *options, folder=root).returncode == 0
    text = (root / "challenge.toml").read_text(encoding="utf-8")
    assert 'reference = "reference"' in text and 'poor = "shifted"' in text
    before = {f.name: f.read_bytes() for f in (root / "saved").glob("*.[cmt]*")}
    done = probdice("evaluate", "--config", root / "challenge.toml", folder=Path("/"))
    assert done.returncode == 0, done.stderr
    assert "ranking by mean Dice" in done.stdout
    assert {f.name: f.read_bytes() for f in (root / "saved").glob("*.[cmt]*")} == before
    other = "--config", root / "challenge.toml", "--rank-by", "score"
    done = probdice("evaluate", *other, folder=root)  # the command line overrides the file
    assert "ranking by score" in done.stdout


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("merg = 'both'", "unknown keys: merg. Known keys: reference, "),
        ("reference = ", "cannot be read"),
        ("methods = ['a']", "methods: expected a table"),
        ("probabilities = 'yes'", "probabilities: expected true or false, found 'yes'"),
        ("output = ['a', 'b']", "output: expected one value"),
        (
            "reference = 'r'\noutput = 'o'\nmissing = 'best'\n[methods]\nm = 'm'",
            "'best' is not one of",
        ),
    ],
)
def test_an_invalid_configuration_is_rejected(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text, encoding="utf-8")
    done = probdice("evaluate", "--config", file, folder=tmp_path)
    assert done.returncode == 2
    words = re.sub(r"[│╭╮╰╯─\s]+", " ", done.stderr)
    assert re.sub(r"\s+", "", reason) in re.sub(r"\s+", "", words)
