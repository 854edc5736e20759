"""Triangle meshes on which the values of vertices are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probdice.data.vertex_space import Structure, VertexSpace
from probdice.errors import GeometryError

__all__ = ["Surface", "surfaces_for"]


@dataclass(frozen=True, eq=False)
class Surface:
    """A triangle mesh of one structure.

    Attributes
    ----------
    points : ndarray of float64
        Position of each vertex in millimetres (right, anterior, superior), one vertex per row.
    triangles : ndarray of int64
        The three vertices of each triangle, one triangle per row.
    structure : str
        Name such as "left cortex", or "" if unknown.
    source : str
        The file from which the surface was read.
    """

    points: NDArray[np.float64]
    triangles: NDArray[np.int64]
    structure: str = ""
    source: str = ""


def surfaces_for(
    space: VertexSpace, surfaces: Sequence[Surface], *, every: bool = True
) -> list[tuple[int, Surface]]:
    """Assign surfaces to the structures of `space`.

    Return pairs of the index of a structure and its surface, in the order of the structures.

    Parameters
    ----------
    space : VertexSpace
        The vertex space of the segmentations.
    surfaces : sequence of Surface
        The surfaces to assign to structures.
    every : bool, optional
        Whether each surface must belong to a structure of `space`. Use False if, for example, a
        folder contains surfaces of hemispheres that are not segmented.

    Raises
    ------
    GeometryError
        If a surface and its structure have different numbers of vertices, or if `every` is True
        and a surface belongs to no structure.
    """
    surface_of: dict[int, Surface] = {}
    for surface in surfaces:
        number = _structure_of(space, surface, used_structures=set(surface_of))
        if number is not None:
            surface_of[number] = surface
        elif every:
            names = [structure.label for structure in space.structures if structure.vertices]
            raise GeometryError(
                f"{surface.source}: is a surface of {surface.structure or 'an unknown structure'}, "
                f"but the segmentations are defined on {', '.join(names) or 'voxels'}. Use at most "
                f"one surface per structure of the segmentations."
            )
    return sorted(surface_of.items(), key=lambda pair: pair[0])


def _structure_of(space: VertexSpace, surface: Surface, used_structures: set[int]) -> int | None:
    """Return the index of an unused structure with the name and size of the surface.

    A structure or surface without a name matches any name. Return None if no name matches. Raise
    an error if a name matches but no number of vertices does.
    """
    candidates = [
        k
        for k, structure in enumerate(space.structures)
        if structure.vertices
        and k not in used_structures
        and (not surface.structure or structure.name in ("", surface.structure))
    ]
    if not candidates:
        return None
    count = len(surface.points)
    fitting = [k for k in candidates if space.structures[k].vertices == count]
    if not fitting:
        expected, actual = space.structures[candidates[0]], Structure(surface.structure, count)
        raise GeometryError(
            f"{surface.source}: the surface and the segmentations are in different spaces: "
            f"{actual.space} vs {expected.space}. Use a surface in the space of the segmentations."
        )
    return fitting[0]
