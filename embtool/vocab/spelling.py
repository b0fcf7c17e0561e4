"""How a vocabulary spells text: its pieces -> the bytes they stand for.

Four ways are in use. Byte-level BPE writes every byte as one of 256 printable characters
(the alphabet of GPT-2: https://github.com/openai/gpt-2/blob/master/src/encoder.py).
SentencePiece writes a space as U+2581 and a lone byte as `<0xE4>`. WordPiece marks what
continues a word with `##`, CLIP's BPE what ends one with `</w>`. A word list spells words.
"""

import codecs
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

SPACE = "\u2581".encode()
_BYTE = rb"<0x([0-9A-Fa-f]{2})>"


def _alphabet() -> str:
    """The 256 characters of GPT-2's alphabet in the order of their bytes."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    other = [byte for byte in range(256) if byte not in own]
    characters = {byte: chr(byte) for byte in own}
    characters |= {byte: chr(256 + place) for place, byte in enumerate(other)}
    return "".join(characters[byte] for byte in range(256))


_ALPHABET = _alphabet()
_ENCODING = codecs.charmap_build(_ALPHABET)


class Spelling(NamedTuple):
    """The rules of one vocabulary.

    kind: "bpe-bytes", "sentencepiece", "wordpiece", "words" (a word list) or "pieces" (text,
    spelled as it is).
    """

    kind: str
    replaced: tuple[tuple[bytes, bytes], ...] = ()
    byte_tokens: bool = False
    prefix: bytes = b""
    suffix: bytes = b""

    def decode(self, piece: bytes) -> bytes:
        """The bytes that a piece stands for: `Ġking` -> ` king`, `<0xE4>` -> E4, `##ing` -> `ing`.

        A piece that is the mark and nothing else stands for itself.
        """
        if self.byte_tokens and (byte := re.fullmatch(_BYTE, piece)):
            return bytes([int(byte[1], 16)])
        if self.prefix and piece != self.prefix:
            piece = piece.removeprefix(self.prefix)
        if self.suffix and piece != self.suffix:
            piece = piece.removesuffix(self.suffix)
        for old, new in self.replaced:
            piece = piece.replace(old, new)
        return _from_alphabet(piece) if self.kind == "bpe-bytes" else piece


def _from_alphabet(piece: bytes) -> bytes:
    """Bytes from GPT-2's alphabet; a piece with any other character stands for itself."""
    try:
        return codecs.charmap_encode(piece.decode("utf-8"), "strict", _ENCODING)[0]
    except UnicodeError:
        return piece


def in_alphabet(text: bytes) -> str:
    """Bytes as byte-level BPE writes them: ` king` -> `Ġking`."""
    return codecs.charmap_decode(text, "strict", _ALPHABET)[0]


def spelling_of_json(tokenizer: Mapping[str, Any]) -> Spelling:
    """The spelling that a tokenizer.json describes.

    Its decoder decides, whose parts may stand in `Sequence`s; where it has none, its
    pre-tokenizer, normalizer and model.
    """
    model = tokenizer.get("model") or {}
    kind = model_type(model)
    decoders = list(parts(tokenizer.get("decoder")))
    before = [*parts(tokenizer.get("pre_tokenizer")), *parts(tokenizer.get("normalizer"))]
    suffix = _text(model.get("end_of_word_suffix"))
    if _has(decoders, "ByteLevel") or (not decoders and _has(before, "ByteLevel")):
        return Spelling("bpe-bytes", suffix=suffix)
    prefix = _text(model.get("continuing_subword_prefix"))
    if kind == "WordPiece":
        return Spelling("wordpiece", prefix=prefix or b"##")
    replaced = tuple(_replaced(decoders) if decoders else _replaced_before(before))
    byte_tokens = _has(decoders, "ByteFallback") or bool(model.get("byte_fallback"))
    for part in decoders:
        if part.get("type") == "WordPiece":
            prefix = _text(part.get("prefix")) or b"##"
        if part.get("type") == "BPEDecoder":
            suffix = _text(part.get("suffix")) or b"</w>"
    if kind == "WordLevel":
        name = "words"
    else:
        spaced = byte_tokens or any(new == b" " for _, new in replaced)
        name = "sentencepiece" if spaced or kind == "Unigram" else "pieces"
    return Spelling(name, replaced, byte_tokens, prefix, suffix)


