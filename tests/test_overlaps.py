"""Overlaps: tables, sums, files."""

import json
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from probdice import (
    Aitchison,
    Comparison,
    FormatError,
    InputError,
    Overlap,
    ProbdiceError,
    Segmentation,
    TooLargeError,
    overlap,
)

REFERENCE = [1, 1, 1, 1, 2, 2, 2, 2]
SPLIT = [7, 7, 5, 5, 5, 9, 9, 9]
SOFT = np.array([[0.6, 0.5, 0.1, 0.0], [0.3, 0.3, 0.1, 0.1], [0.1, 0.2, 0.8, 0.9]])


def everything(found):
    return (
        found.similarity,
        found.pixels,
        found.reference.labels,
        found.prediction.labels,
        found.reference.empty,
        found.prediction.empty,
        found.reference.volumes.tolist(),
        found.prediction.volumes.tolist(),
        found.reference.to_dict()["likeliest"],
        found.prediction.to_dict()["likeliest"],
        found.pairs.rows.tolist(),
        found.pairs.columns.tolist(),
        found.pairs.savings.tolist(),
        found.weights.tolist(),
    )


def kinds():
    names = {1: "liver", 3: "kidney"}
    soft = Segmentation.from_probabilities(SOFT, names=["a", 7, "c"])
    yield overlap(REFERENCE, SPLIT)
    yield overlap(Segmentation.from_labels(REFERENCE, names=names), SPLIT, mask=[1] * 7 + [0])
    yield overlap(np.array([2**64 - 1, 0], np.uint64), np.array([-5, 2**62]))
    yield overlap([1, 1, 2, 2], soft)
    yield overlap(soft, SOFT, similarity=Aitchison(0.01))
    yield overlap([1, 1, 2, 2], soft, similarity="aitchison")


# Tables ----------------------------------------------------------------------------------------


def test_label_maps_are_counted():
    found = overlap(REFERENCE, SPLIT)
    assert found.crisp and found.pairs.savings.dtype == np.int64
    assert found.pairs.rows.tolist() == [0, 0, 1, 1]
    assert found.pairs.columns.tolist() == [0, 1, 0, 2]
    assert found.pairs.savings.tolist() == [2, 2, 1, 3]
    assert found.overlaps.tolist() == [0.25, 0.25, 0.125, 0.375]
    assert found.reference.volumes.tolist() == [4, 4]


def test_absolute_overlaps_are_the_minima():
    found = overlap([[0.9, 0.7, 0.2, 0.1], [0.1, 0.3, 0.8, 0.9]], SOFT)
    frame = found.to_frame()
    assert list(frame.columns) == ["reference", "prediction", "overlap", "weight"]
    expected = [(0.6 + 0.5 + 0.1) / 4, (0.3 + 0.3 + 0.1 + 0.1) / 4, (0.1 + 0.2 + 0.2 + 0.1) / 4]
    assert frame["overlap"][:3].tolist() == pytest.approx(expected)
    # All three prediction regions overlap reference region 0, so the table contains their weights.
    assert frame["weight"][:3].tolist() == pytest.approx(found.weights[0].tolist())


def test_weights_are_read_only_and_have_no_empty_regions():
    found = overlap([1, 2, 3], [4, 4, 5], mask=[True, True, False])
    assert found.weights.shape == (2, 1)
    assert found.reference.empty == (3,)
    with pytest.raises(ValueError, match="read-only"):
        found.weights[0, 0] = 1


def test_a_table_that_does_not_fit_is_rejected_but_its_pairs_are_available():
    labels = np.arange(20_000)
    found = overlap(labels, labels)
    with pytest.raises(TooLargeError, match=r"20000 reference and 20000 .* Use overlap.to_frame"):
        _ = found.weights
    assert len(found.to_frame()) == 20_000


def test_the_cells_of_a_frame_can_be_grouped():
    named = Segmentation.from_labels(REFERENCE, names={1: "liver"})
    frame = overlap(named, SPLIT).to_frame()
    assert frame.groupby("reference")["overlap"].sum().to_dict() == {"liver": 0.5, 2: 0.5}


# Sums ------------------------------------------------------------------------------------------


def test_label_maps_of_other_labels_add_up():
    total = overlap([1, 1, 2], [5, 5, 7]) + overlap([2, 3], [7, 5])
    assert total.reference.labels == (1, 2, 3)
    assert total.compare().score == 0.8
    assert sum([overlap([1], [2])] * 3).pixels == 3
    large = overlap(np.array([2**64 - 1, 7], np.uint64), [1, 1]) + overlap([1], [1])
    assert large.reference.labels == (1, 7, 2**64 - 1)


