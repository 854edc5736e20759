"""The journal of a run: one line of JSON per finished case.

A line is written completely before its case counts as finished, so no finished case is lost when
the process is killed. Lines are flushed to disk at most once per second, so a power failure can
lose the cases that finished after the last flush. If the process is killed or the disk is full, the
last line may be incomplete; it is removed when the journal is next opened. Invalid lines and lines
in another format version are ignored, and their cases are computed again.
"""

import json
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeGuard

from probdice.data.machine import BINARY, flush_folder, lock
from probdice.errors import EnvironmentWarning, InputError
from probdice.evaluation.pairing import ROLES
from probdice.files.atomic_files import replacing

__all__ = ["FORMAT_VERSION", "Journal", "locked", "read_lines", "replace_file"]

FORMAT_VERSION = 3  # version of a line
NAME = "cases.jsonl"
FLUSHED = 1.0  # minimum number of seconds between two flushes to the disk
TYPES: dict[str, type | tuple[type, ...]] = {
    "case": str,
    "method": str,
    "options": dict,
    "version": str,
    "inputs": dict,
    "files": dict,
    "seconds": (int, float),
}


class Journal:
    """The file cases.jsonl of a folder, open for appending."""

    def __init__(self, out: Path) -> None:
        self.path = out / NAME
        with _os_errors_with_path(self.path):
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | BINARY, 0o666)
            os.ftruncate(self._file, _complete_length(self.path))
            flush_folder(out)
        self._flushed = time.monotonic()

    def append(self, line: str) -> None:
        """Write one complete line, and flush to disk at most once per `FLUSHED` seconds."""
        remaining_bytes = memoryview(f"{line}\n".encode())
        with _os_errors_with_path(self.path):
            while remaining_bytes:
                remaining_bytes = remaining_bytes[os.write(self._file, remaining_bytes) :]
            if time.monotonic() - self._flushed >= FLUSHED:
                os.fsync(self._file)
                self._flushed = time.monotonic()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            with _os_errors_with_path(self.path):
                os.fsync(self._file)
        except InputError:
            if error is None:  # otherwise the first error is raised
                raise
        finally:
            os.close(self._file)


def read_lines(out: Path) -> Iterator[dict[str, Any]]:
    """Yield the content of the complete and valid lines of the journal."""
    path = out / NAME
    if not path.exists():
        return
    with _os_errors_with_path(path, "read"), path.open("rb") as stream:
        for raw in stream:
            try:
                content = json.loads(raw) if raw.endswith(b"\n") else None
            except ValueError:
                content = None
            if _is_valid(content):
                yield content


def _is_valid(content: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a line has all required fields with the right types."""
    return (
        isinstance(content, dict)
        and content.get("format") == FORMAT_VERSION
        and all(isinstance(content.get(key), kind) for key, kind in TYPES.items())
        and isinstance(content.get("comparison", content.get("failure")), dict)
        and _lists_by_role(content["inputs"])
        and _lists_by_role(content["files"])
    )


def _lists_by_role(value: dict[str, Any]) -> bool:
    return all(isinstance(value.get(role), list) for role in ROLES)


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Lock the folder, so that no other run writes into the folder."""
    path = out / ".lock"
    with _os_errors_with_path(path):
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            lock(file)
        except BlockingIOError:
            raise InputError(
                f"{out}: another run is writing into this folder; wait until that run ends, or use "
                f"another folder"
            ) from None
        except OSError as error:
            warnings.warn(
                f"{out}: cannot lock this folder ({error.strerror}), so a second run would not be "
                f"detected. Start only one run at a time in this folder.",
                EnvironmentWarning,
                stacklevel=3,
            )
        yield
    finally:
        os.close(file)  # releases the lock; the end of the process also releases it


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file atomically."""
    with _os_errors_with_path(path):
        with replacing(path, has_lock=True) as partial:
            partial.write_bytes(content)
        flush_folder(path.parent)


def _complete_length(path: Path) -> int:
    """Return the length of the journal up to the end of its last complete line."""
    end = path.stat().st_size
    with path.open("rb") as stream:
        while end:
            start = max(0, end - 2**16)
            stream.seek(start)
            newline = stream.read(end - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
    return 0


@contextmanager
def _os_errors_with_path(path: Path, action: Literal["write", "read"] = "write") -> Iterator[None]:
    """Convert operating-system errors to `InputError` with the path of the file."""
    try:
        yield
    except InputError as error:  # the path is not a regular file
        raise error.prefixed(f"{path}: ") from None
    except OSError as error:
        hint = ""
        if action == "write":
            hint = ". Finished cases are stored. Correct the problem, then run again to continue."
        raise InputError(f"{path}: cannot {action} this file: {error.strerror}{hint}") from error
