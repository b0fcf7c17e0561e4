"""Which tokenizer belongs to a model, and where its bytes are."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from embtool.errors import SourceError
from embtool.model.checkpoint import choose_file, open_checkpoint
from embtool.source import Source, open_source
from embtool.vocab import (
    Vocabulary,
    no_vocabulary,
    open_gguf_vocabulary,
    open_vocabulary,
)

TOKENIZER = "tokenizer.json"


def open_own(source: Source, file: str | None) -> Vocabulary:
    """The vocabulary in a GGUF file, else that of `tokenizer.json` beside the checkpoint.

    Without either, a vocabulary that knows ids alone.
    """
    if file is not None and file.endswith(".gguf"):
        return _from_gguf(source, file)
    return _from_json(source, TOKENIZER) if source.has(TOKENIZER) else no_vocabulary()


def open_other(ref: str, *, offline: bool) -> Vocabulary:
    """The vocabulary that `--tokenizer` names: a file, a folder, or a model.

    Raises:
        SourceError: there is no tokenizer there.
    """
    source = open_source(ref, offline=offline)
    file = source.checkpoint
    if file is not None and file.endswith(".json"):
        return _from_json(source, file)
    if file is None and not source.has(TOKENIZER):
        file = choose_file(source)
    vocabulary = open_own(source, file)
    if vocabulary.kind == "none":
        raise SourceError(
            f"{ref}: there is no {TOKENIZER} in it", "name a tokenizer.json, or a model with one"
        )
    return vocabulary


def _from_json(source: Source, name: str) -> Vocabulary:
    return open_vocabulary(source.key(name), name, lambda: source.read(name))


def _from_gguf(source: Source, name: str) -> Vocabulary:
    @cache
    def metadata() -> Mapping[str, Any]:
        return open_checkpoint(source, name, None).metadata or {}

    return open_gguf_vocabulary(source.key(name), name, metadata)
