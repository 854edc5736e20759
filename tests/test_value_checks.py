"""Invalid values are rejected with the side, the pixel and a fix."""

import math

import numpy as np
import pytest

from probdice import InputError, ProbdiceError, Segmentation, compare
from probdice.data.value_checks import scale_of_labels
from probdice.errors import in_command

GOOD = np.full((2, 3, 4), 0.5, np.float32)


def spoilt(index, value, array=GOOD):
    array = array.copy()
    array[index] = value
    return array


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            math.nan,
            r"prediction: found nan at pixel \(1, 2\), expected a finite number. Replace",
        ),
        (math.inf, r"prediction: found inf at pixel \(1, 2\)"),
        (-0.25, r"prediction: probability -0.25 at pixel \(1, 2\) is negative. Use .*from_logits"),
        (1.75, r"prediction: probability 1.75 at pixel \(1, 2\) is above 1"),
        (
            0.25,
            r'sum to 0.75 at pixel \(1, 2\)\. .* pass sums="normalise".*sums="background"',
        ),
    ],
)
def test_a_bad_value_is_reported_with_its_pixel(value, message, dtype):
    with pytest.raises(ProbdiceError, match=message) as caught:
        compare(GOOD.astype(dtype), spoilt((1, 1, 2), value, GOOD.astype(dtype)))
    assert isinstance(caught.value, ValueError)


def test_the_first_and_the_worst_pixel_are_named():
    bad = spoilt((0, 0, 3), 0.4)
    bad[0, 2, 1] = 0.0
    with pytest.raises(
        ProbdiceError,
        match=r"reference: probabilities sum to 0.9 at pixel \(0, 3\) "
        r"\(the first of 2 such pixels\); the worst sum is 0.5 at pixel \(2, 1\)",
    ):
        compare(bad, GOOD)


def test_the_worst_sum_is_not_repeated():
    with pytest.raises(ProbdiceError, match=r"sum to 0.9 at pixel \(0, 0\) .* such pixels\)\. "):
        compare(GOOD * 0.9, GOOD)


def test_the_first_pixel_of_many_blocks_is_named():
    big = np.full((2, 700, 1000), 0.5, np.float32)
    big[0, 650, 3] = big[0, 699, 999] = 0.3
    with pytest.raises(ProbdiceError, match=r"0.8 at pixel \(650, 3\) \(the first of 2"):
        compare(big, np.full((2, 700, 1000), 0.5, np.float32), workers=2)


def test_places_are_in_the_order_of_the_axes_for_any_memory_order():
    bad = np.asfortranarray(spoilt((1, 1, 2), 0.3))
    with pytest.raises(ProbdiceError, match=r"at pixel \(1, 2\)"):
        compare(bad, GOOD)
    last = np.moveaxis(spoilt((1, 1, 2), 0.3), 0, -1)
    with pytest.raises(ProbdiceError, match=r"at pixel \(1, 2\)"):
        compare(Segmentation.from_probabilities(last, axis=-1), GOOD)
    mask = np.ones((3, 4), bool)
    mask[0] = False
    with pytest.raises(ProbdiceError, match=r"at pixel \(1, 2\)"):
        compare(spoilt((1, 1, 2), 0.3), GOOD, mask=mask)


def test_a_negative_zero_is_a_zero():
    p = np.array([[-0.0, 1.0], [1.0, -0.0]], np.float32)
    assert compare(p, [1, 0]).score == 1


def test_sums_within_a_thousandth_pass():
    assert compare(GOOD * np.float32(1.0009), GOOD).score == pytest.approx(1, abs=1e-3)


def test_whole_numbers_are_labels():
    labels = np.array([[0.0, 1.0, 2.0], [3.0, 3.0, 1.0]])
    with pytest.raises(ProbdiceError, match=r"above 1. Use Segmentation.from_labels"):
        compare(labels, labels)
    assert compare(*[Segmentation.from_labels(labels)] * 2).score == 1
    with pytest.raises(ProbdiceError, match=r"sum to 2 at pixel.*from_labels"):
        compare([[1.0, 0.0], [1.0, 1.0]], [0, 1])


@pytest.mark.parametrize(("full", "name"), [(100, "percentages"), (255, "values up to 255")])
def test_the_error_suggests_dividing_percentages_and_bytes(full, name):
    scaled = np.array([[0.9, 0.25], [0.1, 0.75]]) * full
    with pytest.raises(ProbdiceError, match=f"Divide {name} by {full}"):
        compare([0, 1], scaled)
    with pytest.raises(ProbdiceError, match=f"Divide {name} by {full}"):
        compare([0, 1], Segmentation.from_probabilities(scaled, sums="background"))


