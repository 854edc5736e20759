"""The page of several raters."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

import probdice
from probdice.report.rater_pages import raters_page

RATERS = {
    "anna": np.array([[1, 1, 2], [1, 2, 2]]),
    "ben": np.array([[7, 7, 7], [7, 9, 9]]),
    "<eva>": np.array([[5, 5, 4], [5, 4, 6]]),
}


def image_of(picture):
    data = base64.b64decode(picture.source.removeprefix("data:image/png;base64,"))
    return np.asarray(Image.open(io.BytesIO(data)))


def test_page_numbers_equal_those_of_the_agreement():
    consensus = probdice.consensus(RATERS)
    page = raters_page(consensus)
    assert page.figures[0].value == f"{consensus.agreement.mean_score:.4f}"
    assert [row.numbers[0] for row in page.raters] == [
        f"{one.score:.4f}" for one in consensus.agreement.others
    ]
    score = page.matrices[0]
    first, second = consensus.agreement.order[:2]
    assert score.rows[0][1].text == f"{consensus.agreement.score[first, second]:.3f}"
    assert score.names[0] == consensus.names[first]


def test_regions_list_their_raters_and_labels():
    rows = raters_page(probdice.consensus(RATERS)).regions
    assert [(row.label, row.raters, row.called) for row in rows] == [
        ("1", "3 of 3", ("1", "7", "5")),
        ("2", "3 of 3", ("2", "9", "4")),
        ("6", "1 of 3", ("–", "–", "6")),
    ]


def test_every_rater_has_a_picture_in_the_colours_of_the_consensus():
    consensus = probdice.consensus(RATERS)
    page = raters_page(consensus)
    assert [picture.name for picture in page.pictures] == [
        "Consensus", "Disagreement", "anna", "ben", "<eva>",
    ]  # fmt: skip
    both = image_of(page.pictures[2])[0, 0], image_of(page.pictures[3])[0, 0]
    assert both[0].tolist() == both[1].tolist() == [0x00, 0x72, 0xB2]
    assert image_of(page.pictures[1])[0, 0].tolist() == [0, 0, 4]  # all agree


def test_the_slice_of_a_volume_is_where_raters_disagree_most():
    first = np.zeros((4, 5, 3), int)
    first[:2] = 1
    second = first.copy()
    second[2, :2] = 1
    page = raters_page(probdice.consensus([first, second]))
    assert page.where == "axis 0, slice 2"


def test_names_are_escaped_and_the_page_is_self_contained(tmp_path):
    file = tmp_path / "page.html"
    probdice.consensus(RATERS, method="staple").report(file, title="three <people>")
    text = file.read_text()
    assert "&lt;eva&gt;" in text and "<eva>" not in text
    assert "three &lt;people&gt;" in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert "STAPLE, " in text


@pytest.mark.parametrize("count", [2, 3, 20])
def test_figures_of_any_number_of_raters_can_be_drawn(count):
    rng = np.random.default_rng(0)
    consensus = probdice.consensus([rng.integers(0, 3, (6, 7)) for _ in range(count)])
    figure = consensus.agreement.plot()
    assert figure.axes[0].images[0].get_array().shape == (count, count)
    titles = [ax.get_title() for ax in consensus.plot().axes]
    assert titles[0] == f"consensus of {count} raters (mean)" and "rater 2" in titles


def test_the_page_has_an_image_of_every_rater_and_a_figure_states_their_number():
    many = {f"r{k:02}": RATERS["anna"] for k in range(21)}
    consensus = probdice.consensus(many)
    assert [picture.name for picture in raters_page(consensus).pictures[2:]] == list(many)
    figure = consensus.plot()
    assert figure.get_suptitle() == "first 12 of 21 raters"
