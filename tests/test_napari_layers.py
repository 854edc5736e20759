"""Layers become segmentations with geometry, and comparisons become layers and places."""

from itertools import product

import numpy as np
import pytest
from extras import require

require("napari", "qtpy", "zarr")

import dask.array
import zarr
from napari.layers import Image, Labels, Layer

from probdice import GeometryError, InputError, Segmentation, compare
from probdice.method.sides import Both
from probdice.napari.group_places import group_places
from probdice.napari.layer_comparison import Cancelled, ComparedLayers, Steps
from probdice.napari.layer_input import LayerGrid, segmentations_of
from probdice.napari.sample_data import demo_layers
from probdice.options import CompareOptions

QUIET = Steps(show=lambda *_: None, cancelled=lambda: False)


def outcome_of(reference, prediction, **options):
    """Compare two layers as the widget does."""
    return compared_layers(reference, prediction).compare(CompareOptions.of(**options), QUIET)


def compared_layers(reference, prediction):
    return ComparedLayers(
        segmentations_of(reference, prediction),
        Both(reference.name, prediction.name),
        LayerGrid.of(reference),
        reference.colormap if isinstance(reference, Labels) else None,
    )


def created(outcome):
    """The new layers by name."""
    layers = [Layer.create(*layer_data) for layer_data in outcome.layers]
    return {layer.name: layer for layer in layers}


# -- input ---------------------------------------------------------------------------------------


def test_scale_translate_and_affine_become_the_geometry():
    affine = np.array([[1, 0, 0, 5], [0, 0, 1, 6], [0, 1, 0, 7], [0, 0, 0, 1.0]])
    layer = Labels(np.zeros((2, 3, 4), int), scale=(2, 3, 4), translate=(10, 20, 30), affine=affine)
    geometry = segmentations_of(layer, layer).reference.geometry
    # Pixel (i, j, k) is at (2i + 10, 3j + 20, 4k + 30); the affine exchanges the last two axes.
    assert geometry.affine.tolist() == [
        [2, 0, 0, 15],
        [0, 0, 4, 36],
        [0, 3, 0, 27],
        [0, 0, 0, 1],
    ]


def test_the_region_axis_of_an_image_has_no_geometry():
    stack = Image(np.full((2, 3, 4), 0.5, np.float32), scale=(9, 2, 5), translate=(7, 1, 0))
    geometry = segmentations_of(stack, stack).prediction.geometry
    assert geometry.shape == (3, 4)
    assert geometry.affine.tolist() == [[2, 0, 1], [0, 5, 0], [0, 0, 1]]


def test_units_are_converted_to_millimetres():
    layer = Labels(np.zeros((3, 4), int), scale=(2, 500), units=("mm", "um"))
    assert segmentations_of(layer, layer).reference.geometry.spacing == (2.0, 0.5)


def test_layers_without_scale_and_units_have_no_geometry():
    layer, scaled = Labels(np.zeros((3, 4), int)), Labels(np.zeros((3, 4), int), scale=(2, 2))
    assert segmentations_of(layer, layer).reference.geometry is None
    assert segmentations_of(layer, scaled).reference.geometry.spacing == (1.0, 1.0)
    with pytest.raises(GeometryError, match="do not lie on the same grid"):
        compare(*segmentations_of(layer, scaled))


def test_names_of_regions_are_in_the_metadata():
    labels = Labels(np.array([[1, 2]]), metadata={"names": {1: "cell", 2: "wall"}})
    stack = Image(
        np.array([[[0.9, 0.2]], [[0.1, 0.8]]]), rgb=False, metadata={"names": ["inner", "outer"]}
    )
    result = compare(*segmentations_of(labels, stack))
    assert [(group.reference, group.prediction) for group in result.groups] == [
        (("cell",), ("inner",)),
        (("wall",), ("outer",)),
    ]


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (Image(np.zeros((2, 3, 4), np.uint8), name="scan"), "Convert labels to a Labels layer"),
        (Image(np.zeros((9, 9, 3)), rgb=True, name="scan"), "is a colour image"),
    ],
)
def test_layers_that_are_not_segmentations_are_named(layer, message):
    labels = Labels(np.zeros((3, 4), int))
    with pytest.raises(InputError, match=rf"prediction \(layer 'scan'\).*{message}"):
        segmentations_of(labels, layer)


def test_a_transform_that_mixes_regions_and_space_is_rejected():
    sheared = Image(np.full((2, 3, 4), 0.5), shear=[0.5, 0, 0])
    with pytest.raises(GeometryError, match="mixes its first axis"):
        segmentations_of(sheared, sheared)


def test_the_finest_level_of_a_multiscale_layer_is_compared():
    fine = np.repeat([1, 2], 8).reshape(2, 8)
    layer = Labels([fine, fine[:, ::2]], multiscale=True)
    assert compare(*segmentations_of(layer, layer)).pixels == 16


# -- output --------------------------------------------------------------------------------------


