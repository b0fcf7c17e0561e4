"""What commands answer about texts and vocabularies.

Records are frozen, and their fields are the JSON fields, in order (DESIGN §2). `token` and `raw`
are display forms, already escaped; `text` is as typed. An array is for npy only. A record
stands in the file of the question that alone gives it, or with those that are given together: a
run pays for every class that it makes, a millisecond for a dataclass and less for a named tuple.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Token(NamedTuple):
    """A token at its place in a text."""

    position: int
    id: int
    token: str | None
    raw: str | None


class Tokens(NamedTuple):
    """The tokens of a text; `text` is None where the ids spell no valid UTF-8."""

    model: str
    text: str | None
    tokens: tuple[Token, ...]


class Entry(NamedTuple):
    """A token of the vocabulary."""

    id: int
    token: str | None
    raw: str | None


class Found(NamedTuple):
    """The vocabulary's tokens that match a pattern."""

    model: str
    pattern: str
    tokens: tuple[Entry, ...]


class Row(NamedTuple):
    """A token with its row: `norm` is the row's Euclidean length, `vector` its components."""

    position: int
    id: int
    token: str | None
    raw: str | None
    norm: float
    vector: tuple[float, ...]


class Lookup(NamedTuple):
    """The rows of a text's tokens; `matrix` is all of them, (T, d_model) float32.

    `scale` is the model's factor on a row at run time, where it was put on these; None: they are
    as they are stored.
    """

    model: str
    table: str
    text: str
    shape: tuple[int, int]
    tokens: tuple[Row, ...]
    scale: float | None
    matrix: NDArray[np.float32]
