"""A vocabulary that is stored in two tensors, read as one table (Molmo, IDEFICS)."""

from collections.abc import Iterator, Sequence
from hashlib import sha256

import numpy as np

from embtool.errors import FormatError
from embtool.table import F32, Table


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
        self.dtype = first.dtype
        self.shape = (first.shape[0] + extra.shape[0], first.shape[1])
        self.nbytes = first.nbytes + extra.nbytes
        self._tables = (first, extra)
        self._split = first.shape[0]

    @property
    def key(self) -> str:
        """That of the file, or of the two files together."""
        first, extra = (table.key for table in self._tables)
        return (
            first if first == extra else f"joined-{sha256(f'{first} {extra}'.encode()).hexdigest()}"
        )

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
        wanted = np.asarray(ids, np.int64)
        rows = np.empty((len(wanted), self.shape[1]), np.float32)
        for table, mine, start in zip(
            self._tables,
            (wanted < self._split, wanted >= self._split),
            (0, self._split),
            strict=True,
        ):
            if mine.any():
                rows[mine] = table.rows((wanted[mine] - start).tolist())
        return rows

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, F32]]:
        """Blocks of the first table, and then of the other, numbered on."""
        stop = self.shape[0] if stop is None else stop
        first, extra = self._tables
        if start < self._split:
            yield from first.blocks(start, min(stop, self._split))
        if stop > self._split:
            for row, block in extra.blocks(max(0, start - self._split), stop - self._split):
                yield row + self._split, block
