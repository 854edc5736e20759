"""Derived regions: unions of labels, crisp and soft, and nested channels."""

from math import isnan

import numpy as np
import pytest
from commands import probdice as command
from pytest import approx

import probdice
from probdice import Aitchison, InputError, Segmentation, compare

EXACT = {"rel": 1e-12, "abs": 1e-12}

# BraTS: whole tumour (WT), tumour core (TC) and enhancing tumour (ET) of labels 1, 2 and 3.
BRATS = {"WT": (1, 2, 3), "TC": (1, 3), "ET": 3}


def toy(seed, shape=(12, 14)):
    """A label map with nested blobs, moved by the seed."""
    rows, columns = np.indices(shape)
    distance = np.hypot(rows - 6 - seed, columns - 7 + 0.5 * seed)
    labels = np.zeros(shape, np.int64)
    for radius, label in ((5.2, 2), (3.4, 1), (1.8, 3)):
        labels[distance < radius] = label
    return labels


def softened(labels, seed, regions=4):
    rng = np.random.default_rng(seed)
    values = (labels == np.arange(regions)[:, None, None]) + 0.3 * rng.random(
        (regions, *labels.shape)
    )
    return values / values.sum(axis=0)


def by_hand(p, q):
    """Dice, Jaccard and volumes of two maps of probabilities."""
    shared, total = np.minimum(p, q).sum(), p.sum() + q.sum()
    return approx([2 * shared / total, shared / np.maximum(p, q).sum(), p.sum(), q.sum()], **EXACT)


def numbers(region):
    return [region.dice, region.jaccard, region.reference_volume, region.prediction_volume]


@pytest.mark.parametrize("similarity", ["absolute", Aitchison(1e-3)])
@pytest.mark.parametrize("kinds", ["crisp", "mixed", "swapped", "soft"])
def test_unions_of_labels_by_hand(kinds, similarity):
    labels = toy(0), toy(1)
    soft = softened(labels[0], 1), softened(labels[1], 2)
    sides = {
        "crisp": labels,
        "mixed": (labels[0], soft[1]),
        "swapped": (soft[0], labels[1]),
        "soft": soft,
    }[kinds]
    result = compare(*sides, match="labels", similarity=similarity)
    derived = result.derived(BRATS)
    for name, members in (("WT", [1, 2, 3]), ("TC", [1, 3]), ("ET", [3])):
        maps = [
            np.isin(side, members).astype(float) if side.ndim == 2 else side[members].sum(axis=0)
            for side in sides
        ]
        assert numbers(derived[name]) == by_hand(*maps), name
    mean = np.mean([region.dice for region in derived])
    assert derived.mean_dice == approx(mean, **EXACT)


def test_values_of_monai():
    monai = pytest.importorskip("monai.metrics")
    torch = pytest.importorskip("torch")
    reference, prediction = toy(0), toy(1)
    channels = [
        torch.tensor(np.stack([np.isin(side, members) for members in ([1, 2, 3], [1, 3], [3])]))
        for side in (prediction, reference)
    ]
    expected = monai.compute_dice(*(side[None].float() for side in channels))[0].tolist()
    derived = compare(reference, prediction, match="labels").derived(BRATS)
    assert [region.dice for region in derived] == approx(expected, abs=1e-6)


def test_values_of_simpleitk():
    sitk = pytest.importorskip("SimpleITK")
    reference, prediction = toy(0), toy(1)
    derived = compare(reference, prediction, match="labels").derived(BRATS)
    for name, members in (("WT", [1, 2, 3]), ("TC", [1, 3]), ("ET", [3])):
        measures = sitk.LabelOverlapMeasuresImageFilter()
        measures.Execute(
            *(
                sitk.GetImageFromArray(np.isin(side, members).astype(np.uint8))
                for side in (reference, prediction)
            )
        )
        assert derived[name].dice == approx(measures.GetDiceCoefficient(1), **EXACT)
        assert derived[name].jaccard == approx(measures.GetJaccardCoefficient(1), **EXACT)


