"""Names of labels from tables and from the user."""

import json

import numpy as np
import pytest

from probdice import FormatError, InputError, compare, read
from probdice.files.name_tables import read_names

EXPECTED = {0: "Unknown", 2: "White Matter", 11101: "ctx_lh_G"}
TABLES = {
    "FreeSurferColorLUT.txt": (
        "#$Id: table $\n\n#No. Label Name:        R   G   B   A\n"
        "0   Unknown        0   0   0   0\n2   White Matter   245 245 245 0\n"
        "11101  ctx_lh_G  23 220 60 0\n"
    ),
    "colours.ctbl": (
        "# Color table file colours.ctbl\n# 3 values\n"
        "0 Unknown 0 0 0 0\n2 White Matter 245 245 245 255\n7 (none) 1 2 3 255\n"
        "11101 ctx_lh_G 23 220 60 255\n"
    ),
    "labels.label": (
        "################\n# ITK-SnAP Label Description File\n# IDX   -R-  -G-  -B-  -A--\n"
        '    0     0    0    0        0  0  0    "Unknown"\n'
        '    2   255    0    0        1  1  1    "White Matter"\n'
        '11101   255    0    0      0.5  1  1    "ctx_lh_G"\n'
    ),
    "dseg.tsv": (
        "index\tabbreviation\tname\tcolor\n0\tU\tUnknown\t#000000\n"
        "2\tWM\tWhite Matter\t#f5f5f5\n11101\tG\tctx_lh_G\t#17dc3c\n"
    ),
    "slicer.csv": (
        "LabelValue,Name,Color_R,Color_G,Color_B,Color_A\n0,Unknown,0,0,0,0\n"
        '2,"White Matter",245,245,245,255\n11101,ctx_lh_G,23,220,60,255\n'
    ),
    "bare.csv": "0,Unknown\n2,White Matter\n11101,ctx_lh_G\n",
    "semicolons.csv": "name;label\nUnknown;0\nWhite Matter;2\nctx_lh_G;11101\n",
    "by_label.json": json.dumps({str(label): name for label, name in EXPECTED.items()}),
    "by_name.json": json.dumps({name: label for label, name in EXPECTED.items()}),
    "dataset.json": json.dumps(
        {"channel_names": {}, "labels": {name: label for label, name in EXPECTED.items()}}
    ),
    "regions.json": json.dumps(
        {"labels": {name: label for label, name in EXPECTED.items()} | {"all": [2, 11101]}}
    ),
    "table.lut": (
        "0 0.00000 0.00000 0.00000 Unknown\n2  0.96078 0.96078 0.96078 White Matter\n"
        "11101 0.09020 0.86275 0.23529 ctx_lh_G\n"
    ),
    "atlas.xml": (
        '<?xml version="1.0" encoding="ISO-8859-1"?>\n<atlas version="1.0"><header>'
        "<name>A</name><type>Label</type></header><data>"
        '<label index="0" x="0" y="0" z="0">Unknown</label>'
        '<label index="2" x="1" y="2" z="3">White Matter</label>'
        '<label index="11101" x="1" y="2" z="3">ctx_lh_G</label></data></atlas>'
    ),
    "spm.xml": (
        "<atlas><header><type>Label</type></header><data>"
        "<label><index>0</index><name>Unknown</name></label>"
        "<label><index>2</index><name>White Matter</name></label>"
        "<label><index>11101</index><name>ctx_lh_G</name></label></data></atlas>"
    ),
    "entries.json": json.dumps([{"id": label, "name": name} for label, name in EXPECTED.items()]),
}


@pytest.mark.parametrize("file", TABLES)
def test_all_table_formats_give_the_same_names(file, tmp_path):
    (tmp_path / file).write_text(TABLES[file])
    names = {label: entry.name for label, entry in read_names(tmp_path / file).items()}
    assert names == EXPECTED


@pytest.mark.parametrize(
    ("file", "white"),
    {
        "FreeSurferColorLUT.txt": "#F5F5F5",
        "colours.ctbl": "#F5F5F5",
        "labels.label": "#FF0000",
        "dseg.tsv": "#F5F5F5",
        "slicer.csv": "#F5F5F5",
        "table.lut": "#F5F5F5",
        "atlas.xml": None,
        "bare.csv": None,
        "by_label.json": None,
    }.items(),
)
def test_a_table_also_gives_colours(file, white, tmp_path):
    (tmp_path / file).write_text(TABLES[file])
    assert read_names(tmp_path / file)[2].colour == white


