"""The reference implementation of docs/explanation/method.md, in float64 and plain loops."""

from itertools import permutations

import numpy as np


def one_hot(labels, values=None):
    """A label map as probabilities, one row per ascending label."""
    labels = np.asarray(labels)
    values = np.unique(labels) if values is None else values
    return np.stack([(labels == value).astype(np.float64) for value in values])


def absolute(p, q):
    """f₁ of two vectors."""
    return min(max(1 - sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2, 0), 1)


def aitchison(p, q, floor=0.0):
    """f₂ of two vectors, with the rules for zeros."""
    shared = [(a, b) for a, b in zip(p, q, strict=True) if not (a == 0 and b == 0)]
    if floor == 0 and any(a == 0 or b == 0 for a, b in shared):
        return 0.0
    p, q = np.array([(max(a, floor), max(b, floor)) for a, b in shared]).reshape(-1, 2).T
    clr_p, clr_q = np.log(p) - np.log(p).mean(), np.log(q) - np.log(q).mean()
    return 1 / (1 + np.sqrt(((clr_p - clr_q) ** 2).sum()))


def f_of(similarity, floor=0.0):
    """The similarity with this name."""
    return absolute if similarity == "absolute" else lambda p, q: aitchison(p, q, floor)


def score(p, q, f):
    """D: the mean of f over the pixels."""
    return float(np.mean([f(a, b) for a, b in zip(p.T, q.T, strict=True)]))


def auxiliary(p, regions):
    """The binary segmentation of some regions and the sum of all others."""
    others = [i for i in range(len(p)) if i not in regions]
    return np.stack([p[list(regions)].sum(axis=0), p[others].sum(axis=0)])


def weights(p, q, f):
    """1 − D of every pair of auxiliary segmentations."""
    return np.array(
        [
            [1 - score(auxiliary(p, [i]), auxiliary(q, [j]), f) for j in range(len(q))]
            for i in range(len(p))
        ]
    )


def best_permutation(p, q):
    """The best absolute score over all ways to match equally many regions."""
    return max(score(p, q[list(order)], absolute) for order in permutations(range(len(q))))


def best_one_to_one(p, q, f=absolute):
    """The best score over all one-to-one correspondences, in which any region may be unmatched."""
    return max(score(*side_by_side(p, q, pairs), f) for pairs in all_pairings(len(p), len(q)))


def all_pairings(rows, columns):
    """All sets of pairs, each row and each column in at most one."""
    if rows == 0:
        yield ()
        return
    for pairs in all_pairings(rows - 1, columns):
        yield pairs
        taken = {j for _, j in pairs}
        for j in range(columns):
            if j not in taken:
                yield (*pairs, (rows - 1, j))


def side_by_side(p, q, pairs):
    """Both sides with matched regions in the same rows, and rows of zeros for unmatched ones."""
    return grouped(
        p,
        q,
        [([i], [j]) for i, j in pairs]
        + [([i], []) for i in range(len(p)) if i not in {a for a, _ in pairs}]
        + [([], [j]) for j in range(len(q)) if j not in {b for _, b in pairs}],
    )


def grouped(p, q, groups):
    """Both sides with the regions of every group summed."""
    zero = np.zeros(p.shape[1])
    return (
        np.stack([sum((p[i] for i in rows), zero) for rows, _ in groups]),
        np.stack([sum((q[j] for j in columns), zero) for _, columns in groups]),
    )


def likeliest(p):
    """The number of pixels at which each region is within 1e-6 of the largest probability."""
    return [sum(row[x] >= max(p[:, x]) - 1e-6 for x in range(p.shape[1])) for row in p]


def dice_of_counted(p, q, groups):
    """Dice of every group with a region that is the likeliest somewhere; 0 for unmatched ones."""
    counts = likeliest(p), likeliest(q)
    dice = []
    for rows, columns in groups:
        if any(counts[0][i] for i in rows) or any(counts[1][j] for j in columns):
            a, b = grouped(p, q, [(rows, columns)])
            dice.append(2 * float(np.minimum(a, b).sum()) / float(a.sum() + b.sum()))
    return dice


def overlaps(p, q, f):
    """o_ij: the loss that a pair saves compared with both regions alone, where they overlap."""
    table = np.zeros((len(p), len(q)))
    for i in range(len(p)):
        for j in range(len(q)):
            a, b = auxiliary(p, [i]), auxiliary(q, [j])
            for x in range(p.shape[1]):
                if p[i, x] > 0 and q[j, x] > 0:
                    alone = (1 - f(a[:, x], [0, 1])) + (1 - f([0, 1], b[:, x]))
                    table[i, j] += max(0.5 * (alone - (1 - f(a[:, x], b[:, x]))), 0)
    return table / p.shape[1]


