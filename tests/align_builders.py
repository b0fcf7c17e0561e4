"""Rows for the tests of tables side by side."""

import numpy as np


def _rows(seed, count=300, width=64):
    return np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)


def _nearest_bf16(values):
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)
