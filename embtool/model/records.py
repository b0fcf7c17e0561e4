"""What is known of a checkpoint once its headers are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from embtool.header import TensorInfo

if TYPE_CHECKING:
    from embtool.packed import Packed
    from embtool.pickles import Pickled

#: Endings of the files that PyTorch writes.
PICKLES = (".bin", ".pth", ".pt", ".ckpt")


@dataclass(slots=True, eq=False, repr=False)  # each would cost every start its time
class Checkpoint:
    """Tensors by name; `tensors[name]` is None where only an index has named it so far.

    `file` stands for the whole: the file, the index of its shards, or its first part. `files`
    says which file holds which tensor. `metadata` is that of a GGUF file. `complete` tells
    whether every tensor is listed; `total_params` and `total_nbytes` are the index's own figures,
    if it gives them. `notes` are sentences about files that are damaged or not there. `packed`
    holds tables of which the file's own layout tells how they are read. `pickled` are the files of
    PyTorch: a tensor of one has no place (0 to 0) before it is asked for.
    """

    file: str
    tensors: dict[str, TensorInfo | None] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] | None = None
    complete: bool = True
    total_params: int | None = None
    total_nbytes: int | None = None
    notes: tuple[str, ...] = ()
    packed: "dict[str, Packed]" = field(default_factory=dict)
    pickled: "dict[str, Pickled]" = field(default_factory=dict)

    def note(self, sentence: str) -> None:
        """Add a sentence, once."""
        if sentence not in self.notes:
            self.notes += (sentence,)
