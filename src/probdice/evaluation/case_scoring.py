"""Score one case and create its line in the journal; estimate the memory that a case requires."""

import json
import math
import os
import time
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from probdice.comparison.comparing import compare_images
from probdice.comparison.from_files import Paths, read_images
from probdice.comparison.requested_metrics import compute_requested
from probdice.comparison.result import Comparison
from probdice.errors import InputError, Message, Note, Option, ProbdiceError, ProbdiceWarning
from probdice.evaluation.folders import relative_path
from probdice.evaluation.journal import FORMAT_VERSION
from probdice.evaluation.pairing import ROLES, Job
from probdice.files.headers import header_of, is_header
from probdice.files.sidecars import files_read, fingerprint
from probdice.files.sources import open_source, split_inside
from probdice.method.matching import GivenGroups
from probdice.method.sides import Both
from probdice.options import CompareOptions, Names
from probdice.version import __version__

__all__ = [
    "Inputs",
    "Request",
    "as_paths",
    "bytes_needed",
    "compare_job",
    "failed_line",
    "files_of",
    "inputs_of",
    "message_of",
    "same_inputs",
    "score_case",
]

OVERHEAD = 2**28  # bytes that a process needs in addition to its images
ASSUMED_COMPRESSION = 10  # of files whose header is not read

Inputs = dict[str, list[list[Any]]]  # per role: name, size, modification time, SHA-256 of each file


@dataclass(frozen=True)
class Request:
    """A job, with the options and files that its journal line records.

    `files` contains the paths of the files relative to the folder of the journal.
    `similarity_fingerprint` identifies the code of the similarity; None if it is unknown.
    """

    job: Job
    options: CompareOptions
    inputs: Inputs
    files: dict[str, list[str]]
    similarity_fingerprint: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the request as built-in types, which are sent to a worker process."""
        return {
            "job": asdict(self.job),
            "options": self.options.to_dict(),
            "similarity_module": type(self.options.similarity).__module__,
            "inputs": self.inputs,
            "max_bytes": self.options.max_bytes,
            "files": self.files,
            "similarity_fingerprint": self.similarity_fingerprint,
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Request":
        """Restore a request from the result of `to_dict`."""
        import_module(content["similarity_module"])  # registers the similarity under its name
        job = content["job"]
        paths, regions = (
            {key: tuple(names) for key, names in job[name].items()} for name in ("files", "regions")
        )
        return cls(
            Job(job["case"], job["method"], paths, regions),
            replace(CompareOptions.from_dict(content["options"]), max_bytes=content["max_bytes"]),
            content["inputs"],
            content["files"],
            content["similarity_fingerprint"],
        )

    @property
    def overlap_alone(self) -> bool:
        """Whether to compute only the overlap, which is used to match regions over all cases."""
        options = self.options
        return options.correspondence == "set" and not isinstance(options.match, GivenGroups)


def score_case(request: Request, threads: int) -> str:
    """Compare the two sides of a job and return its journal line, which records any error."""
    start = time.perf_counter()
    try:
        comparison = compare_job(request.job, request.options, threads)
        if not request.overlap_alone:
            comparison.compute("chance", "explained")  # to store them in the journal
            compute_requested(comparison)
        text = comparison.to_json()
    except Exception as error:  # makes only this case fail
        message, seconds = message_of(error), _seconds_since(start)
        return failed_line(_with_fingerprints(request), *message, seconds=seconds)
    return _line(_with_fingerprints(request), _seconds_since(start), f'"comparison": {text}')


def message_of(error: Exception) -> Message:
    """Return the message of an error that makes a case fail."""
    if isinstance(error, ProbdiceError):
        return error.args
    if isinstance(error, MemoryError):
        return (str(error) or "does not fit in memory",)
    return (f"{type(error).__name__}: {error}",)


def failed_line(request: Request, *message: str | Option, seconds: float = 0.0) -> str:
    """Return the journal line of a failed case. No file is read."""
    failure = Note("failed", message).to_dict()
    return _line(request, seconds, f'"failure": {json.dumps(failure)}')


def compare_job(
    job: Job,
    options: CompareOptions,
    workers: int | None,
    names: Mapping[str, Sequence[str]] | None = None,
) -> Comparison:
    """Read and compare the two sides of a job.

    `names` contains the file names that the HTML page of the case shows.
    """
    mask = as_paths(job.files["mask"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbdiceWarning)  # the notes contain these warnings too
        images, _ = read_images(
            as_paths(job.files["reference"], job.regions.get("reference", ())),
            as_paths(job.files["prediction"], job.regions.get("prediction", ())),
            options,
            mask=mask or None,
            workers=workers,
            one_of_many=True,
        )
        images.check_field_of_view()
        if names is not None:
            images = replace(
                images,
                reference=replace(images.reference, source=",".join(names["reference"])),
                prediction=replace(images.prediction, source=",".join(names["prediction"])),
            )
        return compare_images(images, options, of_many=True)


def as_paths(paths: tuple[str, ...], regions: tuple[str, ...] = ()) -> Paths:
    """Return files of one role as `read_images` accepts them: as paths, or by region name."""
    if regions:
        return dict(zip(regions, paths, strict=True))
    return paths[0] if len(paths) == 1 else paths


def files_of(job: Job, folder: Path) -> dict[str, list[str]]:
    """Return the paths of a job's files by role, relative to a folder."""
    return {role: [_relative(path, folder) for path in job.files[role]] for role in ROLES}


