"""Parcellations on surfaces: files of nibabel are read, and nibabel reads the files of `write`."""

import base64
import re
import struct
import zlib
from pathlib import Path

import nibabel
import numpy as np
import pytest
from icosphere import icosphere
from nibabel import cifti2, freesurfer, gifti

from probdice import (
    FormatError,
    Geometry,
    GeometryError,
    InputError,
    Segmentation,
    TooLargeError,
    VertexSpace,
    agreement,
    compare,
    files,
    read,
    write,
)
from probdice.data.vertex_space import Structure
from probdice.files import contents_of, read_mask, read_surface
from probdice.files.inputs import as_surfaces

LABELS = np.array([0, 0, 1, 1, 2, 2, 2, -1, 1, 0, 2, 1])  # one label per vertex of an icosahedron
TABLE = np.array([[25, 5, 25, 0], [220, 20, 20, 0], [20, 30, 140, 0]])
NAMES = ["unknown", "bankssts", "cuneus"]
LEFT = VertexSpace.of_surface(12, "left cortex")
SHARES = np.random.default_rng(0).dirichlet([1, 1, 1], 12).T.astype(np.float32)


def label_file(path: Path, structure: str = "CortexLeft", maps: int = 1) -> Path:
    table = gifti.GiftiLabelTable()
    for key, name in ((0, "???"), (1, "bankssts"), (2, "cuneus")):
        label = gifti.GiftiLabel(key, 0.2 * key, 0.4, 1.0, float(key > 0))
        label.label = name
        table.labels.append(label)
    meta = [
        gifti.GiftiMetaData({"AnatomicalStructurePrimary": structure, "Name": f"map {k}"})
        for k in range(maps)
    ]
    values = np.maximum(LABELS, 0).astype(np.int32)
    arrays = [
        gifti.GiftiDataArray((values + k) % 3, "NIFTI_INTENT_LABEL", meta=one)
        for k, one in enumerate(meta)
    ]
    nibabel.save(gifti.GiftiImage(labeltable=table, darrays=arrays), path)
    return path


def models(*names: str, count: int = 12) -> cifti2.BrainModelAxis:
    parts = [cifti2.BrainModelAxis.from_surface(np.arange(2, count), count, n) for n in names]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def test_an_annotation_is_read_with_names_and_colours(tmp_path):
    freesurfer.write_annot(tmp_path / "lh.aparc.annot", LABELS, TABLE, NAMES)
    parcels = read(tmp_path / "lh.aparc.annot")
    assert parcels.array.tolist() == LABELS.tolist()
    assert parcels.names == {0: "unknown", 1: "bankssts", 2: "cuneus", -1: "unlabelled"}
    assert parcels.colours == {0: "#190519", 1: "#DC1414", 2: "#141E8C"}
    assert parcels.geometry == LEFT


def test_an_annotation_whose_table_skips_a_number_keeps_its_names(tmp_path):
    vertices = b"".join(struct.pack(">ii", k, 7 if k % 2 else 5) for k in range(4))
    rows = struct.pack(">ii2s4i", 1, 2, b"a", 5, 0, 0, 0)
    rows += struct.pack(">ii2s4i", 6, 2, b"b", 7, 0, 0, 0)
    table = struct.pack(">iiii2si", 1, -2, 7, 2, b"x", 2) + rows
    (tmp_path / "rh.annot").write_bytes(struct.pack(">i", 4) + vertices + table)
    parcels = read(tmp_path / "rh.annot")
    assert parcels.array.tolist() == [1, 6, 1, 6]
    assert parcels.names == {1: "a", 6: "b"}


def test_a_colour_that_the_table_lacks_is_an_error(tmp_path):
    file = tmp_path / "lh.a.annot"
    freesurfer.write_annot(file, LABELS, TABLE, NAMES)
    content = bytearray(file.read_bytes())
    content[8:12] = struct.pack(">i", 99)
    file.write_bytes(content)
    with pytest.raises(FormatError, match=r"lh.a.annot: is corrupt .*: vertex 0 has the value 99"):
        read(file)


def test_an_annotation_without_table_or_with_a_wrong_size_is_an_error(tmp_path):
    file = tmp_path / "lh.a.annot"
    freesurfer.write_annot(file, LABELS, TABLE, NAMES)
    content = file.read_bytes()
    file.write_bytes(content[: 4 + 8 * 12])
    with pytest.raises(FormatError, match=r"lh.a.annot: has no colour table"):
        read(file)
    file.write_bytes(struct.pack(">i", 2**30) + content[4:])
    with pytest.raises(FormatError, match="its header describes"):
        read(file)


