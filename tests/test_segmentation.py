"""Creating segmentations: arrays are not copied, and invalid structure is rejected at once."""

import numpy as np
import pytest

import probdice
from probdice import Geometry, InputError, ProbdiceError, Segmentation, compare
from probdice.data.lazy_arrays import Stacked, reordered
from probdice.method.similarity import ilr_basis


def test_arrays_are_kept_as_they_are():
    labels = np.zeros((4, 5), np.int16)
    assert Segmentation.from_labels(labels).array is labels
    probabilities = np.full((2, 4, 5), 0.5, np.float16)
    assert Segmentation.from_probabilities(probabilities).array is probabilities
    last = np.moveaxis(probabilities, 0, -1)
    moved = Segmentation.from_probabilities(last, axis=-1).array
    assert np.shares_memory(moved, probabilities)
    assert moved.shape == (2, 4, 5)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_regions_may_be_along_any_axis(axis):
    p = np.random.default_rng(0).dirichlet(np.ones(3), (4, 5))
    array = np.moveaxis(p, -1, axis)
    segmentation = Segmentation.from_probabilities(array, axis=axis)
    assert segmentation.shape == (4, 5)
    assert compare(segmentation, np.moveaxis(p, -1, 0), match="labels").score == 1


@pytest.mark.parametrize(
    "dtype", ["bool", "u1", "i1", "u2", ">i2", "i4", ">u4", "i8", "u8", ">i8", "f2", "f4", ">f8"]
)
def test_labels_of_any_type_and_byte_order(dtype):
    labels = np.array([[0, 1, 1], [1, 0, 0]]).astype(dtype)
    result = compare(Segmentation.from_labels(labels), [[0, 1, 1], [1, 1, 0]])
    assert result.reference_labels == (0, 1)
    assert result.score == pytest.approx(5 / 6)


def test_labels_may_be_negative_gapped_and_huge():
    labels = np.array([-5, 500_000_000, 500_000_000, 7, -(2**62)])
    result = compare(labels, [3, 1, 1, 2, 0])
    assert result.score == 1
    assert result.reference_labels == (-(2**62), -5, 7, 500_000_000)
    top = np.array([2**64 - 1, 0], np.uint64)
    assert compare(top, [0, 1]).reference_labels == (0, 2**64 - 1)


@pytest.mark.parametrize("dtype", ["i1", "i4"])
def test_negative_labels_are_in_ascending_order(dtype):
    result = compare(np.array([-1, 3, -128, 127], dtype), np.array([0, 1, 2, 3], dtype))
    assert result.reference_labels == (-128, -1, 3, 127)


def test_a_label_map_is_its_one_hot_probabilities():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, 200), rng.integers(0, 3, 200)
    one_hot_a = np.stack([a == k for k in range(4)])
    one_hot_b = np.stack([b == k for k in range(3)]).astype(np.float32)
    expected = compare(a, b)
    for reference, prediction in (
        (Segmentation.from_probabilities(one_hot_a), b),
        (a, one_hot_b),
        (Segmentation.from_probabilities(one_hot_a.astype(np.uint8)), one_hot_b),
    ):
        result = compare(reference, prediction)
        assert result.score == pytest.approx(expected.score, abs=1e-12)
        np.testing.assert_allclose(result.weights, expected.weights, atol=1e-12)


def test_a_single_foreground_has_a_complement():
    foreground = np.array([0.9, 0.2, 0.5])
    segmentation = Segmentation.from_probabilities(foreground, axis=None)
    assert segmentation.regions == (0, 1)
    assert compare(segmentation, np.stack([1 - foreground, foreground]), match="labels").score == 1


def test_a_background_gets_the_missing_probability():
    p = np.array([[0.5, 0.0, 0.7], [0.3, 0.0, 0.7]])
    segmentation = Segmentation.from_probabilities(p, names=["grey", "white"], sums="background")
    expected = np.array([[0.5, 0, 0.5], [0.3, 0, 0.5], [0.2, 1, 0]])
    assert segmentation.regions == ("grey", "white", "background")
    result = compare(segmentation, expected)
    assert result.score == pytest.approx(1, abs=1e-15)
    assert result.weights[2] == pytest.approx([0.4, 0.3, 0.3 * 0], abs=0.5)


