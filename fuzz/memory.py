"""`python -m fuzz.memory`: the peak of memory while honest files are read, against their values.

Each file is read by a process of its own, down to its last value; the peak is counted beyond that
of the same process with a tiny file of the same format.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MEASURE = """
import sys
from pathlib import Path
from fuzz.execution import _measured_from, _peak
from fuzz.targets import touched
touched(sys.argv[1])
start = _measured_from()
touched(sys.argv[2])
print(_peak() - start)
"""


def writers() -> dict[str, Callable[[Path, Any], Any]]:
    """A writer for each format."""
    import h5py
    import nibabel
    import scipy.io
    import SimpleITK as sitk
    import tifffile
    from PIL import Image

    def by_itk(path: Path, labels: Any) -> None:
        sitk.WriteImage(sitk.GetImageFromArray(labels), str(path), useCompression=True)

    def hdf5(path: Path, labels: Any) -> None:
        with h5py.File(path, "w") as file:
            file.create_dataset("a", data=labels, chunks=True, compression="gzip")

    def matlab_7_3(path: Path, labels: Any) -> None:
        with h5py.File(path, "w", userblock_size=512) as file:
            file.create_dataset("a", data=labels, chunks=True, compression="gzip")
        with path.open("rb+") as stream:
            stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\2IM")

    return {
        "a.nii": lambda path, labels: nibabel.Nifti1Image(labels, np.eye(4)).to_filename(path),
        "a.nii.gz": lambda path, labels: nibabel.Nifti1Image(labels, np.eye(4)).to_filename(path),
        "a.mgz": lambda path, labels: nibabel.MGHImage(labels, np.eye(4)).to_filename(path),
        "a.npy": np.save,
        "a.npz": lambda path, labels: np.savez_compressed(path, a=labels),
        "a.tif": lambda path, labels: tifffile.imwrite(
            path, labels, compression="zlib", photometric="minisblack"
        ),
        "a.png": lambda path, labels: Image.fromarray(labels.reshape(len(labels), -1)).save(path),
        "a.mat": lambda path, labels: scipy.io.savemat(path, {"a": labels}, do_compression=True),
        "b.mat": matlab_7_3,
        "a.h5": hdf5,
        "a.nrrd": by_itk,
        "a.mha": by_itk,
    }


def measured(name: str, write: Callable[[Path, Any], Any], size: int) -> float:
    """Bytes of memory for each byte of values."""
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / f"small-{name}", Path(folder) / f"large-{name}"
        write(small, random.integers(0, 9, (4, 4, 4)).astype(np.uint8))
        # Values that hardly pack, so that the file is as large as what it holds.
        values = random.integers(0, 256, (size // 2**16, 2**8, 2**8)).astype(np.uint8)
        write(large, values)
        command = [sys.executable, "-c", MEASURE, str(small), str(large)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(run.stdout) / values.nbytes


def main() -> None:
    """Print a line for each format; an exit code of 1 where one takes more than three times."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.memory", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=64)
    asked = parser.parse_args()
    worst = 0.0
    for name, write in writers().items():
        ratio = measured(name, write, asked.megabytes << 20)
        print(f"{name:10} {ratio:5.2f} × its values", flush=True)
        worst = max(worst, ratio)
    sys.exit(1 if worst > 3 else 0)


if __name__ == "__main__":
    main()
