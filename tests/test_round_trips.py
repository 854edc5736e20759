"""`read` returns the segmentation that `write` stored, or `write` rejects it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import nibabel
import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from probdice import Geometry, InputError, Segmentation, compare, read, write
from probdice.cli.app import app

FORMATS = (
    *(".nii", ".nii.gz", ".mgh", ".mgz", ".nrrd", ".seg.nrrd", ".mha"),
    *(".npy", ".npz", ".tif", ".png", ".zarr"),
)
SHAPES = {"2-D": (5, 4), "3-D": (5, 4, 3), "flat": (5, 1, 4)}
NAMES = {0: "background", 17: "left hippocampus", 53: 'right "<CA1>" & [x] é'}
COLOURS = {17: "#0072B2", 53: "#E69F00"}


def place(shape: tuple[int, ...]) -> Geometry:
    """A grid away from the origin, with a spacing per axis and a flipped first axis."""
    spacing = np.array([-2.0, 0.5, 4.0])[: len(shape)]
    affine = np.diag([*spacing, 1.0])
    affine[:-1, -1] = np.array([10.0, -20.0, 30.0])[: len(shape)]
    return Geometry(shape, affine)


def numbers(shape: tuple[int, ...]) -> NDArray[np.int64]:
    return np.array([0, 17, 53])[np.arange(np.prod(shape)).reshape(shape) % 7 % 3]


def rows(shape: tuple[int, ...], count: int = 3) -> NDArray[np.float32]:
    """Probabilities in steps of 1/64, which all types represent exactly."""
    steps = np.random.default_rng(0).integers(0, 65, (count - 1, *shape))
    cuts = np.sort(steps, axis=0)
    ends = np.concatenate([cuts, np.full((1, *shape), 64)])
    return np.diff(ends, axis=0, prepend=0).astype(np.float32) / 64


def coloured(segmentation: Segmentation) -> Segmentation:
    return replace(segmentation, colours=COLOURS)


SOURCES: dict[str, Callable[[tuple[int, ...]], Segmentation]] = {
    "labels": lambda s: Segmentation.from_labels(numbers(s)),
    "names": lambda s: coloured(Segmentation.from_labels(numbers(s), names=NAMES)),
    "negative": lambda s: Segmentation.from_labels(numbers(s) - 17),
    "boolean": lambda s: Segmentation.from_labels(numbers(s) > 0),
    "one label": lambda s: Segmentation.from_labels(np.ones(s, np.uint8)),
    "plain regions": lambda s: Segmentation.from_probabilities(rows(s)),
    "numbered regions": lambda s: Segmentation.from_probabilities(rows(s), labels=[0, 17, 53]),
    "named regions": lambda s: Segmentation.from_probabilities(rows(s), names=list(NAMES.values())),
    "regions": lambda s: Segmentation.from_probabilities(
        rows(s), labels=list(NAMES), names=list(NAMES.values())
    ),
    "shared name": lambda s: Segmentation.from_probabilities(
        rows(s), labels=[1, 2, 3], names=["mass", "mass", "kidney"]
    ),
    "partly": lambda s: Segmentation.from_probabilities(
        rows(s), labels=[4, None, -7], names=[None, "rest", None]
    ),
    "one-hot": lambda s: Segmentation.from_probabilities(
        (numbers(s) == np.array([0, 17, 53]).reshape(-1, *[1] * len(s))).astype(np.float32)
    ),
    "one region": lambda s: Segmentation.from_probabilities(
        np.ones((1, *s), np.float32), labels=[9], names=["all"]
    ),
    "foreground": lambda s: Segmentation.from_probabilities(rows(s)[0], axis=None),
    "whole foreground": lambda s: Segmentation.from_probabilities(
        (numbers(s) > 0).astype(np.float32), axis=None
    ),
    "named foreground": lambda s: Segmentation.from_probabilities(
        rows(s)[0], axis=None, labels=[3, 8], names=["rest", "liver"]
    ),
    "background": lambda s: Segmentation.from_probabilities(
        rows(s, 4)[:2], labels=[17, 53], sums="background"
    ),
    "normalise": lambda s: Segmentation.from_probabilities(
        rows(s) * np.float32(0.5), labels=[0, 17, 53], sums="normalise"
    ),
    "logits": lambda s: Segmentation.from_logits(
        np.log(rows(s) + np.float32(0.25)), labels=[0, 17, 53]
    ),
}
NPY_KEEPS = ("labels", "negative", "boolean", "one label", "plain regions", "one-hot")
NPY_KEEPS += ("foreground", "whole foreground")


def refusal(suffix: str, kind: str, shape: tuple[int, ...], placed: bool) -> str:
    """Return why this format cannot store that segmentation; "" if it can."""
    crisp = kind in ("labels", "names", "negative", "boolean", "one label")
    if suffix == ".npy" and (placed or kind not in NPY_KEEPS):
        return "NPY stores only an array, so"
    if suffix == ".png" and not crisp:
        return "PNG stores only whole numbers"
    if suffix == ".png" and len(shape) != 2:
        return "PNG stores images with 2 axes"
    if suffix == ".png" and kind == "negative":
        return "PNG stores labels from 0 to 65535, found -17"
    return ""


def by_label(segmentation: Segmentation) -> list[tuple[int | None, str | None]]:
    """The number and the name of every region."""
    names = segmentation.names
    if segmentation.crisp:
        labels = {*np.unique(np.asarray(segmentation.array)).tolist(), *names}
        return [(int(label), names.get(label)) for label in sorted(labels)]
    # If a file stores neither number nor name, a region is identified by its position.
    return [
        (k if label is None and k not in names else label, names.get(k))
        for k, label in enumerate(segmentation.labels)
    ]


def check_same(source: Segmentation, stored: Segmentation) -> None:
    """Labels, names, kind, geometry or its absence, values, and a score of 1."""
    assert stored.crisp == source.crisp
    assert by_label(stored) == by_label(source)
    assert (stored.geometry is None) == (source.geometry is None)
    if source.geometry is not None:
        stored = stored.onto(source.geometry, tolerance=1e-5)
    assert stored.shape == source.shape
    if source.crisp:
        whole = (slice(None),) * len(stored.shape)
        assert np.array_equal(np.asarray(stored.array[whole]), np.asarray(source.array))
    else:
        assert np.array_equal(stored.probabilities(), source.probabilities())
    # The softmax of logits is rounded block by block as they are compared.
    score = pytest.approx(1, abs=1e-7) if source.reading == "softmax" else 1
    assert compare(source, stored).score == score
    assert compare(source, stored, match="labels").score == score
    assert compare(stored, source, match="labels").score == score


@pytest.mark.parametrize("number_of_axes", SHAPES)
@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_segmentation_is_read_back_or_rejected(
    suffix: str, kind: str, number_of_axes: str, tmp_path: Path
) -> None:
    # Every second combination has a geometry, so that any two properties occur together.
    place_of_kind, place_of_shape = list(SOURCES).index(kind), list(SHAPES).index(number_of_axes)
    placed = (FORMATS.index(suffix) + place_of_kind + place_of_shape) % 2 == 0
    shape = SHAPES[number_of_axes]
    source = SOURCES[kind](shape)
    if placed:
        source = replace(source, geometry=place(shape))
    path = tmp_path / f"a{suffix}"
    reason = refusal(suffix, kind, shape, placed)
    if reason:
        with pytest.raises(InputError, match=reason):
            write(path, source)
        assert not path.exists()
        return
    write(path, source)
    stored = read(path)
    check_same(source, stored)
    if kind == "names":
        assert {k: stored.colours.get(k) for k in COLOURS} == COLOURS


EXTREMES = (-(2**63), -(2**40), -(2**31), -1, 0, 2**31 - 1, 2**31, 2**40, 2**63 - 1)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("extreme", [*EXTREMES, 2**64 - 1], ids=str)
def test_no_label_is_changed(suffix: str, extreme: int, tmp_path: Path) -> None:
    """Each end of every integer type is read back unchanged, or is rejected with the number."""
    labels = np.array([[0, 1, extreme]] * 2, np.uint64 if extreme >= 2**63 else np.int64)
    path = tmp_path / f"a{suffix}"
    try:
        write(path, Segmentation.from_labels(labels))
    except InputError as error:
        assert suffix in (".mgh", ".mgz", ".png")
        assert "stores labels from" in str(error) and str(extreme) in str(error)
        assert not -(2**31) <= extreme < 2**31 or suffix == ".png"
    else:
        stored = read(path).array[:, :]
        assert [int(label) for label in np.asarray(stored).ravel()] == labels.ravel().tolist()


def test_relabelling_to_mgz_rejects_labels_that_it_would_change(tmp_path: Path) -> None:
    labels = np.array([[-(2**40), 1], [1, 1]])[..., None]
    write(tmp_path / "a.nii.gz", labels)
    words = ["compare", str(tmp_path / "a.nii.gz"), str(tmp_path / "a.nii.gz")]
    done = CliRunner().invoke(app, [*words, "--relabelled", str(tmp_path / "b.mgz")])
    assert done.exit_code == 1
    assert "MGH stores labels from −2³¹ to 2³¹ − 1" in " ".join(done.stderr.split())
    assert not (tmp_path / "b.mgz").exists()


@pytest.mark.parametrize("suffix", [".npz", ".tif", ".zarr"])
@pytest.mark.parametrize("kind", SOURCES)
def test_images_of_four_axes_come_back(suffix: str, kind: str, tmp_path: Path) -> None:
    source = SOURCES[kind]((3, 2, 4, 2))
    write(tmp_path / f"a{suffix}", source)
    check_same(source, read(tmp_path / f"a{suffix}"))


@pytest.mark.parametrize("suffix", [".nii.gz", ".mgz", ".nrrd", ".mha", ".npz", ".tif", ".zarr"])
def test_thousands_of_long_names_come_back(suffix: str, tmp_path: Path) -> None:
    count = 2000
    names = [f"region {k}, which has a rather long name" for k in range(count)]
    values = np.zeros((count, 40, 50), np.float32)
    values.reshape(count, -1)[np.arange(2000), np.arange(2000)] = 1
    source = Segmentation.from_probabilities(values, labels=range(7, 7 + count), names=names)
    write(tmp_path / f"a{suffix}", source)
    stored = read(tmp_path / f"a{suffix}")
    assert stored.labels == source.labels
    assert stored.regions == source.regions


@pytest.mark.parametrize("suffix", [".nii.gz", ".mgz", ".nrrd", ".npz", ".tif", ".zarr"])
def test_a_consensus_comes_back_with_labels_and_names(suffix: str, tmp_path: Path) -> None:
    """Two of three raters agree on each voxel, so each probability is 0, 1/3, 2/3 or 1."""
    shape = (6, 5, 4)
    files = []
    for k in range(3):
        labels = numbers(shape)
        labels[k] = 17
        files.append(str(tmp_path / f"rater{k}.nii.gz"))
        write(files[-1], Segmentation.from_labels(labels, names=NAMES, geometry=place(shape)))
    output = tmp_path / f"c{suffix}"
    words = ["consensus", *files, "--match", "labels", "-o", str(output)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    stored = read(output)
    assert stored.labels == (0, 17, 53)
    assert stored.regions == tuple(NAMES.values())
    raters = [np.asarray(read(file).array) for file in files]
    expected = [np.mean([rater == label for rater in raters], axis=0) for label in (0, 17, 53)]
    assert stored.geometry is not None
    assert stored.onto(place(shape)).probabilities() == pytest.approx(np.stack(expected), abs=1e-6)


@pytest.mark.parametrize("suffix", [".nii.gz", ".mgz", ".nrrd", ".mha", ".npz", ".tif", ".zarr"])
def test_relabelled_probabilities_correspond_by_label(suffix: str, tmp_path: Path) -> None:
    reference = Segmentation.from_labels(numbers((5, 4, 3)), names=NAMES, geometry=place((5, 4, 3)))
    certain = np.stack([numbers((5, 4, 3)) == label for label in (53, 0, 17)])
    shares = certain * 0.75 + 0.125 * np.ones(3).reshape(3, 1, 1, 1)
    prediction = Segmentation.from_probabilities(
        shares / shares.sum(axis=0), geometry=place((5, 4, 3))
    )
    write(tmp_path / "r.nii.gz", reference)
    write(tmp_path / "p.nii.gz", prediction)
    output = tmp_path / f"o{suffix}"
    words = ["compare", str(tmp_path / "r.nii.gz")]
    done = CliRunner().invoke(
        app, [*words, str(tmp_path / "p.nii.gz"), "--relabelled", str(output)]
    )
    assert done.exit_code == 0, done.output
    stored = read(output)
    assert stored.labels == (0, 17, 53)
    assert stored.names == dict(enumerate(NAMES.values()))
    done = CliRunner().invoke(app, [*words, str(output), "--match", "labels", "--json", "-"])
    assert done.exit_code == 0, done.output
    # Each voxel is 7/9 certain of its own label, so 1 − f is 2/9 for 60 voxels.
    assert json.loads(done.stdout)["score"] == pytest.approx(7 / 9, abs=1e-6)


def test_nibabel_keeps_the_description_of_other_values_which_is_ignored(tmp_path: Path) -> None:
    source = SOURCES["regions"]((5, 4, 3))
    write(tmp_path / "a.nii.gz", source)
    image = nibabel.load(tmp_path / "a.nii.gz")
    decided = np.asarray(image.dataobj).argmax(axis=-1).astype(np.uint8)
    nibabel.save(nibabel.Nifti1Image(decided, image.affine, image.header), tmp_path / "b.nii.gz")
    stored = read(tmp_path / "b.nii.gz")
    assert stored.crisp
    assert np.array_equal(np.asarray(stored.array), decided)
    kept = read(image)
    assert kept.labels == source.labels
    assert kept.names == source.names


def test_another_program_finds_names_and_values(tmp_path: Path) -> None:
    source = SOURCES["names"]((5, 4, 3))
    write(tmp_path / "a.nii.gz", source)
    image = nibabel.load(tmp_path / "a.nii.gz")
    assert np.array_equal(np.asarray(image.dataobj), np.asarray(source.array))
    (extension,) = image.header.extensions
    assert extension.get_code() == 30  # Caret, whose table Connectome Workbench shows
    assert 'Key="17" Red="0.000000"' in extension.text
    write(tmp_path / "a.mgz", source)
    assert np.array_equal(np.asarray(nibabel.load(tmp_path / "a.mgz").dataobj), source.array)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[" * 100_000,
        "[]",
        '{"kind":"labels"}',
        '{"kind":"probabilities","shape":[2,2,2],"labels":7,"names":[]}',
        '{"kind":"probabilities","shape":[2,2,2],"labels":["a",1],"names":[null,null]}',
        '{"kind":"probabilities","shape":[2,2,2],"labels":[1,1e30],"names":[null,null]}',
        '{"kind":"probabilities","shape":[2,2,2],"labels":[1,1],"names":[null,null]}',
        '{"kind":"probabilities","shape":[2,2,2],"labels":[1,2],"names":[null,null],"colours":5}',
    ],
)
def test_a_corrupt_description_is_rejected_by_name(text: str, tmp_path: Path) -> None:
    values = np.full((2, 2, 2, 2), 0.5, np.float32)
    np.savez(tmp_path / "a.npz", regions=values, probdice=np.array(text))
    with pytest.raises(InputError, match=r"a\.npz: "):
        read(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "text",
    [
        '{"kind":"other","shape":[2,2,2]}',
        '{"kind":"labels","shape":[2,2,2],"names":{"1":"a"}}',
        '{"kind":"foreground","shape":[2,2,2],"labels":[0,1],"names":[null,"a"]}',
        '{"kind":"probabilities","shape":[2,2,2],"labels":[1],"names":["a"]}',
        '{"kind":"probabilities","shape":[2,4],"labels":[1,2],"names":["a","b"]}',
    ],
)
def test_a_description_of_other_values_is_ignored(text: str, tmp_path: Path) -> None:
    values = np.full((2, 2, 2, 2), 0.5, np.float32)
    np.savez(tmp_path / "a.npz", regions=values, probdice=np.array(text))
    stored = read(tmp_path / "a.npz")
    assert stored.regions == (0, 1)
    assert np.array_equal(stored.probabilities(), values)


def test_names_in_npz_files_of_older_versions_are_read(tmp_path: Path) -> None:
    labels, values = numbers((3, 2)), rows((3, 2))
    np.savez(tmp_path / "a.npz", labels=labels, names=np.array([("17", "grey"), ("53", "white")]))
    assert read(tmp_path / "a.npz").names == {17: "grey", 53: "white"}
    np.savez(tmp_path / "b.npz", regions=values, names=np.array(["17", "white", "0"]))
    assert read(tmp_path / "b.npz").regions == (17, "white", 0)


def test_npy_output_is_rejected_before_the_comparison(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / f"{name}.nii.gz", numbers((5, 4, 3)), place((5, 4, 3)))
    files = [str(tmp_path / "a.nii.gz"), str(tmp_path / "b.nii.gz")]
    outputs = {"compare": "--relabelled", "consensus": "--output"}
    for command, option in outputs.items():
        output = tmp_path / f"{command}.npy"
        done = CliRunner().invoke(app, [command, *files, option, str(output)])
        assert done.exit_code == 1
        said = " ".join(done.stderr.split())
        assert "so the geometry would be lost. Write .npz instead" in said
        assert not output.exists()
