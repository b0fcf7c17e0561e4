"""GPTQ and AWQ: packed integers whose rows are the table's columns.

Both store a linear layer's weight (out, in) turned over, so that a row of the table is a column
of `qweight`: its bytes lie as far apart as the table is long. Nothing of it is read by ranges;
memory-mapped, a block of rows is a strip of every row of `qweight`.

GPTQ (AutoGPTQ 0.7.1, nn_modules/qlinear/qlinear_cuda_old.py): `qweight` I32 (in x bits / 32, out)
packs down, `qzeros` I32 (groups, out x bits / 32) across; value = scale x (number - zero), where
the older form, which is the default, stores zero - 1. `g_idx` I32 (in,) tells each input's group.
AWQ (AutoAWQ 0.2.7, modules/linear/gemm.py): `qweight` I32 (in, out / 8) and `qzeros` pack 4 bits
across, the eight numbers of a word in the order 0 2 4 6 1 3 5 7.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from embtool import dtypes
from embtool.errors import FormatError
from embtool.header import TensorInfo
from embtool.packed import values
from embtool.packed.claims import Claims
from embtool.packed.parts import Fetch, Packed, Stem, rows_of, strip, whole
from embtool.quant import F32

_FLOATS = ("F32", "BF16", "F16")
_GPTQ_BITS = (2, 3, 4, 8)
# Where in a word of AWQ the number of a column stands: the order above, inverted.
_AWQ_PLACE = np.array([0, 4, 1, 5, 2, 6, 3, 7])


@dataclass(frozen=True, slots=True)
class _Layout:
    """`groups` is None where every run of equal length is one. `plus`: what zeros lack."""

    info: TensorInfo
    zero: TensorInfo
    scale: TensorInfo
    groups: TensorInfo | None
    bits: int
    plus: int


def turned(stem: Stem, claims: Claims) -> Packed | None:
    """`qweight` with `qzeros` and `scales`, of GPTQ or AWQ; None for another tensor."""
    info = stem.tensor
    if not info.name.endswith(".qweight"):
        return None
    what = "GPTQ or AWQ"
    zero, scale = stem.need("qzeros", what), stem.need("scales", what)
    stem.only(what, ["qweight", "qzeros", "scales", "g_idx"])
    groups = stem.take("g_idx")
    matrices = all(len(part.shape) == 2 and min(part.shape) > 0 for part in (info, zero, scale))
    if not matrices or (info.dtype, zero.dtype) != ("I32", "I32") or scale.dtype not in _FLOATS:
        raise stem.refuse(f"has zeros {zero.dtype} and scales {scale.dtype} {list(scale.shape)}")
    parts = [info, zero, scale] if groups is None else [info, zero, scale, groups]
    height, rows = scale.shape
    if groups is None and info.shape[1] * 8 == rows and zero.shape == (height, info.shape[1]):
        layout, name, width = _Layout(info, zero, scale, None, 4, 0), "AWQ", info.shape[0]
        decode = partial(_awq, layout)
    else:
        layout = _gptq_layout(stem, _Layout(info, zero, scale, groups, 0, 0), claims)
        name, width = "GPTQ", info.shape[0] * 32 // layout.bits
        decode = partial(_gptq, layout)
    if (groups is None and width % height) or claims.width not in (None, width):
        said = f"the config says {claims.width}"
        raise stem.refuse(f"has {width} numbers a row in {height} groups, {said}")
    scheme = f"{name}: {layout.bits} bits, {height} groups"
    short = f"{name}{layout.bits}"
    return Packed(info.name, scheme, short, (rows, width), tuple(parts), decode, by_row=False)


def _gptq_layout(stem: Stem, layout: _Layout, claims: Claims) -> _Layout:
    """The bits, from the shape of the zeros, and whether these are stored one less."""
    info, zero, scale, groups = layout.info, layout.zero, layout.scale, layout.groups
    height, rows = scale.shape
    fitting = [b for b in _GPTQ_BITS if zero.shape == (height, rows * b // 32)]
    if info.shape[1] != rows or not fitting or rows * fitting[0] % 32:
        shapes = f"zeros {list(zero.shape)} and scales {list(scale.shape)}"
        raise stem.refuse(f"has {shapes}, which are neither GPTQ's nor AWQ's")
    bits = fitting[0]
    width = info.shape[0] * 32 // bits
    if groups is not None and (groups.dtype != "I32" or groups.shape != (width,)):
        raise stem.refuse(f"has a g_idx {groups.dtype} {list(groups.shape)} for {width} inputs")
    if claims.form not in (None, "gptq", "gptq_v2"):
        raise stem.refuse(f"is in the form {claims.form[:40]!r}, which is not read")
    return _Layout(info, zero, scale, groups, bits, 0 if claims.form == "gptq_v2" else 1)


def _gptq(layout: _Layout, fetch: Fetch, ids: Sequence[int], out: F32) -> None:
    bits = layout.bits
    words = strip(fetch, layout.info, ids, 4).view("<u4")
    stream = np.ascontiguousarray(words.T).view(np.uint8)  # (n, bytes of a row)
    np.copyto(out, values.codes(stream, bits, out.shape[1]))
    every = rows_of(fetch, layout.zero, range(layout.zero.shape[0]))
    starts = np.asarray(ids, np.int64) * bits
    zeros = values.codes_at(every, bits, starts).astype(np.int16) + layout.plus
    if bits != 3 and layout.plus:
        zeros &= (1 << bits) - 1  # the reference wraps around, but not for 3 bits
    _subtract_and_scale(layout, fetch, out, zeros.T, _scales(layout, fetch, ids))


def _awq(layout: _Layout, fetch: Fetch, ids: Sequence[int], out: F32) -> None:
    column = np.asarray(ids, np.int64)
    first = int(column.min()) // 8
    words: Sequence[int] = (column // 8).tolist()
    place = np.arange(len(column))
    if isinstance(ids, range):  # eight rows share a word: take each once
        words, place = range(first, int(column.max()) // 8 + 1), column // 8 - first
    shifts = (4 * _AWQ_PLACE[column % 8]).astype(np.uint32)
    numbers, zeros = (
        strip(fetch, info, words, 4).view("<u4")[:, place] >> shifts & 15
        for info in (layout.info, layout.zero)
    )
    np.copyto(out, numbers.T)
    _subtract_and_scale(layout, fetch, out, zeros.T, _scales(layout, fetch, ids))


def _subtract_and_scale(
    layout: _Layout, fetch: Fetch, out: F32, zeros: NDArray[np.integer], scale: F32
) -> None:
    """(number - zero) x scale; zeros and scale: (n, groups)."""
    height = scale.shape[1]
    if layout.groups is None:
        run = out.shape[1] // height
        values.by_group(np.subtract, out, run, zeros.astype(np.float32))
        values.by_group(np.multiply, out, run, scale)
        return
    group = whole(fetch, layout.groups)[0].view("<i4")
    if group.min() < 0 or group.max() >= height:
        raise FormatError(
            f"{layout.groups.name} names groups {group.min()} to {group.max()}, "
            f"and there are {height}",
            "download the model again, or tell its author",
        )
    np.subtract(out, zeros[:, group], out=out, casting="same_kind")
    np.multiply(out, scale[:, group], out=out)


def _scales(layout: _Layout, fetch: Fetch, ids: Sequence[int]) -> F32:
    """The scales of some rows of the table, (len(ids), groups)."""
    dtype = layout.scale.dtype
    columns = strip(fetch, layout.scale, ids, dtypes.row_nbytes(dtype, 1))
    return np.ascontiguousarray(values.numbers(dtype, columns).T)
