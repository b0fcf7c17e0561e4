"""A vocabulary from each of the places where one is written."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from embtool.errors import SourceError
from embtool.vocab.contents import Contents
from embtool.vocab.index import MAGIC, Index, pack
from embtool.vocab.kept import Asked, Own, open_index
from embtool.vocab.refusal import Refusal
from embtool.vocab.sealed import unseal
from embtool.vocab.vocabulary import Encoder, Vocabulary

_NOTHING = Contents("none", [], [], np.zeros(0, np.uint8))


def open_vocabulary(key: str, name: str, read: Callable[[], bytes]) -> Vocabulary:
    """The vocabulary of a tokenizer.json.

    key: the identity that its derived files are kept under; name: the file, for messages; read:
    gives its bytes, and is called at most once, if at all.
    """
    once = functools.cache(read)

    def build() -> bytes:
        from embtool.vocab import from_json

        return pack(from_json.contents(from_json.parse(once(), name), name), "json")

    def encoder(index: Index) -> Encoder:
        from embtool.vocab.tokenizer import Library

        return Library(once, name, index)

    return Vocabulary(
        lambda: open_index(key, "json", build),
        encoder,
        functools.partial(Own, key),
        functools.partial(Asked, key),
    )


def open_gguf_vocabulary(
    key: str, name: str, metadata: Callable[[], Mapping[str, Any]]
) -> Vocabulary:
    """The vocabulary that a GGUF file's metadata describes.

    metadata: gives the mapping (arrays of strings yield bytes), and is called only where the
    index is not kept yet, or a text's ids are not. Without a tokenizer in it only `id:N` names a
    row.
    """

    def build() -> bytes:
        from embtool.vocab import from_gguf

        found = metadata()
        if "tokenizer.ggml.tokens" not in found:
            return pack(_NOTHING, "gguf")
        return pack(from_gguf.contents(found, name), "gguf")

    def encoder(index: Index) -> Encoder:
        if index.kind == "none":
            return _no_tokenizer()
        from embtool.vocab.gguf_encoder import encoder_of_gguf

        return encoder_of_gguf(index, name, metadata)

    def asked(index: Index) -> Asked | None:
        # Merging by scores is quicker than looking into a file.
        return None if index.scores is not None else Asked(key, index)

    return Vocabulary(
        lambda: open_index(key, "gguf", build), encoder, functools.partial(Own, key), asked
    )


def open_words(key: str, origin: str, words: Callable[[], Sequence[bytes]]) -> Vocabulary:
    """The vocabulary of a list of words, one a row, as bytes that need not be UTF-8.

    key: the identity that its index is kept under; origin: what the list is, so that another list
    of the same file is not taken for it; words: gives them, and is called at most once.
    """

    def build() -> bytes:
        from embtool.vocab.word_list import contents_of

        return pack(contents_of(words()), origin)

    def encoder(index: Index) -> Encoder:
        from embtool.vocab.word_list import WordList

        return WordList(index)

    return Vocabulary(
        lambda: open_index(key, origin, build),
        encoder,
        functools.partial(Own, key),
        lambda index: None,
    )


def no_vocabulary() -> Vocabulary:
    """The vocabulary of a model without a tokenizer: only `id:N` names a row."""
    return Vocabulary(
        lambda: Index(unseal(MAGIC, pack(_NOTHING, "none"))),
        lambda index: _no_tokenizer(),
        lambda index: None,
        lambda index: None,
    )


def _no_tokenizer() -> Refusal:
    message = "there is no tokenizer, so that a text has no rows"
    return Refusal(SourceError(message, "name one with --tokenizer, or rows with id:N"))
