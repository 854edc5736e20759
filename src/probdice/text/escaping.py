r"""Escape text for terminals, CSV, Markdown and LaTeX.

The names of files, regions, methods and cases are untrusted. Escaping prevents control sequences
in terminals, formulas in spreadsheets, HTML in Markdown, and commands in LaTeX. Jinja2 escapes text
in HTML pages.
"""

import json
import re
from collections.abc import Iterable, Sequence

__all__ = ["csv_text", "markdown", "printable", "tex", "visible"]

NUMBER = re.compile(r"[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|inf)")
FORMULA = re.compile(r"[\t\r\n]|\s*[=+@＝＋－＠-]")  # a spreadsheet may read this as a formula
QUOTED = re.compile(r'[",\r\n]')
MARKDOWN = {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {sign: f"\\{sign}" for sign in "\\`*_[]|~"}
BLOCK = re.compile(r"(\s*\d*)([#+=.)-])(?!\d)")  # starts a heading, a list or an underline
TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "–": "--", "−": "$-$", "↔": r"$\leftrightarrow$", "∞": r"$\infty$",
}  # fmt: skip


def printable(text: str) -> str:
    r"""Escape unprintable characters, including line breaks, as in JSON.

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
    r"""Escape unprintable characters, except line breaks, for a terminal.

    JSON text that is indented with spaces remains valid, and its content does not change.

    Examples
    --------
    >>> from probdice.text.escaping import visible
    >>> print(visible("first \x1b]0;title\x07\nsecond"))
    first \u001b]0;title\u0007
    second
    """
    return "\n".join(map(printable, text.split("\n")))


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV that contains no spreadsheet formulas.

    An apostrophe is added in front of strings that a spreadsheet may read as formulas. These are
    strings that start with ``=``, ``+``, ``-`` or ``@`` (or their full-width forms), with or
    without leading white space, and strings that start with a tab or a line break. An apostrophe is
    also added in front of strings that start with an apostrophe. To restore the original string,
    remove one leading apostrophe. Numbers, including ``-inf``, are unchanged, even if they are
    given as strings.

    Examples
    --------
    >>> from probdice.text.escaping import csv_text
    >>> csv_text([["=1+1", "'a", -0.5, "-3", "liver"]])
    "'=1+1,''a,-0.5,-3,liver\\n"
    """
    return "".join(",".join(_cell(str(value)) for value in row) + "\n" for row in rows)


def markdown(text: str) -> str:
    r"""Escape a string so that Markdown displays it as plain text on one line.

    Examples
    --------
    >>> from probdice.text.escaping import markdown
    >>> print(markdown("<b>a|b</b>"), markdown("[x](y)"), markdown("# 1"), markdown("-0.5"))
    &lt;b&gt;a\|b&lt;/b&gt; \[x\](y) \# 1 -0.5
    """
    escaped_text = "".join(MARKDOWN.get(character, character) for character in text)
    return printable(
        BLOCK.sub(r"\1\\\2", escaped_text, count=1) if BLOCK.match(escaped_text) else escaped_text
    )


def tex(text: str) -> str:
    r"""Escape text for LaTeX.

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
    # The csv module of Python 3.11 does not quote carriage returns.
    return '"' + text.replace('"', '""') + '"' if QUOTED.search(text) else text
