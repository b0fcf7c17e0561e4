"""Numbers of eight or four bits with scales beside them: FP8, INT8, MXFP8, NVFP4, MXFP4.

A value is number x scale, or (number - zero) x scale, in float32. The scale belongs to the whole
table, to a row, to a run of a row or to a block of rows and columns; its shape says which.

Sources: `weight_scale_inv` of DeepSeek-V3's inference code (kernel.py, weight_dequant: block
128 x 128, multiplied in spite of its name); compressed-tensors (quantization/lifecycle/
forward_helpers.py, _dequantize; compressors/nvfp4); ModelOpt's NVFP4QTensor.dequantize; OCP
Microscaling Formats 1.0 for the scales that are exponents.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from embtool.header import TensorInfo
from embtool.packed import values
from embtool.packed.claims import Claims
from embtool.packed.parts import Fetch, Packed, Stem, rows_of, shared_rows, whole
from embtool.quant import F32

NUMBERS = ("F8_E4M3", "F8_E5M2", "I8")
_SCALES = ("weight_scale_inv", "weight_scale", "scale")
_FLOATS = ("F32", "BF16", "F16", "F64")
_EXPONENTS = ("U8", "F8_E8M0")
_DEEPSEEK = (128, 128)


@dataclass(frozen=True, slots=True)
class Grid:
    """Scales (rows, groups), or one for all.

    A row of them is for `every` rows of the table, one of them for `width` numbers of a row.
    """

    info: TensorInfo
    every: int
    width: int

    def read(self, fetch: Fetch, ids: Sequence[int]) -> F32:
        """The scales of some rows, (len(ids) or 1, groups)."""
        if prod(self.info.shape) == 1:
            return values.scales(self.info.dtype, whole(fetch, self.info))
        return values.scales(self.info.dtype, shared_rows(fetch, self.info, ids, self.every))


def scaled(stem: Stem, claims: Claims) -> Packed | None:
    """FP8 or INT8 numbers with `weight_scale` or `weight_scale_inv`; None without one."""
    info, scale = stem.tensor, stem.take(*_SCALES)
    if info.dtype not in NUMBERS or scale is None:
        return None
    what = f"scaled {info.dtype}"
    stem.only(what, ["weight", "weight_zero_point", "weight_shape", *_SCALES])
    if scale.dtype not in (*_FLOATS, *_EXPONENTS):
        raise stem.refuse(f"has scales of dtype {scale.dtype}")
    rows, d_model = info.shape
    grid, each = _grid(stem, scale, (rows, d_model), claims)
    zero = stem.take("weight_zero_point")
    if zero is not None and (zero.dtype != "I8" or zero.shape != scale.shape):
        raise stem.refuse(f"has zero points {zero.dtype} {list(zero.shape)}")
    zeros = None if zero is None else replace(grid, info=zero)
    parts = (info, scale) if zero is None else (info, scale, zero)
    decode = partial(_scaled, info, grid, zeros)
    scheme = f"{info.dtype}, {each}"
    return Packed(info.name, scheme, info.dtype, (rows, d_model), parts, decode)


def _scaled(
    info: TensorInfo, grid: Grid, zeros: Grid | None, fetch: Fetch, ids: Sequence[int], out: F32
) -> None:
    np.copyto(out, values.numbers(info.dtype, rows_of(fetch, info, ids)))
    if zeros is not None:
        values.by_group(np.subtract, out, zeros.width, zeros.read(fetch, ids))
    values.by_group(np.multiply, out, grid.width, grid.read(fetch, ids))


def _grid(
    stem: Stem, scale: TensorInfo, shape: tuple[int, int], claims: Claims
) -> tuple[Grid, str]:
    """What each scale covers, from its shape; and the same in words."""
    rows, d_model = shape
    if prod(scale.shape) == 1:
        return Grid(scale, rows, d_model), "one scale"
    height, groups = (*scale.shape, 1) if len(scale.shape) == 1 else scale.shape[:2]
    fits = len(scale.shape) <= 2
    for block in (claims.block, _DEEPSEEK):
        if fits and block and (height, groups) == (-(-rows // block[0]), -(-d_model // block[1])):
            return Grid(scale, *block), f"blocks of {block[0]} x {block[1]}"
    if fits and height == rows and groups and d_model % groups == 0:
        width = d_model // groups
        return Grid(scale, 1, width), "a scale a row" if groups == 1 else f"groups of {width}"
    raise stem.refuse(f"has scales of shape {list(scale.shape)}, which do not fit it")


def small_floats(stem: Stem, claims: Claims) -> Packed | None:
    """NVFP4 or MXFP4: two numbers a byte, and a scale for 16 or 32 of them; None without one.

    NVFP4 has a second scale for all: ModelOpt's `weight_scale_2` is multiplied with the first,
    compressed-tensors' `weight_global_scale` divides it.
    """
    info, scale = stem.tensor, stem.take("weight_scale")
    if info.dtype != "U8" or scale is None:
        return None
    rows, nbytes = info.shape
    d_model = 2 * nbytes
    stem.only(
        "four-bit floats",
        ["weight", "weight_packed", "weight_scale", "weight_scale_2", "weight_global_scale"],
    )
    group, name = (32, "MXFP4") if scale.dtype in _EXPONENTS else (16, "NVFP4")
    if scale.dtype not in ("F8_E4M3", *_EXPONENTS) or scale.shape != (rows, d_model // group):
        raise stem.refuse(f"has scales {scale.dtype} {list(scale.shape)}, which are not NVFP4's")
    if d_model % group or claims.width not in (None, d_model):
        raise stem.refuse(f"has {d_model} numbers a row, the config says {claims.width}")
    factor = stem.take("weight_scale_2", "weight_global_scale")
    if (factor is None) != (name == "MXFP4"):
        raise stem.refuse(
            f"is {name}, but its second scale is {'missing' if not factor else 'odd'}"
        )
    if factor is not None and (prod(factor.shape) != 1 or factor.dtype not in _FLOATS):
        raise stem.refuse(f"has a second scale {factor.dtype} {list(factor.shape)}")
    parts = (info, scale) if factor is None else (info, scale, factor)
    decode = partial(_small_floats, info, Grid(scale, 1, group), factor)
    return Packed(info.name, f"{name}, groups of {group}", name, (rows, d_model), parts, decode)


def _small_floats(
    info: TensorInfo,
    grid: Grid,
    factor: TensorInfo | None,
    fetch: Fetch,
    ids: Sequence[int],
    out: F32,
) -> None:
    values.e2m1(rows_of(fetch, info, ids), out)
    scales = grid.read(fetch, ids)
    if factor is not None:
        divides = factor.name.endswith("weight_global_scale")
        second = values.numbers(factor.dtype, whole(fetch, factor))
        scales = scales / second if divides else scales * second
    values.by_group(np.multiply, out, grid.width, scales)
