"""`spm.merge` for a whole vocabulary of texts at once, in arrays.

A piece is known by a hash of its characters, H(s) = sum of (c_i + 1) B^(n-1-i) modulo 2^64, and by
its length. The hash of two joined pieces follows from theirs: H(ab) = H(a) B^|b| + H(b). In each
round every text joins its best pair, until none has one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# An odd factor, so that it has an inverse modulo 2^64.
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)
# Texts in arrays at once, which bounds what they take to some tens of MB.
_TEXTS = 1 << 15
_NO_PAIR = -np.inf

U64 = NDArray[np.uint64]
Lengths = NDArray[np.int64]


def _powers(base: int, count: int) -> U64:
    """base^0 to base^(count - 1), modulo 2^64."""
    powers = np.full(count, base, np.uint64)
    powers[:1] = 1
    return np.cumprod(powers, dtype=np.uint64)


def _characters(texts: Sequence[str]) -> tuple[U64, Lengths]:
    """Every character + 1, of all texts on end, and every text's length."""
    joined = "".join(texts).encode("utf-32-le", "surrogatepass")
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    return np.frombuffer(joined, np.uint32).astype(np.uint64) + np.uint64(1), lengths


def _hashes(texts: Sequence[str]) -> tuple[U64, Lengths]:
    characters, lengths = _characters(texts)
    scaled = characters * _powers(_INVERSE, characters.size)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(scaled, dtype=np.uint64)])
    ends = np.cumsum(lengths)
    powers = _powers(_BASE, characters.size + 1)
    return (sums[ends] - sums[ends - lengths]) * powers[np.maximum(ends - 1, 0)], lengths


@dataclass(frozen=True, slots=True)
class Table:
    """Pieces by hash, ascending: hashes (n,), lengths (n,), ids (n,), scores (n,) float64."""

    hashes: U64
    lengths: Lengths
    ids: NDArray[np.int64]
    scores: NDArray[np.float64]

    def find(self, hashes: U64, lengths: Lengths) -> NDArray[np.int64]:
        """The place of every piece in the table, -1 for what is no piece."""
        if not self.hashes.size:
            return np.full(hashes.size, -1)
        places = np.minimum(np.searchsorted(self.hashes, hashes), self.hashes.size - 1)
        found = (self.hashes[places] == hashes) & (self.lengths[places] == lengths)
        return np.where(found, places, -1)


def table_of(scores: Mapping[str, float], ids: Mapping[str, int]) -> Table:
    """The table of the pieces that have scores."""
    hashes, lengths = _hashes(list(scores))
    order = np.argsort(hashes)
    numbers = np.fromiter((ids[piece] for piece in scores), np.int64, len(scores))
    values = np.fromiter(scores.values(), np.float64, len(scores))
    return Table(hashes[order], lengths[order], numbers[order], values[order])


class _Symbols:
    """The symbols of texts under way, in order: hash, length, text and first character."""

    def __init__(self, texts: Sequence[str], table: Table) -> None:
        characters, lengths = _characters(texts)
        self._table = table
        self._powers = _powers(_BASE, int(lengths.max(initial=0)) + 1)
        self.hashes = characters
        self.lengths = np.ones(characters.size, np.int64)
        self.texts = np.repeat(np.arange(len(texts)), lengths)
        self.starts = np.arange(characters.size)
        self.scores = np.full(characters.size, _NO_PAIR)
        self._score(np.arange(characters.size))

    def _score(self, lefts: NDArray[np.int64]) -> None:
        """Score the pairs that begin at these symbols."""
        self.scores[lefts] = _NO_PAIR
        lefts = lefts[lefts + 1 < self.texts.size]
        lefts = lefts[self.texts[lefts] == self.texts[lefts + 1]]
        found = self._table.find(*self._joined(lefts))
        self.scores[lefts[found >= 0]] = self._table.scores[found[found >= 0]]

    def _joined(self, lefts: NDArray[np.int64]) -> tuple[U64, Lengths]:
        rights = self.lengths[lefts + 1]
        hashes = self.hashes[lefts] * self._powers[rights] + self.hashes[lefts + 1]
        return hashes, self.lengths[lefts] + rights

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Leave out every other symbol."""
        for name in ("hashes", "lengths", "texts", "starts", "scores"):
            setattr(self, name, getattr(self, name)[kept])

    def join(self, lefts: NDArray[np.int64]) -> None:
        """Join the pairs that begin at these symbols, one a text."""
        self.hashes[lefts], self.lengths[lefts] = self._joined(lefts)
        kept = np.ones(self.texts.size, bool)
        kept[lefts + 1] = False
        self.keep(kept)
        lefts = lefts - np.arange(lefts.size)
        before = lefts[lefts > 0] - 1
        self._score(np.concatenate([lefts, before]))


def _finished(texts: Sequence[str], table: Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pieces of all texts: the text of each, and its place in the table (-1: no piece)."""
    symbols = _Symbols(texts, table)
    nothing = np.zeros(0, np.int64)
    done = [(nothing, nothing, nothing)]
    while symbols.texts.size:
        firsts = np.flatnonzero(np.diff(symbols.texts, prepend=-1))
        best = np.maximum.reduceat(symbols.scores, firsts)
        best = np.repeat(best, np.diff(firsts, append=symbols.texts.size))
        over = best == _NO_PAIR
        places = table.find(symbols.hashes[over], symbols.lengths[over])
        done.append((symbols.starts[over], symbols.texts[over], places))
        symbols.keep(~over)
        pairs = np.flatnonzero(symbols.scores == best[~over])
        # of a text's equal pairs the leftmost
        symbols.join(pairs[np.diff(symbols.texts[pairs], prepend=-1) != 0])
    starts, of_text, places = (np.concatenate(part) for part in zip(*done, strict=True))
    order = np.argsort(starts)
    return of_text[order], places[order]


def encode_many(texts: Sequence[str], table: Table) -> list[list[int] | None]:
    """The ids of every text's pieces; None where one of them is no piece of the table."""
    encoded: list[list[int] | None] = []
    for start in range(0, len(texts), _TEXTS):
        batch = texts[start : start + _TEXTS]
        of_text, places = _finished(batch, table)
        stops = np.searchsorted(of_text, np.arange(1, len(batch) + 1)).tolist()
        ids = np.full(places.size, -1)
        ids[places >= 0] = table.ids[places[places >= 0]]
        found_ids = ids.tolist()
        first = 0
        for stop in stops:
            found = found_ids[first:stop]
            encoded.append(None if -1 in found else found)
            first = stop
    return encoded
