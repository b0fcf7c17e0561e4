"""Which tensors of a checkpoint are the input and the output table.

By role, then by place, then by shape: a table has one of a few names; it stands in no numbered
layer and in no part that reads pictures or sound; where names do not decide, its shape does.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from embtool.config import Config
from embtool.errors import FormatError
from embtool.header import TensorInfo
from embtool.tensors.names import (
    EXTRA,
    INPUT,
    NORM,
    ONLY_HEAD,
    OUTPUT,
    WRAPPER,
    Wanted,
    ending,
    is_of_text,
    misplaced,
    role,
    scheme,
    stem,
    wanted_names,
)

__all__ = ["PassedOver", "Tables", "Wanted", "find_tables", "scheme", "stem", "wanted_names"]

Tensors = Mapping[str, TensorInfo | None]
"""Name -> dtype, shape and place; None where only the name is known (an index of shards)."""

# Position ids and masks; other integers may be numbers that were quantized.
NOT_NUMBERS = ("I64", "I16", "U64", "BOOL")


class PassedOver(NamedTuple):
    """A tensor that looks like a table of the vocabulary and is none of the two, and why."""

    tensor: str
    reason: str


class Tables(NamedTuple):
    """The tensors' names; either may be None (`output`: no head is stored).

    `extra` is the second parameter of a split input vocabulary (its rows follow those of
    `input`). `only_head`: the head alone is stored, and is `input` and `output` both. `norm` is a
    LayerNorm that follows the input table. `packed` is the scheme of `input` (see `scheme`).
    """

    input: str | None
    output: str | None
    extra: str | None = None
    only_head: bool = False
    norm: str | None = None
    packed: str | None = None
    passed_over: tuple[PassedOver, ...] = ()


def find_tables(tensors: Tensors, config: Config | None) -> Tables:
    """The input and the output table among the tensors of one checkpoint (all its shards).

    Nothing found gives Tables(None, None). A head that is as likely as another is passed over.
    Raises FormatError when several tensors could be the input table and nothing decides; it lists
    them and advises `--table TENSOR`.
    """
    config = config or Config("")
    passed: list[PassedOver] = []
    inputs: list[str] = []
    outputs: list[str] = []
    for name in tensors:
        kind = role(name)
        if kind is None or not _is_matrix(tensors[name]):
            continue
        reason = misplaced(name, config)
        if reason:
            passed.append(PassedOver(name, reason))
        else:
            (inputs if kind == "input" else outputs).append(name)
    table = _input(inputs, tensors, config) or _by_shape(tensors, config)
    head = _output(outputs, table, tensors, config) or _decoder_table(table, inputs)
    only_head = table is None and head is not None
    table = head if only_head else table
    passed += _unchosen([*inputs, *outputs], (table, head), tensors)
    return Tables(
        table,
        head,
        extra=_extra(table, tensors),
        only_head=only_head,
        norm=_norm(tensors) if table else None,
        packed=scheme(table, tensors) if table else None,
        passed_over=tuple(passed),
    )


def _is_matrix(info: TensorInfo | None) -> bool:
    if info is None:
        return True
    return len(info.shape) == 2 and min(info.shape) > 0 and info.dtype not in NOT_NUMBERS


def _fit(name: str, tensors: Tensors, config: Config) -> int:
    """2 where the shape is the config's, less where width or rows differ; unknown counts as 2."""
    info = tensors[name]
    if info is None:
        return 2
    packed = scheme(name, tensors) not in (None, "scaled")
    width = config.table_width is None or packed or info.shape[1] == config.table_width
    rows = config.vocab_size is None or info.shape[0] in (config.vocab_size, config.rows)
    return int(width) + int(rows)


def _input(names: Sequence[str], tensors: Tensors, config: Config) -> str | None:
    """The likeliest input table by name; vague names only where the shape agrees."""
    named = [name for name in names if not INPUT.isdisjoint(ending(name))]
    vague = [name for name in names if _fit(name, tensors, config)]

    def rank(name: str) -> tuple[bool, int, bool, bool]:
        place = stem(name) or ""
        shared = place.rpartition(".")[2] == "shared"
        decoder = bool(named) and ("decoder." in place or "decoder_" in place)
        return not shared, -_fit(name, tensors, config), not is_of_text(name), decoder

    ranks = {name: rank(name) for name in named or vague}
    first = min(ranks.values(), default=None)
    best = [name for name in ranks if ranks[name] == first]
    return _one(best, tensors, config) if best else None


