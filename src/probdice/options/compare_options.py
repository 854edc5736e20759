"""The options of a comparison."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, Self, get_args

from probdice.data.resampling import Interpolation, as_interpolation
from probdice.errors import InputError, Option
from probdice.method.background import Background
from probdice.method.matching import RULES, GivenGroups, GivenPairs, Matching, Rule
from probdice.method.merging import MERGING, Merging
from probdice.method.region_labels import Label
from probdice.method.sides import Both
from probdice.method.similarity import BUILT_IN, Absolute, Similarity, as_similarity
from probdice.options.boundary_distances import BOUNDARY_DISTANCES, BOUNDARY_SHARES
from probdice.options.checks import (
    TOLERANCE,
    OneOf,
    as_background,
    as_components,
    as_connected,
    as_penalty,
    as_rule,
    as_tolerance,
    number_in,
    numbers_in,
)
from probdice.options.declaration import Form, declarations, flag, option
from probdice.options.derived_regions import as_derived
from probdice.options.read_options import ALL_IMAGES, COMPARING, ReadOptions
from probdice.options.stored_options import stored_options, values_from_dict

__all__ = ["CompareOptions", "CorrespondenceScope"]

CorrespondenceScope = Literal["case", "set"]
BOUNDARIES_OPTION = Option("boundaries", python="boundaries=True")
INTERPOLATIONS = "linear (labels become probabilities) or nearest (labels remain labels)."
COMPONENTS_OPTION = Option("components", "all", python="components=True")


@dataclass(frozen=True, kw_only=True)
class CompareOptions(ReadOptions):
    """The options of a comparison. The images and the mask are not options."""

    similarity: Similarity = option(
        Absolute,
        as_similarity,
        Form(
            *("Comparison", "NAME", ("compare", "evaluate", "agree")),
            choices=tuple(one.name for one in BUILT_IN),
        ),
        "Similarity of probability vectors: "
        f"{', '.join(f'{one.name} ({one.help})' for one in BUILT_IN)}.",
    )
    match: Rule = option(
        "overlap",
        as_rule,
        Form("Comparison", "HOW", COMPARING),
        f"How to match regions: {', '.join(f'{name} ({r.help})' for name, r in RULES.items())}, "
        "pairs of labels (prediction=reference) such as 0=csf,1=grey (other regions are matched by "
        "overlap), or a .json file that compare --json wrote.",
    )
    merge: Merging = option(
        "none",
        OneOf("merge", MERGING),
        Form("Comparison", "SIDE", COMPARING),
        "Merge unmatched regions of this side into matched ones: none (the default), prediction, "
        "reference or both.",
    )
    background: Background | None = option(
        None,
        as_background,
        Form(
            *("Comparison", "LABEL", ALL_IMAGES),
            by_side="If the backgrounds of the sides have different labels, use reference:{0} and "
            "prediction:{0}.",
            without_sides="Label or name of the background. The backgrounds of all raters are "
            "matched, and foreground measures exclude them. Use none if there is no background.",
        ),
        "Label or name of the background. The backgrounds of both sides are matched, no region is "
        "merged into them, and foreground measures exclude them. Use none if there is no "
        "background.",
    )
    # Whether regions are matched in every case, or once for all cases of a method.
    correspondence: CorrespondenceScope = option(
        "case",
        OneOf("correspondence", get_args(CorrespondenceScope)),
        Form("Comparison", "SCOPE", advanced=True),
        "case (the default): match the regions of every case separately; set: match the regions "
        "once for all cases of a method. Use set if labels (classes, clusters) mean the same in "
        "every case.",
    )
    boundaries: bool = flag(
        "Metrics",
        "Also compute boundary measures: "
        f"{', '.join(f'{name} ({one.help})' for name, one in BOUNDARY_DISTANCES.items())} "
        "and, with --tolerance, "
        f"{', '.join(f'{name} ({one.title})' for name, one in BOUNDARY_SHARES.items())}.",
        "compare",
    )
    tolerance: tuple[float, ...] = option(
        (),
        lambda values: numbers_in("tolerance", values, "finite and at least 0"),
        Form("Metrics", "MM", COMPARING, float, repeated=True, advanced=True),
        "Tolerance of the surface Dice, in mm (in voxels for images without geometry). Requires "
        "--boundaries. Can be repeated.",
    )
    infinite: float | None = option(
        None,
        as_penalty,
        Form("Metrics", "MM", COMPARING, float, advanced=True),
        "Distance for regions that are absent from one side, in mm (in voxels for images without "
        "geometry); infinite by default. Requires --boundaries.",
    )
    # The name of each derived region, and the labels or names of its members.
    derived: tuple[tuple[str, tuple[Label, ...]], ...] = option(
        (),
        as_derived,
        Form("Metrics", "NAME=LABELS", COMPARING, repeated=True, advanced=True),
        "Also compare a union of regions, given by labels or names, such as 'whole tumour=1,2,3'. "
        "The path of nnU-Net's dataset.json selects all unions that this file defines. Can be "
        "repeated.",
    )
    # The classes that are divided into components. None: no class; an empty tuple: all classes.
    components: tuple[Label, ...] | None = option(
        None,
        as_components,
        Form("Metrics", "LABELS", advanced=True),
        "Divide both sides into connected components (lesions), match them within every class, "
        "and count found, missed and false components. LABELS are the classes to divide: all, or a "
        "list such as 1,2. Requires label maps, --background and the extra 'instances'.",
    )
    connectivity: int | None = option(
        None,
        as_connected,
        Form("Metrics", "N", kind=int, advanced=True),
        "Number of neighbours that are connected to a voxel: 6, 18 or 26 (the default) in 3-D "
        "images, 4 or 8 (the default) in 2-D images. Requires --components.",
    )
    minimum_size: float = option(
        0.0,
        lambda size: number_in("minimum_size", size, "finite and at least 0"),
        Form("Metrics", "MM3", kind=float, advanced=True),
        "Minimum component size in mm³ (in voxels for 2-D images and images without geometry); "
        "smaller components of both sides are removed. Requires --components.",
    )
    resample: Interpolation | None = option(
        None,
        as_interpolation,
        Form(
            *("Reading", "HOW", ALL_IMAGES),
            choices=get_args(Interpolation),
            without_sides="Resample segmentations on different grids onto the grid with the "
            f"smallest voxels: {INTERPOLATIONS} By default, different grids cause an error.",
        ),
        f"Resample a prediction on another grid onto the grid of the reference: {INTERPOLATIONS} "
        "If the grids differ only in size or by a shift of whole voxels, the prediction is "
        "cropped or padded without interpolation. By default, different grids cause an error.",
    )
    ignore_geometry: bool = flag(
        "Reading",
        "Ignore image geometry; compare in array order.",
        *("compare", "agree", "consensus"),
        advanced=True,
    )
    geometry_tolerance: float = option(
        TOLERANCE,
        as_tolerance,
        Form("Reading", "T", ALL_IMAGES, float, advanced=True),
        "Maximum allowed distance between corresponding corners of two grids, in voxels; 0.1 by "
        "default.",
    )

    def check_combination(self, user_values: Mapping[str, Any]) -> None:
        """Reject options that cannot be combined, and options that have no effect."""
        if self.components is not None and self.background is None:
            raise InputError(
                "components require a background; pass its label or name, such as ",
                Option("background", 0),
            )
        if not self.boundaries:
            first = self.tolerance[0] if self.tolerance else None
            _reject_unused({"tolerance": first, "infinite": self.infinite}, BOUNDARIES_OPTION)
        if self.components is None:
            names = ("connectivity", "minimum_size", "strata")
            _reject_unused(
                {name: getattr(self, name, None) or None for name in names}, COMPONENTS_OPTION
            )
        if self.merge != "none" and self.matching.fixes_groups:
            rule = self.match
            raise InputError(
                Option("merge", self.merge),
                " cannot be combined with ",
                Option("match", rule)
                if isinstance(rule, str)
                else "an earlier comparison as match",
                ": the correspondence is fixed, so no region can be merged. Remove one of the two.",
            )
        for name in ("geometry_tolerance", "resample"):
            if self.ignore_geometry and user_values.get(name) is not None:
                raise InputError(
                    Option(name, user_values[name]),
                    " cannot be combined with ",
                    Option("ignore_geometry", python="ignore_geometry=True"),
                    ": geometry is not compared in this case. Remove one of the two.",
                )

    @cached_property
    def matching(self) -> Matching:
        """The options that determine how regions are matched and merged."""
        return Matching(**{one.name: getattr(self, one.name) for one in fields(Matching)})

    def with_groups(self, groups: GivenGroups) -> Self:
        """Return these options with the given groups as a fixed correspondence."""
        return replace(self, match=groups, merge="none")

    def between_raters(self) -> Self:
        """Return the options for comparing two raters. Both sides use the values of the reference.

        Pairs or groups of prediction and reference labels do not apply to two raters. If the user
        gave pairs or groups, the regions of the raters are matched by overlap.
        """
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        of_reference: dict[str, Any] = {
            name: Both(value.reference, value.reference)
            for name, value in values.items()
            if isinstance(value, Both)
        }
        match = self.match if isinstance(self.match, str) else "overlap"
        return replace(self, match=match, **of_reference)

    def in_words(self) -> list[str]:
        """Return descriptions of the similarity and, if not the default, of the matching."""
        words = [f"{self.similarity} similarity"]
        if isinstance(self.match, GivenPairs):
            words.append("matched by given pairs of labels")
        elif isinstance(self.match, GivenGroups):
            words.append("matched as in an earlier comparison")
        elif self.match != "overlap":
            words.append(RULES[self.match].words)
        if self.correspondence == "set":
            words.append("one correspondence for all cases")
        return words

    def to_dict(self) -> dict[str, Any]:
        """Return the options as JSON data.

        `max_bytes` and the additional fields of `EvaluateOptions` are omitted.
        """
        return stored_options(self, CompareOptions(), declarations(CompareOptions))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Restore options from JSON data."""
        values = values_from_dict(content, declarations(CompareOptions))
        options, defaults = cls(**values), cls()
        changed_values = {
            name: value for name, value in values.items() if value != getattr(defaults, name)
        }
        options.check_combination(changed_values)
        return options


def _reject_unused(values: Mapping[str, Any], required: Option) -> None:
    """Reject values of options that have no effect without another option."""
    for name, value in values.items():
        if value is not None:
            message = f" has no effect without {required.name}. Add "
            raise InputError(Option(name, value), message, required, ".")
