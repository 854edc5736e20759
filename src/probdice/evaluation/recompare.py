"""Compare a case of a finished run again to obtain its images."""

from math import isclose, isnan
from pathlib import Path

from probdice.comparison.result import Comparison
from probdice.errors import InputError, ProbdiceError
from probdice.evaluation.case_scoring import compare_job, files_of
from probdice.evaluation.pairing import ROLES, Job
from probdice.evaluation.record import Record
from probdice.options import CompareOptions, as_workers

__all__ = ["compare_again"]

EQUAL = 1e-6  # tolerance for scores and Dice, because machines round differently


def compare_again(
    record: Record,
    options: CompareOptions,
    *,
    base_folder: Path | None = None,
    workers: int | None = None,
) -> Comparison:
    """Compare the files of a record again, with the options of the original run.

    Parameters
    ----------
    record : Record
    options : CompareOptions
        The options of the `Evaluation`.
    seen_from : path, optional
        The HTML page of the case shows file names relative to this folder; full paths by default.
    workers : int, optional
        The number of threads; all cores by default.

    Returns
    -------
    Comparison
        The comparison with its images, which the record does not contain.

    Raises
    ------
    InputError
        If a file is missing or unreadable, or if the new results differ from the recorded results.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from probdice.evaluation import compare_again, evaluate
    >>> folder = tempfile.TemporaryDirectory()
    >>> for name, labels in (("truth", [1, 1, 2, 2]), ("mine", [5, 5, 5, 8])):
    ...     os.mkdir(os.path.join(folder.name, name))
    ...     np.save(os.path.join(folder.name, name, "a"), np.array(labels))
    >>> result = evaluate(*(os.path.join(folder.name, name) for name in ("truth", "mine")))
    >>> compare_again(result.records[0], result.options).map().tolist()
    [1.0, 1.0, 0.0, 1.0]
    >>> folder.cleanup()
    """
    files = {role: record.paths(role) for role in ROLES}
    job = Job(record.case, record.method, files, record.regions)
    try:
        names = None if base_folder is None else files_of(job, base_folder)
        comparison = compare_job(job, options, as_workers(workers), names)
    except (ProbdiceError, MemoryError):
        raise
    except Exception as error:  # readers of corrupt files raise various exceptions
        raise InputError(f"{type(error).__name__}: {error}") from error
    comparison.requested_boundaries()  # for the page of the case
    if record.comparison is not None and not _is_same_result(record.comparison, comparison):
        raise InputError("the files have changed since the evaluation and give different results")
    return comparison


def _is_same_result(first: Comparison, second: Comparison) -> bool:
    """Return whether both comparisons have the same groups, scores and Dice."""
    return (
        [(group.reference, group.prediction) for group in first.groups]
        == [(group.reference, group.prediction) for group in second.groups]
        and _is_equal(first.score, second.score)
        and all(
            _is_equal(first_group.dice, second_group.dice)
            for first_group, second_group in zip(first.groups, second.groups, strict=True)
        )
    )


def _is_equal(first: float, second: float) -> bool:
    close = isclose(first, second, rel_tol=EQUAL, abs_tol=EQUAL)
    return close or (isnan(first) and isnan(second))
