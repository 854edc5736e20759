"""The manifest of a challenge: the required form of a submission, without the references.

A manifest contains the names and grids of all cases, the labels that occur in at least one
reference, and the options for reading predictions. It contains no values, volumes or labels of
individual cases, so it can be published while the references are still secret.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np

from probdice.comparison.comparing import images_of
from probdice.comparison.from_files import read_side
from probdice.data.geometry import Geometry
from probdice.data.segmentation import Segmentation
from probdice.data.vertex_space import geometry_from_dict
from probdice.errors import FormatError, InputError, ProbdiceError
from probdice.evaluation.case_files import find_cases, name_regions
from probdice.evaluation.case_scoring import as_paths
from probdice.evaluation.derivatives import MASKS
from probdice.evaluation.folders import Folder
from probdice.evaluation.patterns import METHOD
from probdice.files import read_mask
from probdice.files.atomic_files import replacing
from probdice.files.name_tables import read_names
from probdice.files.sources import natural
from probdice.method.overlap import Regions
from probdice.method.sides import Both
from probdice.method.similarity import Absolute
from probdice.options import CompareOptions, EvaluateOptions, Names

__all__ = ["AllowedLabel", "Kind", "Manifest", "RequiredGrid", "kind_of"]

FORMAT_VERSION = 1
Kind = Literal["labels", "probabilities"]


def kind_of(segmentation: Segmentation) -> Kind:
    """Return the kind of a segmentation: "labels" or "probabilities"."""
    return "labels" if segmentation.crisp else "probabilities"


@dataclass(frozen=True)
class RequiredGrid:
    """The grid of one case: the shape and, if known, the position in space."""

    shape: tuple[int, ...]
    geometry: Geometry | None

    def blank(self) -> Segmentation:
        """Return a label map of zeros on this grid, which takes almost no memory."""
        zeros = np.broadcast_to(np.zeros((), np.uint8), self.shape)
        return Segmentation.from_labels(zeros, geometry=self.geometry)

    def to_dict(self) -> dict[str, Any]:
        """Return the grid as JSON data."""
        if self.geometry is None:
            return {"shape": list(self.shape), "affine": None}
        return self.geometry.to_dict()

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "RequiredGrid":
        """Restore a grid from JSON data."""
        if "structures" not in content and content["affine"] is None:
            return cls(tuple(int(length) for length in content["shape"]), None)
        geometry = geometry_from_dict(content)
        return cls(geometry.shape, geometry)


class AllowedLabel(NamedTuple):
    """A label that occurs in a reference: its number, its name, or both."""

    number: int | None
    name: str | None


@dataclass(frozen=True)
class Manifest:
    """The required form of a submission to a challenge.

    Create a manifest with `Manifest.of` or `Manifest.read`. `check_submission` checks a folder of
    predictions against a manifest.

    Attributes
    ----------
    cases : mapping of str to RequiredGrid
        The grid of every case.
    labels : tuple of AllowedLabel
        The labels that occur in at least one reference.
    kinds : tuple of {"labels", "probabilities"}
        The accepted kinds of segmentation. `Manifest.of` sets the kinds of the references, or only
        "probabilities" if `probabilities` is true.
    pattern : str or None
        The pattern of the file names of a submission, with ``{case}``; None for the default names.
    probabilities : bool
        Whether nnU-Net's probabilities (.npz) are read instead of the label maps in the same
        folder.
    options : CompareOptions
        The options for reading predictions. If `match` is "labels", a label that is not in `labels`
        is an error.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from probdice.evaluation import EvaluateOptions, Manifest
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "a.npy"), np.array([[0, 0, 1], [0, 2, 2]]))
    ...     np.save(Path(folder, "b.npy"), np.array([[0, 0], [0, 0]]))
    ...     manifest = Manifest.of(folder, EvaluateOptions.of(match="labels"))
    >>> {case: grid.shape for case, grid in manifest.cases.items()}
    {'a': (2, 3), 'b': (2, 2)}
    >>> [label.number for label in manifest.labels], manifest.kinds
    ([0, 1, 2], ('labels',))
    """

    cases: Mapping[str, RequiredGrid]
    labels: tuple[AllowedLabel, ...]
    kinds: tuple[Kind, ...]
    pattern: str | None
    probabilities: bool
    options: CompareOptions

    @classmethod
    def of(cls, reference: Folder, options: EvaluateOptions | None = None) -> "Manifest":
        """Create the manifest of a folder of references. One case is read at a time.

        Parameters
        ----------
        reference : path
            The folder of reference segmentations.
        options : EvaluateOptions, optional
            The options of the evaluation.
        """
        options = options or EvaluateOptions()
        reference_pattern, prediction_pattern, mask_pattern = _patterns(options)
        files = find_cases(Path(reference), reference_pattern, probabilities=False)
        if not files:
            raise InputError(
                f"{reference}: found no reference; expected one file per case in a supported "
                f"format, whose name matches the pattern if a pattern is given"
            )
        regions = name_regions(Path(reference), reference_pattern, files)
        masks: Mapping[str, tuple[str, ...]] = {}
        if options.mask is not None:
            folder = Path(options.mask)
            masks = find_cases(folder, mask_pattern, probabilities=False, suffixes=(MASKS,))
        cases: dict[str, RequiredGrid] = {}
        labels: dict[AllowedLabel, None] = {}
        kinds: set[Kind] = set()
        for case in sorted(files, key=natural):
            paths = as_paths(files[case], regions.get(case, ()))
            try:
                segmentation, _ = read_side(paths, options, "reference", one_of_many=True)
                cases[case] = _grid(segmentation, options)
                mask = read_mask(masks[case][0]) if masks.get(case) else None
                images = images_of(segmentation, cases[case].blank(), options, mask=mask)
                labels |= dict.fromkeys(_labels(images.overlap(Absolute()).reference))
            except ProbdiceError as error:
                raise error.prefixed(f"reference of case {case}: ") from error
            kinds.add(kind_of(segmentation))
        if options.probabilities:
            kinds = {"probabilities"}
        return cls(
            cases,
            _merge_labels(labels),
            tuple(kind for kind in get_args(Kind) if kind in kinds),
            prediction_pattern,
            options.probabilities,
            _reading(options, kinds),
        )

    @cached_property
    def regions(self) -> Regions:
        """The allowed labels as regions without pixels."""
        return Regions(
            np.arange(len(self.labels)),
            np.zeros(len(self.labels)),
            False,
            names={k: label.name for k, label in enumerate(self.labels) if label.name is not None},
            numbers={
                k: label.number for k, label in enumerate(self.labels) if label.number is not None
            },
        )

    @property
    def strict_labels(self) -> bool:
        """Whether unlisted labels are errors: true if regions are matched by equal labels."""
        return self.options.match == "labels"

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest as JSON data.

        Cases with the same grid refer to the same entry of `grids`.
        """
        grids = {grid: k for k, grid in enumerate(dict.fromkeys(self.cases.values()))}
        return {
            "format": FORMAT_VERSION,
            "kinds": list(self.kinds),
            "labels": [{"number": label.number, "name": label.name} for label in self.labels],
            "pattern": self.pattern,
            "probabilities": self.probabilities,
            "options": self.options.to_dict(),
            "grids": [grid.to_dict() for grid in grids],
            "cases": {case: grids[grid] for case, grid in self.cases.items()},
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Manifest":
        """Restore a manifest from JSON data.

        Raises
        ------
        InputError
            If the data are not a manifest of this format.
        """
        version = content.get("format") if isinstance(content, Mapping) else None
        if version != FORMAT_VERSION or "kinds" not in content:
            raise InputError(
                f"expected a manifest of format {FORMAT_VERSION}, found other data (format "
                f"{version}). Use a file that probdice evaluate --write-manifest wrote."
            )
        try:
            grids = [RequiredGrid.from_dict(grid) for grid in content["grids"]]
            cases = {str(case): grids[int(k)] for case, k in content["cases"].items()}
            labels = tuple(_label(label) for label in content["labels"])
            kinds = tuple(content["kinds"])
            options = CompareOptions.from_dict(content["options"])
            pattern, probabilities = content["pattern"], bool(content["probabilities"])
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"not a valid manifest ({error}). Use a file that probdice evaluate "
                f"--write-manifest wrote."
            ) from error
        if not kinds or not set(kinds) <= set(get_args(Kind)):
            raise InputError(f"kinds must list 'labels', 'probabilities' or both, found {kinds}")
        return cls(cases, labels, cast(tuple[Kind, ...], kinds), pattern, probabilities, options)

    @classmethod
    def read(cls, path: Folder) -> "Manifest":
        """Read a manifest from a JSON file.

        Raises
        ------
        FormatError
            If the file cannot be read or is not valid JSON.
        InputError
            If the file is not a manifest.
        """
        try:
            content = json.loads(Path(path).read_bytes())
        except OSError as error:
            raise FormatError(f"{path}: cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{path}: expected a manifest, found invalid JSON") from error
        try:
            return cls.from_dict(content)
        except InputError as error:
            raise error.prefixed(f"{path}: ") from error

    def write(self, path: Folder) -> None:
        """Write the manifest to a JSON file, atomically."""
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"
        try:
            with replacing(Path(path)) as partial:
                partial.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise FormatError(f"{os.fspath(path)}: cannot be written: {error.strerror}") from error


