"""`python -m fuzz.kills`: kill `evaluate` at random, fill its disk, and change its inputs.

A small folder with raters is evaluated without disturbance, with components and boundaries. Then
runs with another output folder are disturbed, one after the other. The run or one of its
workers is killed, or the size of files is limited to a random number. For some of these runs, files
of methods, raters or the reference are deleted, truncated or changed while they are read, or a
second run with the same output folder is started. After a disturbed run, every file must be
complete. The only exceptions are the journal, which may end within a line, and partial files after
a kill. Now and then, and at the end, an undisturbed run must write the same files as before the
disturbances, byte for byte, and no process that a run started may remain.

Half of the kills wait until the run has opened its results. A kill is counted if it ended a
running process. It is also counted separately if this process or its parent had the results open.
"""

import argparse
import io
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fuzz import small_run

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["fuzz.warm"])
REFUSED = ("File too large", "system error")  # messages of a run on a full disk
REPORTED = 20  # seconds between two progress messages
FINAL = ("cases.csv", "regions.csv", "summary.json", "report.html")


class Run:
    """A run of the command, forked from a process that has imported all modules."""

    def __init__(self, folder: Path, out: str, *, several: bool, limit: int | None) -> None:
        self.output, output = FORKS.Pipe(duplex=False)
        self.process = FORKS.Process(
            target=small_run.evaluate, args=(folder, out, several, limit, output)
        )
        self.process.start()
        output.close()
        assert self.process.pid is not None
        self.pid = self.process.pid

    @property
    def code(self) -> int | None:
        """The exit code, or None while the command is running."""
        return self.process.exitcode

    def kill(self) -> None:
        """Kill the run immediately."""
        self.process.kill()
        self.process.join()

    def ended(self) -> str:
        """Wait for the end and return the output."""
        with os.fdopen(os.dup(self.output.fileno()), errors="replace") as printed:
            text = printed.read()
        self.output.close()
        self.process.join()
        return text


def files_in(out: Path) -> dict[str, bytes]:
    """Return the contents of result files by path, except the lock and files with file times."""
    return {
        str(file.relative_to(out)): file.read_bytes()
        for file in sorted(out.rglob("*"))
        if file.is_file() and file.name not in (".lock", "cases.jsonl", "consensus.json")
    }


