"""Time and memory of boundary distances, compared with other tools.

    python -m benchmarks.boundaries [--data FOLDER] [--json FILE]
    python -m benchmarks.boundaries --values REFERENCE PREDICTION

Each row runs in a separate process with two threads, so that its memory can be measured. The least
of several wall times counts; the processor time shows the influence of other processes. FOLDER may
contain kits21 (case_*/kidney_instance-1_annotation-1.nii.gz, …) and TotalSegmentator
(example_seg.nii.gz, example_seg_fast.nii.gz). The packages surface-distance and pymeshmetrics are
compared if they are installed; deviations are relative to pymeshmetrics. --values prints the
distances of two masks by every tool that is installed.
"""

import argparse
import json
import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks.boundary_tools import table_of_tools
from probdice import Geometry
from probdice.engine.surface_distances import ArrayOutlines, GroupSets, LabelSets, SoftSets
from probdice.method.sides import Both
from probdice.metrics.boundaries import Boundaries, boundaries_of

WORKERS = 2
TOLERANCE = 1.0
KIDNEY = (32, 512, 512), (5.0, 0.64, 0.64)
BRAIN = (91, 109, 91)
WHOLE_BRAIN = (181, 217, 181)
CELLS = 271  # pixels along each axis
LATTICE = 6  # pixels between cells

Image = NDArray[Any]


@dataclass(frozen=True)
class Row:
    """One line of the output."""

    work: str
    seconds: float
    processor: float
    gigabytes: float
    goal: str
    others: dict[str, float]  # seconds of other tools
    deviations: dict[str, float]  # from pymeshmetrics, relative


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--values", type=Path, nargs=2, default=None)
    options = parser.parse_args()
    if options.values is not None:
        images = [nibabel.load(path) for path in options.values]
        spacing = tuple(float(x) for x in images[0].header.get_zooms())
        sides = [np.asarray(image.dataobj) > 0 for image in images]
        print(table_of_tools(sides, spacing, TOLERANCE))
        return
    rows = []
    for work, arguments in _works(options.data):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
            row = alone.submit(work, *arguments).result()
        rows.append(row)
        print(
            f"{row.work:58} {row.seconds:8.3f} s {row.processor:8.3f} s of processor "
            f"{row.gigabytes:6.2f} GB  {row.goal}"
        )
        for tool, seconds in row.others.items():
            print(f"{'':4}{tool:54} {seconds:8.3f} s {seconds / row.seconds:8.1f} ×")
        if row.deviations:
            shown = "  ".join(f"{name} {100 * x:.2f} %" for name, x in row.deviations.items())
            print(f"{'':4}deviations from pymeshmetrics: {shown}")
    if options.json is not None:
        content = json.dumps([asdict(row) for row in rows], indent=2)
        options.json.write_text(content + "\n", encoding="utf-8")


def _works(data: Path | None) -> list[tuple[Callable[..., Row], tuple[Any, ...]]]:
    works: list[tuple[Callable[..., Row], tuple[Any, ...]]] = [
        (kidney, (0,)),
        (kidney, (1,)),
        (parcels, ()),
        (cells, ()),
        (soft, ()),
    ]
    if data is not None:
        for case in sorted((data / "kits21").glob("case_*")):
            for first in sorted(case.glob("*_annotation-1.nii.gz")):
                works.append((annotators, (first,)))
        works += [
            (structures, (folder,)) for folder in [data / "TotalSegmentator"] if folder.exists()
        ]
    return works


# -- synthetic images ------------------------------------------------------------------------------


def kidney(seed: int) -> Row:
    """Two outlines of one smooth body in an anisotropic image."""
    shape, spacing = KIDNEY
    rng = np.random.default_rng(seed)
    offsets = np.meshgrid(
        *((np.arange(n) - n / 2) * s for n, s in zip(shape, spacing, strict=True)),
        indexing="ij",
        sparse=True,
    )
    radii = (55.0, 45.0, 38.0)
    body = sum((offset / r) ** 2 for offset, r in zip(offsets, radii, strict=True))
    texture = _texture(rng, shape, (1, 16, 16))
    sides = [body + 0.15 * texture + 0.03 * _texture(rng, shape, (1, 8, 8)) < 1 for _ in range(2)]
    return _crisp(f"kidney phantom {seed}, 32×512×512", sides, spacing, "at most surface-distance")


