"""`probdice warm-up`: compile the kernels of comparisons in advance."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from probdice.cli.outcome import reporting_errors
from probdice.cli.parameters import DebugOption

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["warm_up"]

SIZE = 24  # pixels along each axis
MANY_LABELS = 300  # too many for a dense table of all pairs


def warm_up(debug: DebugOption = False) -> None:
    """Compile kernels in advance, for example in a container image or before cluster jobs.

    This command compiles the kernels for scores, merging, the chance level and maps. Other kernels,
    such as those for boundary distances, are compiled at first use. Numba stores compiled kernels
    in the folder that the environment variable NUMBA_CACHE_DIR sets. If this variable is not set,
    Numba uses the folder of the package or, if that folder is not writable, the cache folder of the
    user.
    """
    with reporting_errors(debug=debug):
        from time import perf_counter

        from probdice.cli.progress import progress
        from probdice.cli.streams import print_text
        from probdice.engine.kernels import watch_compiler
        from probdice.text.formatting import quantity

        compilations = []
        start = perf_counter()
        with progress(visible=True) as display:
            display.begin("compiling kernels")
            watch_compiler(lambda: compilations.append(1), lambda: None)
            for reference, prediction in _pairs():
                _compare(reference, prediction)
        seconds = perf_counter() - start
        print_text(f"compiled {quantity(len(compilations), 'kernel')} in {seconds:.0f} s\n")


def _pairs() -> "Iterator[tuple[NDArray[Any], NDArray[Any]]]":
    """Yield pairs of arrays: label maps with several integer types, probabilities, or both."""
    import numpy as np

    generator = np.random.default_rng(0)
    labels = generator.integers(3, size=(SIZE, SIZE))
    many_labels = np.arange(SIZE * SIZE).reshape(SIZE, SIZE) % MANY_LABELS * 1000
    for width in ("uint8", "int16", "int32", "int64"):
        yield labels.astype(width), labels.T.astype(width)
        if width.startswith("int") and width != "int16":
            yield many_labels.astype(width), many_labels.T.astype(width)
    weights = generator.random((3, SIZE, SIZE)) + 0.1
    for precision in ("float32", "float64"):
        probabilities = (weights / weights.sum(axis=0)).astype(precision)
        yield probabilities, probabilities[:, ::-1].copy()
        yield np.moveaxis(probabilities, 0, -1).copy().transpose(2, 0, 1), probabilities
        yield labels.astype(np.uint8), probabilities
        yield probabilities, labels.astype(np.uint8)


def _compare(reference: "NDArray[Any]", prediction: "NDArray[Any]") -> None:
    """Compare two arrays, and compute the results whose kernels are compiled in advance."""
    import numpy as np

    from probdice.comparison.comparing import compare
    from probdice.method.similarity import BUILT_IN, Aitchison

    mask = np.ones((SIZE, SIZE), np.bool_)
    mask[0] = False
    for similarity in (*(one() for one in BUILT_IN), Aitchison(1e-3)):
        for selected_mask in (None, mask):
            for merge in ("none", "both"):
                result = compare(
                    reference, prediction, similarity=similarity, merge=merge, mask=selected_mask
                )
                _ = result.chance, result.explained, result.groups
                result.map()
