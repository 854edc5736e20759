"""Size and response times of the page for two label maps of 256³ pixels with a background image.

The benchmark requires Playwright, and chromium on the path:

    python benchmarks/page.py [--size 256] [--json page.json]
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from probdice import Geometry, Segmentation, compare

REGIONS = 100
SLICES = 20  # slices to show
GOALS = {"MB": 10.0, "opens, s": 2.0, "slice, ms": 30.0, "three planes, ms": 30.0}
TURN = """async (count) => {
  const slider = document.querySelector("#sliders input");
  const times = [];
  for (let k = 0; k < count; k++) {
    slider.value = Math.round(Number(slider.max) * (k + 1) / (count + 1));
    const start = performance.now();
    slider.dispatchEvent(new Event("input"));
    times.push(performance.now() - start);
    await new Promise((done) => setTimeout(done, 20));
  }
  return times;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        found = {"written, s": [_write(file, options.size)], "MB": [file.stat().st_size / 1e6]}
        found |= _looked_at(file)
    print(f"two label maps of {options.size}³ pixels and {REGIONS} regions on an image")
    print(f"{'':18} {'median':>8} {'least':>8}")
    for name, values in found.items():
        goal = f"  goal: below {GOALS[name]:g}" if name in GOALS else ""
        print(f"{name:>18} {statistics.median(values):8.2f} {min(values):8.2f}{goal}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _write(file: Path, size: int) -> float:
    """Write the page of two synthetic segmentations and a scan. Return the time in seconds."""
    shape = (size,) * 3
    rng = np.random.default_rng(0)
    seeds = rng.uniform(0.15, 0.85, (REGIONS - 1, 3)).astype(np.float32)
    sides = [_organs(size, seeds + shift) for shift in (0, 0.004)]
    noise = rng.standard_normal(shape, np.float32)
    scan = gaussian_filter(sides[0].astype(np.float32) % 17, 1) * 60 + 20 * noise
    geometry = Geometry(shape, np.diag([1.0, 1.0, 1.0, 1.0]))
    result = compare(*(Segmentation.from_labels(side, geometry=geometry) for side in sides))
    start = time.perf_counter()
    result.report(file, image=scan)
    return time.perf_counter() - start


def _organs(size: int, seeds: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return, for every pixel in a ball, the index of the nearest seed."""
    from scipy.spatial import KDTree

    axis = np.linspace(0, 1, size, dtype=np.float32)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    nearest = KDTree(seeds).query(grid, workers=-1)[1] + 1
    inside = ((grid - 0.5) ** 2).sum(axis=1) < 0.2
    return np.where(inside, nearest, 0).astype(np.uint8).reshape((size,) * 3)


def _looked_at(file: Path) -> dict[str, list[float]]:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("chromium not found on the path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        opening = []
        for _ in range(5):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            start = time.perf_counter()
            page.goto(file.as_uri())
            page.wait_for_selector("#viewer[data-ready]", state="attached")
            opening.append(time.perf_counter() - start)
        slices = page.evaluate(TURN, SLICES)
        page.check("input[name=plane][value=all]", force=True)
        planes = page.evaluate(TURN, SLICES)
        start = time.perf_counter()
        page.click(".groups tbody tr >> nth=3")
        chosen = time.perf_counter() - start
        browser.close()
    return {
        "opens, s": opening,
        "slice, ms": slices,
        "three planes, ms": planes,
        "to a group, s": [chosen],
    }


if __name__ == "__main__":
    main()