PROBABILISTIC = (
    "<atlas><header><type>Probabilistic</type></header><data>"
    '<label index="0" x="1" y="1" z="1">Frontal Pole</label>'
    '<label index="1" x="1" y="1" z="1">Insular Cortex</label></data></atlas>'
)


def test_a_probabilistic_atlas_names_labels_from_1_and_volumes_from_0(tmp_path):
    (tmp_path / "atlas.xml").write_text(PROBABILISTIC)
    np.save(tmp_path / "labels.npy", np.array([0, 1, 2, 2]))
    np.save(tmp_path / "maps.npy", np.array([[0.75, 0.25], [0.25, 0.75]]))
    labels = read(tmp_path / "labels.npy", names=tmp_path / "atlas.xml")
    assert dict(labels.names) == {1: "Frontal Pole", 2: "Insular Cortex"}
    maps = read(tmp_path / "maps.npy", names=tmp_path / "atlas.xml")
    assert maps.regions == ("Frontal Pole", "Insular Cortex")


def test_an_atlas_may_have_a_document_type_without_entities(tmp_path):
    (tmp_path / "atlas.xml").write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE atlas SYSTEM "atlas.dtd" [<!ELEMENT atlas ANY>]>\n'
        '<atlas><label index="4">Insular Cortex</label></atlas>'
    )
    assert {k: entry.name for k, entry in read_names(tmp_path / "atlas.xml").items()} == {
        4: "Insular Cortex"
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<atlas><data></data></atlas>", "an atlas without regions"),
        ("<atlas><label index='1'>a</atlas>", "is not valid XML"),
        (
            "<atlas><label index='x'>a</label></atlas>",
            "index or value of region 'a' is not a whole",
        ),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><atlas><label index='1'>&a;</label></atlas>", "XML ent"),
    ],
)
def test_invalid_atlases_are_rejected(text, message, tmp_path):
    (tmp_path / "atlas.xml").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_names(tmp_path / "atlas.xml")


@pytest.mark.parametrize(
    "text",
    [
        "index\tname\tcolor\n1\t7Networks_LH_Vis_1\t#781283\n2\tb\t#781284\n",
        "index\tlabel\tname\tmapping\n1\tA\t7Networks_LH_Vis_1\t12\n2\tB\tb\t13\n",
        "component\tdifumo_names\tgm\n1\t7Networks_LH_Vis_1\t0.5\n2\tb\t0.25\n",
    ],
)
def test_tables_of_templateflow(text, tmp_path):
    (tmp_path / "dseg.tsv").write_text(text)
    names = {label: entry.name for label, entry in read_names(tmp_path / "dseg.tsv").items()}
    assert names == {1: "7Networks_LH_Vis_1", 2: "b"}


@pytest.mark.parametrize("colour", ["#0072b2", [0, 114, 178], [0, 114, 178, 255]])
def test_colours_in_json_are_written_or_numbers(colour, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([{"index": 1, "name": "grey", "color": colour}]))
    assert read_names(tmp_path / "a.json")[1].colour == "#0072B2"


@pytest.mark.parametrize("colour", ["blue", [0, 114], [0, 0, 300], ["red", 0, 0], None])
def test_invalid_colours_are_dropped(colour, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([{"index": 1, "name": "grey", "color": colour}]))
    assert read_names(tmp_path / "a.json")[1] == ("grey", None)


def test_colours_of_a_table_reach_the_regions_that_have_them(tmp_path):
    (tmp_path / "dseg.tsv").write_text(TABLES["dseg.tsv"])
    np.save(tmp_path / "a.npy", np.array([[2, 2], [5, 5]]))
    labels = read(tmp_path / "a.npy", names=tmp_path / "dseg.tsv")
    assert labels.colours == {2: "#F5F5F5"}
    np.save(tmp_path / "b.npy", np.eye(3)[:, [0, 1, 2, 2]].reshape(3, 2, 2))
    soft = read(tmp_path / "b.npy", names=tmp_path / "dseg.tsv")
    assert (soft.regions, soft.colours) == (
        ("Unknown", 1, "White Matter"),
        {0: "#000000", 2: "#F5F5F5"},
    )


