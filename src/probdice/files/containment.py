"""Run the readers of some formats in one disposable child process.

Third-party libraries parse HDF5, DICOM, MATLAB, GIFTI and ITK files. A corrupt file can make a
library crash, run forever, or allocate more memory than the machine has. `run_in_child` runs a
reader in a child process, so a corrupt file causes only an error message.

The child starts when the first file requires it. Starting takes 0.3 to 0.7 seconds of CPU time,
mostly for importing NumPy and the library. The child reads all later files, one at a time. The
child is replaced after a crash or if its memory has grown too much, and killed on a timeout, on an
interrupt and at exit. The child creates neither named files nor named shared memory. It
communicates only through a socket and anonymous memory or unnamed files, and exits when the socket
closes.

**Messages.** The parent sends a request. The child sends any number of ``{"grant": bytes}``
messages, and then ``{"value": …, "arrays": …}`` or ``{"error": …}``. Array values are in anonymous
shared memory (memfd). Arrays of up to `SCRATCH` bytes in total are in a buffer that is reused for
each answer. The parent copies the content of this buffer, because a copy is faster than allocating
new pages. Larger arrays have their own memory, which is sealed and mapped without a copy. On
systems without memfd, all arrays are in an unnamed temporary file. The parent maps only memory that
is sealed against shrinking, and copies all other content.

**Limits.** Reading a file may take `SECONDS` of CPU time and `BYTES` of memory, plus additional
time and memory in proportion to the file size. After checking a header, a reader calls `grant` to
get time and memory for the values, whose size cannot exceed `max_bytes`. The child's CPU time is
limited on POSIX (SIGPROF), and its memory on Linux (RLIMIT_DATA). The parent limits the wall time
on all systems. If no child can be started (for example on Windows), readers run in this process and
a warning is issued.
"""

import atexit
import json
import mmap
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from probdice.data import machine
from probdice.errors import EnvironmentWarning
from probdice.files.child_messages import (
    MAX_MESSAGE_BYTES,
    Filling,
    Malformed,
    ReaderResult,
    SharedLayout,
    Size,
    conforms,
    error_from_dict,
    library_failure,
    map_memory,
    send_message,
)

__all__ = [
    "PER_VALUE",
    "SCRATCH",
    "WALL",
    "Filling",
    "ReaderResult",
    "be_child",
    "grant",
    "run_in_child",
]

