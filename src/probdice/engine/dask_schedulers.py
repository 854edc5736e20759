"""Selection of a Dask scheduler: threads, processes or a cluster."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from probdice.data.machine import cores
from probdice.errors import InputError, MissingExtraError

__all__ = ["SCHEDULERS", "connected", "scheduled", "selected_scheduler"]

TIMEOUT = 10  # time to wait for a scheduler, in seconds


def scheduled(scheduler: str, workers: int | None = None) -> AbstractContextManager[Any]:
    """Return a context in which passes over stores run on a scheduler.

    `scheduler` is a name in `SCHEDULERS` or the address of a Dask cluster.
    """
    if scheduler in SCHEDULERS:
        return SCHEDULERS[scheduler](workers or cores())
    return connected(scheduler)


@contextmanager
def _in_threads(workers: int) -> Iterator[None]:
    with _dask().config.set(scheduler="threads", num_workers=workers):
        yield


@contextmanager
def _in_processes(workers: int) -> Iterator[None]:
    """Use one pool of processes for all rounds, because a process takes seconds to start."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    dask = _dask()
    with (
        ProcessPoolExecutor(workers, get_context("spawn")) as pool,
        dask.config.set(scheduler="processes", pool=pool),
    ):
        yield


# The named values of `--scheduler`. Each function receives the number of workers.
SCHEDULERS: dict[str, Callable[[int], AbstractContextManager[None]]] = {
    "threads": _in_threads,
    "processes": _in_processes,
}


def _dask() -> Any:
    try:
        import dask
    except ImportError:
        raise MissingExtraError(
            'a scheduler requires dask, which is not installed: pip install "probdice[dask]"'
        ) from None
    return dask


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to the cluster at an address."""
    if "://" not in address:
        names = ", ".join(map(repr, SCHEDULERS))
        raise InputError(
            f"scheduler must be {names} or an address such as tcp://host:8786, found {address!r}"
        )
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError(
            "a Dask cluster requires the package distributed, which is not installed: pip install "
            '"probdice[dask]"'
        ) from None
    try:
        client = Client(address, timeout=TIMEOUT)
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler responds at {address}: {error}") from None
    with client:
        yield client


def selected_scheduler() -> Any:
    """Return the scheduler that the user has selected, or None. In a cluster task, return None."""
    if "dask" not in sys.modules:
        return None
    distributed = sys.modules.get("distributed")
    if distributed is not None:
        try:
            distributed.get_worker()
        except ValueError:
            pass
        else:
            return None
    from dask.base import get_scheduler

    return get_scheduler()