def test_sums_and_files_keep_the_colours_of_the_segmentations(tmp_path):
    one = replace(Segmentation.from_labels([1, 2, 2, 9]), colours={1: "#0072B2", 7: "#E69F00"})
    two = replace(Segmentation.from_labels([7, 7, 7, 2]), colours={2: "#009E73"})
    total = overlap(one, [1, 1, 2, 2]) + overlap(two, [1, 1, 2, 2])
    assert total.reference.colours == {1: "#0072B2", 2: "#009E73"}
    assert total.prediction.colours == {}
    total.save(tmp_path / "overlap.npz")
    assert Overlap.load(tmp_path / "overlap.npz").reference.colours == total.reference.colours
    again = Comparison.from_json(total.compare().to_json())
    assert again.overlap.reference.colours == total.reference.colours
    with pytest.raises(InputError, match="colours must be like '#0072B2', found 'blue'"):
        replace(one, colours={1: "blue"})


def test_names_are_united():
    one = Segmentation.from_labels([1, 2], names={1: "liver"})
    two = Segmentation.from_labels([2, 3], names={1: "liver", 3: "kidney"})
    total = overlap(one, [5, 6]) + overlap(two, [6, 7])
    assert total.reference.labels == ("liver", 2, "kidney")


@pytest.mark.parametrize(
    ("one", "two", "message"),
    [
        (
            lambda: overlap([1], [1]),
            lambda: overlap([1], [1], similarity="aitchison"),
            r"different similarities cannot be added: found Absolute\(\) and Aitchison\(floor=0.0",
        ),
        (
            lambda: overlap([1], [1], similarity=Aitchison(0.1)),
            lambda: overlap([1], [1], similarity=Aitchison(0.2)),
            "cannot be added",
        ),
        (
            lambda: overlap([1], Segmentation.from_probabilities([[1.0]], names=["a"])),
            lambda: overlap([1], Segmentation.from_probabilities([[1.0]], names=["b"])),
            r"prediction: overlaps of probabilities with different regions cannot be added: found "
            r"\('a',\) and \('b',\)",
        ),
        (
            lambda: overlap([1], [[1.0]]),
            lambda: overlap([1], [[1.0], [0.0]]),
            "probabilities with different regions cannot be added",
        ),
        (
            lambda: overlap([1], [1]),
            lambda: overlap([1], [[1.0]]),
            "prediction: a label map in one overlap and probabilities in another, so the",
        ),
        (
            lambda: overlap(Segmentation.from_labels([1], names={1: "a"}), [1]),
            lambda: overlap(Segmentation.from_labels([1], names={1: "b"}), [1]),
            r"reference: overlaps with different names for label 1 \('a' and 'b'\) cannot be added",
        ),
        (
            lambda: overlap(np.array([2**64 - 1], np.uint64), [1]),
            lambda: overlap([-1], [1]),
            "labels below 0 and labels of at least 2⁶³ cannot be added",
        ),
    ],
)
def test_overlaps_that_cannot_be_added(one, two, message):
    with pytest.raises(InputError, match=message):
        one() + two()
    with pytest.raises(InputError, match=message):
        Overlap.total([one(), two()])


def test_only_overlaps_are_added():
    with pytest.raises(TypeError):
        overlap([1], [1]) + 1
    with pytest.raises(TypeError):
        1 + overlap([1], [1])
    with pytest.raises(InputError, match="overlaps is empty"):
        Overlap.total([])


def test_many_overlaps_are_added_in_little_memory(monkeypatch):
    monkeypatch.setattr("probdice.method.overlap.COMPACTION_PAIRS", 4)
    labels = np.random.default_rng(0).integers(0, 9, (50, 20))
    parts = [overlap(row, row % 4) for row in labels]
    assert everything(Overlap.total(parts)) == everything(overlap(labels, labels % 4))


# Without images --------------------------------------------------------------------------------


def test_numbers_that_need_the_pixels_raise_a_named_error():
    soft = overlap(SOFT[:, ::-1], SOFT)
    assert 0 <= soft.compare().score <= 1
    with pytest.raises(ProbdiceError, match="chance level of probabilities requires the images"):
        _ = soft.compare().chance
    with pytest.raises(ProbdiceError, match="explained shares of probabilities require the images"):
        _ = soft.compare().explained
    with pytest.raises(
        ProbdiceError, match="The aitchison score of probabilities requires the images"
    ):
        _ = overlap(SOFT, SOFT, similarity="aitchison").compare().score
    with pytest.raises(ProbdiceError, match="grouping these regions requires the images"):
        overlap(SOFT[:1] * 0 + 1, SOFT).compare(merge="prediction")
    with pytest.raises(ProbdiceError, match="groups of several soft regions require the images"):
        _ = overlap(SOFT, SOFT).compare(match={0: 0, 1: 0}).score
    with pytest.raises(ProbdiceError, match=r"map\(\) requires the images"):
        soft.compare().map()
    text = str(overlap(SOFT, SOFT, similarity="aitchison").compare())
    assert "score: not available without the images" in text


