"""A region has a number, a name, or both, and keeps them in all results."""

import numpy as np
import pytest

import probdice
from probdice import Comparison, InputError, Overlap, Segmentation

SOFT = np.array([[1.0, 0.5, 0.0, 0.0], [0.0, 0.5, 0.75, 1.0], [0.0, 0.0, 0.25, 0.0]])


def both() -> Segmentation:
    return Segmentation.from_probabilities(SOFT, labels=[0, 17, 53], names=[None, "liver", "cyst"])


def test_channels_have_numbers_names_or_both() -> None:
    assert Segmentation.from_probabilities(SOFT).labels == (0, 1, 2)
    named = Segmentation.from_probabilities(SOFT, names=["air", "liver", "cyst"])
    assert (named.labels, named.regions) == ((None,) * 3, ("air", "liver", "cyst"))
    mixed = Segmentation.from_probabilities(SOFT, names=["air", 17, 53])
    assert (mixed.labels, dict(mixed.names)) == ((None, 17, 53), {0: "air"})
    assert (both().labels, both().regions) == ((0, 17, 53), (0, "liver", "cyst"))
    background = Segmentation.from_probabilities(SOFT, labels=[1, 2, 3], sums="background")
    assert background.labels == (1, 2, 3, None)
    assert background.regions == (1, 2, 3, "background")


@pytest.mark.parametrize("make", ["from_probabilities", "from_logits", "from_ilr"])
def test_every_constructor_accepts_labels_and_names(make: str) -> None:
    values = SOFT[:2] if make == "from_ilr" else SOFT
    made = getattr(Segmentation, make)(values, labels=[4, 5, 6], names=["a", "b", "b"])
    assert made.labels == (4, 5, 6)
    assert made.regions == ("a", "b (5)", "b (6)")


def test_names_must_be_strings_if_labels_are_given() -> None:
    with pytest.raises(InputError, match="names must be strings if labels are given, found 3"):
        Segmentation.from_probabilities(SOFT, labels=[1, 2, 3], names=["a", 3, "b"])
    with pytest.raises(InputError, match="labels must be a list of 3 labels, one per region"):
        Segmentation.from_probabilities(SOFT, labels=[1, 2])
    with pytest.raises(InputError, match="regions must differ, found 'a' twice"):
        Segmentation.from_probabilities(SOFT, names=["a", "a", "b"])


def test_regions_that_share_a_name_are_shown_with_their_number() -> None:
    labels = Segmentation.from_labels([1, 2, 3, 4], names={2: "mass", 3: "mass", 4: "mass (2)"})
    result = probdice.compare(labels, labels)
    assert result.reference_labels == (1, "mass (2)", "mass (3)", "mass (2) (4)")
    assert result.overlap.reference.name(1) == "mass"
    two = Segmentation.from_labels([1, 2, 3, 4], names={2: "mass", 3: "mass"})
    assert probdice.compare(two, two).reference_labels == (1, "mass (2)", "mass (3)", 4)


def test_numbers_and_names_stay_in_sums_files_and_json(tmp_path) -> None:
    overlap = probdice.overlap([0, 0, 17, 17], both())
    overlap.save(tmp_path / "a.npz")
    result = overlap.compare()
    for found in (
        overlap + overlap,
        Overlap.load(tmp_path / "a.npz"),
        Overlap.from_dict(overlap.to_dict()),
        Comparison.from_json(result.to_json()).overlap,
    ):
        regions = found.prediction
        assert [regions.number(k) for k in range(3)] == [0, 17, 53]
        assert [regions.name(k) for k in range(3)] == [None, "liver", "cyst"]
        assert regions.labels == (0, "liver", "cyst")
    other = Segmentation.from_probabilities(SOFT, labels=[0, 1, 2], names=[None, "liver", "cyst"])
    with pytest.raises(InputError, match="probabilities with different regions cannot be added"):
        overlap + probdice.overlap([0, 0, 17, 17], other)
    with pytest.raises(InputError, match="images must all be label maps, or probabilistic"):
        Segmentation.concatenate([both(), other])
    together = Segmentation.concatenate([both(), both()])
    assert (together.labels, together.regions) == (both().labels, both().regions)


def test_an_overlap_of_an_older_version_has_the_labels_that_it_had() -> None:
    content = {
        "format": 1,
        "similarity": {"name": "absolute", "floor": 0.0},
        "pixels": 4,
        "reference": {
            "crisp": True,
            "keys": [0, 17],
            "volumes": [2, 2],
            "names": [[17, "liver"]],
            "losses": None,
            "colours": [],
        },
        "prediction": {
            "crisp": False,
            "keys": [0, 1, 2],
            "volumes": [1.5, 2.25, 0.25],
            "names": [[0, "liver"], [1, 17]],
            "losses": None,
            "colours": [],
        },
        "rows": [0, 0, 1, 1],
        "columns": [0, 1, 1, 2],
        "savings": [1.5, 0.5, 1.75, 0.25],
    }
    overlap = Overlap.from_dict(content)
    assert overlap.reference.labels == (0, "liver")
    assert overlap.prediction.labels == ("liver", 17, 2)
    assert [overlap.prediction.number(k) for k in range(3)] == [None, 17, 2]
    assert overlap.compare().score == pytest.approx((1.5 + 1.75) / 4)


def test_a_relabelled_prediction_has_the_numbers_and_names_of_the_reference() -> None:
    reference = Segmentation.from_labels([0, 0, 17, 17], names={17: "liver"})
    soft = Segmentation.from_probabilities(SOFT, labels=[17, 3, 4], names=["x", "y", "z"])
    found = probdice.compare(reference, soft).relabelled()
    assert found.labels == (0, 17, 4)
    assert found.regions == (0, "liver", "z (unmatched)")
    crisp = Segmentation.from_labels([17, 4, 3, 3])
    found = probdice.compare(both(), crisp).relabelled()
    assert np.asarray(found.array).tolist() == [0, 4, 17, 17]
    assert dict(found.names) == {17: "liver", 4: "4 (unmatched)"}


def test_npz_files_keep_numbers_and_names(tmp_path) -> None:
    probdice.write(tmp_path / "a.npz", both())
    found = probdice.read(tmp_path / "a.npz")
    assert (found.labels, dict(found.names)) == (both().labels, dict(both().names))
    np.savez(tmp_path / "old.npz", regions=SOFT, names=np.array(["0", "liver", "53"]))
    old = probdice.read(tmp_path / "old.npz")
    assert (old.labels, dict(old.names)) == ((0, None, 53), {1: "liver"})


def test_channels_of_a_file_without_labels_have_none(tmp_path) -> None:
    np.save(tmp_path / "a.npy", SOFT)
    found = probdice.read(tmp_path / "a.npy")
    assert (found.labels, found.regions) == ((None,) * 3, (0, 1, 2))
    named = probdice.read(tmp_path / "a.npy", names={0: "air", 1: "liver", 2: "cyst"})
    assert (named.labels, named.regions) == ((0, 1, 2), ("air", "liver", "cyst"))
