"""`dimensions`: a row's largest components, and the tokens at the two ends of a dimension."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embtool.errors import TokenError
from embtool.model import Model
from embtool.queries.ground import Choices, Ground
from embtool.search.ends import Ends, dimension_ends
from embtool.search.nearest import Hit
from embtool.vocab import Vocabulary, Word

#: Tokens at each end of each of a word's dimensions.
_ENDS = 3


@dataclass(frozen=True, slots=True)
class Standing:
    """A row at an end of a dimension; `rank` counts from 1 at that end."""

    rank: int
    id: int
    token: str | None
    raw: str | None
    value: float


@dataclass(frozen=True, slots=True)
class Dimension:
    """One component of a row.

    share: of the row's squared length. deviations: how many standard deviations the value lies
    above the dimension's mean over all rows.
    """

    rank: int
    dimension: int
    value: float
    share: float
    deviations: float | None
    highest: tuple[Standing, ...]
    lowest: tuple[Standing, ...]


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The components of a row that are largest in size; norm: the row's length."""

    model: str
    table: str
    word: Word
    norm: float
    dimensions: tuple[Dimension, ...]


@dataclass(frozen=True, slots=True)
class DimensionEnds:
    """One dimension over `rows` rows: its mean, its deviation, and the tokens at its ends."""

    model: str
    table: str
    dimension: int
    rows: int
    mean: float
    deviation: float
    highest: tuple[Standing, ...]
    lowest: tuple[Standing, ...]


def word_dimensions(model: Model, text: str, choices: Choices, k: int) -> Dimensions:
    """The k components of a word's row that are largest in size, equal ones by their number."""
    ground = Ground(model, choices)
    word = ground.word(text)
    vector = ground.vectors([word])[0]
    squared = float(vector @ vector)
    largest = np.argsort(-np.abs(vector), kind="stable")[:k].tolist()
    ends = _ends(ground, largest, _ENDS)
    found = tuple(
        Dimension(
            rank,
            dimension,
            float(vector[dimension]),
            float(vector[dimension] ** 2) / squared,
            (float(vector[dimension]) - each.mean) / each.deviation if each.deviation else None,
            _standings(ground.vocabulary, each.highest),
            _standings(ground.vocabulary, each.lowest),
        )
        for rank, (dimension, each) in enumerate(zip(largest, ends, strict=True), 1)
    )
    return Dimensions(model.ref, ground.table.tensor, word, squared**0.5, found)


def dimension(model: Model, index: int, choices: Choices, k: int) -> DimensionEnds:
    """The k rows with the largest and with the smallest values in one dimension.

    Raises:
        TokenError: the table has no such dimension.
    """
    ground = Ground(model, choices)
    width = ground.table.shape[1]
    if not 0 <= index < width:
        raise TokenError(
            f"dimension {index} is out of range: {ground.table.tensor} has {width:,}, "
            f"0 to {width - 1}",
            "give one that there is",
        )
    (found,) = _ends(ground, [index], k)
    return DimensionEnds(
        model.ref,
        ground.table.tensor,
        index,
        found.rows,
        found.mean,
        found.deviation,
        _standings(ground.vocabulary, found.highest),
        _standings(ground.vocabulary, found.lowest),
    )


def _ends(ground: Ground, dimensions: Sequence[int], k: int) -> list[Ends]:
    return ground.search(lambda work: dimension_ends(work, dimensions, k))


def _standings(vocabulary: Vocabulary, hits: Sequence[Hit]) -> tuple[Standing, ...]:
    return tuple(
        Standing(rank, hit.id, vocabulary.token(hit.id), vocabulary.raw(hit.id), hit.score)
        for rank, hit in enumerate(hits, 1)
    )
