"""`probdice paper`: repeat the experiments of the paper."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from probdice.cli.outcome import reporting_errors
from probdice.cli.parameters import DebugOption, flag, option
from probdice.cli.progress import counting_bar
from probdice.cli.streams import print_message, print_text

__all__ = ["paper"]


def paper(
    folder: Annotated[Path, option("Options", "FOLDER", "Output folder.", "--output", "-o")] = Path(
        "probdice-paper"
    ),
    survey_sheet: Annotated[
        bool,
        flag(
            "Options",
            "Also write survey sheets for a study with participants, and a table for the answers.",
            "--survey-sheet",
        ),
    ] = False,
    people: Annotated[int, option("Options", "N", "Number of survey sheets.", minimum=1)] = 25,
    seed: Annotated[int, option("Options", "N", "Seed of the random numbers.", minimum=0)] = 0,
    debug: DebugOption = False,
) -> None:
    """Repeat the experiments of the paper and write figures, numerical results and an HTML page.

    This command requires the extra 'paper', which provides photographs and segmentation methods.
    """
    with reporting_errors(debug=debug):
        from probdice.paper import run_paper

        with _bar() as show_progress:
            page = run_paper(
                folder, seed=seed, survey=survey_sheet, people=people, progress=show_progress
            )
        print_text(f"wrote {page}: report; numbers.json and the figures are in the same folder\n")
        if survey_sheet:
            print_text(f"wrote {folder / 'survey'}: {people} sheets, answers.csv and guide.txt\n")


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that shows progress: a bar on a terminal, otherwise one line per step."""
    if not sys.stderr.isatty():
        yield lambda step, finished_count, total: print_message(f"{finished_count}/{total} {step}")
        return
    with counting_bar("") as bar:
        yield lambda step, finished_count, total: bar.show(finished_count, total, step=step)
