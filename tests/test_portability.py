"""Other operating systems, simulated: missing modules, path rules, names, encodings, line ends.

Every Python process with a `sitecustomize.py` in PYTHONPATH runs this file first. The processes
that probdice starts run it too. It removes modules and functions that macOS or Windows lacks.
"""

import ast
import csv
import json
import ntpath
import os
import subprocess
import sys
from pathlib import Path, PureWindowsPath

import h5py
import nibabel
import numpy as np
import pytest
from commands import probdice as run_command

import probdice
from probdice import InputError, evaluate, read
from probdice.cli.evaluate import _methods
from probdice.cli.outputs import check_outputs
from probdice.evaluation.patterns import Pattern
from probdice.files import sources
from probdice.files.name_tables import read_names
from probdice.report.facts import _name
from probdice.text.formatting import short_paths

SOURCE = Path(probdice.__file__).parent
TESTS = Path(__file__).parent

MACOS = """
import fcntl, os
for module in (fcntl, os):
    for name in dir(module):
        if name.startswith(("F_ADD_SEALS", "F_GET_SEALS", "F_SEAL", "MFD_", "memfd_", "sched_")):
            delattr(module, name)
"""
WINDOWS = """
import fcntl, os, select, selectors, signal, socket, subprocess, sys, types
msvcrt = types.ModuleType("msvcrt")
msvcrt.LK_NBLCK = 2
def locking(file, mode, count, flock=fcntl.flock, how=fcntl.LOCK_EX | fcntl.LOCK_NB):
    try:
        flock(file, how)
    except OSError:
        raise PermissionError(13, "Permission denied") from None
msvcrt.locking = locking
sys.modules["msvcrt"] = msvcrt
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for module, names in {
    os: "fork forkpty killpg memfd_create preadv register_at_fork sched_getaffinity sysconf",
    select: "poll",
    signal: "SIGALRM SIGPROF setitimer",
    socket: "recv_fds send_fds",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
"""
SYSTEMS = {"macos": MACOS, "windows": WINDOWS}
ONE_MORE = np.array([[1, 1, 1, 2], [1, 2, 2, 2]], np.uint8)
TRUTH = np.array([[1, 1, 2, 2], [1, 1, 2, 2]], np.uint8)


def run(*words, start="", folder, **variables):
    """Run Python with `start` as the first statement of this and of all processes it starts."""
    (folder / "start").mkdir(exist_ok=True)
    (folder / "start" / "sitecustomize.py").write_text(start, encoding="utf-8")
    paths = [str(folder / "start"), str(SOURCE.parent), str(TESTS.parent)]
    return subprocess.run(
        [sys.executable, *map(str, words)],
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",
        timeout=200,
        check=False,
        cwd=TESTS.parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | variables,
    )


def save_hdf5(file, labels):
    with h5py.File(file, "w") as target:
        target["labels"] = labels


@pytest.fixture
def folders(tmp_path):
    """Two cases in the folders truth and mine, an HDF5 file and a NIfTI file each."""
    for name, labels in (("truth", TRUTH), ("mine", ONE_MORE)):
        (tmp_path / name).mkdir()
        save_hdf5(tmp_path / name / "a.h5", labels)
        nibabel.save(nibabel.Nifti1Image(labels, np.eye(4)), tmp_path / name / "b.nii.gz")
    return tmp_path


def scores(out):
    with (out / "cases.csv").open(encoding="utf-8", newline="") as stream:
        return {row["case"]: float(row["score"]) for row in csv.DictReader(stream)}


# Modules and functions of POSIX

POSIX_MODULES = {"fcntl", "grp", "msvcrt", "posix", "pwd", "resource", "termios", "winreg"}
POSIX_NAMES = {
    *("fork", "getuid", "killpg", "memfd_create", "mkfifo", "nice", "register_at_fork"),
    *("sched_getaffinity", "setsid", "statvfs", "sysconf", "uname"),
    *("SIGALRM", "SIGHUP", "SIGPROF", "SIGUSR1", "SIGXCPU", "alarm", "setitimer"),
}


def test_only_one_module_depends_on_the_operating_system():
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        if path == SOURCE / "data" / "machine.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = set()
            if isinstance(node, ast.Import):
                names = {alias.name for alias in node.names} & POSIX_MODULES
            elif isinstance(node, ast.ImportFrom):
                names = {node.module} & POSIX_MODULES
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                dotted = f"{node.value.id}.{node.attr}"
                names = {dotted} & {"os.name", "sys.platform"}
                if node.value.id in ("os", "signal"):
                    names |= {node.attr} & POSIX_NAMES
            wrong += [f"{path.relative_to(SOURCE)}:{node.lineno} uses {name}" for name in names]
    assert wrong == []


