"""The questions of the command line as functions: records and numpy arrays come back.

    from embtool import Model, neighbors
    neighbors(Model.open("gemma-3-270m"), "国王", k=5)

Each raises `embtool.errors.EmbtoolError` for what the command line reports in two lines.
"""

from collections.abc import Sequence

from embtool.model import Model
from embtool.queries.analogy import WEIGHTS, Sums
from embtool.queries.candidates import Candidates
from embtool.queries.cosines import Similarity
from embtool.queries.failures import Failure
from embtool.queries.ground import Choices
from embtool.queries.nearest import Nearest
from embtool.queries.ranked import Analogy, Neighbors
from embtool.queries.records import Lookup
from embtool.queries.similarity import similarity as _similarity
from embtool.queries.texts import lookup as _lookup
from embtool.search.methods import Method
from embtool.search.nearest import Metric

__all__ = [
    "Analogy",
    "Candidates",
    "Choices",
    "Lookup",
    "Model",
    "Neighbors",
    "Similarity",
    "analogy",
    "lookup",
    "neighbors",
    "similarity",
]


def lookup(model: Model, text: str, table: str = "input") -> Lookup:
    """The rows of a text's tokens; `matrix` of the answer is (T, d_model) float32."""
    return _lookup(model, text, table, None)


def neighbors(
    model: Model,
    word: str,
    k: int = 10,
    *,
    metric: Metric = "cosine",
    choices: Choices | None = None,
    candidates: Candidates | None = None,
) -> Neighbors:
    """The k rows nearest to a word's.

    choices: how words and rows count (form, pool, center, remove); candidates: which rows may
    be answers.
    """
    chosen = (choices or Choices(), candidates or Candidates())
    (found,) = Nearest(model, *chosen, metric, k).words([[word]], alone=True)
    assert not isinstance(found, Failure)
    return found


def analogy(
    model: Model,
    *words: str,
    k: int = 10,
    method: Method = "3cosadd",
    weights: Sequence[float] = WEIGHTS,
    choices: Choices | None = None,
    candidates: Candidates | None = None,
) -> Analogy:
    """The k rows nearest to A - B + C, or to any sum: a weight for each word."""
    chosen = (choices or Choices(), candidates or Candidates())
    sums = Sums(model, *chosen, k, method, weights)
    (found,) = sums.answer([[words]], alone=True)
    assert not isinstance(found, Failure)
    return found


def similarity(model: Model, *words: str, choices: Choices | None = None) -> Similarity:
    """The cosines of words with one another; `matrix` of the answer is (n, n)."""
    return _similarity(model, words, choices or Choices())
