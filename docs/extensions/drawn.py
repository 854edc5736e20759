"""Gallery scraper: save the figures that are assigned to variables of a script.

`Comparison.plot` returns figures that are not registered with pyplot, so the scraper of
sphinx-gallery does not find them.
"""

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

__all__ = ["figures_of_a_block"]

DPI = 110


def figures_of_a_block(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures that are new in this block, in order."""
    names = block_vars["example_globals"]
    shown = names.setdefault("__shown__", set())
    paths, titles = [], []
    for name, value in list(names.items()):
        if isinstance(value, Figure) and id(value) not in shown:
            shown.add(id(value))
            names.setdefault("__kept__", []).append(
                value
            )  # keep a reference, so that its id is not reused
            path = next(block_vars["image_path_iterator"])
            value.savefig(path, dpi=DPI, format="png", bbox_inches="tight", facecolor="white")
            paths.append(path)
            titles.append(name.replace("_", " "))
    return figure_rst(paths, gallery_conf["src_dir"], "; ".join(titles))
