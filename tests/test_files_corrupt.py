"""Corrupt files: wrong checksums, headers that describe too much data, one changed byte."""

import gzip
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import imagecodecs
import numpy as np
import pydicom
import pytest
import scipy.io
import tifffile
from commands import probdice
from numpy.typing import NDArray
from PIL import Image as Pillow
from test_files import write_dicom, write_itk, write_nibabel

from probdice.data.segmentation import Segmentation
from probdice.errors import FormatError, InputError, ProbdiceError, TooLargeError
from probdice.files import read

pytestmark = pytest.mark.usefixtures("short_time_limit")

NOISE = np.random.default_rng(0).integers(0, 9, (12, 10, 8)).astype(np.uint8)
HUGE = 1 << 20  # of two axes: a tebibyte


def whole(segmentation: Segmentation) -> NDArray[Any]:
    return np.asarray(segmentation.array[(slice(None),) * len(segmentation.array.shape)])


# Checksums


def save_png(path: Path, array: NDArray[Any]) -> None:
    Pillow.fromarray(array[:, :, 0].copy()).save(path)


def save_npz(path: Path, array: NDArray[Any]) -> None:
    np.savez_compressed(path, a=array)


def save_mat(path: Path, array: NDArray[Any]) -> None:
    scipy.io.savemat(path, {"a": array}, do_compression=True)


def save_tiff(path: Path, array: NDArray[Any]) -> None:
    tifffile.imwrite(path, array, photometric="minisblack", compression="zlib")


SUMMED: dict[str, Callable[[Path, NDArray[Any]], None]] = {
    "a.nii.gz": write_nibabel,
    "a.mgz": write_nibabel,
    "a.nrrd": write_itk,
    "a.mha": write_itk,
    "a.mhd": write_itk,
    "a.nhdr": write_itk,
    "a.npz": save_npz,
    "a.mat": save_mat,
    "a.png": save_png,
    "a.tif": save_tiff,
}


@pytest.mark.parametrize("name", SUMMED)
def test_a_flipped_bit_is_never_read_as_other_values(name: str, tmp_path: Path) -> None:
    SUMMED[name](tmp_path / name, NOISE)
    expected = whole(read(tmp_path / name))
    changed = max(tmp_path.iterdir(), key=lambda file: file.stat().st_size)  # the values
    content = changed.read_bytes()
    # Text headers have no checksum, so the bytes after them are changed.
    start = max(content.find(b"LOCAL\n"), content.find(b"\n\n"), 0)
    refused = 0
    for place in np.linspace(start, len(content) - 1, 60).astype(int):
        damaged = bytearray(content)
        damaged[place] ^= 0x04
        changed.write_bytes(damaged)
        try:
            values = whole(read(tmp_path / name))
        except FormatError as error:
            assert str(error).startswith(str(tmp_path / name))
            refused += 1
        else:  # the bit was one of a name, a time or a place
            assert values.shape != expected.shape or np.array_equal(values, expected)
    assert refused > 20


@pytest.mark.parametrize("name", ["a.nii.gz", "a.nrrd", "a.mha", "a.png", "a.npz", "a.mat"])
def test_a_wrong_checksum_is_reported_as_corrupt(name: str, tmp_path: Path) -> None:
    SUMMED[name](tmp_path / name, NOISE)
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 0x04
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=rf"{name}: .*corrupt"):
        read(tmp_path / name)


def test_a_wrong_packed_size_is_rejected(tmp_path: Path) -> None:
    write_itk(tmp_path / "a.mha", NOISE)
    content = (tmp_path / "a.mha").read_bytes()
    line = next(line for line in content.splitlines() if line.startswith(b"CompressedDataSize"))
    (tmp_path / "a.mha").write_bytes(content.replace(line, b"CompressedDataSize = 90"))
    with pytest.raises(
        FormatError, match=r"a\.mha: is corrupt or incomplete: its compressed values"
    ):
        read(tmp_path / "a.mha")