class Disturber:
    """Disturbs runs with one output folder, and compares the files with an undisturbed run."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance = folder, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        small_run.make(folder, contained=bool(seed % 2))
        for _ in range(2):  # the first run may compile kernels
            shutil.rmtree(folder / "whole", ignore_errors=True)
            run = Run(folder, "whole", several=False, limit=None)
            self._wait_for_work(run, folder / "whole")
            begun = time.monotonic()
            output = run.ended()
            self.seconds = time.monotonic() - begun
        self.whole = files_in(folder / "whole")
        missing = [name for name in FINAL if name not in self.whole]
        if missing:
            raise SystemExit(f"the undisturbed run wrote no {', '.join(missing)}:\n{output}")
        self.sizes = [len(content) for content in self.whole.values()]

    def disturb(self, kinds: tuple[str, ...]) -> None:
        """Disturb one run."""
        kind = self.chance.choice(kinds)
        limit = None
        if kind == "full":
            largest = self.chance.choice(self.sizes)
            limit = self.chance.choice((0, largest - 1, self.chance.randrange(largest)))
        inputs = self._inputs_before() if self.chance.random() < 0.2 else None
        before = files_in(self.folder / "out")
        run = Run(self.folder, "out", several=self.chance.random() < 0.5, limit=limit)
        second = None
        if self.chance.random() < 0.1:
            self.counts["two runs at once"] += 1
            second = Run(self.folder, "out", several=False, limit=None)
        if self.chance.random() < 0.5:
            self._wait_for_work(run, self.folder / "out")
        if kind == "kill" or inputs:
            time.sleep(self.chance.uniform(0, 1) * self.seconds)
        if inputs:
            self._disturb_inputs(inputs)
        if kind == "kill":
            self._kill(run)
        output = run.ended()
        if second is not None:
            output += second.ended()
        if inputs:
            self._restore(inputs)
        if kind == "full":
            full = run.code and any(word in output for word in REFUSED)
            self.counts["full disks" if full else "writes that fitted"] += 1
        self._examine(kind, output, before)
        if self.chance.random() < 0.15:
            self.finish()

    def _wait_for_work(self, run: Run, out: Path) -> None:
        while run.code is None and not has_open(run.pid, out):
            time.sleep(0.001)

    def _kill(self, run: Run) -> None:
        """Kill a worker, the run, or both."""
        at_work = has_open(run.pid, self.folder / "out")
        workers = children(run.pid)
        if workers and self.chance.random() < 0.4:
            with suppress(ProcessLookupError):
                os.kill(self.chance.choice(workers), signal.SIGKILL)
                self._count("kills of a worker", at_work)
            if self.chance.random() < 0.5:  # the run continues without the worker
                return
            time.sleep(0.01)
        run.kill()
        if run.code == -signal.SIGKILL:
            self._count("kills of the run", at_work)
        else:
            self.counts["ended before the kill"] += 1

    def _count(self, kill: str, at_work: bool) -> None:
        self.counts[kill] += 1
        self.counts["kills at work"] += at_work

    def _inputs_before(self) -> dict[Path, tuple[bytes, os.stat_result]]:
        files = sorted(
            file
            for name in ("truth", *small_run.METHODS, *small_run.RATERS)
            for file in (self.folder / name).iterdir()
        )
        return {file: (file.read_bytes(), file.stat()) for file in self.chance.sample(files, 2)}

    def _disturb_inputs(self, inputs: dict[Path, tuple[bytes, os.stat_result]]) -> None:
        for file, (content, _) in inputs.items():
            how = self.chance.choice(("vanish", "shrink", "change"))
            self.counts["inputs disturbed"] += 1
            if how == "vanish":
                file.unlink()
            elif how == "shrink":
                os.truncate(file, self.chance.randrange(len(content)))
            else:
                place = self.chance.randrange(128, len(content))
                file.write_bytes(content[:place] + b"\xff" + content[place + 1 :])

    def _restore(self, inputs: dict[Path, tuple[bytes, os.stat_result]]) -> None:
        """Restore the inputs, with new modification times."""
        for file, (content, _) in inputs.items():
            file.write_bytes(content)

    def _examine(self, kind: str, output: str, before: dict[str, bytes]) -> None:
        """Check for tracebacks, and for incomplete files other than those that a kill may leave."""
        if "Traceback" in output:
            self.faults.append(f"{kind}: {output[-2000:]}")
        out = self.folder / "out"
        if not out.exists():
            return
        for name, content in files_in(out).items():
            if ".partial" in name and (kind == "kill" or before.get(name) == content):
                continue  # a kill may leave this file until it is written again
            # The inputs determine which cases have a page.
            known = name in self.whole or name.startswith("report_cases/")
            if not (known and (content == self.whole.get(name) or _is_complete(content))):
                self.faults.append(f"{kind}: {name} is incomplete or unexpected")

    def finish(self) -> None:
        """Complete a run and check its files."""
        run = Run(self.folder, "out", several=False, limit=None)
        output = run.ended()
        files = files_in(self.folder / "out")
        if files != self.whole:
            differing = [k for k in {*files, *self.whole} if files.get(k) != self.whole.get(k)]
            self.faults.append(f"after the complete run, {differing} differ:\n{output[-500:]}")
        if left := leftovers(self.folder):
            self.faults.append(f"processes are left: {left}")
        self.counts["runs to the end"] += 1
        if self.chance.random() < 0.6:
            shutil.rmtree(self.folder / "out")

    def go_on(self, goal: "Goal") -> None:
        """Disturb runs until the goal is reached."""
        while kinds := goal.kinds():
            self.disturb(kinds)
        self.finish()


@dataclass
class Goal:
    """The requested numbers of kills and full disks, and the time limit."""

    kills: int
    full_disks: int
    deadline: float
    disturbers: list[Disturber]

    def counts(self) -> Counter[str]:
        """Return the counts of all disturbers."""
        return sum((disturber.counts for disturber in self.disturbers), Counter())

    def kinds(self) -> tuple[str, ...]:
        """Return the remaining disturbances, weighted by their number."""
        counts = self.counts()
        kinds: tuple[str, ...] = ()
        if time.monotonic() > self.deadline:
            return kinds
        if counts["kills of the run"] + counts["kills of a worker"] < self.kills:
            kinds += ("kill",) * 4
        return kinds + ("full",) * (counts["full disks"] < self.full_disks)


def _is_complete(content: bytes) -> bool:
    """Return whether a result file, or the archive of a consensus, has a valid end."""
    if content.startswith(b"PK"):
        return zipfile.is_zipfile(io.BytesIO(content))
    return content.rstrip().endswith((b"}", b"</html>")) or content.endswith(b"\n")


def children(parent: int) -> list[int]:
    """Return the child processes of a process (Linux)."""
    started = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                status = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(status[1]) == parent and status[0] != "Z":
                started.append(int(entry.name))
    return started


def leftovers(folder: Path) -> list[str]:
    """Wait for the processes of all runs in a folder. Return the commands that remain (Linux)."""
    mark = f"{small_run.MARK}={folder}".encode()
    deadline = time.monotonic() + 60
    while True:
        left = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdecimal() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    left.append((entry / "cmdline").read_text().replace("\0", " "))
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def has_open(process: int, folder: Path) -> bool:
    """Return whether a process has a file of a folder open (Linux)."""
    with suppress(OSError):
        for entry in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                if entry.readlink().is_relative_to(folder):
                    return True
    return False


def main() -> None:
    """Disturb runs until the requested counts or the time limit are reached."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--full-disks", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="folders disturbed in parallel")
    parser.add_argument("--log", type=Path, help="file to append the counts to")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    earlier = given.log.read_text() if given.log and given.log.exists() else ""
    deadline = time.monotonic() + given.seconds

    shown = 0

    def report() -> None:
        """Print the counts and new faults, and append the counts to the log."""
        nonlocal shown
        counts, found = dict(goal.counts()), faults(goal)
        print(f"{counts}, {len(found)} faults", *found[shown:], sep="\n", flush=True)
        shown = len(found)
        if given.log:
            when = datetime.now(UTC).isoformat(timespec="seconds")
            line = {"kind": "kills", "when": when, "seed": given.seed, **counts}
            line["faults"] = shown
            given.log.write_text(f"{earlier}{json.dumps(line)}\n")

    with tempfile.TemporaryDirectory(prefix="kills-") as name, ThreadPoolExecutor() as threads:
        disturbers = [
            Disturber(Path(name) / str(k), given.seed * given.jobs + k) for k in range(given.jobs)
        ]
        goal = Goal(given.kills, given.full_disks, deadline, disturbers)
        work = [threads.submit(disturber.go_on, goal) for disturber in disturbers]
        try:
            while wait(work, timeout=REPORTED).not_done:
                report()
        except KeyboardInterrupt:
            goal.deadline = 0  # runs that have started finish first
        for future in work:
            future.result()
    report()
    sys.exit(1 if faults(goal) else 0)


def faults(goal: Goal) -> list[str]:
    """Return the faults of all disturbers."""
    return [fault for disturber in goal.disturbers for fault in disturber.faults]


if __name__ == "__main__":
    main()
