"""The whole paper at once: figures, numbers and a page in a folder."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import Any

from probdice.paper import sections
from probdice.paper.figures import degradation_table
from probdice.paper.images import paper_images
from probdice.paper.page import PagedFigure, render
from probdice.paper.photographs import require_extra
from probdice.paper.sections import Drawing, Section
from probdice.paper.study import PAPER_PEARSON, PAPER_SLOPE, Study
from probdice.paper.survey import write_rankings, write_scores, write_survey

__all__ = ["Progress", "run_paper"]

FORMAT = 1  # version of numbers.json
DOTS_PER_INCH = 110

Progress = Callable[[str, int, int], None]
"""Called with what comes next, how many parts are done, and how many there are."""


def run_paper(
    out: str | Path,
    *,
    seed: int = 0,
    survey: bool = False,
    people: int = 25,
    progress: Progress | None = None,
) -> Path:
    """Run the paper's experiments and write their figures, numbers and a page.

    Parameters
    ----------
    out : path
        The folder to write to; it is made if it does not exist.
    seed : int, optional
        The same seed gives the same numbers.
    survey : bool, optional
        Also write the sheets to repeat the study with people, to the folder ``survey``.
    people : int, optional
        How many sheets.
    progress : callable, optional
        Told what comes next, how many parts are done, and how many there are.

    Returns
    -------
    Path
        The page, ``index.html``. Beside it are ``numbers.json``, ``scores.csv``,
        ``stand-in-rankings.csv`` and the folder ``figures``.
    """
    require_extra()  # at once, not after a minute
    out = Path(out)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    report = _Reporter(progress, 11 + survey)

    report("the images")
    references = paper_images(seed=seed)
    report("their degraded versions")
    table = degradation_table(references, seed=seed)
    parts: list[Section] = []
    shown: list[PagedFigure] = []
    for what, part in (
        ("the two forms of the coefficient", sections.forms),
        ("f₁ and f₂ of two regions", sections.similarities),
        ("f₁ and f₂ at every pixel", lambda: sections.pixels(seed)),
        ("the table of degradations", lambda: sections.table(table)),
        ("scores as degradations grow", lambda: sections.falling(references, seed)),
        ("the weight of a pair", lambda: sections.weights(references, seed)),
        ("matching and merging", lambda: sections.merging(references, seed)),
        ("sources of unordered regions", lambda: sections.origins(seed)),
    ):
        report(what)
        parts.append(part())
        shown += [_paged(drawing, out) for drawing in parts[-1].drawings]
    report("the study, on a stand-in")
    ranking, studies = sections.ranking(table, seed)
    write_rankings(out / "stand-in-rankings.csv", sections.stand_in_answers(table))
    write_scores(out / "scores.csv", table)
    if survey:
        report("survey sheets")
        write_survey(out / "survey", table, people=people, seed=seed)
    _write_numbers(out / "numbers.json", [*parts, ranking], seed)
    claims = [claim for part in parts for claim in part.claims]
    page = out / "index.html"
    html = render(
        "page.html",
        title="The multi-region probabilistic Dice coefficient, reproduced",
        version=_version(),
        seed=seed,
        claims=claims,
        holding=sum(claim.holds for claim in claims),
        figures=shown,
        studies=[_paged(drawing, out) for drawing in ranking.drawings],
        study_columns=[f"{name} {kind}" for name in studies for kind in ("slope", "Pearson")],
        study_rows=_study_rows(studies),
        paper_slope=PAPER_SLOPE,
        paper_pearson=PAPER_PEARSON,
    )
    page.write_text(html, encoding="utf-8")
    report("done")
    return page


@dataclass
class _Reporter:
    """Counts the parts and tells of each."""

    progress: Progress | None
    parts: int
    done: int = 0

    def __call__(self, what: str) -> None:
        if self.progress is not None:
            self.progress(what, self.done, self.parts)
        self.done += 1


def _write_numbers(path: Path, parts: list[Section], seed: int) -> None:
    numbers: dict[str, Any] = {"format": FORMAT, "seed": seed}
    numbers["claims"] = [asdict(claim) for part in parts for claim in part.claims]
    for part in parts:
        numbers |= part.numbers
    text = json.dumps(_plain(numbers), indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def _paged(drawing: Drawing, out: Path) -> PagedFigure:
    buffer = BytesIO()
    drawing.figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
    (out / "figures" / f"{drawing.name}.png").write_bytes(buffer.getvalue())
    return PagedFigure(drawing.name, drawing.title, drawing.caption, buffer.getvalue())


def _study_rows(studies: Mapping[str, Study]) -> list[list[str]]:
    """An image a row, with the slope and the correlation by each coefficient."""
    rows = []
    for image in (*next(iter(studies.values())).images, None):
        fits = [
            study.overall if image is None else study.images[image] for study in studies.values()
        ]
        values = [value for fit in fits for value in (fit.slope, fit.pearson)]
        cells = [f"{value:.2f}".replace("-", "−") for value in values]
        rows.append([image or "all images", *cells])
    return rows


def _version() -> str:
    try:
        return version("probdice")
    except PackageNotFoundError:
        return "(not installed)"


def _plain(value: Any) -> Any:
    """Plain types for JSON; null for what is not a number."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