def test_other_matchings_take_the_regions_that_correspond():
    reference, prediction = [0, 0, 1, 1, 2, 2, 3, 3], [9, 9, 5, 5, 6, 6, 7, 9]
    derived = compare(reference, prediction).derived({"all": (1, 2, 3), "inner": (2, 3)})
    assert derived["all"].prediction == (5, 6, 7)
    assert derived["all"].dice == approx(2 * 5 / 11, **EXACT)
    assert derived["inner"].prediction == (6, 7)


def test_a_merged_group_is_inside_or_outside():
    reference, prediction = [0, 0, 0, 1, 1, 2, 3], [0, 0, 0, 5, 5, 5, 7]
    result = compare(reference, prediction, merge="reference")
    assert ((1, 2), (5,)) in [(group.reference, group.prediction) for group in result.groups]
    assert result.derived({"both": (1, 2)})["both"].dice == 1
    with pytest.raises(InputError, match="contains 1 but not 2, and these regions are merged"):
        result.derived({"one": (1, 3)})


def test_names_are_members_too():
    names = {0: "air", 1: "core", 2: "oedema"}
    reference = Segmentation.from_labels([0, 1, 1, 2], names=names)
    prediction = Segmentation.from_labels([0, 10, 20, 20], names={10: "core", 20: "oedema"})
    result = compare(reference, prediction, match="labels")
    assert result.labels_by == "name"
    derived = result.derived({"whole": ("core", "oedema"), "core": 1})
    assert numbers(derived["whole"]) == [1, 1, 3, 3]
    assert derived["core"].prediction == ("core",)
    assert derived["core"].dice == approx(2 / 3, **EXACT)


def test_members_that_a_side_lacks_are_empty_on_that_side():
    result = compare([0, 0, 1, 1], [0, 3, 1, 1], match="labels")
    derived = result.derived({"whole": (1, 3), "three": (3,)})
    assert derived["whole"].dice == approx(4 / 5, **EXACT)
    assert numbers(derived["three"]) == [0, 0, 0, 1]
    named = Segmentation.from_labels([0, 0, 1], names={0: "air", 1: "a", 2: "b"})
    empty = compare(named, named, match="labels").derived({"b": "b"})["b"]
    assert isnan(empty.dice) and isnan(empty.jaccard) and not empty.faint
    with pytest.raises(InputError, match="'x' contains 8, which neither side has"):
        result.derived({"x": (1, 8)})


ORGANS = {0: "background", 1: "liver", 2: "spleen"}


@pytest.mark.parametrize("named", ["reference", "prediction"])
def test_names_that_one_side_has_apply_to_both_sides(named):
    names = {"reference": {}, "prediction": {}} | {named: ORGANS}
    reference = Segmentation.from_labels([0, 0, 1, 1, 2, 2], names=names["reference"])
    prediction = Segmentation.from_labels([0, 0, 1, 1, 1, 2], names=names["prediction"])
    result = compare(reference, prediction, match="labels")
    derived = result.derived({"liver": "liver", "both": ("liver", 2)})
    assert derived.values() == {"liver": 0.8, "both": 1.0}


@pytest.mark.parametrize("is_soft", [False, True])
@pytest.mark.parametrize("member", [2, "spleen"])
def test_a_name_that_only_the_prediction_has_selects_a_region_that_it_misses(member, is_soft):
    labels = np.array([0, 1, 1, 1, 1, 1])
    if is_soft:
        one_hot = (labels == np.arange(3)[:, None]).astype(float)
        prediction = Segmentation.from_probabilities(
            one_hot, labels=[0, 1, 2], names=["background", "liver", "spleen"]
        )
    else:
        prediction = Segmentation.from_labels(labels, names=ORGANS)
    result = compare([0, 1, 1, 2, 2, 2], prediction, match="labels", background=0)
    derived = result.derived({"spleen": member, "both": (1, member)})
    assert derived.values() == {"spleen": 0.0, "both": 1.0}
    assert numbers(derived["spleen"])[2:] == [3, 0]