def test_checksums_of_png_comments_are_verified(tmp_path: Path) -> None:
    save_png(tmp_path / "a.png", NOISE)
    content = (tmp_path / "a.png").read_bytes()
    comment = b"zTXt" + b"note\0\0" + zlib.compress(b" " * (1 << 22))
    chunk = struct.pack(">I", len(comment) - 4) + comment + struct.pack(">I", zlib.crc32(comment))
    (tmp_path / "a.png").write_bytes(content[:33] + chunk + content[33:])
    assert np.array_equal(whole(read(tmp_path / "a.png")), NOISE[:, :, 0])
    (tmp_path / "a.png").write_bytes(content[:33] + chunk[:-1] + b"\0" + content[33:])
    with pytest.raises(FormatError, match="chunk zTXt at byte 33 has a wrong checksum"):
        read(tmp_path / "a.png")


def test_the_checksum_covers_the_tags_at_the_end_of_an_mgz(tmp_path: Path) -> None:
    write_nibabel(tmp_path / "a.mgz", NOISE)
    content = gzip.decompress((tmp_path / "a.mgz").read_bytes())
    (tmp_path / "a.mgz").write_bytes(gzip.compress(content + b"notes" * 900))
    assert np.array_equal(whole(read(tmp_path / "a.mgz")), NOISE)
    damaged = bytearray((tmp_path / "a.mgz").read_bytes())
    damaged[-5] ^= 1
    (tmp_path / "a.mgz").write_bytes(damaged)
    with pytest.raises(FormatError, match=r"a\.mgz: is corrupt or incomplete"):
        read(tmp_path / "a.mgz")


def test_an_nrrd_of_several_gzip_members(tmp_path: Path) -> None:
    values = NOISE.tobytes(order="F")
    header = b"NRRD0004\ntype: uint8\ndimension: 3\nsizes: 12 10 8\nencoding: gzip\n\n"
    packed = gzip.compress(values[:100]) + gzip.compress(values[100:])
    (tmp_path / "a.nrrd").write_bytes(header + packed)
    assert np.array_equal(whole(read(tmp_path / "a.nrrd")), NOISE)


def test_values_in_several_files(tmp_path: Path) -> None:
    for plane in range(8):
        (tmp_path / f"s{plane}.raw").write_bytes(NOISE[:, :, plane].tobytes(order="F"))
    start = "NDims = 3\nDimSize = 12 10 8\nElementType = MET_UCHAR\nElementDataFile = "
    names = "\n".join(f"s{plane}.raw" for plane in range(8))
    (tmp_path / "a.mhd").write_text(f"ObjectType = Image\n{start}LIST\n{names}\n")
    (tmp_path / "b.mhd").write_text(f"ObjectType = Image\n{start}s%d.raw 0 7 1\n")
    start = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 12 10 8\nencoding: raw\ndata file: "
    (tmp_path / "c.nhdr").write_text(f"{start}LIST\n{names}\n")
    (tmp_path / "d.nhdr").write_text(f"{start}s%d.raw 0 7 1\n")
    for name in ("a.mhd", "b.mhd", "c.nhdr", "d.nhdr"):
        assert np.array_equal(whole(read(tmp_path / name)), NOISE), name
    (tmp_path / "s3.raw").unlink()
    for name in ("a.mhd", "b.mhd", "c.nhdr", "d.nhdr"):
        with pytest.raises(FormatError, match=rf"{name}: .*s3\.raw"):
            read(tmp_path / name)


def test_values_as_text(tmp_path: Path) -> None:
    start = "NRRD0004\ntype: uint8\ndimension: 2\nsizes: 3 2\nencoding: "
    (tmp_path / "a.nrrd").write_text(f"{start}ascii\n\n0 1 2 3 4 5\n")
    (tmp_path / "b.nrrd").write_text(f"{start}hex\n\n000102030405\n")
    (tmp_path / "c.nrrd").write_text(f"{start}ascii\n\n0 1 2 3 4 5".replace("uint8", "double"))
    for name in ("a.nrrd", "b.nrrd", "c.nrrd"):
        assert whole(read(tmp_path / name)).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_values_in_a_file_with_accents(tmp_path: Path) -> None:
    (tmp_path / "größe.raw").write_bytes(bytes(range(6)))
    header = "ObjectType = Image\nNDims = 2\nDimSize = 3 2\nElementType = MET_UCHAR\n"
    (tmp_path / "a.mhd").write_text(header + "ElementDataFile = größe.raw\n", encoding="utf-8")
    assert whole(read(tmp_path / "a.mhd")).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_header_fields_that_are_not_numbers_are_rejected(tmp_path: Path) -> None:
    header = "NRRD0004\ntype: uint8\ndimension: 2\nsizes: 3 2\nencoding: raw\n"
    segment = "Segment0_LabelValue:=one\nSegment0_Name:=liver\n"
    (tmp_path / "a.seg.nrrd").write_bytes(f"{header}{segment}\n".encode() + bytes(6))
    with pytest.raises(FormatError, match=r"its Segment0_LabelValue must be a whole number, found"):
        read(tmp_path / "a.seg.nrrd")
    write_dicom(tmp_path / "a.dcm", NOISE)
    dataset = pydicom.dcmread(tmp_path / "a.dcm")
    dataset.NumberOfFrames = [8, 8]
    dataset.save_as(tmp_path / "a.dcm")
    with pytest.raises(FormatError, match=r"a\.dcm: .*corrupt"):
        read(tmp_path / "a.dcm")


