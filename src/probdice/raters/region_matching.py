"""Match the regions of several raters, regardless of their order and labels.

The regions of a rater belong to distinct common regions. A local search increases the sum, over all
pairs of raters, of the overlaps of regions in the same common region. The search starts from the
rater who agrees best with all others. It matches one rater after the other with the current common
regions of the others, until the sum no longer increases. The search uses the overlap tables, not
the pixels.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.method.matching import Matching, find_groups
from probdice.method.overlap import Integers, Overlap, Pairs, Regions
from probdice.method.region_labels import Label
from probdice.method.similarity import Absolute

__all__ = ["match_regions", "most_frequent_labels"]


def match_regions(
    volumes: Sequence[NDArray[Any]], tables: Mapping[tuple[int, int], Pairs]
) -> list[list[int]]:
    """Match the regions of all raters.

    Return, for each rater, the number of the common region to which each of the rater's regions
    belongs. In the first round, each rater is matched with the previous raters. In later rounds,
    each rater is matched with all others, until the sum of overlaps no longer increases. A new
    match must increase the sum of all overlaps within common regions, so the search terminates.
    """
    numbers: list[Integers | None] = [None] * len(volumes)
    next_number = 0
    changed = True
    while changed:
        changed = False
        for i in range(len(volumes)):
            other_numbers = {
                j: rater_numbers
                for j, rater_numbers in enumerate(numbers)
                if j != i and rater_numbers is not None
            }
            overlap = _overlap_with_others(i, other_numbers, volumes, tables)
            new_numbers = _match_to_common(overlap)
            old_numbers = numbers[i]
            tie = overlap.tie
            if (
                old_numbers is not None
                and _shared_overlap(overlap, new_numbers)
                <= _shared_overlap(overlap, old_numbers) + tie
            ):
                continue
            unmatched = np.flatnonzero(new_numbers < 0)
            new_numbers[unmatched] = np.arange(next_number, next_number + unmatched.size)
            next_number += unmatched.size
            numbers[i] = new_numbers
            changed = True
    return [[] if rater_numbers is None else rater_numbers.tolist() for rater_numbers in numbers]


def _overlap_with_others(
    i: int,
    other_numbers: Mapping[int, Integers],
    volumes: Sequence[NDArray[Any]],
    tables: Mapping[tuple[int, int], Pairs],
) -> Overlap:
    """Return the overlap of a rater's regions with the common regions, summed over other raters.

    This equals the overlap between the concatenated images of the other raters and copies of the
    rater's image, one per other rater.
    """
    rater_volumes = volumes[i]
    crisp = all(side.dtype.kind == "i" for side in volumes)
    dtype = np.int64 if crisp else np.float64
    keys = np.unique(np.concatenate([np.zeros(0, np.int64), *other_numbers.values()]))
    common_volumes = np.zeros(keys.size, dtype)
    cells, savings = [np.zeros(0, np.int64)], [np.zeros(0, dtype)]
    for j, numbers in other_numbers.items():
        rows = np.searchsorted(keys, numbers)
        np.add.at(common_volumes, rows, volumes[j].astype(dtype))
        pairs = tables[j, i]
        cells.append(rows[pairs.rows] * rater_volumes.size + pairs.columns)
        savings.append(pairs.savings.astype(dtype))
    distinct_cells, indices = np.unique(np.concatenate(cells), return_inverse=True)
    total_savings = np.zeros(distinct_cells.size, dtype)
    np.add.at(total_savings, indices, np.concatenate(savings))
    return Overlap(
        Absolute(),
        round(float(rater_volumes.sum())) * max(len(other_numbers), 1),
        Regions(keys, common_volumes, crisp),
        Regions(
            np.arange(rater_volumes.size),
            rater_volumes.astype(dtype) * max(len(other_numbers), 1),
            crisp,
        ),
        Pairs(*np.divmod(distinct_cells, max(rater_volumes.size, 1)), total_savings),
    )


def _match_to_common(overlap: Overlap) -> Integers:
    """Return the common region that matches each of a rater's regions by overlap, or −1."""
    groups = find_groups(overlap, Matching())
    number_of = np.full(groups.count + 1, -1, np.int64)  # index −1 selects the last entry
    paired = (groups.reference >= 0) & (groups.reference < groups.matched)
    number_of[groups.reference[paired]] = overlap.reference.keys[paired]
    return number_of[groups.prediction]


def _shared_overlap(overlap: Overlap, numbers: Integers) -> float:
    """Return the overlap of a rater with the others within the given common regions."""
    overlapping = overlap.pairs
    agreeing = overlap.reference.keys[overlapping.rows] == numbers[overlapping.columns]
    return float(overlapping.savings[agreeing].sum())


def most_frequent_labels(
    labels_and_names: Sequence[Mapping[int, tuple[int | None, str | None]]], regions: int
) -> tuple[tuple[int | None, ...], dict[int, str]]:
    """Choose the integer label and the name that most raters use for every common region.

    Integer labels are unique, and so are the names of regions without an integer label. The result
    does not depend on the order of raters. Ties are resolved in favour of the lowest label. A label
    that several regions could have is assigned to the region with the most votes for it.
    """
    votes = [
        Counter(rater_labels[k] for rater_labels in labels_and_names if k in rater_labels)
        for k in range(regions)
    ]
    requests: Counter[tuple[Label, int]] = Counter()
    for k, vote in enumerate(votes):
        for (number, name), times in vote.items():
            requests[name or "" if number is None else number, k] += times
    label_of: dict[int, Label] = {}
    used_labels: set[Label] = set()
    for label, k in sorted(
        requests, key=lambda pair: (isinstance(pair[0], str), -requests[pair], pair[0], pair[1])
    ):
        if k not in label_of and label not in used_labels:
            label_of[k] = label
            used_labels.add(label)
    free = count(max((label for label, _ in requests if isinstance(label, int)), default=-1) + 1)
    labels: list[int | None] = []
    names: dict[int, str] = {}
    for k, vote in enumerate(votes):
        label = label_of[k] if k in label_of else next(free)
        labels.append(None if isinstance(label, str) else label)
        name_votes: Counter[str] = Counter()
        for (number, name), times in vote.items():
            # A region with a new label keeps its name.
            if name is not None and (k not in label_of or label in (number, name)):
                name_votes[name] += times
        if name_votes:
            names[k] = min(name_votes, key=lambda name: (-name_votes[name], name))
    return tuple(labels), names
