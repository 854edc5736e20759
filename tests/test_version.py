"""The package and its metadata have the same version."""

from importlib.metadata import version

import probdice


def test_the_package_and_its_metadata_agree():
    assert probdice.__version__ == version("probdice")
