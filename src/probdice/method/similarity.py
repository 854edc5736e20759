"""The base class of similarities of probability vectors, and the two similarities of the paper.

This module contains the reference implementations, in NumPy and float64. Compiled kernels compute
the same similarities block by block, and tests compare the results.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probdice.errors import InputError

__all__ = [
    "BUILT_IN",
    "SIMILARITIES",
    "Absolute",
    "Aitchison",
    "Similarity",
    "aitchison_distance",
    "as_similarity",
    "classical_dice",
    "ilr_basis",
    "problem_with_parameters",
    "similarity_from_dict",
]


class Similarity(ABC):
    """The similarity f of two probability vectors: 1 if the vectors are equal, never below 0.

    A subclass with a `name` and ``__call__`` can be used wherever a similarity is expected. A
    similarity with parameters is a frozen dataclass whose fields are the parameters. Instances that
    store values in other attributes are rejected, because JSON and comparisons of similarities
    contain only the parameters. All attributes except `name` are optional, and some of them make a
    similarity faster.
    `probdice.testing.check_similarity` checks the properties that a similarity must have.

    Attributes
    ----------
    name : str
        Name of the similarity in text, in JSON and as ``similarity="name"``.
    parameters : dict
        The values of the parameters by name.
    separable : bool
        Whether 1 − f of two vectors is half the sum of the absolute differences of their entries.
        The score of a one-to-one correspondence can then be computed from the overlaps of pairs of
        regions, without the pixels.
    unbounded : bool
        Whether two vectors can be infinitely far apart. If so, f is 0 only for such vectors.
    disagreement : float
        1 − f of two different one-hot vectors.
    kernels : str
        The kernels that compute sums over blocks of pixels, as ``"module:factory"``. The factory
        is called with the similarity. By default, blocks are passed to ``__call__``.
    help : str
        Description of the similarity in the help text of ``--similarity``.

    Examples
    --------
    >>> import numpy as np
    >>> import probdice
    >>> class Hellinger(probdice.Similarity):
    ...     name = "hellinger example"
    ...
    ...     def __call__(self, p, q, *, axis=0):
    ...         squares = (np.sqrt(p) - np.sqrt(q)) ** 2
    ...         return 1 - np.sqrt(np.clip(squares.sum(axis=axis) / 2, 0, 1))
    >>> result = probdice.compare([[0.9, 0.2], [0.1, 0.8]], [[0.8, 0.3], [0.2, 0.7]],
    ...                           similarity=Hellinger())
    >>> round(result.score, 4)
    0.9089
    """

    name: ClassVar[str]
    separable: ClassVar[bool] = False
    kernels: ClassVar[str] = "probdice.engine.numpy_kernels:NumpyKernels"
    help: ClassVar[str] = ""

    @abstractmethod
    def __call__(self, p: NDArray[Any], q: NDArray[Any], *, axis: int = 0) -> NDArray[np.float64]:
        """Return the similarity f of the vectors of `p` and `q` along `axis`."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__call__" in cls.__dict__:  # a new f does not inherit the properties of the parent's f
            cls.separable = cls.__dict__.get("separable", False)
            cls.kernels = cls.__dict__.get("kernels", Similarity.kernels)
        if isinstance(getattr(cls, "name", None), str):
            SIMILARITIES[cls.name] = cls

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of the parameters by name."""
        if not is_dataclass(self):
            return {}
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def unbounded(self) -> bool:
        """Whether two vectors can be infinitely far apart."""
        return False

    @property
    def disagreement(self) -> float:
        """1 − f of two different one-hot vectors."""
        return 1 - float(self(np.array([1.0, 0.0]), np.array([0.0, 1.0])))

    def to_dict(self) -> dict[str, Any]:
        """Return the name and the parameters as JSON data."""
        return {"name": self.name, **self.parameters}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((type(self), *self.parameters.values()))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{type(self).__name__}({values})"

    def __str__(self) -> str:
        values = ", ".join(f"{name} {value}" for name, value in self.parameters.items())
        return f"{self.name} with {values}" if values else self.name


SIMILARITIES: dict[str, type[Similarity]] = {}  # by name, including classes of other packages


@dataclass(frozen=True)
class Absolute(Similarity):
    """The similarity f₁: one minus half the sum of absolute differences.

    ``f₁(p, q) = 1 − ½ Σᵢ |pᵢ − qᵢ|``

    It is 1 if and only if ``p == q``, and 0 if and only if no region has a positive probability in
    both vectors. In between, it decreases linearly with the sum of the absolute differences.

    Examples
    --------
    >>> from probdice import Absolute
    >>> float(Absolute()([0.2, 0.3, 0.5], [0.1, 0.6, 0.3]))
    0.7
    """

    name: ClassVar[str] = "absolute"
    separable: ClassVar[bool] = True
    kernels: ClassVar[str] = "probdice.engine.compiled:AbsoluteKernels"
    help: ClassVar[str] = "differences of probabilities, the default"
    unbounded = False
    disagreement = 1.0

    def __call__(self, p: ArrayLike, q: ArrayLike, *, axis: int = 0) -> NDArray[np.float64]:
        """Return f₁ of vectors along `axis`."""
        p, q = _vectors(p, q, axis)
        f: NDArray[np.float64] = 1 - np.abs(p - q).sum(axis=0) / 2
        return np.clip(f, 0, 1)


@dataclass(frozen=True)
class Aitchison(Similarity):
    """The similarity f₂: the reciprocal of one plus the Aitchison distance.

    ``f₂(p, q) = 1 / (1 + dₐ(p, q))``, where dₐ is the `aitchison_distance`.

    Without a floor, it is 1 if and only if ``p == q``, and 0 if and only if a region has
    probability 0 in exactly one of the two vectors. It depends on ratios of probabilities, so it
    distinguishes 0.999 from 0.99.

    Parameters
    ----------
    floor : float, optional
        Smaller probabilities are replaced by this value before the logarithm is taken. A
        region that is 0 in both vectors is still excluded. The floor is at least 0 (the
        default) and below 0.5. With a positive floor, all distances are finite.

    Examples
    --------
    >>> from probdice import Aitchison
    >>> round(float(Aitchison()([0.2, 0.3, 0.5], [0.1, 0.6, 0.3])), 8)
    0.48419074
    >>> float(Aitchison()([1, 0], [0.9, 0.1]))
    0.0
    >>> round(float(Aitchison(floor=0.01)([1, 0], [0.9, 0.1])), 8)
    0.37000384
    """

    floor: float = 0.0

    name: ClassVar[str] = "aitchison"
    kernels: ClassVar[str] = "probdice.engine.compiled:AitchisonKernels"
    help: ClassVar[str] = "ratios of probabilities"

    def __str__(self) -> str:
        return f"{self.name} with floor {self.floor:g}" if self.floor else self.name

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "floor", float(self.floor))
        except (TypeError, ValueError):
            raise InputError(f"floor must be a number, found {self.floor!r}") from None
        if not 0 <= self.floor < 0.5:
            raise InputError(f"floor must be at least 0 and below 0.5, found {self.floor}")

    def __call__(self, p: ArrayLike, q: ArrayLike, *, axis: int = 0) -> NDArray[np.float64]:
        """Return f₂ of vectors along `axis`."""
        return np.asarray(1 / (1 + aitchison_distance(p, q, axis=axis, floor=self.floor)))

    @property
    def unbounded(self) -> bool:
        """Whether two vectors can be infinitely far apart: True only if the floor is 0."""
        return self.floor == 0

    @property
    def disagreement(self) -> float:
        """1 − f of two different one-hot vectors: 1 without a floor."""
        return 1 - float(self([1.0, 0.0], [0.0, 1.0])) if self.floor else 1.0


BUILT_IN: tuple[type[Similarity], ...] = (Absolute, Aitchison)  # values of ``--similarity``


def as_similarity(similarity: str | Similarity) -> Similarity:
    """Return the given similarity, or the similarity with the given name and default parameters."""
    if isinstance(similarity, str) and similarity in SIMILARITIES:
        similarity = SIMILARITIES[similarity]()
    if not isinstance(similarity, Similarity):
        names = ", ".join(repr(name) for name in SIMILARITIES)
        raise InputError(f"similarity must be {names} or a Similarity, found {similarity!r}")
    problem = problem_with_parameters(similarity)
    if problem:
        raise InputError(f"similarity: {problem}")
    return similarity


def problem_with_parameters(similarity: Similarity) -> str:
    """Describe why the parameters of a similarity do not identify it; "" if they do.

    Kernels are cached, overlaps are added and results are stored by class and parameters.
    """
    cls = type(similarity)
    parameter_names, frozen = set[str](), True
    if is_dataclass(similarity):
        parameter_names = {field.name for field in fields(similarity) if field.compare}
        frozen = cls.__dataclass_params__.frozen
    other_names = [
        name
        for name in _attributes(similarity)
        if name not in parameter_names and not isinstance(getattr(cls, name, None), cached_property)
    ]
    if other_names or not frozen:
        problem = (
            f"the attributes {', '.join(other_names)}" if other_names else "a mutable dataclass"
        )
        return (
            f"{cls.__name__} must be a frozen dataclass whose fields are its parameters, found "
            f"{problem}. Decorate the class with @dataclass(frozen=True), and declare every "
            f"parameter as a field, such as k: float = 1.0."
        )
    try:
        hash(similarity)
    except TypeError as error:
        return (
            f"the parameters of {cls.__name__} must be immutable values, such as numbers, strings "
            f"and tuples ({error})."
        )
    return ""


def _attributes(similarity: Similarity) -> list[str]:
    """Return the names of the attributes that an instance stores, including slots."""
    state = object.__getstate__(similarity)
    parts = state if isinstance(state, tuple) else (state,)
    return [name for part in parts if isinstance(part, dict) for name in part]


def similarity_from_dict(content: Mapping[str, Any]) -> Similarity:
    """Restore a similarity from the output of `Similarity.to_dict`. Ignore unknown parameters."""
    name = content["name"]
    if name not in SIMILARITIES:
        raise InputError(
            f"similarity {name!r} is unknown. Import the module that defines it before reading."
        )
    similarity = SIMILARITIES[name]
    if not is_dataclass(similarity):
        return similarity()
    field_names = [field.name for field in fields(similarity)]
    return similarity(**{key: content[key] for key in field_names if key in content})


def aitchison_distance(
    p: ArrayLike, q: ArrayLike, *, axis: int = 0, floor: float = 0.0
) -> NDArray[np.float64]:
    """Compute the Aitchison distance between vectors of non-negative numbers.

    ``dₐ(p, q) = ‖clr(p) − clr(q)‖₂`` with ``clr(p)ᵢ = log pᵢ − meanₖ log pₖ``

    A region that is 0 in both vectors is excluded. A region that is 0 in exactly one vector makes
    the distance infinite, unless `floor` is positive. Without a floor, the distance does not depend
    on the scale of either vector.

    Parameters
    ----------
    p, q : array_like
        Vectors of equal length along `axis`. The other axes are broadcast.
    axis : int, optional
        The region axis of both arrays.
    floor : float, optional
        See `Aitchison`.

    Returns
    -------
    ndarray of float64
        Array with the broadcast shape of `p` and `q` without `axis`. It is zero-dimensional for two
        vectors.

    Examples
    --------
    >>> import probdice
    >>> round(float(probdice.aitchison_distance([0.2, 0.3, 0.5], [0.1, 0.6, 0.3])), 8)
    1.06530179
    >>> float(probdice.aitchison_distance([0.5, 0.5, 0], [0.4, 0.5, 0.1]))
    inf
    """
    floor = Aitchison(floor).floor
    p, q = _vectors(p, q, axis)
    present = (p > 0) | (q > 0)
    with np.errstate(divide="ignore"):
        log_p = np.log(np.maximum(p, floor), where=present, out=np.zeros_like(p))
        log_q = np.log(np.maximum(q, floor), where=present, out=np.zeros_like(q))
    infinite = np.any(np.isinf(log_p) | np.isinf(log_q), axis=0)
    difference = np.zeros_like(p)
    np.subtract(log_p, log_q, out=difference, where=np.isfinite(log_p) & np.isfinite(log_q))
    count = np.maximum(present.sum(axis=0), 1)
    centred = difference - difference.sum(axis=0) / count
    distance = np.sqrt(np.sum(centred**2, axis=0, where=present))
    return np.where(infinite, np.inf, distance)


def ilr_basis(regions: int) -> NDArray[np.float64]:
    """Return the orthonormal basis of isometric log-ratio coordinates, one row per coordinate.

    .. math:: z_k = \\sqrt{\\tfrac{k}{k+1}} \\,
              \\log \\frac{(p_1 \\cdots p_k)^{1/k}}{p_{k+1}}, \\quad k = 1, …, K - 1

    This is the basis of Egozcue et al. (2003), which compares each region with the geometric mean
    of the preceding regions. The rows are orthonormal, and each row sums to 0.
    """
    basis = np.zeros((regions - 1, regions))
    for k in range(1, regions):
        basis[k - 1, :k] = np.sqrt(1 / (k * (k + 1)))
        basis[k - 1, k] = -np.sqrt(k / (k + 1))
    return basis


def classical_dice(reference: ArrayLike, prediction: ArrayLike) -> float:
    """Compute the classical Dice coefficient of two masks.

    ``D(X, Y) = 2 |X ∩ Y| / (|X| + |Y|)``

    Parameters
    ----------
    reference, prediction : array_like of bool
        Two masks with the same shape.

    Returns
    -------
    float
        A number between 0 and 1, or NaN if both masks are empty.

    Examples
    --------
    >>> import probdice
    >>> probdice.classical_dice([True, False, True, False], [True, True, True, False])
    0.8
    """
    x, y = np.asarray(reference), np.asarray(prediction)
    for side, mask in (("reference", x), ("prediction", y)):
        if mask.dtype != np.bool_:
            raise InputError(
                f"{side} must be a boolean mask, found {mask.dtype}. "
                f"Compare it with a label first, as in labels == 1."
            )
    if x.shape != y.shape:
        raise InputError(f"reference has shape {x.shape} but prediction has shape {y.shape}")
    total = int(x.sum()) + int(y.sum())
    return 2 * int((x & y).sum()) / total if total else float("nan")


def _vectors(
    p: ArrayLike, q: ArrayLike, axis: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Check both arrays, and return them as float64 arrays with the regions along the first axis.

    The other axes are broadcast, so that one vector can be compared with an image.
    """
    arrays: list[NDArray[np.float64]] = []
    for name, values in (("p", p), ("q", q)):
        try:
            array = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{name} must be an array of real numbers") from None
        if not -array.ndim <= axis < array.ndim:
            raise InputError(f"{name} has no axis {axis}: its shape is {array.shape}")
        if not np.all((array >= 0) & np.isfinite(array)):
            raise InputError(f"{name} must contain only finite, non-negative numbers")
        arrays.append(np.moveaxis(array, axis, 0))
    first, second = arrays
    if len(first) != len(second):
        raise InputError(
            f"p and q must have the same number of regions along axis {axis}, "
            f"found {len(first)} and {len(second)}"
        )
    axes = max(first.ndim, second.ndim)
    padded_arrays = [
        array.reshape(len(array), *(1,) * (axes - array.ndim), *array.shape[1:]) for array in arrays
    ]
    try:
        first, second = np.broadcast_arrays(*padded_arrays)
    except ValueError:
        shapes = " and ".join(str(array.shape[1:]) for array in arrays)
        raise InputError(
            f"p and q must have shapes that can be broadcast together after the region axis is "
            f"removed, found {shapes}"
        ) from None
    return first, second
