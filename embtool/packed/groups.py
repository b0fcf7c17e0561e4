"""Packed integers in rows, with a scale and an offset for each group: MLX and compressed-tensors.

MLX (mlx.core.quantize): a U32 matrix of a little-endian stream of 2 to 8 bits a number;
value = scale x number + bias. Without biases it holds small floats: MXFP4, MXFP8 or NVFP4, whose
scales are bytes. compressed-tensors (compressors/pack_quantized): I32 in the same order; value =
scale x (number - zero), where number and zero are stored with 2^(bits - 1) added. All arithmetic
is float32; a runtime that computes in the scales' own 16 bits rounds the same values further.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from embtool.errors import FormatError
from embtool.header import TensorInfo
from embtool.packed import values
from embtool.packed.claims import Claims
from embtool.packed.parts import Fetch, Packed, Stem, rows_of, whole
from embtool.quant import F32

_FLOATS = ("F32", "BF16", "F16", "F64")
_MLX_BITS = (1, 2, 3, 4, 5, 6, 8)
_MLX_GROUPS = (32, 64, 128)
# Without biases: words a row over scales a row -> (name, bits, group), as mlx.core.quantize has it.
_MLX_FLOATS = {2: ("NVFP4", 4, 16), 4: ("MXFP4", 4, 32), 8: ("MXFP8", 8, 32)}


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where a row's numbers, scales and offsets are; `bits` a number, `group` numbers a scale."""

    info: TensorInfo
    scale: TensorInfo
    offset: TensorInfo | None
    bits: int
    group: int


def mlx(stem: Stem, claims: Claims) -> Packed | None:
    """A U32 matrix with `scales`; None without."""
    info, scale, bias = stem.tensor, stem.take("scales"), stem.take("biases")
    if info.dtype != "U32" or scale is None:
        return None
    stem.only("MLX's packing", ["weight", "scales", "biases"])
    rows, words = info.shape
    if len(scale.shape) != 2 or scale.shape[0] != rows or 0 in scale.shape:
        raise stem.refuse(f"has scales of shape {list(scale.shape)}, which do not fit it")
    if bias is None:
        return _mlx_floats(stem, scale, claims)
    if bias.shape != scale.shape or {bias.dtype, scale.dtype} - {*_FLOATS}:
        raise stem.refuse(
            f"has biases {bias.dtype} {list(bias.shape)}, which do not fit its scales"
        )
    bits, group = _mlx_bits(stem, words, scale.shape[1], claims)
    layout = _Layout(info, scale, bias, bits, group)
    shape = (rows, group * scale.shape[1])
    scheme = f"MLX: {bits} bits, groups of {group}"
    decode = partial(_affine, layout)
    return Packed(info.name, scheme, f"MLX{bits}", shape, (info, scale, bias), decode)


def _mlx_bits(stem: Stem, words: int, groups: int, claims: Claims) -> tuple[int, int]:
    """Bits and group: the pair whose product the shapes give, told apart by what is claimed."""
    fitting = [
        (bits, group)
        for group in _MLX_GROUPS
        for bits in _MLX_BITS
        if bits * group * groups == 32 * words
    ]
    meant = [
        (bits, group)
        for bits, group in fitting
        if claims.width in (None, group * groups)
        and (claims.width or (claims.bits in (None, bits) and claims.group in (None, group)))
    ]
    if len(meant) != 1:
        shapes = f"{words} words and {groups} scales a row"
        said = f"width {claims.width}, {claims.bits} bits in groups of {claims.group}"
        why = (
            "fit several ways of packing" if meant else f"do not fit what the config says ({said})"
        )
        raise stem.refuse(f"is packed by MLX, and {shapes} {why}")
    return meant[0]


def _affine(layout: _Layout, fetch: Fetch, ids: Sequence[int], out: F32) -> None:
    packed = rows_of(fetch, layout.info, ids)
    np.copyto(out, values.codes(packed, layout.bits, out.shape[1]))
    scale = values.numbers(layout.scale.dtype, rows_of(fetch, layout.scale, ids))
    values.by_group(np.multiply, out, layout.group, scale)
    if layout.offset is not None:
        bias = values.numbers(layout.offset.dtype, rows_of(fetch, layout.offset, ids))
        values.by_group(np.add, out, layout.group, bias)


