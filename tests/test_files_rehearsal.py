"""HDF5 files are opened by another process first, which may crash or never end."""

import os
import signal
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from probdice import FormatError, read
from probdice.files import contents_of
from probdice.files.rehearsal import _Understudy, rehearse

REGRESSIONS = Path(__file__).parents[1] / "fuzz" / "regressions" / "hdf5"
LABELS = np.arange(24).reshape(2, 3, 4) // 5


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as target:
        target["labels"] = LABELS
    return tmp_path / "a.h5"


@pytest.fixture
def understudy():
    with _Understudy.lock:
        return _Understudy.at_work()


@pytest.mark.skipif(not hasattr(signal, "SIGPROF"), reason="no limit of time on Windows")
def test_a_file_that_keeps_the_library_busy_for_ever_is_refused(tmp_path, file):
    damaged = tmp_path / "b.h5"
    damaged.write_bytes((REGRESSIONS / "18e8a6c1a7492b1e-a.h5").read_bytes())
    with pytest.raises(FormatError, match=r"b\.h5: is damaged: .* not come to an end"):
        contents_of(str(damaged))
    assert np.array_equal(read(file).array[:], LABELS)  # by the next one


def test_one_process_serves_all_files(file, understudy):
    for _ in range(3):
        rehearse(file)
        assert np.array_equal(read(file).array[:], LABELS)
    assert _Understudy.present is understudy


def test_a_process_that_ended_for_reasons_of_its_own_is_replaced(file, understudy):
    understudy.process.kill()
    understudy.process.wait()
    assert np.array_equal(read(file).array[:], LABELS)
    assert _Understudy.present.process.pid != understudy.process.pid


def test_a_file_that_ends_every_process_is_refused(file, monkeypatch):
    monkeypatch.setattr(_Understudy, "answer_to", lambda self, path: self.process.kill() or "")
    with pytest.raises(FormatError, match=r"a\.h5: is damaged: the HDF5 library crashes on it"):
        read(file)


def test_an_interrupt_leaves_no_answer_for_the_next_file(file, understudy, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_Understudy, "_answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            read(file)
    assert understudy.process.returncode is not None
    assert np.array_equal(read(file).array[:], LABELS)


def test_files_are_opened_directly_where_no_process_can_be_started(file, understudy, monkeypatch):
    understudy.end()
    for executable in ("/nowhere/python", "/bin/true"):
        if executable == "/nowhere/python" or Path(executable).exists():
            monkeypatch.setattr(sys, "executable", executable)
            assert np.array_equal(read(file).array[:], LABELS)
            assert _Understudy.present is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_starts_a_process_of_its_own(file, understudy):
    _Understudy.left_to_parent()  # as a fork does
    try:
        rehearse(file)
        assert _Understudy.present.process.pid != understudy.process.pid
    finally:
        understudy.process.returncode = None
        understudy.process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured on Linux alone")
def test_a_file_that_takes_memory_beyond_all_measure_is_refused(tmp_path):
    with _Understudy.lock:
        if _Understudy.present is not None:
            _Understudy.present.end()
    large = np.ones(1 << 27)  # the next is started by a large process
    (tmp_path / "b.h5").write_bytes((REGRESSIONS / "363c376e9d0e-a.h5").read_bytes())
    with pytest.raises(FormatError, match=r"b\.h5: is damaged: .* takes far more memory for it"):
        read(tmp_path / "b.h5")
    assert large.all()


def test_very_many_tiny_chunks_are_refused(tmp_path):
    with h5py.File(tmp_path / "b.h5", "w") as target:
        target.create_dataset("a", (2**14 + 1, 4), "u1", chunks=(1, 4))[0] = 1
    with pytest.raises(
        FormatError, match=r"b\.h5: has 16,385 chunks of 4 bytes: expected at least"
    ):
        read(tmp_path / "b.h5")


def test_damage_that_the_library_notices_is_told_as_ever(file):
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(FormatError, match=r"a\.h5: is damaged or incomplete"):
        read(file)
