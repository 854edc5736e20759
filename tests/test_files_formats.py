"""Properties of the ITK formats, TIFF, PNG, NumPy files, HDF5 and MATLAB."""

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import h5py
import nibabel
import numpy as np
import pytest
import scipy.io
import SimpleITK as sitk
import tifffile
from numpy.typing import NDArray
from PIL import Image as Pillow

from probdice.data.segmentation import Segmentation
from probdice.errors import FormatError, GeometryError
from probdice.files import read, write

LABELS = np.arange(24, dtype=np.uint8).reshape(4, 3, 2) % 5
SHARES = np.linspace(0.0, 1.0, 24, dtype=np.float32).reshape(4, 3, 2)
BOTH = np.stack([SHARES, 1 - SHARES])
AFFINE = np.array([[-2.0, 0, 0, 10], [0, -3, 0, 20], [0, 0, 5, -30], [0, 0, 0, 1]])


def whole(segmentation: Segmentation) -> NDArray[Any]:
    return np.asarray(segmentation.array[(slice(None),) * len(segmentation.array.shape)])


# ITK


def save_layers(path: Path, layers: NDArray[Any], segments: list[tuple[str, int, int]]) -> Path:
    """A .seg.nrrd as Slicer writes it: layers along a first axis of kind "list"."""
    lines = [
        "NRRD0004",
        "type: unsigned char",
        "dimension: 4",
        "space: left-posterior-superior",
        f"sizes: {' '.join(map(str, layers.shape))}",
        "space directions: none (2,0,0) (0,3,0) (0,0,5)",
        "kinds: list domain domain domain",
        "encoding: raw",
        "space origin: (-10,-20,-30)",
    ]
    for number, (name, label, layer) in enumerate(segments):
        lines += [
            f"Segment{number}_Name:={name}",
            f"Segment{number}_LabelValue:={label}",
            f"Segment{number}_Layer:={layer}",
        ]
    header = "\n".join(lines) + "\n\n"
    path.write_bytes(header.encode() + layers.tobytes(order="F"))
    return path


def test_slicer_names_its_segments(tmp_path: Path) -> None:
    image = sitk.GetImageFromArray(LABELS.transpose(2, 1, 0).copy())
    for number, (label, name) in enumerate([(3, "liver"), (4, "vessel")]):
        image.SetMetaData(f"Segment{number}_LabelValue", str(label))
        image.SetMetaData(f"Segment{number}_Name", name)
    image.SetMetaData("Segment0_Color", "0.90196 0.62353 0")
    sitk.WriteImage(image, str(tmp_path / "a.seg.nrrd"))
    segmentation = read(tmp_path / "a.seg.nrrd")
    assert segmentation.names == {3: "liver", 4: "vessel"}
    assert segmentation.colours == {3: "#E69F00"}
    assert np.array_equal(whole(segmentation), LABELS)
    write(tmp_path / "b.seg.nrrd", segmentation)
    again = read(tmp_path / "b.seg.nrrd")
    assert (again.names, again.colours) == (segmentation.names, segmentation.colours)


def test_overlapping_layers_need_an_option(tmp_path: Path) -> None:
    layers = np.stack([LABELS > 1, LABELS > 2]).astype(np.uint8)
    path = save_layers(tmp_path / "a.seg.nrrd", layers, [("big", 1, 0), ("small", 1, 1)])
    with pytest.raises(FormatError, match=r"a\.seg\.nrrd: 9 voxels are in several masks"):
        read(path)
    segmentation = read(path, sums="normalise")
    assert segmentation.regions == ("big", "small", "background")
    assert np.array_equal(whole(segmentation), layers)
    assert segmentation.geometry is not None
    assert segmentation.geometry.affine == pytest.approx(AFFINE)


def test_layers_that_do_not_overlap_are_one_label_map(tmp_path: Path) -> None:
    layers = np.stack([LABELS == 1, LABELS == 2]).astype(np.uint8)
    path = save_layers(tmp_path / "a.seg.nrrd", layers, [("one", 1, 0), ("two", 1, 1)])
    segmentation = read(path)
    assert segmentation.names == {1: "one", 2: "two"}
    assert np.array_equal(whole(segmentation), np.where(LABELS > 2, 0, LABELS))


