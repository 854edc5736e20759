"""The wheel works in a separate environment, from another folder."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import numpy as np
import pytest
from extras import require

require("build", "hatchling")

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """Build the sdist, and the wheel from it, without network access."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def installed(dist, tmp_path_factory):
    """A new environment with the wheel; it uses the dependencies of this environment.

    A .pth file adds the folder of these dependencies to the path. Python does not read the .pth
    files in that folder, so the editable installation of this environment is not imported.
    """
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder)
    (wheel,) = dist.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    install = ["install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run([*pip, *install], check=True, capture_output=True, env=plain())
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def plain():
    """The environment variables without paths to this checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def test_the_installed_wheel_is_imported(installed, tmp_path):
    code = "import probdice; print(probdice.__file__)"
    done = subprocess.run(
        [installed / "bin" / "python", "-c", code],
        cwd=tmp_path,
        env=plain(),
        check=True,
        capture_output=True,
        text=True,
    )
    assert Path(done.stdout.strip()).is_relative_to(installed)


def test_the_installed_command_compares_and_writes_a_page(installed, tmp_path):
    # Label maps need fewer kernels than `probdice demo`; all are compiled again for the wheel.
    np.save(tmp_path / "a.npy", np.array([[1, 1, 2, 2]], np.uint8))
    np.save(tmp_path / "b.npy", np.array([[1, 2, 2, 2]], np.uint8))
    done = subprocess.run(
        [installed / "bin" / "probdice", "compare", "a.npy", "b.npy", "--report", "page.html"],
        cwd=tmp_path,
        env=plain(),
        check=True,
        capture_output=True,
        text=True,
    )
    assert "score           0.7500" in done.stdout
    assert 'id="pixels"' in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_wheel_contains_only_the_package_and_its_data(dist):
    (wheel,) = dist.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"probdice"}
    assert {"probdice/py.typed", "probdice/report/assets/viewer.js"} <= set(names)
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*.*")
        if "__pycache__" not in path.parts and path.is_file()
    }
    assert sources <= set(names)


def test_the_sdist_contains_the_tests_and_the_documentation(dist):
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "docs/conf.py"} <= names
    assert "tests/test_distribution.py" in names


def test_the_metadata_is_complete(dist):
    (wheel,) = dist.glob("*.whl")
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(archive.read(name).decode())
    import probdice

    assert metadata["Version"] == probdice.__version__
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "make demo" in metadata.get_payload()
    assert len(metadata.get_all("Classifier")) > 5 and metadata.get_all("Project-URL")
