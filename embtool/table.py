"""One table of a model: float32 rows and blocks, read from where its bytes are."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from embtool import dtypes
from embtool.errors import FormatError, TokenError
from embtool.header import TensorInfo
from embtool.source import Progress, Source

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
        for row in ids:
            if not 0 <= row < self.shape[0]:
                raise TokenError(
                    f"id {row} is out of range: {self.tensor} has {self.shape[0]} rows, "
                    f"0 to {self.shape[0] - 1}",
                    "give an id that has a row",
                )
        return dtypes.decode(self.dtype, self.stored_rows(ids))

    def stored_rows(self, ids: Sequence[int]) -> NDArray[np.uint8]:
        """Rows as they are stored, (len(ids), row bytes) uint8; ids are not checked."""
        if self.is_here:
            return self.stored[list(ids)]
        return self._source.rows(self.file, self._info, ids, self._row_nbytes)

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
        bounds = [self.shape[0] * part // count for part in range(count + 1)]
        return [self.blocks(a, b) for a, b in pairwise(bounds)]

    @property
    def is_here(self) -> bool:
        """Whether the whole table is on this machine."""
        known = "stored" in self.__dict__
        return known or self._source.local(self.file, self._info) is not None

    @cached_property
    def stored(self) -> NDArray[np.uint8]:
        """The stored rows, (rows, row bytes) uint8, memory-mapped; fetched if they must be."""
        path, start = self._source.fetch(self.file, self._info, self._progress)
        missing = start + self.nbytes - path.stat().st_size
        if missing > 0:
            raise FormatError(
                f"{self._source.ref}: {self.file} is truncated: {missing} bytes of "
                f"{self.tensor} are missing",
                "copy or download the file again",
            )
        if self.nbytes == 0:
            return np.empty((self.shape[0], self._row_nbytes), np.uint8)
        shape = (self.shape[0], self._row_nbytes)
        return np.memmap(path, np.uint8, "r", start, shape).view(np.ndarray)