def test_segments_of_older_slicer_versions_have_names(tmp_path: Path) -> None:
    layers = np.stack([LABELS == 4, LABELS == 2]).astype(np.uint8)
    for name, values in (("two", layers), ("one", layers[0])):
        image = sitk.GetImageFromArray(
            np.ascontiguousarray(values.T), isVector=values.ndim == LABELS.ndim + 1
        )
        for number, segment in enumerate(["liver", "vessel"][: 2 if name == "two" else 1]):
            image.SetMetaData(f"Segment{number}_ID", f"Segment_{number + 1}")
            image.SetMetaData(f"Segment{number}_Name", segment)
            image.SetMetaData(f"Segment{number}_Color", "0.90196 0.62353 0")
        sitk.WriteImage(image, str(tmp_path / f"{name}.seg.nrrd"))
    two, one = read(tmp_path / "two.seg.nrrd"), read(tmp_path / "one.seg.nrrd")
    assert two.names == {1: "liver", 2: "vessel"}
    assert two.colours == {1: "#E69F00", 2: "#E69F00"}
    assert np.array_equal(whole(two), np.select([LABELS == 4, LABELS == 2], [1, 2]))
    assert one.names == {1: "liver"}
    assert np.array_equal(whole(one), LABELS == 4)


def test_a_fourth_axis_is_that_of_the_regions(tmp_path: Path) -> None:
    image = sitk.GetImageFromArray(np.ascontiguousarray(BOTH.transpose(0, 3, 2, 1)), isVector=False)
    for name in ("a.nrrd", "a.mha"):
        sitk.WriteImage(image, str(tmp_path / name))
        segmentation = read(tmp_path / name)
        assert segmentation.regions == (0, 1)
        assert np.array_equal(whole(segmentation), BOTH)
        assert segmentation.geometry is not None
        assert segmentation.geometry.shape == (4, 3, 2)


def test_flat_images_keep_their_two_axes(tmp_path: Path) -> None:
    image = sitk.GetImageFromArray(LABELS[:, :, 0].T.copy())
    image.SetSpacing((0.5, 0.25))
    sitk.WriteImage(image, str(tmp_path / "a.mha"))
    segmentation = read(tmp_path / "a.mha")
    assert np.array_equal(whole(segmentation), LABELS[:, :, 0])
    assert segmentation.geometry is not None
    assert segmentation.geometry.spacing == (0.5, 0.25)


def test_nrrd_without_directions_has_no_geometry(tmp_path: Path) -> None:
    header = b"NRRD0004\ntype: uint8\ndimension: 3\nsizes: 4 3 2\nencoding: raw\n\n"
    (tmp_path / "a.nrrd").write_bytes(header + LABELS.tobytes(order="F"))
    segmentation = read(tmp_path / "a.nrrd")
    assert np.array_equal(whole(segmentation), LABELS)
    assert segmentation.geometry is None


@pytest.mark.parametrize("unit, length", [("microns", 1e-3), ("mm", 1), ("", 1)])
def test_nrrd_units_are_converted_to_millimetres(tmp_path: Path, unit: str, length: float) -> None:
    lines = [
        *("NRRD0004", "type: uint8", "dimension: 3", "space: right-anterior-superior"),
        *("sizes: 4 3 2", "space directions: (2,0,0) (0,3,0) (0,0,5)", "encoding: raw"),
        *("space origin: (10,20,30)", f'space units: "{unit}" "{unit}" "{unit}"', "", ""),
    ]
    (tmp_path / "a.nrrd").write_bytes("\n".join(lines).encode() + LABELS.tobytes(order="F"))
    geometry = read(tmp_path / "a.nrrd").geometry
    assert geometry is not None
    assert geometry.spacing == pytest.approx((2 * length, 3 * length, 5 * length))
    assert geometry.origin == pytest.approx((10 * length, 20 * length, 30 * length))


