"""`rank`: how near one word is to another, as its place among the other's neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass

from embtool.errors import TokenError
from embtool.model import Model
from embtool.queries.candidates import Candidates
from embtool.queries.ground import Choices, Ground
from embtool.search.nearest import Metric
from embtool.search.rank import rank_of
from embtool.vocab import Word


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


def rank(
    model: Model,
    texts: Sequence[str],
    choices: Choices,
    candidates: Candidates,
    metric: Metric,
) -> Rank:
    """The place of the second word among the neighbours of the first, as `neighbors` ranks them.

    Raises:
        TokenError: a word has no row, or the second may not rank.
    """
    ground = Ground(model, choices, candidates)
    word, other = ground.words_together(texts)
    if len(other.ids) != 1 or other.ids[0] in word.ids:
        raise TokenError(
            f"{other.text} is no row beside those of {word.text}, so it has no place among its "
            "neighbors",
            "give two words of different rows, the second of one token",
        )
    vector = ground.vectors([word])[0]
    found = ground.search(lambda work: rank_of(work, vector, other.ids[0], metric, word.ids))
    if found is None:
        raise TokenError(
            f"{other.text} (id {other.ids[0]}) may not rank: its row is zero, not finite, or no "
            "candidate",
            "leave out the options that choose candidates, or give another word",
        )
    return Rank(
        model.ref, ground.table.tensor, metric, word, other, found.rank, found.rows, found.score
    )
