"""`analogy`: the rows nearest to a sum of words, A − B + C unless another is asked for."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from embtool.errors import TokenError
from embtool.model import Model
from embtool.queries.ground import F64, Choices, Ground, attempt
from embtool.queries.records import Analogy, Failure, Term
from embtool.search.analogy import analogies as search_analogies
from embtool.search.methods import Method
from embtool.vocab import Word

#: A − B + C, as word2vec's papers and gensim write it; word2vec's own tool reads B A C.
WEIGHTS = (1.0, -1.0, 1.0)


@dataclass(frozen=True, slots=True)
class _Asked:
    words: tuple[Word, ...]
    vectors: F64


def analogies(
    model: Model,
    batches: Iterable[Sequence[tuple[str, ...]]],
    choices: Choices,
    k: int,
    *,
    method: Method = "3cosadd",
    weights: Sequence[float] = WEIGHTS,
    alone: bool,
) -> Iterator[Analogy | Failure]:
    """The k best answers to each question, in order; those of a batch share one pass.

    A question is as many words as there are weights; their own ids are left out. `alone`: there
    is one question only, so its error is raised.
    """
    ground = Ground(model, choices)

    def resolve(texts: tuple[str, ...]) -> _Asked:
        if len(texts) != len(weights):
            raise TokenError(
                f"{' '.join(texts)!r} has {len(texts)} words, not {len(weights)}",
                "give three words a line, with tabs between them if they hold spaces",
            )
        words = tuple(ground.words_together(texts))
        return _Asked(words, ground.vectors(words))

    for batch in batches:
        asked = [attempt(resolve, texts, "\t".join(texts), alone) for texts in batch]
        good = [each for each in asked if isinstance(each, _Asked)]
        found = iter(_answers(ground, good, method, weights, k))
        yield from (each if isinstance(each, Failure) else next(found) for each in asked)


def _answers(
    ground: Ground, asked: Sequence[_Asked], method: Method, weights: Sequence[float], k: int
) -> Iterator[Analogy]:
    if not asked:
        return
    vectors = np.concatenate([each.vectors for each in asked])
    terms = np.arange(len(vectors)).reshape(len(asked), len(weights))
    exclude = [[i for word in each.words for i in word.ids] for each in asked]
    found = ground.search(
        lambda work: search_analogies(
            work, vectors, terms, weights, k=k, method=method, exclude=exclude
        )
    )
    for each, hits in zip(asked, found, strict=True):
        yield Analogy(
            ground.model.ref,
            ground.table.tensor,
            method,
            formula(each.words, weights),
            tuple(_term(word, weight) for word, weight in zip(each.words, weights, strict=True)),
            ground.ranked(hits),
        )


def formula(words: Sequence[Word], weights: Sequence[float]) -> str:
    """The sum as it was computed: `国王 - 男人 + 女人`."""
    text = ""
    for word, weight in zip(words, weights, strict=True):
        sign = " - " if weight < 0 else " + " if text else ""
        factor = "" if abs(weight) == 1 else f"{abs(weight):g} "
        text += f"{sign}{factor}{word.text.strip()}"
    return text.strip()


def _term(word: Word, weight: float) -> Term:
    return Term(word.text, word.form, word.ids, word.tokens, word.pool, weight)
