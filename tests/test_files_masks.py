"""Overlapping masks: counting and assigning the shared pixels."""

import nibabel
import numpy as np
import pytest

from probdice import FormatError, InputError, compare, read
from probdice.errors import in_command
from probdice.files import read_mask
from probdice.files.masks import shared_pixels

KIDNEY = np.zeros((4, 4), np.uint8)
KIDNEY[:2] = 1
TUMOUR = np.zeros((4, 4), np.uint8)
TUMOUR[1, :3] = 1
OTHER = np.zeros((4, 4), np.uint8)
OTHER[1:3, 0] = 1


@pytest.fixture(params=[np.uint8, np.bool_, np.float32])
def files(request, tmp_path):
    """Masks of a kidney and a tumour that share three pixels, stored in one of three types."""
    for name, mask in (("kidney", KIDNEY), ("tumour", TUMOUR)):
        np.save(tmp_path / f"{name}.npy", mask.astype(request.param))
    return [tmp_path / "kidney.npy", tmp_path / "tumour.npy"]


def test_overlapping_masks_need_an_option_that_the_message_names(files):
    with pytest.raises(FormatError) as caught:
        read(files)
    error = caught.value
    assert "kidney.npy and 1 more: 3 pixels are in several masks" in str(error)
    assert 'to one region by priority, use priority=("tumour", "kidney")' in str(error)
    assert "to one region by priority, use --priority tumour,kidney" in error.in_command()
    assert "To divide them equally, pass --sums background" in error.in_command()


def test_shared_pixels_are_a_note(files):
    segmentation = read(files, sums="background")
    assert segmentation.probabilities()[:, 1, 0].tolist() == [0.5, 0.5, 0.0]
    note, _ = (n for n in compare(segmentation, segmentation).notes if n.kind == "claimed")
    assert str(note).startswith("reference: 3 pixels are in several masks")
    assert "divided equally" in str(note)
    assert "--priority tumour,kidney" in in_command(note.message)


def test_priority_assigns_shared_pixels(files):
    segmentation = read(files, priority=("tumour", "kidney"))
    assert segmentation.crisp
    assert segmentation.names == {0: "background", 1: "kidney", 2: "tumour"}
    expected = np.where(TUMOUR, 2, np.where(KIDNEY, 1, 0))
    assert np.array_equal(segmentation.array, expected)
    assert np.array_equal(read(files, priority="tumour").array, expected)
    kidney_first = read(files, priority=("kidney", "tumour"))
    assert np.array_equal(kidney_first.array, KIDNEY)
    result = compare(segmentation, segmentation)
    notes = [str(note) for note in result.notes if note.kind == "claimed"]
    assert notes == [
        f"{side}: 3 pixels were in several masks and assigned by priority (tumour, kidney)"
        for side in ("reference", "prediction")
    ]


@pytest.mark.parametrize(
    ("shape", "word"), [((4,), "pixel"), ((2, 2), "pixel"), ((2, 1, 2), "voxel")]
)
def test_messages_about_one_shared_pixel(shape, word, tmp_path):
    for name, mask in (("a", [1, 1, 0, 0]), ("b", [0, 1, 1, 0]), ("c", [0, 0, 0, 1])):
        np.save(tmp_path / f"{name}.npy", np.reshape(mask, shape))
    files = [tmp_path / f"{name}.npy" for name in "abc"]
    text = f"1 {word} is in several masks \\(a, b\\), so its label is ambiguous. To assign it to"
    with pytest.raises(FormatError, match=text):
        read(files)
    (note,) = read(files, sums="background").notes
    assert f"1 {word} is in several masks (a, b) and is divided equally. To assign it" in str(note)
    (note,) = read(files, priority="b").notes
    assert str(note) == f"1 {word} was in several masks and assigned by priority (b)"
    with pytest.raises(InputError, match=f"leaves 1 shared {word} .* names none of its masks"):
        read(files, priority="c")


def test_a_tumour_inside_its_kidney_has_the_dice_of_its_mask(tmp_path):
    moved = np.roll(TUMOUR, 1, axis=1)
    for name, mask in (("kidney", KIDNEY), ("tumour", TUMOUR)):
        np.save(tmp_path / f"a_{name}.npy", mask)
    for name, mask in (("kidney", KIDNEY), ("tumour", moved)):
        np.save(tmp_path / f"b_{name}.npy", mask)
    order = ("tumour", "kidney")
    sides = [read(str(tmp_path / f"{side}_*.npy"), priority=order) for side in "ab"]
    dice = {group.reference: group.dice for group in compare(*sides).groups}
    assert dice["tumour",] == pytest.approx(2 * 2 / 6)
    assert dice["kidney",] == pytest.approx(2 * 4 / 10)


def test_masks_that_do_not_overlap_are_a_label_map_by_priority(tmp_path):
    np.save(tmp_path / "a.npy", np.array([1, 0, 0]))
    np.save(tmp_path / "b.npy", np.array([0, 1, 1]))
    segmentation = read([tmp_path / "a.npy", tmp_path / "b.npy"], priority="a")
    assert segmentation.array.tolist() == [1, 2, 2]
    assert segmentation.names == {1: "a", 2: "b"}
    assert segmentation.notes == ()


def test_shared_pixels_that_priority_does_not_decide_are_rejected(tmp_path):
    for name, mask in (("kidney", KIDNEY), ("tumour", TUMOUR), ("other", OTHER)):
        np.save(tmp_path / f"{name}.npy", mask)
    files = [tmp_path / f"{name}.npy" for name in ("kidney", "tumour", "other")]
    assert read(files, priority=("tumour", "other")).array[1].tolist() == [2, 2, 2, 1]
    assert read(files, priority="tumour").array[1].tolist() == [2, 2, 2, 1]
    with pytest.raises(
        InputError, match=r"leaves 2 shared pixels unassigned, because it names none of their masks"
    ):
        read(files, priority="other")
    with pytest.raises(InputError, match="names cyst, but the regions are kidney, tumour, other"):
        read(files, priority=("cyst",))
    with pytest.raises(InputError, match="priority must not repeat a name"):
        read(files, priority=("tumour", "tumour"))
    with pytest.raises(InputError, match="priority must be names of regions"):
        read(files, priority=3)


def test_priority_is_for_masks(tmp_path):
    for k in range(2):
        np.save(tmp_path / f"p_{k}.npy", np.full(3, 0.5))
    np.save(tmp_path / "both.npy", np.full((2, 3), 0.5))
    np.save(tmp_path / "labels.npy", np.array([0, 1, 2]))
    for path in (str(tmp_path / "p_*.npy"), tmp_path / "both.npy"):
        with pytest.raises(
            InputError, match=r"applies only to masks of 0 and 1, but the input contains 0\.5"
        ):
            read(path, priority=("0", "1"))
    assert read(tmp_path / "labels.npy", priority="0").array.tolist() == [0, 1, 2]


def test_shared_pixels_are_counted_and_the_smallest_mask_comes_first():
    shared = shared_pixels(
        [KIDNEY, TUMOUR, OTHER, np.zeros_like(KIDNEY)], ["k", "t", "o", "none"], None
    )
    assert (shared.pixels, shared.names) == (3, ("o", "t", "k"))


def test_a_mask_with_several_channels_is_an_error(tmp_path):
    nibabel.save(
        nibabel.Nifti1Image(np.ones((2, 2, 2, 3), np.uint8), np.eye(4)), tmp_path / "mask.nii"
    )
    with pytest.raises(FormatError, match=r"mask\.nii: contains 3 values per voxel"):
        read_mask(tmp_path / "mask.nii")
