"""Score the cases of one or more methods against a reference, and rank the methods.

`pairing` finds the jobs (by `patterns`). `running` scores them (`case_scoring`) in processes
(`worker`). `journal` stores each case as soon as it is finished. `results` computes statistics from
the records. `exchanged_labels` compares labels over all cases, `rater_comparison` computes
inter-rater agreement, and `tables` and `publishing` write the files.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import chain
from json import dumps, loads
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Literal, cast

from probdice.data.machine import cores
from probdice.data.value_checks import Sums
from probdice.errors import InputError, Message, MissingExtraError, Note, Option, Words
from probdice.evaluation.case_scoring import (
    Inputs,
    Request,
    files_of,
    inputs_of,
    regions_of,
    same_inputs,
    unscored,
)
from probdice.evaluation.folders import Folder, methods_of, patterns_of
from probdice.evaluation.journal import Journal, locked, read_lines
from probdice.evaluation.pairing import Job, Missing, find_images, pair
from probdice.evaluation.rater_comparison import (
    CONSENSUS,
    Yardstick,
    check_raters,
    rater_comparison_of,
    write_consensus,
)
from probdice.evaluation.recompare import compare_again
from probdice.evaluation.record import Record
from probdice.evaluation.results import Evaluation, as_measure, as_missing_rule, read_summary
from probdice.evaluation.running import run, run_on_cluster
from probdice.evaluation.statistics import MissingRule
from probdice.evaluation.tables import Others
from probdice.files.sources import natural
from probdice.method.matching import Given, check_fixed, listed
from probdice.method.merging import Merging
from probdice.method.overlap import Overlap
from probdice.method.region_labels import Label
from probdice.method.sides import SIDES, Side
from probdice.method.similarity import Similarity
from probdice.metrics.registry import MEASURES, MeasureName
from probdice.options import (
    Correspondence,
    GivenNames,
    Match,
    Options,
    Priority,
    as_workers,
)
from probdice.version import __version__

__all__ = [
    "MEASURES",
    "Evaluation",
    "MeasureName",
    "Missing",
    "MissingRule",
    "Options",
    "Progress",
    "Record",
    "Yardstick",
    "compare_again",
    "evaluate",
    "evaluate_folders",
    "read_summary",
]

NO_FAILURES: Mapping[str, Note] = MappingProxyType({})


@dataclass(frozen=True)
class Progress:
    """The progress of a run.

    Attributes
    ----------
    doing : {"comparisons", "overlaps"}
        The unit of the numbers below: comparisons, one per case and method. With
        ``correspondence="set"``, overlaps are computed first.
    total : int
        The number of all comparisons.
    done : int
        The number of finished comparisons, including earlier runs and failures.
    failed : int
        The number of failures in this run.
    resumed : int
        The number of comparisons finished by earlier runs.
    latest : Record or None
        The comparison that was finished last; None at the start.
    """

    doing: Literal["comparisons", "overlaps"]
    total: int
    done: int
    failed: int
    resumed: int
    latest: Record | None


def evaluate(
    reference: Folder | None,
    predictions: Mapping[str, Folder] | Folder,
    *,
    raters: Mapping[str, Folder] | None = None,
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
    mask: Folder | None = None,
    image: Folder | None = None,
    probabilities: bool = False,
    missing: MissingRule = "worst",
    rank_by: MeasureName | None = None,
    ignore_geometry: bool = False,
    geometry_tolerance: float | None = None,
    max_bytes: int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    verify: bool = False,
    parquet: bool = False,
    indices: bool = False,
    background: Label | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Score one or more methods against a folder of reference segmentations and rank them.

    By default, a case is a file, named without its suffix, or a subfolder. `pattern` changes this.
    Each finished case is stored in ``out/cases.jsonl`` immediately, so an interrupted run continues
    when it is started again. A case that fails is recorded with its error message. The next run
    tries it again.

    Parameters
    ----------
    reference : path or None
        The folder of reference segmentations (ground truth). With `raters` it may be None. The
        reference of a case is then the consensus, the mean of all raters that have the case.
    predictions : mapping of str to path, or path
        The folder of every method, by name. A single path is one method with the name of its
        folder.
    raters : mapping of str to path, optional
        The folder of every rater (annotator), by name; at least two. Each rater is the reference
        of an additional evaluation of all methods and all other raters, in ``out/raters``. The
        agreement of methods with raters is compared with inter-rater agreement.
    out : path, optional
        The results folder, created if it does not exist. It receives cases.jsonl (all records, in
        the order of completion), cases.csv, regions.csv, ranking.csv, table.md, table.tex, how.md,
        files.csv and summary.json. Without it, nothing is stored.
    similarity, match, merge
        As in `compare`.
    correspondence : {"case", "set"}, optional
        Whether regions are matched in every case ("case"), or once for all cases of a method
        ("set"), which suits clusters and classes. "set" applies `match` and `merge` to the sum of
        the overlaps of all cases, and scores every case with the result. It reads every file
        twice.
    ignore : int or iterable of int, optional
        Labels of the reference whose pixels are excluded.
    sums : {"error", "normalise", "background"} or mapping, optional
        What to do if probabilities do not sum to 1, as in `read`; a mapping such as
        ``{"prediction": "background"}`` applies to one side.
    scale : float or mapping, optional
        The value that means probability 1: 100 for percentages, 255 for 8-bit maps. A number
        applies to files with values above 1, and leaves label maps unchanged. A mapping
        such as ``{"prediction": 255}`` scales one side in any case.
    names : mapping, sequence or path, optional
        The names of labels, as in `read`; ``{"reference": …, "prediction": …}`` per side.
    priority : sequence of str or mapping, optional
        The order of regions where masks overlap, as in `read`; a mapping has one per side.
    pattern : str or mapping, optional
        The paths of files, with ``{case}`` for the name of the case: ``"{case}_seg.nii.gz"``,
        ``"{case}/pve_*.nii.gz"`` (one file per region), ``"{case:path}.nii.gz"`` (case names with
        folders), ``"{case}.mat:groundTruth/0"``. A mapping has patterns for ``"reference"``,
        ``"prediction"``, ``"mask"``, ``"image"`` or the name of a method.
        ``"{case}_{method}.nii.gz"`` for the prediction finds several methods in one folder.
    mask : path, optional
        A folder with a mask for every case. Only pixels where the mask is not 0 are compared.
    image : path, optional
        A folder with the segmented images, which case pages show as background images.
    probabilities : bool, optional
        Whether to read nnU-Net's probabilities (.npz) instead of the label map beside them.
    missing : {"worst", "zero", "exclude"}, optional
        How a missing or failed case of a method counts: the method ranks last on it ("worst"); it
        also enters means as 0 ("zero"); or no method is ranked on it ("exclude").
    rank_by : str, optional
        The measure that ranks the methods, one of `MEASURES`. The default is "foreground_dice" if
        `background` is given, else "adjusted_score" if regions are merged, else "score".
    ignore_geometry : bool, optional
        Whether to ignore image geometry and compare in array order. Cannot be combined with
        `geometry_tolerance`.
    geometry_tolerance : float, optional
        The largest accepted distance between the grids, in pixels; 0.1 by default.
    max_bytes : int, optional
        The largest accepted size of the decompressed values of one file, as in `read`.
    workers : int, optional
        The number of cores for processes and threads together; all by default. The result does
        not depend on it.
    scheduler : str, optional
        The address of a Dask scheduler, such as ``tcp://host:8786``. The workers of that cluster
        then compare the cases, one case per thread. They must see the files under the same paths.
    verify : bool, optional
        Whether to recognise finished cases by the content of their files instead of size and
        modification time.
    parquet : bool, optional
        Whether to also write the tables as Parquet (needs pandas and pyarrow).
    indices : bool, optional
        Whether to add the numbers of `Comparison.indices` to the table of cases.
    background : int or str, optional
        The background label. If given, methods are ranked by foreground Dice by default, and the
        table of cases has the numbers of `Comparison.detection`.
    progress : callable, optional
        Called with a `Progress` at the start and after every case.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        If folders are missing or have no case in common, or if another run writes into `out`.
        Missing and failed cases do not raise: see `Evaluation.missing` and
        `Evaluation.failures`.

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
    Evaluation (absolute): 2 cases, 1 method: 2 scored, 0 failed, 0 missing
      mine: mean score 0.7500 over 2, 95 % CI withheld
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
        raters={} if raters is None else methods_of(raters),
        out=out,
        pattern=pattern,
        mask=mask,
        image=image,
        probabilities=probabilities,
        missing=missing,
        rank_by=rank_by,
        workers=workers,
        scheduler=scheduler,
        verify=verify,
        parquet=parquet,
        others=Others(indices, background is not None, background),
        words="python",
        progress=progress,
        compiling=None,
    )


def evaluate_folders(
    reference: Folder | None,
    methods: dict[str, str],
    options: Options,
    *,
    raters: dict[str, str],
    out: Folder | None,
    pattern: str | Mapping[str, str] | None,
    mask: Folder | None,
    image: Folder | None,
    probabilities: bool,
    missing: MissingRule,
    rank_by: MeasureName | None,
    workers: int | None,
    scheduler: str | None,
    verify: bool,
    parquet: bool,
    others: Others,
    words: Words,
    progress: Callable[[Progress], None] | None,
    compiling: Callable[[], None] | None,
) -> Evaluation:
    """Evaluate with validated options.

    `words` selects how notes and errors in files name options. `compiling` is called when a kernel
    is compiled, which happens once per machine.
    """
    run_one = partial(
        _evaluated,
        options=options,
        mask=mask,
        image=image,
        probabilities=probabilities,
        missing=missing,
        rank_by=rank_by,
        workers=as_workers(workers) or cores(),
        scheduler=scheduler,
        verify=verify,
        parquet=parquet,
        others=others,
        words=words,
        progress=progress,
        compiling=compiling,
    )
    if raters:
        check_raters(raters, methods)
        with nullcontext(out) if out is not None else _temporary() as place:
            images = [*raters.values(), *methods.values()]
            target = _folder_for_results(Path(place), images)
            return _with_raters(run_one, reference, methods, raters, target, out, pattern)
    if reference is None:
        raise InputError("reference must be a folder, found None; only raters can replace it")
    return run_one(reference, methods, out=out, pattern=pattern)


def _temporary() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="probdice-")


def _with_raters(
    run_one: "partial[Evaluation]",
    reference: Folder | None,
    methods: dict[str, str],
    raters: dict[str, str],
    place: Path,
    out: Folder | None,
    pattern: str | Mapping[str, str] | None,
) -> Evaluation:
    """Evaluate against each rater, then against the reference or the raters' consensus."""
    given = patterns_of(pattern, [*methods, *raters])
    by_name = {name: text for name, text in given.methods.items() if text is not None}
    if isinstance(pattern, Mapping) and "reference" in pattern:  # raters are references too
        by_name |= {name: pattern.get(name, pattern["reference"]) for name in raters}
    shared = {"mask": given.mask, "image": given.image}
    shared_patterns = {name: text for name, text in shared.items() if text is not None}
    against = {}
    for rater, folder in raters.items():
        compared = methods | {name: path for name, path in raters.items() if name != rater}
        patterns = {name: by_name[name] for name in compared if name in by_name} | shared_patterns
        if rater in by_name:
            patterns["reference"] = by_name[rater]
        against[rater] = run_one(
            folder, compared, out=place / "raters" / rater, pattern=patterns or None
        )
    first = next(iter(against.values()))
    spanning, failed = write_consensus(against, first.options, place, cores())
    agreement = rater_comparison_of(
        against,
        [name for name in first.methods if name not in raters],
        raters,
        first.rank_by,
        failed,
        reference_is_mean=reference is None,
    )
    patterns = {name: by_name[name] for name in methods if name in by_name} | shared_patterns
    if spanning is not None:
        patterns["reference"] = spanning
    of_mean = partial(run_one, place / CONSENSUS, methods, pattern=patterns or None, failed=failed)
    if reference is None:
        return of_mean(out=out, rater_comparison=agreement)
    of_mean(out=place / "raters" / CONSENSUS)
    return run_one(reference, methods, out=out, pattern=pattern, rater_comparison=agreement)


