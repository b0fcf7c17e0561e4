"""Which rows may be answers: those that have a token, and that a person wants to see."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embtool.errors import TokenError
from embtool.vocab import UsageError, Vocabulary, script

Mask = NDArray[np.bool_]

#: Scripts that are written without spaces, so that any token may begin a word.
_UNSPACED = ("han", "kana", "thai", "lao", "khmer", "myanmar")


class Candidates(NamedTuple):
    """Rows that may be answers.

    only: a regular expression on the displayed token. script: of its first letter. words: tokens
    that begin a word. first: ids below it. exclude_special: no `<bos>` and the like. fold: of
    the spellings of one word (king, King, KING, with a space or without) the nearest alone.
    """

    only: str | None = None
    script: str | None = None
    words: bool = False
    first: int | None = None
    exclude_special: bool = False
    fold: bool = False


def allowed_rows(vocabulary: Vocabulary, rows: int, candidates: Candidates) -> Mask:
    """Which of the table's rows may be answers, (rows,) bool.

    A row without a token never is, where there is a vocabulary at all.

    Raises:
        UsageError: a pattern that is no regular expression. TokenError: no row is left.
    """
    allowed = _allowed(vocabulary, rows, candidates)
    if not allowed.any():
        raise TokenError(
            f"none of {rows:,} rows is a candidate",
            "leave out one of --only, --script, --words, --first and --exclude-special",
        )
    return allowed


def _allowed(vocabulary: Vocabulary, rows: int, candidates: Candidates) -> Mask:
    if vocabulary.kind == "none":
        return _below(np.ones(rows, np.bool_), candidates.first)
    allowed = np.zeros(rows, np.bool_)
    has = vocabulary.has_token()[:rows]
    allowed[: len(has)] = has
    if candidates.exclude_special:
        allowed[[token_id for token_id in vocabulary.special_ids if token_id < rows]] = False
    allowed = _below(allowed, candidates.first)
    if candidates.only is not None or candidates.script is not None or candidates.words:
        tokens = vocabulary.displayed()
        wanted = _chooser(vocabulary, candidates)
        for token_id in np.flatnonzero(allowed).tolist():
            allowed[token_id] = wanted(token_id, tokens[token_id])
    return allowed


def fold_key(token: str | None) -> str:
    """What the spellings of one word have in common: no space around it, and no case."""
    return (token or "").strip().casefold()


def _below(allowed: Mask, first: int | None) -> Mask:
    if first is not None:
        allowed[first:] = False
    return allowed


def _chooser(vocabulary: Vocabulary, candidates: Candidates) -> Callable[[int, str], bool]:
    """Whether a displayed token is wanted."""
    try:
        pattern = re.compile(candidates.only or "")
    except re.error as error:
        raise UsageError(f"{candidates.only} is no regular expression: {error}") from error
    spaced = vocabulary.kind in ("bpe-bytes", "sentencepiece")

    def begins_word(token_id: int, token: str, letters: str | None) -> bool:
        if vocabulary.kind == "wordpiece":
            return letters is not None and not (vocabulary.raw(token_id) or "").startswith("##")
        unspaced = not spaced or letters in _UNSPACED
        return letters is not None and (unspaced or token.startswith(" "))

    def wanted(token_id: int, token: str) -> bool:
        if not pattern.search(token):
            return False
        if candidates.script is None and not candidates.words:
            return True
        found = script(token)
        if candidates.script not in (None, found):
            return False
        return not candidates.words or begins_word(token_id, token, found)

    return wanted
