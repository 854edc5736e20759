"""What `write` stores, `read` returns as the same segmentation, or `write` refuses it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from probdice import Geometry, InputError, Segmentation, compare, read, write

FORMATS = (
    *(".nii", ".nii.gz", ".mgh", ".mgz", ".nrrd", ".seg.nrrd", ".mha"),
    *(".npy", ".npz", ".tif", ".png", ".zarr"),
)
SHAPES = {"2-D": (5, 4), "3-D": (5, 4, 3), "flat": (5, 1, 4)}
NAMES = {0: "background", 17: "left hippocampus", 53: 'right "<CA1>" & [x] é'}
COLOURS = {17: "#0072B2", 53: "#E69F00"}


def place(shape: tuple[int, ...]) -> Geometry:
    """A grid with a spacing for each axis, away from the origin, its first axis flipped."""
    spacing = np.array([-2.0, 0.5, 4.0])[: len(shape)]
    affine = np.diag([*spacing, 1.0])
    affine[:-1, -1] = np.array([10.0, -20.0, 30.0])[: len(shape)]
    return Geometry(shape, affine)


def numbers(shape: tuple[int, ...]) -> NDArray[np.int64]:
    return np.array([0, 17, 53])[np.arange(np.prod(shape)).reshape(shape) % 7 % 3]


def rows(shape: tuple[int, ...], count: int = 3) -> NDArray[np.float32]:
    """Probabilities in steps of 1/64, which all types hold exactly."""
    steps = np.random.default_rng(0).integers(0, 65, (count - 1, *shape))
    cuts = np.sort(steps, axis=0)
    ends = np.concatenate([cuts, np.full((1, *shape), 64)])
    return np.diff(ends, axis=0, prepend=0).astype(np.float32) / 64


def coloured(segmentation: Segmentation) -> Segmentation:
    return replace(segmentation, colours=COLOURS)


SOURCES: dict[str, Callable[[tuple[int, ...]], Segmentation]] = {
    "labels": lambda s: Segmentation.from_labels(numbers(s)),
    "names": lambda s: coloured(Segmentation.from_labels(numbers(s), names=NAMES)),
    "negative": lambda s: Segmentation.from_labels(numbers(s) - 17),
    "boolean": lambda s: Segmentation.from_labels(numbers(s) > 0),
    "one label": lambda s: Segmentation.from_labels(np.ones(s, np.uint8)),
    "plain regions": lambda s: Segmentation.from_probabilities(rows(s)),
    "numbered regions": lambda s: Segmentation.from_probabilities(rows(s), labels=[0, 17, 53]),
    "named regions": lambda s: Segmentation.from_probabilities(rows(s), names=list(NAMES.values())),
    "regions": lambda s: Segmentation.from_probabilities(
        rows(s), labels=list(NAMES), names=list(NAMES.values())
    ),
    "shared name": lambda s: Segmentation.from_probabilities(
        rows(s), labels=[1, 2, 3], names=["mass", "mass", "kidney"]
    ),
    "partly": lambda s: Segmentation.from_probabilities(
        rows(s), labels=[4, None, -7], names=[None, "rest", None]
    ),
    "one-hot": lambda s: Segmentation.from_probabilities(
        (numbers(s) == np.array([0, 17, 53]).reshape(-1, *[1] * len(s))).astype(np.float32)
    ),
    "one region": lambda s: Segmentation.from_probabilities(
        np.ones((1, *s), np.float32), labels=[9], names=["all"]
    ),
    "foreground": lambda s: Segmentation.from_probabilities(rows(s)[0], axis=None),
    "whole foreground": lambda s: Segmentation.from_probabilities(
        (numbers(s) > 0).astype(np.float32), axis=None
    ),
    "named foreground": lambda s: Segmentation.from_probabilities(
        rows(s)[0], axis=None, labels=[3, 8], names=["rest", "liver"]
    ),
    "background": lambda s: Segmentation.from_probabilities(
        rows(s, 4)[:2], labels=[17, 53], sums="background"
    ),
    "normalise": lambda s: Segmentation.from_probabilities(
        rows(s) * np.float32(0.5), labels=[0, 17, 53], sums="normalise"
    ),
    "logits": lambda s: Segmentation.from_logits(
        np.log(rows(s) + np.float32(0.25)), labels=[0, 17, 53]
    ),
}
NPY_KEEPS = ("labels", "negative", "boolean", "one label", "plain regions", "one-hot")
NPY_KEEPS += ("foreground", "whole foreground")


def refusal(suffix: str, kind: str, shape: tuple[int, ...], placed: bool) -> str:
    """Why this format cannot hold that segmentation; "" where it can."""
    crisp = kind in ("labels", "names", "negative", "boolean", "one label")
    if suffix == ".npy" and (placed or kind not in NPY_KEEPS):
        return "NPY holds an array and nothing else, so"
    if suffix == ".png" and not crisp:
        return "PNG holds whole numbers only"
    if suffix == ".png" and len(shape) != 2:
        return "PNG holds 2 axes"
    if suffix == ".png" and kind == "negative":
        return "PNG holds labels from 0 to 65535, found -17"
    return ""


def by_label(segmentation: Segmentation) -> list[tuple[int | None, str | None]]:
    """The number and the name of every region."""
    names = segmentation.names
    if segmentation.crisp:
        labels = {*np.unique(np.asarray(segmentation.array)).tolist(), *names}
        return [(int(label), names.get(label)) for label in sorted(labels)]
    # Where a file knows neither number nor name, a region is known by its place.
    return [
        (k if label is None and k not in names else label, names.get(k))
        for k, label in enumerate(segmentation.labels)
    ]


def check_same(source: Segmentation, stored: Segmentation) -> None:
    """Labels, names, kind, geometry or its absence, values, and a score of 1."""
    assert stored.crisp == source.crisp
    assert by_label(stored) == by_label(source)
    assert (stored.geometry is None) == (source.geometry is None)
    if source.geometry is not None:
        stored = stored.onto(source.geometry, tolerance=1e-5)
    assert stored.shape == source.shape
    if source.crisp:
        whole = (slice(None),) * len(stored.shape)
        assert np.array_equal(np.asarray(stored.array[whole]), np.asarray(source.array))
    else:
        assert np.array_equal(stored.probabilities(), source.probabilities())
    # The softmax of logits is rounded block by block as they are compared.
    score = pytest.approx(1, abs=1e-7) if source.reading == "softmax" else 1
    assert compare(source, stored).score == score
    assert compare(source, stored, match="labels").score == score
    assert compare(stored, source, match="labels").score == score


@pytest.mark.parametrize("placed", [True, False], ids=["geometry", "no geometry"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_segmentation_comes_back_or_is_refused(
    suffix: str, kind: str, shape: tuple[int, ...], placed: bool, tmp_path: Path
) -> None:
    source = SOURCES[kind](shape)
    if placed:
        source = replace(source, geometry=place(shape))
    path = tmp_path / f"a{suffix}"
    reason = refusal(suffix, kind, shape, placed)
    if reason:
        with pytest.raises(InputError, match=reason):
            write(path, source)
        assert not path.exists()
        return
    write(path, source)
    stored = read(path)
    check_same(source, stored)
    if kind == "names":
        assert {k: stored.colours.get(k) for k in COLOURS} == COLOURS
