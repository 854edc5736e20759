"""Parse the name tables of FSL: lookup tables of FSLeyes (.lut) and atlas descriptions (.xml)."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from probdice.errors import FormatError
from probdice.files.corrupt import refuse_entities
from probdice.files.model import Entry, as_colour
from probdice.method.region_labels import Label

__all__ = ["is_atlas", "parse_atlas", "parse_lut"]

NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
LINE = re.compile(rf"(\d+)\s+{NUMBER}\s+{NUMBER}\s+{NUMBER}\s+(\S.*)")
ENTITY = "<!ENTITY"  # entities can expand to much more text


def parse_lut(lines: Sequence[str]) -> dict[Label, Entry]:
    """Parse lines that consist of a label, red, green and blue from 0 to 1, and a name.

    Return {} if a line has another form.
    """
    rows = [row.groups() for row in map(LINE.fullmatch, lines) if row]
    if len(rows) < len(lines):
        return {}
    return {int(label): Entry(name, as_colour(shares, 1)) for label, *shares, name in rows}


def is_atlas(text: str) -> bool:
    """Return whether a text is XML that contains an atlas."""
    return text.lstrip().startswith("<") and "<atlas" in text


def parse_atlas(text: str, *, channels: bool) -> dict[Label, Entry]:
    """Return the regions of an atlas. Keys are labels or, with `channels`, volume numbers.

    In a *label* atlas, the index of a region is its label. In a *probabilistic* atlas, the index of
    a region is the number of its volume in the 4-D image, and the attribute ``value`` (by default,
    the index plus 1) is its label in the 3-D summary image.
    """
    if ENTITY in text:
        refuse_entities()
    try:
        root = ElementTree.fromstring(text.encode())  # the text declares no entities
    except ElementTree.ParseError as error:
        raise FormatError(f"is not valid XML: {error}") from None
    kind = (root.findtext("header/type") or "").strip().lower()
    names: dict[Label, Entry] = {}
    for label in root.iter("label"):
        index = label.get("index") or label.findtext("index")
        name = (label.findtext("name") or label.text or "").strip()
        value = None if channels else label.get("value")
        try:
            number = int(index or "") if value is None else int(value)
        except ValueError:
            raise FormatError(
                f"the index or value of region {name!r} is not a whole number"
            ) from None
        if kind.startswith("prob") and value is None and not channels:
            number += 1
        names[number] = Entry(name)
    if not names:
        raise FormatError("is an atlas without regions")
    return names
