"""The page of several raters."""

import base64
import zlib

import numpy as np
import pytest

import probdice
from probdice.pictures.rater_plots import region_colours
from probdice.report.rater_pages import raters_page

RATERS = {
    "anna": np.array([[1, 1, 2], [1, 2, 2]]),
    "ben": np.array([[7, 7, 7], [7, 9, 9]]),
    "<eva>": np.array([[5, 5, 4], [5, 4, 6]]),
}


def layer_of(page, name, shape):
    """The bytes of a layer, as slices, rows and columns."""
    layer = page.slices.content["layers"][name]
    packed = base64.b64decode(layer.get("codes") or layer["values"])
    return np.frombuffer(zlib.decompress(packed), "u1").reshape(shape)


def test_page_numbers_equal_those_of_the_agreement():
    consensus = probdice.consensus(RATERS)
    agreement, page = consensus.agreement, raters_page(consensus)
    tiles = {tile.name: tile for tile in page.tiles}
    # By hand, for anna and ben, anna and eva, ben and eva: region 1 has a Dice of 6/7, 1 and 6/7,
    # region 2 of 4/5, 4/5 and 1/2, region 6 of nothing, 0 and 0.
    means = [(6 / 7 + 1 + 6 / 7) / 3, (4 / 5 + 4 / 5 + 1 / 2) / 3, 0]
    assert tiles["Mean Dice"].value == f"{sum(means) / 3:.4f}"
    # Only eva has region 6, so another region is the worst one.
    assert tiles["Mean Dice"].about == "0.8024 without regions that only one rater has"
    assert (tiles["Worst region"].value, tiles["Worst region"].about) == (
        "0.7000",
        "region 2, 3 of 3 raters",
    )
    assert (tiles["Only one rater"].value, tiles["Only one rater"].about) == (
        "1",
        "of 3 regions, with Dice 0",
    )
    assert page.verdict.startswith(
        "Moderate overlap between raters (mean Dice 0.53, 0.80 without regions that only one "
        "rater has); "
        "weakest in region 2 (Dice 0.70); "
    )
    order = agreement.order
    assert [row[2].text for row in page.raters.rows] == [
        f"{agreement.others[k].score:.4f}" for k in order
    ]
    first, second = order[:2]
    assert page.matrices[0].rows[0][1].text == f"{agreement.score[first, second]:.3f}"
    assert page.names[0] == consensus.names[first]


