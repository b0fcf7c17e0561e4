"""The parameters of a whole model, from what its headers or its index say."""

import math
from collections.abc import Mapping

from embtool.config import Config
from embtool.header import TensorInfo

# Integers that hold several numbers each, or a whole quantization's state.
PACKED = (".qweight", ".weight_packed", ".absmax", ".qzeros")
SCALES = (
    "_scale",
    "_scale_inv",
    ".scales",
    ".biases",
    "_scale_2",
    ".input_scale",
    ".k_scale",
    ".SCB",
)
NOT_NUMBERS = ("I16", "I32", "I64", "U16", "U32", "U64", "BOOL")
NBYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}


def stored_total(tensors: Mapping[str, TensorInfo]) -> int | None:
    """All parameters in these headers; None where packed integers hide how many there are.

    Scales of quantized weights, position ids and other integers are no parameters. A table that
    is stored twice is counted twice here.
    """
    if any(name.endswith(PACKED) for name in tensors):
        return None
    total = 0
    for name, info in tensors.items():
        if name.endswith(".scales") or (info.dtype == "U8" and name.endswith(".weight")):
            return None
        if info.dtype in NOT_NUMBERS or name.endswith(SCALES):
            continue
        total += math.prod(info.shape)
    return total


def index_total(
    total_parameters: int | None, total_size: int | None, config: Config | None, params: int
) -> int | None:
    """All parameters by an index's own figures; None where they do not tell.

    `total_parameters` is taken, unless it counts a tied head that is not stored: then it is more
    than `total_size` holds by exactly the table's `params`. Without it, `total_size` in bytes
    tells, if the config names one precision and no quantization.
    """
    nbytes = NBYTES.get(config.dtype or "") if config and not config.quantization else None
    stored = None
    if nbytes and total_size is not None and total_size % nbytes == 0:
        stored = total_size // nbytes
    if total_parameters is None or (stored and total_parameters - stored == params):
        return stored
    return total_parameters
