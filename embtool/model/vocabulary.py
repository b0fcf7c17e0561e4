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
    open_files_vocabulary,
    open_gguf_vocabulary,
    open_vocabulary,
)
from embtool.vocab.tokenizer_files import (
    CONFIG,
    ENDING,
    KINDS,
    MERGES,
    base_name,
    companions,
    is_tokenizer,
)

TOKENIZER = "tokenizer.json"


def open_own(
    source: Source, file: str | None, metadata: Callable[[], Mapping[str, Any]]
) -> Vocabulary:
    """The vocabulary in a GGUF file, else that of `tokenizer.json` beside the checkpoint.

    `metadata` gives that of the GGUF file. Where there is no tokenizer.json, another file that
    holds a tokenizer; without any, a vocabulary that knows ids alone.
    """
    if file is not None and file.endswith(".gguf"):
        return open_gguf_vocabulary(source.key(file), file, cache(metadata))
    name = beside(source, file, TOKENIZER)
    if source.has(name):
        return _from_json(source, name)
    other = _other_name(source, file)
    return no_vocabulary() if other is None else _from_files(source, other)


def open_other(ref: str, *, offline: bool) -> Vocabulary:
    """The vocabulary that `--tokenizer` names: a file, a folder, or a model.

    Raises:
        SourceError: there is no tokenizer there.
    """
    source = open_source(ref, offline=offline)
    file = source.checkpoint
    if file is not None and is_tokenizer(file):
        return _from_files(source, file)
    if file is not None and file.endswith(".json"):
        return _from_json(source, file)
    if file is None and not source.has(TOKENIZER):
        other = _other_name(source, None)
        if other is not None:
            return _from_files(source, other)
    if file is not None or not source.has(TOKENIZER):
        file = choose_file(source)
    kind = vectors_kind(source, file)
    if file is not None and kind is not None:
        return open_vectors(source, file, kind, silent).vocabulary()
    vocabulary = open_own(source, file, lambda: open_gguf(source, file or "").metadata or {})
    if vocabulary.kind == "none":
        raise SourceError(
            f"{ref}: there is no {TOKENIZER} in it, and no other tokenizer",
            "name a tokenizer.json, or a model with one",
        )
    return vocabulary


def tokenizer_name(source: Source, file: str | None) -> str:
    """The file of the tokenizer as far as no request is needed to know it.

    The `tokenizer.json` in the checkpoint's own folder, else the model's; another file that holds
    a tokenizer where only that is on this machine.
    """
    name = beside(source, file, TOKENIZER)
    if source.path(name) is None:
        others = (beside(source, file, kind) for kind in KINDS)
        return next((other for other in others if source.path(other) is not None), name)
    return name


def tokenizer_files(source: Source, file: str | None) -> list[str]:
    """The files beside a checkpoint that its vocabulary is read from, of those that are there."""
    name = beside(source, file, TOKENIZER)
    if source.has(name):
        settings = beside(source, file, CONFIG)
        return [name, *([settings] if source.has(settings) else [])]
    other = None if (file or "").endswith(".gguf") else _other_name(source, file)
    return [] if other is None else [other, *_companions(source, other)]


def _other_name(source: Source, file: str | None) -> str | None:
    """The first file that holds a tokenizer, in the order of `KINDS`."""
    for kind in KINDS:
        name = beside(source, file, kind)
        merges = name.removesuffix(kind) + MERGES
        if source.has(name) and (kind != "vocab.json" or source.has(merges)):
            return name
    folder = (file or "").rpartition("/")[0]
    ranks = [name for name in source.names() if name.endswith(ENDING)]
    near = [name for name in ranks if name.rpartition("/")[0] in (folder, "")]
    return min(near, default=None)


def _from_files(source: Source, name: str) -> Vocabulary:
    import hashlib

    folder, present = name.removesuffix(base_name(name)), _companions(source, name)
    keys = [source.key(each) for each in (name, *present)]
    key = "files-" + hashlib.sha256("\n".join(keys).encode()).hexdigest()[:40]

    def files(base: str) -> bytes | None:
        read = folder + base
        return source.read(read) if read in (name, *present) else None

    return open_files_vocabulary(key, name, files)


def _companions(source: Source, name: str) -> list[str]:
    """The files that are read beside that of a tokenizer, and are there."""
    folder = name.removesuffix(base_name(name))
    return [folder + other for other in companions(name) if source.has(folder + other)]


def _from_json(source: Source, name: str) -> Vocabulary:
    return open_vocabulary(source.key(name), name, lambda: source.read(name))
