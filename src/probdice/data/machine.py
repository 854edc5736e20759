"""CPU cores and memory that this process may use."""

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["cores", "memory"]


def cores() -> int:
    """Return the number of CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> int:
    """Return the memory of this machine or container in bytes."""
    available = 2**33  # used if the system reports nothing
    with suppress(AttributeError, ValueError, OSError):
        available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        available = min(available, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return available
