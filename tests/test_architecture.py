"""The rooms: who may import whom, what an import loads, and which names are public."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import probdice

SOURCE = Path(probdice.__file__).parent
TESTS = Path(__file__).parent

# From the ground up: a room imports only rooms that stand before it.
ROOMS = [
    "version",
    "errors",
    "escaping",
    "sides",
    "atomic_files",
    "formatting",
    "similarity",
    "geometry",
    "value_checks",
    "arrays",
    "region_labels",
    "segmentation",
    "overlaps",
    "assignment",
    "groups",
    "matching",
    "merging",
    "passes",
    "scoring",
    "chance",
    "explained",
    "options",
    "engine",
    "files",
    "inputs",
    "relabelling",
    "comparison",
    "notes",
    "comparison_json",
    "printing",
    "indices",
    "detection",
    "components",
    "calibration",
    "boundaries",
    "raters",
    "sample_sets",
    "statistics",
    "evaluation",
    "synthesis",
    "pictures",
    "report",
    "paper",
    "torch",
    "monai",
    "testing",
    "cli",
]
ENGINE = [
    "kernels",
    "similarity_kernels",
    "compiled",
    "definition",
    "grids",
    "decode",
    "blocks",
    "passes",
    "overlap_pass",
    "group_passes",
    "moment_passes",
    "sample_passes",
    "threads",
    "surfaces",
    "dask",
    "executors",
    "images",
    "several",
]

# Doors: an import inside a function of a room further down, when it is called.
DOORS = {
    ("overlaps", "comparison"),  # Overlap.compare
    ("arrays", "files"),  # chunks of Zarr are unpacked within bounds, whoever opened the array
    ("overlaps", "files"),  # Overlap.load reads an .npz as sceptically as others
    ("assignment", "engine"),  # large tables are compiled as kernels are
    ("comparison", "notes"),  # Comparison.notes, and the warning of compare
    ("comparison", "comparison_json"),  # Comparison.to_dict, from_dict
    ("comparison", "printing"),  # repr
    ("segmentation", "components"),  # Segmentation.components
    ("comparison", "indices"),  # Comparison.indices
    ("comparison", "detection"),  # Comparison.detection
    ("comparison", "components"),  # Comparison.component_scores
    ("comparison", "calibration"),  # Comparison.calibration
    ("comparison", "pictures"),  # Comparison.plot
    ("comparison", "report"),  # Comparison.report
    ("calibration", "pictures"),  # Calibration.plot
    ("raters", "pictures"),  # Agreement.plot, Consensus.plot
    ("raters", "report"),  # Consensus.report
    ("evaluation", "report"),  # Evaluation.report
    ("evaluation", "pictures"),  # Evaluation.plot
}


def modules():
    """Every module but the entrances, with its room."""
    for path in sorted(SOURCE.rglob("*.py")):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room not in ("__init__", "__main__"):
            yield path, room


def imports(path):
    """Every import that runs, as (dotted name, line, whether it is inside a function)."""
    tree = ast.parse(path.read_text())
    unused = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in unused:
            continue
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            if node.module in ("probdice", "probdice.engine"):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "probdice":
                yield name, node.lineno, node.col_offset > 0


def where(path, line, name):
    return f"{path.relative_to(SOURCE)}:{line} imports {name}"


def test_every_module_is_in_a_room():
    assert {room for _, room in modules()} == set(ROOMS)
    parts = {path.stem for path in (SOURCE / "engine").iterdir() if path.suffix == ".py"}
    assert parts - {"__init__"} | {"kernels"} == set(ENGINE)


def test_rooms_import_only_what_stands_before_them():
    wrong = []
    for path, room in modules():
        for name, line, inside in imports(path):
            other = name.split(".")[1] if "." in name else ""
            if other not in ROOMS or other == room:
                continue
            door = inside and (room, other) in DOORS
            if ROOMS.index(other) > ROOMS.index(room) and not door:
                wrong.append(where(path, line, name))
    assert wrong == []


def test_every_door_is_used():
    used = {
        (room, name.split(".")[1])
        for path, room in modules()
        for name, _, inside in imports(path)
        if inside and "." in name
    }
    assert used >= DOORS


def test_parts_of_the_engine_import_only_what_stands_before_them():
    wrong = []
    for path in (SOURCE / "engine").rglob("*.py"):
        part = path.relative_to(SOURCE / "engine").parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        for name, line, _ in imports(path):
            names = name.split(".")
            if names[1] != "engine" or names[2] == part:
                continue
            if ENGINE.index(names[2]) > ENGINE.index(part):
                wrong.append(where(path, line, name))
    assert wrong == []


def test_kernels_and_errors_import_nothing_of_ours():
    for path in [SOURCE / "errors.py", *(SOURCE / "engine" / "kernels").glob("*.py")]:
        for name, line, _ in imports(path):
            assert name.startswith("probdice.engine.kernels"), where(path, line, name)


def test_nobody_imports_the_root_nor_the_command_line():
    wrong = []
    for path, room in modules():
        for name, line, _ in imports(path):
            parts = name.split(".")
            if len(parts) < 2 or parts[1] not in ROOMS or (parts[1] == "cli" and room != "cli"):
                wrong.append(where(path, line, name))
    assert wrong == []


@pytest.mark.parametrize("room", [*ROOMS, *(f"engine_{part}" for part in ENGINE)])
def test_every_room_has_its_tests(room):
    if room in ("engine", "passes") or room.startswith("engine_"):
        pytest.skip("its parts are tested by test_engine_*.py and test_testing.py")
    found = [*TESTS.glob(f"test_{room}.py"), *TESTS.glob(f"test_{room}_*.py")]
    assert found, f"no tests/test_{room}.py"


def test_no_relative_imports_and_no_utils():
    for path in SOURCE.rglob("*.py"):
        assert "util" not in path.stem
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.ImportFrom) and node.level)


def test_importing_is_light():
    heavy = [
        "numba",
        "scipy.optimize",
        "scipy.stats",
        "matplotlib",
        "pandas",
        "jinja2",
        "nibabel",
        "SimpleITK",
        "h5py",
        "highdicom",
        "pydicom",
        "skimage",
        "tifffile",
        "PIL",
        "typer",
        "rich",
        "dask",
        "distributed",
        "zarr",
        "fsspec",
        "torch",
    ]
    code = f"import sys, probdice; print([name for name in {heavy} if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_public_names_are_sorted_and_documented():
    names = probdice.__all__
    assert names == sorted(names)
    for name in names:
        assert ">>>" in (getattr(probdice, name).__doc__ or ""), f"{name} has no example"


def test_public_names_are_these():
    assert probdice.__all__ == [
        "Absolute",
        "Agreement",
        "Aitchison",
        "Comparison",
        "Consensus",
        "Evaluation",
        "FormatError",
        "Geometry",
        "GeometryError",
        "Group",
        "InputError",
        "Merge",
        "MissingExtraError",
        "Note",
        "Overlap",
        "ProbdiceError",
        "ProbdiceWarning",
        "Segmentation",
        "SetComparison",
        "Similarity",
        "TooLargeError",
        "agreement",
        "aitchison_distance",
        "classical_dice",
        "compare",
        "compare_sets",
        "consensus",
        "evaluate",
        "overlap",
        "read",
        "similarity_map",
        "write",
    ]
    assert dir(probdice) == sorted([*probdice.__all__, "__version__"])
