"""The laws of METHOD §8, over crisp, soft and mixed sides of one to four dimensions."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles import absolute, best_permutation, f_of, one_hot, score, weights

from probdice import Absolute, Aitchison, ProbdiceWarning, Segmentation, compare

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
    """An array of either kind, from continuous values."""
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
    if dtype == np.float16:  # fractions that it holds exactly, so that they still sum to 1
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
    """Either kind as rows of float64."""
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
def test_scores_lie_between_0_and_1_and_do_not_see_which_side_is_which(pair, similarity, merge):
    p, q = pair
    one, other = (quietly(*s, similarity=similarity, merge=merge) for s in ((p, q), (q, p)))
    assert 0 <= one.score <= 1
    assert all(0 <= g.similarity <= 1 and 0 <= g.dice <= 1 for g in one.groups)
    np.testing.assert_allclose(one.weights, other.weights.T, atol=1e-9)
    if unique(one) and len(one.merges) <= 1:
        assert one.score == pytest.approx(other.score, abs=1e-9)


def unique(result):
    """Whether no other matching comes close: brute force over small tables."""
    from itertools import permutations

    w = result.weights if result.weights.shape[0] <= result.weights.shape[1] else result.weights.T
    totals = sorted(
        sum(w[i, j] for i, j in enumerate(columns))
        for columns in permutations(range(w.shape[1]), w.shape[0])
    )
    return len(totals) < 2 or totals[1] - totals[0] > 1e-7


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


@given(sides(kinds=("soft",)), similarities, st.sampled_from([True, False]))
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
def test_the_cut_into_slabs_and_the_workers_do_not_matter(pair, similarity, merge, data):
    from probdice import slabs

    mask = data.draw(masks(spatial(pair[0])))
    options = {"similarity": similarity, "merge": merge, "mask": mask}
    before = quietly(*pair, **options)
    assume(unique(before))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slabs, "FEWEST_PIXELS", 1)
        patch.setattr(slabs, "SLAB_BYTES", 32)
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
        int(((p == g.reference[0]) & np.isin(q, g.prediction)).sum())
        if len(g.reference) == 1
        else int((np.isin(p, g.reference) & (q == g.prediction[0])).sum())
        for g in by_absolute.groups
        if g.reference and g.prediction
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


@given(sides(kinds=("crisp",)))
def test_a_crisp_merged_score_is_bounded_by_the_largest_overlaps(pair):
    p, q = pair
    result = quietly(p, q, merge="both")
    assume(result.merges)
    merged, other = (p, q) if result.merges[0].side == "reference" else (q, p)
    bound = sum(
        np.unique(other[merged == u], return_counts=True)[1].max() for u in np.unique(merged)
    )
    assert result.score <= bound / p.size + 1e-12


@given(sides())
def test_the_absolute_matching_is_the_best_of_all_permutations(pair):
    p, q = rows(pair[0]), rows(pair[1])
    p, q = p[p.sum(1) > 0], q[q.sum(1) > 0]
    assume(len(p) == len(q))
    assert quietly(p, q).score == pytest.approx(best_permutation(p, q), abs=1e-7)


@given(sides(), similarities)
def test_weights_and_the_score_are_those_of_the_oracle(pair, similarity):
    p, q = (rows(side) for side in pair)
    f = f_of(similarity.name, getattr(similarity, "floor", 0.0))
    result = quietly(*pair, similarity=similarity)
    p, q = p[p.sum(1) > 0], q[q.sum(1) > 0]
    np.testing.assert_allclose(result.weights, weights(p, q, f), rtol=0, atol=2e-6)


def test_the_oracle_itself_knows_the_worked_example():
    assert absolute([0.2, 0.3, 0.5], [0.1, 0.6, 0.3]) == pytest.approx(0.7)
    assert f_of("aitchison", 0.01)([1, 0], [0.9, 0.1]) == pytest.approx(0.37000384, abs=5e-9)
