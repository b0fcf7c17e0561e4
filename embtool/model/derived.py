"""What is computed from a table once and kept in the cache: norms, the mean row, components."""

from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from embtool.source.derived import derived, write_atomic
from embtool.space import Space, leading_components, mean_row
from embtool.table import Table

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


def load_norms(table: Table, space: str = "") -> F32 | None:
    """The kept norms of all rows, (rows,) float32; None where they are not there or not whole.

    `space` names where the rows were measured, as `space_name` does.
    """
    norms = _load(table, f"norms{space}")
    fits = norms is not None and norms.dtype == np.float32 and norms.shape == table.shape[:1]
    return norms if fits else None


def save_norms(table: Table, norms: F32, space: str = "") -> None:
    """Keep the norms for the next question."""
    _save(table, f"norms{space}", norms)


def space_name(center: bool, remove: int) -> str:
    """How a space is told from others in file names; the table's own has none."""
    return f"-without-{remove}" if remove else "-centered" if center else ""


def open_space(table: Table, threads: int, *, center: bool, remove: int) -> Space | None:
    """Rows less their mean, and without their `remove` main components; None for the table's own.

    Computed by streaming, the first time.
    """
    if not center and not remove:
        return None
    mean = _load(table, "mean")
    if mean is None or mean.shape != table.shape[1:]:
        mean = mean_row(table.parts(threads))
        _save(table, "mean", mean)
    shape = (remove, table.shape[1])
    components = _load(table, f"components-{remove}") if remove else np.empty(shape)
    if components is None or components.shape != shape:
        components = leading_components(table.parts(threads), mean, remove)
        _save(table, f"components-{remove}", components)
    return Space(mean, components)


def _load(table: Table, name: str) -> NDArray[Any] | None:
    try:
        return np.asarray(np.load(_path(table, name), allow_pickle=False))
    except (OSError, ValueError, EOFError):
        return None


def _save(table: Table, name: str, values: NDArray[np.floating]) -> None:
    buffer = BytesIO()
    np.save(buffer, values)
    write_atomic(_path(table, name), lambda file: file.writelines([buffer.getbuffer()]))


def _path(table: Table, name: str) -> Path:
    return derived(table.key, f"{quote(table.tensor, safe='')}.{name}.npy")
