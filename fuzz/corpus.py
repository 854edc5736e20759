"""Small valid files of every format, written by the usual libraries.

A seed may be mutated before compression: `wrap` then creates the file from the mutated content with
correct sizes and checksums, so that the code that runs after these checks is tested.
"""

import gzip
import io
import json
import struct
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Seed", "by_highdicom", "seeds_of"]

RANDOM = np.random.default_rng(0)
LABELS = RANDOM.integers(0, 5, (7, 6, 5)).astype(np.uint8)
SHARES = np.moveaxis(RANDOM.multinomial(64, [0.2, 0.3, 0.5], (7, 6, 5)) / 64, -1, 0)
SHARES = SHARES.astype(np.float32)
# Changes of these values are likely to change the checksums of zlib and Fletcher. Many exchanges of
# small numbers do not change them.
NOISE = RANDOM.integers(1, 255, (7, 6, 5)).astype(np.uint8)
PARTS = ("header", "image", "mat")  # parts of an Analyze image, as named by nibabel
AFFINE = np.array([[-2.0, 0, 0, 10], [0, -3, 0, 20], [0, 0, 5, -30], [0, 0, 0, 1]])


def as_it_is(content: bytes) -> bytes:
    """Return the content, which is the whole file."""
    return content


def never(content: bytes) -> bool:
    """Return False, because changed contents almost never have the same 32-bit checksum."""
    return False


def right_for_zlib(content: bytes) -> bool:
    """Return whether zlib's checksum is right, as it may be after parts have been exchanged."""
    unpacker = zlib.decompressobj()
    try:
        unpacker.decompress(content)
    except zlib.error:
        return False
    return unpacker.eof


@dataclass(frozen=True)
class Seed:
    """A valid file.

    `path` is the name of the file, with the path inside the file. `content` is mutated. `summed` is
    true if checksums cover all of the content and `wrap` does not recompute them. `right` returns
    whether the checksums of a mutant are right by coincidence. `beside` contains further files that
    belong to the seed. `part` is the name of the mutated file if it is not the file in `path`.
    """

    path: str
    content: bytes
    wrap: Callable[[bytes], bytes] = as_it_is
    summed: bool = False
    right: Callable[[bytes], bool] = never
    beside: Mapping[str, bytes] = field(default_factory=dict)
    part: str = ""

    @property
    def file(self) -> str:
        """The name of the mutated file."""
        return self.part or self.path.partition(":")[0]


def seeds_of(target: str) -> list[Seed]:
    """Return the seeds of a target."""
    with warnings.catch_warnings():  # the libraries that write files may warn
        warnings.simplefilter("ignore")
        return list(SEEDS[target]())


def _saved(name: str, save: Callable[[Path], Any]) -> bytes:
    """Return the bytes that a writer writes to a file with this name."""
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / name)
        return (Path(folder) / name).read_bytes()


def _gzipped(content: bytes) -> bytes:
    return gzip.compress(content, 1, mtime=0)


def _summed(path: str, whole: bytes, start: int, size: int) -> Seed:
    """Return the seed of a file in which only a part covered by a checksum is mutated."""
    own = whole[start : start + size]

    def wrap(content: bytes) -> bytes:
        # Zeros are replaced, because the Fletcher checksum of zeros is zero.
        part = content[:size].ljust(size, b"\xa5") if any(content[:size]) else own
        return whole[:start] + part + whole[start + size :]

    return Seed(path, own, wrap=wrap, summed=True, right=right_for_zlib)


def _summed_end(path: str, whole: bytes, mark: bytes) -> Seed:
    """Return a seed whose header is not mutated, because no checksum covers the header."""
    head, found, rest = whole.partition(mark)
    return Seed(
        path,
        rest,
        wrap=lambda content: head + found + content,
        summed=True,
        right=right_for_zlib,
    )


# NIfTI, Analyze, MGH ---------------------------------------------------------------------------


def nifti() -> Iterator[Seed]:
    import nibabel

    label_table = (
        b"<CaretExtension><VolumeType>Label</VolumeType><LabelTable>"
        b'<Label Key="1" Red="1">grey</Label><Label Key="2">white &amp; more</Label>'
        b"</LabelTable></CaretExtension>"
    )
    named = nibabel.Nifti1Image(LABELS, AFFINE)
    named.header.extensions.append(nibabel.nifti1.Nifti1Extension(30, label_table))
    scaled = nibabel.Nifti1Image((SHARES[0] * 64).astype(np.int16), AFFINE)
    scaled.header.set_slope_inter(1 / 64, 0)
    images = [
        nibabel.Nifti1Image(LABELS, AFFINE),
        nibabel.Nifti1Image(np.moveaxis(SHARES, 0, -1), AFFINE),
        nibabel.Nifti2Image(LABELS.astype(np.int32), AFFINE),
        named,
        scaled,
    ]
    for image in images:
        content = image.to_bytes()
        yield Seed("a.nii", content)
        yield Seed("a.nii.gz", content, wrap=_gzipped)
    yield Seed("a.nii.gz", _gzipped(images[0].to_bytes()), summed=True)
    for image in (nibabel.Nifti1Pair(LABELS, AFFINE), nibabel.Spm2AnalyzeImage(LABELS, AFFINE)):
        holders = {key: nibabel.FileHolder(fileobj=io.BytesIO()) for key in PARTS}
        image.to_file_map(holders)
        header, values = (holders[key].fileobj.getvalue() for key in ("header", "image"))
        yield Seed("a.hdr", header, beside={"a.img": values})
        yield Seed("a.img", values, beside={"a.hdr": header})
    volume = nibabel.MGHImage(LABELS, AFFINE).to_bytes()
    yield Seed("a.mgh", volume)
    yield Seed("a.mgz", volume, wrap=_gzipped)
    yield Seed("a.mgz", _gzipped(volume), summed=True)


