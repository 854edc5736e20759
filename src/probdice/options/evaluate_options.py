"""The options of an evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from probdice.options.checks import (
    as_scheduler,
    as_subjects,
    as_workers,
    files_in,
    folder_in,
    number_in,
    numbers_in,
    texts_in,
)
from probdice.options.compare_options import CompareOptions
from probdice.options.declaration import Form, flag, option
from probdice.options.statistics_options import StatisticsOptions

__all__ = ["EvaluateOptions"]


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(StatisticsOptions, CompareOptions):
    """All options of an evaluation, except the folders of references, methods, raters and results.

    Patterns, measures and subjects are checked later, when the methods and cases are known.
    """

    pattern: str | Mapping[str, str] | None = option(
        None,
        lambda pattern: pattern,
        Form("Reading", "PATTERN", repeated=True, advanced=True),
        "Pattern of file names, in which {case} marks the case name, such as '{case}_seg.nii.gz'. "
        "To set the pattern of one folder, use reference:PATTERN, prediction:PATTERN, "
        "mask:PATTERN, image:PATTERN, or NAME:PATTERN with the name of a method or rater. "
        "'prediction:{case}_{method}.nii.gz' finds several methods in one folder. Can be "
        "repeated.",
    )
    mask: str | None = option(
        None,
        lambda folder: folder_in("mask", folder),
        Form("Comparison", "DIR", path=True),
        "Folder with one mask per case. Only voxels where the mask is not 0 are compared.",
    )
    image: str | None = option(
        None,
        lambda folder: folder_in("image", folder),
        Form("Output", "DIR", path=True),
        "Folder with the images that were segmented, one per case. The case pages show these "
        "images.",
    )
    surface: tuple[str, ...] = option(
        (),
        lambda files: files_in("surface", files),
        Form("Output", "FILE", repeated=True, path=True, advanced=True),
        "Surface on which to show values at vertices, such as lh.inflated or a .surf.gii file. "
        "Repeat the option for the other hemisphere.",
    )
    probabilities: bool = flag(
        "Reading",
        "Read the .npz probabilities of nnU-Net instead of its label maps.",
        advanced=True,
    )
    column: tuple[str, ...] = option(
        (),
        texts_in("column"),
        Form("Ranking", "NAME=FILE", repeated=True, path=True),
        "Add the measure NAME from a CSV or TSV file with the columns case, method and NAME. By "
        "default, lower values are better. If higher values are better, use NAME:higher=FILE. Can "
        "be repeated.",
    )
    subjects: str | Mapping[str, str] | None = option(
        None,
        as_subjects,
        Form("Ranking", "PATTERN|FILE", advanced=True),
        "Subject of every case: a pattern of case names such as '{subject}_{session}', or a TSV or "
        "CSV file with the columns case and subject. Confidence intervals and rank stability then "
        "resample subjects, and tests use one value per subject.",
    )
    indices: bool = flag(
        "Metrics",
        "Add other indices to cases.csv, such as Rand, variation of information, covering and "
        "mean IoU.",
        advanced=True,
    )
    component_threshold: float = option(
        0.5,
        lambda value: number_in("component_threshold", value, "from 0 to 1"),
        Form("Metrics", "J", kind=float, advanced=True),
        "Minimum Jaccard index at which a component counts as found; 0.5 by default.",
    )
    strata: tuple[float, ...] = option(
        (),
        lambda sizes: tuple(sorted(numbers_in("strata", sizes, "finite and at least 0"))),
        Form("Metrics", "SIZES", advanced=True),
        "Also count components by size in strata.csv. SIZES are the lower limits of the size "
        "ranges, such as 0,100,1000, in the unit of --minimum-size. Requires --components.",
    )
    workers: int | None = option(
        None,
        as_workers,
        Form("Comparison", "N", kind=int),
        "Total number of cores that processes and threads use; all cores by default.",
    )
    scheduler: str | None = option(
        None,
        as_scheduler,
        Form("Comparison", "ADDRESS", advanced=True),
        "Run on a Dask cluster (tcp://host:8786), with one task per case. The workers must have "
        "the files at the same paths.",
    )
    verify: bool = flag(
        "Reading",
        "Recognise finished cases by the SHA-256 of their files instead of the modification time.",
        advanced=True,
    )
    parquet: bool = flag("Output", "Also write the tables as Parquet.", advanced=True)
    columns: tuple[str, ...] = option(
        (),
        texts_in("columns", separator=","),
        Form("Output", "NAMES", advanced=True),
        "Columns of table.md and table.tex, separated by commas: place, mean_rank, stability, "
        "wins, equal_labels, cases, or names of measures.",
    )
    booktabs: bool = flag(
        "Output",
        "Write table.tex with the rules of the LaTeX package booktabs.",
        advanced=True,
    )

    @property
    def comparison(self) -> CompareOptions:
        """The options for comparing one case."""
        return CompareOptions(
            **{entry.name: getattr(self, entry.name) for entry in fields(CompareOptions)}
        )

    @property
    def statistics(self) -> StatisticsOptions:
        """The options for the statistics over all cases."""
        return StatisticsOptions(
            **{entry.name: getattr(self, entry.name) for entry in fields(StatisticsOptions)}
        )
