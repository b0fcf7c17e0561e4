"""Which tensors of a checkpoint are the input and the output table."""

from collections.abc import Mapping
from dataclasses import dataclass

from embtool.config import Config
from embtool.header import TensorInfo


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A tensor that looks like a table of the vocabulary and is none of the two, and why."""

    tensor: str
    reason: str


@dataclass(frozen=True, slots=True)
class Tables:
    """The tensors' names; either may be None (`output`: no head is stored).

    `extra` is the second parameter of a split input vocabulary (its rows follow those of
    `input`), `packed` the scheme of a table that is stored as packed integers ("mlx", "gptq",
    "compressed-tensors"): its width is then not the tensor's last dimension. `only_head`: the
    head alone is stored and is `input` too.
    """

    input: str | None
    output: str | None
    extra: str | None = None
    packed: str | None = None
    passed_over: tuple[PassedOver, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """Exact names to look for, the likeliest first."""

    input: tuple[str, ...]
    output: tuple[str, ...]


def find_tables(
    tensors: Mapping[str, TensorInfo] | Mapping[str, None], config: Config | None
) -> Tables:
    """The input and the output table among the tensors of one checkpoint (all its shards).

    A value of None means that only the name is known (an index without headers). Neither
    found gives Tables(None, None). Raises FormatError when several tensors fit equally well; it
    lists them and advises `--table TENSOR`.
    """
    raise NotImplementedError


def wanted_names(config: Config | None) -> Wanted:
    """Likely exact names of both tables, for looking into a fragment of a long index."""
    raise NotImplementedError
