"""`python -m fuzz.figures LOG… [--into PAGE]`: summarise the logs of long runs as a table.

The option `--log` of `python -m fuzz`, `fuzz.torture` and `fuzz.kills` writes the logs. The table
replaces the text between two comments of the page.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuzz.targets import TARGETS


def table_of(lines: Sequence[dict[str, Any]]) -> str:
    """Return a table with the counts, faults and dates of all runs."""
    rows = ["| what | runs | faults | |", "|---|---|---|---|"]
    fuzz = [line for line in lines if line["kind"] == "fuzz"]
    for name in TARGETS:
        own = [line for line in fuzz if line["target"] == name]
        if own:
            lines_reached = max(100 * line["reached"] // line["lines"] for line in own)
            peak = max(line["memory"] for line in own) / 2**20
            rows.append(
                f"| `{name}` | {_sum(own, 'executions')} executions | {_sum(own, 'faults')} | "
                f"{_sum(own, 'accepted')} read, {lines_reached} % of the lines, "
                f"peak {peak:.1f} MB |"
            )
    if fuzz:
        rows.append(
            f"| **all readers** | **{_sum(fuzz, 'executions')} executions** | "
            f"**{_sum(fuzz, 'faults')}** | {_runs(fuzz)} |"
        )
    torture = [line for line in lines if line["kind"] == "torture"]
    if torture:
        rows.append(
            f"| **comparisons with the reference implementation** | "
            f"**{_sum(torture, 'cases')} cases** | "
            f"**{_sum(torture, 'faults')}** | {_runs(torture)} |"
        )
    kills = [line for line in lines if line["kind"] == "kills"]
    if kills:
        killed = _sum(kills, "kills of the run") + _sum(kills, "kills of a worker")
        rows.append(
            f"| **kills of `evaluate` and its workers** | **{killed}** | "
            f"**{_sum(kills, 'faults')}** | {_sum(kills, 'kills at work')} while result files were "
            f"open, {_sum(kills, 'runs to the end')} completed runs, "
            f"{_sum(kills, 'inputs disturbed')} input files deleted, truncated or changed, "
            f"{_runs(kills)} |"
        )
        rows.append(f"| **full disks** | **{_sum(kills, 'full disks')}** | as above | |")
    return "\n".join(rows)


def _sum(lines: Sequence[dict[str, Any]], key: str) -> int:
    return sum(line.get(key, 0) for line in lines)


def _runs(lines: Sequence[dict[str, Any]]) -> str:
    """Return the seeds and the dates of runs."""
    days = sorted({line["when"][:10] for line in lines})
    seeds = sorted({line["seed"] for line in lines})
    first, last = days[0], days[-1]
    dates = first if first == last else f"{first} to {last}"
    return f"seeds {', '.join(map(str, seeds))}; {dates}"


def put(page: Path, name: str, table: str) -> None:
    """Replace the text between the two comments with this name on a page by a table."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = page.read_text().partition(start)
    page.write_text(f"{before}{start}\n{table}\n{end}{rest.partition(end)[2]}")


def main() -> None:
    """Print the table, or insert it into a page."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.figures", description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--into", type=Path, metavar="PAGE")
    parsed = parser.parse_args()
    table = table_of(
        [json.loads(line) for log in parsed.logs for line in log.read_text().splitlines()]
    )
    if parsed.into is None:
        print(table)
        return
    put(parsed.into, "figures", table)


if __name__ == "__main__":
    main()
