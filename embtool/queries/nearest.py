"""`neighbors`: the rows nearest to each word's."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from embtool.model import Model
from embtool.queries.ground import F64, Choices, Ground, attempt
from embtool.queries.records import Failure, Neighbors
from embtool.search.nearest import Metric, top_k
from embtool.vocab import Word


def neighbors(
    model: Model,
    batches: Iterable[Sequence[str]],
    choices: Choices,
    metric: Metric,
    k: int,
    *,
    alone: bool,
) -> Iterator[Neighbors | Failure]:
    """The k nearest rows to each word, in order; the words of a batch share one pass.

    A word's own ids are left out. `alone`: there is one word only, so its error is raised.
    """
    ground = Ground(model, choices)

    def resolve(text: str) -> tuple[Word, F64]:
        word = ground.word(text)
        return word, ground.vectors([word])[0]

    for batch in batches:
        asked = [attempt(resolve, text, text, alone) for text in batch]
        good = [pair for pair in asked if not isinstance(pair, Failure)]
        found = iter(_nearest(ground, good, metric, k))
        yield from (each if isinstance(each, Failure) else next(found) for each in asked)


def _nearest(
    ground: Ground, asked: Sequence[tuple[Word, F64]], metric: Metric, k: int
) -> Iterator[Neighbors]:
    if not asked:
        return
    words = [word for word, _ in asked]
    vectors = np.stack([vector for _, vector in asked])
    exclude = [word.ids for word in words]
    found = ground.search(lambda work: top_k(work, vectors, k, metric, exclude))
    for word, hits in zip(words, found, strict=True):
        yield Neighbors(ground.model.ref, ground.table.tensor, metric, word, ground.ranked(hits))
