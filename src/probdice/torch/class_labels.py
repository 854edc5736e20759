"""Labels of the classes, clusters and background of a metric."""

from collections.abc import Mapping, Sequence

from probdice.errors import InputError
from probdice.method.region_labels import Label
from probdice.method.sides import SIDES, Side
from probdice.options import GivenBackground

__all__ = ["background_of", "classes_of", "clusters_of", "number_of_regions"]


def number_of_regions(value: object, name: str) -> int:
    """Return a number of regions; raise an error unless it is a positive integer."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} must be a positive integer, found {value!r}")
    return value


def classes_of(names: Sequence[str] | None, count: int) -> tuple[Label, ...]:
    """Return the labels of the classes: their names, or 0, 1, … if `names` is None."""
    if names is None:
        return tuple(range(count))
    classes = tuple(str(name) for name in names)
    if isinstance(names, str) or len(classes) != count or len(set(classes)) != count:
        raise InputError(f"names must be {count} different names, one per class, found {names!r}")
    return classes


def clusters_of(classes: Sequence[Label], count: int) -> tuple[Label, ...]:
    """Return the labels of the clusters: first those of the classes, then consecutive integers."""
    return (*classes[:count], *range(len(classes), count))


def background_of(
    background: GivenBackground, classes: Sequence[Label], clusters: Sequence[Label]
) -> dict[Side, Label] | None:
    """Return the class and the cluster of the background, or None without a background.

    A single label selects a class and the cluster at the same position.
    """
    if background is None:
        return None
    if isinstance(background, Mapping):
        sides = dict(background)
    else:
        position = classes.index(background) if background in classes else -1
        has_cluster = 0 <= position < len(clusters)
        sides = {
            "reference": background,
            "prediction": clusters[position] if has_cluster else background,
        }
    for side, name, labels in zip(SIDES, ("classes", "clusters"), (classes, clusters), strict=True):
        if sides.get(side) not in labels:
            raise InputError(
                f"background must be one of the {name} {labels}, found {sides.get(side)!r}"
            )
    return sides
