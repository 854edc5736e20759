"""The folders and patterns of a run, as users give them, checked before any file is touched."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from probdice.errors import InputError

__all__ = ["Folder", "methods_of", "patterns_of"]

Folder = str | os.PathLike[str]


def methods_of(predictions: Mapping[str, Folder] | Folder) -> dict[str, str]:
    """The folder of every method."""
    if not isinstance(predictions, Mapping):
        folder = Path(predictions)
        predictions = {folder.name or folder.resolve().name: folder}
    if not predictions:
        raise InputError("predictions must name at least one method, found none")
    if "" in predictions:
        raise InputError("predictions must name every method, found an empty name")
    return {str(name): os.fspath(folder) for name, folder in predictions.items()}


def patterns_of(
    pattern: str | Mapping[str, str] | None, methods: Iterable[str]
) -> tuple[str | None, dict[str, str | None]]:
    """The pattern of the reference, and of every method."""
    methods = list(methods)
    if not isinstance(pattern, Mapping):
        return pattern, dict.fromkeys(methods, pattern)
    if unknown := pattern.keys() - {"reference", "prediction", *methods}:
        raise InputError(
            f"pattern: expected 'reference', 'prediction' or a method, found {sorted(unknown)}"
        )
    general = pattern.get("prediction")
    # "reference" is the reference, even where a method is called so too.
    return pattern.get("reference"), {
        name: general if name == "reference" else pattern.get(name, general) for name in methods
    }
