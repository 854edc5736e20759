"""Everything probdice raises.

Exception
└── ProbdiceError
    ├── InputError (also a ValueError)       an argument or a file does not fit
    │   ├── FormatError                      a file is not what it should be
    │   └── GeometryError                    the two sides lie in different places
    ├── MissingExtraError (also an ImportError)
    └── TooLargeError (also a MemoryError)   the answer would not fit in memory
UserWarning
└── ProbdiceWarning
"""

__all__ = [
    "FormatError",
    "GeometryError",
    "InputError",
    "MissingExtraError",
    "ProbdiceError",
    "ProbdiceWarning",
    "TooLargeError",
]


class ProbdiceError(Exception):
    """Base of every error that probdice raises on purpose.

    Examples
    --------
    >>> import probdice
    >>> try:
    ...     probdice.compare([1, 2], [1, 2, 3])
    ... except probdice.ProbdiceError as error:
    ...     print(error)
    reference has shape (2,) but prediction has shape (3,): both must cover the same pixels
    """


class InputError(ProbdiceError, ValueError):
    """An argument or a file does not fit; the message says what would."""


class FormatError(InputError):
    """A file cannot be read as a segmentation."""


class GeometryError(InputError):
    """The two sides do not lie on the same grid."""


class MissingExtraError(ProbdiceError, ImportError):
    """A format or a feature needs an extra that is not installed."""


class TooLargeError(ProbdiceError, MemoryError):
    """What was asked for would not fit in memory."""


class ProbdiceWarning(UserWarning):
    """A comparison went through, but something about it is worth knowing.

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
