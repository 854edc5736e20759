"""Check the folders and patterns given by the user, before any file is read."""

import os
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from probdice.errors import InputError

__all__ = [
    "NO_PATTERNS",
    "Folder",
    "Patterns",
    "as_name",
    "methods_of",
    "patterns_of",
    "relative_path",
]

Folder = str | os.PathLike[str]
SHARED_FOLDERS = ("reference", "mask", "image")  # folders that all methods share


@dataclass(frozen=True)
class Patterns:
    """The file name patterns of all folders; None for the default file names."""

    reference: str | None = None
    mask: str | None = None
    image: str | None = None
    methods: dict[str, str | None] = field(default_factory=dict)


NO_PATTERNS = Patterns()


def as_name(text: str) -> str:
    """Return the name of a case, method or rater in Unicode normal form C (NFC).

    macOS stores é as two characters, and most other systems store it as one. Paths are not
    normalised.
    """
    return unicodedata.normalize("NFC", text)


def methods_of(predictions: Mapping[str, Folder] | Folder) -> dict[str, str]:
    """Return the folder of every method."""
    if not isinstance(predictions, Mapping):
        folder_path = Path(predictions)
        predictions = {folder_path.name or folder_path.resolve().name: folder_path}
    if not predictions:
        raise InputError("predictions must name at least one method, found none")
    if "" in predictions:
        raise InputError("predictions must name every method, found an empty name")
    methods: dict[str, str] = {}
    for key, folder in predictions.items():
        name = as_name(str(key))
        if name in methods:
            raise InputError(
                f"predictions: {name!r} is the name of two methods; rename one of them"
            )
        methods[name] = os.fspath(folder)
    return methods


def patterns_of(pattern: str | Mapping[str, str] | None, methods: Iterable[str]) -> Patterns:
    """Return the patterns for the reference, the masks, the images and every method."""
    methods = list(methods)
    if not isinstance(pattern, Mapping):
        return Patterns(pattern, pattern, pattern, dict.fromkeys(methods, pattern))
    pattern = {as_name(name): text for name, text in pattern.items()}
    if unknown_names := pattern.keys() - {*SHARED_FOLDERS, "prediction", *methods}:
        raise InputError(
            f"pattern: expected 'reference', 'prediction', 'mask', 'image' or a method, found "
            f"{sorted(unknown_names)}"
        )
    prediction_pattern = pattern.get("prediction")
    # "reference" means the reference, even if a method has the same name.
    method_patterns = {
        name: prediction_pattern
        if name in SHARED_FOLDERS
        else pattern.get(name, prediction_pattern)
        for name in methods
    }
    reference, mask, image = (pattern.get(name) for name in SHARED_FOLDERS)
    return Patterns(reference, mask, image, method_patterns)


def relative_path(path: Folder, folder: Folder) -> str:
    """Return a path relative to a folder, with slashes (/); the full path if the drives differ."""
    try:
        relative = os.path.relpath(path, folder)
    except ValueError:
        return os.path.abspath(path)
    return relative.replace(os.sep, "/")
