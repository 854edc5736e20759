"""One case: what identifies its files, what memory it needs, and its line of the journal."""

import hashlib
import json
import math
import os
import time
import warnings
import zipfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from probdice.comparison import aligned, compare
from probdice.errors import InputError, ProbdiceError, ProbdiceWarning
from probdice.evaluation.journal import FORMAT
from probdice.evaluation.options import Options
from probdice.evaluation.pairing import SUFFIXES, Job
from probdice.evaluation.patterns import INSIDE
from probdice.files import read
from probdice.files.headers import header_of, is_header
from probdice.files.scaling import read_scaled
from probdice.files.sources import open_source
from probdice.result import Comparison
from probdice.segmentation import Segmentation
from probdice.similarity import Aitchison, Similarity, as_similarity
from probdice.solution import SIDES
from probdice.tally import Side

__all__ = [
    "Request",
    "bytes_needed",
    "compared",
    "files_of",
    "inputs_of",
    "same_inputs",
    "scored",
    "unscored",
]

OVERHEAD = 2**28  # bytes that a process needs besides its images
PACKED = 10  # how far an image of unknown compression may unpack
PARTNERED = (".npz", ".hdr", ".img", ".hdr.gz", ".img.gz", ".mhd", ".nhdr")  # see _companions
VALUES = (".raw", ".zraw", ".raw.gz")  # what lies beside a header

Inputs = dict[str, list[list[Any]]]  # per side: name, size, modification time and SHA-256 of files


@dataclass(frozen=True)
class Request:
    """A job with all that goes into its line of the journal."""

    job: Job
    options: Options
    inputs: Inputs

    def to_json(self) -> str:
        """For a worker process."""
        return json.dumps(
            {"job": asdict(self.job), "options": self.options.to_dict(), "inputs": self.inputs}
        )

    @classmethod
    def from_json(cls, text: str) -> "Request":
        """Back from JSON."""
        content = json.loads(text)
        job = content["job"]
        return cls(
            Job(job["case"], job["method"], tuple(job["reference"]), tuple(job["prediction"])),
            Options.from_dict(content["options"]),
            content["inputs"],
        )


def scored(request: Request, threads: int) -> str:
    """Compare the two sides of a job; the line of the journal, whether that went well or not."""
    start = time.perf_counter()
    try:
        comparison, ignored = _compared(request.job, request.options, threads)
        text = comparison.to_json(indent=None)
    except MemoryError as error:
        return unscored(request, str(error) or "does not fit in memory", _since(start))
    except ProbdiceError as error:
        return unscored(request, str(error), _since(start))
    except Exception as error:  # whatever it is, the other cases go on
        return unscored(request, f"{type(error).__name__}: {error}", _since(start))
    return _line(
        request,
        f'"seconds": {_since(start)}, "ignored": {json.dumps(ignored)}, "comparison": {text}',
    )


def unscored(request: Request, error: str, seconds: float = 0.0) -> str:
    """The line of a case that failed."""
    return _line(request, f'"seconds": {seconds}, "error": {json.dumps(error)}')


def compared(job: Job, options: Options, threads: int) -> Comparison:
    """Read the two sides of a job and compare them."""
    return _compared(job, options, threads)[0]