def test_labels_of_gifti_are_read_with_names_colours_and_structure(tmp_path):
    parcels = read(label_file(tmp_path / "a.label.gii"))
    assert parcels.array.tolist() == [0, 0, 1, 1, 2, 2, 2, 0, 1, 0, 2, 1]
    assert parcels.names == {0: "???", 1: "bankssts", 2: "cuneus"}
    assert parcels.colours == {1: "#3366FF", 2: "#6666FF"}  # 0 is transparent
    assert parcels.geometry == LEFT
    assert read(nibabel.load(tmp_path / "a.label.gii")).names == parcels.names


def test_one_of_several_label_maps_is_selected_by_name(tmp_path):
    file = label_file(tmp_path / "a.label.gii", maps=2)
    with pytest.raises(FormatError, match=r"contains 2 label maps \(map 0, map 1\).*:map 0"):
        read(file)
    assert read(f"{file}:map 1").array.tolist() == [1, 1, 2, 2, 0, 0, 0, 1, 2, 1, 0, 2]
    assert [content.inside for content in contents_of(str(file))] == ["map 0", "map 1"]
    with pytest.raises(FormatError, match="contains no label map 'other'"):
        read(f"{file}:other")


@pytest.mark.parametrize("name", ["a.func.gii", "a.shape.gii"])
def test_maps_of_gifti_are_probabilities(tmp_path, name):
    arrays = [
        gifti.GiftiDataArray(row, "NIFTI_INTENT_NONE", meta=gifti.GiftiMetaData({"Name": region}))
        for row, region in zip(SHARES, "abc", strict=True)
    ]
    nibabel.save(gifti.GiftiImage(darrays=arrays), tmp_path / name)
    shares = read(tmp_path / name)
    assert shares.regions == ("a", "b", "c")
    np.testing.assert_array_equal(shares.array, SHARES)
    assert shares.geometry == VertexSpace.of_surface(12)


def test_entities_and_large_arrays_of_gifti_are_rejected(tmp_path):
    file = label_file(tmp_path / "a.label.gii")
    text = file.read_bytes()
    entities = b'<!DOCTYPE GIFTI [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>\n<GIFTI'
    file.write_bytes(re.sub(rb"<!DOCTYPE.*?<GIFTI", entities, text, flags=re.DOTALL))
    with pytest.raises(FormatError, match=r"a.label.gii: declares XML entities"):
        read(file)
    file.write_bytes(text.replace(b'Dim0="12"', b'Dim0="120000000"'))
    with pytest.raises(FormatError, match=r"a.label.gii: is corrupt or incomplete"):
        read(file)


def test_a_compressed_array_beyond_its_size_does_not_fill_the_memory(tmp_path):
    file = label_file(tmp_path / "a.label.gii")
    start, _, rest = file.read_bytes().partition(b"<Data>")
    zeros = zlib.compressobj(1)
    bomb = b"".join(zeros.compress(bytes(1 << 24)) for _ in range(20)) + zeros.flush()
    end = rest.partition(b"</Data>")[2]
    file.write_bytes(start + b"<Data>" + base64.b64encode(bomb) + b"</Data>" + end)
    with pytest.raises(FormatError, match=r"a.label.gii: "):
        read(file)


def test_labels_of_cifti_are_read_by_structure(tmp_path):
    file = tmp_path / "a.dlabel.nii"
    table = {0: ("???", (1, 1, 1, 0)), 7: ("Vis", (1.0, 0, 0, 1)), 9: ("Som", (0, 0, 1.0, 1))}
    values = np.array([[7] * 10 + [9] * 4 + [0] * 6], np.float32)  # right before left
    axes = cifti2.LabelAxis(["parcels"], [table]), models("CortexRight", "CortexLeft")
    cifti2.Cifti2Image(values, axes).to_filename(file)
    parcels = read(file)
    assert np.asarray(parcels.array).tolist() == [9] * 4 + [0] * 6 + [7] * 10
    assert parcels.names == {0: "???", 7: "Vis", 9: "Som"}
    assert parcels.colours == {7: "#FF0000", 9: "#0000FF"}
    names = [(one.name, one.size, one.vertices) for one in parcels.geometry.structures]
    assert names == [("left cortex", 10, 12), ("right cortex", 10, 12)]
    assert read(cifti2.load(file)).geometry == parcels.geometry


