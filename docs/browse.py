"""Check the pages of the built site in a browser, with narrow and wide windows and both themes.

A page must not load anything from the network, raise JavaScript errors, be wider than the screen,
or have serious accessibility problems according to axe-core.

python docs/browse.py docs/_build/html [FOLDER for screenshots]

The script requires Playwright and axe-playwright-python (both are in the extra `test`), and
chromium on the path.
"""

import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

__all__ = ["main", "pages_of", "problems_of", "visit"]

VIEWS = ((380, "dark"), (1400, "light"), (380, "light"), (1400, "dark"))
SERIOUS = ("serious", "critical")


def pages_of(site: Path) -> list[Path]:
    """Return all hand-written pages, and three pages each of reference, gallery and source."""
    # Sphinx nests the lists of its overview of source pages in a way that axe rejects.
    overview = site / "_modules" / "index.html"
    pages = [
        path
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts and path != overview
    ]
    kinds = ("generated", "pages", "gallery", "_modules")
    generated: dict[str, list[Path]] = {kind: [] for kind in kinds}
    selected = []
    for path in pages:
        kind = next((kind for kind in kinds if kind in path.relative_to(site).parts[:-1]), None)
        if kind is None or (kind == "gallery" and path.stem == "index"):
            selected.append(path)
        else:
            generated[kind].append(path)
    for kind in ("generated", "gallery", "_modules"):
        selected += generated[kind][:3]
    return selected


def problems_of(page: Page, path: Path) -> list[str]:
    """Return the problems of a page."""
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on(
        "request",
        lambda request: (
            request.url.startswith(("file:", "data:", "blob:"))
            or problems.append(f"fetches {request.url}")
        ),
    )
    page.goto(path.as_uri())
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    if wide > 0:
        problems.append(f"{wide} pixels wider than the screen")
    violations = Axe().run(page, options={"iframes": False}).response["violations"]
    problems += [
        f"axe: {finding['id']}: {node['html'][:120]}"
        for finding in violations
        if finding["impact"] in SERIOUS
        for node in finding["nodes"]
    ]
    return problems


def visit(site: Path, shots: Path | None, chromium: str, view: tuple[int, str]) -> list[str]:
    """Return the problems of all pages in one view."""
    width, scheme = view
    problems = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        for path in pages_of(site):
            page = context.new_page()
            name = path.relative_to(site)
            problems += [f"{name} ({width}, {scheme}): {one}" for one in problems_of(page, path)]
            if shots:
                shots.mkdir(parents=True, exist_ok=True)
                stem = "-".join(name.with_suffix("").parts)
                page.screenshot(path=shots / f"{stem}-{width}-{scheme}.png", full_page=True)
            page.close()
        browser.close()
    return problems


def main() -> None:
    """Visit all pages in all views, one process per core, and print their problems."""
    site = Path(sys.argv[1]).resolve()
    shots = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("chromium not found on the path")
    with ProcessPoolExecutor() as pool:
        problems = list(chain(*pool.map(partial(visit, site, shots, chromium), VIEWS)))
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(pages_of(site))} pages in {len(VIEWS)} views: no problems")


if __name__ == "__main__":
    main()
