"""The options of `compare`, `evaluate` and the commands, each declared once.

Each option is a field of a dataclass, which stores the value in its internal form. The declaration
of the field contains the check that converts a user's value to the internal form, the form on the
command line, and the help text.
"""

from probdice.options.checks import (
    TOLERANCE,
    GivenBackground,
    GivenNames,
    Match,
    Names,
    Priority,
    Scale,
    as_workers,
    given_from_list,
)
from probdice.options.compare_options import CompareOptions, CorrespondenceScope
from probdice.options.consensus_methods import METHODS, Method, as_method
from probdice.options.derived_regions import Members
from probdice.options.evaluate_options import EvaluateOptions
from probdice.options.read_options import ReadOptions
from probdice.options.statistics_options import (
    SCHEMES,
    MissingRule,
    Scheme,
    StatisticsOptions,
)

__all__ = [
    "METHODS",
    "SCHEMES",
    "TOLERANCE",
    "CompareOptions",
    "CorrespondenceScope",
    "EvaluateOptions",
    "GivenBackground",
    "GivenNames",
    "Match",
    "Members",
    "Method",
    "MissingRule",
    "Names",
    "Priority",
    "ReadOptions",
    "Scale",
    "Scheme",
    "StatisticsOptions",
    "as_method",
    "as_workers",
    "given_from_list",
]
