"""One execution: write a mutant, use it, and classify the outcome.

This module detects four kinds of faults. A *traceback* is an exception other than `ProbdiceError`,
or a message that has several lines or does not start with the folder of the file. An *acceptance*
is a result that differs from the results of the valid files although checksums cover the values.
*Memory* and *time* are uses beyond the limits. The monitoring process detects crashes and hangs.
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

ALLOWED = 64 << 20  # bytes that reading may use in addition to the memory of the idle process
MULTIPLE = 3  # and this multiple of the size of the values
SECONDS = 10  # of processor time
SOURCE = Path(probdice.__file__).parent

Kind = Literal["traceback", "acceptance", "memory", "time", "crash", "hang"]


@dataclass(frozen=True)
class Fault:
    """A fault. `place` is the same for all mutants with the same fault."""

    kind: Kind
    place: str
    detail: str


@dataclass(frozen=True)
class Execution:
    """The outcome of a mutant: whether it was accepted, its memory use, and its faults."""

    accepted: bool
    memory: int
    faults: tuple[Fault, ...]


class _TooLong(BaseException):
    """Signals that the time limit is reached, which readers must not report as corruption."""


def executed(
    target: Target, seed: Seed, content: bytes, folder: Path, valid_results: Sequence[Any] = ()
) -> Execution:
    """Use a mutant. `valid_results` contains the results of all valid files of the target."""
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
            warnings.simplefilter("error", RuntimeWarning)  # NumPy warnings about unchecked numbers
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
    wrong = seed.summed and valid_results and accepted and result not in valid_results
    if wrong and not seed.right(content):
        faults.append(Fault("acceptance", f"{target.name} {seed.path}", ""))
    return Execution(accepted, memory, tuple(faults))


def _size(result: Any) -> int:
    """Return the memory of the values of an image."""
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
    """Return the innermost line of a traceback that is in probdice."""
    frames = traceback.extract_tb(trace)
    ours = [frame for frame in frames if str(SOURCE) in frame.filename] or list(frames)
    if not ours:
        return "nowhere"
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"


def _measured_from() -> int:
    """Reset the peak and return the current memory of the process (Linux; 0 elsewhere)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _peak() -> int:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


# Executed lines ------------------------------------------------------------------------------


@contextmanager
def traced(modules: tuple[str, ...], lines: set[tuple[str, int]]) -> Iterator[None]:
    """Record the executed lines of these modules."""
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
    """Return the lines inside functions of these modules, except functions that write files."""
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
