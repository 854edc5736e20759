"""Pages from templates: self-contained, without scripts, everything from outside escaped."""

import base64
import hashlib
from dataclasses import dataclass
from importlib import resources

__all__ = ["PagedFigure", "render"]


@dataclass(frozen=True)
class PagedFigure:
    """A figure as a page shows it."""

    name: str
    title: str
    caption: str
    png: bytes

    @property
    def address(self) -> str:
        """The picture itself, as a data address."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode("ascii")


def render(template: str, **values: object) -> str:
    """A page from one of our templates, with its style inside."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("probdice.paper", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    folder = resources.files("probdice.paper") / "templates"
    style = (folder / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; "
        f"base-uri 'none'; form-action 'none'"
    )
    page = environment.get_template(template)
    return page.render(style=style, policy=policy, **values)
