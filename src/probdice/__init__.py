"""Compare two segmentations of one image, crisp or probabilistic, with any number of regions.

The multi-region probabilistic Dice similarity coefficient of Andrews & Hamarneh
(arXiv:1509.07244): probabilities are never hardened, geometry is never ignored, and labels need
not agree.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from probdice.version import __version__ as __version__

if TYPE_CHECKING:
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
    from probdice.evaluation import Evaluation, evaluate
    from probdice.files import read, write
    from probdice.geometry import Geometry
    from probdice.overlaps import Overlap
    from probdice.raters import Agreement, Consensus, agreement, consensus
    from probdice.sample_sets import SetComparison, compare_sets
    from probdice.segmentation import Segmentation
    from probdice.similarity import (
        Absolute,
        Aitchison,
        Similarity,
        aitchison_distance,
        classical_dice,
    )

__all__ = [
    "Absolute",
    "Agreement",
    "Aitchison",
    "Comparison",
    "Consensus",
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
    "SetComparison",
    "Similarity",
    "TooLargeError",
    "agreement",
    "aitchison_distance",
    "classical_dice",
    "compare",
    "compare_sets",
    "consensus",
    "evaluate",
    "overlap",
    "read",
    "similarity_map",
    "write",
]

# Where each name lives: it is imported when it is first asked for, so that `import probdice` and a
# command that is interrupted at once cost nothing.
_ROOMS = {
    "comparison": (
        "Comparison",
        "Group",
        "Merge",
        "compare",
        "overlap",
        "similarity_map",
    ),
    "errors": (
        "FormatError",
        "GeometryError",
        "InputError",
        "MissingExtraError",
        "Note",
        "ProbdiceError",
        "ProbdiceWarning",
        "TooLargeError",
    ),
    "evaluation": (
        "Evaluation",
        "evaluate",
    ),
    "files": (
        "read",
        "write",
    ),
    "geometry": ("Geometry",),
    "overlaps": ("Overlap",),
    "raters": (
        "Agreement",
        "Consensus",
        "agreement",
        "consensus",
    ),
    "sample_sets": (
        "SetComparison",
        "compare_sets",
    ),
    "segmentation": ("Segmentation",),
    "similarity": (
        "Absolute",
        "Aitchison",
        "Similarity",
        "aitchison_distance",
        "classical_dice",
    ),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    """A public name, from its room; it is then kept."""
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"probdice.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*__all__, "__version__"])
