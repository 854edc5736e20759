"""Distances between the outlines of corresponding regions.

Popular tools measure from voxel centre to voxel centre and therefore disagree with each other.
Here the outline is a surface of triangles (in 2-D, a curve of segments) halfway between the pixels
inside and outside, and distances are exact:

- The surface passes through the midpoints between neighbouring pixels inside and outside the set,
  in every cell of 2 × 2 × 2 (or 2 × 2) pixels; pixels that touch only diagonally are separate. It
  is closed at the border of the image. A cell with a pixel outside the mask has no surface.
- Each triangle or segment, an *element*, gives one distance: from its centroid to the nearest point
  of the other surface. Its area or length is its weight.
- Probabilities are not hardened at one half. The set at level t has the pixels whose probability
  exceeds t, and every number is the mean over the levels. Levels at which both sets are empty are
  left out.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from math import inf, isinf, nan
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from probdice.data.geometry import Geometry
from probdice.data.machine import cores
from probdice.engine.group_images import group_numbers, group_probabilities
from probdice.engine.pair import Images
from probdice.engine.surface_distances import (
    Elements,
    Grid,
    GroupSets,
    LabelSets,
    SoftSets,
    elements_of,
    numbers_of,
)
from probdice.errors import InputError, MissingExtraError
from probdice.method.matching import listed
from probdice.method.pixel_passes import Lists
from probdice.method.region_labels import Label
from probdice.method.sides import SIDES, Both, Side
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    import pandas

__all__ = ["LEVELS", "Boundaries", "BoundaryMean", "boundaries_of", "group_sets"]

Floats = NDArray[np.float64]
Members = Sequence[tuple[Label, ...]]  # the labels of each group

LEVELS = tuple(k / 10 for k in range(1, 10))
PERCENTILES = (95.0,)
SHOWN = 12  # groups in a printed result
FIRST = ("hd", "assd", "masd")  # the numbers before percentiles and tolerances


@dataclass(frozen=True)
class BoundaryMean:
    """The mean of one number over groups.

    A missed or a false region is infinitely far away, and so is a mean that includes it: leaving it
    out would reward missing it.

    Attributes
    ----------
    mean : float
        Over all groups that count. Infinite groups have the penalty distance if there is one.
    finite_mean : float
        Over the groups that count and are finite without a penalty.
    infinite : int
        How many groups that count are infinite without a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.metrics.boundaries import BoundaryMean
    >>> BoundaryMean.of(np.array([1.0, 3.0, np.inf]), np.array([1.0, 3.0, 20.0]))
    BoundaryMean(mean=8.0, finite_mean=2.0, infinite=1)
    """

    mean: float
    finite_mean: float
    infinite: int

    @classmethod
    def of(cls, values: Floats, penalised: Floats) -> "BoundaryMean":
        """Of values without and with a penalty; NaN, where both sides are empty, is left out."""
        return cls(
            mean=_mean(penalised[~np.isnan(penalised)]),
            finite_mean=_mean(values[np.isfinite(values)]),
            infinite=int(np.isinf(values).sum()),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Boundaries:
    """Distances between the outlines of the groups of a comparison.

    ``boundaries["hd95"]`` is one number of every group. The numbers are

    - ``"hd"``: the Hausdorff distance, the largest distance of both directions;
    - ``"hd95"``, or any other percentile: the larger of the two directed weighted percentiles;
    - ``"assd"``: the average symmetric surface distance, over the elements of both surfaces;
    - ``"masd"``: the mean of the two directed averages;
    - ``"nsd_2"``, or any other tolerance: the normalized surface distance (surface Dice), the share
      of both surfaces that is within the tolerance of the other one.

    Where both sides are empty, all are NaN; where one is, distances are infinite and the surface
    Dice is 0.

    Attributes
    ----------
    groups : Both
        Per side, the labels of every group.
    counted : ndarray of bool
        The groups that count in means.
    unit : {"mm", "pixels"}
        Of distances and tolerances: pixels for images without a geometry.
    percentiles : tuple of float
    tolerances : tuple of float
    levels : tuple of float
        Of probabilities; empty where both sides are label maps.
    infinite : float or None
        The penalty distance that replaces infinite distances.
    names : tuple of str
        The numbers, in the order of tables.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice.metrics.boundaries import boundaries_of
    >>> from probdice.engine.surface_distances import LabelSets
    >>> from probdice.method.sides import Both
    >>> reference, prediction = np.full((2, 14, 14), -1)
    >>> reference[4:10, 4:10] = prediction[4:10, 5:11] = 0
    >>> boundaries = boundaries_of(
    ...     Both(LabelSets(reference), LabelSets(prediction)),
    ...     groups=Both([(1,)], [(7,)]),
    ...     tolerances=[0.5],
    ... )
    >>> boundaries
    Boundaries (pixels): 1 group
      mean hd 1.0000   hd95 1.0000   assd 0.5335   masd 0.5335   nsd_0.5 0.5000
      reference  prediction      hd    hd95    assd    masd  nsd_0.5
              1           7  1.0000  1.0000  0.5335  0.5335   0.5000
    >>> boundaries.means["hd"].mean
    1.0
    >>> boundaries.group(0).reference.distances.size
    24
    """

    groups: Both[Members]
    counted: NDArray[np.bool_]
    unit: str
    percentiles: tuple[float, ...]
    tolerances: tuple[float, ...]
    levels: tuple[float, ...]
    infinite: float | None
    _values: Floats  # groups, levels (one for label maps), numbers as the engine orders them
    _elements: Callable[[int, float], Both[Elements]] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The numbers, in the order of tables."""
        hd, assd, masd = FIRST
        middle = [f"hd{p:g}" for p in self.percentiles]
        return (hd, *middle, assd, masd, *(f"nsd_{t:g}" for t in self.tolerances))

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, name: str) -> Floats:
        """One number of every group: its mean over the levels."""
        return _over_levels(self._of(name), self.infinite)

    def by_level(self, name: str) -> Floats:
        """One number of every group (rows) at every level (columns), without a penalty.

        Label maps are the same at every level, and have one column.
        """
        return self._of(name).copy()

    @cached_property
    def means(self) -> dict[str, BoundaryMean]:
        """The mean of every number over the groups that count."""
        return {
            name: BoundaryMean.of(
                _over_levels(self._of(name), None)[self.counted], self[name][self.counted]
            )
            for name in self.names
        }

    def group(self, k: int, level: float | None = None) -> Both[Elements]:
        """Every element of the two surfaces of one group.

        Parameters
        ----------
        k : int
            The number of the group.
        level : float, optional
            One of the levels; required for probabilities if there are several. Label maps are
            the same at every level.

        Returns
        -------
        Both
            For the reference and for the prediction: ``points`` (centroids, one row each, in the
            unit of the result), ``distances`` to the nearest point of the other surface, and
            ``weights`` (areas or lengths).
        """
        if self._elements is None:
            raise InputError(
                "boundaries without their images have no elements. Compare the images again."
            )
        if not -len(self) <= k < len(self):
            raise InputError(f"k must be the number of one of {len(self)} groups, found {k}")
        if level is None and len(self.levels) < 2:
            level = self.levels[0] if self.levels else 0.5
        if level is None or (self.levels and level not in self.levels):
            known = ", ".join(f"{known:g}" for known in self.levels)
            raise InputError(f"level must be one of {known}, found {level}")
        return self._elements(k % len(self), level)

    def detach(self) -> "Boundaries":
        """The same numbers without the images, and so without the elements of groups."""
        return replace(self, _elements=None)

    def to_frame(self, *, by_level: bool = False) -> "pandas.DataFrame":
        """One row per group: its labels, whether it counts, and its numbers.

        Parameters
        ----------
        by_level : bool, optional
            One row per group and level instead, with values at that level, without a penalty.
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtraError('tables need pandas: pip install "pandas"') from None
        each = self._values.shape[1] if by_level else 1
        columns: dict[str, Any] = {
            side: [labels for labels in self.groups[side] for _ in range(each)] for side in SIDES
        }
        columns["counted"] = np.repeat(self.counted, each)
        if by_level:
            columns["level"] = np.tile(self.levels or (nan,), len(self))
        for name in self.names:
            columns[name] = self._of(name).ravel() if by_level else self[name]
        return pandas.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Plain types; undefined numbers are NaN and missed regions are infinite."""
        values = {name: self[name].tolist() for name in self.names}
        by_level = {name: self._of(name).tolist() for name in self.names}
        return {
            "unit": self.unit,
            "percentiles": list(self.percentiles),
            "tolerances": list(self.tolerances),
            "levels": list(self.levels),
            "infinite": self.infinite,
            "means": {name: vars(mean) for name, mean in self.means.items()},
            "groups": [
                {
                    **{side: list(self.groups[side][k]) for side in SIDES},
                    "counted": bool(self.counted[k]),
                    **{name: values[name][k] for name in self.names},
                    "by_level": {name: by_level[name][k] for name in self.names},
                }
                for k in range(len(self))
            ],
        }

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [self._title(), *(f"  {line}" for line in self._lines())]
        for row in rows:
            cells = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            lines.append(f"  {'  '.join(cells)}")
        if len(self) > SHOWN:
            lines.append(f"  … and {len(self) - SHOWN} more groups")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        header, *rows = self._rows()
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
        )
        lines = [self._title(), *self._lines()]
        if len(self) > SHOWN:
            lines.append(f"{len(self) - SHOWN} more groups are in to_frame()")
        text = "".join(f"<p>{escape(line)}</p>" for line in lines)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div>{text}{table}</div>"

    def _of(self, name: str) -> Floats:
        order = (
            *FIRST,
            *(f"hd{p:g}" for p in self.percentiles),
            *(f"nsd_{t:g}" for t in self.tolerances),
        )
        if name not in order:
            raise InputError(f"name must be one of {', '.join(self.names)}, found {name!r}")
        return self._values[:, :, order.index(name)]

    def _title(self) -> str:
        groups = f"{len(self)} {'group' if len(self) == 1 else 'groups'}"
        if not self.levels:
            return f"Boundaries ({self.unit}): {groups}"
        levels = ", ".join(f"{level:g}" for level in self.levels)
        return f"Boundaries ({self.unit}, mean over the levels {levels}): {groups}"

    def _lines(self) -> list[str]:
        """The means, and what they are without infinite groups."""
        numbers = (f"{name} {_shown(mean.mean)}" for name, mean in self.means.items())
        lines = [f"mean {'   '.join(numbers)}"]
        missing = self.means["hd"].infinite
        if missing:
            finite = (
                f"{name} {_shown(mean.finite_mean)}"
                for name, mean in self.means.items()
                if not name.startswith("nsd")
            )
            groups = "group is" if missing == 1 else "groups are"
            penalty = "" if self.infinite is None else f", counted as {self.infinite:g} {self.unit}"
            lines.append(f"{missing} {groups} missing on one side{penalty}")
            lines.append(f"mean of the others {'   '.join(finite)}")
        return lines

    def _rows(self) -> list[tuple[str, ...]]:
        columns = [self[name][:SHOWN].tolist() for name in self.names]
        rows = [("reference", "prediction", *self.names)]
        for k, values in enumerate(zip(*columns, strict=True)):
            labels = (listed(self.groups[side][k]) for side in SIDES)
            rows.append((*labels, *map(_shown, values)))
        return rows