def _patterns(options: EvaluateOptions) -> tuple[str | None, str | None, str | None]:
    """Return the file name patterns of references, predictions and masks."""
    patterns = options.pattern
    if not isinstance(patterns, Mapping):
        patterns = (
            {} if patterns is None else dict.fromkeys(("reference", "prediction", "mask"), patterns)
        )
    prediction_pattern = patterns.get("prediction")
    if prediction_pattern is not None and METHOD in prediction_pattern:
        raise InputError(
            f"pattern {prediction_pattern!r} has {METHOD}, but a submission contains one method; "
            f"write the manifest with a pattern that has only {{case}}"
        )
    return patterns.get("reference"), prediction_pattern, patterns.get("mask")


def _grid(segmentation: Segmentation, options: CompareOptions) -> RequiredGrid:
    geometry = None if options.ignore_geometry else segmentation.geometry
    return RequiredGrid(segmentation.shape, geometry)


def _labels(regions: Regions) -> Iterable[AllowedLabel]:
    """Yield the labels that occur in a segmentation.

    A channel that has neither a number nor a name is numbered by its index.
    """
    for k in regions.occupied.tolist():
        number, name = regions.number(k), regions.name(k)
        if number is None and name is None:
            number = int(regions.keys[k])
        yield AllowedLabel(number, name)


