"""The ground that a question about words stands on: a table, a vocabulary, and how words count."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from embtool.errors import EmbtoolError, TokenError
from embtool.model import Model
from embtool.model.norms import load_norms, save_norms
from embtool.queries.records import Failure, Neighbor
from embtool.queries.texts import need_vocabulary
from embtool.search.blocks import Pass, finite
from embtool.search.nearest import Hit
from embtool.table import Table
from embtool.vocab import Vocabulary, Word

F64 = NDArray[np.float64]
_Q = TypeVar("_Q")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Choices:
    """How a person wants words to count: the table, the form of a word, several pieces as one."""

    table: str = "input"
    form: str = "auto"
    pool: str | None = None


class Ground:
    """One model's table and vocabulary under some choices."""

    def __init__(self, model: Model, choices: Choices) -> None:
        self.model = model
        self.choices = choices
        self.table: Table = model.table(choices.table)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The model's own, or the one that was named."""
        return self.model.vocabulary

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
        """One vector a word, (len(words), d_model) float64: its row, or what pooling makes of it.

        Raises:
            TokenError: a vector is zero or not finite, so that nothing is near it.
        """
        ids = [token_id for word in words for token_id in word.ids]
        rows = iter(self.table.rows(ids).astype(np.float64))
        vectors = np.stack([np.mean([next(rows) for _ in word.ids], axis=0) for word in words])
        for word, usable in zip(words, finite(vectors), strict=True):
            if not usable:
                raise TokenError(
                    f"the row of {word.text} (id {', '.join(map(str, word.ids))}) is zero or not "
                    "finite, so nothing is near it",
                    "ask about another word; `embtool lookup` shows the row",
                )
        return vectors

    def search(self, ask: Callable[[Pass], _T]) -> _T:
        """Run one pass over the table; its norms are kept for the next."""
        norms = load_norms(self.table)
        parts = self.table.parts(len(os.sched_getaffinity(0)))
        work = Pass(parts, lambda ids: self.table.rows(ids.tolist()), norms)
        found = ask(work)
        if norms is None and work.norms is not None:
            save_norms(self.table, work.norms)
        return found

    def ranked(self, hits: Iterable[Hit]) -> tuple[Neighbor, ...]:
        """Hits as records: rank, id, token, raw, score."""
        vocabulary = self.vocabulary
        return tuple(
            Neighbor(rank, hit.id, vocabulary.token(hit.id), vocabulary.raw(hit.id), hit.score)
            for rank, hit in enumerate(hits, 1)
        )


def attempt(resolve: Callable[[_Q], _T], query: _Q, name: str, alone: bool) -> _T | Failure:
    """What `resolve` makes of a query; a Failure where it cannot, unless the query is alone."""
    try:
        return resolve(query)
    except EmbtoolError as error:
        if alone:
            raise
        return Failure(name, error.message, error.advice)
