"""Identify unsupported files by their first bytes, so that error messages can name their type."""

import re

from probdice.errors import Option
from probdice.files.model import Source

__all__ = ["archive_of", "file_type"]

PICKLE = (
    "a Python pickle, which can run code and is never loaded. Load it yourself and pass the array."
)
PYTORCH = (
    "a PyTorch file, which can run code and is never loaded. Load it with torch.load(path, "
    "weights_only=True) and pass the tensor."
)
SURFACE = ". A segmentation needs one label per voxel or vertex."
PICTURE = ", which does not preserve label values. Use PNG or TIFF."
STARTS: tuple[tuple[bytes, str], ...] = (
    (b"%PDF", "a PDF document"),
    (b"\x80\x02\x8a\nl\xfc\x9cF\xf9", PYTORCH),
    (b"GIF8", f"a GIF picture{PICTURE}"),
    (b"\0\0\0\x0cjP  ", f"a JPEG 2000 picture{PICTURE}"),
    (b"\xffO\xffQ", f"a JPEG 2000 picture{PICTURE}"),
    (b"BZh", "compressed with bzip2. Decompress it first."),
    (b"\xfd7zXZ", "compressed with xz. Decompress it first."),
    (b"(\xb5/\xfd", "compressed with Zstandard. Decompress it first."),
    (b"7z\xbc\xaf'\x1c", "a 7-Zip archive. Extract it first."),
    (b"Rar!", "a RAR archive. Extract it first."),
    (b"PAR1", "a Parquet table"),
    (b"ARROW1", "an Arrow table"),
    (b"SQLite format 3", "an SQLite database"),
    (b"CDF\x01", "a NetCDF file. Open it with xarray and pass the DataArray."),
    (b"\xff\xff\xfe", f"a FreeSurfer surface{SURFACE}"),
    (b"\x7fELF", "an executable program"),
    (b"MZ", "an executable program"),
    (b"solid ", f"a surface mesh (STL){SURFACE}"),
)
TEXTS: tuple[tuple[str, str], ...] = (
    (r"version https://git-lfs", "a Git LFS pointer, not the file itself. Run git lfs pull."),
    (
        r"(\.\./)*\.git/annex/|/annex/objects/",
        "a git-annex pointer, not the file itself. Run git annex get.",
    ),
    (
        r"<!doctype html|<html",
        "a web page, perhaps a login page instead of the download. Download the file again.",
    ),
    (r"<\?xml|<[a-z]+[ >]", "XML"),
    (r"[{\[]", "JSON"),
    (r"ply\r?\n", f"a surface mesh (PLY){SURFACE}"),
)
TABLE = ". To use a table of names, pass ", Option("names", "FILE", python="names=…"), "."


def file_type(source: Source) -> tuple[str | Option, ...]:
    """Return the parts of a phrase that can follow "it is", or () if the type is unknown."""
    head = source.head
    for start, kind in STARTS:
        if head.startswith(start):
            return (kind,)
    if head[257:262] == b"ustar":
        return ("a tar archive. Extract it first.",)
    if head[4:8] == b"ftyp" or head[:4] in (b"RIFF", b"\x1aE\xdf\xa3"):
        return ("a video, an audio file or a compressed image",)
    if head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5"):
        return (PICKLE,)
    return _text(head, source.name)


def archive_of(members: list[str]) -> str:
    """Describe a zip archive in words that can follow "it is". Return "" if it has NumPy arrays."""
    if any(name.split("/")[-1] == "data.pkl" for name in members):
        return PYTORCH
    if any(name.endswith(".npy") for name in members):
        return ""
    if "[Content_Types].xml" in members:
        return "a Microsoft Office document"
    if "mimetype" in members:
        return "a document (OpenDocument or EPUB)"
    if any(name.split("/")[-1] in (".zarray", ".zgroup", "zarr.json") for name in members):
        return "a zipped Zarr store. Open it with zarr and pass the array."
    shown = ", ".join(members[:4]) + (", …" if len(members) > 4 else "") or "nothing"
    return f"a zip archive without NumPy arrays (it contains {shown}). Extract it first."


def _text(head: bytes, name: str) -> tuple[str | Option, ...]:
    """Return the parts of a phrase for a text file, or () if the bytes are not text."""
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # the last character may be cut off
            return ()
        text = head[: error.start].decode("utf-8-sig")
    if any(ord(letter) < 32 and letter not in "\t\n\r\f\v" for letter in text):
        return ()
    first, second = [*text.strip().splitlines()[:2], "", ""][:2]
    for pattern, kind in TEXTS:
        if re.match(pattern, text.lstrip(), re.IGNORECASE | re.DOTALL):
            start = f"{kind} starting with {_shortened(first)!r}"
            return {"JSON": (kind, *TABLE), "XML": (start,)}.get(kind, (kind,))
    for separator, kind in (("\t", "TSV"), (";", "CSV"), (",", "CSV")):
        if 0 < first.count(separator) == second.count(separator):
            return f"a text table ({kind}) starting with {_shortened(first)!r}", *TABLE
    hint = TABLE if name.endswith((".txt", ".ctab", ".ctbl", ".label", ".lut")) else ()
    return f"text starting with {_shortened(first)!r}", *hint


def _shortened(line: str) -> str:
    return line if len(line) <= 40 else f"{line[:40]}…"
