"""Results for one block: overlaps, groups at every pixel, moments and distributions."""

import time

import numpy as np
import pytest

from probdice import Absolute, Aitchison, Segmentation, compare, overlap
from probdice.engine import group_passes, moment_passes, overlap_pass
from probdice.engine.blocks import Blocks
from probdice.engine.pair import SegmentationPair
from probdice.method.sides import Both

pytestmark = pytest.mark.filterwarnings("ignore::probdice.ProbdiceWarning")


def soft(regions, shape, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    p = rng.random((regions, *shape), dtype=np.float32) ** 4
    return (p / p.sum(0)).astype(dtype)


@pytest.mark.parametrize("regions", [(1, 1), (1, 5), (2, 3), (7, 4), (8, 8), (13, 9), (137, 5)])
@pytest.mark.parametrize("similarity", [Absolute(), Aitchison(), Aitchison(0.01)])
def test_any_numbers_of_regions(regions, similarity):
    p, q = soft(regions[0], (37, 41)), soft(regions[1], (37, 41), seed=1)
    p[0, :20] = 0  # zero throughout some blocks
    p[-1, :20] += 1 - p[:, :20].sum(0)
    result = compare(p, q, similarity=similarity)
    others = [np.delete(side, i, 0).sum(0) for side, i in ((p, 0), (q, regions[1] - 1))]
    aux_p, aux_q = np.stack([p[0], others[0]]), np.stack([q[-1], others[1]])
    expected = 1 - similarity(aux_p, aux_q).mean()
    assert result.weights[0, -1] == pytest.approx(expected, abs=3e-6)
    assert [g.reference_volume for g in result.groups if g.reference == (0,)] == pytest.approx(
        [p[0].sum(dtype="f8")]
    )


@pytest.mark.parametrize("similarity", [Absolute(), Aitchison(), Aitchison(0.01)])
def test_a_region_that_is_zero_in_some_blocks_is_counted_there_too(similarity):
    p, q = np.zeros((6, 30_000), np.float32), np.zeros((5, 30_000), np.float32)
    for k, start in enumerate(range(0, 30_000, 5000)):
        p[k, start : start + 5000] = 0.9
        p[(k + 1) % 6, start : start + 5000] = 0.1
    q[0], q[1, ::2], q[2, 1::2] = 0.5, 0.5, 0.5
    q[4, :100] = q[0, :100]
    q[0, :100] = 0
    result = compare(p, q, similarity=similarity)
    q = q[[0, 1, 2, 4]]
    for i in range(6):
        for j in range(4):
            a = np.stack([p[i], np.delete(p, i, 0).sum(0)])
            b = np.stack([q[j], np.delete(q, j, 0).sum(0)])
            assert result.weights[i, j] == pytest.approx(1 - similarity(a, b).mean(), abs=2e-6)


@pytest.mark.parametrize("similarity", [Absolute(), Aitchison(), Aitchison(0.01)])
def test_a_label_map_against_probabilities_is_its_one_hot_array(similarity):
    rng = np.random.default_rng(0)
    labels = np.repeat(rng.integers(0, 9, 700), rng.integers(1, 60, 700))
    q = soft(6, (labels.size,))
    q[:, : labels.size // 3] = 0
    q[0, : labels.size // 3] = 1
    one_hot = np.stack([labels == k for k in range(9)]).astype(np.float32)
    for sides in ((labels, q), (q, labels)):
        dense = [one_hot if side is labels else side for side in sides]
        result, expected = (
            compare(*sides, similarity=similarity),
            compare(*dense, similarity=similarity),
        )
        np.testing.assert_allclose(result.weights, expected.weights, atol=1e-6)
        assert result.score == pytest.approx(expected.score, abs=1e-6)


def test_only_pairs_that_occur_are_counted_for_thousands_of_regions():
    rng = np.random.default_rng(0)
    a = rng.permutation(100_000)[np.arange(400_000) // 4] * 5000
    b = np.arange(400_000) // 400_000
    start = time.process_time()
    result = compare(a, b, merge="both")
    assert result.score == 1
    assert len(result.merges) == 99_999
    assert time.process_time() - start < 30  # a few seconds of CPU time


def test_many_crisp_regions_take_little_cpu_time():
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 1000, (91, 109, 91))
    permuted = rng.permutation(1000)[centres]
    compare(centres[:2], permuted[:2])
    start = time.process_time()
    result = compare(centres, permuted)
    assert result.score == 1
    assert time.process_time() - start < 10  # about half a second of CPU time


@pytest.mark.parametrize("mask", [None, np.arange(5000) % 3 > 0])
def test_the_size_of_the_pair_table_changes_nothing(monkeypatch, mask):
    rng = np.random.default_rng(0)
    p, q = rng.integers(0, 200, 5000) * 10**9, rng.integers(0, 300, 5000)
    roomy = overlap(p, q, mask=mask).to_dict()
    assert len(roomy["savings"]) > 2000
    monkeypatch.setattr(overlap_pass, "FEW_PAIRS", 1)
    assert overlap(p, q, mask=mask).to_dict() == roomy


def test_label_maps_of_one_byte_are_counted_alike():
    rng = np.random.default_rng(0)
    p, q = rng.integers(-100, 100, 70_000), rng.integers(0, 200, 70_000)
    wide = overlap(p, q)
    assert overlap(p.astype(np.int8), q.astype(np.uint8)).to_dict() == wide.to_dict()


def ready_and_images(p, q):
    sides = [Segmentation.from_labels(x) if x.dtype.kind == "i"
             else Segmentation.from_probabilities(x) for x in (p, q)]  # fmt: skip
    blocks = Blocks(*sides)
    return blocks.decode(blocks.blocks[0]), SegmentationPair.of(*sides)


@pytest.mark.parametrize("kinds", ["soft", "mixed", "exchanged"])
def test_moments_are_sums_of_products(kinds):
    p, q = soft(3, (50,), 1, np.float64), soft(4, (50,), 2, np.float64)
    if kinds == "mixed":
        p = p.argmax(0)
    if kinds == "exchanged":
        q = q.argmax(0)
    ready, _ = ready_and_images(p, q)
    keys = Both(np.arange(3), np.arange(4))
    found = moment_passes.moments(ready, keys)
    rows = [x if x.ndim == 2 else np.stack([x == k for k in range(n)]).astype(float)
            for x, n in ((p, 3), (q, 4))]  # fmt: skip
    np.testing.assert_allclose(found.cross_products, rows[0] @ rows[1].T, atol=1e-12)
    for side, x in zip(("reference", "prediction"), rows, strict=True):
        np.testing.assert_allclose(found.volumes[side], x.sum(1), atol=1e-12)
        if found.products[side] is not None:
            np.testing.assert_allclose(found.products[side], x @ x.T, atol=1e-12)
    twice = found + found
    np.testing.assert_allclose(twice.cross_products, 2 * found.cross_products)


@pytest.mark.parametrize("dtype", [np.int32, np.uint16, np.int64, np.uint64])
@pytest.mark.parametrize("labels", [20, 400])
def test_large_label_maps_with_any_numbers_are_counted_exactly(dtype, labels):
    rng = np.random.default_rng(0)
    names = np.sort(rng.choice(np.iinfo(dtype).max // 2, labels, replace=False)).astype(dtype)
    p, q = (rng.integers(0, labels, 90_000).repeat(7)[k:600_000] for k in (0, 1))
    p, q = p[: q.size], q
    table = np.bincount(p * labels + q, minlength=labels**2).reshape(labels, labels)
    found = overlap(names[p], names[q])
    assert found.reference.keys.tolist() == found.prediction.keys.tolist() == names.tolist()
    assert found.reference.volumes.tolist() == table.sum(1).tolist()
    assert found.prediction.volumes.tolist() == table.sum(0).tolist()
    rows, columns = table.nonzero()
    assert found.pairs.rows.tolist() == rows.tolist()
    assert found.pairs.columns.tolist() == columns.tolist()
    assert found.pairs.savings.tolist() == table[rows, columns].tolist()


def test_a_distribution_counts_every_value():
    p = soft(3, (500,), dtype=np.float64)
    p[:, 0] = [0, 1, 0]
    ready, _ = ready_and_images(p, p)
    found = moment_passes.distribution(ready.sides[0], 64)
    ends = np.array(
        [2 * (k / 64) ** 2 if k <= 32 else 1 - 2 * (1 - k / 64) ** 2 for k in range(65)]
    )
    np.testing.assert_allclose(np.cumsum(found.widths), ends[1:])
    for i, row in enumerate(p):
        places = np.digitize(row, ends[1:-1])
        shares = (row - ends[places]) / np.diff(ends)[places]
        assert found.counts[i].tolist() == np.bincount(places, minlength=64).tolist()
        np.testing.assert_allclose(found.sums[i], np.bincount(places, row, 64), atol=1e-12)
        np.testing.assert_allclose(found.shares[i], np.bincount(places, shares, 64), atol=1e-9)


def test_a_distribution_is_fine_where_regions_are_nearly_empty_or_nearly_certain():
    found = moment_passes.Distribution(np.zeros((1, 2048), np.int64), np.zeros((1, 2048)))
    assert found.widths[0] == found.widths[-1] == 2 / 2048**2
    assert found.widths.max() < 2 / 2048


@pytest.mark.parametrize("similarity", [Absolute(), Aitchison(), Aitchison(0.01)])
@pytest.mark.parametrize("side", ["reference", "prediction"])
def test_joined_losses_are_those_of_the_joined_regions(similarity, side):
    p, q = soft(4, (300,), 1, np.float64), soft(4, (300,), 2, np.float64)
    _, images = ready_and_images(p, q)
    found = images.joined(similarity, side, [[0], [1]], [[0, 2], [1]], [2, 3])
    mine, theirs = (p, q) if side == "reference" else (q, p)

    def auxiliary(x, regions):
        rest = [k for k in range(4) if k not in regions]
        return np.stack([x[regions].sum(0), x[rest].sum(0)])

    for g, (own, across) in enumerate((([0], [0, 2]), ([1], [1]))):
        for u, unmatched in enumerate((2, 3)):
            f = similarity(auxiliary(mine, [*own, unmatched]), auxiliary(theirs, across))
            # With the absolute similarity, the loss is Σ|p − q|. It differs slightly, because
            # float32 probabilities do not sum to exactly 1.
            assert found[g, u] == pytest.approx((1 - f).sum(), abs=1e-5)


@pytest.mark.parametrize(
    ("lists", "labels", "groups"),
    [
        ([[7, -3], [], [5]], np.array([5, -3, 6, 7], np.int16), [2, 0, -1, 0]),
        ([[2**64 - 1], [2]], np.array([2, 2**64 - 1, 3], np.uint64), [1, 0, -1]),
        ([[300], [1]], np.array([1, 44], np.uint8), [1, -1]),
        ([[], []], np.array([0, 1]), [-1, -1]),
    ],
)
def test_every_label_finds_its_group(lists, labels, groups):
    assert group_passes.GroupLookup(lists).group_of(labels, -1).tolist() == groups
