"""Parcellations on a synthetic hemisphere: numbers through files and commands, and pages."""

import json
import re

import nibabel
import numpy as np
import pytest
from icosphere import icosphere, parcels
from nibabel import freesurfer
from typer.testing import CliRunner

from probdice import GeometryError, InputError, Segmentation, VertexSpace, compare, read, write
from probdice.cli.app import app
from probdice.data.surface import Surface, surfaces_for
from probdice.data.vertex_space import Structure
from probdice.pictures.surface_views import painted, views_of

POINTS, TRIANGLES = icosphere(3)  # 642 vertices, as fsaverage3
LEFT = VertexSpace.of_surface(642, "left cortex")
WALL = 0  # label of the medial wall
REFERENCE = parcels(POINTS, 34, seed=1)  # as many regions as the Desikan-Killiany atlas
NETWORKS = parcels(POINTS, 7, seed=2)  # as many regions as Yeo's networks
NAMES = {0: "unknown"} | {k: f"parcel {k}" for k in range(1, 35)}


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def folder(tmp_path):
    moved = np.where(REFERENCE == WALL, WALL, np.roll(REFERENCE, 5))
    for name, labels in (("lh.ref.annot", REFERENCE), ("lh.pred.label.gii", moved)):
        write(tmp_path / name, Segmentation.from_labels(labels, names=NAMES, geometry=LEFT))
    points = POINTS * [30, 90, 60]
    freesurfer.write_geometry(tmp_path / "lh.inflated", points, TRIANGLES)
    freesurfer.write_geometry(tmp_path / "rh.inflated", -points, TRIANGLES)
    return tmp_path


def test_numbers_of_the_command_are_those_of_numpy(folder):
    reference, prediction = REFERENCE, read(folder / "lh.pred.label.gii").array
    compared = reference != WALL
    reference, prediction = reference[compared], prediction[compared]
    expected = {
        k: 2 * np.sum((reference == k) & (prediction == k))
        / (np.sum(reference == k) + np.sum(prediction == k))
        for k in np.unique(reference)
    }  # fmt: skip
    output = run(
        *("compare", folder / "lh.ref.annot", folder / "lh.pred.label.gii"),
        *("--match", "labels", "--ignore", "0", "--json", "-"),
    )
    result = json.loads(output)
    assert result["score"] == pytest.approx(np.mean(reference == prediction), abs=1e-12)
    dice = {
        group["reference"][0]: group["dice"] for group in result["groups"] if group["reference"]
    }
    assert len(dice) == len(expected)
    for label, value in expected.items():
        assert dice[f"parcel {label}"] == pytest.approx(value, abs=1e-12)


def test_probabilities_on_vertices_give_the_numbers_of_numpy(folder):
    shares = np.random.default_rng(3).dirichlet(np.ones(8), 642).T.astype(np.float32)
    write(folder / "lh.p.func.gii", Segmentation.from_probabilities(shares, geometry=LEFT))
    write(folder / "lh.yeo.annot", Segmentation.from_labels(NETWORKS, geometry=LEFT))
    result = compare(folder / "lh.yeo.annot", folder / "lh.p.func.gii", match="labels")
    # 1 − ½ Σ |p − q| for a one-hot p is the probability of the true region.
    expected = shares[NETWORKS, np.arange(642)].astype(float).mean()
    assert result.score == pytest.approx(expected, abs=1e-6)


def test_outputs_of_the_command_are_files_of_the_surface(folder):
    run(
        *("compare", folder / "lh.ref.annot", folder / "lh.pred.label.gii", "-q"),
        *("--map", folder / "lh.f.func.gii", "--relabelled", folder / "lh.new.annot"),
    )
    similarity = nibabel.load(folder / "lh.f.func.gii").agg_data()
    relabelled, _, _ = freesurfer.read_annot(folder / "lh.new.annot")
    assert similarity.tolist() == (relabelled == REFERENCE).astype(float).tolist()


@pytest.mark.parametrize("option", ["--map", "--relabelled"])
def test_an_output_that_cannot_store_vertices_is_rejected(folder, option):
    files = (folder / "lh.ref.annot", folder / "lh.pred.label.gii")
    result = CliRunner().invoke(app, ["compare", *map(str, files), option, f"{folder}/a.nii.gz"])
    assert result.exit_code == 1
    assert "cannot store the vertices of a surface" in " ".join(result.output.split())


def test_raters_on_the_surface_are_fused(folder):
    for k in range(3):
        labels = np.roll(REFERENCE, k)
        write(folder / f"lh.{k}.annot", Segmentation.from_labels(labels, geometry=LEFT))
    raters = [folder / f"lh.{k}.annot" for k in range(3)]
    output = ("--output", folder / "lh.c.dscalar.nii", "--report", folder / "c.html")
    run("consensus", *raters, *output, "--match", "labels")
    consensus = read(folder / "lh.c.dscalar.nii")
    assert consensus.geometry == LEFT
    votes = np.mean([np.roll(REFERENCE, k) == 1 for k in range(3)], axis=0)
    row = list(consensus.labels).index(1)
    np.testing.assert_allclose(consensus.array[row], votes, atol=1e-6)
    assert "<img" not in (folder / "c.html").read_text()
    assert "pair" in run("agree", *raters)


def test_the_page_shows_two_views_of_each_side_on_the_surface(folder):
    run(
        *("compare", folder / "lh.ref.annot", folder / "lh.pred.label.gii", "-q", "--ignore", "0"),
        *("--surface", folder / "lh.inflated", "--report", folder / "page.html"),
    )
    page = (folder / "page.html").read_text()
    titles = re.findall(r'<img src="data:image/png;base64,[^"]+" alt="([^"]+)"', page)
    assert titles == [
        f"{side}, left cortex, {view}"
        for view in ("lateral", "medial")
        for side in ("Reference", "Prediction", "Similarity")
    ]
    assert 'id="viewer"' not in page


