"""What commands answer that rank rows."""

from dataclasses import dataclass

from embtool.vocab import Word


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
