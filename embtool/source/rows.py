"""Rows that were read once: kept, so that they are never asked for again.

A `.rows` file is one line of JSON, `{"tensor", "row_nbytes"}`, and then records of one length:
row id (u64), crc32 of id and row (u32), the stored row. Records are only ever appended. What a
killed run left half written is cut off by the next one that appends; a record whose crc does not
fit is as good as absent.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class KeptRows:
    """The kept rows of one tensor, `row_nbytes` stored bytes each."""

    def __init__(self, path: Path, tensor: str, row_nbytes: int) -> None:
        self.path = path
        head = json.dumps({"tensor": tensor, "row_nbytes": row_nbytes}) + "\n"
        self._head = head.encode()
        self._record = np.dtype(
            [("row", "<u8"), ("crc", "<u4"), ("stored", np.uint8, (row_nbytes,))]
        )

    def load(self, ids: Iterable[int]) -> dict[int, NDArray[np.uint8]]:
        """Those of the rows that are kept, by id; each is (row_nbytes,) uint8."""
        records = self._records()
        wanted = np.fromiter(set(ids), np.uint64)
        found: dict[int, NDArray[np.uint8]] = {}
        for at in np.flatnonzero(np.isin(records["row"], wanted)):
            record = records[at]
            row = int(record["row"])
            if int(record["crc"]) == _crc(row, record["stored"].tobytes()):
                found[row] = np.array(record["stored"])
        return found

    def add(self, rows: Mapping[int, bytes]) -> None:
        """Append rows; raises OSError where the cache cannot be written."""
        from embtool.source.client import WeakFileLock

        fresh = np.zeros(len(rows), self._record)
        for at, (row, stored) in enumerate(rows.items()):
            fresh[at] = (row, _crc(row, stored), np.frombuffer(stored, np.uint8))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = self.path.with_name(self.path.name + ".lock")
        with WeakFileLock(lock), self.path.open("ab") as file:
            end = self._sound_end(file.tell())
            file.truncate(end)
            file.write((b"" if end else self._head) + fresh.tobytes())

    def _sound_end(self, nbytes: int) -> int:
        """Where the last whole record ends; 0 where the file is not one of ours."""
        with self.path.open("rb") as file:
            if file.read(len(self._head)) != self._head:
                return 0
        return nbytes - (nbytes - len(self._head)) % self._record.itemsize

    def _records(self) -> NDArray[Any]:
        try:
            end = self._sound_end(self.path.stat().st_size)
            count = max(0, end - len(self._head)) // self._record.itemsize
            if count:
                return np.memmap(self.path, self._record, "r", len(self._head), (count,))
        except OSError:
            pass
        return np.empty(0, self._record)


def _crc(row: int, stored: bytes) -> int:
    return zlib.crc32(stored, zlib.crc32(row.to_bytes(8, "little")))