def test_fractions_are_not_labels():
    fractions = Segmentation.from_labels(np.array([0.0, 1.0, 1.5, 2.5]))
    with pytest.raises(ProbdiceError, match=r"label 1.5 at pixel \(2,\) \(the first of 2"):
        compare(fractions, [0, 1, 1, 2])
    masked = compare(fractions, [0, 1, 1, 2], mask=[True, True, False, False])
    assert masked.score == 1


def test_labels_that_are_nan_can_be_replaced_or_excluded():
    labels = Segmentation.from_labels(np.array([1.0, math.nan, math.nan]))
    with pytest.raises(ProbdiceError, match=r"the first of 2 such pixels.*Replace NaN by a label"):
        compare(labels, [1, 2, 2])


def test_nan_labels_outside_the_mask_are_never_read():
    labels = Segmentation.from_labels(np.array([1.0, 2.0, math.nan]))
    assert compare(labels, [1, 2, 2], mask=[True, True, False]).empty["reference"] == ()


def test_labels_are_of_64_bits():
    with pytest.raises(
        ProbdiceError, match=r"label 1e\+19 at pixel \(1,\) is not a 64-bit whole number"
    ):
        compare(Segmentation.from_labels(np.array([1.0, 1e19])), [1, 2])


def test_only_pixels_of_the_same_kind_are_counted():
    mixed = np.array([[0.5, math.nan, 0.9, 0.9], [0.5, 0.5, 0.5, 0.5]])
    with pytest.raises(ProbdiceError, match=r"found nan at pixel \(1,\), expected"):
        compare(mixed, np.full((2, 4), 0.5))


def test_probabilities_that_sum_to_0_cannot_be_normalised():
    zeros = Segmentation.from_probabilities([[0.5, 0.0], [0.5, 0.0]], sums="normalise")
    with pytest.raises(ProbdiceError, match=r'are 0 at pixel \(1,\).*sums="background"'):
        compare(zeros, [0, 1])


def test_logits_must_be_finite():
    with pytest.raises(ProbdiceError, match=r"prediction: found nan at pixel \(0,\)"):
        compare([0, 1], Segmentation.from_logits([[math.nan, 0.0], [1.0, -1e6]]))


def test_a_foreground_is_between_0_and_1():
    with pytest.raises(ProbdiceError, match=r"probability 1.5 at pixel \(1,\) is above 1"):
        compare([0, 1], Segmentation.from_probabilities([0.2, 1.5], axis=None))
    with pytest.raises(ProbdiceError, match=r"probability -0.5 at pixel \(0,\) is negative"):
        compare([0, 1], Segmentation.from_probabilities([-0.5, 0.5], axis=None))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare(np.zeros((2, 3), int), np.zeros((3, 2), int)), r"\(2, 3\) but .*\(3, 2\)"),
        (lambda: compare(np.zeros((2, 3)), np.zeros((2, 3), int)), r"\(3,\) but.*from_labels"),
        (lambda: compare(GOOD, np.zeros((3, 4), complex)), "prediction: must contain labels"),
        (
            lambda: compare(np.full((3, 4, 2), 0.5), np.zeros((3, 4), int)),
            "seems to be the last axis",
        ),
        (lambda: compare("a.nii.gz", [1]), r"reference: a\.nii\.gz: no such file"),
        (lambda: compare(np.array([None]), [1]), "reference: must contain labels.*found object"),
        (lambda: compare([1, 2], [1, 2], mask=[False, False]), "mask is empty"),
        (lambda: compare([1, 2], [1, 2], mask=[True]), r"mask has shape \(1,\).*shape \(2,\)"),
        (
            lambda: compare([1, 2], [1, 2], mask=[1.0, 0.5]),
            r"mask must contain integers, found 0.5 at pixel \(1,\)\. Use .* as in mask > 0.5",
        ),
        (lambda: compare([1, 2], [1, 2], mask=[1.0, math.inf]), r"found inf at pixel \(1,\)"),
        (lambda: compare([1, 2], [1, 2], mask=["a", "b"]), "mask: expected one mask file, found 2"),
        (lambda: compare(np.zeros((0, 3), int), np.zeros((0, 3), int)), "have no pixels"),
        (
            lambda: compare(Segmentation.from_labels([5, 5], ignore=[5]), [1, 2]),
            r"all pixels of the reference have ignored labels \(5,\)",
        ),
        (
            lambda: compare([1, 2], Segmentation.from_labels([1, 2], ignore=[1])),
            "prediction must not ignore labels",
        ),
        (lambda: compare([1], [1], similarity="dice"), "similarity must be 'absolute'"),
        (lambda: compare([1], [1], merge="all"), "merge must be 'none'"),
        (lambda: compare([1], [1], workers=0), "workers must be a positive integer"),
        (lambda: compare([1], [1], workers="2"), "workers must be a positive integer"),
        (lambda: compare([1, 2], [1, 2], mask=[[True], []]), "an array with rows of equal length"),
        (
            lambda: compare([1], [1], mask=Segmentation.from_probabilities([[1.0]])),
            "mask must be a label map",
        ),
    ],
)
def test_invalid_arguments_are_rejected(call, message):
    with pytest.raises(ProbdiceError, match=message):
        call()


