"""Boundary distances of a comparison: values per group and level, means, and conversions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from math import isinf, nan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError
from probdice.method.region_labels import Label, listed
from probdice.method.sides import SIDES, Both
from probdice.options.boundary_distances import STATISTICS, is_share, share_names
from probdice.text.formatting import decimal, quantity
from probdice.text.table_output import aligned_columns, data_frame

if TYPE_CHECKING:
    import pandas

    from probdice.engine.surface_distances import Elements

__all__ = ["Boundaries", "BoundaryMean", "GroupLabels"]

Floats = NDArray[np.float64]
GroupLabels = Sequence[tuple[Label, ...]]  # the labels of each group

MAX_PRINTED_GROUPS = 12


@dataclass(frozen=True)
class BoundaryMean:
    """The mean of one measure over groups.

    A region that is missing on one side (for probabilities, at any threshold level) has an infinite
    distance. Without a penalty distance, a mean that includes such a region is also infinite,
    because excluding the region would reward a prediction that misses it.

    Attributes
    ----------
    mean : float
        The mean over all included groups. If there is a penalty distance, it replaces infinite
        distances.
    finite_mean : float
        The mean over the included groups whose value is finite before the penalty is applied.
    infinite : int
        The number of included groups whose value is infinite before the penalty is applied.

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
    def of(cls, values: Floats, penalised_values: Floats) -> "BoundaryMean":
        """Return the means, given the values before and after the penalty; ignore NaN values."""
        return cls(
            mean=_mean(penalised_values[~np.isnan(penalised_values)]),
            finite_mean=_mean(values[np.isfinite(values)]),
            infinite=int(np.isinf(values).sum()),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Boundaries:
    """Distances between the outlines of the groups of a comparison.

    ``boundaries["hd95"]`` contains one number per group. The measures are:

    - ``"hd"``: the Hausdorff distance, which is the largest distance in either direction;
    - ``"hd95"`` or any other percentile: the larger of the two directed weighted percentiles;
    - ``"assd"``: the average symmetric surface distance, over the elements of both surfaces;
    - ``"masd"``: the mean of the two directed averages;
    - ``"nsd@2"`` or any other tolerance: the normalised surface distance (surface Dice), which
      is the share of both surfaces that lies within the tolerance of the other surface.

    For probabilities, every value is a mean over levels. Levels at which both sides are empty are
    excluded. At a level at which exactly one side is empty, distances are infinite, and the surface
    Dice is 0. If both sides are empty at every level, all values are NaN.

    Attributes
    ----------
    groups : Both
        Per side, the labels of every group.
    counted : ndarray of bool
        Whether each group is included in `means`. In a comparison, the background group and faint
        groups are not included.
    unit : {"mm", "pixels"}
        The unit of distances and tolerances. The unit is pixels if the images have no geometry.
    percentiles : tuple of float
    tolerances : tuple of float
    levels : tuple of float
        The probability levels; empty if both sides are label maps.
    infinite : float or None
        The penalty distance that replaces infinite distances.
    names : tuple of str
        The names of the measures, in the column order of tables.

    Examples
    --------
    >>> import numpy as np
    >>> import probdice
    >>> reference, prediction = np.zeros((2, 14, 14), int)
    >>> reference[4:10, 4:10] = prediction[4:10, 5:11] = 1
    >>> result = probdice.compare(reference, prediction, background=0)
    >>> boundaries = result.boundaries(tolerances=[0.5])
    >>> boundaries
    Boundaries (pixels): 2 groups
      mean hd 1.0000   hd95 1.0000   assd 0.5335   masd 0.5335   nsd@0.5 0.5000
      reference  prediction      hd    hd95    assd    masd  nsd@0.5
              0           0  1.0000  1.0000  0.1568  0.1568   0.8530
              1           1  1.0000  1.0000  0.5335  0.5335   0.5000
    >>> boundaries.means["hd"].mean
    1.0
    >>> boundaries.group(1).reference.distances.size
    24
    """

    groups: Both[GroupLabels]
    counted: NDArray[np.bool_]
    unit: str
    percentiles: tuple[float, ...]
    tolerances: tuple[float, ...]
    levels: tuple[float, ...]
    infinite: float | None
    _values: Floats  # axes: groups, levels (one for label maps), measures in the order of `_order`
    _elements: "Callable[[int, float], Both[Elements]] | None" = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the measures, in the column order of tables."""
        maximum, *averages = STATISTICS
        percentiles = (f"hd{p:g}" for p in self.percentiles)
        return (maximum, *percentiles, *averages, *share_names(self.tolerances))

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, name: str) -> Floats:
        """Return one measure for every group, averaged over the levels."""
        return _over_levels(self._of(name), self.infinite)

    def by_level(self, name: str) -> Floats:
        """Return one measure for every group (rows) and level (columns), without a penalty.

        Label maps have one column, because they are the same at every level.
        """
        return self._of(name).copy()

    @cached_property
    def means(self) -> dict[str, BoundaryMean]:
        """The mean of every measure over the included groups."""
        return {
            name: BoundaryMean.of(
                _over_levels(self._of(name), None)[self.counted], self[name][self.counted]
            )
            for name in self.names
        }

    def group(self, k: int, level: float | None = None) -> "Both[Elements]":
        """Return all elements of the two surfaces of one group.

        Parameters
        ----------
        k : int
            The index of the group.
        level : float, optional
            One of the levels. A level is required for probabilities if there are several levels.
            Label maps are the same at every level.

        Returns
        -------
        Both
            Per side, ``points`` contains the centroids of the elements, one per row, in the unit of
            the result. ``distances`` contains the distances to the nearest point of the other
            surface, and ``weights`` contains the areas or lengths of the elements.
        """
        if self._elements is None:
            raise InputError(
                "the elements of the boundaries are not available, because this result contains no "
                "images. Compare the segmentations again."
            )
        if not -len(self) <= k < len(self):
            raise InputError(f"k must be the index of one of {len(self)} groups, found {k}")
        if level is None and len(self.levels) < 2:
            level = self.levels[0] if self.levels else 0.5
        if level is None or (self.levels and level not in self.levels):
            levels = ", ".join(f"{number:g}" for number in self.levels)
            raise InputError(f"level must be one of {levels}, found {level}")
        return self._elements(k % len(self), level)

    def detach(self) -> "Boundaries":
        """Return the same values without references to the images."""
        return replace(self, _elements=None)

    def to_frame(self, *, by_level: bool = False) -> "pandas.DataFrame":
        """Return a table with one row per group.

        Parameters
        ----------
        by_level : bool, optional
            Whether to return one row per group and level. These rows contain the values without a
            penalty.
        """
        rows_per_group = self._values.shape[1] if by_level else 1
        columns: dict[str, Any] = {
            side: [labels for labels in self.groups[side] for _ in range(rows_per_group)]
            for side in SIDES
        }
        columns["counted"] = np.repeat(self.counted, rows_per_group)
        if by_level:
            columns["level"] = np.tile(self.levels or (nan,), len(self))
        for name in self.names:
            columns[name] = self._of(name).ravel() if by_level else self[name]
        return data_frame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Return built-in types for JSON. NaN becomes None, and infinity becomes "Infinity"."""
        values = {name: [_to_json(x) for x in self[name].tolist()] for name in self.names}
        by_level = {name: self._of(name).tolist() for name in self.names}
        return {
            "unit": self.unit,
            "percentiles": list(self.percentiles),
            "tolerances": list(self.tolerances),
            "levels": list(self.levels),
            "infinite": self.infinite,
            "means": {
                name: {
                    "mean": _to_json(mean.mean),
                    "finite_mean": _to_json(mean.finite_mean),
                    "infinite": mean.infinite,
                }
                for name, mean in self.means.items()
            },
            "groups": [
                {
                    **{side: list(self.groups[side][k]) for side in SIDES},
                    "counted": bool(self.counted[k]),
                    **{name: values[name][k] for name in self.names},
                    "by_level": {
                        name: [_to_json(x) for x in by_level[name][k]] for name in self.names
                    },
                }
                for k in range(len(self))
            ],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Boundaries":
        """Restore boundaries, without images, from the output of `to_dict`."""
        groups = content["groups"]
        boundaries = cls(
            groups=Both(*([tuple(group[side]) for group in groups] for side in SIDES)),
            counted=np.array([group["counted"] for group in groups], np.bool_),
            unit=str(content["unit"]),
            percentiles=tuple(map(float, content["percentiles"])),
            tolerances=tuple(map(float, content["tolerances"])),
            levels=tuple(map(float, content["levels"])),
            infinite=None if content["infinite"] is None else float(content["infinite"]),
            _values=np.empty(0),
        )
        rows = [[group["by_level"][name] for name in boundaries._order] for group in groups]
        values = [[[_from_json(x) for x in row] for row in group_rows] for group_rows in rows]
        shape = len(groups), len(boundaries._order), max(len(boundaries.levels), 1)
        return replace(boundaries, _values=np.array(values).reshape(shape).transpose(0, 2, 1))

    def has(
        self,
        percentiles: Iterable[float],
        tolerances: Iterable[float],
        levels: Iterable[float],
    ) -> bool:
        """Return whether this result was computed with these percentiles, tolerances and levels.

        Levels are ignored if both sides are label maps.
        """
        return (
            tuple(percentiles) == self.percentiles
            and tuple(tolerances) == self.tolerances
            and (not self.levels or tuple(levels) == self.levels)
        )

    @property
    def summary(self) -> str:
        """The means of all measures in one line."""
        return "   ".join(f"{name} {decimal(mean.mean)}" for name, mean in self.means.items())

    def to_text(self, max_groups: int | None = MAX_PRINTED_GROUPS) -> str:
        """Return the means, and a table of at most `max_groups` groups; None means all groups.

        Groups are listed in descending order of the Hausdorff distance.

        Examples
        --------
        >>> import numpy as np
        >>> import probdice
        >>> label_map = np.repeat([[1, 2, 3]], 4, axis=0)
        >>> boundaries = probdice.compare(label_map, label_map).boundaries()
        >>> print(boundaries.to_text(2).splitlines()[-1].strip())
        … and 1 more group
        """
        rows = self._rows(max_groups)
        lines = [self._title(), *self._lines(), *aligned_columns(rows)]
        omitted_count = len(self) - len(rows) + 1
        if omitted_count:
            lines.append(f"… and {quantity(omitted_count, 'more group')}")
        return "\n  ".join(lines)

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        header, *rows = self._rows(MAX_PRINTED_GROUPS)
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
        )
        lines = [self._title(), *self._lines()]
        if len(self) > MAX_PRINTED_GROUPS:
            lines.append(
                f"to_frame() lists {quantity(len(self) - MAX_PRINTED_GROUPS, 'more group')}"
            )
        text = "".join(f"<p>{escape(line)}</p>" for line in lines)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div>{text}{table}</div>"

    def _of(self, name: str) -> Floats:
        if name not in self._order:
            raise InputError(f"name must be one of {', '.join(self.names)}, found {name!r}")
        return self._values[:, :, self._order.index(name)]

    @property
    def _order(self) -> tuple[str, ...]:
        """The names of the measures, in the order in which `_values` stores them."""
        return (
            *STATISTICS,
            *(f"hd{p:g}" for p in self.percentiles),
            *share_names(self.tolerances),
        )

    def _title(self) -> str:
        groups = f"{len(self)} {'group' if len(self) == 1 else 'groups'}"
        if not self.levels:
            return f"Boundaries ({self.unit}): {groups}"
        levels = ", ".join(f"{level:g}" for level in self.levels)
        return f"Boundaries ({self.unit}, mean over the levels {levels}): {groups}"

    def _lines(self) -> list[str]:
        """Return a line with the means of all measures.

        If distances are infinite, also return a line with the number of groups that are missing on
        one side, and a line with the means of the finite distances.
        """
        lines = [f"mean {self.summary}"]
        missing_count = self.means["hd"].infinite
        if missing_count:
            finite = (
                f"{name} {decimal(mean.finite_mean)}"
                for name, mean in self.means.items()
                if not is_share(name)
            )
            groups = "group is" if missing_count == 1 else "groups are"
            where = "on one side at one or more levels" if self.levels else "on one side"
            penalty = "" if self.infinite is None else f", counted as {self.infinite:g} {self.unit}"
            lines.append(f"{missing_count} {groups} missing {where}{penalty}")
            lines.append(f"mean of the others {'   '.join(finite)}")
        return lines

    def _rows(self, max_groups: int | None) -> list[tuple[str, ...]]:
        rows = [("reference", "prediction", *self.names)]
        for k in np.argsort(-self["hd"], kind="stable")[:max_groups].tolist():
            labels = (listed(self.groups[side][k]) for side in SIDES)
            rows.append((*labels, *(decimal(float(self[name][k])) for name in self.names)))
        return rows


def _over_levels(values: Floats, infinite: float | None) -> Floats:
    """Return the mean over levels. Levels at which both sides are empty (NaN) are excluded.

    If `infinite` is not None, it replaces infinite distances.
    """
    if infinite is not None:
        values = np.where(np.isinf(values), infinite, values)
    is_known = ~np.isnan(values)
    counts = is_known.sum(axis=1)
    sums = np.where(is_known, values, 0.0).sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), nan)


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else nan


def _to_json(value: float) -> float | str | None:
    """Convert NaN to None and infinity to a string, because JSON supports neither."""
    return None if value != value else "Infinity" if isinf(value) else value


def _from_json(value: Any) -> float:
    """Convert a number from JSON. This is the inverse of `_to_json`."""
    return nan if value is None else float(value)
