"""Read triangle meshes of FreeSurfer (lh.inflated) and GIFTI (.surf.gii)."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.data.surface import Surface
from probdice.data.vertex_space import structure_named
from probdice.errors import FormatError
from probdice.files.corrupt import check_memory, check_size, corrupt, library_call
from probdice.files.gifti import POINTS, TRIANGLES, gifti_arrays, is_gifti
from probdice.files.model import Source
from probdice.files.surface_maps import structure_of_file

__all__ = ["surface_of"]

FREESURFER = b"\xff\xff\xfe"  # the first bytes of triangle files
MAX_COORDINATE = 1e6  # millimetres
ROW = 12  # size of a vertex or a triangle in bytes: three 32-bit numbers


def surface_of(source: Source) -> Surface:
    """Read a mesh, and determine its brain structure from the metadata or the file name."""
    structure = ""
    if source.head.startswith(FREESURFER):
        points, triangles = _freesurfer(source)
    elif is_gifti(source):
        answer = gifti_arrays(source)
        structure = structure_named(answer.value["structure"])
        intents = [intent for intent, _ in answer.value["maps"]]
        points, triangles = (_only(intents, answer.arrays, code) for code in (POINTS, TRIANGLES))
    else:
        raise FormatError(
            "not a surface mesh: expected a FreeSurfer surface, such as lh.inflated, or a GIFTI "
            "surface (.surf.gii)"
        )
    points, triangles = points.astype(np.float64), triangles.astype(np.int64)
    if points.shape[1:] != (3,) or triangles.shape[1:] != (3,) or not len(points):
        raise corrupt(
            f"expected 3 coordinates per vertex and 3 vertices per triangle, found arrays of shape "
            f"{points.shape} and {triangles.shape}"
        )
    valid = (np.abs(points) <= MAX_COORDINATE).all()  # false for NaN
    if not valid or not ((triangles >= 0) & (triangles < len(points))).all():
        raise corrupt(
            f"a coordinate is not between −{MAX_COORDINATE:g} and {MAX_COORDINATE:g} mm, or a "
            f"triangle refers to a vertex that does not exist"
        )
    structure = structure or structure_of_file(source.path.name)
    return Surface(points, triangles, structure, str(source.path))


def _freesurfer(source: Source) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read a mesh with nibabel, after comparing the counts in its header with the file size."""
    stored = source.path.stat().st_size
    with source.path.open("rb") as stream:
        stream.read(len(FREESURFER))
        for _ in range(2):
            stream.readline(len(source.head))
        counts = stream.read(8)
        start = stream.tell()
    if len(counts) < 8:
        raise corrupt("its header ends early")
    vertices, triangles = (int(n) for n in np.frombuffer(counts, ">i4"))
    needed = ROW * (vertices + triangles)
    if vertices < 1 or triangles < 0:
        raise corrupt(f"its header declares {vertices} vertices and {triangles} triangles")
    content = f"a mesh of {vertices} vertices and {triangles} triangles"
    check_size(needed, stored - start, content)
    check_memory(2 * needed, content, source.max_bytes)
    with library_call():
        points, corners = import_module("nibabel.freesurfer.io").read_geometry(str(source.path))
    return points, corners


def _only(intents: Sequence[int], arrays: Sequence[NDArray[Any]], code: int) -> NDArray[Any]:
    """Return the only array with the given intent code."""
    if intents.count(code) != 1:
        raise FormatError("not a surface mesh: expected one array of points and one of triangles")
    return arrays[intents.index(code)]
