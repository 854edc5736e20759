"""One execution: a mutant is written, used and judged.

Faults are an exception that is none of ours or a message that does not name the file (traceback),
other values than those of the honest file although check sums cover them (acceptance), memory
beyond the limit (memory) and time beyond the limit (time). What ends the process, or never ends,
is seen by the process that watches it.
"""

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Literal

import probdice
from fuzz.corpus import Seed
from fuzz.targets import Target
from probdice.errors import ProbdiceError, ProbdiceWarning

__all__ = ["Execution", "Fault", "executed", "lines_of", "traced"]

ALLOWED = 64 << 20  # bytes beyond the idle process
MULTIPLE = 3  # of what the values need
SECONDS = 10  # of the processor
SOURCE = Path(probdice.__file__).parent

Kind = Literal["traceback", "acceptance", "memory", "time", "crash", "hang"]


@dataclass(frozen=True)
class Fault:
    """What went wrong: `place` is the same for all mutants that show the same fault."""

    kind: Kind
    place: str
    detail: str


@dataclass(frozen=True)
class Execution:
    """What came of a mutant: whether it was read or refused, the memory it took, and faults."""

    accepted: bool
    memory: int
    faults: tuple[Fault, ...]


class _TooLong(BaseException):
    """Time is up; no reader may take this for damage."""


def executed(
    target: Target, seed: Seed, content: bytes, folder: Path, honest: Sequence[Any] = ()
) -> Execution:
    """Use a mutant; `honest` are the results of the honest files, which parts come from."""
    file = folder / seed.file
    file.write_bytes(seed.wrap(content))
    path = str(folder / seed.path)
    faults: list[Fault] = []
    result: Any = None
    accepted = False
    start = _measured_from()
    try:
        with _limited(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)  # of NumPy, on numbers nobody checked
            result = target.use(path)
            accepted = True
    except ProbdiceError as error:
        if not str(error).startswith(str(folder)) or "\n" in str(error):
            faults.append(Fault("traceback", f"message {str(error)[:60]!r}", str(error)))
    except _TooLong:
        faults.append(Fault("time", _place_of(sys.exc_info()[2]), traceback.format_exc()))
    except (Exception, ProbdiceWarning) as error:
        place = f"{type(error).__name__} at {_place_of(error.__traceback__)}"
        faults.append(Fault("traceback", place, traceback.format_exc()))
    memory = _peak() - start
    if memory > ALLOWED + MULTIPLE * (_size(result) if accepted else 0):
        faults.append(Fault("memory", f"{target.name} {memory >> 20} MB", ""))
    wrong = seed.summed and honest and accepted and result not in honest
    if wrong and not seed.right(content):
        faults.append(Fault("acceptance", f"{target.name} {seed.path}", ""))
    return Execution(accepted, memory, tuple(faults))


def _size(result: Any) -> int:
    """What the values of an image take."""
    return len(result[1]) if isinstance(result, tuple) else 0


@contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooLong

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _place_of(trace: Any) -> str:
    """The innermost line of ours."""
    frames = traceback.extract_tb(trace)
    ours = [frame for frame in frames if str(SOURCE) in frame.filename] or list(frames)
    if not ours:
        return "nowhere"
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"


def _measured_from() -> int:
    """The memory of the process now, from which its peak is measured (Linux; 0 elsewhere)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _peak() -> int:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


# Lines that were reached -----------------------------------------------------------------------


@contextmanager
def traced(modules: tuple[str, ...], lines: set[tuple[str, int]]) -> Iterator[None]:
    """Add the lines of these modules that are run."""
    files = {str(_file(module)): module for module in modules}

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        module = files.get(frame.f_code.co_filename)
        if module is None:
            return None
        if event == "line":
            lines.add((module, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


def lines_of(modules: tuple[str, ...]) -> set[tuple[str, int]]:
    """The lines inside functions of these modules, but for those that write files."""
    lines: set[tuple[str, int]] = set()

    def collect(code: CodeType, module: str) -> None:
        if "write" in code.co_name or "save" in code.co_name:
            return
        if code.co_name != "<module>" and code.co_flags & 2:  # of a function, not of a class
            first = code.co_firstlineno
            lines.update((module, k) for *_, k in code.co_lines() if k is not None and k > first)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                collect(constant, module)

    for module in modules:
        source = _file(module)
        collect(compile(source.read_text(), str(source), "exec"), module)
    return lines


def _file(module: str) -> Path:
    return SOURCE.joinpath(*module.split(".")).with_suffix(".py")
