"""Convert images to and from answers of the child process."""

from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import numpy as np

from probdice.files.child_messages import ReaderResult
from probdice.files.containment import run_in_child
from probdice.files.corrupt import corrupt
from probdice.files.model import Image, Kind, Source
from probdice.method.region_labels import COLOUR

__all__ = ["answer_of", "contained_image"]


class _ImageValue(TypedDict):
    regions: int | None
    assumed: bool
    kind: Kind
    label_names: list[tuple[int, str]]
    region_labels: list[int | None] | None
    region_names: list[int | str | None] | None
    colours: list[tuple[int, Annotated[str, COLOUR.fullmatch]]]


def answer_of(image: Image) -> ReaderResult:
    """Convert an image in memory to a result that the child process can send."""
    affine = () if image.affine is None else (np.asarray(image.affine, np.float64),)
    labels, names = image.region_labels, image.region_names
    value: _ImageValue = {
        "regions": image.regions,
        "assumed": image.assumed,
        "kind": image.kind,
        "label_names": [(int(label), name) for label, name in image.label_names.items()],
        "region_labels": None if labels is None else list(labels),
        "region_names": None if names is None else list(names),
        "colours": [(int(label), colour) for label, colour in image.colours.items()],
    }
    return ReaderResult(value, (np.asarray(image.array), *affine))


def contained_image(
    source: Source, reader: Callable[..., ReaderResult], *arguments: Any, library: str
) -> Image:
    """Read an image in the child process. `reader` must return the result of `answer_of`."""
    max_bytes = source.max_bytes
    answer = run_in_child(
        reader,
        source.path,
        *arguments,
        max_bytes,
        returns=_ImageValue,
        library=library,
        max_bytes=max_bytes,
    )
    value = answer.value
    array, *affines = answer.arrays or (None,)
    affine = affines[0] if affines else None
    valid = array is not None and (affine is None or affine.shape in ((3, 3), (4, 4)))
    if not valid or value["regions"] not in (None, *range(array.ndim)):
        raise corrupt(f"the result of {library} is invalid")
    names, colours = dict(value["label_names"]), dict(value["colours"])
    return Image(array, **value | {"affine": affine, "label_names": names, "colours": colours})
