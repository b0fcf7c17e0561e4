"""Tokenizers that are written in other files than tokenizer.json, and what stands beside them.

The files are those of https://github.com/huggingface/transformers; what holds where one of them is
silent is what its tokenizer classes do.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from embtool.errors import FormatError
from embtool.vocab.contents import ADVICE
from embtool.vocab.gguf_json import Json, Special, surrounding
from embtool.vocab.tokenizer_files import ADDED, CONFIG, MODEL, NAMED, Files

# Classes that stand for no family: the model's own type tells more.
_ANY = ("", "pretrained", "auto", "tiktoken", "backend")
_FLAGS = ("lstrip", "rstrip", "single_word", "normalized")


@dataclass(frozen=True, slots=True)
class Settings:
    """What stands beside a tokenizer's file.

    config: tokenizer_config.json. family: `bert` of `BertTokenizerFast`; else config.json's
    model_type; "" where neither is there. added: tokens of their own, by id, as a tokenizer.json
    lists them. special: the spellings that are named as special tokens.
    """

    config: Mapping[str, Any]
    family: str
    added: Mapping[int, Json]
    special: frozenset[str]

    def named(self, role: str, default: str | None = None) -> str | None:
        """The spelling of `bos_token` and its like; one that is null is none."""
        return _content(self.config.get(role, default))

    def flag(self, name: str) -> bool | None:
        """A setting that is true or false; None where it is neither."""
        value = self.config.get(name)
        return value if isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class Made:
    """tokenizer: what a tokenizer.json would hold, empty where not even the tokens are read.

    note: what the files do not say and was assumed.
    uncut: the name of a way to cut texts that is not known; refused: why no text has ids.
    """

    tokenizer: Json
    note: str | None = None
    uncut: str | None = None
    refused: str | None = None


def settings(files: Files) -> Settings:
    """What the files beside a tokenizer say; FormatError for one that is no JSON object."""
    config, named = _object(files, CONFIG), _object(files, NAMED)
    special = set(_special(config)) | set(_special(named))
    config = {**named, **config}
    family = _family(config.get("tokenizer_class")) or _of_model(_object(files, MODEL))
    added: dict[int, Json] = {}
    for content, token_id in _object(files, ADDED).items():
        added[_id(token_id, ADDED)] = token(_id(token_id, ADDED), content, content in special)
    decoder = config.get("added_tokens_decoder")
    for text, entry in decoder.items() if isinstance(decoder, dict) else ():
        token_id = _id(text, CONFIG)
        added[token_id] = _decoded(token_id, entry)
    return Settings(config, family, added, frozenset(special))


def _decoded(token_id: int, entry: object) -> Json:
    content = _content(entry)
    if content is None or not isinstance(entry, dict):
        raise FormatError(f"{CONFIG}: the added token {token_id} has no content", ADVICE)
    flags = {name: entry.get(name) is True for name in _FLAGS}
    return token(token_id, content, entry.get("special") is True) | flags


def token(token_id: int, content: str, special: bool) -> Json:
    """A token of its own as a tokenizer.json lists it."""
    return {"id": token_id, "content": content, "special": special} | dict.fromkeys(_FLAGS, False)


def assembled(
    model: Json,
    found: Settings,
    special: Iterable[str] = (),
    *,
    before: Special = None,
    after: Special = None,
    normalizer: Json | None = None,
    pre_tokenizer: Json | None = None,
) -> Json:
    """A tokenizer.json around a model that lists its pieces in a mapping.

    The pieces in `special`, and those that the files name, stand for no text. What is added is a
    piece of the model as well: the library then keeps its id, wherever that is.
    """
    vocab = model["vocab"]
    added = {
        vocab[text]: token(vocab[text], text, special=True)
        for text in (*special, *sorted(found.special))
        if text in vocab
    }
    added |= found.added
    model = {**model, "vocab": vocab | {entry["content"]: i for i, entry in added.items()}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added[token_id] for token_id in sorted(added)],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": surrounding(before, after),
        "decoder": None,
        "model": model,
    }


def placed(vocab: Mapping[str, int], text: str | None) -> Special:
    """A special token and its id, None where the vocabulary has none."""
    return None if text is None or text not in vocab else (text, vocab[text])


def text_of(raw: bytes, file: str) -> str:
    """A file of text; FormatError where it is no UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{file}: it is no UTF-8 text: {error}", ADVICE) from error


def json_of(raw: bytes, file: str) -> Json:
    """A file that holds one JSON object; FormatError for any other."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file}: it is no JSON: {error}", ADVICE) from error
    if not isinstance(value, dict):
        raise FormatError(f"{file}: it is no JSON object", ADVICE)
    return value


def _object(files: Files, name: str) -> Json:
    raw = files(name)
    return {} if raw is None else json_of(raw, name)


def _content(value: object) -> str | None:
    """The spelling of a token, which stands alone or with its flags."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) and value else None


def _special(named: Mapping[str, Any]) -> Iterable[str]:
    more = named.get("additional_special_tokens")
    values = [value for name, value in named.items() if name.endswith("_token")]
    for value in (*values, *(more if isinstance(more, list) else ())):
        if (content := _content(value)) is not None:
            yield content


def _id(value: object, file: str) -> int:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    if type(value) is int and value >= 0:
        return value
    raise FormatError(f"{file}: an added token has the id {value!r}", ADVICE)


def _family(name: object) -> str | None:
    if not isinstance(name, str):
        return None
    family = re.sub(r"Tokenizer(Fast|s?Backend)?$", "", name).lower()
    return None if family in _ANY else family


def _of_model(config: Mapping[str, Any]) -> str:
    found = config.get("model_type")
    return found.lower() if isinstance(found, str) else ""
