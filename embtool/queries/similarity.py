"""`similarity`: the cosines of words with one another."""

from collections.abc import Sequence

import numpy as np

from embtool.model import Model
from embtool.queries.ground import Choices, Ground
from embtool.queries.records import Similarity
from embtool.search.blocks import unit


def similarity(model: Model, texts: Sequence[str], choices: Choices) -> Similarity:
    """The matrix of cosines, float64.

    Raises:
        TokenError: a word has no row; the matrix is whole or not at all.
    """
    ground = Ground(model, choices)
    words = tuple(ground.word(text) for text in texts)
    directions = unit(ground.vectors(words))
    cosines = np.clip(directions @ directions.T, -1, 1)
    matrix = tuple(tuple(row) for row in cosines.tolist())
    return Similarity(model.ref, ground.table.tensor, words, matrix)
