"""The documentation lists all names, options, formats, fields and notes, and its claims hold."""

import ast
import doctest
import re
import sys
from pathlib import Path
from typing import get_args

from extras import require

import probdice
from probdice.comparison.json_form import comparison_to_dict
from probdice.evaluation.journal import TYPES
from probdice.files import FORMATS
from probdice.options import EvaluateOptions
from probdice.options.declaration import declarations
from probdice.pictures import Kind
from probdice.pictures.evaluations import EvaluationKind

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def extension(name: str):
    """A module of docs/extensions."""
    from importlib import import_module

    sys.path.insert(0, str(DOCS / "extensions"))
    try:
        return import_module(name)
    finally:
        sys.path.pop(0)


# -- complete ------------------------------------------------------------------------------------


def test_the_reference_has_every_public_name():
    listed = re.findall(r"^   ([\w.]+)$", page("reference/python.md"), re.MULTILINE)
    assert set(probdice.__all__) <= set(listed)


def test_the_table_of_formats_has_every_suffix():
    table = page("reference/formats.md")
    missing = [
        suffix
        for family in FORMATS
        for suffix in family.suffixes
        if not suffix.endswith((".hdr.gz", ".img.gz")) and f"`{suffix}`" not in table
    ]
    assert missing == []


def test_the_schemas_have_every_field():
    text = page("reference/schemas.md")
    soft = probdice.compare([[0.9, 0.1], [0.1, 0.9]], [[0.8, 0.3], [0.2, 0.7]])
    _ = soft.chance, soft.explained
    content = comparison_to_dict(soft)
    fields = {*content, *content["groups"][0], *TYPES, "comparison", "failure"}
    fields |= {*content["overlap"], *content["overlap"]["reference"]} - {"reference", "prediction"}
    assert [name for name in sorted(fields) if not re.search(rf"`(\w+\.|….)?{name}", text)] == []


def test_every_kind_of_note_is_explained():
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    kinds = {kind for text in sources for kind in re.findall(r'Note\(\s*"([a-z-]+)"', text)}
    assert kinds >= {"unmatched", "crossed", "infinite"}
    explained = re.findall(r"^\| `([a-z-]+)` \|", page("reference/notes.md"), re.MULTILINE)
    assert kinds <= set(explained)


def test_every_kind_of_picture_is_shown():
    shown = set(re.findall(r'plot\("(\w+)"\)', page("reference/plots.md")))
    assert set(get_args(Kind)) <= shown
    described = set(re.findall(r'^\| `"(\w+)"` \|', page("how-to/figures.md"), re.MULTILINE))
    assert described == {*get_args(Kind), *get_args(EvaluationKind)}


def reference_of_commands() -> str:
    """The generated part of the page of the command line, with the details that the page adds."""
    require("sphinx")
    details = re.findall(
        r"^````\{command-reference\}\n(.*?)^````$",
        page("reference/command-line.md"),
        re.MULTILINE | re.DOTALL,
    )
    return extension("command_reference").command_pages(*details)


def test_the_details_of_an_option_start_on_a_line_of_their_own():
    (details,) = re.findall(
        r"^````\{command-reference\}\n(.*?)^````$",
        page("reference/command-line.md"),
        re.MULTILINE | re.DOTALL,
    )
    assert re.findall(r"^--[a-z-]+ .*", details, re.MULTILINE) == []


def test_the_reference_has_every_command():
    from probdice.cli.app import COMMANDS

    text = reference_of_commands()
    for command in COMMANDS:
        assert f"### probdice {command.__name__.replace('_', '-')}\n" in text


def test_the_reference_defines_every_option_once():
    import typer

    from probdice.cli.app import app

    defined = re.findall(r"^#### `(--[a-z-]+)", reference_of_commands(), re.MULTILINE)
    expected = {
        parameter.opts[0]
        for command in typer.main.get_command(app).commands.values()
        for parameter in command.params
        if parameter.opts[0].startswith("-")
    }
    expected |= {f"--{name.replace('_', '-')}" for name in declarations(EvaluateOptions)}
    assert sorted(defined) == sorted(expected)


def test_the_definition_of_an_option_has_the_help_of_every_command():
    text = reference_of_commands()
    for name, declared in declarations(EvaluateOptions).items():
        anchor = f"(option-{name.replace('_', '-')})="
        definition = text.partition(anchor)[2].partition("\n(option-")[0]
        plain = re.sub(r"\[`(--[a-z-]+)`\]\([^)]*\)", r"\1", definition).replace("\\", "")
        assert declared.help in plain
        assert all(f"`{command}`" in definition for command in declared.form.commands)


def test_links_to_options_lead_to_a_definition():
    defined = set(re.findall(r"^\((option-[a-z-]+)\)=$", reference_of_commands(), re.MULTILINE))
    for path in DOCS.rglob("*.md"):
        linked = re.findall(r"\(#(option-[^)]+)\)", path.read_text(encoding="utf-8"))
        assert set(linked) <= defined, path.name