def test_two_label_layers_give_a_map_and_a_relabelled_prediction():
    reference = Labels(np.array([[1, 1, 1, 1], [2, 2, 2, 2]]), name="truth", scale=(3, 2))
    prediction = Labels(np.array([[7, 7, 5, 5], [5, 9, 9, 9]]), name="net", scale=(3, 2))
    layers = created(outcome_of(reference, prediction))
    assert list(layers) == ["net relabelled", "similarity map"]
    # 5 is unmatched and gets a number that neither side uses otherwise.
    relabelled = layers["net relabelled"]
    assert relabelled.data.tolist() == [[1, 1, 5, 5], [5, 2, 2, 2]]
    assert layers["similarity map"].data.tolist() == [[1, 1, 0, 0], [0, 1, 1, 1]]
    assert layers["similarity map"].scale.tolist() == relabelled.scale.tolist() == [3, 2]
    for label in (1, 2):
        assert np.array_equal(relabelled.get_color(label), reference.get_color(label))


def test_the_colours_of_groups_are_those_of_the_reference():
    reference = Labels(np.array([[1, 1, 2, 2]]), colormap={1: "red", 2: "blue", None: "black"})
    outcome = outcome_of(reference, Labels(np.array([[8, 8, 6, 6]])))
    assert outcome.shown.labels == (1, 2)
    assert outcome.shown.colours.tolist() == [[1, 0, 0, 1], [0, 0, 1, 1]]


def test_probabilities_give_labels_with_equal_colours():
    reference = np.array([[[0.9, 0.8, 0.1]], [[0.1, 0.2, 0.9]]])
    prediction = np.array([[[0.2, 0.1, 0.7]], [[0.2, 0.4, 0.2]], [[0.6, 0.5, 0.1]]])
    outcome = outcome_of(
        Image(reference, rgb=False, name="truth", scale=(1, 2, 2)),
        Image(prediction, rgb=False, name="net", scale=(1, 2, 2)),
        merge="prediction",
    )
    layers = created(outcome)
    assert list(layers) == [
        "truth (most probable)",
        "net relabelled (probabilities)",
        "net relabelled (most probable)",
        "similarity map",
    ]
    # Channel 2 matches region 0, channel 0 matches region 1, and channel 1 is merged into one.
    merged = outcome.comparison.merges[0].into
    assert merged == (0,)
    stack = layers["net relabelled (probabilities)"]
    np.testing.assert_allclose(stack.data, [[[0.8, 0.9, 0.3]], [[0.2, 0.1, 0.7]]])
    assert stack.scale.tolist() == [1, 2, 2]
    for name in ("truth (most probable)", "net relabelled (most probable)"):
        assert layers[name].data.tolist() == [[0, 0, 1]]
    for label in (0, 1):
        assert np.array_equal(
            layers["truth (most probable)"].get_color(label),
            layers["net relabelled (most probable)"].get_color(label),
        )


def test_an_unmatched_channel_has_its_own_label_and_colour():
    reference = np.array([[[1.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]])
    prediction = np.array([[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]]])
    outcome = outcome_of(Image(reference, rgb=False, name="a"), Image(prediction, rgb=False))
    (unmatched,) = (g for g, group in enumerate(outcome.comparison.groups) if not group.reference)
    labels = [data for data, arguments, kind in outcome.layers if kind == "labels"][1]
    assert len(set(outcome.shown.labels)) == 3
    assert outcome.shown.labels[unmatched] in np.asarray(labels)
    assert len({tuple(colour) for colour in outcome.shown.colours.tolist()}) == 3


@pytest.mark.parametrize("kind", ["dask", "zarr"])
def test_chunked_layers_give_lazy_layers(kind, tmp_path):
    reads = []
    reference = np.repeat(np.arange(1, 5), 16).reshape(8, 8)
    prediction = reference + 10
    prediction[0, 0] = 12

    def layer(name, values):
        if kind == "zarr":
            store = zarr.create_array(tmp_path / name, shape=(8, 8), chunks=(4, 4), dtype="i4")
            store[:] = values
            return Labels(store, name=name)

        def read(block):
            reads.append(block.shape)
            return block

        array = dask.array.from_array(values, chunks=(4, 4)).map_blocks(read, dtype=int)
        return Labels(array, name=name)

    outcome = outcome_of(layer("truth", reference), layer("net", prediction))
    assert outcome.comparison.score == 63 / 64
    assert max(reads, default=(4, 4)) == (4, 4)  # single chunks
    arrays = {arguments["name"]: data for data, arguments, _ in outcome.layers}
    assert all(isinstance(array, dask.array.Array) for array in arrays.values())
    expected = reference.copy()
    expected[0, 0] = 2
    assert np.array_equal(arrays["net relabelled"].compute(), expected)
    assert (arrays["similarity map"].compute() == (expected == reference)).all()


