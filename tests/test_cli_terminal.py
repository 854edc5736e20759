"""Output on a terminal: width, line breaks, colours and help."""

import os
import re
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import typer
from commands import probdice
from rich.console import Console
from rich.text import Text

from probdice.cli.app import COMMANDS, EXAMPLES, app
from probdice.cli.display import wrap_lines
from probdice.cli.terminal_tables import FittingTable, TerminalColumn, plain_table, wrapped
from probdice.options import EvaluateOptions
from probdice.options.declaration import declarations

NAMES = ["spleen", "adrenal_gland_right", "portal_vein_and_splenic_vein", "LeftCerebralWhite"]


def printed(table: FittingTable, width: int) -> list[str]:
    console = Console(width=width, file=StringIO())
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines() if line.strip()]


def organs() -> FittingTable:
    table = FittingTable(
        [
            TerminalColumn("reference"),
            TerminalColumn("prediction"),
            TerminalColumn("Dice", numbers=True),
            TerminalColumn("Jaccard", numbers=True, drop_order=1),
            TerminalColumn("pixels", numbers=True, drop_order=2),
        ]
    )
    for k, name in enumerate(NAMES):
        table.add_row(name, name, f"0.{k}851", f"0.{k}707", f"{259_435 + k:,}")
    return table


@pytest.mark.parametrize("width", [120, 80, 60, 46])
def test_no_number_and_no_word_is_broken(width: int) -> None:
    lines = printed(organs(), width)
    assert max(map(len, lines)) <= width
    words = {part for line in lines for part in re.split(r"[\s_]+", line)}
    assert {"spleen", "adrenal", "gland", "portal", "splenic", "vein", "0.0851", "0.3851"} <= words


def test_columns_that_do_not_fit_are_omitted_and_named() -> None:
    assert "omitted" not in "\n".join(printed(organs(), 90))
    lines = printed(organs(), 67)
    assert lines[-1] == "(omitted columns: pixels)" and "Jaccard" in lines[0]
    assert printed(organs(), 50)[-1] == "(omitted columns: Jaccard, pixels)"


def test_columns_with_the_same_drop_order_are_omitted_together() -> None:
    table = FittingTable(
        [TerminalColumn("name"), *(TerminalColumn(f"c{k}", True, drop_order=1) for k in range(2))]
    )
    table.add_row("a", "1" * 20, "2" * 20)
    assert printed(table, 48)[0].split() == ["name", "c0", "c1"]
    assert printed(table, 47)[0].split() == ["name"]


def test_names_are_broken_between_their_parts() -> None:
    assert wrapped("lung_upper_lobe_left", 12) == ["lung_upper_", "lobe_left"]
    assert wrapped("LeftCerebralWhiteMatter", 12) == ["LeftCerebral", "WhiteMatter"]
    assert wrapped("5, 7, 12, … 30 more", 8) == ["5, 7,", "12, … 30", "more"]
    assert wrapped("0.9783 (8) 0.9773 to 0.9793", 24) == ["0.9783 (8) 0.9773 to", "0.9793"]
    assert wrapped("-0.25 to -1e-05", 9) == ["-0.25 to", "-1e-05"]
    assert wrapped("a.nii.gz,b.nii.gz", 9) == ["a.nii.gz,", "b.nii.gz"]
    assert wrapped("x" * 10, 4) == ["xxxx", "xxxx", "xx"]


def test_a_table_without_rows_has_headings() -> None:
    assert printed(plain_table("name", ">n"), 80)[0].split() == ["name", "n"]


def test_lines_are_broken_between_words_but_not_in_paths() -> None:
    path = "/a/very/long/path/to/a/file/that/is/longer/than/the/line.nii.gz"
    note = Text.assemble(("note: ", "yellow"), f"the file {path} has no matching case")
    text = wrap_lines(note, 30)
    assert text.plain.split("\n") == ["note: the file", path, "has no matching case"]
    assert text.spans == note.spans


# --- a process on a terminal


def on_terminal(words: list[str], *, errors: bool = False, **environment: str) -> str:
    """Return the standard output (or error) of a command on a terminal with 80 columns."""
    import fcntl
    import pty
    import struct
    import termios

    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "CI")}
    process = subprocess.Popen(
        [sys.executable, "-m", "probdice", *words],
        stdin=terminal,
        stdout=subprocess.DEVNULL if errors else terminal,
        stderr=terminal if errors else subprocess.DEVNULL,
        env=inherited | {"TERM": "xterm-256color"} | environment,
    )
    os.close(terminal)
    output = b""
    while True:
        try:
            block = os.read(screen, 65536)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        output += block
    os.close(screen)
    process.wait(timeout=60)
    return output.decode()


@pytest.fixture
def pair(tmp_path: Path) -> list[str]:
    """Return a command for two label maps with long names; one region is unmatched."""
    labels = np.repeat(np.arange(6), 20).reshape(12, 10)
    names = {str(k): f"a_rather_long_name_of_region_{k}" for k in range(6)}
    (tmp_path / "names.json").write_text(str(names).replace("'", '"'))
    for name, array in (("reference", labels), ("prediction", np.minimum(labels, 4))):
        np.save(tmp_path / f"{name}.npy", array)
    folder = tmp_path
    return [
        "compare",
        *(str(folder / f"{name}.npy") for name in ("reference", "prediction")),
        "--names",
        str(folder / "names.json"),
    ]