def _evaluated(
    reference: Folder,
    methods: dict[str, str],
    *,
    options: Options,
    out: Folder | None,
    pattern: str | Mapping[str, str] | None,
    mask: Folder | None,
    image: Folder | None,
    probabilities: bool,
    missing: MissingRule,
    rank_by: MeasureName | None,
    workers: int,
    scheduler: str | None,
    verify: bool,
    parquet: bool,
    others: Others,
    words: Words,
    progress: Callable[[Progress], None] | None,
    compiling: Callable[[], None] | None,
    rater_comparison: Yardstick | None = None,
    failed: Mapping[str, Note] = NO_FAILURES,
) -> Evaluation:
    """Evaluate all methods against one reference.

    Cases in `failed` have no consensus as reference. They fail with these notes.
    """
    if parquet:
        _check_parquet()
    rule = as_missing_rule(missing)
    measure = _default_measure(options, others) if rank_by is None else as_measure(rank_by, others)
    patterns = patterns_of(pattern, methods)
    jobs, lacking, folders = pair(
        Path(reference),
        {name: Path(folder) for name, folder in methods.items()},
        patterns=patterns,
        mask=None if mask is None else Path(mask),
        probabilities=probabilities,
        failed=failed,
    )
    _check_priority(jobs, options)
    if image is not None:
        find_images(Path(image), patterns.image, dict.fromkeys(job.case for job in jobs))

    named_by = {Path(folder): name for name, folder in methods.items()}

    def result_in(folder: Path, out: Path | None) -> Evaluation:
        inputs = _inputs(jobs, workers, verify)
        finished = partial(
            _finished,
            out=folder,
            workers=workers,
            scheduler=scheduler,
            verify=verify,
            failed=failed,
            progress=progress,
            compiling=compiling,
        )
        groups: dict[str, Given] = {}
        if options.correspondence == "set":
            overlap_options = replace(options, match="overlap", merge="none")
            requests = _requests(jobs, inputs, dict.fromkeys(folders, overlap_options), folder)
            groups = _over_set(finished(requests, "overlaps"), options)
        method_options = {
            name: options.given(groups[name]) if name in groups else options for name in folders
        }
        requests = _requests(jobs, inputs, method_options, folder)
        records = finished(requests, "comparisons")
        _check_noted_priority(records)
        if scored := [one.comparison.overlap for one in records if one.comparison is not None]:
            check_fixed(options.match, scored)
        return Evaluation(
            records,
            lacking,
            os.fspath(reference),
            {name: os.fspath(path) for name, path in folders.items()},
            options,
            words=words,
            out=out,
            others=others,
            correspondences=groups,
            missing_rule=rule,
            rank_by=measure,
            mask=None if mask is None else os.fspath(mask),
            image=None if image is None else os.fspath(image),
            patterns=replace(
                patterns,
                methods={
                    name: patterns.methods[name if name in methods else named_by[path]]
                    for name, path in folders.items()
                },
            ),
            probabilities=probabilities,
            yardstick=rater_comparison,
        )

    if out is None:
        with _temporary() as temporary:
            return result_in(Path(temporary), None)
    images = [reference, *methods.values(), *(one for one in (mask, image) if one is not None)]
    target = _folder_for_results(Path(out), images)
    with locked(target):
        result = result_in(target, target)
        result.write(target, parquet=parquet)
    return result


