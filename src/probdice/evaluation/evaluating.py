"""evaluate(): score methods against a reference, against raters, or against both."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from probdice.data.machine import cores
from probdice.data.resampling import Interpolation
from probdice.data.value_checks import Sums
from probdice.errors import InputError, Words
from probdice.evaluation.external_columns import as_external_column
from probdice.evaluation.finishing import Progress
from probdice.evaluation.folders import Folder, methods_of, patterns_of, raters_of
from probdice.evaluation.journal import locked
from probdice.evaluation.one_reference import Run, folder_for_results, temporary_folder
from probdice.evaluation.rater_comparison import (
    CONSENSUS,
    check_raters,
    rater_comparison_of,
    write_consensus,
)
from probdice.evaluation.remarks import rater_file_notes
from probdice.evaluation.results import Evaluation
from probdice.evaluation.running import WorkerPool
from probdice.evaluation.subjects import GivenSubjects
from probdice.evaluation.tables import ExtraColumns
from probdice.method.merging import Merging
from probdice.method.region_labels import Label
from probdice.method.sides import Both, Side
from probdice.method.similarity import Similarity
from probdice.options import (
    CorrespondenceScope,
    EvaluateOptions,
    GivenBackground,
    GivenNames,
    Match,
    Members,
    MissingRule,
    Priority,
    Scheme,
)
from probdice.options.checks import folder_in
from probdice.options.declaration import declarations

__all__ = ["evaluate", "evaluate_folders"]


def evaluate(
    reference: Folder | None,
    predictions: Mapping[str, Folder] | Folder,
    *,
    raters: Mapping[str, Folder] | None = None,
    out: Folder | None = None,
    similarity: str | Similarity = "absolute",
    match: Match = "overlap",
    merge: Merging = "none",
    correspondence: CorrespondenceScope = "case",
    ignore: Iterable[int] | int = (),
    sums: Sums | Mapping[Side, Sums] = "error",
    scale: float | Mapping[Side, float] | None = None,
    names: "GivenNames | Mapping[Side, GivenNames]" = None,
    priority: "Priority | Mapping[Side, Priority]" = (),
    nested: Iterable[int] | Mapping[Side, Iterable[int]] = (),
    pattern: str | Mapping[str, str] | None = None,
    mask: Folder | None = None,
    image: Folder | None = None,
    surface: Folder | Iterable[Folder] = (),
    probabilities: bool = False,
    missing: MissingRule = "worst",
    rank_by: str | Iterable[str] | None = None,
    scheme: Scheme = "rank-then-aggregate",
    column: str | Iterable[str] | Mapping[str, Folder] = (),
    subjects: GivenSubjects | None = None,
    resample: Interpolation | None = None,
    ignore_geometry: bool = False,
    geometry_tolerance: float | None = None,
    max_bytes: int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    verify: bool = False,
    parquet: bool = False,
    columns: str | Iterable[str] = (),
    booktabs: bool = False,
    indices: bool = False,
    boundaries: bool = False,
    tolerance: Iterable[float] | float = (),
    infinite: float | None = None,
    derived: Members | None = None,
    components: bool | Label | Iterable[Label] = False,
    connectivity: int | None = None,
    minimum_size: float = 0.0,
    component_threshold: float = 0.5,
    strata: Iterable[float] = (),
    background: GivenBackground = None,
    progress: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Score one or more methods against a folder of reference segmentations and rank them.

    By default, a case is a file (the case name is the file name without its suffix) or a subfolder.
    Use `pattern` for other file names. Each finished case is stored in ``out/cases.jsonl``
    immediately, so repeating the call continues an interrupted run. A failed case is recorded with
    its error message and is computed again by the next run.

    Parameters
    ----------
    reference : path or None
        The folder of reference segmentations (ground truth), or None if `raters` are given. With
        None, the reference of a case is the consensus: the mean of all raters who segmented the
        case. A case that fewer than two raters segmented has no reference.
    predictions : mapping of str to path, or path
        The folder of every method, by method name. A single path is the folder of one method, which
        gets the name of this folder.
    raters : mapping of str to path, optional
        The folder of every rater (annotator), by name. At least two raters are required. All
        methods and all other raters are also evaluated against each rater, in ``out/raters``. The
        agreement of methods with raters is compared with inter-rater agreement.
        If `reference` is given, the methods are also evaluated against the consensus.
    out : path, optional
        The results folder, created if it does not exist. The run writes the following files:
        cases.jsonl (all records, in the order of completion), cases.csv, regions.csv, ranking.csv,
        table.md, table.tex, how.md, files.csv and summary.json. Some options add more files. By
        default, no files are written.
    similarity, match, merge
        As in `compare`.
    correspondence : {"case", "set"}, optional
        Whether regions are matched separately in every case ("case"), or once for all cases of a
        method ("set"). Use "set" if labels, such as clusters or classes, have the same meaning in
        every case. `match` and `merge` are then applied to the sum of the overlaps of all cases,
        and every file is read twice.
    ignore : int or iterable of int, optional
        The reference labels whose pixels are excluded.
    sums : {"error", "normalise", "background"} or mapping, optional
        How to handle probabilities that do not sum to 1 (see `read`). A mapping such as
        ``{"prediction": "background"}`` applies to one side.
    scale : float or mapping, optional
        The value that means probability 1: 100 for percentages, 255 for 8-bit maps. A number
        applies only to files with probabilities above 1.5; label maps are not scaled. A mapping
        such as ``{"prediction": 255}`` always applies to the side that it names.
    names : mapping, sequence or path, optional
        The names of labels (see `read`). Use ``{"reference": …, "prediction": …}`` if the sides
        differ.
    priority : sequence of str or mapping, optional
        The priority of regions where masks overlap (see `read`). A mapping sets one order per side.
    nested : iterable of int or mapping, optional
        The labels of the regions that nested channels (whole ⊇ core ⊇ enhancing) define, as in
        `Segmentation.from_nested`. The regions are the background, the differences between
        successive channels, and the last channel. A mapping such as
        ``{"prediction": (0, 2, 1, 3)}`` applies to one side.
    pattern : str or mapping, optional
        A pattern of file paths, in which ``{case}`` marks the name of the case:
        ``"{case}_seg.nii.gz"``, ``"{case}/pve_*.nii.gz"`` (one file per region),
        ``"{case:path}.nii.gz"`` (case names with folders) or ``"{case}.mat:groundTruth/0"``. A
        mapping sets separate patterns for ``"reference"``, ``"prediction"``, ``"mask"``,
        ``"image"`` or the name of a method or rater. ``"{case}_{method}.nii.gz"`` for the
        prediction finds several methods in one folder.
    mask : path, optional
        A folder with a mask for every case. Only pixels where the mask is not 0 are compared.
    image : path, optional
        A folder with the images that were segmented, one per case. Case pages show these images
        behind the regions.
    surface : path or several, optional
        Surface files, one per hemisphere. Case pages show vertex values on these surfaces.
    probabilities : bool, optional
        Whether to read nnU-Net's probabilities (.npz) instead of the label maps in the same folder.
    missing : {"worst", "zero", "exclude"}, optional
        How a missing or failed case of a method counts. "worst": the method ranks last for this
        case. "zero": the method ranks last, and the case counts as 0 in means (as infinite if lower
        values are better). "exclude": the case is excluded from the ranking for all methods.
    rank_by : str or iterable of str, optional
        The measures that rank the methods, with equal weights: names in `MEASURES`, columns of
        cases.csv, or ``"MEASURE[@TOLERANCE]:REGION"`` such as ``"dice:2"``, ``"hd95:tumour"`` or
        ``"nsd@1:tumour"``. The default is "foreground_dice" if `background` is given, else
        "adjusted_score" if regions are merged, else "score".
    scheme : {"rank-then-aggregate", "aggregate-then-rank", "test-based"}, optional
        How methods are ordered. "rank-then-aggregate": by their rank within a case, averaged over
        cases. "aggregate-then-rank": by the mean of their values (the median if a value is
        infinite). "test-based": by the share of other methods that they beat significantly.
    column : str, iterable of str or mapping, optional
        Measures to read from CSV or TSV files, as ``"NAME=FILE"`` or ``{"NAME": FILE}``. A file has
        the columns case, method and NAME. Lower values are better by default. If higher values are
        better, use ``"NAME:higher=FILE"``.
    subjects : str, path or mapping, optional
        The subject of every case: a pattern of case names such as ``"{subject}_{session}"``, the
        path of a TSV or CSV file with the columns case and subject, or a mapping of cases to
        subjects.
        Confidence intervals and rank stability then resample subjects, and tests use one value per
        subject.
    resample : {"linear", "nearest"}, optional
        As in `compare`. A case fails if pixels of its reference are outside the field of view of
        the prediction, unless `background` is given.
    ignore_geometry : bool, optional
        Whether to ignore image geometry and compare in array order. This option cannot be
        combined with `geometry_tolerance` or `resample`.
    geometry_tolerance : float, optional
        The maximum accepted distance between corresponding corners of two grids, in pixels; 0.1 by
        default.
    max_bytes : int, optional
        Maximum memory, in bytes, for the decompressed values of one file (see `read`).
    workers : int, optional
        The number of cores for processes and threads together; all cores by default. The result
        does not depend on this number.
    scheduler : str, optional
        The address of a Dask scheduler, such as ``tcp://host:8786``. The Dask workers then compare
        the cases, one case per thread. The files must have the same paths on these workers.
    verify : bool, optional
        Whether to recognise finished cases by the SHA-256 of their files instead of the
        modification time.
    parquet : bool, optional
        Whether to also write the tables as Parquet files (requires pandas and pyarrow).
    columns : str or iterable of str, optional
        The columns of table.md and table.tex: "place", "mean_rank", "stability", "wins",
        "equal_labels", "cases" or names of measures. By default, all columns that apply to the run.
    booktabs : bool, optional
        Whether table.tex uses the rules of the LaTeX package booktabs.
    indices : bool, optional
        Whether to add the values of `Comparison.indices` to the table of cases.
    boundaries : bool, optional
        Whether to measure distances between boundaries (see `Comparison.boundaries`). The table of
        cases contains means over regions (without the background, if one is given), and the table
        of regions contains the individual values.
    tolerance : float or iterable of float, optional
        Tolerances of the surface Dice in mm (in pixels for images without geometry).
    infinite : float, optional
        The distance for regions that are absent from one side, in the unit of `tolerance`; infinite
        by default.
    derived : mapping of str to label or sequence of labels, optional
        Unions of regions to compare in every case, as in `Comparison.derived`:
        ``{"whole tumour": (1, 2, 3)}``. A member that is absent from a case is empty in that case;
        a member that is absent from all cases is an error. The tables contain the Dice and, with
        `boundaries`, the boundary distances of each union. To rank by a union, use
        ``rank_by="dice:whole tumour"``.
    components : bool, label or iterable of labels, optional
        True to divide both sides into connected components (lesions), or the classes to divide.
        Components are matched one-to-one and many-to-one within corresponding classes. The table of
        cases contains the numbers of found, missed and false components, F1 (recognition quality),
        the segmentation quality, the product of these two qualities (panoptic quality) and the mean
        Dice, in total and per class. The file components.csv contains one row per component.
        Components require label maps and `background`.
    connectivity : {2, 4, 8, 6, 18, 26}, optional
        The number of neighbours that are connected to a pixel; all neighbours by default.
    minimum_size : float, optional
        Minimum component size in mm³ (in pixels for 2-D images and images without geometry).
        Smaller components of both sides are removed.
    component_threshold : float, optional
        Minimum Jaccard index at which a matched component counts as found.
    strata : iterable of float, optional
        The lower limits of size ranges, in the unit of `minimum_size`. The file strata.csv contains
        the same measures for each range, computed from the components of all cases.
    background : int, str or mapping of side to int or str, optional
        As in `compare`. With a background, foreground Dice is the default ranking measure, and the
        table of cases includes the foreground measures and the values of `Comparison.detection`.
    progress : callable, optional
        Called with a `Progress` at the start and after every task. There is one task per case and
        method. With ``correspondence="set"``, computing the overlaps adds the same number of tasks.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        If an option is invalid, if folders are missing or have no case in common, or if another run
        is writing into `out`.
        Missing and failed cases do not raise an error; see `Evaluation.missing` and
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
    >>> print(result)
    Evaluation (absolute): 2 cases, 1 method: 2 scored, 0 missing, 0 failed
      mine: mean score 0.7500 over 2, 95 % CI withheld
    >>> result.summaries("lowest_dice")["mine"].interval.reason
    '2 cases, fewer than 6'
    >>> folder.cleanup()
    """
    keywords = locals()
    return evaluate_folders(
        folder_in("reference", reference),
        methods_of(predictions),
        EvaluateOptions.of(
            **{name: keywords[name] for name in declarations(EvaluateOptions) if name in keywords}
        ),
        raters={} if raters is None else raters_of(raters),
        out=folder_in("out", out),
        others=ExtraColumns(indices, background is not None, background is not None),
        words="python",
        progress=progress,
        compiling=None,
    )