@pytest.mark.parametrize(
    "system, tests",
    [
        (
            "macos",
            [
                "tests/test_atomic_files.py",
                "tests/test_files_containment.py::test_answers_do_not_share_memory_with_later_ones",
                "tests/test_files_containment.py::test_arrays_keep_their_values_types_and_order_in_memory",
                "tests/test_files_containment.py::test_a_crash_fails_only_its_file",
                "tests/test_files_containment.py::test_one_child_serves_all_files",
            ],
        ),
        (
            "windows",
            [
                "tests/test_atomic_files.py",
                "tests/test_evaluation_journal.py",
                "tests/test_files_formats.py",
                "tests/test_files_paths.py",
            ],
        ),
    ],
)
def test_affected_tests_pass_without_the_modules_of_a_system(tmp_path, system, tests):
    quiet = "-pno:cacheprovider", "-W", "ignore::probdice.errors.ProbdiceWarning"
    done = run("-m", "pytest", *quiet, *tests, start=SYSTEMS[system], folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout and "skipped" not in done.stdout


@pytest.mark.parametrize("system", SYSTEMS)
def test_evaluate_gives_the_same_scores_on_every_system(folders, system):
    words = "evaluate", folders / "truth", folders / "mine", "-o", folders / "out"
    words += "--workers", "2", "--reports", "none"
    done = run("-m", "probdice", *words, start=SYSTEMS[system], folder=folders)
    assert done.returncode == 0, done.stderr
    assert scores(folders / "out") == {"a": 0.75, "b": 0.75}  # 6 of 8 pixels agree


# The start method of processes

SPAWNING = """
import multiprocessing, sys
from pathlib import Path
import probdice
if multiprocessing.get_start_method(allow_none=True) is None:
    multiprocessing.set_start_method("spawn")
folder = Path(sys.argv[1])
result = probdice.evaluate(folder / "truth", folder / "mine", out=folder / "out", workers=2)
print([record.comparison.score for record in result.records])
"""


def test_a_script_without_a_main_guard_runs_once_under_spawn(folders):
    (folders / "script.py").write_text(SPAWNING, encoding="utf-8")
    done = run(folders / "script.py", folders, folder=folders)
    assert done.stdout == "[0.75, 0.75]\n", done.stderr


POOL = """
import multiprocessing, sys
import probdice
from probdice.data.segmentation import Segmentation

def score(pair):
    return probdice.compare(*pair).score

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        truth = Segmentation.from_labels([1, 1, 1, 1, 2, 2, 2, 2])
        print(pool.map(score, [(truth, [3, 3, 3, 4, 4, 4, 4, 4]), (sys.argv[1], sys.argv[2])]))
"""


def test_comparisons_run_in_spawned_processes(folders):
    (folders / "pool.py").write_text(POOL, encoding="utf-8")
    files = folders / "truth" / "a.h5", folders / "mine" / "a.h5"
    done = run(folders / "pool.py", *files, folder=folders)
    assert done.stdout == "[0.875, 0.75]\n", done.stderr


# Path rules of Windows


@pytest.fixture
def windows_paths(monkeypatch):
    monkeypatch.setattr(sources, "Path", PureWindowsPath)


@pytest.mark.parametrize(
    "text, file, inside",
    [
        (r"C:\data\a.h5:/labels/fine", r"C:\data\a.h5", "/labels/fine"),
        (r"C:\data\a.h5", r"C:\data\a.h5", ""),
        (r"C:\data.h5\a.nii.gz", r"C:\data.h5\a.nii.gz", ""),
        (r"C:a.mat:groundTruth/0", "C:a.mat", "groundTruth/0"),
        (r"\\server\share\A.HDF5:x", r"\\server\share\A.HDF5", "x"),
        ("C:/data/a.npz:probabilities", r"C:\data\a.npz", "probabilities"),
    ],
)
def test_a_drive_letter_is_not_a_file_with_an_inner_path(windows_paths, text, file, inside):
    assert sources.split_inside(text) == (PureWindowsPath(file), inside)


@pytest.mark.parametrize(
    "text, parts",
    [
        (r"csf=C:\a b.nii,grey=D:\b.h5:/x", [("csf", r"C:\a b.nii"), ("grey", r"D:\b.h5:/x")]),
        (r"C:\a=b\pve.nii", [("", r"C:\a=b\pve.nii")]),
        (r"..\a=b\pve.nii", [("", r"..\a=b\pve.nii")]),
        (r"C:\a.nii,C:\b.nii", [("", r"C:\a.nii"), ("", r"C:\b.nii")]),
    ],
)
def test_names_of_regions_are_split_from_paths_with_drives(windows_paths, text, parts):
    assert [(part.name, part.file) for part in sources.parts_of(text)] == parts


def test_folders_of_methods_may_have_drives(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "path", ntpath)
        methods = _methods([r"C:\out\net=2", r"unet=D:\out", r"..\a=b", r"C:\out\atlas\\"])
    assert methods == {
        "net=2": r"C:\out\net=2",
        "unet": r"D:\out",
        "a=b": r"..\a=b",
        "atlas": r"C:\out\atlas\\",
    }


def test_a_drive_letter_is_not_a_url():
    assert not sources.is_url("c://data/a.zarr")
    assert not sources.is_url(r"C:\data\a.zarr")
    assert sources.is_url("s3://bucket/a.zarr")


def test_regions_are_named_by_the_file_and_not_by_the_folder(windows_paths):
    paths = [r"C:\x1\pve_0.nii.gz", r"C:\x2\pve_1.nii.gz", r"C:\x3\pve_2.nii.gz"]
    assert sources.region_names(paths) == [0, 1, 2]


def test_patterns_must_be_relative_on_every_system():
    for text in (r"C:\data\{case}.nii.gz", "C:{case}.nii", r"\\server\share\{case}.nii"):
        with pytest.raises(InputError, match="must be relative"):
            Pattern.of(text)


def test_the_address_of_a_store_has_slashes_as_urls_have(windows_paths, monkeypatch):
    monkeypatch.setattr(os.path, "abspath", lambda file: rf"C:\data\{file}")
    assert sources._store(PureWindowsPath("a.zarr")) == "C:/data/a.zarr"


def test_tables_and_pages_shorten_paths_with_drives(windows_paths):
    paths = r"C:\data\truth\a.nii.gz", r"C:\data\net\a.nii.gz"
    assert short_paths(*paths) == ("truth/a.nii.gz", "net/a.nii.gz")
    assert _name(r"C:\data\a.nii.gz") == "a.nii.gz"
    assert _name(r"C:\data\b.h5:/labels/fine") == "b.h5:/labels/fine"
    assert _name("https://host/a.zarr") == "https://host/a.zarr"


# Names that differ only in case


def test_no_two_files_of_an_evaluation_differ_only_in_case(tmp_path):
    for folder, labels in (("truth", TRUTH), ("one", TRUTH), ("two", ONE_MORE)):
        (tmp_path / folder).mkdir()
        for case in ("P", "p", "con", "a b"):
            np.save(tmp_path / folder / f"{case}.npy", labels)
    methods = {"A": tmp_path / "one", "a": tmp_path / "two"}
    result = evaluate(tmp_path / "truth", methods, out=tmp_path / "out")
    result.report(reports="all")
    pages = [file.name for file in (tmp_path / "out" / "report_cases").iterdir()]
    assert len(pages) == len({page.casefold() for page in pages}) == 4 * 3
    written = [
        file.relative_to(tmp_path).as_posix().casefold() for file in (tmp_path / "out").rglob("*")
    ]
    assert len(set(written)) == len(written)
    means = {name: np.mean(values) for name, values in result.values("score").items()}
    assert means == {"A": 1.0, "a": 0.75}


def test_raters_need_folder_names_that_every_system_accepts(tmp_path):
    for raters, message in (
        ({"Anna": "x", "anna": "y"}, "'Anna' and 'anna' differ only in upper and lower case"),
        ({"Anna": "x", "a:b": "y"}, "'a:b' is not a valid folder name on all systems"),
        ({"Anna": "x", "nul": "y"}, "'nul' is not a valid folder name on all systems"),
    ):
        with pytest.raises(InputError, match=message):
            evaluate(None, {"net": tmp_path}, raters=raters, out=tmp_path / "out")


def test_outputs_that_differ_only_in_case_are_rejected(tmp_path):
    import typer

    outputs = {"--map": str(tmp_path / "Map.npy"), "--save": str(tmp_path / "map.npy")}
    with pytest.raises(typer.BadParameter, match="is also written by --map"):
        check_outputs(outputs, images=("--map", "--save"), inputs={})


def test_files_without_inode_numbers_are_distinguished_by_their_paths(tmp_path, monkeypatch):
    stat = os.stat

    def without_numbers(path, *arguments, **options):
        status = stat(path, *arguments, **options)
        return os.stat_result((status.st_mode, 0, *status[2:]))

    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / name, TRUTH)
    monkeypatch.setattr(os, "stat", without_numbers)
    check_outputs({"--map": str(tmp_path / "b.npy")}, inputs={"REFERENCE": str(tmp_path / "a.npy")})


