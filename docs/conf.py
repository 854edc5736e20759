"""Sphinx configuration. Build with `make docs` or `python -m sphinx -W docs docs/_build/html`."""

import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.domains.python import PyObject

from probdice import __version__

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

from drawn import figures_of_a_block

project = "probdice"
author = "the probdice developers"
copyright = f"{author}, BSD-3-Clause"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "command_reference",
    "executed",
    "tree",
]
exclude_patterns = ["_build", "examples", "**/README.md"]
suppress_warnings = [
    "config.cache"
]  # the gallery options contain a function, which Sphinx cannot cache

# -- pages ---------------------------------------------------------------------------------------

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
highlight_language = "none"  # each block sets its language
smartquotes = False  # keeps quotation marks, and dashes of options, as they are typed

# -- reference -----------------------------------------------------------------------------------

default_role = "py:obj"  # `compare` in a docstring links to the object of that name
add_module_names = False
autodoc_typehints = "none"  # docstrings describe the types
autodoc_member_order = "bysource"
autosummary_generate = True
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
toc_object_entries_show_parents = "hide"
python_display_short_literal_types = True

# -- gallery -------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "nested_sections": False,
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "gallery/examples_of",
    "doc_module": ("probdice",),
    "image_scrapers": (figures_of_a_block,),
    "capture_repr": ("_repr_html_",),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "only_warn_on_example_error": False,
    "abort_on_example_error": True,
    "default_thumb_file": None,
}

# -- theme ---------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "probdice"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/probdice.svg"
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # summaries require a server
html_sidebars = {"changelog": [], "index": []}
html_theme_options = {
    "logo": {
        "text": "probdice",
        "image_light": "_static/probdice.svg",
        "image_dark": "_static/probdice.svg",
        "alt_text": "",
    },
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_context = {"default_mode": "auto"}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True


def _signature(
    app: Sphinx, what: str, name: str, item: object, options: object, arguments: str, returns: str
) -> tuple[str, str] | None:
    """Hide the signature of result classes, which users do not construct."""
    is_result = what == "class" and "Parameters\n" not in (getattr(item, "__doc__", None) or "")
    return ("", "") if is_result else None


def _docstring(
    app: Sphinx, what: str, name: str, item: object, options: object, lines: list[str]
) -> None:
    """Escape bars outside code, because |x| is an absolute value, not a substitution."""
    in_example = False  # remains true until an empty line
    for k, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if not in_example:
            parts = line.split("``")
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[k] = "``".join(parts)


def setup(app: Sphinx) -> None:
    """Connect the event handlers, and give the list of attributes its usual title."""
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-process-signature", _signature)
