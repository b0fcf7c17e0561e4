"""A SentencePiece model, applied to texts as SentencePiece does it."""

import base64
import functools
import re
from collections.abc import Iterator, Sequence
from itertools import compress

import numpy as np

from embtool.vocab.charsmap import Charsmap, Normalizer
from embtool.vocab.contents import BYTE, USER_DEFINED
from embtool.vocab.display import unescape
from embtool.vocab.index import Index
from embtool.vocab.spm import Pieces
from embtool.vocab.unigram import Unigram


class SentencePiece:
    """Texts normalized, and cut by the scores of pieces: merged, or the most probable cut.

    Rules of the index: `whole`, the ids of the tokens that are matched in a text before anything
    else (control, unknown and added ones; SentencePiece itself matches none, the programs that
    use it do); `matched`, where user-defined pieces begin; what `Normalizer` is told; `before`
    and `after`, the ids around a text.
    """

    limits: str | None = None

    def __init__(self, index: Index, file: str) -> None:
        self._index = index
        self._file = file
        self._rules = index.rules
        spelled = {_text(index, token_id): token_id for token_id in reversed(self._rules["whole"])}
        self._whole = {text: token_id for text, token_id in spelled.items() if text}
        longest = sorted(self._whole, key=len, reverse=True)
        self._split = re.compile(f"({'|'.join(map(re.escape, longest))})" if longest else "(?!)")

    @functools.cached_property
    def _normalizer(self) -> Normalizer:
        rules = self._rules
        raw = base64.b64decode(rules["charsmap"])
        user = np.flatnonzero(self._index.types == USER_DEFINED).tolist()
        return Normalizer(
            Charsmap(raw, self._file) if raw else None,
            [text for token_id in user if (text := _text(self._index, token_id))],
            prefix=rules["prefix"],
            suffix=rules["suffix"],
            collapse=rules["collapse"],
        )

    @functools.cached_property
    def _merged(self) -> Pieces | None:
        scores = self._index.scores
        if scores is None or self._rules["sentencepiece"] != "bpe":
            return None
        return Pieces(self._index, scores)

    @functools.cached_property
    def _unigram(self) -> Unigram:
        return Unigram(self._index)

    def encode(self, text: str, special: bool = False, prefix: bool = True) -> list[int]:
        """The ids of a text; `special` puts the model's own special tokens around it.

        `prefix` False leaves out the tokenizer's own space before a text.
        """
        ids: list[int] = []
        for part in self._split.split(text):
            if part in self._whole:
                ids.append(self._whole[part])
            elif normal := self._normalizer.normalized(part, prefix):
                ids += self._cut(normal)
        return [*self._rules["before"], *ids, *self._rules["after"]] if special else ids

    def many(self, texts: Sequence[str], prefix: bool) -> Iterator[list[int]]:
        """The ids of every text, without special tokens."""
        if self._merged is None:
            yield from (self.encode(text, prefix=prefix) for text in texts)
            return
        plain = [self._split.search(text) is None for text in texts]
        normal = [self._normalizer.normalized(text, prefix) for text in compress(texts, plain)]
        merged = self._merged.many(normal, False)
        for text, is_plain in zip(texts, plain, strict=True):
            yield self._fused(next(merged)) if is_plain else self.encode(text, prefix=prefix)

    def _cut(self, normal: str) -> list[int]:
        if self._merged is not None:
            return self._fused(self._merged.encode(normal, prefix=False))
        ids: list[int] = []
        for piece, token_id in self._unigram.cut(normal):
            ids += self._spelled(piece) if token_id is None else [token_id]
        return self._fused(ids)

    def _spelled(self, character: str) -> list[int]:
        """The bytes of an unknown character where they are tokens, else what is unknown."""
        found = [self._bytes.get(byte) for byte in character.encode()] if self._bytes else [None]
        known = [token_id for token_id in found if token_id is not None]
        if len(known) == len(found):
            return known
        return [] if self._index.unknown_id is None else [self._index.unknown_id]

    @functools.cached_property
    def _bytes(self) -> dict[int, int]:
        ids = np.flatnonzero(self._index.types == BYTE).tolist()
        spelled = {_text(self._index, token_id): token_id for token_id in reversed(ids)}
        found = {byte: spelled.get(f"<0x{byte:02X}>") for byte in range(256)}
        return {byte: token_id for byte, token_id in found.items() if token_id is not None}

    def _fused(self, ids: list[int]) -> list[int]:
        """What is unknown in a row is one token."""
        unknown = self._index.unknown_id
        before = [None, *ids[:-1]]
        return [
            i for i, last in zip(ids, before, strict=bool(ids)) if i != unknown or last != unknown
        ]


def _text(index: Index, token_id: int) -> str:
    return unescape(index.raws[token_id]).decode("utf-8", "replace")
