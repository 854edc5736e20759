"""`probdice compare`: the main job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import typer

from probdice.cli.outcome import answering
from probdice.cli.outputs import check_outputs, rehearse, stand_in, write_text
from probdice.cli.parameters import (
    BackgroundOption,
    ComponentsOption,
    DebugOption,
    FloorOption,
    IgnoreGeometryOption,
    IgnoreOption,
    ImageOption,
    IndicesOption,
    JsonOption,
    MapOption,
    MaskOption,
    MatchOption,
    MaxBytesOption,
    MergeName,
    MergeOption,
    NamesOption,
    PredictionArgument,
    PredictionNamesOption,
    PriorityOption,
    QuietOption,
    ReferenceArgument,
    ReferenceNamesOption,
    RelabelledOption,
    ReportOption,
    ScaleOption,
    SchedulerOption,
    SimilarityName,
    SimilarityOption,
    SumsOption,
    ToleranceOption,
    WorkersOption,
    background_of,
    command_line,
    file_of_match,
    options_of,
)
from probdice.cli.progress import Progress, progress
from probdice.cli.streams import print_text

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from probdice.comparison.result import Comparison
    from probdice.data.geometry import Geometry
    from probdice.engine.pair import Images
    from probdice.files.background_images import Underlay
    from probdice.method.region_labels import Label
    from probdice.metrics.components import Instances
    from probdice.options import Options

__all__ = ["Inputs", "Outputs", "Wanted", "compare", "run"]

# What is shown of a result, under what the bar says while it is computed.
NUMBERS = {
    "comparing": ("score", "matched_score", "groups"),
    "chance": ("chance",),
    "what each side explains": ("explained",),
}


@dataclass(frozen=True)
class Inputs:
    """The files to read, as the user names them, and who works on them: threads, or Dask."""

    reference: str
    prediction: str
    mask: str | None = None
    workers: int | None = None
    images: tuple[str, ...] = ()
    scheduler: str | None = None


@dataclass(frozen=True)
class Wanted:
    """What is asked for besides the comparison itself.

    `background` was said if it is not None, and then may be "none".
    """

    indices: bool = False
    components: bool = False
    background: str | None = None

    @property
    def label(self) -> "Label | None":
        """The background itself."""
        return background_of(self.background)

    @property
    def instances(self) -> bool:
        """Whether it is known what an instance is."""
        return self.background is not None and (self.indices or self.components)


@dataclass(frozen=True)
class Outputs:
    """The files to write; JSON goes to standard output as "-". The page shows the command."""

    map: str | None = None
    relabelled: str | None = None
    report: str | None = None
    json: str | None = None
    quiet: bool = False
    command: str = ""


PLAIN = Wanted()


def compare(
    context: typer.Context,
    reference: ReferenceArgument,
    prediction: PredictionArgument,
    similarity: SimilarityOption = SimilarityName.absolute,
    floor: FloorOption = None,
    match: MatchOption = "overlap",
    merge: MergeOption = MergeName.none,
    mask: MaskOption = None,
    ignore: IgnoreOption = None,
    background: BackgroundOption = None,
    components: ComponentsOption = False,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    sums: SumsOption = None,
    scale: ScaleOption = None,
    names: NamesOption = None,
    reference_names: ReferenceNamesOption = None,
    prediction_names: PredictionNamesOption = None,
    priority: PriorityOption = None,
    geometry_tolerance: ToleranceOption = None,
    ignore_geometry: IgnoreGeometryOption = False,
    max_bytes: MaxBytesOption = None,
    map_: MapOption = None,
    relabelled: RelabelledOption = None,
    report: ReportOption = None,
    image: ImageOption = None,
    indices: IndicesOption = False,
    json: JsonOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Compare two segmentations of one image.

    Regions need not carry the same labels, nor be equally many: which is which is found out.
    """
    with answering(debug=debug):
        wanted = _wanted(indices, components, background)
        if image and report is None:
            raise typer.BadParameter(
                "is shown on a page; say with --report where to write it", param_hint="--image"
            )
        options = options_of(
            similarity=similarity,
            floor=floor,
            match=match,
            merge=merge,
            ignore=ignore,
            sums=sums,
            scale=scale,
            names=names,
            reference_names=reference_names,
            prediction_names=prediction_names,
            priority=priority,
            ignore_geometry=ignore_geometry,
            geometry_tolerance=geometry_tolerance,
            max_bytes=max_bytes,
        )
        file = file_of_match(match)
        check_outputs(
            {"--map": map_, "--relabelled": relabelled, "--report": report, "--json": json},
            images=("--map", "--relabelled"),
            inputs={
                "REFERENCE": reference,
                "PREDICTION": prediction,
                "--mask": mask,
                "--names": names,
                "--reference-names": reference_names,
                "--prediction-names": prediction_names,
                "--match": None if file is None else str(file),
                **{f"--image {one}": one for one in image or ()},
            },
        )
        run(
            Inputs(reference, prediction, mask, workers, tuple(image or ()), scheduler),
            options,
            Outputs(map_, relabelled, report, json, quiet, command_line(context)),
            wanted,
        )


