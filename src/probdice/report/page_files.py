"""Write the page of one comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probdice.files.inputs import as_surfaces
from probdice.pictures.views import images_of
from probdice.report.image_layers import background_images_of
from probdice.report.page import page_of
from probdice.report.rendering import render, write_page

if TYPE_CHECKING:
    from probdice.comparison.result import Comparison
    from probdice.errors import Words
    from probdice.files.background_images import BackgroundImage
    from probdice.report.side_by_side import PageLink

__all__ = ["write_comparison"]

BASE_SCRIPTS = (
    "numbers",
    "unpacking",
    "saving",
    "selection",
    "dice_plot",
    "diagram",
    "tables",
    "export",
)
IMAGE_SCRIPTS = ("pixels", "painting", "contours", "places", "frames", "panel_export", "viewer")


def write_comparison(
    comparison: Comparison,
    path: Path,
    *,
    title: str | None,
    image: Any = (),
    surface: Any = (),
    notice: str = "",
    words: Words = "python",
    command: str = "",
    links: Sequence[PageLink] = (),
    has_lock: bool = False,
    every_surface: bool = True,
) -> None:
    """Write the page.

    The notice is shown before the notes. For `has_lock`, see `atomic_files.replacing`. `image`
    contains one or more images to show under the segmentations. `surface` contains one or more
    surfaces, each of which must belong to the comparison unless `every_surface` is False. `links`
    contains links to other pages of an evaluation.
    """
    layers: tuple[BackgroundImage, ...] = ()
    if not (isinstance(image, tuple) and not image):
        layers = background_images_of(images_of(comparison), comparison.options, image)
    surfaces = as_surfaces(surface)
    page = page_of(
        comparison, title, notice, words, layers, command, surfaces, every_surface=every_surface
    )
    names = (*BASE_SCRIPTS, *(IMAGE_SCRIPTS if page.viewer else ()), "paper")
    scripts = tuple(f"assets/{name}.js" for name in names)
    values = {"page": page, "links": links}
    text = render("comparison.html", values, style="assets/page.css", scripts=scripts)
    write_page(path, text, has_lock=has_lock)
