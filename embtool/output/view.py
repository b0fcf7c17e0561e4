"""A record as columns and rows: what every list format writes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Cell = str | int | float | bool | None


class View(NamedTuple):
    """A record as columns and rows.

    `title` and `footer` are lines that only a person sees, and a person does not see the last
    `beside` columns, which repeat the title for pipelines. A `page` shows no names of
    columns. `lines` are the parts of the record that are one line each in JSON Lines (None: the
    record itself). `notes` are sentences that a list has no place for. `matrix` is what npy saves.
    A view with `sections` is a page to read and no list: it is those views one after the other,
    some of which are sentences without columns.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
    title: str = ""
    footer: tuple[str, ...] = ()
    beside: int = 0
    page: bool = False
    lines: tuple[Any, ...] | None = None
    notes: tuple[str, ...] = ()
    matrix: NDArray[np.generic] | None = None
    sections: tuple["View", ...] = ()
