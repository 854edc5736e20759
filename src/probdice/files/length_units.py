"""Units of length in the metadata of OME-Zarr and NRRD files."""

from probdice.errors import FormatError

__all__ = ["in_millimetres"]

METRES = {
    "angstrom": 1e-10,
    **dict.fromkeys(("picometer", "pm"), 1e-12),
    **dict.fromkeys(("nanometer", "nm"), 1e-9),
    **dict.fromkeys(("micrometer", "micron", "um", "\u00b5m", "\u03bcm"), 1e-6),
    **dict.fromkeys(("millimeter", "mm"), 1e-3),
    **dict.fromkeys(("centimeter", "cm"), 1e-2),
    **dict.fromkeys(("decimeter", "dm"), 1e-1),
    **dict.fromkeys(("meter", "m"), 1.0),
    "kilometer": 1e3,
    "inch": 0.0254,
    "foot": 0.3048,
}


def in_millimetres(unit: str) -> float:
    """Return the length of a unit in millimetres. The unit "" means millimetres."""
    name = unit.strip().lower().replace("metre", "meter")
    if not name:
        return 1.0
    metres = METRES.get(name) or METRES.get(name.removesuffix("s"))
    if metres is None:
        raise FormatError(
            f"has the unit {unit!r}, expected a unit of length such as 'millimeter', "
            f"'micrometer' or 'nanometer'. Correct the unit in the metadata."
        )
    return metres * 1e3