def test_a_missing_region_does_not_select_a_region_with_its_number_and_another_name():
    reference = Segmentation.from_labels([0, 1, 2], names=ORGANS | {2: "kidney"})
    prediction = Segmentation.from_labels([0, 1, 1], names=ORGANS)
    derived = compare(reference, prediction, match="labels").derived({"spleen": "spleen"})
    assert derived["spleen"].reference == ()
    assert isnan(derived["spleen"].dice)


def test_equal_numbers_with_different_names_are_different_members():
    reference = Segmentation.from_labels([0, 0, 0, 0, 2, 2], names=ORGANS)
    kidney = Segmentation.from_labels([0, 0, 1, 1, 2, 2], names=ORGANS | {1: "kidney"})
    liver = Segmentation.from_labels([0, 0, 5, 5, 2, 2], names={0: "background", 5: "liver"})
    for member in ("liver", 1):
        derived = compare(reference, kidney, match="labels").derived({"liver": member})
        assert derived["liver"].prediction == ()
        assert isnan(derived["liver"].dice)
        derived = compare(reference, liver, match="labels").derived({"liver": member})
        assert derived["liver"].prediction == ("liver",)
        assert derived["liver"].dice == 0


@pytest.mark.parametrize("members", [{}, {"x": ()}, {"x": (1.5,)}, {"x": True}, (1, 2)])
def test_members_are_labels_by_name(members):
    with pytest.raises(InputError, match="derived region"):
        compare([0, 1], [0, 1]).derived(members)


def test_a_softmax_without_the_region_is_faint():
    softmax = np.array([[0.96] * 4, [0.02] * 4, [0.02] * 4])
    derived = compare([0] * 4, softmax, match="labels").derived({"whole": (1, 2)})
    assert derived["whole"].faint
    assert isnan(derived.values()["whole"]) and isnan(derived.mean_dice)


def test_kits_hierarchical_classes():
    """Kidney and masses, masses (tumour and cyst), and tumour, as KiTS evaluates."""
    reference = np.array([0, 1, 1, 1, 2, 2, 3, 0])
    prediction = np.array([0, 1, 1, 2, 2, 1, 3, 3])
    hec = {"kidney and masses": (1, 2, 3), "masses": (2, 3), "tumour": 2}
    derived = compare(reference, prediction, match="labels").derived(hec)
    expected = {"kidney and masses": 2 * 6 / 13, "masses": 2 * 2 / 7, "tumour": 2 * 1 / 4}
    assert derived.values() == approx(expected, **EXACT)


def test_tables_and_json_forms():
    result = compare(toy(0), toy(1), match="labels")
    derived = result.derived(BRATS)
    frame = derived.to_frame()
    assert frame["name"].tolist() == ["WT", "TC", "ET"]
    volumes = [(toy(1) == 3).sum() - (toy(0) == 3).sum()]
    assert frame["volume_difference"].tolist()[-1:] == volumes
    assert derived.to_dict()["TC"]["reference"] == [1, 3]
    assert "Derived regions" in repr(derived)
    with pytest.raises(KeyError):
        _ = derived["other"]


def test_probabilities_need_the_images():
    p = softened(toy(0), 1)
    detached = compare(p, p, match="labels").detach()
    with pytest.raises(InputError, match="derived\\(\\) of probabilities requires the images"):
        detached.derived(BRATS)


# -- nested channels -------------------------------------------------------------------------------


def test_nested_probabilities_become_a_partition():
    whole, core = np.array([0.9, 0.8, 0.1, 0.5]), np.array([0.6, 0.8, 0.0, 0.2])
    nested = Segmentation.from_nested([whole, core], names=["air", "oedema", "core"])
    expected = [1 - whole, whole - core, core]
    np.testing.assert_allclose(nested.array, expected, atol=1e-15)
    result = compare(nested, nested, match="labels")
    derived = result.derived({"whole": ("oedema", "core")})
    assert derived["whole"].reference_volume == approx(whole.sum(), **EXACT)


