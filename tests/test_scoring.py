"""From an overlap to a correspondence and its score."""

import numpy as np
import pytest

from probdice import Aitchison, compare, overlap
from probdice.method.matching import Matching
from probdice.method.scoring import NeedsImages, correspond, key_lists, measure

REFERENCE = [1, 1, 1, 1, 2, 2, 2, 2]
SPLIT = [7, 7, 5, 5, 5, 9, 9, 9]
SOFT_REFERENCE = np.array([[0.9, 0.7, 0.2, 0.1], [0.1, 0.3, 0.8, 0.9]])
SOFT_SPLIT = np.array([[0.6, 0.5, 0.1, 0.0], [0.3, 0.3, 0.1, 0.1], [0.1, 0.2, 0.8, 0.9]])


def test_the_groups_before_merging_are_stored():
    table = overlap(REFERENCE, SPLIT)
    found = correspond(table, Matching(merge="both"), None)
    assert found.matched.prediction.tolist() == [2, 0, 1]
    assert found.groups.prediction.tolist() == [0, 0, 1]
    assert found.costs.tolist() == [1, 1]
    assert measure(table, found.groups, found.costs, None).score == 0.875
    assert measure(table, found.matched, None, None).score == 0.625


def test_passes_get_groups_by_label():
    table = overlap(REFERENCE, SPLIT)
    found = correspond(table, Matching(merge="both"), None)
    lists = key_lists(table, found.groups)
    assert (lists.reference, lists.prediction) == ([[1], [2]], [[5, 7], [9]])


@pytest.mark.parametrize("similarity", ["absolute", "aitchison", Aitchison(0.01)])
@pytest.mark.filterwarnings("ignore::probdice.ProbdiceWarning")
def test_the_score_is_the_mean_of_the_map(similarity):
    rng = np.random.default_rng(0)
    soft = [rng.dirichlet(np.ones(k), (6, 7)) for k in (3, 5)]
    soft = [np.moveaxis(side, -1, 0) for side in soft]
    for pair in (soft, (soft[0].argmax(0), soft[1]), [side.argmax(0) for side in soft]):
        for merge in ("none", "both"):
            result = compare(*pair, similarity=similarity, merge=merge)
            assert result.map().mean(dtype="f8") == pytest.approx(result.score, abs=1e-6)


def test_the_similarity_of_a_group_is_that_of_its_auxiliaries():
    f = Aitchison(0.01)
    result = compare(SOFT_REFERENCE, SOFT_SPLIT, similarity=f, merge="both")
    joined = SOFT_SPLIT[[0, 1]].sum(axis=0)
    expected = f(SOFT_REFERENCE, np.stack([joined, SOFT_SPLIT[2]])).mean()
    assert result.groups[0].similarity == pytest.approx(expected, abs=1e-9)


def test_the_share_of_infinite_pixels_is_counted():
    table = overlap(REFERENCE, SPLIT, similarity="aitchison")
    found = correspond(table, Matching(), None)
    assert measure(table, found.groups, found.costs, None).infinite == 3


def test_numbers_that_need_the_images_raise_their_own_error():
    table = overlap(SOFT_REFERENCE, SOFT_SPLIT, similarity="aitchison")
    found = correspond(table, Matching(), None)
    with pytest.raises(NeedsImages, match="requires the images"):
        measure(table, found.groups, found.costs, None)
