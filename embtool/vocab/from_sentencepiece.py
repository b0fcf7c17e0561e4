"""tokenizer.model and spiece.model -> the vocabulary and the rules of a SentencePiece model.

The messages and their defaults:
https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
"""

import base64
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
    nothing,
    shown,
    size_of,
)
from embtool.vocab.from_files import Settings
from embtool.vocab.from_gguf import matched
from embtool.vocab.protobuf import Value, fields
from embtool.vocab.spelling import spelling_of_gguf

_UNIGRAM, _BPE, _WORD, _CHAR = 1, 2, 3, 4
_TYPES = {_WORD: "word", _CHAR: "char"}
# Families whose program counts ids otherwise than the file does.
_SHIFTED = re.compile("pegasus|xlmroberta|camembert|mbart.*|nllb|barthez|xglm|xlm-roberta")
# Sentinels that T5's classes put behind the pieces, the last first.
_SENTINELS = 100
_T5 = re.compile("u?m?t5|longt5|switch_transformers")
_CLS = re.compile("albert|fnet|bigbird|big_bird|rembert|reformer")


@dataclass(slots=True)
class _Model:
    pieces: list[bytes] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    types: list[int] = field(default_factory=list)
    trainer: dict[int, Value] = field(default_factory=dict)
    normalizer: dict[int, Value] = field(default_factory=dict)

    def flag(self, number: int) -> bool:
        """One of the normalizer's settings, which hold where they are not there."""
        return self.normalizer.get(number, 1) != 0


def contents(raw: bytes, file: str, found: Settings) -> Contents:
    """Every piece with its score, and every token that the files beside add.

    Raises FormatError for what is no such model.
    """
    model = _parse(raw, file)
    if _SHIFTED.fullmatch(found.family):
        return nothing(f"{found.family} does not number its tokens as {file} does")
    size = size_of([len(model.pieces) - 1], file)
    if not np.isfinite(model.scores).all():
        token_id = int(np.argmin(np.isfinite(model.scores)))
        raise FormatError(f"{file}: the score of token {token_id} is no number", ADVICE)
    whole = [i for i, kind in enumerate(model.types) if kind in (CONTROL, UNKNOWN)]
    added = _sentinels(model, found) | {i: dict(entry) for i, entry in found.added.items()}
    total = max(size, size_of(added, file))
    pieces: list[bytes | None] = [*model.pieces, *[None] * (total - size)]
    types = np.array([*model.types, *[HOLE] * (total - size)], np.uint8)
    scores = np.array([*model.scores, *[0.0] * (total - size)], np.float32)
    spelled = matched(model.pieces, types[:size], (USER_DEFINED,))
    for token_id, entry in added.items():
        pieces[token_id] = entry["content"].encode("utf-8", "surrogatepass")
        types[token_id] = CONTROL if entry.get("special") else USER_DEFINED
    spelling = spelling_of_gguf("llama")
    tokens, raws = shown(pieces, types, spelling)
    unknown = model.types.index(UNKNOWN) if UNKNOWN in model.types else None
    rules = _rules(model, file, found, pieces)
    rules |= {"whole": sorted({*whole, *added}), "matched": spelled}
    return Contents(spelling.kind, tokens, raws, types, unknown, scores, rules)


def _rules(model: _Model, file: str, found: Settings, pieces: list[bytes | None]) -> dict[str, Any]:
    kind = model.trainer.get(3, _UNIGRAM)
    refused = None
    if kind not in (_UNIGRAM, _BPE):
        named = _TYPES.get(kind, str(kind)) if isinstance(kind, int) else "unknown"
        refused = f"{file}: its model is of the type {named}, which embtool does not apply"
    elif not model.flag(5):
        refused = f"{file}: its pieces spell spaces as they are, which embtool does not apply"
    elif kind == _BPE and UNUSED in model.types:
        refused = f"{file}: some of its pieces are unused, which embtool does not apply"
    charsmap = model.normalizer.get(2, b"")
    before, after = _around(model, found, pieces)
    return {
        "sentencepiece": "bpe" if kind == _BPE else "unigram",
        "refused": refused,
        "charsmap": "" if isinstance(charsmap, int) else base64.b64encode(charsmap).decode(),
        "prefix": model.flag(3),
        "collapse": model.flag(4),
        "suffix": model.trainer.get(24, 0) != 0,
        "before": before,
        "after": after,
    }


def _parse(raw: bytes, file: str) -> _Model:
    model = _Model()
    for number, value in fields(memoryview(raw), file):
        if isinstance(value, int):
            continue
        if number == 1:
            piece, score, kind = b"", 0.0, NORMAL
            for part, inner in fields(value, file):
                if part == 1 and not isinstance(inner, int):
                    piece = bytes(inner)
                elif part == 2 and not isinstance(inner, int) and len(inner) == 4:
                    score = struct.unpack("<f", inner)[0]
                elif part == 3 and isinstance(inner, int) and HOLE < inner <= BYTE:
                    kind = inner
            model.pieces.append(piece)
            model.scores.append(score)
            model.types.append(kind)
        elif number in (2, 3):
            (model.trainer if number == 2 else model.normalizer).update(fields(value, file))
    if not model.pieces:
        raise FormatError(f"{file}: it is no SentencePiece model: there are no pieces", ADVICE)
    return model


def _sentinels(model: _Model, found: Settings) -> dict[int, dict[str, Any]]:
    """T5's <extra_id_0>, where no file gives them ids of their own."""
    count = found.config.get("extra_ids", _SENTINELS)
    if not _T5.fullmatch(found.family) or found.added or b"<extra_id_0>" in model.pieces:
        return {}
    last = len(model.pieces) + min(count, 1 << 16) - 1 if type(count) is int else 0
    return {
        token_id: {"content": f"<extra_id_{last - token_id}>", "special": True}
        for token_id in range(len(model.pieces), last + 1)
    }


def _around(
    model: _Model, found: Settings, pieces: list[bytes | None]
) -> tuple[list[int], list[int]]:
    """The ids that stand before and after a text with special tokens."""

    def placed(*names: str | None) -> list[int]:
        wanted = [None if name is None else name.encode() for name in names]
        return [pieces.index(name) for name in wanted if name is not None and name in pieces]

    if _T5.fullmatch(found.family):
        return [], placed(found.named("eos_token", "</s>"))
    if _CLS.fullmatch(found.family):
        return placed(found.named("cls_token", "[CLS]")), placed(found.named("sep_token", "[SEP]"))
    if found.family == "xlnet":
        return [], placed("<sep>", "<cls>")
    begins, ends = found.flag("add_bos_token"), found.flag("add_eos_token")
    before = placed(found.named("bos_token", _spelled(model.trainer, 46, "<s>")))
    after = placed(found.named("eos_token", _spelled(model.trainer, 47, "</s>")))
    return before if begins is not False else [], after if ends else []


def _spelled(trainer: Mapping[int, Value], number: int, default: str) -> str:
    value = trainer.get(number)
    return default if value is None or isinstance(value, int) else str(value, "utf-8", "replace")
