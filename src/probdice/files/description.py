"""The description: one line of JSON with properties for which a format has no field.

`write` stores the kind of values and the shape of the image in the description and, for
probabilities, the labels, names and colours of regions. If the format cannot store the geometry or
the names and colours of a label map, the description includes them too. A label map, or a map such
as a similarity map, has no description if the format can store all its properties. Another program
may change the values of a file and keep the description. Therefore, `read` ignores a description
that does not match the shape and the type of the values.
"""

import json
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.segmentation import Array
from probdice.files.corrupt import corrupt
from probdice.files.model import Image, Payload
from probdice.method.region_labels import COLOUR

__all__ = ["DESCRIPTION", "description_in", "description_of", "with_description"]

DESCRIPTION = "probdice"  # the key of the description in all formats


def description_of(
    payload: Payload, *, names: bool = False, affine: bool = False, shape: bool = False
) -> str:
    """Return the description of a payload, or "" if it needs none.

    Parameters
    ----------
    payload : Payload
        The data to write.
    names : bool, optional
        Whether to include the names and colours of a label map. The regions of probabilities are
        always included.
    affine : bool, optional
        Whether to include the geometry, which is null if the image has none.
    shape : bool, optional
        Whether the format would change the shape of the image.
    """
    content: dict[str, Any] = {"kind": payload.kind, "shape": payload.shape}
    if payload.kind in ("probabilities", "foreground"):
        content["labels"], content["names"] = payload.region_labels, payload.region_names
        content["colours"] = dict(payload.colours)
    elif names and (payload.label_names or payload.colours):
        content["names"], content["colours"] = dict(payload.label_names), dict(payload.colours)
    elif not affine and not shape:
        return ""
    if affine:
        geometry = payload.geometry
        content["affine"] = None if geometry is None else geometry.affine.tolist()
    return json.dumps(content, separators=(",", ":"))


def with_description(image: Image, text: object) -> Image:
    """Return the image with the properties in `text`, or unchanged if they do not match it."""
    if not isinstance(text, str) or not text:
        return image
    try:
        content = json.loads(text)
        kind, shape = str(content["kind"]), tuple(int(length) for length in content["shape"])
        array = _shaped(image, kind, shape, content)
        if array is None:
            return image
        affine = _placed(image, len(shape), content)
        if affine is not None and len(affine) != len(shape) + 1:
            return image
        colours = {int(key): str(colour) for key, colour in content.get("colours", {}).items()}
        if kind == "labels":
            names = {int(label): str(name) for label, name in content.get("names", {}).items()}
            image = replace(image, label_names={**image.label_names, **names})
        elif kind != "map":
            image = replace(
                image,
                kind="regions" if kind == "probabilities" else "foreground",
                region_labels=[_number(label) for label in content["labels"]],
                region_names=[None if x is None else str(x) for x in content["names"]],
            )
    except (
        *(AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError),
    ) as error:
        raise corrupt(f"its description is invalid ({error})") from error
    valid_colours = {key: colour for key, colour in colours.items() if COLOUR.fullmatch(colour)}
    return replace(
        image,
        array=array,
        regions=0 if kind == "probabilities" else None,
        affine=affine,
        colours={**image.colours, **valid_colours},
    )


def description_in(content: bytes) -> str:
    """Return the null-terminated description in `content`, or "" if there is none."""
    start = content.find(f"{DESCRIPTION} {{".encode())
    if start < 0:
        return ""
    text = content[start + len(DESCRIPTION) :].partition(b"\0")[0]
    return text.decode("ascii", "replace")


def _number(label: Any) -> int | None:
    """Convert the label of a region to a 64-bit integer. None remains None."""
    number = None if label is None else int(label)
    if number is not None and not -(2**63) <= number < 2**64:
        raise ValueError(f"label {number} does not fit in 64 bits")
    return number


def _shaped(
    image: Image, kind: str, shape: tuple[int, ...], content: dict[str, Any]
) -> Array | None:
    """Return the values in the described shape, or None if the description does not match."""
    array, axis = image.array, image.regions
    floating = array.dtype.kind == "f" or (image.slope, image.inter) != (1, 0)
    count = 1 if axis is None else array.shape[axis]
    if kind == "probabilities":
        fits = floating and count == len(content["labels"]) == len(content["names"])
    else:
        expected = {"labels": False, "foreground": True, "map": True}.get(kind)
        fits = axis is None and floating == expected
    lengths = list(array.shape)
    if axis is not None:
        del lengths[axis]
    if not fits or [n for n in lengths if n != 1] != [n for n in shape if n != 1]:
        return None
    if kind == "probabilities":
        shape = (count, *shape)
    if isinstance(array, np.ndarray):
        return (array if axis is None else np.moveaxis(array, axis, 0)).reshape(shape)
    return array if axis in (None, 0) and tuple(array.shape) == shape else None


def _placed(image: Image, axes: int, content: dict[str, Any]) -> NDArray[np.float64] | None:
    """Return the affine for the described axes, from the file or else from the description.

    If the description states that the image has no geometry, an affine that is the identity, apart
    from signs, is the format's default and is ignored.
    """
    affine = image.affine
    if "affine" in content:
        stored = content["affine"]
        if affine is None and stored is not None:
            return np.array(stored, dtype=np.float64)
        if affine is not None and stored is None and (np.abs(affine) == np.eye(len(affine))).all():
            return None
    if affine is None or len(affine) == axes + 1:
        return affine
    # The other axes have length 1. If the affine mixes them with the image axes, another program
    # has changed it.
    image_axes, other_axes = [*range(axes), len(affine) - 1], [*range(axes, len(affine) - 1)]
    if affine[np.ix_(image_axes, other_axes)].any() or affine[np.ix_(other_axes, image_axes)].any():
        return affine
    return affine[np.ix_(image_axes, image_axes)]
