"""A vocabulary that is stored in two tensors, read as one table (Molmo, IDEFICS)."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from embtool.errors import FormatError
from embtool.source.derived import joined_key
from embtool.table import F32, Table

_Number = TypeVar("_Number", np.float32, np.uint8)


class Joined(Table):
    """The rows of `first`, and after them those of `extra`, as one matrix.

    Raises FormatError where their widths differ.
    """

    def __init__(self, first: Table, extra: Table) -> None:
        if first.shape[1] != extra.shape[1]:
            raise FormatError(
                f"the vocabulary is split over {first.tensor}, which is {first.shape[1]} wide, and "
                f"{extra.tensor}, which is {extra.shape[1]} wide",
                "name one of the two with --table",
            )
        self.tensor = f"{first.tensor} + {extra.tensor}"
        self.file = first.file
        self.dtype = " + ".join(dict.fromkeys((first.dtype, extra.dtype)))
        self.shape = (first.shape[0] + extra.shape[0], first.shape[1])
        self.nbytes = first.nbytes + extra.nbytes
        self._tables = (first, extra)
        self._split = first.shape[0]

    @property
    def key(self) -> str:
        """That of the file, or of the two files together."""
        return joined_key([table.key for table in self._tables])

    @property
    def params(self) -> int:
        """The numbers of both tables."""
        return sum(table.params for table in self._tables)

    @property
    def is_here(self) -> bool:
        """Whether both tables are on this machine."""
        return all(table.is_here for table in self._tables)

    @property
    def is_cut(self) -> bool:
        """Whether a file ends before its table does."""
        return any(table.is_cut for table in self._tables)

    def rows(self, ids: Sequence[int]) -> F32:
        """Rows of either table, (len(ids), d_model) float32, in the order asked for."""
        self._check(ids)
        return self._gather(ids, lambda table, rows: table.rows(rows))

    def stored_rows(self, ids: Sequence[int]) -> NDArray[np.uint8]:
        """The same as they are stored, where both tables are stored alike."""
        return self._gather(ids, lambda table, rows: table.stored_rows(rows))

    def _gather(
        self, ids: Sequence[int], read: Callable[[Table, list[int]], NDArray[_Number]]
    ) -> NDArray[_Number]:
        wanted = np.asarray(ids, np.int64)
        late = wanted >= self._split
        first, extra = self._tables
        found = [
            read(first, wanted[~late].tolist()),
            read(extra, (wanted[late] - self._split).tolist()),
        ]
        rows = np.empty((len(wanted), found[0].shape[1]), found[0].dtype)
        rows[~late], rows[late] = found
        return rows

    def products(self, vectors: F32, count: int) -> None:
        """None: such a table is rare, and two tables."""

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, F32]]:
        """Blocks of the first table, and then of the other, numbered on."""
        stop = self.shape[0] if stop is None else stop
        first, extra = self._tables
        if start < self._split:
            yield from first.blocks(start, min(stop, self._split))
        if stop > self._split:
            for row, block in extra.blocks(max(0, start - self._split), stop - self._split):
                yield row + self._split, block