# Encodings and line ends

OPENING = {"read_text", "write_text", "fdopen", "TextIOWrapper", "NamedTemporaryFile"}


def test_text_is_never_read_or_written_in_the_default_encoding():
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", "")
            keywords = {keyword.arg for keyword in node.keywords}
            starts_text = name in ("Popen", "run") and "text" in keywords
            opens_text = name in OPENING or starts_text or _opens_text(node)
            if opens_text and "encoding" not in keywords:
                wrong.append(f"{path.relative_to(SOURCE)}:{node.lineno} {name}")
    assert wrong == []


def _opens_text(node):
    """Whether a call is the built-in open, or that of a path, in text mode."""
    if getattr(node.func, "id", "") == "open":
        modes = node.args[1:2]
    elif getattr(node.func, "attr", "") == "open" and (
        getattr(node.func.value, "id", "") not in ("Image", "archive", "os", "webbrowser", "zarr")
    ):
        modes = node.args[:2]  # path.open(mode) or gzip.open(file, mode)
    else:
        return False
    modes += [keyword.value for keyword in node.keywords if keyword.arg == "mode"]
    return not any(isinstance(mode, ast.Constant) and "b" in str(mode.value) for mode in modes)


STRICT = """
import warnings
warnings.filterwarnings("error", category=EncodingWarning, module=r"probdice\\b")
"""
NOT_UTF_8 = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C", "NO_COLOR": "1"}