def boundaries_of(
    sides: Both[GroupSets],
    *,
    groups: Both[Members],
    counted: NDArray[np.bool_] | None = None,
    geometry: Geometry | None = None,
    mask: NDArray[np.bool_] | None = None,
    percentiles: Iterable[float] = PERCENTILES,
    tolerances: Iterable[float] = (),
    levels: Iterable[float] = LEVELS,
    infinite: float | None = None,
    workers: int | None = None,
) -> Boundaries:
    """Distances between the outlines of corresponding regions.

    Parameters
    ----------
    sides : Both
        The sets of pixels of the groups of each side: `LabelSets` or `SoftSets`.
    groups : Both
        Per side, the labels of every group.
    counted : ndarray of bool, optional
        The groups that count in means; all by default.
    geometry : Geometry, optional
        Distances are in millimetres with it, and in pixels without.
    mask : ndarray of bool, optional
        The pixels that are compared.
    percentiles : iterable of float, optional
        Above 0 and at most 100.
    tolerances : iterable of float, optional
        Of the surface Dice, in the unit of distances. None by default, since no tolerance suits
        all images.
    levels : iterable of float, optional
        Of probabilities, at least 0 and below 1; 0.1, 0.2, … 0.9 by default. Label maps are the
        same at every level.
    infinite : float, optional
        A penalty distance that replaces infinite distances.
    workers : int, optional
        Threads; as many as there are cores by default.

    Raises
    ------
    InputError
        If the images have one axis or more than three, or an option is out of range.
    """
    shape = sides.reference.shape
    if len(shape) not in (2, 3):
        raise InputError(
            f"boundaries need images of two or three axes, found {len(shape)} (shape {shape}). "
            "Compare one image at a time, without channel or time axes."
        )
    for name, found in (("prediction", sides.prediction), ("mask", mask), ("geometry", geometry)):
        if found is not None and found.shape != shape:
            raise InputError(f"{name} must have the shape of reference, {shape}, not {found.shape}")
    options = {
        "percentiles": _numbers("percentiles", percentiles, "above 0 and at most 100"),
        "tolerances": _numbers("tolerances", tolerances, "finite and at least 0"),
        "levels": _numbers("levels", levels, "at least 0 and below 1"),
    }
    if infinite is not None:
        (infinite,) = _numbers("infinite", [infinite], "finite and at least 0")
    axes = np.eye(len(shape)) if geometry is None else geometry.affine[:-1, :-1]
    grid = Grid(axes, mask, cores() if workers is None else workers)
    if all(side.labels is not None for side in sides):
        options["levels"] = ()
    elif not options["levels"]:
        raise InputError("levels must hold at least one number for probabilities, found none")
    count = len(groups.reference)
    return Boundaries(
        groups=groups,
        counted=np.ones(count, np.bool_) if counted is None else counted,
        unit="pixels" if geometry is None else "mm",
        infinite=infinite,
        **options,
        _values=numbers_of(sides, grid, count, **options),
        _elements=_Elements(sides, grid, geometry),
    )