def test_nested_masks_become_labels():
    masks = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [0, 1, 0, 0]], bool)
    nested = Segmentation.from_nested(masks, labels=[0, 2, 1, 3], names=[None, "a", "b", "c"])
    assert nested.array.tolist() == [1, 3, 2, 0]
    assert dict(nested.names) == {2: "a", 1: "b", 3: "c"}
    assert Segmentation.from_nested(masks.T.astype(int), axis=-1).array.tolist() == [2, 3, 1, 0]


def test_rounding_of_nested_channels_is_accepted_and_others_are_rejected():
    nested = Segmentation.from_nested(np.array([[0.5, 0.2], [0.5004, 0.1]], np.float32))
    assert (nested.array >= 0).all()
    assert compare(nested, nested).score == 1
    with pytest.raises(InputError, match=r"channel 1 is 0.7 and channel 0 is 0.2 at pixel \(1,\)"):
        Segmentation.from_nested([[0.5, 0.2], [0.5, 0.7]])
    with pytest.raises(InputError, match=r"channel 0 is -1.5 at pixel \(0,\)"):
        Segmentation.from_nested([[-1.5, 0.2]])
    with pytest.raises(InputError, match="channel 0 is 2 at pixel"):
        Segmentation.from_nested([[2, 1], [1, 0]])
    with pytest.raises(InputError, match="nan at pixel"):
        Segmentation.from_nested([[np.nan, 0.2]])


def test_nested_labels_for_a_label_map_name_the_other_side(tmp_path):
    np.save(tmp_path / "labels.npy", np.array([0, 1, 2]))
    np.save(tmp_path / "channels.npy", np.array([[0.0, 1, 1], [0, 0, 1]]))
    labels, channels = str(tmp_path / "labels.npy"), str(tmp_path / "channels.npy")
    done = command("compare", labels, channels, "--nested", "0,1,2")
    assert done.returncode == 1
    message = "found one value per pixel, expected nested channels. If only the prediction has"
    assert message in done.stderr
    assert "set --nested prediction:0,1,2." in done.stderr
    done = command("compare", labels, channels, "--nested", "prediction:0,1,2", "--quiet")
    assert (done.returncode, done.stdout) == (0, "1.0000\n")


# -- volumes ---------------------------------------------------------------------------------------


def test_volume_differences_of_groups(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    affine = np.diag([2.0, 2.0, 2.5, 1.0])  # 10 mm³ per voxel
    reference, prediction = np.zeros((2, 4, 4, 4), np.uint8)
    reference[:2, :2, :2], prediction[:2, :2, :3] = 1, 7
    for name, labels in (("reference", reference), ("prediction", prediction)):
        nibabel.save(nibabel.Nifti1Image(labels, affine), tmp_path / f"{name}.nii.gz")
    result = compare(tmp_path / "reference.nii.gz", tmp_path / "prediction.nii.gz")
    group = result.groups[1]
    assert (group.volume_difference, group.relative_volume_difference) == (4, 0.5)
    row = result.to_frame().iloc[1]
    assert (row["reference_ml"], row["prediction_ml"]) == (approx(0.08), approx(0.12))
    assert row["difference_ml"] == approx(0.04)
    lines = result.to_csv().splitlines()
    assert lines[0] == (
        "group,reference,prediction,similarity,dice,jaccard,reference_volume,prediction_volume,"
        "volume_difference,relative_volume_difference,reference_ml,prediction_ml,difference_ml,faint"
    )
    assert lines[2].split(",")[:3] == ["1", "1", "7"]
    assert result.derived({"one": 1}).to_frame()["difference_ml"].tolist() == [approx(0.04)]


def test_a_region_that_the_reference_lacks_has_no_relative_difference():
    result = compare([0, 0, 0, 0], [0, 0, 5, 5])
    invented = result.groups[1]
    assert invented.volume_difference == 2
    assert isnan(invented.relative_volume_difference)
    assert [group["volume_difference"] for group in result.to_dict()["groups"]] == [-2, 2]
    cells = probdice.compare([0, 0, 0, 0], [0, 0, 5, 5]).to_csv().splitlines()[2].split(",")
    assert cells[:3] == ["1", "", "5"]
    assert cells[9:13] == ["", "", "", ""]
