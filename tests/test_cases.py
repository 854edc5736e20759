"""Every case of cases.json, made by a slow and independent implementation of the method."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from probdice import Absolute, Aitchison, ProbdiceWarning, compare

CASES = json.loads(Path(__file__).with_name("cases.json").read_text())


def _side(content):
    if "labels" in content:
        return np.array(content["labels"])
    return np.array(content["probabilities"])


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case):
    expected = case["expected"]
    sides = _side(case["reference"]), _side(case["prediction"])
    similarity = Absolute() if case["similarity"] == "absolute" else Aitchison(case["floor"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbdiceWarning)
        merged = compare(*sides, similarity=similarity, merge="both")
        strict = compare(*sides, similarity=similarity)

    assert merged.score == pytest.approx(expected["score"], abs=1e-9)
    assert merged.matched_score == pytest.approx(expected["matched_score"], abs=1e-9)
    assert strict.score == pytest.approx(expected["matched_score"], abs=1e-9)
    np.testing.assert_allclose(merged.weights, expected["weights"], rtol=0, atol=1e-9)
    assert [(list(g.reference), list(g.prediction)) for g in merged.groups] == [
        (g["reference"], g["prediction"]) for g in expected["groups"]
    ]
    assert [(m.side, m.region, list(m.into)) for m in merged.merges] == [
        (m["side"], m["region"], m["into"]) for m in expected["merges"]
    ]
    assert [m.gain for m in merged.merges] == pytest.approx(
        [m["gain"] for m in expected["merges"]], abs=1e-9
    )
    assert merged.map().mean(dtype=np.float64) == pytest.approx(merged.score, abs=1e-6)
