"""Run all benchmarks; print tables and write JSON to benchmarks/results."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

RESULTS = Path(__file__).parent / "results"

RESULTS.mkdir(exist_ok=True)
for name in (
    "speed",
    "indices",
    "boundaries",
    "command",
    "folder",
    "challenge",
    "cases",
    "intervals",
    "training",
    "chunks",
):
    print(f"\n{name}", flush=True)
    if name == "training" and not find_spec("torchmetrics"):
        print("not measured: pip install torch torchmetrics")
        continue
    if name == "chunks" and not (find_spec("zarr") and find_spec("distributed")):
        print('not measured: pip install "probdice[zarr,dask]"')
        continue
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", RESULTS / f"{name}.json"]
    subprocess.run(command, check=True)
