"""Run the readers of native libraries in one disposable child process.

HDF5, ITK, DICOM and MATLAB files are parsed by libraries that a corrupt file can crash, keep busy
for ever, or make ask for more memory than the machine has. `contained` runs a reader in a child
process, so that such a file costs an error message and nothing else.

The child starts with the first file that needs it (0.3 to 0.7 seconds of the processor, most of it
for importing NumPy and the library) and serves all files that follow, one at a time. It is
replaced after a crash, and killed on a time-out, on an interrupt and at exit. It has no name, file
or shared memory that could be left behind: it holds a socket, and ends when that closes.

**Messages.** A message is a length in 8 bytes and as many bytes of JSON. The parent sends a
request. The child answers with any number of ``{"grant": bytes}`` and then with ``{"value": …,
"arrays": …}`` or ``{"error": …}``. The values of arrays lie in shared memory without a name
(memfd): up to `SCRATCH` bytes in a piece of memory that is used again for each answer, and that the
parent copies them from, since new pages cost more than a copy; larger ones in memory of their own,
which is sealed and mapped without a copy. Where the system has no such memory, all of them come in
a temporary file without a name. A corrupt file might take over the child, so the parent checks
every field, never unpickles anything, and maps only memory that nobody can shrink any more.

**Limits.** A file may take `SECONDS` of the processor and `BYTES` of memory, and more in proportion
to its size. A reader that has checked a header calls `grant`, which allows time and memory for the
values, up to `max_bytes`. Processor time is limited on POSIX (SIGPROF), memory on Linux
(RLIMIT_DATA), and the time on the clock everywhere by the parent. Where no child can be started, as
on Windows, readers run in this process, and a warning is issued.
"""

import atexit
import json
import math
import mmap
import os
import re
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from probdice.errors import (
    FormatError,
    GeometryError,
    InputError,
    MissingExtraError,
    Note,
    ProbdiceWarning,
    TooLargeError,
)

__all__ = [
    "ERRORS",
    "NUMBERS",
    "PER_VALUE",
    "SCRATCH",
    "WALL",
    "Answer",
    "Filling",
    "Layout",
    "be_child",
    "contained",
    "grant",
    "send_message",
]