def test_less_than_a_millionth_missing_is_rounding():
    p = np.array([[1 - 5e-7, 0.5], [0.0, 0.5]])
    segmentation = Segmentation.from_probabilities(p, sums="background")
    assert compare(segmentation, [0, 1]).empty["reference"] == ("background",)


def test_probabilities_are_divided_by_their_sums():
    p = np.array([[0.5, 1.004], [0.3, 0.0]])
    segmentation = Segmentation.from_probabilities(p, sums="normalise")
    assert compare(segmentation, [[0.625, 1], [0.375, 0]], match="labels").score == 1


def test_logits_are_never_certain():
    logits = np.array([[0.0, 1000.0], [0.0, -1000.0]], np.float32)
    segmentation = Segmentation.from_logits(logits)
    result = compare(segmentation, [[0.5, 0.5], [0.5, 0.5]], match="labels", similarity="aitchison")
    assert 0.5 < result.score < 0.52
    axis_last = Segmentation.from_logits(logits.T, axis=1)
    assert compare(segmentation, axis_last, match="labels").score == 1


def test_any_number_of_spatial_dimensions():
    for shape in ((), (7,), (3, 4), (2, 3, 4), (2, 1, 3, 4)):
        p = np.random.default_rng(0).dirichlet(np.ones(3), shape)
        result = compare(np.moveaxis(p, -1, 0), np.moveaxis(p, -1, 0))
        assert result.score == 1
        assert result.map().shape == shape


def test_plain_lists_are_arrays():
    assert compare([0, 1], [[1.0, 0.0], [0.0, 1.0]]).score == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Segmentation.from_labels(np.zeros(3, complex)), "64 bits, found complex128"),
        (lambda: Segmentation.from_labels(np.array(["a"])), "64 bits, found <U1"),
        (lambda: Segmentation.from_probabilities(np.zeros((2, 3), object)), "found object"),
        (lambda: Segmentation.from_probabilities(np.zeros((0, 3))), "no regions: axis 0"),
        (lambda: Segmentation.from_probabilities(np.zeros((2, 3)), axis=2), "have no axis 2"),
        (
            lambda: Segmentation.from_probabilities(np.zeros((2, 3)), names=["a"]),
            "names must be a list of 2 names",
        ),
        (
            lambda: Segmentation.from_probabilities(np.zeros((2, 3)), names=["a", "a"]),
            "'a' twice",
        ),
        (
            lambda: Segmentation.from_probabilities(np.zeros((1, 3)), sums="ignore"),
            "sums must be 'error', 'normalise' or 'background'",
        ),
        (
            lambda: Segmentation.from_probabilities(
                np.zeros((1, 3)), names=["background"], sums="background"
            ),
            "'background' twice",
        ),
        (
            lambda: Segmentation.from_probabilities(np.zeros(3), axis=None, sums="normalise"),
            "cannot be combined with axis=None",
        ),
        (lambda: Segmentation.from_logits(np.zeros((2, 3), int)), "logits must be floating"),
        (
            lambda: Segmentation.from_labels([1, 2], geometry=Geometry((3,), np.eye(2))),
            r"shape \(3,\), but the image has shape \(2,\)",
        ),
        (lambda: Segmentation.from_labels([[1, 2], [3]]), "an array with rows of equal length"),
        (lambda: Segmentation.from_labels([1], ignore=["a"]), "ignore: expected whole numbers"),
        (lambda: Segmentation.from_labels([1], ignore=[1.5]), r"whole numbers, found 1\.5"),
        (lambda: Segmentation.from_labels([1], names={"x": "a"}), "names: expected whole numbers"),
        (
            lambda: Segmentation.from_probabilities(np.ones((1, 2)), axis="x"),
            "axis: expected whole numbers",
        ),
        (
            lambda: Segmentation.from_probabilities(np.ones((2, 2)), names=[1.2, 1.7]),
            r"names: expected whole numbers, found 1\.2",
        ),
        (
            lambda: Segmentation.from_probabilities(np.ones((2, 2)), names={0: "a", 1: "b"}),
            "names must be a list of 2 names",
        ),
        (lambda: Geometry((2, 2), np.eye(4)), "must be 3 × 3"),
        (lambda: Geometry((2, 2), np.diag([1, 0, 1])), "must be finite and invertible"),
    ],
)
def test_structure_is_checked_at_once(make, message):
    with pytest.raises(ProbdiceError, match=message) as caught:
        make()
    assert isinstance(caught.value, ValueError)


