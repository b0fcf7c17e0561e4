"""What is kept of a vocabulary beside the cache, so that most commands never load a tokenizer.

    vocabulary.index    every id's token and spelling (`index`), made once
    vocabulary.own      the tokens whose own text encodes back to them alone, made when asked for
    vocabulary.asked    the ids of texts asked before, one line each, only ever appended to

The last two are bound to the index's checksum. Whatever is cut, changed, foreign or of another
version counts as absent. A text asked before is kept as its hash, not in clear.
"""

import os
import zlib
from collections.abc import Callable
from functools import cached_property
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from embtool.source.derived import derived, write_atomic
from embtool.vocab.display import escape
from embtool.vocab.index import MAGIC, Finder, Index, finder_of
from embtool.vocab.sealed import CorruptError, Sealed, open_sealed, seal, unseal

_OWN = b"embown\x00\x02"
# Longer texts are encoded again: a page of text is no word that is asked twice.
_ASKED_CHARACTERS = 2048
# Some 60,000 texts; a longer file is begun again, so that reading it stays a matter of ms.
_ASKED_BYTES = 4 << 20


def open_index(key: str, origin: str, build: Callable[[], bytes]) -> Index:
    """The kept index of the tokenizer file `origin` with identity `key`, built if there is none.

    `build` gives its bytes. An index that cannot be kept is used all the same.
    """
    path = derived(key, "vocabulary.index")
    try:
        index = Index(open_sealed(MAGIC, path))
        if index.origin == origin:
            return index
    except CorruptError:
        pass
    packed = build()
    write_atomic(path, _writer(packed))
    return Index(unseal(MAGIC, packed))


def _writer(content: bytes) -> Callable[[BinaryIO], None]:
    def write(file: BinaryIO) -> None:
        file.write(content)

    return write


class Own:
    """The tokens whose own text encodes back to them alone, and their ids by that text.

    bits: those tokens; crcs and ids: a finder of those among them that come back without the
    tokenizer's own space before the text.
    """

    def __init__(self, key: str, index: Index) -> None:
        self._path = derived(key, "vocabulary.own")
        self._index = index

    @cached_property
    def _sealed(self) -> Sealed | None:
        try:
            sealed = open_sealed(_OWN, self._path)
        except CorruptError:
            return None
        return sealed if sealed.head["index"] == self._index.checksum else None

    @cached_property
    def _finder(self) -> Finder | None:
        if self._sealed is None:
            return None
        return Finder(self._sealed.arrays["crcs"], self._sealed.arrays["ids"])

    def known(self) -> NDArray[np.bool_] | None:
        """(size,) bool, or None where nobody has computed it."""
        if self._sealed is None:
            return None
        return np.unpackbits(self._sealed.arrays["bits"], count=self._index.size).astype(bool)

    def keep(self, typed: NDArray[np.bool_], own: NDArray[np.bool_]) -> None:
        """Keep what `own_tokens` computed."""
        ids = np.flatnonzero(typed)
        crcs, order = finder_of([self._index.tokens[token_id] for token_id in ids.tolist()])
        arrays: dict[str, NDArray[Any]] = {
            "bits": np.packbits(own),
            "crcs": crcs,
            "ids": ids[order].astype(np.uint32),
        }
        sealed = seal(_OWN, {"index": self._index.checksum}, arrays)
        write_atomic(self._path, _writer(sealed))
        self.__dict__["_sealed"] = unseal(_OWN, sealed)
        self.__dict__.pop("_finder", None)

    def id_of(self, text: str) -> int | None:
        """The token that this text is encoded to without a space before it, if it is known."""
        if self._finder is None:
            return None
        token = escape(text.encode("utf-8"))
        for token_id in self._finder.candidates(token):
            if self._index.tokens[token_id] == token:
                return token_id
        return None


class Asked:
    """The ids of texts asked before.

    A line is the text's hash (32 hexadecimal digits), its ids with commas, and the CRC-32 of
    both (8 digits). Every line is one append, so that two commands can write at once; a line
    that was cut is no line.
    """

    def __init__(self, key: str, index: Index) -> None:
        self._path = derived(key, "vocabulary.asked")
        self._salt = index.checksum.to_bytes(8, "little")

    @cached_property
    def _lines(self) -> dict[bytes, bytes]:
        try:
            if self._path.stat().st_size > _ASKED_BYTES:
                self._path.unlink()
            kept = self._path.read_bytes()
        except OSError:
            return {}
        return {line[:32]: line for line in kept.split(b"\n")}

    def _name(self, way: str, text: str) -> bytes:
        import hashlib

        asked = f"{way}\0{text}".encode()
        return hashlib.blake2b(asked, digest_size=16, key=self._salt).hexdigest().encode("ascii")

    def recall(self, way: str, text: str) -> list[int] | None:
        """The ids of a text, encoded in the way named; None where nobody asked."""
        line = self._lines.get(self._name(way, text))
        if line is None or line[-8:] != _crc(line[:-8]):
            return None
        return [int(token_id) for token_id in line[33:-9].split(b",") if token_id]

    def remember(self, way: str, text: str, ids: list[int]) -> None:
        """Keep the ids of a text, unless it is too long or the cache cannot be written."""
        if len(text) > _ASKED_CHARACTERS:
            return
        name = self._name(way, text)
        line = name + b" " + ",".join(map(str, ids)).encode("ascii") + b" "
        line += _crc(line)
        self._lines[name] = line
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError:
            return
        with os.fdopen(handle, "wb", buffering=0) as file:
            file.write(line + b"\n")


def _crc(line: bytes) -> bytes:
    return b"%08x" % zlib.crc32(line)
