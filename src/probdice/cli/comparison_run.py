"""Read two segmentations, compare them, write the requested files and print the result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from probdice.cli.outputs import check_format, sample_segmentation, write_text
from probdice.cli.progress import ProgressDisplay, progress
from probdice.cli.streams import print_text
from probdice.options import CompareOptions
from probdice.text.formatting import decimal, short_paths

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from probdice.comparison.result import Comparison
    from probdice.data.geometry import Geometry
    from probdice.data.surface import Surface
    from probdice.engine.pair import SegmentationPair
    from probdice.files.background_images import BackgroundImage
    from probdice.metrics.components import Instances

__all__ = ["Inputs", "MetricOptions", "Outputs", "run"]

# The attributes of a result that are computed in each step of the progress bar.
STEPS = {
    "comparing": ("score", "matched_score", "groups"),
    "chance": ("chance",),
    "explained": ("explained",),
}


@dataclass(frozen=True)
class Inputs:
    """The files to read, the number of threads, and the Dask scheduler (if any)."""

    reference: str
    prediction: str
    mask: str | None = None
    workers: int | None = None
    images: tuple[str, ...] = ()
    scheduler: str | None = None
    surfaces: tuple[str, ...] = ()


@dataclass(frozen=True)
class MetricOptions:
    """The additional metrics to compute.

    `instances` requires --background, because the background is not an instance.
    """

    indices: bool = False
    components: bool = False
    instances: bool = False


@dataclass(frozen=True)
class Outputs:
    """The files to write, the printing options, and the command line, which the report shows.

    If `json` is "-", the JSON is printed.
    """

    map: str | None = None
    relabelled: str | None = None
    report: str | None = None
    json: str | None = None
    csv: str | None = None
    quiet: bool = False
    command: str = ""
    all_groups: bool = False


NO_METRICS = MetricOptions()


def run(
    inputs: Inputs, options: CompareOptions, outputs: Outputs, metrics: MetricOptions = NO_METRICS
) -> "Comparison":
    """Read and compare two segmentations, write all files, and then print the result."""
    from probdice.comparison.requested_metrics import compute_requested

    with progress(visible=not outputs.quiet) as display, _scheduler_context(inputs):
        display.begin("reading")
        images, geometry = _read(inputs, options, display)
        if inputs.scheduler is not None:
            _check_scheduler(images)
        if metrics.components:
            display.begin("components")
            images = _with_components(images, options)
        _check_formats(images, geometry, outputs)
        background_images = _background_images(images, options, inputs.images)
        surfaces = _surfaces(images, inputs.surfaces)
        result = _compare_images(images, options, outputs, display)
        compute_requested(result, display.begin)
        report_layers = background_images, surfaces
        file_lines = _write(result, geometry, inputs, outputs, metrics, report_layers, display)
    if outputs.json == "-":
        print_text(_as_json(result, inputs, metrics) + "\n")
    elif outputs.quiet:
        print_text(f"{decimal(result.score)}\n")
    else:
        from probdice.cli.display import show_comparison

        show_comparison(
            result,
            " ↔ ".join(short_paths(inputs.reference, inputs.prediction)),
            file_lines,
            all_groups=outputs.all_groups,
            indices=result.indices() if metrics.indices else None,
            detection=result.detection() if metrics.instances else None,
        )
    return result


def _scheduler_context(inputs: Inputs) -> "AbstractContextManager[None]":
    """Return a context in which Dask uses the scheduler that --scheduler selects."""
    from contextlib import nullcontext

    if inputs.scheduler is None:
        return nullcontext()
    from probdice.engine.dask_schedulers import scheduled

    return scheduled(inputs.scheduler, inputs.workers)


def _check_scheduler(images: "SegmentationPair") -> None:
    """Raise an error if --scheduler has no effect because the comparison runs in threads."""
    from probdice.engine.executors import uses_threads
    from probdice.errors import InputError, Option

    if uses_threads(images.blocks):
        raise InputError(
            Option("scheduler", python="a Dask scheduler"),
            " has no effect: neither side is a Zarr store. Remove this option.",
        )


def _with_components(images: "SegmentationPair", options: CompareOptions) -> "SegmentationPair":
    """Replace the regions of both sides with their connected components."""
    from probdice.errors import ProbdiceError
    from probdice.method.sides import SIDES, Both, Side

    def components(side: Side) -> "Instances":
        try:
            background = None if options.background is None else options.background[side]
            return images.side(side).components(background=background)
        except ProbdiceError as error:
            raise error.prefixed(f"{side}: ") from None

    sides = Both(*(components(side) for side in SIDES))
    return replace(images, reference=sides.reference, prediction=sides.prediction)


def _as_json(result: "Comparison", inputs: Inputs, metrics: MetricOptions) -> str:
    """Return the result as JSON, with the input files and the additional metrics."""
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
    if metrics.indices:
        content["indices"] = result.indices().to_dict()
    if metrics.instances:
        content["detection"] = result.detection().to_dict()
    return dumps(null_for_nan(content), allow_nan=False)


def _files(path: str) -> dict[str, object]:
    """Return the given path, and the SHA-256 of every file that the path refers to."""
    from probdice.files.sidecars import files_read, fingerprint

    files = [
        {"file": str(file), "sha256": fingerprint(file) if file.is_file() else None}
        for file in files_read(path)
    ]
    return {"path": path, "read": files}


def _read(
    inputs: Inputs, options: CompareOptions, display: ProgressDisplay
) -> "tuple[SegmentationPair, Geometry | None]":
    """Read both sides and the mask, while another thread imports Numba."""
    from concurrent.futures import ThreadPoolExecutor

    from probdice.comparison.from_files import read_images

    pool = ThreadPoolExecutor(1)
    try:
        # The import of Numba can suppress a KeyboardInterrupt, so it runs in another thread.
        warm_up = pool.submit(_warm_up, display)
        images, geometry = read_images(
            inputs.reference, inputs.prediction, options, mask=inputs.mask, workers=inputs.workers
        )
        scale = options.common_scale
        if scale is not None and not any(note.kind == "scaled" for note in images.notes):
            _reject_scale(scale, images)
        warm_up.result()
    finally:
        pool.shutdown(wait=False)
    return images, geometry


def _warm_up(display: ProgressDisplay) -> None:
    """Load Numba by comparing one pixel.

    Importing Numba takes 0.3 s; loading a cached kernel takes milliseconds. The kernel for label
    maps takes the least time to compile.
    """
    import numpy as np

    from probdice.comparison.comparing import compare
    from probdice.engine.kernels import watch_compiler

    watch_compiler(display.compiling, display.compiled)
    pixel = np.ones(1, np.uint8)
    compare(pixel, pixel)


def _reject_scale(scale: float, images: "SegmentationPair") -> None:
    from probdice.errors import InputError, Option

    contents = [
        f"the {name} {'is a label map' if side.crisp else 'has no value above 1.5'}"
        for name, side in images.sides.to_dict().items()
    ]
    raise InputError(
        Option("scale", f"{scale:g}"),
        f" has no effect: {' and '.join(contents)}. To always scale the prediction, use ",
        Option("scale", f"prediction:{scale:g}"),
        ".",
    )


def _check_formats(
    images: "SegmentationPair", geometry: "Geometry | None", outputs: Outputs
) -> None:
    """Reject output formats that cannot store the images, before the computation."""
    import numpy as np

    if outputs.map is not None:
        pixel = np.ones((1,) * len(images.reference.shape), np.float32)
        check_format(outputs.map, pixel, geometry)
    if outputs.relabelled is not None:
        crisp = images.prediction.crisp
        check_format(
            outputs.relabelled, sample_segmentation(images.reference.shape, geometry, crisp=crisp)
        )


def _background_images(
    images: "SegmentationPair", options: CompareOptions, files: tuple[str, ...]
) -> "tuple[BackgroundImage, ...]":
    """Read the background images of the report, so that invalid files are rejected early."""
    if not files:
        return ()
    from probdice.report.image_layers import background_images_of

    return background_images_of(images, options, files)


def _surfaces(images: "SegmentationPair", files: tuple[str, ...]) -> "tuple[Surface, ...]":
    """Read the surfaces of the report, so that invalid files are rejected early."""
    if not files:
        return ()
    from probdice.files.inputs import as_surfaces
    from probdice.report.surface_pictures import check_surfaces

    surfaces = as_surfaces(files)
    check_surfaces(images, surfaces)
    return surfaces


def _compare_images(
    images: "SegmentationPair", options: CompareOptions, outputs: Outputs, display: ProgressDisplay
) -> "Comparison":
    """Compare the images, and compute the results that will be printed or written."""
    from probdice.comparison.comparing import compare_images

    display.begin("comparing")
    result = compare_images(images, options)
    steps: Mapping[str, Sequence[str]] = {"comparing": ("score",)}
    if not outputs.quiet or outputs.report is not None or outputs.json is not None:
        steps = STEPS
    for step, names in steps.items():
        display.begin(step)
        result.compute(*names)
    return result


def _write(
    result: "Comparison",
    geometry: "Geometry | None",
    inputs: Inputs,
    outputs: Outputs,
    metrics: MetricOptions,
    report_layers: "tuple[tuple[BackgroundImage, ...], tuple[Surface, ...]]",
    display: ProgressDisplay,
) -> Sequence[str]:
    """Write the output files, and return one line per file."""
    import numpy as np

    from probdice.files import streaming, write
    from probdice.files.writing import described_payload

    file_lines = []
    images = result.need_images("a map")
    if outputs.map is not None:
        display.begin("writing the map")
        with streaming(outputs.map, geometry, images.reference) as store:
            if store is None:
                write(outputs.map, result.map(), geometry)
            else:
                result.map(into=store.array(images.reference.shape, np.dtype(np.float32)))
        file_lines.append(f"{outputs.map}: similarity map")
    if outputs.relabelled is not None:
        display.begin("relabelling")
        with streaming(outputs.relabelled, geometry, images.prediction) as store:
            if store is None:
                segmentation = result.relabelled()
                write(outputs.relabelled, segmentation, geometry)
            else:
                segmentation = result.relabelled(
                    into=partial(store.array, regions=not images.prediction.crisp)
                )
                store.describe(described_payload(segmentation, segmentation.array, geometry))
        # The region order is printed, because most programs do not read region names from the file.
        regions = ", ".join(map(str, segmentation.regions))
        order = f" (region order: {regions})" if regions else ""
        file_lines.append(
            f"{outputs.relabelled}: prediction with the labels of the reference{order}"
        )
    if outputs.report is not None:
        from probdice import report

        display.begin("writing the report")
        report.write(
            result,
            outputs.report,
            image=report_layers[0],
            surface=report_layers[1],
            words="command",
            command=outputs.command,
        )
        file_lines.append(f"{outputs.report}: report")
    if outputs.json is not None and outputs.json != "-":
        write_text(outputs.json, _as_json(result, inputs, metrics) + "\n")
        file_lines.append(f"{outputs.json}: all results")
    if outputs.csv is not None:
        write_text(outputs.csv, result.to_csv())
        file_lines.append(f"{outputs.csv}: one row per group")
    return file_lines