def _one(names: Sequence[str], tensors: Tensors, config: Config) -> str:
    """The one among equals that the others are nested in or that the config's path names."""
    first = min(names, key=lambda name: name.count("."))
    module = (stem(first) or "").rpartition(".")[0]
    if all(
        other.startswith(f"{module}.") and other.count(".") > first.count(".")
        for other in names
        if other != first
    ):
        return first
    part = config.path.partition(".")[0].removesuffix("_config")
    inside = [name for name in names if part and name.startswith(f"{part}.")]
    if len(inside) == 1:
        return inside[0]
    shown = ", ".join(f"{name}{_shape(tensors[name])}" for name in sorted(names)[:6])
    raise FormatError(
        f"{len(names)} tensors could be the input table: {shown}",
        "name one of them with --table TENSOR",
    )


def _by_shape(tensors: Tensors, config: Config) -> str | None:
    """The tensor with the config's shape; without a config, the only matrix of the file."""
    sized = config.vocab_size is not None and config.table_width is not None
    matrices = [
        name
        for name, info in tensors.items()
        if info is not None and _is_matrix(info) and (not sized or _fit(name, tensors, config) == 2)
    ]
    found = [name for name in matrices if not misplaced(name, config) and role(name) != "output"]
    if sized:
        return _one(found, tensors, config) if found else None
    return found[0] if len(matrices) == 1 and found else None


def _output(
    names: Sequence[str], table: str | None, tensors: Tensors, config: Config
) -> str | None:
    """The likeliest head: by name and a shape that suits the table, then the nearest to it."""
    named = [name for name in names if not OUTPUT.isdisjoint(ending(name))] or list(names)
    if table is None:
        named = [name for name in named if not ONLY_HEAD.isdisjoint(ending(name))]
        named = [name for name in named if _fit(name, tensors, config) == 2]
        if config.tied is False:
            return None
    else:
        named = [name for name in named if _suits(name, table, tensors, config)]

    def rank(name: str) -> tuple[int, int]:
        pairs = zip(name.split("."), (table or "").split("."), strict=False)
        shared = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
        return -shared, name.count(".")

    ranks = {name: rank(name) for name in named}
    first = min(ranks.values(), default=None)
    best = [name for name in ranks if ranks[name] == first]
    return best[0] if len(best) == 1 else None


def _suits(name: str, table: str, tensors: Tensors, config: Config) -> bool:
    """Whether a head can belong to this table: as long (more or less) and as wide as it."""
    head, body = tensors[name], tensors[table]
    place = re.sub(WRAPPER, "", stem(name) or "")
    clear = not OUTPUT.isdisjoint(ending(name))
    if head is None or body is None:
        return clear or place in ("output", "head") or place.endswith("transformer.ff_out")
    if head.shape[0] in (body.shape[0], config.vocab_size) and clear:
        return True
    packed = any(scheme(each, tensors) not in (None, "scaled") for each in (name, table))
    width = packed or head.shape[1] in (body.shape[1], config.hidden_size)
    # A reward or a class head is short; a vocabulary's may lack the rows of some extra tokens.
    rows = 2 * head.shape[0] > body.shape[0] if clear else head.shape[0] == body.shape[0]
    if packed and clear:  # codes may lie flat, or column by column
        return True
    return width and rows


def _decoder_table(table: str | None, inputs: Sequence[str]) -> str | None:
    """Encoder and decoder with a table each and no head: the decoder's is the output (FSMT)."""
    if table is None or "encoder." not in table:
        return None
    decoder = table.replace("encoder.", "decoder.")
    return decoder if decoder in inputs else None


def _extra(table: str | None, tensors: Tensors) -> str | None:
    """The second parameter of a split vocabulary (Molmo, IDEFICS), in or beside the table."""
    if table is None:
        return None
    place = stem(table) or ""
    homes = (place, place.rpartition(".")[0])
    for home in homes:
        for word in EXTRA:
            for name in (f"{home}.{word}", f"{home}.{word}.weight"):
                if name in tensors:
                    return name
    return None


def _norm(tensors: Tensors) -> str | None:
    """The LayerNorm of the text model's embeddings, if any; BERT's first files call it gamma."""
    for name in tensors:
        words = ending(f"{name.removesuffix('.gamma')}.weight" if name.endswith(".gamma") else name)
        if not NORM.isdisjoint(words) and not misplaced(name, Config("")):
            return name
    return None


def _unchosen(
    names: Sequence[str], chosen: tuple[str | None, str | None], tensors: Tensors
) -> list[PassedOver]:
    """The candidates that were not taken; without a table, the longest matrices as a hint."""
    if chosen[0]:
        beside = [name for name in names if name not in chosen]
        return [PassedOver(name, f"is stored beside {chosen[0]}") for name in beside]
    matrices = [info for info in tensors.values() if info is not None and _is_matrix(info)]
    longest = sorted(matrices, key=lambda info: -info.shape[0])[:5]
    return [PassedOver(info.name, f"has no table's name{_shape(info)}") for info in longest]


def _shape(info: TensorInfo | None) -> str:
    return f" {list(info.shape)}" if info else ""
