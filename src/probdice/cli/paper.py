"""`probdice paper`: the paper's experiments, repeated."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from probdice.cli.outcome import answering
from probdice.cli.parameters import DebugOption
from probdice.cli.streams import print_message, print_text

__all__ = ["paper"]


def paper(
    folder: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to put the files.")
    ] = Path("probdice-paper"),
    survey_sheet: Annotated[
        bool,
        typer.Option(
            "--survey-sheet",
            metavar="",
            help="Also write sheets to repeat the study with people, and a table for the answers.",
        ),
    ] = False,
    people: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many survey sheets to write.")
    ] = 25,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Another seed, another run.")] = 0,
    debug: DebugOption = False,
) -> None:
    """Repeat the paper's experiments: figures, numbers and a page.

    Needs the extra "paper", for photographs and their segmentations.
    """
    with answering(debug=debug):
        from probdice.paper import run_paper

        with _bar() as show_progress:
            page = run_paper(
                folder, seed=seed, survey=survey_sheet, people=people, progress=show_progress
            )
        print_text(f"wrote {page}, numbers.json and the figures beside it\n")
        if survey_sheet:
            print_text(f"wrote {people} sheets, answers.csv and guide.txt to {folder / 'survey'}\n")


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on the terminal; a line for each step where there is none."""
    if not sys.stderr.isatty():
        yield lambda what, done, steps: print_message(f"{done}/{steps} {what}")
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from probdice.cli.console import console

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("")
        yield lambda what, done, steps: bar.update(
            task, description=what, completed=done, total=steps
        )
