"""Directive `command-reference`: document all commands and options from their definitions.

Each option has one entry, which all commands link to. The content of the directive adds details to
entries: a line with the option alone, such as ``--match``, starts the details of that option.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import typer
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from probdice.cli.app import app
from probdice.cli.parameters import ADVANCED_SUFFIX
from probdice.options import EvaluateOptions
from probdice.options.declaration import PANELS, TWO_SIDES, declarations

__all__ = ["command_pages", "setup"]

OTHER = "Other commands"  # the section of options in other panels


@dataclass(frozen=True)
class Entry:
    """An option that one command or several commands describe with the same text."""

    commands: tuple[str, ...]
    words: str
    value: str
    help: str
    sides: str  # how to give a value for one side
    default: str
    panel: str


class CommandReference(SphinxDirective):
    """One section per command, then one per option."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        section = nodes.section()
        section.document = self.state.document
        self.state.nested_parse(
            StringList(command_pages("\n".join(self.content)).splitlines(), "probdice --help"),
            self.content_offset,
            section,
            match_titles=True,
        )
        return section.children


def command_pages(details: str = "") -> str:
    """All commands and options as MyST Markdown."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    lines = ["## Commands", ""]
    for name, command in commands.items():
        lines += _command(name, command)
    options: dict[str, list[Entry]] = {}
    for name, command in commands.items():
        for parameter in command.params:
            if parameter.opts[0].startswith("-"):
                _add(options.setdefault(parameter.opts[0], []), _entry(name, parameter))
    added = _details(details)
    if unknown := set(added) - set(options):
        raise ValueError(f"details of options that do not exist: {sorted(unknown)}")
    lines += ["## Options", ""]
    for panel in (*PANELS, OTHER):
        lines += [f"### {panel}", ""]
        for word in sorted(options):
            if options[word][0].panel == panel:
                lines += _option(word, options[word], len(commands))
                lines += [added.get(word, ""), ""]
    return "\n".join(lines)


def _command(name: str, command: Any) -> list[str]:
    """The section of a command, which links to its options."""
    arguments = [entry for entry in command.params if not entry.opts[0].startswith("-")]
    usage = " ".join(["probdice", name, *(_metavar(entry) for entry in arguments), "[OPTIONS]"])
    lines = [f"(command-{name})=", f"### probdice {name}", "", "```text", usage, "```", ""]
    lines += [_plain(command.help), ""]
    if arguments:
        lines += ["| argument | |", "|---|---|"]
        lines += [f"| `{_metavar(entry)}` | {_plain(entry.help)} |" for entry in arguments]
        lines.append("")
    words = sorted(entry.opts[0] for entry in command.params if entry.opts[0].startswith("-"))
    links = ", ".join(f"[`{word}`](#option{word[1:]})" for word in words)
    return [*lines, f"Options: {links}", ""]


def _option(word: str, entries: Sequence[Entry], commands: int) -> list[str]:
    """The definition of an option."""
    first = entries[0]
    lines = [f"(option{word[1:]})=", f"#### `{f'{first.words} {first.value}'.rstrip()}`", ""]
    for entry in entries:
        where = _listed(entry.commands) if len(entry.commands) < commands else "all commands"
        value = f" `{entry.value}`" if entry.value != first.value else ""
        texts = [_plain(entry.help)]
        if entry.sides:
            texts.append(_plain(entry.sides))
            if set(entry.commands) - set(TWO_SIDES):
                sided = [name for name in entry.commands if name in TWO_SIDES]
                texts[-1] = f"{texts[-1].removesuffix('.')} (only {_listed(sided)})."
        if entry.default:
            texts.append(f"Default: `{entry.default}`.")
        lines += [f"{where}{value}\n: {' '.join(texts)}", ""]
    return lines


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _entry(command: str, parameter: Any) -> Entry:
    has_default = parameter.default is not None and not parameter.is_flag
    declared = declarations(EvaluateOptions).get(parameter.name)
    text = " ".join((parameter.help or "").split())
    by_side = declared.form.by_side.format(declared.form.metavar) if declared else ""
    sides = by_side if text.endswith(by_side) else ""
    panel = (getattr(parameter, "rich_help_panel", None) or "").removesuffix(ADVANCED_SUFFIX)
    return Entry(
        commands=(command,),
        words=", ".join(parameter.opts),
        value="" if parameter.is_flag else parameter.metavar or "",
        help=text.removesuffix(sides).rstrip(),
        sides=sides,
        default=str(getattr(parameter.default, "value", parameter.default)) if has_default else "",
        panel=panel if panel in PANELS else OTHER,
    )


def _add(entries: list[Entry], new: Entry) -> None:
    """Add an entry, or join it to an entry with the same value, default and text."""
    for k, old in enumerate(entries):
        if (old.value, old.default, old.help) == (new.value, new.default, new.help):
            commands = (*old.commands, *new.commands)
            entries[k] = replace(old, commands=commands, sides=old.sides or new.sides)
            return
    entries.append(new)


def _details(text: str) -> dict[str, str]:
    """The details of each option, by option name."""
    parts = re.split(r"^(--[\w-]+)$", text, flags=re.MULTILINE)
    return {word: body.strip() for word, body in zip(parts[1::2], parts[2::2], strict=True)}


def _metavar(entry: Any) -> str:
    word: str = entry.metavar or ("" if entry.opts[0].startswith("-") else entry.name.upper())
    return word.replace("|", "\\|")  # a bar would end a cell


def _plain(text: str | None) -> str:
    """Help text as one paragraph of Markdown, with links to the options that it names."""
    words = " ".join((text or "").split())
    for sign in "\\|*_<[":
        words = words.replace(sign, f"\\{sign}")
    return re.sub(r"(?<![\w-])--([a-z-]+[a-z])", r"[`--\1`](#option-\1)", words)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
