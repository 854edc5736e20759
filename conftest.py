"""Skip the doctests of integrations that are not installed, except in CI; set up napari."""

import os
from importlib.util import find_spec

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")  # widgets need no screen

collect_ignore = []
if not os.environ.get("CI"):
    if not (find_spec("torch") and find_spec("torchmetrics")):
        collect_ignore.append("src/probdice/torch")
    if not (find_spec("torch") and find_spec("monai") and find_spec("ignite")):
        collect_ignore.append("src/probdice/monai.py")
    if not (find_spec("napari") and find_spec("qtpy")):
        collect_ignore.append("src/probdice/napari")


def pytest_configure(config):
    if find_spec("napari"):  # it uses deprecated names of pydantic
        warning = "pydantic.warnings.PydanticDeprecatedSince20"
        config.addinivalue_line("filterwarnings", f"ignore::{warning}")
