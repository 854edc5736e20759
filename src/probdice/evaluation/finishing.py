"""Finish all comparisons of a run: read results from the journal, or compute and record them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import chain
from json import dumps, loads
from pathlib import Path
from typing import Literal

from probdice.comparison.comparing import compare_overlap
from probdice.errors import InputError, Note
from probdice.evaluation.case_scoring import (
    Inputs,
    Request,
    failed_line,
    files_of,
    inputs_of,
    same_inputs,
)
from probdice.evaluation.journal import Journal, read_lines
from probdice.evaluation.pairing import Job
from probdice.evaluation.record import Record
from probdice.evaluation.running import WorkerPool, run, run_on_cluster
from probdice.evaluation.similarity_fingerprint import similarity_fingerprint
from probdice.method.matching import GivenGroups
from probdice.method.overlap import Overlap
from probdice.options import CompareOptions
from probdice.version import __version__

__all__ = [
    "Progress",
    "correspondences_over_set",
    "file_identities",
    "finish_requests",
    "requests_of",
]


@dataclass(frozen=True)
class Progress:
    """The progress of a run.

    Attributes
    ----------
    stage : {"comparisons", "overlaps"}
        The type of task that is counted. There is one task per case and method.
        With ``correspondence="set"``, all overlaps are computed before the comparisons.
    total : int
        The total number of tasks of this type.
    done : int
        The number of finished tasks, including failed tasks and tasks of earlier runs.
    failed : int
        The number of comparisons that failed in this run; 0 for overlaps.
    resumed : int
        The number of tasks finished by earlier runs.
    latest : Record or None
        The record of the comparison that finished last; None at the start and for overlaps.
    """

    stage: Literal["comparisons", "overlaps"]
    total: int
    done: int
    failed: int
    resumed: int
    latest: Record | None


def file_identities(
    jobs: Sequence[Job], options: Mapping[str, CompareOptions], workers: int, verify: bool
) -> list[Inputs]:
    """Return the names, sizes and modification times of the files of every job (`inputs_of`)."""

    def identities(job: Job) -> Inputs:
        return inputs_of(job, options[job.method].names, verify=verify)

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(identities, jobs))


def requests_of(
    jobs: Sequence[Job],
    inputs: Sequence[Inputs],
    options: Mapping[str, CompareOptions],
    folder: Path,
) -> dict[tuple[str, str], Request]:
    """Return the requests for all jobs, with the options of their methods."""
    fingerprints = {
        method: similarity_fingerprint(method_options.similarity)
        for method, method_options in options.items()
    }
    return {
        (job.case, job.method): Request(
            job,
            options[job.method],
            job_inputs,
            files_of(job, folder),
            fingerprints[job.method],
        )
        for job, job_inputs in zip(jobs, inputs, strict=True)
    }


def correspondences_over_set(
    records: Iterable[Record], options: Mapping[str, CompareOptions]
) -> dict[str, GivenGroups]:
    """Return one correspondence per method, computed from all cases that could be compared."""
    overlaps: dict[str, list[Overlap]] = {}
    for record in records:
        if record.comparison is not None:
            overlaps.setdefault(record.method, []).append(record.comparison.overlap)
    groups = {}
    for method, method_overlaps in overlaps.items():
        try:
            result = compare_overlap(Overlap.total(method_overlaps), options[method])
        except InputError as error:
            raise error.prefixed(f"{method}: cannot match regions over all cases: ") from None
        groups[method] = GivenGroups(
            tuple((group.reference, group.prediction) for group in result.groups)
        )
    return groups


def finish_requests(
    requests: Mapping[tuple[str, str], Request],
    stage: Literal["comparisons", "overlaps"],
    *,
    out: Path,
    workers: int,
    pool: WorkerPool,
    scheduler: str | None,
    verify: bool,
    reference_failures: Mapping[str, Note],
    progress: Callable[[Progress], None] | None,
    compiling: Callable[[], None] | None,
) -> tuple[Record, ...]:
    """Return the records of all requests, read from the journal or computed."""
    with Journal(out) as journal:
        records = _unchanged_records(requests, journal, verify)
        resumed_count, failed_count = len(records), 0
        pending_requests = [request for key, request in requests.items() if key not in records]
        failed_requests = [
            request for request in pending_requests if request.job.case in reference_failures
        ]
        pending_requests = [
            request for request in pending_requests if request.job.case not in reference_failures
        ]

        def notify(latest: Record | None) -> None:
            if progress is None:
                return
            state = Progress(
                stage, len(requests), len(records), failed_count, resumed_count, latest
            )
            # A case whose overlap fails also fails in its comparison, which reports the failure.
            progress(state if stage == "comparisons" else replace(state, failed=0, latest=None))

        notify(None)
        journal_lines = (
            run(pending_requests, workers, pool, compiling)
            if scheduler is None
            else run_on_cluster(pending_requests, scheduler)
        )
        with closing(journal_lines) as lines:
            for line in chain(
                (
                    failed_line(request, *reference_failures[request.job.case].message)
                    for request in failed_requests
                ),
                lines,
            ):
                journal.append(line)
                record = Record.from_line(loads(line), out)
                records[record.case, record.method] = record
                failed_count += record.comparison is None
                notify(record)
    return tuple(records[key] for key in requests)


def _unchanged_records(
    requests: Mapping[tuple[str, str], Request], journal: Journal, verify: bool
) -> dict[tuple[str, str], Record]:
    """Return the recorded results whose version, options, similarity and files are unchanged.

    If a case has several lines with the current version and options, the last one is used.
    """
    expected_options = {key: request.options.to_dict() for key, request in requests.items()}
    records: dict[tuple[str, str], Record] = {}
    moved_lines: dict[tuple[str, str], int] = {}
    out = journal.path.parent
    for number, line in enumerate(read_lines(out)):
        key = line["case"], line["method"]
        request = requests.get(key)
        if (
            request is None
            or line["version"] != __version__
            or line["options"] != expected_options[key]
        ):
            continue
        records.pop(key, None)
        moved_lines.pop(key, None)
        if (
            "comparison" in line
            and line.get("regions", {})
            == {side: list(names) for side, names in request.job.regions.items()}
            and request.similarity_fingerprint is not None
            and line.get("similarity_fingerprint") == request.similarity_fingerprint
            and same_inputs(line["inputs"], request.inputs, verify=verify)
        ):
            with suppress(InputError):  # the case of an invalid line is computed again
                records[key] = Record.from_line(line | {"files": request.files}, out)
                if line["files"] != request.files:
                    moved_lines[key] = number
    if moved_lines:
        _record_new_paths(requests, journal, {*moved_lines.values()})
    return records


def _record_new_paths(
    requests: Mapping[tuple[str, str], Request], journal: Journal, numbers: set[int]
) -> None:
    """Append existing lines to the journal again, with the current file paths.

    The journal is read a second time, because all lines together may not fit in memory.
    """
    for number, line in enumerate(read_lines(journal.path.parent)):
        if number in numbers:
            files = requests[line["case"], line["method"]].files
            journal.append(dumps(line | {"files": files}))
