"""Which tokens can be typed: those whose own text encodes back to them alone."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from embtool.vocab.contents import NORMAL
from embtool.vocab.display import unescape
from embtool.vocab.index import Index

Encode = Callable[[Sequence[str]], Iterator[list[int]]]


def own_tokens(index: Index, encode: Encode) -> NDArray[np.bool_]:
    """(size,) bool: whether the text of a token is encoded to its id and nothing else.

    A lone byte that is no UTF-8 cannot be typed. A piece that only continues a word (`##ing`) is
    tried behind a character that begins no longer piece, where the two must come back.
    """
    texts = [unescape(token) for token in index.tokens.all()]
    typed: dict[int, str] = {}
    for token_id, text in enumerate(texts):
        if index.has(token_id) and (decoded := _decoded(text)):
            typed[token_id] = decoded
    own = np.zeros(index.size, bool)
    for token_id, ids in zip(typed, encode(list(typed.values())), strict=True):
        own[token_id] = ids == [token_id]
    if mark := index.rules.get("mark"):
        _continuing(index, encode, mark, typed, own)
    return own


def _decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return ""


def _continuing(
    index: Index, encode: Encode, mark: str, typed: dict[int, str], own: NDArray[np.bool_]
) -> None:
    raws = index.raws.all()
    lead = _lead(index, raws, mark, own)
    if lead is None:
        return
    ids = [
        token_id
        for token_id in typed
        if index.type(token_id) == NORMAL and raws[token_id].startswith(mark)
    ]
    texts = [raws[lead] + typed[token_id] for token_id in ids]
    for token_id, found in zip(ids, encode(texts), strict=True):
        own[token_id] |= found == [lead, token_id]


def _lead(index: Index, raws: list[str], mark: str, own: NDArray[np.bool_]) -> int | None:
    """A letter that is a token of its own and begins no other piece."""
    begun = {raw[0] for raw in raws if len(raw) > 1 and not raw.startswith(mark)}
    for token_id, raw in enumerate(raws):
        if len(raw) == 1 and raw.isalpha() and raw not in begun and own[token_id]:
            return token_id
    return None
