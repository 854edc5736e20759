"""Run all experiments of the paper, and write figures, numerical results and an HTML page."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

from probdice.files.atomic_files import null_for_nan, replacing
from probdice.paper import sections
from probdice.paper.answers import RANKING, write_csv
from probdice.paper.claims import Claim
from probdice.paper.experiment_images import METHODS, paper_images, photograph, require_extra
from probdice.paper.figures import COEFFICIENTS, degradation_table
from probdice.paper.sections import Section, stand_in_answers, stand_in_study
from probdice.paper.study import PAPER_PEARSON, PAPER_SLOPE
from probdice.paper.survey import data_address, write_scores, write_survey
from probdice.report.rendering import render, write_page
from probdice.version import __version__

FORMAT_VERSION = 2  # of numbers.json
DOTS_PER_INCH = 110


def run_paper(
    out: str | Path,
    *,
    seed: int = 0,
    survey: bool = False,
    people: int = 25,
    progress: Callable[[str, int, int], None] | None = None,
) -> Path:
    """Run the paper's experiments, and write figures, numerical results and an HTML page.

    Parameters
    ----------
    out : path
        The output folder, which is created if it does not exist.
    seed : int, optional
        Seed of the random numbers. The same seed gives the same results.
    survey : bool, optional
        Whether to write sheets to the folder ``survey``, for repeating the study with people.
    people : int, optional
        The number of sheets, one per person.
    progress : callable, optional
        A function that is called with the name of the next step, the number of finished steps, and
        the total number of steps.

    Returns
    -------
    Path
        The path of the HTML page, ``index.html``. The same folder contains ``numbers.json``,
        ``scores.csv``, ``stand-in-rankings.csv`` and the folder ``figures``.
    """
    require_extra()  # raise an error immediately, not after a minute
    out = Path(out)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    steps, total = count(), 12 + survey

    def announce(step: str) -> None:
        if progress is not None:
            progress(step, next(steps), total)

    announce("the images")
    references = paper_images(seed=seed)
    image = photograph("coffee")
    methods = {name: segment(image, seed=seed) for name, segment in METHODS.items()}
    announce("the degraded images")
    table = degradation_table(references, seed=seed)
    figures: list[Section] = []
    for step_name, make_section in (
        ("the two forms of the coefficient", sections.forms),
        ("f₁ and f₂ of two regions", sections.similarities),
        ("f₁ and f₂ at every pixel", lambda: sections.pixels(seed)),
        ("the table of degradations", lambda: sections.table(table)),
        ("scores by strength of degradation", lambda: sections.strength_sweep(references, seed)),
        ("the weight of a pair", lambda: sections.weights(references, seed)),
        ("matching and merging", lambda: sections.merging(references, methods, seed)),
        ("sources of unordered regions", lambda: sections.sources(image, methods)),
    ):
        announce(step_name)
        figures.append(make_section())
    announce("both matching rules")
    rules = sections.both_rules(references, methods, seed)
    announce("the study with known degradation strengths")
    studies = {name: stand_in_study(table, name, seed=seed) for name in COEFFICIENTS}
    study_figures = [sections.study(name, study) for name, study in studies.items()]
    answers = [asdict(answer) for answer in stand_in_answers(table)]
    write_csv(out / "stand-in-rankings.csv", RANKING, [list(row.values()) for row in answers])
    write_scores(out / "scores.csv", table)
    if survey:
        announce("survey sheets")
        write_survey(out / "survey", table, people=people, seed=seed)
    _write_numbers(out, seed, rules, figures, study_figures)
    page = {
        "title": "The multi-region probabilistic Dice coefficient, reproduced",
        "version": __version__,
        "seed": seed,
        "claims": _claims(figures),
        "figures": [_save_figure(section, out) for section in figures],
        "rules": rules,
        "study_figures": [_save_figure(section, out) for section in study_figures],
        "studies": list(studies.values()),
        "images": [*references, "all images"],
        "paper": {"slope": PAPER_SLOPE, "pearson": PAPER_PEARSON},
    }
    text = render("page.html", page, package="probdice.paper", style="templates/page.css")
    write_page(out / "index.html", text)
    announce("done")
    return out / "index.html"


def _claims(figures: Sequence[Section]) -> list[Claim]:
    return [claim for section in figures for claim in section.claims]


def _write_numbers(
    out: Path,
    seed: int,
    rules: Mapping[str, Any],
    figures: Sequence[Section],
    study_figures: Sequence[Section],
) -> None:
    """Write the numbers of all sections to ``numbers.json``."""
    numbers: dict[str, Any] = {"format": FORMAT_VERSION, "seed": seed, "rules": rules}
    numbers["claims"] = [asdict(claim) for claim in _claims(figures)]
    for section in (*figures, *study_figures):
        numbers |= section.numbers
    with replacing(out / "numbers.json") as partial:
        text = json.dumps(null_for_nan(numbers), indent=1, ensure_ascii=False, allow_nan=False)
        partial.write_text(text + "\n", encoding="utf-8", newline="\n")


def _save_figure(section: Section, out: Path) -> dict[str, str]:
    """Write the figure of a section to a file. Return the texts and a data URL for the page."""
    buffer = BytesIO()
    section.figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
    with replacing(out / "figures" / f"{section.name}.png") as partial:
        partial.write_bytes(buffer.getvalue())
    texts = {"name": section.name, "title": section.title, "caption": section.caption}
    return texts | {"address": data_address(buffer.getvalue())}
