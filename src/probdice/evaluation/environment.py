"""The versions of what computed a result, and the machine it ran on; no names, times or paths."""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

__all__ = ["environment", "own_version"]


def environment() -> dict[str, Any]:
    """For summary.json."""
    packages = {"probdice": own_version()}
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


def own_version() -> str:
    """That of the package that runs, installed or not."""
    from probdice import __version__

    return __version__
