"""Inter-rater agreement per region, ignored labels, and the consensus as a label map."""

import csv
import json

import nibabel
import numpy as np
import pytest
from test_cli_compare import run

import probdice
from probdice import InputError, Segmentation

NAMES = {0: "background", 17: "liver", 53: "spleen"}
# The last voxel is excluded, because ben has the ignored label 255 there.
RATERS = {
    "anna": [0, 17, 17, 53, 0, 17, 53, 53],
    "ben": [0, 17, 53, 53, 0, 0, 53, 255],
    "eva": [0, 0, 17, 53, 17, 17, 53, 53],
}
MAJORITY = [0, 17, 17, 53, 0, 17, 53, 255]
# Worked by hand over the first seven voxels: pairs anna–ben, anna–eva, ben–eva.
DICE = {
    "background": [4 / 5, 2 / 4, 2 / 5],
    "liver": [2 / 4, 4 / 6, 0],
    "spleen": [4 / 5, 1, 4 / 5],
}
VOLUMES = {"background": [2, 3, 2], "liver": [3, 1, 3], "spleen": [2, 3, 2]}  # in voxels of 8 mm³
PAIRS = [("anna", "ben"), ("anna", "eva"), ("ben", "eva")]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "names.tsv").write_text(
        "index\tname\n" + "".join(f"{k}\t{v}\n" for k, v in NAMES.items())
    )
    paths = []
    for name, labels in RATERS.items():
        paths.append(tmp_path / f"{name}.nii.gz")
        image = np.array(labels, np.uint8).reshape(2, 2, 2)
        nibabel.Nifti1Image(image, np.diag([2, 2, 2, 1.0])).to_filename(paths[-1])
    scan = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    nibabel.Nifti1Image(scan, np.diag([2, 2, 2, 1.0])).to_filename(tmp_path / "scan.nii.gz")
    return paths


def options(tmp_path):
    return ("--ignore", "255", "--names", tmp_path / "names.tsv", "--match", "labels")


def test_agree_reports_dice_and_volumes_per_region(files, tmp_path):
    table = tmp_path / "regions.csv"
    done = run("agree", *files, *options(tmp_path), "--csv", table)
    assert done.code == 0, done.err
    assert "3 raters over 7 voxels" in done.out
    lines = [line.split() for line in done.out.splitlines()]
    assert ["liver", "0.3889", "0.0000", "0.024", "/", "0.008", "/", "0.024"] in lines
    assert ["spleen", "0.8667", "0.8000", "0.016", "/", "0.024", "/", "0.016"] in lines
    with table.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 9
    for row in rows:
        pair = PAIRS.index((row["rater"], row["other"]))
        assert float(row["dice"]) == pytest.approx(DICE[row["region"]][pair], abs=1e-12)
        for role in ("rater", "other"):
            volume = VOLUMES[row["region"]][list(RATERS).index(row[role])]
            assert float(row[f"{role}_volume"]) == volume
            assert float(row[f"{role}_ml"]) == pytest.approx(volume * 0.008, abs=1e-12)
    stored = json.loads(run("agree", *files, *options(tmp_path), "--json", "-").out)["regions"]
    assert [one["region"] for one in stored] == list(DICE)
    assert stored[1]["mean_dice"] == pytest.approx((1 / 2 + 2 / 3 + 0) / 3)
    assert stored[1]["lowest_dice"] == 0
    assert stored[1]["volumes_ml"] == pytest.approx([0.024, 0.008, 0.024])


def test_a_label_map_of_the_consensus_is_written_and_evaluated(files, tmp_path):
    for folder in ("reference", "eva", "probabilities"):
        (tmp_path / folder).mkdir()
    target = tmp_path / "reference" / "case.nii.gz"
    done = run("consensus", *files, *options(tmp_path), "-o", target, "--labels")
    assert done.code == 0, done.err
    assert "consensus as a label map" in done.out.replace("\n", " ")
    written = nibabel.load(target)
    assert np.asarray(written.dataobj).reshape(-1).tolist() == MAJORITY
    assert np.array_equal(written.affine, np.diag([2, 2, 2, 1.0]))
    assert dict(probdice.read(target).names) == NAMES
    files[2].rename(tmp_path / "eva" / "case.nii.gz")
    done = run(
        "evaluate", tmp_path / "reference", tmp_path / "eva", "-o", tmp_path / "results",
        "--ignore", "255", "--match", "labels", "--background", "0",
    )  # fmt: skip
    assert done.code == 0, done.err
    with (tmp_path / "results" / "cases.csv").open(newline="", encoding="utf-8") as stream:
        (row,) = csv.DictReader(stream)
    majority, eva = np.array(MAJORITY[:7]), np.array(RATERS["eva"][:7])
    assert float(row["score"]) == pytest.approx(np.mean(majority == eva)) == pytest.approx(5 / 7)
    # background: 1 voxel of 2 and 2 in common; liver: 2 of 3 and 3; spleen: equal
    assert float(row["mean_dice"]) == pytest.approx((2 / 4 + 4 / 6 + 1) / 3)
    assert float(row["foreground_dice"]) == pytest.approx((4 / 6 + 1) / 2)


