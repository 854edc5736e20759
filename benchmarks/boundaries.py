"""Time and memory of boundary distances, and the times of other tools.

    python -m benchmarks.boundaries [FOLDER] [--only TEXT] [--json FILE]
    python -m benchmarks.boundaries --values REFERENCE PREDICTION

Each row runs in a separate process with two threads, so that its memory can be measured. The
reported time is the least wall time of several runs; the largest images and some tools are
measured only once. The processor time of all threads shows the influence of other processes. FOLDER
may contain the folders kits21 (with files such as
case_*/kidney_instance-1_annotation-1.nii.gz) and TotalSegmentator (with example_seg.nii.gz and
example_seg_fast.nii.gz). surface-distance, MONAI and pymeshmetrics are compared if they are
installed. Deviations are relative to pymeshmetrics. --only selects the rows whose function and
arguments, such as `kidney (0,)`, contain TEXT. --values prints the distances between two masks
according to every installed tool.
"""

import argparse
import json
import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import nibabel
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks.boundary_tools import COLUMNS, TOOLS, Mask, Numbers, table_of_tools
from probdice import Geometry, Segmentation
from probdice.engine.pair import SegmentationPair
from probdice.method.sides import Both
from probdice.metrics.boundaries import Boundaries, boundaries_of

WORKERS = 2
TOLERANCE = 1.0
KIDNEY = (32, 512, 512), (5.0, 0.64, 0.64)
BRAIN = (91, 109, 91)
WHOLE_BRAIN = (181, 217, 181)
CELLS = 271  # pixels along each axis
LATTICE = 6  # pixels between cells

OTHERS = {"surface-distance": 3, "MONAI": 2, "MeshMetrics": 1}  # number of runs per tool

Image = NDArray[Any]
R = TypeVar("R")


@dataclass(frozen=True)
class Row:
    """One line of the output."""

    work: str
    seconds: float
    processor: float
    gigabytes: float
    goal: str
    others: dict[str, tuple[float, float]]  # seconds and processor seconds of other tools
    deviations: dict[str, float]  # relative to pymeshmetrics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=None)
    parser.add_argument("--only", default="")
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
    for work, arguments in _works(options.folder):
        if options.only not in f"{work.__name__} {arguments}":
            continue
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
            row = alone.submit(work, *arguments).result()
        rows.append(row)
        print(
            f"{row.work:52} {row.seconds:8.3f} s {row.processor:8.3f} s of processor "
            f"{row.gigabytes:6.2f} GB  {row.goal}",
            flush=True,
        )
        for tool, (seconds, processor) in row.others.items():
            factors = f"{seconds / row.seconds:.1f} × and {processor / row.processor:.1f} ×"
            print(f"{'':4}{tool:48} {seconds:8.3f} s {processor:8.3f} s of processor  {factors}")
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
    """Measure two outlines of one smooth body in an anisotropic image."""
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
    """Measure two parcellations of an ellipsoid with 1000 parcels each."""
    reference, prediction = (_nearest_centre(BRAIN, 1000, moved) for moved in (0.0, 1.0))
    sides = [reference, prediction]
    return _row("1000 parcels, 91×109×91", sides, 1000, (2.0, 2.0, 2.0), "below 2 s")


def cells() -> Row:
    """Measure about 100,000 cells in 20 million pixels."""
    shape = (CELLS,) * 3
    reference, prediction = (_lattice(shape, seed) for seed in (1, 2))
    numbers = np.unique(np.concatenate([np.unique(reference), np.unique(prediction)]))
    places = np.full(numbers[-1] + 1, -1, np.int32)
    places[numbers] = np.arange(numbers.size)
    sides = [places[reference], places[prediction]]
    del reference, prediction
    work = f"{numbers.size:,} cells in {CELLS**3 / 1e6:.0f} M pixels"
    return _row(work, sides, numbers.size, (1.0, 1.0, 1.0), "below 30 s and 2 GB", times=1)


def soft() -> Row:
    """Measure three tissues of a whole brain at nine levels, with about 40 million triangles."""
    rng = np.random.default_rng(0)
    common = [_texture(rng, WHOLE_BRAIN, (20, 20, 20)) for _ in range(3)]
    brain = _in_ellipsoid(WHOLE_BRAIN)

    def maps() -> Image:
        fields = [field + 0.1 * _texture(rng, WHOLE_BRAIN, (8, 8, 8)) for field in common]
        weights = np.exp(6 * np.stack(fields).astype(np.float32))
        probabilities: Image = weights / weights.sum(axis=0) * brain
        return probabilities

    sides = [maps() for _ in range(2)]
    work = "probabilities, 3 regions, 181×217×181, nine levels"
    return _row(work, sides, 3, (1.0, 1.0, 1.0), "below 60 s and 4 GB", times=1)


