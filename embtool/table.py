"""One table of a model: float32 rows and blocks, read from where its bytes are."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from embtool import dtypes
from embtool.errors import FormatError, TokenError
from embtool.header import TensorInfo
from embtool.source import Progress, Source
from embtool.source.derived import joined_key

if TYPE_CHECKING:
    from embtool.packed import Packed
    from embtool.products import Products

F32 = NDArray[np.float32]


class Table:
    """A stored matrix of `shape` (rows, d_model); nothing is read until it is asked for."""

    def __init__(self, source: Source, file: str, info: TensorInfo, progress: Progress) -> None:
        if len(info.shape) != 2:
            raise FormatError(
                f"{source.ref}: {info.name} has shape {list(info.shape)}, not rows x d_model",
                "name a matrix with --table",
            )
        self.tensor = info.name
        self.file = file
        self.dtype = info.dtype
        self.shape = (info.shape[0], info.shape[1])
        self.nbytes = info.stop - info.start
        self._source = source
        self._info = info
        self._progress = progress
        self._row_nbytes = dtypes.row_nbytes(info.dtype, info.shape[1])

    @property
    def key(self) -> str:
        """The identity of the table's bytes, for naming what is derived from them."""
        return self._source.key(self.file)

    def rows(self, ids: Sequence[int]) -> F32:
        """Rows in the order asked for, (len(ids), d_model) float32.

        Raises:
            TokenError: an id that is no row.
        """
        self._check(ids)
        return dtypes.decode(self.dtype, self.stored_rows(ids))

    def _check(self, ids: Sequence[int]) -> None:
        for row in ids:
            if not 0 <= row < self.shape[0]:
                raise TokenError(
                    f"id {row} is out of range: {self.tensor} has {self.shape[0]} rows, "
                    f"0 to {self.shape[0] - 1}",
                    "give an id that has a row",
                )

    def stored_rows(self, ids: Sequence[int]) -> NDArray[np.uint8]:
        """Rows as they are stored, (len(ids), row bytes) uint8; ids are not checked.

        Raises:
            FormatError: the file was cut short before one of these rows.
        """
        if self.is_cut and max(ids, default=-1) >= self._rows_there:
            raise self._cut(f"row {max(ids)}")
        if self.is_here and not self.is_cut:
            return self.stored[list(ids)]
        return self._source.rows(self.file, self._info, ids, self._row_nbytes, self._progress)

    @property
    def is_cut(self) -> bool:
        """Whether the file ends before the table does; rows before its end can be read."""
        return self._rows_there < self.shape[0]

    @cached_property
    def _rows_there(self) -> int:
        """Rows that end within the file."""
        there = max(0, self._source.size(self.file) - self._info.start)
        return self.shape[0] if there >= self.nbytes else there // self._row_nbytes

    def _cut(self, what: str) -> FormatError:
        nbytes, there = self._source.size(self.file), self._rows_there
        rows = f"rows 0 to {there - 1} are there" if there else "no row of it is there"
        return FormatError(
            f"{self._source.ref}: {what} of {self.tensor} is missing: {self.file} is cut short, it "
            f"has {nbytes:,} bytes and the table lacks {self._info.stop - nbytes:,} more; {rows}",
            "copy or download the file again",
        )

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, F32]]:
        """Yield (first row, block (n, d_model) float32) over rows [start, stop), in order.

        A block is a buffer that the next step overwrites: copy what must outlive it.
        """
        # A lookup reads rows alone, and need not load what only scans use.
        from embtool.search.blocks import block_rows

        stored = self.stored
        stop = self.shape[0] if stop is None else stop
        step = block_rows(self.shape[1])
        buffer = np.empty((min(step, stop - start), self.shape[1]), np.float32)
        for first in range(start, stop, step):
            last = min(first + step, stop)
            yield first, dtypes.decode(self.dtype, stored[first:last], out=buffer)

    def parts(self, count: int) -> list[Iterator[tuple[int, F32]]]:
        """`blocks` of `count` consecutive row ranges: one for each thread of a scan."""
        return [self.blocks(a, b) for a, b in pairwise(self._bounds(count))]

    def products(self, vectors: F32, count: int) -> "Products | None":
        """The products of a few vectors (v, d_model) with all rows, in `count` parts.

        None where there is no faster way to them than through `parts`.
        """
        from embtool.products import products
        from embtool.search.blocks import block_rows

        step = block_rows(self.shape[1])
        return products(self.dtype, self.stored, vectors, step, self._bounds(count))

    def _bounds(self, count: int) -> list[int]:
        return [self.shape[0] * part // count for part in range(count + 1)]

    @property
    def params(self) -> int:
        """The numbers of the table."""
        return self.shape[0] * self.shape[1]

    @property
    def is_here(self) -> bool:
        """Whether the whole table is on this machine."""
        known = "stored" in self.__dict__
        return known or self._source.local(self.file, self._info) is not None

    @cached_property
    def stored(self) -> NDArray[np.uint8]:
        """The stored rows, (rows, row bytes) uint8, memory-mapped; fetched if they must be."""
        if self.is_cut:
            raise self._cut(f"row {self._rows_there}")
        path, start = self._source.fetch(self.file, self._info, self._progress)
        if self.nbytes == 0:
            return np.empty((self.shape[0], self._row_nbytes), np.uint8)
        shape = (self.shape[0], self._row_nbytes)
        return np.memmap(path, np.uint8, "r", start, shape).view(np.ndarray)


class Units:
    """Bytes of stored tensors by numbered units, from the files that `files` names for them."""

    def __init__(self, source: Source, files: Mapping[str, str], progress: Progress) -> None:
        self._source = source
        self._files = files
        self._progress = progress
        self._mapped: dict[TensorInfo, NDArray[np.uint8]] = {}

    def fetch(self, info: TensorInfo, ids: Sequence[int], nbytes: int) -> NDArray[np.uint8]:
        """Units of `nbytes` bytes, (len(ids), nbytes); of a tensor that is here a range is a view.

        Of one that is not only the bytes asked for are read.
        """
        stored = self._at_hand(info)
        if stored is None:
            file = self._files[info.name]
            return self._source.rows(file, info, ids, nbytes, self._progress)
        units = stored[: len(stored) // nbytes * nbytes].reshape(-1, nbytes)
        return units[ids.start : ids.stop] if isinstance(ids, range) else units[list(ids)]

    def is_here(self, info: TensorInfo) -> bool:
        """Whether the whole tensor is on this machine."""
        return self._at_hand(info) is not None

    def bring(self, info: TensorInfo) -> None:
        """Fetch the whole tensor if it is not here."""
        if not self.is_here(info):
            self._source.fetch(self._files[info.name], info, self._progress)

    def key(self, info: TensorInfo) -> str:
        """The identity of the file that holds a tensor."""
        return self._source.key(self._files[info.name])

    def _at_hand(self, info: TensorInfo) -> NDArray[np.uint8] | None:
        if info not in self._mapped:
            here = self._source.local(self._files[info.name], info)
            if here is None:
                return None
            nbytes = info.stop - info.start
            empty = np.empty(0, np.uint8)
            mapped = np.memmap(here[0], np.uint8, "r", here[1], (nbytes,)) if nbytes else empty
            self._mapped[info] = mapped.view(np.ndarray)
        return self._mapped[info]


class PackedTable(Table):
    """A table whose rows are decoded from several stored tensors: numbers, scales, mappings."""

    def __init__(self, packed: "Packed", file: str, units: Units) -> None:
        self.tensor = packed.tensor
        self.file = file
        self.dtype = packed.dtype
        self.shape = packed.shape
        self.nbytes = packed.nbytes
        self.packed = packed
        self._units = units

    @property
    def key(self) -> str:
        """That of the file, or of all files together."""
        return joined_key(sorted({self._units.key(part) for part in self.packed.parts}))

    @property
    def params(self) -> int:
        """The distinct numbers: rows that tokens share count once."""
        return self.packed.params

    @property
    def is_here(self) -> bool:
        """Whether every part is on this machine."""
        return all(map(self._units.is_here, self.packed.parts))

    @property
    def is_cut(self) -> bool:
        """Never: a file that ends before its tensors do is refused when it is opened."""
        return False

    def rows(self, ids: Sequence[int]) -> F32:
        """Rows in the order asked for, (len(ids), d_model) float32.

        Where a row's bytes are spread over a part, the parts are fetched whole first.
        """
        self._check(ids)
        if not self.packed.by_row:
            self._bring()
        return self.packed.rows(self._units.fetch, ids)

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, F32]]:
        """As those of a plain table."""
        from embtool.search.blocks import block_rows

        self._bring()
        stop = self.shape[0] if stop is None else stop
        step = block_rows(self.shape[1])
        buffer = np.empty((min(step, stop - start), self.shape[1]), np.float32)
        for first in range(start, stop, step):
            last = min(first + step, stop)
            yield first, self.packed.rows(self._units.fetch, range(first, last), out=buffer)

    def products(self, vectors: F32, count: int) -> "Products | None":
        """None: rows of several tensors are decoded first."""
        return None

    def _bring(self) -> None:
        for part in self.packed.parts:
            self._units.bring(part)
