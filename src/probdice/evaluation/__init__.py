"""A folder of cases, and one of predictions per method, to scores and statistics.

`pairing` finds the jobs (by `patterns`), `running` has them scored (`scoring`) by processes
(`worker`), `journal` keeps each the moment it is finished, and `results` makes of the records what
is written and shown.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from json import dumps, loads
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from probdice.engine.threads import cores
from probdice.errors import InputError, MissingExtraError, Option, Words
from probdice.evaluation.again import compare_again
from probdice.evaluation.folders import Folder, methods_of, patterns_of
from probdice.evaluation.journal import Journal, locked, read_lines
from probdice.evaluation.pairing import Job, Missing, describe_missing, pair
from probdice.evaluation.record import MEASURES, Measure, Record
from probdice.evaluation.results import Evaluation, read_summary
from probdice.evaluation.running import run
from probdice.evaluation.scoring import Inputs, Request, files_of, inputs_of, same_inputs
from probdice.evaluation.tables import Others
from probdice.matching import Given
from probdice.options import (
    Correspondence,
    GivenNames,
    Match,
    Merging,
    Options,
    Priority,
    as_workers,
)
from probdice.overlaps import Overlap
from probdice.segmentation import Label
from probdice.sides import Side
from probdice.similarity import Similarity
from probdice.value_checks import Sums
from probdice.version import __version__

__all__ = [
    "MEASURES",
    "Evaluation",
    "Measure",
    "Missing",
    "Options",
    "Progress",
    "Record",
    "compare_again",
    "evaluate",
    "evaluate_folders",
    "read_summary",
]


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    total, done, failed : int
        Cases of methods in all, finished (those of earlier runs and the failed ones included), and
        failed in this run.
    resumed : int
        How many were finished by earlier runs.
    latest : Record or None
        The one that was finished just now; None at the start.
    """

    total: int
    done: int
    failed: int
    resumed: int
    latest: Record | None


