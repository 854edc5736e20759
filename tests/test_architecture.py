"""Which package may import which, what an import loads, and which names are public."""

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

import probdice

SOURCE = Path(probdice.__file__).parent
TESTS = Path(__file__).parent

# A package or module imports only those before it.
PACKAGES = [
    "version",
    "errors",
    "compiler",
    "text",
    "method",
    "data",
    "options",
    "files",
    "engine",
    "metrics",
    "pictures",
    "report",
    "comparison",
    "raters",
    "evaluation",
    "synthesis",
    "paper",
    "torch",
    "monai",
    "napari",
    "testing",
    "cli",
]
TOP_LEVEL_MODULES = {"__init__", "__main__", "errors", "monai", "version"}
ENGINE = [
    "kernels",
    "alignment",
    "similarity_kernels",
    "numpy_kernels",
    "compiled",
    "grids",
    "decode",
    "blocks",
    "passes",
    "overlap_pass",
    "group_passes",
    "moment_passes",
    "sample_passes",
    "threads",
    "surface_pass",
    "dask_schedulers",
    "dask_graphs",
    "dask",
    "executors",
    "pair",
    "surface_distances",
    "several",
]

# Imports of a later package, which are allowed only inside functions.
EXEMPTED = {
    ("method", "comparison"),  # Overlap.compare
    ("method", "files"),  # Overlap.save and load write and read like other files
    ("data", "files"),  # limits the decompressed size of Zarr chunks in arrays that the user opened
    ("data", "metrics"),  # Segmentation.components
    ("metrics", "pictures"),  # Calibration.plot
    ("pictures", "evaluation"),  # summaries in pictures of an evaluation
}


def modules():
    """Every module except the entry points, with its package."""
    for path in sorted(SOURCE.rglob("*.py")):
        package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if package not in ("__init__", "__main__"):
            yield path, package


@cache
def imports(path):
    """Every import that runs, as (dotted name, line, whether it is inside a function)."""
    imported = []
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
                imported.append((name, node.lineno, node.col_offset > 0))
    return imported


def where(path, line, name):
    return f"{path.relative_to(SOURCE)}:{line} imports {name}"


def test_every_module_is_in_a_package():
    assert {package for _, package in modules()} == set(PACKAGES)
    assert {path.stem for path in SOURCE.glob("*.py")} == TOP_LEVEL_MODULES
    parts = {path.stem for path in (SOURCE / "engine").iterdir() if path.suffix == ".py"}
    assert parts - {"__init__"} | {"kernels"} == set(ENGINE)


def test_no_two_modules_share_a_name():
    names = Counter(path.stem for path, _ in modules() if path.stem != "__init__")
    assert [name for name, count in names.items() if count > 1] == []


def test_no_two_classes_share_a_name():
    names = Counter(
        node.name
        for path, _ in modules()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_every_package_has_a_purpose_in_one_sentence():
    for path in SOURCE.rglob("__init__.py"):
        first = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0]
        assert first.endswith("."), f"{path.relative_to(SOURCE)}: {first!r}"


def test_packages_import_only_those_before_them():
    wrong = []
    for path, package in modules():
        for name, line, inside in imports(path):
            other = name.split(".")[1] if "." in name else ""
            if other not in PACKAGES or other == package:
                continue
            exempted = inside and (package, other) in EXEMPTED
            if PACKAGES.index(other) > PACKAGES.index(package) and not exempted:
                wrong.append(where(path, line, name))
    assert wrong == []


def test_every_exemption_is_used():
    used = {
        (package, name.split(".")[1])
        for path, package in modules()
        for name, _, inside in imports(path)
        if inside and "." in name
    }
    assert used >= EXEMPTED
    assert len(EXEMPTED) <= 6


def test_parts_of_the_engine_import_only_those_before_them():
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


def test_kernels_and_errors_import_only_kernels_and_the_compiler():
    allowed = "probdice.engine.kernels", "probdice.compiler"
    for path in [SOURCE / "errors.py", *(SOURCE / "engine" / "kernels").glob("*.py")]:
        for name, line, _ in imports(path):
            assert name.startswith(allowed), where(path, line, name)


def test_the_method_imports_nothing_but_errors_and_compiled_loops():
    allowed = {"method", "errors", "compiler", "text"}
    for path in (SOURCE / "method").glob("*.py"):
        for name, line, inside in imports(path):
            other = name.split(".")[1]
            assert other in allowed or (inside and ("method", other) in EXEMPTED), where(
                path, line, name
            )


def test_nothing_imports_the_package_root_or_the_command_line():
    wrong = []
    for path, package in modules():
        for name, line, _ in imports(path):
            parts = name.split(".")
            if (
                len(parts) < 2
                or parts[1] not in PACKAGES
                or (parts[1] == "cli" and package != "cli")
            ):
                wrong.append(where(path, line, name))
    assert wrong == []


SIMILARITIES = {"Absolute", "Aitchison", "Similarity"}


def test_only_its_own_module_checks_the_class_of_a_similarity():
    wrong = []
    for path, _ in modules():
        if path.name == "similarity.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                names = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
                if names & SIMILARITIES:
                    wrong.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert wrong == []


# Private names of the standard library and of Numba, the latter behind a fallback.
FOREIGN = {"_exit", "_replace", "_cache_file", "_cache", "_source_stamp"}


def test_no_module_uses_private_names_of_another():
    wrong = []
    for path, _ in modules():
        tree = ast.parse(path.read_text())
        own = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                own.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                own.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own.add(node.id)
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                names = [node.attr]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("probdice"):
                names = [alias.name for alias in node.names]
            for name in names:
                private = name.startswith("_") and not name.endswith("__")
                if (private and name not in own | FOREIGN) or name == "__dict__":
                    wrong.append(f"{path.relative_to(SOURCE)}:{node.lineno} uses {name}")
    allowed = {"method/similarity.py"}  # examines the subclasses of Similarity
    assert [line for line in wrong if line.split(":")[0] not in allowed] == []


def test_every_package_has_tests():
    for package in PACKAGES:
        prefix = "cli" if package == "cli" else package
        paths = [path for path in TESTS.rglob("test_*.py")]
        assert any(f"probdice.{package}" in path.read_text() for path in paths) or any(
            path.stem.startswith(f"test_{prefix}") for path in paths
        ), f"no test of {package}"


def test_no_relative_imports_and_no_utils():
    for path in SOURCE.rglob("*.py"):
        assert "util" not in path.stem
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.ImportFrom) and node.level)


def modules_passed(call):
    """The modules of the package whose functions a call runs; compiled loops are not included."""
    passed = set()

    def note(frame, event, _):
        name = frame.f_globals.get("__name__") or ""
        written = frame.f_code.co_filename.startswith(str(SOURCE))  # not generated by dataclass
        if event == "call" and written and name.startswith("probdice."):
            passed.add(name.removeprefix("probdice."))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return sorted(passed)


def test_a_comparison_of_two_arrays_passes_twelve_modules():
    rng = np.random.default_rng(0)
    reference, prediction = rng.integers(0, 5, (2, 64, 64))

    def compare():
        return probdice.compare(reference, prediction).score

    compare()  # imports and compiles
    assert modules_passed(compare) == [
        "comparison.comparing",
        "comparison.result",
        "data.segmentation",
        "engine.blocks",
        "engine.executors",
        "engine.overlap_pass",
        "engine.pair",
        "files.inputs",
        "method.assignment",
        "method.matching",
        "method.overlap",
        "method.scoring",
    ]


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
        "napari",
        "qtpy",
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
        "VertexSpace",
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
