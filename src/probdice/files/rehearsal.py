"""HDF5 files, opened first by a process that nobody would miss.

The HDF5 library follows some damaged files for ever, and may crash on others. So before this
process opens a file another one does, and looks at all that will be asked of it; where that one
does not return, or has taken far too much memory, the file is refused. It is this module run as a
script, is started with the first such file, and serves all that follow.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from probdice.errors import FormatError

__all__ = ["rehearse"]

SECONDS = 3.0  # of the processor, and more for large files
BYTES_A_SECOND = 1 << 26
ALLOWED = 1 << 25  # bytes of memory, and as many as the file has
READY, DONE, HUNGRY = "ready\n", "done\n", "hungry\n"  # what the other process says
OVERTIME = -getattr(signal, "SIGPROF", 0)  # how a process ends that has used up its time


def rehearse(path: Path) -> None:
    """Refuse a file that the HDF5 library does not survive, or come to an end with."""
    what = "crashes on it"
    with _Understudy.lock:
        for _ in range(2):  # it may have ended for reasons of its own
            understudy = _Understudy.at_work()
            if understudy is None:
                return
            answer = understudy.answer_to(path)
            if answer == DONE:
                return
            code = understudy.end()
            if answer == HUNGRY:
                what = "takes far more memory for it than it has bytes"
                break
            if code == OVERTIME:
                what = "does not come to an end with it"
                break
    raise FormatError(f"is damaged: the HDF5 library {what}; copy or write it again")


class _Understudy:
    """The other process."""

    lock = threading.Lock()
    present: "_Understudy | None" = None

    def __init__(self) -> None:
        paths = os.pathsep.join(str(path) for path in sys.path if path)
        self.process = subprocess.Popen(
            [sys.executable or "python", "-P", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"PYTHONPATH": paths},
        )

    @classmethod
    def at_work(cls) -> "_Understudy | None":
        """The one there is, or a new one; None where the system lets none be started."""
        if cls.present is None:
            try:
                cls.present = cls()
            except OSError:
                return None
            if cls.present._answer() != READY:
                cls.present.end()
        return cls.present

    def answer_to(self, path: Path) -> str:
        """What it says after looking at the file; nothing where it did not survive that."""
        assert self.process.stdin is not None
        try:
            print(json.dumps(os.path.abspath(path)), file=self.process.stdin, flush=True)
            return self._answer()
        except BrokenPipeError:
            return ""
        except BaseException:  # an interrupt: what it answers later is nobody's answer
            self.process.kill()
            self.end()
            raise

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def end(self) -> int:
        """Let it go; how it ended."""
        _Understudy.present = None
        assert self.process.stdin is not None and self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()  # at which it ends, unless it has
        self.process.stdout.close()
        return self.process.wait()

    @classmethod
    def left_to_parent(cls) -> None:
        """After a fork: it goes on to serve the other side."""
        if cls.present is not None:
            cls.present.process.returncode = 0
        cls.lock, cls.present = threading.Lock(), None


@atexit.register
def _end() -> None:
    if _Understudy.present is not None:
        _Understudy.present.end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Understudy.left_to_parent)


# -- in the other process --------------------------------------------------------------------------


def main() -> None:
    """Look through every file whose path comes in, and say so."""
    import h5py

    if OVERTIME:
        signal.signal(-OVERTIME, signal.SIG_DFL)  # whoever started this may have ignored it
    print(READY, end="", flush=True)
    for line in sys.stdin:
        path = json.loads(line)
        size, before = 0, _peak()
        with suppress(Exception):  # an error is met again, and told, where the file is read
            size = os.path.getsize(path)
            _limit(SECONDS + size / BYTES_A_SECOND)
            _look_through(h5py, path)
        _limit(0)
        print(HUNGRY if _peak() - before > ALLOWED + size else DONE, end="", flush=True)


def _limit(seconds: float) -> None:
    """End this process after so much time of the processor, whatever it does (not on Windows)."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _peak() -> int:
    """The most memory that this process has had (Linux; 0 elsewhere).

    What the system tells of a process otherwise may be that of the one that started it.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _look_through(h5py: Any, path: str) -> None:
    def look(name: str, item: Any) -> None:
        for attribute in item.attrs:
            with suppress(Exception):
                item.attrs[attribute]
        if isinstance(item, h5py.Dataset):
            with suppress(Exception):
                item.id.get_storage_size(), item.dtype, item.chunks, item.external, item.is_virtual

    with h5py.File(path, "r") as file:
        file.visititems(look)


if __name__ == "__main__":
    main()
