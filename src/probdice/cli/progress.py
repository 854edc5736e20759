"""A bar on the terminal for work that takes longer than a second."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import Any

from probdice.engine.threads import watcher

__all__ = ["COMPILING", "Progress", "progress"]

COMPILING = "compiling kernels, once on this machine (probdice warm-up does it beforehand)"

PATIENCE = 1.0  # seconds without a sign


class Progress:
    """What is being done, and how much of it is; shown once that has taken a while."""

    def __init__(self) -> None:
        self._doing: dict[str, Any] = {"description": "", "completed": 0, "total": None}
        self._before = ""
        self._lock = Lock()
        self._bar: Any = None
        self._over = False

    def say(self, doing: str) -> None:
        """Begin another part of the work, of unknown length."""
        self._update(description=doing, completed=0, total=None)

    def compiling(self) -> None:
        """A kernel is being compiled; until that is over, this is what takes the time."""
        self._before = self._doing["description"]
        self._update(description=COMPILING)

    def compiled(self) -> None:
        """It is compiled, and the work goes on."""
        if self._doing["description"] == COMPILING:
            self._update(description=self._before)

    def advance(self, done: int, total: int) -> None:
        """So much of the present pass over the pixels is done."""
        self._update(completed=done, total=total)

    def start(self) -> None:
        """Show the bar."""
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        from probdice.cli.console import console

        columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
        bar = Progress(*columns, console=console(stderr=True), transient=True)
        with self._lock:
            if self._over:
                return
            bar.add_task(**self._doing)
            bar.start()
            self._bar = bar

    def stop(self) -> None:
        """Take the bar away."""
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()

    def _update(self, **changed: Any) -> None:
        with self._lock:
            self._doing |= changed
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], **self._doing)


@contextmanager
def progress(*, shown: bool) -> Iterator[Progress]:
    """Watch the passes over the pixels that are made in this block."""
    display = Progress()
    if not (shown and sys.stderr.isatty()):
        yield display
        return
    timer = Timer(PATIENCE, display.start)
    timer.daemon = True
    timer.start()
    token = watcher.set(display.advance)
    try:
        yield display
    finally:
        watcher.reset(token)
        timer.cancel()
        display.stop()
