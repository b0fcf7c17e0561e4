"""What several questions about rows share: rows as records, and each row's kind of token."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from embtool.queries.records import Entry
from embtool.vocab import Vocabulary, script, unescape


@dataclass(frozen=True, slots=True)
class Ids:
    """Some rows: how many, and which, ascending."""

    count: int
    ids: tuple[int, ...]


def ids_record(ids: Iterable[int]) -> Ids:
    """Ids as a record."""
    listed = tuple(int(row) for row in ids)
    return Ids(len(listed), listed)


def entries(vocabulary: Vocabulary, ids: Iterable[int]) -> tuple[Entry, ...]:
    """Rows with the tokens that name them."""
    return tuple(Entry(row, vocabulary.token(row), vocabulary.raw(row)) for row in ids)


def named_rows(vocabulary: Vocabulary, rows: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """(rows,) bool: which rows have a token."""
    named = np.zeros(rows, bool)
    known = [vocabulary.raw(row) is not None for row in range(min(rows, vocabulary.size))]
    named[: len(known)] = known
    return named


def scripts(vocabulary: Vocabulary, rows: int) -> list[str]:
    """What each row's token is written in: `script`'s names, and four more.

    "special" for tokens that stand for no text, "bytes" for a piece of a character, "no letter"
    for digits, signs and spaces, "no token" for a row that no token names.
    """
    special = vocabulary.special_ids
    shown: Sequence[str] = vocabulary.displayed()
    names = ["no token"] * rows
    for row in range(min(rows, vocabulary.size)):
        if row in special:
            names[row] = "special"
        elif vocabulary.raw(row) is not None:
            names[row] = _script(shown[row])
    return names


def _script(shown: str) -> str:
    if "\\" in shown:
        try:
            shown = unescape(shown).decode()
        except UnicodeDecodeError:
            return "bytes"
    return script(shown) or "no letter"
