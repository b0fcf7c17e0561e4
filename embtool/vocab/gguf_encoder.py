"""What applies the tokenizer that a GGUF file describes, by its kind."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from embtool.errors import TokenError, UnsupportedError
from embtool.source.notes import note
from embtool.vocab.display import escape, shown
from embtool.vocab.index import Index
from embtool.vocab.refusal import Refusal
from embtool.vocab.spelling import in_alphabet
from embtool.vocab.spm import Pieces
from embtool.vocab.vocabulary import Encoder

Metadata = Callable[[], Mapping[str, Any]]


class Entries:
    """Byte-level BPE that cuts texts in an unknown way: only a text that is a token has ids.

    It is one token whatever the way, unless that cuts within it; the entry is what was meant.
    """

    def __init__(self, index: Index, file: str, pre: str) -> None:
        self._index = index
        self.limits: str | None = (
            f"the pre-tokenizer {shown(pre)[:60]} of {file} is not known, so that only whole "
            "tokens are read"
        )

    def encode(self, text: str, special: bool = False, prefix: bool = True) -> list[int]:
        """The id of the token that is exactly this text; TokenError for any other."""
        found = self._id_of(text)
        if text and found is None:
            raise TokenError(
                f"{shown(text)[:60]} is no token: {self.limits}",
                "name a tokenizer with --tokenizer, or rows with id:N",
            )
        return [] if found is None else [found]

    def many(self, texts: Sequence[str], prefix: bool) -> Iterator[list[int]]:
        """The same for each; no ids for a text that is no token."""
        for text in texts:
            found = self._id_of(text)
            yield [] if found is None else [found]

    def _id_of(self, text: str) -> int | None:
        raw = self._index.id_of(escape(in_alphabet(text.encode()).encode()))
        return self._index.id_of(shown(text)) if raw is None else raw


def encoder_of_gguf(index: Index, file: str, metadata: Metadata) -> Encoder:
    """The encoder for the vocabulary in `index`, which was made from this metadata."""
    if index.scores is not None:
        return Pieces(index, index.scores)  # which a short command waits for: nothing more of it
    from embtool.vocab.cuts import cut_of
    from embtool.vocab.tokenizer import Library

    kind = index.rules["tokenizer"]
    if kind not in ("gpt2", "bert", "t5"):
        message = f"{file}: its tokenizer is of the kind {kind}, which embtool does not apply"
        return Refusal(UnsupportedError(message, "name one with --tokenizer, or rows with id:N"))
    pre = index.rules.get("pre")
    cut = cut_of(pre or "default")
    if kind == "gpt2" and cut is None:
        return Entries(index, file, str(pre))
    if kind == "gpt2" and pre is None:
        note(f"{file} names no pre-tokenizer: texts are cut in llama.cpp's default way")

    def read() -> bytes:
        from embtool.vocab import gguf_json

        gguf = gguf_json.described(metadata(), file)
        if kind == "gpt2" and cut is not None:
            return gguf_json.byte_level(gguf, cut)
        return gguf_json.word_pieces(gguf) if kind == "bert" else gguf_json.unigram(gguf)

    return Library(functools.cache(read), file, index)
