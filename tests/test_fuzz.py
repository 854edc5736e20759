"""Short runs of `make fuzz`, `make torture` and `make kills`."""

import locale
from math import inf
from pathlib import Path

import pytest
import SimpleITK  # noqa: F401  # the memory of the library does not count for a file
from fuzz import torture
from fuzz.checks import Found, score_of_the_groups
from fuzz.child import Child, by_number
from fuzz.corpus import Seed
from fuzz.execution import executed, lines_of
from fuzz.kills import Disturber, Goal
from fuzz.random_cases import Case, case_of
from fuzz.targets import TARGETS

pytestmark = pytest.mark.usefixtures("short_time_limit")

REGRESSIONS = Path(__file__).parents[1] / "fuzz" / "regressions"
MUTANTS = {"dicom": 40, "journal": 60, "child": 4}  # fewer for slow targets
REFUSED = {"png": 3, "bmp": 1, "nrrd": 1, "dicom": 1}  # colour images, overlapping segments


@pytest.mark.parametrize("target", TARGETS)
def test_the_modules_of_a_target_exist(target: str) -> None:
    assert lines_of(TARGETS[target].modules)


@pytest.mark.parametrize("target", TARGETS)
def test_valid_files_are_read_and_mutants_are_rejected_by_name(target: str, tmp_path: Path) -> None:
    before = locale.setlocale(locale.LC_ALL)
    child = Child(target, tmp_path)
    mutants = MUTANTS.get(target, 150)
    by_number(child, seed=0, start=0, stop=mutants)
    faults = tmp_path / "faults.jsonl"
    assert not faults.exists(), faults.read_text()
    assert locale.setlocale(locale.LC_ALL) == before  # ITK may change it
    assert child.counts["executions"] == mutants
    if target != "child":  # its readers misbehave on purpose
        every = len(child.seeds)
        assert child.refused == REFUSED.get(target, every if target == "unsupported" else 0)


@pytest.mark.parametrize(
    "file",
    sorted(str(file.relative_to(REGRESSIONS)) for file in REGRESSIONS.rglob("*") if file.is_file()),
)
def test_regression_files_cause_no_fault(file: str, tmp_path: Path) -> None:
    target, _, name = file.partition("/")
    part = name.partition("-")[2]  # of a store where it is in a folder
    seed = Seed(part.partition("/")[0], (REGRESSIONS / file).read_bytes(), part=part)
    (tmp_path / part).parent.mkdir(exist_ok=True)
    # The first execution imports libraries, whose memory would be a fault.
    _, run = (executed(TARGETS[target], seed, seed.content, tmp_path) for _ in range(2))
    assert run.faults == ()


def test_random_comparisons_agree_with_the_reference_implementation() -> None:
    for number in range(80):
        case = case_of(0, number)
        check = torture.CHECKS[number % len(torture.CHECKS)]
        for chosen in (check, score_of_the_groups):
            failure = torture.failure_of(case, chosen)
            assert failure is None, f"{chosen.__name__}\n{case.shown()}\n{failure}"


def test_a_failing_case_is_reduced_to_the_relevant_pixel() -> None:
    def no_label_three(case: Case) -> Found:
        yield float((case.reference == 3).any()), 0.0, 0

    case = next(
        case
        for case in (case_of(0, number) for number in range(1000))
        if case.reference.dtype.kind == "u" and (case.reference == 3).any()
    )
    small = torture.shrunk(case, no_label_three)
    assert small.reference.reshape(-1).tolist() == [3]
    assert (small.mask, small.merge, small.workers, small.similarity) == (
        None,
        "none",
        1,
        "absolute",
    )


def test_killed_runs_and_full_disks_lose_no_results(tmp_path: Path) -> None:
    disturber = Disturber(tmp_path, seed=0)
    disturber.go_on(Goal(kills=2, full_disks=2, deadline=inf, disturbers=[disturber]))
    assert disturber.faults == []
    assert disturber.counts["full disks"] >= 2
    assert disturber.counts["kills of the run"] + disturber.counts["kills of a worker"] >= 2
    assert disturber.counts["runs to the end"] >= 1