def test_regions_have_the_dice_of_every_rater_and_pair():
    consensus = probdice.consensus(RATERS)
    page = raters_page(consensus)
    heads = [column.name for column in page.regions.columns]
    rows = {row[0].text: dict(zip(heads, row, strict=True)) for row in page.regions.rows}
    assert rows["1"]["Mean Dice"].text == f"{(6 / 7 + 1 + 6 / 7) / 3:.4f}"
    assert rows["1"]["anna"].text == f"{(6 / 7 + 1) / 2:.4f}" and rows["1"]["anna"].about == ""
    assert rows["2"]["<eva>"].text == f"{(4 / 5 + 1 / 2) / 2:.4f}"
    assert rows["2"]["<eva>"].about == "label 4"
    assert (rows["6"]["Raters"].text, rows["6"]["ben"].about) == ("1 of 3", "not used")
    # The matrix opens with the worst region. Cells have the colour of 1 − Dice, in ten steps.
    assert page.region_dice["names"] == ["2", "1", "6"]
    assert [row[0].text for row in page.regions.rows] == ["2", "1", "6"]
    shades = [region_colours(consensus)[k] for k in (1, 0, 2)]
    assert [row[0].colour for row in page.regions.rows] == shades
    names = [consensus.names[k] for k in consensus.agreement.order]
    pairs = {("anna", "ben"): 6 / 7, ("anna", "<eva>"): 1, ("ben", "<eva>"): 6 / 7}
    expected = [
        next(dice for pair, dice in pairs.items() if set(pair) == {names[i], names[j]})
        for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    assert page.region_dice["dice"][1] == pytest.approx(expected, abs=5e-4)
    eva, anna = names.index("<eva>"), names.index("anna")
    assert page.region_matrix.rows[eva][anna].text == "0.800"
    assert page.region_matrix.rows[eva][anna].shade == 2


def test_every_rater_has_a_layer_in_the_regions_of_the_consensus():
    consensus = probdice.consensus(RATERS)
    page = raters_page(consensus)
    names = [consensus.names[k] for k in consensus.agreement.order]
    assert [rater.name for rater in page.slices.raters] == names
    by_name = {rater.name: rater.layer for rater in page.slices.raters}
    # Codes are channels plus 1; the common regions are 1, 2 and 6.
    assert layer_of(page, by_name["ben"], (2, 3)).tolist() == [[1, 1, 1], [1, 2, 2]]
    assert layer_of(page, by_name["<eva>"], (2, 3)).tolist() == [[1, 1, 2], [1, 2, 3]]
    assert layer_of(page, "consensus", (2, 3)).tolist() == [[1, 1, 2], [1, 2, 2]]
    # In two pixels, one of three raters differs: log2(3) − 2/3 bits. The scale ends at 1 bit.
    bits = np.log2(3) - 2 / 3
    expected = np.rint(254 * np.array([[0, 0, bits], [0, 0, bits]]))
    assert layer_of(page, "disagreement", (2, 3)).tolist() == expected.tolist()
    lines = page.slices.content["outlines"]["outlines"]["lines"]
    assert [line["layer"] for line in lines] == [rater.layer for rater in page.slices.raters]
    assert page.slices.content["layers"]["consensus"]["colours"][0] == "#0072B2"


def test_the_page_opens_at_the_slice_where_raters_disagree_most():
    first = np.zeros((4, 5, 6), int)
    first[:1] = 1
    second = first.copy()
    second[2, :2] = 1
    content = raters_page(probdice.consensus([first, second])).slices.content
    assert content["names"][content["start"]] == "axis 0 slice 2" and len(content["names"]) == 4
    assert (content["height"], content["width"]) == (5, 6)


def test_the_verdict_names_a_rater_only_if_the_scores_differ():
    base = np.repeat([1, 2], 50)
    shifted = [np.roll(base, k) for k in range(3)]
    # The mean of the others agrees with each rater to 97 or 98 %, and by chance to 50 %.
    verdict = raters_page(probdice.consensus(shifted)).verdict
    assert verdict.endswith(
        "; every rater agrees about equally well with the others (adjusted scores 0.94 to 0.96)."
    )
    verdict = raters_page(probdice.consensus([base, base, base, np.roll(base, 20)])).verdict
    # Rolled by 20 of 100 pixels, 40 pixels differ.
    assert verdict.endswith("; Rater 4 agrees least with the other raters (adjusted score 0.20).")


def test_the_outlines_open_with_the_worst_region_where_raters_disagree_on_it():
    first = np.zeros((4, 8, 8), int)
    first[0, :6], first[2, :2, :2] = 1, 2
    second = first.copy()
    second[0, 5:] = 1  # 16 pixels differ in region 1
    second[2, 1] = 0  # 2 of 4 pixels differ in region 2: Dice 2·2 / (4 + 2)
    slices = raters_page(probdice.consensus([first, second], match="labels")).slices
    assert [name for _, name in slices.regions] == ["2", "1", "0"]
    assert dict(slices.regions)[3] == "2"  # codes are channels plus 1
    assert slices.content["names"][slices.content["start"]] == "axis 0 slice 2"


def test_the_background_is_transparent_on_an_image():
    raters = [np.array([[0, 0], [3, 3]]), np.array([[0, 0], [3, 0]])]
    colours = np.array([[[200, 100, 0], [50, 50, 50]], [[100, 100, 100], [0, 0, 0]]], np.uint8)
    page = raters_page(probdice.consensus(raters, background=0), image=colours)
    assert page.slices.content["layers"]["consensus"]["colours"] == ["", "#0072B2"]
    image = page.slices.content["image"]
    stored = np.frombuffer(zlib.decompress(base64.b64decode(image["values"])), "u1")
    assert image["colour"] and stored.tolist() == colours.reshape(-1).tolist()


def test_names_are_escaped_and_the_page_is_self_contained(tmp_path):
    file = tmp_path / "page.html"
    probdice.consensus(RATERS, method="staple").report(file, title="three <people>")
    text = file.read_text()
    assert "&lt;eva&gt;" in text and "<eva>" not in text
    assert "three &lt;people&gt;" in text
    assert ".matrices > div {" in text
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


def test_the_page_has_a_layer_of_every_rater_and_a_figure_states_their_number():
    many = {f"r{k:02}": RATERS["anna"] for k in range(21)}
    consensus = probdice.consensus(many)
    names = {rater.name for rater in raters_page(consensus).slices.raters}
    assert names == set(many)
    figure = consensus.plot()
    assert figure.get_suptitle() == "first 12 of 21 raters"


def test_faint_regions_are_marked_in_every_table():
    """Region 2 has a probability of 0.2 everywhere, so no pixel makes it the most probable one."""
    soft = np.array([[0.8, 0.8, 0.1, 0.1], [0.0, 0.0, 0.7, 0.7], [0.2, 0.2, 0.2, 0.2]])
    hard = np.array([[0.8, 0.8, 0.8, 0.1], [0.0, 0.0, 0.0, 0.7], [0.2, 0.2, 0.2, 0.2]])
    agreement = probdice.agreement([soft, hard], match="labels")
    frame = agreement.region_frame()
    assert frame.faint.tolist() == [False, False, True]
    assert agreement.to_dict()["regions"][2]["faint"] is True
    assert "2 (faint)  mean –" in str(agreement)
    rows = raters_page(probdice.consensus([soft, hard], match="labels")).regions.rows
    assert rows[-1][0].text == "2 (faint)"
