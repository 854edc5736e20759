"""Connected components of a label map, computed by the package connected-components-3d."""

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import InputError, MissingExtraError

__all__ = ["as_connectivity", "connected"]

# Keys are numbers of axes. The last value, which includes all neighbours, is the default.
CONNECTIVITIES = {1: (2,), 2: (4, 8), 3: (6, 18, 26)}


def as_connectivity(connectivity: object, axes: int) -> int:
    """Return the connectivity that the user requested, or the default for the number of axes."""
    if axes not in CONNECTIVITIES:
        raise InputError(f"components require an image with 1 to 3 axes, found {axes} axes")
    connectivities = CONNECTIVITIES[axes]
    for number in connectivities:
        if connectivity == number:
            return number
    if connectivity is None:
        return connectivities[-1]
    words = " or ".join(str(number) for number in connectivities)
    raise InputError(f"connectivity must be {words} for a {axes}-D image, found {connectivity!r}")


def connected(code_map: NDArray[Any], connectivity: int) -> tuple[NDArray[Any], int]:
    """Return the component number of every pixel, and the number of components.

    A component consists of connected pixels with equal codes other than 0. Components are numbered
    from 1 in the order of their first pixel. Pixels with code 0 have the number 0.
    """
    if code_map.ndim == 1:  # cc3d needs at least two axes
        components, count = connected(code_map[None], 4)
        return components[0], count
    if code_map.size == 0:
        return np.zeros(code_map.shape, np.uint16), 0
    components, count = _cc3d().connected_components(
        code_map, connectivity=connectivity, return_N=True
    )
    return components, int(count)


def _cc3d() -> ModuleType:
    try:
        import cc3d
    except ImportError:
        raise MissingExtraError(
            'components require connected-components-3d: pip install "probdice[instances]"'
        ) from None
    module: ModuleType = cc3d
    return module
