"""Exceptions, warnings and notes, and the spelling of options in messages.

Exception
└── ProbdiceError
    ├── InputError (also a ValueError)       an argument or a file is invalid
    │   ├── FormatError                      a file cannot be read or written
    │   └── GeometryError                    images are on different grids
    ├── MissingExtraError (also an ImportError)
    └── TooLargeError (also a MemoryError)   a file or a computation needs too much memory
UserWarning
└── ProbdiceWarning

A message is a sequence of texts and options. An `Option` has a name and a value, and is written as
``merge="both"`` in Python and as ``--merge both`` on the command line.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Literal, Self, get_args

__all__ = [
    "FormatError",
    "GeometryError",
    "InputError",
    "MissingExtraError",
    "Note",
    "Option",
    "ProbdiceError",
    "ProbdiceWarning",
    "TooLargeError",
    "Words",
    "as_words",
    "imports_of_extra",
    "in_command",
    "in_python",
    "in_words",
]


@dataclass(frozen=True)
class Option:
    """An option that a message mentions.

    Attributes
    ----------
    name : str
        The name in Python. On the command line, hyphens replace underscores.
    value : str, int, float or None
        The value in the message; None for a flag.
    python : str
        The text in Python, if it differs from ``name=value``; otherwise empty.
    command : str
        The text on the command line, if it differs from ``--name value``; otherwise empty.
    """

    name: str
    value: str | int | float | None = None
    python: str = ""
    command: str = ""

    def in_python(self) -> str:
        """Return the option as an argument of a Python function."""
        if self.python:
            return self.python
        value = f'"{self.value}"' if isinstance(self.value, str) else repr(self.value)
        return f"{self.name}={value}"

    def in_command(self) -> str:
        """Return the option as a command-line option."""
        if self.command:
            return self.command
        flag = f"--{self.name.replace('_', '-')}"
        return flag if self.value is None else f"{flag} {self.value}"


Message = Sequence[str | Option]
Words = Literal["python", "command"]  # how a message writes options


def in_python(message: Message) -> str:
    """Return a message with options written for Python."""
    return "".join(part if isinstance(part, str) else part.in_python() for part in message)


def in_command(message: Message) -> str:
    """Return a message with options written for the command line."""
    return "".join(part if isinstance(part, str) else part.in_command() for part in message)


def in_words(message: Message, words: Words) -> str:
    """Return a message with options written for Python or for the command line."""
    return in_command(message) if words == "command" else in_python(message)


def as_words(words: object) -> Words:
    """Check that `words`, the spelling of options in messages, is valid, and return it."""
    for known in get_args(Words):
        if words == known:
            return known  # type: ignore[no-any-return]
    raise InputError(f"words must be 'python' or 'command', found {words!r}")


@dataclass(frozen=True)
class Note:
    """A remark about a result.

    Attributes
    ----------
    kind : str
        A fixed identifier: "unmatched", "crossed", "infinite", …
    message : tuple of str or Option
        The text of the note, with the options that it mentions.

    Examples
    --------
    >>> import probdice
    >>> note = probdice.compare([1, 1, 2, 2], [5, 5, 5, 5]).notes[0]
    >>> note.kind
    'unmatched'
    >>> print(note)
    1 reference region is unmatched and counts as Dice 0 (region 2). To merge it into a matched \
