"""Options for reading files."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from probdice.data.segmentation import as_sums, several_labels
from probdice.data.value_checks import Sums
from probdice.method.sides import Both, Side
from probdice.options.checks import (
    Names,
    Scale,
    as_max_bytes,
    as_names_by_side,
    as_nested,
    as_priority,
    as_scale,
    by_side,
)
from probdice.options.declaration import EITHER_SIDE, Command, Form, declarations, option

__all__ = ["ALL_IMAGES", "COMPARING", "ReadOptions"]

COMPARING: tuple[Command, ...] = ("compare", "evaluate")
READING: tuple[Command, ...] = (*COMPARING, "info")
ALL_IMAGES: tuple[Command, ...] = (*COMPARING, "agree", "consensus")
ALL_FILES: tuple[Command, ...] = (*ALL_IMAGES, "info")


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options for reading files. `ReadOptions.of` creates an instance from the user's values."""

    ignore: tuple[int, ...] = option(
        (),
        lambda labels: several_labels(labels, "ignore"),
        Form(
            *("Comparison", "LABEL", ALL_IMAGES, int),
            repeated=True,
            without_sides="Exclude voxels that have this label in any of the segmentations. Can be "
            "repeated.",
        ),
        "Exclude voxels that have this label in the reference. Can be repeated.",
    )
    sums: Both[Sums] = option(
        Both("error", "error"),
        by_side("sums", as_sums, "error"),
        Form("Reading", "HOW", ALL_FILES, by_side=EITHER_SIDE),
        "How to handle probabilities that do not sum to 1: error (the default), normalise (divide "
        "by the sum) or background (add the missing probability as a region).",
    )
    scale: Scale = option(
        None,
        as_scale,
        Form(
            *("Reading", "S", READING),
            by_side="reference:{0} or prediction:{0} always scales that side.",
            without_sides="Value that means probability 1: 100 for percentages, 255 for 8-bit "
            "maps. All values are read as probabilities, even those of a label map.",
            advanced=True,
        ),
        "Value that means probability 1: 100 for percentages, 255 for 8-bit maps. Label maps (one "
        "whole number per voxel) and files without values above 1.5 are not scaled.",
    )
    names: Both[Names | None] = option(
        Both(None, None),
        as_names_by_side,
        Form("Reading", "FILE", ALL_FILES, by_side=EITHER_SIDE, path=True),
        "Table of label names: a FreeSurfer or 3D Slicer colour table, an ITK-SNAP label "
        "description, a BIDS dseg.tsv, an FSL .lut or atlas .xml, or a CSV or JSON file.",
    )
    priority: Both[tuple[str, ...]] = option(
        Both((), ()),
        by_side("priority", as_priority, ()),
        Form("Reading", "NAMES", READING, by_side=EITHER_SIDE, advanced=True),
        "Regions in descending order of priority, such as tumour,kidney. Where masks overlap, each "
        "voxel is assigned to the region with the highest priority.",
    )
    # The labels of nested channels, the background first; empty if the channels are not nested.
    nested: Both[tuple[int, ...]] = option(
        Both((), ()),
        by_side("nested", as_nested, ()),
        Form("Reading", "LABELS", COMPARING, by_side=EITHER_SIDE),
        "Read nested channels (whole ⊇ core ⊇ enhancing), such as sigmoid outputs. LABELS, such as "
        "0,2,1,3, lists the label of the background, then the labels of the regions between "
        "successive channels (whole without core, core without enhancing), then the label of the "
        "last channel.",
    )
    max_bytes: int | None = option(
        None,
        as_max_bytes,
        Form("Reading", "N", (*ALL_FILES, "check"), int, advanced=True),
        "Maximum size of the decompressed values of one file, in bytes; by default, the memory of "
        "the machine.",
    )

    @classmethod
    def of(cls, **user_values: Any) -> Self:
        """Check the values given by the user, and return them in their internal form."""
        option_declarations = declarations(cls)  # type: ignore[arg-type]  # a class is hashable
        options = cls(
            **{name: option_declarations[name].check(value) for name, value in user_values.items()}
        )
        options.check_combination(user_values)
        return options

    def check_combination(self, user_values: Mapping[str, Any]) -> None:
        """Reject options that cannot be combined."""

    def scale_of(self, side: Side) -> float | None:
        """Return the scale that the user set for this side alone, or None."""
        return self.scale[side] if isinstance(self.scale, Both) else None

    @property
    def common_scale(self) -> float | None:
        """The scale that the user set for both sides together, or None."""
        return None if isinstance(self.scale, Both) else self.scale
