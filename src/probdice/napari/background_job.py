"""Run a function in a thread of Qt, with progress and cancellation."""

from collections.abc import Callable
from typing import Any

from napari.qt.threading import WorkerBase, WorkerBaseSignals
from qtpy.QtCore import Signal

from probdice.napari.layer_comparison import Steps

__all__ = ["Job"]


class _Signals(WorkerBaseSignals):
    progressed = Signal(str, int, int)  # the step, finished blocks and all blocks
    compared = Signal(object)  # the summary, before the new layers are computed


class Job(WorkerBase):
    """Calls a function in a Qt thread. `quit` raises `Cancelled` in it after the current block.

    The signals are those of `napari.qt.threading.WorkerBase` (`returned`, `errored`, `finished`),
    and `progressed` and `compared`.

    Parameters
    ----------
    task : callable
        Called with the `Steps` and a function that emits `compared`.

    Examples
    --------
    >>> from probdice.napari.background_job import Job
    >>> job = Job(lambda steps, compared: steps.begin("comparing"))
    >>> _ = job.progressed.connect(print)
    >>> job.work()
    comparing 0 0
    """

    def __init__(self, task: Callable[[Steps, Callable[[Any], None]], Any]) -> None:
        super().__init__(SignalsClass=_Signals)
        self._task = task

    def work(self) -> Any:
        """Call the function; Qt calls this method in the thread."""
        steps = Steps(self.progressed.emit, lambda: self.abort_requested)
        return self._task(steps, self.compared.emit)
