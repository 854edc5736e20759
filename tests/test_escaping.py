"""Untrusted names are plain text in terminals, spreadsheets and Markdown."""

import csv
import io
import json
import math
import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_cli_terminal import on_terminal
from typer.testing import CliRunner

from probdice.cli.app import app
from probdice.text.csv_tables import as_csv
from probdice.text.escaping import csv_text, markdown, printable, tex, visible

# An OSC title, an 8-bit CSI, a right-to-left override, HTML, and a forged line.
HOSTILE = "=1+1 \x1b]0;title\x07\x9b31m\u202e|<img src=x onerror=alert(1)>\nerror: forged"
FORMULAS = [
    "=1+1",
    "@SUM(A1)",
    "+1+1",
    "-1+1",
    "\t=1",
    "\r=1",
    " =1",
    "-",
    "-info",
    "＝1",
    "'quoted",
    "''=",
]
PLAIN = ["liver", "a=b", "1;2", "-3", "+4", "-0.5", "-1e-05", "x, y", 'say "a"', "two\rlines", ""]
LABELS = np.repeat(np.array([1, 1, 1, 1, 2, 2, 2, 2], np.uint8)[:, None, None], 2, axis=1)
SPLIT = np.repeat(np.array([7, 7, 5, 5, 5, 9, 9, 9], np.uint8)[:, None, None], 2, axis=1)


def unescaped(cell: str) -> str:
    """Restore a text from a CSV cell, as documented."""
    return cell.removeprefix("'")


def run(*words: object) -> tuple[int, str]:
    """Run a command, check that it prints no control codes, and return exit code and output."""
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    printed = done.stdout + done.stderr
    unsafe = [c for c in printed if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs")]
    assert unsafe == []
    return done.exit_code, printed


def without_formulas(path: Path) -> pandas.DataFrame:
    """Read a table and check that no cell is a formula."""
    table = pandas.read_csv(path, keep_default_na=False, dtype=str)
    for cell in table.to_numpy().ravel():
        is_number = cell and cell.strip() == cell and not cell[-1:].isalpha() and _number(cell)
        assert is_number or cell.lstrip()[:1] not in tuple("=+-@＝＋－＠")
        assert cell[:1] not in ("\t", "\r", "\n")
    return table


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --- functions


@pytest.mark.parametrize("text", FORMULAS)
def test_a_cell_that_looks_like_a_formula_gets_an_apostrophe(text: str) -> None:
    (cell,) = next(csv.reader(io.StringIO(csv_text([[text]]), newline="")))
    assert cell == f"'{text}" and unescaped(cell) == text


@pytest.mark.parametrize("text", PLAIN)
def test_other_cells_read_back_unchanged(text: str) -> None:
    table = pandas.read_csv(
        io.StringIO(csv_text([["a", "b"], [text, "end"]]), newline=""),
        keep_default_na=False,
        dtype=str,
    )
    assert table.loc[0, "a"] == text and table.loc[0, "b"] == "end"


def test_negative_numbers_stay_numbers() -> None:
    table = pandas.read_csv(io.StringIO(csv_text([["x", "y"], [-0.5, 1e-300], [-1e-05, -3]])))
    assert table["x"].tolist() == [-0.5, -1e-05] and table["y"].tolist() == [1e-300, -3.0]
    text = as_csv([{"low": -math.inf, "high": math.inf}], ["low", "high"])
    assert text == "low,high\n-inf,inf\n"


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), min_size=1))
def test_every_text_is_recovered_from_csv(rows: list[list[str]]) -> None:
    read = list(csv.reader(io.StringIO(csv_text(rows), newline="")))
    assert [[unescaped(cell) for cell in row] for row in read] == rows


