"""Two segmentations over Ω, and the passes over their pixels."""

import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from probdice import Absolute, Geometry, GeometryError, InputError, Segmentation
from probdice.engine.alignment import aligned
from probdice.engine.pair import SegmentationPair
from probdice.method.sides import Both


def soft(regions, shape, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    p = rng.random((regions, *shape), dtype=np.float32) ** 4
    return (p / p.sum(0)).astype(dtype)


def test_memory_stays_bounded_on_memory_maps(tmp_path):
    """Anonymous memory does not grow with the size of the files."""
    code = """
        import sys, numpy as np, probdice, probdice.engine.kernels

        def anonymous():
            with open("/proc/self/status") as lines:
                return next(int(l.split()[1]) for l in lines if l.startswith("RssAnon:")) / 1024

        p = np.load(sys.argv[1], mmap_mode="r")
        q = np.load(sys.argv[2], mmap_mode="r")
        def sides(p, q):
            make = probdice.Segmentation.from_probabilities
            return make(p, sums="normalise"), make(q, sums="normalise")

        probdice.compare(*sides(p[:, :2], q[:, :2]), similarity="aitchison", merge="both")
        before = anonymous()
        import threading
        highest = [0.0]
        done = threading.Event()
        def watch():
            while not done.wait(0.005):
                highest[0] = max(highest[0], anonymous())
        watcher = threading.Thread(target=watch); watcher.start()
        probdice.compare(*sides(p, q), similarity="aitchison", merge="both")
        done.set(); watcher.join()
        print(highest[0] - before)
    """
    if not os.path.exists("/proc/self/status"):
        pytest.skip("this system does not report anonymous memory")
    for name, regions in (("p", 6), ("q", 7)):
        # Sums have to be normalised, so no block can be used without a copy.
        array = np.lib.format.open_memmap(
            tmp_path / name, mode="w+", dtype=np.float32, shape=(regions, 60, 200, 300)
        )
        for k in range(60):
            array[:, k] = soft(regions, (200, 300), seed=k)
        array.flush()
        del array
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), tmp_path / "p", tmp_path / "q"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(out.stdout) < 100  # MB; the files have 187 MB


def of(reference, prediction, **options):
    return SegmentationPair.of(
        Segmentation.from_labels(reference), Segmentation.from_labels(prediction), **options
    )


def test_images_are_made_without_reading_a_pixel():
    class Closed:
        shape, dtype = (3, 4), np.dtype(np.uint8)

        def __getitem__(self, index):
            raise AssertionError("read")

    images = of(Closed(), Closed())
    assert images.workers is None
    assert images.side("prediction") is images.prediction
    assert list(images.sides) == [images.reference, images.prediction]


def test_the_prediction_is_moved_onto_the_grid_of_the_reference():
    here = Geometry((2, 3), np.eye(3))
    there = Geometry((3, 2), [[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    labels = np.arange(6).reshape(2, 3)
    prediction = aligned(
        Segmentation.from_labels(labels, geometry=here),
        Segmentation.from_labels(labels.T, geometry=there),
    )
    assert np.asarray(prediction.array).tolist() == labels.tolist()
    far = Segmentation.from_labels(
        labels, geometry=Geometry((2, 3), [[1, 0, 2], [0, 1, 0], [0, 0, 1]])
    )
    reference = Segmentation.from_labels(labels, geometry=here)
    with pytest.raises(GeometryError, match=r"(?s)2 pixels apart.*without_geometry") as caught:
        SegmentationPair.of(reference, far)
    assert caught.value.in_command().endswith("--ignore-geometry.")
    assert SegmentationPair.of(reference, far, tolerance=3).prediction.geometry == here


def test_a_label_the_prediction_ignores_is_rejected():
    with pytest.raises(InputError, match="prediction must not ignore labels"):
        SegmentationPair.of(Segmentation.from_labels([1]), Segmentation.from_labels([1], ignore=1))


def test_samples_are_pixels_by_their_rank_in_the_image(monkeypatch):
    monkeypatch.setattr("probdice.engine.blocks.MIN_BLOCK_PIXELS", 3)
    monkeypatch.setattr("probdice.engine.blocks.BLOCK_BYTES", 1)
    p = soft(2, (9,))
    mask = np.array([1, 0, 1, 1, 0, 0, 1, 1, 1])
    images = SegmentationPair.of(
        Segmentation.from_labels(np.arange(9) * 10),
        Segmentation.from_probabilities(p),
        mask=mask,
    )
    found = images.sample(Both(np.array([0, 1, 3, 5]), np.array([2, 2])))
    assert found.reference.tolist() == [0, 20, 60, 80]
    assert found.prediction.tolist() == p[:, [3, 3]].tolist()


def test_images_can_be_sent_elsewhere_after_they_were_read():
    images = of([1, 1, 2], [5, 5, 5])
    table = images.overlap(Absolute()).to_dict()
    assert pickle.loads(pickle.dumps(images)).overlap(Absolute()).to_dict() == table


def test_the_notes_about_ignored_labels_are_those_of_the_last_pass():
    images = SegmentationPair.of(
        Segmentation.from_labels([1, 2], ignore=9), Segmentation.from_labels([1, 2])
    )
    for _ in range(2):
        _, notes = images.first_pass(Absolute())
        assert [note.kind for note in notes] == ["ignore"]
    assert images.notes == ()


@pytest.mark.parametrize("workers", [1, 3])
def test_the_map_is_in_the_shape_of_the_image(monkeypatch, workers):
    monkeypatch.setattr("probdice.engine.blocks.MIN_BLOCK_PIXELS", 5)
    monkeypatch.setattr("probdice.engine.blocks.BLOCK_BYTES", 1)
    p, q = np.asfortranarray(soft(2, (4, 6))), soft(2, (4, 6), 1)
    images = SegmentationPair.of(
        Segmentation.from_probabilities(p), Segmentation.from_probabilities(q), workers=workers
    )
    groups = Both([[0], [1]], [[0], [1]])
    np.testing.assert_allclose(images.map(Absolute(), groups), Absolute()(p, q), atol=1e-6)
