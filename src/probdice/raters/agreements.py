"""Inter-rater agreement: every pair of raters, and each rater with the mean of the others."""

import json
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from probdice.comparison.comparing import compare_images
from probdice.comparison.result import Comparison
from probdice.engine.pair import Images
from probdice.errors import MissingExtraError
from probdice.files.atomic_files import null_for_nan
from probdice.method.overlap import Floats
from probdice.raters.fused_array import mean_of
from probdice.raters.panel import Panel
from probdice.text.formatting import decimal

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["FORMAT", "AgainstOthers", "Agreement"]

FORMAT = 1  # format version of to_dict and to_json


@dataclass(frozen=True)
class AgainstOthers:
    """One rater compared with the mean of all others.

    Attributes
    ----------
    name : str
    score : float
        The score of the rater compared with that mean.
    adjusted_score : float
        The adjusted score of the rater compared with that mean.
    explained : float
        The share of the rater's variance that the others explain.
    """

    name: str
    score: float
    adjusted_score: float
    explained: float


@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """Inter-rater agreement, the result of `probdice.agreement`.

    Attributes
    ----------
    names : tuple of str
        The raters, in the given order.
    score : ndarray
        The score of every pair, rater × rater; 1 on the diagonal.
    adjusted_score : ndarray
        The adjusted score of every pair, rater × rater; 1 on the diagonal.
    explained : ndarray
        The share of the row's rater that the column's rater explains.
    others : tuple of AgainstOthers
        Each rater compared with the mean of all others. A method that agrees with the raters as
        well as a rater reaches these values. With two raters, the mean is the other rater.
    pixels : int
        The number of compared pixels.

    Examples
    --------
    >>> import probdice
    >>> agreement = probdice.agreement([[1, 1, 2, 2], [7, 7, 7, 9], [5, 5, 4, 4]])
    >>> agreement.score
    array([[1.  , 0.75, 1.  ],
           [0.75, 1.  , 0.75],
           [1.  , 0.75, 1.  ]])
    >>> agreement.mean_score
    0.8333333333333334
    >>> [round(one.score, 3) for one in agreement.others]
    [0.875, 0.75, 0.875]
    """

    names: tuple[str, ...]
    score: Floats
    adjusted_score: Floats
    explained: Floats
    others: tuple[AgainstOthers, ...]
    pixels: int

    @property
    def mean_score(self) -> float:
        """The mean of the scores of all pairs."""
        return self._mean(self.score)

    @property
    def mean_adjusted_score(self) -> float:
        """The mean of the adjusted scores of all pairs."""
        return self._mean(self.adjusted_score)

    @property
    def mean_explained(self) -> float:
        """The mean of the explained shares of all ordered pairs."""
        return self._mean(self.explained)

    def _mean(self, matrix: Floats) -> float:
        off_diagonal = matrix[~np.eye(len(self.names), dtype=np.bool_)]
        known = off_diagonal[~np.isnan(off_diagonal)]
        return float(known.mean()) if known.size else nan

    @cached_property
    def order(self) -> tuple[int, ...]:
        """An order with similar raters adjacent: the leaves of average linkage."""
        if len(self.names) < 3:
            return tuple(range(len(self.names)))
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        distances = np.clip(1 - (self.score + self.score.T) / 2, 0, None)
        np.fill_diagonal(distances, 0)
        condensed = squareform(distances, checks=False)
        leaves = leaves_list(linkage(condensed, "average", optimal_ordering=True))
        return tuple(int(k) for k in leaves)

    def plot(self) -> "Figure":
        """Draw the matrix of scores, with similar raters adjacent, as a Matplotlib figure.

        Examples
        --------
        >>> import probdice
        >>> figure = probdice.agreement([[1, 1, 2, 2], [7, 7, 7, 9], [5, 5, 4, 4]]).plot()
        >>> len(figure.axes[0].texts)
        9
        """
        from probdice.pictures.rater_plots import draw_agreement

        return draw_agreement(self)

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain types, with the version of the format.

        Examples
        --------
        >>> import probdice
        >>> probdice.agreement([[1, 1, 2, 2], [7, 7, 7, 9]]).to_dict()["score"]
        [[1.0, 0.75], [0.75, 1.0]]
        """
        return {
            "format": FORMAT,
            "raters": list(self.names),
            "pixels": self.pixels,
            "score": self.score.tolist(),
            "adjusted_score": self.adjusted_score.tolist(),
            "explained": self.explained.tolist(),
            "mean_score": self.mean_score,
            "mean_adjusted_score": self.mean_adjusted_score,
            "mean_explained": self.mean_explained,
            "others": [vars(one) for one in self.others],
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """`to_dict` as JSON; NaN becomes null.

        Examples
        --------
        >>> import probdice
        >>> probdice.agreement([[1, 2], [3, 3]]).to_json()[:38]
        '{"format": 1, "raters": ["1", "2"], "p'
        """
        return json.dumps(null_for_nan(self.to_dict()), indent=indent, allow_nan=False)

    def to_frame(self) -> "pandas.DataFrame":
        """A pandas data frame with one row per ordered pair of raters.

        Examples
        --------
        >>> import probdice
        >>> probdice.agreement([[1, 1, 2, 2], [7, 7, 7, 9]]).to_frame()["score"].tolist()
        [0.75, 0.75]
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtraError('to_frame needs pandas: pip install "pandas"') from None
        pairs = [(i, j) for i in range(len(self.names)) for j in range(len(self.names)) if i != j]
        return pandas.DataFrame(
            {
                "rater": [self.names[i] for i, _ in pairs],
                "other": [self.names[j] for _, j in pairs],
                "score": [self.score[pair] for pair in pairs],
                "adjusted_score": [self.adjusted_score[pair] for pair in pairs],
                "explained": [self.explained[pair] for pair in pairs],
            }
        )

    def __repr__(self) -> str:
        lines = [
            f"Agreement of {len(self.names)} raters over {self.pixels} pixels",
            f"  mean over all pairs: score {decimal(self.mean_score)}   adjusted "
            f"{decimal(self.mean_adjusted_score)}   explained {decimal(self.mean_explained)}",
            "  each rater vs the mean of the others:",
        ]
        width = max(len(name) for name in self.names)
        lines += [
            f"    {one.name:>{width}}  score {decimal(one.score)}   adjusted "
            f"{decimal(one.adjusted_score)}   explained {decimal(one.explained)}"
            for one in self.others
        ]
        return "\n".join(lines)


