"""Replace files atomically, replace folders, and convert NaN for JSON."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import isnan
from pathlib import Path
from typing import Any

from probdice.data.machine import replace
from probdice.errors import InputError

__all__ = ["null_for_nan", "replacing", "replacing_folder"]


@contextmanager
def replacing(target: Path, suffix: str = "", *, has_lock: bool = False) -> Iterator[Path]:
    """Yield a temporary path in the folder of the target, and replace the target at the end.

    The caller writes a file at the temporary path. This file is flushed to disk, and then renamed
    to the target. If an error occurs, the temporary file is removed and the target remains
    unchanged. If the target is a symbolic link, the file to which it points is replaced. Use
    `has_lock` only while holding a lock: the temporary name is then always the same, so the next
    run overwrites the temporary file of a killed run.
    """
    target = Path(os.path.realpath(target))
    if target.is_dir():
        raise InputError("is a folder, expected the name of a file")
    if target.exists() and not target.is_file():  # renaming would replace /dev/null
        raise InputError("is a device or a pipe, expected the name of a file")
    stem = target.name
    if suffix and stem.lower().endswith(suffix):
        stem = stem[: -len(suffix)]
    partial = target.with_name(f".{stem}.{'partial' if has_lock else secrets.token_hex(4)}{suffix}")
    try:
        yield partial
        with partial.open("rb+") as stream:
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, partial)
        replace(partial, target)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()


@contextmanager
def replacing_folder(target: Path) -> Iterator[Path]:
    """Yield the path of a temporary folder, and replace the target with this folder at the end.

    The caller creates the folder. An existing target is renamed, and removed once the new folder is
    in its place, so the replacement is not atomic. If the new folder cannot be renamed, the
    existing target is restored.
    """
    target = Path(os.path.realpath(target))
    stem, suffix = target.stem, target.suffix
    token = secrets.token_hex(4)
    partial, before = (
        target.with_name(f".{stem}.{token}{part}{suffix}") for part in ("", ".before")
    )
    try:
        yield partial
        if not target.exists():
            replace(partial, target)
            return
        replace(target, before)
        try:
            replace(partial, target)
        except BaseException:
            replace(before, target)
            raise
        shutil.rmtree(before, ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def null_for_nan(value: Any) -> Any:
    """Replace every NaN with None, because JSON has no NaN."""
    if isinstance(value, dict):
        return {key: null_for_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [null_for_nan(item) for item in value]
    return None if isinstance(value, float) and isnan(value) else value
