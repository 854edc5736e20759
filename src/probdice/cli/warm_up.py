"""`probdice warm-up`: compile all kernels now, so that nobody waits for them later."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from probdice.cli.outcome import answering
from probdice.cli.parameters import DebugOption

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["warm_up"]

SIDE = 24  # pixels
MANY = 300  # labels: too many for a table of all pairs


def warm_up(debug: DebugOption = False) -> None:
    """Compile all kernels now, as for the image of a container or before jobs of a cluster.

    They are kept where Numba keeps its cache: NUMBA_CACHE_DIR, or beside the package.
    """
    with answering(debug=debug):
        from time import perf_counter

        from probdice.cli.progress import progress
        from probdice.cli.streams import print_text
        from probdice.engine.kernels import watch_compiler

        compiled = []
        start = perf_counter()
        with progress(shown=True) as display:
            display.say("compiling kernels")
            watch_compiler(lambda: compiled.append(1), lambda: None)
            for reference, prediction in _pairs():
                _compare(reference, prediction)
        seconds = perf_counter() - start
        count = "1 kernel was" if len(compiled) == 1 else f"{len(compiled)} kernels were"
        print_text(f"{count} compiled in {seconds:.0f} s\n")


def _pairs() -> "Iterator[tuple[NDArray[Any], NDArray[Any]]]":
    """Every kind of side against every other: label maps of every width, and probabilities."""
    import numpy as np

    generator = np.random.default_rng(0)
    labels = generator.integers(3, size=(SIDE, SIDE))
    many = np.arange(SIDE * SIDE).reshape(SIDE, SIDE) % MANY * 1000
    for width in ("uint8", "int16", "int32", "int64"):
        yield labels.astype(width), labels.T.astype(width)
        if width.startswith("int") and width != "int16":
            yield many.astype(width), many.T.astype(width)
    weights = generator.random((3, SIDE, SIDE)) + 0.1
    for precision in ("float32", "float64"):
        soft = (weights / weights.sum(axis=0)).astype(precision)
        yield soft, soft[:, ::-1].copy()
        yield np.moveaxis(soft, 0, -1).copy().transpose(2, 0, 1), soft
        yield labels.astype(np.uint8), soft
        yield soft, labels.astype(np.uint8)


def _compare(reference: "NDArray[Any]", prediction: "NDArray[Any]") -> None:
    """All that can be asked of a pair."""
    import numpy as np

    from probdice.comparison.comparing import compare
    from probdice.method.similarity import Absolute, Aitchison

    mask = np.ones((SIDE, SIDE), np.bool_)
    mask[0] = False
    for similarity in (Absolute(), Aitchison(), Aitchison(1e-3)):
        for inside in (None, mask):
            for merge in ("none", "both"):
                result = compare(
                    reference, prediction, similarity=similarity, merge=merge, mask=inside
                )
                _ = result.chance, result.explained, result.groups
                result.map()