def test_values_stay_valid_after_the_image_is_deleted(tmp_path: Path) -> None:
    sitk.WriteImage(sitk.GetImageFromArray(np.full((60, 60, 60), 3, np.uint8)), tmp_path / "a.nrrd")
    segmentations = [read(tmp_path / "a.nrrd") for _ in range(5)]
    assert all(np.all(whole(segmentation) == 3) for segmentation in segmentations)


# TIFF and PNG


def test_tiff_stacks_and_channels(tmp_path: Path) -> None:
    grey: Any = {"photometric": "minisblack"}
    tifffile.imwrite(tmp_path / "a.tif", LABELS, **grey, compression="zlib")
    assert np.array_equal(whole(read(tmp_path / "a.tif")), LABELS)
    tifffile.imwrite(tmp_path / "b.tif", LABELS[:, :, 0], **grey)
    assert read(tmp_path / "b.tif").shape == (4, 3)
    tifffile.imwrite(tmp_path / "c.tif", SHARES, **grey, metadata={"axes": "ZYX"})
    assert read(tmp_path / "c.tif").reading == "foreground"
    tifffile.imwrite(tmp_path / "d.tif", BOTH[:, :, :, 0], **grey, metadata={"axes": "CYX"})
    assert read(tmp_path / "d.tif").regions == (0, 1)
    tifffile.imwrite(tmp_path / "e.tif", BOTH[:, :, :, 0], **grey)  # planes of unknown meaning
    assert np.array_equal(whole(read(tmp_path / "e.tif")), BOTH[:, :, :, 0])
    tifffile.imwrite(
        tmp_path / "f.tif", BOTH.swapaxes(0, 1), imagej=True, metadata={"axes": "ZCYX"}
    )
    assert np.array_equal(whole(read(tmp_path / "f.tif")), BOTH)
    tifffile.imwrite(tmp_path / "g.ome.tif", BOTH, **grey, metadata={"axes": "CZYX"})
    assert np.array_equal(whole(read(tmp_path / "g.ome.tif")), BOTH)


def test_palettes_give_colours_and_grey_ramps_none(tmp_path: Path) -> None:
    indices = LABELS[:, :, 0].astype(np.uint8)
    picture = Pillow.fromarray(indices).convert("P")
    picture.putdata(indices.ravel().tolist())
    picture.putpalette([0, 0, 0, 230, 159, 0] + [0, 0, 9] * 3)
    picture.save(tmp_path / "a.png")
    segmentation = read(tmp_path / "a.png")
    assert np.array_equal(whole(segmentation), indices)
    assert (segmentation.colours[0], segmentation.colours[1]) == ("#000000", "#E69F00")
    table = np.zeros((3, 256), np.uint16)
    table[:, 1] = 230 * 257, 159 * 257, 0
    tifffile.imwrite(tmp_path / "b.tif", indices, photometric="palette", colormap=table)
    assert read(tmp_path / "b.tif").colours[1] == "#E69F00"
    table[:] = np.arange(256) * 257
    tifffile.imwrite(tmp_path / "c.tif", indices, photometric="palette", colormap=table)
    assert read(tmp_path / "c.tif").colours == {}