def test_markdown_renders_as_the_original_text() -> None:
    from markdown_it import MarkdownIt

    texts = [
        HOSTILE,
        "[a](javascript:x)",
        "![a](http://x)",
        "# a",
        "- a",
        "1. a",
        "a_b_ *c*",
        "`x`",
    ]
    for text in [*texts, "&lt;", "~~a~~", "-0.5", "===", "\\|"]:
        shown = printable(text)
        html = MarkdownIt("gfm-like", {"linkify": False}).render(markdown(text))
        assert html.startswith("<p>") and html.endswith("</p>\n") and html.count("<") == 2
        plain = html[3:-5].replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"')
        assert plain.replace("&amp;", "&") == shown


def test_latex_has_no_commands_and_no_line_breaks() -> None:
    assert tex("a\n\\input{x}") == r"a\textbackslash{}n\textbackslash{}input\{x\}"


@given(st.text(), st.text())
def test_escaped_json_has_the_same_content(key: str, value: str) -> None:
    shown = visible(json.dumps({key: value}, ensure_ascii=False, indent=2))
    assert json.loads(shown) == {key: value}
    assert all(line.isprintable() for line in shown.split("\n"))


# --- commands


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Write three label maps and a table of names, all with hostile file names."""
    paths = [tmp_path / f"{HOSTILE.replace('/', '')}{k}.npy" for k in range(3)]
    for path, array in zip(paths, (LABELS, SPLIT, LABELS), strict=True):
        np.save(path, array)
    names = tmp_path / f"names{HOSTILE}.json"
    names.write_text(json.dumps({"1": HOSTILE, "2": "@two", "5": "-five", "7": "\tseven"}))
    return [*paths, names]


def test_compare_prints_no_control_codes(files: list[Path], tmp_path: Path) -> None:
    first, second, _, names = files
    code, output = run("compare", first, second, "--names", names)
    assert code == 0 and "\\u001b]0;title\\u0007\\u009b31m\\u202e" in output
    assert "\nerror: forged" not in output
    code, output = run("compare", first, second, "--names", names, "--json", "-")
    assert code == 0 and json.loads(output)["files"]["reference"]["path"] == str(first)
    assert run("compare", first, tmp_path / f"absent{HOSTILE}.npy")[0] == 1
    assert run("compare", first, second, "--report", tmp_path / HOSTILE / "page.html")[0] != 0
    assert run("compare", first, second, "--match", HOSTILE)[0] != 0
    assert run("compare", first, second, "--debug", "--names", first)[0] == 1


def test_info_prints_no_control_codes(files: list[Path], tmp_path: Path) -> None:
    code, output = run("info", files[1], "--names", files[3])
    assert code == 0 and "-five" in output and "\nerror: forged" not in output
    parts = tmp_path / f"parts{HOSTILE}.npz"
    np.savez(parts, **{"a\x1b[2J": LABELS, "b": LABELS})
    code, output = run("info", parts)
    assert code == 0 and "a\\u001b[2J" in output
    text = tmp_path / f"text{HOSTILE}.nii.gz"
    text.write_bytes(b"\x1b]0;title\x07 no image")
    assert run("info", text)[0] == 1


def test_consensus_and_agree_print_no_control_codes(files: list[Path], tmp_path: Path) -> None:
    assert run("agree", *files[:3])[0] == 0
    assert run("agree", *files[:3], "--json", "-")[0] == 0
    assert run("consensus", *files[:3], "--output", tmp_path / f"out{HOSTILE}.nii.gz")[0] == 0
    assert run("consensus", files[0], files[0])[0] == 2


def test_rank_prints_no_control_codes(tmp_path: Path) -> None:
    rows = [("person", "image", "segmentation", "rank")]
    rows += [("p", HOSTILE, str(k), str(k + 1)) for k in range(4)]
    rankings, scores = tmp_path / f"a{HOSTILE}.csv", tmp_path / f"b{HOSTILE}.csv"
    with rankings.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    with scores.open("w", newline="") as file:
        csv.writer(file).writerows(
            [("image", "segmentation", "score"), *((r[1], r[2], 5 - int(r[3])) for r in rows[1:])]
        )
    assert run("rank", rankings, scores)[0] == 0
    assert run("rank", rankings, scores, "--column", HOSTILE)[0] == 1


def test_demo_and_paper_print_no_control_codes(tmp_path: Path) -> None:
    assert run("demo", "--output", tmp_path / HOSTILE)[0] == 0
    (tmp_path / f"file{HOSTILE}").write_text("")
    assert run("paper", "--output", tmp_path / f"file{HOSTILE}" / "out")[0] == 1


def test_usage_errors_print_no_control_codes(tmp_path: Path) -> None:
    assert run(HOSTILE)[0] == 2
    assert run(f"--{HOSTILE}")[0] == 2
    assert run("warm-up", HOSTILE)[0] == 2
    assert run("compare", "a", "b", "--merge", HOSTILE)[0] == 2


def test_results_of_hostile_names_have_no_formulas_and_no_html(tmp_path: Path) -> None:
    formula = "=cmd|' C'!A0\x1b[2J<img src=x>"  # a folder name cannot contain "/"
    reference, method = tmp_path / "reference", tmp_path / formula
    for folder in (reference, method):
        folder.mkdir()
    for case in ("@case", f"-case{HOSTILE}", "+broken"):
        np.save(reference / f"{case}.npy", LABELS)
        np.save(method / f"{case}.npy", SPLIT)
    (method / "+broken.npy").write_bytes(b"\x93NUMPY\x1b[2J")
    np.save(reference / "=missing.npy", LABELS)
    names = tmp_path / "names.json"
    names.write_text(json.dumps({"1": '=HYPERLINK("http://x")', "2": "@two"}))
    out = tmp_path / f"out{HOSTILE}"
    code, output = run("evaluate", reference, method, "-o", out, "--names", f"reference:{names}")
    assert code != 0 and "\\u001b[2J<img src=x>" in output and "failed: +broken" in output

    cases = without_formulas(out / "cases.csv")
    assert {unescaped(name) for name in cases["case"]} == {
        *("@case", f"-case{HOSTILE}", "+broken", "=missing")
    }
    assert {unescaped(name) for name in cases["method"]} == {formula}
    regions = without_formulas(out / "regions.csv")
    assert {unescaped(name) for name in regions["reference"]} >= {'=HYPERLINK("http://x")', "@two"}
    assert {unescaped(name) for name in without_formulas(out / "ranking.csv")["method"]} == {
        formula
    }
    without_formulas(out / "files.csv")
    for name in ("table.md", "how.md"):
        text = (out / name).read_text(encoding="utf-8")
        assert "<" not in text and all(line.isprintable() for line in text.split("\n"))
        assert "error: forged" not in text.split("\n")
    # Three references, three predictions and the table of names; a name with a line break is still
    # one file.
    assert "lists the SHA-256 of 7 files" in (out / "how.md").read_text()

    assert run("summarise", out)[0] == 0
    assert run("summarise", out, "--reports", HOSTILE)[0] == 2
    assert run("show", out, f"-case{HOSTILE}")[0] != 0  # parsed as options
    assert run("show", out, "--", f"-case{HOSTILE}")[0] == 0
    assert run("show", out, "+broken")[0] == 0
    assert run("show", out, f"absent{HOSTILE}")[0] == 1


def test_a_terminal_gets_colours_but_no_sequences_from_names(tmp_path: Path) -> None:
    name = "a\x1b]0;title\x07\x1b[5m.npy"
    np.save(tmp_path / name, LABELS)
    shutil.copy(tmp_path / name, tmp_path / f"b{name}")
    output = on_terminal(["compare", str(tmp_path / name), str(tmp_path / f"b{name}")])
    assert "\x1b[1m" in output and "\x1b]" not in output and "\x1b[5m" not in output
    assert "a\\u001b]0;title" in output.replace("\r\n", "")
    output = on_terminal(["info", str(tmp_path / f"absent{name}")], errors=True)
    assert "\x1b[5m" not in output and "\x1b]" not in output and "\\u001b[5m" in output
