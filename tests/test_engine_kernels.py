"""Compiled kernels: their results for rows of values, and the cache of their machine code."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numba
import numpy as np
import pytest

import probdice
from probdice import Absolute, Aitchison
from probdice.engine import kernels

SOURCE = Path(probdice.__file__).parent

# A kernel of one line is compiled ten times as fast as those of a comparison.
DOUBLING = """
from probdice.compiler.jit import kernel, watch_compiler

@kernel
def double(number):
    return 2 * number

compilations = []
watch_compiler(lambda: compilations.append(1), lambda: None)
print(double(2.5), len(compilations))
"""


def run(code, source, cache, **options):
    """Run code in a process; Numba caches only functions that are in a file."""
    script = cache / "script.py"
    cache.mkdir(exist_ok=True)
    if not script.exists() or script.read_text() != code:
        script.write_text(code)
    environment = os.environ | {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, **options
    )


@pytest.fixture
def cache(tmp_path):
    """A folder with the compiled code of DOUBLING."""
    out = run(DOUBLING, SOURCE.parent, tmp_path / "cache")
    assert out.stdout == "5.0 1\n", out.stderr
    assert list((tmp_path / "cache").rglob("*.nbc"))
    return tmp_path / "cache"


def test_compiled_code_is_used_again(cache):
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*.nb*")}
    out = run(DOUBLING, SOURCE.parent, cache)
    assert out.stdout == "5.0 0\n", out.stderr
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.nb*")} == before


def test_a_change_of_any_kernel_source_compiles_anew(tmp_path):
    """Numba itself checks only the file of the called kernel."""
    shutil.copytree(SOURCE, tmp_path / "src" / "probdice")
    cache = tmp_path / "cache"
    code = textwrap.dedent("""
        import numpy as np
        from probdice.engine import kernels
        p = np.array([[0.75, 0.25], [0.25, 0.75]])
        differences, f = np.zeros(1), np.empty(2)
        starts, members = np.array([0, 2]), np.array([0, 1])
        kernels.absolute.pixels(p, 0, starts, members, p[:1] * 0, 0, np.array([0, 1]),
                                np.array([0]), 2, differences, f)
        print(differences[0])
    """)
    assert run(code, tmp_path / "src", cache, check=True).stdout.strip() == "2.0"
    rows = tmp_path / "src" / "probdice" / "engine" / "kernels" / "rows.py"
    text = rows.read_text()
    assert text.count("            joined[k] += row[k]\n") == 1
    rows.write_text(text.replace("joined[k] += row[k]", "joined[k] += row[k] * 2"))
    assert run(code, tmp_path / "src", cache, check=True).stdout.strip() == "4.0"
    rows.write_text(text)
    assert run(code, tmp_path / "src", cache, check=True).stdout.strip() == "2.0"


@pytest.mark.parametrize(
    ("suffix", "content"),
    [(".nbc", "half"), (".nbi", "half"), (".nbi", "empty"), (".nbc", "other")],
)
def test_corrupt_compiled_code_is_compiled_again(cache, suffix, content):
    (path,) = cache.rglob(f"*{suffix}")
    whole = path.read_bytes()
    changed = {"empty": b"", "half": whole[: len(whole) // 2], "other": b"x" * 100}
    path.write_bytes(changed[content])
    out = run(DOUBLING, SOURCE.parent, cache)
    assert out.stdout == "5.0 1\n", out.stderr


def test_kernels_are_compiled_without_a_cache_if_the_disk_is_full(tmp_path):
    code = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    )
    if sys.platform == "win32":
        pytest.skip("this system has no limit on the size of files")
    out = run(code + DOUBLING, SOURCE.parent, tmp_path)
    assert out.stdout == "5.0 1\n", out.stderr
    assert not list(tmp_path.rglob("*.nbc"))


def test_kernels_are_compiled_without_a_cache_if_no_folder_is_writable(tmp_path):
    code = """
        import numba.core.caching as caching
        def no_folder(*args, **kwargs):
            raise RuntimeError("cannot cache function: no locator available")
        caching.FunctionCache.__init__ = no_folder
    """
    out = run(textwrap.dedent(code) + DOUBLING, SOURCE.parent, tmp_path)
    assert out.stdout == "5.0 1\n", out.stderr


@pytest.mark.parametrize(
    ("change", "compilations"),
    [
        ("del caching.FunctionCache", 1),
        ("caching.FunctionCache.__init__ = lambda self, function: None", 1),  # no _cache_file
        (
            "caching.IndexDataCacheFile.__slots__ = ()\n"
            "caching.IndexDataCacheFile.__init__ = lambda self, *a, **k: None",  # no _source_stamp
            1,
        ),
        ("del numba.core.event; sys.modules['numba.core.event'] = None", 0),
    ],
)
def test_kernels_work_without_the_private_parts_of_numba(tmp_path, change, compilations):
    """Compiled code is not stored on disk, or compiling is not reported."""
    code = "import sys, numba, numba.core.event, numba.experimental.function_type\n"
    code += f"import numba.core.caching as caching\n{change}\n"
    out = run(code + DOUBLING, SOURCE.parent, tmp_path)
    assert out.stdout == f"5.0 {compilations}\n", out.stderr


# Results ---------------------------------------------------------------------------------------


def soft(regions, pixels, seed, dtype):
    p = np.random.default_rng(seed).dirichlet(np.ones(regions), pixels).T
    return np.ascontiguousarray(p.astype(dtype))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("regions", "pixels"), [((3, 2), 10), ((1, 9), 5000), ((5, 4), 4096)])
def test_absolute_pairs_are_sums_of_minima(dtype, regions, pixels):
    p, q = soft(regions[0], pixels, 0, dtype), soft(regions[1], pixels, 1, dtype)
    volumes = np.zeros(regions[0]), np.zeros(regions[1])
    likeliest = np.zeros(regions[0], int), np.zeros(regions[1], int)
    savings = np.zeros(regions)
    sums = *volumes, *likeliest, savings
    assert kernels.absolute.pairs(p, 0, q, 0, pixels, *sums) == (True, True)
    tolerance = {"f4": 1e-6, "f8": 1e-12}[dtype] * pixels
    expected = np.minimum(p[:, None].astype("f8"), q[None].astype("f8")).sum(-1)
    np.testing.assert_allclose(savings, expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(volumes[0], p.sum(1, dtype="f8"), rtol=0, atol=tolerance)


def likeliest_by_hand(p):
    """At how many pixels each row is within 1e-6 of the largest value."""
    p = p.astype("f8")
    return (p.max(axis=0) - p <= 1e-6).sum(axis=1)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("regions", [(3, 2), (1, 9), (5, 4)])
def test_pixels_at_which_a_region_is_the_likeliest_are_counted(dtype, regions):
    pixels = 5000
    p, q = soft(regions[0], pixels, 0, dtype), soft(regions[1], pixels, 1, dtype)
    p[:, 3], q[:, 3] = 1 / regions[0], 1 / regions[1]  # a tie of all
    p[0, 4] = q[0, 4] = p[:, 4].max() - 5e-7
    expected = (*map(likeliest_by_hand, (p, q)),)
    for pairs, extra in (
        (kernels.absolute.pairs, ()),
        (kernels.aitchison.pairs, (np.zeros(regions[0]), np.zeros(regions[1]))),
    ):
        floor = (0.0,) if extra else ()
        volumes = np.zeros(regions[0]), np.zeros(regions[1])
        counts = np.zeros(regions[0], int), np.zeros(regions[1], int)
        pairs(p, 0, q, 0, pixels, *floor, *volumes, *counts, *extra, np.zeros(regions))
        assert counts[0].tolist() == expected[0].tolist()
        assert counts[1].tolist() == expected[1].tolist()


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.1, 0.9])
def test_suspicious_values_are_reported(value):
    p, q = soft(3, 5000, 0, "f4"), soft(2, 5000, 1, "f4")
    q[1, 4999] = value
    volumes = np.zeros(3), np.zeros(2)
    sums = *volumes, np.zeros(3, int), np.zeros(2, int)
    assert kernels.absolute.pairs(p, 0, q, 0, 5000, *sums, np.zeros((3, 2))) == (True, False)
    assert kernels.aitchison.pairs(
        p, 0, q, 0, 5000, 0.0, *sums, np.zeros(3), np.zeros(2), np.zeros((3, 2))
    ) == (True, False)


@pytest.mark.parametrize("similarity", [Absolute(), Aitchison(), Aitchison(0.01)])
def test_pixels_give_f_between_groups(similarity):
    p, q = soft(4, 5000, 0, "f8"), soft(3, 5000, 1, "f8")
    starts = np.array([0, 2, 3, 4]), np.array([0, 1, 3, 3])
    members = np.array([0, 2, 1, 3]), np.array([1, 0, 2])
    both = p, 0, starts[0], members[0], q, 0, starts[1], members[1], 5000
    differences, f = np.zeros(3), np.empty(5000)
    if isinstance(similarity, Aitchison):
        kernels.aitchison.pixels(*both, similarity.floor, differences, f)
    else:
        kernels.absolute.pixels(*both, differences, f)
    a = np.stack([p[0] + p[2], p[1], p[3]])
    b = np.stack([q[1], q[0] + q[2], np.zeros(5000)])
    np.testing.assert_allclose(f, similarity(a, b), rtol=0, atol=1e-12)
    np.testing.assert_allclose(differences, np.abs(a - b).sum(1), rtol=1e-12)


def test_labels_are_encoded_in_any_number():
    values = np.random.default_rng(0).integers(0, 2**63, 3000).astype(np.uint64)
    codes = np.empty(values.size, np.int32)
    few = np.empty(100, np.uint64)
    assert kernels.labels.encode(values, np.full(512, -1, np.int32), few, codes) == -1
    labels = np.empty(4096, np.uint64)
    count = kernels.labels.encode(values, np.full(16384, -1, np.int32), labels, codes)
    assert count == np.unique(values).size
    assert np.array_equal(labels[codes], values)


def test_the_watcher_is_called_when_a_kernel_is_compiled() -> None:
    seen: list[str] = []
    kernels.watch_compiler(lambda: seen.append("began"), lambda: seen.append("ended"))
    double = numba.njit(lambda x: 2 * x)
    assert double(2) == 4
    assert seen == ["began", "ended"]
    assert double(3) == 6  # compiled by now
    assert seen == ["began", "ended"]
