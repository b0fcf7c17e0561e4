"""A table whose rows come from several stored tensors, and how their bytes are asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod

import numpy as np
from numpy.typing import NDArray

from embtool.errors import FormatError, UnsupportedError
from embtool.header import TensorInfo
from embtool.packed import values
from embtool.quant import F32, U8

#: Units of a tensor: (tensor, numbers of the units, bytes of a unit) -> (n, bytes of a unit) uint8.
#: A `range` of step 1 may be answered by a view of a memory map, and should be where it is long.
Fetch = Callable[[TensorInfo, Sequence[int], int], U8]
#: Fill out (len(ids), d_model) with the rows `ids`.
Decode = Callable[[Fetch, Sequence[int], F32], None]

# Elements that are decoded at a time: 1 MiB of float32, as in `dtypes`.
_STEP = 262_144
OTHER_COPY = "use a copy of the model whose embeddings are not quantized"


@dataclass(frozen=True, slots=True)
class Packed:
    """A table (rows, d_model) that is decoded from its `parts`; the first holds the codes.

    scheme: how it is packed, for people ("MLX: 4 bits, groups of 64"); dtype: the same in a word.
    params: the distinct numbers; rows x d_model, except where tokens share rows.
    by_row: a row's bytes lie together in every part. Where they do not, the parts must be on this
        machine whole, since every row touches all of the first one.
    """

    tensor: str
    scheme: str
    dtype: str
    shape: tuple[int, int]
    parts: tuple[TensorInfo, ...]
    decode: Decode = field(repr=False, compare=False)
    by_row: bool = True
    shared: tuple[int, int] | None = None

    @property
    def params(self) -> int:
        """The distinct numbers of the table."""
        return prod(self.shared or self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes that are stored, scales and all."""
        return sum(part.stop - part.start for part in self.parts)

    def rows(self, fetch: Fetch, ids: Sequence[int], out: F32 | None = None) -> F32:
        """Rows in the order asked for, (len(ids), d_model) float32; ids are not checked.

        ids: a list, or a `range` of step 1, which needs no copy of what is memory-mapped.
        out: (n or more, d_model) float32; its first rows are filled and returned.
        The working memory beside it stays at some MiB.
        """
        if out is None:
            out = np.empty((len(ids), self.shape[1]), np.float32)
        step = max(1, _STEP // max(1, self.shape[1]))
        # Hostile scales give 0 x infinity: values, not warnings.
        with np.errstate(all="ignore"):
            for first in range(0, len(ids), step):
                some = ids[first : first + step]
                self.decode(fetch, some, out[first : first + len(some)])
        return out[: len(ids)]


@dataclass(frozen=True, slots=True)
class Stem:
    """The tensors of one module: what stands after its name -> the tensor."""

    name: str
    tensor: TensorInfo
    beside: Mapping[str, TensorInfo]

    def take(self, *endings: str) -> TensorInfo | None:
        """The first of these that is there."""
        return next((self.beside[end] for end in endings if end in self.beside), None)

    def need(self, ending: str, scheme: str) -> TensorInfo:
        """A part that the scheme cannot do without."""
        found = self.take(ending)
        if found is None:
            raise FormatError(
                f"{self.tensor.name} looks like {scheme}, but there is no {self.name}.{ending}",
                "download the model again, or tell its author",
            )
        return found

    def refuse(self, why: str) -> UnsupportedError:
        """The error for a table that is not understood."""
        kind = f"{self.tensor.dtype} {list(self.tensor.shape)}"
        return UnsupportedError(f"{self.tensor.name} ({kind}) {why}", OTHER_COPY)

    def only(self, scheme: str, known: Sequence[str]) -> None:
        """Refuse tensors beside this one that might change what its numbers mean."""
        strange = sorted(self.beside.keys() - {*known, *HARMLESS})
        if strange:
            shown = ", ".join(strange[:4])
            raise self.refuse(f"is {scheme} with parts that are not known: {shown}")


#: Parts of a module that say nothing about the numbers of its table.
HARMLESS = frozenset(
    {"bias", "input_scale", "output_scale", "input_global_scale", "input_zero_point"}
    | {"k_scale", "v_scale", "input_scale_ub"}
)


def whole(fetch: Fetch, info: TensorInfo) -> U8:
    """All bytes of a small tensor, (1, nbytes)."""
    return fetch(info, range(1), info.stop - info.start)


def rows_of(fetch: Fetch, info: TensorInfo, ids: Sequence[int]) -> U8:
    """Rows of a tensor (rows, ...), (len(ids), bytes of a row)."""
    return fetch(info, ids, (info.stop - info.start) // info.shape[0])


def shared_rows(fetch: Fetch, info: TensorInfo, ids: Sequence[int], every: int) -> U8:
    """The same of a tensor that has one row for `every` rows of the table."""
    if every == 1:
        return rows_of(fetch, info, ids)
    wanted = np.asarray(ids, np.int64) // every
    nbytes = (info.stop - info.start) // info.shape[0]
    return units(fetch, info, wanted, nbytes, near=isinstance(ids, range))


def units(
    fetch: Fetch, info: TensorInfo, wanted: NDArray[np.int64], nbytes: int, *, near: bool
) -> U8:
    """Units of a tensor, (len(wanted), nbytes), each asked for once; `near`: as one range."""
    if near:
        first = int(wanted.min())
        return fetch(info, range(first, int(wanted.max()) + 1), nbytes)[wanted - first]
    distinct, place = np.unique(wanted, return_inverse=True)
    return fetch(info, distinct.tolist(), nbytes)[place]


def strip(fetch: Fetch, info: TensorInfo, columns: Sequence[int], nbytes: int) -> U8:
    """Some columns, of `nbytes` bytes each, of every row: (rows, len(columns) x nbytes)."""
    every = rows_of(fetch, info, range(info.shape[0])).view(f"V{nbytes}")
    if isinstance(columns, range):
        return np.ascontiguousarray(every[:, columns.start : columns.stop]).view(np.uint8)
    return np.ascontiguousarray(every[:, np.asarray(columns, np.int64)]).view(np.uint8)


def plain(info: TensorInfo) -> Packed:
    """A tensor of numbers stored one by one (rows, d_model): floats, or signed bytes as they are.

    Raises FormatError where it is no matrix.
    """
    if len(info.shape) != 2:
        raise FormatError(
            f"{info.name} has shape {list(info.shape)}, not rows x d_model",
            "name a matrix with --table",
        )
    rows, d_model = info.shape
    decode = partial(_plain, info)
    return Packed(info.name, info.dtype, info.dtype, (rows, d_model), (info,), decode)


def _plain(info: TensorInfo, fetch: Fetch, ids: Sequence[int], out: F32) -> None:
    np.copyto(out, values.numbers(info.dtype, rows_of(fetch, info, ids)))


def by_columns(info: TensorInfo) -> Packed:
    """The table (rows, d_model) of plain numbers that is stored as a matrix (d_model, rows)."""
    d_model, rows = info.shape
    decode = partial(_by_columns, info)
    scheme = f"{info.dtype}, column by column"
    return Packed(info.name, scheme, info.dtype, (rows, d_model), (info,), decode, by_row=False)


def _by_columns(info: TensorInfo, fetch: Fetch, ids: Sequence[int], out: F32) -> None:
    nbytes = (info.stop - info.start) // (info.shape[0] * info.shape[1])
    np.copyto(out, values.numbers(info.dtype, strip(fetch, info, ids, nbytes)).T)
