"""Determine which cases belong to the same subject (patient), for statistics over subjects.

Several images of one subject are not independent. If subjects are given, confidence intervals and
rank stability resample subjects instead of cases, and tests use one value per subject.
"""

import re
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from os.path import exists

from probdice.errors import InputError
from probdice.evaluation.folders import as_name
from probdice.files.columns import read_columns
from probdice.method.region_labels import listed

__all__ = ["GivenSubjects", "subjects_of"]

GivenSubjects = str | PathLike[str] | Mapping[str, str]

SUBJECT = "{subject}"
FIELD = re.compile(r"\{(\w+)\}")
MAX_LISTED_CASES = 10


def subjects_of(subjects: GivenSubjects, cases: Iterable[str]) -> dict[str, str]:
    """Return the subject of every case.

    Parameters
    ----------
    subjects : str, path or mapping
        A pattern of case names with ``{subject}``, such as ``"{subject}_{session}"``; the path of
        a TSV or CSV file with the columns case and subject; or a mapping of cases to subjects.
    cases : iterable of str
        The names of the cases.

    Raises
    ------
    InputError
        If a case has no subject, or if a pattern or table gives it more than one subject.

    Examples
    --------
    >>> from probdice.evaluation.subjects import subjects_of
    >>> subjects_of("{subject}_{session}", ["anna_1", "anna_2", "ben_1"])
    {'anna_1': 'anna', 'anna_2': 'anna', 'ben_1': 'ben'}
    >>> subjects_of("{subject}_{session}", ["anna_left_1"])
    Traceback (most recent call last):
    ...
    probdice.errors.InputError: subjects: '{subject}_{session}' matches the case 'anna_left_1' \
with the subject 'anna' and with the subject 'anna_left'; use a more specific pattern, or a TSV \
file with the columns case and subject
    """
    names = [as_name(case) for case in cases]
    if isinstance(subjects, Mapping):
        return _subjects_in_table(
            {as_name(str(k)): str(v) for k, v in subjects.items()}, names, "mapping"
        )
    text = fspath(subjects)
    if SUBJECT in text:
        return _subjects_by_pattern(text, names)
    if not exists(text):
        raise InputError(
            f"subjects: expected a pattern with {SUBJECT}, such as '{{subject}}_{{session}}', or "
            f"the path of a TSV file with the columns case and subject, found {text!r}"
        )
    table: dict[str, str] = {}
    for line, (case, subject) in read_columns(text, ("case", "subject")):
        name = as_name(case)
        if table.get(name, subject) != subject:
            raise InputError(
                f"{line}: case {case!r} has the subjects {table[name]!r} and {subject!r}; "
                f"expected one subject per case"
            )
        if name and subject:
            table[name] = subject
    return _subjects_in_table(table, names, text)


def _subjects_in_table(table: Mapping[str, str], names: list[str], source: str) -> dict[str, str]:
    missing_names = [name for name in names if name not in table]
    if missing_names:
        raise InputError(
            f"subjects: {source} has no subject for {len(missing_names)} of {len(names)} cases "
            f"({listed(missing_names, MAX_LISTED_CASES)}); add a subject for every case"
        )
    return {name: table[name] for name in names}


def _subjects_by_pattern(pattern: str, names: list[str]) -> dict[str, str]:
    """Return the subject of every case according to a pattern. Reject ambiguous subjects."""
    shortest, longest = (_expression(pattern, lazy) for lazy in ("?", ""))
    subjects, unmatched_names = {}, []
    for name in names:
        match, other = shortest.fullmatch(name), longest.fullmatch(name)
        if match is None or other is None:
            unmatched_names.append(name)
            continue
        subject = match["subject"]
        if subject != other["subject"]:
            raise InputError(
                f"subjects: {pattern!r} matches the case {name!r} with the subject {subject!r} and "
                f"with the subject {other['subject']!r}; use a more specific pattern, or a TSV "
                f"file with the columns case and subject"
            )
        subjects[name] = subject
    if unmatched_names:
        raise InputError(
            f"subjects: {pattern!r} does not match {len(unmatched_names)} of {len(names)} cases "
            f"({listed(unmatched_names, MAX_LISTED_CASES)}); use a pattern that matches every case"
        )
    return subjects


def _expression(pattern: str, lazy: str) -> re.Pattern[str]:
    """Return a regular expression in which a repeated field matches the same text each time."""
    known_fields: set[str] = set()
    parts = []
    for k, part in enumerate(FIELD.split(as_name(pattern))):
        if k % 2 == 0:
            parts.append(re.escape(part))
        elif part in known_fields:
            parts.append(f"(?P={part})")
        else:
            known_fields.add(part)
            parts.append(f"(?P<{part}>.+{lazy})")
    try:
        return re.compile("".join(parts))
    except re.error as error:
        raise InputError(f"subjects: the pattern {pattern!r} is invalid: {error}") from None
