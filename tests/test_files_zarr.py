"""Zarr and OME-Zarr: read lazily, with axes, geometry and names; written chunk by chunk."""

import asyncio
import gc
import gzip
import http.server
import json
import os
import pickle
import subprocess
import sys
import threading
import warnings
from functools import partial

import numpy as np
import pytest
from extras import require

require("zarr", "fsspec", "aiohttp")

import numcodecs
import zarr
from google_crc32c import value as crc32c
from zarr.codecs import GzipCodec

from probdice import (
    FormatError,
    Geometry,
    GeometryError,
    InputError,
    MissingExtraError,
    Segmentation,
    TooLargeError,
    compare,
    read,
    write,
)
from probdice.files import chunks as chunk_reading
from probdice.files import contents_of
from probdice.files.zarr import ZarrArray

LABELS = np.arange(4 * 6 * 8).reshape(4, 6, 8).astype(np.uint16) // 20


def plain(folder, name, array, chunks=None, **options):
    chunks = chunks or tuple(max(1, n // 2) for n in array.shape)
    target = zarr.create_array(
        folder / name, shape=array.shape, chunks=chunks, dtype=array.dtype, **options
    )
    target[...] = array
    return folder / name


def ome(
    folder,
    array,
    *,
    version="0.5",
    axes="zyx",
    scale=None,
    translation=None,
    unit="micrometer",
    outer=None,
    extra=None,
    levels=2,
):
    """An image of OME-Zarr with levels 0 and 1."""
    kinds = {"t": "time", "c": "channel"}
    described = [
        {"name": name, "type": kinds.get(name, "space")}
        | ({"unit": unit} if name in "xyz" and unit else {})
        for name in axes
    ]
    datasets = []
    for level in range(levels):
        steps = [
            {
                "type": "scale",
                "scale": [
                    x * (2**level if name in "xyz" else 1)
                    for x, name in zip(scale or [1.0] * len(axes), axes, strict=True)
                ],
            }
        ]
        if translation is not None:
            steps.append({"type": "translation", "translation": translation})
        datasets.append({"path": str(level), "coordinateTransformations": steps})
    multiscale = {"axes": described, "datasets": datasets}
    if outer:
        multiscale["coordinateTransformations"] = outer
    content = {"multiscales": [multiscale]} | (extra or {})
    if version == "0.5":
        attributes, zarr_format = {"ome": {"version": "0.5"} | content}, 3
    else:
        multiscale["version"] = version
        attributes, zarr_format = content, 2
    group = zarr.create_group(folder, zarr_format=zarr_format, attributes=attributes)
    for level in range(levels):
        taken = array[tuple(slice(None, None, 2**level if n in "xyz" else 1) for n in axes)]
        chunks = tuple(max(1, n // 2) for n in taken.shape)
        target = group.create_array(str(level), shape=taken.shape, chunks=chunks, dtype=taken.dtype)
        target[...] = taken
    return folder


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_plain_array_stays_in_its_store(zarr_format, tmp_path):
    path = plain(tmp_path, "a.zarr", LABELS, zarr_format=zarr_format)
    segmentation = read(path)
    assert isinstance(segmentation.array, ZarrArray)
    assert segmentation.crisp and segmentation.shape == (4, 6, 8)
    assert segmentation.array.chunks == ((2, 2), (3, 3), (4, 4))
    assert compare(path, LABELS).score == 1


def test_floating_numbers_are_probabilities(tmp_path):
    p = np.random.default_rng(0).random((3, 4, 6, 8))
    p /= p.sum(0)
    assert read(plain(tmp_path, "a.zarr", p)).regions == (0, 1, 2)
    names = ["z", "y", "x", "class"]
    path = plain(tmp_path, "b.zarr", np.moveaxis(p, 0, -1), dimension_names=names)
    assert compare(path, p).score == 1


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_labels_of_ome_zarr_with_axes_geometry_names_and_colours(version, tmp_path):
    extra = {
        "image-label": {
            "properties": [{"label-value": 1, "class": "nucleus"}, {"label-value": 2, "area": 5}],
            "colors": [{"label-value": 1, "rgba": [255, 128, 0, 255]}],
        }
    }
    path = ome(
        tmp_path / "v.zarr",
        LABELS[None],
        version=version,
        axes="tzyx",
        scale=[1.0, 2.0, 0.5, 0.25],
        translation=[0.0, 10.0, 20.0, 40.0],
        extra=extra,
    )
    segmentation = read(path)
    assert segmentation.crisp and segmentation.shape == (4, 6, 8)
    assert dict(segmentation.names) == {1: "nucleus"}
    assert dict(segmentation.colours) == {1: "#FF8000"}
    assert np.allclose(segmentation.geometry.spacing, (2e-3, 0.5e-3, 0.25e-3))
    # Positions are x, y, z for any order of the axes.
    assert np.allclose(segmentation.geometry.origin, (40e-3, 20e-3, 10e-3))
    assert np.allclose(segmentation.geometry.affine[:3, 0], (0, 0, 2e-3))
    assert np.array_equal(np.asarray(segmentation.array), LABELS)


def test_another_level_is_read_by_its_path(tmp_path):
    path = ome(tmp_path / "v.zarr", LABELS, scale=[2.0, 1.0, 1.0])
    segmentation = read(path / "1")
    assert segmentation.shape == (2, 3, 4)
    assert np.allclose(segmentation.geometry.spacing, (4e-3, 2e-3, 2e-3))


def test_transformations_of_all_levels_come_after_those_of_one(tmp_path):
    outer = [{"type": "scale", "scale": [10.0, 10.0, 10.0]}]
    path = ome(
        tmp_path / "v.zarr", LABELS, translation=[1.0, 0.0, 0.0], outer=outer, unit="millimeter"
    )
    geometry = read(path).geometry
    assert np.allclose(geometry.spacing, 10) and np.allclose(geometry.origin, (0, 0, 10))


@pytest.mark.parametrize(
    "unit, length", [("decimeter", 100), ("inch", 25.4), ("um", 1e-3), ("metres", 1e3), ("", 1)]
)
def test_lengths_are_converted_to_millimetres(unit, length, tmp_path):
    assert np.allclose(read(ome(tmp_path / "v.zarr", LABELS, unit=unit)).geometry.spacing, length)


def test_unknown_units_are_an_error(tmp_path):
    with pytest.raises(FormatError, match="has the unit 'furlong', expected a unit of length"):
        read(ome(tmp_path / "v.zarr", LABELS, unit="furlong"))


def test_units_of_pixels_give_no_geometry(tmp_path):
    assert read(ome(tmp_path / "v.zarr", LABELS, unit="pixel")).geometry is None


def test_channels_are_regions_with_their_names(tmp_path):
    p = np.random.default_rng(0).random((2, 4, 6, 8)).astype(np.float32)
    p /= p.sum(0)
    extra = {"omero": {"channels": [{"label": "cell"}, {"label": "rest"}]}}
    segmentation = read(ome(tmp_path / "p.zarr", p, axes="czyx", extra=extra))
    assert segmentation.regions == ("cell", "rest")
    assert segmentation.geometry.shape == (4, 6, 8)
    assert np.array_equal(segmentation.probabilities(), p)


def test_labels_inside_of_an_image(tmp_path):
    image = ome(tmp_path / "v.zarr", LABELS * 100)
    zarr.create_group(image / "labels", attributes={"ome": {"version": "0.5", "labels": ["cells"]}})
    ome(image / "labels" / "cells", LABELS, extra={"image-label": {}})
    assert read(image / "labels" / "cells").shape == (4, 6, 8)
    assert read(image / "labels").shape == (4, 6, 8)
    with pytest.raises(FormatError, match=r"contains a uint16 image and label images .cells."):
        read(image)
    assert read(image / "0").array.dtype == np.uint16
    with pytest.raises(
        FormatError, match=r"no Zarr array or group found; .*v.zarr/labels contains cells"
    ):
        read(image / "labels" / "nuclei")


def test_a_group_of_several_arrays_lists_them(tmp_path):
    group = tmp_path / "g.zarr"
    zarr.create_group(group)
    plain(group, "first", LABELS)
    ome(group / "second", LABELS)
    with pytest.raises(FormatError, match=r"contains 2 images or arrays \(first, second\)"):
        read(group)
    assert [content.inside for content in contents_of(str(group))] == ["/first", "/second"]


def test_images_on_different_grids_are_not_compared(tmp_path):
    here = ome(tmp_path / "a.zarr", LABELS)
    there = ome(tmp_path / "b.zarr", LABELS, translation=[5.0, 0.0, 0.0])
    with pytest.raises(GeometryError, match="do not lie on the same grid"):
        compare(here, there)


def test_a_corrupt_chunk_is_named(tmp_path):
    path = plain(tmp_path, "a.zarr", LABELS)
    (path / "c" / "1" / "0" / "1").write_bytes(b"damaged")
    with pytest.raises(FormatError, match=r"a.zarr: chunk \(1, 0, 1\) cannot be read"):
        compare(path, LABELS)


@pytest.mark.parametrize(
    "attributes, message",
    [
        ({"multiscales": [{"datasets": []}]}, "datasets or their paths are missing"),
        (
            {"multiscales": [{"datasets": [{"path": 5}], "axes": []}]},
            "datasets or their paths are missing",
        ),
        ({"multiscales": [{"datasets": [{"path": "0"}], "axes": ["x"]}]}, "define 1 axes"),
        (
            {
                "multiscales": [
                    {
                        "axes": ["z", "y", "x"],
                        "datasets": [
                            {"path": "0", "coordinateTransformations": [{"type": "affine"}]}
                        ],
                    }
                ]
            },
            "an unsupported coordinate transformation",
        ),
        (
            {
                "multiscales": [
                    {
                        "axes": ["z", "y", "x"],
                        "datasets": [
                            {
                                "path": "0",
                                "coordinateTransformations": [
                                    {"type": "scale", "scale": [0, 1, 1]}
                                ],
                            }
                        ],
                    }
                ]
            },
            "pixel spacing must be finite",
        ),
    ],
)
def test_corrupt_metadata(attributes, message, tmp_path):
    group = zarr.create_group(tmp_path / "v.zarr", attributes=attributes)
    group.create_array("0", shape=(4, 6, 8), dtype="uint8")
    with pytest.raises(FormatError, match=message):
        read(tmp_path / "v.zarr")


def test_a_folder_that_is_not_a_store_is_rejected(tmp_path):
    with pytest.raises(FormatError, match="is a folder"):
        read(tmp_path)


@pytest.fixture
def server(tmp_path):
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    serving = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Handler, directory=tmp_path)
    )
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    thread.join()
    serving.server_close()


def test_a_store_on_a_server(server, tmp_path):
    ome(tmp_path / "v.zarr", LABELS, scale=[2.0, 1.0, 1.0])
    ome(tmp_path / "old.zarr", LABELS, scale=[2.0, 1.0, 1.0], version="0.4")
    for name in ("v.zarr", "old.zarr"):
        segmentation = read(f"{server}/{name}")
        assert np.allclose(segmentation.geometry.spacing, (2e-3, 1e-3, 1e-3))
        assert compare(f"{server}/{name}", str(tmp_path / name)).score == 1
        assert read(f"{server}/{name}/1").shape == (2, 3, 4)
    with pytest.raises(FormatError, match=r"nothing.zarr: no Zarr array or group found"):
        read(f"{server}/nothing.zarr")


def test_unreachable_servers_and_unsupported_urls_are_rejected():
    with pytest.raises(FormatError, match="cannot be opened as Zarr: Cannot connect"):
        read("http://127.0.0.1:1/v.zarr")
    with pytest.raises(FormatError, match="Protocol not known: nowhere"):
        read("nowhere://v.zarr")


def test_an_address_that_needs_another_package(monkeypatch):
    def unable(*_, **__):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(zarr, "open", unable)
    with pytest.raises(MissingExtraError, match="Install s3fs"):
        read("s3://bucket/v.zarr")


# -- writing -------------------------------------------------------------------------------------


def test_a_written_image_is_read_back(tmp_path):
    affine = np.diag([0.5, 1.0, 2.0, 1.0])
    affine[:3, 3] = 3, 4, 5
    geometry = Geometry((4, 6, 8), affine)
    labels = Segmentation(
        LABELS, crisp=True, names={1: "one"}, colours={1: "#FF8000"}, geometry=geometry
    )
    write(tmp_path / "a.zarr", labels)
    stored = read(tmp_path / "a.zarr")
    assert stored.shape == (8, 6, 4)  # z, y, x
    assert dict(stored.names) == {1: "one"} and dict(stored.colours) == {1: "#FF8000"}
    assert compare(labels, stored).score == 1
    assert stored.array.dtype == np.uint8


@pytest.mark.parametrize("flips", [(), (0,), (0, 2), (1, 2)])
def test_flipped_images_are_written_upright(flips, tmp_path):
    affine = np.diag([0.5, 1.0, 2.0, 1.0])
    for axis in flips:
        affine[axis, axis] *= -1
    geometry = Geometry((4, 6, 8), affine[[1, 0, 2, 3]])
    labels = Segmentation.from_labels(LABELS, geometry=geometry)
    write(tmp_path / "a.zarr", labels)
    stored = read(tmp_path / "a.zarr")
    assert (np.diag(stored.geometry.affine[:3, :3][::-1]) > 0).all()
    assert compare(labels, stored).score == 1


def test_probabilities_and_maps_are_written(tmp_path):
    p = np.random.default_rng(0).random((3, 4, 6, 8)).astype(np.float32)
    p /= p.sum(0)
    soft = Segmentation.from_probabilities(
        p, names=["a", "b", "c"], geometry=Geometry((4, 6, 8), np.eye(4))
    )
    write(tmp_path / "p.zarr", soft)
    stored = read(tmp_path / "p.zarr")
    assert stored.regions == ("a", "b", "c")
    assert compare(soft, stored, match="labels").score == 1
    write(tmp_path / "m.zarr", p[0])
    assert np.array_equal(zarr.open(tmp_path / "m.zarr")[...], p[0])


def test_without_geometry_it_is_a_plain_array(tmp_path):
    write(tmp_path / "a.zarr", LABELS)
    assert zarr.open(tmp_path / "a.zarr").metadata.dimension_names == ("z", "y", "x")
    assert read(tmp_path / "a.zarr").geometry is None


def test_a_rotated_image_is_rejected(tmp_path):
    turn = np.eye(4)
    turn[:2, :2] = [[0.8, -0.6], [0.6, 0.8]]
    with pytest.raises(InputError, match=r"this image is rotated. Write .nii.gz"):
        write(tmp_path / "a.zarr", LABELS, Geometry((4, 6, 8), turn))
    assert not list(tmp_path.iterdir())


def test_a_store_is_replaced_completely_and_another_folder_is_not(tmp_path):
    write(tmp_path / "a.zarr", LABELS)
    write(tmp_path / "a.zarr", LABELS[:2])
    assert read(tmp_path / "a.zarr").shape == (2, 6, 8)
    (tmp_path / "b.zarr").mkdir()
    (tmp_path / "b.zarr" / "notes.txt").write_text("precious")
    with pytest.raises(InputError, match="is not a Zarr store, so it is not replaced"):
        write(tmp_path / "b.zarr", LABELS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zarr", "b.zarr"]


def test_chunks_that_are_python_objects_are_never_loaded(tmp_path):
    class Harmful:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    objects = {"id": "pickle", "protocol": 4}
    metadata = {"zarr_format": 2, "shape": [2, 2], "chunks": [2, 2], "dtype": "|u1", "order": "C"}
    metadata |= {"filters": None, "compressor": None, "fill_value": 0}
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / "0.0").write_bytes(pickle.dumps(Harmful()))
    for codecs in ({"filters": [objects]}, {"compressor": objects}):
        (tmp_path / "a.zarr" / ".zarray").write_text(json.dumps(metadata | codecs))
        with pytest.raises(FormatError, match=r"a\.zarr: "):
            np.asarray(read(tmp_path / "a.zarr").array[:, :])
        assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "steps", [[{"type": ["scale"]}], ["scale"], [{"type": "scale", "scale": ["a", 1, 1]}]]
)
def test_metadata_of_wrong_types_are_rejected(steps, tmp_path):
    placed = Geometry((4, 6, 8), np.diag([2.0, 3.0, 5.0, 1.0]))
    write(tmp_path / "a.zarr", Segmentation.from_labels(LABELS, geometry=placed))
    file = tmp_path / "a.zarr" / "zarr.json"
    content = json.loads(file.read_text())
    dataset = content["attributes"]["ome"]["multiscales"][0]["datasets"][0]
    dataset["coordinateTransformations"] = steps
    file.write_text(json.dumps(content))
    with pytest.raises(FormatError, match=r"a\.zarr: "):
        read(tmp_path / "a.zarr")


@pytest.mark.parametrize(("key", "value"), [("shape", [2**31, 6, 8]), ("chunks", [2, 0, 4])])
def test_invalid_chunks(key, value, tmp_path):
    path = plain(tmp_path, "a.zarr", LABELS, zarr_format=2)
    metadata = json.loads((path / ".zarray").read_text()) | {key: value}
    (path / ".zarray").write_text(json.dumps(metadata))
    with pytest.raises(FormatError, match=r"a\.zarr: "):
        read(path)


# Chunks that declare more than their array -------------------------------------------------------

CODECS = {
    2: ("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"),
    3: ("blosc", "gzip", "numcodecs.bz2", "numcodecs.lz4", "zstd"),
}


def with_codec(path, version, codec):
    """A store of one chunk of 64 values, packed by a codec; the file of the chunk."""
    if version == 2:
        compressor = numcodecs.get_codec({"id": codec})
    elif codec.startswith("numcodecs."):
        compressor = {"name": codec, "configuration": {}}
    else:
        compressor = {"name": codec, "configuration": {"blosc": BLOSC}.get(codec, {})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some codecs are not part of the specification
        array = zarr.create_array(
            path, shape=(64,), chunks=(64,), dtype="u1", zarr_format=version, compressors=compressor
        )
        array[...] = np.arange(64) // 9
    return next(file for file in path.rglob("*") if file.name == "0")


BLOSC = {"typesize": 1, "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0}


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr")
@pytest.mark.parametrize(("version", "codec"), [(v, c) for v, cs in CODECS.items() for c in cs])
def test_a_chunk_that_decompresses_to_too_much_is_rejected_first(tmp_path, version, codec):
    path = tmp_path / "a.zarr"
    chunk = with_codec(path, version, codec)
    assert read(path).array[:].tolist() == (np.arange(64) // 9).tolist()
    packer = numcodecs.get_codec({"id": codec.removeprefix("numcodecs.")})
    chunk.write_bytes(packer.encode(np.zeros(1 << 25, np.uint8)))
    with pytest.raises(FormatError, match="decompresses to more than the 64 bytes of a chunk"):
        read(path).array[:]


def test_a_chunk_inside_a_shard_is_limited_to_its_own_size(tmp_path):
    path = tmp_path / "a.zarr"
    array = zarr.create_array(
        path, shape=(64,), chunks=(32,), shards=(64,), dtype="u1", compressors=GzipCodec()
    )
    array[...] = np.arange(64) // 9
    stored = read(path).array
    assert np.array_equal(pickle.loads(pickle.dumps(stored))[:], np.arange(64) // 9)
    shard = path / "c" / "0"
    bomb = gzip.compress(bytes(1 << 25))
    places = np.array([[0, len(bomb)], [0, len(bomb)]], "<u8").tobytes()
    shard.write_bytes(bomb + places + crc32c(places).to_bytes(4, "little"))
    for values in (stored, pickle.loads(pickle.dumps(stored))):
        with pytest.raises(FormatError, match="decompresses to more than the 32 bytes of a chunk"):
            values[:]


def test_zstandard_frames_without_a_declared_size_are_read_and_limited(tmp_path):
    path = tmp_path / "a.zarr"
    chunk = with_codec(path, 3, "zstd")
    magic, nothing_said = b"\x28\xb5\x2f\xfd", b"\x00\x58"  # a window size, but no content size

    def repeated(count, last):
        return (count << 3 | 1 << 1 | last).to_bytes(3, "little") + b"\7"

    chunk.write_bytes(magic + nothing_said + repeated(64, True))
    assert read(path).array[:].tolist() == [7] * 64
    bomb = b"".join(repeated(1 << 17, k == 255) for k in range(256))
    chunk.write_bytes(magic + nothing_said + bomb)
    with pytest.raises(FormatError, match="decompresses to more than the 64 bytes of a chunk"):
        read(path).array[:]


def test_arrays_opened_by_the_user_have_the_same_limits(tmp_path):
    chunk = with_codec(tmp_path / "a.zarr", 3, "zstd")
    array = zarr.open_array(tmp_path / "a.zarr", mode="r")
    assert compare(array, np.arange(64) // 9).score == 1
    chunk.write_bytes(numcodecs.Zstd().encode(np.zeros(1 << 25, np.uint8)))
    with pytest.raises(ValueError, match="decompresses to more than the 64 bytes of a chunk"):
        compare(array, np.arange(64) // 9)


@pytest.mark.parametrize("place", ["{}", "file://{}"])
def test_local_chunks_are_decompressed_on_the_calling_thread(place, tmp_path, monkeypatch):
    with_codec(tmp_path / "a.zarr", 3, "zstd")
    opened = zarr.open_array(place.format(tmp_path / "a.zarr"), mode="r")
    array, threads = chunk_reading.with_size_limits(opened), []
    unpacked = chunk_reading._unpacked
    monkeypatch.setattr(
        chunk_reading,
        "_unpacked",
        lambda *given: threads.append(threading.get_ident()) or unpacked(*given),
    )

    async def read_while_a_loop_runs():
        return array[:]

    expected = (np.arange(64) // 9).tolist()
    assert array[:].tolist() == expected
    assert threads == [threading.get_ident()]
    assert asyncio.run(read_while_a_loop_runs()).tolist() == expected
    assert threads[1] != threading.get_ident()


def test_a_chunk_that_cannot_be_read_leaves_nothing_behind(tmp_path, caplog):
    array = zarr.create_array(tmp_path / "a.zarr", shape=(64,), chunks=(8,), dtype="u1")
    array[...] = np.arange(64)
    (tmp_path / "a.zarr" / "c" / "3").write_bytes(b"no chunk")
    near = chunk_reading.with_size_limits(array)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="Zstd"):
            near[:]
    gc.collect()
    assert near[:24].tolist() == list(range(24))
    assert not caplog.records  # such as tasks that were destroyed


def test_memory_is_used_again_once_nothing_refers_to_it():
    first = chunk_reading.reused_bytes(3000)
    place, view = first.ctypes.data, first[:100].view("u2")
    del first
    assert chunk_reading.reused_bytes(3000).ctypes.data != place
    del view
    again = chunk_reading.reused_bytes(2500)
    assert again.ctypes.data == place
    assert again.size == 2500
    assert chunk_reading.reused_bytes(1000).ctypes.data != place
    assert chunk_reading.reused_bytes(1 << 28).size == 1 << 28


def test_values_that_were_read_stay_what_they_are(tmp_path):
    array = zarr.create_array(tmp_path / "a.zarr", shape=(64, 32), chunks=(8, 8), dtype="i4")
    array[...] = np.arange(64 * 32).reshape(64, 32)
    near = chunk_reading.with_size_limits(array)
    parts = [near[first : first + 16] for first in range(0, 64, 16)]
    assert np.array_equal(np.concatenate(parts), array[...])


@pytest.mark.parametrize(
    ("shape", "chunks"),
    [((7, 6, 32768), (3, 3, 3)), ((7, 6, 5), (4096, 4096, 3)), ((7, 6, 2**22), (7, 6, 1))],
)
def test_invalid_chunk_shapes_are_rejected(tmp_path, shape, chunks):
    zarr.create_array(tmp_path / "a.zarr", shape=shape, chunks=chunks, dtype="u1")
    with pytest.raises(
        FormatError, match=r"chunks of shape .* too large for its shape|Store it in larger chunks"
    ):
        read(tmp_path / "a.zarr")


def test_a_chunk_that_takes_more_memory_than_allowed_is_rejected(tmp_path):
    path = plain(tmp_path, "a.zarr", np.zeros((64, 64), np.uint8), chunks=(64, 32))
    assert read(path, max_bytes=2048).shape == (64, 64)
    with pytest.raises(TooLargeError, match=r"a chunk of shape \(64, 32\), which takes 2048 b"):
        read(path, max_bytes=2047)


@pytest.mark.parametrize(
    "change",
    [
        "import zarr.core.buffer; del zarr.core.buffer.default_buffer_prototype",
        "del zarr.AsyncArray",
        "del zarr.AsyncArray.getitem",
        "from zarr.abc import codec; del codec.BaseCodec._decode_single",
    ],
)
@pytest.mark.parametrize("version", [2, 3])
def test_a_zarr_without_the_internals_that_are_used(tmp_path, change, version):
    labels = np.arange(600).reshape(20, 30) // 70
    zarr.create_array(tmp_path / "a.zarr", data=labels, chunks=(7, 9), zarr_format=version)
    code = (
        f"import numpy as np, zarr\nfrom probdice.files.zarr import ZarrArray\n"
        f"array = zarr.open_array({str(tmp_path / 'a.zarr')!r}, mode='r')\n{change}\n"
        f"print(ZarrArray(array, 'a.zarr')[:, 3:].sum())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == str(labels[:, 3:].sum()), done.stderr