# Headers that describe too much data


def huge_nifti(path: Path) -> None:
    write_nibabel(path, NOISE)
    content = path.read_bytes()
    content = bytearray(gzip.decompress(content) if path.suffix == ".gz" else content)
    content[40:48] = struct.pack("<4h", 3, 32000, 32000, 1000)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def huge_mgz(path: Path) -> None:
    write_nibabel(path, NOISE)
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[4:12] = struct.pack(">2i", HUGE, HUGE)
    path.write_bytes(gzip.compress(content))


def npy_header(shape: tuple[int, ...]) -> bytes:
    text = (
        repr({"descr": "|u1", "fortran_order": False, "shape": shape}).ljust(117).encode() + b"\n"
    )
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def huge_npz(path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", npy_header((HUGE, HUGE)) + b"\0" * 99)


def huge_nrrd(path: Path, encoding: str = "raw") -> None:
    header = f"NRRD0004\ntype: uint8\ndimension: 2\nsizes: {HUGE} {HUGE}\nencoding: {encoding}\n\n"
    path.write_bytes(header.encode() + (gzip.compress(b"abc") if encoding == "gzip" else b"abc"))


def huge_mha(path: Path, compressed: bool = False) -> None:
    header = f"ObjectType = Image\nNDims = 2\nDimSize = {HUGE} {HUGE}\nElementType = MET_UCHAR\n"
    header += f"CompressedData = {compressed}\nElementDataFile = LOCAL\n"
    path.write_bytes(header.encode() + zlib.compress(b"abc"))


def huge_tiff(path: Path, compression: str | None = None) -> None:
    tifffile.imwrite(path, NOISE[0], compression=compression, metadata=None)
    with tifffile.TiffFile(path, mode="r+b") as file:
        for tag in ("ImageWidth", "ImageLength", "RowsPerStrip"):
            file.pages[0].tags[tag].overwrite(HUGE - 1)  # type: ignore[union-attr]


def huge_png(path: Path) -> None:
    save_png(path, NOISE)
    content = bytearray(path.read_bytes())
    content[16:24] = struct.pack(">2I", HUGE, HUGE)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    path.write_bytes(content)


def huge_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("a", shape=(HUGE, HUGE), dtype="u1")


def huge_chunk(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("a", shape=(HUGE, HUGE), dtype="u1", chunks=(HUGE, 4000))
        file["a"].id.write_direct_chunk((0, 0), b"abc")


def huge_mat(path: Path) -> None:
    scipy.io.savemat(path, {"a": NOISE[:, :, 0]})
    content = bytearray(path.read_bytes())
    place = content.index(struct.pack("<2i", 12, 10))
    content[place : place + 8] = struct.pack("<2i", HUGE, HUGE)
    path.write_bytes(content)


def huge_cells(path: Path) -> None:
    cells = np.empty((3, 7), dtype=object)
    cells[:] = 1.0
    scipy.io.savemat(path, {"a": cells}, do_compression=False)
    content = bytearray(path.read_bytes())
    place = content.index(struct.pack("<2i", 3, 7))
    content[place : place + 8] = struct.pack("<2i", HUGE, HUGE)
    path.write_bytes(content)


def huge_dicom(path: Path) -> None:
    write_dicom(path, NOISE)
    dataset = pydicom.dcmread(path)
    dataset.Rows = dataset.Columns = 65535
    dataset.save_as(path)


ASKING: dict[str, Callable[[Path], None]] = {
    "a.nii": huge_nifti,
    "a.nii.gz": huge_nifti,
    "a.mgz": huge_mgz,
    "a.npy": lambda path: path.write_bytes(npy_header((HUGE, HUGE)) + b"\0" * 99) and None,
    "a.npz": huge_npz,
    "a.nrrd": huge_nrrd,
    "gz.nrrd": lambda path: huge_nrrd(path, "gzip"),
    "a.mha": huge_mha,
    "packed.mha": lambda path: huge_mha(path, True),
    "a.tif": huge_tiff,
    "zlib.tif": lambda path: huge_tiff(path, "zlib"),
    "lzw.tif": lambda path: huge_tiff(path, "lzw"),
    "a.png": huge_png,
    "a.h5": huge_hdf5,
    "chunk.h5": huge_chunk,
    "a.mat": huge_mat,
    "cells.mat": huge_cells,
    "a.dcm": huge_dicom,
}


@pytest.mark.parametrize("name", ASKING)
def test_a_header_that_describes_more_data_than_the_file_has_is_rejected(
    name: str, tmp_path: Path
) -> None:
    ASKING[name](tmp_path / name)
    with pytest.raises(FormatError, match=rf"{name}: .*(corrupt|incomplete)"):
        read(tmp_path / name)


def test_a_small_file_that_decompresses_to_a_large_one_is_rejected(tmp_path: Path) -> None:
    write_nibabel(tmp_path / "a.nii", NOISE)
    with gzip.open(tmp_path / "b.nii.gz", "wb", compresslevel=1) as stream:
        stream.write((tmp_path / "a.nii").read_bytes())
        for _ in range(100):
            stream.write(bytes(1 << 20))
    with pytest.raises(
        FormatError, match=r"b\.nii\.gz: decompresses to far more than the 1312 bytes"
    ):
        read(tmp_path / "b.nii.gz")


def test_a_tiff_whose_parts_lie_outside_the_file_is_rejected(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.tif", NOISE[0], compression="zlib", metadata=None)
    with tifffile.TiffFile(tmp_path / "a.tif", mode="r+b") as file:
        file.pages[0].tags["StripByteCounts"].overwrite(0)  # type: ignore[union-attr]
    with pytest.raises(FormatError, match=r"a\.tif: .*parts of its values are not in the file"):
        read(tmp_path / "a.tif")


def test_a_gzipped_array_is_not_reported_as_pickled(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", NOISE)
    (tmp_path / "a.npy.gz").write_bytes(gzip.compress((tmp_path / "a.npy").read_bytes()))
    with pytest.raises(FormatError, match=r"a\.npy\.gz: is a gzipped NPY file.*Decompress it"):
        read(tmp_path / "a.npy.gz")


# Large files and codecs


def test_a_large_png_is_read(tmp_path: Path) -> None:
    labels = np.zeros((14_000, 14_000), np.uint8)
    labels[-1, -1] = 7
    Pillow.fromarray(labels).save(tmp_path / "a.png", compress_level=1)
    segmentation = read(tmp_path / "a.png")
    assert segmentation.shape == (14_000, 14_000)
    assert segmentation.array[-1, -1] == 7


def test_tiff_of_every_usual_compression(tmp_path: Path) -> None:
    for compression in ("lzw", "packbits", "zlib", "zstd", "lzma"):
        tifffile.imwrite(
            tmp_path / "a.tif", NOISE, photometric="minisblack", compression=compression
        )
        assert np.array_equal(whole(read(tmp_path / "a.tif")), NOISE), compression


@pytest.mark.skipif(
    not hasattr(imagecodecs, "ccittfax4_decode"), reason="before imagecodecs 2026.3"
)
def test_tiff_with_the_compression_of_fax_machines(tmp_path: Path) -> None:
    mask = NOISE[0] > 4
    Pillow.fromarray(mask).save(tmp_path / "fax.tif", compression="group4")
    assert np.array_equal(whole(read(tmp_path / "fax.tif")).astype(bool), mask)


# MATLAB: no changed byte crashes the process


def save_numbers(path: Path) -> None:
    scipy.io.savemat(path, {"a": np.arange(42.0).reshape(7, 6)})


def save_cells(path: Path) -> None:
    cells = np.empty((1, 2), dtype=object)
    for number in range(2):
        cells[0, number] = {
            "Segmentation": NOISE[:, :5, number].astype(np.uint16),
            "Boundaries": NOISE[:, :5, number] > 2,
        }
    scipy.io.savemat(path, {"groundTruth": cells})


def save_packed(path: Path) -> None:
    scipy.io.savemat(
        path,
        {"a": NOISE[:, :, 0], "note": "text", "b": {"c": 1j, "d": [np.eye(3), "x"]}},
        do_compression=True,
    )


def mutants(content: bytes, count: int) -> Iterator[bytes]:
    random = np.random.default_rng(0)
    for place, value in zip(
        random.integers(0, len(content), count), random.integers(0, 256, count), strict=True
    ):
        damaged = bytearray(content)
        damaged[place] = value
        yield bytes(damaged)


@pytest.mark.parametrize(
    ("save", "inside"),
    [(save_numbers, ""), (save_cells, ":groundTruth/1"), (save_packed, ":a")],
)
def test_no_changed_byte_of_a_mat_file_ends_the_process(
    save: Callable[[Path], None], inside: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.mat"
    save(path)
    read(f"{path}{inside}")
    refused = 0
    for damaged in mutants(path.read_bytes(), 60):
        path.write_bytes(damaged)
        try:
            read(f"{path}{inside}")
        except ProbdiceError as error:
            assert str(error).startswith(str(path))
            refused += 1
    assert refused > 3


@pytest.mark.parametrize("command", ["info", "compare"])
def test_a_mat_file_that_crashed_the_process_is_rejected(command: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    save_numbers(path)
    content = bytearray(path.read_bytes())
    assert content[176] == 9
    content[176] = 8
    path.write_bytes(content)
    arguments = [command, str(path)] if command == "info" else [command, str(path), str(path)]
    done = probdice(*arguments)
    assert done.returncode == 1
    text = " ".join((done.stdout + done.stderr).split())
    assert "a.mat: scipy.io crashed while reading it (signal SIGSEGV). The file is probably" in text


def test_structs_and_text_of_mat_files(tmp_path: Path) -> None:
    several = np.zeros((1, 2), dtype=[("mask", object), ("name", object)])
    several["mask"][0] = [NOISE[0], NOISE[1]]
    several["name"][0] = ["one", "two"]
    scipy.io.savemat(
        tmp_path / "a.mat", {"s": several, "text": "words", "i": np.array([[1 + 2j, 3]])}
    )
    with pytest.raises(FormatError, match=r"contains 2 arrays \(s/mask/0, s/mask/1\)\. Select one"):
        read(tmp_path / "a.mat")
    for inside in ("s/mask/1", "s/1/mask"):
        assert np.array_equal(whole(read(f"{tmp_path}/a.mat:{inside}")), NOISE[1])


def test_mat_files_of_the_other_byte_order(tmp_path: Path) -> None:
    def element(kind: int, content: bytes) -> bytes:
        return struct.pack(">2I", kind, len(content)) + content + b"\0" * (-len(content) % 8)

    array = element(6, struct.pack(">2I", 11, 0)) + element(5, struct.pack(">2i", 2, 3))
    array += element(1, b"a") + element(4, struct.pack(">6H", 1, 2, 3, 4, 5, 600))
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    (tmp_path / "a.mat").write_bytes(header + element(14, array))
    assert whole(read(tmp_path / "a.mat")).tolist() == [[1, 3, 5], [2, 4, 600]]


def test_numbers_of_mat_files_equal_those_of_scipy(tmp_path: Path) -> None:
    for dtype in ("u1", "i1", "u2", "i2", "u4", "i4", "i8", "u8", "f4", "f8", "?"):
        for packed in (False, True):
            scipy.io.savemat(tmp_path / "a.mat", {"a": NOISE.astype(dtype)}, do_compression=packed)
            expected = scipy.io.loadmat(tmp_path / "a.mat")["a"]
            segmentation = read(tmp_path / "a.mat")
            assert np.array_equal(whole(segmentation), expected)
            assert segmentation.array.dtype == expected.dtype


# Files found by fuzzing (fuzz/)


def metaimage(path: Path, *lines: str, values: bytes = b"") -> Path:
    header = {"ObjectType": "Image", "NDims": "2", "DimSize": "3 2", "ElementType": "MET_UCHAR"}
    header |= dict(line.split(" = ") for line in lines)
    header.setdefault("ElementDataFile", "LOCAL")
    text = "".join(f"{key} = {value}\n" for key, value in header.items())
    path.write_bytes(text.encode() + values)
    return path


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("NDims = 1099511627776", "SimpleITK (cannot read it|crashed|did not finish)"),
        ("NDims = 256", "SimpleITK (cannot read it|crashed|did not finish)"),
        ("DimSize = 3 0", r"contains no voxels: its shape is \(3, 0\)"),
        ("DimSize = 3 -2", "but the file contains 6"),
        ("DimSize = 3", "SimpleITK cannot read it"),
        ("ElementType = MET_OTHER", "SimpleITK cannot read it"),
        ("ElementNumberOfChannels = 0", "SimpleITK cannot read it"),
        ("ElementSpacing = 1 nan", r"its spacing is \(1\.0, 0\.0\)"),
        ("TransformMatrix = 1 0", "SimpleITK cannot read it"),
        ("CompressedData = True", "cannot be decompressed"),
        ("DimSize = 3 3", "but the file contains 6"),
    ],
)
def test_metaimage_headers_that_crashed_the_process_are_rejected(
    line: str, message: str, tmp_path: Path
) -> None:
    path = metaimage(tmp_path / "a.mha", line, values=bytes(6))
    with pytest.raises(FormatError, match=rf"a\.mha: .*{message}"):
        read(path)


def test_metaimage_without_pixels_in_several_files(tmp_path: Path) -> None:
    for plane in range(2):
        (tmp_path / f"s{plane}.raw").write_bytes(bytes(3))
    path = metaimage(tmp_path / "a.mhd", "DimSize = 3 0", "ElementDataFile = s%d.raw 0 1 1")
    with pytest.raises(FormatError, match="contains no voxels"):
        read(path)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"])
def test_values_of_a_metaimage_equal_those_of_simpleitk(
    dtype: str, packed: bool, tmp_path: Path
) -> None:
    import SimpleITK as sitk

    image = sitk.GetImageFromArray(np.ascontiguousarray(NOISE.astype(dtype).T))
    image.SetSpacing((2.0, 3.0, 5.0))
    image.SetOrigin((1.0, -2.0, 3.5))
    turn = np.array([[0.6, -0.8, 0], [0.8, 0.6, 0], [0, 0, 1]])
    image.SetDirection(turn.ravel().tolist())
    for name in ("a.mha", "a.mhd"):
        sitk.WriteImage(image, str(tmp_path / name), useCompression=packed)
        segmentation = read(tmp_path / name)
        assert np.array_equal(whole(segmentation), NOISE)
        assert segmentation.array.dtype == np.dtype(dtype)
        placed = read(image).geometry
        assert segmentation.geometry is not None and placed is not None
        assert segmentation.geometry.affine == pytest.approx(placed.affine)


def test_metaimage_of_the_other_byte_order_as_text_and_behind_a_header(tmp_path: Path) -> None:
    short = "ElementType = MET_SHORT"
    turned = metaimage(
        tmp_path / "a.mha",
        short,
        "BinaryDataByteOrderMSB = True",
        values=NOISE[0, :6, 0].astype(">i2").tobytes(),
    )
    assert whole(read(turned)).reshape(-1, order="F").tolist() == NOISE[0, :6, 0].tolist()
    text = metaimage(tmp_path / "b.mha", "BinaryData = False", values=b"0 1 2\n3 4 5\n")
    assert whole(read(text)).tolist() == [[0, 3], [1, 4], [2, 5]]
    for start in ("4", "-1"):
        (tmp_path / "c.raw").write_bytes(b"head" + bytes(range(6)))
        behind = metaimage(tmp_path / "c.mhd", f"HeaderSize = {start}", "ElementDataFile = c.raw")
        assert whole(read(behind)).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_the_values_of_a_large_metaimage_stay_on_disk(tmp_path: Path) -> None:
    path = metaimage(tmp_path / "a.mha", values=bytes(range(6)))
    assert isinstance(read(path).array.base, np.memmap)


def test_a_png_with_missing_rows_is_rejected(tmp_path: Path) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        check_sum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check_sum

    for bits, height in ((1, 1 << 24), (8, 5)):  # rows of less than a byte are bytes too
        header = chunk(b"IHDR", struct.pack(">2I5B", 6, height, bits, 0, 0, 0, 0))
        values = chunk(b"IDAT", zlib.compress(bytes(14)))
        content = b"\x89PNG\r\n\x1a\n" + header + values + chunk(b"IEND", b"")
        (tmp_path / "a.png").write_bytes(content)
        with pytest.raises(FormatError, match=r"a\.png: is corrupt or incomplete"):
            read(tmp_path / "a.png")


@pytest.mark.parametrize("interlaced", [False, True])
def test_pngs_of_any_size_are_read_completely(interlaced: bool, tmp_path: Path) -> None:
    labels = NOISE[:, :, 0]
    for rows, columns in ((1, 1), (1, 9), (9, 1), (5, 7), (12, 10)):
        part = np.ascontiguousarray(labels[:rows, :columns])
        if interlaced:
            (tmp_path / "a.png").write_bytes(adam7(part))
        else:
            Pillow.fromarray(part).save(tmp_path / "a.png")
        assert np.array_equal(whole(read(tmp_path / "a.png")), part)


def adam7(labels: NDArray[Any]) -> bytes:
    """An interlaced PNG, by the seven passes of its definition."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check_sum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check_sum

    rows = b""
    for x, y, dx, dy in (
        (0, 0, 8, 8),
        (4, 0, 8, 8),
        (0, 4, 4, 8),
        (2, 0, 4, 4),
        (0, 2, 2, 4),
        (1, 0, 2, 2),
        (0, 1, 1, 2),
    ):
        for row in labels[y::dy, x::dx]:
            rows += b"\0" + row.tobytes() if row.size else b""
    header = struct.pack(">2I5B", labels.shape[1], labels.shape[0], 8, 0, 0, 0, 1)
    chunks = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def test_a_tiff_with_a_cycle_of_pages_is_rejected(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.tif", NOISE[0], metadata=None)
    content = bytearray((tmp_path / "a.tif").read_bytes())
    first = struct.unpack("<I", content[4:8])[0]
    end = first + 2 + 12 * struct.unpack("<H", content[first : first + 2])[0]
    content[end : end + 4] = struct.pack("<I", first)
    (tmp_path / "a.tif").write_bytes(content)
    with pytest.raises(FormatError, match=r"a\.tif: .*corrupt"):
        read(tmp_path / "a.tif")


def test_an_ome_header_with_more_planes_than_bytes_is_rejected(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.ome.tif", NOISE, metadata={"axes": "ZYX"})
    with tifffile.TiffFile(tmp_path / "a.ome.tif", mode="r+b") as file:
        tag = file.pages[0].tags["ImageDescription"]  # type: ignore[union-attr]
        tag.overwrite(tag.value.replace('SizeT="1"', 'SizeT="9999999"'))
    with pytest.raises(FormatError, match=r"describe \d+ planes, but the file has \d+ bytes"):
        read(tmp_path / "a.ome.tif")


def test_layers_with_labels_beyond_all_types_are_read(tmp_path: Path) -> None:
    header = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 2 3 2\nkinds: list domain domain\n"
    segments = "Segment0_LabelValue:=1\nSegment1_LabelValue:=99999999999\nSegment1_Layer:=1\n"
    values = np.array([[1, 0, 0], [0, 0, 1]], np.uint8).repeat(2).tobytes()
    (tmp_path / "a.seg.nrrd").write_bytes(f"{header}encoding: raw\n{segments}\n".encode() + values)
    assert read(tmp_path / "a.seg.nrrd").crisp


def test_many_segments_of_a_small_image_take_little_memory(tmp_path: Path) -> None:
    header = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 2 1000 1000\nkinds: list domain domain\n"
    segments = "".join(
        f"Segment{k}_LabelValue:={1 if k < 2 else 7}\nSegment{k}_Layer:={k % 2}\n"
        for k in range(5000)
    )
    values = np.ones((2, 1000, 1000), np.uint8).tobytes()
    (tmp_path / "a.seg.nrrd").write_bytes(f"{header}encoding: raw\n{segments}\n".encode() + values)
    with pytest.raises(TooLargeError, match="takes 5000000000 bytes of memory"):
        read(tmp_path / "a.seg.nrrd", max_bytes=1 << 30)


def test_an_array_without_regions(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.empty((0, 3, 3), np.float32))
    with pytest.raises(FormatError, match=r"a\.npy: contains no regions"):
        read(tmp_path / "a.npy")


def test_text_of_a_file_is_escaped_for_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "names.json").write_text('{"1": "grey\\u001b[2J"}')
    np.save(tmp_path / "a.npy", NOISE)
    names = read(tmp_path / "a.npy", names=tmp_path / "names.json").names
    assert names == {1: "grey\\u001b[2J"}
    path = metaimage(tmp_path / "a.mha", "ElementType = MET_\x1b[2J\x07")
    with pytest.raises(FormatError) as caught:
        read(path)
    assert str(caught.value).isprintable()


# Memory


def packed_files(folder: Path) -> Iterator[Path]:
    for name in ("a.nii.gz", "a.mgz", "a.nrrd", "a.mha", "a.npz", "a.mat", "a.tif", "a.png"):
        SUMMED[name](folder / name, NOISE)
        yield folder / name


def test_max_bytes_limits_decompressed_values(tmp_path: Path) -> None:
    for path in packed_files(tmp_path):
        needed = NOISE[:, :, 0].size if path.suffix == ".png" else NOISE.size
        with pytest.raises(
            TooLargeError, match=rf"{path.name}: contains .*To allow it, use max_bytes=\d+"
        ):
            read(path, max_bytes=needed - 1)
        assert read(path, max_bytes=2 * needed + 1000).crisp


def test_max_bytes_does_not_limit_values_that_stay_on_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", NOISE)
    write_nibabel(tmp_path / "a.nii", NOISE)
    for name in ("a.npy", "a.nii"):
        assert np.array_equal(whole(read(tmp_path / name, max_bytes=1)), NOISE)


@pytest.mark.parametrize("max_bytes", [0, -1, 1.5, True, "1G"])
def test_max_bytes_is_a_whole_number(max_bytes: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", NOISE)
    with pytest.raises(InputError, match="max_bytes must be a positive integer"):
        read(tmp_path / "a.npy", max_bytes=max_bytes)


@pytest.mark.parametrize(
    ("name", "said", "instead"),
    [("a.mrc", (7).to_bytes(4, "little"), (39).to_bytes(4, "little")), ("a.vtk", b" 7 ", b" 39 ")],
)
def test_a_short_file_is_not_completed_from_memory(
    tmp_path: Path, name: str, said: bytes, instead: bytes
) -> None:
    path = tmp_path / name
    write_itk(path, np.ones((7, 6, 5), np.uint8))
    content = path.read_bytes()
    assert read(path).shape == (7, 6, 5)
    path.write_bytes(content.replace(said, instead, 1))
    with pytest.raises(FormatError, match=r"39, 6, 5\) \(1170 bytes\), but the file contains 210"):
        read(path)


@pytest.mark.parametrize("values", [2, 256])
def test_undefined_lzw_codes_are_rejected(tmp_path, values):
    """The library that decompresses them sometimes crashes."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, values, (300, 200)).astype(np.uint8)  # more than one table of codes
    tifffile.imwrite(tmp_path / "a.tif", labels, compression="lzw")
    assert np.array_equal(read(tmp_path / "a.tif").array, labels)
    with tifffile.TiffFile(tmp_path / "a.tif") as file:
        start = file.pages[0].dataoffsets[0]
    content = bytearray((tmp_path / "a.tif").read_bytes())
    content[start + 1 : start + 3] = b"\x7f\xff"  # after the code that clears, 511
    (tmp_path / "a.tif").write_bytes(content)
    with pytest.raises(
        FormatError, match="is corrupt or incomplete: a part of its values is not a valid LZW"
    ):
        read(tmp_path / "a.tif")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("a.vtk", b"DIMENSIONS 12 10 8", b"DIMENSIONS 12 ?? 8"),
        ("a.mrc", (12).to_bytes(4, "little"), bytes(4)),
    ],
)
def test_missing_lengths_in_a_header_are_rejected(tmp_path, name, old, new):
    path = tmp_path / name
    write_itk(path, NOISE)
    assert whole(read(path)).shape == NOISE.shape
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))
    with pytest.raises(FormatError, match=r"header has no valid number|SimpleITK cannot read it"):
        read(path)
