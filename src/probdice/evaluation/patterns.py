"""File name patterns, which select files and mark the case in file names.

``{case}`` matches a name without a slash, and ``{case:path}`` matches a name that may contain
folders, such as ``site1/p1``. If a placeholder occurs more than once, it matches the same text each
time. ``{method}`` matches a method name if one folder has the files of several methods. Other
characters work as in a shell: ``*`` matches any characters except a slash, ``?`` matches one such
character, ``[123]`` matches one of these characters, and ``**`` matches any folders. A colon after
the suffix of a file selects a part of the file, as in ``{case}.mat:groundTruth/0``.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PureWindowsPath

from probdice.errors import InputError, Option
from probdice.evaluation.folders import as_name
from probdice.files.sources import INSIDE

__all__ = ["CASE", "METHOD", "SPANNING", "Pattern", "pattern_option"]

CASE, SPANNING = "{case}", "{case:path}"  # a name, and a name that may contain folders
METHOD = "{method}"
TOKEN = re.compile(r"(\{case\}|\{method\}|\*\*/|\*|\?|\[!?\]?[^]/{]*\]|\[)")
PART = re.compile(rf"(.*(?:{'|'.join(map(re.escape, INSIDE))})):(.+)", re.IGNORECASE)


@dataclass(frozen=True)
class Pattern:
    """A parsed pattern.

    Attributes
    ----------
    glob : str
        A glob that finds all matching files and possibly others.
    expression : re.Pattern
        An expression that matches the path of a file relative to the folder, after normalisation by
        `as_name`. Its groups are "case", "region" (if `has_open_start`), and "method" (if the
        pattern has ``{method}``).
    inside : str
        The path inside the file, or "".
    has_open_start : bool
        Whether every {case} directly follows a *. If so, the first of these * matches one
        character, which numbers the regions.
    """

    glob: str
    expression: re.Pattern[str]
    inside: str
    has_open_start: bool

    @classmethod
    def of(cls, text: str, *, cases: Iterable[str] = (), methods: Iterable[str] = ()) -> "Pattern":
        """Parse a pattern, or raise InputError if it is invalid.

        If the names of cases or methods are given, they resolve ambiguities in ``{case}_{method}``.
        """
        name_pattern = as_name(text).replace(SPANNING, CASE)
        inside_match = PART.fullmatch(name_pattern)
        path, inner_path = inside_match.groups() if inside_match else (name_pattern, "")
        path = re.sub(r"^(?:\./+)+", "", path)
        _check_pattern(text, path)
        spans = SPANNING in text
        has_open_start = f"*{CASE}" in path and path.count(CASE) == path.count(f"*{CASE}")
        try:
            names = {CASE: _any_of(cases), METHOD: _any_of(methods)}
            expression = re.compile(_expression(path, spans, has_open_start, names))
        except re.error as error:
            raise InputError(f"pattern {text!r} is invalid: {error}") from None
        return cls(_glob(path, spans), expression, inner_path, has_open_start)


def pattern_option(patterns: Mapping[str, str], folder_count: int) -> Option:
    """Return the option that sets the given patterns, by folder name, for a message.

    If all `folder_count` folders need the same pattern, the option has one pattern without a name.
    """
    distinct_patterns = set(patterns.values())
    if len(distinct_patterns) == 1 and len(patterns) == folder_count:
        (pattern,) = distinct_patterns
        return Option("pattern", python=f"pattern={pattern!r}", command=f"--pattern '{pattern}'")
    command = " ".join(f"--pattern '{name}:{text}'" for name, text in patterns.items())
    return Option("pattern", python=f"pattern={dict(patterns)!r}", command=command)


def _check_pattern(text: str, path: str) -> None:
    """Reject invalid patterns. `path` is the pattern without the path inside a file."""
    reason = ""
    if CASE not in path:
        reason = f"has no {CASE}; mark the case in the file name, as in '{CASE}_seg.nii.gz'"
    elif path.startswith("/") or PureWindowsPath(path).drive:
        reason = "must be relative to the folder of cases, such as '*/{case}.nii.gz'"
    elif unknown_field := re.search(r"\{[\w:]*\}", path.replace(CASE, "").replace(METHOD, "")):
        reason = (
            f"has {unknown_field[0]}, expected only {CASE}, {METHOD}, or {SPANNING} for case names "
            f"that contain folders"
        )
    elif adjacent_fields := re.search(r"(\{case\}|\{method\}){2}", path):
        reason = (
            f"has {adjacent_fields[0]} without a separator; use for example "
            f"'{CASE}_{METHOD}.nii.gz'"
        )
    elif any("**" in part and part != "**" for part in path.split("/")) or path.endswith("**"):
        reason = "has ** within a name; ** can only replace folders, as in '**/{case}.nii.gz'"
    elif f"{CASE}*" in path and path.count(CASE) == path.count(f"{CASE}*"):
        reason = (
            f"has {CASE}*, so the end of the case name is unknown; put a separator before the *, "
            f"as in '{CASE}_*.nii.gz'"
        )
    elif any(part.startswith(f"*{CASE}") for part in path.split("/")) and path.count(CASE) == 1:
        reason = (
            f"has *{CASE}, so the start of the case name is unknown; put a separator after the *, "
            f"as in '*_{CASE}.nii.gz'"
        )
    if reason:
        raise InputError(f"pattern {text!r} {reason}")


def _glob(path: str, spans: bool) -> str:
    """Return a pattern for `Path.glob` that finds all matching files and possibly others.

    Non-ASCII characters can have several Unicode forms, so each is replaced by a wildcard.
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


def _expression(path: str, spans: bool, has_open_start: bool, names: Mapping[str, str]) -> str:
    """Return the pattern as a regular expression. All occurrences of {case} match the same text.

    Groups whose names start with "case" or "method" match the names of cases and methods.
    """
    wildcards = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    any_name = {CASE: ".+?" if spans else "[^/]+?", METHOD: "[^/]+?"}
    expression = ""
    tokens = [token for token in TOKEN.split(path) if token]
    for token, next_token in zip_longest(tokens, tokens[1:]):
        may_number_regions = has_open_start and (token, next_token) == ("*", CASE)
        if token in any_name:
            group = token.strip("{}")
            group_count = expression.count(f"(?P<{group}")
            name = f"(?P={group})" if group_count else names[token] or any_name[token]
            expression += f"(?P<{group}{group_count or ''}>{name})"
        elif may_number_regions and "<region>" not in expression:
            expression += "(?P<region>[^/])"
        elif token.startswith("[") and len(token) > 2:
            characters = re.sub(r"([\\^\[\]&~|])", r"\\\1", token[1:-1].removeprefix("!"))
            expression += f"(?!/)[{'^' * token.startswith('[!')}{characters}]"
        else:
            expression += wildcards.get(token) or re.escape(token)
    return expression
