"""From the files of the user to two segmentations that may be compared."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import prod

from probdice.cli.options import PerSide
from probdice.errors import GeometryError, InputError
from probdice.segmentation import Geometry, Segmentation, Sums

__all__ = ["Inputs", "Sides", "read_file", "read_sides"]

BLOCK = 2**22  # pixels that are looked at together


@dataclass(frozen=True)
class Inputs:
    """The files to read, and how."""

    reference: str
    prediction: str
    mask: str | None = None
    ignore: Sequence[int] = ()
    sums: PerSide[Sums] = field(default_factory=PerSide)
    scales: PerSide[float] = field(default_factory=PerSide)
    tolerance: float | None = None
    ignore_geometry: bool = False


@dataclass(frozen=True, eq=False)
class Sides:
    """What was read, where the reference lies, and what was done that the user should know."""

    reference: Segmentation
    prediction: Segmentation
    mask: Segmentation | None
    geometry: Geometry | None
    remarks: tuple[str, ...]


def read_sides(inputs: Inputs) -> Sides:
    """Read both sides, each on a thread: unpacking takes most of the time and holds no lock."""
    pool = ThreadPoolExecutor(3)
    try:
        reading = [
            pool.submit(
                read_file,
                inputs.reference,
                "reference",
                inputs.sums,
                inputs.scales,
                inputs.ignore,
            ),
            pool.submit(read_file, inputs.prediction, "prediction", inputs.sums, inputs.scales),
        ]
        # Not on this thread: Numba swallows an interrupt now and then.
        warming = pool.submit(_warm_up)
        (reference, reference_scaled), (prediction, prediction_scaled) = (
            side.result() for side in reading
        )
        mask = None if inputs.mask is None else _read(inputs.mask)
        warming.result()
    finally:  # an interrupt does not wait for what is being unpacked
        pool.shutdown(wait=False, cancel_futures=True)
    remarks = [*reference_scaled, *prediction_scaled]
    if inputs.scales.both is not None and not remarks:
        _refuse_scale(inputs.scales.both, reference, prediction)
    if absent := _absent(inputs.ignore, reference):
        remarks.append(
            f"label{'s' * (len(absent) > 1)} {', '.join(map(str, absent))} to be ignored "
            f"{'does' if len(absent) == 1 else 'do'} not occur in the reference"
        )
    geometry = reference.geometry
    if inputs.ignore_geometry:
        if geometry is not None or prediction.geometry is not None:
            remarks.append("geometry was ignored: pixels were compared by their place in the array")
        reference, prediction = reference.without_geometry(), prediction.without_geometry()
        mask = None if mask is None else mask.without_geometry()
    elif inputs.tolerance is not None and geometry is not None:
        prediction, mask = _laid_onto(reference, prediction, mask, inputs.tolerance)
    return Sides(reference, prediction, mask, geometry, tuple(remarks))


def read_file(
    path: str,
    side: str,
    sums: PerSide[Sums],
    scales: PerSide[float],
    ignore: Sequence[int] = (),
) -> tuple[Segmentation, list[str]]:
    """One side, and a remark where it was scaled.

    A scale for both sides is only for those that need it: the reference may well be a label map
    where the prediction is in percent.
    """
    mending = sums.of(side) or "error"
    if (forced := scales.sides.get(side)) is not None:
        return _read(path, scale=forced, sums=mending, ignore=ignore), [_divided(side, forced)]
    scale = scales.both
    if scale is None:
        return _read(path, sums=mending, ignore=ignore), []
    from probdice.files.scaling import read_scaled

    segmentation, scaled = read_scaled(path, scale=scale, sums=mending, ignore=ignore)
    return segmentation, [_divided(side, scale)] if scaled else []


def _read(
    path: str, scale: float | None = None, sums: Sums = "error", ignore: Sequence[int] = ()
) -> Segmentation:
    from probdice.files import read

    return read(path, scale=scale, sums=sums, ignore=ignore)


def _warm_up() -> None:
    """Load Numba and SciPy's optimiser while files are unpacked; Numba by comparing a pixel.

    Each takes a third of a second to import; a kernel then is a matter of milliseconds. That of
    label maps is the smallest, should it have to be compiled.
    """
    import numpy as np
    import scipy.optimize  # noqa: F401

    import probdice

    pixel = np.ones(1, np.uint8)
    probdice.compare(pixel, pixel)


def _divided(side: str, scale: float) -> str:
    return f"the values of the {side} were divided by {scale:g}"


def _refuse_scale(scale: float, *sides: Segmentation) -> None:
    contents = [
        "is a label map" if side.crisp else "holds no value above 1"
        for side in sides
    ]  # fmt: skip
    raise InputError(
        f"--scale {scale:g} would change nothing: the reference {contents[0]} and the prediction "
        f"{contents[1]}; to scale a side whatever it holds, name it: --scale prediction:{scale:g}"
    )


def _absent(labels: Sequence[int], segmentation: Segmentation) -> list[int]:
    """Those of the labels that no pixel carries."""
    import numpy as np

    array = segmentation.array
    absent = list(dict.fromkeys(labels))
    rows = array.shape[0] if array.shape else 1
    step = max(1, BLOCK * rows // max(prod(array.shape), 1))
    for start in range(0, rows, step):
        if not absent:
            break
        block = np.asarray(array[start : start + step] if array.shape else array[()])
        absent = [label for label in absent if not (block == label).any()]
    return absent


def _laid_onto(
    reference: Segmentation, prediction: Segmentation, mask: Segmentation | None, tolerance: float
) -> tuple[Segmentation, Segmentation | None]:
    """Prediction and mask on the reference's grid, to within a tolerance of the user's own."""
    from probdice.comparison import aligned

    assert reference.geometry is not None
    if mask is not None and mask.geometry is not None:
        try:
            mask = mask.onto(reference.geometry, tolerance=tolerance)
        except GeometryError as error:
            raise GeometryError(f"mask does not lie on the reference's grid: {error}") from None
    return aligned(reference, prediction, tolerance=tolerance), mask
