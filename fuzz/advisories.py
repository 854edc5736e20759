"""`python -m fuzz.advisories`: known security advisories of what is installed, by pip-audit.

Where the database of advisories cannot be reached, that is said, and nothing is claimed.
"""

import json
import subprocess
import sys
from typing import Any


def audited() -> tuple[list[dict[str, Any]], list[str]]:
    """The packages that were looked up, and the names of those that could not be."""
    command = [sys.executable, "-m", "pip_audit", "--local", "--format", "json"]
    run = subprocess.run(
        [*command, "--progress-spinner", "off"], capture_output=True, text=True, check=False
    )
    try:
        packages = json.loads(run.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"pip-audit gave no answer: {run.stderr.strip()[-300:]}")
        return [], ["all"]
    looked_up = [package for package in packages if "vulns" in package]
    return looked_up, [package["name"] for package in packages if "vulns" not in package]


def main() -> None:
    """Print the advisories that are known; an exit code of 1 if there are some."""
    packages, unknown = audited()
    if not packages:
        print("known advisories were not checked: their database cannot be reached from here")
        return
    found = [(package, entry) for package in packages for entry in package["vulns"]]
    for package, entry in found:
        fixed = ", ".join(entry["fix_versions"]) or "no version yet"
        print(f"{package['name']} {package['version']}: {entry['id']}, mended in {fixed}")
    print(f"{len(packages)} packages looked up, {len(unknown)} unknown, {len(found)} advisories")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
