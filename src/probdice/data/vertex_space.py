"""Geometry of images whose pixels are vertices of surfaces and, in CIFTI files, also voxels."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from probdice.data.geometry import Geometry
from probdice.errors import InputError

__all__ = [
    "Structure",
    "VertexSpace",
    "geometry_from_dict",
    "structure_named",
    "structure_words",
]

# Common spaces by the number of vertices in one hemisphere. Some spaces have the same number.
SPACES = {
    163842: "fsaverage or fsLR 164k",
    59292: "fsLR 59k",
    40962: "fsaverage6 or CIVET 41k",
    32492: "fsLR 32k",
    10242: "fsaverage5",
    7842: "fsLR 8k",
    4002: "fsLR 4k",
    2562: "fsaverage4",
    642: "fsaverage3",
    162: "fsaverage2",
}
SIDES = ("left", "right")
MAX_LISTED_STRUCTURES = 3  # in a description


@dataclass(frozen=True, eq=False)
class Structure:
    """One brain structure: a surface, or a set of voxels of a volume.

    Attributes
    ----------
    name : str
        Name such as "left cortex", or "" if unknown.
    vertices : int
        Number of vertices of the surface, or 0 for voxels.
    used : ndarray or None
        Indices of the vertices that have values, or None if all vertices have values. For voxels,
        each row is the index of one voxel in the volume.

    Examples
    --------
    >>> from probdice.data.vertex_space import Structure
    >>> Structure("left cortex", 10242).size
    10242
    """

    name: str = ""
    vertices: int = 0
    used: NDArray[np.int64] | None = None

    @property
    def size(self) -> int:
        """Number of vertices or voxels with values."""
        return self.vertices if self.used is None else len(self.used)

    def difference_from(self, other: "Structure") -> str:
        """Describe why the values of two structures do not correspond.

        Return "" if the values correspond. An unknown name corresponds to any name.
        """
        if self.vertices != other.vertices:
            return f"{self.space} differs from {other.space}"
        if self.name and other.name and self.name != other.name:
            return f"{self.name} differs from {other.name}"
        elements = "vertices" if self.vertices else "voxels"
        if self.size != other.size:
            return f"{self.label} has values at {self.size} {elements}, expected {other.size}"
        if np.array_equal(self._indices, other._indices):
            return ""
        own_indices, other_indices = (np.unique(one._indices, axis=0) for one in (self, other))
        if np.array_equal(own_indices, other_indices):
            return (
                f"the files list the same {elements} of {self.label} in different orders "
                f"(wb_command -cifti-create-dense-from-template changes the order)"
            )
        return f"the files have values at different {elements} of {self.label}"

    def to_dict(self) -> dict[str, Any]:
        """Return the structure as a dictionary for JSON."""
        used_indices = None if self.used is None else self.used.tolist()
        return {"name": self.name, "vertices": self.vertices, "used": used_indices}

    @property
    def space(self) -> str:
        """Name of the space, if known, and the number of vertices or voxels."""
        if not self.vertices:
            return f"{self.size} voxels"
        space = SPACES.get(self.vertices)
        return f"{space} ({self.vertices} vertices)" if space else f"{self.vertices} vertices"

    @property
    def label(self) -> str:
        """Name that is used in messages."""
        return self.name or "the surface"

    @property
    def _indices(self) -> NDArray[np.int64]:
        return np.arange(self.vertices) if self.used is None else self.used


@dataclass(frozen=True, eq=False)
class VertexSpace(Geometry):
    """The vertices of one or more surfaces, as the pixels of a one-dimensional image.

    Create a vertex space with `VertexSpace.of_surface` or `VertexSpace.of`. Two images are in the
    same space if they have the same structures with the same vertices in the same order. The affine
    is the identity, because files of labels or maps do not contain the positions of vertices.

    Attributes
    ----------
    structures : tuple of Structure
        The surfaces and, in CIFTI files, the groups of voxels, in the order of the pixels.
    volume : Geometry or None
        Grid of the voxels in a CIFTI file, or None if there are no voxels.

    Examples
    --------
    >>> from probdice import VertexSpace
    >>> left = VertexSpace.of_surface(10242, "left cortex")
    >>> left.shape, left.describe()["space"]
    ((10242,), 'fsaverage5')
    >>> left == VertexSpace.of_surface(10242, "right cortex")
    False
    """

    on_grid: ClassVar[bool] = False

    structures: tuple[Structure, ...] = ()
    volume: Geometry | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        size = sum(structure.size for structure in self.structures)
        if self.shape != (size,):
            raise InputError(
                f"shape must be ({size},), the size of the structures, found {self.shape}"
            )

    @classmethod
    def of(
        cls, structures: Iterable[Structure], *, volume: Geometry | None = None
    ) -> "VertexSpace":
        """Combine several structures. The pixels are in the order of the structures.

        Examples
        --------
        >>> from probdice.data.vertex_space import Structure, VertexSpace
        >>> both = [Structure("left cortex", 642), Structure("right cortex", 642)]
        >>> VertexSpace.of(both).shape
        (1284,)
        """
        members = tuple(structures)
        size = sum(structure.size for structure in members)
        return cls((size,), np.eye(2), members, volume)

    @classmethod
    def of_surface(cls, vertices: int, name: str = "") -> "VertexSpace":
        """Return the space of all vertices of one surface.

        Examples
        --------
        >>> from probdice import VertexSpace
        >>> VertexSpace.of_surface(642).structures[0].space
        'fsaverage3 (642 vertices)'
        """
        return cls.of([Structure(name, vertices)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VertexSpace):
            return False
        names = [structure.name for structure in self.structures]
        return (
            names == [structure.name for structure in other.structures]
            and self.volume == other.volume
            and not self._difference_from(other)
        )

    def __hash__(self) -> int:
        return hash((self.shape, tuple(structure.name for structure in self.structures)))

    def steps_onto(self, other: Geometry) -> tuple[tuple[int, ...], tuple[int, ...], float]:
        """Return the unchanged order of axes, no flips, and the distance.

        The distance is 0, or infinite if the vertices differ.
        """
        return (0,), (), inf if self._difference_from(other) else 0.0

    def obstacle(self, other: Geometry, distance: float) -> str:
        """Describe why an image in this space cannot be aligned with `other`."""
        return self._difference_from(other)

    def of_one_pixel(self) -> "VertexSpace":
        """Return the space of a surface with only one vertex."""
        return VertexSpace.of_surface(1, self.structures[0].name)

    def describe(self) -> dict[str, str]:
        """Return the size, the space and the structures as short strings."""
        surfaces = dict.fromkeys(s.vertices for s in self.structures if s.vertices)
        names = [SPACES.get(count, f"surface of {count} vertices") for count in surfaces]
        structure_texts = [
            self._description(structure) for structure in self.structures[:MAX_LISTED_STRUCTURES]
        ]
        if len(self.structures) > MAX_LISTED_STRUCTURES:
            structure_texts.append(f"and {len(self.structures) - MAX_LISTED_STRUCTURES} more")
        return {
            "size": str(self.shape[0]),
            "space": ", ".join(names) or "voxels",
            "structures": ", ".join(structure_texts),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the vertex space as a dictionary that `geometry_from_dict` can read.

        Examples
        --------
        >>> from probdice import VertexSpace
        >>> VertexSpace.of_surface(642, "left cortex").to_dict()["structures"]
        [{'name': 'left cortex', 'vertices': 642, 'used': None}]
        """
        return {
            "shape": list(self.shape),
            "structures": [structure.to_dict() for structure in self.structures],
            "volume": None if self.volume is None else self.volume.to_dict(),
        }

    def _description(self, structure: Structure) -> str:
        name = structure.name or "unknown"
        if structure.used is None or not structure.vertices:
            return name if len(self.structures) == 1 else f"{name} ({structure.size})"
        return f"{name} ({structure.size} of {structure.vertices} vertices)"

    def _difference_from(self, other: Geometry) -> str:
        if not isinstance(other, VertexSpace):
            shape = " × ".join(map(str, other.shape))
            return f"{self._space} differs from a grid of {shape} voxels"
        if len(self.structures) != len(other.structures):
            return f"{self._space} differs from {other._space}"
        pairs = zip(self.structures, other.structures, strict=True)
        difference = next((text for a, b in pairs if (text := a.difference_from(b))), "")
        if not difference and self.volume is not None and other.volume is not None:
            distance = self.volume.steps_onto(other.volume)[2]
            return "" if distance <= 0.1 else "the voxels are on different grids"
        return difference

    @property
    def _space(self) -> str:
        if len(self.structures) == 1:
            return self.structures[0].space
        return f"{len(self.structures)} structures of {self.describe()['space']}"