def test_docstrings_have_one_attribute_per_entry():
    """Sphinx splits the names of a joined entry under Parameters, but not elsewhere."""
    joined = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                continue
            text = ast.get_docstring(node) or ""
            for heading in ("Attributes", "Returns", "Yields"):
                _, _, section = text.partition(f"{heading}\n{'-' * len(heading)}\n")
                entries = [line for line in section.split("\n\n")[0].splitlines() if line[0] != " "]
                joined += [f"{path.name}: {line}" for line in entries if re.match(r"\w+, \w", line)]
    assert joined == []


# -- claims ----------------------------------------------------------------------------------------


def test_the_decisions_can_be_worked_by_hand():
    path = str(DOCS / "explanation" / "decisions.md")
    failed, tried = doctest.testfile(path, module_relative=False)
    assert tried > 15 and failed == 0


def test_every_number_is_misleading_in_both_directions():
    spots = extension("blind_spots")
    values = {name: case.numbers() for name, case in spots.CASES.items()}
    for number in spots.NUMBERS:
        for verdict in ("bad", "good"):
            assert any(
                case.misleads(values[name][number])
                for name, case in spots.CASES.items()
                if case.verdict == verdict
            ), (number, verdict)


def test_every_blind_spot_is_on_its_page():
    text = page("explanation/blind-spots.md")
    for name, case in extension("blind_spots").CASES.items():
        assert f"({name})=\n### {case.title}\n" in text
        assert f'CASES["{name}"].figure()' in text and f'CASES["{name}"].table()' in text


def test_every_answer_of_the_tree_links_to_a_sentence_with_this_version():
    text = page("explanation/which-number.md")
    questions, *sections = text.split("\n## ")
    anchors = [re.sub(r"[^\w ]", "", s.splitlines()[0]).lower().replace(" ", "-") for s in sections]
    answers = re.findall(r"^ +- (?:Yes|No): \[.+\]\(#([\w-]+)\)$", questions, re.MULTILINE)
    assert sorted(answers) == sorted(anchors) and len(anchors) == 7
    for section in sections:
        sentence = " ".join(re.findall(r"^> (.*)", section, re.MULTILINE))
        assert f"probdice {probdice.__version__}" in sentence


def test_pages_read_well_outside_the_site():
    """GitHub displays targets such as (name)= and directives as plain text."""
    for name in ("README.md", "CONTRIBUTING.md", "docs/explanation/which-number.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"^\(.+\)=$|^```\{", text, re.MULTILINE)


def test_changelog_and_citation_have_the_current_version():
    newest = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    cited = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert [newest] == cited == [probdice.__version__]


# -- the site ------------------------------------------------------------------------------------


def test_broken_links_are_reported(tmp_path):
    check = tmp_path / "site"
    check.mkdir()
    (check / "index.html").write_text(
        '<a href="a.html#here">1</a><a href="a.html#there">2</a><a href="b.html">3</a>'
        '<a href="https://elsewhere">4</a><img src="https://elsewhere/a.png">'
    )
    (check / "a.html").write_text('<p id="here">')
    sys.path.insert(0, str(DOCS))
    try:
        from check import faults
    finally:
        sys.path.pop(0)
    assert faults(check) == [
        "index.html: loads https://elsewhere/a.png from another site",
        "index.html: a.html#there: anchor not found",
        "index.html: b.html: file not found",
    ]


# -- figures -------------------------------------------------------------------------------------


def test_a_figure_that_no_longer_holds_is_reported():
    from benchmarks.figures import at_least, at_most, equal

    assert at_most("README.md", "ratio", 7.5, 14.9).verdict == "holds"
    assert at_most("README.md", "ratio", 7.5, 15.1).verdict == "DOES NOT HOLD"
    assert at_least("README.md", "faster", 12.0, 5.9).verdict == "DOES NOT HOLD"
    assert equal("README.md", "score", 0.875, 0.885, 0.005).verdict == "DOES NOT HOLD"


def test_figures_of_the_readme_are_in_the_table_of_the_speed_page():
    from benchmarks.figures import read_number, speed_rows

    table = speed_rows(page("explanation/speed.md"))
    maps = "overlap of two label maps, 256³, 20 labels, uint8", "SimpleITK LabelOverlapMeasures"
    faster = read_number("README.md", r"label maps ([\d.]+) × faster than SimpleITK")
    assert float(table[maps].split()[0]) == faster
    cells = "compare, 97,336 × 97,336 cells, 21 M pixels, jittered", ""
    seconds = read_number("README.md", r"97,336 cells each in ([\d.]+) s")
    assert float(table[cells].split()[0]) == seconds
