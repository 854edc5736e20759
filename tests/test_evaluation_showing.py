"""The HTML of an evaluation in a notebook, and the settings on its page."""

import numpy as np

from probdice.evaluation import Evaluation, evaluate
from probdice.report.evaluation_settings import evaluation_settings

REFERENCE = np.array([1, 1, 1, 1, 2, 2, 2, 2])
SPLIT = np.array([7, 7, 5, 5, 5, 9, 9, 9])


def test_the_html_lists_methods_failures_and_omissions(tmp_path):
    for name, arrays in {
        "truth": [REFERENCE] * 8,
        "<b>good</b>": [REFERENCE] * 8,
        "bad": [SPLIT, *[REFERENCE[:3]] * 7],
    }.items():
        folder = tmp_path / name.replace("<b>", "").replace("</b>", "")
        folder.mkdir()
        for k, array in enumerate(arrays):
            np.save(folder / f"case{k}", array)
    methods = {"<b>good</b>": tmp_path / "good", "bad": tmp_path / "bad"}
    result = evaluate(tmp_path / "truth", methods, out=tmp_path / "out", workers=1)
    html = result._repr_html_()
    assert "<b>good" not in html and "&lt;b&gt;good" in html
    assert "<td>1</td><td>&lt;b&gt;good&lt;/b&gt;</td><td>8/8</td><td>1.0000</td>" in html
    assert "<td>2</td><td>bad</td><td>1/8</td><td>0.6250</td>" in html
    assert html.count("failed: case") == 5
    assert "not shown: 2 more failures; see .failures" in html
    assert "missing and failed cases" in html
    assert "not shown: cases, regions and 6 other measures; see summaries()" in html


def test_the_settings_list_every_option_that_is_not_the_default(tmp_path):
    for name in ("truth", "mine"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a", REFERENCE.reshape(2, 4))
    options = {"boundaries": True, "tolerance": 2, "background": {"reference": 2, "prediction": 1}}
    result = evaluate(
        tmp_path / "truth",
        {"mine": tmp_path / "mine"},
        out=tmp_path / "out",
        workers=1,
        names={1: "grey", 2: "white"},
        derived={"all": (1, 2), "grey alone": "grey"},
        max_bytes=10**9,
        **options,
    )
    facts = {fact.name: fact.values for fact in evaluation_settings(result)}
    assert {name: facts[name] for name in list(facts)[3:-3]} == {
        "Names": ("1: grey; 2: white",),
        "Background": ("reference 2, prediction 1",),
        "Boundaries": ("yes",),
        "Tolerance, pixels": ("2",),
        "Derived": ("all: 1, 2; grey alone: grey",),
    }
    # Names that are not a table on disk are in summary.json as they are in the journal.
    assert evaluation_settings(Evaluation.load(tmp_path / "out")) == evaluation_settings(result)
