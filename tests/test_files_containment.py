"""Readers run in a child process: a corrupt file that crashes it affects only that file."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import contained_readers as readers
import h5py
import numpy as np
import pytest
import scipy.io

from probdice import FormatError, ProbdiceWarning, TooLargeError, evaluate, read, write
from probdice.files import containment, contents_of
from probdice.files.containment import SCRATCH, _Child, run_in_child

REGRESSIONS = Path(__file__).parents[1] / "fuzz" / "regressions"
LABELS = np.arange(24).reshape(2, 3, 4) // 5
linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux alone")


@pytest.fixture
def file(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"content")
    return tmp_path / "a.bin"


def call(reader, file, *arguments, max_bytes=1 << 33):
    return run_in_child(
        reader, file, *arguments, returns=object, library="json", max_bytes=max_bytes
    )


def pid_of_child(file):
    return call(readers.describe, file).value["process"]


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends(pid, seconds=60.0):
    deadline = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(pid)


# Answers


def test_one_child_serves_all_files(file):
    first = call(readers.describe, file, 1, "two", [3.5, None])
    assert first.value["arguments"] == [1, "two", [3.5, None]]
    assert first.value["size"] == 7
    assert first.value["process"] != os.getpid()
    assert {pid_of_child(file) for _ in range(5)} == {first.value["process"]}


@pytest.mark.parametrize("large", [False, True])
def test_arrays_keep_their_values_types_and_order_in_memory(file, large):
    shape = (300, 400, 700) if large else (3, 4, 7)
    expected = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    turned, reversed_, empty, number = call(readers.transposed, file, large).arrays
    assert (expected.nbytes > SCRATCH) == large
    assert turned.strides == expected.transpose(2, 0, 1).strides
    assert np.array_equal(turned, expected.transpose(2, 0, 1))
    assert np.array_equal(reversed_, expected[:, ::-1])
    assert empty.shape == (0, 3)
    assert number == 5 and number.shape == ()


def test_answers_do_not_share_memory_with_later_ones(file, tmp_path):
    (tmp_path / "b.bin").write_bytes(b"another")
    (first,) = call(readers.content, file).arrays
    (second,) = call(readers.content, tmp_path / "b.bin").arrays
    assert first.tobytes() == b"content" and second.tobytes() == b"another"
    assert not first.flags.writeable


def test_an_error_keeps_the_option_that_it_recommends(file):
    with pytest.raises(TooLargeError, match=r"^is too large: pass max_bytes=7 to allow it") as info:
        call(readers.raise_too_large, file)
    assert info.value.in_command() == "is too large: pass --max-bytes 7 to allow it"
    with pytest.raises(PermissionError, match="Permission denied"):
        call(readers.raise_system_error, file)


def test_a_bug_in_a_reader_is_not_reported_as_a_corrupt_file(file):
    with pytest.raises(RuntimeError, match="KeyError: 'missing'"):
        call(readers.fail, file)


def test_safe_formats_start_no_child(tmp_path):
    code = (
        "import numpy as np, sys\n"
        "from probdice import read, write\n"
        "from probdice.files.containment import _Child\n"
        "for name in ('a.nii', 'a.nii.gz', 'a.npy', 'a.npz', 'a.tif', 'a.png'):\n"
        "    write(name, np.ones((3, 4), np.uint8)); read(name).array[...]\n"
        "print(_Child.current)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "None"


# Readers that misbehave


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (readers.abort, r"json crashed while reading it \(signal SIGABRT\)"),
        (readers.read_nowhere, r"json crashed while reading it \(signal SIGSEGV\)"),
        (readers.leave, r"json crashed while reading it \(code "),
    ],
)
def test_a_crash_fails_only_its_file(file, reader, message):
    before = pid_of_child(file)
    with pytest.raises(FormatError, match=message + r".*\. The file is probably corrupt"):
        call(reader, file)
    assert not is_running(before)
    assert pid_of_child(file) != before


def test_a_reader_that_never_finishes_is_ended_by_its_processor_time(file, monkeypatch):
    monkeypatch.setattr(containment, "SECONDS", 0.3)
    with pytest.raises(FormatError, match="json did not finish reading it within its time limit"):
        call(readers.spin, file)


@pytest.mark.parametrize("reader", [readers.sleep, readers.spin_without_signals])
def test_a_reader_that_ignores_signals_is_ended_by_the_clock(file, monkeypatch, reader):
    child = pid_of_child(file)
    monkeypatch.setattr(containment, "WALL", (0.0, 0.5))
    with pytest.raises(FormatError, match="json did not finish reading it within its time limit"):
        call(reader, file)
    assert ends(child)


@linux
def test_a_reader_that_takes_too_much_memory_is_stopped(file):
    before = pid_of_child(file)
    with pytest.raises(FormatError, match="json needs far more memory than expected"):
        call(readers.take_memory, file)
    assert pid_of_child(file) == before


def test_granted_memory_may_be_taken(file):
    array, numbers = call(readers.ones, file, 1 << 28).arrays
    assert array.size == 1 << 28 and array[-1] == 1
    assert numbers.tolist() == [[0, 1, 2], [3, 4, 5]] and numbers.dtype == ">i2"


def test_output_of_a_library_is_suppressed(file, capfd):
    assert call(readers.be_noisy, file).value == "quiet"
    assert capfd.readouterr() == ("", "")


def test_a_library_that_forks_gets_one_answer(file):
    for _ in range(3):
        assert call(readers.fork, file).value == "child"
        assert call(readers.describe, file).value["size"] == 7


@pytest.mark.parametrize("crash", [False, True])
def test_processes_that_a_library_starts_end_with_the_child(file, crash):
    before = pid_of_child(file)
    if crash:
        with pytest.raises(FormatError, match="crashed while reading it"):
            call(readers.fork_and_sleep, file, True)
    else:
        copy = call(readers.fork_and_sleep, file, False).value
        assert is_running(copy)
        _Child.current.end()
        assert ends(copy)
    group = [int(path.name) for path in Path("/proc").glob("[0-9]*") if _group(path) == before]
    assert all(ends(pid) for pid in group)


def _group(process):
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[2])
    except OSError:
        return 0


def test_a_crash_caused_by_an_earlier_file_is_not_attributed_to_this_one(file):
    first = call(readers.crash_when_used, file).value
    assert call(readers.crash_when_used, file).value != first


def test_a_child_that_was_killed_while_idle_is_replaced(file):
    child = pid_of_child(file)
    os.kill(child, signal.SIGKILL)
    assert pid_of_child(file) != child


# Invalid messages


GOOD = {"dtype": "|u1", "shape": [4], "axes": [0]}


@pytest.mark.parametrize(
    "message",
    [
        [],
        {},
        {"value": None},
        {"value": None, "arrays": 1},
        {"value": None, "arrays": [1]},
        {"value": None, "arrays": [{}]},
        {"value": None, "arrays": [GOOD | {"dtype": "|O"}]},
        {"value": None, "arrays": [GOOD | {"dtype": "<f3"}]},
        {"value": None, "arrays": [GOOD | {"dtype": "<b8"}]},
        {"value": None, "arrays": [GOOD | {"shape": [1 << 40]}]},
        {"value": None, "arrays": [GOOD | {"shape": [-1]}]},
        {"value": None, "arrays": [GOOD | {"shape": [1.5]}]},
        {"value": None, "arrays": [GOOD | {"shape": [True]}]},
        {"value": None, "arrays": [GOOD | {"axes": [1]}]},
        {"value": None, "arrays": [GOOD | {"shape": [1] * 40, "axes": list(range(40))}]},
        {"error": 1},
        {"error": {"kind": "SystemExit", "message": ["x"]}},
        {"error": {"kind": "FormatError", "message": [{"name": "a", "other": 1}]}},
        {"grant": -1},
        {"grant": "1"},
        {"grant": 1 << 40},
    ],
)
def test_an_answer_that_no_reader_gives_is_rejected(file, message):
    with pytest.raises(FormatError, match="json crashed while reading it"):
        call(readers.send, file, message, max_bytes=1 << 30)


@pytest.mark.parametrize("text", ["\xff" * 8, "\3" + "\0" * 7 + "{]}", "\2" + "\0" * 7 + "[]"])
def test_bytes_that_are_not_a_message_are_rejected(file, text):
    with pytest.raises(FormatError, match="json crashed while reading it"):
        call(readers.send_bytes, file, text)


@linux
def test_memory_that_could_still_shrink_is_copied_or_rejected(file):
    (array,) = call(readers.send_file, file, 128, 128).arrays
    assert array.tobytes() == b"\7" * 128
    _Child.current.end()
    with pytest.raises(FormatError, match="json crashed while reading it"):
        call(readers.send_file, file, 128, 256)


def test_grants_beyond_max_bytes_are_rejected(file):
    with pytest.raises(FormatError, match="json crashed while reading it"):
        call(readers.grant_too_much, file, 1001, max_bytes=1000)


# No process, file or memory remains


def test_an_interrupt_ends_the_child_and_leaves_no_answer_for_the_next_file(file):
    child = pid_of_child(file)
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call(readers.sleep, file, 2)
    timer.join()
    assert ends(child)
    assert call(readers.describe, file).value["size"] == 7


@linux
def test_nothing_is_left_after_many_files_crashes_and_interrupts(tmp_path, file, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    with h5py.File(tmp_path / "a.h5", "w") as target:
        target["labels"] = LABELS

    def left():
        maps = Path("/proc/self/maps").read_text().count("memfd:probdice")
        return _children(), len(os.listdir("/proc/self/fd")), maps, os.listdir(tmp_path / "tmp")

    if _Child.current is not None:
        _Child.current.end()
    before = left()
    for number in range(30):
        assert np.array_equal(read(tmp_path / "a.h5").array[...], LABELS)
        if number % 10 == 3:
            with pytest.raises(FormatError):
                call(readers.abort, file)
        if number % 10 == 6:
            timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                call(readers.sleep, file)
            timer.join()
    _Child.current.end()
    assert left() == before


def _children():
    path = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    return path.read_text().split()


WORK = """
import os, sys, time
import contained_readers as readers
from probdice.files.containment import run_in_child
from pathlib import Path
file, options = Path(sys.argv[1]), dict(returns=object, library="json", max_bytes=1)
print(run_in_child(readers.describe, file, **options).value["process"], flush=True)
if sys.argv[2] == "kill":
    run_in_child(readers.sleep, file, 1, **options)
