"""What commands answer: frozen records whose fields are the JSON fields, in order (DESIGN §2).

`token` and `raw` are display forms, already escaped; `text` is as typed. A field with the
metadata `json: False` is for other formats only.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from embtool.vocab import Word


@dataclass(frozen=True, slots=True)
class Failure:
    """One of several words, texts or models that could not be answered."""

    query: str
    error: str
    advice: str = field(metadata={"json": False})


@dataclass(frozen=True, slots=True)
class Token:
    """A token at its place in a text."""

    position: int
    id: int
    token: str | None
    raw: str | None


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a text; `text` is None where the ids spell no valid UTF-8."""

    model: str
    text: str | None
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A token of the vocabulary."""

    id: int
    token: str | None
    raw: str | None


@dataclass(frozen=True, slots=True)
class Found:
    """The vocabulary's tokens that match a pattern."""

    model: str
    pattern: str
    tokens: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A token with its row: `norm` is the row's Euclidean length, `vector` its components."""

    position: int
    id: int
    token: str | None
    raw: str | None
    norm: float
    vector: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Lookup:
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
    matrix: NDArray[np.float32] = field(metadata={"json": False})


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A row in a ranking; `rank` counts from 1."""

    rank: int
    id: int
    token: str | None
    raw: str | None
    score: float


@dataclass(frozen=True, slots=True)
class Folded(Neighbor):
    """The nearest spelling of a word; `variants` counts the others that were ranked after it."""

    variants: int


@dataclass(frozen=True, slots=True)
class Neighbors:
    """The rows nearest to a word's."""

    model: str
    table: str
    metric: str
    query: Word
    neighbors: tuple[Neighbor, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a sum, with its weight: a WORD record and one field more."""

    text: str
    form: str
    ids: tuple[int, ...]
    tokens: tuple[str | None, ...]
    pool: str | None
    weight: float


@dataclass(frozen=True, slots=True)
class Analogy:
    """The rows nearest to a sum of words; `formula` is the sum as it was computed."""

    model: str
    table: str
    method: str
    formula: str
    terms: tuple[Term, ...]
    answers: tuple[Neighbor, ...]


@dataclass(frozen=True, slots=True)
class Chance:
    """The distribution of the cosines of `pairs` random pairs of different tokens of a table.

    deviation: the standard deviation. percentiles: "1", "5", "25", "50", "75", "95", "99".
    """

    pairs: int
    seed: int
    mean: float
    deviation: float
    percentiles: dict[str, float]


@dataclass(frozen=True, slots=True)
class Similarity:
    """The cosines of words with one another, (n, n) float64; chance: what to judge them by."""

    model: str
    table: str
    words: tuple[Word, ...]
    matrix: tuple[tuple[float, ...], ...]
    chance: Chance | None


@dataclass(frozen=True, slots=True)
class Cross:
    """The cosines of some words with others, (len(rows), len(columns)) float64, and chance."""

    model: str
    table: str
    rows: tuple[Word, ...]
    columns: tuple[Word, ...]
    matrix: tuple[tuple[float, ...], ...]
    chance: Chance | None


@dataclass(frozen=True, slots=True)
class Rank:
    """How near `other` is to `word`: its place among the word's neighbours, of `of` rows."""

    model: str
    table: str
    metric: str
    word: Word
    other: Word
    rank: int
    of: int
    score: float
