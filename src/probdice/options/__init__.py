"""The options of `compare`, `evaluate` and the commands, each declared once.

A field of a dataclass is the internal form of an option. Its declaration holds the check that
converts a user's value to that form, the help text, and the form on the command line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, get_args

from probdice.data.resampling import Interpolation, as_interpolation
from probdice.data.segmentation import as_sums, several_labels
from probdice.data.value_checks import Sums
from probdice.errors import InputError, Option
from probdice.method.background import Background
from probdice.method.matching import Fixed, Given, Rule
from probdice.method.merging import Merging
from probdice.method.region_labels import Label
from probdice.method.sides import SIDES, Both, Side
from probdice.method.similarity import Absolute, Similarity, as_similarity, similarity_from_dict
from probdice.options.checks import (
    TOLERANCE,
    GivenBackground,
    GivenNames,
    Match,
    Names,
    Priority,
    Scale,
    as_background,
    as_components,
    as_connected,
    as_files,
    as_folder,
    as_max_bytes,
    as_names_by_side,
    as_nested,
    as_penalty,
    as_priority,
    as_rule,
    as_scale,
    as_scheduler,
    as_subjects,
    as_tolerance,
    as_workers,
    by_side,
    given_from_list,
    numbers_in,
    one_of,
    rule_from_dict,
    texts_in,
)
from probdice.options.declaration import Declaration, declarations, option
from probdice.options.derived_regions import Members, as_derived

__all__ = [
    "SCHEMES",
    "TOLERANCE",
    "CompareOptions",
    "Correspondence",
    "EvaluateOptions",
    "GivenBackground",
    "GivenNames",
    "Match",
    "Members",
    "MissingRule",
    "Names",
    "Priority",
    "ReadOptions",
    "Scale",
    "Scheme",
    "as_workers",
    "given_from_list",
]

Correspondence = Literal["case", "set"]
MissingRule = Literal["worst", "zero", "exclude"]
Scheme = Literal["rank-then-aggregate", "aggregate-then-rank", "test-based"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)

MERGING: tuple[Merging, ...] = ("none", "prediction", "reference", "both")
READING: tuple[Any, ...] = ("compare", "evaluate", "info")
COMPARING: tuple[Any, ...] = ("compare", "evaluate")
ALL_IMAGES: tuple[Any, ...] = ("compare", "evaluate", "agree", "consensus")


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options of reading files.

    Attributes
    ----------
    ignore : tuple of int
        Labels of the reference whose pixels are excluded. With several raters, a pixel is excluded
        if any of them has the label.
    sums : Both of {"error", "normalise", "background"}
        How to handle probabilities that do not sum to 1.
    scale : float, Both of float, or None
        The value that means probability 1. One value applies to both sides where values exceed 1;
        the value of one side always applies.
    names : Both of path, pairs or None
        The names of labels: the path of a table, or pairs of a label and its name.
    priority : Both of tuple of str
        The regions that get a pixel where masks overlap, in order of priority.
    nested : Both of tuple of int
        The labels of the regions of nested channels, the background first; empty for channels that
        are not nested.
    max_bytes : int or None
        The largest size of the decompressed values of one file; by default, the memory of the
        machine. It does not change results, so `to_dict` omits it.
    """

    ignore: tuple[int, ...] = option(
        (),
        Declaration(
            check=lambda labels: several_labels(labels, "ignore"),
            help="Exclude voxels with this label in the reference, or in any rater. Can be "
            "repeated.",
            commands=ALL_IMAGES,
            panel="Comparison",
            metavar="LABEL",
            kind="integer",
            repeated=True,
        ),
    )
    sums: Both[Sums] = option(
        Both("error", "error"),
        Declaration(
            check=by_side("sums", as_sums, "error"),
            help="How to handle probabilities that do not sum to 1: error (the default), "
            "normalise (divide by the sum) or background (add the missing probability as a "
            "region).",
            commands=(*ALL_IMAGES, "info"),
            panel="Reading",
            metavar="HOW",
            repeated=True,
            by_side="For one side: reference:HOW or prediction:HOW.",
        ),
    )
    scale: Scale = option(
        None,
        Declaration(
            check=as_scale,
            help="Value that means probability 1: 100 for percentages, 255 for 8-bit maps. Label "
            "maps (one whole number per voxel) and values up to 1 are not scaled.",
            commands=READING,
            panel="Reading",
            metavar="S",
            repeated=True,
            by_side="reference:S or prediction:S always scales that side.",
        ),
    )
    names: Both[Names | None] = option(
        Both(None, None),
        Declaration(
            check=as_names_by_side,
            help="Table of label names: a FreeSurfer or 3D Slicer colour table, an ITK-SNAP label "
            "description, a BIDS dseg.tsv, an FSL .lut or atlas .xml, CSV or JSON.",
            commands=(*ALL_IMAGES, "info"),
            panel="Reading",
            metavar="FILE",
            repeated=True,
            path=True,
            by_side="For one side: reference:FILE or prediction:FILE.",
        ),
    )
    priority: Both[tuple[str, ...]] = option(
        Both((), ()),
        Declaration(
            check=by_side("priority", as_priority, ()),
            help="Where masks overlap, assign the voxel to the first of these regions, such as "
            "tumour,kidney.",
            commands=READING,
            panel="Reading",
            metavar="NAMES",
            repeated=True,
            by_side="For one side: reference:NAMES or prediction:NAMES.",
        ),
    )
    nested: Both[tuple[int, ...]] = option(
        Both((), ()),
        Declaration(
            check=by_side("nested", as_nested, ()),
            help="Read nested channels (whole ⊇ core ⊇ enhancing), such as sigmoid outputs: labels "
            "of the background, of the differences of successive channels, and of the last "
            "channel, such as 0,2,1,3.",
            commands=COMPARING,
            panel="Reading",
            metavar="LABELS",
            repeated=True,
            by_side="For one side: reference:LABELS or prediction:LABELS.",
        ),
    )
    max_bytes: int | None = option(
        None,
        Declaration(
            check=as_max_bytes,
            help="Largest size of the decompressed values of one file, in bytes; by default, the "
            "memory of the machine.",
            commands=(*ALL_IMAGES, "info", "check"),
            panel="Reading",
            metavar="N",
            kind="integer",
        ),
    )

    @classmethod
    def of(cls, **given: Any) -> Self:
        """Check the values that a user gave, and return them in their internal form."""
        declared = declarations(cls)  # type: ignore[arg-type]  # a class is hashable
        options = cls(**{name: declared[name].check(value) for name, value in given.items()})
        options.check_combination(given)
        return options

    def check_combination(self, given: Mapping[str, Any]) -> None:
        """Reject options that exclude each other."""

    def scale_of(self, side: Side) -> float | None:
        """The scale that was given for one side."""
        return self.scale[side] if isinstance(self.scale, Both) else None

    @property
    def common_scale(self) -> float | None:
        """The scale that was given for both sides."""
        return None if isinstance(self.scale, Both) else self.scale