def _folder_for_results(out: Path, images: Iterable[Folder]) -> Path:
    """Create the results folder if necessary. It must not be an input folder."""
    if any(out.resolve() == Path(folder).resolve() for folder in images):
        raise InputError(f"{out}: is an input folder; use another folder for the results")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot create the folder: {error.strerror}") from error
    return out


def _check_priority(jobs: Sequence[Job], options: Options) -> None:
    """Reject names in the priority of a side that are no region of any of its cases.

    This checks sides with one file per region, whose names are known before reading.
    `_check_noted_priority` checks regions inside files.
    """
    for side in SIDES:
        regions = sorted({name for job in jobs for name in job.regions(side)}, key=natural)
        unknown = [name for name in options.priority[side] if name not in regions]
        if regions and unknown:
            raise InputError(
                Option("priority", ",".join(options.priority[side])),
                f" names {listed(unknown)}, but the regions of the {side} are "
                f"{listed(regions, 20)}",
            )


def _check_noted_priority(records: Iterable[Record]) -> None:
    """Reject names in the priority that are absent from every scored case."""
    absent: list[dict[Message, Message]] = [  # side, option and name, with the regions
        {
            note.message[:3]: note.message
            for note in record.comparison.notes
            if note.kind == "priority"
        }
        for record in records
        if record.comparison is not None
    ]
    for key, message in absent[0].items() if absent else ():
        if all(key in notes for notes in absent):
            raise InputError(*message, " (in every case)")


