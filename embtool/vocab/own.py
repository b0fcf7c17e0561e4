"""Which tokens can be typed: those whose own text encodes back to them alone."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from embtool.vocab.contents import NORMAL
from embtool.vocab.display import unescape
from embtool.vocab.index import Index

Found = NDArray[np.bool_]


# The ids of many texts, with or without the tokenizer's own space before each.
Encode = Callable[[Sequence[str], bool], Iterator[list[int]]]


def own_tokens(index: Index, encode: Encode) -> tuple[Found, Found]:
    """Two (size,) arrays of bool.

    The first: whether the text of a token, without the tokenizer's own space before it, is
    encoded to its id and nothing else. The second adds those that come back in another way:
    where a tokenizer drops spaces and puts its own (T5), `▁king` from ` king` with that; and a
    piece that only continues a word (`##ing`) behind a character that begins no longer piece.

    A lone byte that is no UTF-8 cannot be typed.
    """
    texts = {
        token_id: text
        for token_id, token in enumerate(index.tokens.all())
        if index.has(token_id) and (text := _decoded(token))
    }
    typed = np.zeros(index.size, bool)
    typed[_coming_back(texts, encode, False)] = True
    own = typed.copy()
    if index.rules.get("prefix"):
        left = {i: text for i, text in texts.items() if text.startswith(" ") and not own[i]}
        own[_coming_back(left, encode, True)] = True
    if mark := index.rules.get("mark"):
        own[_continuing(index, encode, mark, texts, typed)] = True
    return typed, own


def _decoded(token: str) -> str:
    try:
        return unescape(token).decode("utf-8")
    except UnicodeDecodeError:
        return ""


def _coming_back(texts: dict[int, str], encode: Encode, prefix: bool) -> list[int]:
    found = encode(list(texts.values()), prefix)
    return [token_id for token_id, ids in zip(texts, found, strict=True) if ids == [token_id]]


def _continuing(
    index: Index, encode: Encode, mark: str, texts: dict[int, str], typed: Found
) -> list[int]:
    raws = _marked(index, mark)
    lead = _lead(raws, mark, typed)
    if lead is None:
        return []
    pieces = {
        token_id: text
        for token_id, text in texts.items()
        if index.type(token_id) == NORMAL and raws[token_id].startswith(mark)
    }
    found = encode([raws[lead] + text for text in pieces.values()], False)
    return [
        token_id for token_id, ids in zip(pieces, found, strict=True) if ids == [lead, token_id]
    ]


def _marked(index: Index, mark: str) -> list[str]:
    """Spellings that mark what continues a word; a GGUF file marks what begins one."""
    raws = index.raws.all()
    begins = index.rules.get("begins")
    if begins is None:
        return raws
    return [raw.removeprefix(begins) if raw.startswith(begins) else mark + raw for raw in raws]


def _lead(raws: list[str], mark: str, typed: Found) -> int | None:
    """A letter that is a token of its own and begins no other piece."""
    begun = {raw[0] for raw in raws if len(raw) > 1 and not raw.startswith(mark)}
    for token_id, raw in enumerate(raws):
        if len(raw) == 1 and raw.isalpha() and raw not in begun and typed[token_id]:
            return token_id
    return None
