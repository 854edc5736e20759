"""From the pixels of a slab to a tally, for each pairing of label maps and probabilities."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probdice.similarity import Aitchison, Similarity
from probdice.slabs import Crisp, Soft
from probdice.tally import CrispTally, MixedTally, SoftTally, Tally

__all__ = ["pair_bytes", "pair_mixed", "pair_up"]

DENSE = 2**22  # pairs of labels in a slab that are counted in a table; more are sorted


def pair_up(
    sides: Sequence[Soft | Crisp], similarity: Similarity
) -> tuple[Tally, tuple[bool, bool]]:
    """The tally of some pixels, and whether the values of each side look sound."""
    p, q = sides
    if isinstance(p, Soft) and isinstance(q, Soft):
        return _pair_soft(p, q, similarity)
    if isinstance(p, Crisp) and isinstance(q, Crisp):
        return _pair_crisp(p, q), (True, True)
    return pair_mixed(p, q, similarity)


def _pair_soft(p: Soft, q: Soft, similarity: Similarity) -> tuple[SoftTally, tuple[bool, bool]]:
    from probdice import kernels

    p_volumes, q_volumes = np.zeros(p.rows.shape[0]), np.zeros(q.rows.shape[0])
    table = np.zeros((p_volumes.size, q_volumes.size))
    pixels = p.rows, p.start, q.rows, q.start, p.size
    if isinstance(similarity, Aitchison):
        sound = kernels.aitchison.pairs(*pixels, similarity.floor, p_volumes, q_volumes, table)
    else:
        sound = kernels.absolute.pairs(*pixels, p_volumes, q_volumes, table)
    return SoftTally(p.size, p_volumes, q_volumes, table), sound


def pair_mixed(
    p: Soft | Crisp, q: Soft | Crisp, similarity: Similarity
) -> tuple[MixedTally, tuple[bool, bool]]:
    from probdice import kernels

    crisp, soft = (p, q) if isinstance(p, Crisp) else (q, p)
    assert isinstance(crisp, Crisp) and isinstance(soft, Soft)
    volumes, counts = np.zeros(soft.rows.shape[0]), np.zeros(crisp.labels.size, np.int64)
    inside = np.zeros((counts.size, volumes.size))
    pixels = crisp.codes, soft.rows, soft.start
    if isinstance(similarity, Aitchison):
        outside = np.zeros(volumes.size)
        sound = kernels.labels.pairs_aitchison(
            *pixels, similarity.floor, counts, volumes, outside, inside
        )
    else:
        outside = volumes
        sound = kernels.labels.pairs_absolute(*pixels, counts, volumes, inside)
        inside = counts[:, None] - 2 * inside  # |1 − q| − |q| is 1 − 2 min(q, 1)
    ascending = np.argsort(crisp.labels)
    tally = MixedTally(
        "reference" if crisp is p else "prediction",
        soft.size,
        crisp.labels[ascending],
        counts[ascending],
        volumes,
        outside,
        inside[ascending],
    )
    return tally, (True, sound) if crisp is p else (sound, True)


def _pair_crisp(p: Crisp, q: Crisp) -> CrispTally:
    from probdice import kernels

    p_order, q_order = np.argsort(p.labels), np.argsort(q.labels)
    if p.labels.size * q.labels.size <= DENSE:
        table = kernels.labels.count_codes(p.codes, q.codes, p.labels.size, q.labels.size)
        table = table[np.ix_(p_order, q_order)]
        rows, columns = np.nonzero(table)
        counts = table[rows, columns].astype(np.int64)
    else:
        pairs = np.argsort(p_order)[p.codes] * q.labels.size + np.argsort(q_order)[q.codes]
        distinct, counts = np.unique(pairs, return_counts=True)
        rows, columns = np.divmod(distinct, q.labels.size)
    return CrispTally(p.labels[p_order], q.labels[q_order], rows, columns, counts)


def pair_bytes(p: NDArray[Any], q: NDArray[Any]) -> CrispTally:
    """The same for label maps of one byte a pixel, which are their own codes."""
    from probdice import kernels

    table = kernels.labels.count_bytes(p.view(np.uint8), q.view(np.uint8))
    p_labels, q_labels = (np.arange(256, dtype=np.uint8).view(side.dtype) for side in (p, q))
    # Bytes of a signed type are out of order, and most of the 256 labels do not occur.
    p_order, q_order = np.argsort(p_labels), np.argsort(q_labels)
    p_order = p_order[table.sum(axis=1)[p_order] > 0]
    q_order = q_order[table.sum(axis=0)[q_order] > 0]
    table = table[np.ix_(p_order, q_order)]
    rows, columns = np.nonzero(table)
    counts = table[rows, columns].astype(np.int64)
    return CrispTally(p_labels[p_order], q_labels[q_order], rows, columns, counts)