def parcels() -> Row:
    """Two parcellations of a brain with 1000 parcels each."""
    reference, prediction = (_nearest_centre(BRAIN, 1000, moved) for moved in (0.0, 1.0))
    sides = Both(LabelSets(reference), LabelSets(prediction))
    return _row("1000 parcels, 91×109×91", sides, 1000, (2.0, 2.0, 2.0), "below 2 s")


def cells() -> Row:
    """About 100,000 cells in 20 million pixels."""
    shape = (CELLS,) * 3
    reference, prediction = (_lattice(shape, seed) for seed in (1, 2))
    numbers = np.unique(np.concatenate([np.unique(reference), np.unique(prediction)]))
    places = np.full(numbers[-1] + 1, -1, np.int32)
    places[numbers] = np.arange(numbers.size)
    sides = Both(LabelSets(places[reference]), LabelSets(places[prediction]))
    del reference, prediction
    work = f"{numbers.size:,} cells in {CELLS**3 / 1e6:.0f} M pixels"
    return _row(work, sides, numbers.size, (1.0, 1.0, 1.0), "below 30 s and 2 GB", times=1)


def soft() -> Row:
    """Three tissues of a whole brain at nine levels, with some 40 million triangles."""
    rng = np.random.default_rng(0)
    common = [_texture(rng, WHOLE_BRAIN, (20, 20, 20)) for _ in range(3)]
    brain = _in_ellipsoid(WHOLE_BRAIN)

    def maps() -> Image:
        fields = [field + 0.1 * _texture(rng, WHOLE_BRAIN, (8, 8, 8)) for field in common]
        weights = np.exp(6 * np.stack(fields).astype(np.float32))
        probabilities: Image = weights / weights.sum(axis=0) * brain
        return probabilities

    sides = Both(*(SoftSets(maps(), WHOLE_BRAIN) for _ in range(2)))
    work = "probabilities, 3 regions, 181×217×181, nine levels"
    return _row(work, sides, 3, (1.0, 1.0, 1.0), "below 60 s and 4 GB", times=1)