def match(p, q, f):
    """The pairs of overlapping regions with the largest total overlap; ties are not resolved."""
    table = overlaps(p, q, f)
    overlapping = [
        pairs for pairs in all_pairings(*table.shape) if all(table[pair] for pair in pairs)
    ]
    return max(overlapping, key=lambda pairs: sum(table[pair] for pair in pairs))


def merge(p, q, f, pairs, sides):
    """Groups after merging, and the merges as (side, region, regions of the other side, gain).

    The largest gain comes first. Gains within 1e-12 tie: the prediction comes before the reference,
    then the lower region, then the group whose matched reference region is the lower one.
    """
    groups = [([i], [j]) for i, j in sorted(pairs)]
    unmatched = [("prediction", j) for j in range(len(q)) if j not in {b for _, b in pairs}]
    unmatched += [("reference", i) for i in range(len(p)) if i not in {a for a, _ in pairs}]
    joins = []

    def quality(rows, columns):
        return score(auxiliary(p, rows), auxiliary(q, columns), f)

    while True:
        offers = []
        for side, u in unmatched:
            if side not in sides:
                continue
            for rows, columns in sorted(groups, key=lambda group: group[0][0]):
                if side == "prediction":
                    meets = bool(np.any((p[rows].sum(axis=0) > 0) & (q[u] > 0)))
                    joined = rows, [*columns, u]
                else:
                    meets = bool(np.any((q[columns].sum(axis=0) > 0) & (p[u] > 0)))
                    joined = [*rows, u], columns
                if meets:
                    gain = quality(*joined) - quality(rows, columns)
                    offers.append((side, u, rows, columns, joined, gain))
        if not offers:
            alone = [([i], []) for side, i in unmatched if side == "reference"]
            alone += [([], [j]) for side, j in unmatched if side == "prediction"]
            return sorted(groups), alone, joins
        best = max(offer[-1] for offer in offers)
        # Offers are listed in the order in which ties are broken.
        side, u, rows, columns, joined, gain = next(o for o in offers if o[-1] >= best - 1e-12)
        joins.append((side, u, sorted(rows if side == "prediction" else columns), gain))
        groups.remove((rows, columns))
        groups.append(joined)
        unmatched.remove((side, u))


def independent_overlaps(p, q):
    """E min(p_i(X), q_j(Y)) over all pairs of pixels X and Y."""
    table = np.zeros((len(p), len(q)))
    for x in range(p.shape[1]):
        for y in range(q.shape[1]):
            for i in range(len(p)):
                for j in range(len(q)):
                    table[i, j] += min(p[i, x], q[j, y])
    return table / (p.shape[1] * q.shape[1])


def chance(p, q):
    """The best absolute one-to-one score of independent sides, by all pairs of pixels."""
    table = independent_overlaps(p, q)
    total = max(sum(table[pair] for pair in pairs) for pairs in all_pairings(*table.shape))
    return 1 - (p.sum() + q.sum()) / (2 * p.shape[1]) + total


def chance_by_pairs(p, q, pairs):
    """The absolute score over all pairs of pixels of regions that correspond as given."""
    a, b = side_by_side(p, q, pairs)
    return float(np.mean([absolute(u, v) for u in a.T for v in b.T]))


def explained(q, p):
    """R² of the least-squares regression of q on p, with an intercept."""
    design = np.concatenate([p.T, np.ones((p.shape[1], 1))], axis=1)
    # Directions with almost no variance are rounding errors, so they are dropped.
    fitted = design @ np.linalg.lstsq(design, q.T, rcond=1e-6)[0]
    total = ((q.T - q.mean(axis=1)) ** 2).sum()
    return 1 - ((q.T - fitted) ** 2).sum() / total


def goodman_kruskal(labels, given):
    """τ: the relative reduction of the guessing error for labels if the other labels are known."""
    labels, given = np.asarray(labels).reshape(-1), np.asarray(given).reshape(-1)

    def gini(values):
        shares = np.unique(values, return_counts=True)[1] / values.size
        return 1 - (shares**2).sum()

    within = sum(
        (given == value).mean() * gini(labels[given == value]) for value in np.unique(given)
    )
    return 1 - within / gini(labels)
