"""The process that executes mutants of one target, by number or guided by coverage.

`python -m fuzz` starts and monitors this process. If a mutant crashes the process, the mutant
remains in the folder of the process.
"""

import argparse
import json
import os
import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from mmap import mmap
from pathlib import Path
from random import Random
from struct import pack_into, unpack_from
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuzz.corpus import Seed
    from fuzz.execution import Execution, Fault

__all__ = ["Counts", "main"]

MEMORY = 6 << 30  # bytes of address space
SAMPLED = 20  # the executed lines are recorded once per this number of executions
LONGEST = 1 << 16  # largest size of a coverage-guided mutant in bytes


class Counts:
    """Counters that remain after a crash: executions, accepted files, peak memory."""

    FIELDS = ("executions", "accepted", "memory")

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(8 * len(self.FIELDS)))
        with path.open("rb+") as stream:
            self._content = mmap(stream.fileno(), 0)

    def __getitem__(self, field: str) -> int:
        return int(unpack_from("<q", self._content, 8 * self.FIELDS.index(field))[0])

    def __setitem__(self, field: str, value: int) -> None:
        pack_into("<q", self._content, 8 * self.FIELDS.index(field), value)


class Child:
    """The executions of one target in one folder."""

    def __init__(self, name: str, folder: Path) -> None:
        from fuzz.corpus import seeds_of
        from fuzz.execution import executed, traced
        from fuzz.targets import TARGETS
        from probdice.errors import ProbdiceError

        self.target, self.folder = TARGETS[name], folder
        self.counts = Counts(folder / "counts")
        self.seeds = seeds_of(name)
        self.contents = [seed.content for seed in self.seeds]
        self.valid_results: list[Any] = []
        self.reached: set[tuple[str, int]] = set()
        self.known: set[str] = set()
        self.last = -1
        self.refused = 0  # number of valid files that are rejected
        summed = any(seed.summed for seed in self.seeds)
        for number, seed in enumerate(self.seeds):  # also performs the imports
            self._put_beside(number)
            if summed:
                with suppress(ProbdiceError):
                    self.valid_results.append(self._result(number))
            with traced(self.target.modules, self.reached):
                outcome = executed(self.target, seed, seed.content, folder)
            self.refused += not outcome.accepted
            self._record_faults(seed, outcome)
        self._record_lines()

    def _result(self, number: int) -> Any:
        seed = self.seeds[number]
        (self.folder / seed.file).write_bytes(seed.wrap(seed.content))
        return self.target.use(str(self.folder / seed.path))

    def _record_lines(self) -> None:
        (self.folder / "lines").write_text(json.dumps(sorted(self.reached)))

    def _put_beside(self, number: int) -> None:
        if self.last == number:
            return
        if self.last >= 0:
            for name in (self.seeds[self.last].file, *self.seeds[self.last].beside):
                (self.folder / name).unlink(missing_ok=True)
        for name, content in self.seeds[number].beside.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(content)
        (self.folder / self.seeds[number].file).parent.mkdir(parents=True, exist_ok=True)
        self.last = number
        (self.folder / "current").write_text(self.seeds[number].file)

    def execute(self, number: int, content: bytes) -> None:
        """Execute one mutant of the seed with this number."""
        from fuzz.execution import executed, traced

        seed = self.seeds[number]
        self._put_beside(number)
        arguments = self.target, seed, content, self.folder, self.valid_results
        if self.counts["executions"] % SAMPLED:
            outcome = executed(*arguments)
        else:
            before = len(self.reached)
            with traced(self.target.modules, self.reached):
                outcome = executed(*arguments)
            if len(self.reached) > before:
                self._record_lines()
        self.counts["executions"] += 1
        self.counts["accepted"] += outcome.accepted
        self.counts["memory"] = max(self.counts["memory"], outcome.memory)
        self._record_faults(seed, outcome)

    def _record_faults(self, seed: "Seed", outcome: "Execution") -> None:
        for fault in outcome.faults:
            if fault.place not in self.known:
                self.known.add(fault.place)
                self._keep(seed.file, fault)

    def _keep(self, file: str, fault: "Fault") -> None:
        """Record a fault and save its mutant."""
        content = (self.folder / file).read_bytes()
        name = f"{sha256(content).hexdigest()[:12]}-{Path(file).name}"
        (self.folder / "found").mkdir(exist_ok=True)
        (self.folder / "found" / name).write_bytes(content)
        line = {"kind": fault.kind, "place": fault.place, "file": name, "detail": fault.detail}
        with (self.folder / "faults.jsonl").open("a") as stream:
            stream.write(json.dumps(line) + "\n")


def by_number(child: Child, seed: int, start: int, stop: int) -> None:
    """Run mutants that are determined by the seed and their number."""
    from fuzz.mutation import mutated

    parent = os.getppid()
    for number in range(start, stop):
        if os.getppid() != parent:  # the monitoring process has ended
            return
        random = Random(f"{seed} {child.target.name} {number}")
        chosen = random.randrange(len(child.seeds))
        own = child.contents[chosen]
        # If two valid files are spliced at the end of a checksum, the result may be accepted.
        others = [own] if child.seeds[chosen].summed else child.contents
        child.execute(chosen, mutated(own, others, random))


def guided(child: Child, seed: int, count: int, corpus: Path) -> None:
    """Run coverage-guided mutants; the first byte selects the seed."""
    import atheris

    corpus.mkdir(exist_ok=True)
    for number, content in enumerate(child.contents):
        (corpus / f"seed-{number}").write_bytes(bytes([number]) + content)

    child.valid_results = []  # a mutant joined from parts of several seeds may be accepted

    def once(data: bytes) -> None:
        child.execute(data[0] % len(child.seeds) if data else 0, data[1:])

    options = [f"-runs={count}", f"-seed={seed + 1}", f"-max_len={LONGEST}", "-verbosity=0"]
    options += ["-timeout=120", "-rss_limit_mb=0", f"-artifact_prefix={child.folder}/"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], once)
    atheris.Fuzz()


def uninstrumented(target: str) -> list[str]:
    """Return all modules except the readers and those of the target.

    Instrumentation takes time, and compiled code such as kernels cannot be instrumented.
    """
    from fuzz.targets import TARGETS

    package = find_spec("probdice")
    assert package is not None and package.origin is not None
    folder = Path(package.origin).parent
    names = [
        ".".join(file.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
        for file in folder.rglob("*.py")
    ]
    instrumented = {f"probdice.{module}" for module in TARGETS[target].modules}
    return [
        name for name in names if name not in instrumented and not name.startswith("probdice.files")
    ]


def main(arguments: Sequence[str]) -> None:
    """Execute the mutants of a range of numbers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("folder", type=Path)
    parser.add_argument("seed", type=int)
    parser.add_argument("start", type=int)
    parser.add_argument("stop", type=int)
    parser.add_argument("--guided", action="store_true")
    asked = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if asked.guided:
        import atheris

        with atheris.instrument_imports(include=["probdice"], exclude=uninstrumented(asked.target)):
            import probdice.cli.configuration
            import probdice.evaluation
            import probdice.files
            import probdice.paper.answers  # noqa: F401
        child = Child(asked.target, asked.folder)
        guided(child, asked.seed, asked.stop - asked.start, asked.folder / "corpus")
    else:
        by_number(Child(asked.target, asked.folder), asked.seed, asked.start, asked.stop)


if __name__ == "__main__":
    main(sys.argv[1:])