def test_files_are_the_same_in_every_default_encoding_and_with_both_line_ends(folders):
    def write_inputs(newline):
        table = newline.join(["index\tname", "1\tmatière grise", "2\t脑", ""])
        (folders / "names.tsv").write_bytes(table.encode())
        settings = ["# é", 'names = "names.tsv"', 'background = "脑"', 'reports = "all"', ""]
        (folders / "run.toml").write_bytes(newline.join(settings).encode())
        options = "--config", folders / "run.toml", "--save-config", folders / "saved.toml"
        return "evaluate", folders / "truth", f"net={folders / 'mine'}", *options

    done = run(
        *("-X", "warn_default_encoding", "-m", "probdice"),
        *(*write_inputs("\r\n"), "-o", folders / "out"),
        start=STRICT,
        folder=folders,
        **NOT_UTF_8,
    )
    assert done.returncode == 0, done.stderr
    assert scores(folders / "out") == {"a": 0.75, "b": 0.75}
    for name in ("regions.csv", "report.html", "summary.json"):
        content = (folders / "out" / name).read_bytes()
        assert "脑" in content.decode() or "\\u8111" in content.decode(), name
    assert '"脑"' in (folders / "saved.toml").read_text(encoding="utf-8")
    assert b"\r" not in (folders / "saved.toml").read_bytes()
    assert run_command(*write_inputs("\n"), "-o", folders / "utf8").returncode == 0
    for name in ("cases.csv", "regions.csv", "table.md"):
        assert (folders / "utf8" / name).read_bytes() == (folders / "out" / name).read_bytes()


def test_name_tables_may_have_the_line_ends_of_any_system(tmp_path):
    for ends in ("\n", "\r\n", "\r"):
        file = tmp_path / "names.tsv"
        file.write_bytes(ends.join(["index\tname", "1\tcafé", "2\tb", ""]).encode())
        assert {k: entry.name for k, entry in read_names(file).items()} == {1: "café", 2: "b"}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_headers_of_images_may_have_the_line_ends_of_windows(tmp_path, newline):
    metaimage = ["ObjectType = Image", "NDims = 2", "DimSize = 4 2", "ElementType = MET_UCHAR"]
    nrrd = ["NRRD0004", "type: uint8", "dimension: 2", "sizes: 4 2", "encoding: raw"]
    files = {
        "a.mhd": [*metaimage, "ElementDataFile = a.raw", ""],
        "a.nhdr": [*nrrd, "data file: a.raw", ""],
    }
    (tmp_path / "a.raw").write_bytes(TRUTH.tobytes())
    for name, lines in files.items():
        (tmp_path / name).write_bytes(newline.join(lines).encode())
        assert sorted(np.unique(read(tmp_path / name).array[...])) == [1, 2], name


def test_a_journal_with_the_line_ends_of_windows_continues(folders):
    out = folders / "out"
    evaluate(folders / "truth", folders / "mine", out=out)
    journal = out / "cases.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"\n", b"\r\n"))
    counts = []
    evaluate(
        folders / "truth",
        folders / "mine",
        out=out,
        progress=lambda one: counts.append(one.resumed),
    )
    assert counts[-1] == 2
    lines = [json.loads(line) for line in journal.read_bytes().splitlines()]
    assert [line["case"] for line in lines] == ["a", "b"]
