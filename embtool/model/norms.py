"""Norms of a table's rows, kept in the cache beside what else is derived from the table."""

from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from embtool.source.derived import derived, write_atomic
from embtool.table import Table

F32 = NDArray[np.float32]


def load_norms(table: Table, space: str = "") -> F32 | None:
    """The kept norms of all rows, (rows,) float32; None where they are not there or not whole.

    `space` names where the rows were measured: "" for the table's own space.
    """
    try:
        norms = np.fromfile(_path(table, space), "<f4")
    except OSError:
        return None
    return norms if len(norms) == table.shape[0] else None


def save_norms(table: Table, norms: F32, space: str = "") -> None:
    """Keep the norms for the next question."""
    write_atomic(_path(table, space), lambda file: norms.astype("<f4", copy=False).tofile(file))


def _path(table: Table, space: str) -> Path:
    tensor = quote(table.tensor, safe="")
    return derived(table.key, f"{tensor}{space}.norms")
