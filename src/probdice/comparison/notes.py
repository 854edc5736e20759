"""Notes on a comparison. Options that a note recommends are stored as data (`Option`)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.result import Comparison
from probdice.data.pixel_words import pixel_words
from probdice.data.segmentation import Segmentation
from probdice.data.value_checks import scale_of_labels
from probdice.engine.alignment import file_of, one_hot_axis
from probdice.errors import Note, Option
from probdice.method.background import named_background
from probdice.method.label_matching import label_pairs
from probdice.method.matching import GivenGroups
from probdice.method.merging import Merging, sides_to_merge
from probdice.method.region_labels import Label, listed
from probdice.method.scoring import NeedsImages
from probdice.method.sides import SIDES, Both
from probdice.metrics.verdict import largest_pair, words_of
from probdice.text.formatting import percent, quantity

__all__ = ["faint_notes", "infinite_notes", "intensities", "notes_of", "slice_notes"]

MAX_MAP_LABELS = 100  # images with at most this many labels are assumed to be label maps
SAMPLE = 1 << 16  # largest number of voxels that are checked for label changes
MIN_NEIGHBOUR_PAIRS = 100  # for an estimate of label changes
# An image looks like a scan if its share of neighbours with different labels exceeds either limit.
MAX_CHANGE_SHARE = 0.75  # scans have shares of 0.8 to 1, and label maps of tiny cells have 0.65
MAX_CHANGE_RATIO = 8  # times the share of compact regions; label maps reach 5 times, photographs 20
MAX_INFINITE_SHARE = 0.5  # share of pixels with infinite distance above which a comparison warns


def notes_of(result: Comparison) -> tuple[Note, ...]:
    """Return all notes except `slice_notes`, in the order in which they are printed."""
    return (
        *result.input_notes,
        *_misread_notes(result),
        *faint_notes(result),
        *_background_notes(result),
        *_unmatched_notes(result),
        *_label_notes(result),
        *infinite_notes(result),
    )


def _misread_notes(result: Comparison) -> list[Note]:
    """Return notes on sides that were read as label maps but look like something else."""
    notes = []
    for side in SIDES:
        regions = result.overlap.side(side)
        if not regions.crisp:
            continue
        negative: list[int] = regions.keys[regions.keys < 0].tolist()
        unnamed = [label for label in negative if label not in regions.names]
        if unnamed:
            text = (
                f"The {side} has negative labels ({listed(unnamed)}). Check that it is a "
                f"segmentation, not an intensity image."
            )
            notes.append(Note("negative", (text,)))
        scale = scale_of_labels(regions.keys, regions.volumes)
        option = Option("scale", f"{side}:{scale}", python=f"read(…, scale={scale})")
        warning = None
        if result.images is not None:
            segmentation = result.images.side(side)
            warning = intensities(segmentation, regions.keys, regions.volumes)
        if warning is not None:
            advice = (" If it contains probabilities as bytes, use ", option, ".") if scale else ()
            text = f"{side}{file_of(segmentation)}: {warning}"
            notes.append(Note("intensities", (text, *advice)))
        elif scale is not None:
            text = (
                f"The {side} was read as labels but looks like probabilities stored as bytes. "
                f"To read probabilities, use "
            )
            notes.append(Note("bytes", (text, option, ".")))
        if result.images is not None and regions.keys.tolist() == [0, 1]:
            segmentation = result.images.side(side)
            # Only an image in which 1 of n values is 1 can be one-hot along an axis of length n.
            lengths = (segmentation.shape[0], segmentation.shape[-1])
            may_be_one_hot = result.pixels in [
                length * int(regions.volumes[1]) for length in lengths
            ]
            axis = one_hot_axis(segmentation) if may_be_one_hot else None
            if axis is not None:
                text = f"The {side} was read as labels 0 and 1 but looks one-hot encoded. "
                option = Option(
                    "one_hot",
                    python=f"Use Segmentation.from_probabilities(array, axis={axis}).",
                    command="Store it as floating-point numbers, which are read as probabilities.",
                )
                notes.append(Note("one-hot", (text, option)))
    return notes


def faint_notes(result: Comparison) -> list[Note]:
    """Return a note if the overlap does not record which regions are faint."""
    unknown_sides = [
        side
        for side in SIDES
        if not result.overlap.side(side).crisp and result.overlap.side(side).likeliest is None
    ]
    if not unknown_sides:
        return []
    text = (
        f"The overlap was saved by an older version, which did not record faint "
        f"{' and '.join(unknown_sides)} regions. The mean and the lowest Dice include all regions. "
        f"To exclude faint regions, compare the segmentations again."
    )
    return [Note("faint", (text,))]


def intensities(
    segmentation: Segmentation, labels: NDArray[Any], volumes: NDArray[Any]
) -> str | None:
    """Return a message if a label map with these labels looks like a scan, otherwise None.

    Regions of a label map are compact. About V^((d−1)/d) lines along an axis enter a compact region
    of volume V in d dimensions. A share V^(−1/d) of its voxels therefore follows a voxel with
    another label. The values of a scan change at nearly every voxel. The check uses the middle of
    the image and the axis with the fewest changes. The check excludes the most frequent label,
    because this label may be an empty background.
    """
    if labels.size <= MAX_MAP_LABELS:
        return None
    shape = segmentation.shape
    axes = [axis for axis, length in enumerate(shape) if length > 1]
    edge = int(SAMPLE ** (1 / len(axes)))
    starts = [max(0, (length - edge) // 2) for length in shape]
    box = tuple(slice(start, start + edge) for start in starts)
    sample = np.asarray(segmentation.array[box])
    most_frequent = int(volumes.argmax())
    other_volumes = np.delete(volumes, most_frequent).astype(np.float64)
    compact = (other_volumes ** (1 - 1 / len(axes))).sum() / max(other_volumes.sum(), 1)
    shares = []
    for axis in axes:
        sample_lines = np.moveaxis(sample, axis, 0)
        inside = sample_lines != labels[most_frequent]
        pairs = inside[1:] & inside[:-1]
        count = np.count_nonzero(pairs)
        if count >= MIN_NEIGHBOUR_PAIRS:
            shares.append(np.count_nonzero(pairs & (sample_lines[1:] != sample_lines[:-1])) / count)
    changes = min(shares, default=0.0)
    if changes <= min(MAX_CHANGE_SHARE, MAX_CHANGE_RATIO * compact):
        return None
    return (
        f"the image has {labels.size} labels, and {percent(changes)} of neighbouring "
        f"{pixel_words(segmentation).many} have different labels. It looks like a scan or a "
        f"photograph, not a label map. Use the segmentation of this image."
    )


def _background_notes(result: Comparison) -> list[Note]:
    """Return a note if neither side has the background, or if a pair may be the background."""
    if result.options.background is not None:
        if any(region is not None for region in result.background_regions):
            return []
        text = ": neither side has this background, so every region is foreground."
        return [Note("background", (named_background(result.options.background), text))]
    pair = largest_pair(result)
    if pair is None:
        return []
    labels = Both(pair.reference[0], pair.prediction[0])
    name = f"The matched pair {labels.reference} ↔ {labels.prediction}"
    if labels.reference == labels.prediction:
        name = f"Region {labels.reference}"
    text = (
        f"{name} covers {percent(pair.common_volume / result.pixels)} of the "
        f"{words_of(result).many} on both sides. If it is the background, compute foreground "
        f"measures with "
    )
    return [Note("background", (text, named_background(labels), "."))]


def _unmatched_notes(result: Comparison) -> list[Note]:
    """Return notes on unmatched regions, with the option that merges them if it can be used."""
    notes = []
    for side in SIDES:
        region = result.background_regions[side]
        background = None if region is None else result.overlap.side(side).label(region)
        unmatched = [label for label in result.unmatched[side] if label != background]
        if not unmatched:
            continue
        is_single = len(unmatched) == 1
        regions = "region" if is_single else "regions"
        verbs = "is unmatched and counts" if is_single else "are unmatched and count"
        text = (
            f"{len(unmatched)} {side} {regions} {verbs} as Dice 0 ({regions} {listed(unmatched)})."
        )
        message: tuple[str | Option, ...] = (text,)
        if side in sides_to_merge(result.merge):
            reason = (
                "It was not merged because it overlaps"
                if is_single
                else ("They were not merged because they overlap")
            )
            message = (f"{text} {reason} no matched region into which merging is allowed.",)
        elif not result.options.matching.fixes_groups:
            targets = "it into a matched region" if is_single else "them into matched regions"
            sides: Merging = "both" if sides_to_merge(result.merge) else side
            message = (f"{text} To merge {targets}, use ", Option("merge", sides), ".")
        notes.append(Note("unmatched", message))
    return notes


def _label_notes(result: Comparison) -> list[Note]:
    """Return the notes on labels. The possible notes depend on the matching rule."""
    rule = result.options.match
    notes = []
    if isinstance(rule, GivenGroups):
        for side, label_groups in zip(SIDES, zip(*rule.groups, strict=True), strict=False):
            regions = result.overlap.side(side)
            known_places = {regions.find(label) for labels in label_groups for label in labels}
            new_labels = [
                regions.label(k) for k in regions.occupied.tolist() if k not in known_places
            ]
            if new_labels:
                label_words = "label is" if len(new_labels) == 1 else "labels are"
                text = (
                    f"{len(new_labels)} {side} {label_words} missing from the earlier comparison "
                    f"({listed(new_labels)})."
                )
                notes.append(Note("unknown", (text,)))
    elif rule == "labels":
        notes += _assumption_notes(result)
        notes += _difference_notes(result)
    elif not any(result.overlap.side(side).origins for side in SIDES):  # numbers are arbitrary
        crossed_labels = _crossed_labels(result)
        if crossed_labels:
            label_words = "label exists" if len(crossed_labels) == 1 else "labels exist"
            verb = "was" if len(crossed_labels) == 1 else "were"
            text = (
                f"{len(crossed_labels)} {label_words} on both sides but {verb} matched to a "
                f"different label ({listed(crossed_labels)}). If equal labels mean "
                f"the same region, use "
            )
            notes.append(Note("crossed", (text, Option("match", "labels"), ".")))
    if rule == "paper":
        count = _count_apart(result)
        if count:
            text = (
                f"{count} matched {'pair does' if count == 1 else 'pairs do'} not overlap. "
                f"To match overlapping regions only, use "
            )
            notes.append(Note("apart", (text, Option("match", "overlap"), ".")))
    return notes


def _assumption_notes(result: Comparison) -> list[Note]:
    """Return notes on channels without labels, which are matched by channel number."""
    notes = []
    for side in SIDES:
        regions = result.overlap.side(side)
        if regions.unlabelled:
            source = "" if result.images is None else result.images.side(side).source
            name = f"{side} ({source})" if source else side
            text = f"{name}: the channels have no labels. Channel k was assigned label k."
            if len(regions.unlabelled) < len(regions):
                text = (
                    f"{name}: some channels have no labels ({listed(regions.unlabelled)}). "
                    f"Of these channels, channel k was assigned label k."
                )
            notes.append(Note("assumed", (text,)))
    return notes


def _difference_notes(result: Comparison) -> list[Note]:
    """Return notes on regions whose number or name, but not both, is the same on both sides."""
    reference, prediction = result.overlap.reference, result.overlap.prediction
    by_number = {
        number: (k, name)
        for k, name in ((k, prediction.names[k]) for k in prediction.names)
        if (number := prediction.number_of(k)) is not None
    }
    name_conflicts, number_conflicts = [], []
    for key, name in reference.names.items():
        number = reference.number_of(key)
        if number in by_number and by_number[number][1] != name:
            name_conflicts.append(f"{number}: {name!r} and {by_number[number][1]!r}")
    for name, key in reference.unique_names.items():
        if name in prediction.unique_names:
            numbers = reference.number_of(key), prediction.number_of(prediction.unique_names[name])
            if None not in numbers and numbers[0] != numbers[1]:
                number_conflicts.append(f"{name!r}: {numbers[0]} and {numbers[1]}")
    notes = []
    for equal_property, other_property, conflicts in (
        ("number", "name", name_conflicts),
        ("name", "number", number_conflicts),
    ):
        if conflicts:
            verb = "has" if len(conflicts) == 1 else "have"
            text = (
                f"{quantity(len(conflicts), equal_property)} {verb} different {other_property}s on "
                f"the two sides ({listed(conflicts)}). Regions were matched by {result.labels_by}."
            )
            notes.append(Note("differing", (text,)))
    return notes


def _crossed_labels(result: Comparison) -> list[Label]:
    """Return labels that exist on both sides and were matched, but to a different label."""
    groups, table = result.correspondence.groups, result.overlap
    rows, columns = label_pairs(table)
    reference_groups, prediction_groups = groups.reference[rows], groups.prediction[columns]
    crossed_rows = rows[
        (reference_groups >= 0)
        & (reference_groups < groups.matched)
        & (prediction_groups >= 0)
        & (prediction_groups != reference_groups)
    ]
    return [table.reference.label(k) for k in crossed_rows.tolist()]


def _count_apart(result: Comparison) -> int:
    """Count the matched pairs that do not overlap."""
    pairs, groups = result.overlap.pairs, result.correspondence.matched
    numbers = groups.reference[pairs.rows]
    overlapping = np.unique(numbers[numbers == groups.prediction[pairs.columns]])
    return groups.matched - overlapping.size


def infinite_notes(result: Comparison) -> list[Note]:
    """Return a note if the two sides are infinitely distant at more than half of the pixels."""
    try:
        share = result.measured.infinite / result.pixels
    except NeedsImages:
        return []
    if share <= MAX_INFINITE_SHARE:
        return []
    return [
        Note(
            "infinite",
            (
                f"The sides are infinitely far apart at {percent(share)} of the "
                f"{words_of(result).many}: a region has probability 0 on one side only. Consider ",
                Option("floor", "1e-3", python="similarity=Aitchison(floor=1e-3)"),
                " or ",
                Option("similarity", "absolute"),
                "; if regions are unmatched, also ",
                Option("merge", "both"),
                ".",
            ),
        )
    ]


def slice_notes(result: Comparison) -> tuple[Note, ...]:
    """Return a note if boundaries are measured in a volume that consists of one slice."""
    has_boundaries = result.options.boundaries or "boundaries" in result.numbers
    if result.images is None or not has_boundaries:
        return ()
    shape = result.images.reference.shape
    if len(shape) != 3 or 1 not in shape:
        return ()
    text = (
        "The images are volumes with one slice, so boundary distances include the surfaces in "
        "front of and behind the slice and may be smaller than distances within the slice. To "
        "measure distances within the slice, compare two-dimensional images."
    )
    return (Note("slice", (text,)),)
