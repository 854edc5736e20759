"""Convert images to and from answers of the child process, and check for missing libraries."""

import re
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.errors import FormatError, MissingExtraError
from probdice.files.containment import Answer
from probdice.files.model import Image

__all__ = ["answer_of", "expect", "image_of", "impossible"]

COLOUR = re.compile(r"#[0-9A-F]{6}")
KINDS = ("values", "labels", "probabilities", "regions", "foreground")


def expect(module: str, extra: str, what: str) -> None:
    """Raise an error that names the extra if a library is not installed, without importing it."""
    if sys.modules.get(module, ...) is None or find_spec(module) is None:
        raise MissingExtraError(
            f"{what} needs {module}, which is not installed. Install it with "
            f'pip install "probdice[{extra}]"'
        )


def answer_of(image: Image) -> Answer:
    """Convert an image in memory to an answer."""
    affine = () if image.affine is None else (np.asarray(image.affine, np.float64),)
    labels, names = image.region_labels, image.region_names
    return Answer(
        {
            "regions": image.regions,
            "assumed": image.assumed,
            "kind": image.kind,
            "label_names": [[int(label), name] for label, name in image.label_names.items()],
            "region_labels": None if labels is None else list(labels),
            "region_names": None if names is None else list(names),
            "colours": [[int(label), colour] for label, colour in image.colours.items()],
        },
        (np.asarray(image.array), *affine),
    )


def image_of(answer: Answer) -> Image:
    """Convert an answer to an image; reject invalid answers."""
    value = answer.value
    try:
        array, *affine = answer.arrays
        image = Image(
            array,
            regions=value["regions"],
            assumed=value["assumed"],
            kind=value["kind"],
            affine=affine[0] if affine else None,
            label_names=dict(value["label_names"]),
            region_labels=value["region_labels"],
            region_names=value["region_names"],
            colours=dict(value["colours"]),
        )
    except (KeyError, TypeError, ValueError):
        raise impossible() from None
    labels, names = image.region_labels or [], image.region_names or []
    valid = (
        (image.regions is None or image.regions in range(array.ndim))
        and isinstance(image.assumed, bool)
        and image.kind in KINDS
        and _is_affine(image.affine)
        and all(_is_label(label) for label in (*image.label_names, *image.colours))
        and all(isinstance(name, str) for name in image.label_names.values())
        and all(label is None or _is_label(label) for label in labels)
        and all(name is None or isinstance(name, str) or _is_label(name) for name in names)
        and all(isinstance(c, str) and COLOUR.fullmatch(c) for c in image.colours.values())
    )
    if not valid:
        raise impossible()
    return image


def _is_affine(affine: NDArray[Any] | None) -> bool:
    if affine is None:
        return True
    return affine.dtype == np.float64 and affine.shape in ((3, 3), (4, 4))


def _is_label(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def impossible() -> FormatError:
    """Return the error for an answer that no reader returns."""
    return FormatError(
        "the child process that parsed it returned an invalid result. The file is probably "
        "corrupt: copy or write it again"
    )
