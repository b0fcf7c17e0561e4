"""SentencePiece's byte-pair encoding, by the scores of its pieces.

A text begins as its characters. Again and again the two neighbours are joined whose joined piece
has the highest score, of equal ones the leftmost, until no two neighbours make a piece. What is
then no piece is spelled in byte tokens. That is the algorithm of SentencePiece
(https://github.com/google/sentencepiece/blob/master/src/bpe_model.cc); it needs no list of merges.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from embtool.vocab.contents import CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED
from embtool.vocab.display import escape, unescape
from embtool.vocab.index import Index

# A text of more characters, or more texts, pay for dictionaries of all pieces.
_LONG = 8192
_SCORED = (NORMAL, UNUSED)
_MATCHED = (CONTROL, UNKNOWN, USER_DEFINED)


def merge(text: str, score: Callable[[str], float | None]) -> list[str]:
    """The pieces of a text; `score` is None for what is no piece.

    >>> merge("abab", {"ab": -1.0, "ba": -2.0}.get)
    ['ab', 'ab']
    """
    length = [1] * len(text)
    before = list(range(-1, len(text) - 1))
    heap: list[tuple[float, int, int, int]] = []
    for start in range(len(text) - 1):
        found = score(text[start : start + 2])
        if found is not None:
            heap.append((-found, start, 1, 1))
    heapify(heap)

    def offer(left: int) -> None:
        right = left + length[left]
        if right < len(text):
            found = score(text[left : right + length[right]])
            if found is not None:
                heappush(heap, (-found, left, length[left], length[right]))

    while heap:
        _, left, left_length, right_length = heappop(heap)
        right = left + left_length
        # a pair of which one has been joined to something else since
        if length[left] != left_length or length[right] != right_length:
            continue
        length[left], length[right] = left_length + right_length, 0
        after = right + right_length
        if after < len(text):
            before[after] = left
        offer(left)
        if before[left] >= 0:
            offer(before[left])
    starts = [start for start, pieces in enumerate(length) if pieces]
    return [text[start : start + length[start]] for start in starts]


class _Kept:
    """Pieces looked up in the kept index, one by one as they are asked."""

    def __init__(self, index: Index, scores: NDArray[np.float32]) -> None:
        self._index = index
        self._scores = scores.data
        self._ids: dict[str, int | None] = {}

    def id(self, piece: str) -> int | None:
        """The lowest id of a piece."""
        if piece not in self._ids:
            self._ids[piece] = self._index.id_of(escape(piece.encode("utf-8")))
        return self._ids[piece]

    def score(self, piece: str) -> float | None:
        """The score of a piece that merges make."""
        token_id = self.id(piece)
        if token_id is None or self._index.type(token_id) not in _SCORED:
            return None
        return float(self._scores[token_id])


class _Known:
    """All pieces in dictionaries, which is quicker where many are asked."""

    def __init__(self, index: Index, scores: NDArray[np.float32]) -> None:
        raws = index.raws.all()
        for token_id in [place for place, raw in enumerate(raws) if "\\" in raw]:
            # a lone byte becomes what no text holds, and is never found
            raws[token_id] = unescape(raws[token_id]).decode("utf-8", "surrogateescape")
        # of two tokens that are spelled alike the lower id counts, as in the index
        self.ids = dict(zip(reversed(raws), reversed(range(len(raws))), strict=True))
        types, values = index.types.tolist(), scores.tolist()
        self.scores: dict[str, float] = {
            piece: values[token_id]
            for piece, token_id in self.ids.items()
            if types[token_id] in _SCORED
        }
        self.id = self.ids.get
        self.score = self.scores.get


class Pieces:
    """A vocabulary that merges by scores, applied to texts.

    Rules of the index: `prefix`, whether a text gets a space of its own before it; `before` and
    `after`, the ids of the special tokens around it; `matched`, where a token that is matched
    whole may begin, and the lengths such tokens have, longest first.
    """

    limits: str | None = None

    def __init__(self, index: Index, scores: NDArray[np.float32]) -> None:
        self._index = index
        self._scores = scores
        self._kept = _Kept(index, scores)
        self._lengths: dict[str, list[int]] = index.rules["matched"]
        self._start = re.compile("|".join(map(re.escape, self._lengths)) or "(?!)")

    @cached_property
    def _known(self) -> _Known:
        return _Known(self._index, self._scores)

    def encode(self, text: str, special: bool = False, prefix: bool = True) -> list[int]:
        """The ids of a text; `special` puts the model's own special tokens around it.

        Control, unknown and user-defined tokens are matched first, the longest at each place
        from the left; `prefix` False leaves out the tokenizer's own space before a text.
        """
        pieces = self._known if len(text) > _LONG else self._kept
        rules = self._index.rules
        space = "\u2581" if prefix and rules["prefix"] else ""
        ids: list[int] = []
        for part in self._split(text, pieces):
            if isinstance(part, int):
                ids.append(part)
            else:
                for piece in merge(space + part.replace(" ", "\u2581"), pieces.score):
                    ids += self._ids_of(piece, pieces)
        return [*rules["before"], *ids, *rules["after"]] if special else ids

    def many(self, texts: Sequence[str], prefix: bool) -> Iterator[list[int]]:
        """The ids of every text, without special tokens."""
        from embtool.vocab.spm_many import encode_many, table_of

        space = "\u2581" if prefix and self._index.rules["prefix"] else ""
        plain = [self._start.search(text) is None for text in texts]
        spaced = (space + text.replace(" ", "\u2581") for text in compress(texts, plain))
        table = table_of(self._known.scores, self._known.ids)
        merged = iter(encode_many(list(spaced), table))
        for text, is_plain in zip(texts, plain, strict=True):
            ids = next(merged) if is_plain else None
            yield self.encode(text, prefix=prefix) if ids is None else ids

    def _split(self, text: str, pieces: _Kept | _Known) -> Iterator[str | int]:
        """The text between the tokens that are matched whole, and those tokens' ids."""
        start = at = 0
        while match := self._start.search(text, at):
            at = match.start()
            found = self._match(text, at, pieces)
            if found is None:
                at += 1
                continue
            token_id, length = found
            if start < at:
                yield text[start:at]
            yield token_id
            start = at = at + length
        if start < len(text):
            yield text[start:]

    def _match(self, text: str, at: int, pieces: _Kept | _Known) -> tuple[int, int] | None:
        for start in (text[at : at + 2], text[at]):
            for length in self._lengths.get(start, ()):
                token_id = pieces.id(text[at : at + length]) if at + length <= len(text) else None
                if token_id is not None and self._index.type(token_id) in _MATCHED:
                    return token_id, length
        return None

    def _ids_of(self, piece: str, pieces: _Kept | _Known) -> list[int]:
        """A piece's id; the ids of its bytes where it has none; else what is unknown."""
        token_id = pieces.id(piece)
        if token_id is not None:
            return [token_id]
        spelled = [pieces.id(f"<0x{byte:02X}>") for byte in piece.encode("utf-8")]
        known = [token_id for token_id in spelled if token_id is not None]
        if len(known) == len(spelled):
            return known
        return [] if self._index.unknown_id is None else [self._index.unknown_id]