# Files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(6))
def test_an_overlap_is_unchanged_by_file_and_json_round_trips(number, tmp_path):
    found = list(kinds())[number]
    found.save(tmp_path / "overlap.npz")
    assert everything(Overlap.load(tmp_path / "overlap.npz")) == everything(found)
    again = Overlap.from_dict(json.loads(json.dumps(found.to_dict())))
    assert everything(again) == everything(found)
    assert again.to_dict() == found.to_dict()


def test_a_file_has_a_version_and_no_pickle(tmp_path):
    path = tmp_path / "overlap.npz"
    overlap(REFERENCE, SPLIT).save(path)
    with np.load(path, allow_pickle=False) as stored:
        header = json.loads(stored["header"].tobytes())
        assert all(stored[name].dtype.kind in "iufb" for name in stored.files)
    assert header["format"] == 1
    arrays = dict(np.load(path))
    arrays["header"] = np.frombuffer(json.dumps(header | {"format": 9}).encode(), np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(
        FormatError, match=r"overlap\.npz: expected an overlap of format 1, found format 9"
    ):
        Overlap.load(path)


def test_corrupt_files_are_rejected(tmp_path):
    path = tmp_path / "overlap.npz"
    overlap(REFERENCE, SPLIT).save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [b"", b"no file", whole[: len(whole) // 2], whole[:-1], whole[5:]]
    for _ in range(300):
        changed = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            changed[place] = rng.integers(0, 256)
        damaged.append(bytes(changed))
    for content in damaged:
        path.write_bytes(content)
        try:
            Overlap.load(path)
        except FormatError as error:
            assert str(path) in str(error)


@pytest.mark.parametrize("name", ["header", "prediction_keys", "reference_volumes", "rows"])
def test_an_array_that_unpacks_to_more_than_an_overlap_needs_is_rejected(tmp_path, name):
    path = tmp_path / "overlap.npz"
    overlap(REFERENCE, SPLIT).save(path)
    arrays = dict(np.load(path))
    kind = arrays[name].dtype
    np.savez_compressed(path, **arrays | {name: np.full(10**7, 32, kind)})
    with pytest.raises(FormatError, match=rf"overlap\.npz: corrupt file: {name} has \d+ bytes"):
        Overlap.load(path)


def test_a_table_in_which_all_regions_meet_packs_well_and_is_read(tmp_path):
    reference, prediction = (axis.ravel() for axis in np.indices((300, 300)))
    everybody = overlap(reference, prediction)
    everybody.save(tmp_path / "overlap.npz")
    assert (tmp_path / "overlap.npz").stat().st_size < 90_000 * 24 / 60
    assert everything(Overlap.load(tmp_path / "overlap.npz")) == everything(everybody)


def test_files_of_another_kind_are_rejected(tmp_path):
    np.save(tmp_path / "array.npy", np.arange(3))
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    np.savez(tmp_path / "pickle.npz", header=np.array([{}], object))
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("header.npy", "nothing")
    for name in ("array.npy", "other.npz", "pickle.npz", "text.npz", "missing.npz"):
        with pytest.raises(FormatError, match=name):
            Overlap.load(tmp_path / name)


def test_a_file_that_cannot_be_written_is_rejected(tmp_path):
    found = overlap([1], [1])
    with pytest.raises(InputError, match="is a folder"):
        found.save(tmp_path)
    with pytest.raises(FormatError, match=r"cannot be written: No such file"):
        found.save(tmp_path / "missing" / "overlap.npz")
    assert list(tmp_path.iterdir()) == []


def test_compare_on_another_machine_needs_no_pixels(tmp_path):
    overlap(REFERENCE, SPLIT).save(tmp_path / "o.npz")
    code = """
        import sys
        from probdice import Overlap
        print(Overlap.load(sys.argv[1]).compare(merge="both").score)
        assert "numba" not in sys.modules
    """
    out = subprocess.run(
        [sys.executable, "-c", "\n".join(line.strip() for line in code.splitlines()),
         tmp_path / "o.npz"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert out.stdout.strip() == "0.875"


def test_missing_losses_are_rejected():
    content = overlap(SOFT, SOFT[::-1], similarity="aitchison").to_dict()
    content["prediction"]["losses"] = None
    with pytest.raises(InputError, match="its parts are inconsistent"):
        Overlap.from_dict(content)
