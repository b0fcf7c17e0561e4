"""tokenizer.json -> its vocabulary, without the library that applies it.

The format is the serialization of https://github.com/huggingface/tokenizers.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from embtool.errors import FormatError
from embtool.vocab.contents import ADVICE, CONTROL, NORMAL, USER_DEFINED, Contents, shown, size_of
from embtool.vocab.display import escape
from embtool.vocab.spelling import model_type, spelling_of_json, unprefixed


def parse(raw: bytes, file: str) -> dict[str, Any]:
    """The file as a mapping that has a model; FormatError names the file."""
    try:
        tokenizer = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file}: it is no JSON: {error}", ADVICE) from error
    if not isinstance(tokenizer, dict) or not isinstance(tokenizer.get("model"), dict):
        raise FormatError(f"{file}: it is no tokenizer: there is no model in it", ADVICE)
    return tokenizer


def contents(tokenizer: Mapping[str, Any], file: str) -> Contents:
    """Every token, added ones included; those win over a piece of the model with their id.

    `tokenizer` is what `parse` gives. Raises FormatError where ids or spellings are not what the
    format demands.
    """
    model = tokenizer["model"]
    pieces, added = _pieces(model, file), _added(tokenizer, file)
    size = size_of([*pieces.values(), *(token["id"] for token in added)], file)
    by_id: list[bytes | None] = [None] * size
    types = np.zeros(size, np.uint8)
    for piece, token_id in pieces.items():
        by_id[token_id] = piece.encode("utf-8", "surrogatepass")
    types[list(pieces.values())] = NORMAL
    for token in added:
        by_id[token["id"]] = token["content"].encode("utf-8", "surrogatepass")
        types[token["id"]] = CONTROL if token.get("special") else USER_DEFINED
    spelling = spelling_of_json(tokenizer)
    tokens, raws = shown(by_id, types, spelling)
    return Contents(
        kind=spelling.kind,
        tokens=tokens,
        raws=raws,
        types=types,
        unknown_id=_unknown_id(model, pieces, {token["content"]: token["id"] for token in added}),
        rules={
            "prefix": unprefixed(dict(tokenizer)) is not None,
            "mark": escape(spelling.prefix),
            # WordPiece and word lists drop the spaces between words
            "spaced": spelling.kind not in ("wordpiece", "words") or bool(spelling.replaced),
        },
    )


def _pieces(model: Mapping[str, Any], file: str) -> dict[str, int]:
    """The model's pieces and their ids; a Unigram model lists them in the order of ids."""
    vocab = model.get("vocab")
    if isinstance(vocab, list):
        if all(isinstance(entry, list) and entry and isinstance(entry[0], str) for entry in vocab):
            return {entry[0]: token_id for token_id, entry in enumerate(vocab)}
    elif isinstance(vocab, dict) and all(type(token_id) is int for token_id in vocab.values()):
        return vocab
    raise FormatError(f"{file}: its model has no vocabulary of pieces and ids", ADVICE)


def _added(tokenizer: Mapping[str, Any], file: str) -> list[dict[str, Any]]:
    added = tokenizer.get("added_tokens") or []
    for token in added if isinstance(added, list) else [added]:
        named = isinstance(token, dict) and isinstance(token.get("content"), str)
        if not named or type(token.get("id")) is not int:
            raise FormatError(f"{file}: an added token without content and id: {token!r}", ADVICE)
    return list(added)


def _unknown_id(
    model: Mapping[str, Any], pieces: Mapping[str, int], added: Mapping[str, int]
) -> int | None:
    """The id that stands for an unknown text; Unigram names it by id, the others by its piece."""
    if model_type(model) == "Unigram":
        return model["unk_id"] if type(model.get("unk_id")) is int else None
    piece = model.get("unk_token")
    return added.get(piece, pieces.get(piece)) if isinstance(piece, str) else None