def _merge_labels(labels: Iterable[AllowedLabel]) -> tuple[AllowedLabel, ...]:
    """Return the sorted labels.

    If a number has a name in at least one case, the number is not listed again without a name.
    """
    label_list = list(labels)
    named_numbers = {label.number for label in label_list if label.name is not None}
    distinct_labels = [
        label for label in label_list if label.name is not None or label.number not in named_numbers
    ]

    def order(label: AllowedLabel) -> tuple[bool, int, str]:
        return label.number is None, label.number or 0, label.name or ""

    return tuple(sorted(distinct_labels, key=order))


def _reading(options: EvaluateOptions, kinds: set[Kind]) -> CompareOptions:
    """Return the options that affect whether a prediction can be read and compared."""
    names: Names | None = options.names.prediction
    if isinstance(names, str):  # participants do not have the table of names
        table = read_names(names, channels=kinds == {"probabilities"})
        names = tuple((label, entry.name) for label, entry in table.items())
    return CompareOptions(
        match="labels" if options.match == "labels" else "overlap",
        sums=options.sums,
        scale=options.scale,
        names=Both(None, names),
        nested=Both((), options.nested.prediction),
        priority=Both((), options.priority.prediction),
        background=options.background,
        resample=options.resample,
        ignore_geometry=options.ignore_geometry,
        geometry_tolerance=options.geometry_tolerance,
    )


def _label(content: Mapping[str, Any]) -> AllowedLabel:
    number, name = content["number"], content["name"]
    return AllowedLabel(
        None if number is None else int(number), None if name is None else str(name)
    )