def test_scalars_of_cifti_are_probabilities(tmp_path):
    axes = cifti2.ScalarAxis(["a", "b", "c"]), models("CortexLeft", count=14)
    cifti2.Cifti2Image(SHARES, axes).to_filename(tmp_path / "a.dscalar.nii")
    shares = read(tmp_path / "a.dscalar.nii")
    assert shares.regions == ("a", "b", "c")
    np.testing.assert_array_equal(shares.array, SHARES)


def test_other_kinds_of_cifti_are_rejected(tmp_path):
    axes = cifti2.SeriesAxis(0, 1, 3), models("CortexLeft", count=14)
    cifti2.Cifti2Image(SHARES, axes).to_filename(tmp_path / "a.dtseries.nii")
    with pytest.raises(FormatError, match="is CIFTI with series by brain_models, expected dense"):
        read(tmp_path / "a.dtseries.nii")


@pytest.mark.parametrize("name", ["lh.a.annot", "a.label.gii", "a.dlabel.nii"])
def test_a_label_map_is_written_and_read_back(tmp_path, name):
    names = {1: "bankssts", 2: "Grün & ⟨b⟩"}
    parcels = Segmentation.from_labels(LABELS, names=names, geometry=LEFT)
    write(tmp_path / name, parcels)
    stored = read(tmp_path / name)
    assert stored.array.tolist() == LABELS.tolist()
    unlabelled = {-1: "unlabelled"} if name.endswith(".annot") else {}
    assert stored.names == names | unlabelled
    assert stored.geometry == LEFT
    assert compare(parcels, tmp_path / name).score == 1.0


def test_nibabel_reads_the_written_files(tmp_path):
    names = {0: "unknown", 1: "bankssts", 2: "cuneus"}
    parcels = Segmentation.from_labels(LABELS, names=names, geometry=LEFT)
    for name in ("lh.a.annot", "a.label.gii", "a.dlabel.nii"):
        write(tmp_path / name, parcels)
    labels, table, texts = freesurfer.read_annot(tmp_path / "lh.a.annot")
    assert labels.tolist() == LABELS.tolist()
    assert [text.decode() for text in texts] == ["unknown", "bankssts", "cuneus"]
    assert len({tuple(row) for row in table[:, :3].tolist()}) == 3
    image = nibabel.load(tmp_path / "a.label.gii")
    assert image.agg_data("label").tolist() == LABELS.tolist()
    assert image.labeltable.get_labels_as_dict() == {-1: "-1", **names}
    assert image.meta["AnatomicalStructurePrimary"] == "CortexLeft"
    cifti = nibabel.load(tmp_path / "a.dlabel.nii")
    assert cifti.get_fdata()[0].tolist() == LABELS.tolist()
    assert cifti.header.get_axis(0).label[0][1][0] == "bankssts"
    assert cifti.header.get_axis(1).name[0] == "CIFTI_STRUCTURE_CORTEX_LEFT"
    assert cifti.nifti_header.get_intent()[0] == "ConnDenseLabel"


@pytest.mark.parametrize("name", ["a.func.gii", "a.shape.gii", "a.dscalar.nii"])
def test_probabilities_and_maps_are_written_and_read_back(tmp_path, name):
    shares = Segmentation.from_probabilities(
        SHARES, labels=[0, 4, 9], names=["a", "b", None], geometry=LEFT
    )
    write(tmp_path / name, shares)
    stored = read(tmp_path / name)
    np.testing.assert_array_equal(stored.array, SHARES)
    assert (stored.labels, stored.names, stored.geometry) == (shares.labels, shares.names, LEFT)
    one = Segmentation.from_probabilities(SHARES[0], axis=None, geometry=LEFT)
    write(tmp_path / name, one)
    assert (read(tmp_path / name).reading, read(tmp_path / name).labels) == ("foreground", (0, 1))
    write(tmp_path / name, SHARES[1], LEFT)
    values = nibabel.load(tmp_path / name)
    array = values.get_fdata()[0] if name.endswith(".nii") else values.agg_data()
    np.testing.assert_array_equal(np.asarray(array, np.float32), SHARES[1])