def _inputs(jobs: Sequence[Job], workers: int, verify: bool) -> list[Inputs]:
    """The identities of the files of every job."""
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda job: inputs_of(job, verify=verify), jobs))


def _default_measure(options: Options, others: Others) -> MeasureName:
    """The default measure that ranks the methods."""
    if others.background is not None:
        return "foreground_dice"
    return "score" if options.merge == "none" else "adjusted_score"


def _requests(
    jobs: Sequence[Job], inputs: Sequence[Inputs], options: Mapping[str, Options], folder: Path
) -> dict[tuple[str, str], Request]:
    """The requests for all jobs, given the options of every method."""
    return {
        (job.case, job.method): Request(job, options[job.method], job_inputs, files_of(job, folder))
        for job, job_inputs in zip(jobs, inputs, strict=True)
    }


def _over_set(records: Iterable[Record], options: Options) -> dict[str, Given]:
    """The correspondence of every method over all of its cases that could be compared."""
    overlaps: dict[str, list[Overlap]] = {}
    for record in records:
        if record.comparison is not None:
            overlaps.setdefault(record.method, []).append(record.comparison.overlap)
    groups = {}
    for method, several in overlaps.items():
        try:
            total = Overlap.total(several)
            result = total.compare(match=cast(Match, options.match), merge=options.merge)
        except InputError as error:
            raise error.prefixed(f"{method}: cannot match regions over all cases: ") from None
        groups[method] = Given(
            tuple((group.reference, group.prediction) for group in result.groups)
        )
    return groups


