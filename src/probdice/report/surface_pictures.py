"""Pictures of a comparison on surfaces, for parcellations whose pixels are vertices."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.surface import Surface, surfaces_for
from probdice.data.vertex_space import VertexSpace
from probdice.errors import InputError
from probdice.method.sides import SIDES
from probdice.pictures.colours import DIFFERENT, triples
from probdice.pictures.label_images import blended
from probdice.pictures.surface_views import painted, views_of
from probdice.pictures.views import images_of, look

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.engine.pair import SegmentationPair
    from probdice.pictures.colours import Colours

__all__ = ["SurfacePicture", "check_surfaces", "pictures_on", "vertex_space_of"]

PANELS = ("Reference", "Prediction", "Similarity")


@dataclass(frozen=True)
class SurfacePicture:
    """One view of the reference, the prediction or their similarity, as a data URI."""

    title: str
    address: str


def vertex_space_of(images: SegmentationPair | None) -> VertexSpace | None:
    """Return the vertices of a comparison; None if its images are missing or on a grid."""
    geometry = None if images is None else images.reference.geometry
    return geometry if isinstance(geometry, VertexSpace) else None


def check_surfaces(
    images: SegmentationPair, surfaces: Sequence[Surface], *, every: bool = True
) -> tuple[VertexSpace, list[tuple[int, Surface]]]:
    """Return the vertices of a comparison, and pairs of a structure's index and its surface.

    If `every` is True, each surface must belong to a structure of the images. Otherwise, at least
    one surface must belong to a structure. An error is raised if this condition does not hold, or
    if the images do not contain values at vertices.
    """
    space = vertex_space_of(images)
    if space is None:
        raise InputError(
            f"{surfaces[0].source}: a surface can only show values at vertices, but the "
            f"segmentations are images on a grid, or their geometry is ignored. Remove the surface."
        )
    matching_surfaces = surfaces_for(space, surfaces, every=every)
    return space, matching_surfaces or surfaces_for(space, surfaces)


def pictures_on(
    comparison: Comparison, colours: Colours, surfaces: Sequence[Surface], *, every: bool = True
) -> tuple[SurfacePicture, ...]:
    """Draw the reference, the prediction and their similarity in two views of each hemisphere."""
    if not surfaces:
        return ()
    space, matching_surfaces = check_surfaces(images_of(comparison), surfaces, every=every)
    view = look(comparison, (range(space.shape[0]),))
    starts = np.cumsum([0, *(structure.size for structure in space.structures)])
    different = triples((DIFFERENT,))
    values: tuple[NDArray[Any], ...] = (
        *(blended(view, side, colours) for side in SIDES),
        different + view.f[:, None] * (1 - different),
    )
    pictures = []
    for number, surface in matching_surfaces:
        structure = space.structures[number]
        part = slice(starts[number], starts[number + 1])
        name = structure.name or surface.structure
        for angle in views_of(surface):
            for panel, colour in zip(PANELS, values, strict=True):
                part_colours = np.where(view.inside[part, None], colour[part, :3], np.nan)
                shades = np.full((structure.vertices, 3), np.nan)
                shades[slice(None) if structure.used is None else structure.used] = part_colours
                title = ", ".join(filter(None, (panel, name, angle.name)))
                pictures.append(SurfacePicture(title, _address(painted(angle, shades))))
    return tuple(pictures)


def _address(picture: NDArray[Any]) -> str:
    """Return a picture as a data URI."""
    from matplotlib.image import imsave

    stream = BytesIO()
    imsave(stream, picture, format="png")
    return f"data:image/png;base64,{b64encode(stream.getvalue()).decode()}"
