"""Measure all rows of the table in docs/explanation/speed.md, and print the table.

python -m benchmarks [--only soft_pairs …] [--into docs/explanation/speed.md]
"""

from importlib.util import find_spec

from benchmarks import speed
from benchmarks.command import command
from benchmarks.folder import folder
from benchmarks.table import run

BENCHMARKS = [*speed.BENCHMARKS, command, folder]
if find_spec("torchmetrics"):
    from benchmarks.training import losses, updates

    BENCHMARKS += [updates, losses]
else:
    print("torchmetrics is not installed; the rows of RegionDice are left out")

if __name__ == "__main__":
    run(BENCHMARKS, __doc__)
