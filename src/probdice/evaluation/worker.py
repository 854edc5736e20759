"""A process that scores cases: requests come in by its standard input, lines go out by its output.

It is started as a plain process rather than through `multiprocessing`, whose `fork` does not go
with compiled threads, and whose `spawn` runs the user's own script once more in every worker. When
the standard input closes, because the run ended or was killed, so does the worker, at once.
"""

import json
import os
import sys
import threading
from queue import SimpleQueue

from probdice.evaluation.case_scoring import Request, scored

__all__ = ["COMPILING", "READY", "main"]

READY = "ready"  # the first line, so that a process that cannot start is not blamed on a case
COMPILING = "compiling"  # a line before an answer that takes longer than others


def main() -> None:
    """Answer every request until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # what a library prints is not an answer
    # Readers that have threads of their own are kept to one: the cores are shared out by the run.
    os.environ["ITK_GLOBAL_DEFAULT_NUMBER_OF_THREADS"] = "1"
    requests: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()

    def say(line: str) -> None:
        answers.write(f"{line}\n")
        answers.flush()

    say(READY)
    from probdice.engine.kernels import watch_compiler

    watch_compiler(lambda: say(COMPILING), lambda: None)
    while True:
        threads, request = json.loads(requests.get())
        say(scored(Request.from_dict(request), threads))


def _listen(requests: "SimpleQueue[str]") -> None:
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)  # nobody waits for an answer any more
