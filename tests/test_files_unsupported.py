"""Errors for unsupported files name the type of the file."""

import pickle
import zipfile

import pytest

from probdice import FormatError, read

UNSUPPORTED = {
    "paper.pdf": (b"%PDF-1.7\n", "it is a PDF document"),
    "table.csv": (
        b"case,score\na,0.5\n",
        r"it is a text table \(CSV\) .*names=…",
    ),
    "table.tsv": (b"index\tname\n1\tgrey\n", r"it is a text table \(TSV\)"),
    "result.json": (b'{"score": 0.5}', "it is JSON. To use a table of names, pass names=…"),
    "lut.txt": (b"0 Unknown 0 0 0 0\n", "it is text starting with '0 Unknown.*names=…"),
    "page.html": (b"<!DOCTYPE html><html>", "it is a web page, perhaps a login page"),
    "other.xml": (b"<?xml version='1.0'?><a/>", "it is XML"),
    "lh.pial": (b"\xff\xff\xfecreated by", "it is a FreeSurfer surface"),
    "old.pt": (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "it is a PyTorch file, .* torch.load"),
    "model.pkl": (pickle.dumps([1, 2]), "it is a Python pickle, which can run code"),
    "movie.mp4": (b"\0\0\0\x18ftypmp42\0\0\0\0", "it is a video"),
    "a.tar": (b"a" * 257 + b"ustar\0", "it is a tar archive. Extract it first"),
    "a.bz2": (b"BZh91AY&SY", "it is compressed with bzip2. Decompress it"),
    "strange.bin": (b"\x01\x02\x03\x04\xff\xfe\xfd\x00", r"unknown file format \(it starts with"),
    "a.nii.gz": (b"version https://git-lfs.github.com/spec/v1\n", "NIfTI .* Git LFS.*git lfs pull"),
    "b.nii.gz": (b"<html><body>Log in</body></html>", "not a NIfTI .* it is a web page"),
}


@pytest.mark.parametrize("file", UNSUPPORTED)
def test_the_type_of_an_unsupported_file_is_named(file, tmp_path):
    content, message = UNSUPPORTED[file]
    (tmp_path / file).write_bytes(content)
    with pytest.raises(FormatError, match=message):
        read(tmp_path / file)


@pytest.mark.parametrize(
    ("file", "members", "message"),
    [
        ("model.pt", ["model/data.pkl", "model/data/0"], "it is a PyTorch file"),
        ("a.pth", ["archive/data.pkl"], "it is a PyTorch file"),
        ("a.docx", ["[Content_Types].xml", "word/document.xml"], "a Microsoft Office document"),
        ("a.zarr.zip", [".zarray", "0.0"], "it is a zipped Zarr store"),
        ("a.zip", ["a.nii.gz"], r"a zip archive without NumPy arrays \(it contains a\.nii\.gz\)"),
    ],
)
def test_the_content_of_an_unsupported_archive_is_named(file, members, message, tmp_path):
    with zipfile.ZipFile(tmp_path / file, "w") as archive:
        for member in members:
            archive.writestr(member, b"x")
    with pytest.raises(FormatError, match=message):
        read(tmp_path / file)


def test_the_command_line_names_its_own_option(tmp_path):
    (tmp_path / "names.csv").write_text("index,name\n1,grey\n")
    with pytest.raises(FormatError) as caught:
        read(tmp_path / "names.csv")
    assert caught.value.in_command().endswith("To use a table of names, pass --names FILE.")
