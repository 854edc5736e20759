"""The cores and the memory that this process may use."""

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["cores", "memory"]


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> int:
    """What this machine, or the container, has: bytes."""
    available = 2**33  # where nothing can be known
    with suppress(AttributeError, ValueError, OSError):
        available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        available = min(available, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return available
