"""`probdice demo`: create two segmentations and compare them."""

import shlex
from pathlib import Path
from typing import Annotated

from probdice.cli.outcome import reporting_errors
from probdice.cli.parameters import DebugOption, option
from probdice.cli.streams import print_text

__all__ = ["demo"]


def demo(
    folder: Annotated[Path, option("Options", "FOLDER", "Output folder.", "--output", "-o")] = Path(
        "probdice-demo"
    ),
    debug: DebugOption = False,
) -> None:
    """Create two example segmentations and compare them.

    The prediction is probabilistic, has more regions than the reference, and has different labels.
    """
    with reporting_errors(debug=debug):
        from probdice.cli.comparison_run import Inputs, Outputs, run
        from probdice.files import write
        from probdice.method.sides import SIDES
        from probdice.options import CompareOptions
        from probdice.synthesis import demo_pair

        folder.mkdir(parents=True, exist_ok=True)
        reference, prediction = (str(folder / f"{side}.nii.gz") for side in SIDES)
        for path, segmentation in zip((reference, prediction), demo_pair(), strict=True):
            write(path, segmentation)
        page, similarity = str(folder / "page.html"), str(folder / "similarity.nii.gz")
        arguments = ["probdice", "compare", reference, prediction, "--merge", "both"]
        command = shlex.join([*arguments, "--map", similarity, "--report", page])
        run(
            Inputs(reference, prediction),
            CompareOptions.of(merge="both"),
            Outputs(map=similarity, report=page, command=command),
        )
        print_text(f"\nto repeat this comparison:\n  {command}\n")
