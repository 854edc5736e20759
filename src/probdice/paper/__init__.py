"""Reproduce the paper: draw its figures, check its claims, and repeat its study.

The paper is Andrews & Hamarneh, arXiv:1509.07244. `run_paper` runs all experiments. `rank_study`
compares human ranks with ranks by score.
"""

from probdice.paper.answers import Answer, Scored, read_rankings, read_scores
from probdice.paper.drawings import draw_study
from probdice.paper.run import run_paper
from probdice.paper.study import (
    PAPER_PEARSON,
    PAPER_SLOPE,
    STAND_IN,
    Fit,
    RankedPoint,
    Study,
    rank_study,
)

__all__ = [
    "PAPER_PEARSON",
    "PAPER_SLOPE",
    "STAND_IN",
    "Answer",
    "Fit",
    "RankedPoint",
    "Scored",
    "Study",
    "draw_study",
    "rank_study",
    "read_rankings",
    "read_scores",
    "run_paper",
]
