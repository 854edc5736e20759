"""Selection of a Dask scheduler: threads, processes or a cluster."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from probdice.data.machine import cores
from probdice.errors import InputError, MissingExtraError

__all__ = ["connected", "scheduled", "selected_scheduler"]

TIMEOUT = 10  # time to wait for a scheduler, in seconds


@contextmanager
def scheduled(scheduler: str, workers: int | None = None) -> Iterator[None]:
    """While this context is active, run passes over stores on a Dask scheduler.

    `scheduler` is "threads", "processes" or the address of a cluster.
    """
    try:
        import dask
    except ImportError:
        raise MissingExtraError(
            'a scheduler requires dask, which is not installed: pip install "probdice[dask]"'
        ) from None
    if scheduler == "threads":
        with dask.config.set(scheduler="threads", num_workers=workers or cores()):
            yield
    elif scheduler == "processes":
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        # All rounds use one pool, because a process takes seconds to start.
        with (
            ProcessPoolExecutor(workers or cores(), get_context("spawn")) as pool,
            dask.config.set(scheduler="processes", pool=pool),
        ):
            yield
    else:
        with connected(scheduler):
            yield


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to the cluster at an address."""
    if "://" not in address:
        raise InputError(
            f"scheduler must be 'threads', 'processes' or an address such as tcp://host:8786, "
            f"found {address!r}"
        )
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError(
            'a cluster requires distributed, which is not installed: pip install "probdice[dask]"'
        ) from None
    try:
        client = Client(address, timeout=TIMEOUT)
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler responds at {address}: {error}") from None
    with client:
        yield client


def selected_scheduler() -> Any:
    """Return the scheduler that the user has selected, or None. Inside a task, return None."""
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
