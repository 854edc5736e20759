"""Notes of an evaluation on files that were left out or read differently from other files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probdice.errors import in_command
from probdice.evaluation import Evaluation, evaluate

LABELS = np.array([[0, 0, 1, 1]])


def save(folder: Path, **arrays: Any) -> Path:
    folder.mkdir(exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / name, array)
    return folder


def notes(result: Evaluation, kind: str) -> list[str]:
    return [str(note) for note in result.notes if note.kind == kind]


def test_follow_up_images_are_cases(tmp_path: Path) -> None:
    names = ("p", "p_0001", "q", "q_0001")
    truth = save(tmp_path / "truth", **dict.fromkeys(names, np.array([1, 1, 2, 2])))
    mine = save(
        tmp_path / "mine",
        **dict.fromkeys(("p", "q"), np.array([1, 1, 2, 2])),
        **dict.fromkeys(("p_0001", "q_0001"), np.array([1, 1, 1, 1])),
    )
    result = evaluate(truth, mine)
    assert result.cases == names
    assert result.values()["mine"].tolist() == [1, 0.5, 1, 0.5]
    assert notes(result, "channels") == []


def test_omitted_channels_are_noted(tmp_path: Path) -> None:
    channels = {f"p_000{k}": np.arange(4) for k in range(4)}
    truth = save(tmp_path / "truth", p=[1, 1, 2, 2], **channels)
    one = save(tmp_path / "one", p=[1, 1, 2, 2])
    two = save(tmp_path / "two", p=[1, 1, 2, 2], p_0000=[0, 1, 2, 3])
    mask = save(tmp_path / "mask", p=[1, 1, 1, 1])
    result = evaluate(truth, {"one": one, "two": two}, mask=mask, out=tmp_path / "out")
    (note,) = [note for note in result.notes if note.kind == "channels"]
    text = (
        "Files that look like channels of nnU-Net's images were left out: 4 of the reference "
        "(p_0000.npy, p_0001.npy, p_0002.npy, … 1 more) and 1 of two (p_0000.npy). If these files "
        "are cases, use "
    )
    assert str(note) == f"{text}pattern={{'reference': '{{case}}.npy', 'two': '{{case}}.npy'}}."
    assert in_command(note.message) == (
        f"{text}--pattern 'reference:{{case}}.npy' --pattern 'two:{{case}}.npy'."
    )
    assert Evaluation.load(tmp_path / "out").notes == result.notes
    both = evaluate(truth, two)
    assert notes(both, "channels")[0].endswith("use pattern='{case}.npy'.")
    assert notes(evaluate(truth, two, pattern="{case}.npy"), "channels") == []


def test_omitted_channels_of_subfolders_are_noted(tmp_path: Path) -> None:
    for name in ("truth", "mine"):
        save(tmp_path / name)
        save(tmp_path / name / "p", seg=[1, 1, 2, 2], seg_0000=[0, 1, 2, 3])
    (note,) = notes(evaluate(tmp_path / "truth", tmp_path / "mine"), "channels")
    assert "1 of the reference (p/seg_0000.npy) and 1 of mine (p/seg_0000.npy)" in note
    assert note.endswith("use pattern='{case}/*.npy'.")


def test_omitted_channels_of_raters_are_noted(tmp_path: Path) -> None:
    anna = save(tmp_path / "anna", p=[1, 1, 2, 2], p_0000=[0, 1, 2, 3])
    ben = save(tmp_path / "ben", p=[1, 1, 1, 2])
    mine = save(tmp_path / "mine", p=[1, 1, 2, 2])
    result = evaluate(None, mine, raters={"anna": anna, "ben": ben}, out=tmp_path / "out")
    assert notes(result, "channels") == [
        "Files that look like channels of nnU-Net's images were left out: 1 of anna (p_0000.npy). "
        "If these files are cases, use pattern={'anna': '{case}.npy'}."
    ]
    assert Evaluation.load(tmp_path / "out").notes == result.notes


# Foreground probabilities in percent. In cases d to g, no value is above 1.5 %.
PERCENT = {
    **dict.fromkeys("abc", np.array([[99.5, 95, 20, 10], [0.5, 5, 80, 90]])),
    **dict.fromkeys("defg", np.array([[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5]])),
}


def test_a_common_scale_that_is_not_applied_to_all_maps_is_noted(tmp_path: Path) -> None:
    truth = save(tmp_path / "truth", **dict.fromkeys("abcdefg", LABELS[0]))
    mine = save(tmp_path / "mine", **PERCENT)
    result = evaluate(truth, mine, scale=100, out=tmp_path / "out")
    (note,) = [note for note in result.notes if note.kind == "scaled"]
    text = (
        "The scale 100 was applied to 3 of 7 probability maps of mine. It was not applied to maps "
        "without values above 1.5 (d, e, f, … 1 more). To apply it to all of them, use "
    )
    assert str(note) == f'{text}scale={{"prediction": 100}}.'
    assert in_command(note.message) == f"{text}--scale prediction:100."
    assert Evaluation.load(tmp_path / "out").notes == result.notes
    assert str(note) in (tmp_path / "out" / "how.md").read_text(encoding="utf-8")
    options = {"scale": {"prediction": 100}, "sums": {"prediction": "background"}}
    assert notes(evaluate(truth, mine, **options), "scaled") == []


@pytest.mark.parametrize("cases", ["abc", "defg"])
def test_a_common_scale_for_all_or_no_maps_of_a_folder_is_not_noted(
    tmp_path: Path, cases: str
) -> None:
    truth = save(tmp_path / "truth", **dict.fromkeys(cases, LABELS[0]))
    mine = save(tmp_path / "mine", **{case: PERCENT[case] for case in cases})
    assert notes(evaluate(truth, mine, scale=100), "scaled") == []


def test_label_maps_among_scaled_maps_are_not_noted(tmp_path: Path) -> None:
    mine = save(tmp_path / "mine", a=PERCENT["a"], b=LABELS[0])
    truth = save(tmp_path / "truth", a=LABELS[0], b=LABELS[0])
    assert notes(evaluate(truth, mine, scale=100), "scaled") == []


def test_references_and_raters_with_different_scales_are_noted(tmp_path: Path) -> None:
    soft = save(tmp_path / "soft", a=PERCENT["a"], d=PERCENT["d"])
    labels = save(tmp_path / "labels", a=LABELS[0], d=LABELS[0])
    maps = "probability maps of {}. It was not applied to maps without values above 1.5 (d). To "
    text = "The scale 100 was applied to 1 of 2 " + maps + "apply it to all of them, use {}."
    result = evaluate(soft, labels, scale=100)
    assert notes(result, "scaled") == [text.format("the reference", 'scale={"reference": 100}')]
    raters = {"anna": soft, "ben": labels}
    mine = save(tmp_path / "mine", a=LABELS[0], d=LABELS[0])
    rated = evaluate(None, mine, raters=raters, scale=100, out=tmp_path / "out")
    assert notes(rated, "scaled") == [text.format("anna", 'scale={"reference": 100}')]
    against_ben = Evaluation.load(tmp_path / "out" / "raters" / "ben")
    assert notes(against_ben, "scaled") == notes(rated, "scaled")
