"""Patterns that say which files are meant and what in their names is the case.

``{case}`` stands for a name without a slash, ``{case:path}`` for one that may contain folders, such
as ``site1/p1``; either is the same text wherever it occurs. ``{method}`` stands for the name of a
method, where one folder holds the files of several. The rest is that of a shell: ``*`` any
characters, ``?`` one, ``[123]`` one of some, ``**`` any folders. ``:`` and more after the suffix of
a file with several parts names one of them, as in ``{case}.mat:groundTruth/0``.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PureWindowsPath

from probdice.errors import InputError
from probdice.evaluation.folders import as_name
from probdice.files.sources import INSIDE

__all__ = ["CASE", "METHOD", "SPANNING", "Pattern"]

CASE, SPANNING = "{case}", "{case:path}"  # in a pattern: a name, and one with folders in it
METHOD = "{method}"
TOKEN = re.compile(r"(\{case\}|\{method\}|\*\*/|\*|\?|\[!?\]?[^]/{]*\]|\[)")
PART = re.compile(rf"(.*(?:{'|'.join(map(re.escape, INSIDE))})):(.+)", re.IGNORECASE)


@dataclass(frozen=True)
class Pattern:
    """A pattern that has been understood.

    Attributes
    ----------
    glob : str
        Lists the files that may fit.
    expression : re.Pattern
        Fits the path of a file below the folder, as `as_name` spells it; its groups are "case",
        where `touched` also "region", and "method" where the pattern has one.
    inside : str
        What follows the name of the file, where a part inside of it is meant.
    touched : bool
        Whether a * stands directly before the name of the case, so that nothing but the files
        themselves says where the name begins.
    """

    glob: str
    expression: re.Pattern[str]
    inside: str
    touched: bool

    @classmethod
    def of(cls, text: str, *, cases: Iterable[str] = (), methods: Iterable[str] = ()) -> "Pattern":
        """Understand a pattern, or say why it cannot be meant.

        Where one ends and the other begins in ``{case}_{method}`` is told by the names of known
        cases or methods.
        """
        one_name = as_name(text).replace(SPANNING, CASE)
        inside = PART.fullmatch(one_name)
        path, within = inside.groups() if inside else (one_name, "")
        path = re.sub(r"^(?:\./+)+", "", path)
        _check_pattern(text, path)
        spans = SPANNING in text
        touched = f"*{CASE}" in path and path.count(CASE) == path.count(f"*{CASE}")
        try:
            names = {CASE: _any_of(cases), METHOD: _any_of(methods)}
            expression = re.compile(_expression(path, spans, touched, names))
        except re.error as error:
            raise InputError(f"pattern {text!r} cannot be used: {error}") from None
        return cls(_glob(path, spans), expression, within, touched)


def _check_pattern(text: str, path: str) -> None:
    """Refuse what cannot be meant; `path` is the part of the pattern that names files."""
    reason = ""
    if CASE not in path:
        reason = (
            f"does not say where the name of the case stands: expected something like "
            f"'{CASE}_seg.nii.gz'"
        )
    elif path.startswith("/") or PureWindowsPath(path).drive:
        reason = "must be relative to the folder of cases, such as '*/{case}.nii.gz'"
    elif unknown := re.search(r"\{[\w:]*\}", path.replace(CASE, "").replace(METHOD, "")):
        reason = f"has {unknown[0]}, expected {CASE}, or {SPANNING} for a name with folders in it"
    elif touching := re.search(r"(\{case\}|\{method\}){2}", path):
        reason = f"has {touching[0]}, which does not say where the first one ends"
    elif any("**" in part and part != "**" for part in path.split("/")) or path.endswith("**"):
        reason = "may have ** only for folders, as in '**/{case}.nii.gz'"
    elif f"{CASE}*" in path and path.count(CASE) == path.count(f"{CASE}*"):
        reason = (
            f"does not say where the name of the case ends: put what follows it between {CASE} "
            f"and *, as in '{CASE}_*.nii.gz'"
        )
    elif any(part.startswith(f"*{CASE}") for part in path.split("/")) and path.count(CASE) == 1:
        reason = (
            f"does not say where the name of the case begins: put what precedes it between * and "
            f"{CASE}, as in '*_{CASE}.nii.gz'"
        )
    if reason:
        raise InputError(f"pattern {text!r} {reason}")


def _glob(path: str, spans: bool) -> str:
    """A pattern of `Path.glob` that lists at least the files that are meant.

    Characters beyond ASCII have several spellings, so they match anything here.
    """
    parts = []
    for part in path.split("/"):
        if spans and CASE in part:
            parts.append("**")
            part = f"*{part.rpartition(CASE)[2]}"
        text = "".join("[[]" if token == "[" else token for token in TOKEN.split(part))
        text = re.sub(r"[^\x00-\x7f]", "*", text.replace(CASE, "*").replace(METHOD, "*"))
        parts.append(text if text == "**" else re.sub(r"\*+", "*", text))
    return "/".join(parts)


def _any_of(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in names)


def _expression(path: str, spans: bool, touched: bool, names: Mapping[str, str]) -> str:
    """The pattern as a regular expression; {case} is the same wherever it stands.

    Groups whose names start with "case" or "method" hold these names.
    """
    wild = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    any_name = {CASE: ".+?" if spans else "[^/]+?", METHOD: "[^/]+?"}
    expression = ""
    for token in TOKEN.split(path):
        if token in any_name:
            group = token.strip("{}")
            known = expression.count(f"(?P<{group}")
            name = f"(?P={group})" if known else names[token] or any_name[token]
            expression += f"(?P<{group}{known or ''}>{name})"
        elif token == "*" and touched and "<region>" not in expression:
            expression += "(?P<region>[^/])"
        elif token.startswith("[") and len(token) > 2:
            characters = re.sub(r"([\\^\[\]&~|])", r"\\\1", token[1:-1].removeprefix("!"))
            expression += f"(?!/)[{'^' * token.startswith('[!')}{characters}]"
        else:
            expression += wild.get(token) or re.escape(token)
    return expression
