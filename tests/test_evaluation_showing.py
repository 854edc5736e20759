"""The HTML of an evaluation in a notebook."""

import numpy as np

from probdice.evaluation import evaluate

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
    assert "2 more failures are not shown; see .failures" in html
    assert "missing and failed cases" in html
    assert "cases and regions are not shown" in html
