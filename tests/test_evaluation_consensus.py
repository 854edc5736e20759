"""The consensus of raters keeps the integer labels and names of regions in an evaluation."""

import copy
import csv
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from test_cli_compare import run

import probdice
from probdice import Geometry, InputError, Segmentation
from probdice.evaluation.journal import locked

NAMES = {0: "background", 1: "kidney", 3: "cyst", 17: "liver", 53: "spleen"}
PLACE = Geometry((12, 10, 6), np.diag([2.0, 2.0, 3.0, 1.0]))


def volume(labels: tuple[int, ...], seed: int, share: float) -> NDArray[np.uint8]:
    """Slabs of the labels along the first axis, with some wrong voxels."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.repeat(np.arange(len(labels)), 12 // len(labels)), 60).reshape(12, 10, 6)
    wrong = rng.random(truth.shape) < share
    return np.array(labels, np.uint8)[
        np.where(wrong, rng.integers(len(labels), size=truth.shape), truth)
    ]


def foreground_dice(
    raters: list[NDArray[Any]], method: NDArray[Any], labels: tuple[int, ...]
) -> float:
    """2 Σ min(p, q) / (Σ p + Σ q) per label except 0; p is the share of raters with it."""
    values = []
    for label in labels[1:]:
        p = np.mean([rater == label for rater in raters], axis=0)
        q = (method == label).astype(float)
        values.append(2 * np.minimum(p, q).sum() / (p.sum() + q.sum()))
    return float(np.mean(values))


CASES = {"a": (0, 17, 53), "b": (0, 1, 3), "c": (0, 1, 17)}


def store(folder: Path, case: str, values: NDArray[Any], suffix: str, names: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    named = names and suffix != ".npy"  # .npy stores no names; --names gives them
    present = {label: NAMES[label] for label in np.unique(values).tolist()} if named else None
    geometry = None if suffix == ".npy" else PLACE
    segmentation = Segmentation.from_labels(values, names=present, geometry=geometry)
    probdice.write(folder / f"{case}{suffix}", segmentation)


@pytest.mark.parametrize("suffix", [".nii.gz", ".npy", ".nrrd"])
@pytest.mark.parametrize("names", [False, True])
def test_foreground_dice_against_the_consensus_matches_labels(
    tmp_path: Path, suffix: str, names: bool
) -> None:
    expected = {}
    for number, (case, labels) in enumerate(CASES.items()):
        maps = [volume(labels, 10 * number + k, share) for k, share in enumerate((0.1, 0.2, 0.02))]
        for folder, values in zip(("anna", "ben", "method"), maps, strict=True):
            store(tmp_path / folder, case, values, suffix, names)
        expected[case] = foreground_dice(maps[:2], maps[2], labels)
    table = tmp_path / "names.csv"
    table.write_text("".join(f"{label},{name}\n" for label, name in NAMES.items()))
    done = run(
        "evaluate", "consensus", tmp_path / "method", "-o", tmp_path / "out", "--match", "labels",
        "--rater", f"anna={tmp_path / 'anna'}", "--rater", f"ben={tmp_path / 'ben'}",
        "--background", "0", *(["--names", table] if names and suffix == ".npy" else []),
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = csv.DictReader((tmp_path / "out" / "cases.csv").read_text().splitlines())
    values = {row["case"]: float(row["foreground_dice"]) for row in rows}
    assert values == pytest.approx(expected, abs=1e-6)
    assert min(expected.values()) > 0.8


def test_a_consensus_has_the_integer_labels_and_names_of_its_raters() -> None:
    raters = [
        Segmentation.from_labels([0, 17, 17, 53], names={17: "liver", 53: "aorta"}),
        Segmentation.from_labels([0, 17, 53, 53], names={17: "liver", 53: "aorta"}),
    ]
    segmentation = probdice.consensus(raters, match="labels").segmentation
    assert segmentation.labels == (0, 17, 53)
    assert segmentation.regions == (0, "liver", "aorta")
    assert segmentation.probabilities().tolist() == [[1, 0, 0, 0], [0, 1, 0.5, 0], [0, 0, 0.5, 1]]
    assert probdice.compare([0, 17, 17, 53], segmentation, match="labels").score == pytest.approx(
        0.875
    )


def test_raters_with_different_integer_labels_are_matched_by_name() -> None:
    raters = [
        Segmentation.from_labels([0, 1, 1, 2], names={1: "liver", 2: "spleen"}),
        Segmentation.from_labels([0, 2, 2, 1], names={2: "liver", 1: "spleen"}),
        Segmentation.from_labels([0, 1, 1, 2], names={1: "liver", 2: "spleen"}),
    ]
    segmentation = probdice.consensus(raters, match="labels").segmentation
    assert (segmentation.labels, segmentation.regions) == ((0, 1, 2), (0, "liver", "spleen"))
    assert segmentation.probabilities().tolist() == [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]


@pytest.mark.parametrize("method", ["mean", "staple"])
def test_a_consensus_can_be_pickled_and_copied(method: Any) -> None:
    consensus = probdice.consensus([[0, 17, 17, 53], [0, 17, 53, 53]], method=method)
    for twin in (pickle.loads(pickle.dumps(consensus)), copy.deepcopy(consensus)):
        assert twin.to_dict() == consensus.to_dict()
        assert twin.segmentation.labels == (0, 17, 53)
        expected = consensus.segmentation.probabilities()
        assert twin.segmentation.probabilities().tolist() == expected.tolist()


def test_the_consensus_file_is_small_and_has_labels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    blocks = np.kron(rng.permutation(64).reshape(8, 8), np.ones((25, 25), int)).astype(np.uint8)
    for name, moved in (("anna", 0), ("ben", 1), ("method", 2)):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "photograph.npy", np.roll(blocks, moved, axis=0))
    raters = {name: tmp_path / name for name in ("anna", "ben")}
    probdice.evaluate(None, {"m": tmp_path / "method"}, raters=raters, out=tmp_path / "out")
    (file,) = (tmp_path / "out" / "consensus").iterdir()
    assert file.stat().st_size < 64 * 200 * 200 * 4 / 50  # of float32, uncompressed
    assert probdice.read(file).labels == tuple(range(64))


def test_the_backgrounds_of_raters_are_matched_in_a_consensus(tmp_path: Path) -> None:
    # By overlap alone, the background of ben would be matched with region 1 of anna.
    for folder, labels in (
        ("anna", [1, 1, 1, 1, 1, 1, 0, 0]),
        ("ben", [0, 0, 0, 0, 0, 1, 0, 0]),
        ("method", [1, 1, 1, 1, 1, 1, 0, 0]),
    ):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "case.npy", np.array(labels))
    raters = {name: tmp_path / name for name in ("anna", "ben")}
    result = probdice.evaluate(None, tmp_path / "method", raters=raters, background=0)
    # The volume of region 1 in the mean is (6 + 1) / 2, all of it inside the method's 6 pixels.
    assert result.comparison("case").foreground_dice == pytest.approx(2 * 3.5 / (3.5 + 6))


def test_the_regions_of_a_consensus_are_matched_inside_the_mask(tmp_path: Path) -> None:
    # Inside the mask, anna and ben agree: 1 is 5 and 2 is 6. Outside, 1 covers 6 and 2 covers 5.
    images = {
        "anna": [1, 1, 2, 2, 1, 1, 1, 2, 2, 2],
        "ben": [5, 5, 6, 6, 6, 6, 6, 5, 5, 5],
        "method": [1, 1, 2, 2, 1, 1, 1, 2, 2, 2],
        "mask": [1, 1, 1, 1, 0, 0, 0, 0, 0, 0],
    }
    for folder, values in images.items():
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "a.npy", np.array([values, values], np.uint8))

    def scores(mask: str | None) -> list[float]:
        result = probdice.evaluate(
            None,
            {"method": tmp_path / "method"},
            raters={name: tmp_path / name for name in ("anna", "ben")},
            mask=None if mask is None else tmp_path / mask,
            out=tmp_path / "out",
        )
        return result.values("score")["method"].tolist()

    assert scores(None) == pytest.approx([0.8], abs=1e-6)  # 8 of 20 pixels have a share of 1/2
    assert scores("mask") == pytest.approx([1.0], abs=1e-6)  # the stored consensus is not used
    np.save(tmp_path / "mask" / "a.npy", np.array([[0, 0, 0, 0, 1, 1, 1, 1, 1, 1]] * 2, np.uint8))
    assert scores("mask") == pytest.approx([1.0], abs=1e-6)
    np.save(tmp_path / "mask" / "a.npy", np.array([[1, 1, 1, 1, 1, 1, 1, 1, 1, 1]] * 2, np.uint8))
    assert scores("mask") == pytest.approx([0.8], abs=1e-6)


def test_the_consensus_uses_the_tolerance_for_grids(tmp_path: Path) -> None:
    values = np.repeat(np.array([0, 17], np.uint8), 360).reshape(12, 10, 6)
    for name, offset in (("anna", 0.0), ("ben", 0.6), ("method", 0.0)):  # 0.6 mm are 0.3 voxels
        affine = np.diag([2.0, 2.0, 3.0, 1.0])
        affine[0, 3] = offset
        (tmp_path / name).mkdir()
        segmentation = Segmentation.from_labels(values, geometry=Geometry((12, 10, 6), affine))
        probdice.write(tmp_path / name / "a.nii.gz", segmentation)
    result = probdice.evaluate(
        None,
        {"method": tmp_path / "method"},
        raters={name: tmp_path / name for name in ("anna", "ben")},
        geometry_tolerance=0.5,
    )
    assert result.values("score")["method"].tolist() == [1.0]


def test_a_consensus_is_written_again_if_a_rater_is_added_or_replaced(tmp_path: Path) -> None:
    raters = {name: tmp_path / name for name in ("anna", "ben", "carl")}
    maps = {"anna": [0, 1, 1, 1], "ben": [0, 1, 1, 1], "carl": [0, 0, 0, 1], "method": [0, 1, 1, 1]}

    def save(folder: str, case: str, labels: list[int]) -> None:
        (tmp_path / folder).mkdir(exist_ok=True)
        np.save(tmp_path / folder / case, np.array(labels))
        os.utime(tmp_path / folder / f"{case}.npy", (1, 1))  # older than the consensus

    def score() -> float:
        options = {"raters": raters, "background": 0, "out": tmp_path / "out", "verify": True}
        result = probdice.evaluate(None, tmp_path / "method", **options)
        return result.comparison("a").score

    for folder, labels in maps.items():
        save(folder, "b", labels)
        if folder != "carl":
            save(folder, "a", labels)
    assert score() == 1
    save("carl", "a", maps["carl"])
    assert score() == pytest.approx(1 - 2 / 3 / 4)  # at two of four pixels, p = 2/3
    save("ben", "a", maps["carl"])
    assert score() == pytest.approx(1 - 4 / 3 / 4)


def test_options_for_reading_raters_do_not_apply_to_their_consensus(tmp_path: Path) -> None:
    # Percentages of two regions; the missing probability is the region "background".
    for folder, first in (("anna", [100, 50.5, 0]), ("ben", [100, 75.5, 0])):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "a", np.array([first, [0, 24.5, 50]]))
    (tmp_path / "method").mkdir()
    np.save(tmp_path / "method" / "a", np.array([[1, 0.5, 0], [0, 0.25, 0.5], [0, 0.25, 0.5]]))
    result = probdice.evaluate(
        None,
        tmp_path / "method",
        raters={name: tmp_path / name for name in ("anna", "ben")},
        scale={"reference": 100},
        sums={"reference": "background"},
    )
    # At the second pixel, the mean of the raters is (0.63, 0.245, 0.125).
    assert result.comparison("a").score == pytest.approx(1 - (0.005 + 0.125) / 3, abs=1e-6)
    assert result.rater_comparison is not None
    assert result.rater_comparison.means["ben"]["anna"] == pytest.approx(1 - 0.25 / 3, abs=1e-6)


def test_a_consensus_overwrites_the_temporary_file_of_a_killed_run(tmp_path: Path) -> None:
    for folder in ("anna", "ben", "method"):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "case.npy", np.array([0, 1, 1, 2]))
    consensus = tmp_path / "out" / "consensus"
    consensus.mkdir(parents=True)
    (consensus / ".case.partial.npz").write_bytes(b"incomplete")
    raters = {name: tmp_path / name for name in ("anna", "ben")}
    options = {"raters": raters, "out": tmp_path / "out"}
    result = probdice.evaluate(None, tmp_path / "method", **options)
    assert result.comparison("case").score == 1
    assert [file.name for file in consensus.iterdir()] == ["case.npz"]
    with locked(tmp_path / "out"), pytest.raises(InputError, match="another run is writing"):
        probdice.evaluate(None, tmp_path / "method", **options)