# NumPy -----------------------------------------------------------------------------------------


def npy() -> Iterator[Seed]:
    for array in (LABELS, SHARES, np.asfortranarray(LABELS.astype(">i4")), SHARES[0] > 0.2):
        stream = io.BytesIO()
        np.save(stream, array)
        yield Seed("a.npy", stream.getvalue())


def _zipped(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("a.npy"), content, zipfile.ZIP_DEFLATED, 1)
    return stream.getvalue()


def npz() -> Iterator[Seed]:
    import nibabel

    for seed in npy():
        yield Seed("a.npz", seed.content, wrap=_zipped)
    names = np.array([["1", "grey"], ["2", "white"]])
    written: list[dict[str, Any]] = [
        {"a": LABELS},
        {"labels": LABELS, "affine": AFFINE, "names": names},
        {"regions": SHARES, "affine": AFFINE, "names": np.array(["a", "b", "c"])},
        {"map": SHARES[0], "affine": AFFINE},
        {"probabilities": SHARES},
    ]
    for arrays in written:
        for save in (np.savez, np.savez_compressed):
            stream = io.BytesIO()
            save(stream, **arrays)
            yield Seed("a.npz", stream.getvalue(), summed=True)
    # nnU-Net writes probabilities with axes (z, y, x) next to its label image.
    stream = io.BytesIO()
    np.savez_compressed(stream, probabilities=SHARES.transpose(0, 3, 2, 1))
    image = nibabel.Nifti1Image(LABELS, AFFINE).to_bytes()
    beside = {"a.nii.gz": _gzipped(image)}
    yield Seed("a.npz", stream.getvalue(), beside=beside, summed=True)


# Pictures --------------------------------------------------------------------------------------


def tiff() -> Iterator[Seed]:
    import tifffile

    kinds: list[tuple[NDArray[Any], dict[str, Any]]] = [
        (LABELS, {}),
        (LABELS[0], {"compression": "zlib"}),
        (LABELS, {"compression": "lzw"}),
        (LABELS, {"compression": "packbits"}),
        (LABELS, {"compression": "zstd", "predictor": True}),
        (np.tile(LABELS[0].astype(np.uint16), (5, 5)), {"tile": (16, 16)}),
        (np.tile(LABELS[0], (5, 5)), {"tile": (16, 16), "compression": "zlib"}),
        (SHARES, {"metadata": {"axes": "CZYX"}}),
        (SHARES, {"metadata": {"axes": "CZYX"}, "bigtiff": True, "compression": "zlib"}),
        (LABELS.astype(np.uint16), {"byteorder": ">", "rowsperstrip": 2}),
        (LABELS, {"imagej": True, "metadata": {"axes": "ZYX"}}),
        (LABELS, {"ome": True, "metadata": {"axes": "ZYX"}}),
    ]
    for array, options in kinds:
        stream = io.BytesIO()
        tifffile.imwrite(stream, array, photometric="minisblack", **options)
        yield Seed("a.tif", stream.getvalue())
    for options in ({}, {"tile": (16, 16)}, {"bigtiff": True}):
        stream = io.BytesIO()
        tifffile.imwrite(stream, NOISE[0], compression="zlib", **options)
        page = tifffile.TiffFile(io.BytesIO(stream.getvalue())).pages[0]
        place, size = page.dataoffsets[0], page.databytecounts[0]
        yield _summed("a.tif", stream.getvalue(), place, size)


def _chunk(kind: bytes, content: bytes) -> bytes:
    sum_ = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", sum_)