def test_nan_in_a_mask_is_outside_and_a_note():
    result = compare([1, 2, 3], [1, 2, 4], mask=[1.0, 1.0, math.nan])
    assert result.pixels == 2
    assert [(note.kind, str(note)) for note in result.notes] == [
        ("mask", "1 pixel of the mask is NaN and counted as outside the mask.")
    ]
    as_map = Segmentation.from_labels([2.0, math.nan, math.nan])
    notes = compare([1, 2, 3], [1, 2, 4], mask=as_map).notes
    (note,) = (note for note in notes if note.kind == "mask")
    assert str(note) == "2 pixels of the mask are NaN and counted as outside the mask."


def test_masked_arrays_are_rejected_with_the_fix():
    masked = np.ma.array([1, 2, 3], mask=[False, False, True])
    remedy = r"masked array.*array\.data instead, and pass mask=~array\.mask"
    for call, name in (
        (lambda: compare(masked, [1, 2, 3]), "reference: "),
        (lambda: compare([1, 2, 3], masked), "prediction: "),
        (lambda: Segmentation.from_labels(masked), ""),
        (lambda: Segmentation(masked, crisp=True), ""),
        (lambda: Segmentation.from_probabilities(np.ma.array([[1.0]])), ""),
    ):
        with pytest.raises(ProbdiceError, match=name + ".*" + remedy):
            call()
    assert compare(masked.data, [1, 2, 4], mask=~masked.mask).score == 1
    as_mask = np.ma.array([True, True, True], mask=[False, False, True])
    with pytest.raises(ProbdiceError, match=r"^mask: is .* masked array.*mask=array\.filled\(0\)"):
        compare([1, 2, 3], [1, 2, 4], mask=as_mask)
    result = compare([1, 2, 3], [1, 2, 4], mask=as_mask.filled(0))
    assert (result.pixels, result.score) == (2, 1)


def test_every_nonzero_byte_of_a_boolean_is_true():
    odd = np.array([0, 2, 255], np.uint8).view(np.bool_)
    assert compare(odd, [0, 1, 1]).score == 1
    assert compare(odd, [0, 1, 1]).reference_labels == (0, 1)
    assert compare([1, 2, 3], [1, 2, 3], mask=odd).pixels == 2
    one_hot = Segmentation.from_probabilities(np.stack([odd, ~odd]))
    assert compare(one_hot, [0, 1, 1]).score == 1
    assert Segmentation.from_labels(odd).probabilities().tolist() == [[1, 0, 0], [0, 1, 1]]
    many = np.tile(odd, 2**16)  # as many as are counted byte by byte
    assert compare(many, many).reference_labels == (0, 1)
    assert compare(odd[::-1], odd[::-1]).reference_labels == (0, 1)


def test_a_label_to_be_ignored_that_does_not_occur_is_a_note():
    reference = Segmentation.from_labels([1, 2, 255], ignore=(255, 254))
    result = compare(reference, [1, 2, 2])
    assert [(note.kind, str(note)) for note in result.notes] == [
        ("ignore", "The ignored label 254 does not occur in the reference.")
    ]
    assert compare(Segmentation.from_labels([1, 2], ignore=2), [1, 2]).pixels == 1


def test_large_labels_are_not_ignored_by_mistake():
    """2⁶³ − 1 and 2⁶³ are one floating number."""
    reference = Segmentation.from_labels(np.array([2**63 - 1, 5]), ignore=[2**63])
    assert compare(reference, [1, 2]).reference_labels == (5, 2**63 - 1)
    top = Segmentation.from_labels(np.array([2**64 - 1, 5, 2**63], np.uint64), ignore=2**64 - 1)
    assert compare(top, [1, 2, 3]).reference_labels == (5, 2**63)