def evaluate(
    reference: Folder,
    predictions: Mapping[str, Folder] | Folder,
    *,
    out: Folder | None = None,
    similarity: str | Similarity = "absolute",
    match: Match = "overlap",
    merge: Merging = "none",
    correspondence: Correspondence = "case",
    ignore: Iterable[int] | int = (),
    sums: Sums | Mapping[Side, Sums] = "error",
    scale: float | Mapping[Side, float] | None = None,
    names: "GivenNames | Mapping[Side, GivenNames]" = None,
    priority: "Priority | Mapping[Side, Priority]" = (),
    pattern: str | Mapping[str, str] | None = None,
    probabilities: bool = False,
    allow_missing: bool = False,
    ignore_geometry: bool = False,
    geometry_tolerance: float | None = None,
    max_bytes: int | None = None,
    workers: int | None = None,
    verify: bool = False,
    parquet: bool = False,
    indices: bool = False,
    background: Label | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Compare every case of a folder with the predictions of one method or several.

    A case is a file, named without its suffix, or a subfolder; `pattern` says otherwise. Each
    finished case is kept in ``out/cases.jsonl`` at once, so a run that was interrupted or killed
    continues where it was when it is started again. A case that fails is recorded with its
    message, and tried again by the next run.

    Parameters
    ----------
    reference : path
        The folder of the reference.
    predictions : mapping of str to path, or path
        A folder for every method; of a single one the name of the folder is that of the method.
    out : path, optional
        The folder for the results, made where there is none: cases.jsonl (everything, in the
        order of finishing), cases.csv, regions.csv and summary.json. Nothing is kept without it.
    similarity, match, merge
        As in `compare`.
    correspondence : {"case", "set"}, optional
        Whether regions correspond anew in every case, or by one correspondence for all cases of a
        method, as clusters and classes do: it is found by `match` and `merge` on the sum of their
        overlaps, and then every case is scored with it. Its files are read twice.
    ignore : int or iterable of int, optional
        One label of the reference, or several, whose pixels are left out.
    sums : {"error", "normalise", "background"} or mapping, optional
        Where probabilities do not sum to 1; ``{"prediction": "background"}`` for one side.
    scale : float or mapping, optional
        The number that stands for certainty, such as 100 or 255, for the files that need it: a
        label map stays one, and values within 1 stay as they are. ``{"prediction": 255}`` scales
        one side whatever it holds.
    names : mapping, sequence or path, optional
        What labels are called, as in `read`; ``{"reference": …, "prediction": …}`` for each side.
    priority : sequence of str or mapping, optional
        Which region gets a pixel that several masks claim, as in `read`; a mapping for each side.
    pattern : str or mapping, optional
        Where the files lie and what in their names is the case: ``"{case}_seg.nii.gz"``,
        ``"{case}/pve_*.nii.gz"`` (one region each), ``"{case:path}.nii.gz"`` (the case may contain
        folders), ``"{case}.mat:groundTruth/0"``. A mapping has one for ``"reference"``,
        ``"prediction"`` or the name of a method.
    probabilities : bool, optional
        Whether to take nnU-Net's .npz of probabilities instead of the label map it lies beside.
    allow_missing : bool, optional
        Whether to go on where a case has no partner; else that is an error before any work.
    ignore_geometry : bool, optional
        Whether to compare by array order, wherever the images lie; then without a tolerance.
    geometry_tolerance : float, optional
        How far the grids may lie apart, in pixels; 0.1 by default.
    max_bytes : int, optional
        How much memory the values of one file may take where they have to be unpacked, as in
        `read`.
    workers : int, optional
        Cores to use, by processes and threads together; all by default. The result does not
        depend on it.
    verify : bool, optional
        Whether a finished case is recognised by the content of its files, not by their size and
        time of modification.
    parquet : bool, optional
        Whether to write the tables as Parquet too (needs pandas and pyarrow).
    indices : bool, optional
        Whether the table of cases has the numbers of `Comparison.indices` too.
    background : int or str, optional
        The label that is no foreground. With it the table of cases has the numbers of
        `Comparison.detection` too.
    progress : callable, optional
        Called with a `Progress` at the start and after every case.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        When folders, options or partners are missing, or another run writes into `out`. A case
        that cannot be compared is no error: see `Evaluation.failures`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from probdice.evaluation import evaluate
    >>> folder = tempfile.TemporaryDirectory()
    >>> for name in ("truth", "mine"):
    ...     os.mkdir(os.path.join(folder.name, name))
    >>> for case in ("a", "b"):
    ...     np.save(os.path.join(folder.name, "truth", case), np.array([1, 1, 2, 2]))
    ...     np.save(os.path.join(folder.name, "mine", case), np.array([5, 5, 5, 8]))
    >>> truth, mine = (os.path.join(folder.name, name) for name in ("truth", "mine"))
    >>> result = evaluate(truth, {"mine": mine})
    >>> result
    Evaluation (absolute): 2 cases, 1 method: 2 scored, 0 failed, 0 without a partner
      mine: mean score 0.7500 over 2, 95 % interval withheld
    >>> result.summaries("lowest_dice")["mine"].interval.reason
    '2 cases, fewer than 6'
    >>> folder.cleanup()
    """
    options = Options.of(
        similarity=similarity,
        match=match,
        merge=merge,
        correspondence=correspondence,
        ignore=ignore,
        sums=sums,
        scale=scale,
        names=names,
        priority=priority,
        ignore_geometry=ignore_geometry,
        geometry_tolerance=geometry_tolerance,
        max_bytes=max_bytes,
    )
    return evaluate_folders(
        reference,
        methods_of(predictions),
        options,
        out=out,
        pattern=pattern,
        probabilities=probabilities,
        allow_missing=allow_missing,
        workers=workers,
        verify=verify,
        parquet=parquet,
        others=Others(indices, background is not None, background),
        words="python",
        progress=progress,
    )


def evaluate_folders(
    reference: Folder,
    methods: dict[str, str],
    options: Options,
    *,
    out: Folder | None,
    pattern: str | Mapping[str, str] | None,
    probabilities: bool,
    allow_missing: bool,
    workers: int | None,
    verify: bool,
    parquet: bool,
    others: Others,
    words: Words,
    progress: Callable[[Progress], None] | None,
) -> Evaluation:
    """The same by options that are checked; notes and errors in the files are in these words."""
    workers = as_workers(workers) or cores()
    if parquet:
        _check_parquet()
    reference_pattern, prediction_patterns = patterns_of(pattern, methods)
    jobs, missing = pair(
        Path(reference),
        {name: Path(folder) for name, folder in methods.items()},
        reference_pattern=reference_pattern,
        prediction_patterns=prediction_patterns,
        probabilities=probabilities,
    )
    if missing and not allow_missing:
        cases = "case has" if len(missing) == 1 else "cases have"
        raise InputError(
            f"{len(missing)} {cases} no partner:\n{describe_missing(missing)}\npass ",
            Option("allow_missing", python="allow_missing=True"),
            " to score the others",
        )

    def result_in(folder: Path, kept: Path | None) -> Evaluation:
        inputs = _inputs(jobs, workers, verify)
        found: dict[str, Given] = {}
        passes = 2 if options.correspondence == "set" else 1
        if passes == 2:
            alone = replace(options, match="overlap", merge="none", correspondence="case")
            requests = _requests(jobs, inputs, dict.fromkeys(methods, alone))
            watch = None if progress is None else _first_of_two(progress)
            found = _over_set(_finished(requests, folder, workers, verify, watch), options)
        asked = {name: options.given(found[name]) if name in found else options for name in methods}
        requests = _requests(jobs, inputs, asked)
        watch = progress if progress is None or passes == 1 else _second_of_two(progress)
        records = _finished(requests, folder, workers, verify, watch)
        about = os.fspath(reference), methods, options, words, kept, others, found
        return Evaluation(records, missing, *about)

    if out is None:
        with TemporaryDirectory(prefix="probdice-") as temporary:
            return result_in(Path(temporary), None)
    target = _folder_for_results(Path(out), [reference, *methods.values()])
    with locked(target):
        result = result_in(target, target)
        result.write(target, parquet=parquet)
    return result


def _folder_for_results(out: Path, images: Iterable[Folder]) -> Path:
    """The folder, made where there is none; none of those that are compared."""
    if any(out.resolve() == Path(folder).resolve() for folder in images):
        raise InputError(
            f"{out}: is a folder of images that are compared; results need one of their own"
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be made: {error.strerror}") from error
    return out


def _inputs(jobs: Sequence[Job], workers: int, verify: bool) -> list[Inputs]:
    """What identifies the files of every job."""
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda job: inputs_of(job, verify=verify), jobs))


def _requests(
    jobs: Sequence[Job], inputs: Sequence[Inputs], options: Mapping[str, Options]
) -> dict[tuple[str, str], Request]:
    """What to ask of every job, given the options of every method."""
    return {
        (job.case, job.method): Request(job, options[job.method], job_inputs)
        for job, job_inputs in zip(jobs, inputs, strict=True)
    }


def _over_set(records: Iterable[Record], options: Options) -> dict[str, Given]:
    """The correspondence of every method over all of its cases that can be read."""
    overlaps: dict[str, list[Overlap]] = {}
    for record in records:
        if record.comparison is not None:
            overlaps.setdefault(record.method, []).append(record.comparison.overlap)
    found = {}
    for method, several in overlaps.items():
        try:
            total = Overlap.total(several)
            result = total.compare(match=cast(Match, options.match), merge=options.merge)
        except InputError as error:
            raise error.prefixed(f"{method}: no correspondence over all cases: ") from None
        found[method] = Given(tuple((group.reference, group.prediction) for group in result.groups))
    return found


def _first_of_two(progress: Callable[[Progress], None]) -> Callable[[Progress], None]:
    """Watches the pass that finds the correspondence; what fails will fail again."""
    return lambda now: progress(replace(now, total=2 * now.total, failed=0, latest=None))


def _second_of_two(progress: Callable[[Progress], None]) -> Callable[[Progress], None]:
    """Watches the pass that scores by it."""
    return lambda now: progress(replace(now, total=2 * now.total, done=now.total + now.done))


def _finished(
    requests: Mapping[tuple[str, str], Request],
    out: Path,
    workers: int,
    verify: bool,
    progress: Callable[[Progress], None] | None,
) -> tuple[Record, ...]:
    """The records of all requests: from the journal where they are finished, and else computed."""
    with Journal(out) as journal:
        records = _recorded(requests, journal, verify)
        resumed, failed = len(records), 0
        waiting = [request for key, request in requests.items() if key not in records]

        def notify(latest: Record | None) -> None:
            if progress is not None:
                progress(Progress(len(requests), len(records), failed, resumed, latest))

        notify(None)
        with closing(run(waiting, workers)) as lines:
            for line in lines:
                journal.append(line)
                record = Record.from_line(loads(line))
                records[record.case, record.method] = record
                failed += record.comparison is None
                notify(record)
    return tuple(records[key] for key in requests)


def _recorded(
    requests: Mapping[tuple[str, str], Request], journal: Journal, verify: bool
) -> dict[tuple[str, str], Record]:
    """What the journal holds of these requests: of this version, these options and these files.

    The latest line of a case is the one that counts.
    """
    asked = {key: request.options.to_dict() for key, request in requests.items()}
    records: dict[tuple[str, str], Record] = {}
    moved: dict[tuple[str, str], int] = {}
    for number, line in enumerate(read_lines(journal.path.parent)):
        key = line["case"], line["method"]
        request = requests.get(key)
        if request is None or line["version"] != __version__ or line["options"] != asked[key]:
            continue
        records.pop(key, None)
        moved.pop(key, None)
        if "comparison" in line and same_inputs(line["inputs"], request.inputs, verify=verify):
            files = files_of(request.job)
            with suppress(InputError):  # what cannot be read is computed again
                records[key] = Record.from_line(line | {"files": files})
                if line["files"] != files:
                    moved[key] = number
    if moved:
        _record_places(requests, journal, {*moved.values()})
    return records


def _record_places(
    requests: Mapping[tuple[str, str], Request], journal: Journal, numbers: set[int]
) -> None:
    """Append lines of the journal once more, with where their files lie by now.

    They are read a second time, since all of them at once may be more than fits in memory.
    """
    for number, line in enumerate(read_lines(journal.path.parent)):
        if number in numbers:
            job = requests[line["case"], line["method"]].job
            journal.append(dumps(line | {"files": files_of(job)}))


def _check_parquet() -> None:
    for module in ("pandas", "pyarrow"):
        if find_spec(module) is None:
            raise MissingExtraError(
                f'Parquet needs {module}, which is not installed: pip install "pandas" "pyarrow"'
            )
