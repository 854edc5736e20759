"""`python -m fuzz.memory`: measure peak memory while reading valid files, per byte of values.

A separate process reads all values of each file. The peak is the increase over the memory of the
same process after reading a tiny file of the same format.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzz.corpus import by_highdicom
from fuzz.execution import ALLOWED, MULTIPLE
from fuzz.figures import put

MEASURE = """
import sys
from fuzz import targets
from fuzz.execution import _measured_from, _peak
use = getattr(targets, sys.argv[1])
use(sys.argv[2])
start = _measured_from()
use(sys.argv[3])
print(_peak() - start)
"""


@dataclass(frozen=True)
class Kind:
    """One kind of file: its title, its writer and its reader.

    For pictures, `shape` is the shape of each row: the pixels and, if any, their channels.
    """

    title: str
    name: str
    write: Callable[[Path, NDArray[Any]], Any]
    use: str = "touched"
    shape: tuple[int, ...] | None = None


def kinds() -> Iterator[Kind]:
    """Yield all kinds of files."""
    import h5py
    import nibabel
    import scipy.io
    import SimpleITK as sitk
    import tifffile
    import zarr
    from PIL import Image

    from probdice import Geometry, Segmentation, write

    def nifti(path: Path, labels: Any) -> None:
        nibabel.Nifti1Image(labels, np.eye(4)).to_filename(path)

    def mgh(path: Path, labels: Any) -> None:
        nibabel.MGHImage(labels, np.eye(4)).to_filename(path)

    def tiff(**options: Any) -> Callable[[Path, Any], None]:
        return lambda path, labels: tifffile.imwrite(
            path, labels, photometric="minisblack", **options
        )

    def picture(path: Path, values: Any) -> None:
        Image.fromarray(values).save(path)

    def by_itk(path: Path, labels: Any) -> None:
        sitk.WriteImage(sitk.GetImageFromArray(labels), str(path), useCompression=True)

    def hdf5(path: Path, labels: Any, **options: Any) -> None:
        with h5py.File(path, "w", **options) as file:
            file.create_dataset("a", data=labels, chunks=True, compression="gzip")

    def matlab(path: Path, labels: Any) -> None:
        scipy.io.savemat(path, {"a": labels}, do_compression=True)

    def matlab_7_3(path: Path, labels: Any) -> None:
        hdf5(path, labels, userblock_size=512)
        with path.open("rb+") as stream:
            stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\2IM")

    def in_chunks(path: Path, labels: Any) -> None:
        zarr.create_array(path, data=labels, chunks=tuple(min(n, 64) for n in labels.shape))

    def ome_zarr(path: Path, labels: Any) -> None:
        write(path, Segmentation.from_labels(labels, geometry=Geometry(labels.shape, np.eye(4))))

    def label_map(path: Path, labels: Any) -> None:
        path.write_bytes(by_highdicom(labels % 3, "LABELMAP"))

    def masks(path: Path, labels: Any) -> None:
        both = np.stack([labels % 3 == 1, labels % 3 == 2], axis=-1)
        path.write_bytes(by_highdicom(both.astype(np.uint8), "BINARY", 2))

    def shares(path: Path, labels: Any) -> int:
        part = labels[: -(-len(labels) // 4)] / np.float32(255)  # four bytes per value
        path.write_bytes(by_highdicom(part[..., None], "FRACTIONAL", 1))
        return int(part.nbytes)

    def annot(path: Path, labels: Any) -> int:
        colours = np.stack([np.arange(256)] * 3 + [np.zeros(256, int)], axis=1)
        vertices = labels.reshape(-1)[: -(-labels.size // 4)].astype(np.int32)
        names = [f"region {k}" for k in range(256)]
        nibabel.freesurfer.write_annot(str(path), vertices, colours, names)
        return int(vertices.nbytes)

    def gifti(path: Path, labels: Any) -> int:
        vertices = labels.reshape(-1)[: -(-labels.size // 4)].astype(np.int32)
        array = nibabel.gifti.GiftiDataArray(vertices, "NIFTI_INTENT_LABEL")
        nibabel.gifti.GiftiImage(darrays=[array]).to_filename(path)
        return int(vertices.nbytes)

    def cifti(path: Path, labels: Any) -> int:
        shares = labels.reshape(len(labels), -1)[:, : -(-labels[0].size // 4)] / np.float32(255)
        count = shares.shape[1]
        vertices = nibabel.cifti2.BrainModelAxis.from_surface(np.arange(count), count, "CortexLeft")
        maps = nibabel.cifti2.ScalarAxis([f"map {k}" for k in range(len(shares))])
        nibabel.cifti2.Cifti2Image(shares, (maps, vertices)).to_filename(path)
        return int(shares.nbytes)

    yield Kind(".nii", "a.nii", nifti)
    yield Kind(".nii.gz", "a.nii.gz", nifti)
    yield Kind(".mgz", "a.mgz", mgh)
    yield Kind(".npy", "a.npy", np.save)
    yield Kind(".npz", "a.npz", lambda path, labels: np.savez_compressed(path, a=labels))
    yield Kind(".tif", "a.tif", tiff())
    yield Kind(".tif (zlib)", "a.tif", tiff(compression="zlib"))
    yield Kind(".tif (zlib, tiles)", "a.tif", tiff(compression="zlib", tile=(64, 64)))
    yield Kind(".png", "a.png", picture, shape=(-1,))
    yield Kind(".bmp", "a.bmp", picture, shape=(-1,))
    yield Kind(".mat (7)", "a.mat", matlab)
    yield Kind(".mat (7.3)", "a.mat", matlab_7_3)
    yield Kind(".h5", "a.h5", hdf5)
    yield Kind(".zarr", "a.zarr", in_chunks)
    yield Kind("OME-Zarr", "a.zarr", ome_zarr)
    yield Kind(".nrrd", "a.nrrd", by_itk)
    yield Kind(".mha", "a.mha", by_itk)
    yield Kind(".vtk", "a.vtk", by_itk)
    yield Kind(".gipl", "a.gipl", by_itk)
    yield Kind(".mrc", "a.mrc", by_itk)
    yield Kind(".mnc", "a.mnc", by_itk)
    yield Kind(".dcm (label map)", "a.dcm", label_map)
    yield Kind(".dcm (binary)", "a.dcm", masks)
    yield Kind(".dcm (fractional)", "a.dcm", shares)
    yield Kind(".annot", "lh.annot", annot)
    yield Kind(".label.gii", "a.label.gii", gifti)
    yield Kind(".dscalar.nii", "a.dscalar.nii", cifti)
    yield Kind("`Overlap.load`", "a.npz", _save_overlap, use="load_overlap_alone")
    yield Kind(".jpg as background image", "a.jpg", picture, use="look_at", shape=(-1, 3))
    yield Kind(".png as background image", "a.png", picture, use="look_at", shape=(-1, 3))


def _save_overlap(path: Path, values: NDArray[Any]) -> int:
    """Write an overlap of about the given size, and return its exact size."""
    from probdice import overlap

    count = values.size // 72  # three numbers per region of each side, and per pair
    regions = np.arange(count)
    found = overlap(regions, np.roll(regions, 1))
    found.save(path)
    sides = [array for side in (found.reference, found.prediction) for array in _arrays(side)]
    return sum(array.nbytes for array in (*sides, *_arrays(found.pairs)))


def _arrays(holder: Any) -> list[NDArray[Any]]:
    return [value for value in vars(holder).values() if isinstance(value, np.ndarray)]


def measured(kind: Kind, size: int) -> float:
    """Return the peak memory per byte of values."""
    random = np.random.default_rng(0)

    def written(path: Path, values: NDArray[Any]) -> int:
        values = values if kind.shape is None else values.reshape(len(values), *kind.shape)
        own = kind.write(path, values)
        return own if isinstance(own, int) else values.nbytes

    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / f"small-{kind.name}", Path(folder) / f"large-{kind.name}"
        written(small, random.integers(0, 9, (6, 6, 6)).astype(np.uint8))
        # The values hardly compress, so that the file is about as large as its values.
        values = random.integers(0, 256, (size // (9 * 2**14) // 3 * 3, 3 * 2**7, 3 * 2**7)).astype(
            np.uint8
        )
        needed = written(large, values)
        command = [sys.executable, "-c", MEASURE, kind.use, str(small), str(large)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{kind.title}: {run.stderr}")
    return int(run.stdout) / needed


def main() -> None:
    """Print one line per format, and exit with code 1 if a format exceeds the limit."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.memory", description=__doc__)
    parser.add_argument("titles", nargs="*", metavar="FORMAT", help="all by default")
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--into", type=Path, metavar="PAGE", help="insert the table into a page")
    parsed = parser.parse_args()
    ratios: dict[str, float] = {}
    for kind in kinds():
        if not parsed.titles or kind.title in parsed.titles:
            ratios[kind.title] = measured(kind, parsed.megabytes << 20)
            print(f"{kind.title:18} {ratios[kind.title]:5.2f} × its values", flush=True)
    if parsed.into:
        rows = [f"| {title} | {ratio:.1f} |" for title, ratio in ratios.items()]
        put(parsed.into, "memory", "\n".join(["| format | peak |", "|---|---|", *rows]))
    sys.exit(1 if max(ratios.values()) > MULTIPLE + ALLOWED / (parsed.megabytes << 20) else 0)


if __name__ == "__main__":
    main()