def evaluate_folders(
    reference: Folder | None,
    methods: dict[str, str],
    options: EvaluateOptions,
    *,
    raters: dict[str, str],
    out: Folder | None,
    others: ExtraColumns,
    words: Words,
    progress: Callable[[Progress], None] | None,
    compiling: Callable[[], None] | None,
) -> Evaluation:
    """Evaluate with validated options."""
    with WorkerPool() as pool:
        run = Run(options, others, words, pool, progress, compiling)
        if raters:
            check_raters(raters, methods)
            with nullcontext(out) if out is not None else temporary_folder() as results_folder:
                images = [*raters.values(), *methods.values()]
                target = folder_for_results(Path(results_folder), images)
                return _with_raters(run, reference, methods, raters, target, out)
        if reference is None:
            raise InputError(
                "reference=None requires raters, but none are given; pass raters or a reference"
            )
        return run.against(reference, methods, out=out, pattern=options.pattern)


def _with_raters(
    run: Run,
    reference: Folder | None,
    methods: dict[str, str],
    raters: dict[str, str],
    results_folder: Path,
    out: Folder | None,
) -> Evaluation:
    """Evaluate against each rater, the raters' consensus and, if given, the reference."""
    if reference is None and run.options.components is not None:
        raise InputError(
            "components require label maps, but the consensus of raters contains probabilities. "
            "Use a folder of label maps as reference, such as the output of probdice consensus "
            "--labels."
        )
    pattern = run.options.pattern
    all_patterns = patterns_of(pattern, [*methods, *raters])
    by_name = {name: text for name, text in all_patterns.methods.items() if text is not None}
    if isinstance(pattern, Mapping) and "reference" in pattern:  # raters are references too
        by_name |= {name: pattern.get(name, pattern["reference"]) for name in raters}
    image_patterns = {"mask": all_patterns.mask, "image": all_patterns.image}

    def patterns(names: Iterable[str], reference: str | None) -> dict[str, str] | None:
        """Return the patterns of the given methods or raters; None if there are no patterns."""
        patterns_by_name = (
            {name: by_name.get(name) for name in names} | image_patterns | {"reference": reference}
        )
        return {name: text for name, text in patterns_by_name.items() if text is not None} or None

    evaluations = {}
    for rater, folder in raters.items():
        other_folders = methods | {name: path for name, path in raters.items() if name != rater}
        evaluations[rater] = replace(run, options=_without_external(run.options)).against(
            folder,
            other_folders,
            out=results_folder / "raters" / rater,
            pattern=patterns(other_folders, by_name.get(rater)),
            raters=raters,
        )
    first_evaluation = next(iter(evaluations.values()))
    with locked(results_folder):
        consensus_pattern, failures = write_consensus(
            evaluations, first_evaluation.options, results_folder, cores()
        )
    agreement = rater_comparison_of(
        evaluations,
        [name for name in first_evaluation.methods if name not in raters],
        raters,
        first_evaluation.rank_by[0],
        failures,
        reference_is_mean=reference is None,
        notes=tuple(
            note
            for rater, evaluation in evaluations.items()
            for note in rater_file_notes(rater, evaluation)
        ),
    )
    result = replace(run, options=_for_consensus(run.options)).against(
        results_folder / CONSENSUS,
        methods,
        out=out if reference is None else results_folder / "raters" / CONSENSUS,
        pattern=patterns(methods, consensus_pattern),
        rater_comparison=agreement if reference is None else None,
        failures=failures,
    )
    if reference is None:
        return result
    return run.against(reference, methods, out=out, pattern=pattern, rater_comparison=agreement)


def _without_external(options: EvaluateOptions) -> EvaluateOptions:
    """Return the options for evaluations against raters, without external columns.

    External columns contain values only for methods.
    """
    external = {as_external_column(column).name for column in options.column}
    measures = tuple(name for name in options.rank_by if name not in external)
    return replace(options, column=(), rank_by=measures, columns=())


def _for_consensus(options: EvaluateOptions) -> EvaluateOptions:
    """Return the options for the evaluation against the consensus, which contains probabilities.

    Options for reading the raters do not apply to the files of the consensus. Components require
    label maps, so options for components do not apply either.
    """
    rank_by, columns = (
        tuple(name for name in names if not name.startswith("components_"))
        for names in (options.rank_by, options.columns)
    )
    return replace(
        options,
        sums=replace(options.sums, reference="error"),
        scale=replace(options.scale, reference=None)
        if isinstance(options.scale, Both)
        else options.scale,
        priority=replace(options.priority, reference=()),
        nested=replace(options.nested, reference=()),
        components=None,
        connectivity=None,
        minimum_size=0.0,
        strata=(),
        rank_by=rank_by,
        columns=columns,
    )
