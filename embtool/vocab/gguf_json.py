"""A GGUF file's metadata -> the tokenizer.json of the same tokenizer.

For the kinds that the tokenizers library applies: `gpt2` (byte-level BPE), `bert` (WordPiece) and
`t5` (unigram). Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; what holds where
one is absent is llama.cpp's own default for the kind.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embtool.errors import FormatError
from embtool.vocab.contents import ADVICE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED
from embtool.vocab.cuts import Cut
from embtool.vocab.spelling import SPACE

_SPACE = SPACE.decode()
# Words longer than this are unknown to BERT's tokenizer.
_LONGEST_WORD = 100
Json = dict[str, Any]
Special = tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class Described:
    """The tokenizer's part of a GGUF file's metadata.

    texts: by id, None where one is no UTF-8; types: by id.
    """

    file: str
    metadata: Mapping[str, Any]
    texts: list[str | None]
    types: list[int]

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 -- as the key says
        """A value by the last part of its key."""
        return self.metadata.get(f"tokenizer.ggml.{name}", default)

    def special(self, name: str, default: int | None, *, wanted: bool) -> Special:
        """The text and the id of a special token; None if it is not `wanted`, or not there."""
        found = self.get(f"{name}_token_id", default)
        if not wanted or not isinstance(found, int) or not 0 <= found < len(self.texts):
            return None
        text = self.texts[found]
        return None if text is None else (text, found)

    def tokens(self) -> Iterator[tuple[int, str]]:
        """Ids and texts, each text once, with the lowest of its ids."""
        first: dict[str, int] = {}
        for token_id, text in enumerate(self.texts):
            if text and self.types[token_id] != UNUSED:
                first.setdefault(text, token_id)
        yield from ((token_id, text) for text, token_id in first.items())


def described(metadata: Mapping[str, Any], file: str) -> Described:
    """The metadata of a file whose numbers of tokens and types have been checked."""
    texts = [_text(piece) for piece in metadata["tokenizer.ggml.tokens"]]
    types = metadata.get("tokenizer.ggml.token_type")
    kinds = [NORMAL] * len(texts) if types is None else np.asarray(types).tolist()
    return Described(file, metadata, texts, kinds)


def byte_level(gguf: Described, cut: Cut) -> bytes:
    """The kind `gpt2`, which cuts a text as `cut` says."""
    vocab = {text: token_id for token_id, text in gguf.tokens()}
    merges = _texts(gguf, "merges")
    model = {"type": "BPE", "vocab": vocab, "merges": merges, "ignore_merges": cut.whole}
    before = gguf.special("bos", None, wanted=gguf.get("add_bos_token", cut.begins))
    after = gguf.special("eos", None, wanted=gguf.get("add_eos_token", False))
    return _dump(
        gguf,
        model,
        normalizer={"type": "NFC"} if cut.nfc else None,
        pre_tokenizer={"type": "Sequence", "pretokenizers": list(cut.steps)},
        around=(before, after),
    )


def word_pieces(gguf: Described) -> bytes:
    """The kind `bert`: a piece that begins a word is written with U+2581, others without a mark.

    Where no key says whether the text is put in small letters, a vocabulary that has capitals
    says that it is not.
    """
    vocab: dict[str, int] = {}
    capitals = False
    for token_id, text in gguf.tokens():
        literal = gguf.types[token_id] in (CONTROL, UNKNOWN)
        begins = text.startswith(_SPACE)
        vocab[text if literal else text[1:] if begins else f"##{text}"] = token_id
        capitals = capitals or (not literal and _has_capital(text.removeprefix(_SPACE)))
    unknown = gguf.special("unknown", 100, wanted=True)
    model: Json = {"type": "WordPiece", "vocab": vocab, "continuing_subword_prefix": "##"}
    model |= {"unk_token": unknown[0] if unknown else "[UNK]"}
    model |= {"max_input_chars_per_word": _LONGEST_WORD}
    lowercase = gguf.get("normalizer.lowercase", not capitals)
    normalizer: Json = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
    normalizer |= {"strip_accents": gguf.get("normalizer.strip_accents"), "lowercase": lowercase}
    before = gguf.special("bos", 101, wanted=gguf.get("add_bos_token", True))
    after = gguf.special("seperator", 102, wanted=gguf.get("add_sep_token", True))
    return _dump(
        gguf,
        model,
        normalizer=normalizer,
        pre_tokenizer={"type": "BertPreTokenizer"},
        around=(before, after),
    )


def unigram(gguf: Described) -> bytes:
    """The kind `t5`: pieces with log probabilities, and SentencePiece's normalization."""
    scores = _numbers(gguf, "scores", np.zeros(len(gguf.texts))).astype(np.float64).tolist()
    if len(scores) != len(gguf.texts):
        raise _malformed(gguf, f"{len(gguf.texts)} tokens, but scores has {len(scores)} entries")
    # An id keeps its place in the list; what cannot be typed stands there as itself.
    pieces = [
        [f"\x00{i}" if text is None else text, 0.0 if gguf.types[i] == USER_DEFINED else score]
        for i, (text, score) in enumerate(zip(gguf.texts, scores, strict=True))
    ]
    model = {"type": "Unigram", "vocab": pieces, "unk_id": gguf.get("unknown_token_id", 2)}
    steps: list[Json] = []
    charsmap = _numbers(gguf, "precompiled_charsmap", np.zeros(0)).astype(np.uint8).tobytes()
    if charsmap:
        steps.append({"type": "Precompiled", "precompiled_charsmap": _charsmap(gguf, charsmap)})
    if gguf.get("remove_extra_whitespaces", False):
        steps += [
            {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}
            for pattern, content in ((r"\A +| +\z", ""), (" {2,}", " "))
        ]
    if gguf.get("add_space_prefix", False):
        # Metaspace would put none before a text that begins with a space; SentencePiece does.
        steps.append({"type": "Prepend", "prepend": " "})
    space = {"type": "Metaspace", "replacement": _SPACE, "prepend_scheme": "never", "split": True}
    before = gguf.special("bos", None, wanted=gguf.get("add_bos_token", False))
    after = gguf.special("eos", 1, wanted=gguf.get("add_eos_token", True))
    return _dump(
        gguf,
        model,
        normalizer={"type": "Sequence", "normalizers": steps} if steps else None,
        pre_tokenizer=space,
        around=(before, after),
    )