elif sys.argv[2] == "exit":
    os._exit(1)
"""


@linux
@pytest.mark.parametrize("how", ["end", "exit", "kill"])
def test_the_child_ends_when_its_parent_exits_or_is_killed(file, how):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", WORK, str(file), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as parent:
        child = int(parent.stdout.readline())
        if how == "kill":
            parent.kill()
    assert ends(child)


# Threads and processes


def test_threads_get_their_own_answers(tmp_path):
    files = []
    for number in range(40):
        files.append(tmp_path / f"{number}.bin")
        files[-1].write_bytes(bytes([number]) * (number + 1))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda file: call(readers.content, file).arrays[0], files))
    for number, array in enumerate(answers):
        assert array.tobytes() == bytes([number]) * (number + 1)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_other_processes_have_children_of_their_own(file, method):
    ours = pid_of_child(file)
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        theirs = pool.map(pid_of_child, [file] * 4, chunksize=1)
    assert ours not in theirs
    assert pid_of_child(file) == ours
    assert all(ends(pid) for pid in theirs)


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_workers_of_dask_read_hdf5_files(tmp_path, scheduler):
    dask = pytest.importorskip("dask")
    paths = [str(tmp_path / f"{number}.h5") for number in range(4)]
    for number, path in enumerate(paths):
        with h5py.File(path, "w") as target:
            target["labels"] = LABELS + number
    tasks = [dask.delayed(readers.total_of)(path) for path in paths]
    totals = dask.compute(*tasks, scheduler=scheduler, num_workers=2)
    assert totals == tuple(int(LABELS.sum()) + 24 * number for number in range(4))


@pytest.mark.parametrize("executable", ["/nowhere/python", "/bin/true"])
def test_files_are_read_directly_where_no_child_can_be_started(tmp_path, monkeypatch, executable):
    with h5py.File(tmp_path / "a.h5", "w") as target:
        target["labels"] = LABELS
    if _Child.current is not None:
        _Child.current.end()
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.warns(ProbdiceWarning, match=r"No child process can be started.*can crash it"):
        assert np.array_equal(read(tmp_path / "a.h5").array[...], LABELS)


# Files


def test_a_crash_fails_one_case_of_evaluate(tmp_path):
    for folder in ("reference", "prediction"):
        (tmp_path / folder).mkdir()
        for case in ("a", "b"):
            scipy.io.savemat(
                tmp_path / folder / f"{case}.mat", {"x": np.arange(42.0).reshape(7, 6)}
            )
    content = bytearray((tmp_path / "prediction" / "b.mat").read_bytes())
    content[176] = 8  # a type of numbers that does not exist
    (tmp_path / "prediction" / "b.mat").write_bytes(content)
    result = evaluate(tmp_path / "reference", tmp_path / "prediction", out=tmp_path / "out")
    good, bad = sorted(result.records, key=lambda record: record.case)
    assert good.comparison.score == 1
    assert "b.mat: scipy.io crashed while reading it (signal SIGSEGV)" in str(bad.error)


@pytest.mark.usefixtures("short_time_limit")
def test_a_file_that_keeps_hdf5_busy_forever_is_rejected(tmp_path):
    damaged = tmp_path / "b.h5"
    damaged.write_bytes((REGRESSIONS / "hdf5" / "18e8a6c1a7492b1e-a.h5").read_bytes())
    with pytest.raises(FormatError, match=r"b\.h5: h5py did not finish reading it within its time"):
        contents_of(str(damaged))


@linux
def test_a_file_that_makes_hdf5_take_memory_is_rejected(tmp_path):
    (tmp_path / "b.h5").write_bytes((REGRESSIONS / "hdf5" / "363c376e9d0e-a.h5").read_bytes())
    with pytest.raises(FormatError, match=r"b\.h5: h5py needs far more memory"):
        read(tmp_path / "b.h5")


def test_very_many_tiny_chunks_are_rejected(tmp_path):
    with h5py.File(tmp_path / "b.h5", "w") as target:
        target.create_dataset("a", (2**14 + 1, 4), "u1", chunks=(1, 4))[0] = 1
    with pytest.raises(
        FormatError, match=r"b\.h5: has 16,385 chunks of 4 bytes: with more than 16,384 chunks"
    ):
        read(tmp_path / "b.h5")


def test_an_incomplete_hdf5_file_is_rejected(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as target:
        target["labels"] = LABELS
    content = (tmp_path / "a.h5").read_bytes()
    (tmp_path / "a.h5").write_bytes(content[: len(content) // 2])
    with pytest.raises(FormatError, match=r"a\.h5: is corrupt or incomplete"):
        read(tmp_path / "a.h5")


def test_an_hdf5_file_that_is_read_can_be_written_again_but_not_unnoticed(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as target:
        target["labels"] = LABELS
    segmentation = read(tmp_path / "a.h5")
    assert np.array_equal(segmentation.array[1, 1:, ::2], LABELS[1, 1:, ::2])
    with h5py.File(tmp_path / "a.h5", "w") as target:
        target["labels"] = LABELS + 1
    with pytest.raises(FormatError, match=r"a\.h5: was modified while it was being read"):
        segmentation.array[...]
    segmentation = read(tmp_path / "a.h5")
    assert np.array_equal(segmentation.array[...], LABELS + 1)
    (tmp_path / "a.h5").unlink()
    with pytest.raises(FormatError, match=r"a\.h5: cannot be read: No such file or directory"):
        segmentation.array[...]


def test_relative_paths_are_those_of_this_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("a.mha", LABELS)
    assert np.array_equal(read("a.mha").array, LABELS)
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "b")
    assert np.array_equal(read("../a.mha").array, LABELS)
