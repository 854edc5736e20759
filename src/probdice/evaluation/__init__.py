"""Score the cases of one or more methods against a reference, and rank the methods.

`evaluating` contains `evaluate`. `one_reference` first checks the options and finds the
cases: `case_files` uses `patterns` to find the files of every case, and `pairing` pairs references
with predictions. `finishing` reads finished cases from the `journal`, unless a user's similarity
has changed (`similarity_fingerprint`), and `running` scores the remaining cases (`case_scoring`) in
worker processes (`worker`). `results` computes statistics from the records. `exchanged_labels`
finds exchanged labels, `rater_comparison` computes inter-rater agreement, and `tables` and
`publishing` create the result files. `manifest` describes the required form of a submission, and
`submission_check` checks a submission.
"""

from probdice.evaluation.evaluating import evaluate, evaluate_folders
from probdice.evaluation.finishing import Progress
from probdice.evaluation.manifest import Manifest
from probdice.evaluation.pairing import Missing
from probdice.evaluation.rater_comparison import RaterComparison
from probdice.evaluation.recompare import compare_again
from probdice.evaluation.record import Record
from probdice.evaluation.results import Evaluation
from probdice.evaluation.submission_check import Problem, SubmissionCheck, check_submission
from probdice.evaluation.summary import read_summary
from probdice.metrics.registry import MEASURES, MeasureName
from probdice.options import CompareOptions, EvaluateOptions, MissingRule

__all__ = [
    "MEASURES",
    "CompareOptions",
    "EvaluateOptions",
    "Evaluation",
    "Manifest",
    "MeasureName",
    "Missing",
    "MissingRule",
    "Problem",
    "Progress",
    "RaterComparison",
    "Record",
    "SubmissionCheck",
    "check_submission",
    "compare_again",
    "evaluate",
    "evaluate_folders",
    "read_summary",
]