def _charsmap(gguf: Described, raw: bytes) -> str:
    """SentencePiece's normalization in base64: the bytes of a trie (u32), the trie, the texts."""
    trie = int.from_bytes(raw[:4], "little")
    if trie % 4 or not 4 <= trie <= len(raw) - 4:
        raise _malformed(gguf, f"its normalization has {len(raw)} bytes, its trie {trie}")
    return base64.b64encode(raw).decode()


def _texts(gguf: Described, name: str) -> list[str]:
    values = gguf.get(name, ())
    if not isinstance(values, Iterable) or any(type(value) is not bytes for value in values):
        raise _malformed(gguf, f"{name} holds something else than texts")
    joined = b"\n".join(values).decode("utf-8", "replace")
    return [text for text in joined.split("\n") if text]


def _numbers(gguf: Described, name: str, default: NDArray[Any]) -> NDArray[Any]:
    values = gguf.get(name, default)
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iuf":
        raise _malformed(gguf, f"{name} holds something else than numbers")
    return values


def _malformed(gguf: Described, what: str) -> FormatError:
    return FormatError(f"{gguf.file}: {what}", ADVICE)


def _dump(
    gguf: Described,
    model: Json,
    *,
    normalizer: Json | None,
    pre_tokenizer: Json,
    around: tuple[Special, Special],
) -> bytes:
    added = [
        {"id": token_id, "content": text, "special": gguf.types[token_id] != USER_DEFINED}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for token_id, text in gguf.tokens()
        if gguf.types[token_id] in (CONTROL, UNKNOWN, USER_DEFINED)
    ]
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": surrounding(*around),
        "decoder": None,
        "model": model,
    }
    return json.dumps(tokenizer, ensure_ascii=False).encode()


def surrounding(before: Special, after: Special) -> Json | None:
    """What puts the model's own special tokens around a text."""
    if before is None and after is None:
        return None
    text: list[Json] = [{"Sequence": {"id": "A", "type_id": 0}}]
    head, tail = (
        [] if token is None else [{"SpecialToken": {"id": token[0], "type_id": 0}}]
        for token in (before, after)
    )
    known = {
        token[0]: {"id": token[0], "ids": [token[1]], "tokens": [token[0]]}
        for token in (before, after)
        if token is not None
    }
    single = [*head, *text, *tail]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": known}


def _has_capital(text: str) -> bool:
    return text.isalpha() and any("A" <= character <= "Z" for character in text)


def _text(piece: object) -> str | None:
    try:
        return piece.decode("utf-8") if isinstance(piece, bytes) else None
    except UnicodeDecodeError:
        return None