def _compared(job: Job, options: Options, threads: int) -> tuple[Comparison, list[int]]:
    """The comparison, and which of the labels to be ignored the reference has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbdiceWarning)  # they are among the notes, too
        reference, prediction = _sides(job, options, threads)
        similarity: Similarity = as_similarity(options.similarity)
        if options.floor:
            similarity = Aitchison(options.floor)
        comparison = compare(
            reference,
            prediction,
            similarity=similarity,
            match=options.match,
            merge=options.merge,
            workers=threads,
        )
    return comparison, [label for label in options.ignore if _occurs(label, reference)]


def _occurs(label: int, segmentation: Segmentation) -> bool:
    """Whether a label map has a label; slice by slice, since it may lie on the disk."""
    array = segmentation.array
    if not segmentation.shape:
        return bool(np.asarray(array) == label)
    return any(bool(np.any(np.asarray(array[k]) == label)) for k in range(segmentation.shape[0]))


def files_of(job: Job) -> dict[str, list[str]]:
    """Where the files of both sides lie, whatever folder this is read from later."""
    return {
        side: [_located(path) for path in paths]
        for side, paths in (("reference", job.reference), ("prediction", job.prediction))
    }


def inputs_of(job: Job, *, verify: bool) -> Inputs:
    """What identifies the files of a job: size and modification time; with `verify`, content."""
    return {
        side: [_identity(file, verify) for file in _companions(paths)]
        for side, paths in (("reference", job.reference), ("prediction", job.prediction))
    }


def same_inputs(recorded: Inputs, present: Inputs, *, verify: bool) -> bool:
    """Whether these are the files that were compared then."""

    def known(inputs: Inputs) -> list[Any]:
        return [
            (side, name, size, content if verify else modified)
            for side in ("reference", "prediction")
            for name, size, modified, content in inputs[side]
        ]

    try:
        before = known(recorded)
    except (TypeError, ValueError):  # a line of the journal that somebody else wrote
        return False
    now = known(present)
    return before == now and (not verify or all(content for *_, content in now))


def bytes_needed(job: Job) -> int:
    """About how much memory a job takes: its images unpacked, and some to work with."""
    return OVERHEAD + sum(_unpacked(path) for path in (*job.reference, *job.prediction))


def _sides(job: Job, options: Options, threads: int) -> tuple[Segmentation, Segmentation]:
    """Both sides, brought to one grid or, where that is asked for, without geometry."""
    # Unpacking takes longer than comparing, and holds no lock; other files have nothing to unpack.
    gzipped = all(path.lower().endswith((".gz", ".mgz")) for path in job.reference + job.prediction)
    with ThreadPoolExecutor(2 if gzipped and threads > 1 else 1) as pool:
        reference, prediction = pool.map(lambda side: _read(job, options, side), SIDES)
    if options.ignore_geometry:
        return reference.without_geometry(), prediction.without_geometry()
    if options.geometry_tolerance is not None:
        prediction = aligned(reference, prediction, tolerance=options.geometry_tolerance)
    return reference, prediction


def _read(job: Job, options: Options, side: Side) -> Segmentation:
    """One side; a scale for both is only for those that need it, as a label map does not."""
    paths = job.reference if side == "reference" else job.prediction
    path = paths[0] if len(paths) == 1 else list(paths)
    forced = options.reference_scale if side == "reference" else options.prediction_scale
    sums = options.reference_sums if side == "reference" else options.prediction_sums
    ignore = options.ignore if side == "reference" else ()
    if forced is not None or options.scale is None:
        return read(path, scale=forced, sums=sums, ignore=ignore)
    return read_scaled(path, scale=options.scale, sums=sums, ignore=ignore)[0]


def _line(request: Request, outcome: str) -> str:
    """The outcome is spliced in as text: a table of weights may be long."""
    job = request.job
    head = json.dumps({"format": FORMAT, "case": job.case, "method": job.method})
    about = json.dumps(
        {
            "options": request.options.to_dict(),
            "inputs": request.inputs,
            "files": files_of(job),
        }
    )
    return f"{head[:-1]}, {outcome}, {about[1:]}"


def _since(start: float) -> float:
    return round(time.perf_counter() - start, 4)


def _companions(paths: Iterable[str]) -> list[Path]:
    """The files that are read, and for formats that look beside them all of that name."""
    files: dict[Path, None] = {}
    for path in paths:
        file = _file(path)
        files[file] = None
        if file.name.lower().endswith(PARTNERED):
            beside = (file.with_name(_stem(file) + suffix) for suffix in (*SUFFIXES, *VALUES))
            files.update(dict.fromkeys(other for other in beside if other.exists()))
    return list(files)


def _identity(file: Path, verify: bool) -> list[Any]:
    try:
        status = file.stat()
        content = None
        if verify:
            with file.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:  # the comparison will say what is wrong with it
        return [file.name, None, None, None]
    return [file.name, status.st_size, status.st_mtime_ns, content]


def _unpacked(path: str) -> int:
    """The size of an image in memory, without reading it."""
    file = _file(path)
    try:
        size = os.path.getsize(file)
        if file.suffix.lower() in (".nii", ".npy"):
            return size
        if file.suffix.lower() == ".npz":
            with zipfile.ZipFile(file) as packed:
                return sum(entry.file_size for entry in packed.infolist())
        source = open_source(path)
        if is_header(source.head):
            header = header_of(source.head)
            return math.prod(header.shape) * header.dtype.itemsize
    except (OSError, InputError, ValueError, zipfile.BadZipFile):  # reading it will tell
        return 0
    return PACKED * size


def _file(path: str) -> Path:
    inside = INSIDE.fullmatch(path)
    return Path(inside[1] if inside and not os.path.exists(path) else path)


def _located(path: str) -> str:
    """The full path, with what follows the file's name where a part inside of it is meant."""
    file = str(_file(path))
    return os.path.abspath(file) + path.removeprefix(file)


def _stem(file: Path) -> str:
    suffix = next((s for s in SUFFIXES if file.name.lower().endswith(s)), file.suffix)
    return file.name.removesuffix(suffix) if suffix else file.name
