"""The laws of the method, over crisp, soft and mixed sides of one to four dimensions."""

import json
import pickle
import warnings
from itertools import pairwise
from math import isnan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles import (
    absolute,
    all_pairings,
    best_one_to_one,
    best_permutation,
    chance,
    chance_by_pairs,
    explained,
    f_of,
    goodman_kruskal,
    grouped,
    match,
    merge,
    one_hot,
    overlaps,
    score,
    weights,
)

from probdice import (
    Absolute,
    Aitchison,
    Overlap,
    ProbdiceWarning,
    Segmentation,
    compare,
    overlap,
)

SIMILARITIES = [Absolute(), Aitchison(), Aitchison(floor=1e-3)]
DTYPES = [np.float16, np.float32, np.float64]


def quietly(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbdiceWarning)
        return compare(*args, **options)


@st.composite
def shapes(draw):
    return tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))


@st.composite
def segmentations(draw, shape, kinds=("crisp", "soft"), zeros=True):
    """An array of labels or probabilities. Probabilities have continuous values."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    regions = draw(st.integers(1, 5))
    if draw(st.sampled_from(kinds)) == "crisp":
        return rng.integers(0, regions, shape) * 3 - 2
    p = rng.dirichlet(np.full(regions, 0.7), shape)
    if zeros and draw(st.booleans()):
        p = np.where(rng.random(p.shape) < 0.3, 0, p)
        p[..., 0] += p.sum(-1) == 0
        p /= p.sum(-1, keepdims=True)
    dtype = draw(st.sampled_from(DTYPES))
    if dtype == np.float16:  # exact fractions, which still sum to 1
        p = rng.multinomial(512, p) / 512
    return np.moveaxis(p, -1, 0).astype(dtype)


@st.composite
def sides(draw, **options):
    shape = draw(shapes())
    return draw(segmentations(shape, **options)), draw(segmentations(shape, **options))


@st.composite
def masks(draw, shape):
    mask = np.random.default_rng(draw(st.integers(0, 2**32))).random(shape) < 0.7
    mask.reshape(-1)[0] = True
    return draw(st.sampled_from([None, mask]))


def spatial(array):
    return array.shape if array.dtype.kind == "i" else array.shape[1:]


def rows(array):
    """Labels or probabilities as rows of float64."""
    if array.dtype.kind == "i":
        return one_hot(array.reshape(-1))
    return array.reshape(len(array), -1).astype(np.float64)


similarities = st.sampled_from(SIMILARITIES)


@given(sides(), similarities, st.data())
def test_the_score_is_the_mean_of_f(pair, similarity, data):
    # Crisp sides without a mask or empty labels have the same rows for the oracle.
    p, q = pair
    assume(len(rows(p)) == len(rows(q)))
    labelled = [Segmentation.from_probabilities(rows(side)) for side in pair]
    mask = data.draw(masks((rows(p).shape[1],)))
    inside = slice(None) if mask is None else mask
    result = quietly(*labelled, similarity=similarity, match="labels", mask=mask)
    f = f_of(similarity.name, getattr(similarity, "floor", 0.0))
    expected = score(rows(p)[:, inside], rows(q)[:, inside], f)
    assert result.score == pytest.approx(expected, abs=1e-6)


@given(shapes().flatmap(lambda shape: segmentations(shape)), similarities)
def test_identity_scores_one(side, similarity):
    assert quietly(side, side, similarity=similarity, match="labels").score == 1
    assert quietly(side, side, similarity=similarity).score == pytest.approx(1, abs=1e-12)


@given(sides(kinds=("soft",)), st.sampled_from(SIMILARITIES[:2]))
def test_only_identity_scores_one(pair, similarity):
    count = min(len(side) for side in pair)
    p, q = (rows(side)[:count] for side in pair)
    assume(count > 1 and min(side.sum(axis=0).min() for side in (p, q)) > 0.01)
    p, q = p / p.sum(axis=0), q / q.sum(axis=0)
    assume(np.abs(p - q).max() > 1e-3)
    assert quietly(p, q, similarity=similarity, match="labels").score < 1


@given(sides(), similarities, st.sampled_from(["none", "both"]))
def test_scores_are_between_0_and_1_and_symmetric(pair, similarity, merge):
    p, q = pair
    one, other = (quietly(*s, similarity=similarity, merge=merge) for s in ((p, q), (q, p)))
    assert 0 <= one.score <= 1
    assert all(0 <= g.similarity <= 1 and 0 <= g.dice <= 1 for g in one.groups)
    np.testing.assert_allclose(one.weights, other.weights.T, rtol=0, atol=1e-6)
    if unique(one) and len(one.merges) <= 1:
        assert one.score == pytest.approx(other.score, abs=1e-6)


def overlap_table(result):
    """o_ij of all regions that are not empty, in the order of `weights`."""
    frame = result.overlap.to_frame()
    table = np.zeros((len(result.reference_labels), len(result.prediction_labels)))
    rows = [result.reference_labels.index(label) for label in frame["reference"]]
    columns = [result.prediction_labels.index(label) for label in frame["prediction"]]
    table[rows, columns] = frame["overlap"]
    return table


def unique(result):
    """Whether no other matching comes close: brute force over small tables."""
    table = overlap_table(result)
    totals = sorted(
        sum(table[pair] for pair in pairs)
        for pairs in all_pairings(*table.shape)
        if all(table[pair] for pair in pairs)
    )
    return len(totals) < 2 or totals[-1] - totals[-2] > 1e-7


def gains_differ(result):
    """Whether the order of merges is unambiguous: all gains differ clearly."""
    gains = sorted(entry.gain for entry in result.merges)
    return all(b - a > 1e-6 for a, b in pairwise(gains))


@given(sides(), similarities, st.data())
def test_names_and_order_of_regions_do_not_matter(pair, similarity, data):
    p, q = pair
    before = quietly(p, q, similarity=similarity)
    assume(unique(before))
    if q.dtype.kind == "i":
        values = np.unique(q)
        new = np.array(data.draw(st.permutations(range(len(values))))) * 17 - 5
        q = new[np.searchsorted(values, q)]
    else:
        q = q[np.array(data.draw(st.permutations(range(len(q)))))]
    after = quietly(p, q, similarity=similarity)
    assert after.score == pytest.approx(before.score, abs=1e-6)


@given(sides(kinds=("soft",)), similarities, st.sampled_from(["overlap", "paper", "labels"]))
def test_an_empty_region_changes_nothing(pair, similarity, match):
    p, q = pair
    before = quietly(p, q, similarity=similarity, match=match)
    padded = [np.concatenate([side, np.zeros_like(side[:1])]) for side in pair]
    for sides_ in ((padded[0], q), (p, padded[1]), padded):
        after = quietly(*sides_, similarity=similarity, match=match)
        assert after.score == pytest.approx(before.score, abs=1e-12)


@given(sides(), similarities, st.data())
def test_the_order_of_pixels_memory_and_container_do_not_matter(pair, similarity, data):
    p, q = pair
    shape = spatial(p)
    mask = data.draw(masks(shape))
    before = quietly(p, q, similarity=similarity, mask=mask)
    assume(unique(before))
    order = data.draw(st.permutations(range(len(shape))))

    def moved(array, fortran):
        first = array.ndim - len(shape)
        axes = (*range(first), *(first + axis for axis in order))
        array = np.flip(array.transpose(axes), axis=-1)
        swapped = array.astype(array.dtype.newbyteorder())
        return np.asfortranarray(swapped) if fortran else swapped

    after = quietly(
        moved(p, True),
        moved(q, False),
        similarity=similarity,
        mask=None if mask is None else moved(mask, True),
    )
    assert after.score == pytest.approx(before.score, abs=1e-6)


@given(sides(), similarities, st.sampled_from(["none", "both"]), st.data())
def test_the_cut_into_blocks_and_the_workers_do_not_matter(pair, similarity, merge, data):
    from probdice.engine import blocks

    mask = data.draw(masks(spatial(pair[0])))
    options = {"similarity": similarity, "merge": merge, "mask": mask}
    before = quietly(*pair, **options)
    assume(unique(before))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "MIN_BLOCK_PIXELS", 1)
        patch.setattr(blocks, "BLOCK_BYTES", 32)
        one, four = (quietly(*pair, **options, workers=n) for n in (1, 4))
    assert one.to_dict() == four.to_dict()
    if len(before.merges) <= 1:
        assert one.score == pytest.approx(before.score, abs=1e-6)


@given(sides(kinds=("crisp",)), st.sampled_from(["none", "both"]))
def test_crisp_sides_agree_in_every_form(pair, merge):
    p, q = pair
    by_absolute = quietly(p, q, merge=merge)
    by_aitchison = quietly(p, q, merge=merge, similarity="aitchison")
    assert by_absolute.score == by_aitchison.score
    agreeing = sum(
        int((np.isin(p, group.reference) & np.isin(q, group.prediction)).sum())
        for group in by_absolute.groups
    )
    assert by_absolute.score == agreeing / p.size
    for f in ("absolute", "aitchison"):
        soft = quietly(one_hot(p), one_hot(q), similarity=f)
        np.testing.assert_allclose(soft.weights, by_absolute.weights, atol=1e-12)


@given(shapes().flatmap(lambda shape: segmentations(shape, kinds=("crisp",))), st.data())
def test_permuted_labels_score_exactly_one(labels, data):
    values = np.unique(labels)
    new = np.array(data.draw(st.permutations(range(len(values)))))
    assert quietly(labels, new[np.searchsorted(values, labels)]).score == 1.0


@given(sides())
def test_merging_never_lowers_the_absolute_score(pair):
    result = quietly(*pair, merge="both")
    assert result.score >= result.matched_score - 1e-7


@given(sides(kinds=("crisp",)), st.sampled_from(["reference", "prediction"]))
def test_a_crisp_score_merged_on_one_side_is_bounded_by_the_largest_overlaps(pair, side):
    p, q = pair
    result = quietly(p, q, merge=side)
    merged, across = (p, q) if side == "reference" else (q, p)
    bound = sum(
        np.unique(across[merged == u], return_counts=True)[1].max() for u in np.unique(merged)
    )
    assert result.score <= bound / p.size + 1e-12


@given(sides())
def test_the_overlap_rule_is_the_best_of_all_one_to_one_correspondences(pair):
    p, q = rows(pair[0]), rows(pair[1])
    result = quietly(*pair)
    assert result.score == pytest.approx(best_one_to_one(p, q), abs=2e-6)
    if len(p) == len(q) and np.all(p.sum(1) > 0) and np.all(q.sum(1) > 0):
        assert result.score == pytest.approx(best_permutation(p, q), abs=2e-6)


@given(sides(), similarities)
def test_weights_and_the_score_are_those_of_the_oracle(pair, similarity):
    p, q = (rows(side) for side in pair)
    f = f_of(similarity.name, getattr(similarity, "floor", 0.0))
    result = quietly(*pair, similarity=similarity)
    p, q = p[p.sum(1) > 0], q[q.sum(1) > 0]
    np.testing.assert_allclose(result.weights, weights(p, q, f), rtol=0, atol=2e-6)


def test_the_oracle_agrees_with_the_worked_example():
    assert absolute([0.2, 0.3, 0.5], [0.1, 0.6, 0.3]) == pytest.approx(0.7)
    assert f_of("aitchison", 0.01)([1, 0], [0.9, 0.1]) == pytest.approx(0.37000384, abs=5e-9)


# Matching and merging --------------------------------------------------------------------------


@given(sides(kinds=("crisp",)))
def test_two_regions_of_label_maps_with_a_jaccard_index_above_a_half_are_a_pair(pair):
    # This holds only for label maps. If both sides are (0.4, 0.6) at one pixel, every region has a
    # Jaccard index above one half with both regions of the other side.
    result = quietly(*pair)
    p, q = (rows(side) for side in pair)
    p, q = p[p.sum(1) > 0], q[q.sum(1) > 0]
    partner = {group.reference: group.prediction for group in result.groups if group.reference}
    for i, label in enumerate(result.reference_labels):
        for j, twin in enumerate(result.prediction_labels):
            if np.minimum(p[i], q[j]).sum() > 0.5001 * np.maximum(p[i], q[j]).sum():
                assert partner[label,] == (twin,)


@given(sides(), similarities)
def test_overlaps_are_those_of_the_oracle_never_negative_and_0_where_regions_never_meet(
    pair, similarity
):
    p, q = (rows(side) for side in pair)
    p, q = p[p.sum(1) > 0], q[q.sum(1) > 0]
    result = quietly(*pair, similarity=similarity)
    table = overlap_table(result)
    f = f_of(similarity.name, getattr(similarity, "floor", 0.0))
    np.testing.assert_allclose(table, overlaps(p, q, f), rtol=0, atol=2e-6)
    assert np.all(table >= 0)
    for i in range(len(p)):
        for j in range(len(q)):
            if not np.any((p[i] > 0) & (q[j] > 0)):
                assert table[i, j] == 0


def as_indices(labels, numbers):
    return [labels.index(label) for label in numbers]


@given(sides(), similarities, st.sampled_from(["none", "prediction", "reference", "both"]))
def test_matching_and_merging_are_those_of_the_oracle(pair, similarity, which):
    p, q = (rows(side) for side in pair)
    p, q = p[p.sum(1) > 0], q[q.sum(1) > 0]
    f = f_of(similarity.name, getattr(similarity, "floor", 0.0))
    result = quietly(*pair, similarity=similarity, merge=which)
    assume(unique(result))
    sides_ = {"none": (), "both": ("prediction", "reference")}.get(which, (which,))
    matched, alone, joins = merge(p, q, f, match(p, q, f), sides_)
    gains = sorted(join[-1] for join in joins)
    crisp = pair[0].dtype.kind == pair[1].dtype.kind == "i"
    assume(crisp or all(b - a > 1e-5 for a, b in pairwise(gains)))
    labels = result.reference_labels, result.prediction_labels
    assert [
        (
            join.side,
            labels[join.side == "prediction"].index(join.region),
            as_indices(labels[join.side == "reference"], join.into),
        )
        for join in result.merges
    ] == [join[:3] for join in joins]
    assert [join.gain for join in result.merges] == pytest.approx(
        [join[-1] for join in joins], abs=5e-6
    )
    found = [
        (as_indices(labels[0], group.reference), as_indices(labels[1], group.prediction))
        for group in result.groups
    ]
    expected = [(sorted(a), sorted(b)) for a, b in [*matched, *alone]]
    assert sorted(found) == sorted(expected)
    assert result.score == pytest.approx(score(*grouped(p, q, expected), f), abs=5e-6)


# Overlaps add up -------------------------------------------------------------------------------


@given(sides(), similarities, st.data())
def test_overlaps_of_any_cut_of_an_image_add_up(pair, similarity, data):
    flat = [side.reshape(-1) if side.dtype.kind == "i" else rows(side) for side in pair]
    size = flat[0].shape[-1]
    cuts = sorted(data.draw(st.lists(st.integers(1, size), max_size=4)))
    bounds = [0, *cuts, size]
    whole = overlap(*flat, similarity=similarity)
    parts = [
        overlap(*(side[..., a:b] for side in flat), similarity=similarity)
        for a, b in pairwise(bounds)
        if b > a
    ]
    added = parts[0]
    for part in parts[1:]:
        added = added + part
    for total in (added, sum(parts), Overlap.total(parts)):
        assert total.pixels == whole.pixels
        assert total.reference.labels == whole.reference.labels
        assert total.prediction.labels == whole.prediction.labels
        tolerance = 0 if whole.crisp else 1e-12
        assert total.pairs.rows.tolist() == whole.pairs.rows.tolist()
        assert total.pairs.columns.tolist() == whole.pairs.columns.tolist()
        np.testing.assert_allclose(total.overlaps, whole.overlaps, rtol=0, atol=tolerance)
        np.testing.assert_allclose(total.weights, whole.weights, rtol=0, atol=10 * tolerance)


@given(sides(kinds=("crisp",)), st.sampled_from(["none", "both"]))
def test_a_comparison_by_its_overlap_is_the_comparison(pair, which):
    by_images, by_overlap = quietly(*pair, merge=which), overlap(*pair).compare(merge=which)
    # An overlap does not know the number of axes, so its notes say pixels.
    expected = json.dumps(by_images.to_dict() | {"axes": None}).replace("voxels", "pixels")
    assert json.dumps(by_overlap.to_dict()) == expected


# Explained -------------------------------------------------------------------------------------


def explains(result):
    return [result.explained["reference"], result.explained["prediction"]]


@given(sides(kinds=("crisp",)))
def test_explained_of_label_maps_is_goodman_and_kruskals_tau(pair):
    p, q = pair
    assume(np.unique(p).size > 1 and np.unique(q).size > 1)
    result = quietly(p, q)
    assert result.explained["reference"] == pytest.approx(goodman_kruskal(p, q), abs=1e-12)
    assert result.explained["prediction"] == pytest.approx(goodman_kruskal(q, p), abs=1e-12)
    for forms in ((one_hot(p), q), (p, one_hot(q)), (one_hot(p), one_hot(q))):
        assert explains(quietly(*forms)) == pytest.approx(explains(result), abs=1e-9)


def conditioned(p):
    """Whether no direction of the rows is so faint that rounding decides whether it counts."""
    values = np.linalg.svd(p - p.mean(axis=1, keepdims=True), compute_uv=False)
    return not np.any((values < 1e-2 * values.max()) & (values > 1e-12 * values.max()))


@given(sides())
def test_explained_is_the_share_of_a_least_squares_fit(pair):
    p, q = (rows(side) for side in pair)
    assume(p.var(axis=1).sum() > 1e-3 and q.var(axis=1).sum() > 1e-3)
    assume(conditioned(p) and conditioned(q))
    result = quietly(*pair)
    assert result.explained["reference"] == pytest.approx(explained(p, q), abs=1e-6)
    assert result.explained["prediction"] == pytest.approx(explained(q, p), abs=1e-6)


@given(sides(), similarities, st.data())
def test_explained_does_not_depend_on_names_similarity_or_matching(pair, similarity, data):
    p, q = pair
    before = explains(quietly(p, q))
    assert explains(
        quietly(p, q, similarity=similarity, match="paper", merge="both")
    ) == pytest.approx(before, abs=1e-12, nan_ok=True)
    if q.dtype.kind == "i":
        renamed = -3 * q
    else:
        assume(conditioned(rows(q)))
        renamed = q[np.array(data.draw(st.permutations(range(len(q)))))]
    assert explains(quietly(p, renamed)) == pytest.approx(before, abs=1e-6, nan_ok=True)


@given(sides(), st.data())
def test_explained_never_falls_when_a_region_of_the_explaining_side_is_split(pair, data):
    p, q = pair
    before = quietly(p, q).explained["reference"]
    assume(not isnan(before))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    if q.dtype.kind == "i":
        split = np.where((q == q.flat[0]) & (rng.random(q.shape) < 0.5), 1000, q)
    else:
        part = (rng.random(q.shape[1:]) < 0.5) * q[0]
        split = np.concatenate([q, part[None]])
        split[0] = split[0] - part
    assert quietly(p, split).explained["reference"] >= before - 1e-6


@given(shapes().flatmap(lambda shape: segmentations(shape)))
def test_identity_explains_everything(side):
    result = quietly(side, side)
    for share in explains(result):
        assert isnan(share) or share == pytest.approx(1, abs=1e-6)


# Chance ----------------------------------------------------------------------------------------


@st.composite
def small_sides(draw):
    shape = (draw(st.integers(2, 7)),)
    return draw(segmentations(shape)), draw(segmentations(shape))


@given(small_sides())
def test_absolute_chance_is_that_of_all_pairs_of_pixels(pair):
    p, q = (rows(side) for side in pair)
    result = quietly(*pair)
    assert result.chance == pytest.approx(chance(p, q), abs=2e-6)
    assert result.chance_error == 0


@given(small_sides())
def test_chance_of_equal_labels_is_that_of_all_pairs_of_pixels(pair):
    p, q = (rows(side) for side in pair)
    names = [list(range(len(side))) for side in (p, q)]
    both = [
        Segmentation.from_probabilities(side, names=name)
        for side, name in zip((p, q), names, strict=True)
    ]
    result = quietly(*both, match="labels")
    pairs = [(k, k) for k in range(min(len(p), len(q)))]
    assert result.chance == pytest.approx(chance_by_pairs(p, q, pairs), abs=1e-9)


@given(sides(kinds=("crisp",)), st.sampled_from(["none", "prediction", "reference", "both"]))
def test_crisp_chance_is_the_score_of_all_pairs_of_pixels(pair, which):
    # Every pixel of one side with every pixel of the other: independent, with the same sizes.
    p, q = (side.reshape(-1) for side in pair)
    every = quietly(np.repeat(p, q.size), np.tile(q, p.size), merge=which)
    assert quietly(p, q, merge=which).chance == pytest.approx(every.score, abs=1e-12)


# Exchange and forms ----------------------------------------------------------------------------


@given(sides(), similarities, st.sampled_from(["none", "both"]))
def test_the_sides_can_be_exchanged(pair, similarity, which):
    p, q = pair
    one, other = (quietly(*s, similarity=similarity, merge=which) for s in ((p, q), (q, p)))
    assume(unique(one) and gains_differ(one))
    assert explains(one) == pytest.approx(explains(other)[::-1], abs=1e-9, nan_ok=True)
    assert one.score == pytest.approx(other.score, abs=1e-6)
    assert one.matched_score == pytest.approx(other.matched_score, abs=1e-6)
    assert {(g.reference, g.prediction) for g in one.groups} == {
        (g.prediction, g.reference) for g in other.groups
    }
    if similarity == Absolute() and not one.merges:  # else it may be sampled
        assert one.chance == pytest.approx(other.chance, abs=1e-6)


class Sliced:
    """An array that supports only slicing."""

    def __init__(self, array):
        self.inner, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, index):
        assert all(isinstance(part, slice) for part in index)
        return self.inner[index]


@given(sides(), similarities)
def test_the_container_does_not_matter(pair, similarity):
    before = quietly(*pair, similarity=similarity).to_dict()
    for container in (Sliced, np.asfortranarray, lambda array: array[::1].copy()):
        after = quietly(*(container(side) for side in pair), similarity=similarity).to_dict()
        assert after["score"] == pytest.approx(before["score"], abs=1e-6)
        if container is Sliced:
            assert after == before


@given(sides(), similarities, st.sampled_from(["none", "both"]))
def test_a_stored_result_is_read_back(pair, similarity, which):
    result = quietly(*pair, similarity=similarity, merge=which)
    content = result.to_json()
    assert pickle.loads(pickle.dumps(result)).to_json() == content
    assert type(result).from_json(content).to_json() == content
