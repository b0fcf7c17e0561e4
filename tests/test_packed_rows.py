"""Rows that tokens share, and what a few rows of a packed table cost."""

import numpy as np
import pytest
from packed_builders import Stored, decoded, same_bits, stream, table_of

from embtool.errors import FormatError
from embtool.packed import Claims

RNG = np.random.default_rng(11)


# --- rows shared by tokens -----------------------------------------------------------------


@pytest.mark.format(
    "Quantized",
    kind="tokens that share rows",
    model="minishlab models with a quantized vocabulary (`mapping`)",
    does="each token gives its row; `params` counts the distinct ones",
)
def test_tokens_that_share_rows():
    rows = RNG.integers(-127, 128, (5, 8)).astype(np.int8)
    mapping = np.array([4, 0, 0, 3, 1, 2, 4], np.int64)
    factors = RNG.standard_normal(7).astype(np.float32)
    tensors = {"embeddings": rows, "mapping": mapping, "weights": factors}
    packed, _ = table_of(tensors)
    assert (packed.shape, packed.shared, packed.params) == ((7, 8), (5, 8), 40)
    assert packed.nbytes == 40 + 56 + 28
    same_bits(decoded(tensors), rows[mapping].astype(np.float32) * factors[:, None])
    del tensors["weights"]
    same_bits(decoded(tensors), rows[mapping].astype(np.float32))


@pytest.mark.parametrize("row", [-1, 5, 1 << 62])
def test_a_mapping_that_leaves_the_table_is_refused(row):
    tensors = {"embeddings": np.ones((5, 8), np.int8), "mapping": np.array([0, row])}
    packed, stored = table_of(tensors)
    with pytest.raises(FormatError, match=f"mapping names row {row}, and embeddings has 5 rows"):
        packed.rows(stored.fetch, range(2))


# --- only what is needed is read -----------------------------------------------------------


def test_a_row_costs_its_own_bytes_and_its_scales():
    numbers = RNG.integers(0, 16, (1000, 128))
    scale = np.ones((1000, 2), np.float32)
    tensors = {"m.weight": stream(numbers, 4), "m.scales": scale, "m.biases": scale}
    packed, stored = table_of(tensors, Claims(width=128))
    packed.rows(stored.fetch, [5, 999])
    assert stored.read == {"m.weight": 128, "m.scales": 16, "m.biases": 16}


def test_a_row_in_blocks_costs_one_row_of_scales():
    stored = RNG.integers(0, 126, (1280, 256)).astype(np.uint8)
    scale = np.ones((10, 2), np.float32)
    packed, held = table_of({"m.weight": ("F8_E4M3", stored), "m.weight_scale_inv": scale})
    packed.rows(held.fetch, [0, 1, 127, 128])
    assert held.read == {"m.weight": 1024, "m.weight_scale_inv": 16}


def test_memory_beside_the_rows_stays_bounded():
    import tracemalloc

    held = Stored(
        {
            "m.weight": np.zeros((40_000, 128), np.uint32),
            "m.scales": np.ones((40_000, 16), np.float16),
        }
    )
    held.infos["m.biases"] = held.infos["m.scales"]
    from embtool.packed import recognise

    packed = recognise("m.weight", held.infos, held.fetch, Claims(width=1024))
    out = np.empty((20_000, 1024), np.float32)
    tracemalloc.start()
    packed.rows(held.fetch, range(20_000), out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
