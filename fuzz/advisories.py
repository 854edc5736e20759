"""`python -m fuzz.advisories`: list known security advisories of installed packages.

The command runs pip-audit. If pip-audit fails, for example because the database of advisories
cannot be reached, the command reports that nothing was checked.
"""

import json
import subprocess
import sys
from typing import Any


def audited() -> tuple[list[dict[str, Any]], list[str]]:
    """Return the checked packages, and the names of packages that could not be checked."""
    command = [sys.executable, "-m", "pip_audit", "--local", "--format", "json"]
    run = subprocess.run(
        [*command, "--progress-spinner", "off"], capture_output=True, text=True, check=False
    )
    try:
        packages = json.loads(run.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"pip-audit failed: {run.stderr.strip()[-300:]}")
        return [], ["all"]
    looked_up = [package for package in packages if "vulns" in package]
    return looked_up, [package["name"] for package in packages if "vulns" not in package]


def main() -> None:
    """Print known advisories, and exit with code 1 if there are any."""
    packages, unknown = audited()
    if not packages:
        print("advisories were not checked")
        return
    found = [(package, entry) for package in packages for entry in package["vulns"]]
    for package, entry in found:
        fixed = ", ".join(entry["fix_versions"]) or "no version"
        print(f"{package['name']} {package['version']}: {entry['id']}, fixed in {fixed}")
    print(f"{len(packages)} packages checked, {len(unknown)} unknown, {len(found)} advisories")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