@pytest.mark.parametrize(("top", "scale"), [(255, 255), (249, 255), (100, 100)])
def test_bytes_that_were_probabilities_are_recognised(top, scale):
    labels = np.arange(top + 1)
    volumes = np.round(2000 / (1 + labels) + 2000 / (1 + top - labels) + 50).astype(int)
    assert scale_of_labels(labels, volumes) == scale
    assert scale_of_labels(labels[::2], volumes[::2]) == (scale if top > 200 else None)


def test_an_atlas_is_not_read_as_8_bit_probabilities():
    rng = np.random.default_rng(0)
    for count in (101, 117, 201, 256):
        assert scale_of_labels(np.arange(count), rng.integers(200, 2000, count)) is None
        assert scale_of_labels(np.arange(count), np.full(count, 50)) is None
    smooth = np.arange(1, 102)
    assert scale_of_labels(np.arange(101) + 1, smooth) is None  # does not start at 0
    assert scale_of_labels(np.arange(101) * 3, smooth) is None  # ends above 255
    assert scale_of_labels(np.r_[np.arange(100), 255], smooth) is None  # with a wide gap


def test_a_map_of_bytes_is_noted():
    values = np.clip(np.round(255 / (1 + np.exp(-np.linspace(-8, 8, 60_000)))), 0, 255)
    labels = values.astype(np.uint8).reshape(200, 300)
    result = compare(labels, labels)
    (note,) = (note for note in result.notes if note.kind == "bytes" and "prediction" in str(note))
    assert str(note) == (
        "The prediction was read as labels but looks like probabilities stored as bytes. "
        "To read probabilities, use read(…, scale=255)."
    )
    assert "--scale prediction:255" in in_command(note.message)


def test_kernels_and_messages_use_the_same_tolerance_of_sums():
    from probdice.data.value_checks import TOLERANCE
    from probdice.engine.kernels import rows

    assert rows.TOLERANCE == TOLERANCE


@pytest.mark.parametrize(
    ("values", "python", "command"),
    [
        (
            [[0.5, -0.25], [0.5, 1.25]],
            "Use Segmentation.from_logits for logits, or clip rounding errors to 0",
            "Clip rounding errors to 0, and store probabilities instead of logits",
        ),
        (
            [[1.0, 3.0], [2.0, 4.0]],
            "Use Segmentation.from_labels if these whole numbers are labels",
            "Store one label per pixel if these whole numbers are labels",
        ),
        (
            [[1.0, 0.0], [0.0, 0.0]],
            'To add the missing probability as a region, pass sums="background" to probdice.read '
            "or Segmentation.from_probabilities. Use Segmentation.from_labels if these whole "
            "numbers are labels",
            "To add the missing probability as a region, pass --sums background. Store one label "
            "per pixel if these whole numbers are labels",
        ),
        (
            [[0.5, 0.5], [0.5, 0.25]],
            'To divide by the sum, pass sums="normalise" to probdice.read or '
            "Segmentation.from_probabilities. To add the missing probability as a region, pass "
            'sums="background"',
            "To divide by the sum, pass --sums normalise. To add the missing probability as a "
            "region, pass --sums background",
        ),
    ],
)
def test_fixes_are_written_for_python_and_for_the_command_line(values, python, command):
    with pytest.raises(InputError) as refused:
        compare(np.array(values), [1, 2])
    assert str(refused.value).endswith(f". {python}.")
    assert refused.value.in_command().endswith(f". {command}.")
    assert "Segmentation" not in refused.value.in_command()


def test_fractional_labels_are_not_only_described_as_percentages():
    foreground = Segmentation.from_probabilities([0.0, 7.0, 1.5, 80.0], axis=None)
    with pytest.raises(InputError, match=r"Divide percentages by 100\. Resample label maps"):
        compare(foreground, [0, 1, 1, 1])


@pytest.mark.parametrize(
    "pair",
    [
        (np.eye(3, dtype=np.uint8)[[0, 1, 2, 1]], np.arange(4)),
        (np.zeros((3, 4)), np.zeros((3, 4), int)),
        (np.full((3, 4, 2), 0.5), np.zeros((3, 4), int)),
    ],
)
def test_hints_on_misread_arrays_use_the_words_of_the_command_line(pair):
    with pytest.raises(InputError, match=r"Segmentation\.from_") as refused:
        compare(*pair)
    assert "Segmentation" not in refused.value.in_command()
    assert "Store" in refused.value.in_command()
