"""A model: its config, its tables and its vocabulary, tied together.

from embtool import Model
Model.open("gemma-3-270m").table().rows([5237])
"""

from functools import cached_property
from typing import TYPE_CHECKING

from embtool.config import Config
from embtool.errors import FormatError, SourceError
from embtool.header import TensorInfo
from embtool.joined import Joined
from embtool.model.checkpoint import find_tensor, open_checkpoint
from embtool.model.choosing import choose_file
from embtool.model.claims import claims_of_files, claims_of_gguf
from embtool.model.packing import packed_of
from embtool.model.records import Checkpoint
from embtool.model.vectors import Vectors, open_vectors, vectors_kind
from embtool.model.vocabulary import open_other, open_own, tokenizer_name
from embtool.source import Progress, Source, open_source
from embtool.table import PackedTable, Table, Units
from embtool.tensors import Tables, find_tables
from embtool.vocab import Vocabulary

if TYPE_CHECKING:
    from embtool.vectors import Kind


def _silent(done: int, total: int) -> None:
    pass


class Model:
    """One model; every part is read when it is first asked for."""

    def __init__(
        self, source: Source, tokenizer: str | None, offline: bool, progress: Progress
    ) -> None:
        self.source = source
        self.ref = source.ref
        self._tokenizer = tokenizer
        self._offline = offline
        self._progress = progress

    @classmethod
    def open(
        cls,
        ref: str,
        *,
        tokenizer: str | None = None,
        offline: bool = False,
        progress: Progress = _silent,
    ) -> "Model":
        """The model that `ref` names: a path, `owner/name[@revision][:file]`, `gemma-3-270m`.

        `tokenizer`: another tokenizer's file or model. `progress` is called with (bytes done,
        bytes in all) while a table is fetched.

        Raises:
            SourceError: there is no such path or model.
        """
        return cls(open_source(ref, offline=offline), tokenizer, offline, progress)

    @cached_property
    def config(self) -> Config | None:
        """The claims of `config.json`, or of a GGUF file's metadata; None without either."""
        file = self._checkpoint_file
        if file is not None and file.endswith(".gguf"):
            return claims_of_gguf(self.checkpoint)
        if self._vectors_kind is not None:
            return None
        return claims_of_files(self.source, file)

    @cached_property
    def _checkpoint_file(self) -> str | None:
        """The file to open, or None where there is no checkpoint that can be read."""
        try:
            return choose_file(self.source)
        except SourceError:
            return None

    @cached_property
    def _vectors_kind(self) -> "Kind | None":
        return vectors_kind(self.source, self._checkpoint_file)

    @cached_property
    def _vectors(self) -> Vectors | None:
        """The table and the words of a file of classic vectors; None for any other checkpoint."""
        file, kind = self._checkpoint_file, self._vectors_kind
        if file is None or kind is None:
            return None
        return open_vectors(self.source, file, kind, self._progress)

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """Which file holds which tensor."""
        file = self._checkpoint_file or choose_file(self.source)
        if self._vectors is not None:
            return self._vectors.checkpoint
        config = None if file.endswith(".gguf") else self.config
        return open_checkpoint(self.source, file, config)

    @cached_property
    def tables(self) -> Tables:
        """The names of the input and the output table.

        Raises:
            FormatError: several tensors fit equally well.
        """
        if self._vectors is not None:
            return Tables(self._vectors.table.tensor, None)
        return find_tables(self.checkpoint.tensors, self.config)

    def table(self, name: str = "input") -> Table:
        """A table: `input`, `output` (the input's where no other is stored) or a tensor's name.

        Raises:
            SourceError: there is no such table.
            UnsupportedError: it is stored in a way that is not read.
        """
        if name not in ("input", "output"):
            return self.tensor(name)
        tables = self.tables
        tensor = tables.input if name == "input" else tables.output or tables.input
        if tensor is None:
            raise self.no_table(name)
        table = self.tensor(tensor)
        if tensor == tables.input and tables.extra is not None:
            return Joined(table, self.tensor(tables.extra))
        return table

    def tensor(self, name: str) -> Table:
        """Any matrix of the checkpoint, by its tensor's name.

        Raises:
            UnsupportedError: it is packed in a way that is not read.
        """
        info, checkpoint = self.info(name), self.checkpoint
        if self._vectors is not None:
            return self._vectors.table
        units = Units(self.source, checkpoint.files, self._progress)
        packed = packed_of(self.source, checkpoint, info, lambda: self._claimed_width(name), units)
        if packed is None:
            return Table(self.source, checkpoint.files[name], info, self._progress)
        return PackedTable(packed, checkpoint.files[name], units)

    def parts(self, name: str) -> list[TensorInfo]:
        """The stored tensors that a matrix is read from: itself, and what it is packed with."""
        table = self.tensor(name)
        if isinstance(table, PackedTable) and self._vectors is None:
            return list(table.packed.parts)
        return [self.info(name)]

    def _claimed_width(self, name: str) -> int | None:
        """What the config claims of the width of the input table, or of a head as wide as that."""
        config = self.config
        if config is None or config.table_width is None:
            return None
        try:
            tables = self.tables
        except FormatError:  # several fit, and one of them was named
            return None
        alike = config.hidden_size in (None, config.table_width)
        own = (tables.input, tables.extra, *((tables.output,) if alike else ()))
        return config.table_width if name in own else None

    def info(self, name: str) -> TensorInfo:
        """Where a tensor lies; raises SourceError where the checkpoint has none of this name."""
        info = find_tensor(self.source, self.checkpoint, name)
        if info is None:
            raise self.no_table(name)
        return info

    def no_table(self, name: str) -> SourceError:
        """The error that says which matrices there are instead."""
        matrices = [
            f"{info.name} {list(info.shape)}"
            for info in self.checkpoint.tensors.values()
            if info is not None and len(info.shape) == 2
        ]
        listed = ", ".join(sorted(matrices)[:6]) or "none"
        said = "".join(f"; {note}" for note in self.checkpoint.notes)
        return SourceError(
            f"{self.ref}: no {name} table found in {self.checkpoint.file}; "
            f"its matrices: {listed}{said}",
            "name a tensor with --table TENSOR",
        )

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The model's own vocabulary, or the one that was named instead.

        Without any, a vocabulary that knows ids alone.
        """
        if self._tokenizer is not None:
            return open_other(self._tokenizer, offline=self._offline)
        if self._vectors is not None:
            return self._vectors.vocabulary()
        return open_own(self.source, self._checkpoint_file, lambda: self.checkpoint.metadata or {})

    @property
    def vocabulary_at_hand(self) -> Vocabulary | None:
        """The vocabulary where it needs no request: on this machine, or kept in the cache."""
        file = self._checkpoint_file or ""
        here = self._tokenizer is not None or file.endswith(".gguf")
        here = here or self._vectors is not None
        here = here or self.source.path(tokenizer_name(self.source, file)) is not None
        return self.vocabulary if here else None
