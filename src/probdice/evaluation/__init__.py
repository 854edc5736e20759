"""Score the cases of one or more methods against a reference, and rank the methods.

`pairing` finds the jobs (by `patterns`); `running` scores them (`scoring`) in processes (`worker`);
`journal` stores each as soon as it is finished; `results` computes statistics from the records.
`labels` compares labels over all cases, `yardstick` computes inter-rater agreement, and `tables`
and `publishing` write the files.
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
    write_consensus,
    yardstick_of,
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
    """How far a run is.

    Attributes
    ----------
    doing : {"comparisons", "overlaps"}
        What is counted: comparisons, one per case and method; or, for one correspondence over all
        cases, first the overlaps that it is found on.
    total : int
        The number of cases and methods in all.
    done : int
        How many are finished, including those of earlier runs and those that failed.
    failed : int
        How many failed in this run.
    resumed : int
        How many were finished by earlier runs.
    latest : Record or None
        The one that was finished just now; None at the start.
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
    """Compare every case of a folder with the predictions of one method or several.

    A case is a file, named without its suffix, or a subfolder; `pattern` says otherwise. Each
    finished case is kept in ``out/cases.jsonl`` at once, so a run that was interrupted or killed
    continues where it was when it is started again. A case that fails is recorded with its
    message, and tried again by the next run.

    Parameters
    ----------
    reference : path or None
        The folder of the reference. None where `raters` take its place: the reference then is
        their consensus, the mean of all that have a case.
    predictions : mapping of str to path, or path
        A folder for every method; of a single one the name of the folder is that of the method.
    raters : mapping of str to path, optional
        Folders of several people's segmentations of the same cases. Each becomes the reference of
        an evaluation of its own, in ``out/raters``, of all methods and all other raters; what
        methods reach against the raters is held to what these reach among themselves.
    out : path, optional
        The folder for the results, made where there is none: cases.jsonl (everything, in the
        order of finishing), cases.csv, regions.csv, ranking.csv, table.md, table.tex, how.md,
        files.csv and summary.json. Nothing is kept without it.
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
        ``"prediction"``, ``"mask"``, ``"image"`` or the name of a method;
        ``"{case}_{method}.nii.gz"`` for the prediction finds several methods in one folder.
    mask : path, optional
        A folder with a mask for every case; only pixels where it is not 0 are compared.
    image : path, optional
        A folder with the images that were segmented, for the pages of cases to show.
    probabilities : bool, optional
        Whether to take nnU-Net's .npz of probabilities instead of the label map it lies beside.
    missing : {"worst", "zero", "exclude"}, optional
        How a case that a method lacks, or that cannot be compared, counts: it ranks last
        ("worst"); it also enters means as 0 ("zero"); or no method is ranked by it ("exclude").
    rank_by : str, optional
        The measure to rank methods by, one of `MEASURES`. By default "foreground_dice" where a
        `background` is named, "adjusted_score" where regions are merged, and else "score".
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
    scheduler : str, optional
        The address of a scheduler of Dask, ``tcp://host:8786``: cases are then compared by the
        workers of that cluster, one a thread. They must see the files under the same paths.
    verify : bool, optional
        Whether a finished case is recognised by the content of its files, not by their size and
        time of modification.
    parquet : bool, optional
        Whether to write the tables as Parquet too (needs pandas and pyarrow).
    indices : bool, optional
        Whether the table of cases has the numbers of `Comparison.indices` too.
    background : int or str, optional
        The label that is no foreground. With it methods are ranked by the mean Dice of the
        foreground, and the table of cases has the numbers of `Comparison.detection` too.
    progress : callable, optional
        Called with a `Progress` at the start and after every case.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        When folders are missing or have no case in common, or another run writes into `out`. A
        case that is missing or cannot be compared is no error: see `Evaluation.missing` and
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
    """The same by options that are checked; notes and errors in the files are in these words.

    `compiling` is called when a kernel is compiled, which happens once on a machine.
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
        raise InputError("reference must be a folder where there are no raters, found None")
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
    """Each rater as the reference, then the reference itself or the raters' consensus."""
    said = patterns_of(pattern, [*methods, *raters])
    general = {name: found for name, found in said.methods.items() if found is not None}
    if isinstance(pattern, Mapping) and "reference" in pattern:  # raters are references, too
        general |= {name: pattern.get(name, pattern["reference"]) for name in raters}
    shared = {"mask": said.mask, "image": said.image}  # by all references
    besides = {name: found for name, found in shared.items() if found is not None}
    against = {}
    for rater, folder in raters.items():
        compared = methods | {name: path for name, path in raters.items() if name != rater}
        patterns = {name: general[name] for name in compared if name in general} | besides
        if rater in general:
            patterns["reference"] = general[rater]
        against[rater] = run_one(
            folder, compared, out=place / "raters" / rater, pattern=patterns or None
        )
    first = next(iter(against.values()))
    spanning, failed = write_consensus(against, first.options, place, cores())
    yardstick = yardstick_of(
        against,
        [name for name in first.methods if name not in raters],
        raters,
        first.rank_by,
        failed,
        reference_is_mean=reference is None,
    )
    patterns = {name: general[name] for name in methods if name in general} | besides
    if spanning is not None:
        patterns["reference"] = spanning
    of_mean = partial(run_one, place / CONSENSUS, methods, pattern=patterns or None, failed=failed)
    if reference is None:
        return of_mean(out=out, yardstick=yardstick)
    of_mean(out=place / "raters" / CONSENSUS)
    return run_one(reference, methods, out=out, pattern=pattern, yardstick=yardstick)


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
    yardstick: Yardstick | None = None,
    failed: Mapping[str, Note] = NO_FAILURES,
) -> Evaluation:
    """One reference and all methods.

    Cases in `failed` have a reference that could not be made. They fail with these notes.
    """
    if parquet:
        _check_parquet()
    rule = as_missing_rule(missing)
    measure = _usual_measure(options, others) if rank_by is None else as_measure(rank_by, others)
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

    def result_in(folder: Path, kept: Path | None) -> Evaluation:
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
        found: dict[str, Given] = {}
        if options.correspondence == "set":
            alone = replace(options, match="overlap", merge="none")
            requests = _requests(jobs, inputs, dict.fromkeys(folders, alone), folder)
            found = _over_set(finished(requests, "overlaps"), options)
        asked = {name: options.given(found[name]) if name in found else options for name in folders}
        requests = _requests(jobs, inputs, asked, folder)
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
            out=kept,
            others=others,
            correspondences=found,
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
            yardstick=yardstick,
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