def test_lazy_probabilities_stay_lazy():
    rng = np.random.default_rng(1)
    values = rng.dirichlet(np.ones(3), (8, 8)).transpose(2, 0, 1)
    lazy = dask.array.from_array(values, chunks=(3, 4, 4))
    outcome = outcome_of(Image(lazy, name="truth"), Image(lazy[::-1], name="net"))
    assert outcome.comparison.score == pytest.approx(1)
    assert all(isinstance(data, dask.array.Array) for data, _, _ in outcome.layers)
    labels = [np.asarray(data) for data, _, kind in outcome.layers if kind == "labels"]
    for array in labels:
        assert np.array_equal(array, values.argmax(axis=0))


def test_the_demo_can_be_compared():
    reference, prediction = (Layer.create(*layer_data) for layer_data in demo_layers())
    result = outcome_of(reference, prediction, merge="prediction").comparison
    assert result.pixel_volume == 15.625  # 2.5 mm cubed
    assert result.groups[1].reference == ("fluid",)


# -- places --------------------------------------------------------------------------------------


def brute_places(p, q):
    """Per group, the part with the largest Σ |p − q| and the differences there, pixel by pixel."""
    shape = p.shape[1:]
    for group in range(len(p)):
        sums = {}
        for pixel in product(*map(range, shape)):
            part = tuple(next(k for k in range(8) if i < n * (k + 1) // 8)
                         for i, n in zip(pixel, shape, strict=True))  # fmt: skip
            difference = abs(p[(group, *pixel)] - q[(group, *pixel)])
            sums.setdefault(part, {})[pixel] = difference
        yield sums


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("crisp", [(True, True), (True, False), (False, False)])
def test_places_are_where_groups_differ_most(crisp, lazy, monkeypatch):
    monkeypatch.setattr("probdice.engine.blocks.BLOCK_BYTES", 1)
    monkeypatch.setattr("probdice.engine.blocks.MIN_BLOCK_PIXELS", 50)
    rng = np.random.default_rng(3)
    shape, regions = (10, 17), 3
    soft = [rng.dirichlet(np.full(regions, 0.3), shape).transpose(2, 0, 1) for _ in range(2)]
    soft[1] = 0.7 * soft[0] + 0.3 * soft[1]
    one_hot = [np.eye(regions)[side.argmax(axis=0)].transpose(2, 0, 1) for side in soft]
    dense = [o if c else s for o, s, c in zip(one_hot, soft, crisp, strict=True)]
    sides = []
    for values, labels in zip(dense, crisp, strict=True):
        array = values.argmax(axis=0) if labels else values
        if lazy:
            array = dask.array.from_array(array, chunks=(*((3,) if not labels else ()), 5, 6))
        make = Segmentation.from_labels if labels else Segmentation.from_probabilities
        sides.append(make(array))
    result = compare(*sides, match="labels")
    places = group_places(result)
    for place, sums in zip(places.tolist(), brute_places(*dense), strict=True):
        chosen = next(pixels for pixels in sums.values() if tuple(place) in pixels)
        totals = {part: sum(pixels.values()) for part, pixels in sums.items()}
        assert sum(chosen.values()) == pytest.approx(max(totals.values()))
        assert chosen[tuple(place)] > 0


def test_a_group_without_differences_is_shown_where_it_is():
    labels = np.zeros((16, 16), int)
    labels[9:11, 3:7] = 4
    places = group_places(compare(labels, labels))
    assert labels[tuple(places[1])] == 4


# -- cancelling ----------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_cancelling_stops_after_the_current_blocks(workers, monkeypatch):
    monkeypatch.setattr("probdice.engine.blocks.BLOCK_BYTES", 1)
    monkeypatch.setattr("probdice.engine.blocks.MIN_BLOCK_PIXELS", 64)
    monkeypatch.setattr("probdice.engine.executors.cores", lambda: workers)
    labels = Labels(np.arange(100 * 64).reshape(100, 64) % 7, name="a")
    asked = []

    def cancelled():
        asked.append(None)
        return len(asked) > 6  # before the first block, and after five blocks

    steps = Steps(show=lambda *_: None, cancelled=cancelled)
    with pytest.raises(Cancelled):
        compared_layers(labels, labels).compare(CompareOptions(), steps)
    assert len(asked) == 7


def test_a_report_can_be_cancelled(tmp_path, monkeypatch):
    monkeypatch.setattr("probdice.engine.blocks.BLOCK_BYTES", 1)
    monkeypatch.setattr("probdice.engine.blocks.MIN_BLOCK_PIXELS", 64)
    labels = np.arange(100 * 64).reshape(100, 64) % 7
    result = compare(labels, labels)
    asked = []

    def cancelled():
        asked.append(None)
        return len(asked) > 3

    with Steps(show=lambda *_: None, cancelled=cancelled).watching(), pytest.raises(Cancelled):
        result.report(tmp_path / "report.html")
    assert len(asked) == 4
    assert list(tmp_path.iterdir()) == []
