"""Distribution of cases over processes and threads, crashes and killed runs."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probdice.errors import ProbdiceError
from probdice.evaluation import evaluate, running
from probdice.evaluation.case_scoring import Request
from probdice.evaluation.pairing import ROLES, Job
from probdice.options import CompareOptions

pytestmark = pytest.mark.usefixtures("worker_processes")

CASES = 24
FINAL = (
    *("cases.csv", "regions.csv", "files.csv", "ranking.csv", "table.md", "table.tex", "how.md"),
    "summary.json",
)
RUN = """
import sys
sys.path = eval(sys.argv[1])
from probdice.evaluation import evaluate, running
running.MIN_PARALLEL_BYTES = int(sys.argv[2])
folder = sys.argv[3]
def report(progress):
    print(progress.done, flush=True)
result = evaluate(f"{folder}/truth", {"a": f"{folder}/a", "b": f"{folder}/b"},
                  out=f"{folder}/out", workers=2, progress=report)
result.report(reports="worst:3", progress=lambda done, *_: print(1000 + done, flush=True))
print("end", flush=True)
"""


def make(folder: Path, cases: int = CASES) -> Path:
    generator = np.random.default_rng(0)
    for name in ("truth", "a", "b"):
        (folder / name).mkdir(parents=True)
        for k in range(cases):
            p = generator.dirichlet([1, 2, 3], size=500).T
            np.save(folder / name / f"case{k}", p)
    np.save(folder / "b" / "case3", np.full((3, 500), np.nan))
    return folder


def score(folder: Path, out: str = "out", **options: Any) -> Any:
    methods = {name: folder / name for name in ("a", "b")}
    return evaluate(folder / "truth", methods, out=folder / out, **options)


def final(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in FINAL}


def everything(out: Path) -> dict[str, bytes]:
    """The final files and all files in the folder of case pages."""
    pages = [out / "report.html", *(out / "report_cases").iterdir()]
    return final(out) | {str(page.relative_to(out)): page.read_bytes() for page in pages}


# Distribution -----------------------------------------------------------------------------------


class Recorder:
    """A fake worker process that counts concurrent threads."""

    lock = threading.Lock()
    now = most = 0
    taken: list[int]

    def __init__(self) -> None:
        self.alive = True

    def answer(self, request: Request, threads: int, compiling: Any) -> str:
        cls = type(self)
        with self.lock:
            cls.now += threads
            cls.most = max(cls.most, cls.now)
            cls.taken.append(threads)
        time.sleep(0.002)
        with self.lock:
            cls.now -= threads
        return request.job.case

    def stop(self) -> None:
        self.alive = False


def request_of(case: str) -> Request:
    inputs: dict[str, list[list[object]]] = {role: [] for role in ROLES}
    files: dict[str, list[str]] = {role: [] for role in ROLES}
    return Request(Job(case, "a", dict.fromkeys(ROLES, ())), CompareOptions.of(), inputs, files, "")


def shared_out(
    monkeypatch: pytest.MonkeyPatch, gigabytes: list[float], workers: int
) -> tuple[list[str], list[int], int]:
    """The cases with their threads, and the largest number of concurrent threads."""
    monkeypatch.setattr(running, "_Worker", Recorder)
    monkeypatch.setattr(running, "memory", lambda: 16 * 2**30)
    sizes = dict(zip([f"c{k}" for k in range(len(gigabytes))], gigabytes, strict=True))
    monkeypatch.setattr(running, "bytes_needed", lambda job: int(sizes[job.case] * 2**30))
    Recorder.now = Recorder.most = 0
    Recorder.taken = []
    requests = [request_of(case) for case in sizes]
    with running.WorkerPool() as pool:
        cases = list(running.run(requests, workers, pool))
    return cases, Recorder.taken, Recorder.most


def test_small_cases_run_in_parallel_on_one_core_each(monkeypatch: pytest.MonkeyPatch) -> None:
    cases, taken, most = shared_out(monkeypatch, [0.5] * 40, workers=4)
    assert sorted(cases) == sorted(f"c{k}" for k in range(40))
    assert 1 < most <= 4
    assert taken[:30] == [1] * 30


def test_large_cases_run_one_at_a_time_on_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    # Half of 16 GB among 4 cores: 2 GB each.
    _, taken, most = shared_out(monkeypatch, [7.0, 30.0, 6.5], workers=4)
    assert taken == [4, 4, 4]
    assert most == 4


def test_a_case_takes_the_slots_that_its_memory_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    _, taken, most = shared_out(monkeypatch, [3.0] * 10, workers=4)
    assert taken[:9] == [2] * 9  # the last case may also take the slots of finished cases
    assert most <= 4


def test_few_cases_share_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    _, taken, most = shared_out(monkeypatch, [0.5] * 3, workers=8)
    assert sorted(taken) == [2, 3, 3]
    assert most <= 8


def test_one_core_runs_one_case_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    _, taken, most = shared_out(monkeypatch, [0.5, 9.0, 0.5], workers=1)
    assert (taken, most) == ([1, 1, 1], 1)


def test_the_next_case_starts_before_the_last_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_Worker", Recorder)
    Recorder.now, Recorder.taken = 0, []
    requests = [request_of(case) for case in ("c0", "c1", "c2")]
    with running.WorkerPool() as pool:
        lines = running.run(requests, 1, pool)
        assert next(lines) == "c0"
        end = time.monotonic() + 60
        while len(Recorder.taken) < 2 and time.monotonic() < end:
            time.sleep(0.001)
        assert len(Recorder.taken) == 2
        assert list(lines) == ["c1", "c2"]


def test_runs_share_the_processes_of_a_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Counted(Recorder):
        def __init__(self) -> None:
            super().__init__()
            started.append(self)

    monkeypatch.setattr(running, "_Worker", Counted)
    Recorder.taken = []
    with running.WorkerPool() as pool:
        for _ in range(3):
            assert list(running.run([request_of("c0"), request_of("c1")], 1, pool)) == ["c0", "c1"]
        assert len(started) == 1
        started[0].alive = False  # as if it was killed between two runs
        assert list(running.run([request_of("c2")], 1, pool)) == ["c2"]
        assert [worker.alive for worker in started] == [False, True]
    assert [worker.alive for worker in started] == [False, False]


# Crashes -------------------------------------------------------------------------------------


def test_a_crashed_worker_fails_only_its_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path, 6)
    monkeypatch.setattr(running, "MIN_PARALLEL_BYTES", 0)
    answer = running._Worker.answer
    killed = []

    def killed_answer(worker: Any, request: Request, threads: int, compiling: Any) -> str:
        if request.job.case == "case1" and not killed:
            killed.append(request.job.method)
            worker.process.kill()
        return answer(worker, request, threads, compiling)

    # Wait for the start of the process, because a failed start is an error of the run.
    start = running._Worker.__init__

    def started(worker: Any) -> None:
        start(worker)
        worker.ready = worker.process.stdout.readline() == "ready\n"

    monkeypatch.setattr(running._Worker, "__init__", started)
    monkeypatch.setattr(running._Worker, "answer", killed_answer)
    result = score(folder, workers=2)
    errors = {(r.case, r.method): r.error for r in result.failures}
    assert errors.pop(("case1", killed[0])) == (
        f"the worker process was killed by signal 9 (out of memory?) while it compared "
        f"{folder}/truth/case1.npy and {folder}/{killed[0]}/case1.npy"
    )
    assert set(errors) == {("case3", "b")}
    monkeypatch.setattr(running._Worker, "answer", answer)
    again = score(folder, workers=2)
    assert [(r.case, r.method) for r in again.failures] == [("case3", "b")]
    assert final(folder / "out") == final_of_fresh_run(folder, monkeypatch)


def final_of_fresh_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    monkeypatch.undo()
    score(folder, "fresh")
    return final(folder / "fresh")


def test_a_worker_that_cannot_start_is_an_error_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path, 4)
    monkeypatch.setattr(running, "MIN_PARALLEL_BYTES", 0)
    monkeypatch.setattr(running, "START", "import sys; sys.exit('no such module')")
    with pytest.raises(
        ProbdiceError,
        match=r"cannot start the worker process: it ended with code 1: no such module",
    ):
        score(folder, workers=2)
    assert (folder / "out" / "cases.jsonl").read_bytes() == b""


def test_output_of_libraries_is_not_read_as_an_answer() -> None:
    noisy = "from probdice.evaluation import worker\n"
    noisy += "worker.score_case = lambda _, threads: print('noise') or f'{threads} answers'\n"
    script = running.START.replace("from probdice", f"{noisy}from probdice")
    with subprocess.Popen(
        [sys.executable, "-c", script, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdin.write(json.dumps([3, request_of("c").to_dict()]) + "\n")
        worker.stdin.flush()
        assert worker.stdout.readline() == "ready\n"
        assert worker.stdout.readline() == "3 answers\n"


def test_workers_exit_when_the_run_is_killed(tmp_path: Path) -> None:
    folder = make(tmp_path, 200)
    run = started(folder, tiny=0)
    assert run.stdout is not None
    for text in run.stdout:
        if int(text) >= 2:
            break
    workers = children(run.pid)
    assert workers
    run.kill()
    run.communicate()
    end = time.monotonic() + 60
    while any(alive(worker) for worker in workers) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(alive(worker) for worker in workers)


def test_an_interrupted_run_stops_its_workers_and_continues_later(tmp_path: Path) -> None:
    folder = make(tmp_path, 200)
    run = started(folder, tiny=0)
    assert run.stdout is not None
    for text in run.stdout:
        if int(text) >= 5:
            break
    workers = children(run.pid)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=240)
    assert run.returncode != 0
    assert not any(alive(worker) for worker in workers)
    kept = (folder / "out" / "cases.jsonl").read_bytes().count(b"\n")
    assert 5 <= kept < 400


def test_a_run_killed_at_random_points_ends_with_the_same_files(tmp_path: Path) -> None:
    folder = make(tmp_path)
    score(folder, "whole", workers=1).report(reports="worst:3")
    whole = everything(folder / "whole")
    pages = [name for name in whole if "report_cases" in str(name)]
    assert len(whole) == len(FINAL) + 1 + len(pages) and len(pages) == 11
    chance = random.Random(0)
    for number in range(4):  # `make kills` runs longer
        # Every third run uses several worker processes, the others one.
        run = started(folder, tiny=0 if number % 3 == 2 else 2**40)
        if killed_somewhere(run, chance):  # the run had ended
            assert everything(folder / "out") == whole
            shutil.rmtree(folder / "out")
    score(folder).report(reports="worst:3")
    assert everything(folder / "out") == whole
    left = {file.name for file in (folder / "out").iterdir() if file.suffix}
    assert left == {*FINAL, "cases.jsonl", "report.html"}


def test_a_run_killed_while_pages_are_written_ends_with_the_same_pages(tmp_path: Path) -> None:
    folder = make(tmp_path, 8)
    score(folder, "whole", workers=1).report(reports="worst:3")
    for pages in (1, 4):
        run = started(folder, tiny=2**40)
        assert run.stdout is not None
        assert any(int(text) == 1000 + pages for text in run.stdout)
        run.kill()
        run.communicate()
        assert final(folder / "out") == final(folder / "whole")
        half = folder / "out" / "report_cases" / ".0099-gone.html.partial"
        half.write_text("what a kill may leave")
    score(folder).report(reports="worst:3")
    assert everything(folder / "out") == everything(folder / "whole")


def killed_somewhere(run: "subprocess.Popen[str]", chance: random.Random) -> bool:
    """Kill a run after some cases, while it writes, or after some pages. True if it had ended."""
    assert run.stdout is not None
    last = chance.choice(
        [chance.randrange(2 * CASES), chance.randrange(12), 2 * CASES, chance.randrange(1001, 1007)]
    )
    for text in run.stdout:
        if text == "end\n" or int(text) >= last:
            break
    time.sleep(chance.uniform(0, 0.6 if last == 2 * CASES else 0.02))
    run.kill()
    rest, _ = run.communicate()
    return "end\n" in (text, rest[-4:])


def started(folder: Path, tiny: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", RUN, repr(sys.path), str(tiny), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def children(parent: int) -> list[int]:
    """The child processes of a process (Linux)."""
    started = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                status = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(status[1]) == parent:
                started.append(int(entry.name))
    return started


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z" and os.path.exists(f"/proc/{process}")
