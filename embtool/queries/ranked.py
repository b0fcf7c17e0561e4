"""What commands answer that rank rows."""

from typing import NamedTuple

from embtool.vocab import Word


class Neighbor(NamedTuple):
    """A row in a ranking; `rank` counts from 1."""

    rank: int
    id: int
    token: str | None
    raw: str | None
    score: float


class Folded(NamedTuple):
    """The nearest spelling of a word; `variants` counts the others that were ranked after it."""

    rank: int
    id: int
    token: str | None
    raw: str | None
    score: float
    variants: int


Answer = Neighbor | Folded


class Neighbors(NamedTuple):
    """The rows nearest to a word's."""

    model: str
    table: str
    metric: str
    query: Word
    neighbors: tuple[Answer, ...]


class Term(NamedTuple):
    """A word of a sum, with its weight: a WORD record and one field more."""

    text: str
    form: str
    ids: tuple[int, ...]
    tokens: tuple[str | None, ...]
    pool: str | None
    weight: float


class Analogy(NamedTuple):
    """The rows nearest to a sum of words; `formula` is the sum as it was computed."""

    model: str
    table: str
    method: str
    formula: str
    terms: tuple[Term, ...]
    answers: tuple[Answer, ...]