def test_probabilities_of_the_same_consensus_are_the_shares_of_raters(files, tmp_path):
    target = tmp_path / "consensus.nii.gz"
    assert run("consensus", *files, *options(tmp_path), "-o", target).code == 0
    stored = probdice.read(target)
    assert stored.regions == ("background", "liver", "spleen") and stored.labels == (0, 17, 53)
    votes = np.array(list(RATERS.values()))[:, :7]
    shares = [(votes == label).mean(axis=0) for label in NAMES]
    assert np.allclose(stored.probabilities().reshape(3, 8)[:, :7], shares)


def test_the_report_shows_regions_over_the_image(files, tmp_path):
    page = tmp_path / "page.html"
    scan = tmp_path / "scan.nii.gz"
    for command in ("agree", "consensus"):
        done = run(command, *files, *options(tmp_path), "--report", page, "--image", scan)
        assert done.code == 0, done.err
        text = page.read_text()
        assert "are drawn over the image" in text and "scan.nii.gz" in text
        assert "Lowest Dice" in text and ">0.3889<" in text
    done = run("agree", *files, "--image", scan)
    assert done.code == 2 and "requires --report" in done.message
    np.save(tmp_path / "small.npy", np.zeros((2, 2)))
    done = run("agree", *files, "--report", page, "--image", tmp_path / "small.npy")
    assert done.code == 1 and "small.npy" in done.message


def test_equally_probable_regions_give_the_smallest_label():
    raters = [[53, 17, 0, 53], [17, 17, 53, 53], [0, 53, 17, 53]]
    consensus = probdice.consensus(raters, match="labels")
    assert np.asarray(consensus.label_map().array).tolist() == [0, 17, 0, 53]
    weights = [0.3, 0.1, 0.2]  # 0.1 + 0.2 exceeds 0.3 by a rounding error
    raters = [[1, 1, 2], [2, 1, 2], [2, 2, 1]]
    weighted = probdice.consensus(raters, match="labels", weights=weights)
    assert np.asarray(weighted.label_map().array).tolist() == [1, 1, 2]


def test_regions_without_labels_get_free_labels_in_the_order_of_their_names():
    values = np.array([[0.9, 0.2, 0.1], [0.1, 0.7, 0.1], [0.0, 0.1, 0.8]])
    rater = Segmentation.from_probabilities(
        values, labels=[4, None, None], names=[None, "vein", "artery"]
    )
    labels = probdice.consensus([rater, rater]).label_map()
    assert np.asarray(labels.array).tolist() == [4, 6, 5]
    assert dict(labels.names) == {5: "artery", 6: "vein"}


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (-5, 864691135012345671, np.int64),
        (-5, 200, np.int16),
        (0, 200, np.uint8),
        (7, 2**64 - 1, np.uint64),
    ],
)
def test_label_maps_contain_the_exact_labels(low, high, dtype):
    labels = np.array([high, high, low], np.uint64 if high >= 2**63 else np.int64)
    consensus = probdice.consensus([labels, labels], match="labels")
    array = np.asarray(consensus.label_map().array)
    assert array.dtype == dtype
    assert array.tolist() == [high, high, low]


def test_labels_of_a_consensus_that_no_integer_type_represents_are_rejected():
    raters = [np.array([-5, 3]), np.array([2**63, 3], np.uint64)]
    consensus = probdice.consensus(raters, match="labels")
    with pytest.raises(InputError, match=f"both the labels -5 and {2**63}, because no integer"):
        consensus.label_map()