def inputs_of(job: Job, names: Both[Names | None], *, verify: bool) -> Inputs:
    """Return the name, size and modification time of all files; with `verify`, also the SHA-256.

    If the user gave a file with label names for a side, this file counts as a file of that side.
    """
    inputs: Inputs = {}
    for role in ROLES:
        folders = [os.path.dirname(_file(path)) for path in job.files[role]]
        files = files_read(job.files[role]) if folders else []
        table = None if role == "mask" else names[role]
        if isinstance(table, str):
            files.append(Path(table))
        inputs[role] = [_identity(file, folders, verify) for file in files]
    return inputs


def same_inputs(recorded_inputs: Inputs, current_inputs: Inputs, *, verify: bool) -> bool:
    """Return whether the files have the recorded names, sizes and modification times.

    With `verify`, the SHA-256 is compared instead of the modification time.
    """

    def identities(inputs: Inputs) -> list[Any]:
        return [
            (role, name, size, content if verify else modification_time)
            for role in ROLES
            for name, size, modification_time, content in inputs[role]
        ]

    try:
        recorded_identities = identities(recorded_inputs)
    except (TypeError, ValueError):  # an invalid line of the journal
        return False
    current_identities = identities(current_inputs)
    return recorded_identities == current_identities and (
        not verify or all(content for *_, content in current_identities)
    )


def bytes_needed(job: Job) -> int:
    """Estimate the memory required by a job: decompressed images plus overhead."""
    return OVERHEAD + sum(_size_in_memory(path) for role in ROLES for path in job.files[role])


def _line(request: Request, seconds: float, outcome: str) -> str:
    """Return a journal line. `outcome` is JSON, which may be long, so it is inserted unchanged."""
    job = request.job
    identity = json.dumps({"format": FORMAT_VERSION, "case": job.case, "method": job.method})
    details = json.dumps(
        {
            "seconds": seconds,
            "version": __version__,
            "options": request.options.to_dict(),
            "similarity_fingerprint": request.similarity_fingerprint,
            "inputs": request.inputs,
            "files": request.files,
            "regions": job.regions,
        }
    )
    return f"{identity[:-1]}, {outcome}, {details[1:]}"


def _seconds_since(start: float) -> float:
    return round(time.perf_counter() - start, 4)


def _identity(file: Path, folders: Sequence[str], verify: bool) -> list[Any]:
    """Return the name, size and modification time of a file, and its SHA-256 if `verify` is true.

    If the file is in none of `folders`, its name is the path relative to the first folder.
    """
    name = file.name
    if os.path.abspath(file.parent) not in map(os.path.abspath, folders):
        name = relative_path(file, folders[0])
    try:
        status = file.stat()
        content = fingerprint(file) if verify else None
    except OSError:  # the comparison will report the error
        return [name, None, None, None]
    return [name, status.st_size, status.st_mtime_ns, content]


def _with_fingerprints(request: Request) -> Request:
    """Return the request with the SHA-256 of every file.

    The files have just been read, so they are usually in the file system cache. Files that the job
    does not list, such as companion files, are found relative to the folder of the first file.
    """
    contents: Inputs = {}
    for role in ROLES:
        files_by_name = {
            os.path.basename(file): file for file in map(_file, request.job.files[role])
        }
        contents[role] = []
        for name, size, modification_time, content in request.inputs[role]:
            if content is None and size is not None:
                file = files_by_name.get(name) or os.path.join(
                    os.path.dirname(next(iter(files_by_name.values()))), name
                )
                with suppress(OSError):
                    content = fingerprint(file)
            contents[role].append([name, size, modification_time, content])
    return replace(request, inputs=contents)


def _file(path: str) -> str:
    return str(split_inside(path)[0])


def _size_in_memory(path: str) -> int:
    """Return the size of an image in memory, from its header or file size."""
    file, _ = split_inside(path)
    try:
        size = os.path.getsize(file)
        if file.suffix.lower() in (".nii", ".npy"):
            return size
        if file.suffix.lower() == ".npz":
            with zipfile.ZipFile(file) as archive:
                return sum(entry.file_size for entry in archive.infolist())
        source = open_source(path)
        if is_header(source.head):
            header = header_of(source.head)
            return math.prod(header.shape) * header.dtype.itemsize
    except (
        OSError,
        InputError,
        ValueError,
        zipfile.BadZipFile,
    ):  # reading the file will report the error
        return 0
    return ASSUMED_COMPRESSION * size


def _relative(path: str, folder: Path) -> str:
    """Return a path relative to a folder, followed by the path inside the file, if any."""
    file, inside = split_inside(path)
    return relative_path(file, folder) + (f":{inside}" if inside else "")
