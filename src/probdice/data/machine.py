"""Properties and functions of the machine and its operating system.

This module contains all code that differs between Linux, macOS and Windows, with a fallback for
systems that lack a feature. Other modules import neither `fcntl` nor `resource`, and do not
compare system names. `tests/test_portability.py` checks this rule.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from errno import EACCES, EAGAIN, EBADF, EINVAL, ENOTSUP
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = [
    "BINARY",
    "after_fork",
    "cores",
    "flush_folder",
    "is_file_name",
    "is_sealed",
    "kill_group",
    "limit_memory",
    "limit_time",
    "lock",
    "memory",
    "memory_file",
    "memory_in_use",
    "passes_files",
    "prepare_child",
    "replace",
    "seal",
    "seals_memory",
    "was_out_of_time",
]


def _module(name: str) -> Any:
    """Import a module of the standard library, or return None if this system does not have it."""
    try:
        return import_module(name)
    except ImportError:
        return None


fcntl, msvcrt, resource = map(_module, ("fcntl", "msvcrt", "resource"))

WINDOWS = os.name == "nt"
BINARY: int = getattr(os, "O_BINARY", 0)  # without it, Windows writes "\r\n" for "\n"
DEFAULT_MEMORY = 2**33  # bytes of memory, if the system does not report its memory
RETRIES, PAUSE = 10, 0.1  # attempts to replace an open file, and seconds between attempts
# Text that is not allowed in Windows file names.
INVALID_FILE_NAME = re.compile(r"""[<>:"/\\|?*\x00-\x1f]|[. ]\Z""")
DEVICES = re.compile(r"(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\..*)?", re.IGNORECASE)
CGROUPS = Path("/sys/fs/cgroup")
PROCESS = Path("/proc/self")


# -- cores and memory ------------------------------------------------------------------------------


def cores() -> int:
    """Return the number of CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> int:
    """Return the memory of this machine, container or cluster job, in bytes."""
    available = DEFAULT_MEMORY
    with suppress(AttributeError, ValueError, OSError):
        available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([available, *_group_limits()])


def _group_limits() -> Iterator[int]:
    """Yield the memory limits of this process's control groups (Linux), in bytes.

    In a container, the root group is the group of the container. A cluster job runs in a control
    group below the root group.
    """
    files = [CGROUPS / "memory.max"]
    with suppress(OSError):
        for line in (PROCESS / "cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            group = Path(path.lstrip("/"))
            if not controllers:  # version 2
                files += [CGROUPS / folder / "memory.max" for folder in (group, *group.parents)]
            elif "memory" in controllers.split(","):
                name = "memory.limit_in_bytes"
                files += [CGROUPS / "memory" / folder / name for folder in (group, *group.parents)]
    for file in files:
        with suppress(OSError, ValueError):  # ValueError: "max" means no limit
            yield int(file.read_text(encoding="utf-8"))


def memory_in_use(name: str) -> int:
    """Return the entry `name` of /proc/self/status in bytes on Linux, and 0 on other systems."""
    try:
        status = (PROCESS / "status").read_text(encoding="utf-8")
    except OSError:
        return 0
    return int(status.partition(f"{name}:")[2].split()[0]) * 1024


# -- files -----------------------------------------------------------------------------------------


def is_file_name(name: str) -> bool:
    """Return whether all systems accept this name for a file or folder.

    The length of the name is not checked.

    Examples
    --------
    >>> from probdice.data.machine import is_file_name
    >>> [is_file_name(name) for name in ("rater 1", "a/b", "a:b", "end.", "nul.txt", "")]
    [True, False, False, False, False, False]
    """
    return bool(name) and not INVALID_FILE_NAME.search(name) and not DEVICES.fullmatch(name)


def lock(file: int) -> None:
    """Lock an open file until it is closed or the process ends.

    Raises
    ------
    BlockingIOError
        If another process has locked the file.
    OSError
        If the system or the file system does not support locks.
    """
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif msvcrt is not None:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            raise OSError(ENOTSUP, "this system has no file locks")
    except OSError as error:
        if error.errno in (EACCES, EAGAIN):  # Windows reports EACCES
            raise BlockingIOError(EAGAIN, "another process has locked the file") from None
        raise


def flush_folder(folder: Path) -> None:
    """Flush the entries of a folder to disk if the system and the file system support this."""
    try:
        file = os.open(folder, os.O_RDONLY)
    except PermissionError:  # always on Windows; elsewhere, if the folder cannot be read
        return
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (EBADF, EINVAL, ENOTSUP):  # some network file systems
            raise
    finally:
        os.close(file)


def replace(source: Path, target: Path) -> None:
    """Rename a file or folder with `os.replace`, which replaces an existing target file.

    Windows does not rename a file while another program, such as a virus scanner, has the file or
    the target open. The function then retries for about a second.
    """
    for attempt in range(RETRIES):
        try:
            os.replace(source, target)
            return
        except PermissionError:
            if not WINDOWS or attempt == RETRIES - 1:
                raise
            time.sleep(PAUSE)


# -- child processes -------------------------------------------------------------------------------


def passes_files() -> bool:
    """Return whether processes can send each other open files (POSIX)."""
    return hasattr(socket, "send_fds") and fcntl is not None and resource is not None


def after_fork(function: Callable[[], None]) -> None:
    """Register a function to be called in every forked child process, on systems with fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def prepare_child() -> None:
    """Make timer signals end this process, ignore interrupts, and disable core dumps."""
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in _timer_signals():
        signal.signal(number, signal.SIG_DFL)  # the parent may have ignored this signal
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles interrupts


