"""What is worth knowing about a comparison, in sentences that name options as data."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.comparison.result import Comparison
from probdice.data.segmentation import Segmentation
from probdice.data.value_checks import scale_of_labels
from probdice.engine.pair import file_of, one_hot_axis
from probdice.errors import Note, Option
from probdice.method.matching import Given, label_pairs, listed
from probdice.method.merging import sides_to_merge
from probdice.method.region_labels import Label
from probdice.method.scoring import NeedsImages
from probdice.method.sides import SIDES
from probdice.text.formatting import percent

__all__ = ["faint_notes", "infinite_notes", "intensities", "notes_of"]

MANY = 100  # labels up to which a label map is not taken for a scan
SAMPLE = 1 << 16  # voxels in the middle of an image that are looked at for changes of label
FEWEST = 100  # pairs of neighbours from which their changes of label are estimated
CHANGES = 0.75  # share of neighbours with different labels: scans have 0.8 to 1, tiny cells 0.65
SCATTERED = 8  # times the changes of compact regions: label maps have up to 5, photographs 20
FAR = 0.5  # a share of infinitely distant pixels above this is worth a warning


def notes_of(result: Comparison) -> tuple[Note, ...]:
    """All notes: of the images, of what was misread, of regions, labels and distances."""
    return (
        *result.input_notes,
        *_misread_notes(result),
        *faint_notes(result),
        *_unmatched_notes(result),
        *_label_notes(result),
        *infinite_notes(result),
    )


def _misread_notes(result: Comparison) -> list[Note]:
    """What looks like something else than the label map it was taken for."""
    notes = []
    for side in SIDES:
        regions = result.overlap.side(side)
        if not regions.crisp:
            continue
        if regions.keys.size and int(regions.keys[0]) < 0:
            text = (
                f"the {side} has negative labels ({listed(regions.keys[regions.keys < 0].tolist())}"
                f"). Check that it is a segmentation, not an intensity image."
            )
            notes.append(Note("negative", (text,)))
        scale = scale_of_labels(regions.keys, regions.volumes)
        option = Option("scale", f"{side}:{scale}", python=f"read(…, scale={scale})")
        warning = None
        if result.images is not None:
            segmentation = result.images.side(side)
            warning = intensities(segmentation, regions.keys, regions.volumes)
        if warning is not None:
            bytes_too = (" If it holds probabilities as bytes, use ", option) if scale else ()
            text = f"{side}{file_of(segmentation)}: {warning}"
            notes.append(Note("intensities", (text, *bytes_too)))
        elif scale is not None:
            text = f"the {side} looks like probabilities stored as bytes; "
            notes.append(Note("bytes", (text, option, " reads them so")))
        if result.images is not None and regions.keys.tolist() == [0, 1]:
            segmentation = result.images.side(side)
            # One in every so many values is 1, or it is not worth looking at them.
            lengths = (segmentation.shape[0], segmentation.shape[-1])
            likely = result.pixels in [length * int(regions.volumes[1]) for length in lengths]
            axis = one_hot_axis(segmentation) if likely else None
            if axis is not None:
                text = f"the {side} looks like one-hot regions taken for labels 0 and 1; "
                option = Option(
                    "one_hot",
                    python=f"Segmentation.from_probabilities(array, axis={axis}) reads them so",
                    command="stored as floating numbers they are read so",
                )
                notes.append(Note("one-hot", (text, option)))
    return notes


def faint_notes(result: Comparison) -> list[Note]:
    """A note where faint regions cannot be told from others."""
    unknown = [
        side
        for side in SIDES
        if not result.overlap.side(side).crisp and result.overlap.side(side).likeliest is None
    ]
    if not unknown:
        return []
    text = (
        f"the overlap of an older version does not tell which {' and '.join(unknown)} regions are "
        f"faint, so every region counts in mean and lowest Dice; compare the segmentations again "
        f"to leave faint ones out"
    )
    return [Note("faint", (text,))]


def intensities(
    segmentation: Segmentation, labels: NDArray[Any], volumes: NDArray[Any]
) -> str | None:
    """The message where a label map with these labels looks like a scan; None otherwise.

    Regions of a label map are compact: one of volume V in d dimensions begins V^((d−1)/d) times
    along an axis, so V^(−1/d) of its voxels have another label before them. The values of a scan
    change nearly everywhere. The neighbours are those in the middle of the image along the axis
    with the fewest changes. The most frequent label is left out: it may be an empty background.
    """
    if labels.size <= MANY:
        return None
    shape = segmentation.shape
    axes = [axis for axis, length in enumerate(shape) if length > 1]
    edge = int(SAMPLE ** (1 / len(axes)))
    starts = [max(0, (length - edge) // 2) for length in shape]
    box = tuple(slice(start, start + edge) for start in starts)
    middle = np.asarray(segmentation.array[box])
    most_frequent = int(volumes.argmax())
    others = np.delete(volumes, most_frequent).astype(np.float64)
    compact = (others ** (1 - 1 / len(axes))).sum() / max(others.sum(), 1)
    shares = []
    for axis in axes:
        lines = np.moveaxis(middle, axis, 0)
        inside = lines != labels[most_frequent]
        pairs = inside[1:] & inside[:-1]
        count = np.count_nonzero(pairs)
        if count >= FEWEST:
            shares.append(np.count_nonzero(pairs & (lines[1:] != lines[:-1])) / count)
    changes = min(shares, default=0.0)
    if changes <= min(CHANGES, SCATTERED * compact):
        return None
    return (
        f"{labels.size} labels, and {percent(changes)} of neighbouring voxels have different ones. "
        f"It looks like a scan or a photograph, not a label map. Pass its segmentation instead."
    )


def _unmatched_notes(result: Comparison) -> list[Note]:
    """Regions without a partner, and what would give them one."""
    notes = []
    given = result.options.match == "labels" or isinstance(result.options.match, Given)
    for side in SIDES:
        spare = result.unmatched[side]
        if not spare:
            continue
        has, them = ("region has", "it") if len(spare) == 1 else ("regions have", "each")
        text = f"{len(spare)} {side} {has} no partner ({listed(spare)})"
        message: tuple[str | Option, ...] = (text,)
        if side in sides_to_merge(result.merge):
            meet = "meets" if len(spare) == 1 else "meet"
            message = (f"{text} and {meet} no matched one",)
        elif not given:
            join = f" would join {them} to a matched one"
            message = (f"{text}; ", Option("merge", side), join)
        notes.append(Note("unmatched", message))
    return notes


def _label_notes(result: Comparison) -> list[Note]:
    """What the labels of the two sides say about the correspondence."""
    rule = result.options.match
    notes = []
    if isinstance(rule, Given):
        for side, given in zip(SIDES, zip(*rule.groups, strict=True), strict=False):
            regions = result.overlap.side(side)
            known = {regions.find(label) for labels in given for label in labels}
            new = [regions.label(k) for k in regions.occupied.tolist() if k not in known]
            if new:
                text = f"the earlier comparison does not know {side} {listed(new)}"
                notes.append(Note("unknown", (text,)))
    elif rule == "labels":
        notes += _assumption_notes(result)
        notes += _difference_notes(result)
    elif not any(result.overlap.side(side).origins for side in SIDES):  # numbers are arbitrary
        crossed = _crossed(result)
        if crossed:
            labels = "label" if len(crossed) == 1 else "labels"
            text = (
                f"{len(crossed)} {labels} of both sides matched to another one "
                f"({listed(crossed)}); "
            )
            option = Option("match", "labels")
            notes.append(Note("crossed", (text, option, " compares equal labels")))
    if rule == "paper":
        apart = _apart(result)
        if apart:
            pairs = "pair shares" if apart == 1 else "pairs share"
            option = Option("match", "overlap")
            notes.append(Note("apart", (f"{apart} {pairs} no pixel; ", option, " has none")))
    return notes


def _assumption_notes(result: Comparison) -> list[Note]:
    """Channels that have no labels and were taken by their number."""
    notes = []
    for side in SIDES:
        if result.overlap.side(side).unlabelled:
            source = "" if result.images is None else result.images.side(side).source
            name = f"{side} ({source})" if source else side
            text = f"{name}: its channels have no labels; channel k was taken as label k"
            notes.append(Note("assumed", (text,)))
    return notes


def _difference_notes(result: Comparison) -> list[Note]:
    """Regions of equal number and other name, or of equal name and other number."""
    reference, prediction = result.overlap.reference, result.overlap.prediction
    by_number = {
        number: (k, name)
        for k, name in ((k, prediction.names[k]) for k in prediction.names)
        if (number := prediction.number_of(k)) is not None
    }
    renamed, renumbered = [], []
    for key, name in reference.names.items():
        number = reference.number_of(key)
        if number in by_number and by_number[number][1] != name:
            renamed.append(f"{number}: {name!r} and {by_number[number][1]!r}")
    for name, key in reference.unique_names.items():
        if name in prediction.unique_names:
            numbers = reference.number_of(key), prediction.number_of(prediction.unique_names[name])
            if None not in numbers and numbers[0] != numbers[1]:
                renumbered.append(f"{name!r}: {numbers[0]} and {numbers[1]}")
    notes = []
    for what, found in (("number", renamed), ("name", renumbered)):
        if found:
            differs = "name" if what == "number" else "number"
            regions = "1 region has" if len(found) == 1 else f"{len(found)} regions have"
            text = (
                f"{regions} the same {what} on both sides and another {differs} "
                f"({listed(found)}); regions were matched by {result.labels_by}"
            )
            notes.append(Note("differing", (text,)))
    return notes


def _crossed(result: Comparison) -> list[Label]:
    """Labels of both sides that were matched, but not with each other."""
    groups, table = result.correspondence.groups, result.overlap
    rows, columns = label_pairs(table)
    own, across = groups.reference[rows], groups.prediction[columns]
    crossed = rows[(own >= 0) & (own < groups.matched) & (across >= 0) & (across != own)]
    return [table.reference.label(k) for k in crossed.tolist()]


def _apart(result: Comparison) -> int:
    """How many pairs have no overlap at all."""
    meeting, groups = result.overlap.meeting, result.correspondence.matched
    numbers = groups.reference[meeting.rows]
    met = np.unique(numbers[numbers == groups.prediction[meeting.columns]])
    return groups.matched - met.size


def infinite_notes(result: Comparison) -> list[Note]:
    """A note where most pixels are infinitely far apart."""
    try:
        share = result.measured.infinite / result.pixels
    except NeedsImages:
        return []
    if share <= FAR:
        return []
    return [
        Note(
            "infinite",
            (
                f"{percent(share)} of the pixels are infinitely far apart, because one side "
                f"rules out what the other holds possible; consider ",
                Option("floor", "1e-3", python="similarity=Aitchison(floor=1e-3)"),
                ", ",
                Option("similarity", "absolute"),
                ", or ",
                Option("merge", "both"),
                " where regions have no partner",
            ),
        )
    ]
