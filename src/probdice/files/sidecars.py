"""List all files that `read` opens for a path, and compute their checksums."""

import hashlib
import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from probdice.errors import ProbdiceError
from probdice.files.bids import label_table
from probdice.files.corrupt import library_call
from probdice.files.nifti import other_half
from probdice.files.numpy_files import label_image
from probdice.files.sources import split_inside, split_paths
from probdice.files.value_files import metaimage_values, nrrd_values

__all__ = ["files_read", "fingerprint"]

# Suffixes of headers whose values may be in other files, and functions that locate the values.
HEADERS = {
    ".mha": metaimage_values,
    ".mhd": metaimage_values,
    ".nhdr": nrrd_values,
    ".nrrd": nrrd_values,
}


def files_read(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """List the files of a path such as `a.nii.gz,b.nii.gz`, `'pve_*.nii.gz'` or `file.h5:/inside`.

    The list includes companion files, such as the .img file of an .hdr file. Each existing file is
    listed once. Invalid paths are ignored, because the reader reports them.
    """
    try:
        parts = split_paths(path)
    except (ProbdiceError, OSError):
        return []
    files: dict[Path, None] = {}
    for part in parts:
        file, inside = split_inside(part)
        files[file] = None
        with suppress(ProbdiceError, OSError):
            files.update(dict.fromkeys(_companions(file, inside)))
    return [file for file in files if os.path.exists(file)]


def fingerprint(file: str | os.PathLike[str]) -> str:
    """Return the SHA-256 checksum of a file."""
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _companions(file: Path, inside: str) -> Iterator[Path]:
    """Yield the other files that are read with this file."""
    if not file.is_file():
        return
    table = label_table(file)
    if table is not None:
        yield table
    half = other_half(file)
    if half is not None:
        yield half
    elif (values_of := HEADERS.get(file.suffix.lower())) is not None:
        yield from (values for values, _ in values_of(file).files)
    elif file.name.lower().endswith(".npz") and inside.strip("/") in ("", "probabilities"):
        with library_call(), zipfile.ZipFile(file) as archive:
            exported = "probabilities.npy" in archive.namelist()
        labels = label_image(file) if exported else None
        if labels is not None:
            yield labels