@dataclass(frozen=True, kw_only=True)
class CompareOptions(ReadOptions):
    """All options that change a comparison. The images and the mask are not options.

    Attributes
    ----------
    similarity : Similarity
    match : {"overlap", "paper", "labels"}, Fixed or Given
        How regions are matched.
    merge : {"none", "prediction", "reference", "both"}
        The sides whose unmatched regions may be merged.
    background : Both of label, or None
        The label or name of the background of each side.
    resample : {"linear", "nearest"} or None
        How a prediction on another grid is brought onto the grid of the reference.
    ignore_geometry : bool
        Whether to ignore image geometry and compare in array order.
    geometry_tolerance : float
        The largest distance between the corners of two grids, in pixels.
    correspondence : {"case", "set"}
        Whether regions are matched in every case, or once for all cases of a method.
    boundaries : bool
        Whether to measure distances between the boundaries of corresponding regions.
    tolerance : tuple of float
        Tolerances of the surface Dice, in mm, or in pixels for images without geometry.
    infinite : float or None
        The distance of regions that one side lacks; None for infinite.
    derived : tuple of (str, tuple of int or str)
        The name and the members of each derived region.
    components : tuple of int or str, or None
        The classes that are divided into connected components; empty for all, None for none.
    connectivity : int or None
        The number of neighbours of a pixel; None for all.
    minimum_size : float
        The smallest size of a component, in mm³, or in pixels for images without geometry.
    """

    similarity: Similarity = option(
        Absolute,
        Declaration(
            check=as_similarity,
            help="absolute (the default) compares differences of probabilities, aitchison compares "
            "their ratios.",
            commands=("compare", "evaluate", "agree"),
            panel="Comparison",
            metavar="NAME",
            choices=("absolute", "aitchison"),
        ),
    )
    match: Rule = option(
        "overlap",
        Declaration(
            check=as_rule,
            help="How regions are matched: overlap (largest total overlap, the default), paper "
            "(the paper's rule), labels (equal labels), pairs of labels prediction=reference such "
            "as 0=csf,1=grey (other regions by overlap), or a .json file from an earlier compare "
            "--json.",
            commands=COMPARING,
            panel="Comparison",
            metavar="HOW",
        ),
    )
    merge: Merging = option(
        "none",
        Declaration(
            check=one_of("merge", MERGING),
            help="Merge unmatched regions of this side into matched ones: none (the default), "
            "prediction, reference or both.",
            commands=COMPARING,
            panel="Comparison",
            metavar="SIDE",
            choices=MERGING,
        ),
    )
    background: Background | None = option(
        None,
        Declaration(
            check=as_background,
            help="Label of the background, or its name. It is matched with itself, nothing is "
            "merged into it, and foreground numbers leave it out. none: there is no background.",
            commands=ALL_IMAGES,
            panel="Comparison",
            metavar="LABEL",
            repeated=True,
            by_side="If the sides differ: reference:LABEL and prediction:LABEL.",
        ),
    )
    correspondence: Correspondence = option(
        "case",
        Declaration(
            check=one_of("correspondence", ("case", "set")),
            help="case (the default): match the regions of every case separately; set: match once "
            "for all cases of a method, if labels (classes, clusters) mean the same in every case.",
            commands=("evaluate",),
            panel="Comparison",
            metavar="SCOPE",
            choices=("case", "set"),
        ),
    )
    boundaries: bool = option(
        False,
        Declaration(
            check=bool,
            help="Also measure distances between boundaries: Hausdorff (hd, hd95), average surface "
            "distances (assd, masd) and, with --tolerance, surface Dice (nsd).",
            commands=COMPARING,
            panel="Metrics",
            kind="flag",
        ),
    )
    tolerance: tuple[float, ...] = option(
        (),
        Declaration(
            check=lambda values: numbers_in("tolerance", values, "finite and at least 0"),
            help="Tolerance of the surface Dice, in mm (in voxels for images without geometry). "
            "Needs --boundaries. Can be repeated.",
            commands=COMPARING,
            panel="Metrics",
            metavar="MM",
            kind="number",
            repeated=True,
        ),
    )
    infinite: float | None = option(
        None,
        Declaration(
            check=as_penalty,
            help="Distance of regions that one side lacks, in mm; infinite by default. Needs "
            "--boundaries.",
            commands=COMPARING,
            panel="Metrics",
            metavar="MM",
            kind="number",
        ),
    )
    derived: tuple[tuple[str, tuple[Label, ...]], ...] = option(
        (),
        Declaration(
            check=as_derived,
            help="Also compare a union of regions, such as 'whole tumour=1,2,3', by labels or "
            "names; or all unions of nnU-Net's dataset.json. Can be repeated.",
            commands=COMPARING,
            panel="Metrics",
            metavar="NAME=LABELS",
            repeated=True,
        ),
    )
    components: tuple[Label, ...] | None = option(
        None,
        Declaration(
            check=as_components,
            help="Divide both sides into connected components (lesions), match them within every "
            "class, and count found, missed and false ones: all, or labels such as 1,2. Needs "
            "label maps, --background and the extra 'instances'.",
            commands=("evaluate",),
            panel="Metrics",
            metavar="LABELS",
        ),
    )
    connectivity: int | None = option(
        None,
        Declaration(
            check=as_connected,
            help="Neighbours of a voxel in a component: 6, 18 or 26 (the default), in 2-D 4 or 8 "
            "(the default). Needs --components.",
            commands=("evaluate",),
            panel="Metrics",
            metavar="N",
            kind="integer",
        ),
    )
    minimum_size: float = option(
        0.0,
        Declaration(
            check=lambda size: numbers_in("minimum_size", size, "finite and at least 0")[0],
            help="Leave out smaller components of both sides, in mm³ (in voxels for images without "
            "geometry and in 2-D). Needs --components.",
            commands=("evaluate",),
            panel="Metrics",
            metavar="MM3",
            kind="number",
        ),
    )
    resample: Interpolation | None = option(
        None,
        Declaration(
            check=as_interpolation,
            help="Bring a prediction on another grid onto the grid of the reference: linear "
            "(labels become probabilities) or nearest (labels stay labels). On the same lattice "
            "it is cropped or padded without interpolation. By default, different grids are an "
            "error.",
            commands=ALL_IMAGES,
            panel="Reading",
            metavar="HOW",
            choices=("linear", "nearest"),
        ),
    )
    ignore_geometry: bool = option(
        False,
        Declaration(
            check=bool,
            help="Ignore image geometry; compare in array order.",
            commands=ALL_IMAGES,
            panel="Reading",
            kind="flag",
        ),
    )
    geometry_tolerance: float = option(
        TOLERANCE,
        Declaration(
            check=as_tolerance,
            help="Largest allowed distance between the corners of two grids, in voxels; 0.1 by "
            "default.",
            commands=ALL_IMAGES,
            panel="Reading",
            metavar="T",
            kind="number",
        ),
    )

    def check_combination(self, given: Mapping[str, Any]) -> None:
        """Reject options that exclude each other."""
        distances = (*(("tolerance", one) for one in self.tolerance), ("infinite", self.infinite))
        for name, distance in distances:
            if distance is not None and not self.boundaries:
                raise InputError(
                    Option(name, distance),
                    " has no effect without boundaries. Add ",
                    Option("boundaries", python="boundaries=True"),
                    ".",
                )
        self._check_components()
        if self.merge != "none" and (self.match == "labels" or isinstance(self.match, Given)):
            conflict = (
                Option("match", "labels")
                if self.match == "labels"
                else "an earlier comparison as match"
            )
            raise InputError(
                Option("merge", self.merge),
                " cannot be combined with ",
                conflict,
                ": the correspondence is fixed, so no region can be merged. Remove one of the two.",
            )
        for name in ("geometry_tolerance", "resample"):
            if self.ignore_geometry and given.get(name) is not None:
                raise InputError(
                    Option(name, given[name]),
                    " cannot be combined with ",
                    Option("ignore_geometry", python="ignore_geometry=True"),
                    ": geometry is then not compared. Remove one of the two.",
                )

    def _check_components(self) -> None:
        """Reject components without a background, and their options without components."""
        if self.components is not None and self.background is None:
            raise InputError("components need a background; pass ", Option("background", 0))
        for name in ("connectivity", "minimum_size", "strata"):
            value = getattr(self, name, None)
            if value and self.components is None:
                raise InputError(
                    Option(name, value),
                    " has no effect without components. Add ",
                    Option("components", "all", python="components=True"),
                    ".",
                )

    def given(self, groups: Given) -> Self:
        """Return these options with a fixed correspondence."""
        return replace(self, match=groups, merge="none")

    def in_words(self) -> list[str]:
        """Describe the similarity, and the matching if it is not the default."""
        words = [f"{self.similarity} similarity"]
        if isinstance(self.match, Fixed):
            words.append("matched by given pairs of labels")
        elif isinstance(self.match, Given):
            words.append("matched as in an earlier comparison")
        elif self.match == "labels":
            words.append("equal labels matched")
        elif self.match == "paper":
            words.append("matched by the paper's rule")
        if self.correspondence == "set":
            words.append("one correspondence for all cases")
        return words

    def to_dict(self) -> dict[str, Any]:
        """Return the options as JSON data."""
        match: Any = self.match
        if isinstance(match, Fixed):
            match = {"fixed": [list(pair) for pair in match.pairs]}
        elif isinstance(match, Given):
            match = {"given": [[list(labels) for labels in group] for group in match.groups]}
        content = {
            "similarity": self.similarity.to_dict(),
            "match": match,
            "merge": self.merge,
            "ignore": list(self.ignore),
            "sums": self.sums.to_dict(),
            "scale": self.common_scale,
            "scales": {side: self.scale_of(side) for side in SIDES},
            "names": self.names.to_dict(),
            "priority": {side: list(self.priority[side]) for side in SIDES},
            "ignore_geometry": self.ignore_geometry,
            "tolerance": self.geometry_tolerance,
        }
        if any(self.nested):
            content["nested"] = {side: list(self.nested[side]) for side in SIDES}
        if self.background is not None:
            content["background"] = self.background.to_dict()
        if self.resample is not None:
            content["resample"] = self.resample
        if self.correspondence != "case":
            content["correspondence"] = self.correspondence
        if self.boundaries:
            content["boundaries"] = {
                "tolerance": list(self.tolerance),
                "infinite": self.infinite,
            }
        if self.components is not None:
            content["components"] = {
                "labels": list(self.components),
                "connectivity": self.connectivity,
                "minimum_size": self.minimum_size,
            }
        if self.derived:
            content["derived"] = {name: list(members) for name, members in self.derived}
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Restore options from JSON data."""
        scales = content["scales"]
        by_side = any(scale is not None for scale in scales.values())
        boundaries, components = content.get("boundaries"), content.get("components")
        options = cls.of(
            components=components and (components["labels"] or True),
            connectivity=components and components["connectivity"],
            minimum_size=components["minimum_size"] if components else 0,
            boundaries=boundaries is not None,
            **({} if boundaries is None else boundaries),
            similarity=similarity_from_dict(content["similarity"]),
            match=rule_from_dict(content["match"]),
            merge=content["merge"],
            ignore=content["ignore"],
            sums=content["sums"],
            scale=scales if by_side else content["scale"],
            priority=content["priority"],
            nested=content.get("nested", ()),
            background=content.get("background"),
            derived=content.get("derived"),
            resample=content.get("resample"),
            ignore_geometry=content["ignore_geometry"],
            correspondence=content.get("correspondence", "case"),
            geometry_tolerance=None if content["ignore_geometry"] else content["tolerance"],
        )
        return replace(options, names=Both(**content["names"]).map(_names_from_json))


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(CompareOptions):
    """All options of an evaluation. The folders of references, methods and raters are not options.

    Attributes
    ----------
    pattern : str, mapping or None
        The paths of files, with ``{case}`` for the name of the case.
    mask : str or None
        A folder with one mask per case.
    image : str or None
        A folder with the segmented images.
    surface : tuple of str
        Surfaces on which the pages of cases show values at vertices.
    probabilities : bool
        Whether to read nnU-Net's probabilities (.npz) instead of the label map beside them.
    missing : {"worst", "zero", "exclude"}
        How a missing or failed case of a method counts.
    rank_by : tuple of str
        The measures that rank the methods; empty for the default.
    scheme : {"rank-then-aggregate", "aggregate-then-rank", "test-based"}
        How the methods are ordered.
    column : tuple of str
        External columns, as ``NAME=FILE``.
    subjects : str, mapping or None
        A pattern of case names with ``{subject}``, the path of a table, or the subject of every
        case.
    indices : bool
        Whether to add the numbers of `Comparison.indices` to the table of cases.
    component_threshold : float
        The smallest Jaccard index of a found component.
    strata : tuple of float
        The lower limits of ranges of sizes of components.
    workers : int or None
        The number of cores.
    scheduler : str or None
        The address of a Dask scheduler.
    verify : bool
        Whether to recognise finished cases by the content of their files.
    parquet : bool
        Whether to also write the tables as Parquet.
    columns : tuple of str
        The columns of table.md and table.tex; empty for all.
    booktabs : bool
        Whether table.tex uses the LaTeX package booktabs.
    """

    pattern: str | Mapping[str, str] | None = option(
        None,
        Declaration(
            check=lambda pattern: pattern,  # checked with the names of the methods
            help="Position of the case name in file names, such as '{case}_seg.nii.gz'. For one "
            "side or method: reference:PATTERN, prediction:PATTERN, mask:PATTERN, image:PATTERN, "
            "name:PATTERN. 'prediction:{case}_{method}.nii.gz' finds methods in one folder. Can be "
            "repeated.",
            commands=("evaluate",),
            panel="Reading",
            metavar="PATTERN",
            repeated=True,
        ),
    )
    mask: str | None = option(
        None,
        Declaration(
            check=as_folder,
            help="Folder with one mask per case. Only voxels where it is not 0 are compared.",
            commands=("evaluate",),
            panel="Comparison",
            metavar="DIR",
            path=True,
        ),
    )
    image: str | None = option(
        None,
        Declaration(
            check=as_folder,
            help="Folder with the segmented images, shown on the pages of cases.",
            commands=("evaluate",),
            panel="Output",
            metavar="DIR",
            path=True,
        ),
    )
    surface: tuple[str, ...] = option(
        (),
        Declaration(
            check=as_files,
            help="Surface to show values at vertices on, such as lh.inflated or a .surf.gii file. "
            "Repeat for the other hemisphere.",
            commands=("evaluate",),
            panel="Output",
            metavar="FILE",
            repeated=True,
            path=True,
        ),
    )
    probabilities: bool = option(
        False,
        Declaration(
            check=bool,
            help="Read the .npz probabilities of nnU-Net instead of its label maps.",
            commands=("evaluate",),
            panel="Reading",
            kind="flag",
        ),
    )
    missing: MissingRule = option(
        "worst",
        Declaration(
            check=one_of("missing", ("worst", "zero", "exclude")),
            help="How missing and failed cases of a method count. worst (the default): they rank "
            "last; zero: they rank last and count as 0 in means; exclude: the ranking excludes "
            "these cases for all methods.",
            commands=("evaluate",),
            panel="Ranking",
            metavar="RULE",
            choices=("worst", "zero", "exclude"),
        ),
    )
    rank_by: tuple[str, ...] = option(
        (),
        Declaration(
            check=texts_in("rank_by"),  # checked with the measures of the run
            help="Measure that ranks methods: score (the default), adjusted_score (the default "
            "with --merge), foreground_dice (the default with --background), another measure, a "
            "column of cases.csv, or MEASURE[@TOLERANCE]:REGION, such as dice:2, hd95:tumour or "
            "nsd@1:tumour. Repeat to rank by several measures with equal weights.",
            commands=("evaluate",),
            panel="Ranking",
            metavar="MEASURE",
            repeated=True,
        ),
    )
    scheme: Scheme = option(
        "rank-then-aggregate",
        Declaration(
            check=one_of("scheme", SCHEMES),
            help="How methods are ordered. rank-then-aggregate (the default): by the mean rank "
            "within cases; aggregate-then-rank: by the mean, or the median if a value is infinite; "
            "test-based: by the number of methods that they beat significantly.",
            commands=("evaluate",),
            panel="Ranking",
            metavar="SCHEME",
            choices=SCHEMES,
        ),
    )
    column: tuple[str, ...] = option(
        (),
        Declaration(
            check=texts_in("column"),
            help="Measure from a CSV file with the columns case, method and NAME, as NAME=FILE. "
            "Lower values are better, or higher ones with NAME:higher=FILE. Can be repeated.",
            commands=("evaluate",),
            panel="Ranking",
            metavar="NAME=FILE",
            repeated=True,
            path=True,
        ),
    )
    subjects: "str | Mapping[str, str] | None" = option(
        None,
        Declaration(
            check=as_subjects,
            help="Which cases belong to the same subject: a pattern of case names such as "
            "'{subject}_{session}', or a TSV file with the columns case and subject. Confidence "
            "intervals, tests and rank stability then resample subjects.",
            commands=("evaluate",),
            panel="Ranking",
            metavar="PATTERN|FILE",
        ),
    )
    indices: bool = option(
        False,
        Declaration(
            check=bool,
            help="Add other indices to cases.csv: Rand, variation of information, covering, mean "
            "IoU and others.",
            commands=("evaluate",),
            panel="Metrics",
            kind="flag",
        ),
    )
    component_threshold: float = option(
        0.5,
        Declaration(
            check=lambda value: numbers_in("component_threshold", value, "from 0 to 1")[0],
            help="Smallest Jaccard index of a found component; 0.5 by default.",
            commands=("evaluate",),
            panel="Metrics",
            metavar="J",
            kind="number",
        ),
    )
    strata: tuple[float, ...] = option(
        (),
        Declaration(
            check=lambda sizes: tuple(sorted(numbers_in("strata", sizes, "finite and at least 0"))),
            help="Also count components by size in strata.csv: lower limits of the ranges, such as "
            "0,100,1000, in the unit of --minimum-size. Needs --components.",
            commands=("evaluate",),
            panel="Metrics",
            metavar="SIZES",
        ),
    )
    workers: int | None = option(
        None,
        Declaration(
            check=as_workers,
            help="Number of cores for processes and threads together; all by default.",
            commands=("evaluate",),
            panel="Comparison",
            metavar="N",
            kind="integer",
        ),
    )
    scheduler: str | None = option(
        None,
        Declaration(
            check=as_scheduler,
            help="Run on a Dask cluster (tcp://host:8786), with one task per case. The workers "
            "must have the files at the same paths.",
            commands=("evaluate",),
            panel="Comparison",
            metavar="ADDRESS",
        ),
    )
    verify: bool = option(
        False,
        Declaration(
            check=bool,
            help="Identify finished cases by the content of their files, not by size and time.",
            commands=("evaluate",),
            panel="Reading",
            kind="flag",
        ),
    )
    parquet: bool = option(
        False,
        Declaration(
            check=bool,
            help="Also write the tables as Parquet.",
            commands=("evaluate",),
            panel="Output",
            kind="flag",
        ),
    )
    columns: tuple[str, ...] = option(
        (),
        Declaration(
            check=texts_in("columns", separator=","),
            help="Columns of table.md and table.tex, separated by commas: place, mean_rank, "
            "stability, wins, equal_labels, cases, or measures.",
            commands=("evaluate",),
            panel="Output",
            metavar="NAMES",
        ),
    )
    booktabs: bool = option(
        False,
        Declaration(
            check=bool,
            help="Write table.tex with the rules of the LaTeX package booktabs.",
            commands=("evaluate",),
            panel="Output",
            kind="flag",
        ),
    )

    @property
    def comparison(self) -> CompareOptions:
        """The options of the comparison of one case."""
        return CompareOptions(
            **{one.name: getattr(self, one.name) for one in fields(CompareOptions)}
        )


def _names_from_json(content: Any) -> Names | None:
    """Names from JSON data. The path of a table may be relative to the folder of the file."""
    if content is None or isinstance(content, str):
        return content
    return tuple((label, str(name)) for label, name in content)
