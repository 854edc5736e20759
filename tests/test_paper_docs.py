"""The page about the method: its examples run, and its figures exist."""

import doctest
import re
from pathlib import Path

from probdice.paper.claims import steep_claim
from probdice.paper.figures import two_regions

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "method.md"


def test_the_examples_run() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert tried > 8 and failed == 0


def test_the_figures_exist_and_are_described() -> None:
    figures = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert len(figures) == 9
    for description, address in figures:
        assert len(description) > 20
        assert (PAGE.parent / address).stat().st_size > 10_000


def test_the_stated_numbers_were_measured() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert "314 of 318 points" in text and "314 of 318" in steep_claim(two_regions()).measured