def test_a_byte_order_mark_and_old_encodings_are_read(tmp_path):
    (tmp_path / "a.csv").write_bytes("\ufeffindex,name\n1,Käse\n".encode())
    (tmp_path / "b.csv").write_bytes("index,name\n1,Käse\n".encode("latin-1"))
    assert read_names(tmp_path / "a.csv") == read_names(tmp_path / "b.csv") == {1: ("Käse", None)}


def test_a_list_in_json_starts_with_label_0(tmp_path):
    (tmp_path / "a.json").write_text('["background", "grey"]')
    assert read_names(tmp_path / "a.json") == {0: ("background", None), 1: ("grey", None)}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x93NUMPY\x01\x00", "not a table of names"),
        (b"dear diary", "not a table of names: it starts with 'dear diary'"),
        (b"1,2\n3,4\n", "has no column of names"),
        (b"{", "is not valid JSON"),
        (b"{}", "contains no names"),
        (b'{"1": [1, 2]}', r"the name of '1' must be text, found \[1, 2\]"),
        (b'[{"name": "grey"}]', "has an entry without a label or a name"),
    ],
)
def test_files_that_are_not_tables_are_rejected(content, message, tmp_path):
    (tmp_path / "names.txt").write_bytes(content)
    with pytest.raises(FormatError, match=rf"names\.txt: {message}"):
        read_names(tmp_path / "names.txt")
    with pytest.raises(FormatError, match=r"none\.txt: cannot be read: No such file"):
        read_names(tmp_path / "none.txt")


@pytest.fixture
def labels(tmp_path):
    np.save(tmp_path / "labels.npy", np.array([0, 2, 2, 11101]))
    return tmp_path / "labels.npy"


def test_a_table_names_the_labels_that_occur(labels, tmp_path):
    (tmp_path / "lut.txt").write_text(TABLES["FreeSurferColorLUT.txt"] + "77 WM 1 2 3 0\n")
    segmentation = read(labels, names=tmp_path / "lut.txt")
    assert segmentation.names == EXPECTED
    result = compare(segmentation, read(labels, names=str(tmp_path / "lut.txt")))
    assert result.reference_labels == ("Unknown", "White Matter", "ctx_lh_G")
    assert result.empty == {"reference": (), "prediction": ()}
    assert result.to_dict()["groups"][2]["reference"] == ["ctx_lh_G"]


def test_explicit_names_of_absent_labels_are_kept(labels):
    segmentation = read(labels, names={2: "white", 5: "lesion"})
    assert segmentation.names == {2: "white", 5: "lesion"}
    assert compare(segmentation, labels).empty["reference"] == ("lesion",)
    assert read(labels, names=["air", "bone", "tissue"]).names[2] == "tissue"


def test_a_name_shared_by_two_labels_is_numbered(labels, tmp_path):
    (tmp_path / "a.csv").write_text("0,air\n2,tissue\n11101,tissue\n")
    named = read(labels, names=tmp_path / "a.csv")
    assert named.names == {0: "air", 2: "tissue", 11101: "tissue"}
    assert named.label(0) == "air"
    assert named.label(2) == "tissue (2)"
    assert named.label(11101) == "tissue (11101)"


def test_names_of_none_of_the_labels_are_an_error_that_lists_both(labels, tmp_path):
    (tmp_path / "a.csv").write_text("1,csf\n3,grey\n")
    message = (
        r"a\.csv: the names match none of the labels: the image has 0, 2, 11101, "
        r"but the names are 1=csf, 3=grey"
    )
    with pytest.raises(InputError, match=message):
        read(labels, names=tmp_path / "a.csv")
    with pytest.raises(InputError, match="the names match none of the labels"):
        read(labels, names={1: "csf"})
    with pytest.raises(InputError, match="the keys of names must be whole numbers, found grey"):
        read(labels, names={"grey": "white"})
    with pytest.raises(InputError, match="names must be a mapping from labels to names"):
        read(labels, names=3)


@pytest.fixture
def maps(tmp_path):
    for k, value in enumerate((0.25, 0.25, 0.5)):
        np.save(tmp_path / f"pve_{k}.npy", np.full(4, value))
    return str(tmp_path / "pve_*.npy")


