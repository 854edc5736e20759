"""Directives that run the code of a page during the build and show its actual output.

``command``
    Shell commands, one per line, in a folder of the page. Shows each command with its output.
``run``
    Python code, in a namespace of the page and in the same folder. Shows the code, its output, and
    the figure or table of its last line. ``:hide:`` shows only the output.
``page``
    An HTML file that an earlier block wrote, in a frame and as a link.

The build stops if a command fails or Python emits a warning.
"""

import ast
import contextlib
import io
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from matplotlib.figure import Figure
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

import probdice

__all__ = ["setup"]

COLUMNS = 84  # terminal width of commands, which fits on a page
DPI = 110


class Executed(SphinxDirective):
    """Base class: folder and variables of a page."""

    has_content = True

    def folder(self) -> Path:
        """The folder that all blocks of this page share; it is emptied before the first block."""
        folder = Path(self.env.srcdir) / "_build" / "work" / self.env.docname
        if "executed" not in self.env.temp_data:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            self.env.temp_data["executed"] = {"__name__": "__main__"}
            self.env.note_dependency(__file__)
        return folder

    def names(self) -> dict[str, Any]:
        """The variables of this page."""
        self.folder()
        return self.env.temp_data["executed"]  # type: ignore[no-any-return]

    def block(self, text: str, language: str) -> nodes.literal_block:
        """A literal block."""
        listing = nodes.literal_block(text, text, language=language)
        self.set_source_info(listing)
        return listing


class Command(Executed):
    """Shell commands and their output."""

    option_spec: ClassVar = {"exit": directives.nonnegative_int, "hide": directives.flag}

    def run(self) -> list[nodes.Node]:
        folder, shown = self.folder(), []
        for command in "\n".join(self.content).replace("\\\n", "\\\0").splitlines():
            command = command.replace("\\\0", "\\\n")
            done = subprocess.run(
                command,
                shell=True,
                cwd=folder,
                env=_environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            if done.returncode != self.options.get("exit", 0):
                raise ExtensionError(
                    f"{self.env.docname}: exit code {done.returncode} of\n{command}\n{done.stdout}"
                )
            printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
            shown.append(f"$ {command}\n{printed}".rstrip())
        return [] if "hide" in self.options else [self.block("\n\n".join(shown), "console")]


class Run(Executed):
    """Python code with its printed output, figure or value."""

    option_spec: ClassVar = {"hide": directives.flag, "alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        source = "\n".join(self.content)
        printed = io.StringIO()
        with (
            contextlib.chdir(self.folder()),
            contextlib.redirect_stdout(printed),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")
            value = _value_of(source, self.names(), f"{self.env.docname}:{self.lineno}")
        made: list[nodes.Node] = [] if "hide" in self.options else [self.block(source, "python")]
        text = printed.getvalue()
        if isinstance(value, Figure):
            made += [self.block(text, "text")] * bool(text) + [self.figure(value)]
        elif hasattr(value, "_repr_html_"):
            html = _framed(value._repr_html_())
            made += [self.block(text, "text")] * bool(text) + [nodes.raw("", html, format="html")]
        else:
            text += "" if value is None else f"{value!r}\n"
            made += [self.block(text.rstrip("\n"), "text")] * bool(text)
        return made

    def figure(self, figure: Figure) -> nodes.image:
        """Save the figure as an image with alternative text."""
        if "alt" not in self.options:
            raise ExtensionError(f"{self.env.docname}: figure in line {self.lineno} lacks :alt:")
        count = self.names().setdefault("__figures__", [])
        count.append(figure)
        path = self.folder() / f"figure-{len(count)}.png"
        figure.savefig(path, dpi=DPI, bbox_inches="tight", facecolor="white")
        uri = os.path.relpath(path, Path(self.env.doc2path(self.env.docname)).parent)
        return nodes.image(uri=Path(uri).as_posix(), alt=self.options["alt"])


class Page(Executed):
    """An HTML page in a frame."""

    site: Path  # the output folder of the build
    required_arguments = 1
    has_content = False
    option_spec: ClassVar = {"title": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        written = self.folder() / self.arguments[0]
        name = f"{self.env.docname.replace('/', '-')}-{written.name}"
        pages = self.site / "pages"
        pages.mkdir(parents=True, exist_ok=True)
        shutil.copy(written, pages / name)
        address = "../" * self.env.docname.count("/") + f"pages/{name}"
        title = self.options.get("title", f"The page {written.name}")
        html = (
            f'<iframe class="shown-page" src="{address}" title="{title}" loading="lazy"></iframe>'
            f'<p><a href="{address}">Open this page in full</a></p>'
        )
        return [nodes.raw("", html, format="html")]


def _value_of(source: str, names: dict[str, Any], place: str) -> Any:
    """Run the code and return the value of its last line if that is an expression."""
    tree = ast.parse(source, place)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, place, "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), place, "eval"), names)  # type: ignore[attr-defined]


def _framed(html: str) -> str:
    """Wrap wide output in a scrollable element that accepts keyboard focus."""
    return f'<div class="output" role="region" aria-label="Output" tabindex="0">{html}</div>'


def _environment() -> dict[str, str]:
    """Environment of a plain terminal in which `probdice` is the version being documented."""
    scripts = str(Path(sys.executable).parent)
    return os.environ | {
        "COLUMNS": str(COLUMNS),
        "NO_COLOR": "1",
        "PATH": scripts + os.pathsep + os.environ.get("PATH", ""),
        "PYTHONPATH": str(Path(probdice.__file__).parent.parent),
        "PYTHONWARNINGS": "error",
    }


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    Page.site = Path(app.outdir)
    for name, directive in (("command", Command), ("run", Run), ("page", Page)):
        app.add_directive(name, directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
