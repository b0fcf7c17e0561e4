"""The ground that a question about words stands on: a table, a vocabulary, and how words count."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from embtool.errors import EmbtoolError, TokenError
from embtool.model import Model
from embtool.model.derived import load_norms, open_space, save_norms, space_name
from embtool.queries.candidates import Candidates, allowed_rows
from embtool.queries.failures import Failure, need_vocabulary
from embtool.queries.ranked import Answer, Neighbor
from embtool.search.blocks import Pass, finite
from embtool.search.nearest import Hit
from embtool.search.threads import threads
from embtool.space import Space
from embtool.table import Table
from embtool.vocab import Vocabulary, Word

F64 = NDArray[np.float64]
_Q = TypeVar("_Q")
_T = TypeVar("_T")


class Choices(NamedTuple):
    """How a person wants words and rows to count.

    form: of a typed word; pool: what becomes of a word of several tokens. center: rows less the
    table's mean row; remove: and without that many main components.
    """

    table: str = "input"
    form: str = "auto"
    pool: str | None = None
    center: bool = False
    remove: int = 0


class Ground:
    """One model's table and vocabulary under some choices."""

    def __init__(
        self, model: Model, choices: Choices, candidates: Candidates | None = None
    ) -> None:
        self.model = model
        self.choices = choices
        self.candidates = candidates or Candidates()
        self.table: Table = model.table(choices.table)
        self._threads = threads()

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The model's own, or the one that was named."""
        return self.model.vocabulary

    @cached_property
    def space(self) -> Space | None:
        """Where rows are compared; None for the table's own space."""
        choices = self.choices
        return open_space(self.table, self._threads, center=choices.center, remove=choices.remove)

    def word(self, text: str) -> Word:
        """The row of a typed word; raises TokenError where it has none."""
        vocabulary = self.vocabulary if text.startswith("id:") else need_vocabulary(self.model)
        choices = self.choices
        return vocabulary.word(text, choices.form, choices.pool, self.table.shape[0])

    def words_together(self, texts: Sequence[str]) -> list[Word]:
        """The rows of words that belong together, in one form where one serves all."""
        named = all(text.startswith("id:") for text in texts)
        vocabulary = self.vocabulary if named else need_vocabulary(self.model)
        choices = self.choices
        return vocabulary.words_together(texts, choices.form, choices.pool, self.table.shape[0])

    def vectors(self, words: Sequence[Word]) -> F64:
        """One vector a word in the space, (len(words), d_model) float64: its row, or its pool.

        Raises:
            TokenError: a vector is zero or not finite, so that nothing is near it.
        """
        stored = self.table.rows([i for word in words for i in word.ids])
        with np.errstate(invalid="ignore"):  # a signalling NaN, which is refused below
            rows = iter(stored.astype(np.float64))
        vectors = np.stack([pooled([next(rows) for _ in word.ids], word.pool) for word in words])
        vectors = self.moved(vectors)
        for word, usable in zip(words, finite(vectors), strict=True):
            if not usable:
                raise TokenError(
                    f"the row of {word.text} (id {', '.join(map(str, word.ids))}) is zero or not "
                    "finite, so nothing is near it",
                    "ask about another word; `embtool lookup` shows the row",
                )
        return vectors

    def moved(self, vectors: F64) -> F64:
        """Vectors (n, d_model) as they are in the space."""
        return vectors if self.space is None else self.space.apply(vectors)

    @cached_property
    def _allowed(self) -> NDArray[np.bool_]:
        return allowed_rows(self.vocabulary, self.table.shape[0], self.candidates)

    def search(self, ask: Callable[[Pass], _T]) -> _T:
        """Run one pass over the table; its norms are kept for the next."""
        space = space_name(self.choices.center, self.choices.remove)
        norms = load_norms(self.table, space)
        work = Pass(
            self.table.parts(self._threads),
            lambda ids: self.table.rows(ids.tolist()),
            norms,
            self._allowed,
            self.space,
            lambda vectors: self.table.products(vectors, self._threads),
        )
        found = ask(work)
        if norms is None and work.norms is not None:
            save_norms(self.table, work.norms, space)
        return found

    def ranked(self, hits: Iterable[Hit]) -> tuple[Answer, ...]:
        """Hits as records: rank, id, token, raw, score."""
        vocabulary = self.vocabulary
        return tuple(
            Neighbor(rank, hit.id, vocabulary.token(hit.id), vocabulary.raw(hit.id), hit.score)
            for rank, hit in enumerate(hits, 1)
        )


def pooled(rows: Sequence[F64], pool: str | None) -> F64:
    """The rows of a word's pieces as one vector, (d_model,); a single row stays itself."""
    match pool:
        case "first":
            return rows[0]
        case "last":
            return rows[-1]
        case "sum":
            total: F64 = np.sum(rows, axis=0, dtype=np.float64)
            return total
    mean: F64 = np.mean(rows, axis=0, dtype=np.float64)
    return mean


def attempt(resolve: Callable[[_Q], _T], query: _Q, name: str, alone: bool) -> _T | Failure:
    """What `resolve` makes of a query; a Failure where it cannot, unless the query is alone."""
    try:
        return resolve(query)
    except EmbtoolError as error:
        if alone:
            raise
        return Failure(name, error.message, error.advice)
