"""Results as plain types: round trips, and rejection of invalid content."""

import copy
import json
import math
import time
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

from probdice import (
    Aitchison,
    Comparison,
    InputError,
    Overlap,
    ProbdiceError,
    Segmentation,
    Similarity,
    compare,
)
from probdice.comparison.requested_metrics import STORED_METRICS, StoredMetric, compute_requested

REFERENCE = [1, 1, 1, 1, 2, 2, 2, 2]
SPLIT = [7, 7, 5, 5, 5, 9, 9, 9]
SOFT_REFERENCE = np.array([[0.9, 0.7, 0.2, 0.1], [0.1, 0.3, 0.8, 0.9]])
SOFT_SPLIT = np.array([[0.6, 0.5, 0.1, 0.0], [0.3, 0.3, 0.1, 0.1], [0.1, 0.2, 0.8, 0.9]])


def test_undefined_values_are_restored_from_a_dict():
    result = compare([0, 0], [0, 0], background=0)  # one region: nothing to explain
    restored = Comparison.from_dict(result.to_dict())
    assert math.isnan(restored.explained["reference"])
    assert math.isnan(restored.foreground_chance)
    assert restored.to_json() == result.to_json()


def results():
    """One comparison of every kind."""
    earlier = compare(REFERENCE, SPLIT, merge="both")
    named = Segmentation.from_labels(REFERENCE, names={1: "liver", 9: "kidney"}, ignore=3)
    yield earlier
    yield compare(named, SPLIT)
    yield compare(REFERENCE, SPLIT, match=earlier)
    yield compare(REFERENCE, SPLIT, match={5: 1}, merge="prediction")
    yield compare(REFERENCE, SPLIT, match="paper", mask=[1.0, 1, 1, 1, 1, 1, math.nan, 0])
    yield compare(REFERENCE, SPLIT, similarity=Aitchison(0.01), merge="both")
    yield compare([1, 2], [3, 3], merge="both")
    yield compare(SOFT_REFERENCE, SOFT_SPLIT, merge="both")
    yield compare(SOFT_REFERENCE, SOFT_SPLIT, similarity=Aitchison(0.01), merge="both")
    yield compare([0, 0, 1, 1], SOFT_SPLIT, similarity=Aitchison(0.01))


@pytest.mark.parametrize("number", range(10))
def test_json_holds_everything_and_reads_back(number):
    result = list(results())[number]
    everything = [
        result.score, result.matched_score, result.chance, result.chance_error,
        result.adjusted_score, *result.explained.values(),
    ]  # fmt: skip
    text = result.to_json()
    again = Comparison.from_json(text)
    assert again.to_json() == text
    assert [
        again.score, again.matched_score, again.chance, again.chance_error,
        again.adjusted_score, *again.explained.values(),
    ] == pytest.approx(everything, abs=0, nan_ok=True)  # fmt: skip
    assert again.groups == result.groups
    assert again.merges == result.merges
    assert again.notes == result.notes
    assert again.unmatched == result.unmatched
    assert again.empty == result.empty
    assert (again.similarity, again.match, again.merge) == (
        result.similarity,
        result.match,
        result.merge,
    )
    assert (again.reference_labels, again.pixels) == (result.reference_labels, result.pixels)
    assert np.array_equal(again.weights, result.weights)
    assert str(again) == str(result)
    assert again._repr_html_() == result._repr_html_()
    assert again.lowest == result.lowest
    assert again.to_frame().equals(result.to_frame())


def test_the_format_has_a_version():
    content = compare(REFERENCE, SPLIT).to_dict()
    assert content["format"] == 3
    assert content["overlap"]["format"] == 1


def test_numbers_that_need_the_images_raise_a_named_error():
    again = Comparison.from_json(compare(SOFT_REFERENCE, SOFT_SPLIT).to_json())
    assert again.images is None
    for ask, name in (
        (lambda: again.map(), r"map\(\) requires the images"),
        (lambda: again.relabelled(), r"relabelled\(\) requires the images"),
        (lambda: again.chance, "chance level of probabilities requires the images"),
        (lambda: again.explained, "explained shares of probabilities require the images"),
    ):
        with pytest.raises(ProbdiceError, match=name):
            ask()


def test_json_has_null_for_nan():
    text = compare([1, 2], [3, 3], merge="both").to_json()
    assert '"adjusted_score": null' in text
    assert math.isnan(Comparison.from_json(text).adjusted_score)


def test_json_of_another_kind_is_rejected():
    with pytest.raises(InputError, match="not JSON"):
        Comparison.from_json("{")
    with pytest.raises(InputError, match="format 3, found format 99"):
        Comparison.from_json('{"format": 99}')
    with pytest.raises(InputError, match="format 3, found list"):
        Comparison.from_json("[]")
    with pytest.raises(InputError, match="not JSON"):
        Comparison.from_json("[" * 100_000)


