"""Skip tests whose packages `make test` does not install."""

import os
from importlib.util import find_spec

import pytest

# Packages whose name differs from the module.
PACKAGES = {"ignite": "pytorch-ignite", "pytestqt": "pytest-qt"}


def require(*modules):
    """Skip a module or a test if packages are missing; in CI, fail instead."""
    missing = [name for name in modules if find_spec(name) is None]
    if not missing:
        return
    packages = [PACKAGES.get(name, name) for name in missing]
    reason = f"not installed: pip install {' '.join(packages)}"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)
