"""Quantized and divided tables of safetensors repositories -> float32.

    recognise(tensor, tensors, fetch, claims) -> Packed | None
    Packed.rows(fetch, ids) -> (len(ids), d_model) float32

The scheme is told from names, dtypes and shapes; a config's word (`read_claims`) is needed only
where shapes leave several. What is not understood is refused by a sentence that names it. Only
the bytes of the rows asked for are read, and the scales that belong to them.

The schemes, and the tensors beside MODULE's own that tell them:

    FP8, INT8            weight F8 or I8   weight_scale_inv | weight_scale [weight_zero_point]
    NVFP4, MXFP4         weight(_packed) U8   weight_scale [weight_scale_2 | weight_global_scale]
    compressed-tensors   weight_packed I32   weight_scale weight_shape [weight_zero_point]
    MLX                  weight U32   scales [biases]
    GPTQ, AWQ            qweight I32   qzeros scales [g_idx]
    bitsandbytes INT8    weight I8   SCB [weight_format]
    bitsandbytes 4 bits  weight U8   weight.absmax weight.quant_map weight.quant_state...
                         [weight.nested_absmax weight.nested_quant_map]
    Model2Vec            embeddings   mapping [weights]
"""

from collections.abc import Iterable, Mapping

from embtool.header import TensorInfo
from embtool.packed.blockwise import four_bits, int8, row_order
from embtool.packed.claims import Claims, read_claims
from embtool.packed.columns import turned
from embtool.packed.groups import mlx, packed_integers
from embtool.packed.parts import Fetch, Packed, Stem, by_columns, plain
from embtool.packed.pieces import join_split, one_below_another, side_by_side
from embtool.packed.scaled import scaled, small_floats
from embtool.packed.shared import mapped

__all__ = [
    "Claims",
    "Fetch",
    "Packed",
    "by_columns",
    "companions",
    "join_split",
    "one_below_another",
    "plain",
    "read_claims",
    "recognise",
    "side_by_side",
]

_SUFFIXES = (".weight", ".weight_packed", ".qweight")
# What Model2Vec calls its table, beside which `mapping` and `weights` stand.
_STATIC = ("embeddings", "embedding.weight")
# Bytes and words are codes of something. Halves and quarters of a byte are, too.
_CODES = ("U8", "U16", "I16", "U32", "I32", "F4", "F6_E2M3", "F6_E3M2", "F8_E8M0")


def companions(tensor: str, names: Iterable[str]) -> list[str]:
    """The tensors that may say how `tensor` is packed: `recognise` must see them all."""
    start = f"{_module(tensor)}."
    static = ("mapping", "weights") if tensor in _STATIC else ()
    return [name for name in names if name != tensor and (name.startswith(start) or name in static)]


def recognise(
    tensor: str,
    tensors: Mapping[str, TensorInfo | None],
    fetch: Fetch,
    claims: Claims | None = None,
) -> Packed | None:
    """How a table is packed; None where its own dtype says all (BF16, F32, GGUF's types).

    tensors: all of them, or `tensor` and its `companions`, of whatever files. fetch: called for a
    few small tensors that tell a size. claims: what the config says.

    Raises UnsupportedError for a way of packing that is not read, FormatError where its parts
    contradict each other.
    """
    stem, claims = _stem(tensor, tensors), claims or Claims()
    mapping = tensors.get("mapping") if tensor in _STATIC else None
    if mapping is not None:
        return mapped(stem, plain(stem.tensor), mapping, tensors.get("weights"))
    info = stem.tensor
    if len(info.shape) != 2 or 0 in info.shape:
        return None
    found = (
        turned(stem, claims)
        or mlx(stem, claims)
        or packed_integers(stem, claims, fetch)
        or four_bits(stem, claims, fetch)
        or small_floats(stem, claims)
        or scaled(stem, claims)
        or int8(stem)
    )
    if found is None:
        return _unpacked(stem)
    row_order(stem, fetch)
    return found


def _unpacked(stem: Stem) -> Packed | None:
    """Numbers stored one by one; signed bytes are read as they are where nothing scales them."""
    info = stem.tensor
    if info.dtype in _CODES:
        beside = ", ".join(sorted(stem.beside.keys() - {"bias"})[:4]) or "nothing"
        raise stem.refuse(f"holds codes of a kind that is not known, with {beside} beside it")
    if info.dtype == "I8":
        stem.only("signed bytes", ["weight"])
        return plain(info)
    strange = [name for name in stem.beside if name.startswith("weight.") or name == "scales"]
    if strange:
        raise stem.refuse(f"has parts that are not known: {', '.join(sorted(strange)[:4])}")
    return None


def _module(tensor: str) -> str:
    suffix = next((suffix for suffix in _SUFFIXES if tensor.endswith(suffix)), "")
    return tensor.removesuffix(suffix)


def _stem(tensor: str, tensors: Mapping[str, TensorInfo | None]) -> Stem:
    names = [tensor, *companions(tensor, tensors)]
    read = {name: info for name in names if (info := tensors[name]) is not None}
    if len(read) < len(names):
        raise ValueError(f"the headers of {sorted({*names} - {*read})} have not been read")
    start = f"{_module(tensor)}."
    beside = {
        name.removeprefix(start): info
        for name, info in read.items()
        if name.startswith(start) and name != tensor
    }
    return Stem(_module(tensor), read[tensor], beside)
