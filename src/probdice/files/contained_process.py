"""The child process of `containment`: it runs readers under limits and returns their results."""

import json
import mmap
import os
import re
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import ProbdiceError
from probdice.files.containment import (
    ERRORS,
    PER_VALUE,
    SCRATCH,
    WALL,
    Answer,
    Filling,
    Layout,
    be_child,
    send_message,
)

__all__ = ["serve"]

GROWTH = 1 << 28  # bytes of unreleased memory after which the process is replaced
NO_MEMORY = re.compile(r"bad_alloc|memory allocation|allocate memory")  # in library errors


def serve(descriptor: int) -> None:
    """Answer requests from a socket until it closes."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core dumps
    for name in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(name, signal.SIG_DFL)  # the parent may have ignored it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles interrupts
    server = _Server.current = _Server(socket.socket(fileno=descriptor))
    be_child(server.grant)
    with suppress(OSError, EOFError):  # the parent has ended
        server.run()
    os._exit(0)


class _Server:
    """The server that runs in the child process."""

    current: "_Server | None" = None

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.process = os.getpid()
        self.limits = _Limits(0.0, 0)
        self.scratch: mmap.mmap | None = None

    def run(self) -> None:
        """Answer requests; return when too much memory stays in use."""
        self._start()
        first: int | None = None
        while True:
            request = json.loads(self._bytes(struct.unpack("<Q", self._bytes(8))[0]))
            with suppress(ImportError):  # the reader reports the missing extra
                import_module(request["library"])
            resident = _memory("VmRSS")
            first = resident if first is None else first
            if resident - first > GROWTH:
                return
            self._answer(request)

    def _start(self) -> None:
        """Report to the parent and share memory with it."""
        if not hasattr(os, "memfd_create"):
            self._send({"ready": True})
            return
        descriptor = _anonymous_file(SCRATCH)
        _seal(descriptor, write=False)
        self.scratch = mmap.mmap(descriptor, SCRATCH)
        self._send({"ready": True}, descriptor)
        os.close(descriptor)

    def grant(self, nbytes: int) -> None:
        """Announce a grant to the parent, and extend the limits of time and memory."""
        self._send({"grant": nbytes})
        self.limits.extend(nbytes)

    def _answer(self, request: dict[str, Any]) -> None:
        module, name = request["reader"]
        reader = getattr(import_module(module), name)
        self.limits = _Limits(request["seconds"], request["bytes"])
        descriptor = None
        try:
            self.limits.extend(0)
            answer: Answer = reader(*request["arguments"])
            descriptor, descriptions = self._shared(answer.arrays)
            message = {"value": answer.value, "arrays": descriptions}
            del answer
        except Exception as error:
            message = {"error": _described(error, request["library"])}
        finally:
            self.limits.lift()
        try:
            self._send(message, descriptor)
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _shared(self, arrays: Sequence[Any]) -> tuple[int | None, list[dict[str, Any]]]:
        """Copy arrays to shared memory; return its descriptor, if new, and the array layouts."""
        parts = [Layout.of(array) for array in arrays]
        total = sum(part.space for part in parts)
        descriptor = None
        if self.scratch is not None and total <= SCRATCH:
            _write(parts, arrays, self.scratch)
        elif parts:
            descriptor = _anonymous_file(total)
            try:
                content = mmap.mmap(descriptor, total)
                _write(parts, arrays, content)
                content.close()  # a mapped file cannot be sealed
                _seal(descriptor, write=True)
            except BaseException:
                os.close(descriptor)
                raise
        return descriptor, [part.to_dict() for part in parts]

    def _send(self, message: dict[str, Any], descriptor: int | None = None) -> None:
        if os.getpid() != self.process:  # a library has forked, and this is the forked copy
            os._exit(0)
        send_message(self.connection, message, descriptor)

    def _bytes(self, count: int) -> bytes:
        content = bytearray()
        while len(content) < count:
            part = self.connection.recv(count - len(content))
            if not part:
                raise EOFError
            content += part
        return bytes(content)


class _Limits:
    """Time and memory limits for a file; the system kills a process that exceeds its time."""

    def __init__(self, seconds: float, nbytes: int) -> None:
        self.seconds, self.nbytes = seconds, nbytes
        self.before = _memory("VmData")
        self.used = time.process_time()

    def extend(self, nbytes: int) -> None:
        """Allow time and memory for `nbytes` more bytes."""
        self.seconds += PER_VALUE[0] * nbytes
        self.nbytes += PER_VALUE[1] * nbytes
        factor, more = WALL
        left = max(0.1, self.seconds - (time.process_time() - self.used))
        signal.setitimer(signal.ITIMER_PROF, left)
        # If the parent is killed, this ends a reader that waits without using CPU time.
        signal.setitimer(signal.ITIMER_REAL, factor * self.seconds + more)
        _limit_memory(self.before + self.nbytes)

    def lift(self) -> None:
        """Remove all limits."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _limit_memory(None)


def _limit_memory(nbytes: int | None) -> None:
    """Limit the memory of this process on Linux; other systems do not enforce RLIMIT_DATA."""
    import resource

    if sys.platform == "linux":
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        soft = hard if nbytes is None else nbytes
        if hard != resource.RLIM_INFINITY:
            soft = min(soft, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _memory(name: str) -> int:
    """Return an entry of /proc/self/status in bytes (Linux; 0 elsewhere)."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return int(status.partition(f"{name}:")[2].split()[0]) * 1024


def _write(parts: Sequence[Layout], arrays: Sequence[Any], content: mmap.mmap) -> None:
    """Write arrays consecutively."""
    start = 0
    for part, array in zip(parts, arrays, strict=True):
        target: NDArray[Any] = np.ndarray(part.shape, part.dtype, content, start)
        if isinstance(array, Filling):
            array.fill(target)
        else:
            target.transpose(part.axes)[...] = array
        start += part.space
        del target  # a view would prevent unmapping


def _anonymous_file(size: int) -> int:
    """Create a memory file, or an unnamed temporary file on systems without memfd."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("probdice", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


def _seal(descriptor: int, *, write: bool) -> None:
    """Seal a memory file against changes of its size, and with `write` of its content."""
    import fcntl

    if hasattr(os, "memfd_create"):
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
        seals |= fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL if write else 0
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)


def _described(error: Exception, library: str) -> dict[str, Any]:
    """Convert an error to JSON values."""
    if isinstance(error, MemoryError) and not isinstance(error, ProbdiceError):
        return {"kind": "memory", "message": library}
    if isinstance(error, ProbdiceError) and type(error).__name__ in ERRORS:
        if NO_MEMORY.search(str(error.__cause__)):
            return {"kind": "memory", "message": library}
        message = [part if isinstance(part, str) else asdict(part) for part in error.args]
        return {"kind": type(error).__name__, "message": message}
    if isinstance(error, OSError) and error.errno is not None:
        return {"kind": "OSError", "message": [error.errno, error.strerror]}
    return {"kind": "fault", "message": "".join(traceback.format_exception(error))}