def test_vertices_and_voxels_of_cifti_are_written_and_read_back(tmp_path):
    volume = Geometry((2, 3, 2), np.diag([2.0, 2, 2, 1]))
    space = VertexSpace.of(
        [
            Structure("left cortex", 12, np.arange(3, 12)),
            Structure("right cortex", 12),
            Structure("left thalamus", 0, np.argwhere(np.ones((2, 3, 2)))),
        ],
        volume=volume,
    )
    labels = np.arange(33) % 5
    write(tmp_path / "a.dlabel.nii", Segmentation.from_labels(labels, geometry=space))
    stored = read(tmp_path / "a.dlabel.nii")
    assert stored.array.tolist() == labels.tolist()
    assert stored.geometry == space
    np.testing.assert_allclose(
        nibabel.load(tmp_path / "a.dlabel.nii").header.get_axis(1).affine, volume.affine
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("a.annot", SHARES, "stores labels, found probabilities"),
        ("a.annot", LABELS - 5, "stores labels from −1 to 65535"),
        ("a.label.gii", SHARES, "label.gii stores labels"),
        ("a.func.gii", LABELS, "store probabilities or a map, found labels"),
        ("a.dlabel.nii", SHARES, "dlabel.nii cannot store probabilities"),
        ("a.dscalar.nii", LABELS, "dscalar.nii cannot store a label map"),
        ("a.label.gii", LABELS.astype(np.int64) + 2**40, "store labels from −2³¹"),
        ("a.nii.gz", LABELS, "cannot store the vertices of a surface"),
    ],
)
def test_values_that_a_surface_format_cannot_store_are_rejected(tmp_path, name, value, message):
    crisp = value.dtype.kind == "i"
    make = Segmentation.from_labels if crisp else Segmentation.from_probabilities
    with pytest.raises(InputError, match=message):
        write(tmp_path / name, make(value, geometry=LEFT))
    assert not (tmp_path / name).exists()


def test_an_image_on_a_grid_is_not_written_as_a_surface(tmp_path):
    for shape, found in (((3, 4), "3 × 4 pixels"), ((3, 2, 2), "3 × 2 × 2 voxels")):
        with pytest.raises(InputError, match=f"one value per vertex, found an image of {found}"):
            write(tmp_path / "a.label.gii", LABELS.reshape(shape))


def test_different_numbers_of_vertices_name_both_spaces(tmp_path):
    for name, count in (("lh.a.annot", 10242), ("lh.b.label.gii", 32492)):
        space = VertexSpace.of_surface(count, "left cortex")
        write(tmp_path / name, Segmentation.from_labels(np.arange(count) % 3, geometry=space))
    with pytest.raises(GeometryError) as caught:
        compare(tmp_path / "lh.a.annot", tmp_path / "lh.b.label.gii")
    text = str(caught.value)
    assert "do not have the same vertices" in text
    assert "fsLR 32k (32492 vertices) differs from fsaverage5 (10242 vertices)" in text


def test_left_and_right_are_not_compared(tmp_path):
    for name in ("lh.a.annot", "rh.a.annot", "a.annot"):
        write(tmp_path / name, Segmentation.from_labels(np.maximum(LABELS, 0)))
    with pytest.raises(GeometryError, match="right cortex differs from left cortex"):
        compare(tmp_path / "lh.a.annot", tmp_path / "rh.a.annot")
    assert compare(tmp_path / "lh.a.annot", tmp_path / "a.annot").score == 1.0


@pytest.mark.parametrize(
    ("used", "message"),
    [
        ([2, 1], "list the same vertices of left cortex in different orders"),
        ([1, 3], "have values at different vertices of left cortex"),
    ],
)
def test_the_order_of_vertices_is_distinguished_from_the_vertices(used, message):
    sides = [
        Segmentation.from_labels(
            [5, 7], geometry=VertexSpace.of([Structure("left cortex", 12, np.array(vertices))])
        )
        for vertices in ([1, 2], used)
    ]
    with pytest.raises(GeometryError, match=f"vertices in the same order: the files {message}"):
        compare(*sides)


def test_the_order_of_voxels_is_distinguished_from_the_voxels():
    first, second = np.array([[0, 0, 1], [0, 1, 0]]), np.array([[0, 1, 0], [0, 0, 1]])
    difference = Structure("left thalamus", 0, first).difference_from(
        Structure("left thalamus", 0, second)
    )
    assert "the files list the same voxels of left thalamus in different orders" in difference
    # The same coordinates, but other voxels
    other = Structure("left thalamus", 0, np.array([[0, 0, 0], [0, 1, 1]]))
    assert "different voxels" in other.difference_from(Structure("left thalamus", 0, first))


