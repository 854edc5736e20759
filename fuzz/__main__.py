"""`python -m fuzz`: read mutants of small valid files with limits on memory and time.

Every target runs in a separate process, which is restarted after a crash or a hang. If atheris is
installed, coverage guides the mutation. Otherwise, and with `--by-number`, the seed and the number
of a mutant determine its content. Mutants that cause faults are saved in the folder of `--found`.
After a fault is fixed, add its file to fuzz/regressions, which the tests read.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fuzz.child import Counts
from fuzz.targets import TARGETS

PATIENCE = 60  # a process hangs if it uses this many seconds of processor time for one execution
START = 240  # the same limit for imports and compilation before the first execution


@dataclass
class Result:
    """The results of all mutants of one target."""

    target: str
    executions: int = 0
    accepted: int = 0
    memory: int = 0
    seconds: float = 0.0
    reached: int = 0
    lines: int = 0
    faults: list[dict[str, Any]] = field(default_factory=list)

    def row(self) -> str:
        """Return the row of the table."""
        share = 100 * self.reached / max(self.lines, 1)
        return (
            f"{self.target:12} {self.executions:>10} {self.accepted:>9} {share:>9.0f} % "
            f"{self.memory / 2**20:>8.1f} MB {self.seconds:>7.0f} s {len(self.faults):>7}"
        )


def fuzzed(target: str, count: int, seconds: float, seed: int, guided: bool, found: Path) -> Result:
    """Execute mutants of a target until the count or the time limit is reached."""
    result = Result(target)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"fuzz-{target}-", dir=_memory()) as name:
        folder = Path(name)
        counts = Counts(folder / "counts")
        rounds = 0
        while counts["executions"] < count and time.monotonic() - start < seconds:
            first = counts["executions"]
            numbers = [str(seed + rounds if guided else seed), str(first), str(count)]
            command = [sys.executable, "-m", "fuzz.child", target, name, *numbers]
            rounds += 1
            died = _watched([*command, *["--guided"] * guided], counts, start + seconds, folder)
            if died:
                _keep(folder, died)
                counts["executions"] += 1  # includes the mutant that crashed the process
            elif guided and counts["executions"] == first:
                break
        result.executions, result.accepted = counts["executions"], counts["accepted"]
        result.memory, result.seconds = counts["memory"], time.monotonic() - start
        _gather(result, folder, found)
    return result


def _memory() -> str | None:
    """Return a folder in memory if available, because mutants are written very often."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _watched(command: list[str], counts: Counts, deadline: float, folder: Path) -> str:
    """Run a process until its end or the time limit. Return its crash or hang; "" without these."""
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    last, moved, begun = counts["executions"], 0.0, False
    try:
        while process.poll() is None:
            time.sleep(0.2)
            used = _processor_seconds(process.pid)
            if counts["executions"] != last:
                last, moved, begun = counts["executions"], used, True
            if time.monotonic() > deadline:
                return ""
            if used - moved > (PATIENCE if begun else START):
                return "hang"
    finally:
        process.kill()
        process.wait()
    if process.returncode == 0:
        return ""
    if process.returncode < 0:
        return f"crash by {signal.Signals(-process.returncode).name}"
    tail = (folder / "output").read_bytes()[-2000:].decode(errors="replace")
    if not begun:
        raise SystemExit(f"{' '.join(command)} cannot start:\n{tail}")
    return f"crash with code {process.returncode}: {tail[-300:]}"


def _processor_seconds(process: int) -> float:
    """Return the processor time of a process on Linux, and the elapsed time elsewhere."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _keep(folder: Path, died: str) -> None:
    """Record the mutant at which the process ended."""
    current = folder / "current"
    file = folder / current.read_text() if current.exists() else folder / "nothing"
    content = file.read_bytes() if file.exists() else b""
    (folder / "found").mkdir(exist_ok=True)
    name = f"{time.time_ns():x}-{file.name}"
    (folder / "found" / name).write_bytes(content)
    line = {"kind": died.split()[0], "place": died, "file": name, "detail": ""}
    with (folder / "faults.jsonl").open("a") as stream:
        stream.write(json.dumps(line) + "\n")


def _gather(result: Result, folder: Path, found: Path) -> None:
    """Collect all crashes and hangs, one of the other faults per place, and the executed lines."""
    from fuzz.execution import lines_of

    if (folder / "faults.jsonl").exists():
        places = set()
        for line in (folder / "faults.jsonl").read_text().splitlines():
            fault = json.loads(line)
            if fault["kind"] in ("crash", "hang") or fault["place"] not in places:
                places.add(fault["place"])
                result.faults.append(fault)
                target = found / result.target
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy(folder / "found" / fault["file"], target)
    lines = lines_of(TARGETS[result.target].modules)
    result.lines = len(lines)
    if (folder / "lines").exists():
        reached = {(module, line) for module, line in json.loads((folder / "lines").read_text())}
        result.reached = len(reached & lines)


def main() -> None:
    """Fuzz the requested targets and print the results."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"all by default: {', '.join(TARGETS)}"
    )
    parser.add_argument("--executions", type=int, default=100_000, help="mutants per target")
    parser.add_argument("--seconds", type=float, default=1e9, help="time limit per target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--by-number", action="store_true", help="do not use coverage guidance")
    parser.add_argument("--found", type=Path, default=Path("fuzz/found"))
    parser.add_argument("--log", type=Path, help="file to append the results to, one line each")
    given = parser.parse_args()
    unknown = set(given.targets) - set(TARGETS)
    if unknown:
        parser.error(f"unknown target: {', '.join(sorted(unknown))}")
    guided = not given.by_number and find_spec("atheris") is not None
    how = "guided by coverage" if guided else "by number"
    print(f"seed {given.seed}, {how}")
    heading = ("executions", "read", "lines", "peak", "time", "faults")
    print(f"{'target':12} {{:>10}} {{:>9}} {{:>11}} {{:>11}} {{:>9}} {{:>7}}".format(*heading))
    results = []
    for target in given.targets or TARGETS:
        result = fuzzed(target, given.executions, given.seconds, given.seed, guided, given.found)
        results.append(result)
        print(result.row(), flush=True)
        for fault in result.faults:
            print(f"    {fault['kind']}: {fault['place']} ({given.found / target / fault['file']})")
        if given.log:
            when = datetime.now(UTC).isoformat(timespec="seconds")
            line = {"kind": "fuzz", "when": when, "how": how, "seed": given.seed}
            line |= result.__dict__ | {"faults": len(result.faults)}
            with given.log.open("a") as stream:
                stream.write(json.dumps(line) + "\n")
    faults = sum(len(result.faults) for result in results)
    print(f"{sum(r.executions for r in results)} executions, {faults} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