# Limits per file and per byte of the file. highdicom takes 0.6 seconds and 12 MB per megabyte of
# small frames, and 70 MB for its own tables.
SECONDS, BYTES = 5.0, 5 << 25  # CPU time and memory for any file
PER_BYTE = 4.0 / (1 << 20), 24  # CPU seconds and bytes of memory per byte of the file
PER_BYTE_LIMIT = 600.0, 1 << 31  # largest CPU time (s) and memory (bytes) that `PER_BYTE` may add
PER_VALUE = 1.0 / (1 << 23), 3  # CPU seconds and bytes of memory per granted byte
WALL = 4.0, 60.0  # wall time limit in seconds: first value × CPU time limit + second value
START = 120.0  # seconds of wall time until the child must be ready
SCRATCH = 1 << 25  # size of the reused shared memory in bytes
COMMAND = "import json, sys; sys.path = json.loads(sys.argv[1])\n"
COMMAND += "from probdice.files.contained_process import serve; serve(int(sys.argv[2]))"
# Libraries use one thread, because callers use all cores to read several files, and because threads
# take memory.
ONE_THREAD = {
    "ITK_GLOBAL_DEFAULT_NUMBER_OF_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
CRASHED = "crashed while reading it"
TOO_LONG = "did not finish reading it within its time limit"

_granting: Callable[[int], None] | None = None  # set only in the child process


def run_in_child(
    reader: Callable[..., ReaderResult],
    path: Path,
    *arguments: Any,
    returns: Any,
    library: str,
    max_bytes: int,
) -> ReaderResult:
    """Call ``reader(path, *arguments)`` in the child process.

    Parameters
    ----------
    reader : callable
        A module-level function that calls `grant` before it allocates memory for values.
    path : Path
        The file to read. The size of the file determines the limits of time and memory.
    *arguments : JSON values
        Additional arguments of `reader`.
    returns : type
        The type of the value in the answer, in the form that `conforms` expects.
    library : str
        The module that parses the file. This module is imported before time and memory are limited.
    max_bytes : int
        The maximum sum of all grants, in bytes.

    Returns
    -------
    ReaderResult
        The answer of the reader. Arrays from a child process are read-only.

    Raises
    ------
    FormatError
        If the library crashes, or exceeds its time or memory limit.
    ProbdiceError, OSError
        If the reader raises one of these errors.
    """
    if _granting is not None or not machine.passes_files():
        return _in_this_process(reader, path, arguments)
    file = os.path.abspath(path)
    size = os.path.getsize(file)
    request = {
        "reader": [reader.__module__, reader.__qualname__],
        "arguments": [file, *arguments],
        "library": library,
        "seconds": SECONDS + min(PER_BYTE[0] * size, PER_BYTE_LIMIT[0]),
        "bytes": BYTES + max(PER_VALUE[1] * size, min(PER_BYTE[1] * size, PER_BYTE_LIMIT[1])),
    }
    with _Child.lock:
        while (child := _Child.running()) is not None:
            served = child.served
            try:
                return child.answer(request, returns, max_bytes)
            except _Ended as end:
                # If the child has read other files, one of them may have caused the crash.
                if not served or end.certain:
                    raise library_failure(library, end.reason) from None
    return _in_this_process(reader, path, arguments)


def grant(nbytes: int) -> None:
    """Allow the reader time and memory for `nbytes` bytes of values.

    Before a reader calls this function, it must check the declared number of values. Outside the
    child process, this function does nothing.
    """
    if _granting is not None:
        _granting(nbytes)


def be_child(granting: Callable[[int], None]) -> None:
    """Mark this process as the child process, in which `grant` calls `granting`."""
    global _granting
    _granting = granting


def _in_this_process(
    reader: Callable[..., ReaderResult], path: Path, arguments: Sequence[Any]
) -> ReaderResult:
    if _granting is None:
        warnings.warn(
            "No child process can be started, so files are parsed in this process. A corrupt file "
            "can crash it.",
            EnvironmentWarning,
            stacklevel=2,
        )
    answer = reader(os.path.abspath(path), *arguments)
    return ReaderResult(answer.value, tuple(map(_filled, answer.arrays)))


def _filled(array: NDArray[Any] | Filling) -> NDArray[Any]:
    if not isinstance(array, Filling):
        return array
    target: NDArray[Any] = np.empty(array.shape, array.dtype)
    array.fill(target)
    return target


# -- in the parent process -------------------------------------------------------------------------


class _Ended(Exception):
    """The child ended without an answer. `certain` means that the current file is the cause."""

    def __init__(self, reason: str, *, certain: bool) -> None:
        super().__init__(reason)
        self.reason, self.certain = reason, certain


class _Child:
    """The child process, its socket and its shared memory, in the parent process."""

    lock = threading.Lock()
    current: "_Child | None" = None

    def __init__(self) -> None:
        self.socket, other = socket.socketpair()
        self.served = 0
        self.scratch: mmap.mmap | None = None
        paths = json.dumps([os.path.abspath(path) for path in sys.path])
        command = [sys.executable or "python", "-P", "-c", COMMAND, paths, str(other.fileno())]
        with other:
            try:
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=os.environ | ONE_THREAD,
                    pass_fds=(other.fileno(),),
                    start_new_session=True,  # to also kill processes that a library starts
                )
            except BaseException:
                self.socket.close()
                raise

    @classmethod
    def running(cls) -> "_Child | None":
        """Return the running child or a new child, or None if no child can be started."""
        if cls.current is None:
            try:
                child = cls()
                child._start()
            except (OSError, _Ended, Malformed):
                return None
            cls.current = child
        return cls.current

    def _start(self) -> None:
        """Wait until the child is ready, and map the memory that it shares."""
        _, descriptor = self._receive(time.monotonic() + START)
        if descriptor is not None:
            try:
                if machine.is_sealed(descriptor) and os.fstat(descriptor).st_size >= SCRATCH:
                    self.scratch = mmap.mmap(descriptor, SCRATCH, mmap.MAP_SHARED, mmap.PROT_READ)
            finally:
                os.close(descriptor)

    def answer(self, request: dict[str, Any], returns: Any, max_bytes: int) -> ReaderResult:
        """Return the answer to a request. End the child if there is no valid answer."""
        factor, extra_seconds = WALL
        deadline = time.monotonic() + extra_seconds + factor * request["seconds"]
        descriptor = None
        try:
            self._send(request)
            while True:
                message, descriptor = self._receive(deadline)
                if set(message) != {"grant"}:
                    break
                if not conforms(message["grant"], Size) or message["grant"] > max_bytes:
                    raise Malformed
                max_bytes -= message["grant"]
                deadline += factor * PER_VALUE[0] * message["grant"]
            self.served += 1
            if set(message) == {"error"}:
                error = error_from_dict(message["error"])
            elif set(message) == {"value", "arrays"} and conforms(message["value"], returns):
                return ReaderResult(message["value"], self._arrays(message["arrays"], descriptor))
            else:
                raise Malformed
        except Malformed:
            self.end()
            raise _Ended(CRASHED, certain=True) from None
        except BaseException:  # an interrupt; without `end`, the next request would get this answer
            self.end()
            raise
        finally:  # a memory map has its own descriptor
            if descriptor is not None:
                os.close(descriptor)
        raise error

    def _arrays(self, descriptions: Any, descriptor: int | None) -> tuple[NDArray[Any], ...]:
        """Return the arrays of an answer, with their axes ordered as in the reader's result."""
        if not isinstance(descriptions, list):
            raise Malformed
        parts = [SharedLayout.checked(description) for description in descriptions]
        total = sum(part.space for part in parts)
        content: Any = None
        if descriptor is not None:
            content = map_memory(descriptor, total)
        elif self.scratch is not None and total <= SCRATCH:
            content = np.array(np.frombuffer(self.scratch, np.uint8, total))
        elif parts:
            raise Malformed
        arrays, start = [], 0
        for part in parts:
            array: NDArray[Any] = np.ndarray(part.shape, part.dtype, content, start)
            array.flags.writeable = False
            arrays.append(array.transpose(part.axes))
            start += part.space
        return tuple(arrays)

    def _send(self, request: dict[str, Any]) -> None:
        try:
            send_message(self.socket, request)
        except OSError:
            self._raise_end()

    def _receive(self, deadline: float) -> tuple[dict[str, Any], int | None]:
        """Return the next message, and its file descriptor or None if the message has none."""
        descriptors: list[int] = []
        try:
            size = struct.unpack("<Q", self._bytes(8, deadline, descriptors))[0]
            if size > MAX_MESSAGE_BYTES:
                raise Malformed
            message = json.loads(self._bytes(size, deadline, descriptors))
            if not isinstance(message, dict):
                raise Malformed
        except BaseException as error:
            self.end()
            for descriptor in descriptors:
                os.close(descriptor)
            if isinstance(error, ValueError | RecursionError):
                raise Malformed from None
            raise
        for descriptor in descriptors[1:]:
            os.close(descriptor)
        return message, descriptors[0] if descriptors else None

    def _bytes(self, count: int, deadline: float, descriptors: list[int]) -> bytes:
        content = bytearray()
        while len(content) < count:
            self._wait(deadline)
            try:
                part, added, _, _ = socket.recv_fds(
                    self.socket, min(count - len(content), 1 << 20), 1
                )
            except OSError:
                part, added = b"", []
            descriptors += added
            if not part:
                self._raise_end()
            content += part
        return bytes(content)

    def _wait(self, deadline: float) -> None:
        """Wait until a message arrives."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        while not poll.poll(200):
            # A process that a library started may keep the socket open.
            if self.process.poll() is not None and not poll.poll(0):
                self._raise_end()
            if time.monotonic() > deadline:
                self.end()
                raise _Ended(TOO_LONG, certain=True)

    def _raise_end(self) -> NoReturn:
        """Raise an exception that describes how the child ended."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(2)
        code = self.process.returncode
        self.end()
        if machine.was_out_of_time(code):
            raise _Ended(TOO_LONG, certain=True)
        if code == -signal.SIGKILL:
            raise _Ended(f"{CRASHED} (killed, perhaps out of memory)", certain=False)
        how = f"signal {signal.Signals(-code).name}" if code and code < 0 else f"code {code}"
        raise _Ended(f"{CRASHED} ({how})", certain=False)

    def end(self) -> None:
        """Kill the child and the processes that it started."""
        if _Child.current is self:
            _Child.current = None
        self.socket.close()
        if self.scratch is not None:
            self.scratch.close()
        machine.kill_group(self.process)

    @classmethod
    def left_to_parent(cls) -> None:
        """In a forked process, discard the child, which belongs to the original process."""
        if cls.current is not None:
            cls.current.socket.close()
            cls.current.process.returncode = 0
        cls.lock, cls.current = threading.Lock(), None


@atexit.register
def _end() -> None:
    if _Child.current is not None:
        _Child.current.end()


machine.after_fork(_Child.left_to_parent)