def test_means_exclude_regions_that_are_likeliest_nowhere():
    # Region 2 has at most 0.2 anywhere in the soft rater, and the label maps lack it.
    soft = [[0.8, 0.8, 0.1, 0.1], [0.1, 0.1, 0.7, 0.8], [0.1, 0.1, 0.2, 0.1]]
    raters = {"soft": np.array(soft), "anna": [0, 0, 1, 1], "ben": [0, 0, 0, 1]}
    agreement = probdice.agreement(raters, match="labels")
    # 0: soft–anna 2·1.6/3.8, soft–ben 2·1.7/4.8, anna–ben 4/5. 1: 2·1.5/3.7, 2·0.8/2.7, 2/3.
    dice = [
        (3.2 / 3.8 + 3.4 / 4.8 + 0.8) / 3,
        (3 / 3.7 + 1.6 / 2.7 + 2 / 3) / 3,
    ]
    assert [region.mean_dice for region in agreement.regions[:2]] == pytest.approx(dice)
    assert agreement.regions[2].faint and np.isnan(agreement.regions[2].mean_dice)
    assert agreement.regions[2].volumes.tolist() == pytest.approx([0.5, 0, 0])
    assert agreement.mean_dice == pytest.approx(np.mean(dice))
    assert agreement.worst_first == (1, 0, 2)
    # IoU of anna and the soft sample: 1.6/2.2 and 1.5/2.2; region 2 is not counted.
    sets = probdice.compare_sets([raters["anna"]], [raters["soft"]], match="labels")
    assert sets.matched_iou == pytest.approx((1.6 / 2.2 + 1.5 / 2.2) / 2)


def test_regions_of_soft_raters_have_the_fuzzy_dice():
    first = np.array([[0.75, 0.25, 0.0], [0.25, 0.75, 1.0]])
    second = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 1.0]])
    regions = probdice.agreement([first, second], match="labels").regions
    # Σ min: 0.5 + 0.25 and 0.25 + 0.5 + 1; volumes 1 and 1, 2 and 2
    assert [region.mean_dice for region in regions] == pytest.approx([2 * 0.75 / 2, 2 * 1.75 / 4])
    assert regions[1].volumes.tolist() == [2, 2]


def test_a_region_of_one_rater_has_dice_0_and_pairs_without_it_do_not_count():
    regions = probdice.agreement([[1, 1, 2], [1, 1, 1], [1, 1, 1]], match="labels").regions
    assert regions[1].label == 2
    assert np.array_equal(
        regions[1].dice, [[1, 0, 0], [0, np.nan, np.nan], [0, np.nan, np.nan]], equal_nan=True
    )
    assert (regions[1].mean_dice, regions[1].lowest_dice) == (0, 0)
    assert regions[0].mean_dice == pytest.approx((4 / 5 + 4 / 5 + 1) / 3)


def test_python_takes_names_and_ignored_labels_from_segmentations(files):
    named = {
        name: probdice.read(file, names=NAMES, ignore=255)
        for name, file in zip(RATERS, files, strict=True)
    }
    agreement = probdice.agreement(named, match="labels", background="background")
    assert agreement.pixels == 7
    assert [region.label for region in agreement.regions] == list(DICE)
    frame = agreement.region_frame()
    liver = frame[frame.region == "liver"]
    assert liver.dice.tolist() == pytest.approx(DICE["liver"])
    assert liver.rater_ml.tolist() == pytest.approx([0.024, 0.024, 0.008])
    labels = probdice.consensus(named, match="labels").label_map()
    assert labels.ignore == (255,)
    assert probdice.compare(labels, files[2], match="labels").pixels == 7


@pytest.mark.parametrize("method", ["mean", "staple"])
def test_ignored_voxels_do_not_change_the_consensus_of_the_others(method):
    whole = {name: Segmentation.from_labels(labels, ignore=255) for name, labels in RATERS.items()}
    part = {name: labels[:7] for name, labels in RATERS.items()}
    first = probdice.consensus(whole, method=method, match="labels")
    second = probdice.consensus(part, method=method, match="labels")
    shares = first.segmentation.probabilities()[:, :7], second.segmentation.probabilities()
    assert np.array_equal(*shares)
    assert [one.accuracy for one in first.raters] == [one.accuracy for one in second.raters]


def test_invalid_options_are_rejected(files, tmp_path):
    done = run("consensus", *files, "--labels")
    assert done.code == 2 and "requires --output FILE" in done.message
    done = run("agree", *files, "--names", f"reference:{tmp_path / 'names.tsv'}")
    assert done.code == 2 and "neither a reference nor a prediction" in done.message
    soft = tmp_path / "soft.npy"
    np.save(soft, np.full((2, 2, 2, 2), 0.5, np.float32))
    done = run("agree", files[0], soft, "--ignore", "255", "--ignore-geometry")
    assert done.code == 1 and "soft.npy" in done.message and "label maps" in done.message