def run(
    inputs: Inputs, options: "Options", outputs: Outputs, wanted: Wanted = PLAIN
) -> "Comparison":
    """Read, compare, write the files, and only then print."""
    with progress(shown=not outputs.quiet) as display, _scheduled(inputs):
        display.say("reading")
        images, geometry = _read(inputs, options, display)
        if inputs.scheduler is not None:
            _check_scheduled(images)
        if wanted.components:
            display.say("components")
            images = _divided(images, wanted.label)
        _rehearse(images, geometry, outputs)
        underlays = _underlays(images, options, inputs.images)
        result = _compared(images, options, outputs, display)
        written = _write(result, geometry, inputs, outputs, wanted, underlays, display)
    if outputs.json == "-":
        print_text(_as_json(result, inputs, wanted) + "\n")
    elif outputs.quiet:
        print_text(f"{result.score!r}\n")
    else:
        from probdice.cli.display import show_comparison

        show_comparison(
            result,
            f"{inputs.reference} ↔ {inputs.prediction}",
            written,
            indices=result.indices(background=wanted.label) if wanted.indices else None,
            detection=result.detection(background=wanted.label) if wanted.instances else None,
        )
    return result


def _scheduled(inputs: Inputs) -> "AbstractContextManager[None]":
    """The scheduler of Dask that was asked for, if one was."""
    from contextlib import nullcontext

    if inputs.scheduler is None:
        return nullcontext()
    from probdice.engine.dask import scheduled

    return scheduled(inputs.scheduler, inputs.workers)


def _check_scheduled(images: "Images") -> None:
    """Refuse a scheduler that would have nothing to do."""
    from probdice.engine.dask import runs_on_dask
    from probdice.errors import InputError, Option

    if not runs_on_dask(images.blocks):
        raise InputError(
            Option("scheduler", python="a scheduler of Dask"),
            " would have nothing to do: neither side is a Zarr store, which tasks could read for "
            "themselves; leave it out",
        )


def _wanted(indices: bool, components: bool, background: str | None) -> Wanted:
    """What goes together of these options."""
    if components and background is None:
        raise typer.BadParameter(
            "needs --background, the label that is not divided (none where there is none)",
            param_hint="--components",
        )
    if background is not None and not (indices or components):
        raise typer.BadParameter(
            "is for --indices and --components; give one of them, or leave it out",
            param_hint="--background",
        )
    return Wanted(indices, components, background)


def _divided(images: "Images", background: "Label | None") -> "Images":
    """The same with the connected components of both sides as regions."""
    from dataclasses import replace

    from probdice.errors import ProbdiceError
    from probdice.method.sides import SIDES, Both, Side

    def divided(side: Side) -> "Instances":
        try:
            return images.side(side).components(background=background)
        except ProbdiceError as error:
            raise error.prefixed(f"{side}: ") from None

    sides = Both(*(divided(side) for side in SIDES))
    return replace(images, reference=sides.reference, prediction=sides.prediction)


def _as_json(result: "Comparison", inputs: Inputs, wanted: Wanted) -> str:
    """The result, what it was made of, and what was asked for besides it."""
    from json import dumps

    from probdice.files.atomic_files import null_for_nan
    from probdice.version import __version__

    content = result.to_dict()
    content["version"] = __version__
    content["files"] = {
        "reference": _files(inputs.reference),
        "prediction": _files(inputs.prediction),
        "mask": None if inputs.mask is None else _files(inputs.mask),
    }
    if wanted.indices:
        content["indices"] = result.indices(background=wanted.label).to_dict()
    if wanted.instances:
        content["detection"] = result.detection(background=wanted.label).to_dict()
    return dumps(null_for_nan(content), allow_nan=False)


def _files(path: str) -> dict[str, object]:
    """What was named, and every file that was read for it with its fingerprint."""
    from probdice.files.sidecars import files_read, fingerprint

    read = [
        {"file": str(file), "sha256": fingerprint(file) if file.is_file() else None}
        for file in files_read(path)
    ]
    return {"path": path, "read": read}


