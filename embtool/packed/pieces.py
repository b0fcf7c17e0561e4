"""Tables in pieces: a vocabulary in two parameters, and what tensor-parallel training split.

Meta publishes its models as `consolidated.00.pth`, `consolidated.01.pth`, ..., one file for each
of the GPUs that they ran on; every file has its piece under the same name. fairscale's
ParallelEmbedding gave each GPU some columns of `tok_embeddings.weight` (Llama 1 and 2),
VocabParallelEmbedding some rows (Llama 3); `output.weight` has always been split by rows. The
width (`dim` of params.json) tells the two apart. Sources: llama/model.py of each release.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from embtool.errors import FormatError, UnsupportedError
from embtool.header import TensorInfo
from embtool.packed.parts import Decode, Fetch, Packed, plain
from embtool.quant import F32

_AGAIN = "download the model again, or tell its author"


def join_split(
    name: str, pieces: Sequence[TensorInfo], d_model: int | None, vocab_size: int | None
) -> Packed:
    """The whole of a table from its piece in every file, in the order of the files.

    pieces: named apart, since every file calls its own `name`. d_model: the config's width;
    vocab_size: its rows, None or less than 1 where it does not say. Pieces that are all as large
    as the table are copies, and the first of them is read.

    Raises UnsupportedError where the shapes do not tell how it was split, FormatError where the
    pieces do not fit each other.
    """
    shapes = [piece.shape for piece in pieces]
    if len({*shapes}) != 1 or len(shapes[0]) != 2:
        raise FormatError(f"the pieces of {name} have the shapes {shapes}"[:200], _AGAIN)
    rows, width = shapes[0]
    tables = [plain(piece) for piece in pieces]
    known = vocab_size if vocab_size is not None and vocab_size > 0 else None
    if len(pieces) == 1 or (width == d_model and rows == known):
        return replace(tables[0], tensor=name)
    if d_model is not None and width * len(pieces) == d_model and known in (None, rows):
        return side_by_side(name, tables)
    if width == d_model and (known is None or rows * len(pieces) >= known):
        return one_below_another(name, tables)
    raise UnsupportedError(
        f"{name} is split over {len(pieces)} files of {rows} x {width} each, which do not add up "
        f"to a table {d_model} wide with {vocab_size} rows",
        "give the params.json or config.json that belongs to these files",
    )


def one_below_another(name: str, tables: Sequence[Packed]) -> Packed:
    """A table whose rows are the first one's, then the next one's, and so on.

    Raises FormatError where the widths differ.
    """
    widths = [table.shape[1] for table in tables]
    if len({*widths}) != 1:
        raise FormatError(f"the pieces of {name} are {widths} numbers wide"[:200], _AGAIN)
    rows = sum(table.shape[0] for table in tables)
    return _joined(name, tables, (rows, widths[0]), partial(_below, tuple(tables)))


def side_by_side(name: str, tables: Sequence[Packed]) -> Packed:
    """A table of which every piece has some columns of all rows, in order.

    Raises FormatError where the rows differ.
    """
    rows = [table.shape[0] for table in tables]
    if len({*rows}) != 1:
        raise FormatError(f"the pieces of {name} have {rows} rows"[:200], _AGAIN)
    width = sum(table.shape[1] for table in tables)
    return _joined(name, tables, (rows[0], width), partial(_beside, tuple(tables)))


def _joined(name: str, tables: Sequence[Packed], shape: tuple[int, int], decode: Decode) -> Packed:
    parts = tuple(part for table in tables for part in table.parts)
    scheme = f"{tables[0].scheme}, in {len(tables)} pieces"
    by_row = all(table.by_row for table in tables)
    return Packed(name, scheme, tables[0].dtype, shape, parts, decode, by_row)


def _below(tables: Sequence[Packed], fetch: Fetch, ids: Sequence[int], out: F32) -> None:
    first = 0
    wanted = np.asarray(ids, np.int64)
    for table in tables:
        last = first + table.shape[0]
        places = np.flatnonzero((wanted >= first) & (wanted < last))
        if len(places):
            own: Sequence[int] = (wanted[places] - first).tolist()
            if isinstance(ids, range):  # then its rows of this piece are one run, and in place
                own = range(own[0], own[-1] + 1)
                table.decode(fetch, own, out[places[0] : places[-1] + 1])
            else:
                out[places] = table.rows(fetch, own)
        first = last


def _beside(tables: Sequence[Packed], fetch: Fetch, ids: Sequence[int], out: F32) -> None:
    first = 0
    for table in tables:
        last = first + table.shape[1]
        out[:, first:last] = table.rows(fetch, ids)
        first = last
