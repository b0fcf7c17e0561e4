"""Which tokenizer belongs to a model, and where its bytes are."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from embtool.errors import SourceError
from embtool.model.choosing import choose_file
from embtool.model.claims import beside
from embtool.model.gguf_parts import open_gguf
from embtool.model.vectors import open_vectors, vectors_kind
from embtool.source import Source, open_source, silent
from embtool.vocab import (
    Vocabulary,
    no_vocabulary,
    open_gguf_vocabulary,
    open_vocabulary,
)

TOKENIZER = "tokenizer.json"


def open_own(
    source: Source, file: str | None, metadata: Callable[[], Mapping[str, Any]]
) -> Vocabulary:
    """The vocabulary in a GGUF file, else that of `tokenizer.json` beside the checkpoint.

    `metadata` gives that of the GGUF file. Without either, a vocabulary that knows ids alone.
    """
    if file is not None and file.endswith(".gguf"):
        return open_gguf_vocabulary(source.key(file), file, cache(metadata))
    name = tokenizer_name(source, file)
    return _from_json(source, name) if source.has(name) else no_vocabulary()


def open_other(ref: str, *, offline: bool) -> Vocabulary:
    """The vocabulary that `--tokenizer` names: a file, a folder, or a model.

    Raises:
        SourceError: there is no tokenizer there.
    """
    source = open_source(ref, offline=offline)
    file = source.checkpoint
    if file is not None and file.endswith(".json"):
        return _from_json(source, file)
    if file is not None or not source.has(TOKENIZER):
        file = choose_file(source)
    kind = vectors_kind(source, file)
    if file is not None and kind is not None:
        return open_vectors(source, file, kind, silent).vocabulary()
    vocabulary = open_own(source, file, lambda: open_gguf(source, file or "").metadata or {})
    if vocabulary.kind == "none":
        raise SourceError(
            f"{ref}: there is no {TOKENIZER} in it", "name a tokenizer.json, or a model with one"
        )
    return vocabulary


def tokenizer_name(source: Source, file: str | None) -> str:
    """The `tokenizer.json` in the checkpoint's own folder where there is one, else the model's."""
    return beside(source, file, TOKENIZER)


def _from_json(source: Source, name: str) -> Vocabulary:
    return open_vocabulary(source.key(name), name, lambda: source.read(name))
