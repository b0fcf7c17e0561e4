"""`download`: a model's config, tokenizer and tables, brought to this machine."""

from collections.abc import Iterator
from dataclasses import dataclass

from embtool.header import TensorInfo
from embtool.model import Model
from embtool.model.claims import beside
from embtool.model.vocabulary import tokenizer_files
from embtool.source import Progress

_CONFIG = "config.json"


@dataclass(frozen=True, slots=True)
class Stored:
    """A file or a tensor that is on this machine now; `start` is where the tensor's bytes begin.

    `sha256` is that of the tensor's bytes where it was compared with the whole shard's.
    """

    role: str
    name: str
    path: str
    start: int | None
    nbytes: int
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Download:
    """What `download` leaves behind for one model."""

    model: str
    revision: str | None
    source: str
    stored: tuple[Stored, ...]


def download(
    model: Model, tables: str, *, shard: bool, verify: bool, progress: Progress
) -> Download:
    """Bring a model's small files and its tables (`input`, `output`, `both` or a tensor) here.

    `shard`: the whole file that holds a table instead of the table alone, hashed against what the
    Hub publishes. `verify`: that, and the table's bytes against the same bytes of the shard.

    Raises:
        SourceError: something cannot be fetched, kept, or is not what was published.
    """
    infos = _wanted(model, tables)
    stored = [*_small_files(model)]
    for role, info in infos:
        file = model.checkpoint.files[info.name]
        digest = model.source.verify(file, info, progress) if verify else None
        if shard:
            path, start = model.source.shard(file, progress), info.start
        else:
            path, start = model.source.fetch(file, info, progress)
        stored.append(Stored(role, info.name, str(path), start, info.stop - info.start, digest))
    return Download(model.ref, model.source.revision, model.source.kind, tuple(stored))


def _small_files(model: Model) -> Iterator[Stored]:
    """The config and the tokenizer's files, of those that the model has."""
    source, file = model.source, model.checkpoint.file
    config = beside(source, file, _CONFIG)
    tokenizer = tokenizer_files(source, file)
    for name in dict.fromkeys([config, *tokenizer] if source.has(config) else tokenizer):
        nbytes = len(source.read(name))
        role = "config" if name == config else "tokenizer"
        yield Stored(role, name, str(source.path(name)), None, nbytes)


def _wanted(model: Model, tables: str) -> list[tuple[str, TensorInfo]]:
    """The tensors to bring; a head that is not stored is the input table."""
    found = model.tables
    names: dict[str | None, str] = {}
    if tables in ("input", "both"):
        names |= dict.fromkeys((found.input, found.extra), "input")
    if tables in ("output", "both"):
        names.setdefault(found.output or found.input, "output")
    if tables not in ("input", "output", "both"):
        names[tables] = tables
    named = [(role, name) for name, role in names.items() if name is not None]
    infos = [(role, part) for role, name in named for part in model.parts(name)]
    if not infos:
        raise model.no_table(tables)
    return infos
