"""One model's vocabulary: the kept index first, its tokenizer only for a text not asked before."""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from embtool.errors import TokenError
from embtool.vocab.display import shown, unescape
from embtool.vocab.index import Index
from embtool.vocab.kept import Asked, Own
from embtool.vocab.word import Word, check_rows
from embtool.vocab.words import UsageError, resolve, resolve_together, row_named, single

# Texts whose ids a process remembers, so that a word asked in many questions costs a look.
_REMEMBERED = 1 << 16


class Encoder(Protocol):
    """A tokenizer: text -> ids; `limits` says why some texts have none, if so."""

    limits: str | None

    def encode(self, text: str, special: bool = False, prefix: bool = True) -> list[int]:
        """The ids of a text, with the model's special tokens, with its own space before it."""
        ...

    def many(self, texts: Sequence[str], prefix: bool) -> Iterator[list[int]]:
        """The ids of every text, without special tokens."""
        ...


class Vocabulary:
    """Token ids, what they look like, and the ids of texts and words.

    Opened by `open_vocabulary`, `open_gguf_vocabulary` or `no_vocabulary`. Whatever is asked
    first may raise FormatError for the file it is read from.
    """

    def __init__(
        self,
        opened: Callable[[], Index],
        encoder: Callable[[Index], Encoder],
        own: Callable[[Index], Own | None],
        asked: Callable[[Index], Asked | None],
    ) -> None:
        self._open = opened
        self._make_encoder = encoder
        self._make_own = own
        self._make_asked = asked
        self._ids = functools.lru_cache(_REMEMBERED)(self._ids_of)

    @cached_property
    def _index(self) -> Index:
        return self._open()

    @cached_property
    def _encoder(self) -> Encoder:
        return self._make_encoder(self._index)

    @cached_property
    def _own(self) -> Own | None:
        return self._make_own(self._index)

    @cached_property
    def _asked(self) -> Asked | None:
        return self._make_asked(self._index)

    @property
    def kind(self) -> str:
        """How it spells text: bpe-bytes, sentencepiece, wordpiece, words, pieces; or none."""
        return self._index.kind

    @property
    def limits(self) -> str | None:
        """Why a text that is several tokens has no ids here; None where every text has some."""
        return self._encoder.limits

    @property
    def refused(self) -> str | None:
        """Why not even the tokens of the model's tokenizer are read, if so; `kind` is none then."""
        return self._index.rules.get("refused") if self.kind == "none" else None

    @property
    def size(self) -> int:
        """The largest id + 1."""
        return self._index.size

    @cached_property
    def count(self) -> int:
        """How many distinct ids have a token; less than `size` where ids have holes."""
        return self._index.count()

    @property
    def unknown_id(self) -> int | None:
        """The id that stands for an unknown text ([UNK]), if there is one."""
        return self._index.unknown_id

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The tokens that stand for no text: <bos>, [CLS], [UNK]."""
        return self._index.special_ids()

    def has_token(self) -> NDArray[np.bool_]:
        """(size,) bool: whether a token has the id."""
        return self._index.has_all()

    def token(self, token_id: int) -> str | None:
        """What a token looks like decoded, escaped; None for an id without a token."""
        return self._index.tokens[token_id] if self._index.has(token_id) else None

    def raw(self, token_id: int) -> str | None:
        """How the vocabulary spells a token, escaped; None for an id without a token."""
        return self._index.raws[token_id] if self._index.has(token_id) else None

    def text(self, token_id: int) -> bytes | None:
        """The bytes that a token stands for, not escaped; None for an id without a token."""
        token = self.token(token_id)
        return None if token is None else unescape(token)

    def displayed(self) -> list[str]:
        """`token` of every id from 0 to size - 1, "" for an id without a token."""
        return self._index.tokens.all()

    def id_of(self, raw: str) -> int | None:
        """The lowest id spelled so: as `raw` shows it, else exactly as it is."""
        found = self._index.id_of(raw)
        return self._index.id_of(shown(raw)) if found is None else found

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The ids of a text as the tokenizer gives them, nothing cut, nothing padded.

        `special` adds the model's own special tokens. Raises TokenError where the tokenizer
        gives none, UnsupportedError and SourceError where there is none that can be applied.
        """
        return list(self._ids("special" if special else "text", text))

    def text_ids(self, text: str, special: bool = False, rows: int | None = None) -> list[int]:
        """The ids of a TEXT; one that is exactly `id:` and digits is that row.

        Raises TokenError for an id past the table's `rows`, and as `encode` does.
        """
        named = row_named(text)
        ids = self.encode(text, special) if named is None else [named]
        check_rows(ids, [self.token(token_id) for token_id in ids], rows)
        return ids

    def word(
        self, text: str, form: str = "auto", pool: str | None = None, rows: int | None = None
    ) -> Word:
        """The row of a WORD; see `words.resolve`."""
        return resolve(self, text, form, pool, rows)

    def single(self, text: str, form: str = "auto") -> Word | None:
        """The WORD as `word` finds it, or None where it is no single known token.

        For those who ask for thousands of words and need no reason why one has no row.
        """
        return single(self, text, form)

    def words_together(
        self,
        texts: Sequence[str],
        form: str = "auto",
        pool: str | None = None,
        rows: int | None = None,
    ) -> list[Word]:
        """The rows of words that take one form together; see `words.resolve_together`."""
        return resolve_together(self, texts, form, pool, rows)

    def form_ids(self, body: str, form: str) -> list[int] | None:
        """The ids of a word bare or spaced, without a space of the tokenizer's own.

        None for `spaced` where a space before a word changes nothing. A tokenizer that drops the
        space and then puts one of its own (T5) makes the spaced form with that.
        """
        bare = functools.partial(self._ids_or_none, "bare", body)
        if form == "bare":
            return list(bare())
        for way in ("bare", "text") if self._index.rules.get("spaced", True) else ():
            spaced = self._ids_or_none(way, f" {body}")
            if spaced and (self.text(spaced[0]) or b"").startswith(b" "):
                return list(spaced)
            if spaced != bare():
                return list(spaced)
        return None

    def _ids_or_none(self, way: str, text: str) -> tuple[int, ...]:
        try:
            return self._ids(way, text)
        except TokenError:
            return ()

    def _ids_of(self, way: str, text: str) -> tuple[int, ...]:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise TokenError(f"{shown(text)} is no UTF-8 text", "type it in UTF-8") from error
        if way == "bare" and not self._index.rules.get("prefix"):
            way = "text"
        ids = self._kept_ids(way, text)
        if ids is None:
            ids = self._encoder.encode(text, special=way == "special", prefix=way != "bare")
            if self._asked is not None:
                self._asked.remember(way, text, ids)
        return tuple(ids)

    def _kept_ids(self, way: str, text: str) -> list[int] | None:
        if self._asked is None:
            return None
        ids = self._asked.recall(way, text)
        bare = way == "bare" or (way == "text" and not self._index.rules.get("prefix"))
        if ids is None and bare and self._own is not None:
            found = self._own.id_of(text)
            ids = None if found is None else [found]
        return ids

    def find(self, pattern: str, regex: bool = False, ignore_case: bool = False) -> Iterator[int]:
        """The ids whose displayed token holds a literal text, or matches a regular expression.

        In the order of ids. Raises UsageError for what is no regular expression.
        """
        try:
            flags = re.IGNORECASE if ignore_case else 0
            search = re.compile(pattern if regex else re.escape(pattern), flags).search
        except re.error as error:
            raise UsageError(f"{shown(pattern)} is no regular expression: {error}") from error
        has = self._index.has
        tokens = enumerate(self.displayed())
        return (token_id for token_id, token in tokens if search(token) and has(token_id))

    def reachable(self) -> NDArray[np.bool_]:
        """(size,) bool: whether a token's own text encodes back to that token alone.

        See `own_tokens`. It takes a second or more for a large vocabulary, once: it is kept.
        """
        known = None if self._own is None else self._own.known()
        if known is None:
            from embtool.vocab.own import own_tokens

            typed, known = own_tokens(self._index, self._encoder.many)
            if self._own is not None:
                self._own.keep(typed, known)
        return known
