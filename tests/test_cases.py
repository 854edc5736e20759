"""Every case of cases.json, computed by an independent reference implementation."""

import json
import warnings
from math import nan
from pathlib import Path

import numpy as np
import pytest

from probdice import Absolute, Aitchison, ProbdiceWarning, compare

CASES = json.loads(Path(__file__).with_name("cases.json").read_text())
QUESTIONS = [(case, asked) for case in CASES for asked in case["expected"]]


def _side(content):
    if "labels" in content:
        return np.array(content["labels"])
    return np.array(content["probabilities"])


def _compared(case, **options):
    similarity = Absolute() if case["similarity"] == "absolute" else Aitchison(case["floor"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbdiceWarning)
        return compare(
            _side(case["reference"]), _side(case["prediction"]), similarity=similarity, **options
        )


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_weights_overlaps_and_explained(case):
    result = _compared(case)
    np.testing.assert_allclose(result.weights, case["weights"], rtol=0, atol=1e-9)
    overlaps = np.zeros_like(result.weights)
    frame = result.overlap.to_frame()
    rows = [result.reference_labels.index(label) for label in frame["reference"]]
    columns = [result.prediction_labels.index(label) for label in frame["prediction"]]
    overlaps[rows, columns] = frame["overlap"]
    np.testing.assert_allclose(overlaps, case["overlaps"], rtol=0, atol=1e-9)
    assert np.all(overlaps[np.array(case["overlaps"]) == 0] == 0)
    for side, share in case["explained"].items():
        expected = nan if share is None else share
        assert result.explained[side] == pytest.approx(expected, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize(
    ("case", "asked"),
    QUESTIONS,
    ids=[f"{case['name']}-{asked['match']}-{asked['merge']}" for case, asked in QUESTIONS],
)
def test_answer(case, asked):
    result = _compared(case, match=asked["match"], merge=asked["merge"])
    assert result.score == pytest.approx(asked["score"], abs=1e-9)
    matched = [
        [list(group.reference), list(group.prediction)]
        for group in result.groups
        if group.reference and group.prediction
    ]
    assert sorted(matched) == sorted(asked["groups"])
    assert [(merge.side, merge.region) for merge in result.merges] == [
        (merge["side"], merge["region"]) for merge in asked["merges"]
    ]
    assert [merge.gain for merge in result.merges] == pytest.approx(
        [merge["gain"] for merge in asked["merges"]], abs=1e-9
    )
    if asked.get("chance") is not None:
        assert result.chance == pytest.approx(asked["chance"], abs=1e-9)
        assert result.chance_error == 0
    assert result.map().mean(dtype=np.float64) == pytest.approx(result.score, abs=1e-6)
