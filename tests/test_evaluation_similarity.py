"""Cases are computed again if the user's similarity has changed since the last run."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probdice import Absolute, Similarity
from probdice.evaluation import Progress, evaluate
from probdice.evaluation.similarity_fingerprint import similarity_fingerprint
from probdice.method.similarity import SIMILARITIES

SOURCE = """
class Power(Similarity):
    name = "power example"

    def __call__(self, p, q, *, axis=0):
        return (1 - np.abs(p - q).sum(axis) / 2) ** 2
"""


@pytest.fixture(autouse=True)
def unregistered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the similarity of a test after the test."""
    monkeypatch.setitem(SIMILARITIES, "power example", Absolute)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two cases whose two pixels each have f₁ = 0.8."""
    for name, values in (("truth", [[0.9, 0.2], [0.1, 0.8]]), ("mine", [[0.7, 0.4], [0.3, 0.6]])):
        (tmp_path / name).mkdir()
        for case in "ab":
            np.save(tmp_path / name / case, np.array(values))
    return tmp_path


def power(exponent: float) -> Similarity:
    class Power(Similarity):
        name = "power example"

        def __call__(self, p: Any, q: Any, *, axis: int = 0) -> Any:
            return (1 - np.abs(p - q).sum(axis) / 2) ** exponent

    return Power()


def other_power() -> Similarity:
    """Return the square, except for vectors that the fingerprint does not contain."""

    class Power(Similarity):
        name = "power example"

        def __call__(self, p: Any, q: Any, *, axis: int = 0) -> Any:
            exponent = np.where(np.isclose(p, 0.9).any(axis), 4, 2)
            return (1 - np.abs(p - q).sum(axis) / 2) ** exponent

    return Power()


def resumed(folder: Path, similarity: Similarity) -> tuple[list[float], int]:
    """The scores of both cases, and the number of cases that were not computed again."""
    states: list[Progress] = []
    out = folder / "out"
    result = evaluate(
        folder / "truth", folder / "mine", out=out, similarity=similarity, progress=states.append
    )
    return result.values("score")["mine"].tolist(), states[-1].resumed


def test_a_changed_similarity_is_computed_again(folder: Path) -> None:
    assert resumed(folder, power(1)) == (pytest.approx([0.8, 0.8]), 0)
    assert resumed(folder, power(1)) == (pytest.approx([0.8, 0.8]), 2)
    # The source is the same, but not the exponent, which is a variable outside the class.
    assert resumed(folder, power(2)) == (pytest.approx([0.64, 0.64]), 0)
    # The source differs. The first pixel has f = 0.8⁴ = 0.4096, the second 0.8² = 0.64.
    assert resumed(folder, other_power()) == (pytest.approx([0.5248, 0.5248]), 0)
    assert resumed(folder, other_power()) == (pytest.approx([0.5248, 0.5248]), 2)
    assert resumed(folder, power(1)) == (pytest.approx([0.8, 0.8]), 0)


def test_without_its_source_a_similarity_is_always_computed_again(folder: Path) -> None:
    names = {"Similarity": Similarity, "np": np, "__name__": "__main__"}
    exec(SOURCE, names)
    similarity: Similarity = names["Power"]()  # type: ignore[operator]
    assert similarity_fingerprint(similarity) is None
    for _ in range(2):
        assert resumed(folder, similarity) == (pytest.approx([0.64, 0.64]), 0)


def test_the_journal_identifies_the_code_of_a_similarity(folder: Path) -> None:
    resumed(folder, Absolute())
    resumed(folder, power(2))
    lines = (folder / "out" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    fingerprints = [json.loads(line)["similarity_fingerprint"] for line in lines]
    assert fingerprints == ["", "", *[similarity_fingerprint(power(2))] * 2]
    assert len(fingerprints[-1]) == 64


def test_base_classes_and_kernels_of_the_user_are_part_of_the_fingerprint() -> None:
    base = type(power(2))
    inherited = type("Power", (base,), {"__module__": __name__})
    assert similarity_fingerprint(inherited()) is None  # the source of the subclass is unknown

    class Kernels(base):  # type: ignore[misc,valid-type]
        kernels = "no_such_module:factory"

    assert similarity_fingerprint(Kernels()) is None

    class Subclass(Absolute):
        name = "power example"

    assert len(similarity_fingerprint(Subclass()) or "") == 64


def test_a_similarity_that_raises_an_error_has_no_fingerprint() -> None:
    class Undefined(Similarity):
        name = "power example"

        def __call__(self, p: Any, q: Any, *, axis: int = 0) -> Any:
            raise NotImplementedError

    assert similarity_fingerprint(Undefined()) is None
