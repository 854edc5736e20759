"""Directives that run what a page shows while it is built, so that every output on it is real.

``command``
    Shell commands, one a line, in a folder of the page's own; each with what it printed.
``run``
    Python, in a namespace of the page's own and in the same folder; with what it printed and the
    figure or the table that its last line is. ``:hide:`` shows the output alone.
``page``
    An HTML file that an earlier block wrote, in a frame and as a link.

A command that fails, or a warning of Python, ends the build.
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

COLUMNS = 84  # of the terminal that commands believe to have; as many as a page shows
DPI = 110


class Executed(SphinxDirective):
    """What the three have in common: where a page works."""

    has_content = True

    def folder(self) -> Path:
        """The folder that the blocks of this page share, empty at its first block."""
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
        """A listing."""
        listing = nodes.literal_block(text, text, language=language)
        self.set_source_info(listing)
        return listing


class Command(Executed):
    """Shell commands and what they print."""

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
    """Python and what it prints, draws or gives."""

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
        """The figure as an image of the page, with words for those who do not see it."""
        if "alt" not in self.options:
            raise ExtensionError(f"{self.env.docname}: the figure at {self.lineno} needs :alt:")
        count = self.names().setdefault("__figures__", [])
        count.append(figure)
        path = self.folder() / f"figure-{len(count)}.png"
        figure.savefig(path, dpi=DPI, bbox_inches="tight", facecolor="white")
        uri = os.path.relpath(path, Path(self.env.doc2path(self.env.docname)).parent)
        return nodes.image(uri=Path(uri).as_posix(), alt=self.options["alt"])


class Page(Executed):
    """A page that was written, in a frame."""

    site: Path  # the folder that the whole is built into
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
            f'<p><a href="{address}">Open this page by itself</a></p>'
        )
        return [nodes.raw("", html, format="html")]


def _value_of(source: str, names: dict[str, Any], place: str) -> Any:
    """Run it; the value of its last line, if that is an expression."""
    tree = ast.parse(source, place)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, place, "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), place, "eval"), names)  # type: ignore[attr-defined]


def _framed(html: str) -> str:
    """An output that may be wider than the page; it can be scrolled by keys as well."""
    return f'<div class="output" role="region" aria-label="Output" tabindex="0">{html}</div>'


def _environment() -> dict[str, str]:
    """A plain terminal in which `probdice` is the one that builds this page."""
    here = str(Path(sys.executable).parent)
    return os.environ | {
        "COLUMNS": str(COLUMNS),
        "NO_COLOR": "1",
        "PATH": here + os.pathsep + os.environ.get("PATH", ""),
        "PYTHONPATH": str(Path(probdice.__file__).parent.parent),
        "PYTHONWARNINGS": "error",
    }


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    Page.site = Path(app.outdir)
    for name, directive in (("command", Command), ("run", Run), ("page", Page)):
        app.add_directive(name, directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
