"""The journal keeps finished cases after interruptions and errors."""

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probdice.errors import InputError
from probdice.evaluation.journal import Journal, locked, read_lines, replace_file

HOLD = """
import sys
sys.path = eval(sys.argv[1])
from pathlib import Path
from probdice.evaluation.journal import locked
with locked(Path(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""


def line(case: str) -> str:
    roles: dict[str, list[object]] = {"reference": [], "prediction": [], "mask": []}
    about = {"method": "m", "options": {}, "version": "0", "inputs": roles, "files": roles}
    return json.dumps({"format": 3, "case": case, "seconds": 0.1, "failure": {}} | about)


def cases_of(out: Path) -> list[str]:
    return [content["case"] for content in read_lines(out)]


def test_lines_are_appended_and_read_back(tmp_path: Path) -> None:
    assert cases_of(tmp_path) == []
    with Journal(tmp_path) as journal:
        journal.append(line("a"))
        journal.append(line("b"))
        assert cases_of(tmp_path) == ["a", "b"]
    with Journal(tmp_path) as journal:
        journal.append(line("c"))
    assert cases_of(tmp_path) == ["a", "b", "c"]


def test_a_line_is_written_immediately_and_flushed_within_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    clock = [100.0]
    write, fsync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda f, b: steps.append("write") or write(f, b[:100]))
    monkeypatch.setattr(os, "fsync", lambda f: steps.append("fsync") or fsync(f))
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with Journal(tmp_path) as journal:
        steps.clear()
        journal.append(line("a"))
        assert cases_of(tmp_path) == ["a"]
        assert set(steps) == {"write"}
        clock[0] += 1
        journal.append(line("b"))
        assert steps[-1] == "fsync" and steps.count("fsync") == 1
        journal.append(line("c"))
        assert steps.count("fsync") == 1
    assert steps[-1] == "fsync" and steps.count("fsync") == 2
    assert cases_of(tmp_path) == ["a", "b", "c"]


def test_a_full_disk_at_the_last_flush_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with (
        pytest.raises(InputError, match=r"cases\.jsonl: cannot write this file: No space left"),
        Journal(tmp_path) as journal,
    ):
        journal.append(line("a"))
        monkeypatch.setattr(os, "fsync", full)


@pytest.mark.parametrize("left", [1, 7, 20])
def test_a_truncated_last_line_is_removed(tmp_path: Path, left: int) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(f"{line('a')}\n{line('b')[:left]}")
    assert cases_of(tmp_path) == ["a"]
    with Journal(tmp_path) as journal:
        journal.append(line("c"))
    assert path.read_text() == f"{line('a')}\n{line('c')}\n"


def test_a_last_line_without_a_newline_is_removed(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text(f"{line('a')}\n{line('b')}")
    assert cases_of(tmp_path) == ["a"]


def test_a_long_truncated_line_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(f"{line('a')}\n{'x' * 200_000}")
    with Journal(tmp_path):
        assert path.read_text() == f"{line('a')}\n"
    path.write_text("x" * 200_000)
    with Journal(tmp_path):
        assert path.read_text() == ""


def test_invalid_lines_are_ignored(tmp_path: Path) -> None:
    junk = [
        "{",
        "\0" * 50,
        "[1, 2]",
        line("z").replace("3", "99", 1),
        line("z").replace("3", "2", 1),
        '{"format": 3}',
        "\N{SNOWMAN}",
        "",
    ]
    text = "\n".join([line("a"), *junk, line("b")]) + "\n"
    (tmp_path / "cases.jsonl").write_text(text, encoding="utf-8")
    assert cases_of(tmp_path) == ["a", "b"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"case": 3},
        {"method": None},
        {"options": []},
        {"inputs": {}},
        {"inputs": {"reference": 1, "prediction": []}},
        {"seconds": "long"},
        {"failure": 5},
        {"version": 2},
        {"comparison": "good"},
        {"files": ["a", "b"]},
    ],
)
def test_lines_with_wrong_types_are_ignored(tmp_path: Path, wrong: dict[str, object]) -> None:
    text = json.dumps(json.loads(line("z")) | wrong)
    (tmp_path / "cases.jsonl").write_text(f"{line('a')}\n{text}\n{line('b')}\n")
    assert cases_of(tmp_path) == ["a", "b"]


def test_a_full_disk_is_reported_and_keeps_finished_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def full(file: int, content: bytes) -> int:
        if len(content) < 12:  # the first bytes still fit
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, content[:12])

    with Journal(tmp_path) as journal:
        journal.append(line("a"))
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(
            InputError, match=r"cases\.jsonl: cannot write this file: No space left"
        ):
            journal.append(line("b"))
    monkeypatch.undo()
    with Journal(tmp_path) as journal:
        journal.append(line("c"))
    assert cases_of(tmp_path) == ["a", "c"]


def test_a_concurrent_run_into_one_folder_is_rejected(tmp_path: Path) -> None:
    first = subprocess.Popen(
        [sys.executable, "-c", HOLD, repr(sys.path), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdin is not None and first.stdout is not None
    with first:
        assert first.stdout.readline() == "held\n"
        with (
            pytest.raises(InputError, match="another run is writing into this folder"),
            locked(tmp_path),
        ):
            pass
        first.kill()
        first.wait()
    with locked(tmp_path):  # a killed run leaves no lock
        pass


def test_a_file_is_replaced_completely_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cases.csv"
    replace_file(path, b"old")

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"cases\.csv: cannot write this file: No space left"):
        replace_file(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["cases.csv"]
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_folder_instead_of_a_file_is_reported_by_name(tmp_path: Path) -> None:
    (tmp_path / "cases.csv").mkdir()
    with pytest.raises(InputError, match=r"cases\.csv: is a folder, expected the name of a file"):
        replace_file(tmp_path / "cases.csv", b"new")


def test_a_partial_file_of_a_killed_run_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / ".cases.csv.partial").write_bytes(b"half, and longer than what is to come")
    replace_file(tmp_path / "cases.csv", b"new")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"cases.csv": b"new"}