# Geometry --------------------------------------------------------------------------------------


def turned(labels, affine, order, flips):
    """The same image with its axes stored in another order and direction."""
    shape = labels.shape
    permutation = np.zeros((4, 4))
    permutation[3, 3] = 1
    for new, old in enumerate(order):
        permutation[old, new] = -1 if new in flips else 1
        permutation[old, 3] = shape[old] - 1 if new in flips else 0
    array = np.flip(labels.transpose(order), flips)
    return Segmentation.from_labels(array, geometry=Geometry(array.shape, affine @ permutation))


AFFINE = np.array([[0.9, 0.1, 0, -30], [-0.1, 0.9, 0.2, 12], [0, -0.2, 2.0, 7], [0, 0, 0, 1.0]])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 0, 2)])
@pytest.mark.parametrize("flips", [(), (0,), (1, 2), (0, 1, 2)])
def test_axes_are_brought_into_the_reference_order(order, flips):
    labels = np.random.default_rng(0).integers(0, 9, (4, 5, 6))
    reference = Segmentation.from_labels(labels, geometry=Geometry(labels.shape, AFFINE))
    prediction = turned(labels, AFFINE, order, flips)
    assert compare(reference, prediction, match="labels").score == 1
    assert np.array_equal(prediction.onto(reference.geometry).array, labels)


@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda a: a @ np.diag([1 + 1e-7, 1, 1, 1]), True),
        (lambda a: a + 0.09 * np.outer(a[:, 0], [0, 0, 0, 1]), True),
        (lambda a: a + 0.2 * np.outer(a[:, 0], [0, 0, 0, 1]), False),
        (lambda a: a @ np.diag([1, 1.1, 1, 1]), False),
        (lambda a: a @ np.diag([1, 1, -1, 1]), False),
    ],
)
def test_grids_are_the_same_to_a_tenth_of_a_pixel(change, same, scale):
    affine = np.diag([scale, scale, scale, 1]) @ AFFINE
    labels = np.random.default_rng(0).integers(0, 3, (4, 5, 6))
    reference = Segmentation.from_labels(labels, geometry=Geometry(labels.shape, affine))
    moved = Segmentation.from_labels(labels, geometry=Geometry(labels.shape, change(affine)))
    if same:
        assert compare(reference, moved).score == 1
    else:
        with pytest.raises(ProbdiceError, match=r"(?s)not lie on the same grid.*spacing.*origin"):
            compare(reference, moved)


def test_one_side_without_geometry_is_rejected_unless_it_is_dropped():
    here = Segmentation.from_labels([[1, 2]], geometry=Geometry((1, 2), np.eye(3)))
    with pytest.raises(ProbdiceError, match="prediction has no geometry"):
        compare(here, [[1, 2]])
    with pytest.raises(ProbdiceError, match="reference has no geometry"):
        compare([[1, 2]], here)
    assert compare(here.without_geometry(), [[1, 2]]).score == 1


def test_lazy_arrays_are_reordered_in_blocks():
    class Sliced:
        def __init__(self, array):
            self.inner, self.shape, self.dtype = array, array.shape, array.dtype

        def __getitem__(self, index):
            assert all(isinstance(part, slice) for part in index)
            return self.inner[index]

    labels = np.random.default_rng(0).integers(0, 9, (4, 5, 6))
    reference = Segmentation.from_labels(labels, geometry=Geometry(labels.shape, AFFINE))
    prediction = turned(labels, AFFINE, (2, 0, 1), (0, 2))
    lazy = Segmentation.from_labels(
        Sliced(np.ascontiguousarray(prediction.array)), geometry=prediction.geometry
    )
    assert compare(reference, lazy, match="labels").score == 1


