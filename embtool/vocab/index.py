"""The kept form of a vocabulary: every id's token and spelling, and a spelling's id.

Strings are one blob with a line feed after each (an escaped token holds none) and u32 offsets. A
string is found through the sorted CRC-32s of all, and then compared: a collision costs a
comparison, never an answer.
"""

import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embtool.vocab.contents import CONTROL, HOLE, UNKNOWN, Contents
from embtool.vocab.sealed import Sealed, seal

MAGIC = b"embvoc\x00\x02"


class Strings:
    """Strings by their place: blob, the line feeds included; offsets: (n + 1,) uint32."""

    def __init__(self, blob: NDArray[np.uint8], offsets: NDArray[np.uint32]) -> None:
        self._blob = blob.data
        # a memoryview hands out plain ints, four times as fast as an array does
        self._offsets = offsets.data

    def __getitem__(self, place: int) -> str:
        return str(self._blob[self._offsets[place] : self._offsets[place + 1] - 1], "utf-8")

    def all(self) -> list[str]:
        """Every string, in order."""
        return str(self._blob, "utf-8").split("\n")[:-1]


class Finder:
    """Places by hash: crcs: (n,) uint32, ascending; places: (n,) uint32 beside them."""

    def __init__(self, crcs: NDArray[np.uint32], places: NDArray[np.uint32]) -> None:
        self._crcs = crcs.data
        self._places = places.data

    def candidates(self, text: str) -> Iterator[int]:
        """The places whose string has this text's hash, ascending."""
        crc = zlib.crc32(text.encode("utf-8", "surrogatepass"))
        at = bisect_left(self._crcs, crc)
        while at < len(self._crcs) and self._crcs[at] == crc:
            yield self._places[at]
            at += 1


def strings_of(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """The blob and the offsets of `Strings`."""
    blob = np.frombuffer("\n".join([*texts, ""]).encode("utf-8"), np.uint8)
    ends = np.flatnonzero(blob == ord("\n")) + 1
    return blob, np.concatenate([[0], ends]).astype(np.uint32)


def finder_of(texts: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The two arrays of `Finder`."""
    encoded = "\n".join(texts).encode("utf-8").split(b"\n") if texts else []
    crcs = np.fromiter(map(zlib.crc32, encoded), np.uint32, len(texts))
    order = np.argsort(crcs, kind="stable")
    return crcs[order], order.astype(np.uint32)


def pack(contents: Contents, origin: str) -> bytes:
    """A vocabulary as the kept file's bytes; `origin` is the name of what it was read from."""
    arrays: dict[str, NDArray[Any]] = {"types": contents.types}
    arrays["tokens"], arrays["token_offsets"] = strings_of(contents.tokens)
    arrays["raws"], arrays["raw_offsets"] = strings_of(contents.raws)
    arrays["crcs"], arrays["ids"] = finder_of(contents.raws)
    if contents.scores is not None:
        arrays["scores"] = contents.scores
    head = {
        "origin": origin,
        "kind": contents.kind,
        "unknown_id": contents.unknown_id,
        "rules": dict(contents.rules or {}),
    }
    return seal(MAGIC, head, arrays)


class Index:
    """A kept vocabulary.

    types: (size,) uint8, as `contents` numbers them; scores: (size,) float32 or None; checksum:
    what other kept files are bound to.
    """

    def __init__(self, sealed: Sealed) -> None:
        head, arrays = sealed.head, sealed.arrays
        self.checksum = sealed.checksum
        self.origin: str = head["origin"]
        self.kind: str = head["kind"]
        self.unknown_id: int | None = head["unknown_id"]
        self.rules: dict[str, Any] = head["rules"]
        self.types: NDArray[np.uint8] = arrays["types"]
        self.size = self.types.size
        self.scores: NDArray[np.float32] | None = arrays.get("scores")
        self.tokens = Strings(arrays["tokens"], arrays["token_offsets"])
        self.raws = Strings(arrays["raws"], arrays["raw_offsets"])
        self._by_raw = Finder(arrays["crcs"], arrays["ids"])
        self._types = self.types.data

    def has(self, token_id: int) -> bool:
        """Whether a token has this id."""
        return 0 <= token_id < self.size and self._types[token_id] != HOLE

    def has_all(self) -> NDArray[np.bool_]:
        """`has` of every id, (size,)."""
        held: NDArray[np.bool_] = self.types != HOLE
        return held

    def type(self, token_id: int) -> int:
        """What the token is; the id is one that `has` knows."""
        return int(self._types[token_id])

    def id_of(self, raw: str) -> int | None:
        """The lowest id that the vocabulary spells so; `raw` is escaped."""
        for token_id in self._by_raw.candidates(raw):
            if self.has(token_id) and self.raws[token_id] == raw:
                return token_id
        return None

    def count(self) -> int:
        """How many ids have a token."""
        return int(np.count_nonzero(self.types))

    def special_ids(self) -> frozenset[int]:
        """The tokens that stand for no text."""
        return frozenset(np.flatnonzero(np.isin(self.types, (CONTROL, UNKNOWN))).tolist())
