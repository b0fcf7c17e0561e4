"""A vocabulary from each of the places where one is written."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from embtool.errors import SourceError, UnsupportedError
from embtool.vocab.contents import Contents
from embtool.vocab.index import MAGIC, Index, pack
from embtool.vocab.kept import Asked, Own, open_index
from embtool.vocab.sealed import unseal
from embtool.vocab.spm import Pieces
from embtool.vocab.tokenizer import Library
from embtool.vocab.vocabulary import Encoder, Vocabulary


class _Refusal:
    """Stands where no tokenizer can be applied, and says why."""

    def __init__(self, error: SourceError | UnsupportedError) -> None:
        self._error = error

    def encode(self, text: str, special: bool = False, prefix: bool = True) -> list[int]:
        raise self._error

    def many(self, texts: Sequence[str], prefix: bool) -> Iterator[list[int]]:
        raise self._error


def open_vocabulary(key: str, name: str, read: Callable[[], bytes]) -> Vocabulary:
    """The vocabulary of a tokenizer.json.

    key: the identity that its derived files are kept under; name: the file, for messages; read:
    gives its bytes, and is called at most once, if at all.
    """
    once = functools.cache(read)

    def build() -> bytes:
        from embtool.vocab import from_json

        return pack(from_json.contents(once(), name), "json")

    return Vocabulary(
        lambda: open_index(key, "json", build),
        lambda index: Library(once, name, index),
        functools.partial(Own, key),
        functools.partial(Asked, key),
    )


def open_gguf_vocabulary(
    key: str, name: str, metadata: Callable[[], Mapping[str, Any]]
) -> Vocabulary:
    """The vocabulary that a GGUF file's metadata describes.

    metadata: gives the mapping (arrays of strings yield bytes), and is called only where the
    index is not kept yet.
    """

    def build() -> bytes:
        from embtool.vocab import from_gguf

        return pack(from_gguf.contents(metadata(), name), "gguf")

    def encoder(index: Index) -> Encoder:
        if index.scores is not None:
            return Pieces(index, index.scores)
        kind = index.rules["tokenizer"]
        message = f"{name}: its tokenizer is of the kind {kind}, which embtool does not apply"
        return _Refusal(UnsupportedError(message, "name one with --tokenizer, or rows with id:N"))

    return Vocabulary(
        lambda: open_index(key, "gguf", build),
        encoder,
        functools.partial(Own, key),
        lambda index: None,
    )


def no_vocabulary() -> Vocabulary:
    """The vocabulary of a model without a tokenizer: only `id:N` names a row."""
    nothing = Contents("none", [], [], np.zeros(0, np.uint8))
    message = "there is no tokenizer, so that a text has no rows"
    refusal = _Refusal(SourceError(message, "name one with --tokenizer, or rows with id:N"))
    return Vocabulary(
        lambda: Index(unseal(MAGIC, pack(nothing, "none"))),
        lambda index: refusal,
        lambda index: None,
        lambda index: None,
    )
