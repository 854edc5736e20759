"""The installed command: processes, exit codes, standard output and standard error."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nibabel
import numpy as np
import pytest
from commands import probdice as probdice_in_process

import probdice

COMMAND = str(Path(sys.executable).with_name("probdice"))
LABELS = np.repeat(np.array([1, 1, 1, 1, 2, 2, 2, 2], np.uint8)[:, None, None], 2, axis=1)
SPLIT = np.repeat(np.array([7, 7, 5, 5, 5, 9, 9, 9], np.uint8)[:, None, None], 2, axis=1)


def run(
    *words: str | Path, command: tuple[str, ...] = (COMMAND,)
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, *map(str, words)], capture_output=True, text=True, timeout=240, check=False
    )


def save(path: Path, array: np.ndarray) -> Path:
    nibabel.save(nibabel.Nifti1Image(array, np.diag([2.0, 2.0, 2.0, 1.0])), path)
    return path


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pair")
    return save(folder / "reference.nii.gz", LABELS), save(folder / "prediction.nii.gz", SPLIT)


def test_compare_prints_scores_groups_and_notes(pair: tuple[Path, Path]) -> None:
    done = run("compare", *pair)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "score           0.6250" in done.stdout
    assert re.search(r"1 +7 +0\.6667", done.stdout)
    assert "To merge it into a matched region, use --merge prediction." in done.stdout


def test_json_is_the_only_standard_output(pair: tuple[Path, Path]) -> None:
    done = run("compare", *pair, "--merge", "both", "--json", "-")
    assert done.returncode == 0
    assert done.stderr == ""
    content = json.loads(done.stdout)
    assert (content["score"], content["matched_score"]) == (0.875, 0.625)
    assert probdice.Comparison.from_json(done.stdout).groups[0].prediction == (5, 7)


def test_an_error_prints_one_line_and_exits_with_1(pair: tuple[Path, Path]) -> None:
    done = run("compare", pair[0], "missing.nii.gz")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: missing.nii.gz: no such file\n"
    assert "Traceback" in run("compare", pair[0], "missing.nii.gz", "--debug").stderr


def test_a_usage_error_exits_with_2(pair: tuple[Path, Path]) -> None:
    done = run("compare", pair[0])
    assert (done.returncode, done.stdout) == (2, "")
    assert "PREDICTION" in done.stderr


def test_without_a_command_the_help_is_printed_as_a_usage_error() -> None:
    done = run()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: probdice [OPTIONS] COMMAND [ARGS]...\n")
    assert "  compare    Compare two segmentations of one image.\n" in done.stderr


@pytest.mark.parametrize("number", ["two", "0"])
def test_an_invalid_number_names_its_option(number: str) -> None:
    done = probdice_in_process("compare", "a", "b", "--workers", number)
    assert done.returncode == 2
    assert "--workers" in done.stderr and "Input should be" not in done.stderr


def test_the_version_is_printed_by_the_command_and_the_module() -> None:
    assert run("--version").stdout == f"probdice {probdice.__version__}\n"
    done = run("--version", command=(sys.executable, "-m", "probdice"))
    assert done.stdout == f"probdice {probdice.__version__}\n"


def test_the_command_line_imports_no_slow_packages_at_start() -> None:
    heavy = {"numba", "scipy", "nibabel", "matplotlib", "SimpleITK", "jinja2", "pandas", "PIL"}
    code = "import sys, probdice.cli.app; print(*{name.split('.')[0] for name in sys.modules})"
    done = run("-c", code, command=(sys.executable,))
    assert heavy.isdisjoint(done.stdout.split())


def test_shell_completion_lists_commands() -> None:
    done = subprocess.run(
        [COMMAND],
        env=os.environ | {"_PROBDICE_COMPLETE": "complete_bash", "COMP_WORDS": "probdice co",
                          "COMP_CWORD": "1"},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["compare", "consensus"]


def test_a_closed_pipe_is_not_an_error(pair: tuple[Path, Path]) -> None:
    for words in (["--json", "-"], []):
        with subprocess.Popen(
            [COMMAND, "compare", *map(str, pair), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None and process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 0


def with_files(words: list[str], pair: tuple[Path, Path]) -> list[str]:
    """Insert the files that a command needs after its name."""
    files = {"compare": pair, "info": pair[:1]}.get(words[0], ())
    return [words[0], *map(str, files), *words[1:]]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("words", [["compare"], ["compare", "--json", "-"], ["--help"]])
def test_full_standard_output_is_reported(pair: tuple[Path, Path], words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [COMMAND, *with_files(words, pair)], stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=240, check=False,
        )  # fmt: skip
    reason = "No space left on device"
    assert done.stderr == f"error: cannot write to standard output: {reason}\n"
    assert done.returncode == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    "words", [["compare"], ["compare", "-q"], ["info"], ["--version"], ["compare", "--help"]]
)
def test_closed_standard_output_is_reported(pair: tuple[Path, Path], words: list[str]) -> None:
    command = shlex.join([COMMAND, *with_files(words, pair)])
    done = run("-c", f"{command} >&-", command=("sh",))
    assert done.stderr == "error: cannot write to standard output: it is closed\n"
    assert done.returncode == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_files_are_complete_if_all_streams_are_closed(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    outputs = "--map", tmp_path / "map.nii", "--json", tmp_path / "a.json"
    words = [COMMAND, "compare", *pair, *outputs]
    done = run("-c", f"{shlex.join(map(str, words))} <&- >&- 2>&-", command=("sh",))
    assert done.returncode == 1
    assert json.loads((tmp_path / "a.json").read_text())["score"] == 0.625
    assert nibabel.load(tmp_path / "map.nii").get_fdata().mean() == 0.625


@pytest.mark.parametrize(
    "module",
    ["typer", "probdice.cli.compare", "numpy", "numba"],
)
def test_an_interrupt_during_an_import_exits_with_130(pair: tuple[Path, Path], module: str) -> None:
    code = f"""