@pytest.mark.parametrize(
    "index",
    [
        1,
        -1,
        (slice(None), 2),
        (..., slice(None, None, 2)),
        (slice(None), slice(None), slice(None, None, -1)),
        (0, slice(4, 0, -3), slice(5, 2)),
        (slice(None), ..., -5),
    ],
)
def test_lazy_arrays_are_indexed_like_numpy_arrays(index):
    values = np.random.default_rng(0).random((2, 5, 6))
    stacked = Stacked(list(values))
    flipped = reordered(stacked, (1, 0), (0,), first=1)
    np.testing.assert_array_equal(stacked[index], values[index])
    expected = np.flip(values.transpose(0, 2, 1), 1)
    np.testing.assert_array_equal(flipped[index], expected[index])
    assert len(stacked) == 2
    np.testing.assert_array_equal(list(stacked), values)


@pytest.mark.parametrize("index", [2, -3, (0, 5), (0, 0, 0, 0)])
def test_an_index_outside_a_lazy_array_is_an_error(index):
    with pytest.raises(IndexError):
        Stacked(list(np.zeros((2, 5, 6))))[index]


def test_the_mask_must_be_on_the_same_grid():
    labels = np.random.default_rng(0).integers(0, 3, (4, 5, 6))
    reference = Segmentation.from_labels(labels, geometry=Geometry(labels.shape, AFFINE))
    mask = (labels > 0).astype(np.uint8)
    turned_mask = turned(mask, AFFINE, (1, 0, 2), (0,))
    assert compare(reference, reference, mask=turned_mask).pixels == mask.sum()
    shifted = Segmentation.from_labels(mask, geometry=Geometry(mask.shape, AFFINE * 1.5))
    with pytest.raises(ProbdiceError, match="mask and reference do not lie on the same grid"):
        compare(reference, reference, mask=shifted)
    with pytest.raises(ProbdiceError, match="mask has no geometry"):
        compare(reference, reference, mask=Segmentation.from_labels(mask))
    assert compare(reference, reference, mask=mask).pixels == mask.sum()


def test_a_background_is_found_in_float64():
    rng = np.random.default_rng(0)
    many = rng.gamma(1, size=(1000, 300))
    many = (many / many.sum(axis=0)).astype(np.float32)
    segmentation = Segmentation.from_probabilities(many, sums="background")
    assert compare(segmentation, many, match="labels").empty["reference"] == ("background",)
    missing = 10 ** rng.uniform(-5.5, -2, 500)
    p = (rng.dirichlet([1, 1], 500).T * (1 - missing)).astype(np.float32)
    exact = Segmentation.from_probabilities(p.astype(np.float64), sums="background")
    q = rng.dirichlet([1, 1, 1], 500).T
    scores = [
        compare(
            side, Segmentation.from_probabilities(q, names=side.regions), match="labels",
            similarity="aitchison",
        ).score
        for side in (Segmentation.from_probabilities(p, sums="background"), exact)
    ]  # fmt: skip
    assert scores[0] == pytest.approx(scores[1], abs=5e-6)


def test_one_ignored_label_needs_no_list():
    assert Segmentation.from_labels([1, 255], ignore=255).ignore == (255,)


def test_blocks_without_labels_add_no_label(monkeypatch):
    monkeypatch.setattr("probdice.engine.blocks.BLOCK_BYTES", 8)
    monkeypatch.setattr("probdice.engine.blocks.MIN_BLOCK_PIXELS", 1)
    labels = np.array([5.0, 5.0, 7.0, np.nan, np.nan, np.nan, np.nan])
    mask = ~np.isnan(labels)
    result = compare([1, 1, 2, 2, 2, 2, 2], Segmentation.from_labels(labels), mask=mask)
    assert result.empty == {"reference": (), "prediction": ()}
    assert np.asarray(result.relabelled().array)[mask].tolist() == [1, 1, 2]