def _read(
    inputs: Inputs, options: "Options", display: Progress
) -> "tuple[Images, Geometry | None]":
    """Both sides and the mask; what takes long to import is imported while they are unpacked."""
    from concurrent.futures import ThreadPoolExecutor

    from probdice.comparison.from_files import read_images

    pool = ThreadPoolExecutor(1)
    try:
        # Not on this thread: Numba swallows an interrupt now and then.
        warming = pool.submit(_warm_up, display)
        images, geometry = read_images(
            inputs.reference, inputs.prediction, options, mask=inputs.mask, workers=inputs.workers
        )
        if options.scale is not None and not any(note.kind == "scaled" for note in images.notes):
            _refuse_scale(options.scale, images)
        warming.result()
    finally:
        pool.shutdown(wait=False)
    return images, geometry


def _warm_up(display: Progress) -> None:
    """Load Numba by comparing a pixel.

    It takes a third of a second to import; a kernel then is a matter of milliseconds. That of
    label maps is the smallest, should it have to be compiled.
    """
    import numpy as np

    from probdice.comparison.comparing import compare
    from probdice.engine.kernels import watch_compiler

    watch_compiler(display.compiling, display.compiled)
    pixel = np.ones(1, np.uint8)
    compare(pixel, pixel)


def _refuse_scale(scale: float, images: "Images") -> None:
    from probdice.errors import InputError, Option

    contents = [
        f"the {name} {'is a label map' if side.crisp else 'holds no value above 1'}"
        for name, side in images.sides.to_dict().items()
    ]
    raise InputError(
        Option("scale", f"{scale:g}"),
        f" would change nothing: {' and '.join(contents)}; to scale a side whatever it holds, "
        f"name it: ",
        Option("scale", f"prediction:{scale:g}"),
    )


def _rehearse(images: "Images", geometry: "Geometry | None", outputs: Outputs) -> None:
    """Find out what cannot be written before the work, not after."""
    import numpy as np

    if outputs.map is not None:
        rehearse(outputs.map, np.ones((1,) * len(images.reference.shape), np.float32))
    if outputs.relabelled is not None:
        crisp = images.prediction.crisp
        rehearse(outputs.relabelled, stand_in(images.reference.shape, geometry, crisp=crisp))


def _underlays(
    images: "Images", options: "Options", files: tuple[str, ...]
) -> "tuple[Underlay, ...]":
    """The images for the page; one that does not fit is refused before the work, not after."""
    if not files:
        return ()
    from probdice.report.image_layers import underlays_of

    return underlays_of(images, options, files)


def _compared(
    images: "Images", options: "Options", outputs: Outputs, display: Progress
) -> "Comparison":
    """The result, with everything that will be asked of it computed while the bar is shown."""
    from probdice.comparison.comparing import compare_images

    display.say("comparing")
    result = compare_images(images, options)
    wanted: Mapping[str, Sequence[str]] = {"comparing": ("score",)}
    if not outputs.quiet or outputs.report is not None or outputs.json is not None:
        wanted = NUMBERS
    for doing, names in wanted.items():
        display.say(doing)
        result.compute(*names)
    return result


def _write(
    result: "Comparison",
    geometry: "Geometry | None",
    inputs: Inputs,
    outputs: Outputs,
    wanted: Wanted,
    underlays: "tuple[Underlay, ...]",
    display: Progress,
) -> Sequence[str]:
    """The files that were asked for, and a word on each."""
    import numpy as np

    from probdice.files import streaming, write
    from probdice.files.writing import described_payload

    written = []
    images = result.need_images("a map")
    if outputs.map is not None:
        display.say("map")
        with streaming(outputs.map, geometry, images.reference) as store:
            if store is None:
                write(outputs.map, result.map(), geometry)
            else:
                result.map(into=store.array(images.reference.shape, np.dtype(np.float32)))
        written.append(f"{outputs.map}: the similarity at every pixel")
    if outputs.relabelled is not None:
        display.say("relabelling")
        with streaming(outputs.relabelled, geometry, images.prediction) as store:
            if store is None:
                segmentation = result.relabelled()
                write(outputs.relabelled, segmentation, geometry)
            else:
                segmentation = result.relabelled(
                    into=partial(store.array, regions=not images.prediction.crisp)
                )
                store.describe(described_payload(segmentation, segmentation.array, geometry))
        regions = ", ".join(map(str, segmentation.regions))  # which other programs do not find
        order = f", regions in this order: {regions}" if regions else ""
        written.append(f"{outputs.relabelled}: the prediction with the reference's labels{order}")
    if outputs.report is not None:
        from probdice import report

        display.say("page")
        report.write(
            result, outputs.report, image=underlays, words="command", command=outputs.command
        )
        written.append(f"{outputs.report}: a page to open in a browser")
    if outputs.json is not None and outputs.json != "-":
        write_text(outputs.json, _as_json(result, inputs, wanted) + "\n")
        written.append(f"{outputs.json}: all numbers")
    return written
