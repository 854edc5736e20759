"""Draw random sentences from messages, pages, documentation and docstrings, for proofreading.

python docs/draw_sentences.py SEED [COUNT]

A message that the code composes is one text, in which … replaces each value.
"""

import ast
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHORTEST = 5  # smallest number of words in a sentence
VALUE = "…"  # replaces a value in a message
MESSAGES = ("Error", "Warning", "BadParameter", "Note", "warn")  # ends of the names
OPENING = r"(?=[A-Z`*\"“(\[…])"
END = re.compile(
    rf"(?<!\bal\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<=[.!?])\s+{OPENING}|(?<=[.!?]\))\s+{OPENING}"
)
NOT_PROSE = r"^(?: {4}.*|[#!].*|:::.*|:\w.*|--[\w-]+|\(.*\)=|\|[-|]+)$"  # lines without prose
CODE = re.compile(
    r"[=;{}]{2}|[{};]$|^[.#<@]|^probdice [a-z]+ |\\[bdsw]|\(\?:|sys\.path|^\S+$|[├└]"
    r"|^\w+\[\w+[\[,]|\| None$"  # types
)
BLOCKS = re.compile(r"</?(?:p|div|li|ul|ol|td|th|tr|h\d|section|figure|br|option|button)\b[^>]*>")


def texts() -> Iterator[tuple[str, str]]:
    """Yield the texts of the package and the documentation, with the files that contain them."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for text in python_texts(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT)), text
    for path in sorted((ROOT / "src").rglob("*.html")):
        yield str(path.relative_to(ROOT)), html_text(path.read_text(encoding="utf-8"))
    pages = [*(ROOT / "docs").rglob("*.md")]
    pages += [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    for path in sorted(pages):
        if not {"_build", "generated"} & set(path.parts):
            yield str(path.relative_to(ROOT)), markdown_text(path.read_text(encoding="utf-8"))


def python_texts(source: str) -> Iterator[str]:
    """Yield the docstrings, messages and other strings of a module."""
    yield from _texts_in(ast.parse(source))


def _texts_in(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield docstring_text(ast.get_docstring(node) or "")
    if isinstance(node, ast.Call) and _name(node.func).endswith(MESSAGES):
        yield "".join(_joined(argument) for argument in node.args)
        for keyword in node.keywords:
            yield from _texts_in(keyword.value)
    elif isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
        text = _joined(node)
        yield text if text.strip(VALUE) else ""
    else:
        for child in ast.iter_child_nodes(node):
            is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if not is_docstring:
                yield from _texts_in(child)


def _joined(node: ast.AST) -> str:
    """Return the text of an expression, with a placeholder for each value."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else VALUE
    if isinstance(node, ast.JoinedStr):
        return "".join(_joined(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _joined(node.left) + _joined(node.right)
    return VALUE


def _name(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def docstring_text(text: str) -> str:
    """Return a docstring without section titles, parameter names and examples."""
    text = re.sub(r"^ *[A-Z][\w ]*\n *-{3,}$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^ *>>>.*(?:\n.+)*", "", text, flags=re.MULTILINE)
    text = re.sub(r"^[*\w`, ]+ : .*$|^\w+(?:, \w+)*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^\S.*\n(?= {4}\S)", "\n", text, flags=re.MULTILINE)  # types of results
    return re.sub(r"^ *(?:[-*]|\d+\.) ", "\n", text, flags=re.MULTILINE)


def markdown_text(text: str) -> str:
    """Return the prose, list items and table rows of a page, each as a paragraph."""
    text = re.sub(r"^ *(`{3,})(?!\{command-ref).*?^ *\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(NOT_PROSE, "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^> ", "", text, flags=re.MULTILINE)
    text = re.sub(r"^ *(?:[-*:]|\d+\.) |^\|", "\n", text, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)|\{py:obj\}", r"\1", text)


def html_text(text: str) -> str:
    """Return the text of a template, with a placeholder for each value."""
    text = re.sub(r"\{% el.*?%\}", " / ", text, flags=re.DOTALL)
    text = re.sub(r"<(script|style)\b.*?</\1>|\{[%#].*?[%#]\}", "", text, flags=re.DOTALL)
    text = re.sub(r"\{\{.*?\}\}", VALUE, text, flags=re.DOTALL)
    return re.sub(r"<[^>]*>", "", BLOCKS.sub("\n\n", text))


def sentences() -> list[tuple[str, str]]:
    """Return all sentences and messages of at least `SHORTEST` words, without code."""
    drawn = []
    for file, text in texts():
        for paragraph in re.split(r"\n\s*\n", text):
            is_row = paragraph.endswith("|")  # of a table
            for part in [paragraph.rstrip("|")] if is_row else END.split(paragraph):
                sentence = " ".join(part.split())
                words = re.findall(r"[A-Za-z]{2,}", sentence)
                if len(words) >= SHORTEST and not CODE.search(sentence):
                    drawn.append((file, sentence))
    return drawn


def main() -> None:
    """Print the sentences drawn with the given seed."""
    seed, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 80
    for number, (file, text) in enumerate(random.Random(seed).sample(sentences(), count), start=1):
        print(f"{number:3} {file}\n    {text}")


if __name__ == "__main__":
    main()
