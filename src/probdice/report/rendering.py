"""Render templates to self-contained HTML files with inline style and scripts.

`render` returns the text of a page, and `write_page` writes it. Any package may have templates::

    text = render("page.html", {"title": …}, package="probdice.paper", style="templates/page.css")
    write_page(path, text)

Templates are in the folder ``templates`` of their package. A template receives the given values and
the values ``policy``, ``style`` and ``scripts`` for its head and its end::

    <meta http-equiv="Content-Security-Policy" content="{{ policy }}">
    <style>{{ style }}</style>
    {% for script in scripts %}<script>{{ script }}</script>{% endfor %}

All other values are escaped, an undefined name is an error, and ``{{ value | data }}`` writes JSON
for scripts. The content security policy forbids all requests. It allows only embedded images, and
the inline style and scripts, which are identified by their hashes.
"""

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probdice.errors import FormatError, InputError
from probdice.files.atomic_files import null_for_nan, replacing

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["render", "write_page"]


def render(
    template: str,
    values: Mapping[str, object],
    *,
    style: str,
    extra_styles: tuple[str, ...] = (),
    scripts: tuple[str, ...] = (),
    package: str = "probdice.report",
) -> str:
    """Return the text of a page: a template with its values, style, scripts and security policy.

    `style`, `extra_styles` and `scripts` are files of the package, such as "assets/page.css".
    `style` precedes the `extra_styles` in the joined style sheet.
    """
    from markupsafe import Markup

    sheets, code = (
        [_asset(package, name) for name in names] for names in ((style, *extra_styles), scripts)
    )
    css = Markup("").join(sheets)  # a str would be escaped, including the > of selectors
    policy = [
        "default-src 'none'",
        "img-src data:",
        f"style-src {_hashed(css)}",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    if code:
        policy.append(f"script-src {' '.join(_hashed(text) for text in code)}")
    page = _environment(package).get_template(template)
    return page.render({**values, "policy": "; ".join(policy), "style": css, "scripts": code})


def write_page(path: Path, text: str, *, has_lock: bool = False) -> None:
    """Write a page completely or not at all. For `has_lock`, see `atomic_files.replacing`."""
    try:
        with replacing(path, has_lock=has_lock) as partial:
            # File names that are not valid text contain lone surrogates, which cannot be encoded.
            partial.write_text(text, encoding="utf-8", errors="replace", newline="\n")
    except InputError as error:
        raise error.prefixed(f"{path}: ") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise FormatError(f"{path}: cannot be written: {reason}") from error


@cache
def _environment(package: str) -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data"] = _data
    environment.filters["unbroken"] = _unbroken
    return environment


def _data(value: Any) -> Any:
    """Return JSON with escaped <, > and &, so that user text cannot close the script element."""
    from markupsafe import Markup

    content = null_for_nan(value)
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _unbroken(text: str) -> Any:
    """Return text in which lines do not break at the hyphens of command-line options."""
    from markupsafe import Markup, escape

    parts = re.split(r"(--[a-z][a-z-]*)", text)
    option = Markup('<span class="option">{}</span>')
    return Markup("").join(
        option.format(part) if k % 2 else escape(part) for k, part in enumerate(parts)
    )


@cache
def _asset(package: str, name: str) -> Any:
    """Return the text of a style sheet or script."""
    from markupsafe import Markup

    return Markup(files(package).joinpath(name).read_text(encoding="utf-8"))


def _hashed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
