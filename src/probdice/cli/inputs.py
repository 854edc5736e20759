"""Every file that an argument of a command makes the library read."""

import os
import re
import zipfile
from collections.abc import Iterator
from glob import escape, glob
from pathlib import Path

__all__ = ["files_read"]

HEADER = 1 << 16  # bytes in which a detached header names its data files
PAIRS = (".hdr", ".img")  # the two halves of an Analyze or NIfTI image
DETACHED = (".mhd", ".nhdr")  # headers that name the files of their values
DATA_FILE = re.compile(r"^[ \t]*(?:ElementDataFile[ \t]*=|data ?file:)[ \t]*(.+?)[ \t]*$", re.M)
NUMBERED = re.compile(r"%\d*d")  # in the name of a series, such as slice%03d.raw


def files_read(argument: str) -> list[Path]:
    """The files behind `a.nii.gz`, `a.nii.gz,b.nii.gz`, `'pve_*.nii.gz'` or `file.h5:/inside`.

    The files that a format keeps beside the one that is named are among them. Only files that
    exist are listed; what is wrong with the argument is for the reader to say.
    """
    from probdice.errors import ProbdiceError
    from probdice.files.sources import split_paths

    try:
        parts = split_paths(argument)
    except (ProbdiceError, OSError):
        return []
    files = []
    for part in parts:
        file, inside = _split_inside(part)
        files += [file, *_companions(file, inside)]
    return [file for file in files if os.path.exists(file)]


def _split_inside(part: str) -> tuple[Path, str]:
    """The file, and what is named inside it after a colon; a file's name may hold a colon too."""
    if os.path.exists(part):
        return Path(part), ""
    for colon in (match.start() for match in re.finditer(":", part)):
        if os.path.isfile(part[:colon]):
            return Path(part[:colon]), part[colon + 1 :]
    return Path(part), ""


def _companions(file: Path, inside: str) -> Iterator[Path]:
    """The files beside this one that are read with it."""
    name = file.name.lower()
    stem, suffix = os.path.splitext(name.removesuffix(".gz"))
    if suffix in PAIRS:
        other = PAIRS[1 - PAIRS.index(suffix)]
        root = str(file)[: len(str(file)) - len(name) + len(stem)]
        for ending in (other, f"{other}.gz", other.upper()):
            yield Path(root + ending)
    elif name.endswith(DETACHED):
        yield from _data_files(file)
    elif name.endswith(".npz") and inside.strip("/") in ("", "probabilities"):
        yield from _label_image(file)


def _data_files(header: Path) -> Iterator[Path]:
    """What a detached header of MetaImage or NRRD names as the place of its values."""
    try:
        with header.open("rb") as stream:
            text = stream.read(HEADER).decode("latin-1").replace("\r\n", "\n")
    except OSError:
        return
    for match in DATA_FILE.finditer(text):
        named = match[1]
        if named.upper().startswith("LIST"):  # one name a line, to the end of the header
            yield from (header.parent / line.strip() for line in text[match.end() :].splitlines())
        elif number := NUMBERED.search(named):
            name = named.split()[0]
            pattern = escape(name[: number.start()]) + "*" + escape(name[number.end() :])
            yield from map(Path, glob(os.path.join(escape(str(header.parent)), pattern)))
        else:
            yield header.parent / named


def _label_image(file: Path) -> Iterator[Path]:
    """The label image beside nnU-Net's probabilities, which says where they lie."""
    from probdice.files.arrays import LABEL_FILES

    try:
        with zipfile.ZipFile(file) as archive:
            exported = "probabilities.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return
    if exported:
        candidates = (Path(f"{file.with_suffix('')}{suffix}") for suffix in LABEL_FILES)
        yield from [candidate for candidate in candidates if candidate.exists()][:1]
