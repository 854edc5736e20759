r"""Escape text where it leaves the program: terminal, CSV, Markdown and LaTeX.

File names, region names, method names and case names come from other people. Each function here
writes a text so that the program that shows it cannot take it for a command: a terminal sees no
escape sequence, a spreadsheet no formula, Markdown no HTML. HTML pages are escaped by Jinja2.
"""

import json
import re
from collections.abc import Iterable, Sequence

__all__ = ["csv_text", "markdown", "printable", "tex", "visible"]

NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
FORMULA = re.compile(r"[\t\r\n]|\s*[=+@＝＋－＠-]")  # what a spreadsheet may take for a formula
QUOTED = re.compile(r'[",\r\n]')
MARKDOWN = {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {sign: f"\\{sign}" for sign in "\\`*_[]|~"}
BLOCK = re.compile(r"(\s*\d*)([#+=.)-])(?!\d)")  # starts a heading, a list or an underline
TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "–": "--", "−": "$-$", "↔": r"$\leftrightarrow$",
}  # fmt: skip


def printable(text: str) -> str:
    r"""Escape the characters that cannot be printed, line breaks included, as JSON does.

    Examples
    --------
    >>> from probdice.text.escaping import printable
    >>> print(printable("grey\x1b[2J matter\n"))
    grey\u001b[2J matter\n
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def visible(text: str) -> str:
    r"""Escape the characters that cannot be printed, except line breaks, for a terminal.

    JSON stays valid, with the same content.

    Examples
    --------
    >>> from probdice.text.escaping import visible
    >>> print(visible("first \x1b]0;title\x07\nsecond"))
    first \u001b]0;title\u0007
    second
    """
    return "\n".join(map(printable, text.split("\n")))


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Write rows as CSV in which no cell is a formula.

    A text that a spreadsheet would take for a formula gets an apostrophe in front: one that starts
    with ``=``, ``+``, ``-`` or ``@``, also after spaces, or with a tab or a line break. So does a
    text that starts with an apostrophe; removing one leading apostrophe from a cell therefore
    always gives the text. Numbers are unchanged, also those given as text.

    Examples
    --------
    >>> from probdice.text.escaping import csv_text
    >>> csv_text([["=1+1", "'a", -0.5, "-3", "liver"]])
    "'=1+1,''a,-0.5,-3,liver\\n"
    """
    return "".join(",".join(_cell(str(value)) for value in row) + "\n" for row in rows)


def markdown(text: str) -> str:
    r"""Write a text for Markdown: no HTML, no link, no new row or paragraph.

    Examples
    --------
    >>> from probdice.text.escaping import markdown
    >>> print(markdown("<b>a|b</b>"), markdown("[x](y)"), markdown("# 1"), markdown("-0.5"))
    &lt;b&gt;a\|b&lt;/b&gt; \[x\](y) \# 1 -0.5
    """
    escaped = "".join(MARKDOWN.get(character, character) for character in text)
    return printable(BLOCK.sub(r"\1\\\2", escaped, count=1) if BLOCK.match(escaped) else escaped)


def tex(text: str) -> str:
    r"""Write a text for LaTeX.

    Examples
    --------
    >>> from probdice.text.escaping import tex
    >>> print(tex("50 % of \\input"))
    50 \% of \textbackslash{}input
    """
    return "".join(TEX.get(character, character) for character in printable(text))


def _cell(text: str) -> str:
    if text.startswith("'") or (FORMULA.match(text) and not NUMBER.fullmatch(text)):
        text = f"'{text}"
    # The csv module of Python 3.11 would leave a carriage return unquoted.
    return '"' + text.replace('"', '""') + '"' if QUOTED.search(text) else text
