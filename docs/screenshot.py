"""Write docs/images/report.png, a screenshot of the page that `make demo` writes.

    python docs/screenshot.py

The script requires Playwright (pip install playwright), and chromium on the path.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

TARGET = Path(__file__).parent / "images" / "report.png"
WIDTH, HEIGHT = 1400, 900
COLOURS = 256  # a palette reduces the file size by two thirds


def main() -> None:
    """Run the demo, open its page, and save a screenshot of the first screen."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("chromium not found on the path")
    TARGET.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        demo = [sys.executable, "-m", "probdice", "demo", "-o", "demo"]  # as in the Makefile
        subprocess.run(demo, cwd=folder, check=True)
        page_file = Path(folder, "demo", "page.html")
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        viewport = {"width": WIDTH, "height": HEIGHT}
        page = browser.new_page(viewport=viewport, color_scheme="light")
        page.goto(page_file.as_uri())
        page.wait_for_selector("#viewer[data-ready]", state="attached")
        page.screenshot(path=TARGET)
        browser.close()
    # Of Pillow's methods, this one keeps colours of small areas, such as the scale and the ring.
    picture = Image.open(TARGET).convert("RGB")
    picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1).save(TARGET, optimize=True)
    print(f"{TARGET}: {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