def _finished(
    requests: Mapping[tuple[str, str], Request],
    doing: Literal["comparisons", "overlaps"],
    *,
    out: Path,
    workers: int,
    scheduler: str | None,
    verify: bool,
    failed: Mapping[str, Note],
    progress: Callable[[Progress], None] | None,
    compiling: Callable[[], None] | None,
) -> tuple[Record, ...]:
    """The records of all requests, read from the journal or computed."""
    with Journal(out) as journal:
        records = _recorded(requests, journal, verify)
        resumed, failures = len(records), 0
        waiting = [request for key, request in requests.items() if key not in records]
        without_reference = [request for request in waiting if request.job.case in failed]
        waiting = [request for request in waiting if request.job.case not in failed]

        def notify(latest: Record | None) -> None:
            if progress is None:
                return
            now = Progress(doing, len(requests), len(records), failures, resumed, latest)
            # A case whose overlap fails also fails in its comparison, and is reported then.
            progress(now if doing == "comparisons" else replace(now, failed=0, latest=None))

        notify(None)
        running = (
            run(waiting, workers, compiling)
            if scheduler is None
            else run_on_cluster(waiting, scheduler)
        )
        with closing(running) as lines:
            for line in chain(
                (
                    unscored(request, *failed[request.job.case].message)
                    for request in without_reference
                ),
                lines,
            ):
                journal.append(line)
                record = Record.from_line(loads(line), out)
                records[record.case, record.method] = record
                failures += record.comparison is None
                notify(record)
    return tuple(records[key] for key in requests)


def _recorded(
    requests: Mapping[tuple[str, str], Request], journal: Journal, verify: bool
) -> dict[tuple[str, str], Record]:
    """The records of these requests in the journal, with the same version, options and files.

    The latest line of a case counts.
    """
    expected_options = {key: request.options.to_dict() for key, request in requests.items()}
    records: dict[tuple[str, str], Record] = {}
    moved: dict[tuple[str, str], int] = {}
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
        moved.pop(key, None)
        if (
            "comparison" in line
            and line.get("regions", {}) == regions_of(request.job)
            and same_inputs(line["inputs"], request.inputs, verify=verify)
        ):
            with suppress(InputError):  # an invalid line is computed again
                records[key] = Record.from_line(line | {"files": request.files}, out)
                if line["files"] != request.files:
                    moved[key] = number
    if moved:
        _record_places(requests, journal, {*moved.values()})
    return records


def _record_places(
    requests: Mapping[tuple[str, str], Request], journal: Journal, numbers: set[int]
) -> None:
    """Append lines of the journal again, with the current paths of their files.

    The journal is read a second time, because all lines together may not fit in memory.
    """
    for number, line in enumerate(read_lines(journal.path.parent)):
        if number in numbers:
            files = requests[line["case"], line["method"]].files
            journal.append(dumps(line | {"files": files}))


def _check_parquet() -> None:
    for module in ("pandas", "pyarrow"):
        if find_spec(module) is None:
            raise MissingExtraError(
                f'Parquet needs {module}, which is not installed: pip install "pandas" "pyarrow"'
            )
