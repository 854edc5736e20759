"""README, links between pages, and the architecture page are up to date."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


EXAMPLES = re.findall(r"```python\n((?:(?!```).)*)```\n```\n(.*?)```", README, re.DOTALL)


def test_there_is_an_example():
    assert len(EXAMPLES) == 1


@pytest.mark.parametrize(("code", "shown"), EXAMPLES)
def test_examples_print_the_output_shown(code, shown):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == shown


def test_both_commands_are_on_the_first_screen():
    first_screen = "\n".join(README.splitlines()[:30])
    assert "make demo" in first_screen
    assert "make test" in first_screen


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
    ],
)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)", (ROOT / page).read_text(encoding="utf-8")):
        assert ((ROOT / page).parent / target).exists(), target


def test_the_architecture_page_lists_the_packages_in_import_order():
    from test_architecture import PACKAGES

    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("## Packages")[2].partition("## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == PACKAGES


def test_the_architecture_page_names_modules_that_exist():
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:\w+/)*\w+\.py|\w+/(?:\w+/)*)`", page)
    assert len(paths) > 20
    missing = [
        path
        for path in paths
        if not (ROOT / "src" / "probdice" / path).exists() and not (ROOT / path).exists()
    ]
    assert missing == []


def test_the_architecture_page_names_objects_that_exist():
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`(?:\w+\.)*(_?[A-Za-z]\w*)(?:\(\))?`", page))
    assert {"_of_groups", "BUILT_IN", "run_pass", "score"} <= names
    sources = [*(ROOT / "src").rglob("*.py"), ROOT / "tests" / "test_options.py"]
    words = set().union(*(re.findall(r"\w+", path.read_text("utf-8")) for path in sources))
    modules = {path.stem for path in sources} | {path.parent.name for path in sources}
    assert sorted(names - words - modules) == []
