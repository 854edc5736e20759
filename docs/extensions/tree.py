"""The directive `decision-tree`: which number to report, drawn as a tree of questions.

A question has an answer for yes and one for no; an answer is another question, or a leaf with the
anchor of the section that it leads to. It is drawn twice, for wide screens and for narrow ones.
"""

import textwrap
from dataclasses import dataclass
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

__all__ = ["TREE", "Leaf", "Question", "leaves", "setup"]

STEP = 30  # from one level to the next
LINE = 18  # of text
GAP = 16  # between two boxes


@dataclass(frozen=True)
class Leaf:
    """A number to report, and the section that has the sentence for it."""

    text: str
    anchor: str


@dataclass(frozen=True)
class Question:
    """A question with two answers."""

    text: str
    yes: "Question | Leaf"
    no: "Question | Leaf"


LETTER = {Question: 7.4, Leaf: 8.6}  # width of a letter, at most on average: leaves are bold

TREE = Question(
    "Are regions many and small, and counted one by one? (cells, lesions, trees)",
    Leaf("F1 and panoptic quality, with splits and merges", "instances"),
    Question(
        "Are labels agreed: does a label mean the same on both sides?",
        Question(
            "Are probabilities meant as such? (partial volumes, raters, a network’s doubt)",
            Question(
                "Does it matter whether a small probability is 0.01 or 0.001?",
                Leaf("Aitchison score, with its floor", "ratios"),
                Leaf("Score, and the fuzzy Dice of every region", "probabilities"),
            ),
            Leaf("Dice of every region, mean and lowest", "agreed-labels"),
        ),
        Question(
            "May a region be split or joined?",
            Leaf("Both explained shares", "split-or-joined"),
            Question(
                "Do numbers mean the same in every image? (clusters of one model)",
                Leaf("Matched score by one correspondence for the whole set", "clusters"),
                Leaf("Matched score and adjusted score", "one-to-one"),
            ),
        ),
    ),
)


class DecisionTree(SphinxDirective):
    """The tree as two SVG drawings, of which the page shows the one that fits."""

    def run(self) -> list[nodes.Node]:
        drawings = _drawn(760, "tree-wide") + _drawn(356, "tree-narrow")
        return [nodes.raw("", f'<div class="decision-tree">{drawings}</div>', format="html")]


def leaves(node: Question | Leaf = TREE) -> list[Leaf]:
    """All leaves, from top to bottom."""
    if isinstance(node, Leaf):
        return [node]
    return leaves(node.yes) + leaves(node.no)


def _drawn(width: int, name: str) -> str:
    shapes: list[str] = []
    step = STEP if width > 500 else STEP // 2
    bottom = _draw(TREE, "", 0, 8, width, step, shapes)
    return (
        f'<svg class="{name}" viewBox="0 0 {width} {bottom}" role="group" '
        f'aria-label="A tree of questions that ends in the number to report">'
        f"{''.join(shapes)}</svg>"
    )


def _draw(
    node: Question | Leaf,
    answer: str,
    depth: int,
    top: float,
    width: int,
    step: int,
    shapes: list[str],
) -> float:
    """Draw a node and all below it; where the next one may begin."""
    left = 8 + depth * step
    lines = textwrap.wrap(
        (f"{answer}: " if answer else "") + node.text, int((width - left - 24) / LETTER[type(node)])
    )
    height = LINE * len(lines) + 14
    words = "".join(
        f'<tspan x="{left + 12}" y="{top + 20 + LINE * k}">{escape(line)}</tspan>'
        for k, line in enumerate(lines)
    )
    kind = "leaf" if isinstance(node, Leaf) else "question"
    box = (
        f'<rect class="{kind}" x="{left}" y="{top}" width="{width - left - 4}" height="{height}" '
        f'rx="6"/><text class="{kind}">{words}</text>'
    )
    bottom = top + height + GAP
    if isinstance(node, Leaf):
        shapes.append(f'<a href="#{node.anchor}">{box}</a>')
        return bottom
    shapes.append(box)
    spine = left + step / 2 - 2
    for said, child in (("Yes", node.yes), ("No", node.no)):
        middle = bottom + 16
        shapes.append(
            f'<path class="branch" d="M{spine} {top + height} V{middle} H{left + step}"/>'
        )
        bottom = _draw(child, said, depth + 1, bottom, width, step, shapes)
    return bottom


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("decision-tree", DecisionTree)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