import os, signal, sys, time

class Interrupt:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)

sys.meta_path.insert(0, Interrupt())
from probdice.cli import main
main()
"""
    done = run("-c", code, "compare", *pair, command=(sys.executable,))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_slow_step_is_shown_on_a_terminal_and_can_be_interrupted(
    pair: tuple[Path, Path],
) -> None:
    import pty

    # Simulate a very slow disk.
    code = """
import time
import probdice.files
probdice.files.read = lambda *_, **__: time.sleep(600)
from probdice.cli import main
main()
"""
    screen, terminal = pty.openpty()
    output: list[bytes] = []

    def watch() -> None:  # an unread terminal would block the process
        with contextlib.suppress(OSError):
            while part := os.read(screen, 1024):
                output.append(part)

    process = subprocess.Popen(
        [sys.executable, "-c", code, "compare", *map(str, pair)],
        stdout=subprocess.PIPE,
        stderr=terminal,
    )
    os.close(terminal)
    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        deadline = time.monotonic() + 120
        while b"reading" not in b"".join(output) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=240)
    finally:
        process.kill()
        process.wait()
        watching.join(60)
        os.close(screen)
    assert (process.returncode, out) == (130, b"")
    assert b"reading" in b"".join(output)
    assert b"Traceback" not in b"".join(output)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a named pipe")
@pytest.mark.parametrize("command", ["info", "compare"])
def test_a_named_pipe_is_rejected_without_waiting(
    pair: tuple[Path, Path], tmp_path: Path, command: str
) -> None:
    pipe = tmp_path / "pipe.nii"
    os.mkfifo(pipe)
    words = [command, *([pair[0]] if command == "compare" else []), pipe]
    done = subprocess.run(
        [COMMAND, *words], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {pipe}: is a pipe")


def test_a_fast_comparison_shows_no_progress(pair: tuple[Path, Path]) -> None:
    assert run("compare", *pair, "--quiet").stdout == "0.6250\n"


def test_demo_writes_files_and_prints_a_command_that_repeats_it(tmp_path: Path) -> None:
    done = run("demo", "-o", tmp_path / "a b")
    assert done.returncode == 0
    assert done.stderr == ""
    names = {path.name for path in (tmp_path / "a b").iterdir()}
    assert names == {"reference.nii.gz", "prediction.nii.gz", "similarity.nii.gz", "page.html"}
    command = shlex.split(done.stdout.strip().splitlines()[-1])
    assert command[0] == "probdice"
    repeated = probdice_in_process(*command[1:])
    assert repeated.returncode == 0
    assert repeated.stdout.strip() == done.stdout[: done.stdout.index("\nto repeat")].strip()