def test_regions_are_named_by_a_list_a_mapping_or_a_table(maps, tmp_path):
    assert read(maps).regions == (0, 1, 2)
    assert read(maps, names=["csf", "grey", "white"]).regions == ("csf", "grey", "white")
    assert read(maps, names={0: "csf"}).regions == ("csf", 1, 2)
    (tmp_path / "t.tsv").write_text("index\tname\n0\tcsf\n1\tgrey\n2\twhite\n9\tbone\n")
    assert read(maps, names=tmp_path / "t.tsv").regions == ("csf", "grey", "white")
    named = read(maps, names=["csf", "grey", "white"], sums="background")
    assert named.regions == ("csf", "grey", "white", "background")
    with pytest.raises(InputError, match="names must contain 3 names, one per region, found 1"):
        read(maps, names=["csf"])
    with pytest.raises(InputError, match="names match none of the regions: the image has 0, 1, 2"):
        read(maps, names={7: "csf"})


def test_a_region_name_precedes_its_file(maps, tmp_path):
    files = [tmp_path / f"pve_{k}.npy" for k in range(3)]
    text = f"csf={files[0]}, grey={files[1]},white = {files[2]}"
    assert read(text).regions == ("csf", "grey", "white")
    mapping = dict(zip(("csf", "grey", "white"), files, strict=True))
    assert read(mapping).regions == ("csf", "grey", "white")
    assert read(f"csf={tmp_path}/pve_0*.npy,grey={files[1]},white={files[2]}").regions[0] == "csf"
    with pytest.raises(
        InputError, match=r"pve_1\.npy has no region name, .* Write name=file for all"
    ):
        read(f"csf={files[0]},{files[1]}")
    with pytest.raises(
        FormatError, match="3 files match this pattern, but region 'csf' needs exactly one file"
    ):
        read(f"csf={maps}")
    with pytest.raises(FormatError, match=r"none\.npy: no such file"):
        read("csf=none.npy,grey=other.npy")


def test_a_file_with_an_equals_sign_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run=1").mkdir()
    for file in ("a=b.npy", "run=1/c.npy"):
        np.save(file, np.array([1, 2]))
        assert read(file).crisp
    with pytest.raises(FormatError, match=r"^\./run=2/c\.npy: no such file"):
        read("./run=2/c.npy")


def test_one_named_file_is_one_region(tmp_path):
    np.save(tmp_path / "mask.npy", np.array([0, 1, 1], np.uint8))
    np.save(tmp_path / "map.npy", np.array([[0.0, 0.5, 1.0]]))
    np.save(tmp_path / "labels.npy", np.array([0, 1, 5], np.uint8))
    np.save(tmp_path / "three.npy", np.full((3, 4), 1 / 3))
    assert read(f"tumour={tmp_path}/mask.npy").names == {0: "background", 1: "tumour"}
    assert read(f"tumour={tmp_path}/map.npy").regions == ("background", "tumour")
    with pytest.raises(InputError, match=r"labels\.npy: contains label 5, but 'tumour' names"):
        read(f"tumour={tmp_path}/labels.npy")
    with pytest.raises(InputError, match=r"three\.npy: contains 3 regions, but 'tumour' names"):
        read(f"tumour={tmp_path}/three.npy")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label,name\n3,liver\n3,kidney\n", "label 3 has two names, 'liver' and 'kidney'"),
        ("3 liver 1 2 3 0\n3 kidney 1 2 3 0\n", "label 3 has two names, 'liver' and 'kidney'"),
        ('{"3": "liver", "3": "kidney"}', "key '3' has several values"),
        ('{"liver": 3, "kidney": 3}', "label 3 has two names, 'liver' and 'kidney'"),
    ],
)
def test_a_label_with_two_names_is_an_error(text, message, tmp_path):
    (tmp_path / "table").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_names(tmp_path / "table")


def test_a_repeated_row_is_not_a_contradiction(tmp_path):
    (tmp_path / "table.csv").write_text("label,name\n3,liver\n3,liver\n1,spleen\n")
    assert {k: name for k, (name, _) in read_names(tmp_path / "table.csv").items()} == {
        3: "liver",
        1: "spleen",
    }


@pytest.mark.parametrize(
    "text", ["label,name\n-1,void\n2,liver\n", '{"-1": "void", "2": "liver"}', '{"void": -1}']
)
def test_negative_labels_have_names(text, tmp_path):
    (tmp_path / "table").write_text(text)
    np.save(tmp_path / "a.npy", np.array([-1, 2, 2]))
    assert read(tmp_path / "a.npy", names=tmp_path / "table").names[-1] == "void"