@pytest.mark.parametrize(
    ("name", "structure"),
    [
        ("lh.aparc.annot", "left cortex"),
        ("sub-01_hemi-R_desc-a_dseg.label.gii", "right cortex"),
        ("100307.L.aparc.32k_fs_LR.label.gii", "left cortex"),
        ("parcels.label.gii", ""),
    ],
)
def test_a_hemisphere_is_recognised_by_the_file_name(tmp_path, name, structure):
    write(tmp_path / name, np.maximum(LABELS, 0))
    assert read(tmp_path / name).geometry.structures[0].name == structure


def test_a_mask_on_the_surface_is_applied(tmp_path):
    write(tmp_path / "lh.mask.label.gii", Segmentation.from_labels(LABELS > 0, geometry=LEFT))
    mask = read_mask(tmp_path / "lh.mask.label.gii")
    parcels = Segmentation.from_labels(LABELS, geometry=LEFT)
    assert compare(parcels, parcels, mask=mask).pixels == 8


def test_messages_about_surfaces_describe_vertices():
    parcels = Segmentation.from_labels(LABELS, geometry=LEFT)
    with pytest.raises(InputError, match="no vertices are left to compare"):
        compare(parcels, parcels, mask=np.zeros(12, bool))
    with pytest.raises(InputError, match=r"found 0\.5 at vertex \(3,\)"):
        compare(parcels, parcels, mask=np.repeat([1.0, 0.5], [3, 9]))
    fractions = Segmentation.from_labels(np.repeat([1.0, 0.25], [10, 2]), geometry=LEFT)
    message = r"label 0.25 at vertex \(10,\) \(the first of 2 such vertices\)"
    with pytest.raises(InputError, match=f"prediction: {message}"):
        compare(parcels, fractions)
    with pytest.raises(InputError, match=f"b: {message}"):
        agreement({"a": parcels, "b": fractions})
    with pytest.raises(InputError, match=r"channel 0 is 7 at vertex \(2,\)"):
        Segmentation.from_nested([[1, 1, 7]], geometry=VertexSpace.of_surface(3))
    ignored = Segmentation.from_labels(LABELS, ignore=[-1, 0, 1, 2], geometry=LEFT)
    with pytest.raises(InputError, match="all vertices of the reference have ignored labels"):
        compare(ignored, parcels)
    notes = compare(parcels, parcels, mask=np.repeat([1.0, np.nan], [11, 1])).notes
    assert [str(note) for note in notes if note.kind == "mask"] == [
        "1 vertex of the mask is NaN and counted as outside the mask."
    ]


def test_components_of_vertices_are_rejected():
    parcels = Segmentation.from_labels(LABELS, geometry=LEFT)
    with pytest.raises(InputError, match="components require an image on a grid"):
        parcels.components(background=0)


def test_meshes_of_freesurfer_and_gifti_are_read(tmp_path, monkeypatch):
    points, triangles = icosphere(1)
    freesurfer.write_geometry(tmp_path / "lh.white", points, triangles)
    arrays = [
        gifti.GiftiDataArray(points.astype(np.float32), "NIFTI_INTENT_POINTSET"),
        gifti.GiftiDataArray(triangles.astype(np.int32), "NIFTI_INTENT_TRIANGLE"),
    ]
    meta = gifti.GiftiMetaData({"AnatomicalStructurePrimary": "CortexRight"})
    nibabel.save(gifti.GiftiImage(meta=meta, darrays=arrays), tmp_path / "a.surf.gii")
    surfaces = as_surfaces([tmp_path / "lh.white", f"{tmp_path}/a.surf.gii"])
    assert [one.structure for one in surfaces] == ["left cortex", "right cortex"]
    for surface in surfaces:
        np.testing.assert_allclose(surface.points, points, atol=1e-6)
        assert surface.triangles.tolist() == triangles.tolist()
    with pytest.raises(FormatError, match="contains a surface mesh, expected only labels or maps"):
        read(tmp_path / "a.surf.gii")
    content = (tmp_path / "lh.white").read_bytes()
    (tmp_path / "lh.cut").write_bytes(content[:-9])
    described = "a mesh of 42 vertices and 80 triangles"  # 12 bytes each
    with pytest.raises(
        FormatError, match=rf"lh.cut: is corrupt or incomplete: .* {described} \(1464 bytes\)"
    ):
        read_surface(str(tmp_path / "lh.cut"))
    monkeypatch.setattr(files, "memory", lambda: 2927)
    with pytest.raises(TooLargeError, match=f"contains {described}, which takes 2928 bytes"):
        read_surface(str(tmp_path / "lh.white"))
