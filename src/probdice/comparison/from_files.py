"""Read both sides and a mask from files, with the reading options of a comparison."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from probdice.comparison.comparing import images_of
from probdice.data.geometry import Geometry
from probdice.data.lazy_arrays import Scaled, blocks
from probdice.data.pixel_words import pixel_words
from probdice.data.segmentation import Segmentation
from probdice.data.value_checks import MAX_EXCESS_ABOVE_ONE
from probdice.engine.pair import SegmentationPair
from probdice.errors import InputError, Note, Option
from probdice.files import read, read_case, read_mask
from probdice.files.bids import label_table
from probdice.files.name_tables import with_absent_labels, with_names
from probdice.method.sides import Side, other
from probdice.options import CompareOptions

__all__ = ["Paths", "read_images", "read_side", "scaled_note"]

Path = str | os.PathLike[str]
Paths = Path | Sequence[Path] | Mapping[str, Path]


def read_images(
    reference: Paths,
    prediction: Paths,
    options: CompareOptions,
    *,
    mask: Paths | None = None,
    workers: int | None = None,
    one_of_many: bool = False,
) -> tuple[SegmentationPair, Geometry | None]:
    """Read both sides, align them on one grid, and return them with the reference geometry.

    Unless `workers` is 1, each side is read in its own thread, because decompression takes most of
    the time and releases the GIL. Set `one_of_many` if the files are one case of a folder; see
    `read_side`.
    """
    if workers == 1:
        reference_side, first_notes = read_side(reference, options, "reference", one_of_many)
        prediction_side, second_notes = read_side(prediction, options, "prediction", one_of_many)
        mask_image = None if mask is None else read_mask(mask, max_bytes=options.max_bytes)
    else:
        pool = ThreadPoolExecutor(2)
        try:
            futures = [
                pool.submit(read_side, reference, options, "reference", one_of_many),
                pool.submit(read_side, prediction, options, "prediction", one_of_many),
            ]
            mask_image = None if mask is None else read_mask(mask, max_bytes=options.max_bytes)
            (reference_side, first_notes), (prediction_side, second_notes) = (
                side.result() for side in futures
            )
        finally:  # an interrupt does not wait for the decompression to finish
            pool.shutdown(wait=False, cancel_futures=True)
    images = images_of(reference_side, prediction_side, options, mask=mask_image, workers=workers)
    notes = (*first_notes, *second_notes, *images.notes)
    return replace(images, notes=notes), reference_side.geometry


def read_side(
    path: Paths, options: CompareOptions, side: Side, one_of_many: bool = False
) -> tuple[Segmentation, list[Note]]:
    """Read one side, and return it with a note if its values were scaled.

    A scale that is given for both sides may concern only one of them, such as a prediction in
    percent with a label map as reference. Such a scale therefore applies only to a side that has
    probabilities above 1.5, or that cannot be read without a scale. With `one_of_many`, the side
    may lack regions that `priority` lists.
    """
    scale, names, nested_labels = options.scale_of(side), options.names[side], options.nested[side]
    table = dict(names) if isinstance(names, tuple) else names

    def read_by(scale: float | None) -> Segmentation:
        reader = read_case if one_of_many else read
        return reader(
            path,
            names=None if nested_labels else table,
            scale=scale,
            sums="background" if nested_labels else options.sums[side],
            priority=options.priority[side],
            ignore=options.ignore if side == "reference" else (),
            max_bytes=options.max_bytes,
        )

    common_scale = options.common_scale
    if common_scale is None:
        segmentation = read_by(scale)
    else:
        try:
            segmentation = read_by(None)
            if not segmentation.crisp and _exceeds_one(segmentation):
                scale = common_scale
                array = Scaled(segmentation.array, 1.0, 0.0, scale)
                segmentation = replace(segmentation, array=array)
        except InputError:  # several integers per pixel cannot be read without a scale
            scale = common_scale
            segmentation = read_by(scale)
    if nested_labels:
        segmentation = _partition(segmentation, nested_labels, side)
        segmentation = segmentation if table is None else with_names(segmentation, table)
    if segmentation.crisp and (members := _names_in_options(options)):
        file = label_table(segmentation.source) if table is None else table
        if isinstance(file, str | os.PathLike):
            segmentation = with_absent_labels(segmentation, file, members)
    return segmentation, [] if scale is None else [scaled_note(side, scale)]


def scaled_note(side: Side, scale: float) -> Note:
    """Return the note about a side that was scaled."""
    return Note("scaled", (f"The values of the {side} were divided by {scale:g}.",))


def _names_in_options(options: CompareOptions) -> set[str]:
    """Return the names that derived regions and components refer to."""
    members = [label for _, labels in options.derived for label in labels]
    return {label for label in (*members, *(options.components or ())) if isinstance(label, str)}


def _partition(segmentation: Segmentation, labels: Sequence[int], side: Side) -> Segmentation:
    """Convert nested channels to regions with the given labels."""
    has_one_value = segmentation.crisp or segmentation.reading == "foreground"
    if has_one_value:
        numbers, nested_side = ",".join(map(str, labels)), other(side)
        unit = pixel_words(segmentation).one
        raise InputError(
            f"{side} ({segmentation.source}): found one value per {unit}, expected nested "
            f"channels. If only the {nested_side} has nested channels, set ",
            Option(
                "nested",
                f"{nested_side}:{numbers}",
                python=f"nested={{{nested_side!r}: {tuple(labels)}}}",
            ),
            ".",
        )
    channels = segmentation.array.shape[0]
    if channels != len(labels) - 1:
        raise InputError(
            f"{side} ({segmentation.source}): expected one nested channel per label after the "
            f"background ({len(labels) - 1} for labels {', '.join(map(str, labels))}), found "
            f"{channels} channels. List the label of the background and one label per channel, for "
            f"example ",
            Option("nested", "0,1,2", python=f'nested={{"{side}": (0, 1, 2)}}'),
            ".",
        )
    partition = Segmentation.from_nested(
        segmentation.array, labels=labels, geometry=segmentation.geometry
    )
    return replace(partition, source=segmentation.source)


def _exceeds_one(segmentation: Segmentation) -> bool:
    return any(
        bool((block > 1 + MAX_EXCESS_ABOVE_ONE).any()) for block in blocks(segmentation.array)
    )