# The constructor -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Segmentation(np.zeros(2, complex), crisp=True), "labels must be whole numbers"),
        (
            lambda: Segmentation([1, 2], crisp=True, labels=(1,)),
            "labels and reading do not apply to a label map",
        ),
        (
            lambda: Segmentation([1, 2], crisp=True, reading="softmax"),
            "labels and reading do not apply to a label map",
        ),
        (lambda: Segmentation([1, 2], crisp=True, names=["a"]), "names must be a mapping"),
        (lambda: Segmentation([1, 2], crisp=True, ignore=1.5), "ignore: expected whole numbers"),
        (lambda: Segmentation([1, 2], crisp=True, geometry="here"), "geometry must be a Geometry"),
        (lambda: Segmentation([[1.0]], crisp=False), "labels must be a list of 1 labels"),
        (lambda: Segmentation([[1.0]], crisp=False, labels=(1.5,)), "labels: expected whole"),
        (lambda: Segmentation([[1.0]] * 2, crisp=False, labels=(0, 0)), "found 0 twice"),
        (
            lambda: Segmentation([[1.0]] * 2, crisp=False, labels=(3, 3), names={0: "a", 1: "b"}),
            "found 3 twice",
        ),
        (
            lambda: Segmentation([[1.0]] * 2, crisp=False, labels=(0, 1), names={2: "a"}),
            "keys of names must be channel indices from 0 to 1",
        ),
        (lambda: Segmentation([[1.0]], crisp=False, labels=(0,), reading="sum"), "reading must"),
        (lambda: Segmentation([[1.0]], crisp=False, labels=(0,), ignore=(1,)), "use from_labels"),
        (lambda: Segmentation([[1]], crisp=False, labels=(0,), reading="softmax"), "floating"),
        (lambda: Segmentation(1.0, crisp=False, labels=(0,)), "found a single number"),
        (
            lambda: Segmentation([[1.0]], crisp=False, labels=(0,), reading="background"),
            "labels must be a list of 2 labels",
        ),
    ],
)
def test_the_constructor_checks_its_arguments(make, message):
    with pytest.raises(ProbdiceError, match=message):
        make()


def test_the_constructor_accepts_the_arguments_of_the_class_methods():
    assert Segmentation([1, 2], crisp=True, ignore=2).ignore == (2,)
    soft = Segmentation([[1.0], [0.0]], crisp=False, labels=[None, 1], names={0: "a"})
    assert soft.regions == ("a", 1)
    assert Segmentation(0.5, crisp=False, labels=(0, 1), reading="foreground").shape == ()


def test_both_spellings_of_normalise():
    p = np.array([[0.5, 0.2], [0.3, 0.2]])
    both = [Segmentation.from_probabilities(p, sums=sums) for sums in ("normalise", "normalize")]
    assert both[0].reading == both[1].reading == "normalise"
    assert both[1].probabilities().sum(axis=0) == pytest.approx([1, 1])
    assert repr(both[1]).endswith("sums='normalise')")


def test_names_that_read_the_same_are_one():
    with pytest.raises(ProbdiceError, match="regions must differ, found '0' twice"):
        Segmentation.from_probabilities(np.ones((2, 3)) / 2, names=[0, "0"])


# Probabilities and concatenation ---------------------------------------------------------------


def test_probabilities_as_they_are_compared():
    p = np.array([[0.5, 0.0], [0.25, 0.0]], np.float32)
    assert Segmentation.from_probabilities(p, sums="background").probabilities().tolist() == [
        [0.5, 0],
        [0.25, 0],
        [0.25, 1],
    ]
    foreground = Segmentation.from_probabilities([[0.25, 1.0]], axis=None)
    assert foreground.probabilities().tolist() == [[[0.75, 0]], [[0.25, 1]]]
    logits = Segmentation.from_logits(np.zeros((4, 2, 3)))
    assert logits.probabilities().tolist() == np.full((4, 2, 3), 0.25).tolist()
    labels = Segmentation.from_labels([[3.0, 1.0], [1.0, 1.0]])
    assert labels.probabilities().tolist() == [[[0, 1], [1, 1]], [[1, 0], [0, 0]]]
    for bad in (Segmentation.from_labels([0.5]), Segmentation.from_probabilities([[0.5]])):
        with pytest.raises(ProbdiceError, match=r"at pixel \(0,\)"):
            bad.probabilities()


