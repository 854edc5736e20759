"""The page "Run a challenge", in the layout of KiTS: its commands run, and NumPy checks them."""

import contextlib
import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest import approx
from typer.testing import CliRunner

from probdice import read
from probdice.cli.app import app
from probdice.evaluation import Evaluation

pytest.importorskip("cc3d")
PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "challenge.md"
BLOCK = re.compile(r"^```\{(run|command)\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REGIONS = {"kidney and masses": (1, 2, 3), "masses": (2, 3), "tumour": (2,)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the blocks of the page in a folder, except the programs that only show files."""
    folder = tmp_path_factory.mktemp("kits")
    with contextlib.chdir(folder):
        for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
            if ":hide:" in text:
                continue
            if kind == "run":
                exec(compile(text, str(PAGE), "exec"), {"__name__": "__main__"})
                continue
            expected = 1 if ":exit: 1" in text else 0
            for line in text.replace("\\\n", " ").splitlines():
                if line.startswith("probdice "):
                    command, _, target = line.partition(" > ")
                    done = CliRunner().invoke(app, shlex.split(command)[1:])
                    assert done.exit_code == expected, done.output
                    Path(target or "output.txt").write_text(done.output, encoding="utf-8")
    return folder


def labels(folder: Path, name: str, case: str) -> NDArray[np.int64]:
    return np.asarray(read(folder / name / f"{case}.nii.gz").array).astype(np.int64)


def dice(first: NDArray[np.int64], second: NDArray[np.int64], region: str) -> float:
    a, b = (np.isin(side, REGIONS[region]) for side in (first, second))
    return float(2 * (a & b).sum() / (a.sum() + b.sum()))


def test_the_dice_of_hierarchical_classes_equals_numpy(folder: Path) -> None:
    with (folder / "with-raters" / "cases.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["method"] for row in rows if row["status"] == "missing"] == ["snake"]
    scored = [row for row in rows if row["status"] == "scored"]
    assert len(scored) == 8 * 3 - 1
    for row in scored:
        sides = [labels(folder, name, row["case"]) for name in ("truth", row["method"])]
        for region in REGIONS:
            assert float(row[f"dice:{region}"]) == approx(dice(sides[0], sides[1], region))
            assert 0 < float(row[f"nsd@1:{region}"]) <= 1


def test_annotators_are_a_reference_value(folder: Path) -> None:
    """Inter-rater agreement is the mean over both directions, which are equal for Dice."""
    result = Evaluation.load(folder / "with-raters")
    assert result.rater_comparison is not None
    cases = result.cases
    among = [
        dice(*(labels(folder, f"annotator{k}", case) for k in (1, 2)), "kidney and masses")
        for case in cases
    ]
    assert result.rater_comparison.inter_rater.mean == approx(np.mean(among))
    own = [
        dice(labels(folder, rater, case), labels(folder, "unet", case), "kidney and masses")
        for case in cases
        for rater in ("annotator1", "annotator2")
    ]
    assert result.rater_comparison.methods["unet"].mean == approx(np.mean(own))
    assert "inter-rater agreement" in result.rater_comparison.sentence("unet")


def test_the_consensus_of_annotators_is_scored_without_components(folder: Path) -> None:
    """The consensus contains probabilities. The reference and each annotator are label maps."""
    consensus = Evaluation.load(folder / "with-raters" / "raters" / "consensus")
    assert not consensus.failures and not consensus.others.components
    for name in (".", "raters/first"):
        assert (folder / "with-raters" / name / "components.csv").exists()


def test_the_table_has_the_chosen_columns(folder: Path) -> None:
    table = (folder / "with-raters" / "table.md").read_text(encoding="utf-8").splitlines()
    assert table[0] == (
        "| place | method | Dice of tumour (95 % CI) | surface Dice at 1 of tumour (95 % CI) | "
        "mean rank | rank stability | cases |"
    )
    assert table[2].startswith("| 1 | unet | ")
    tumour = [
        dice(labels(folder, "truth", case), labels(folder, "unet", case), "tumour")
        for case in Evaluation.load(folder / "with-raters").cases
    ]
    assert f"| {np.mean(tumour):.3f} (" in table[2]
    assert r"\toprule" in (folder / "with-raters" / "table.tex").read_text(encoding="utf-8")
