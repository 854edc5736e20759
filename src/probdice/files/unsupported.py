"""What a file is that holds no segmentation, by its first bytes: a message says it by name."""

import re

from probdice.errors import Option
from probdice.files.model import Source

__all__ = ["archive_of", "described"]

PICKLE = (
    "a Python pickle, which is never loaded since it can run code; load it yourself and pass the "
    "array"
)
PYTORCH = (
    "a PyTorch file, which is never loaded since it can run code; load it with torch.load(path, "
    "weights_only=True) and pass the tensor"
)
PICTURE = "; it changes or shortens values, so it cannot hold labels. Use PNG or TIFF"
STARTS: tuple[tuple[bytes, str], ...] = (
    (b"%PDF", "a PDF document"),
    (b"\x80\x02\x8a\nl\xfc\x9cF\xf9", PYTORCH),
    (b"GIF8", f"a GIF picture{PICTURE}"),
    (b"\0\0\0\x0cjP  ", f"a JPEG 2000 picture{PICTURE}"),
    (b"\xffO\xffQ", f"a JPEG 2000 picture{PICTURE}"),
    (b"BZh", "packed by bzip2; unpack it first"),
    (b"\xfd7zXZ", "packed by xz; unpack it first"),
    (b"(\xb5/\xfd", "packed by Zstandard; unpack it first"),
    (b"7z\xbc\xaf'\x1c", "a 7-Zip archive; unpack it first"),
    (b"Rar!", "a RAR archive; unpack it first"),
    (b"PAR1", "a Parquet table"),
    (b"ARROW1", "an Arrow table"),
    (b"SQLite format 3", "an SQLite database"),
    (b"CDF\x01", "a NetCDF file; open it with xarray and pass the DataArray"),
    (b"\xff\xff\xfe", "a FreeSurfer surface; a segmentation has one label for each pixel"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"solid ", "a surface (STL); a segmentation has one label for each pixel"),
)
TEXTS: tuple[tuple[str, str], ...] = (
    (r"version https://git-lfs", "a pointer of Git LFS, not the file itself: run git lfs pull"),
    (
        r"(\.\./)*\.git/annex/|/annex/objects/",
        "a pointer of git-annex, not the file itself: run git annex get",
    ),
    (r"<!doctype html|<html", "a web page; did a download end at a page that asks to log in?"),
    (r"(<\?xml.*?\?>\s*)?(<!DOCTYPE GIFTI.*?>\s*)?<GIFTI", "a GIfTI surface, which has no pixels"),
    (r"<\?xml|<[a-z]+[ >]", "XML"),
    (r"[{\[]", "JSON"),
    (r"ply\r?\n", "a surface (PLY); a segmentation has one label for each pixel"),
)
TABLE = "; a table of names is passed as ", Option("names", "FILE", python="names=…")


def described(source: Source) -> tuple[str | Option, ...]:
    """What the file is, to follow "is"; nothing where nobody knows."""
    head = source.head
    for start, what in STARTS:
        if head.startswith(start):
            return (what,)
    if head[257:262] == b"ustar":
        return ("a tar archive; unpack it first",)
    if head[4:8] == b"ftyp" or head[:4] in (b"RIFF", b"\x1aE\xdf\xa3"):
        return ("a film, a sound or a compressed picture",)
    if head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5"):
        return (PICKLE,)
    return _text(head, source.name)


def archive_of(members: list[str]) -> str:
    """What a zip archive is that holds no arrays, to follow "is"; "" where it holds some."""
    if any(name.split("/")[-1] == "data.pkl" for name in members):
        return PYTORCH
    if any(name.endswith(".npy") for name in members):
        return ""
    if "[Content_Types].xml" in members:
        return "a document of Microsoft Office"
    if "mimetype" in members:
        return "a document (OpenDocument or EPUB)"
    if any(name.split("/")[-1] in (".zarray", ".zgroup", "zarr.json") for name in members):
        return "a zipped Zarr store; open it with zarr and pass the array"
    shown = ", ".join(members[:4]) + (", …" if len(members) > 4 else "") or "nothing"
    return f"a zip archive without arrays of NumPy (it holds {shown}); unpack it first"


def _text(head: bytes, name: str) -> tuple[str | Option, ...]:
    """What a text is."""
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # but for a letter that was cut off
            return ()
        text = head[: error.start].decode("utf-8-sig")
    if any(ord(letter) < 32 and letter not in "\t\n\r\f\v" for letter in text):
        return ()
    first, second = [*text.strip().splitlines()[:2], "", ""][:2]
    for pattern, what in TEXTS:
        if re.match(pattern, text.lstrip(), re.IGNORECASE | re.DOTALL):
            start = f"{what} that starts with {_shortened(first)!r}"
            return {"JSON": (what, *TABLE), "XML": (start,)}.get(what, (what,))
    for separator, kind in (("\t", "TSV"), (";", "CSV"), (",", "CSV")):
        if 0 < first.count(separator) == second.count(separator):
            return f"a table of text ({kind}) that starts with {_shortened(first)!r}", *TABLE
    hint = TABLE if name.endswith((".txt", ".ctab", ".ctbl", ".label", ".lut")) else ()
    return f"a text that starts with {_shortened(first)!r}", *hint


def _shortened(line: str) -> str:
    return line if len(line) <= 40 else f"{line[:40]}…"