def test_images_of_any_shape_become_one():
    images = [Segmentation.from_labels(np.full(shape, k)) for k, shape in enumerate([(2, 3), (4,)])]
    assert Segmentation.concatenate(images).array.tolist() == [0] * 6 + [1] * 4
    soft = [Segmentation.from_probabilities(np.full((2, *shape), 0.5)) for shape in ((2, 3), (4,))]
    assert Segmentation.concatenate(soft).shape == (10,)
    foreground = [Segmentation.from_probabilities(np.ones(n), axis=None) for n in (2, 3)]
    assert Segmentation.concatenate(foreground).shape == (5,)
    geometry = Geometry((1,), np.eye(2))
    assert (
        Segmentation.concatenate([Segmentation.from_labels([1], geometry=geometry)]).geometry
        is None
    )
    for wrong, message in (
        ([], "images is empty"),
        ([images[0], soft[0]], "images must all be label maps, or probabilistic"),
        ([images[0], Segmentation.from_labels([1], ignore=1)], "ignore the same labels"),
        ([images[0], Segmentation.from_labels([1], names={1: "a"})], "must have the same names"),
    ):
        with pytest.raises(ProbdiceError, match=message):
            Segmentation.concatenate(wrong)


def test_ilr_coordinates_are_those_of_the_formula():
    p = np.array([0.2, 0.3, 0.5])
    z = Segmentation.from_probabilities(p[:, None]).to_ilr()[:, 0]
    first = np.sqrt(1 / 2) * np.log(0.2 / 0.3)
    second = np.sqrt(2 / 3) * np.log(np.sqrt(0.2 * 0.3) / 0.5)
    assert z.tolist() == pytest.approx([first, second])


@pytest.mark.parametrize("regions", [2, 3, 7])
def test_euclidean_distances_of_ilr_coordinates_are_aitchison_distances(regions):
    rng = np.random.default_rng(regions)
    p, q = (rng.dirichlet([0.7] * regions, size=(4, 5)).transpose(2, 0, 1) for _ in range(2))
    a, b = (Segmentation.from_probabilities(x).to_ilr() for x in (p, q))
    assert a.shape == (regions - 1, 4, 5)
    distance = np.sqrt(((a - b) ** 2).sum(axis=0))
    assert distance == pytest.approx(probdice.aitchison_distance(p, q))


def test_ilr_basis_is_orthonormal_and_sums_to_0():
    basis = ilr_basis(6)
    assert basis @ basis.T == pytest.approx(np.eye(5), abs=1e-12)
    assert basis.sum(axis=1) == pytest.approx(np.zeros(5), abs=1e-12)


@pytest.mark.parametrize("axis", [0, -1])
def test_from_ilr_undoes_to_ilr(axis):
    p = np.random.default_rng(0).dirichlet([0.7] * 4, size=9).T
    z = np.moveaxis(Segmentation.from_probabilities(p).to_ilr(), 0, axis)
    again = Segmentation.from_ilr(z, axis=axis, names=["a", "b", "c", "d"])
    assert again.regions == ("a", "b", "c", "d")
    assert again.probabilities() == pytest.approx(p)


def test_a_probability_of_0_has_no_coordinates_but_for_a_floor():
    certain = Segmentation.from_labels([[1, 2]])
    with pytest.raises(InputError, match=r"probability 0 at pixel \(0, 0\).*floor"):
        certain.to_ilr()
    assert certain.to_ilr(floor=1e-3)[0, 0, 0] == pytest.approx(np.log(1000) / np.sqrt(2))


def test_coordinates_of_one_region_or_of_integers_are_rejected():
    with pytest.raises(InputError, match="at least two regions"):
        Segmentation.from_labels([1, 1]).to_ilr()
    with pytest.raises(InputError, match="coordinates must be floating"):
        Segmentation.from_ilr(np.zeros((2, 3), int))


def test_large_labels_of_mixed_types_are_concatenated_exactly():
    """NumPy converts uint64 with int64 to float64, in which 2⁶⁰ and 2⁶⁰ + 1 are equal."""
    unsigned = Segmentation.from_labels(np.array([2**60, 2**60 + 1], np.uint64))
    signed = Segmentation.from_labels(np.array([-1, 2**60], np.int64))
    joined = Segmentation.concatenate([unsigned, signed])
    assert joined.array.tolist() == [2**60, 2**60 + 1, -1, 2**60]
    too_large = Segmentation.from_labels(np.array([2**63], np.uint64))
    with pytest.raises(InputError, match="labels of at least 2⁶³ cannot be combined with"):
        Segmentation.concatenate([too_large, signed])
