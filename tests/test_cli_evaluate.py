"""`probdice evaluate`, `summarise` and `show`: options, output and exit codes."""

import csv
import html
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from math import nan
from pathlib import Path
from typing import TextIO

import nibabel
import numpy as np
import pytest
from commands import probdice

from probdice import compare
from probdice.cli.app import app
from probdice.evaluation import Evaluation, evaluate

REFERENCE = np.array([1, 1, 1, 1, 2, 2, 2, 2])
SPLIT = np.array([7, 7, 5, 5, 5, 9, 9, 9])
FINAL = (
    *("cases.csv", "regions.csv", "files.csv", "ranking.csv", "table.md", "table.tex", "how.md"),
    "summary.json",
)


# Every Python process with the folder of this file in PYTHONPATH runs it. It aborts the process if
# a file with "aborting" in its path is opened.
ABORTING = """
import os, sys
def watch(event, arguments):
    if event == "open" and "aborting" in str(arguments[0]):
        os.abort()
sys.addaudithook(watch)
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("evaluate")
    for name in ("truth", "good", "poor"):
        (root / name).mkdir()
        for k in range(7):
            arrays = {"truth": REFERENCE, "good": np.roll(REFERENCE, k % 3), "poor": SPLIT}
            np.save(root / name / f"case{k}", arrays[name])
    return root


def test_evaluate_writes_tables_and_summarise_prints_them(folders: Path) -> None:
    out = folders / "out"
    done = probdice(
        "evaluate", folders / "truth", folders / "good", f"other={folders / 'poor'}", "-o", out
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "7 cases, 2 methods" in done.stdout
    assert "good − other" in done.stdout
    assert "corrected p" in done.stdout
    assert (
        "other: 95 % CI by percentiles (*): BCa is undefined because all values are equal"
        in done.stdout
    )
    assert {file.name for file in out.iterdir()} >= {"cases.csv", "regions.csv", "summary.json"}
    again = probdice("summarise", out)
    assert (again.returncode, again.stdout) == (
        0,
        done.stdout.partition("wrote ")[0],
    )
    by_dice = probdice("summarise", out, "--measure", "lowest_dice")
    assert "ranking by lowest Dice" in by_dice.stdout


def test_with_merging_methods_are_ranked_by_the_adjusted_score(folders: Path) -> None:
    done = probdice(
        "evaluate", folders / "truth", folders / "good", folders / "poor",
        "-o", folders / "merged", "--merge", "both", "--similarity", "aitchison", "--floor", "0.01",
    )  # fmt: skip
    assert done.returncode == 0
    assert "ranking by adjusted score" in done.stdout
    assert "aitchison with floor 0.01 similarity, merge both" in done.stdout


def test_show_prints_one_case_like_compare(folders: Path) -> None:
    out = folders / "shown"
    probdice("evaluate", folders / "truth", folders / "good", folders / "poor", "-o", out, "-q")
    done = probdice("show", out, "case1", "--method", "poor")
    assert done.returncode == 0
    assert "case1: poor" in done.stdout
    assert "score           0.6250" in done.stdout
    assert "good" not in done.stdout
    both = probdice("show", out, "case1").stdout
    assert "case1: good" in both and "case1: poor" in both
    missing = probdice("show", out, "case99")
    assert missing.returncode == 1
    assert "no case 'case99'" in missing.stderr


def linked_pages(page: Path) -> set[str]:
    """Return the pages of cases that a report links to."""
    return set(re.findall(r'"(report_cases/[^"]+)"', page.read_text(encoding="utf-8")))


def test_evaluate_writes_a_report_and_pages_of_the_worst_cases(folders: Path) -> None:
    out = folders / "paged"
    words = "evaluate", folders / "truth", folders / "good", folders / "poor", "-o", out
    done = probdice(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f"\nwrote {out / 'report.html'}: report\n")
    pages = linked_pages(out / "report.html")
    all_methods = {page for page in pages if page.endswith("-all.html")}
    assert (len(pages), len(all_methods)) == (16, 5)  # cases of both methods, and pages with both
    assert pages == {f"report_cases/{file.name}" for file in (out / "report_cases").iterdir()}
    for page in pages - all_methods:
        assert 'id="pixels"' in (out / page).read_text(encoding="utf-8")
    final = {name: (out / name).read_bytes() for name in FINAL}
    before = (out / "report.html").read_bytes()
    fewer = probdice(*words, "--reports", "worst:1")
    assert fewer.returncode == 0
    assert (
        len(linked_pages(out / "report.html")) == len(list((out / "report_cases").iterdir())) == 4
    )
    assert probdice(*words, "--reports", "none", "-q").stdout == ""
    assert linked_pages(out / "report.html") == set() and not (out / "report_cases").exists()
    again = probdice("summarise", out, "--reports", "worst:5")
    assert again.stdout.endswith(f"\nwrote {out / 'report.html'}: report\n")
    assert (out / "report.html").read_bytes() == before and linked_pages(
        out / "report.html"
    ) == pages
    assert {name: (out / name).read_bytes() for name in FINAL} == final


def test_a_page_without_images_is_reported_and_is_not_an_error(
    folders: Path, tmp_path: Path
) -> None:
    (tmp_path / "own").mkdir()
    for k in range(7):
        np.save(tmp_path / "own" / f"case{k}", SPLIT)
    out = tmp_path / "out"
    probdice("evaluate", folders / "truth", tmp_path / "own", "-o", out, "--reports", "none")
    deleted = tmp_path / "own" / "case3.npy"
    deleted.unlink()
    done = probdice("summarise", out, "--reports", "all")
    assert done.returncode == 0
    assert done.stderr.startswith("case3 (own): the page has no images: ")
    assert str(deleted) in done.stderr and done.stderr.count("\n") == 1
    assert len(linked_pages(out / "report.html")) == 7


def test_a_failed_case_is_printed_and_the_exit_code_is_1(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    for k in range(7):
        np.save(tmp_path / "bad" / f"case{k}", REFERENCE[: 8 if k else 3])
    done = probdice("evaluate", folders / "truth", tmp_path / "bad", "-o", tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.startswith("failed: case0 (bad): reference (truth/case0.npy) has shape (8,)")
    assert "failed: case0 (bad)" in done.stdout
    assert "bad: 1 failed of 7 cases, which rank last" in done.stdout
    shown = probdice("show", tmp_path / "out", "case0")
    assert shown.returncode == 0
    assert "failed: reference (truth/case0.npy) has shape (8,)" in shown.stdout


def save_folders(root: Path, **methods: list[object]) -> list[Path]:
    """Write one folder per name, with one array per case."""
    for name, arrays in methods.items():
        (root / name).mkdir()
        for k, array in enumerate(arrays):
            np.save(root / name / f"case{k}", array)
    return [root / name for name in methods]


def test_the_report_is_written_if_all_cases_fail(tmp_path: Path) -> None:
    folders = save_folders(tmp_path, truth=[REFERENCE] * 2, net=[REFERENCE[:3]] * 2)
    done = probdice("evaluate", *folders, "-o", tmp_path / "out")
    assert done.returncode == 1
    assert "unexpected" not in done.stderr
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "0 scored, 0 missing, 2 failed" in page


def test_the_report_is_written_if_one_method_of_five_fails(tmp_path: Path) -> None:
    good = {name: [REFERENCE, SPLIT] for name in ("a", "b", "c", "d")}
    folders = save_folders(tmp_path, truth=[REFERENCE] * 2, **good, e=[REFERENCE[:3]] * 2)
    done = probdice("evaluate", *folders, "-o", tmp_path / "out")
    assert done.returncode == 1
    assert "unexpected" not in done.stderr
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "8 scored, 0 missing, 2 failed" in page
    assert "“e”: 2 failed of 2 cases, which rank last" in page


def test_the_report_is_written_for_one_constant_image(tmp_path: Path) -> None:
    folders = save_folders(
        tmp_path, truth=[np.ones(8, int)], a=[np.ones(8, int)], b=[np.ones(8, int)]
    )
    done = probdice("evaluate", *folders, "-o", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "2 scored, 0 missing, 0 failed" in page


@pytest.mark.usefixtures("worker_processes")
def test_a_file_that_kills_the_process_fails_only_its_own_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, net = save_folders(tmp_path, truth=[REFERENCE] * 4, net=[SPLIT] * 4)
    (net / "case1.npy").rename(net / "aborting1.npy")
    (truth / "case1.npy").rename(truth / "aborting1.npy")
    (tmp_path / "sitecustomize.py").write_text(ABORTING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    out = tmp_path / "out"
    for _ in range(2):  # the second run tries the case again
        done = probdice("evaluate", truth, net, "-o", out)
        assert done.returncode == 1
        summary = json.loads((out / "summary.json").read_text())
        assert summary["failures"] == [
            {
                "case": "aborting1",
                "method": "net",
                "error": "the worker process was killed by signal 6 while it compared "
                "../truth/aborting1.npy and ../net/aborting1.npy",
            }
        ]
        assert summary["measures"]["score"]["methods"][0]["n"] == 3


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other file names")
def test_a_file_name_that_is_not_utf_8_is_restored(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    folders = save_folders(tmp_path, truth=[REFERENCE], net=[SPLIT], bad=[REFERENCE[:3]])
    for folder in folders:
        (folder / "case0.npy").rename(folder / f"{name}.npy")
    out = tmp_path / "out"
    done = probdice("evaluate", *folders, "-o", out, "--parquet")
    assert done.returncode == 1
    assert done.stderr.startswith("failed: caf\\udce9 (bad)")
    again = probdice("summarise", out)
    assert (again.returncode, again.stderr) == (0, "")
    assert probdice("show", out, name).returncode == 0
    assert Evaluation.load(out).cases == (name,)
    assert "\ncaf\\udce9,net,scored," in (out / "cases.csv").read_text(encoding="utf-8")


def test_only_corrupt_lines_of_the_journal_are_computed_again(tmp_path: Path) -> None:
    folders = save_folders(tmp_path, truth=[REFERENCE] * 2, net=[SPLIT] * 2)
    words = "evaluate", *folders, "-o", tmp_path / "out", "-q"
    assert probdice(*words).returncode == 0
    final = {name: (tmp_path / "out" / name).read_bytes() for name in FINAL}
    journal = tmp_path / "out" / "cases.jsonl"
    lines = [json.loads(text) for text in journal.read_text().splitlines()]
    changes: list[dict[str, object]] = [
        {"case": 3},
        {"inputs": {"reference": [1], "prediction": [[2]]}},
        {"comparison": {}},
        {"comparison": lines[1]["comparison"] | {"groups": 5}},
    ]
    for change in changes:
        journal.write_text(f"{json.dumps(lines[0])}\n{json.dumps(lines[1] | change)}\n")
        loaded = probdice("show", tmp_path / "out", "case1")
        if "inputs" not in change:
            assert loaded.returncode == 1
            assert "cases.jsonl has no valid line for case 'case1' of method 'net'" in loaded.stderr
        done = probdice(*words)
        assert (done.returncode, done.stderr) == (0, "")
        assert {name: (tmp_path / "out" / name).read_bytes() for name in FINAL} == final


def test_a_corrupt_summary_is_named(tmp_path: Path) -> None:
    folders = save_folders(tmp_path, truth=[REFERENCE], net=[SPLIT])
    words = "evaluate", *folders, "-o", tmp_path / "out", "-q"
    assert probdice(*words).returncode == 0
    path = tmp_path / "out" / "summary.json"
    text = path.read_text()
    content = json.loads(text)
    corrupt = [
        text[: len(text) // 2],
        json.dumps({"format": 3}),
        json.dumps(content | {"measures": {}, "options": {}, "jobs": [3]}),
    ]
    for content in corrupt:
        path.write_text(content)
        for command in (("summarise",), ("show", "case0")):
            done = probdice(command[0], tmp_path / "out", *command[1:])
            assert done.returncode == 1
            assert done.stderr.startswith(f"error: {path}: ")
    assert probdice(*words).returncode == 0
    assert path.read_text() == text


def check_results(out: Path) -> None:
    assert Evaluation.load(out).values() == {"net": pytest.approx([0.625, nan], nan_ok=True)}
    assert (out / "report.html").exists()
    assert (out / "cases.jsonl").read_bytes().count(b"\n") == 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("redirection", "message"),
    [(">&-", "failed: "), (">&- 2>&-", "")],
)
def test_results_are_complete_if_streams_are_closed(
    tmp_path: Path, redirection: str, message: str
) -> None:
    folders = save_folders(tmp_path, truth=[REFERENCE] * 2, net=[SPLIT, SPLIT[:2]])
    out = tmp_path / "out"
    words = shlex.join([sys.executable, "-m", "probdice", "evaluate", *map(str, folders)])
    done = subprocess.run(
        ["sh", "-c", f"{words} -o {shlex.quote(str(out))} {redirection}"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 1
    assert message in done.stderr and "Traceback" not in done.stderr
    check_results(out)


def full_device() -> TextIO:
    return open("/dev/full", "w")


def pipe_without_reader() -> TextIO:
    reading, writing = os.pipe()
    os.close(reading)
    return open(writing, "w")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    ("open_stdout", "open_stderr", "message"),
    [
        (full_device, StringIO, "error: cannot write to standard output: No space left on device;"),
        (pipe_without_reader, StringIO, "failed: "),
        (StringIO, full_device, ""),
    ],
)
def test_results_are_complete_if_the_output_fails(
    tmp_path: Path,
    open_stdout: Callable[[], TextIO],
    open_stderr: Callable[[], TextIO],
    message: str,
) -> None:
    folders = save_folders(tmp_path, truth=[REFERENCE] * 2, net=[SPLIT, SPLIT[:2]])
    words = ["evaluate", *map(str, folders), "-o", str(tmp_path / "out")]
    stdout, stderr = open_stdout(), open_stderr()
    with redirect_stdout(stdout), redirect_stderr(stderr), pytest.raises(SystemExit) as end:
        app(words)
    assert end.value.code == 1
    if isinstance(stderr, StringIO):
        assert message in stderr.getvalue()
    for stream in (stdout, stderr):
        with suppress(OSError):  # the rest of the output
            stream.close()
    check_results(tmp_path / "out")


@pytest.mark.skipif(sys.platform == "win32", reason="needs ulimit")
def test_finished_cases_are_kept_if_the_disk_is_full(tmp_path: Path) -> None:
    folders = save_folders(tmp_path, truth=[REFERENCE] * 3, net=[SPLIT] * 3)
    out = tmp_path / "out"
    words = shlex.join([sys.executable, "-m", "probdice", "evaluate", *map(str, folders)])
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 4; {words} -o {shlex.quote(str(out))}"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 1
    assert f"error: {out / 'cases.jsonl'}: cannot write this file: File too large" in done.stderr
    before = (out / "cases.jsonl").read_bytes()
    assert before.count(b"\n") >= 1
    assert probdice("evaluate", *folders, "-o", out, "-q").returncode == 0
    after = (out / "cases.jsonl").read_bytes()
    assert after.count(b"\n") == 3 and after.startswith(before[: before.rindex(b"\n")])


def test_further_failures_of_one_kind_are_counted(tmp_path: Path) -> None:
    for name, shift in (("truth", 0.0), ("net", 5.0)):
        (tmp_path / name).mkdir()
        for k in range(10):
            affine = np.diag([1.0, 1.0, 1.0, 1.0])
            affine[0, 3] = shift + k * (shift > 0)
            image = nibabel.Nifti1Image(np.ones((4, 4, 4), np.uint8), affine)
            nibabel.save(image, tmp_path / name / f"case{k}.nii.gz")
    np.save(tmp_path / "truth" / "other", REFERENCE)
    np.save(tmp_path / "net" / "other", SPLIT[:3])
    out = tmp_path / "out"
    done = probdice("evaluate", tmp_path / "truth", tmp_path / "net", "-o", out)
    assert done.returncode == 1
    for text in (done.stdout, done.stderr):
        failed = [line for line in text.splitlines() if line.startswith("failed: ")]
        assert len(failed) == 5
        assert sum("case" in line and "(net): " in line for line in failed) == 3
        assert [line for line in failed if "7 more failures like case" in line] == failed[-1:]
        assert sum(line.startswith("failed: other (net): ") for line in failed) == 1
        assert max(map(len, failed)) <= 310
    assert len(done.stderr.splitlines()) == 5
    summary = json.loads((out / "summary.json").read_text())
    assert len(summary["failures"]) == 11
    assert all("\n" in one["error"] for one in summary["failures"] if one["case"] != "other")
    shown = probdice("show", out, "case3")
    assert summary["failures"][3]["error"].splitlines()[-1] in shown.stdout
    assert len(str(Evaluation.load(out)).splitlines()) == 8


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--pattern", "{case}_seg.npy"], 1, "no file matches '{case}_seg.npy', found for example"),
        (["--pattern", "foo:{case}.npy"], 2, "expected one of reference, prediction, mask, image,"),
        (["--background", "reference:0"], 2, "or one LABEL for both, found only reference:0"),
    ],
)
def test_an_error_explains_a_wrong_option(
    folders: Path, tmp_path: Path, words: list[str], code: int, message: str
) -> None:
    sides = folders / "truth", folders / "good"
    done = probdice("evaluate", *sides, "-o", tmp_path / "out", *words)
    assert done.returncode == code
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "subfolders" not in done.stderr and "If the names differ" not in done.stderr


def test_consensus_requires_raters(folders: Path, tmp_path: Path) -> None:
    words = "evaluate", "consensus", folders / "good", "-o", tmp_path / "out"
    done = probdice(*words, folder=tmp_path)
    assert done.returncode == 2
    assert "--rater NAME=DIR for every rater" in done.stderr


@pytest.mark.parametrize("command", ["demo", "evaluate"])
def test_an_output_folder_must_not_be_a_file(folders: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "out").touch()
    sides = (folders / "truth", folders / "good") if command == "evaluate" else ()
    done = probdice(command, *sides, "-o", tmp_path / "out")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {tmp_path / 'out'}: is a file")


def test_an_unknown_measure_lists_every_measure_once(folders: Path, tmp_path: Path) -> None:
    sides = folders / "truth", folders / "good"
    words = "--background", "1", "--rank-by", "dicee"
    done = probdice("evaluate", *sides, "-o", tmp_path / "out", *words)
    assert done.stderr.count(" foreground_dice,") == 1
    assert done.stderr.endswith("found 'dicee'\n")


def test_a_note_reports_a_background_that_no_case_has(tmp_path: Path) -> None:
    folders = save_folders(
        tmp_path, truth=[REFERENCE, REFERENCE // 2 * 9], net=[REFERENCE, REFERENCE]
    )
    words = "evaluate", *folders, "-o", tmp_path / "out", "--background"
    note = "note: --background 7: no case has this background, so every region is foreground.\n"
    assert note in probdice(*words, "7").stdout
    assert note in probdice("summarise", tmp_path / "out").stdout
    for background in ("2", "9", "none"):  # the first case has 2, and the second one has 9
        assert "no case has this background" not in probdice(*words, background).stdout


def test_a_note_names_scans_that_were_read_as_label_maps(tmp_path: Path) -> None:
    labels = np.arange(40 * 40).reshape(40, 40) // 400
    scan = np.random.default_rng(0).integers(0, 1000, (40, 40))
    folders = save_folders(tmp_path, truth=[labels, scan], net=[scan, labels], seg=[labels] * 2)
    done = probdice("evaluate", *folders, "-o", tmp_path / "out")
    assert (
        "note: 2 files look like scans or photographs, not label maps (case0 of net, case1 of the "
        "reference). Use segmentations instead.\n"
    ) in done.stdout


def test_a_note_reports_ignored_labels_that_occur_in_no_case(tmp_path: Path) -> None:
    folders = save_folders(
        tmp_path, truth=[REFERENCE, REFERENCE // 2 * 9], net=[REFERENCE, REFERENCE]
    )
    words = "evaluate", *folders, "--ignore", "7", "--ignore", "9", "-o", tmp_path / "out"
    sentence = "The ignored label 7 does not occur in the reference of any case."
    note = f"note: {sentence}\n"
    done = probdice(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert note in done.stdout and "label 9" not in done.stdout
    assert note in probdice(*words).stdout
    assert note in probdice("summarise", tmp_path / "out").stdout
    assert sentence in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "to be ignored" not in probdice(*words[:4], *words[-3:], "-o", tmp_path / "b").stdout


def test_scores_below_1_are_never_shown_as_1(tmp_path: Path) -> None:
    truth = np.zeros((300, 300), int)
    truth[:150] = 1
    almost = truth.copy()
    almost[0, 0] = 0
    assert compare(truth, almost).score == 1 - 1 / 90_000
    folders = save_folders(tmp_path, truth=[truth] * 6, net=[almost] * 6, same=[truth] * 6)
    out = tmp_path / "out"
    done = probdice("evaluate", *folders, "-o", out, "--reports", "none")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line for line in done.stdout.splitlines() if "net  " in line]
    assert len(rows) == 4 and "0.9999  0.9999 to 0.9999*" in rows[0]
    assert all("1.0000" not in row for row in rows)
    assert "net − same 6 -0.0000 -0.0000 to -0.0000*" in " ".join(done.stdout.split())
    page = (out / "report.html").read_text(encoding="utf-8")
    data = json.loads(page.split('id="records">')[1].split("</script>")[0])
    assert {tuple(record[2:-1]) for record in data["records"] if record[1] == 0} == {(0.9999,) * 7}
    assert "mean score 0.9999 over 6, 95 % CI 0.9999 to 0.9999" in str(Evaluation.load(out))
    table = page.split("<table")[1].split("</table>")[0]
    assert ">0.9999<" in table and ">0.9999 to 0.9999<" in table and ">1.0000<" in table


def test_notes_and_errors_name_options_for_command_or_python(tmp_path: Path) -> None:
    thirds = np.full((3, 8), 0.5)
    truth, net = save_folders(tmp_path, truth=[REFERENCE] * 2, net=[SPLIT, thirds])
    done = probdice("evaluate", truth, net, "-o", tmp_path / "command")
    assert done.returncode == 1
    evaluate(truth, net, out=tmp_path / "python").report()
    wordings = {"command": ("--merge prediction", "--sums"), "python": ('merge="pred', "sums=")}
    for folder, (note, remedy) in wordings.items():
        table = (tmp_path / folder / "cases.csv").read_text(encoding="utf-8").replace('""', '"')
        summary = (tmp_path / folder / "summary.json").read_text(encoding="utf-8")
        page = (tmp_path / folder / "report.html").read_text(encoding="utf-8")
        (case_page,) = (tmp_path / folder / "report_cases").iterdir()
        assert note in table and remedy in table
        assert remedy in summary and remedy in page
        shown = re.sub("</?span[^>]*>", "", case_page.read_text(encoding="utf-8"))
        assert note in html.unescape(shown)
        loaded = Evaluation.load(tmp_path / folder)
        assert loaded.words == folder
        before = (tmp_path / folder / "cases.csv").read_bytes()
        loaded.write(tmp_path / folder)
        assert (tmp_path / folder / "cases.csv").read_bytes() == before
    assert "sums=" not in done.stdout + done.stderr
    shown = probdice("show", tmp_path / "python", "case0").stdout
    assert "--merge prediction" in shown
    failed = probdice("show", tmp_path / "python", "case1").stdout
    assert "--sums" in failed and "sums=" not in failed


def test_match_selects_the_matching_rule(folders: Path, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier.json"
    earlier.write_text(compare(REFERENCE, SPLIT, merge="both").to_json())
    rules = {
        "paper": "matched by the paper's rule",
        "5=1,7=2": "matched by given pairs of labels",
        str(earlier): "matched as in an earlier comparison",
    }
    scores = {"paper": 0.625, "5=1,7=2": 0.25, str(earlier): 0.875}
    for number, (rule, sentence) in enumerate(rules.items()):
        out = tmp_path / str(number)
        words = "evaluate", folders / "truth", folders / "poor", "-o", out, "--reports", "none"
        done = probdice(*words, "--match", rule)
        assert (done.returncode, done.stderr) == (0, "")
        assert sentence in done.stdout
        assert Evaluation.load(out).values()["poor"].tolist() == [scores[rule]] * 7
    explained = probdice("summarise", tmp_path / "0", "--measure", "explained_reference")
    assert "reference explained" in explained.stdout and "0.6667" in explained.stdout


def test_correspondence_set_matches_once_for_all_cases(tmp_path: Path) -> None:
    for name in ("truth", "mine"):
        (tmp_path / name).mkdir()
    for case, labels in (("a", SPLIT), ("b", SPLIT), ("c", SPLIT[::-1].copy())):
        np.save(tmp_path / "truth" / case, REFERENCE)
        np.save(tmp_path / "mine" / case, labels)
    out = tmp_path / "out"
    words = "evaluate", tmp_path / "truth", tmp_path / "mine", "-o", out, "--reports", "worst:1"
    done = probdice(*words, "--correspondence", "set")
    assert (done.returncode, done.stderr) == (0, "")
    assert "one correspondence for all cases" in done.stdout
    assert Evaluation.load(out).values()["mine"].tolist() == [0.625, 0.625, 0.125]
    assert "one for all cases of a method" in (out / "report.html").read_text(encoding="utf-8")
    assert len(linked_pages(out / "report.html")) == 1  # the page shows the same correspondence


def test_missing_cases_are_listed(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    np.save(tmp_path / "few" / "case0", REFERENCE)
    done = probdice("evaluate", folders / "truth", tmp_path / "few", "-o", tmp_path / "out")
    assert done.returncode == 0
    assert "missing: few: no prediction for" in done.stdout
    assert "no confidence interval: 1 case, fewer than 6" in done.stdout


def test_pattern_can_be_set_per_side_and_method(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    for k in range(7):
        np.savez(tmp_path / "net" / f"case{k}_out.npz", labels=REFERENCE, other=SPLIT)
    done = probdice(
        "evaluate", folders / "truth", f"a={tmp_path / 'net'}", f"b={tmp_path / 'net'}",
        "-o", tmp_path / "out", "-q",
        "--pattern", "prediction:{case}_out.npz:labels", "--pattern", "b:{case}_out.npz:other",
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    means = {row["method"]: row["mean"] for row in summary["measures"]["score"]["methods"]}
    assert means == {"a": 1.0, "b": 0.625}


def test_equal_subjects_of_two_sites_need_the_path_in_the_pattern(tmp_path: Path) -> None:
    for side in ("truth", "net"):
        for site in ("site1", "site2"):
            (tmp_path / side / site).mkdir(parents=True)
            np.save(tmp_path / side / site / "p1", REFERENCE if side == "truth" else SPLIT)
    words = "evaluate", tmp_path / "truth", tmp_path / "net", "-o", tmp_path / "out"
    done = probdice(*words, "--pattern", "**/{case}.npy")
    assert done.returncode == 1
    assert f"{tmp_path}/truth/site1/p1.npy and {tmp_path}/truth/site2/p1.npy" in done.stderr
    assert "{case:path}" in done.stderr
    assert probdice(*words, "--pattern", "{case:path}.npy").returncode == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["jobs"] == [["site1/p1", "net"], ["site2/p1", "net"]]
    assert len(list((tmp_path / "out" / "report_cases").iterdir())) == 2


def test_several_spm_tissue_maps_are_one_case(tmp_path: Path) -> None:
    for side in ("truth", "net"):
        (tmp_path / side).mkdir()
    np.save(tmp_path / "truth" / "sub-01", np.array([0, 1, 2, 2]))
    for k in (1, 2, 3):
        np.save(tmp_path / "net" / f"c{k}sub-01_T1w", (np.array([1, 2, 3, 3]) == k) * 1.0)
    done = probdice(
        "evaluate", tmp_path / "truth", tmp_path / "net", "-o", tmp_path / "out",
        "--pattern", "prediction:c*{case}_T1w.npy",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["measures"]["score"]["methods"][0]["worst"] == [["sub-01", 1.0]]


def test_an_invalid_pattern_is_rejected(folders: Path, tmp_path: Path) -> None:
    for pattern in ("{case}*.npy", "*{case}.npy", "{case}{case}.npy", "/x/{case}.npy"):
        done = probdice(
            "evaluate", folders / "truth", folders / "good", "-o", tmp_path, "--pattern", pattern
        )
        assert done.returncode == 1
        assert done.stderr.startswith(f"error: pattern {pattern!r} ")


def test_a_usage_error_exits_with_2(folders: Path, tmp_path: Path) -> None:
    truth, good = folders / "truth", folders / "good"
    for words in (
        (truth, good),
        (truth, good, good, "-o", tmp_path),
        (truth, good, "-o", tmp_path, "--merge", "both", "--match", "labels"),
        (truth, good, "-o", tmp_path, "--match", "1=2=3,"),
        (truth, good, "-o", tmp_path, "--floor", "0.1"),
        (truth, good, "-o", tmp_path, "--ignore-geometry", "--geometry-tolerance", "0.1"),
        (truth, good, "-o", tmp_path, "--reports", "some"),
        (truth, good, "-o", tmp_path, "--reports", "worst:-1"),
        (truth, good, "-o", tmp_path, "--scale", "100", "--scale", "prediction:255"),
    ):
        assert probdice("evaluate", *words).returncode == 2
    assert not list(tmp_path.iterdir())
    assert probdice("summarise", tmp_path, "--reports", "worst:").returncode == 2


def test_a_folder_without_results_is_rejected(tmp_path: Path) -> None:
    done = probdice("summarise", tmp_path)
    assert done.returncode == 1
    assert "expected a results folder written by evaluate" in done.stderr


def test_indices_and_background_add_columns(folders: Path, tmp_path: Path) -> None:
    words = (folders / "truth", folders / "good", "-o", tmp_path, "--reports", "none")
    done = probdice("evaluate", *words, "--indices", "--background", "none")
    assert done.returncode == 0, done.stderr
    header = (tmp_path / "cases.csv").read_text().splitlines()[0].split(",")
    assert {"adjusted_rand", "panoptic_quality", "mean_foreground_dice"} <= set(header)
    assert len(header) == len(set(header))


def test_a_correct_network_ranks_before_a_shifted_label_map(tmp_path: Path) -> None:
    """The network has classes 0 to 3; no reference has class 3."""
    random = np.random.default_rng(0)
    for name in ("truth", "network", "shifted"):
        (tmp_path / name).mkdir()
    for k in range(6):
        labels = np.repeat(random.permutation([0, 1, 2]), [20 + k, 10, 12]).astype(np.uint8)
        softmax = np.full((4, labels.size), 0.01)
        softmax[labels, np.arange(labels.size)] = 0.97
        np.save(tmp_path / "truth" / f"case{k}", labels)
        np.save(tmp_path / "network" / f"case{k}", softmax)
        np.save(tmp_path / "shifted" / f"case{k}", np.roll(labels, 2))
    out = tmp_path / "out"
    done = probdice(
        "evaluate", tmp_path / "truth", tmp_path / "network", tmp_path / "shifted",
        "-o", out, "--background", "0", "--match", "labels",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    with (out / "cases.csv").open(newline="") as file:
        rows = {(row["case"], row["method"]): row for row in csv.DictReader(file)}
    for k in range(6):
        truth = np.load(tmp_path / "truth" / f"case{k}.npy")
        for method in ("network", "shifted"):
            dice = [
                dice_by_hand(truth, np.load(tmp_path / method / f"case{k}.npy"), label)
                for label in (0, 1, 2)
            ]
            row = rows[f"case{k}", method]
            assert float(row["mean_dice"]) == pytest.approx(sum(dice) / 3)
            assert float(row["lowest_dice"]) == pytest.approx(min(dice))
            assert float(row["foreground_dice"]) == pytest.approx(sum(dice[1:]) / 2)
            assert (row["unmatched_prediction"], row["prediction_regions"]) == ("0", "3")
            assert (row["false_positives"], row["true_positives"]) == ("0", "2")
    with (out / "ranking.csv").open(newline="") as file:
        rows_by_place = [row for row in csv.DictReader(file) if row["measure"] == "foreground_dice"]
    ranks = {row["method"]: row for row in rows_by_place}
    assert float(ranks["network"]["mean"]) > float(ranks["shifted"]["mean"])
    assert (ranks["network"]["place"], ranks["shifted"]["place"]) == ("1", "2")
    with (out / "regions.csv").open(newline="") as file:
        faint = [row["faint"] for row in csv.DictReader(file) if row["method"] == "network"]
    assert faint == ["False", "False", "False", "True"] * 6
    # The terminal and the table show the same lowest Dice.
    shown = probdice("show", out, "case0", "--method", "network").stdout
    lowest = float(rows["case0", "network"]["lowest_dice"])
    assert re.search(rf"lowest Dice +{lowest:.4f}", shown)


def dice_by_hand(reference, prediction, label) -> float:
    p = reference == label
    q = prediction[label] if prediction.ndim == 2 else prediction == label
    return 2 * np.minimum(p, q).sum() / (p.sum() + q.sum())


def test_only_the_lowest_agreement_of_many_measures_is_printed(folders: Path) -> None:
    measures = ("score", "mean_dice", "lowest_dice", "explained_reference")
    options = [f"--rank-by={name}" for name in measures]
    methods = folders / "good", folders / "poor"
    out = folders / "several measures"
    done = probdice("evaluate", folders / "truth", *methods, *options, "-o", out)
    (line,) = (line for line in done.stdout.splitlines() if "rankings by measure" in line)
    # "poor" explains 2/3 of every reference, "good" explains less in four of seven cases. The joint
    # ranking (all) and the other three measures prefer "good", so τ of two methods is 1 or −1.
    assert line == (
        "Kendall's τ between rankings by measure: lowest of 10 pairs all and explained_reference "
        "-1.00 (summary.json lists all)"
    )
