"""Which index separates raters of the same photograph from raters of different photographs?

    python -m benchmarks.people FOLDER [--json FILE]

FOLDER and its subfolders contain the human segmentations of the Berkeley data set (BSDS500), one
.mat file per photograph. For every index, the first table shows the area under the ROC curve for
pairs of raters of one photograph and pairs of raters of two photographs of the same size, with a 95
% CI from a bootstrap over photographs, and the 10 %, 50 % and 90 % quantiles of both kinds of pairs
(errors and distances have a minus sign). The next line shows the number of pairs of regions that
share no pixel although the paper's rule matches them. The second table shows the score of one rater
with the mean of 1, 2, … other raters, and the score of the best label map.
"""

import argparse
import json
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from numpy.typing import NDArray

import probdice

DRAWS = 1000
ASKED = 3  # raters per photograph who are compared with the mean of other raters
LOWER_IS_ALIKE = ("adapted_rand_error", "variation_of_information")
SHOWN = (
    "explained",
    "explained, the higher",
    "adjusted_score",
    "score",
    "adjusted_rand",
    "nmi_arithmetic",
    "nmi_max",
    "variation_of_information",
    "covering",
    "adapted_rand_error",
    "mean_iou",
    "kappa",
    "rand",
    "adjusted_score, merged",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    photographs = {path.stem: people_of(path) for path in sorted(options.folder.rglob("*.mat"))}
    if len(photographs) < 2:
        raise SystemExit(f"{options.folder}: expected at least two .mat files of BSDS500")
    told, pairs = same_or_not(photographs)
    people = sum(map(len, photographs.values()))
    print(f"{len(photographs)} photographs, {people} people; {pairs[0]} pairs of raters of the")
    print(f"same photograph, {pairs[1]} of different ones\n")
    print(f"{'index':28} {'AUC':>6}   95 % CI            same photograph      different")
    for row in told:
        spread = "   ".join(
            f"{low:5.2f} {middle:5.2f} {high:5.2f}" for low, middle, high in row["spread"]
        )
        interval = f"[{row['low']:.4f}, {row['high']:.4f}]"
        print(f"{row['index']:28} {row['auc']:6.4f}   {interval}   {spread}")
    apart, made = paper_pairs(photographs)
    print(
        f"\n{apart} of {made} pairs of regions that the paper's rule matches ({apart / made:.0%}) "
        f"share no pixel"
    )
    reached = by_number(photographs)
    print(
        f"\none rater against the mean of others, {reached[0]['photographs']} photographs; best is"
    )
    print("the score of the best label map against that mean\n")
    print(f"{'others':>6} {'score':>8} {'best':>8} {'explained':>10}")
    for row in reached:
        print(f"{row['others']:6} {row['score']:8.4f} {row['best']:8.4f} {row['explained']:10.4f}")
    if options.json is not None:
        content = {"told": told, "apart": apart, "pairs": made, "reached": reached}
        options.json.write_text(json.dumps(content, indent=2) + "\n")


def people_of(path: Path) -> list[NDArray[Any]]:
    """Return the label maps of all raters of a photograph."""
    entries = scipy.io.loadmat(path)["groundTruth"][0]
    return [np.ascontiguousarray(entry["Segmentation"][0, 0], np.int32) for entry in entries]


def numbers_of(first: NDArray[Any], second: NDArray[Any]) -> dict[str, float]:
    """Return all indices of two label maps. Larger values mean more similar maps."""
    result = probdice.compare(first, second)
    indices = result.indices().to_dict()
    numbers = {
        "explained": float(np.mean(list(result.explained.values()))),
        "explained, the higher": max(result.explained.values()),
        "score": result.score,
        "adjusted_score": result.adjusted_score,
        "adjusted_score, merged": probdice.compare(first, second, merge="both").adjusted_score,
        "covering": (indices["covering_reference"] + indices["covering_prediction"]) / 2,
    }
    for name in SHOWN:
        if name not in numbers:
            sign = -1 if name in LOWER_IS_ALIKE else 1
            numbers[name] = sign * indices[name]
    return numbers


def same_or_not(
    photographs: dict[str, list[NDArray[Any]]],
) -> tuple[list[dict[str, Any]], tuple[int, int]]:
    """Return the AUC of every index, and the numbers of pairs of both kinds."""
    names = list(photographs)
    same = [[numbers_of(a, b) for a, b in combinations(photographs[name], 2)] for name in names]
    other = {
        (i, j): [numbers_of(a, b) for a, b in product(photographs[names[i]], photographs[names[j]])]
        for i, j in combinations(range(len(names)), 2)
        if photographs[names[i]][0].shape == photographs[names[j]][0].shape
    }
    rng = np.random.default_rng(0)
    rows = []
    for index in SHOWN:
        within = [np.array([pair[index] for pair in pairs]) for pairs in same]
        between = {key: np.array([pair[index] for pair in pairs]) for key, pairs in other.items()}
        kinds = np.concatenate(within), np.concatenate(list(between.values()))
        whole = area(*kinds)
        drawn = []
        for _ in range(DRAWS):
            times = np.bincount(rng.integers(0, len(names), len(names)), minlength=len(names))
            alike = [values for k, values in enumerate(within) for _ in range(times[k])]
            unlike = [
                values for (i, j), values in between.items() for _ in range(times[i] * times[j])
            ]
            if unlike:
                drawn.append(area(np.concatenate(alike), np.concatenate(unlike)))
        low, high = np.quantile(drawn, [0.025, 0.975])
        spread = [np.quantile(values, [0.1, 0.5, 0.9]).tolist() for values in kinds]
        limits = {"low": float(low), "high": float(high)}
        rows.append({"index": index, "auc": whole, **limits, "spread": spread})
    counts = sum(map(len, same)), sum(map(len, other.values()))
    return sorted(rows, key=lambda row: -row["auc"]), counts


def area(alike: NDArray[Any], unlike: NDArray[Any]) -> float:
    """Return the probability that a pair of one photograph has the larger value (ties: half)."""
    ordered = np.sort(unlike)
    below = np.searchsorted(ordered, alike, "left") + np.searchsorted(ordered, alike, "right")
    return float(below.mean() / (2 * unlike.size))


def paper_pairs(photographs: dict[str, list[NDArray[Any]]]) -> tuple[int, int]:
    """Return the numbers of matched pairs that share no pixel, and of all matched pairs.

    Each pair of raters of one photograph is compared with the paper's rule.
    """
    apart = made = 0
    for people in photographs.values():
        for first, second in combinations(people, 2):
            groups = probdice.compare(first, second, match="paper").groups
            matched = [group for group in groups if group.reference and group.prediction]
            made += len(matched)
            apart += sum(group.dice == 0 for group in matched)
    return apart, made


def by_number(photographs: dict[str, list[NDArray[Any]]]) -> list[dict[str, Any]]:
    """Return the scores of one rater with the mean of others, over the same photographs."""
    most = 4
    large = [people for people in photographs.values() if len(people) > most]
    rows = []
    for count in range(1, most + 1):
        scores = []
        for people in large:
            for k, person in enumerate(people[:ASKED]):
                others = [other for j, other in enumerate(people) if j != k]
                # The other raters are taken in cyclic order, so that each is used equally often.
                chosen = [others[(k + step) % len(others)] for step in range(count)]
                mean = probdice.consensus(chosen).segmentation if count > 1 else chosen[0]
                result = probdice.compare(mean, person)
                explained = result.explained["prediction"]
                best = 1.0 if count == 1 else float(mean.probabilities().max(axis=0).mean())
                scores.append((result.score, explained, best))
        score, explained, best = np.mean(scores, axis=0).tolist()
        rows.append(
            {
                "others": count,
                "photographs": len(large),
                "score": score,
                "explained": explained,
                "best": best,
            }
        )
    return rows


if __name__ == "__main__":
    main()
