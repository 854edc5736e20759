"""Figures of a gallery script: those that its variables hold.

`Comparison.plot` gives figures that pyplot does not know of, so that the gallery's own search
would miss them.
"""

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

__all__ = ["figures_of_a_block"]

DPI = 110


def figures_of_a_block(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save every figure that no earlier block had, and show them in their order."""
    names = block_vars["example_globals"]
    shown = names.setdefault("__shown__", set())
    paths, titles = [], []
    for name, value in list(names.items()):
        if isinstance(value, Figure) and id(value) not in shown:
            shown.add(id(value))
            names.setdefault("__kept__", []).append(value)  # so that no other gets its identity
            path = next(block_vars["image_path_iterator"])
            value.savefig(path, dpi=DPI, format="png", bbox_inches="tight", facecolor="white")
            paths.append(path)
            titles.append(name.replace("_", " "))
    return figure_rst(paths, gallery_conf["src_dir"], "; ".join(titles))
