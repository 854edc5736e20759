"""Time of all indices of two label maps, relative to the overlap and to other tools.

    python -m benchmarks.indices [--only few_labels] [--into PAGE]

Tools that are not installed are left out. All functions use the same arrays. The times of probdice
are the least of several runs, and the times of other tools are those of one call.
"""

import contextlib
import io
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import probdice
from benchmarks.speed import WORKERS, compact_labels
from benchmarks.table import Row, least, run, times

GOAL = "at most 1.2 ×"
REPEATS = 15


def few_labels() -> list[Row]:
    return indices(20)


def many_labels() -> list[Row]:
    return indices(2000)


def indices(labels: int) -> list[Row]:
    """Measure two label maps of 256³ pixels."""
    a, b = (compact_labels(256, labels, seed) for seed in (0, 1))
    what = f"256³, {labels:,} labels"

    works: dict[str, Callable[[probdice.Overlap], Any]] = {
        "all indices": lambda table: table.indices(background=0).to_dict(),
        "detection": lambda table: table.compare().detection(background=0).to_dict(),
        "adjusted information": lambda table: table.indices().adjusted_mutual_information(),
    }
    for work in works.values():
        work(probdice.overlap(a, b, workers=WORKERS))
    alone, after = least_of_each(lambda: probdice.overlap(a, b, workers=WORKERS), works)
    rows = [times(f"overlap, {what}", alone, alone, "overlap")]
    for name, seconds in after.items():
        goal = GOAL if name == "all indices" else ""
        both = alone + seconds
        rows.append(times(f"overlap and {name}, {what}", both, alone, "overlap", goal))
    ours = alone + after["all indices"]
    for name, call in tools(a, b, labels).items():
        (seconds,) = least(call, rounds=1)
        rows.append(times(f"{name}, {what}", seconds, ours, "overlap and all indices"))
    return rows


def least_of_each(
    prepare: Callable[[], Any], works: dict[str, Callable[[Any], Any]]
) -> tuple[float, dict[str, float]]:
    """Return the shortest times of a preparation, and of functions that receive its result.

    The functions are timed separately and alternately, because on a busy machine the difference
    between two long times is mostly noise.
    """
    first, rest = float("inf"), dict.fromkeys(works, float("inf"))
    for _ in range(REPEATS):
        for name, work in works.items():
            start = time.perf_counter()
            prepared = prepare()
            middle = time.perf_counter()
            work(prepared)
            end = time.perf_counter()
            first, rest[name] = min(first, middle - start), min(rest[name], end - middle)
    return first, rest


def tools(a: NDArray[Any], b: NDArray[Any], labels: int) -> dict[str, Callable[[], Any]]:
    """Return one function per metric of the installed tools."""
    calls: dict[str, Callable[[], Any]] = {}
    with missing("scikit-learn"):
        from sklearn import metrics

        x, y = a.reshape(-1), b.reshape(-1)
        calls["scikit-learn adjusted_rand_score"] = lambda: metrics.adjusted_rand_score(x, y)
        calls["scikit-learn normalized_mutual_info_score"] = lambda: (
            metrics.normalized_mutual_info_score(x, y)
        )
    with missing("scikit-image"):
        from skimage import metrics as image_metrics

        calls["scikit-image variation_of_information"] = lambda: (
            image_metrics.variation_of_information(a, b)
        )
        calls["scikit-image adapted_rand_error"] = lambda: image_metrics.adapted_rand_error(a, b)
    with missing("torchmetrics"):
        import torch
        from torchmetrics.functional import cohen_kappa, jaccard_index

        torch.set_num_threads(WORKERS)
        p, q = (torch.from_numpy(side.astype(np.int64)) for side in (b, a))
        task = {"task": "multiclass", "num_classes": labels}
        calls["torchmetrics jaccard_index"] = lambda: jaccard_index(p, q, **task)
        calls["torchmetrics cohen_kappa"] = lambda: cohen_kappa(p, q, **task)
    with missing("panoptica"):
        calls["panoptica, by IoU alone"] = panoptica(a, b)
    return calls


def panoptica(a: NDArray[Any], b: NDArray[Any]) -> Callable[[], Any]:
    """Return a function that computes panoptic quality without surface metrics."""
    from panoptica import InputType, Metric, NaiveThresholdMatching, Panoptica_Evaluator

    evaluator = Panoptica_Evaluator(
        expected_input=InputType.UNMATCHED_INSTANCE,
        instance_matcher=NaiveThresholdMatching(matching_metric=Metric.IOU, matching_threshold=0.5),
        instance_metrics=[Metric.IOU],
        global_metrics=[],
    )

    def call() -> Any:
        with contextlib.redirect_stdout(io.StringIO()):
            return evaluator.evaluate(b, a)

    return call


@contextlib.contextmanager
def missing(tool: str) -> Any:
    """Continue without a tool that is not installed."""
    try:
        yield
    except ImportError:
        print(f"{tool} is not installed; its rows are left out")


if __name__ == "__main__":
    run((few_labels, many_labels), __doc__)
