"""Rows that several tokens share, as Model2Vec stores them.

Its files (model2vec 0.10, quantization.py and StaticModel.embed_tokens): `embeddings` are the
rows, in I8 without a scale where they were quantized; `mapping` I64 (tokens,) tells a token's
row, `weights` (tokens,) the factor on it. A token's vector is the product, as the library reads
it; the length that I8 took from all of them alike is nowhere stored.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from embtool.errors import FormatError
from embtool.header import TensorInfo
from embtool.packed import values
from embtool.packed.parts import Fetch, Packed, Stem, units
from embtool.quant import F32

_AGAIN = "download the model again, or tell its author"


def mapped(stem: Stem, table: Packed, mapping: TensorInfo, weights: TensorInfo | None) -> Packed:
    """A table (tokens, d_model) whose tokens share the rows of another."""
    rows, d_model = table.shape
    tokens = mapping.shape[0]
    if mapping.dtype not in ("I64", "I32") or len(mapping.shape) != 1:
        raise stem.refuse(f"has a mapping of {mapping.dtype} {list(mapping.shape)}")
    floats = ("F64", "F32", "F16", "BF16")
    if weights is not None and (weights.shape != (tokens,) or weights.dtype not in floats):
        raise stem.refuse(f"has weights of {weights.dtype} {list(weights.shape)}")
    parts = [*table.parts, mapping, *([] if weights is None else [weights])]
    return Packed(
        table.tensor,
        f"{table.scheme}, {rows} rows shared by {tokens} tokens",
        table.dtype,
        (tokens, d_model),
        tuple(parts),
        partial(_mapped, table, mapping, weights),
        table.by_row,
        shared=table.shape,
    )


def _mapped(
    table: Packed,
    mapping: TensorInfo,
    weights: TensorInfo | None,
    fetch: Fetch,
    ids: Sequence[int],
    out: F32,
) -> None:
    integer = f"<i{int(mapping.dtype[1:]) // 8}"
    tokens = np.asarray(ids, np.int64)
    near = isinstance(ids, range)
    stored = units(fetch, mapping, tokens, int(integer[2:]), near=near)
    rows = np.ascontiguousarray(stored).view(integer).reshape(-1).astype(np.int64)
    if rows.min() < 0 or rows.max() >= table.shape[0]:
        bad = int(rows[(rows < 0) | (rows >= table.shape[0])][0])
        raise FormatError(
            f"{mapping.name} names row {bad}, and {table.tensor} has {table.shape[0]} rows", _AGAIN
        )
    distinct, place = np.unique(rows, return_inverse=True)
    np.take(table.rows(fetch, distinct.tolist()), place, axis=0, out=out, mode="clip")
    if weights is not None:
        nbytes = (weights.stop - weights.start) // weights.shape[0]
        factors = np.ascontiguousarray(units(fetch, weights, tokens, nbytes, near=near))
        np.multiply(out, values.numbers(weights.dtype, factors), out=out)
