"""Recognise whether a similarity has changed since an earlier run.

The version of probdice identifies the similarities of probdice. The code of other similarities can
change between two runs although their names and parameters are the same.
"""

import hashlib
import inspect
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import numpy as np

from probdice.method.similarity import Similarity

__all__ = ["similarity_fingerprint"]

STEPS = 5  # probabilities of the vectors are multiples of 1 / STEPS
DECIMALS = 9  # of f, because machines round differently


def similarity_fingerprint(similarity: Similarity) -> str | None:
    """Return a text that differs if the similarity has changed, or None if this is unknown.

    The fingerprint of a similarity of probdice is "". Any other fingerprint is a hash of the source
    of the class, of its base classes outside probdice, and of the module of its kernels, and of the
    values of f for fixed vectors. The values also depend on functions and variables that the class
    uses. If the source is not available or f raises an error, the result is None.

    Examples
    --------
    >>> from probdice import Aitchison
    >>> from probdice.evaluation.similarity_fingerprint import similarity_fingerprint
    >>> similarity_fingerprint(Aitchison())
    ''
    """
    if not _is_of_user(type(similarity).__module__):
        return ""
    try:
        sources = [inspect.getsource(part) for part in _parts(similarity)]
        content = json.dumps([sources, _values(similarity)])
    except Exception:  # the class may raise any error
        return None
    return hashlib.sha256(content.encode()).hexdigest()


def _is_of_user(module: str) -> bool:
    """Return whether a module belongs neither to probdice nor to the standard library."""
    package = module.partition(".")[0]
    return package != "probdice" and package not in sys.stdlib_module_names


def _parts(similarity: Similarity) -> Iterator[type | ModuleType]:
    """Yield the class, its base classes, and the module of its kernels, if they are the user's."""
    for cls in type(similarity).__mro__:
        if _is_of_user(cls.__module__):
            yield cls
    kernels = similarity.kernels.partition(":")[0]
    if _is_of_user(kernels):
        yield import_module(kernels)


def _values(similarity: Similarity) -> list[float]:
    """Return f for all pairs of vectors of three probabilities in steps of 1 / `STEPS`."""
    vectors = [(i, j, STEPS - i - j) for i in range(STEPS + 1) for j in range(STEPS + 1 - i)]
    count = len(vectors)
    p = np.repeat(vectors, count, axis=0).T / STEPS
    q = np.tile(vectors, (count, 1)).T / STEPS
    with np.errstate(all="ignore"):
        f = np.asarray(similarity(p, q, axis=0), np.float64)
    values: list[float] = (np.round(f, DECIMALS) + 0.0).tolist()  # 0 instead of −0
    return values
