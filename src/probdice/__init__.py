"""Compare two segmentations of one image, crisp or probabilistic, with any number of regions.

The multi-region probabilistic Dice similarity coefficient of Andrews & Hamarneh
(arXiv:1509.07244): probabilities are never hardened, geometry is never ignored, and labels need
not agree.
"""

from typing import TYPE_CHECKING, Any

from probdice.comparison import Comparison, Group, Merge, compare, overlap, similarity_map
from probdice.errors import (
    FormatError,
    GeometryError,
    InputError,
    MissingExtraError,
    Note,
    ProbdiceError,
    ProbdiceWarning,
    TooLargeError,
)
from probdice.files import read, write
from probdice.geometry import Geometry
from probdice.overlaps import Overlap
from probdice.segmentation import Segmentation
from probdice.similarity import Absolute, Aitchison, aitchison_distance, classical_dice
from probdice.version import __version__ as __version__

if TYPE_CHECKING:
    from probdice.evaluation import Evaluation, evaluate


__all__ = [
    "Absolute",
    "Aitchison",
    "Comparison",
    "Evaluation",
    "FormatError",
    "Geometry",
    "GeometryError",
    "Group",
    "InputError",
    "Merge",
    "MissingExtraError",
    "Note",
    "Overlap",
    "ProbdiceError",
    "ProbdiceWarning",
    "Segmentation",
    "TooLargeError",
    "aitchison_distance",
    "classical_dice",
    "compare",
    "evaluate",
    "overlap",
    "read",
    "similarity_map",
    "write",
]


def __getattr__(name: str) -> Any:
    """What takes a moment to import, when it is first asked for."""
    if name in ("Evaluation", "evaluate"):
        from probdice import evaluation

        return getattr(evaluation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, lazy ones included."""
    return sorted([*__all__, "__version__"])
