"""Order test files, skip doctests of missing integrations except in CI, and set up napari."""

import os
from importlib.util import find_spec

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")  # widgets work without a screen

collect_ignore = []
if not os.environ.get("CI"):
    if not (find_spec("torch") and find_spec("torchmetrics")):
        collect_ignore.append("src/probdice/torch")
    if not (find_spec("torch") and find_spec("monai") and find_spec("ignite")):
        collect_ignore.append("src/probdice/monai.py")
    if not (find_spec("napari") and find_spec("qtpy")):
        collect_ignore.append("src/probdice/napari")

# Slow test files. They start in this order, so that no worker receives a slow file at the end. The
# first files compile different kernels, so that no kernel is compiled twice.
LONG = [
    *("test_boundaries", "test_browser", "test_cases", "test_clusters", "test_distribution"),
    *("test_paper_run", "test_torch_processes", "test_torch_loss", "test_torch"),
    *("test_napari_window", "test_portability", "test_evaluation_running", "test_browser_sheets"),
    *("test_cli_evaluate", "test_cli", "test_cli_compare", "test_report", "test_round_trips"),
    *("test_pictures", "test_fuzz", "test_engine_dask", "test_evaluation"),
    *("test_files_containment", "test_properties"),
]


def pytest_collection_modifyitems(items):
    places = {f"{name}.py": place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


def pytest_configure(config):
    if find_spec("napari"):  # napari uses deprecated names of pydantic
        warning = "pydantic.warnings.PydanticDeprecatedSince20"
        config.addinivalue_line("filterwarnings", f"ignore::{warning}")
