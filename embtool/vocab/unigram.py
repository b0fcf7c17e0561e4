"""SentencePiece's unigram model: of all ways to cut a text, the one with the highest score.

The score of a way is the sum of those of its pieces. Every sum is rounded to float32 as
SentencePiece does it, since that decides between ways that are as good
(https://github.com/google/sentencepiece/blob/master/src/unigram_model.cc, EncodeOptimized).
"""

from array import array

from embtool.vocab.contents import NORMAL, USER_DEFINED
from embtool.vocab.display import unescape
from embtool.vocab.index import Index

# What an unknown character costs, beyond the worst of the pieces.
_UNKNOWN_COSTS = 10.0
# User-defined pieces score as high as their length allows, but for this.
_OWN_COSTS = 0.1


class Unigram:
    """Pieces by their text, applied to a normalized text."""

    def __init__(self, index: Index) -> None:
        scores = [0.0] * index.size if index.scores is None else index.scores.tolist()
        types, raws = index.types.tolist(), index.raws.all()
        normal = [score for score, kind in zip(scores, types, strict=True) if kind == NORMAL]
        best = max(normal, default=0.0)
        self._unknown = array("f", [min(normal, default=0.0) - _UNKNOWN_COSTS])[0]
        self._ids: dict[str, int] = {}
        self._scores: dict[str, float] = {}
        for token_id, kind in enumerate(types):
            if kind not in (NORMAL, USER_DEFINED) or not raws[token_id]:
                continue
            piece = unescape(raws[token_id]).decode("utf-8", "surrogateescape")
            if piece not in self._ids:
                own = len(piece.encode("utf-8", "surrogateescape")) * best - _OWN_COSTS
                self._ids[piece] = token_id
                self._scores[piece] = own if kind == USER_DEFINED else scores[token_id]
        self._longest = max(map(len, self._ids), default=0)

    def cut(self, text: str) -> list[tuple[str, int | None]]:
        """The pieces of a text and their ids; None for a character that is unknown."""
        size = len(text)
        best, starts = array("f", bytes(4 * (size + 1))), [-1] * (size + 1)
        rounded, get = array("f", [0.0]), self._scores.get
        for start in range(size):
            here = best[start]
            for stop in range(start + 1, min(start + max(self._longest, 1), size) + 1):
                score = get(text[start:stop])
                if score is None and stop == start + 1:
                    score = self._unknown
                if score is None:
                    continue
                rounded[0] = score + here
                if starts[stop] < 0 or rounded[0] > best[stop]:
                    best[stop], starts[stop] = rounded[0], start
        found: list[tuple[str, int | None]] = []
        stop = size
        while stop > 0:
            piece = text[starts[stop] : stop]
            found.append((piece, self._ids.get(piece)))
            stop = starts[stop]
        return found[::-1]
