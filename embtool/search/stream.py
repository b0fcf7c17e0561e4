"""Rows on their way through a pass, many at a time, multiplied with what is asked for."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from embtool.quant import F32
from embtool.search.blocks import I64, Pass, Rows
from embtool.search.threads import Part
from embtool.space import F64

# Up to this many vectors, one matrix-vector product after another is faster than a matrix
# product, and copying rows together does not pay.
_FEW = 3
# Rows that are scored at a time, so that scoring costs little beside reading. Those of a matrix
# product take no more than 16 MiB: with 512 queries that reaches nine tenths of the rate of any
# larger product, for a width of 50 as for one of 7,168.
_ROWS = 1024
_ELEMENTS = 1 << 22
# From this length of a row on, the slack of products holds.
_SHORT = 1e-30


class Sheet(NamedTuple):
    """Rows to score: ids (n,), norms (n,), NaN where a row may not rank.

    They come with their values (n, d_model) or with their products with all vectors (v, n). All
    are buffers that the next step overwrites.
    """

    ids: I64
    norms: F32
    values: F32 | None
    products: F32 | None

    def times(self, vectors: F32, some: slice) -> F32:
        """The products of some of all vectors (v, d_model) with the rows, (some, n).

        To be asked for once, since scores are made of them in place.
        """
        if self.values is not None:
            return vectors[some] @ self.values.T
        assert self.products is not None
        return self.products[some]

    def upper(self, count: int) -> "Sheet":
        """The first rows."""
        return Sheet(
            self.ids[:count],
            self.norms[:count],
            None if self.values is None else self.values[:count],
            None if self.products is None else self.products[:, :count],
        )


def sheets(blocks: Iterator[Rows], vectors: F32) -> Iterator[Sheet]:
    """Rows of a part as `blocks.read` gives them, to be multiplied with vectors (v, d_model)."""
    return _multiplied(blocks, vectors) if len(vectors) <= _FEW else _staged(blocks)


def quick(
    work: Pass, vectors: F32, known: F32 | None, *, plain: bool
) -> tuple[list[Iterator[Sheet]], F64] | None:
    """The products of few vectors by the pass's faster way: sheets by part, and their slack.

    known: all norms as `blocks.rankable` gives them. plain: whether products with a slack are of
    use. None where there is no such way.
    """
    if known is None or work.multiply is None or len(vectors) > _FEW:
        return None
    found = work.multiply(vectors)
    if found is None:
        return None
    if found.slack.any() and (not plain or np.fmin.reduce(known, initial=np.inf) < _SHORT):
        return None
    return [_ready(part, known) for part in found.parts], found.slack


def _ready(part: Part, known: F32) -> Iterator[Sheet]:
    for first, products in part:
        stop = first + products.shape[1]
        yield Sheet(np.arange(first, stop), known[first:stop], None, products)


def _multiplied(blocks: Iterator[Rows], vectors: F32) -> Iterator[Sheet]:
    """Products of few vectors, a block after the other."""
    room = filled = 0
    products = np.empty((len(vectors), room), np.float32)
    sheet = Sheet(np.empty(room, np.int64), np.empty(room, np.float32), None, products)
    for ids, values, norms in blocks:
        stop = filled + len(ids)
        if stop > room:
            if filled:
                yield sheet.upper(filled)
            if len(ids) > room:
                room = max(_ROWS, len(ids))
                products = np.empty((len(vectors), room), np.float32)
                sheet = Sheet(np.empty(room, np.int64), np.empty(room, np.float32), None, products)
            filled, stop = 0, len(ids)
        for vector, out in zip(vectors, products, strict=True):
            np.dot(values, vector, out=out[filled:stop])
        sheet.ids[filled:stop] = ids
        sheet.norms[filled:stop] = norms
        filled = stop
    if filled:
        yield sheet.upper(filled)


def _staged(blocks: Iterator[Rows]) -> Iterator[Sheet]:
    """The rows that may rank, copied together for matrix products with many vectors."""
    room = filled = 0
    for ids, values, norms in blocks:
        if not room:
            room = max(1, min(_ROWS, _ELEMENTS // values.shape[1]))
            staged = np.empty((room, values.shape[1]), np.float32)
            sheet = Sheet(np.empty(room, np.int64), np.empty(room, np.float32), staged, None)
        good = np.flatnonzero(~np.isnan(norms))
        while len(good):
            some, good = np.split(good, [room - filled])
            stop = filled + len(some)
            # mode="clip" writes into `out` directly; the rows are there.
            np.take(values, some, axis=0, out=staged[filled:stop], mode="clip")
            sheet.ids[filled:stop] = ids[some]
            sheet.norms[filled:stop] = norms[some]
            filled = stop
            if filled == room:
                yield sheet
                filled = 0
    if filled:
        yield sheet.upper(filled)