def group_sets(images: Images, side: Side, groups: Lists) -> GroupSets:
    """The sets of pixels of the groups of one side of a comparison."""
    segmentation = images.side(side)
    if segmentation.crisp:
        return LabelSets(group_numbers(images, side, groups))
    return SoftSets(_GroupMaps(images, side, groups), segmentation.shape)


class _GroupMaps(Sequence[NDArray[Any]]):
    """The probability of every group of a soft side, computed when it is used."""

    def __init__(self, images: Images, side: Side, groups: Lists) -> None:
        self.images, self.side, self.groups = images, side, groups

    def __len__(self) -> int:
        return len(self.groups)

    @overload
    def __getitem__(self, group: int) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, group: slice) -> list[NDArray[Any]]: ...
    def __getitem__(self, group: int | slice) -> NDArray[Any] | list[NDArray[Any]]:
        if isinstance(group, slice):
            return [self[k] for k in range(*group.indices(len(self)))]
        return group_probabilities(self.images, self.side, self.groups[group])


@dataclass(frozen=True, eq=False)
class _Elements:
    """What finds the elements of a group again: to keep those of all would take too much memory."""

    sides: Both[GroupSets]
    grid: Grid
    geometry: Geometry | None

    def __call__(self, group: int, level: float) -> Both[Elements]:
        elements = elements_of(self.sides, self.grid, group, level)
        if self.geometry is None:
            return elements
        linear, origin = self.geometry.affine[:-1, :-1], self.geometry.affine[:-1, -1]
        return elements.map(lambda side: replace(side, points=side.points @ linear.T + origin))


_RANGES: dict[str, Callable[[float], bool]] = {
    "above 0 and at most 100": lambda x: 0 < x <= 100,
    "finite and at least 0": lambda x: 0 <= x < inf,
    "at least 0 and below 1": lambda x: 0 <= x < 1,
}


def _numbers(name: str, values: Iterable[float], expected: str) -> tuple[float, ...]:
    """Numbers in a range, each once."""
    try:
        numbers = tuple(dict.fromkeys(float(value) for value in values))
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers {expected}, found {values!r}") from None
    for number in numbers:
        if not _RANGES[expected](number):
            raise InputError(f"{name} must be {expected}, found {number:g}")
    return numbers


def _over_levels(values: Floats, infinite: float | None) -> Floats:
    """The mean over the levels at which at least one side is not empty, with a penalty."""
    if infinite is not None:
        values = np.where(np.isinf(values), infinite, values)
    known = ~np.isnan(values)
    counts = known.sum(axis=1)
    sums = np.where(known, values, 0.0).sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), nan)


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else nan


def _shown(value: float) -> str:
    return "∞" if isinf(value) else decimal(value)