def _replaced(decoders: list[Mapping[str, Any]]) -> Iterator[tuple[bytes, bytes]]:
    """What a decoder puts in place of what."""
    for part in decoders:
        if part.get("type") == "Metaspace":
            yield _text(part.get("replacement")) or SPACE, b" "
        if part.get("type") == "Replace" and (old := _pattern(part)):
            yield old, _text(part.get("content"))


def _replaced_before(parts_before: list[Mapping[str, Any]]) -> Iterator[tuple[bytes, bytes]]:
    """What stands for a space in the pieces, as the parts before the model put it there."""
    for part in parts_before:
        if part.get("type") == "Metaspace":
            yield _text(part.get("replacement")) or SPACE, b" "
        if part.get("type") == "Replace" and _pattern(part) == b" " and part.get("content"):
            yield _text(part.get("content")), b" "


def _pattern(part: Mapping[str, Any]) -> bytes:
    pattern = part.get("pattern")
    return _text(pattern.get("String")) if isinstance(pattern, dict) else b""


def spelling_of_gguf(kind: str) -> Spelling:
    """The spelling of a GGUF file's `tokenizer.ggml.model`.

    `bert` is WordPiece whose words begin with U+2581 and whose other pieces have no mark.
    """
    if kind == "gpt2":
        return Spelling("bpe-bytes")
    if kind == "bert":
        return Spelling("wordpiece", prefix=SPACE)
    if kind in ("llama", "t5"):
        return Spelling("sentencepiece", ((SPACE, b" "),), byte_tokens=True)
    return Spelling("pieces")


def model_type(model: Mapping[str, Any]) -> str:
    """The type of a tokenizer.json's model; files older than the field show it by their parts."""
    if isinstance(model.get("type"), str):
        return str(model["type"])
    if isinstance(model.get("vocab"), list):
        return "Unigram"
    if "merges" in model:
        return "BPE"
    return "WordPiece" if "continuing_subword_prefix" in model else "WordLevel"


def parts(section: object) -> Iterator[Mapping[str, Any]]:
    """The parts of a normalizer, pre-tokenizer or decoder, `Sequence`s unfolded, in order."""
    if not isinstance(section, dict):
        return
    inner = [section.get(name) for name in ("normalizers", "pretokenizers", "decoders")]
    if section.get("type") != "Sequence":
        yield section
    for part in next((found for found in inner if isinstance(found, list)), []):
        yield from parts(part)


def _has(found: list[Mapping[str, Any]], name: str) -> bool:
    return any(part.get("type") == name for part in found)


def _text(value: object) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else b""


def unprefixed(tokenizer: dict[str, Any]) -> dict[str, Any] | None:
    """The same tokenizer.json without a space of its own before a text; None if it puts none.

    Such a space comes from a `Prepend` normalizer (Llama 2), from a `Metaspace` (T5) or from a
    `ByteLevel` with `add_prefix_space`.
    """
    sections = {name: tokenizer.get(name) for name in ("normalizer", "pre_tokenizer")}
    bare = {name: _without_prefix(section) for name, section in sections.items()}
    return None if bare == sections else {**tokenizer, **bare}


def _without_prefix(section: object) -> object:
    if not isinstance(section, dict) or section.get("type") == "Prepend":
        return None
    changed = dict(section)
    for name in ("normalizers", "pretokenizers"):
        if isinstance(section.get(name), list):
            inner = [_without_prefix(part) for part in section[name]]
            changed[name] = [part for part in inner if part is not None]
    if section.get("type") == "ByteLevel" and section.get("add_prefix_space", True):
        changed["add_prefix_space"] = False
    if section.get("type") == "Metaspace" and _prepends(section):
        changed.pop("add_prefix_space", None)
        changed["prepend_scheme"] = "never"
    return changed


def _prepends(metaspace: Mapping[str, Any]) -> bool:
    if "prepend_scheme" in metaspace:
        return bool(metaspace["prepend_scheme"] != "never")
    return bool(metaspace.get("add_prefix_space", True))