def _png(content: bytes) -> bytes:
    """Return a PNG file with 13 header bytes and the compressed rows."""
    chunks = [
        _chunk(b"IHDR", content[:13]),
        _chunk(b"PLTE", bytes(range(48))) if content[9:10] == b"\3" else b"",
        _chunk(b"IDAT", zlib.compress(content[13:], 1)),
        _chunk(b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def png() -> Iterator[Seed]:
    from PIL import Image

    pictures = [
        Image.fromarray(LABELS[0].copy()),
        Image.fromarray(LABELS[0].astype(np.uint16)),
        Image.fromarray(LABELS[0] > 2),
        Image.fromarray(LABELS[0].copy()).convert("P"),
        Image.fromarray(LABELS[0].copy()).convert("RGB"),
    ]
    for picture in pictures:
        stream = io.BytesIO()
        picture.save(stream, "PNG")
        yield Seed("a.png", stream.getvalue(), summed=True)
    for depth, colour in ((8, 0), (16, 0), (1, 0), (2, 0), (4, 0), (8, 3), (4, 3), (8, 2), (8, 6)):
        header = struct.pack(">2I5B", 6, 7, depth, colour, 0, 0, 0)
        yield Seed("a.png", header + bytes(7 * (1 + 6 * 4 * depth // 8)), wrap=_png)


def bmp() -> Iterator[Seed]:
    from PIL import Image

    grey = Image.fromarray(LABELS[0].copy())
    for picture in (grey, grey.convert("P"), grey.convert("RGB"), Image.fromarray(LABELS[0] > 2)):
        yield Seed("a.bmp", _saved("a.bmp", picture.save))
    # Four runs of five equal pixels, each with an end-of-row mark, and an end-of-image mark.
    runs = b"".join(bytes([5, k, 0, 0]) for k in range(4)) + b"\0\1"
    head = struct.pack("<2sIII", b"BM", 54 + 1024 + len(runs), 0, 54 + 1024)
    head += struct.pack("<IiiHHIIiiII", 40, 5, 4, 1, 8, 1, len(runs), 0, 0, 256, 0)
    yield Seed("a.bmp", head + bytes(range(256)) * 4 + runs)


# MATLAB and HDF5 -------------------------------------------------------------------------------


def _packed_variables(content: bytes) -> bytes:
    """Return a .mat file with one compressed variable."""
    packed = zlib.compress(content[128:], 1)
    return content[:128] + struct.pack("<2I", 15, len(packed)) + packed


def matlab() -> Iterator[Seed]:
    import scipy.io

    cells = np.empty((1, 2), dtype=object)
    for k in range(2):
        cells[0, k] = {"Segmentation": LABELS[k].astype(np.uint16), "Boundaries": LABELS[k] > 2}
    variables: list[tuple[str, dict[str, Any]]] = [
        ("", {"a": LABELS}),
        ("", {"a": np.moveaxis(SHARES.astype(float), 0, -1)}),
        (":groundTruth/1", {"groundTruth": cells}),
        (":b/d/0", {"b": {"c": 1j, "d": [np.eye(3), "x"]}, "note": "text"}),
    ]
    for inside, content in variables:
        plain, packed = io.BytesIO(), io.BytesIO()
        scipy.io.savemat(plain, content)
        scipy.io.savemat(packed, content, do_compression=True)
        yield Seed(f"a.mat{inside}", plain.getvalue())
        yield Seed(f"a.mat{inside}", packed.getvalue())
        if len(content) == 1:
            yield Seed(f"a.mat{inside}", plain.getvalue(), wrap=_packed_variables)

    noise = io.BytesIO()
    scipy.io.savemat(noise, {"a": NOISE}, do_compression=True)
    yield _summed("a.mat", noise.getvalue(), 136, len(noise.getvalue()) - 136)

    def saving(array: NDArray[Any]) -> Callable[[Path], None]:
        def save(path: Path) -> None:
            import h5py

            with h5py.File(path, "w", userblock_size=512) as file:
                file.create_dataset("a", data=array.T, chunks=(5, 6, 7), compression="gzip")
            with path.open("rb+") as stream:
                stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\2IM")

        return save

    yield Seed("a.mat", _saved("a.mat", saving(LABELS)))
    summed = _saved("a.mat", saving(NOISE))
    yield _summed("a.mat", summed, *_first_chunk(summed, "a"))


def _first_chunk(content: bytes, name: str) -> tuple[int, int]:
    """Return the offset and size of the first chunk of an HDF5 dataset."""
    import h5py

    with h5py.File(io.BytesIO(content)) as file:
        chunk = file[name].id.get_chunk_info(0)
        return chunk.byte_offset, chunk.size


def hdf5() -> Iterator[Seed]:
    import h5py

    axes = {"axes": [{"key": key, "typeFlags": 2, "resolution": 0} for key in "zyxc"]}

    def saving(
        array: NDArray[Any], libver: str = "earliest", tags: bool = False, **options: Any
    ) -> Callable[[Path], None]:
        def save(path: Path) -> None:
            with h5py.File(path, "w", libver=libver) as file:
                dataset = file.create_dataset("exported/a", data=array, **options)
                if tags:
                    dataset.attrs["axistags"] = json.dumps(axes)

        return save

    kinds = [
        saving(LABELS),
        saving(LABELS, chunks=(3, 3, 3), compression="gzip"),
        saving(LABELS, chunks=(3, 3, 3), compression="lzf", shuffle=True),
        saving(LABELS, libver="latest", chunks=(3, 3, 3), fletcher32=True),
        saving(SHARES, chunks=(1, 3, 3, 3), maxshape=(None, None, None, None)),
        saving(np.moveaxis(SHARES, 0, -1), tags=True, compression="gzip"),
        saving(SHARES, libver="latest"),
    ]
    for save in kinds:
        yield Seed("a.h5", _saved("a.h5", save))
        yield Seed("a.h5:/exported/a", _saved("a.h5", save))
    for options in (
        {"compression": "gzip"},
        {"fletcher32": True},
        {"libver": "latest", "fletcher32": True},
    ):
        summed = _saved("a.h5", saving(NOISE, chunks=NOISE.shape, **options))
        yield _summed("a.h5", summed, *_first_chunk(summed, "exported/a"))


def zarr() -> Iterator[Seed]:
    """Yield stores of both Zarr formats. Their metadata or chunks are mutated."""
    import zarr
    from zarr.codecs import Crc32cCodec, GzipCodec, ZstdCodec

    from probdice import Geometry, Segmentation, write

    def stores(folder: Path) -> Iterator[Path]:
        for version in (2, 3):
            path = folder / f"plain{version}.zarr"
            zarr.create_array(
                path, data=LABELS, chunks=(3, 3, 3), zarr_format=version, compressors="auto"
            )
            yield path
        for number, codecs in enumerate(
            (GzipCodec(), Crc32cCodec(), (ZstdCodec(), Crc32cCodec()), ZstdCodec(checksum=True))
        ):
            path = folder / f"summed{number}.zarr"
            zarr.create_array(path, data=NOISE, chunks=(3, 6, 5), compressors=codecs)
            yield path
        path = folder / "shards.zarr"
        zarr.create_array(
            path, data=LABELS, chunks=(1, 3, 3), shards=(7, 6, 6), compressors=GzipCodec()
        )
        yield path
        placed = Geometry((7, 6, 5), np.diag([2.0, 3.0, 5.0, 1.0]))
        for name, segmentation in (
            ("labels", Segmentation.from_labels(LABELS, names={1: "one"}, geometry=placed)),
            ("regions", Segmentation.from_probabilities(SHARES, geometry=placed)),
        ):
            write(folder / f"{name}.zarr", segmentation)
            yield folder / f"{name}.zarr"

    with tempfile.TemporaryDirectory() as name:
        for store in stores(Path(name)):
            files = {
                str(file.relative_to(name)): file.read_bytes()
                for file in sorted(store.rglob("*"))
                if file.is_file()
            }
            metadata = [file for file in files if Path(file).name in METADATA]
            chunk = next(file for file in files if file not in metadata)
            for part in (*metadata, chunk):
                beside = {file: content for file, content in files.items() if file != part}
                summed = part == chunk and store.name.startswith("summed")
                yield Seed(store.name, files[part], beside=beside, part=part, summed=summed)


METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup")


# ITK -------------------------------------------------------------------------------------------

SEGMENTS = """Segment0_ID:=Segment_1
Segment0_LabelValue:=1
Segment0_Layer:=0
Segment0_Name:=liver
Segment1_ID:=Segment_2
Segment1_LabelValue:=2
Segment1_Layer:=1
Segment1_Name:=spleen
"""


def _sitk_image(array: NDArray[Any]) -> Any:
    import SimpleITK as sitk

    image = sitk.GetImageFromArray(np.ascontiguousarray(array.T), isVector=array.ndim == 4)
    image.SetSpacing((2.0, 3.0, 5.0))
    image.SetOrigin((-10.0, -20.0, -30.0))
    return image


def _by_itk(name: str, array: NDArray[Any], *, packed: bool) -> dict[str, bytes]:
    """Return the files that SimpleITK writes for a file name."""
    import SimpleITK as sitk

    with tempfile.TemporaryDirectory() as folder:
        sitk.WriteImage(_sitk_image(array), f"{folder}/{name}", useCompression=packed)
        return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def _split_packed(mark: bytes, pack: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Return a function that compresses the values after a text header."""

    def wrap(content: bytes) -> bytes:
        header, found, values = content.partition(mark)
        return header + found + pack(values) if found else content

    return wrap


def _summed_beside(name: str, files: dict[str, bytes]) -> Iterator[Seed]:
    """Yield a seed with compressed values in a separate file."""
    header = files.pop(name)
    ((part, content),) = files.items()
    yield Seed(name, content, beside={name: header}, part=part, summed=True, right=right_for_zlib)


def nrrd() -> Iterator[Seed]:
    for array in (LABELS, SHARES):
        for packed in (False, True):
            yield Seed("a.nrrd", _by_itk("a.nrrd", array, packed=packed)["a.nrrd"])
        yield _summed_end("a.nrrd", _by_itk("a.nrrd", array, packed=True)["a.nrrd"], b"\n\n")
        files = _by_itk("a.nhdr", array, packed=False)
        header = files.pop("a.nhdr")
        yield Seed("a.nhdr", header, beside=files)
        yield from _summed_beside("a.nhdr", _by_itk("a.nhdr", array, packed=True))
    header = _by_itk("a.nrrd", LABELS, packed=False)["a.nrrd"].replace(b"raw", b"gzip", 1)
    yield Seed("a.nrrd", header, wrap=_split_packed(b"\n\n", _gzipped))
    layered = (
        "NRRD0004\ntype: uchar\ndimension: 4\nsizes: 2 7 6 5\nkinds: list domain domain domain\n"
        "space: left-posterior-superior\nspace origin: (0,0,0)\n"
        f"space directions: none (1,0,0) (0,1,0) (0,0,1)\nencoding: raw\n{SEGMENTS}\n"
    )
    layers = np.stack([LABELS, LABELS * 2])
    yield Seed("a.seg.nrrd", layered.encode() + layers.tobytes(order="F"))
    text = "NRRD0004\ntype: uint8\ndimension: 2\nsizes: 3 2\nencoding: "
    yield Seed("a.nrrd", f"{text}ascii\n\n0 1 2 3 4 5\n".encode())
    yield Seed("a.nrrd", f"{text}hex\n\n000102030405\n".encode())
    yield Seed(
        "a.nhdr",
        f"{text}raw\ndata file: LIST\nb0.raw\nb1.raw\n".encode(),
        beside={"b0.raw": b"\0\1\2", "b1.raw": b"\3\4\5"},
    )


def metaimage() -> Iterator[Seed]:
    for array in (LABELS, SHARES):
        for packed in (False, True):
            yield Seed("a.mha", _by_itk("a.mha", array, packed=packed)["a.mha"])
            files = _by_itk("a.mhd", array, packed=packed)
            header = files.pop("a.mhd")
            yield Seed("a.mhd", header, beside=files)
    yield _summed_end("a.mha", _by_itk("a.mha", NOISE, packed=True)["a.mha"], b"= LOCAL\n")
    yield from _summed_beside("a.mhd", _by_itk("a.mhd", NOISE, packed=True))
    header = b"ObjectType = Image\nNDims = 2\nDimSize = 3 2\nElementType = MET_UCHAR\n"
    packed_header = header + b"CompressedData = True\nElementDataFile = LOCAL\n"
    yield Seed("a.mha", packed_header + bytes(6), wrap=_split_packed(b"LOCAL\n", zlib.compress))
    several = {f"s{k}.raw": bytes([k, k + 1, k + 2]) for k in range(2)}
    yield Seed("a.mhd", header + b"ElementDataFile = s%d.raw 0 1 1\n", beside=several)
    yield Seed("a.mhd", header + b"ElementDataFile = LIST\ns0.raw\ns1.raw\n", beside=several)


def other_itk() -> Iterator[Seed]:
    for name in ("a.vtk", "a.gipl", "a.mrc"):
        yield Seed(name, _by_itk(name, LABELS, packed=False)[name])


# DICOM -----------------------------------------------------------------------------------------


def by_highdicom(
    values: NDArray[Any], kind: str, segments: int | None = None, **options: Any
) -> bytes:
    """Return a DICOM SEG file of labels (x, y, z), or of `segments` maps along the last axis."""
    import highdicom
    import pydicom
    from pydicom.sr.codedict import codes
    from pydicom.uid import generate_uid

    def uid(name: str) -> str:
        return str(generate_uid(entropy_srcs=[name]))

    def slices() -> Iterator[pydicom.Dataset]:
        for z in range(values.shape[2]):
            dataset = pydicom.Dataset()
            dataset.file_meta = pydicom.dataset.FileMetaDataset()
            dataset.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
            dataset.SOPClassUID = pydicom.uid.CTImageStorage
            dataset.SOPInstanceUID = uid(f"slice {z}")
            dataset.StudyInstanceUID, dataset.SeriesInstanceUID = uid("study"), uid("series")
            dataset.FrameOfReferenceUID = uid("place")
            dataset.PatientID, dataset.PatientName, dataset.StudyID = "1", "No^Body", "1"
            dataset.PatientBirthDate = dataset.PatientSex = dataset.AccessionNumber = ""
            dataset.StudyDate = dataset.StudyTime = dataset.ReferringPhysicianName = ""
            dataset.Modality = "CT"
            dataset.Rows, dataset.Columns = values.shape[1], values.shape[0]
            dataset.PixelSpacing, dataset.SliceThickness = [3.0, 2.0], 5.0
            dataset.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
            dataset.ImagePositionPatient = [-10.0, -20.0, -30.0 + 5 * z]
            yield dataset

    count = int(values.max()) if segments is None else segments
    seg = highdicom.seg.Segmentation(
        list(slices()),
        np.ascontiguousarray(np.moveaxis(values, (0, 1, 2), (2, 1, 0))),
        kind,
        [
            highdicom.seg.SegmentDescription(
                number, f"part {number}", codes.SCT.Organ, codes.SCT.Liver, algorithm_type="MANUAL"
            )
            for number in range(1, count + 1)
        ],
        series_instance_uid=uid("of the segmentation"),
        series_number=1,
        sop_instance_uid=uid(kind),
        instance_number=1,
        manufacturer="us",
        manufacturer_model_name="test",
        software_versions="1",
        device_serial_number="1",
        **options,
    )
    stream = io.BytesIO()
    seg.save_as(stream)
    return stream.getvalue()


def dicom() -> Iterator[Seed]:
    from pydicom.uid import RLELossless

    labels = np.where(LABELS < 3, LABELS, 0)
    masks = np.stack([LABELS == 1, LABELS == 2], axis=-1).astype(np.uint8)
    overlapping = np.stack([LABELS > 0, LABELS > 1], axis=-1).astype(np.uint8)
    shares = np.moveaxis(SHARES[:2], 0, -1)
    for content in (
        by_highdicom(masks, "BINARY", 2),
        by_highdicom(overlapping, "BINARY", 2),
        by_highdicom(labels, "LABELMAP"),
        by_highdicom(shares, "FRACTIONAL", 2),
        by_highdicom(labels, "LABELMAP", transfer_syntax_uid=RLELossless),
    ):
        yield Seed("a.dcm", content)


# Everything else -------------------------------------------------------------------------------


def unsupported() -> Iterator[Seed]:
    """Yield files of unsupported formats, with the suffixes of all supported formats."""
    from probdice.files import FORMATS

    starts = (b"%PDF-1.4\n", b"PK\3\4", b"<!doctype html><p>", b"\x80\4\x95", b"{}", b"a,b\n1,2\n")
    for form in FORMATS:
        for suffix in form.suffixes:
            for start in starts:
                yield Seed(f"a{suffix}", start + b"what follows" * 8)


def names() -> Iterator[Seed]:
    tables = {
        "a.txt": "# No. Label Name: R G B A\n0 Unknown 0 0 0 0\n2 White-Matter 245 245 245 0\n",
        "a.label": '0 0 0 0 0 0 0 "Clear Label"\n1 255 0 0 1 1 1 "grey matter"\n',
        "a.tsv": "index\tname\tabbreviation\n1\tgrey matter\tGM\n2\twhite matter\tWM\n",
        "a.csv": "Label,Name\n1,liver\n2,spleen\n",
        "semicolons.csv": "1;liver\n2;spleen\n",
        "a.ctbl": "# Color table\n0 air 0 0 0 0\n1 bone 241 214 145 255\n",
        "a.json": '{"labels": {"background": 0, "liver": 1, "spleen": 2}}',
        "list.json": '[{"index": 1, "name": "grey"}, {"index": 2, "name": "white"}]',
        "dataset.json": '{"labels": {"background": 0, "whole": [1, 2], "core": 2}}',
        "a.lut": "1 0.5 0.25 1 grey matter\n2 1 .5 0 white matter\n",
        "labels.xml": "<atlas><header><type>Label</type></header><data>"
        '<label index="1">grey</label><label index="2"><name>white</name></label></data></atlas>',
        "probabilities.xml": '<?xml version="1.0"?><atlas><header><type>Probabilistic</type>'
        '</header><data><label index="0" value="3">grey &amp; more</label></data></atlas>',
    }
    for name, text in tables.items():
        yield Seed(name, text.encode())


def bids() -> Iterator[Seed]:
    """Yield tables of label names that belong to a label map by their file names and folders."""
    import nibabel

    image = "sub-1/sub-1_run-2_dseg.nii"
    beside = {image: nibabel.Nifti1Image(LABELS, AFFINE).to_bytes()}
    table = b"index\tname\tcolor\n1\tgrey matter\t#ff0000\n2\twhite matter\t#00ff00\n"
    for part in ("sub-1/sub-1_dseg.tsv", "sub-1/sub-1_run-2_dseg.tsv", "dseg.tsv"):
        yield Seed(image, table, beside=beside, part=part)


def description() -> Iterator[Seed]:
    """Yield the descriptions that `write` stores in NIfTI and PNG files."""
    import nibabel

    axes = {"affine": AFFINE.tolist(), "colours": {"1": "#ff0000"}}
    labels = {"kind": "labels", "shape": [7, 6, 5], "names": {"1": "grey"}}
    names = {"labels": [1, 3, 7], "names": ["grey", None, "other"]}
    shares = {"kind": "probabilities", "shape": [7, 6, 5], **names}
    names = {"labels": [0, 4], "names": ["background", "lesion"]}
    foreground = {"kind": "foreground", "shape": [7, 6, 5], **names}

    def in_nifti(array: NDArray[Any]) -> Callable[[bytes], bytes]:
        def wrap(content: bytes) -> bytes:
            image = nibabel.Nifti1Image(array, AFFINE)
            text = b"probdice " + content + b"\0"
            image.header.extensions.append(nibabel.nifti1.Nifti1Extension(6, text))
            return image.to_bytes()

        return wrap

    def in_png(content: bytes) -> bytes:
        text = _chunk(b"tEXt", b"probdice\0" + content)
        image = _png(struct.pack(">2I5B", 6, 7, 8, 0, 0, 0, 0) + bytes(7 * 7))
        return image[:33] + text + image[33:]

    for array, content in (
        (LABELS, labels),
        (np.moveaxis(SHARES, 0, -1), shares),
        (SHARES[0], foreground),
    ):
        yield Seed("a.nii", json.dumps(content | axes).encode(), wrap=in_nifti(array))
    flat = labels | {"shape": [7, 6], "affine": np.diag([2.0, 3.0, 1.0]).tolist()}
    yield Seed("a.png", json.dumps(flat).encode(), wrap=in_png)


def subjects() -> Iterator[Seed]:
    rows = [("case", "subject", "seconds"), ("a1", "anna", "1.5"), ("a2", "anna", "2e1")]
    for suffix, separator in (("tsv", "\t"), ("csv", ",")):
        yield Seed(f"a.{suffix}", "\n".join(map(separator.join, rows)).encode())


def manifest() -> Iterator[Seed]:
    """Yield a manifest for label maps and a manifest for probabilities."""
    from probdice.evaluation.manifest import Manifest

    for array in (LABELS, SHARES):
        with tempfile.TemporaryDirectory() as folder:
            for case in "ab":
                np.save(Path(folder) / case, array)
            yield Seed("a.json", json.dumps(Manifest.of(folder).to_dict()).encode())


def child() -> Iterator[Seed]:
    """Yield the acts of a reader in the child process, and answers as bytes."""
    from fuzz.child_acts import ACTS

    for word in ACTS:
        yield Seed("a.bin", f"{word}\ncontent".encode())
    array = {"dtype": "|u1", "shape": [4, 5], "axes": [1, 0]}
    messages: list[dict[str, Any]] = [
        {"value": None, "arrays": []},
        {"value": None, "arrays": [array, array]},
        {"grant": 1000},
        {"error": {"kind": "FormatError", "message": ["is invalid", {"name": "names"}]}},
        {"error": {"kind": "OSError", "message": [2, "No such file"]}},
    ]
    for message in messages:
        text = json.dumps(message).encode()
        yield Seed("a.bin", b"send\n" + struct.pack("<Q", len(text)) + text)


def _comparisons() -> list[Any]:
    from probdice import compare

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            compare(LABELS, LABELS // 2, merge="both"),
            compare(LABELS, SHARES, similarity="aitchison"),
            compare(SHARES, np.roll(SHARES, 1, axis=1), match="paper"),
        ]


def overlap() -> Iterator[Seed]:
    for comparison in _comparisons():
        content = _saved("a.npz", comparison.overlap.save)
        yield Seed("a.npz", content, summed=True)


def comparison() -> Iterator[Seed]:
    for result in _comparisons():
        yield Seed("a.json", result.to_json().encode())


def journal() -> Iterator[Seed]:
    """Yield cases.jsonl and summary.json of a finished run."""
    from probdice import evaluate

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side in ("truth", "mine"):
            (folder / side).mkdir()
            for k in range(3):
                np.save(folder / side / f"case{k}", LABELS[k + (side == "mine")])
        np.save(folder / "mine" / "case2", SHARES)
        evaluate(folder / "truth", folder / "mine", out=folder / "out", workers=1)
        files = {
            file.name: file.read_bytes().replace(name.encode(), b"/gone")
            for file in (folder / "out").iterdir()
            if file.suffix in (".jsonl", ".json")
        }
    for name, content in files.items():
        yield Seed(name, content, beside={k: v for k, v in files.items() if k != name})


def photograph() -> Iterator[Seed]:
    from PIL import Image

    colours = np.moveaxis((SHARES[:, 0] * 255).astype(np.uint8), 0, -1)
    for suffix, options in (("jpg", {}), ("jpg", {"progressive": True}), ("png", {})):
        stream = io.BytesIO()
        Image.fromarray(colours).save(stream, {"jpg": "JPEG"}.get(suffix, "PNG"), **options)
        yield Seed(f"a.{suffix}", stream.getvalue(), summed=suffix == "png")


def configuration() -> Iterator[Seed]:
    yield Seed(
        "a.toml",
        b'reference = "truth"\noutput = "out"\nmatch = "overlap"\nignore = [0, 255]\n'
        b'sums = ["normalise"]\nverify = true\ngeometry-tolerance = 0.5\n\n'
        b'[methods]\nmine = "mine"\nother = "../other"\n',
    )
    yield Seed(
        "a.toml",
        b'reference = "truth"\noutput = "out"\nmask = "masks"\nmatch = "labels"\nbackground = "0"\n'
        b'missing = "worst"\nboundaries = true\ntolerance = [1, 2.5]\ncomponents = "2"\n'
        b'minimum-size = 50\nrank-by = ["nsd@1:masses", "runtime"]\n'
        b'column = ["runtime=times.csv"]\n'
        b'subjects = "{subject}_{session}"\nreports = "worst:3"\n\n[pattern]\n'
        b'reference = "{case}_seg.nii.gz"\nmask = "{case}_brain.nii.gz"\n\n[derived]\n'
        b'masses = [2, 3]\ntumour = 2\n\n[rater]\nfirst = "a1"\nsecond = "a2"\n\n'
        b'[methods]\n"Team A" = "submissions/a"\n',
    )


def answers() -> Iterator[Seed]:
    yield Seed("a.csv", b"person,image,segmentation,rank\np1,i1,a,1\np1,i1,b,2\np2,i1,a,2\n")
    yield Seed("a.csv", b"image,segmentation,score\ni1,a,0.9\ni1,b,0.5\n")


# Surfaces --------------------------------------------------------------------------------------


def annot() -> Iterator[Seed]:
    from nibabel.freesurfer.io import write_annot

    labels = np.append(LABELS.reshape(-1)[:40].astype(int), -1)
    table = np.array([[25, 5, 25, 0], [255, 0, 0, 0], [0, 9, 0, 0], [0, 0, 7, 0], [7, 7, 7, 0]])
    names = ["unknown", "bankssts", "cuneus", "insula", "lingual"]
    newer = _saved("lh.a.annot", lambda path: write_annot(str(path), labels, table, names))
    yield Seed("lh.a.annot", newer)
    vertices = newer[: 4 + 8 * labels.size]
    rows = b"".join(
        struct.pack(f">i{len(name) + 1}s4i", len(name) + 1, name.encode(), *row)
        for name, row in zip(names, table.tolist(), strict=True)
    )
    yield Seed("rh.a.annot", vertices + struct.pack(">iii2s", 1, 5, 2, b"x") + rows)


def gifti() -> Iterator[Seed]:
    from nibabel import gifti

    table = gifti.GiftiLabelTable()
    for key in range(5):
        label = gifti.GiftiLabel(key, 0.1 * key, 0.5, 0.5, 1.0)
        label.label = f"region {key} & more"
        table.labels.append(label)
    meta = gifti.GiftiMetaData({"AnatomicalStructurePrimary": "CortexLeft"})
    values = LABELS.reshape(-1)[:30].astype(np.int32)
    for encoding in ("GIFTI_ENCODING_ASCII", "GIFTI_ENCODING_B64BIN", "GIFTI_ENCODING_B64GZ"):
        array = gifti.GiftiDataArray(values, "NIFTI_INTENT_LABEL", encoding=encoding, meta=meta)
        image = gifti.GiftiImage(labeltable=table, darrays=[array])
        yield Seed("a.label.gii", image.to_bytes())
    rows = SHARES.reshape(3, -1)[:, :20]
    arrays = [gifti.GiftiDataArray(row, "NIFTI_INTENT_NONE") for row in rows]
    yield Seed("a.func.gii", gifti.GiftiImage(meta=meta, darrays=arrays).to_bytes())


def cifti() -> Iterator[Seed]:
    from nibabel import cifti2

    left, right = (
        cifti2.BrainModelAxis.from_surface(np.arange(3, 18), 20, name)
        for name in ("CortexLeft", "CortexRight")
    )
    inside = np.ones((2, 3, 2), np.bool_)
    voxels = cifti2.BrainModelAxis.from_mask(inside, "thalamus_left", AFFINE)
    table = {key: (f"region {key}", (0.1 * key, 0.5, 0.5, 1.0)) for key in range(5)}
    labels = LABELS.reshape(-1)[None, :42].astype(np.int32)
    axes = cifti2.LabelAxis(["parcels"], [table]), right + left + voxels
    image = cifti2.Cifti2Image(labels, axes)
    image.nifti_header.set_intent("NIFTI_INTENT_CONNECTIVITY_DENSE_LABELS")
    yield Seed("a.dlabel.nii", _saved("a.dlabel.nii", image.to_filename))
    scalars = cifti2.ScalarAxis(["grey", "white", "other"]), left + right
    image = cifti2.Cifti2Image(SHARES.reshape(3, -1)[:, :30], scalars)
    image.nifti_header.set_intent("NIFTI_INTENT_CONNECTIVITY_DENSE_SCALARS")
    yield Seed("a.dscalar.nii", _saved("a.dscalar.nii", image.to_filename))


def surface() -> Iterator[Seed]:
    from nibabel import freesurfer, gifti

    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    triangles = np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]], np.int32)

    def save(path: Path) -> None:
        freesurfer.write_geometry(path, points, triangles, create_stamp="a")

    yield Seed("lh.white", _saved("lh.white", save))
    arrays = [
        gifti.GiftiDataArray(points, "NIFTI_INTENT_POINTSET"),
        gifti.GiftiDataArray(triangles, "NIFTI_INTENT_TRIANGLE"),
    ]
    yield Seed("lh.surf.gii", gifti.GiftiImage(darrays=arrays).to_bytes())


SEEDS: dict[str, Callable[[], Iterator[Seed]]] = {
    "nifti": nifti,
    "npy": npy,
    "npz": npz,
    "tiff": tiff,
    "png": png,
    "bmp": bmp,
    "matlab": matlab,
    "hdf5": hdf5,
    "zarr": zarr,
    "nrrd": nrrd,
    "metaimage": metaimage,
    "other_itk": other_itk,
    "dicom": dicom,
    "unsupported": unsupported,
    "names": names,
    "bids": bids,
    "description": description,
    "subjects": subjects,
    "manifest": manifest,
    "child": child,
    "overlap": overlap,
    "comparison": comparison,
    "journal": journal,
    "photograph": photograph,
    "configuration": configuration,
    "answers": answers,
    "annot": annot,
    "gifti": gifti,
    "cifti": cifti,
    "surface": surface,
}
