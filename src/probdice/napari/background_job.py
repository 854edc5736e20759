"""Run a function in a Qt thread, with progress and cancellation."""

from collections.abc import Callable
from typing import Any

from napari.qt.threading import WorkerBase, WorkerBaseSignals
from qtpy.QtCore import Signal

from probdice.napari.layer_comparison import Steps

__all__ = ["BackgroundJob"]


class _Signals(WorkerBaseSignals):
    progressed = Signal(str, int, int)  # step, number of finished blocks, total number of blocks
    compared = Signal(object)  # the summary; emitted before the new layers are computed


class BackgroundJob(WorkerBase):
    """A job that calls a function in a Qt thread.

    The method `quit` raises `Cancelled` in the function after the current block. In addition to the
    signals of `napari.qt.threading.WorkerBase` (such as `returned`, `errored` and `finished`), a
    job has the signals `progressed` and `compared`.

    Parameters
    ----------
    task : callable
        The function to call, with a `Steps` and a function that emits `compared` as arguments.

    Examples
    --------
    >>> from probdice.napari.background_job import BackgroundJob
    >>> job = BackgroundJob(lambda steps, compared: steps.begin("comparing"))
    >>> _ = job.progressed.connect(print)
    >>> job.work()
    comparing 0 0
    """

    def __init__(self, task: Callable[[Steps, Callable[[Any], None]], Any]) -> None:
        super().__init__(SignalsClass=_Signals)
        self._task = task

    def work(self) -> Any:
        """Call the function. Qt calls this method in the thread."""
        steps = Steps(self.progressed.emit, lambda: self.abort_requested)
        return self._task(steps, self.compared.emit)