def _mlx_floats(stem: Stem, scale: TensorInfo, claims: Claims) -> Packed:
    info = stem.tensor
    words, groups = info.shape[1], scale.shape[1]
    form = _MLX_FLOATS.get(words // groups) if words % groups == 0 else None
    if scale.dtype != "U8" or form is None:
        raise stem.refuse(f"has {scale.dtype} scales, {groups} a row, and no biases")
    name, bits, group = form
    if claims.width not in (None, group * groups):
        raise stem.refuse(f"has {group * groups} numbers a row, the config says {claims.width}")
    layout = _Layout(info, scale, None, bits, group)
    shape = (info.shape[0], group * groups)
    decode = partial(_floats, layout)
    return Packed(info.name, f"MLX: {name}, groups of {group}", name, shape, (info, scale), decode)


def _floats(layout: _Layout, fetch: Fetch, ids: Sequence[int], out: F32) -> None:
    packed = rows_of(fetch, layout.info, ids)
    if layout.bits == 4:
        values.e2m1(packed, out)
    else:
        np.copyto(out, values.numbers("F8_E4M3", packed))
    # A scale of 16 numbers is an FP8 of its own (NVFP4), one of 32 an exponent.
    kind = "F8_E4M3" if layout.group == 16 else "F8_E8M0"
    scale = values.scales(kind, rows_of(fetch, layout.scale, ids))
    values.by_group(np.multiply, out, layout.group, scale)


def packed_integers(stem: Stem, claims: Claims, fetch: Fetch) -> Packed | None:
    """`weight_packed` in I32 with `weight_scale` and `weight_shape`; None for another tensor."""
    info = stem.tensor
    if info.dtype != "I32" or not info.name.endswith(".weight_packed"):
        return None
    what = "compressed-tensors' packing"
    scale, sides = stem.need("weight_scale", what), stem.need("weight_shape", what)
    known = ["weight_packed", "weight_scale", "weight_shape", "weight_zero_point"]
    stem.only(what, known)
    if sides.shape != (2,) or sides.dtype not in ("I64", "I32"):
        raise stem.refuse(f"has a weight_shape of {sides.dtype} {list(sides.shape)}")
    integers = f"<i{int(sides.dtype[1:]) // 8}"
    rows, d_model = whole(fetch, sides)[0].view(integers).tolist()
    height, groups = (*scale.shape, 1) if len(scale.shape) == 1 else scale.shape[:2]
    good = scale.dtype in _FLOATS and len(scale.shape) <= 2 and d_model > 0 and groups > 0
    if info.shape[0] != rows or height != rows or not good or d_model % groups:
        raise FormatError(
            f"{info.name} {list(info.shape)} with scales {scale.dtype} {list(scale.shape)} "
            f"is no table of {rows} x {d_model}, as its weight_shape says",
            "download the model again, or tell its author",
        )
    bits = _integer_bits(stem, info.shape[1], d_model, claims)
    zero = stem.take("weight_zero_point")
    if zero is not None and zero.shape != (-(-rows * bits // 32), groups):
        raise stem.refuse(f"has zero points of shape {list(zero.shape)}, which do not fit it")
    layout = _Layout(info, scale, zero, bits, d_model // groups)
    scheme = f"compressed-tensors: {bits} bits, groups of {layout.group}"
    parts = (info, scale, sides) if zero is None else (info, scale, sides, zero)
    decode = partial(_integers, layout)
    return Packed(info.name, scheme, f"INT{bits}", (rows, d_model), parts, decode)


def _integer_bits(stem: Stem, words: int, d_model: int, claims: Claims) -> int:
    """The bits that fill so many words of 32 with d_model numbers, without gaps.

    Older releases of compressed-tensors put only whole numbers in a word and left its rest
    empty; where both ways take as many words and are not the same, nothing decides.
    """
    fitting = [bits for bits in range(1, 9) if -(-d_model * bits // 32) == words]
    if claims.bits is not None:
        fitting = [bits for bits in fitting if bits == claims.bits]
    if len(fitting) != 1:
        said = f"{claims.bits} bits" if claims.bits else "no bits"
        raise stem.refuse(f"has {words} words for {d_model} numbers, and the config says {said}")
    bits = fitting[0]
    if 32 % bits and -(-d_model // (32 // bits)) == words:
        raise stem.refuse(
            f"has {words} words for {d_model} numbers of {bits} bits, in either order"
        )
    return bits


def _integers(layout: _Layout, fetch: Fetch, ids: Sequence[int], out: F32) -> None:
    packed, half = rows_of(fetch, layout.info, ids), 1 << (layout.bits - 1)
    np.subtract(values.codes(packed, layout.bits, out.shape[1]), np.float32(half), out=out)
    if layout.offset is not None:
        zeros = _zeros(layout.offset, layout.bits, fetch, ids)
        values.by_group(np.subtract, out, layout.group, zeros - np.float32(half))
    scale = values.numbers(layout.scale.dtype, rows_of(fetch, layout.scale, ids))
    values.by_group(np.multiply, out, layout.group, scale)


def _zeros(info: TensorInfo, bits: int, fetch: Fetch, ids: Sequence[int]) -> F32:
    """Zero points (len(ids), groups), packed along the rows of the table, not along its width."""
    starts = np.asarray(ids, np.int64) * bits
    first = int(starts.min()) // 32
    last = (int(starts.max()) + bits - 1) // 32 + 1
    words = rows_of(fetch, info, range(first, last))  # (words, 4 x groups)
    columns = words.reshape(last - first, -1, 4).transpose(1, 0, 2).reshape(-1, 4 * (last - first))
    return values.codes_at(columns, bits, starts - 32 * first).T.astype(np.float32)