def test_json_of_many_regions_is_small_and_fast():
    # 2,000 × 2,000 regions, each of which meets a few others.
    pixels = np.arange(2000 * 50)
    result = compare(pixels // 50, (pixels + 20) // 50)
    start = time.process_time()
    text = result.to_json()
    again = Comparison.from_json(text)
    assert time.process_time() - start < 15  # half a second on an idle machine
    assert len(text) < 2_000_000
    assert again.score == result.score


# Odd content -----------------------------------------------------------------------------------

ODD = [None, True, -1, 10**30, 0.5, math.inf, "x", "", [], [1], [[]], {}, {"x": 1}]


def places(content, path=()):
    """The path to every value in nested content."""
    yield path
    if isinstance(content, dict):
        items = content.items()
    elif isinstance(content, list):
        items = list(enumerate(content))[:2]
    else:
        return
    for key, value in items:
        yield from places(value, (*path, key))


def changed(content, path, change):
    content = copy.deepcopy(content)
    parent = content
    for key in path[:-1]:
        parent = parent[key]
    change(parent, path[-1])
    return content


def use(content):
    """Restore content and access every number; only errors of probdice may be raised."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = Comparison.from_json(json.dumps(content))
            str(result)
            result._repr_html_()
            result.to_json()
            result.to_frame()
            hash(result.groups), hash(result.merges)
            assert isinstance(result.lowest.dice, float)
            for name in ("score", "matched_score", "chance", "adjusted_score", "explained"):
                try:
                    getattr(result, name)
                except ProbdiceError:
                    continue
            assert result.weights.ndim == 2
            try:
                compare(REFERENCE, SPLIT, match=result)
                result.overlap.compare(merge="both")
                result.overlap + result.overlap
            except ProbdiceError:
                return
    except ProbdiceError:
        return


def fuzzed():
    crisp = compare(
        Segmentation.from_labels(REFERENCE, names={1: "liver", 9: "kidney"}), SPLIT, merge="both"
    )
    soft = compare(
        SOFT_REFERENCE, SOFT_SPLIT, similarity=Aitchison(0.01), match={0: 0}, merge="prediction"
    )
    given = compare(REFERENCE, SPLIT, match=compare(REFERENCE, SPLIT))
    for result in (crisp, soft, given):
        yield json.loads(result.to_json())


@pytest.mark.parametrize("number", range(3))
def test_unusual_content_is_rejected_or_compared(number):
    content = list(fuzzed())[number]
    use(content)
    failures = []
    for path in places(content):
        if not path:
            continue
        changes = [("deleted", lambda parent, key: parent.pop(key))]
        for odd in ODD:
            changes.append((odd, lambda parent, key, odd=odd: parent.__setitem__(key, odd)))
        for name, change in changes:
            try:
                use(changed(content, path, change))
            except Exception as error:
                failures.append(f"{path} = {name!r}: {type(error).__name__}: {error}")
    assert failures == []


@dataclass(frozen=True)
class Corners:
    """A metric for the test below: the values of both sides at the first pixel."""

    values: tuple[int, ...]
    images: object = None

    def to_dict(self) -> dict[str, list[int]]:
        return {"values": list(self.values)}


def test_a_metric_is_one_entry_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def corners(result: Comparison) -> Corners:
        images = result.need_images("corners")
        sides = images.reference, images.prediction
        values = tuple(int(np.asarray(side.array)[0]) for side in sides)
        return result.numbers.get("corners", lambda: Corners(values, images))

    metric = StoredMetric(
        lambda options: options.merge == "both",
        corners,
        lambda content, result: Corners(tuple(content["values"])),
        lambda known: replace(known, images=None),
    )
    monkeypatch.setitem(STORED_METRICS, "corners", metric)
    result, other = compare([4, 4, 5], [7, 8, 8], merge="both"), compare([4, 5], [7, 8])
    for one in (result, other):
        compute_requested(one)
    assert "corners" not in other.to_dict()
    assert result.to_dict()["corners"] == {"values": [4, 7]}
    assert result.numbers.known("corners").images is not None
    assert result.detach().numbers.known("corners") == Corners((4, 7))
    assert Comparison.from_json(result.to_json()).numbers.known("corners") == Corners((4, 7))


def test_overlaps_of_a_user_defined_separable_similarity_are_restored(tmp_path):
    class Total(Similarity):
        """The absolute similarity, without compiled kernels."""

        name = "total"
        separable = True

        def __call__(self, p, q, *, axis=0):
            return 1 - np.abs(np.asarray(p) - np.asarray(q)).sum(axis=axis) / 2

    result = compare(SOFT_REFERENCE, SOFT_SPLIT, similarity=Total())
    result.overlap.save(tmp_path / "overlap.npz")
    assert Overlap.load(tmp_path / "overlap.npz").compare().score == pytest.approx(result.score)
    assert result.score == pytest.approx(compare(SOFT_REFERENCE, SOFT_SPLIT).score)