def limit_time(cpu: float, wall: float) -> None:
    """End this process after `cpu` seconds of CPU time or `wall` seconds of wall time (POSIX).

    The value 0 removes a limit.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, cpu)
        signal.setitimer(signal.ITIMER_REAL, wall)


def was_out_of_time(code: int | None) -> bool:
    """Return whether `limit_time` ended a process with this exit code."""
    return code is not None and -code in _timer_signals()


def _timer_signals() -> list[int]:
    return [getattr(signal, name) for name in ("SIGPROF", "SIGALRM") if hasattr(signal, name)]


def limit_memory(nbytes: int | None) -> None:
    """Limit the data memory of this process (RLIMIT_DATA) to `nbytes` on Linux.

    None removes the limit. Other systems do not enforce RLIMIT_DATA.
    """
    if resource is not None and sys.platform == "linux":
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        soft = hard if nbytes is None else nbytes
        if hard != resource.RLIM_INFINITY:
            soft = min(soft, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def kill_group(process: "subprocess.Popen[Any]") -> None:
    """Kill a process that leads a session and, on POSIX, the processes that it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


# -- shared memory ---------------------------------------------------------------------------------


def seals_memory() -> bool:
    """Return whether the system supports sealed memory files (Linux)."""
    return hasattr(os, "memfd_create") and fcntl is not None


def memory_file(size: int) -> int:
    """Create a file in memory, or an unnamed temporary file on systems without memfd.

    Return its file descriptor.
    """
    if seals_memory():
        descriptor = os.memfd_create("probdice", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


def seal(descriptor: int, *, write: bool) -> None:
    """Prevent changes to the size of a memory file and, with `write`, to its content (Linux)."""
    if seals_memory():
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
        seals |= fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL if write else 0
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)


def is_sealed(descriptor: int, *, write: bool = False) -> bool:
    """Return whether a memory file is sealed against shrinking and, with `write`, writing."""
    if not seals_memory():
        return False
    seals: int = fcntl.F_SEAL_SHRINK | (fcntl.F_SEAL_WRITE if write else 0)
    try:
        return bool(fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & seals == seals)
    except OSError:  # the descriptor is not a memory file
        return False
