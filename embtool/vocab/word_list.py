"""A list of words, as classic vectors have: a word is its row, and nothing is split further."""

from collections.abc import Iterator, Sequence

import numpy as np

from embtool.errors import FormatError, TokenError
from embtool.vocab.contents import ADVICE, MAX_IDS, NORMAL, Contents
from embtool.vocab.display import escape, escape_all, shown
from embtool.vocab.index import Index


def contents_of(words: Sequence[bytes]) -> Contents:
    """The vocabulary of a list; of a word that stands twice the first row is the word's."""
    if len(words) > MAX_IDS:
        raise FormatError(f"a list of {len(words)} words is longer than {MAX_IDS}", ADVICE)
    names = escape_all(words)
    rules = {"prefix": False, "mark": "", "spaced": False}
    return Contents("words", names, names, np.full(len(words), NORMAL, np.uint8), rules=rules)


class WordList:
    """A text's words by the spaces between them; a text that is itself a word is that word."""

    limits: str | None = None

    def __init__(self, index: Index) -> None:
        self._index = index

    def encode(self, text: str, special: bool = False, prefix: bool = True) -> list[int]:
        """The ids of a text's words. Raises TokenError for a word that is not in the list."""
        whole = self._id_of(text)
        if whole is not None:
            return [whole]
        ids = []
        for word in text.split():
            token_id = self._id_of(word)
            if token_id is None:
                raise TokenError(
                    f"{shown(word)} is not among the words of the list",
                    "type it as the list does (embtool find), or name a row with id:N",
                )
            ids.append(token_id)
        return ids

    def many(self, texts: Sequence[str], prefix: bool) -> Iterator[list[int]]:
        """The ids of every text; none for one with a word that is not in the list."""
        for text in texts:
            try:
                yield self.encode(text)
            except TokenError:
                yield []

    def _id_of(self, word: str) -> int | None:
        return self._index.id_of(escape(word.encode("utf-8")))
