"""The operating system: limits, locks and renamed files, with fallbacks for missing features."""

import errno
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

from probdice import InputError, ProbdiceWarning
from probdice.data import machine
from probdice.evaluation.journal import Journal, locked


@pytest.fixture
def control_groups(tmp_path, monkeypatch):
    """Empty folders in place of /sys/fs/cgroup and /proc/self, and a machine with 8 GiB."""
    folders = tmp_path / "cgroup", tmp_path / "self"
    for folder in folders:
        folder.mkdir()
    monkeypatch.setattr(machine, "CGROUPS", folders[0])
    monkeypatch.setattr(machine, "PROCESS", folders[1])
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 2**21, "SC_PAGE_SIZE": 4096}.__getitem__)
    return folders


def written(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_the_memory_of_a_machine_without_groups_is_its_own(control_groups):
    assert machine.memory() == 2**33


def test_the_memory_of_a_container_is_its_limit(control_groups):
    groups, _ = control_groups
    written(groups / "memory.max", "1073741824\n")
    assert machine.memory() == 2**30


@pytest.mark.parametrize(
    "line, limits, expected",
    [
        ("0::/slurm/job_7/step_0", {"slurm/job_7/memory.max": 2**31}, 2**31),
        ("0::/slurm/job_7/step_0", {"slurm/job_7/step_0/memory.max": "max"}, 2**33),
        (
            "4:cpu,cpuacct:/other\n9:memory:/slurm/job_7",
            {"memory/slurm/job_7/memory.limit_in_bytes": 2**29, "memory/other/memory.max": 1},
            2**29,
        ),
    ],
)
def test_the_memory_of_a_cluster_job_is_the_lowest_limit_of_its_groups(
    control_groups, line, limits, expected
):
    groups, process = control_groups
    written(process / "cgroup", f"{line}\n")
    for name, limit in limits.items():
        written(groups / name, f"{limit}\n")
    assert machine.memory() == expected


def test_a_system_that_reports_nothing_has_eight_gibibytes_and_all_cores(
    control_groups, monkeypatch
):
    monkeypatch.delattr(os, "sysconf")
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert machine.memory() == 2**33
    assert machine.cores() == 6
    assert machine.memory_in_use("VmRSS") == 0


# Locks


@pytest.fixture
def windows_locks(monkeypatch):
    """Windows' module for locks, with one lock that is taken if the list has an item."""
    taken: list[int] = []

    def locking(file, mode, count):
        assert (mode, count) == (2, 1)
        if taken:
            raise OSError(errno.EACCES, "Permission denied")
        taken.append(file)

    monkeypatch.setattr(machine, "fcntl", None)
    monkeypatch.setattr(machine, "msvcrt", types.SimpleNamespace(locking=locking, LK_NBLCK=2))
    return taken


def test_windows_locks_one_byte_and_reports_a_second_run(tmp_path, windows_locks):
    with (
        locked(tmp_path),
        pytest.raises(InputError, match="another run is writing into this folder"),
        locked(tmp_path),
    ):
        pass
    assert len(windows_locks) == 1


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP])
def test_a_file_system_without_locks_is_not_reported_as_a_second_run(tmp_path, monkeypatch, number):
    def flock(file, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(machine, "fcntl", types.SimpleNamespace(flock=flock, LOCK_EX=2, LOCK_NB=4))
    with (
        pytest.warns(ProbdiceWarning, match=r"cannot lock this folder \(.+one run at a time"),
        locked(tmp_path),
        Journal(tmp_path) as journal,
    ):
        journal.append("{}")
    assert (tmp_path / "cases.jsonl").read_bytes() == b"{}\n"


def test_a_system_without_locks_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "fcntl", None)
    monkeypatch.setattr(machine, "msvcrt", None)
    with pytest.warns(ProbdiceWarning, match="this system has no file locks"), locked(tmp_path):
        pass


# Files


def test_a_journal_is_opened_in_binary_mode_where_there_is_one(tmp_path, monkeypatch):
    binary, flags = 1 << 30, []
    opened = os.open
    monkeypatch.setattr("probdice.evaluation.journal.BINARY", binary)
    monkeypatch.setattr(
        os, "open", lambda path, how, *mode: flags.append(how) or opened(path, how & ~binary, *mode)
    )
    with Journal(tmp_path):
        pass
    assert flags[0] & binary


def test_a_folder_that_cannot_be_opened_or_flushed_is_left_to_the_system(tmp_path, monkeypatch):
    def refuse(number):
        def refused(*_):
            raise OSError(number, os.strerror(number))

        return refused

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse(errno.EACCES))  # as Windows does
        machine.flush_folder(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse(errno.EINVAL))  # as some network file systems do
        machine.flush_folder(tmp_path)
        patch.setattr(os, "fsync", refuse(errno.EIO))
        with pytest.raises(OSError, match="error"):
            machine.flush_folder(tmp_path)


@pytest.mark.parametrize(
    "windows, refused, attempts", [(True, 3, 4), (True, 99, 10), (False, 3, 1)]
)
def test_windows_tries_again_to_replace_a_file_that_is_open(
    tmp_path, monkeypatch, windows, refused, attempts
):
    count, replaced = 0, os.replace

    def replace(source, target):
        nonlocal count
        count += 1
        if count <= refused:
            raise PermissionError(errno.EACCES, "Access is denied")
        replaced(source, target)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(machine, "WINDOWS", windows)
    monkeypatch.setattr(machine, "PAUSE", 0)
    source, target = tmp_path / "new", tmp_path / "old"
    source.write_bytes(b"new")
    target.write_bytes(b"old")
    if attempts <= refused:
        with pytest.raises(PermissionError):
            machine.replace(source, target)
    else:
        machine.replace(source, target)
    assert count == attempts
    assert target.read_bytes() == (b"old" if attempts <= refused else b"new")


# Child processes


def test_a_process_is_out_of_time_if_a_timer_ended_it():
    assert machine.was_out_of_time(-signal.SIGPROF)
    assert not machine.was_out_of_time(-signal.SIGKILL)
    assert not machine.was_out_of_time(None)
    assert not machine.was_out_of_time(0)


def test_without_signals_groups_and_limits_only_the_process_itself_is_ended(monkeypatch):
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(command) as process, monkeypatch.context() as patch:
        for module, name in ((os, "killpg"), (signal, "setitimer"), (os, "register_at_fork")):
            patch.delattr(module, name)
        patch.setattr(machine, "resource", None)
        machine.limit_time(0.001, 0.001)
        machine.limit_memory(1)
        machine.after_fork(lambda: pytest.fail("called"))
        machine.kill_group(process)
        assert process.returncode == -signal.SIGKILL
        assert not machine.passes_files()


def test_memory_files_are_temporary_files_where_memory_cannot_be_sealed(monkeypatch):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    descriptor = machine.memory_file(5)
    try:
        machine.seal(descriptor, write=True)
        assert not machine.is_sealed(descriptor)
        assert os.pwrite(descriptor, b"12345", 0) == 5
        assert os.fstat(descriptor).st_size == 5
    finally:
        os.close(descriptor)
