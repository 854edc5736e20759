"""Draw the questions of explanation/which-number.md as a tree.

The page contains a nested list, which is readable as plain Markdown. A question has one item for
yes and one for no; an item is another question or a link to the section about a number. The site
shows two drawings instead of the list, one for wide screens and one for narrow screens.
"""

import textwrap
from dataclasses import dataclass
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

__all__ = ["Leaf", "Question", "setup"]

PAGE = "explanation/which-number"
STEP = 30  # pixels from one level to the next
LINE = 18  # pixels per line of text
GAP = 16  # pixels between two boxes


@dataclass(frozen=True)
class Leaf:
    """A number to report, and the anchor of the section about it."""

    text: str
    anchor: str


@dataclass(frozen=True)
class Question:
    """A question with two answers."""

    text: str
    yes: "Question | Leaf"
    no: "Question | Leaf"


LETTER = {Question: 7.4, Leaf: 8.6}  # upper bound of the mean width of a letter; leaves are bold


def draw_list(app: Sphinx, doctree: nodes.document) -> None:
    """Replace the first list of the page with drawings."""
    if app.env.docname != PAGE:
        return
    questions = next(doctree.findall(nodes.bullet_list))
    (first,) = questions.children
    tree = _read(first, "")
    drawings = _drawn(tree, 760, "tree-wide") + _drawn(tree, 356, "tree-narrow")
    html = f'<div class="decision-tree">{drawings}</div>'
    questions.replace_self(nodes.raw("", html, format="html"))


def _read(item: nodes.Node, answer: str) -> Question | Leaf:
    """Parse one item of the list; its text starts with the answer to the previous question."""
    text = item[0].astext()
    if not text.startswith(answer):
        raise ValueError(f"{PAGE}: expected an item that starts with {answer!r}, found {text!r}")
    text = text.removeprefix(answer).replace("\n", " ")
    if len(item) == 1:
        return Leaf(text, next(item.findall(nodes.reference))["refid"])
    yes, no = item[1]
    return Question(text, _read(yes, "Yes: "), _read(no, "No: "))


def _drawn(tree: Question | Leaf, width: int, name: str) -> str:
    shapes: list[str] = []
    step = STEP if width > 500 else STEP // 2
    bottom = _draw(tree, "", 0, 8, width, step, shapes)
    return (
        f'<svg class="{name}" viewBox="0 0 {width} {bottom}" role="group" '
        f'aria-label="Decision tree: questions that lead to the number to report">'
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
    """Draw a node and its children, and return the top of the next node."""
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
    for answer_text, child in (("Yes", node.yes), ("No", node.no)):
        middle = bottom + 16
        shapes.append(
            f'<path class="branch" d="M{spine} {top + height} V{middle} H{left + step}"/>'
        )
        bottom = _draw(child, answer_text, depth + 1, bottom, width, step, shapes)
    return bottom


def setup(app: Sphinx) -> dict[str, Any]:
    """Draw the list after the page has been read."""
    app.connect("doctree-read", draw_list)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
