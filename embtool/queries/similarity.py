"""`similarity`: the cosines of words with one another, or of one list with another.

Beside them stands the distribution of the table's own cosines, by which a number can be judged;
it is left out where the table is not on this machine.
"""

from collections.abc import Sequence

import numpy as np

from embtool.model import Model
from embtool.queries.chance import chance
from embtool.queries.cosines import Cross, Similarity
from embtool.queries.ground import F64, Choices, Ground
from embtool.search.blocks import unit
from embtool.vocab import Word

_Matrix = tuple[tuple[float, ...], ...]


def similarity(model: Model, texts: Sequence[str], choices: Choices) -> Similarity:
    """The matrix of cosines, float64.

    Raises:
        TokenError: a word has no row; the matrix is whole or not at all.
    """
    ground = Ground(model, choices)
    words, directions = _directions(ground, texts)
    matrix = _cosines(directions, directions)
    return Similarity(model.ref, ground.table.tensor, words, matrix, chance(ground))


def cross(model: Model, rows: Sequence[str], columns: Sequence[str], choices: Choices) -> Cross:
    """The cosines of every word of one list with every word of another; raises as above."""
    ground = Ground(model, choices)
    (left, these), (right, those) = _directions(ground, rows), _directions(ground, columns)
    cosines = _cosines(these, those)
    return Cross(model.ref, ground.table.tensor, left, right, cosines, chance(ground))


def _directions(ground: Ground, texts: Sequence[str]) -> tuple[tuple[Word, ...], F64]:
    words = tuple(ground.word(text) for text in texts)
    return words, unit(ground.vectors(words))


def _cosines(these: F64, those: F64) -> _Matrix:
    cosines = np.clip(these @ those.T, -1, 1)
    return tuple(tuple(row) for row in cosines.tolist())