def test_the_page_without_a_surface_has_tables_only(folder):
    run(
        *("compare", folder / "lh.ref.annot", folder / "lh.pred.label.gii", "-q"),
        *("--report", folder / "page.html"),
    )
    page = (folder / "page.html").read_text()
    assert "<img" not in page
    assert 'id="viewer"' not in page
    assert "To show them, pass the surface with --surface FILE." in page
    assert "fsaverage3" in page


def test_pages_of_an_evaluation_use_the_surface_of_their_hemisphere(folder):
    for name, labels in (("truth", REFERENCE), ("a", np.roll(REFERENCE, 3)), ("b", NETWORKS)):
        (folder / name).mkdir()
        for hemisphere in ("lh", "rh"):
            write(folder / name / f"{hemisphere}.s.annot", labels)
    output = folder / "out"
    run(
        *("evaluate", folder / "truth", folder / "a", folder / "b", "--output", output, "-q"),
        *("--surface", folder / "lh.inflated", "--surface", folder / "rh.inflated"),
        *("--reports", "all", "--workers", "1"),
    )
    pages = sorted((output / "report_cases").iterdir())
    assert [page.name[5:] for page in pages] == [
        "lh.s-a.html", "lh.s-b.html", "rh.s-a.html", "rh.s-b.html"
    ]  # fmt: skip
    for page in pages:
        side = "left" if "lh." in page.name else "right"
        assert page.read_text().count("<img") == 6
        assert f"Reference, {side} cortex, lateral" in page.read_text()


def test_a_case_without_a_surface_of_its_hemisphere_has_a_note(folder):
    for name in ("truth", "a"):
        (folder / name).mkdir()
        write(folder / name / "lh.s.annot", REFERENCE)
    output = folder / "out"
    messages = run(
        *("evaluate", folder / "truth", folder / "a", "--output", output, "-q"),
        *("--surface", folder / "rh.inflated", "--reports", "all", "--workers", "1"),
    )
    (page,) = (output / "report_cases").iterdir()
    reason = (
        "rh.inflated: is a surface of right cortex, "
        "but the segmentations are defined on left cortex"
    )
    assert reason in page.read_text() and "<img" not in page.read_text()
    assert reason in messages


def test_a_surface_that_does_not_fit_is_rejected(folder):
    small, faces = icosphere(1)
    freesurfer.write_geometry(folder / "lh.small", small, faces)
    result = compare(folder / "lh.ref.annot", folder / "lh.ref.annot")
    with pytest.raises(GeometryError, match=r"42 vertices vs fsaverage3 \(642 vertices\)"):
        result.report(folder / "page.html", surface=folder / "lh.small")
    with pytest.raises(GeometryError, match=r"is a surface of right cortex, but .* left cortex"):
        result.report(folder / "page.html", surface=folder / "rh.inflated")
    grid = compare([[1, 1], [2, 2]], [[1, 1], [1, 2]])
    with pytest.raises(InputError, match="a surface can only show values at vertices"):
        grid.report(folder / "page.html", surface=folder / "lh.inflated")


def test_surfaces_belong_to_structures_by_name():
    space = VertexSpace.of([Structure("left cortex", 12), Structure("right cortex", 12)])
    points, triangles = icosphere(0)
    right, unknown = (Surface(points, triangles, name) for name in ("right cortex", ""))
    assert surfaces_for(space, [right, unknown]) == [(0, unknown), (1, right)]


def test_a_view_shows_the_vertices_of_the_nearer_side():
    lateral, medial = views_of(Surface(POINTS, TRIANGLES, "left cortex"), width=120)
    assert (lateral.name, medial.name) == ("lateral", "medial")
    x = POINTS[:, 0]
    for view, sign in ((lateral, -1), (medial, 1)):
        inside = view.vertices >= 0
        # A disc fills π/4 of its box.
        assert np.mean(inside) == pytest.approx(np.pi / 4, abs=0.02)
        # The outermost vertices are nearest to samples just inside the outline.
        assert (sign * x[view.vertices[inside]]).min() > -0.15
        rows, columns = view.vertices.shape
        assert sign * x[view.vertices[rows // 2, columns // 2]] > 0.98
    # From the left, anterior is on the left of the picture and superior at the top.
    column = lateral.vertices[lateral.vertices.shape[0] // 2]
    shown = column[column >= 0]
    assert POINTS[shown[0], 1] > 0.9
    assert POINTS[shown[-1], 1] < -0.9
    row = lateral.vertices[:, lateral.vertices.shape[1] // 2]
    assert POINTS[row[row >= 0][0], 2] > 0.9


def test_a_nearer_triangle_hides_a_farther_one():
    square = np.array([[0, 0, 0], [0, 4, 0], [0, 0, 4], [0, 4, 4]], float)
    points = np.concatenate([square, square - [5, 0, 0]])  # the second is farther to the left
    faces = np.array([[0, 1, 2], [1, 2, 3], [4, 5, 6], [5, 6, 7]])
    from_left, from_right = views_of(Surface(points, faces), width=8)
    assert set(from_left.vertices.ravel().tolist()) == {4, 5, 6, 7}
    assert set(from_right.vertices.ravel().tolist()) == {0, 1, 2, 3}


def test_colours_are_painted_without_mixing_with_the_outside():
    view, _ = views_of(Surface(POINTS, TRIANGLES, "left cortex"), width=60)
    picture = painted(view, np.tile([1.0, 0.0, 0.0], (642, 1)))
    opaque = picture[..., 3] > 0
    assert picture[opaque][:, 1:3].max() == 0
    assert picture[opaque][:, 0].min() >= 255 * 0.5
