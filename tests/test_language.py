"""Texts are written in plain English: a list of words and patterns that they avoid."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Metaphors, inversions and private words, each with what to write instead.
AVOIDED = {
    r"\bnobody\b": "name who or what is meant",
    r"\bwhoever\b": "the caller, the user",
    r"\b(is|are|was|were|be|been) (said|told)\b": "is set, is reported",
    r"\bheld (to|against)\b": "compared with",
    r"\bamong themselves\b": "inter-rater agreement, with each other",
    r"\bthe house\b|\brooms?\b|\bdoors?\b": "architecture, module, lazy import",
    r"\bspare regions?\b": "unmatched region",
    r"\b(without a|no|has no) partner\b": "unmatched",
    r"\bslow twin\b|\bhonest files?\b": "reference implementation, valid file",
    r"\bstrangers?\b|\bunderstudy\b|\brehears\w+\b": "unsupported file, child process",
    r"\bwithout a word\b": "silently",
    r"\bfound out\b": "computed",
    r"\bhabits?\b": "name what is meant",
    r"\bborne out\b": "confirmed",
    r"\bgoes first\b|\bcomes to nothing\b|\bwould miss\b": "say what happens",
    r"\bis no (segmentation|file|image|label|number|array)\b": "is not a …",
    r"\bthe only wiring\b|\bsurvives anything\b": "describe what the code does",
}
PATTERNS = {re.compile(pattern, re.IGNORECASE): advice for pattern, advice in AVOIDED.items()}


def python_texts(path):
    """Every string and comment of a Python file, with its line."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def plain_texts(path):
    """Every line of a file that is not Python."""
    yield from enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)


def files():
    folders = {"src": (".py", ".html", ".js", ".css"), "docs": (".py", ".md")}
    for folder, suffixes in folders.items():
        for path in sorted((ROOT / folder).rglob("*")):
            built = {"_build", "gallery", "generated"} & set(path.parts)
            if path.suffix in suffixes and not built:
                yield path
    for folder in ("benchmarks", "fuzz"):
        yield from sorted((ROOT / folder).rglob("*.py"))
    yield from (
        ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile")
    )


@pytest.mark.parametrize("path", list(files()), ids=lambda path: str(path.relative_to(ROOT)))
def test_texts_avoid_private_words(path):
    texts = python_texts(path) if path.suffix == ".py" else plain_texts(path)
    wrong = [
        f"line {line}: {match.group(0)!r} ({advice}): {text.strip()[:90]!r}"
        for line, text in texts
        for pattern, advice in PATTERNS.items()
        if (match := pattern.search(text))
    ]
    assert wrong == []
