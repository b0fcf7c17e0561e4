"""How a tensor of the model is packed, told from what stands beside it and what is claimed."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from embtool.header import TensorInfo
from embtool.model.checkpoint import find_tensor, name_all
from embtool.model.claims import claims_object
from embtool.model.records import Checkpoint
from embtool.source import Source
from embtool.table import Units
from embtool.tensors import stem

if TYPE_CHECKING:
    from embtool.packed import Packed

_PLAIN = ("F64", "F32", "F16", "BF16")
# What Model2Vec stores beside its table.
_STATIC = ("mapping", "weights")


def packed_of(
    source: Source,
    checkpoint: Checkpoint,
    info: TensorInfo,
    width: Callable[[], int | None],
    units: Units,
) -> "Packed | None":
    """How `info` is packed; None where its dtype says all. `width` gives what the config claims.

    The shards that hold its scales are opened for it.

    Raises:
        UnsupportedError: it is packed in a way that is not read.
        FormatError: its parts contradict each other.
    """
    if info.name in checkpoint.packed:
        return checkpoint.packed[info.name]
    if checkpoint.metadata is not None or _is_plain(checkpoint, info):
        return None
    from embtool.packed import companions, read_claims, recognise

    name_all(source, checkpoint)
    for name in companions(info.name, checkpoint.files):
        find_tensor(source, checkpoint, name)
    claims = read_claims(claims_object(source, checkpoint.file), _module(info.name), width())
    return recognise(info.name, checkpoint.tensors, units.fetch, claims)


def _is_plain(checkpoint: Checkpoint, info: TensorInfo) -> bool:
    """Whether floats stand alone, as almost all tables do; the room that unpacks is not loaded."""
    start = f"{_module(info.name)}."
    names = checkpoint.files
    beside = any(name.startswith(start) and name != info.name for name in names)
    return info.dtype in _PLAIN and not beside and not any(name in names for name in _STATIC)


def _module(tensor: str) -> str:
    return stem(tensor) or tensor
