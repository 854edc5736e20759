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
    "raters_of",
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

    On macOS, é in a file name can be stored as two characters, which most other systems store as
    one. Paths are not normalised.
    """
    return unicodedata.normalize("NFC", text)


def methods_of(predictions: Mapping[str, Folder] | Folder) -> dict[str, str]:
    """Return the folder of every method."""
    if isinstance(predictions, str | os.PathLike):
        folder_path = Path(predictions)
        predictions = {folder_path.name or folder_path.resolve().name: folder_path}
    if not isinstance(predictions, Mapping):
        raise InputError(
            f"predictions must be the path of a folder, or a mapping of method names to folders, "
            f"found {predictions!r}"
        )
    return _by_name("predictions", "method", predictions)


def raters_of(raters: Mapping[str, Folder]) -> dict[str, str]:
    """Return the folder of every rater."""
    if not isinstance(raters, Mapping):
        raise InputError(f"raters must be a mapping of rater names to folders, found {raters!r}")
    return _by_name("raters", "rater", raters)


def _by_name(option: str, kind: str, folders: Mapping[str, Folder]) -> dict[str, str]:
    """Check the names and folders of methods or raters."""
    if not folders:
        raise InputError(f"{option} must name at least one {kind}, found none")
    if "" in folders:
        raise InputError(f"{option} must name every {kind}, found an empty name")
    paths: dict[str, str] = {}
    for key, folder in folders.items():
        name = as_name(str(key))
        if name in paths:
            raise InputError(f"{option}: {name!r} is the name of two {kind}s; rename one of them")
        if not isinstance(folder, str | os.PathLike):
            raise InputError(
                f"{option}: expected the path of a folder for {name!r}, found {folder!r}"
            )
        paths[name] = os.fspath(folder)
    return paths


def patterns_of(pattern: str | Mapping[str, str] | None, methods: Iterable[str]) -> Patterns:
    """Return the patterns for the reference, the masks, the images and every method."""
    methods = list(methods)
    if pattern is None or isinstance(pattern, str):
        return Patterns(pattern, pattern, pattern, dict.fromkeys(methods, pattern))
    if not isinstance(pattern, Mapping) or not all(isinstance(p, str) for p in pattern.values()):
        raise InputError(
            f"pattern must be a file name pattern, such as '{{case}}_seg.nii.gz', or a mapping of "
            f"folders to patterns, found {pattern!r}"
        )
    pattern = {as_name(name): text for name, text in pattern.items()}
    if unknown_names := pattern.keys() - {*SHARED_FOLDERS, "prediction", *methods}:
        raise InputError(
            f"pattern: expected 'reference', 'prediction', 'mask', 'image' or the name of a method "
            f"or rater, found {sorted(unknown_names)}"
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
