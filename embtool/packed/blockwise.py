"""bitsandbytes: INT8 with a scale a row, and NF4 or FP4 with a scale for each run of numbers.

INT8 (bitsandbytes/_ops.py, int8_vectorwise_dequant): value = number x SCB[row] x (1 / 127).
NF4 and FP4 (functional.py, QuantState and dequantize_4bit): a flat run of bytes, the first number
in the high half; value = quant_map[number] x absmax[position // blocksize]. Nested, absmax is
itself stored in bytes: nested_quant_map[absmax] x nested_absmax[block // nested_blocksize] +
nested_offset. `quant_state.bitsandbytes__nf4` is JSON that gives the sizes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from embtool.errors import FormatError
from embtool.header import TensorInfo
from embtool.packed import values
from embtool.packed.claims import Claims
from embtool.packed.parts import Fetch, Packed, Stem, rows_of, units, whole
from embtool.quant import F32

_AGAIN = "download the model again, or tell its author"
_STATES = ("weight.quant_state.bitsandbytes__nf4", "weight.quant_state.bitsandbytes__fp4")
_NESTED = ("weight.nested_absmax", "weight.nested_quant_map")
_STATE_NBYTES = 1 << 16
# int8_vectorwise_dequant multiplies by this, which is 1 / 127.
_INT8_UNIT = np.float32(7.874015718698502e-3)


def int8(stem: Stem) -> Packed | None:
    """I8 numbers with `SCB`; None without."""
    info, scale = stem.tensor, stem.take("SCB")
    if info.dtype != "I8" or scale is None:
        return None
    stem.only("bitsandbytes' INT8", ["weight", "SCB", "weight_format"])
    rows, d_model = info.shape
    if scale.dtype not in ("F32", "F16", "BF16") or prod(scale.shape) != rows:
        raise stem.refuse(f"has an SCB of {scale.dtype} {list(scale.shape)}")
    decode = partial(_int8, info, scale)
    scheme = "bitsandbytes: INT8, a scale a row"
    return Packed(info.name, scheme, "INT8", (rows, d_model), (info, scale), decode)


def row_order(stem: Stem, fetch: Fetch) -> None:
    """Refuse INT8 numbers that `weight_format` says are in the order of some GPU's matrix unit."""
    form = stem.take("weight_format")
    if form is not None and whole(fetch, form).any():
        raise stem.refuse("is not in the order of its rows (weight_format)")


def _int8(info: TensorInfo, scale: TensorInfo, fetch: Fetch, ids: Sequence[int], out: F32) -> None:
    np.copyto(out, rows_of(fetch, info, ids).view(np.int8))
    nbytes = (scale.stop - scale.start) // info.shape[0]
    np.multiply(out, values.numbers(scale.dtype, fetch(scale, ids, nbytes)), out=out)
    np.multiply(out, _INT8_UNIT, out=out)


@dataclass(frozen=True, slots=True)
class _Flat:
    """The parts of a table in four bits; `run` numbers share an absmax, `nested_run` of those."""

    info: TensorInfo
    absmax: TensorInfo
    levels: TensorInfo
    run: int
    nested: TensorInfo | None = None
    nested_levels: TensorInfo | None = None
    nested_run: int = 1
    offset: float = 0.0


def four_bits(stem: Stem, claims: Claims, fetch: Fetch) -> Packed | None:
    """U8 numbers with `weight.quant_state...`; None without `weight.absmax`."""
    info = stem.tensor
    if stem.take("weight.absmax") is None or info.dtype not in ("U8", "I8", "BF16", "F16", "F32"):
        return None
    what = "bitsandbytes' four bits"
    absmax, levels = stem.need("weight.absmax", what), stem.need("weight.quant_map", what)
    state_info = stem.take(*_STATES)
    if state_info is None:
        raise stem.refuse("is bitsandbytes' four bits, but without a quant_state")
    stem.only(what, ["weight", "weight.absmax", "weight.quant_map", *_STATES, *_NESTED])
    state = _state(state_info, fetch)
    rows, d_model, run = _sizes(stem, state, claims)
    flat = _Flat(info, absmax, levels, run)
    nested = [stem.take(name) for name in _NESTED]
    if any(nested):
        flat = _nested(stem, flat, nested, state)
    _check(stem, flat, rows * d_model)
    parts = [info, absmax, levels, state_info, *filter(None, nested)]
    kind = "NF4" if state_info.name.endswith("nf4") else "FP4"
    scheme = f"bitsandbytes: {kind}, runs of {run}" + (", nested" if any(nested) else "")
    decode = partial(_four_bits, flat)
    return Packed(info.name, scheme, kind, (rows, d_model), tuple(parts), decode)


