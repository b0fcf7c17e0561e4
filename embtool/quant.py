"""Packed integers with scales -> float32, one function a scheme of GGUF.

Every function takes blocks: (n, bytes of a block) uint8, and fills out: (n, elements) float32,
C-contiguous. The layouts are those of ggml (ggml-common.h, ggml-quants.c); results are equal to
its reference decoder in every bit, so the order of the float32 operations is part of the format.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
U8 = NDArray[np.uint8]

# Elements and bytes of a block, also of the schemes that are not decoded here.
BLOCKS = {
    "Q8_0": (32, 34),
}


def q8_0(blocks: U8, out: F32) -> None:
    """Q8_0: a float16 scale, then 32 int8."""
    np.copyto(out, blocks[:, 2:].view(np.int8))
    np.multiply(out, _half(blocks, 0), out=out)


def _half(blocks: U8, at: int) -> F32:
    """The float16 that every block has at byte `at`: (n, 1)."""
    return blocks[:, at : at + 2].view("<f2").astype(np.float32)


SCHEMES: dict[str, Callable[[U8, F32], None]] = {
    "Q8_0": q8_0,
}
