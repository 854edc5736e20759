"""`probdice info`: what the reader made of a file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probdice.cli.outcome import answering
from probdice.cli.parameters import DebugOption, MaxBytesOption, SumsName, names_in, usage

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from probdice.data.geometry import Geometry
    from probdice.data.segmentation import Segmentation
    from probdice.data.value_checks import Fault, Sums
    from probdice.errors import Option
    from probdice.files.model import Content

__all__ = ["info"]


def info(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="A file, several, or a part of one, as for compare.",
        ),
    ],
    sums: Annotated[
        SumsName, typer.Option(help="What to do where probabilities do not sum to 1.")
    ] = SumsName.error,
    scale: Annotated[
        float | None,
        typer.Option(metavar="S", help="The number that stands for certainty: 100, 255, …"),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A table of what labels are called, as for compare."),
    ] = None,
    priority: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Where masks overlap, the first of these regions wins."),
    ] = None,
    max_bytes: MaxBytesOption = None,
    debug: DebugOption = False,
) -> None:
    """Show what a file holds: labels or probabilities, which regions, and where it lies.

    Of a container with several arrays it lists them, and what to write for each.
    """
    with answering(debug=debug):
        from probdice.cli.display import note_line, show
        from probdice.errors import FormatError, in_command
        from probdice.files import read
        from probdice.files.masks import OverlappingMasks
        from probdice.options import as_scale

        with usage("--scale"):
            scale = as_scale(scale)

        def read_by(sums: "Sums") -> "Segmentation":
            order = names_in(priority or "")
            return read(
                file, names=names, scale=scale, sums=sums, priority=order, max_bytes=max_bytes
            )

        refusal = None
        try:
            segmentation = read_by(sums.value)
        except OverlappingMasks as error:
            refusal = error
            segmentation = read_by("background")
        except FormatError:
            contents = _contents(file)
            if len(contents) < 2:
                raise
            show(*_container(file, contents))
            return
        parts = _labels(segmentation) if segmentation.crisp else _probabilities(segmentation)
        if refusal is not None:
            parts[-1] = f"compare would refuse it: {refusal.in_command()}"
        else:
            parts += [note_line(in_command(note.message)) for note in segmentation.notes]
        show(*parts)


def _contents(file: str) -> "list[Content]":
    """The arrays of a container; none where it cannot be read, which is said elsewhere."""
    from probdice.errors import ProbdiceError
    from probdice.files import contents_of
    from probdice.files.sources import split_paths

    try:
        paths = split_paths(file)
        return contents_of(paths[0]) if len(paths) == 1 else []
    except ProbdiceError:
        return []


def _container(file: str, contents: "Sequence[Content]") -> "list[RenderableType]":
    """The arrays of a container, each with what to write for it."""
    from probdice.cli.display import MOST
    from probdice.cli.terminal_tables import plain_table

    table = plain_table("part", ">shape", "type", "could be")
    for content in contents[:MOST]:
        shape = " × ".join(map(str, content.shape)) or "1"
        table.add_row(
            f"{content.joint}{content.inside}", shape, str(content.dtype), content.meaning
        )
    example = f"{file}{contents[0].joint}{contents[0].inside}"
    return [
        f"{file} holds {len(contents)} arrays; name the part that is meant behind the file:",
        table,
        *_rest(len(contents), "arrays"),
        f"for example {example}",
    ]


@dataclass
class _Census:
    """What a pass over the values finds; the last three for every region."""

    count: int = 0
    zeros: int = 0
    ones: int = 0
    sums: tuple[float, float] = (inf, -inf)
    off: int = 0
    fault: "Fault | None" = None
    volumes: Any = 0.0
    least: Any = inf
    most: Any = -inf


def _labels(segmentation: "Segmentation") -> "list[RenderableType]":
    """A label map: every label with its pixels."""
    import numpy as np

    from probdice.cli.display import MOST, note_line
    from probdice.cli.terminal_tables import plain_table
    from probdice.comparison.notes import intensities
    from probdice.data.value_checks import scale_of_labels
    from probdice.engine.blocks import Blocks
    from probdice.engine.decode import Crisp
    from probdice.errors import Option
    from probdice.text.formatting import millilitres, percent

    blocks = Blocks(segmentation)
    pixel_counts: dict[int, int] = dict.fromkeys(segmentation.names, 0)
    for block in blocks.blocks:
        ready = blocks.ready(block).sides[0]
        assert isinstance(ready, Crisp)
        counts = np.bincount(ready.codes, minlength=ready.labels.size)
        for label, count in zip(ready.labels.tolist(), counts.tolist(), strict=True):
            pixel_counts[int(label)] = pixel_counts.get(int(label), 0) + count
    total = max(sum(pixel_counts.values()), 1)
    stored = segmentation.array.dtype
    file, head = _head(segmentation, f"label map, {len(pixel_counts)} labels, stored as {stored}")
    labels = sorted(pixel_counts)
    pixel_volume = _pixel_volume(segmentation)
    millilitre_column = () if pixel_volume is None else (">volume",)
    colour_column = ("colour",) if segmentation.colours else ()
    table = plain_table(">label", "name", *colour_column, ">pixels", *millilitre_column, ">share")
    for label in labels[:MOST]:
        count = pixel_counts[label]
        size = () if pixel_volume is None else (millilitres(count, pixel_volume),)
        name = segmentation.names.get(label, "")
        colour = (_swatch(segmentation, label),) if segmentation.colours else ()
        table.add_row(str(label), name, *colour, f"{count:,}", *size, percent(count / total, 2))
    parts = [file, head, table, *_rest(len(labels), "labels")]
    counts = np.array([pixel_counts[label] for label in labels])
    keys = np.array(labels)
    scale = scale_of_labels(keys, counts) if labels else None
    option = Option("scale", scale).in_command()
    warning = intensities(segmentation, keys, counts)
    if warning is not None:
        bytes_too = f" If it holds probabilities as bytes, use {option}" if scale else ""
        parts.append(note_line(f"{warning}{bytes_too}"))
    elif scale is not None:
        parts.append(note_line(f"looks like probabilities stored as bytes; {option}"))
    return parts


def _swatch(segmentation: "Segmentation", key: int) -> "RenderableType":
    """The colour of a label or region, shown and written."""
    from rich.text import Text

    colour = segmentation.colours.get(key)
    return Text.assemble(("■", colour), f" {colour}") if colour else ""


def _probabilities(segmentation: "Segmentation") -> "list[RenderableType]":
    """Probabilities: every region with its volume, and whether they sum to 1."""
    from probdice.cli.display import MOST
    from probdice.cli.terminal_tables import plain_table
    from probdice.errors import in_command
    from probdice.text.formatting import millilitres, percent

    census, fault = _counted(segmentation)
    pixel_volume = _pixel_volume(segmentation)
    single = segmentation.reading == "foreground"
    count = len(census.volumes)
    what = "probability of one foreground" if single else f"probabilities of {count} regions"
    file, head = _head(segmentation, f"{what}, stored as {segmentation.array.dtype}")
    head.add_row("values", f"from {census.least.min():g} to {census.most.max():g}")
    if not single:
        off = f"; not 1 at {percent(census.off / max(census.count // count, 1), 2)} of the pixels"
        sums = f"from {census.sums[0]:.6g} to {census.sums[1]:.6g}{off if census.off else ''}"
        head.add_row("sums", sums)
    zeros, ones = (percent(n / max(census.count, 1), 2) for n in (census.zeros, census.ones))
    head.add_row("exact", f"{zeros} of the values are 0, {ones} are 1")
    colour_column = ("colour",) if segmentation.colours else ()
    table = plain_table(">region", *colour_column, ">volume", ">least", ">greatest")
    names = segmentation.regions[1:] if single else segmentation.regions
    for k, name in enumerate(names[:count][:MOST]):
        numbers = census.volumes[k], census.least[k], census.most[k]
        size = millilitres(numbers[0], pixel_volume)
        volume = f"{numbers[0]:,.1f} ({size})" if size else f"{numbers[0]:,.1f}"
        colour = (_swatch(segmentation, k + single),) if segmentation.colours else ()
        table.add_row(str(name), *colour, volume, f"{numbers[1]:g}", f"{numbers[2]:g}")
    parts = [file, head, table, *_rest(count, "regions")]
    if "background" in segmentation.regions[count:]:
        parts.append("what is missing to a sum of 1 is added as a region called background")
    if fault is not None:
        parts.append(f"compare would refuse it: {in_command(fault)}")
    return parts


def _counted(segmentation: "Segmentation") -> "tuple[_Census, list[str | Option] | None]":
    """One pass over the values as they came, and what is wrong with them."""
    import numpy as np

    from probdice.data.value_checks import TOLERANCE, examine_values
    from probdice.engine.blocks import Blocks
    from probdice.engine.decode import Soft

    single = segmentation.reading == "foreground"
    unmended = segmentation
    if not single:
        channels = segmentation.array.shape[0]
        unmended = replace(segmentation, reading="error", labels=tuple(range(channels)), names={})
    blocks, census = Blocks(unmended), _Census()
    for block in blocks.blocks:
        ready = blocks.ready(block)
        side, fault = ready.sides[0], ready.faults[0]
        assert isinstance(side, Soft)
        rows = side.rows[:, side.start : side.start + side.size]
        if single:
            rows = rows[1:]
        else:
            fault = examine_values(rows, segmentation.reading)
            with np.errstate(invalid="ignore", over="ignore"):
                sums = rows.sum(axis=0, dtype=np.float64)
            census.sums = min(census.sums[0], sums.min()), max(census.sums[1], sums.max())
            census.off += int((~(np.abs(sums - 1) <= TOLERANCE)).sum())
        if fault is not None:
            fault = blocks.located(fault, block)
            census.fault = fault if census.fault is None else census.fault + fault
        census.count += rows.size
        census.zeros += int((rows == 0).sum())
        census.ones += int((rows == 1).sum())
        census.volumes = census.volumes + rows.sum(axis=1, dtype=np.float64)
        census.least = np.minimum(census.least, rows.min(axis=1))
        census.most = np.maximum(census.most, rows.max(axis=1))
    if census.fault is None:
        return census, None
    places = blocks.place(census.fault.first), blocks.place(census.fault.worst)
    return census, census.fault.message(*places)


def _head(segmentation: "Segmentation", kind: str) -> "tuple[Text, Table]":
    """The name of the file, which is never broken, and what every file has."""
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
        table.add_row("geometry", "none: nothing says where the image lies")
        return file, table
    described = geometry.describe()
    table.add_row("spacing", f"{described['spacing']} mm")
    table.add_row("origin", f"{described['origin']} mm")
    table.add_row("direction", f"{described['direction']}{_orientation(geometry)}")
    return file, table


def _pixel_volume(segmentation: "Segmentation") -> float | None:
    """In mm³, of a volume whose place is known."""
    geometry = segmentation.geometry
    return geometry.pixel_volume if geometry is not None and len(geometry.shape) == 3 else None


def _orientation(geometry: "Geometry") -> str:
    """The directions that the axes point in, such as RAS."""
    if len(geometry.shape) != 3:
        return ""
    ways = ("LR", "PA", "IS")
    letters = []
    for axis in geometry.direction.T:
        world = int(abs(axis).argmax())
        letters.append(ways[world][int(axis[world] > 0)])
    return f" ({''.join(letters)})"


def _rest(count: int, what: str) -> "list[RenderableType]":
    from probdice.cli.display import MOST

    return [f"… and {count - MOST} more {what}"] if count > MOST else []