region, use merge="reference".
    """

    kind: str
    message: tuple[str | Option, ...]

    def __str__(self) -> str:
        return in_python(self.message)

    def to_dict(self) -> dict[str, Any]:
        """Return the note as JSON data: texts as strings, options as objects."""
        return {
            "kind": self.kind,
            "message": [part if isinstance(part, str) else asdict(part) for part in self.message],
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Note":
        """Restore a note from JSON data."""
        message = tuple(
            part if isinstance(part, str) else Option(**part) for part in content["message"]
        )
        texts, values = [content["kind"]], []
        for part in message:
            if isinstance(part, Option):
                texts += [part.name, part.python, part.command]
                values.append(part.value)
        if not all(isinstance(text, str) for text in texts) or not all(
            isinstance(value, str | int | None) or (isinstance(value, float) and isfinite(value))
            for value in values
        ):
            raise InputError(
                f"expected a note that consists of texts and options, found {content!r}"
            )
        return cls(content["kind"], message)


class ProbdiceError(Exception):
    """Base class of all errors that probdice raises deliberately.

    Examples
    --------
    >>> import probdice
    >>> try:
    ...     probdice.compare([1, 2], [1, 2, 3])
    ... except probdice.ProbdiceError as error:
    ...     print(error)
    reference has shape (2,) but prediction has shape (3,): both must cover the same pixels
    """

    def __init__(self, *message: str | Option) -> None:
        super().__init__(*message)

    def __str__(self) -> str:
        return in_python(self.args)

    def in_command(self) -> str:
        """Return the message with options written for the command line."""
        return in_command(self.args)

    def prefixed(self, prefix: str) -> Self:
        """Return an error of the same type with a prefix, such as the name of a file."""
        return type(self)(prefix, *self.args)


class InputError(ProbdiceError, ValueError):
    """An argument or a file is invalid. The message describes the expected input.

    Examples
    --------
    >>> import probdice
    >>> try:
    ...     probdice.compare([1, 2], [1, 2], merge="all")
    ... except probdice.InputError as error:
    ...     print(error)
    merge must be 'none', 'prediction', 'reference' or 'both', found 'all'
    """


class FormatError(InputError):
    """A file cannot be read, has unsupported content, or cannot be written.

    Examples
    --------
    >>> import probdice
    >>> try:
    ...     probdice.read("missing.nii.gz")
    ... except probdice.FormatError as error:
    ...     print(error)
    missing.nii.gz: no such file
    """


class GeometryError(InputError):
    """Images are on different grids, or an image cannot be aligned with or resampled onto a grid.

    Examples
    --------
    >>> import numpy as np
    >>> from probdice import Geometry, GeometryError, Segmentation, compare
    >>> sides = [Segmentation.from_labels([1, 2], geometry=Geometry((2,), [[1, x], [0, 1]]))
    ...          for x in (0, 5)]
    >>> try:
    ...     compare(*sides)
    ... except GeometryError as error:
    ...     print(str(error).splitlines()[0])
    reference and prediction do not lie on the same grid: corners are up to 5 pixels apart
    """


class MissingExtraError(ProbdiceError, ImportError):
    """A format or a feature requires an optional dependency (an extra) that is not installed.

    Examples
    --------
    >>> from probdice import MissingExtraError
    >>> issubclass(MissingExtraError, ImportError)
    True
    """


@contextmanager
def imports_of_extra(module: str, *packages: str) -> Iterator[None]:
    """Raise `MissingExtraError` if an import fails because one of `packages` is not installed.

    The name of the extra is the name of the module ``probdice.<module>``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in packages:
            raise
        raise MissingExtraError(
            f'probdice.{module} requires {missing}: pip install "probdice[{module}]"'
        ) from None


class TooLargeError(ProbdiceError, MemoryError):
    """A file or a computation requires too much memory.

    Examples
    --------
    >>> from probdice import TooLargeError
    >>> issubclass(TooLargeError, MemoryError)
    True
    """


class ProbdiceWarning(UserWarning):
    """A warning about a result, or about a problem that did not prevent a result.

    Examples
    --------
    >>> import warnings, probdice
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     result = probdice.compare([0, 1, 1], [[1.0, 0.5, 0.5], [0.0, 0.5, 0.5]],
    ...                               similarity="aitchison")
    >>> caught[0].category.__name__
    'ProbdiceWarning'
    """


class EnvironmentWarning(ProbdiceWarning):
    """A warning about the machine or a folder, which no note repeats. Commands print it."""
