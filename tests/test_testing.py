"""A similarity from outside the package works everywhere, and the checker finds invalid ones."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pytest

import probdice
from probdice import Absolute, Aitchison, Comparison, Similarity, compare
from probdice.testing import check_similarity


class Hellinger(Similarity):
    name = "hellinger"

    def __call__(self, p, q, *, axis=0):
        squares = (np.sqrt(p) - np.sqrt(q)) ** 2
        return 1 - np.sqrt(np.clip(squares.sum(axis=axis) / 2, 0, 1))


@dataclass(frozen=True)
class AbsoluteByDefinition(Similarity):
    """The absolute similarity without its kernels."""

    name: ClassVar[str] = "absolute by definition"

    def __call__(self, p, q, *, axis=0):
        return Absolute()(p, q, axis=axis)


@dataclass(frozen=True)
class AitchisonByDefinition(Similarity):
    """The Aitchison similarity without its kernels."""

    floor: float = 0.0
    name: ClassVar[str] = "aitchison by definition"

    def __call__(self, p, q, *, axis=0):
        return Aitchison(self.floor)(p, q, axis=axis)

    @property
    def unbounded(self):
        return self.floor == 0


@pytest.fixture
def maps():
    rng = np.random.default_rng(3)
    p = rng.dirichlet([1, 1, 1, 1], 300).T
    q = rng.dirichlet([1, 1, 1], 300).T
    return {"p": p, "q": q, "labels": rng.integers(3, 8, 300)}


@pytest.mark.parametrize(
    "similarity", [Absolute(), Aitchison(), Aitchison(0.01), Hellinger(), AitchisonByDefinition()]
)
def test_similarities_obey_the_laws(similarity):
    check_similarity(similarity)


@pytest.mark.parametrize(
    ("own", "built_in"),
    [
        (AbsoluteByDefinition(), Absolute()),
        (AitchisonByDefinition(), Aitchison()),
        (AitchisonByDefinition(0.02), Aitchison(0.02)),
    ],
)
@pytest.mark.parametrize("merge", ["none", "prediction", "reference", "both"])
@pytest.mark.parametrize("sides", [("p", "q"), ("labels", "q"), ("q", "labels"), ("labels",) * 2])
@pytest.mark.filterwarnings("ignore::probdice.ProbdiceWarning")
def test_definitions_and_compiled_kernels_agree(own, built_in, merge, sides, maps):
    reference, prediction = (maps[name] for name in sides)
    expected = compare(reference, prediction, similarity=built_in, merge=merge)
    result = compare(reference, prediction, similarity=own, merge=merge)
    assert result.score == pytest.approx(expected.score, abs=1e-9)
    assert result.matched_score == pytest.approx(expected.matched_score, abs=1e-9)
    np.testing.assert_allclose(result.weights, expected.weights, atol=1e-9)
    np.testing.assert_allclose(result.map(), expected.map(), atol=1e-6)
    assert [(g.reference, g.prediction) for g in result.groups] == [
        (g.reference, g.prediction) for g in expected.groups
    ]
    for group, other in zip(result.groups, expected.groups, strict=True):
        assert group.dice == pytest.approx(other.dice, abs=1e-9)
        assert group.similarity == pytest.approx(other.similarity, abs=1e-9)


def test_hellinger_by_hand():
    p, q = [[0.9], [0.1]], [[0.4], [0.6]]
    f = 1 - np.sqrt(((np.sqrt(0.9) - np.sqrt(0.4)) ** 2 + (np.sqrt(0.1) - np.sqrt(0.6)) ** 2) / 2)
    assert compare(p, q, similarity=Hellinger(), match="labels").score == pytest.approx(
        f, abs=1e-12
    )


def test_a_custom_similarity_has_chance_and_a_page(maps, tmp_path):
    result = compare(maps["p"], maps["q"], similarity=Hellinger(), merge="both")
    assert 0 < result.chance < 1
    assert result.chance_error > 0
    result.report(tmp_path / "page.html")
    assert "hellinger" in (tmp_path / "page.html").read_text()


def test_a_custom_similarity_is_stored_as_json(maps, tmp_path):
    result = compare(maps["p"], maps["q"], similarity=AitchisonByDefinition(0.25))
    back = Comparison.from_json(result.to_json())
    assert back.similarity == AitchisonByDefinition(0.25)
    assert back.score == result.score
    result.overlap.save(tmp_path / "overlap.npz")
    assert probdice.Overlap.load(tmp_path / "overlap.npz").similarity == AitchisonByDefinition(0.25)


def test_a_custom_similarity_is_found_by_its_name(maps):
    named = compare(maps["p"], maps["q"], similarity="hellinger")
    assert named.score == compare(maps["p"], maps["q"], similarity=Hellinger()).score


def hellinger_of_a_script():
    class Local(Hellinger):
        name = "local hellinger"

    return Local()


@pytest.mark.parametrize("similarity", [Hellinger(), hellinger_of_a_script()])
def test_a_folder_is_evaluated_with_a_custom_similarity(similarity, maps, tmp_path):
    for folder, values in (("reference", maps["p"]), ("prediction", maps["q"])):
        (tmp_path / folder).mkdir()
        for case in "ab":
            np.save(tmp_path / folder / f"{case}.npy", values)
    folders = tmp_path / "reference", tmp_path / "prediction"
    result = probdice.evaluate(*folders, out=tmp_path / "out", similarity=similarity, workers=2)
    expected = compare(maps["p"], maps["q"], similarity=similarity).score
    scores = [record.comparison.score for record in result.records]
    assert scores == pytest.approx([expected] * 2, abs=1e-12)


def test_a_subclass_that_redefines_f_does_not_use_the_kernels_of_its_parent():
    class Squared(Absolute):
        name: ClassVar[str] = "squared"

        def __call__(self, p, q, *, axis=0):
            return super().__call__(p, q, axis=axis) ** 2

    p, q = [[0.9, 0.5], [0.1, 0.5]], [[0.8, 0.5], [0.2, 0.5]]
    score = compare(p, q, similarity=Squared(), match="labels").score
    assert score == pytest.approx((0.81 + 1) / 2)


@dataclass(frozen=True)
class Broken(Similarity):
    f: Callable[..., Any]
    name: ClassVar[str] = "broken"

    def __call__(self, p, q, *, axis=0):
        return self.f(np.asarray(p), np.asarray(q), axis)


@pytest.mark.parametrize(
    ("f", "law"),
    [
        (lambda p, q, axis: 1 - np.abs(p - q).sum(axis), "between 0 and 1"),
        (lambda p, q, axis: 1 - np.maximum(p - q, 0).sum(axis) ** 2 * p.max(axis), "symmetric"),
        (lambda p, q, axis: 0.9 - np.abs(p - q).sum(axis) / 4, "equal vectors"),
        (lambda p, q, axis: 1 - np.abs(p - q).max(), "shape"),
        (lambda p, q, axis: 1 - np.abs(p - q).mean(axis), "both sides does not change f"),
        (lambda p, q, axis: 1 - np.abs(p - q).take(0, axis), "order of regions"),
    ],
)
def test_the_checker_names_the_violated_property(f, law):
    with pytest.raises(AssertionError, match=law):
        check_similarity(Broken(f))


def power(p, q, k, axis):
    return (1 - np.abs(np.asarray(p, float) - q).sum(axis=axis) / 2).clip(0, 1) ** k


@dataclass(frozen=True)
class Power(Similarity):
    k: float = 1.0
    name: ClassVar[str] = "power"

    def __call__(self, p, q, *, axis=0):
        return power(p, q, self.exponent, axis)

    @cached_property
    def exponent(self):
        return self.k


class PowerByAttribute(Similarity):
    name = "power by attribute"

    def __init__(self, k=1.0):
        self.k = k

    def __call__(self, p, q, *, axis=0):
        return power(p, q, self.k, axis)


@dataclass
class MutablePower(PowerByAttribute):
    k: float = 1.0
    name: ClassVar[str] = "mutable power"


@dataclass(frozen=True)
class UncomparedPower(Power):
    k: float = field(default=1.0, compare=False)
    name: ClassVar[str] = "uncompared power"


@dataclass
class MutableWithoutParameters(Hellinger):
    name: ClassVar[str] = "mutable without parameters"


class SlotPower(PowerByAttribute):
    __slots__ = ("k",)
    name = "slot power"


def test_each_value_of_a_parameter_has_its_own_kernels():
    p, q = [[0.9, 0.2], [0.1, 0.8]], [[0.6, 0.3], [0.4, 0.7]]  # f₁ is 0.7 and 0.9
    scores = [compare(p, q, similarity=Power(k), match="labels").score for k in (1, 2, 3)]
    assert scores == pytest.approx([0.8, 0.65, 0.536])
    check_similarity(Power(2.0))


@pytest.mark.parametrize(
    ("similarity", "message"),
    [
        (PowerByAttribute(2.0), "PowerByAttribute must be a frozen dataclass .* the attributes k"),
        (SlotPower(2.0), "SlotPower must be a frozen dataclass .* the attributes k"),
        (UncomparedPower(2.0), "UncomparedPower must be a frozen dataclass .* the attributes k"),
        (MutablePower(2.0), r"MutablePower must be .* found a mutable dataclass\. Decorate the"),
        (MutableWithoutParameters(), "MutableWithoutParameters must be .* a mutable dataclass"),
        (Power([2.0]), "parameters of Power must be immutable values.*unhashable type: 'list'"),
    ],
)
def test_similarities_that_their_parameters_do_not_identify_are_rejected(similarity, message):
    with pytest.raises(probdice.InputError, match=f"similarity: .*{message}"):
        compare([1, 2], [1, 2], similarity=similarity)
    with pytest.raises(AssertionError, match=message):
        check_similarity(similarity)


def test_default_attributes_of_a_similarity_given_by_name_are_rejected():
    with pytest.raises(probdice.InputError, match="PowerByAttribute must be a frozen dataclass"):
        compare([1, 2], [1, 2], similarity="power by attribute")


def test_an_unknown_similarity_is_an_error_with_a_remedy():
    content = compare([1, 2], [1, 2]).to_dict()
    content["overlap"]["similarity"] = {"name": "unheard of"}
    with pytest.raises(probdice.InputError, match=r"'unheard of' is unknown\. Import the module"):
        Comparison.from_dict(content)
