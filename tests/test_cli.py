"""The command as it is installed: processes, exit codes, what goes to which stream."""

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

import probdice

COMMAND = str(Path(sys.executable).with_name("probdice"))
LABELS = np.repeat(np.array([1, 1, 1, 1, 2, 2, 2, 2], np.uint8)[:, None, None], 2, axis=1)
SPLIT = np.repeat(np.array([7, 7, 5, 5, 5, 9, 9, 9], np.uint8)[:, None, None], 2, axis=1)


def run(
    *words: str | Path, command: tuple[str, ...] = (COMMAND,)
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, *map(str, words)], capture_output=True, text=True, timeout=60, check=False
    )


def save(path: Path, array: np.ndarray) -> Path:
    nibabel.save(nibabel.Nifti1Image(array, np.diag([2.0, 2.0, 2.0, 1.0])), path)
    return path


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pair")
    return save(folder / "reference.nii.gz", LABELS), save(folder / "prediction.nii.gz", SPLIT)


def test_two_files_one_answer(pair: tuple[Path, Path]) -> None:
    done = run("compare", *pair)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "score           0.6250" in done.stdout
    assert re.search(r"1 +7 +0\.6667", done.stdout)
    assert "To merge it into a matched region, use --merge prediction." in done.stdout


def test_json_on_standard_output_is_alone_there(pair: tuple[Path, Path]) -> None:
    done = run("compare", *pair, "--merge", "both", "--json", "-")
    assert done.returncode == 0
    assert done.stderr == ""
    content = json.loads(done.stdout)
    assert (content["score"], content["matched_score"]) == (0.875, 0.625)
    assert probdice.Comparison.from_json(done.stdout).groups[0].prediction == (5, 7)


def test_what_cannot_be_compared_is_one_line_and_1(pair: tuple[Path, Path]) -> None:
    done = run("compare", pair[0], "missing.nii.gz")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: missing.nii.gz: no such file\n"
    assert "Traceback" in run("compare", pair[0], "missing.nii.gz", "--debug").stderr


def test_wrong_usage_is_2(pair: tuple[Path, Path]) -> None:
    done = run("compare", pair[0])
    assert (done.returncode, done.stdout) == (2, "")
    assert "PREDICTION" in done.stderr


def test_version_and_module() -> None:
    start = time.perf_counter()
    assert run("--version").stdout == f"probdice {probdice.__version__}\n"
    assert time.perf_counter() - start < 5  # far less on a machine with nothing else to do
    done = run("--version", command=(sys.executable, "-m", "probdice"))
    assert done.stdout == f"probdice {probdice.__version__}\n"


def test_the_command_line_loads_little_before_it_knows_what_to_do() -> None:
    heavy = {"numba", "scipy", "nibabel", "matplotlib", "SimpleITK", "jinja2", "pandas", "PIL"}
    code = "import sys, probdice.cli.app; print(*{name.split('.')[0] for name in sys.modules})"
    done = run("-c", code, command=(sys.executable,))
    assert heavy.isdisjoint(done.stdout.split())


def test_completion_can_be_shown() -> None:
    done = subprocess.run(
        [COMMAND],
        env=os.environ | {"_PROBDICE_COMPLETE": "complete_bash", "COMP_WORDS": "probdice co",
                          "COMP_CWORD": "1"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["compare", "consensus"]


def test_a_reader_that_leaves_is_not_an_error(pair: tuple[Path, Path]) -> None:
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


PRINTING = pytest.mark.parametrize(
    "words", [["compare"], ["compare", "--json", "-"], ["compare", "-q"], ["info"], ["--version"],
              ["--help"], ["compare", "--help"]],
)  # fmt: skip


def with_files(words: list[str], pair: tuple[Path, Path]) -> list[str]:
    """The files that a command needs, after its name."""
    needed = {"compare": pair, "info": pair[:1]}.get(words[0], ())
    return [words[0], *map(str, needed), *words[1:]]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@PRINTING
def test_full_standard_output_is_told(pair: tuple[Path, Path], words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [COMMAND, *with_files(words, pair)], stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    reason = "No space left on device"
    assert done.stderr == f"error: standard output cannot be written to: {reason}\n"
    assert done.returncode == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@PRINTING
def test_closed_standard_output_is_told(pair: tuple[Path, Path], words: list[str]) -> None:
    command = shlex.join([COMMAND, *with_files(words, pair)])
    done = run("-c", f"{command} >&-", command=("sh",))
    assert done.stderr == "error: standard output cannot be written to: it is closed\n"
    assert done.returncode == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_files_are_complete_although_every_stream_is_closed(
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
    [
        "numpy",
        "typer",
        "rich.table",
        "probdice.cli.compare",
        "probdice.comparison.from_files",
        "numba",
    ],
)
def test_an_interrupt_while_modules_are_imported(pair: tuple[Path, Path], module: str) -> None:
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
def test_a_long_wait_is_shown_on_a_terminal_and_can_be_interrupted(
    pair: tuple[Path, Path],
) -> None:
    import pty

    # As if the files lay on a very slow disk.
    code = """
import time
import probdice.files
probdice.files.read = lambda *_, **__: time.sleep(60)
from probdice.cli import main
main()
"""
    screen, terminal = pty.openpty()
    seen: list[bytes] = []

    def watch() -> None:  # a terminal that nobody reads would hold the process up
        with contextlib.suppress(OSError):
            while part := os.read(screen, 1024):
                seen.append(part)

    process = subprocess.Popen(
        [sys.executable, "-c", code, "compare", *map(str, pair)],
        stdout=subprocess.PIPE,
        stderr=terminal,
    )
    os.close(terminal)
    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        deadline = time.monotonic() + 40
        while b"reading" not in b"".join(seen) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
        watching.join(5)
        os.close(screen)
    assert (process.returncode, out) == (130, b"")
    assert b"reading" in b"".join(seen)
    assert b"Traceback" not in b"".join(seen)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a named pipe")
@pytest.mark.parametrize("command", ["info", "compare"])
def test_a_pipe_is_refused_and_not_waited_for(
    pair: tuple[Path, Path], tmp_path: Path, command: str
) -> None:
    pipe = tmp_path / "pipe.nii"
    os.mkfifo(pipe)
    words = [command, *([pair[0]] if command == "compare" else []), pipe]
    done = subprocess.run(
        [COMMAND, *words], capture_output=True, text=True, timeout=10, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {pipe}: is a pipe")


def test_a_short_wait_is_not(pair: tuple[Path, Path]) -> None:
    assert run("compare", *pair, "--quiet").stdout == "0.625\n"


def test_demo_makes_files_and_a_command_that_repeats_it(tmp_path: Path) -> None:
    done = run("demo", "-o", tmp_path / "a b")
    assert done.returncode == 0
    assert done.stderr == ""
    names = {path.name for path in (tmp_path / "a b").iterdir()}
    assert names == {"reference.nii.gz", "prediction.nii.gz", "similarity.nii.gz", "page.html"}
    again = shlex.split(done.stdout.strip().splitlines()[-1])
    assert again[0] == "probdice"
    repeated = run(*again[1:])
    assert repeated.returncode == 0
    assert repeated.stdout.strip() == done.stdout[: done.stdout.index("\nthe same again")].strip()
