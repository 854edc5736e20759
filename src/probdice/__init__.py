"""Compare two segmentations of one image, crisp or probabilistic, with any number of regions.

probdice implements the multi-region probabilistic Dice similarity coefficient of Andrews & Hamarneh
(arXiv:1509.07244). probdice compares probabilities without converting them to labels, checks the
geometry by default, and does not require that equal labels mean the same region.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from probdice.version import __version__ as __version__

if TYPE_CHECKING:
    from probdice.comparison.comparing import compare, overlap, similarity_map
    from probdice.comparison.result import Comparison, Group, Merge
    from probdice.data.geometry import Geometry
    from probdice.data.segmentation import Segmentation
    from probdice.data.vertex_space import VertexSpace
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
    from probdice.method.overlap import Overlap
    from probdice.method.similarity import (
        Absolute,
        Aitchison,
        Similarity,
        aitchison_distance,
        classical_dice,
    )
    from probdice.raters import Agreement, Consensus, agreement, consensus
    from probdice.raters.sample_sets import SetComparison, compare_sets

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
    "VertexSpace",
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

# The public names of each module. A module is imported when one of its names is first used, so that
# `import probdice` is fast.
_MODULES = {
    "comparison.comparing": ("compare", "overlap", "similarity_map"),
    "comparison.result": ("Comparison", "Group", "Merge"),
    "data.geometry": ("Geometry",),
    "data.segmentation": ("Segmentation",),
    "data.vertex_space": ("VertexSpace",),
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
    "evaluation": ("Evaluation", "evaluate"),
    "files": ("read", "write"),
    "method.overlap": ("Overlap",),
    "method.similarity": (
        "Absolute",
        "Aitchison",
        "Similarity",
        "aitchison_distance",
        "classical_dice",
    ),
    "raters": ("Agreement", "Consensus", "agreement", "consensus"),
    "raters.sample_sets": ("SetComparison", "compare_sets"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name from its module when it is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"probdice.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted([*__all__, "__version__"])
