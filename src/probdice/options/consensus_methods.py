"""The methods that combine raters into a consensus: names and descriptions."""

from dataclasses import dataclass
from typing import Literal

from probdice.options.checks import OneOf

__all__ = ["METHODS", "Method", "MethodWords", "as_method", "method_help"]

Method = Literal["mean", "staple"]


@dataclass(frozen=True)
class MethodWords:
    """The descriptions of a consensus method.

    Attributes
    ----------
    title : str
        Name of the method in printed results, figures and pages.
    help : str
        Description in the help text of ``--method``.
    accepts_weights : bool
        Whether the user can set the weights of the raters.
    """

    title: str
    help: str
    accepts_weights: bool = False


METHODS: dict[Method, MethodWords] = {  # `raters.fusing` computes the consensus
    "mean": MethodWords("mean", "average the raters", accepts_weights=True),
    "staple": MethodWords("STAPLE", "estimate the consensus and the reliability of each rater"),
}

as_method = OneOf("method", tuple(METHODS))


def method_help() -> str:
    """Return the help text of ``--method``."""
    return f"{'; '.join(f'{name}: {words.help}' for name, words in METHODS.items())}."
