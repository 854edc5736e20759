"""Draw random sentences from messages, pages, documentation and docstrings, for proofreading.

python docs/draw_sentences.py SEED [COUNT]
"""

import ast
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHORTEST = 5  # words in a sentence
END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*])|\n\s*\n|\n\s*[-*|>#]|\s\|\s")


def texts() -> Iterator[tuple[str, str]]:
    """Every text of the project with the file that contains it."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield str(path.relative_to(ROOT)), node.value
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.html")]
    pages += [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    for path in sorted(pages):
        if not {"_build", "generated"} & set(path.parts):
            text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            yield str(path.relative_to(ROOT)), re.sub(r"<[^>]*>|\{[{%].*?[%}]\}", " ", text)


def sentences() -> list[tuple[str, str]]:
    """Sentences of at least a few words, without code and examples."""
    drawn = []
    for file, text in texts():
        prose = "\n".join(line for line in text.splitlines() if not line.strip().startswith(">>>"))
        for part in END.split(prose):
            sentence = " ".join(part.split())
            words = re.findall(r"[A-Za-z]{2,}", sentence)
            if len(words) >= SHORTEST and not re.search(r"[=;{}]{2}|^\W*$|---", sentence):
                drawn.append((file, sentence))
    return drawn


def main() -> None:
    """Print the sentences drawn with the given seed."""
    seed, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 80
    for number, (file, text) in enumerate(random.Random(seed).sample(sentences(), count), start=1):
        print(f"{number:3} {file}\n    {text}")


if __name__ == "__main__":
    main()
