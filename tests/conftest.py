"""Set up all tests: one Numba cache per version of the kernel sources, and one BLAS thread.

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
# Test processes share the cores, and threads of BLAS and torch would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba_cache" / _version))

settings.register_profile("probdice", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("probdice")
