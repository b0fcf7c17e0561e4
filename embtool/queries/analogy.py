"""`analogy`: the rows nearest to a sum of words, A − B + C unless another is asked for."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from embtool.errors import TokenError
from embtool.model import Model
from embtool.queries.candidates import Candidates
from embtool.queries.failures import Failure
from embtool.queries.folding import folded
from embtool.queries.ground import F64, Choices, Ground, attempt
from embtool.queries.ranked import Analogy, Term
from embtool.search.analogy import analogies, check_weights
from embtool.search.methods import Method
from embtool.search.nearest import Hit
from embtool.vocab import Word

#: A − B + C, as word2vec's papers and gensim write it; word2vec's own tool reads B A C.
WEIGHTS = (1.0, -1.0, 1.0)


class _Asked(NamedTuple):
    words: tuple[Word, ...]
    vectors: F64


class Sums:
    """The k best answers to sums of words; those of a batch share one pass."""

    def __init__(
        self,
        model: Model,
        choices: Choices,
        candidates: Candidates,
        k: int,
        method: Method = "3cosadd",
        weights: Sequence[float] = WEIGHTS,
    ) -> None:
        check_weights(method, weights)
        self._ground = Ground(model, choices, candidates)
        self._k = k
        self._method: Method = method
        self._weights = weights

    def answer(
        self, batches: Iterable[Sequence[tuple[str, ...]]], *, alone: bool
    ) -> Iterator[Analogy | Failure]:
        """The answers to each question, in order: as many words as there are weights.

        The words' own ids are left out. `alone`: there is one question only, so its error is
        raised.
        """
        for batch in batches:
            asked = [attempt(self._resolve, each, "\t".join(each), alone) for each in batch]
            found = iter(self._answers([each for each in asked if isinstance(each, _Asked)]))
            yield from (each if isinstance(each, Failure) else next(found) for each in asked)

    def _resolve(self, texts: tuple[str, ...]) -> _Asked:
        if len(texts) != len(self._weights):
            raise TokenError(
                f"{' '.join(texts)!r} has {len(texts)} words, not {len(self._weights)}",
                "give three words a line, with tabs between them if they hold spaces",
            )
        words = tuple(self._ground.words_together(texts))
        return _Asked(words, self._ground.vectors(words))

    def _answers(self, asked: Sequence[_Asked]) -> Iterator[Analogy]:
        if not asked:
            return
        ground, weights = self._ground, self._weights
        vectors = np.concatenate([each.vectors for each in asked])
        terms = np.arange(len(vectors)).reshape(len(asked), len(weights))
        exclude = [[i for word in each.words for i in word.ids] for each in asked]

        def search(k: int) -> list[list[Hit]]:
            return ground.search(
                lambda work: analogies(
                    work, vectors, terms, weights, k=k, method=self._method, exclude=exclude
                )
            )

        for each, ranked in zip(asked, folded(ground, self._k, search), strict=True):
            yield Analogy(
                ground.model.ref,
                ground.table.tensor,
                self._method,
                formula(each.words, weights),
                tuple(map(_term, each.words, weights)),
                ranked,
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
