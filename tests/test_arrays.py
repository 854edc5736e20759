"""Conversion of arrays of other libraries to NumPy."""

import subprocess
import sys

import numpy as np
import pytest

from probdice import InputError, Segmentation, compare
from probdice.data.arrays import as_array, has_type, region_dimension, type_named

ROWS = np.array([[0.25, 0.5, 1.0], [0.75, 0.5, 0.0]], np.float32)  # exact in bfloat16


def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


def jax_numpy():
    return pytest.importorskip("jax.numpy", reason="JAX is not installed")


def xarray():
    return pytest.importorskip("xarray", reason="xarray is not installed")


class Exchanged:
    """An array that supports only DLPack."""

    def __init__(self, array, *, elsewhere=False):
        self.array, self.elsewhere = array, elsewhere

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if self.elsewhere and not copy:
            raise BufferError("lies on another device")
        return self.array.__dlpack__(copy=True) if copy else self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Copying:
    """An array on another device that must be copied to host memory, like a CuPy array."""

    __module__ = "cupy"

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def get(self):
        return self.array


def test_numpy_arrays_are_not_copied():
    for array in (ROWS, ROWS[:, ::2], np.asfortranarray(ROWS)):
        assert as_array(array) is array


def test_numbers_and_lists_become_arrays():
    assert as_array(3).shape == ()
    assert as_array([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert as_array(range(3)).tolist() == [0, 1, 2]


COPIES = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0",
    reason="before NumPy 2.1, arrays of other devices cannot be copied",
)


@pytest.mark.parametrize("elsewhere", [False, pytest.param(True, marks=COPIES)])
def test_arrays_with_dlpack_are_converted(elsewhere):
    assert np.array_equal(as_array(Exchanged(ROWS, elsewhere=elsewhere)), ROWS)


def test_an_array_on_another_device_is_fetched():
    assert as_array(Copying(ROWS)) is ROWS


def test_a_column_of_pandas_is_its_values():
    pandas = pytest.importorskip("pandas")
    assert compare(pandas.Series([1, 1, 2], index=[5, 7, 9]), [1, 1, 2]).score == 1


def test_tensors_are_detached_and_widened():
    library = torch()
    tensor = library.tensor(ROWS)
    for value in (tensor, tensor.clone().requires_grad_(), tensor.bfloat16(), tensor.to_sparse()):
        array = as_array(value)
        assert isinstance(array, np.ndarray) and array.dtype == np.float32
        assert np.array_equal(array, ROWS)
    with pytest.raises(InputError, match=r"tensor of torch.float32 on meta .* cannot be read"):
        as_array(library.empty(2, device="meta"))


def test_jax_arrays_are_fetched_and_widened():
    jnp = jax_numpy()
    for value in (jnp.asarray(ROWS), jnp.asarray(ROWS).astype(jnp.bfloat16)):
        array = as_array(value)
        assert isinstance(array, np.ndarray) and array.dtype == np.float32
        assert np.array_equal(array, ROWS)


@pytest.mark.parametrize("name", ["region", "class", "label", "channel", "Classes", "channels"])
def test_a_dimension_of_regions_is_their_axis(name):
    array = xarray().DataArray(ROWS.T, dims=("x", name), coords={name: ["grey", "white"]})
    assert region_dimension(array) == (1, ("grey", "white"))
    for segmentation in (
        Segmentation.from_probabilities(array),
        Segmentation.from_logits(array),
    ):
        assert segmentation.regions == ("grey", "white")
        assert segmentation.shape == (3,)
    assert Segmentation.from_probabilities(array, names=["a", "b"]).regions == ("a", "b")
    with pytest.raises(InputError, match=r"one of which is the region axis. Use from_prob"):
        Segmentation.from_labels(array)


def test_dimensions_without_names_for_regions_are_axes():
    library = xarray()
    array = library.DataArray(ROWS, dims=("a", "b"))
    assert region_dimension(array) is None
    assert as_array(array) is ROWS
    unnamed = library.DataArray(ROWS, dims=("class", "x"))
    assert region_dimension(unnamed) == (0, None)
    numbered = library.DataArray(ROWS, dims=("class", "x"), coords={"class": [3.0, 4.0]})
    assert region_dimension(numbered) == (0, (3, 4))
    several = library.DataArray(ROWS, dims=("class", "label"))
    with pytest.raises(InputError, match="dimensions could be the region axis: class, label"):
        region_dimension(several)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a.nii.gz", r"expected an array, found a path, 'a.nii.gz'. Read the file first"),
        (object(), "must be an array of numbers, found object"),
        ([object()], "must be an array of numbers, found a list of object"),
        ({"a": 1}, "must be an array of numbers, found dict"),
        ([[1], [2, 3]], "must be an array with rows of equal length"),
        (np.ma.masked_array([1, 2], [True, False]), "is a NumPy masked array"),
    ],
)
def test_values_that_are_not_arrays_are_rejected_by_name(value, message):
    with pytest.raises(InputError, match=message):
        as_array(value)


def test_images_of_other_libraries_are_rejected_with_a_hint_to_use_read():
    nibabel = pytest.importorskip("nibabel")
    image = nibabel.Nifti1Image(np.zeros((2, 2, 2), np.uint8), np.eye(4))
    with pytest.raises(InputError, match=r"found nibabel.Nifti1Image, .* probdice.read\(image\)"):
        Segmentation.from_labels(image)


def test_a_type_is_recognised_by_its_name_or_that_of_a_base_class():
    assert type_named(3) == "int"
    assert type_named(Copying(ROWS)) == "cupy.Copying"
    assert has_type(Copying(ROWS), "cupy", "Copying")
    assert not has_type(ROWS, "torch", "Tensor")


def test_no_library_is_imported_to_recognise_one():
    code = (
        "import sys, numpy, probdice; probdice.compare([1, 2], numpy.array([1, 2]));"
        "print([name for name in ('torch', 'jax', 'xarray', 'nibabel', 'SimpleITK', 'pandas')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