def _state(info: TensorInfo, fetch: Fetch) -> dict[str, Any]:
    nbytes = info.stop - info.start
    if nbytes <= _STATE_NBYTES and info.dtype == "U8":
        try:
            state = json.loads(whole(fetch, info).tobytes())
        except (ValueError, RecursionError):
            state = None
        if isinstance(state, dict):
            return state
    raise FormatError(f"{info.name} ({info.dtype}, {nbytes} bytes) is no JSON object", _AGAIN)


def _sizes(stem: Stem, state: dict[str, Any], claims: Claims) -> tuple[int, int, int]:
    """Rows, d_model and the run that shares an absmax."""
    shape, run = state.get("shape"), _whole(state.get("blocksize"))
    sides = shape if isinstance(shape, list) and len(shape) == 2 else [0, 0]
    rows, d_model = map(_whole, sides)
    if not (run and rows and d_model):
        said = f"shape {str(shape)[:40]}, blocksize {str(state.get('blocksize'))[:20]}"
        raise stem.refuse(f"has a quant_state with {said}")
    if claims.width not in (None, d_model):
        raise stem.refuse(f"has {d_model} numbers a row, the config says {claims.width}")
    if d_model % 2 or (d_model % run and run % d_model):
        raise stem.refuse(f"has rows of {d_model} numbers, which runs of {run} do not fit")
    return rows, d_model, run


def _whole(value: object) -> int:
    """A usable count, or 0."""
    return value if type(value) is int and 0 < value < 1 << 40 else 0


def _nested(
    stem: Stem, flat: _Flat, nested: Sequence[TensorInfo | None], state: dict[str, Any]
) -> _Flat:
    run, offset = _whole(state.get("nested_blocksize")), state.get("nested_offset")
    maxima, levels = nested
    if maxima is None or levels is None or not run or not isinstance(offset, int | float):
        raise stem.refuse("has a nested quant_state that is not whole")
    return _Flat(flat.info, flat.absmax, flat.levels, flat.run, maxima, levels, run, float(offset))


def _check(stem: Stem, flat: _Flat, count: int) -> None:
    """Every part is as long as the count of numbers demands."""
    blocks = -(-count // flat.run)
    wanted = [(flat.info, count // 2, None), (flat.levels, 64, "F32")]
    if flat.nested is None or flat.nested_levels is None:
        wanted.append((flat.absmax, 4 * blocks, "F32"))
    else:
        wanted += [(flat.absmax, blocks, "U8"), (flat.nested_levels, 1024, "F32")]
        wanted.append((flat.nested, 4 * -(-blocks // flat.nested_run), "F32"))
    for info, nbytes, dtype in wanted:
        there = info.stop - info.start
        if there != nbytes or dtype not in (None, info.dtype):
            raise FormatError(
                f"{info.name} has {there} bytes of {info.dtype}, {nbytes} are needed for the "
                f"{count} numbers of {stem.tensor.name}",
                _AGAIN,
            )


def _four_bits(flat: _Flat, fetch: Fetch, ids: Sequence[int], out: F32) -> None:
    d_model = out.shape[1]
    packed = fetch(flat.info, ids, d_model // 2)
    levels = whole(fetch, flat.levels)[0].view("<f4")
    values.four_bits(levels, packed, out, high_first=True)
    values.by_group(np.multiply, out, min(flat.run, d_model), _maxima(flat, fetch, ids, d_model))


def _maxima(flat: _Flat, fetch: Fetch, ids: Sequence[int], d_model: int) -> F32:
    """The absmax of every run in some rows, (len(ids), runs of a row)."""
    each = max(1, d_model // flat.run)
    first = np.asarray(ids, np.int64) * d_model // flat.run
    near = isinstance(ids, range)
    nbytes = 4 if flat.nested is None else 1
    if d_model >= flat.run:
        stored = fetch(flat.absmax, ids, each * nbytes)
    else:
        stored = units(fetch, flat.absmax, first, nbytes, near=near)
    if flat.nested is None or flat.nested_levels is None:
        return np.ascontiguousarray(stored).view("<f4")
    levels = whole(fetch, flat.nested_levels)[0].view("<f4")
    blocks = (first[:, None] + np.arange(each)) // flat.nested_run
    scale = units(fetch, flat.nested, blocks.reshape(-1), 4, near=near).view("<f4")
    maxima: F32 = levels[stored] * scale.reshape(len(ids), each) + np.float32(flat.offset)
    return maxima
