"""What commands answer about how near given words are."""

from dataclasses import dataclass

from embtool.vocab import Word


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
