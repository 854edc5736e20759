"""Check the internal links and the total size of the built site.

python docs/check.py docs/_build/html

Links to other sites are not followed. Everything that a page loads must be in the folder, so that
the site works without a server.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["Page", "faults", "main"]

MAX_BYTES = 30_000_000  # size limit of the whole site
NEEDED = {
    "img": "src",
    "script": "src",
    "iframe": "src",
    "source": "src",
}  # attributes whose targets a browser loads


class Page(HTMLParser):
    """The anchors, links and loaded files of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def has(self, anchor: str) -> bool:
        """Return whether the page has this anchor. An empty anchor is valid."""
        return not anchor or anchor in self.anchors

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Record the anchor and the links of an element."""
        values = {name: value for name, value in attributes if value}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(values.get("href", ""))
        if tag in NEEDED and NEEDED[tag] in values:
            self.loaded.append(values[NEEDED[tag]])


def faults(site: Path) -> list[str]:
    """Return the problems of a site, one line per problem."""
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts  # templates of the theme
    }
    problems: list[str] = []
    for path, page in pages.items():
        name = path.relative_to(site)
        for address in page.loaded:
            if urlsplit(address).scheme not in ("", "data"):
                problems.append(f"{name}: loads {address} from another site")
        for address in [*page.links, *page.loaded]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or address == "#":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                problems.append(f"{name}: {address}: file not found")
            elif (
                target in pages
                and not pages[target].has(unquote(parts.fragment))
                and name.parts[0] != "_modules"  # viewcode has one name per module, not per object
            ):
                problems.append(f"{name}: {address}: anchor not found")
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    if size > MAX_BYTES:
        problems.append(f"the site has {size / 1e6:.1f} MB, expected at most {MAX_BYTES / 1e6:.0f}")
    return problems


def main() -> None:
    """Print the problems of the site, or its size."""
    site = Path(sys.argv[1]).resolve()
    problems = faults(site)
    if problems:
        sys.exit("\n".join(problems))
    files = [path for path in site.rglob("*") if path.is_file()]
    pages = sum(path.suffix == ".html" for path in files)
    size = sum(path.stat().st_size for path in files) / 1e6
    print(f"{pages} pages, {size:.1f} MB, all internal links are valid")


if __name__ == "__main__":
    main()
