"""Software versions and machine type of a run, without user names, times or paths."""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from probdice.version import __version__

__all__ = ["environment"]


def environment() -> dict[str, Any]:
    """The versions and environment entries of summary.json."""
    packages = {"probdice": __version__}
    for name in ("numpy", "scipy", "numba", "nibabel"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "unknown"
    machine = {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
    }
    return {"versions": packages, "environment": machine}
