"""Make docs/images/report.png: the page of the demonstration, as a browser shows it.

    python docs/screenshot.py

Needs Playwright (pip install playwright) and a chromium on the path.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright
from scipy.ndimage import gaussian_filter

import probdice
from probdice.synthesis import demo_pair

TARGET = Path(__file__).parent / "images" / "report.png"
WIDTH = 1280
COLOURS = 256  # enough for a page, and a third of the size


def scan_of(reference: probdice.Segmentation) -> np.ndarray:
    """What a scanner would see of the regions: a grey value each, blurred and noisy."""
    probabilities = np.asarray(reference.probabilities())
    grey = np.linspace(0, 1000, len(probabilities))
    noise = np.random.default_rng(0).normal(0, 40, probabilities.shape[1:])
    return gaussian_filter(np.tensordot(grey, probabilities, 1), 0.7) + noise


def main() -> None:
    """Compare, write the page, open it, and keep what is seen but for the small print."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("no chromium on the path")
    reference, prediction = demo_pair()
    result = probdice.compare(reference, prediction, merge="both")
    TARGET.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "page.html"
        title = "A brain-like phantom and an over-segmentation of it"
        result.report(page_file, title=title, image=scan_of(reference))
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        page.goto(page_file.as_uri())
        page.wait_for_selector("#viewer[data-ready]", state="attached")
        below = page.locator(".columns").bounding_box()
        assert below is not None
        height = below["y"] + below["height"] + 16
        page.screenshot(
            path=TARGET, full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height}
        )
        browser.close()
    Image.open(TARGET).convert("RGB").quantize(COLOURS).save(TARGET, optimize=True)
    print(f"{TARGET}: {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
