"""Format numbers and file names for display.

`decimal` and `percent` never round a number below 1 up to 1.
"""

import re
from math import isinf, isnan
from pathlib import PurePath

__all__ = ["decimal", "millilitres", "percent", "quantity", "short_paths"]

ABSENT = "–"  # shown for undefined numbers
INFINITE = "∞"
CONTAINER = re.compile(
    r".*\.zarr|.*\.\w+:.*", re.IGNORECASE
)  # a part of a path that names a container; later parts are paths inside this container


def decimal(value: float | None, digits: int = 4) -> str:
    """Format a number with a fixed number of decimals.

    A number below 1 is never shown as 1: the number is truncated if rounding would give 1. A score
    that is shown as 1.0000 is therefore exactly 1.

    Parameters
    ----------
    value : float or None
        The number. NaN and None (which replaces NaN in JSON) become a dash. Infinite numbers become
        ∞ or −∞.
    digits : int, optional
        The number of decimals.

    Examples
    --------
    >>> from probdice.text.formatting import decimal
    >>> decimal(0.12345), decimal(0.99996), decimal(1.0), decimal(float("nan"))
    ('0.1235', '0.9999', '1.0000', '–')
    """
    if value is None or isnan(value):
        return ABSENT
    if isinf(value):
        return INFINITE if value > 0 else f"−{INFINITE}"
    return _round(float(value), 1, digits)


def millilitres(pixels: float, pixel_volume: float | None) -> str:
    """Format a volume in millilitres, or return "" if the volume of a pixel is unknown.

    Parameters
    ----------
    pixels : float
        The volume in pixels.
    pixel_volume : float or None
        The volume of one pixel, in mm³.

    Examples
    --------
    >>> from probdice.text.formatting import millilitres
    >>> millilitres(54_372, 8.0), millilitres(3, 8.0), millilitres(1e6, 8.0), millilitres(3, None)
    ('435 mL', '0.024 mL', '8,000 mL', '')
    """
    if pixel_volume is None:
        return ""
    volume = pixels * pixel_volume / 1000
    return f"{volume:,.0f} mL" if volume >= 100 else f"{volume:.3g} mL"


def percent(value: float | None, digits: int = 1) -> str:
    """Format a fraction, such as 0.25, as a percentage. A fraction below 1 is never shown as 100 %.

    Parameters
    ----------
    value : float or None
        The fraction. NaN and None become a dash.
    digits : int, optional
        The number of decimals.

    Examples
    --------
    >>> from probdice.text.formatting import percent
    >>> percent(0.25), percent(0.9995), percent(1), percent(0.5, digits=0)
    ('25.0 %', '99.9 %', '100.0 %', '50 %')
    """
    if value is None or isnan(value):
        return ABSENT
    # A fraction just below 1 may become exactly 100 when multiplied, so `_round` gets the fraction.
    return f"{_round(float(value), 100, digits)} %"


def _round(value: float, scale: int, digits: int) -> str:
    """Format `value` × `scale`. If `value` is below 1, the shown number is below `scale`."""
    text = f"{value * scale:.{digits}f}"
    if abs(value) < 1 <= abs(float(text)) / scale:
        text = f"{scale - 10**-digits:.{digits}f}"
        return text if value > 0 else f"-{text}"
    return text.removeprefix("-") if float(text) == 0 else text


def quantity(number: int, word: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1.

    Examples
    --------
    >>> from probdice.text.formatting import quantity
    >>> quantity(1, "case"), quantity(2000, "case")
    ('1 case', '2000 cases')
    """
    return f"{number} {word}{'' if number == 1 else 's'}"


def short_paths(*sources: str) -> tuple[str, ...]:
    """Shorten paths to the endings that distinguish them.

    Parameters
    ----------
    *sources : str
        Paths that `read` accepts. A comma-separated list of files becomes the first file and the
        number of other files.

    Examples
    --------
    >>> from probdice.text.formatting import short_paths
    >>> short_paths("/data/truth/a.nii.gz", "/data/net/a.nii.gz", "/data/mask.nii.gz")
    ('truth/a.nii.gz', 'net/a.nii.gz', 'mask.nii.gz')
    >>> short_paths("maps/pve_0.nii,maps/pve_1.nii,maps/pve_2.nii", "maps/b.h5:/labels/fine")
    ('pve_0.nii and 2 more', 'b.h5:/labels/fine')
    """
    file_lists = [_files(source) for source in sources]
    parts = [re.split(r"[/\\]", files[0]) for files in file_lists]
    lengths = []
    for names in parts:
        container = next((k for k, name in enumerate(names) if CONTAINER.fullmatch(name)), None)
        lengths.append(1 if container is None else len(names) - container)
    endings = ["/".join(names[-length:]) for names, length in zip(parts, lengths, strict=True)]
    while duplicates := [
        k
        for k, ending in enumerate(endings)
        if endings.count(ending) > 1 and lengths[k] < len(parts[k])
    ]:
        for k in duplicates:
            lengths[k] += 1
            endings[k] = "/".join(parts[k][-lengths[k] :])
    return tuple(
        ending + (f" and {len(files) - 1} more" if len(files) > 1 else "")
        for ending, files in zip(endings, file_lists, strict=True)
    )


def _files(source: str) -> list[str]:
    """Split a comma-separated list of files.

    If a part has no suffix, the commas are considered part of a path, and the text is not split.
    """
    files = source.split(",")
    return files if all(PurePath(file).suffix for file in files) else [source]
