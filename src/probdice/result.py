"""What a comparison found: frozen values that can show and store themselves."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from html import escape
from math import isnan, nan
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError, MissingExtraError
from probdice.relabelling import relabelled
from probdice.segmentation import Label, Segmentation
from probdice.solution import Problem, Solution
from probdice.tally import Side

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from probdice.pictures import Kind, Palette

__all__ = ["FORMAT", "Comparison", "Group", "Merge"]

FORMAT = 1  # version of what to_dict and to_json write
SHOWN = 12  # groups in a printed result
UNDECIDED = 1e-6  # chance this close to 1 leaves nothing to adjust


@dataclass(frozen=True)
class Group:
    """Regions of both sides that correspond, and how well they do.

    Attributes
    ----------
    reference, prediction : tuple of int or str
        Labels of the regions; one of the two is empty for a region without a partner.
    similarity : float
        D between the auxiliary segmentations of the two, by the similarity of the comparison.
    dice, jaccard : float
        Fuzzy Dice coefficient and Jaccard index.
    reference_volume, prediction_volume : float
        Sums of probability, in pixels.

    Examples
    --------
    >>> import probdice
    >>> probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).groups[0]
    Group(reference=(1,), prediction=(5,), dice=0.8)
    """

    reference: tuple[Label, ...]
    prediction: tuple[Label, ...]
    similarity: float
    dice: float
    jaccard: float
    reference_volume: float
    prediction_volume: float

    def __repr__(self) -> str:
        return (
            f"Group(reference={self.reference}, prediction={self.prediction}, dice={self.dice:g})"
        )


@dataclass(frozen=True)
class Merge:
    """A spare region that was merged.

    Attributes
    ----------
    side : {"reference", "prediction"}
        The side it belongs to.
    region : int or str
        Its label.
    into : tuple of int or str
        The labels of the other side whose group it joined.
    gain : float
        How much the similarity of that group rose.

    Examples
    --------
    >>> import probdice
    >>> probdice.compare([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9], merge="both").merges
    (Merge(side='prediction', region=5, into=(1,), gain=0.125),)
    """

    side: Side
    region: Label
    into: tuple[Label, ...]
    gain: float


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What `compare` found.

    Attributes
    ----------
    score : float
        D after matching and, where allowed, merging: 1 is equal.
    matched_score : float
        D after matching alone.
    groups : tuple of Group
        Corresponding regions, then those without a partner.
    merges : tuple of Merge
        Spare regions that were merged, in order.
    unmatched, empty : dict
        Per side, the labels of regions without a partner, and of those with nothing in Ω.
    notes : tuple of str
        Sentences worth knowing.
    weights : ndarray
        1 − D of every pair of regions; rows are `reference_labels`, columns `prediction_labels`.
    pixels : int
        |Ω|.
    similarity, floor, match, merge
        What was asked for.

    Examples
    --------
    >>> import probdice
    >>> result = probdice.compare([1, 1, 1, 1, 2, 2, 2, 2], [7, 7, 5, 5, 5, 9, 9, 9], merge="both")
    >>> result.score, result.matched_score
    (0.875, 0.625)
    >>> result
    Comparison (absolute, merge='both'): 2 reference and 3 prediction regions over 8 pixels
      score 0.8750   adjusted 0.7500 (chance 0.5000)   lowest Dice 0.8571 (2 ↔ 9)
      matched score 0.6250; 1 prediction region merged
      reference  prediction    Dice  similarity
              1        5, 7  0.8889      0.8750
              2           9  0.8571      0.8750
    """

    score: float
    matched_score: float
    groups: tuple[Group, ...]
    merges: tuple[Merge, ...]
    unmatched: dict[Side, tuple[Label, ...]]
    empty: dict[Side, tuple[Label, ...]]
    notes: tuple[str, ...]
    weights: NDArray[np.float64]
    reference_labels: tuple[Label, ...]
    prediction_labels: tuple[Label, ...]
    pixels: int
    similarity: str
    floor: float
    match: bool
    merge: str
    _work: tuple[Problem, Solution] | None = None

    @cached_property
    def chance(self) -> float:
        """The score of the same comparison if the two segmentations were independent."""
        return self._worked("chance")[0].chance()

    @property
    def adjusted_score(self) -> float:
        """(score − chance) / (1 − chance): 1 for identity, about 0 for unrelated segmentations."""
        room = 1 - self.chance
        return (self.score - self.chance) / room if room >= UNDECIDED else nan

    @property
    def lowest(self) -> Group:
        """The group with the lowest Dice."""
        return min(self.groups, key=lambda group: group.dice)

    def map(self) -> NDArray[np.float32]:
        """f at every pixel after correspondence; NaN outside the mask.

        Examples
        --------
        >>> import probdice
        >>> probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).map()
        array([1., 1., 0., 1.], dtype=float32)
        """
        problem, solution = self._worked("map()")
        sides: tuple[Side, Side] = ("reference", "prediction")
        return problem.pair.map(
            problem.similarity, {side: problem.keys(side, solution.groups) for side in sides}
        )

    def relabelled(self) -> Segmentation:
        """The prediction with the labels of the reference.

        Merged regions are joined and carry the label of the region they were matched with (the
        matched one, where several regions of the reference were merged). A region without a
        partner keeps its label if the reference does not use it and else gets a new one; its name
        says "(unmatched)".

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([1, 1, 1, 2, 2], [7, 7, 5, 9, 9], merge="both")
        >>> result.relabelled().array
        array([1, 1, 1, 2, 2])
        """
        return relabelled(*self._worked("relabelled()"))

    def plot(
        self,
        kind: "Kind" = "overview",
        *,
        place: Sequence[int] | None = None,
        palette: "Palette" = "safe",
    ) -> "Figure":
        """A picture as a Matplotlib figure; nothing is shown or saved. See `pictures.plot`.

        Parameters
        ----------
        kind : str, optional
            "overview", "regions", "map", "views", "correspondence", "weights", "slices" or
            "histogram".
        place : sequence of int, optional
            Index of the pixel through which a volume is cut; where the two differ most by default.
        palette : {"safe", "rgb"}, optional
            Colours for all eyes, or red, green and blue for up to three groups.

        Examples
        --------
        >>> import probdice
        >>> figure = probdice.compare([[1, 1], [2, 2]], [[5, 5], [5, 8]]).plot("weights")
        >>> figure.axes[0].images[0].get_array().tolist()
        [[0.25, 0.75], [0.75, 0.25]]
        """
        from probdice import pictures

        return pictures.plot(self, kind, place=place, palette=palette)

    def report(self, path: str | PathLike[str], *, title: str | None = None) -> None:
        """Write a page to look at: one HTML file that needs no network. See `report.write`.

        Parameters
        ----------
        path : path
            Where to.
        title : str, optional
            What stands on top; the names of the files by default.

        Examples
        --------
        >>> import os, tempfile
        >>> import probdice
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = os.path.join(folder, "page.html")
        ...     probdice.compare([[1, 1], [2, 2]], [[5, 5], [5, 8]]).report(page)
        ...     os.path.exists(page)
        True
        """
        from probdice import report

        report.write(self, path, title=title)

    def to_dict(self) -> dict[str, Any]:
        """All attributes as plain types, with the version of the format.

        Examples
        --------
        >>> import probdice
        >>> result = probdice.compare([1, 1, 2, 2], [5, 5, 5, 8])
        >>> result.to_dict()["score"]
        0.75
        """
        content: dict[str, Any] = {"format": FORMAT}
        for name in self._stored():
            content[name] = _plain(getattr(self, name))
        return content | {"chance": self.chance, "adjusted_score": self.adjusted_score}

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as JSON; what is not a number becomes null.

        Examples
        --------
        >>> import probdice
        >>> text = probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).to_json()
        >>> probdice.Comparison.from_json(text).score
        0.75
        """
        return json.dumps(_null_for_nan(self.to_dict()), indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Comparison":
        """Read back what `to_json` wrote. `map` and `relabelled` need the images and are gone.

        Examples
        --------
        >>> import probdice
        >>> text = probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).to_json()
        >>> probdice.Comparison.from_json(text).groups[1]
        Group(reference=(2,), prediction=(8,), dice=0.666667)
        """
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"text is not JSON: {error}") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            found = content.get("format") if isinstance(content, dict) else type(content).__name__
            raise InputError(f"text must hold a comparison of format {FORMAT}, found {found}")
        if absent := [name for name in (*cls._stored(), "chance") if name not in content]:
            raise InputError(f"text lacks {', '.join(absent)}: it holds no whole comparison")
        values = {name: content[name] for name in cls._stored()}
        values["groups"] = tuple(Group(**_frozen(group)) for group in values["groups"])
        values["merges"] = tuple(Merge(**_frozen(merge)) for merge in values["merges"])
        for name in ("unmatched", "empty"):
            values[name] = _frozen(values[name])
        for name in ("notes", "reference_labels", "prediction_labels"):
            values[name] = tuple(values[name])
        values["weights"] = np.array(values["weights"], dtype=np.float64)
        result = cls(**values)
        result.__dict__["chance"] = nan if content["chance"] is None else content["chance"]
        return result

    def to_frame(self) -> "pandas.DataFrame":
        """The groups as a table, one row each.

        Examples
        --------
        >>> import probdice
        >>> frame = probdice.compare([1, 1, 2, 2], [5, 5, 5, 8]).to_frame()
        >>> frame["dice"].round(3).tolist()
        [0.8, 0.667]
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtraError('to_frame needs pandas: pip install "pandas"') from None
        return pandas.DataFrame([_plain(group) for group in self.groups])

    def __repr__(self) -> str:
        lines = [
            self._title(),
            f"  {self._headline()}",
            *(f"  {line}" for line in self._remarks()),
            *(f"  {line}" for line in _columns(self._rows())),
        ]
        if len(self.groups) > SHOWN:
            lines.append(f"  … and {len(self.groups) - SHOWN} more groups")
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])

    def _repr_html_(self) -> str:
        header, *rows = self._rows()
        table = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
        )
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        remarks = "".join(f"<p>{escape(text)}</p>" for text in (*self._remarks(), *self.notes))
        return (
            f"<div><p>{escape(self._title())}</p><p><strong>{escape(self._headline())}</strong></p>"
            f"{remarks}<table><thead><tr>{head}</tr></thead><tbody>{table}</tbody></table></div>"
        )

    def _title(self) -> str:
        asked = [self.similarity]
        if self.floor:
            asked.append(f"floor={self.floor:g}")
        if not self.match:
            asked.append("match=False")
        if self.merge != "none":
            asked.append(f"merge={self.merge!r}")
        counts = len(self.reference_labels), len(self.prediction_labels)
        return (
            f"Comparison ({', '.join(asked)}): {counts[0]} reference and {counts[1]} prediction "
            f"regions over {self.pixels} pixels"
        )

    def _headline(self) -> str:
        lowest = self.lowest
        return (
            f"score {self.score:.4f}   adjusted {self.adjusted_score:.4f} "
            f"(chance {self.chance:.4f})   lowest Dice {lowest.dice:.4f} "
            f"({listed(lowest.reference)} ↔ {listed(lowest.prediction)})"
        )

    def _remarks(self) -> list[str]:
        if not self.merges:
            return []
        count, side = len(self.merges), self.merges[0].side
        regions = "region" if count == 1 else "regions"
        return [f"matched score {self.matched_score:.4f}; {count} {side} {regions} merged"]

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("reference", "prediction", "Dice", "similarity")]
        for group in self.groups[:SHOWN]:
            rows.append(
                (
                    listed(group.reference),
                    listed(group.prediction),
                    f"{group.dice:.4f}",
                    f"{group.similarity:.4f}",
                )
            )
        return rows

    def _worked(self, what: str) -> tuple[Problem, Solution]:
        if self._work is None:
            raise InputError(f"{what} needs the images; this comparison was read from JSON")
        return self._work

    @classmethod
    def _stored(cls) -> list[str]:
        return [entry.name for entry in fields(cls) if not entry.name.startswith("_")]


def listed(labels: Sequence[Label], most: int = 6) -> str:
    """Labels in a row, the first few of many; a dash for none."""
    if not labels:
        return "–"
    more = f", … {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(str(label) for label in labels[:most]) + more


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]


def _plain(value: Any) -> Any:
    """Lists, dicts and plain numbers from what a result holds."""
    if isinstance(value, Group | Merge):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _null_for_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _null_for_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_null_for_nan(item) for item in value]
    return None if isinstance(value, float) and isnan(value) else value


def _frozen(content: dict[str, Any]) -> dict[str, Any]:
    """Lists as tuples and null as NaN, as a Group or a Merge holds them."""
    return {
        key: tuple(value) if isinstance(value, list) else nan if value is None else value
        for key, value in content.items()
    }
