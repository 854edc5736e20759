"""Readers that misbehave, for tests of the child process that runs them."""

import ctypes
import json
import math
import os
import signal
import socket
import struct
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from probdice.errors import Option, TooLargeError
from probdice.files.contained_process import _Server
from probdice.files.containment import ReaderResult, grant

CALLS: list[str] = []


def describe(file, *arguments):
    return ReaderResult(
        {"process": os.getpid(), "arguments": arguments, "size": os.path.getsize(file)}
    )


def content(file):
    return ReaderResult(None, (np.frombuffer(Path(file).read_bytes(), np.uint8),))


def ones(file, count):
    grant(count)
    return ReaderResult(None, (np.ones(count, np.uint8), np.arange(6, dtype=">i2").reshape(2, 3)))


def transposed(file, large):
    shape = (300, 400, 700) if large else (3, 4, 7)
    grant(4 * math.prod(shape))
    array = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    return ReaderResult(
        None, (array.transpose(2, 0, 1), array[:, ::-1], np.empty((0, 3)), np.array(5))
    )


def abort(file):
    os.abort()


def read_nowhere(file):
    ctypes.string_at(0)


def leave(file):
    sys.exit(3)  # not a subclass of Exception


def spin(file):
    while True:
        pass


def spin_without_signals(file):
    for name in (signal.SIGTERM, signal.SIGPROF, signal.SIGALRM):
        signal.signal(name, signal.SIG_IGN)
    while True:
        pass


def sleep(file, seconds=3600):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(seconds)
    return ReaderResult("awake")


def take_memory(file):
    return ReaderResult(len(bytearray(1 << 32)))


def be_noisy(file):
    print("noise of Python")
    warnings.warn("a warning of a library", stacklevel=1)
    os.write(1, b"noise on descriptor 1\n")
    os.write(2, b"noise on descriptor 2\n")
    subprocess.run(["echo", "noise of a process"], check=True)
    return ReaderResult("quiet")


def fork(file):
    if os.fork() == 0:
        return ReaderResult("copy")  # the forked copy continues as if it were the child
    return ReaderResult("child")


def fork_and_sleep(file, crash):
    pid = os.fork()
    if pid == 0:
        time.sleep(3600)
    if crash:
        os.abort()
    return ReaderResult(pid)


def crash_when_used(file):
    CALLS.append(file)
    if len(CALLS) > 1:
        os.abort()
    return ReaderResult(os.getpid())


def raise_too_large(file):
    raise TooLargeError("is too large: pass ", Option("max_bytes", 7), " to allow it")


def raise_system_error(file):
    raise PermissionError(13, "Permission denied")


def fail(file):
    return {}["missing"]


def send(file, message):
    """Send a message that no reader sends."""
    connection = _Server.current.connection
    text = json.dumps(message).encode()
    connection.sendall(struct.pack("<Q", len(text)) + text)
    time.sleep(3600)


def send_bytes(file, text):
    connection = _Server.current.connection
    connection.sendall(text.encode("latin-1"))
    time.sleep(3600)


def send_file(file, size, claimed):
    """Send a file in memory that could still be changed, or that is too short."""
    descriptor = os.memfd_create("test")
    os.write(descriptor, b"\7" * size)
    arrays = [{"dtype": "|u1", "shape": [claimed], "axes": [0]}]
    text = json.dumps({"value": None, "arrays": arrays}).encode()
    connection = _Server.current.connection
    socket.send_fds(connection, [struct.pack("<Q", len(text)) + text], [descriptor])
    os.ftruncate(descriptor, 0) if size < claimed else None
    time.sleep(3600)


def grant_too_much(file, nbytes):
    grant(nbytes)
    time.sleep(3600)


def total_of(path):
    """The sum of the labels in a file, for workers of Dask."""
    from probdice import read

    return int(np.asarray(read(path).array[...]).sum())
