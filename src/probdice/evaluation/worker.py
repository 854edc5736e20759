"""A worker process, which reads requests from stdin and writes journal lines to stdout.

Workers do not use `multiprocessing`, because `fork` is unsafe in a process with threads, and
`spawn` runs the user's script again in every worker. The worker exits immediately when its standard
input closes, which means that the run ended or was killed.
"""

import json
import os
import sys
import threading
from queue import SimpleQueue

from probdice.evaluation.case_scoring import Request, score_case

__all__ = ["COMPILING", "READY", "main"]

READY = "ready"  # first line; distinguishes a failed start from a failed case
COMPILING = "compiling"  # line before an answer that needs compilation


def main() -> None:
    """Answer requests until standard input closes."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # output of libraries goes to standard error
    # Limit ITK image readers to one thread, because the run distributes the cores.
    os.environ["ITK_GLOBAL_DEFAULT_NUMBER_OF_THREADS"] = "1"
    requests: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_read_requests, args=(requests,), daemon=True).start()

    def send(line: str) -> None:
        answers.write(f"{line}\n")
        answers.flush()

    send(READY)
    from probdice.engine.kernels import watch_compiler

    watch_compiler(lambda: send(COMPILING), lambda: None)
    while True:
        threads, request = json.loads(requests.get())
        send(score_case(Request.from_dict(request), threads))


def _read_requests(requests: "SimpleQueue[str]") -> None:
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)  # the run has ended
