"""Run readers under limits in the child process of `containment`, and return their results."""

import json
import mmap
import os
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data import machine
from probdice.files.child_messages import (
    Filling,
    ReaderResult,
    SharedLayout,
    error_to_dict,
    send_message,
)
from probdice.files.containment import PER_VALUE, SCRATCH, WALL, be_child

__all__ = ["serve"]

GROWTH = 1 << 28  # growth of memory in bytes after which the process is replaced


def serve(descriptor: int) -> None:
    """Answer requests from a socket until the socket closes or memory has grown by `GROWTH`."""
    machine.prepare_child()
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
        """Answer requests until the memory in use has grown by more than `GROWTH` bytes."""
        self._start()
        first: int | None = None
        while True:
            request = json.loads(self._bytes(struct.unpack("<Q", self._bytes(8))[0]))
            with suppress(ImportError):  # the reader reports the missing extra
                import_module(request["library"])
            resident = machine.memory_in_use("VmRSS")
            first = resident if first is None else first
            if resident - first > GROWTH:
                return
            self._answer(request)

    def _start(self) -> None:
        """Report to the parent that the child is ready, and share memory with the parent."""
        if not machine.seals_memory():
            self._send({"ready": True})
            return
        descriptor = machine.memory_file(SCRATCH)
        machine.seal(descriptor, write=False)
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
            answer: ReaderResult = reader(*request["arguments"])
            descriptor, descriptions = self._shared(answer.arrays)
            message = {"value": answer.value, "arrays": descriptions}
            del answer
        except Exception as error:
            message = {"error": error_to_dict(error, request["library"])}
        finally:
            self.limits.lift()
        try:
            self._send(message, descriptor)
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _shared(self, arrays: Sequence[Any]) -> tuple[int | None, list[dict[str, Any]]]:
        """Copy arrays to shared memory, and return its descriptor and the layouts of the arrays.

        The descriptor is None if there are no arrays or if they are in the reused buffer.
        """
        parts = [SharedLayout.of(array) for array in arrays]
        total = sum(part.space for part in parts)
        descriptor = None
        if self.scratch is not None and total <= SCRATCH:
            _write(parts, arrays, self.scratch)
        elif parts:
            descriptor = machine.memory_file(total)
            try:
                content = mmap.mmap(descriptor, total)
                _write(parts, arrays, content)
                content.close()  # a mapped file cannot be sealed
                machine.seal(descriptor, write=True)
            except BaseException:
                os.close(descriptor)
                raise
        return descriptor, [part.to_dict() for part in parts]

    def _send(self, message: dict[str, Any], descriptor: int | None = None) -> None:
        if os.getpid() != self.process:  # this process was forked by a library
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
    """Time and memory limits for a file. The system kills a process that exceeds its time limit."""

    def __init__(self, seconds: float, nbytes: int) -> None:
        self.seconds, self.nbytes = seconds, nbytes
        self.before = machine.memory_in_use("VmData")
        self.used = time.process_time()

    def extend(self, nbytes: int) -> None:
        """Allow time and memory for `nbytes` additional bytes."""
        self.seconds += PER_VALUE[0] * nbytes
        self.nbytes += PER_VALUE[1] * nbytes
        factor, extra_seconds = WALL
        left = max(0.1, self.seconds - (time.process_time() - self.used))
        # If the parent is killed, the limit of wall time ends a reader that waits without using
        # CPU time.
        machine.limit_time(left, factor * self.seconds + extra_seconds)
        machine.limit_memory(self.before + self.nbytes)

    def lift(self) -> None:
        """Remove all limits."""
        machine.limit_time(0, 0)
        machine.limit_memory(None)


def _write(parts: Sequence[SharedLayout], arrays: Sequence[Any], content: mmap.mmap) -> None:
    """Write arrays one after another to shared memory."""
    start = 0
    for part, array in zip(parts, arrays, strict=True):
        target: NDArray[Any] = np.ndarray(part.shape, part.dtype, content, start)
        if isinstance(array, Filling):
            array.fill(target)
        else:
            target.transpose(part.axes)[...] = array
        start += part.space
        del target  # a view would prevent unmapping
