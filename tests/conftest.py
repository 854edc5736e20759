"""Use a separate Numba cache for every version of the kernel sources.

Numba checks only the source file of the called function, not the files of functions that it calls.
After a change to a shared function, tests would run outdated compiled code.
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
