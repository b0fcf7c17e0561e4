"""A vocabulary from the files of a tokenizer that has no tokenizer.json."""

import functools
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from embtool.errors import UnsupportedError
from embtool.source.notes import note
from embtool.vocab.contents import nothing
from embtool.vocab.index import Index, pack
from embtool.vocab.kept import Asked, Own, open_index
from embtool.vocab.refusal import Refusal
from embtool.vocab.tokenizer_files import Files, base_name
from embtool.vocab.vocabulary import Encoder, Vocabulary

if TYPE_CHECKING:
    from embtool.vocab.from_files import Made


def open_files_vocabulary(key: str, name: str, files: Files) -> Vocabulary:
    """The vocabulary of a tokenizer in other files than tokenizer.json.

    key: the identity of all its files; name: the file that holds it, for messages; files: gives
    that file and its companions by their names without a folder.
    """
    once = functools.cache(lambda: _made(name, files))

    def build() -> bytes:
        from embtool.vocab import from_json, from_sentencepiece
        from embtool.vocab.from_files import settings

        raw = files(base_name(name)) or b""
        if _is_sentencepiece(name, raw):
            return pack(from_sentencepiece.contents(raw, name, settings(files)), name)
        made = once()
        if not made.tokenizer:
            return pack(nothing(made.refused), name)
        return pack(from_json.contents(made.tokenizer, name), name)

    return Vocabulary(
        lambda: open_index(key, name, build),
        lambda index: _encoder(index, name, once),
        functools.partial(Own, key),
        functools.partial(Asked, key),
    )


def _encoder(index: Index, name: str, once: Callable[[], "Made"]) -> Encoder:
    """What applies the tokenizer; `once` makes it from its files where the index does not do."""
    if index.rules.get("refused") is not None:
        return _refusal(index.rules["refused"])
    if "sentencepiece" in index.rules:
        from embtool.vocab.sentencepiece import SentencePiece

        return SentencePiece(index, name)
    made = once()
    if made.note is not None:
        note(made.note)
    if made.refused is not None:
        return _refusal(made.refused)
    if made.uncut is not None:
        from embtool.vocab.gguf_encoder import Entries

        return Entries(index, name, made.uncut)
    from embtool.vocab.tokenizer import Library

    return Library(functools.cache(lambda: _dumped(made)), name, index)


def _is_sentencepiece(name: str, raw: bytes) -> bool:
    """Whether a file is a SentencePiece model; `tokenizer.model` may be a list of ranks."""
    from embtool.vocab.from_tiktoken import is_ranks

    base = base_name(name)
    return base == "spiece.model" or (base == "tokenizer.model" and not is_ranks(raw))


def _refusal(why: str) -> Refusal:
    advice = "name another tokenizer with --tokenizer, or rows with id:N"
    return Refusal(UnsupportedError(why, advice))


def _made(name: str, files: Files) -> "Made":
    from embtool.vocab import from_merges, from_tiktoken, from_wordpiece
    from embtool.vocab.from_files import settings

    base = base_name(name)
    raw, found = files(base) or b"", settings(files)
    if base == "tekken.json":
        return from_tiktoken.made_of_tekken(raw, name, found)
    if base == "vocab.json":
        return from_merges.made(raw, name, found, files)
    if base == "vocab.txt":
        return from_wordpiece.made(raw, name, found)
    return from_tiktoken.made(raw, name, found)


def _dumped(made: "Made") -> bytes:
    return json.dumps(made.tokenizer, ensure_ascii=False).encode("utf-8", "surrogatepass")
