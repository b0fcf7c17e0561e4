"""A GGUF file's metadata -> the vocabulary it describes.

Keys and their meaning: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; what holds
where a key is absent is llama.cpp's own default for that kind of tokenizer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embtool.errors import FormatError
from embtool.vocab.contents import (
    ADVICE,
    BYTE,
    CONTROL,
    HOLE,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    Contents,
    shown,
    size_of,
)
from embtool.vocab.spelling import SPACE, spelling_of_gguf

# The unknown token where a file does not name it.
_UNKNOWN_ID = {"llama": 0, "bert": 100, "t5": 2}


def contents(metadata: Mapping[str, Any], file: str) -> Contents:
    """Every token, with its score for the kind `llama`.

    Raises FormatError where there is no tokenizer, and where the numbers of tokens, scores and
    types differ.
    """
    name = str(metadata.get("tokenizer.ggml.model", ""))
    pieces = list(metadata.get("tokenizer.ggml.tokens", ()))
    if not name or set(map(type, pieces)) != {bytes}:
        raise FormatError(f"{file}: it describes no tokenizer", "name one with --tokenizer")
    size = size_of([len(pieces) - 1], file)
    types = _numbers(metadata, "token_type", size, file)
    kinds = np.full(size, NORMAL, np.uint8)
    if types is not None:
        # a type that the format does not number is no reason to refuse the rest
        kinds = np.where((types > HOLE) & (types <= BYTE), types, NORMAL).astype(np.uint8)
    for token_id in np.flatnonzero(kinds == UNUSED).tolist():
        # llama.cpp's converter fills rows without a token so
        if pieces[token_id] == b"[PAD%d]" % token_id:
            pieces[token_id], kinds[token_id] = b"", HOLE
    spelling = spelling_of_gguf(name)
    tokens, raws = shown(pieces, kinds, spelling)
    scores = None
    rules: dict[str, Any] = {"tokenizer": name}
    if name == "llama":
        found = _numbers(metadata, "scores", size, file)
        scores = np.zeros(size, np.float32) if found is None else found.astype(np.float32)
        if not np.isfinite(scores).all():
            token_id = int(np.argmin(np.isfinite(scores)))
            raise FormatError(f"{file}: the score of token {token_id} is no number", ADVICE)
        rules |= _rules_of_llama(metadata, size) | {"matched": matched(pieces, kinds)}
    if name in ("gpt2", "bert", "t5"):
        rules |= _rules_of_library(metadata, name)
    unknown_id = _id(metadata, "unknown_token_id", size, _UNKNOWN_ID.get(name))
    return Contents(spelling.kind, tokens, raws, kinds, unknown_id, scores, rules)


def _numbers(metadata: Mapping[str, Any], name: str, size: int, file: str) -> NDArray[Any] | None:
    values = metadata.get(f"tokenizer.ggml.{name}")
    if values is None:
        return None
    array = values if isinstance(values, np.ndarray) else np.asarray(list(values))
    if array.shape != (size,):
        raise FormatError(f"{file}: {size} tokens, but {name} has {array.size} entries", ADVICE)
    return array


def _id(metadata: Mapping[str, Any], name: str, size: int, default: int | None) -> int | None:
    value = metadata.get(f"tokenizer.ggml.{name}", default)
    return value if isinstance(value, int) and 0 <= value < size else None


def _rules_of_llama(metadata: Mapping[str, Any], size: int) -> dict[str, Any]:
    def said(name: str, default: bool) -> bool:
        return bool(metadata.get(f"tokenizer.ggml.{name}", default))

    bos, eos = _id(metadata, "bos_token_id", size, 1), _id(metadata, "eos_token_id", size, 2)
    return {
        "prefix": said("add_space_prefix", True),
        "before": [bos] if bos is not None and said("add_bos_token", True) else [],
        "after": [eos] if eos is not None and said("add_eos_token", False) else [],
    }


def _rules_of_library(metadata: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What the tokenizers library's encoder of these kinds is told; see `from_json`."""
    pre = metadata.get("tokenizer.ggml.pre")
    # WordPiece as GGUF spells it: what begins a word has a mark, and not what continues one
    marks = {"mark": "##", "begins": SPACE.decode()} if name == "bert" else {}
    return {
        **marks,
        "pre": pre if isinstance(pre, str) else None,
        "prefix": name == "t5" and bool(metadata.get("tokenizer.ggml.add_space_prefix", False)),
        "spaced": name != "bert",
    }


def matched(
    pieces: Sequence[bytes],
    kinds: NDArray[np.uint8],
    whole: Sequence[int] = (CONTROL, UNKNOWN, USER_DEFINED),
) -> dict[str, list[int]]:
    """Where a token that is matched whole may begin: its first two characters -> lengths.

    Those are the tokens of the kinds `whole`. A token of one character stands under
    that; lengths are in characters, the longest first.
    """
    lengths: dict[str, set[int]] = {}
    for token_id in np.flatnonzero(np.isin(kinds, whole)).tolist():
        try:
            text = pieces[token_id].decode("utf-8")
        except UnicodeDecodeError:
            continue
        if text:
            lengths.setdefault(text[:2], set()).add(len(text))
    return {start: sorted(found, reverse=True) for start, found in lengths.items()}
