"""A file of ranks, and Mistral's tekken.json -> the tokenizer.json of the same tokenizer.

A line of `*.tiktoken` is a token's bytes in base64 and its rank, which is its id. Of all
neighbours whose joined bytes are a token, those with the lowest rank are joined first
(https://github.com/openai/tiktoken). The rest is in the program that reads the file, as here.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from embtool.errors import FormatError
from embtool.vocab.contents import ADVICE, size_of
from embtool.vocab.cuts import Cut, cut_by, cut_of
from embtool.vocab.from_files import Made, Settings, assembled, json_of, placed, token
from embtool.vocab.gguf_json import Json
from embtool.vocab.spelling import in_alphabet

# Far longer than any token that is a run of spaces; every cut of a token is tried.
_LONGEST = 1024
_LINE = re.compile(rb"([A-Za-z0-9+/]+={0,2}) +([0-9]{1,9})\r?")
# What cuts texts, by the name of the file, else by the family.
_FILES = {
    "qwen.tiktoken": "qwen2",
    "o200k_base.tiktoken": "gpt-4o",
    "r50k_base.tiktoken": "gpt-2",
    "p50k_base.tiktoken": "gpt-2",
    "gpt2.tiktoken": "gpt-2",
    "multilingual.tiktoken": "gpt-2",
}
_FAMILIES = (
    (r"qwen(_vl|_audio)?", "qwen2"),
    (r"qwen3_[56].*", "qwen35"),
    (r"kimi.*", "kimi-k2"),
    (r"llama4.*", "llama4"),
    (r"m?llama3?", "llama-bpe"),
    (r"chatglm.*|glm.*", "glm4"),
    (r"whisper", "gpt-2"),
)
_QWEN = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{i}|>" for i in range(205)))
_LLAMA3 = {0: "<|begin_of_text|>", 1: "<|end_of_text|>", 6: "<|start_header_id|>"}
_LLAMA3 |= {7: "<|end_header_id|>", 9: "<|eot_id|>"}
# Special tokens past the ranks, where no file names them.
_SPECIAL: Mapping[str, Mapping[int, str]] = {
    "qwen.tiktoken": dict(enumerate(_QWEN)),
    "qwen": dict(enumerate(_QWEN)),
    "o200k_base.tiktoken": {1: "<|endoftext|>"},
    "gpt2.tiktoken": {0: "<|endoftext|>"},
    "llama-bpe": _LLAMA3,
}
# Of Mistral's files before they listed their own.
_TEKKEN = re.findall(
    r"\S+",
    "<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] "
    "[/TOOL_RESULTS] [TOOL_CALLS] [IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] "
    "[SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]",
)


def is_ranks(raw: bytes) -> bool:
    """Whether a file begins with a token in base64 and its rank."""
    return _LINE.fullmatch(raw[:4096].partition(b"\n")[0]) is not None


def made(raw: bytes, file: str, found: Settings) -> Made:
    """The tokenizer of a file of ranks; uncut where nothing tells what cuts its texts."""
    ranks = _ranks(raw, file)
    base = file.rpartition("/")[2]
    name = _FILES.get(base) or next(
        (cut for family, cut in _FAMILIES if re.fullmatch(family, found.family)), None
    )
    known = cut_of(name) if name is not None else None
    first = max(ranks.values()) + 1
    tokens = {first + place: text for place, text in _special(base, found, name).items()}
    cut = known or Cut(())
    added = {i: token(i, text, special=True) for i, text in tokens.items()} | dict(found.added)
    tokenizer = _tokenizer(ranks, cut, replace(found, added=added))
    return Made(tokenizer, uncut=None if known else found.family or base)


def made_of_tekken(raw: bytes, file: str, found: Settings) -> Made:
    """The tokenizer of a tekken.json: ids of special tokens first, then one for each rank.

    The keys are those of https://github.com/mistralai/mistral-common.
    """
    tekken = json_of(raw, file)
    config, vocab = tekken.get("config"), tekken.get("vocab")
    if not isinstance(config, dict) or not isinstance(vocab, list):
        raise FormatError(f"{file}: it is no tokenizer: it has no config and vocab", ADVICE)
    pattern = config.get("pattern")
    count, size = config.get("default_num_special_tokens"), config.get("default_vocab_size")
    if not isinstance(pattern, str) or type(count) is not int or type(size) is not int:
        raise FormatError(f"{file}: its config lacks a pattern or the numbers of tokens", ADVICE)
    size_of([count, size], file)
    if not count <= size <= count + len(vocab):
        message = f"{file}: {size} tokens, but {count} special ones and {len(vocab)} others"
        raise FormatError(message, ADVICE)
    ranks = {}
    for rank, entry in enumerate(vocab[: size - count]):
        text = entry.get("token_bytes") if isinstance(entry, dict) else None
        if not isinstance(text, str) or entry.get("rank") != rank:
            raise FormatError(f"{file}: its entry {rank} is no token of that rank", ADVICE)
        ranks[_bytes_of(text.encode(), file)] = count + rank
    _checked(ranks, file)
    added = {i: token(i, f"<SPECIAL_{i}>", special=True) for i in range(count)}
    added |= _listed(tekken.get("special_tokens"), count, file)
    cut = cut_by(pattern)._replace(begins=True)
    return Made(_tokenizer(ranks, cut, replace(found, added=added)))


def _listed(entries: object, count: int, file: str) -> dict[int, Json]:
    """The special tokens that a tekken.json lists; older files list none."""
    if entries is None:
        return {i: token(i, text, special=True) for i, text in enumerate(_TEKKEN[:count])}
    listed = {}
    for entry in entries if isinstance(entries, list) else [entries]:
        found = entry if isinstance(entry, dict) else {}
        token_id, text = found.get("rank"), found.get("token_str")
        if type(token_id) is not int or not 0 <= token_id < count or not isinstance(text, str):
            raise FormatError(f"{file}: a special token without rank and token_str", ADVICE)
        listed[token_id] = token(token_id, text, special=found.get("is_control") is not False)
    return listed


def _checked(ranks: Mapping[bytes, int], file: str) -> None:
    """Raise FormatError unless every byte is a token: there is none for what is unknown."""
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise FormatError(f"{file}: the byte 0x{missing[0]:02X} is no token of it", ADVICE)


def _ranks(raw: bytes, file: str) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(raw.split(b"\n")):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise FormatError(f"{file}: its line {number + 1} is no token and rank", ADVICE)
        ranks[_bytes_of(match[1], file)] = int(match[2])
    size_of(ranks.values(), file)
    if len(set(ranks.values())) != len(ranks):
        raise FormatError(f"{file}: two of its {len(ranks)} tokens have the same rank", ADVICE)
    _checked(ranks, file)
    return ranks


def _bytes_of(text: bytes, file: str) -> bytes:
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FormatError(f"{file}: a token is no base64: {error}", ADVICE) from error
    if not 0 < len(found) <= _LONGEST:
        raise FormatError(f"{file}: a token has {len(found)} bytes", ADVICE)
    return found


def _special(base: str, found: Settings, name: str | None) -> Mapping[int, str]:
    """What stands past the ranks where the files beside name no token of their own."""
    if found.added:
        return {}
    keys = (base, found.family, name or "")
    return next((_SPECIAL[key] for key in keys if key in _SPECIAL), {})


def _tokenizer(ranks: Mapping[bytes, int], cut: Cut, found: Settings) -> Json:
    vocab = {in_alphabet(piece): rank for piece, rank in ranks.items()}
    merges = list(_merges(vocab))
    begins = {entry["content"]: token_id for token_id, entry in found.added.items()}
    bos = found.named("bos_token", "<s>" if "<s>" in begins else "<|begin_of_text|>")
    return assembled(
        {"type": "BPE", "vocab": vocab, "merges": merges, "ignore_merges": True},
        found,
        before=placed(begins, bos) if cut.begins else None,
        normalizer={"type": "NFC"} if cut.nfc else None,
        pre_tokenizer={"type": "Sequence", "pretokenizers": list(cut.steps)},
    )


def _merges(ranks: Mapping[str, int]) -> Iterator[str]:
    """Every two tokens that make a third, those of the lowest rank first; a character a byte."""
    for piece in sorted(ranks, key=ranks.__getitem__):
        for at in range(1, len(piece)):
            left, right = piece[:at], piece[at:]
            if left in ranks and right in ranks:
                yield f"{left} {right}"
