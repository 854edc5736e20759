"""Progress bars, which are shown only if standard error is a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Timer
from typing import Any

from probdice.engine.threads import watcher

__all__ = ["COMPILING", "CountingBar", "ProgressDisplay", "counting_bar", "progress"]

COMPILING = "compiling kernels, once per machine; probdice warm-up compiles most of them in advance"

DELAY = 1.0  # seconds before the bar of a `ProgressDisplay` appears


class ProgressDisplay:
    """The current step and its progress, shown as a bar after `start`."""

    def __init__(self) -> None:
        self._task: dict[str, Any] = {"description": "", "completed": 0, "total": None}
        self._interrupted_step = ""
        self._lock = Lock()
        self._bar: Any = None
        self._stopped = False

    def begin(self, step: str) -> None:
        """Begin a step of unknown length."""
        self._update(description=step, completed=0, total=None)

    def compiling(self) -> None:
        """Show that a kernel is being compiled."""
        self._interrupted_step = self._task["description"]
        self._update(description=COMPILING)

    def compiled(self) -> None:
        """Show again the step that the compilation interrupted."""
        if self._task["description"] == COMPILING:
            self._update(description=self._interrupted_step)

    def advance(self, finished_count: int, total: int) -> None:
        """Show the progress of the current pass over the pixels."""
        self._update(completed=finished_count, total=total)

    def start(self) -> None:
        """Show the bar."""
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        from probdice.cli.console import console

        columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
        bar = Progress(*columns, console=console(stderr=True), transient=True)
        with self._lock:
            if self._stopped:
                return
            bar.add_task(**self._task)
            bar.start()
            self._bar = bar

    def stop(self) -> None:
        """Remove the bar."""
        with self._lock:
            self._stopped = True
            if self._bar is not None:
                self._bar.stop()

    def _update(self, **changes: Any) -> None:
        with self._lock:
            self._task |= changes
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], **self._task)


@contextmanager
def progress(*, visible: bool) -> Iterator[ProgressDisplay]:
    """Yield a display of the progress, which is shown if standard error is a terminal."""
    display = ProgressDisplay()
    if not (visible and sys.stderr.isatty()):
        yield display
        return
    timer = Timer(DELAY, display.start)
    timer.daemon = True
    timer.start()
    token = watcher.set(display.advance)
    try:
        yield display
    finally:
        watcher.reset(token)
        timer.cancel()
        display.stop()


class CountingBar:
    """A bar with the number of finished steps and the remaining time."""

    def __init__(self, description: str, *, visible: bool) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        from probdice.cli.console import console

        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        self.bar = Progress(
            *(*columns, TextColumn("{task.fields[rate]}"), TimeRemainingColumn()),
            console=console(stderr=True),
            transient=True,
            disable=not (visible and sys.stderr.isatty()),
        )
        self.task = self.bar.add_task(description, total=None, rate="")

    def show(
        self, finished_count: int, total: int, *, step: str | None = None, rate: str = ""
    ) -> None:
        """Show the number of finished steps and the current step."""
        self.bar.update(
            self.task, description=step, completed=finished_count, total=total, rate=rate
        )

    def rename(self, step: str) -> None:
        """Show the current step."""
        self.bar.update(self.task, description=step)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.bar.tasks[0].elapsed or 0.0

    def print(self, line: str) -> None:
        """Print a line above the bar. If standard error is not writable, the line is lost."""
        with suppress(OSError):
            self.bar.console.print(line)


@contextmanager
def counting_bar(description: str, *, visible: bool = True) -> Iterator[CountingBar]:
    """Yield a bar of finished steps, which is shown if standard error is a terminal."""
    bar = CountingBar(description, visible=visible)
    with bar.bar:
        yield bar
