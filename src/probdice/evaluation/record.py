"""The record of one case and one method in the journal, and the measures of the case."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any

from probdice.comparison.result import Comparison
from probdice.errors import InputError, Note
from probdice.evaluation.pairing import Role
from probdice.files.sources import split_inside
from probdice.method.sides import Side
from probdice.metrics.registry import REGISTRY

__all__ = ["Record", "full_path"]


@dataclass(frozen=True)
class Record:
    """One case of one method.

    Attributes
    ----------
    case : str
        The case.
    method : str
        The method.
    comparison : Comparison or None
        The comparison, without its images; None if the case failed.
    failure : Note or None
        The reason for the failure; None if the case was scored.
    seconds : float
        The computing time in seconds.
    reference : tuple of str
        The full paths of the reference files. If there are several files, each is one region.
    prediction : tuple of str
        The full paths of the prediction files.
    mask : tuple of str
        The full paths of the mask files; empty if there is no mask.
    inputs : dict
        The name, size, modification time and SHA-256 of every file that was read, by role:
        "reference", "prediction" and "mask".
    regions : dict
        The names of the regions, for sides with one file per region.
    """

    case: str
    method: str
    comparison: Comparison | None
    failure: Note | None
    seconds: float
    reference: tuple[str, ...]
    prediction: tuple[str, ...]
    mask: tuple[str, ...]
    inputs: dict[str, list[list[Any]]]
    regions: dict[Side, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def from_line(cls, content: dict[str, Any], out: Path) -> "Record":
        """Create a record from a line of the journal in the folder `out`.

        An invalid line raises InputError.
        """
        comparison = failure = None
        if "comparison" in content:
            comparison = Comparison.from_dict(content["comparison"])
        else:
            try:
                failure = Note.from_dict(content["failure"])
            except (LookupError, TypeError) as error:
                raise InputError(f"cases.jsonl: invalid failure entry: {error}") from error
        files = {
            role: tuple(full_path(file, out) for file in paths)
            for role, paths in content["files"].items()
        }
        return cls(
            case=content["case"],
            method=content["method"],
            comparison=comparison,
            failure=failure,
            seconds=content["seconds"],
            reference=files["reference"],
            prediction=files["prediction"],
            mask=files["mask"],
            inputs=content["inputs"],
            regions={side: tuple(names) for side, names in content.get("regions", {}).items()},
        )

    @property
    def error(self) -> str:
        """The error message of a failed case; "" if the case was scored."""
        return "" if self.failure is None else str(self.failure)

    def paths(self, role: Role) -> tuple[str, ...]:
        """Return the full paths of the files with the given role (a side or the mask)."""
        return {"reference": self.reference, "prediction": self.prediction, "mask": self.mask}[role]

    def files_of(self, role: Role) -> Iterator[tuple[str, int | None, str | None]]:
        """Yield the full path, size and SHA-256 of every file with the given role.

        The role is a side or the mask. The names of other files that were read, such as companion
        files, are relative to the folder of the first file.
        """
        paths = [str(split_inside(path)[0]) for path in self.paths(role)]
        for name, size, _, content in self.inputs[role]:
            same_name_paths = [path for path in paths if os.path.basename(path) == name] or paths
            path = os.path.normpath(os.path.join(os.path.dirname(same_name_paths[0]), name))
            yield path, size, content

    def value(self, measure: str) -> float:
        """Return the value of a measure for this case; NaN if the case failed."""
        return self.of_comparison(REGISTRY[measure].compute)

    def of_comparison(self, compute: Callable[[Comparison], float]) -> float:
        """Return the result of `compute` for this case; NaN if the case failed."""
        return nan if self.comparison is None else compute(self.comparison)


def full_path(file: str, folder: Path) -> str:
    """Return the full path of a file, given its path relative to a folder."""
    return os.path.normpath(os.path.join(os.path.abspath(folder), file))
