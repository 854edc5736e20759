"""A comparison as text and as HTML."""

import numpy as np
import pytest

from probdice import Aitchison, Segmentation, compare

pytestmark = pytest.mark.filterwarnings("ignore::probdice.ProbdiceWarning")

REFERENCE = [1, 1, 1, 1, 2, 2, 2, 2]
SPLIT = [7, 7, 5, 5, 5, 9, 9, 9]


class Closing:
    """An array that must not be read after it is closed."""

    def __init__(self, array):
        self.inner, self.shape, self.dtype, self.open = array, array.shape, array.dtype, True

    def __getitem__(self, index):
        assert self.open, "a pixel was read"
        return self.inner[index]


def test_as_text():
    assert str(compare(REFERENCE, SPLIT)).splitlines() == [
        "Comparison (absolute): 2 reference and 3 prediction regions over 8 pixels",
        # Dice 4/6 of 1 ↔ 7, 6/7 of 2 ↔ 9, and 0 of the unmatched 5
        "  mean Dice 0.5079   adjusted score 0.4000 (chance 0.3750)",
        "  reference explained 0.6667   prediction explained 0.3333",
        "  lowest Dice 0.0000 (– ↔ 5)   unmatched regions: 1",
        "  score 0.6250",
        "  reference  prediction    Dice  similarity",
        "          1           7  0.6667      0.7500",
        "          2           9  0.8571      0.8750",
        "          –           5  0.0000      0.6250",
        "  note: 1 prediction region is unmatched and counts as Dice 0 (region 5). "
        'To merge it into a matched region, use merge="prediction".',
    ]


@pytest.mark.parametrize(
    ("options", "title"),
    [
        ({"similarity": Aitchison(0.01)}, "Comparison (aitchison with floor 0.01): "),
        ({"match": "paper", "merge": "both"}, "Comparison (absolute, match='paper', merge='both')"),
        ({"match": {5: 1}}, "Comparison (absolute, match=…): "),
    ],
)
def test_the_title_shows_the_options(options, title):
    assert str(compare(REFERENCE, SPLIT, **options)).startswith(title)


@pytest.mark.parametrize("similarity", ["absolute", "aitchison", Aitchison(0.01)])
@pytest.mark.parametrize("merge", ["none", "both"])
@pytest.mark.parametrize("kinds", ["soft", "mixed", "crisp"])
def test_showing_a_result_reads_no_pixels(similarity, merge, kinds):
    rng = np.random.default_rng(0)
    p, q = (np.moveaxis(rng.dirichlet(np.ones(k), (8, 9)), -1, 0) for k in (3, 5))
    p = Closing(p.argmax(0) if kinds != "soft" else p)
    q = Closing(q.argmax(0) if kinds == "crisp" else q)
    result = compare(p, q, similarity=similarity, merge=merge)
    p.open = q.open = False
    assert "lowest Dice" in str(result)
    assert result._repr_html_().startswith("<div>")
    assert result.groups and result.notes is not None and result.merges is not None
    p.open = q.open = True
    _ = result.matched_score, result.chance, result.explained
    p.open = q.open = False
    text = str(result)
    assert "chance" in text and "explained" in text
    assert ("matched score" in text) == bool(result.merges)


def test_faint_groups_are_marked_and_not_counted():
    right = [[0.98, 0.98, 0.01], [0.01, 0.01, 0.98], [0.01, 0.01, 0.01]]
    result = compare([0, 0, 1], right, match="labels")
    title, dice, lowest, score, header, first, _, last, note = str(result).splitlines()
    assert note.startswith("  note: Region 0 covers 65.3 % of the pixels on both sides.")
    assert title.endswith("2 reference and 2 prediction regions over 3 pixels")
    # 2 · 1.96 / 3.97 and 2 · 0.98 / 2
    assert dice.strip().startswith("mean Dice 0.9837")
    assert lowest == "  lowest Dice 0.9800 (1 ↔ 1)   unmatched regions: 0"
    assert (header, first) == (
        "  reference  prediction    Dice  similarity",
        "          0           0  0.9874      0.9833",
    )
    assert last == "          –           2  0.0000      0.9900  faint"
    assert score == "  score 0.9800"
    assert "<td>faint</td>" in result._repr_html_()


def test_merges_are_counted():
    text = str(
        compare(np.repeat([1, 2, 3], [6, 2, 8]), np.repeat([5, 6, 7], [8, 5, 3]), merge="both")
    )
    assert "matched score 0.6875; 1 reference region and 1 prediction region merged" in text


def test_html_escapes_names():
    reference = Segmentation.from_labels([0, 1], names={1: "<script>alert(1)</script>"})
    html = compare(reference, [0, 1])._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_a_long_table_of_groups_is_truncated():
    labels = np.arange(100)
    assert "… and 88 more groups" in str(compare(labels, labels))
    html = compare(labels, labels)._repr_html_()
    assert "Use to_frame() to get 88 more groups, Jaccard indices and volumes." in html
    assert "Not computed yet" not in html


def test_html_names_omitted_numbers():
    p = np.random.default_rng(0).dirichlet(np.ones(3), 20).T
    result = compare(p, p[::-1])
    assert "Use to_frame() to get Jaccard indices and volumes." in result._repr_html_()
    unknown = ".adjusted_score, .explained."
    assert f"Not computed yet: {unknown} Access" in result._repr_html_()
    assert f"Not available without the images: {unknown}" in result.detach()._repr_html_()
    _ = result.chance
    assert "Not computed yet: .explained. Access" in result._repr_html_()
    _ = result.explained
    assert "Not computed yet" not in result._repr_html_()


def test_the_repr_of_a_result_computes_nothing() -> None:
    result = compare(REFERENCE, SPLIT)
    text = "Comparison(absolute: 2 reference and 3 prediction regions over 8 pixels)"
    assert repr(result) == text
    assert all(name not in result.numbers for name in ("groups", "score", "chance", "explained"))