def test_tiff_that_is_not_one_segmentation(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.tif", np.zeros((8, 8, 3), np.uint8), photometric="rgb")
    with pytest.raises(FormatError, match=r"a\.tif: is a colour image.*palette"):
        read(tmp_path / "a.tif")
    with tifffile.TiffWriter(tmp_path / "b.tif") as writer:
        writer.write(np.zeros((8, 8), np.uint8))
        writer.write(np.zeros((6, 6), np.uint8))
    with pytest.raises(
        FormatError, match=r"contains 2 images \(\(8, 8\), \(6, 6\)\), expected one"
    ):
        read(tmp_path / "b.tif")
    with tifffile.TiffWriter(tmp_path / "c.tif") as writer:
        for _ in range(9):
            writer.write(np.zeros((8, 8), np.uint8))
    with pytest.raises(FormatError, match=r"contains 9 images .*\), … 6 more\), .* as one stack\."):
        read(tmp_path / "c.tif")


def test_png_of_every_kind(tmp_path: Path) -> None:
    flat = LABELS[:, :, 0]
    Pillow.fromarray(flat.astype(np.uint16) * 9000).save(tmp_path / "deep.png")
    assert np.array_equal(whole(read(tmp_path / "deep.png")), flat.astype(np.uint16) * 9000)
    Pillow.fromarray(flat > 2).save(tmp_path / "bits.png")
    assert np.array_equal(whole(read(tmp_path / "bits.png")), flat > 2)
    palette = Pillow.fromarray(flat)
    palette.putpalette([200, 0, 0, 0, 200, 0, 200, 0, 0] + [7] * 300)
    palette.save(tmp_path / "palette.png")
    assert np.array_equal(whole(read(tmp_path / "palette.png")), flat)
    for mode in ("RGB", "RGBA", "LA"):
        Pillow.new(mode, (4, 4)).save(tmp_path / "colour.png")
        with pytest.raises(FormatError, match=rf"is a colour image.*\(found mode {mode}\)"):
            read(tmp_path / "colour.png")


def test_bmp_of_every_kind(tmp_path: Path) -> None:
    flat = LABELS[:, :, 0]
    palette = Pillow.fromarray(flat)
    palette.putpalette([200, 0, 0, 0, 200, 0, 200, 0, 0] + [7] * 300)
    palette.save(tmp_path / "palette.bmp")
    indexed = read(tmp_path / "palette.bmp")
    assert np.array_equal(whole(indexed), flat) and indexed.colours[1] == "#00C800"
    Pillow.new("RGB", (4, 4)).save(tmp_path / "colour.bmp")
    with pytest.raises(FormatError, match=r"is a colour image.*\(found mode RGB\)"):
        read(tmp_path / "colour.bmp")
    content = (tmp_path / "palette.bmp").read_bytes()
    (tmp_path / "cut.bmp").write_bytes(content[:-4])
    with pytest.raises(FormatError, match=r"cut\.bmp: is corrupt or incomplete: .*truncated"):
        read(tmp_path / "cut.bmp")
    (tmp_path / "wide.bmp").write_bytes(content[:18] + b"\xff\xff\x01\0" + content[22:])
    with pytest.raises(FormatError, match=r"describes an image of shape \(4, 131071\)"):
        read(tmp_path / "wide.bmp")


def test_png_of_four_bits_keeps_its_labels(tmp_path: Path) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", 4, 2, 4, 0, 0, 0, 0)  # 4 × 2, 4 bits, grey
    rows = b"\0\x01\x23" + b"\0\x4f\x00"
    content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows))
    (tmp_path / "a.png").write_bytes(content + chunk(b"IEND", b""))
    assert whole(read(tmp_path / "a.png")).tolist() == [[0, 1, 2, 3], [4, 15, 0, 0]]


def test_jpeg_is_rejected_with_the_reason(tmp_path: Path) -> None:
    Pillow.new("L", (8, 8)).save(tmp_path / "a.jpg")
    with pytest.raises(FormatError, match=r"a\.jpg: is a JPEG image.* Use PNG or TIFF"):
        read(tmp_path / "a.jpg")


# NumPy


