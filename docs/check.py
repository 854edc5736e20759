"""Look at the built site: every link among its pages leads somewhere, and it is small enough.

python docs/check.py docs/_build/html

Links to other sites are not followed. Whatever a page needs to be shown must lie in the folder, so
that it works from a disk without a server.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["Page", "faults", "main"]

MOST = 30_000_000  # bytes in all
NEEDED = {"img": "src", "script": "src", "iframe": "src", "source": "src"}  # else it is not shown


class Page(HTMLParser):
    """The anchors of a page, what it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def has(self, anchor: str) -> bool:
        """Whether an address with this anchor, or none, leads to a place on the page."""
        return not anchor or anchor in self.anchors

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what an element is called and where it leads."""
        values = {name: value for name, value in attributes if value}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(values.get("href", ""))
        if tag in NEEDED and NEEDED[tag] in values:
            self.loaded.append(values[NEEDED[tag]])


def faults(site: Path) -> list[str]:
    """What is wrong with a site, a sentence each."""
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts  # templates of the theme
    }
    wrong: list[str] = []
    for path, page in pages.items():
        name = path.relative_to(site)
        for address in page.loaded:
            if urlsplit(address).scheme not in ("", "data"):
                wrong.append(f"{name}: loads {address} from elsewhere")
        for address in [*page.links, *page.loaded]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or address == "#":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                wrong.append(f"{name}: {address} leads to no file")
            elif target in pages and not pages[target].has(unquote(parts.fragment)):
                wrong.append(f"{name}: {address} leads to no such place on that page")
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    if size > MOST:
        wrong.append(f"{size / 1e6:.1f} MB, expected at most {MOST / 1e6:.0f}")
    return wrong


def main() -> None:
    """Say what is wrong, or how large the site is."""
    site = Path(sys.argv[1]).resolve()
    wrong = faults(site)
    if wrong:
        sys.exit("\n".join(wrong))
    files = [path for path in site.rglob("*") if path.is_file()]
    pages = sum(path.suffix == ".html" for path in files)
    size = sum(path.stat().st_size for path in files) / 1e6
    print(f"{pages} pages, {size:.1f} MB, every link among them leads somewhere")


if __name__ == "__main__":
    main()