def test_a_comparison_fits_80_columns(pair: list[str]) -> None:
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", on_terminal(pair))
    lines = text.replace("\r", "").splitlines()
    assert [line for line in lines if len(line) > 80 and ".npy" not in line] == []
    words = {part for line in lines for part in re.split(r"[\s_]+", line)}
    assert {"rather", "long", "region", "1.0000", "0.6667"} <= words


def test_colours_follow_no_color_and_term(pair: list[str]) -> None:
    assert "\x1b[33m" in on_terminal(pair)  # an unmatched region is yellow
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", on_terminal(pair, NO_COLOR="1"))
    assert "\x1b" not in on_terminal(pair, TERM="dumb")


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_errors_have_no_colours_if_these_are_disabled(environment: dict[str, str]) -> None:
    message = on_terminal(["info", "missing.npy"], errors=True, **environment)
    assert message == "error: missing.npy: no such file\r\n"


# --- help


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_every_command_has_valid_examples(
    command: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # --config reads this file while options are parsed.
    (tmp_path / "challenge.toml").write_text('reference = "truth"\n[methods]\nmine = "mine"\n')
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    name = command.__name__  # type: ignore[attr-defined]
    command_name = name.replace("_", "-")
    parser = group.commands[command_name]
    for example in EXAMPLES[name]:
        program, word, *words = shlex.split(example)
        assert (program, word) == ("probdice", command_name)
        parser.make_context(name, words)  # raises an error for invalid options
        assert len(example) <= 76


def helped(*words: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        done = probdice(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_help_has_one_line_per_example_before_the_options() -> None:
    lines = [line.strip() for line in helped("show", "--help").splitlines()]
    assert set(EXAMPLES["show"]) <= set(lines)
    assert lines.index(EXAMPLES["show"][0]) < lines.index("Arguments") < lines.index("Options")


def test_the_help_shows_common_options_and_help_all_shows_every_option() -> None:
    common, everything = helped("compare", "--help"), helped("compare", "--help-all")
    assert common.startswith("Usage: probdice compare [OPTIONS] REFERENCE PREDICTION\n")
    assert "--match HOW" in common and "--match HOW" in everything
    assert "--geometry-tolerance" not in common and "--geometry-tolerance T" in everything
    hidden = re.search(r"--help-all shows (\d+) more options", common)
    assert hidden is not None and "more options" not in everything

    def count(text: str) -> int:
        return len(re.findall(r"^  -", text, re.MULTILINE))

    assert count(everything) == count(common) + int(hidden[1])
    assert not re.search(r"<\w+>|\{\w+\}", everything)
    assert max(map(len, everything.splitlines())) <= 80


def test_the_help_shows_an_option_according_to_its_declaration() -> None:
    common = helped("evaluate", "--help")
    for name, declared in declarations(EvaluateOptions).items():
        if "evaluate" in declared.form.commands:
            shown = re.search(rf"^  --{name.replace('_', '-')}\b(?!-)", common, re.MULTILINE)
            assert (shown is None) == declared.form.advanced, name


# --- groups


def test_the_worst_20_groups_are_printed_unless_all_are_requested(tmp_path: Path) -> None:
    reference = np.repeat(np.arange(30), 40)
    prediction = reference.copy()
    for k in range(1, 30):  # region k loses k pixels to region 0: Dice 2(40 − k)/(80 − k)
        prediction[40 * k : 41 * k] = 0
    for name, array in (("reference", reference), ("prediction", prediction)):
        np.save(tmp_path / f"{name}.npy", array)
    files = [str(tmp_path / f"{name}.npy") for name in ("reference", "prediction")]
    first, *_ = text = helped("compare", *files).splitlines()
    assert first == "reference.npy ↔ prediction.npy"
    numbers = [float(line.split()[2]) for line in text if re.match(r"\d+ +\d+ +0\.\d{4} ", line)]
    assert numbers[:2] == [0.1553, 0.4314]  # 80/515 and 22/51
    assert len(numbers) == 20 and numbers == sorted(numbers)
    assert "… 10 more groups; --all prints all groups" in text
    everything = helped("compare", *files, "--all").splitlines()
    assert len([line for line in everything if re.match(r"\d+ +\d+ +[01]\.\d{4} ", line)]) == 30
    assert not any("--all" in line for line in everything)


def test_all_groups_have_boundary_distances_if_all_are_requested(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.repeat(np.arange(30), 40).reshape(30, 40))
    files = [str(tmp_path / "a.npy")] * 2
    text = helped("compare", *files, "--boundaries")
    assert "… and 10 more groups" in text
    everything = helped("compare", *files, "--boundaries", "--all")
    assert "more group" not in everything
    assert re.search(r"\n +29 +29( +0\.0000){4}", everything)


def test_the_verdict_and_mean_dice_are_printed(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.repeat([0, 1], [6, 4]))
    np.save(tmp_path / "b.npy", np.repeat([0, 1], [7, 3]))  # Dice 12/13 and 6/7
    files = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    text = helped("compare", *files, "--background", "0")
    assert (
        "Good overlap (foreground Dice 0.86); weakest in region 1 (Dice 0.86); "
        "every region matched." in (" ".join(text.split()))
    )
    assert re.search(r"^foreground Dice +0\.8571", text, re.MULTILINE)
    assert re.search(r"^mean Dice +0\.8901", text, re.MULTILINE)
