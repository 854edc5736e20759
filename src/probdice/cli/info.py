"""`probdice info`: describe a file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

from probdice.cli.outcome import reporting_errors
from probdice.cli.parameters import DebugOption, argument, check_options, with_options
from probdice.options import ReadOptions

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from probdice.data.geometry import Geometry
    from probdice.data.segmentation import Segmentation
    from probdice.data.value_checks import Fault, Sums
    from probdice.errors import Option
    from probdice.files.model import ContainedArray

__all__ = ["info"]


@with_options("info")
def info(
    file: Annotated[
        str,
        argument("FILE", "A file, several files or an array in a file, as in compare."),
    ],
    user_options: dict[str, Any],
    debug: DebugOption = False,
) -> None:
    """Show the content of a file: labels or probabilities, regions and geometry.

    For a file with several arrays, of which none is selected, list each array with the path that
    selects it.
    """
    with reporting_errors(debug=debug):
        from probdice.cli.display import note_line, show
        from probdice.errors import FormatError, in_command
        from probdice.files import read
        from probdice.files.masks import OverlappingMasks

        options = check_options(ReadOptions, user_options)

        def read_with(sums: "Sums") -> "Segmentation":
            names = options.names.reference
            return read(
                file,
                names=dict(names) if isinstance(names, tuple) else names,
                scale=options.common_scale,
                sums=sums,
                priority=options.priority.reference,
                max_bytes=options.max_bytes,
            )

        overlap = None
        try:
            segmentation = read_with(options.sums.reference)
        except OverlappingMasks as error:
            overlap = error
            segmentation = read_with("background")
        except FormatError:
            contents = _contents(file)
            if len(contents) < 2:
                raise
            show(*_container(file, contents))
            return
        parts = _labels(segmentation) if segmentation.crisp else _probabilities(segmentation)
        if overlap is not None:
            parts[-1] = f"compare would reject this file: {overlap.in_command()}"
        else:
            parts += [note_line(in_command(note.message)) for note in segmentation.notes]
        show(*parts)


def _contents(file: str) -> "list[ContainedArray]":
    """Return the arrays of a container; [] for several files or if the file cannot be read."""
    from probdice.errors import ProbdiceError
    from probdice.files import contents_of
    from probdice.files.sources import split_paths

    try:
        paths = split_paths(file)
        return contents_of(paths[0]) if len(paths) == 1 else []
    except ProbdiceError:
        return []


def _container(file: str, contents: "Sequence[ContainedArray]") -> "list[RenderableType]":
    """Return a list of the arrays in a container, with the path that selects each array."""
    from probdice.cli.display import MAX_ROWS
    from probdice.cli.terminal_tables import plain_table

    table = plain_table("array", ">shape", "type", "possible content")
    for content in contents[:MAX_ROWS]:
        shape = " × ".join(map(str, content.shape)) or "1"
        table.add_row(
            f"{content.joint}{content.inside}", shape, str(content.dtype), content.meaning
        )
    example = f"{file}{contents[0].joint}{contents[0].inside}"
    return [
        f"{file} contains {len(contents)} arrays. To select one, append its path to the file name:",
        table,
        *_omission_notes(len(contents), "arrays"),
        f"For example: {example}",
    ]


@dataclass
class _ValueStatistics:
    """Statistics of the values. `volumes`, `minimum` and `maximum` have one entry per region."""

    count: int = 0
    zeros: int = 0
    ones: int = 0
    sums: tuple[float, float] = (inf, -inf)
    wrong_sums: int = 0
    fault: "Fault | None" = None
    volumes: Any = 0.0
    minimum: Any = inf
    maximum: Any = -inf


def _labels(segmentation: "Segmentation") -> "list[RenderableType]":
    """Return the description of a label map: the number of pixels of every label."""
    import numpy as np

    from probdice.cli.display import MAX_ROWS, note_line
    from probdice.cli.terminal_tables import plain_table
    from probdice.comparison.notes import intensities
    from probdice.data.pixel_words import pixel_words
    from probdice.data.value_checks import scale_of_labels
    from probdice.engine.blocks import Blocks
    from probdice.engine.decode import Crisp
    from probdice.errors import Option
    from probdice.text.formatting import millilitres, percent

    blocks = Blocks(segmentation)
    pixel_counts: dict[int, int] = dict.fromkeys(segmentation.names, 0)
    for block in blocks.blocks:
        ready = blocks.decode(block).sides[0]
        assert isinstance(ready, Crisp)
        counts = np.bincount(ready.codes, minlength=ready.labels.size)
        for label, count in zip(ready.labels.tolist(), counts.tolist(), strict=True):
            pixel_counts[int(label)] = pixel_counts.get(int(label), 0) + count
    total = max(sum(pixel_counts.values()), 1)
    stored_type = segmentation.array.dtype
    file, head = _head(
        segmentation, f"label map, {len(pixel_counts)} labels, stored as {stored_type}"
    )
    labels = sorted(pixel_counts)
    pixel_volume = _pixel_volume(segmentation)
    millilitre_column = () if pixel_volume is None else (">volume",)
    colour_column = ("colour",) if segmentation.colours else ()
    pixels = pixel_words(segmentation).many
    table = plain_table(
        ">label", "name", *colour_column, f">{pixels}", *millilitre_column, ">share"
    )
    for label in labels[:MAX_ROWS]:
        count = pixel_counts[label]
        size = () if pixel_volume is None else (millilitres(count, pixel_volume),)
        name = segmentation.names.get(label, "")
        colour = (_swatch(segmentation, label),) if segmentation.colours else ()
        table.add_row(str(label), name, *colour, f"{count:,}", *size, percent(count / total, 2))
    parts = [file, head, table, *_omission_notes(len(labels), "labels")]
    counts = np.array([pixel_counts[label] for label in labels])
    keys = np.array(labels)
    scale = scale_of_labels(keys, counts) if labels else None
    option = Option("scale", scale).in_command()
    in_compare = f"in compare, --scale reference:{scale} or --scale prediction:{scale}"
    warning = intensities(segmentation, keys, counts)
    if warning is not None:
        scale_hint = (
            f" If it contains 8-bit probabilities, use {option} ({in_compare})." if scale else ""
        )
        parts.append(note_line(f"{warning}{scale_hint}"))
    elif scale is not None:
        parts.append(
            note_line(
                f"The values look like 8-bit probabilities. If they are, use {option} "
                f"({in_compare})."
            )
        )
    return parts


def _swatch(segmentation: "Segmentation", key: int) -> "RenderableType":
    """Return the colour of a label or region, as a square and a colour code."""
    from rich.text import Text

    colour = segmentation.colours.get(key)
    return Text.assemble(("■", colour), f" {colour}") if colour else ""


def _probabilities(segmentation: "Segmentation") -> "list[RenderableType]":
    """Return the description of probabilities: volumes of regions, and sums over regions."""
    from probdice.cli.display import MAX_ROWS
    from probdice.cli.terminal_tables import plain_table
    from probdice.data.pixel_words import pixel_words
    from probdice.errors import in_command
    from probdice.text.formatting import millilitres, percent

    statistics, fault = _examine(segmentation)
    pixel_volume = _pixel_volume(segmentation)
    has_one_region = segmentation.reading == "foreground"
    count = len(statistics.volumes)
    kind = (
        "probability of one foreground" if has_one_region else f"probabilities of {count} regions"
    )
    file, head = _head(segmentation, f"{kind}, stored as {segmentation.array.dtype}")
    head.add_row("values", f"from {statistics.minimum.min():g} to {statistics.maximum.max():g}")
    if not has_one_region:
        sums = f"from {statistics.sums[0]:.6g} to {statistics.sums[1]:.6g}"
        if statistics.wrong_sums:
            share = statistics.wrong_sums / max(statistics.count // count, 1)
            pixels = pixel_words(segmentation).many
            sums += f"; not 1 at {percent(share, 2)} of the {pixels}"
        head.add_row("sums", sums)
    zeros, ones = (
        percent(n / max(statistics.count, 1), 2) for n in (statistics.zeros, statistics.ones)
    )
    head.add_row("exact", f"{zeros} of the values are 0, {ones} are 1")
    colour_column = ("colour",) if segmentation.colours else ()
    table = plain_table(">region", *colour_column, ">volume", ">minimum", ">maximum")
    names = segmentation.regions[1:] if has_one_region else segmentation.regions
    for k, name in enumerate(names[:count][:MAX_ROWS]):
        numbers = statistics.volumes[k], statistics.minimum[k], statistics.maximum[k]
        size = millilitres(numbers[0], pixel_volume)
        volume = f"{numbers[0]:,.1f} ({size})" if size else f"{numbers[0]:,.1f}"
        colour = (_swatch(segmentation, k + has_one_region),) if segmentation.colours else ()
        table.add_row(str(name), *colour, volume, f"{numbers[1]:g}", f"{numbers[2]:g}")
    parts = [file, head, table, *_omission_notes(count, "regions")]
    if "background" in segmentation.regions[count:]:
        parts.append(
            "Where the sum is below 1, the missing probability is added as a region called "
            "background."
        )
    if fault is not None:
        parts.append(f"compare would reject this file: {in_command(fault)}")
    return parts


def _examine(segmentation: "Segmentation") -> "tuple[_ValueStatistics, list[str | Option] | None]":
    """Return statistics of the stored values, and a message on invalid values or None."""
    import numpy as np

    from probdice.data.pixel_words import pixel_words
    from probdice.data.value_checks import TOLERANCE, examine_values
    from probdice.engine.blocks import Blocks
    from probdice.engine.decode import Soft

    has_one_region = segmentation.reading == "foreground"
    raw_segmentation = segmentation
    if not has_one_region:
        channels = segmentation.array.shape[0]
        raw_segmentation = replace(
            segmentation, reading="error", labels=tuple(range(channels)), names={}
        )
    blocks, statistics = Blocks(raw_segmentation), _ValueStatistics()
    for block in blocks.blocks:
        ready = blocks.decode(block)
        side, fault = ready.sides[0], ready.faults[0]
        assert isinstance(side, Soft)
        rows = side.values
        if has_one_region:
            rows = rows[1:]
        else:
            fault = examine_values(rows, segmentation.reading)
            with np.errstate(invalid="ignore", over="ignore"):
                sums = rows.sum(axis=0, dtype=np.float64)
            statistics.sums = (
                min(statistics.sums[0], sums.min()),
                max(statistics.sums[1], sums.max()),
            )
            statistics.wrong_sums += int((~(np.abs(sums - 1) <= TOLERANCE)).sum())
        if fault is not None:
            fault = blocks.located(fault, block)
            statistics.fault = fault if statistics.fault is None else statistics.fault + fault
        statistics.count += rows.size
        statistics.zeros += int((rows == 0).sum())
        statistics.ones += int((rows == 1).sum())
        statistics.volumes = statistics.volumes + rows.sum(axis=1, dtype=np.float64)
        statistics.minimum = np.minimum(statistics.minimum, rows.min(axis=1))
        statistics.maximum = np.maximum(statistics.maximum, rows.max(axis=1))
    if statistics.fault is None:
        return statistics, None
    places = blocks.position_of(statistics.fault.first), blocks.position_of(statistics.fault.worst)
    return statistics, statistics.fault.message(*places, pixel_words(segmentation))


def _head(segmentation: "Segmentation", kind: str) -> "tuple[Text, Table]":
    """Return the file name, and a table with the kind, shape and geometry."""
    from rich.table import Table
    from rich.text import Text

    from probdice.text.escaping import printable

    file = Text(printable(segmentation.source), style="bold")
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("kind", kind)
    table.add_row("shape", " × ".join(map(str, segmentation.shape)))
    geometry = segmentation.geometry
    if geometry is None:
        table.add_row("geometry", "none: the file has no spacing, origin or direction")
        return file, table
    endings = {"spacing": " mm", "origin": " mm", "direction": _orientation(geometry)}
    for key, text in geometry.describe().items():
        if key != "size":
            table.add_row(key, f"{text}{endings.get(key, '')}")
    return file, table


def _pixel_volume(segmentation: "Segmentation") -> float | None:
    """Return the volume of a voxel in mm³; None if it is unknown or the image is not 3-D."""
    geometry = segmentation.geometry
    return geometry.pixel_volume if geometry is not None and len(geometry.shape) == 3 else None


def _orientation(geometry: "Geometry") -> str:
    """Return the anatomical directions of the axes of a 3-D image, such as " (RAS)"; else ""."""
    if len(geometry.shape) != 3:
        return ""
    directions = ("LR", "PA", "IS")
    letters = []
    for axis in geometry.direction.T:
        world = int(abs(axis).argmax())
        letters.append(directions[world][int(axis[world] > 0)])
    return f" ({''.join(letters)})"


def _omission_notes(count: int, noun: str) -> "list[RenderableType]":
    from probdice.cli.display import MAX_ROWS

    return [f"… and {count - MAX_ROWS} more {noun}"] if count > MAX_ROWS else []
