"""Kernels are compiled into a folder of their own for every version of their sources.

Numba's cache looks only at the file of the function that is called, not at what it calls in turn:
after a change to a shared part, tests would run what was compiled before.
"""

import hashlib
import os
from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).parent.parent
_sources = sorted((ROOT / "src" / "probdice" / "engine" / "kernels").glob("*.py"))
_version = hashlib.sha256(b"".join(path.read_bytes() for path in _sources)).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba_cache" / _version))

settings.register_profile("probdice", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("probdice")