# What any file may take, and more for each byte of it. highdicom takes 0.6 seconds and 12 MB for a
# megabyte that consists of small frames, and 70 MB for tables of its own.
SECONDS, BYTES = 5.0, 5 << 25  # of the processor; of memory
PER_BYTE = 4.0 / (1 << 20), 24  # seconds and bytes for a byte of the file
MOST = 600.0, 1 << 31  # seconds and bytes for a file as such, however large
PER_VALUE = 1.0 / (1 << 23), 3  # seconds and bytes for each byte that is granted
WALL = 4.0, 20.0  # seconds on the clock per second of the processor, and in addition
START = 120.0  # seconds on the clock until the child is ready
LONGEST = 1 << 26  # bytes of a message
SCRATCH = 1 << 25  # bytes of shared memory that is used again
MOST_AXES = 32
NUMBERS = re.compile(r"[<>|]([biuf])(1|2|4|8|16)")
COMMAND = "import json, sys; sys.path = json.loads(sys.argv[1])\n"
COMMAND += "from probdice.files.contained_process import serve; serve(int(sys.argv[2]))"
# The cores are shared out by whoever reads several files, and threads take memory.
ONE_THREAD = {
    "ITK_GLOBAL_DEFAULT_NUMBER_OF_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
ERRORS = {
    error.__name__: error
    for error in (FormatError, GeometryError, InputError, MissingExtraError, TooLargeError)
}


_granting: Callable[[int], None] | None = None  # in the child process


@dataclass(frozen=True, eq=False)
class Filling:
    """An array in C order that a reader writes directly into shared memory."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill: Callable[[NDArray[Any]], object]


@dataclass(frozen=True, eq=False)
class Answer:
    """The result of a reader: a value that JSON can hold, and arrays of numbers.

    The parent gets an array for each `Filling`.
    """

    value: Any
    arrays: tuple[Any, ...] = ()


def contained(
    reader: Callable[..., Answer],
    path: Path,
    *arguments: Any,
    library: str,
    max_bytes: int,
) -> Answer:
    """Call ``reader(path, *arguments)`` in the child process.

    Parameters
    ----------
    reader : callable
        A function of a module. It calls `grant` before it takes memory for values.
    path : Path
        The file to read. Its size decides how much time and memory the reader may take.
    *arguments
        Further arguments, which JSON can hold.
    library : str
        The module that parses the file. It is imported before time and memory are limited.
    max_bytes : int
        The largest sum of all grants.

    Returns
    -------
    Answer
        The arrays are read-only.

    Raises
    ------
    FormatError
        When the library crashes, does not finish or takes too much memory.
    ProbdiceError, OSError
        When the reader raises one.
    """
    if _granting is not None or not hasattr(socket, "send_fds"):
        return _in_this_process(reader, path, arguments)
    file = os.path.abspath(path)
    size = os.path.getsize(file)
    request = {
        "reader": [reader.__module__, reader.__qualname__],
        "arguments": [file, *arguments],
        "library": library,
        "seconds": SECONDS + min(PER_BYTE[0] * size, MOST[0]),
        "bytes": BYTES + max(PER_VALUE[1] * size, min(PER_BYTE[1] * size, MOST[1])),
    }
    with _Child.lock:
        while (child := _Child.running()) is not None:
            served = child.served
            try:
                return child.answer(request, max_bytes)
            except _Ended as end:
                # A child that has read other files may have been broken by one of them.
                if not served or end.certain:
                    raise FormatError(end.message(library)) from None
    return _in_this_process(reader, path, arguments)


def grant(nbytes: int) -> None:
    """Allow the reader time and memory for so many bytes of values, whose number was checked.

    Outside of the child process it does nothing.
    """
    if _granting is not None:
        _granting(nbytes)


def be_child(granting: Callable[[int], None]) -> None:
    """Make this process the child: readers run in it, and grants are passed on."""
    global _granting
    _granting = granting


def _in_this_process(reader: Callable[..., Answer], path: Path, arguments: Sequence[Any]) -> Answer:
    if _granting is None:
        warnings.warn(
            "No child process can be started, so files are parsed in this process. A corrupt file "
            "can crash it.",
            ProbdiceWarning,
            stacklevel=2,
        )
    answer = reader(os.path.abspath(path), *arguments)
    return Answer(answer.value, tuple(map(_filled, answer.arrays)))


def _filled(array: "NDArray[Any] | Filling") -> NDArray[Any]:
    if not isinstance(array, Filling):
        return array
    target: NDArray[Any] = np.empty(array.shape, array.dtype)
    array.fill(target)
    return target


# -- the side of the parent ------------------------------------------------------------------------


class _Ended(Exception):
    """The child ended without an answer; `certain` when this is due to the file that it read."""

    def __init__(self, reason: str, *, certain: bool) -> None:
        super().__init__(reason)
        self.reason, self.certain = reason, certain

    def message(self, library: str) -> str:
        """The problem and what to do about it."""
        return (
            f"{library} {self.reason}. The file is probably corrupt or incomplete: copy or write "
            f"it again"
        )


CRASHED = "crashed while reading it"
TOO_LONG = "did not finish reading it within its time limit"
TOO_MUCH = "needs far more memory than a file of this size should take"


class _Child:
    """The child process, as the parent sees it."""

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
                    start_new_session=True,  # so that what a library starts can be ended with it
                )
            except BaseException:
                self.socket.close()
                raise

    @classmethod
    def running(cls) -> "_Child | None":
        """The child that runs, or a new one; None where none can be started."""
        if cls.current is None:
            try:
                child = cls()
                child._start()
            except (OSError, _Ended, _Malformed):
                return None
            cls.current = child
        return cls.current

    def _start(self) -> None:
        """Wait until the child is ready, and map the memory that it shares."""
        _, descriptor = self._receive(time.monotonic() + START)
        if descriptor is not None:
            try:
                if _seals_of(descriptor) and os.fstat(descriptor).st_size >= SCRATCH:
                    self.scratch = mmap.mmap(descriptor, SCRATCH, mmap.MAP_SHARED, mmap.PROT_READ)
            finally:
                os.close(descriptor)

    def answer(self, request: dict[str, Any], max_bytes: int) -> Answer:
        """The answer to a request; whatever else happens ends the child."""
        factor, more = WALL
        deadline = time.monotonic() + more + factor * request["seconds"]
        descriptor = None
        try:
            self._send(request)
            while True:
                message, descriptor = self._receive(deadline)
                if set(message) != {"grant"}:
                    break
                max_bytes -= _whole(message["grant"])
                if max_bytes < 0:
                    raise _Malformed
                deadline += factor * PER_VALUE[0] * message["grant"]
            self.served += 1
            if set(message) == {"error"}:
                error = _error_in(message["error"])
            elif set(message) == {"value", "arrays"}:
                return Answer(message["value"], self._arrays(message["arrays"], descriptor))
            else:
                raise _Malformed
        except _Malformed:
            self.end()
            raise _Ended(CRASHED, certain=True) from None
        except BaseException:  # such as an interrupt, after which the answer would come too late
            self.end()
            raise
        finally:  # a map has a descriptor of its own
            if descriptor is not None:
                os.close(descriptor)
        raise error

    def _arrays(self, descriptions: Any, descriptor: int | None) -> tuple[NDArray[Any], ...]:
        """The arrays of an answer, in the order of the axes that the reader gave them."""
        if not isinstance(descriptions, list):
            raise _Malformed
        parts = [Layout.checked(description) for description in descriptions]
        total = sum(part.space for part in parts)
        content: Any = None
        if descriptor is not None:
            content = _content_of(descriptor, total)
        elif self.scratch is not None and total <= SCRATCH:
            content = np.array(np.frombuffer(self.scratch, np.uint8, total))
        elif parts:
            raise _Malformed
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
        """The next message, and the descriptor that comes with it."""
        descriptors: list[int] = []
        try:
            size = struct.unpack("<Q", self._bytes(8, deadline, descriptors))[0]
            if size > LONGEST:
                raise _Malformed
            message = json.loads(self._bytes(size, deadline, descriptors))
            if not isinstance(message, dict):
                raise _Malformed
        except BaseException as error:
            self.end()
            for descriptor in descriptors:
                os.close(descriptor)
            if isinstance(error, ValueError | RecursionError):
                raise _Malformed from None
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
        """Wait until there is something to receive."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        while not poll.poll(200):
            # A process that a library has started may keep the socket open.
            if self.process.poll() is not None and not poll.poll(0):
                self._raise_end()
            if time.monotonic() > deadline:
                self.end()
                raise _Ended(TOO_LONG, certain=True)

    def _raise_end(self) -> NoReturn:
        """Say how the child has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(2)
        code = self.process.returncode
        self.end()
        if code in (-signal.SIGPROF, -signal.SIGALRM):
            raise _Ended(TOO_LONG, certain=True)
        if code == -signal.SIGKILL:
            raise _Ended(f"{CRASHED} (killed, perhaps for lack of memory)", certain=False)
        how = f"signal {signal.Signals(-code).name}" if code and code < 0 else f"code {code}"
        raise _Ended(f"{CRASHED} ({how})", certain=False)

    def end(self) -> None:
        """Kill the child and what it has started."""
        if _Child.current is self:
            _Child.current = None
        self.socket.close()
        if self.scratch is not None:
            self.scratch.close()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @classmethod
    def left_to_parent(cls) -> None:
        """After a fork: the child goes on to serve the other process."""
        if cls.current is not None:
            cls.current.socket.close()
            cls.current.process.returncode = 0
        cls.lock, cls.current = threading.Lock(), None


@atexit.register
def _end() -> None:
    if _Child.current is not None:
        _Child.current.end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Child.left_to_parent)


class _Malformed(Exception):
    """An answer that no reader of ours gives."""


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _Malformed
    return value


@dataclass(frozen=True)
class Layout:
    """How an array lies in shared memory: in C order, but for a permutation of its axes."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def space(self) -> int:
        """Its bytes, rounded up so that the next array is aligned."""
        return max(64, -(-self.nbytes // 64) * 64)

    @classmethod
    def of(cls, array: "NDArray[Any] | Filling") -> "Layout":
        if isinstance(array, Filling):
            return cls(array.dtype, array.shape, tuple(range(len(array.shape))))
        order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        shape = tuple(array.shape[axis] for axis in order)
        return cls(array.dtype, shape, tuple(int(axis) for axis in np.argsort(order)))

    @classmethod
    def checked(cls, content: Any) -> "Layout":
        if not isinstance(content, dict) or set(content) != {"dtype", "shape", "axes"}:
            raise _Malformed
        dtype, shape, axes = content["dtype"], content["shape"], content["axes"]
        if not isinstance(dtype, str) or NUMBERS.fullmatch(dtype) is None:
            raise _Malformed
        if not isinstance(shape, list) or not isinstance(axes, list) or len(shape) > MOST_AXES:
            raise _Malformed
        if sorted(map(_whole, axes)) != list(range(len(shape))):
            raise _Malformed
        try:
            return cls(np.dtype(dtype), tuple(map(_whole, shape)), tuple(axes))
        except TypeError:
            raise _Malformed from None

    def to_dict(self) -> dict[str, Any]:
        return {"dtype": self.dtype.str, "shape": self.shape, "axes": self.axes}


def _content_of(descriptor: int, size: int) -> mmap.mmap | NDArray[np.uint8]:
    """The first bytes of a file in memory: mapped where nobody can change it, else copied."""
    if not size or os.fstat(descriptor).st_size < size:
        raise _Malformed
    if _seals_of(descriptor, write=True):
        return mmap.mmap(descriptor, size, mmap.MAP_PRIVATE, mmap.PROT_READ)
    content = np.empty(size, np.uint8)
    start = 0
    while start < size:
        count = os.preadv(descriptor, [content[start:].data], start)
        if not count:
            raise _Malformed
        start += count
    return content


def _seals_of(descriptor: int, *, write: bool = False) -> bool:
    """Whether nobody can shrink a file in memory any more, nor, where asked for, write to it."""
    import fcntl

    if not hasattr(os, "memfd_create"):
        return False
    seals = fcntl.F_SEAL_SHRINK | (fcntl.F_SEAL_WRITE if write else 0)
    try:
        return fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & seals == seals
    except OSError:  # it is no such file
        return False


def _error_in(content: Any) -> Exception:
    """The error that a reader raised."""
    if not isinstance(content, dict) or set(content) != {"kind", "message"}:
        raise _Malformed
    kind, message = content["kind"], content["message"]
    if kind in ERRORS:
        try:
            return ERRORS[kind](*Note.from_dict(content).message)
        except (InputError, TypeError, KeyError):
            raise _Malformed from None
    if kind == "OSError" and isinstance(message, list) and len(message) == 2:
        return OSError(*message)
    if kind == "memory":
        return FormatError(_Ended(TOO_MUCH, certain=True).message(str(message)))
    if kind == "fault":  # of this package
        return RuntimeError(f"a reader failed in the child process:\n{message}")
    raise _Malformed


def send_message(
    connection: socket.socket, message: dict[str, Any], descriptor: int | None = None
) -> None:
    content = json.dumps(message).encode()
    content = struct.pack("<Q", len(content)) + content
    if descriptor is not None:
        content = content[socket.send_fds(connection, [content[:8]], [descriptor]) :]
    connection.sendall(content)
