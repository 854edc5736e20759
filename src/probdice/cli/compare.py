"""`probdice compare`: compare two segmentations."""

from typing import Annotated, Any

import typer

from probdice.cli.comparison_run import Inputs, MetricOptions, Outputs, run
from probdice.cli.option_values import file_of_match
from probdice.cli.outcome import reporting_errors
from probdice.cli.outputs import check_outputs
from probdice.cli.parameters import (
    AllOption,
    DebugOption,
    JsonOption,
    MaskOption,
    QuietOption,
    ReportOption,
    WorkersOption,
    argument,
    check_options,
    command_line,
    flag,
    option,
    with_options,
)
from probdice.engine.dask_schedulers import SCHEDULERS
from probdice.options import CompareOptions

__all__ = ["compare"]


@with_options("compare")
def compare(
    context: typer.Context,
    reference: Annotated[
        str,
        argument(
            "REFERENCE",
            "Reference segmentation (ground truth): a file; an array in a file (file.h5:/path or "
            "file.npz:key); or one file per region (a.nii.gz,b.nii.gz, 'pve_*.nii.gz' or "
            "csf=pve_0.nii.gz,grey=pve_1.nii.gz).",
        ),
    ],
    prediction: Annotated[
        str, argument("PREDICTION", "Predicted segmentation, in the same forms as REFERENCE.")
    ],
    user_options: dict[str, Any],
    mask: MaskOption = None,
    components: Annotated[
        bool,
        flag(
            "Comparison",
            "Compare the connected components of both label maps as separate regions. Only "
            "components with equal labels are matched. If the sides have no label in common, their "
            "labels are first matched by overlap. Omit this option if every label is one instance. "
            "Requires --background and the extra 'instances'.",
            "--components",
            advanced=True,
        ),
    ] = False,
    workers: WorkersOption = None,
    scheduler: Annotated[
        str | None,
        option(
            "Comparison",
            "SCHEDULER",
            f"Run with Dask: {', '.join(SCHEDULERS)}, or the address of a scheduler "
            "(tcp://host:8786). "
            "Requires a Zarr store on at least one side.",
            advanced=True,
        ),
    ] = None,
    map_: Annotated[
        str | None,
        option(
            *("Output", "FILE", "Write an image with the similarity at every voxel.", "--map"),
            advanced=True,
        ),
    ] = None,
    relabelled: Annotated[
        str | None,
        option(
            *("Output", "FILE", "Write the prediction with the labels of the reference."),
            advanced=True,
        ),
    ] = None,
    report: ReportOption = None,
    image: Annotated[
        list[str] | None,
        option(
            "Output",
            "FILE",
            "Image to show behind the regions in the report, such as the scan. Can be repeated.",
        ),
    ] = None,
    surface: Annotated[
        list[str] | None,
        option(
            "Output",
            "FILE",
            "Surface on which the report shows values at vertices, such as lh.inflated or a "
            ".surf.gii file. Repeat the option for the other hemisphere.",
            advanced=True,
        ),
    ] = None,
    indices: Annotated[
        bool,
        flag(
            "Output",
            "Also print other indices: Rand, variation of information, covering, mean IoU and, "
            "with --background, detected instances.",
            "--indices",
            advanced=True,
        ),
    ] = False,
    json: JsonOption = None,
    csv: Annotated[
        str | None,
        option(
            "Output",
            "FILE",
            "Write a CSV table with the labels, Dice, Jaccard index and volumes of every group.",
        ),
    ] = None,
    all_: AllOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Compare two segmentations of one image.

    The two sides may have different labels and different numbers of regions. By default, regions
    are matched by overlap.
    """
    with reporting_errors(debug=debug):
        metrics = _metric_options(indices, components, "background" in user_options)
        for option, files in {"--image": image, "--surface": surface}.items():
            if files and report is None:
                raise typer.BadParameter(
                    "only the report shows this file; add --report FILE", param_hint=option
                )
        options = check_options(CompareOptions, user_options)
        file = file_of_match(user_options.get("match", ""))
        check_outputs(
            {
                "--map": map_,
                "--relabelled": relabelled,
                "--report": report,
                "--json": json,
                "--csv": csv,
            },
            images=("--map", "--relabelled"),
            inputs={
                "REFERENCE": reference,
                "PREDICTION": prediction,
                "--mask": mask,
                **{
                    f"--names ({side})": names
                    for side, names in options.names.to_dict().items()
                    if isinstance(names, str)
                },
                "--match": None if file is None else str(file),
                **{f"--image {path}": path for path in image or ()},
                **{f"--surface {path}": path for path in surface or ()},
            },
        )
        run(
            Inputs(
                *(reference, prediction, mask, workers, tuple(image or ()), scheduler),
                surfaces=tuple(surface or ()),
            ),
            options,
            Outputs(map_, relabelled, report, json, csv, quiet, command_line(context), all_),
            metrics,
        )


def _metric_options(indices: bool, components: bool, has_background: bool) -> MetricOptions:
    """Check and return the options for additional metrics."""
    if components and not has_background:
        raise typer.BadParameter(
            "requires --background LABEL, or --background none if there is no background",
            param_hint="--components",
        )
    return MetricOptions(indices, components, has_background and (indices or components))