def _check_priority(jobs: Sequence[Job], options: Options) -> None:
    """Reject names in the priority of a side that are no region of any of its cases.

    Names are known before files are read where files are one region each. Regions inside of one
    file are for `_check_noted_priority`.
    """
    for side in SIDES:
        regions = sorted({name for job in jobs for name in job.regions(side)}, key=natural)
        unknown = [name for name in options.priority[side] if name not in regions]
        if regions and unknown:
            raise InputError(
                Option("priority", ",".join(options.priority[side])),
                f" names {listed(unknown)}, which no case of the {side} has; the regions are "
                f"{listed(regions, 20)}",
            )


def _check_noted_priority(records: Iterable[Record]) -> None:
    """Reject names in the priority that are noted as absent in every case that was scored."""
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
            raise InputError(*message, ", and so it is in every case")


def _inputs(jobs: Sequence[Job], workers: int, verify: bool) -> list[Inputs]:
    """What identifies the files of every job."""
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda job: inputs_of(job, verify=verify), jobs))


def _usual_measure(options: Options, others: Others) -> MeasureName:
    """What methods are ranked by where nothing is said."""
    if others.background is not None:
        return "foreground_dice"
    return "score" if options.merge == "none" else "adjusted_score"


def _requests(
    jobs: Sequence[Job], inputs: Sequence[Inputs], options: Mapping[str, Options], folder: Path
) -> dict[tuple[str, str], Request]:
    """What to ask of every job, given the options of every method."""
    return {
        (job.case, job.method): Request(job, options[job.method], job_inputs, files_of(job, folder))
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
    """The records of all requests: from the journal where they are finished, and else computed."""
    with Journal(out) as journal:
        records = _recorded(requests, journal, verify)
        resumed, failures = len(records), 0
        waiting = [request for key, request in requests.items() if key not in records]
        unmade = [request for request in waiting if request.job.case in failed]
        waiting = [request for request in waiting if request.job.case not in failed]

        def notify(latest: Record | None) -> None:
            if progress is None:
                return
            now = Progress(doing, len(requests), len(records), failures, resumed, latest)
            # A case that fails while overlaps are computed fails again, and is reported then.
            progress(now if doing == "comparisons" else replace(now, failed=0, latest=None))

        notify(None)
        running = (
            run(waiting, workers, compiling)
            if scheduler is None
            else run_on_cluster(waiting, scheduler)
        )
        with closing(running) as lines:
            for line in chain(
                (unscored(request, *failed[request.job.case].message) for request in unmade), lines
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
    """The records of these requests in the journal: of this version, these options and files.

    The latest line of a case counts.
    """
    asked = {key: request.options.to_dict() for key, request in requests.items()}
    records: dict[tuple[str, str], Record] = {}
    moved: dict[tuple[str, str], int] = {}
    out = journal.path.parent
    for number, line in enumerate(read_lines(out)):
        key = line["case"], line["method"]
        request = requests.get(key)
        if request is None or line["version"] != __version__ or line["options"] != asked[key]:
            continue
        records.pop(key, None)
        moved.pop(key, None)
        if (
            "comparison" in line
            and line.get("regions", {}) == regions_of(request.job)
            and same_inputs(line["inputs"], request.inputs, verify=verify)
        ):
            with suppress(InputError):  # what cannot be read is computed again
                records[key] = Record.from_line(line | {"files": request.files}, out)
                if line["files"] != request.files:
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
            files = requests[line["case"], line["method"]].files
            journal.append(dumps(line | {"files": files}))


def _check_parquet() -> None:
    for module in ("pandas", "pyarrow"):
        if find_spec(module) is None:
            raise MissingExtraError(
                f'Parquet needs {module}, which is not installed: pip install "pandas" "pyarrow"'
            )
