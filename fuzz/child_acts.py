"""A reader that misbehaves in the child process, as the first line of its file requests.

The reader crashes, exits, raises an error, does not finish, allocates memory, prints, forks,
ignores signals, stops, closes the connection, or sends the rest of the file to the parent process
as its answer.
"""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from probdice.files.child_messages import ReaderResult
from probdice.files.contained_process import _Server

__all__ = ["ACTS", "act"]


def act(file: str) -> ReaderResult:
    """Act as the first line of a file requests. Return a valid answer for unknown words."""
    word, _, content = Path(file).read_bytes().partition(b"\n")
    done = ACTS.get(word.decode("latin-1"))
    if done is not None:
        done(content)
    return ReaderResult(None)


def _send(content: bytes) -> None:
    assert _Server.current is not None
    _Server.current.connection.sendall(content)
    os._exit(0)


def _spin(content: bytes) -> None:
    while True:
        pass


def _grow(content: bytes) -> None:
    """Allocate memory in small parts, and continue when no more is available."""
    parts = []
    while True:
        try:
            parts.append(bytearray(1 << 24))
        except MemoryError:
            time.sleep(0.001)


def _ignore_signals(content: bytes) -> None:
    for number in (signal.SIGTERM, signal.SIGPROF, signal.SIGALRM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(3600)


def _print(content: bytes) -> None:
    print(content)
    os.write(1, content)
    os.write(2, content)
    subprocess.run(["echo", "printed by a process"], check=True)


def _fork(content: bytes) -> None:
    if os.fork() == 0:
        time.sleep(3600)
    os.abort()


def _stop(content: bytes) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _close(content: bytes) -> None:
    assert _Server.current is not None
    _Server.current.connection.close()
    time.sleep(3600)


ACTS: dict[str, Callable[[bytes], object]] = {
    "send": _send,
    "abort": lambda _: os.abort(),
    "exit": lambda content: os._exit(len(content) % 256),
    "raise": lambda content: [][len(content)],
    "spin": _spin,
    "memory": lambda _: bytearray(1 << 36),
    "ignore": _ignore_signals,
    "print": _print,
    "fork": _fork,
    "grow": _grow,
    "crash": lambda _: ctypes.string_at(0),
    "stop": _stop,
    "close": _close,
}
