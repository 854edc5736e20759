"""Boundary distances between two masks according to several tools with different definitions."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice import Geometry, Segmentation, compare

__all__ = ["COLUMNS", "TOOLS", "Mask", "Numbers", "table_of_tools"]

Mask = NDArray[np.bool_]
Numbers = dict[str, float]  # hd, hd95, assd, nsd
COLUMNS = ("hd", "hd95", "assd", "nsd")


def table_of_tools(sides: list[Mask], spacing: tuple[float, ...], tolerance: float) -> str:
    """Return the numbers of every installed tool as a Markdown table."""
    lines = [
        f"| tool | hd | hd95 | assd | surface Dice at {tolerance:g} mm |",
        "|---|---:|---:|---:|---:|",
    ]
    for tool, measure in TOOLS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                numbers = measure(*sides, spacing, tolerance)
        except ImportError:
            continue
        cells = (f"{numbers[name]:.3f}" if name in numbers else "–" for name in COLUMNS)
        lines.append(f"| {tool} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _probdice(one: Mask, two: Mask, spacing: tuple[float, ...], tolerance: float) -> Numbers:
    geometry = Geometry(one.shape, np.diag([*spacing, 1.0]))
    sides = (
        Segmentation.from_labels(side.astype(np.uint8), geometry=geometry) for side in (one, two)
    )
    result = compare(*sides, match="labels", background=0)
    boundaries = result.boundaries(tolerances=[tolerance])
    names = {"hd": "hd", "hd95": "hd95", "assd": "assd", "nsd": f"nsd@{tolerance:g}"}
    return {name: boundaries.means[own].mean for name, own in names.items()}


def _meshmetrics(one: Mask, two: Mask, spacing: tuple[float, ...], tolerance: float) -> Numbers:
    from meshmetrics import DistanceMetrics

    mesh = DistanceMetrics(verbose=False)
    mesh.set_input(one, two, spacing)
    return {
        "hd": mesh.hd(),
        "hd95": mesh.hd(95),
        "assd": mesh.assd(),
        "nsd": mesh.nsd(tolerance),
    }


def _surface_distance(
    one: Mask, two: Mask, spacing: tuple[float, ...], tolerance: float
) -> Numbers:
    import surface_distance as tool

    surfaces = tool.compute_surface_distances(one, two, spacing)
    averages = tool.compute_average_surface_distance(surfaces)
    return {
        "hd": tool.compute_robust_hausdorff(surfaces, 100),
        "hd95": tool.compute_robust_hausdorff(surfaces, 95),
        "assd": float(np.mean(averages)),
        "nsd": tool.compute_surface_dice_at_tolerance(surfaces, tolerance),
    }


def _monai(one: Mask, two: Mask, spacing: tuple[float, ...], tolerance: float) -> Numbers:
    import torch
    from monai import metrics

    first, second = (torch.as_tensor(side)[None, None] for side in (one, two))
    options: dict[str, Any] = {"include_background": True, "spacing": spacing}
    return {
        "hd": float(metrics.compute_hausdorff_distance(first, second, **options)),
        "hd95": float(metrics.compute_hausdorff_distance(first, second, percentile=95, **options)),
        "assd": float(
            metrics.compute_average_surface_distance(first, second, symmetric=True, **options)
        ),
        "nsd": float(metrics.compute_surface_dice(first, second, [tolerance], **options)),
    }


def _medpy(one: Mask, two: Mask, spacing: tuple[float, ...], tolerance: float) -> Numbers:
    from medpy.metric import binary

    return {
        "hd": binary.hd(one, two, spacing),
        "hd95": binary.hd95(one, two, spacing),
        "assd": binary.assd(one, two, spacing),
    }


TOOLS: dict[str, Callable[[Mask, Mask, tuple[float, ...], float], Numbers]] = {
    "probdice": _probdice,
    "MeshMetrics": _meshmetrics,
    "surface-distance": _surface_distance,
    "MONAI": _monai,
    "MedPy": _medpy,
}
