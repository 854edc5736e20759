"""Boundary distances computed from their definition, over all pairs of elements, in plain NumPy."""

from itertools import product

import numpy as np


def surface(inside, affine, omega=None):
    """World coordinates of the triangles (n × 3 × 3) or segments (n × 2 × 2) of a set."""
    d = inside.ndim
    padded = np.pad(inside, 1)
    left_out = np.zeros(padded.shape, bool) if omega is None else np.pad(~omega, 1)
    elements = []
    for place in product(*(range(n - 1) for n in padded.shape)):
        corners = [tuple(np.add(place, step)) for step in product((0, 1), repeat=d)]
        if any(left_out[corner] for corner in corners):
            continue
        if len({bool(padded[corner]) for corner in corners}) == 1:
            continue
        segments = [s for face in _faces(place, d) for s in _segments(padded, face)]
        for points in segments if d == 2 else _polygons(segments):
            points = np.array(points, float) / 2 - 1  # indices in the image without padding
            if len(points) <= 3:
                elements.append(points)
            else:
                mean = points.mean(axis=0)
                for k in range(len(points)):
                    elements.append(np.array([mean, points[k], points[(k + 1) % len(points)]]))
    elements = np.array(elements).reshape(-1, d, d)
    return elements @ affine[:d, :d].T + affine[:d, d]


def _faces(place, d):
    """The four corners of every face of a cell, in order around it."""
    square = [(0, 0), (0, 1), (1, 1), (1, 0)]
    if d == 2:
        return [[tuple(np.add(place, step)) for step in square]]
    faces = []
    for axis in range(3):
        for side in (0, 1):
            steps = [np.insert(step, axis, side) for step in square]
            faces.append([tuple(np.add(place, step)) for step in steps])
    return faces


def _segments(padded, face):
    """Pairs of midpoints, doubled so that they are whole numbers."""
    middle = [tuple(np.add(face[k], face[(k + 1) % 4])) for k in range(4)]
    values = [bool(padded[corner]) for corner in face]
    changes = [middle[k] for k in range(4) if values[k] != values[(k + 1) % 4]]
    if len(changes) == 4:
        return [(middle[k - 1], middle[k]) for k in range(4) if values[k]]
    return [tuple(changes)] if changes else []


def _polygons(segments):
    """Closed chains of segments."""
    left = list(segments)
    chains = []
    while left:
        first, last = left.pop()
        chain = [first, last]
        while True:
            k = next(k for k, segment in enumerate(left) if chain[-1] in segment)
            a, b = left.pop(k)
            following = b if a == chain[-1] else a
            if following == first:
                break
            chain.append(following)
        chains.append(chain)
    return chains


def sizes(elements):
    """Lengths of segments or areas of triangles."""
    first = elements[:, 1] - elements[:, 0]
    if elements.shape[1] == 2:
        return np.linalg.norm(first, axis=1)
    return np.linalg.norm(np.cross(first, elements[:, 2] - elements[:, 0]), axis=1) / 2


def distances(points, elements):
    """Distances from every point to the nearest point of all elements."""
    return np.array([_to_elements(point, elements).min(initial=np.inf) for point in points])


def _to_elements(point, elements):
    corners = elements.shape[1]
    sides = [(k, (k + 1) % corners) for k in range(corners if corners == 3 else 1)]
    best = np.full(len(elements), np.inf)
    for a, b in sides:
        start, along = elements[:, a], elements[:, b] - elements[:, a]
        share = ((point - start) * along).sum(axis=1) / (along**2).sum(axis=1)
        nearest = start + np.clip(share, 0, 1)[:, None] * along
        best = np.minimum(best, np.linalg.norm(point - nearest, axis=1))
    if corners == 3:  # the foot of the perpendicular, where it lies in the triangle
        a, b, c = elements[:, 0], elements[:, 1], elements[:, 2]
        normal = np.cross(b - a, c - a)
        square = (normal**2).sum(axis=1)
        beta = (np.cross(point - a, c - a) * normal).sum(axis=1) / square
        gamma = (np.cross(b - a, point - a) * normal).sum(axis=1) / square
        within = (beta >= 0) & (gamma >= 0) & (beta + gamma <= 1)
        height = np.abs(((point - a) * normal).sum(axis=1)) / np.sqrt(square)
        best = np.where(within, np.minimum(best, height), best)
    return best


def directed(reference, prediction, affine, omega=None):
    """Distances and weights of both sides."""
    one, two = (surface(side, affine, omega) for side in (reference, prediction))
    return (
        (distances(one.mean(axis=1), two), sizes(one)),
        (distances(two.mean(axis=1), one), sizes(two)),
    )


def numbers(reference, prediction, affine, percentiles, tolerances, omega=None):
    """A dictionary of hd, assd, masd, percentiles and nsd."""
    return summary(*directed(reference, prediction, affine, omega), percentiles, tolerances)


def summary(one, two, percentiles, tolerances):
    """The numbers of two directed sets of distances with their weights."""
    (d1, w1), (d2, w2) = one, two
    names = ["hd", "assd", "masd", *(f"hd{p:g}" for p in percentiles)]
    if not (d1.size and d2.size):
        both = d1.size == d2.size
        values = dict.fromkeys(names, np.nan if both else np.inf)
        return values | {f"nsd@{t:g}": np.nan if both else 0.0 for t in tolerances}
    values = {
        "hd": max(d1.max(), d2.max()),
        "assd": ((d1 * w1).sum() + (d2 * w2).sum()) / (w1.sum() + w2.sum()),
        "masd": ((d1 * w1).sum() / w1.sum() + (d2 * w2).sum() / w2.sum()) / 2,
    }
    for p in percentiles:
        values[f"hd{p:g}"] = max(percentile(d1, w1, p), percentile(d2, w2, p))
    for t in tolerances:
        within = w1[d1 <= t + 1e-9].sum() + w2[d2 <= t + 1e-9].sum()
        values[f"nsd@{t:g}"] = within / (w1.sum() + w2.sum())
    return values


def percentile(values, weights, p):
    """The smallest value at which the cumulated share of the weight reaches p."""
    order = np.argsort(values, kind="stable")
    shares = np.cumsum(weights[order]) / weights.sum()
    return values[order][np.flatnonzero(shares >= p / 100 - 1e-9)[0]]