def agreement_of(panel: Panel) -> Agreement:
    """Compare all pairs, and each rater with the mean of the others."""
    names = panel.names
    score, adjusted, explained = (np.eye(len(names)) for _ in range(3))
    for (first, second), comparison in panel.comparisons.items():
        i, j = names.index(first), names.index(second)
        score[i, j] = score[j, i] = comparison.score
        adjusted[i, j] = adjusted[j, i] = comparison.adjusted_score
        explained[i, j] = comparison.explained["reference"]
        explained[j, i] = comparison.explained["prediction"]
    pixels = next(iter(panel.comparisons.values())).pixels
    others = tuple(_against_others(panel, name) for name in names)
    return Agreement(names, score, adjusted, explained, others, pixels)


def _against_others(panel: Panel, name: str) -> AgainstOthers:
    comparison = against_mean(panel, name)
    return AgainstOthers(
        name, comparison.score, comparison.adjusted_score, comparison.explained["prediction"]
    )


def against_mean(panel: Panel, name: str) -> Comparison:
    """Compare a rater, as prediction, with the mean of the others."""
    others = [other for other in panel.names if other != name]
    several = panel.several
    reference = several.sides[others[0]] if len(others) == 1 else mean_of(panel, others)
    images = Images(reference, several.sides[name], several.mask, several.workers)
    return compare_images(images, panel.options)
