"""The rooms: who may import whom, what an import loads, and which names are public."""

import ast
import subprocess
import sys
from pathlib import Path

import probdice

SOURCE = Path(probdice.__file__).parent

# From the ground up: a room imports only rooms that stand before it.
ROOMS = [
    "errors",
    "similarity",
    "kernels",
    "tally",
    "geometry",
    "segmentation",
    "faults",
    "slabs",
    "tallying",
    "blocks",
    "matching",
    "merging",
    "solution",
    "relabelling",
    "result",
    "comparison",
    "files",
    "statistics",
    "evaluation",
    "synthesis",
    "pictures",
    "report",
    "paper",
    "cli",
]
# Doors: one line in a method that imports a room further down when it is called.
DOORS = {("result", "pictures"), ("result", "report"), ("evaluation", "report")}


def room_of(path):
    part = path.relative_to(SOURCE).parts[0]
    return part.removesuffix(".py")


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module]
            if node.module == "probdice":
                names = [f"probdice.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "probdice" and len(parts) > 1 and parts[1] in ROOMS:
                yield parts[1], node


def test_every_module_is_in_a_room():
    rooms = {room_of(path) for path in SOURCE.rglob("*.py")}
    assert rooms - {"__init__", "__main__"} == set(ROOMS)


def test_rooms_import_only_what_stands_before_them():
    wrong = []
    for path in SOURCE.rglob("*.py"):
        room = room_of(path)
        if room in ("__init__", "__main__"):
            continue
        for other, node in imported_rooms(path):
            allowed = other == room or ROOMS.index(other) < ROOMS.index(room)
            if not allowed and ((room, other) not in DOORS or node.col_offset == 0):
                wrong.append(f"{path.relative_to(SOURCE)}:{node.lineno} imports {other}")
    assert wrong == []


def test_kernels_and_errors_import_nothing_of_ours():
    for room in ("kernels", "errors"):
        paths = [SOURCE / f"{room}.py"] if (SOURCE / f"{room}.py").exists() else []
        for path in [*paths, *(SOURCE / room).rglob("*.py")]:
            assert {other for other, _ in imported_rooms(path)} <= {room}


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
        "zarr",
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
    assert {
        "Absolute",
        "Aitchison",
        "Comparison",
        "Geometry",
        "Group",
        "Merge",
        "ProbdiceError",
        "ProbdiceWarning",
        "Segmentation",
        "aitchison_distance",
        "classical_dice",
        "compare",
        "read",
        "similarity_map",
        "write",
    } <= set(probdice.__all__)
