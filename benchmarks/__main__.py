"""All benchmarks, one after the other; tables on the screen, JSON in benchmarks/results."""

import subprocess
import sys
from pathlib import Path

RESULTS = Path(__file__).parent / "results"

RESULTS.mkdir(exist_ok=True)
for name in ("speed", "indices", "command", "folder"):
    print(f"\n{name}", flush=True)
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", RESULTS / f"{name}.json"]
    subprocess.run(command, check=True)
