"""A tokenizer.json, applied by the tokenizers library; its only importer.

Loading takes seconds where the vocabulary is large, so nothing is loaded before the first text.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from embtool.errors import FormatError, TokenError
from embtool.vocab.contents import ADVICE
from embtool.vocab.display import escape, shown
from embtool.vocab.index import Index
from embtool.vocab.spelling import unprefixed

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Texts handed to the library at once: enough for all its threads, few enough to stay in memory.
_BATCH = 8192


class _Loaded(NamedTuple):
    tokenizer: "Tokenizer"
    renumbered: dict[int, int]


class Library:
    """The tokenizer of a file, without truncation, without padding.

    `read` gives the file's bytes; `index` is the vocabulary that was read from them.
    """

    limits: str | None = None

    def __init__(self, read: Callable[[], bytes], file: str, index: Index) -> None:
        self._read = read
        self._file = file
        self._index = index

    @cached_property
    def _whole(self) -> _Loaded:
        return self._load(self._read())

    @cached_property
    def _bare(self) -> _Loaded:
        """The same without a space of its own before a text."""
        if not self._index.rules["prefix"]:
            return self._whole
        from embtool.vocab import from_json

        changed = unprefixed(from_json.parse(self._read(), self._file))
        return self._load(json.dumps(changed).encode("ascii"))

    def _load(self, raw: bytes) -> _Loaded:
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_buffer(raw)
        except BaseException as error:
            if not _is_of_library(error):
                raise
            raise FormatError(f"{self._file}: it is no tokenizer: {error}", ADVICE) from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return _Loaded(tokenizer, self._renumbered(tokenizer))

    def _renumbered(self, tokenizer: "Tokenizer") -> dict[int, int]:
        """Ids that the library gives to added tokens -> the other ids that the file gives them.

        The library numbers added tokens in a row, past any holes that the file leaves.
        """
        renumbered = {}
        for token_id, token in tokenizer.get_added_tokens_decoder().items():
            raw = escape(str(token.content).encode("utf-8"))
            if self._index.has(token_id) and self._index.raws[token_id] == raw:
                continue
            meant = self._index.id_of(raw)
            if meant is not None and meant != token_id:
                renumbered[token_id] = meant
        return renumbered

    def encode(self, text: str, special: bool = False, prefix: bool = True) -> list[int]:
        """The ids of a text; `special` with the model's own special tokens around it.

        `prefix` False leaves out the tokenizer's own space before a text. Raises TokenError
        where the tokenizer gives no ids, and FormatError for a token that the file numbers
        otherwise than the tokenizer does.
        """
        loaded = self._whole if prefix else self._bare
        try:
            ids = loaded.tokenizer.encode(text, add_special_tokens=special).ids
        except BaseException as error:
            if not _is_of_library(error):
                raise
            message = f"{self._file}: no tokens for {shown(text)}: {error}"
            raise TokenError(message, "ask for another text, or name a row with id:N") from error
        for token_id in loaded.renumbered.keys() & set(ids):
            meant = loaded.renumbered[token_id]
            raise FormatError(
                f"{self._file}: {self._index.raws[meant]} has the id {meant} in the file, "
                f"and {token_id} for its tokenizer",
                f"name the row that is meant: id:{meant} or id:{token_id}",
            )
        return ids

    def many(self, texts: Sequence[str], prefix: bool) -> Iterator[list[int]]:
        """The ids of every text, without special tokens.

        A text that the tokenizer gives no ids for has none.
        """
        tokenizer = (self._whole if prefix else self._bare).tokenizer
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            try:
                found = tokenizer.encode_batch_fast(batch, add_special_tokens=False)
                yield from (encoding.ids for encoding in found)
            except BaseException as error:  # one text without tokens fails a whole batch
                if not _is_of_library(error):
                    raise
                yield from (_or_none(tokenizer, text) for text in batch)


def _or_none(tokenizer: "Tokenizer", text: str) -> list[int]:
    try:
        return tokenizer.encode(text, add_special_tokens=False).ids
    except BaseException as error:
        if not _is_of_library(error):
            raise
        return []


def _is_of_library(error: BaseException) -> bool:
    """Whether the library raised it: it raises nothing narrow, and panics on hostile files."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