def geometry_from_dict(content: Mapping[str, Any]) -> Geometry:
    """Create a grid or a vertex space from a dictionary that `to_dict` returned.

    Examples
    --------
    >>> from probdice.data.vertex_space import VertexSpace, geometry_from_dict
    >>> left = VertexSpace.of_surface(642, "left cortex")
    >>> geometry_from_dict(left.to_dict()) == left
    True
    """
    if "structures" not in content:
        return Geometry(tuple(content["shape"]), np.array(content["affine"], np.float64))
    structures = [
        Structure(
            str(entry["name"]),
            int(entry["vertices"]),
            None if entry["used"] is None else np.array(entry["used"], np.int64),
        )
        for entry in content["structures"]
    ]
    volume = content["volume"]
    return VertexSpace.of(structures, volume=None if volume is None else geometry_from_dict(volume))


def structure_named(words: str | Sequence[str]) -> str:
    """Return the name of a structure from a CIFTI or GIFTI code, or from a file name.

    Examples
    --------
    >>> from probdice.data.vertex_space import structure_named
    >>> structure_named("CIFTI_STRUCTURE_THALAMUS_LEFT"), structure_named("CortexRight")
    ('left thalamus', 'right cortex')
    >>> structure_named("CIFTI_STRUCTURE_OTHER")
    ''
    """
    if isinstance(words, str):
        text = words.removeprefix("CIFTI_STRUCTURE_")
        words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text)
    lower = [word.lower() for word in words]
    if lower in ([], ["other"], ["invalid"]):
        return ""
    if lower[-1] in SIDES:
        lower = [lower[-1], *lower[:-1]]
    return " ".join(lower)


def structure_words(name: str) -> list[str]:
    """Return the words of a structure name with the side last, as in CIFTI and GIFTI codes.

    Examples
    --------
    >>> from probdice.data.vertex_space import structure_words
    >>> structure_words("left cortex"), structure_words("")
    (['cortex', 'left'], ['other'])
    """
    words = name.split() or ["other"]
    return [*words[1:], words[0]] if words[0] in SIDES and len(words) > 1 else words