def _texture(rng: np.random.Generator, shape: tuple[int, ...], grain: tuple[int, ...]) -> Image:
    """Smooth noise of about unit variance: random values on a coarse grid, interpolated."""
    coarse = rng.normal(size=[n // g + 3 for n, g in zip(shape, grain, strict=True)])
    factors = [g if g > 1 else 1 for g in grain]
    fine = ndimage.zoom(coarse.astype(np.float32), factors, order=1)
    texture: Image = fine[tuple(slice(n) for n in shape)]
    return texture


def _nearest_centre(shape: tuple[int, ...], count: int, moved: float) -> Image:
    """The nearest of random centres, inside an ellipsoid; −1 outside."""
    from scipy.spatial import cKDTree

    rng = np.random.default_rng(0)
    inside = _in_ellipsoid(shape)
    places = np.argwhere(inside)
    centres = places[rng.choice(len(places), count, replace=False)]
    centres = centres + moved * rng.normal(size=centres.shape)
    labels = np.full(shape, -1, np.int32)
    labels[inside] = cKDTree(centres).query(places, workers=WORKERS)[1]
    return labels


def _in_ellipsoid(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """The pixels of an ellipsoid that nearly fills the image."""
    offsets = np.ogrid[tuple(slice(n) for n in shape)]
    inside: NDArray[np.bool_] = (
        sum(((x - n / 2) / (0.45 * n)) ** 2 for x, n in zip(offsets, shape, strict=True)) < 1
    )
    return inside


def _lattice(shape: tuple[int, ...], seed: int) -> Image:
    """Cells of a randomly deformed lattice, nearly the same for all seeds."""
    common, own = np.random.default_rng(0), np.random.default_rng(seed)
    labels = np.zeros(shape, np.int32)
    across = shape[0] // LATTICE + 6
    for places in np.ogrid[tuple(slice(n) for n in shape)]:
        bent = places + _texture(common, shape, (5, 5, 5)) + 0.5 * _texture(own, shape, (4, 4, 4))
        labels *= across
        labels += np.clip(bent // LATTICE + 2, 0, across - 1).astype(np.int32)
    return labels


# -- real images -----------------------------------------------------------------------------------


def annotators(first: Path) -> Row:
    """One organ by two annotators."""
    second = first.with_name(first.name.replace("annotation-1", "annotation-2"))
    images = [nibabel.load(path) for path in (first, second)]
    spacing = tuple(float(x) for x in images[0].header.get_zooms())
    sides = [np.asarray(image.dataobj) > 0 for image in images]
    work = f"{first.parent.name} {first.name.split('_annotation')[0]}, annotators 1 and 2"
    return _crisp(work, sides, spacing, "at most surface-distance")


def structures(folder: Path) -> Row:
    """All labels of two models; other tools compare them one by one."""
    images = [
        nibabel.load(folder / name) for name in ("example_seg.nii.gz", "example_seg_fast.nii.gz")
    ]
    spacing = tuple(float(x) for x in images[0].header.get_zooms())
    labels = [np.asarray(image.dataobj).astype(np.int32) - 1 for image in images]
    count = 1 + max(int(side.max()) for side in labels)
    row = _row(
        f"TotalSegmentator, {count} labels",
        Both(*map(LabelSets, labels)),
        count,
        spacing,
        "3 × faster than surface-distance",
    )
    shared = [k for k in range(count) if all((side == k).any() for side in labels)]
    pairs = [[side == k for side in labels] for k in shared]
    values = _boundaries(Both(*map(LabelSets, labels)), count, spacing)
    others, deviations = _other_tools(pairs, spacing, values, shared)
    return Row(**{**asdict(row), "others": others, "deviations": deviations})


# -- one measurement -------------------------------------------------------------------------------


def _crisp(work: str, sides: list[Image], spacing: tuple[float, ...], goal: str) -> Row:
    labels = Both(*(LabelSets(side.astype(np.int32) - 1) for side in sides))
    row = _row(work, labels, 1, spacing, goal)
    others, deviations = _other_tools([sides], spacing, _boundaries(labels, 1, spacing), [0])
    return Row(**{**asdict(row), "others": others, "deviations": deviations})


def _boundaries(sides: Both[GroupSets], groups: int, spacing: tuple[float, ...]) -> Boundaries:
    members = [(k,) for k in range(groups)]
    return boundaries_of(
        ArrayOutlines(sides),
        groups=Both(members, members),
        geometry=Geometry(sides.reference.shape, np.diag([*spacing, 1.0])),
        tolerances=[TOLERANCE],
        workers=WORKERS,
    )


def _row(
    work: str,
    sides: Both[GroupSets],
    groups: int,
    spacing: tuple[float, ...],
    goal: str,
    times: int = 5,
) -> Row:
    square = np.full((3, 3, 3), -1, np.int32)
    square[1, 1, 1] = 0
    _boundaries(Both(LabelSets(square), LabelSets(square)), 1, (1.0, 1.0, 1.0))  # compiles
    best = processor = float("inf")
    for _ in range(times):
        start, start_processor = time.perf_counter(), time.process_time()
        _boundaries(sides, groups, spacing)
        best = min(best, time.perf_counter() - start)
        processor = min(processor, time.process_time() - start_processor)
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return Row(work, best, processor, gigabytes, goal, {}, {})


def _other_tools(
    pairs: list[list[Image]], spacing: tuple[float, ...], ours: Boundaries, groups: list[int]
) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of the other tools, and the deviation of our means from pymeshmetrics."""
    seconds, deviations = {}, {}
    try:
        import surface_distance
    except ImportError:
        pass
    else:
        times = []
        for _ in range(3):
            start = time.perf_counter()
            for pair in pairs:
                found = surface_distance.compute_surface_distances(*pair, spacing)
                surface_distance.compute_robust_hausdorff(found, 100)
                surface_distance.compute_robust_hausdorff(found, 95)
                surface_distance.compute_average_surface_distance(found)
                surface_distance.compute_surface_dice_at_tolerance(found, TOLERANCE)
            times.append(time.perf_counter() - start)
        seconds["surface-distance"] = min(times)
    try:
        import meshmetrics
    except ImportError:
        return seconds, deviations
    start = time.perf_counter()
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for pair in pairs:
            mesh = meshmetrics.DistanceMetrics(verbose=False)
            mesh.set_input(*pair, spacing)
            rows.append([mesh.assd(), mesh.masd(), mesh.hd(), mesh.hd(95), mesh.nsd(TOLERANCE)])
    seconds["pymeshmetrics"] = time.perf_counter() - start
    theirs = np.mean(rows, axis=0)
    for name, value in zip(("assd", "masd", "hd", "hd95", "nsd@1"), theirs, strict=True):
        deviations[name] = float(ours[name][groups].mean() / value - 1)
    return seconds, deviations


if __name__ == "__main__":
    main()
