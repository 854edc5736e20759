"""Compare two segmentations of one image, crisp or probabilistic, with any number of regions.

The multi-region probabilistic Dice similarity coefficient of Andrews & Hamarneh
(arXiv:1509.07244): probabilities are never hardened, geometry is never ignored, and labels need
not agree.
"""

from typing import TYPE_CHECKING, Any

from probdice.comparison import compare, similarity_map
from probdice.errors import ProbdiceError, ProbdiceWarning
from probdice.files import read, write
from probdice.geometry import Geometry
from probdice.result import Comparison, Group, Merge
from probdice.segmentation import Segmentation
from probdice.similarity import Absolute, Aitchison, aitchison_distance, classical_dice

if TYPE_CHECKING:
    from probdice.evaluation import Evaluation, evaluate

__version__ = "0.1.0"

__all__ = [
    "Absolute",
    "Aitchison",
    "Comparison",
    "Evaluation",
    "Geometry",
    "Group",
    "Merge",
    "ProbdiceError",
    "ProbdiceWarning",
    "Segmentation",
    "aitchison_distance",
    "classical_dice",
    "compare",
    "evaluate",
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
