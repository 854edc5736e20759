"""Directive `command-reference`: document all commands and options from their definitions."""

from typing import Any

import typer
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from probdice.cli.app import app

__all__ = ["command_pages", "setup"]


class CommandReference(SphinxDirective):
    """One section per command: usage, help, and a table of options."""

    def run(self) -> list[nodes.Node]:
        section = nodes.section()
        section.document = self.state.document
        self.state.nested_parse(
            StringList(command_pages().splitlines(), "probdice --help"),
            self.content_offset,
            section,
            match_titles=True,
        )
        return section.children


def command_pages() -> str:
    """All commands as MyST Markdown."""
    lines: list[str] = []
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        arguments = [entry for entry in command.params if not entry.opts[0].startswith("-")]
        options = [entry for entry in command.params if entry.opts[0].startswith("-")]
        usage = " ".join(["probdice", name, *(_metavar(entry) for entry in arguments), "[OPTIONS]"])
        lines += [f"(command-{name})=", f"### probdice {name}", "", "```text", usage, "```", ""]
        lines += [_plain(command.help), ""]
        if arguments:
            lines += ["| argument | |", "|---|---|"]
            lines += [f"| `{_metavar(entry)}` | {_plain(entry.help)} |" for entry in arguments]
            lines.append("")
        lines += ["| option | | default |", "|---|---|---|"]
        for entry in options:
            words = ", ".join(f"`{word}`" for word in entry.opts)
            value = f" `{_metavar(entry)}`" if not entry.is_flag and _metavar(entry) else ""
            lines.append(f"| {words}{value} | {_plain(entry.help)} | {_default(entry)} |")
        lines.append("")
    return "\n".join(lines)


def _metavar(entry: Any) -> str:
    word: str = entry.metavar or ("" if entry.opts[0].startswith("-") else entry.name.upper())
    return word.replace("|", "\\|")  # which would end a cell


def _default(entry: Any) -> str:
    if entry.default is None or entry.is_flag:
        return ""
    return f"`{getattr(entry.default, 'value', entry.default)}`"


def _plain(text: str | None) -> str:
    """Help text as one paragraph of escaped Markdown."""
    words = " ".join((text or "").split())
    for sign in "\\|*_<[":
        words = words.replace(sign, f"\\{sign}")
    return words


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