def test_an_npy_file_is_interpreted_like_the_array(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", LABELS == 1)
    assert read(tmp_path / "a.npy").crisp
    np.save(tmp_path / "b.npy", BOTH[:, 0, 0])
    segmentation = read(tmp_path / "b.npy")
    assert segmentation.regions == (0, 1)
    assert isinstance(segmentation.array, np.memmap)
    np.save(tmp_path / "c.npy", np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert read(tmp_path / "c.npy").regions == (0, 1)
    np.save(tmp_path / "d.npy", SHARES[None])
    assert read(tmp_path / "d.npy").reading == "foreground"


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    objects = np.array([{"a": 1}, None], dtype=object)
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "a.npz", a=objects)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(FormatError, match=rf"{name}: contains pickled Python objects"):
            read(tmp_path / name)
    np.save(tmp_path / "text.npy", np.array(["a", "b"]))
    with pytest.raises(FormatError, match=r"text\.npy: values must be integers or floating"):
        read(tmp_path / "text.npy")


def test_files_without_arrays_are_rejected(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", affine=np.eye(4))
    with pytest.raises(FormatError, match=r"a\.npz: contains no arrays that can be read\.$"):
        read(tmp_path / "a.npz")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["text"] = "no numbers"
    with pytest.raises(FormatError, match=r"a\.h5: contains no datasets that can be read\.$"):
        read(tmp_path / "a.h5")


def test_npz_with_several_arrays_lists_them_in_the_error(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", image=SHARES, labels=LABELS)
    with pytest.raises(FormatError, match=r"contains 2 arrays \(image, labels\)\. Select one"):
        read(tmp_path / "a.npz")
    assert np.array_equal(whole(read(f"{tmp_path}/a.npz:labels")), LABELS)
    with pytest.raises(
        FormatError, match=r"contains no array 'mask'. Available arrays: image, labels"
    ):
        read(f"{tmp_path}/a.npz:mask")


def test_nnunet_probabilities_have_the_geometry_of_their_label_image(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "case.npz", probabilities=BOTH.transpose(0, 3, 2, 1))
    segmentation = read(tmp_path / "case.npz")
    assert segmentation.geometry is None
    assert np.array_equal(whole(segmentation), BOTH)
    nibabel.save(nibabel.Nifti1Image(LABELS, AFFINE), tmp_path / "case.nii.gz")
    segmentation = read(tmp_path / "case.npz")
    assert np.array_equal(whole(segmentation), BOTH)
    assert segmentation.geometry is not None
    assert segmentation.geometry.affine == pytest.approx(AFFINE)
    nibabel.save(nibabel.Nifti1Image(LABELS[1:], AFFINE), tmp_path / "case.nii.gz")
    with pytest.raises(GeometryError, match=r"shape \(4, 3, 2\).*case\.nii\.gz, has shape \(3, 3"):
        read(tmp_path / "case.npz")


def test_nnunet_photographs_stay_as_they_are(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "case.npz", probabilities=BOTH[:, None, :, :, 0])
    Pillow.fromarray(LABELS[:, :, 0].copy()).save(tmp_path / "case.png")
    assert np.array_equal(whole(read(tmp_path / "case.npz")), BOTH[:, :, :, 0])


# HDF5


def test_hdf5_by_path_and_by_axis_tags(tmp_path: Path) -> None:
    tags = json.dumps({"axes": [{"key": key} for key in "zyxc"]})
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["volumes/labels"] = LABELS
        file["volumes/shares"] = SHARES
        file["exported"] = np.moveaxis(BOTH, 0, -1)
        file["exported"].attrs["axistags"] = tags
        file["wrong"] = LABELS
        file["wrong"].attrs["axistags"] = "{}"
    path = str(tmp_path / "a.h5")
    assert np.array_equal(whole(read(f"{path}:/volumes/labels")), LABELS)
    assert read(f"{path}:volumes/shares").reading == "foreground"
    segmentation = read(f"{path}:/exported")
    assert np.array_equal(whole(segmentation), BOTH)
    assert segmentation.source == f"{path}:/exported"
    with pytest.raises(
        FormatError, match=r"contains 4 datasets \(/exported \(4, 3, 2, 2\), /volumes"
    ):
        read(path)
    with pytest.raises(
        FormatError, match=r"contains no dataset '/volumes'. Available datasets: /exported"
    ):
        read(f"{path}:/volumes")
    with pytest.raises(FormatError, match="axistags that are not in ilastik's format"):
        read(f"{path}:/wrong")
    with pytest.raises(FormatError, match=r"none\.h5:/a: no such file"):
        read(f"{tmp_path}/none.h5:/a")


@pytest.mark.parametrize("axes", ["xyz", "zxy", "tzyx", "xtyz", "zyxc", "cxyz", "tzyxc", "xyzct"])
def test_axis_tags_define_the_order_of_the_axes(tmp_path: Path, axes: str) -> None:
    labels = np.arange(8, dtype=np.uint8).reshape(2, 2, 2)  # every order has the same shape
    values: Any = labels == np.arange(8).reshape(8, 1, 1, 1) if "c" in axes else labels
    stored = "c" * ("c" in axes) + "zyx"
    if "t" in axes:
        values, stored = values[np.newaxis], f"t{stored}"
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["e"] = values.transpose([stored.index(key) for key in axes]).astype(np.uint8)
        file["e"].attrs["axistags"] = json.dumps({"axes": [{"key": key} for key in axes]})
    segmentation = read(tmp_path / "a.h5")
    probabilities = whole(segmentation)
    assert segmentation.crisp == ("c" not in axes)
    assert segmentation.shape == (2, 2, 2)
    found = probabilities if segmentation.crisp else probabilities.argmax(axis=0)
    assert found.tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def test_several_times_remain_an_axis(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["e"] = np.arange(12, dtype=np.uint8).reshape(2, 3, 2)
        file["e"].attrs["axistags"] = json.dumps({"axes": [{"key": key} for key in "xyt"]})
    segmentation = read(tmp_path / "a.h5")
    assert whole(segmentation).tolist() == [[[0, 6], [2, 8], [4, 10]], [[1, 7], [3, 9], [5, 11]]]


def test_a_corrupt_chunk_is_named_when_it_is_read(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 200, (64, 64, 4)).astype(np.uint8)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=noise, chunks=(32, 32, 4), fletcher32=True)
    content = bytearray((tmp_path / "a.h5").read_bytes())
    content[-2000] ^= 0xFF
    (tmp_path / "a.h5").write_bytes(content)
    segmentation = read(tmp_path / "a.h5")
    with pytest.raises(FormatError, match=r"a\.h5: is corrupt or incomplete"):
        whole(segmentation)


def test_a_corrupt_chunk_that_is_read_at_once_is_named_once(tmp_path: Path) -> None:
    whole_numbers = np.random.default_rng(0).integers(0, 9, (64, 64)).astype(np.float32)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=whole_numbers, chunks=(64, 64), fletcher32=True)
    content = bytearray((tmp_path / "a.h5").read_bytes())
    content[-2000] ^= 0xFF
    (tmp_path / "a.h5").write_bytes(content)
    for inside in ("", ":/a"):
        with pytest.raises(FormatError) as caught:
            read(f"{tmp_path}/a.h5{inside}")
        assert str(caught.value).count("a.h5") == 1
        assert str(caught.value).startswith(f"{tmp_path}/a.h5{inside}: is corrupt or incomplete")


# MATLAB


def save_bsds(path: Path) -> Path:
    cells = np.empty((1, 2), dtype=object)
    for number in range(2):
        cells[0, number] = {
            "Segmentation": LABELS[:, :, number].astype(np.uint16),
            "Boundaries": LABELS[:, :, number] > 2,
        }
    scipy.io.savemat(path, {"groundTruth": cells})
    return path


def test_bsds_cells(tmp_path: Path) -> None:
    path = save_bsds(tmp_path / "a.mat")
    assert np.array_equal(whole(read(f"{path}:groundTruth/1")), LABELS[:, :, 1])
    boundaries = whole(read(f"{path}:groundTruth/0/Boundaries"))
    assert np.array_equal(boundaries, LABELS[:, :, 0] > 2)
    with pytest.raises(
        FormatError, match=r"contains 2 arrays \(groundTruth/0, groundTruth/1\)\. Select"
    ):
        read(path)
    for wrong in ("groundTruth/2", "segmentation", "groundTruth/0/Colour", "groundTruth"):
        with pytest.raises(FormatError, match=r"Available arrays: groundTruth/0, groundTruth/1"):
            read(f"{path}:{wrong}")


def test_matlab_numbers_with_fractions(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "a.mat", {"p": SHARES[:, :, 0]})
    assert read(tmp_path / "a.mat").reading == "foreground"
    scipy.io.savemat(tmp_path / "b.mat", {"p": np.moveaxis(BOTH[:, :, :, 0], 0, -1), "n": 3.0})
    assert np.array_equal(whole(read(tmp_path / "b.mat")), BOTH[:, :, :, 0])


def test_matlab_7_3(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as file:
        file["segmentation"] = LABELS.T  # MATLAB stores columns first
    with (tmp_path / "a.mat").open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\2IM")
    assert np.array_equal(whole(read(tmp_path / "a.mat")), LABELS)
    with pytest.raises(FormatError, match=r"no variable .other.\. Available variables: s"):
        read(f"{tmp_path}/a.mat:other")
