"""From the data of a page to one file: templates filled in, style and scripts put inline."""

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probdice.errors import FormatError, InputError
from probdice.files.writing import replacing

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["render", "write_page"]


def render(template: str, page: object, *, style: str, scripts: tuple[str, ...]) -> str:
    """The text of a page.

    Nothing is fetched and nothing runs but the scripts given here: the page's content security
    policy knows them and the style by their hashes.
    """
    css, code = _asset(style), [_asset(name) for name in scripts]
    policy = "; ".join(
        [
            "default-src 'none'",
            "img-src data:",
            f"style-src {_hashed(css)}",
            f"script-src {' '.join(_hashed(text) for text in code)}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return (
        _environment()
        .get_template(template)
        .render(page=page, policy=policy, style=css, scripts=code)
    )


def write_page(path: Path, text: str, *, alone: bool = False) -> None:
    """Put a complete page in its place; for `alone` see `replacing`."""
    try:
        with replacing(path, alone=alone) as partial:
            # A file name that is no text holds lone surrogates, which no encoding knows.
            partial.write_text(text, encoding="utf-8", errors="replace", newline="\n")
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise FormatError(f"{path}: cannot be written: {reason}") from error


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("probdice.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data"] = _data
    return environment


def _data(value: Any) -> Any:
    """JSON that no text from outside can end early: a browser sees no tag in it."""
    from markupsafe import Markup

    text = json.dumps(_finite(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _finite(value: Any) -> Any:
    """null for what is not a number."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


@cache
def _asset(name: str) -> Any:
    """A style or script, as it stands in the page."""
    from markupsafe import Markup

    return Markup((files("probdice.report") / "assets" / name).read_text(encoding="utf-8"))


def _hashed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