def _texture(rng: np.random.Generator, shape: tuple[int, ...], grain: tuple[int, ...]) -> Image:
    """Return smooth noise of about unit variance, interpolated from values on a coarse grid."""
    coarse = rng.normal(size=[n // g + 3 for n, g in zip(shape, grain, strict=True)])
    factors = [g if g > 1 else 1 for g in grain]
    fine = ndimage.zoom(coarse.astype(np.float32), factors, order=1)
    texture: Image = fine[tuple(slice(n) for n in shape)]
    return texture


def _nearest_centre(shape: tuple[int, ...], count: int, moved: float) -> Image:
    """Return the index of the nearest random centre in an ellipsoid, and −1 for other pixels."""
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
    """Return a mask of an ellipsoid that nearly fills the image."""
    offsets = np.ogrid[tuple(slice(n) for n in shape)]
    inside: NDArray[np.bool_] = (
        sum(((x - n / 2) / (0.45 * n)) ** 2 for x, n in zip(offsets, shape, strict=True)) < 1
    )
    return inside


def _lattice(shape: tuple[int, ...], seed: int) -> Image:
    """Return the cells of a randomly deformed lattice. Seeds change the cells only slightly."""
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
    """Measure one organ outlined by two annotators."""
    second = first.with_name(first.name.replace("annotation-1", "annotation-2"))
    images = [nibabel.load(path) for path in (first, second)]
    spacing = tuple(float(x) for x in images[0].header.get_zooms())
    sides = [np.asarray(image.dataobj) > 0 for image in images]
    work = f"{first.parent.name} {first.name.split('_annotation')[0]}, annotators 1 and 2"
    return _crisp(work, sides, spacing, "at most surface-distance")


def structures(folder: Path) -> Row:
    """Measure all labels of two models. Other tools compare one label at a time."""
    images = [
        nibabel.load(folder / name) for name in ("example_seg.nii.gz", "example_seg_fast.nii.gz")
    ]
    spacing = tuple(float(x) for x in images[0].header.get_zooms())
    labels = [np.asarray(image.dataobj).astype(np.int32) - 1 for image in images]
    count = 1 + max(int(side.max()) for side in labels)
    shared = [k for k in range(count) if all((side == k).any() for side in labels)]
    pairs = [[side == k for side in labels] for k in shared]
    work = f"TotalSegmentator, {count} labels"
    goal = "3 × faster than surface-distance, 10 × faster than MONAI"
    return _beside_others(_row(work, labels, count, spacing, goal), labels, pairs, shared, spacing)


# -- one measurement -------------------------------------------------------------------------------


def _crisp(work: str, sides: list[Mask], spacing: tuple[float, ...], goal: str) -> Row:
    labels = [side.astype(np.int32) - 1 for side in sides]
    return _beside_others(_row(work, labels, 1, spacing, goal), labels, [sides], [0], spacing)


def _boundaries(sides: list[Image], groups: int, spacing: tuple[float, ...]) -> Boundaries:
    """Return the boundary distances of label maps, or of one probability channel per group."""
    make = Segmentation.from_labels if sides[0].ndim == 3 else Segmentation.from_probabilities
    geometry = Geometry(sides[0].shape[-3:], np.diag([*spacing, 1.0]))
    images = SegmentationPair.of(
        *(make(side, geometry=geometry) for side in sides), workers=WORKERS
    )
    members = [(k,) for k in range(groups)]
    both = Both(members, members)
    return boundaries_of(images, both, groups=both, tolerances=[TOLERANCE])


def _row(
    work: str,
    sides: list[Image],
    groups: int,
    spacing: tuple[float, ...],
    goal: str,
    times: int = 5,
) -> Row:
    corner = np.zeros((3, 3, 3), np.int32)
    corner[0, 0, 0] = 1
    _boundaries([corner, corner.T], 2, (1.0, 1.0, 1.0))  # compiles the kernels
    _, seconds, processor = _least(lambda: _boundaries(sides, groups, spacing), times)
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return Row(work, seconds, processor, gigabytes, goal, {}, {})


def _beside_others(
    row: Row,
    labels: list[Image],
    pairs: list[list[Mask]],
    groups: list[int],
    spacing: tuple[float, ...],
) -> Row:
    """Return the row with the times of other tools, which compare one pair of masks at a time."""
    others: dict[str, tuple[float, float]] = {}
    deviations: dict[str, float] = {}
    for tool, times in OTHERS.items():

        def measured(tool: str = tool) -> list[Numbers]:
            return [TOOLS[tool](*pair, spacing, TOLERANCE) for pair in pairs]

        try:
            numbers, *others[tool] = _least(measured, times)
        except ImportError:
            continue
        if tool == "MeshMetrics":
            ours = _boundaries(labels, max(groups) + 1, spacing)
            for name in COLUMNS:
                own = f"nsd@{TOLERANCE:g}" if name == "nsd" else name
                mean = np.mean([of_pair[name] for of_pair in numbers])
                deviations[name] = float(ours[own][groups].mean() / mean - 1)
    return replace(row, others=others, deviations=deviations)


def _least(measured: Callable[[], R], times: int) -> tuple[R, float, float]:
    """Return the result, and the least wall time and processor time of several runs."""
    seconds = processor = float("inf")
    for _ in range(times):
        start, start_processor = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = measured()
        seconds = min(seconds, time.perf_counter() - start)
        processor = min(processor, time.process_time() - start_processor)
    return result, seconds, processor


if __name__ == "__main__":
    main()
