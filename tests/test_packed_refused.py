"""What is not understood is refused by a sentence, and never decoded as something else."""

import numpy as np
import pytest
from packed_builders import Stored, same_bits, table_of

from embtool.errors import FormatError, UnsupportedError
from embtool.header import TensorInfo
from embtool.packed import (
    Claims,
    companions,
    join_split,
    one_below_another,
    plain,
    read_claims,
    recognise,
    side_by_side,
)

U8 = np.zeros((8, 32), np.uint8)
I8 = np.zeros((8, 64), np.int8)
I32 = np.zeros((8, 8), np.int32)
U32 = np.zeros((8, 8), np.uint32)
F8 = ("F8_E4M3", U8)
ONES = np.ones((8, 1), np.float32)
STATE = np.frombuffer(b'{"shape": [8, 64], "blocksize": 64}', np.uint8)
NF4 = "m.weight.quant_state.bitsandbytes__nf4"

REFUSED = {
    "codes alone": ({"m.weight": U8}, "holds codes of a kind that is not known, with nothing"),
    "words alone": ({"m.weight": U32}, "holds codes of a kind that is not known"),
    "hqq": ({"m.weight": U8, "m.meta": ONES}, "not known, with meta beside it"),
    "quanto": (
        {"m.weight": I8, "m.weight._scale": ONES},
        "parts that are not known: weight._scale",
    ),
    "a scale too many": (
        {"m.weight": F8, "m.weight_scale": ONES, "m.weight_outliers": ONES},
        "is scaled F8_E4M3 with parts that are not known: weight_outliers",
    ),
    "scales that do not fit": (
        {"m.weight": F8, "m.weight_scale": np.ones((3, 5), np.float32)},
        r"has scales of shape \[3, 5\], which do not fit it",
    ),
    "scales of a strange dtype": (
        {"m.weight": F8, "m.weight_scale": np.ones((8, 1), np.int64)},
        "has scales of dtype I64",
    ),
    "no second scale": (
        {"m.weight": U8, "m.weight_scale": ("F8_E4M3", np.zeros((8, 4), np.uint8))},
        "is NVFP4, but its second scale is missing",
    ),
    "four bits with floats for scales": (
        {"m.weight": U8, "m.weight_scale": np.ones((8, 4), np.float32)},
        "which are not NVFP4's",
    ),
    "MLX without biases and with float scales": (
        {"m.weight": U32, "m.scales": ONES},
        "has F32 scales, 1 a row, and no biases",
    ),
    "AWQ for another kernel": (
        {
            "m.qweight": np.zeros((16, 32), np.int32),
            "m.qzeros": np.zeros((16, 1), np.int32),
            "m.scales": np.ones((16, 8), np.float16),
        },
        "which are neither GPTQ's nor AWQ's",
    ),
    "INT8 in the order of a GPU": (
        {"m.weight": I8, "m.SCB": ONES, "m.weight_format": np.array(1, np.uint8)},
        "is not in the order of its rows",
    ),
    "four bits without a state": (
        {"m.weight": U8, "m.weight.absmax": ONES, "m.weight.quant_map": ONES},
        "without a quant_state",
    ),
}


@pytest.mark.format(
    "Quantized",
    kind="a scheme that is not known",
    model="models newer than this program",
    does="refused by name; its integers are never shown as numbers",
)
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    tensors, reason = REFUSED[name]
    with pytest.raises(UnsupportedError, match=reason) as caught:
        table_of(tensors)
    assert caught.value.message.startswith(next(iter(tensors)) + " (")


def test_a_part_that_is_missing():
    with pytest.raises(FormatError, match=r"looks like GPTQ or AWQ, but there is no m\.qzeros"):
        table_of({"m.qweight": I32})


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (b"[]", "is no JSON object"),
        (b"{" * 60_000, "is no JSON object"),
        (b'{"shape": [8, 64]}', "blocksize None"),
        (b'{"shape": [8, 64], "blocksize": true}', "blocksize True"),
        (b'{"shape": [8, -64], "blocksize": 64}', "shape"),
        (b'{"shape": [8, 66], "blocksize": 64}', "runs of 64 do not fit"),
        (b'{"shape": [80, 64], "blocksize": 64}', "256 bytes of U8, 2560 are needed"),
    ],
)
def test_a_hostile_quant_state(state, reason):
    tensors = {
        "m.weight": U8.reshape(-1, 1),
        "m.weight.absmax": np.ones(8, np.float32),
        "m.weight.quant_map": np.ones(16, np.float32),
        NF4: np.frombuffer(state, np.uint8),
    }
    with pytest.raises((UnsupportedError, FormatError), match=reason):
        table_of(tensors)


def test_plain_tables_are_left_alone():
    for dtype, array in (("F32", ONES), ("BF16", np.zeros((8, 4), np.uint16)), F8):
        assert table_of({"m.weight": (dtype, array)})[0] is None
    assert table_of({"m.weight": ONES, "m.bias": ONES})[0] is None


def test_signed_bytes_alone_are_numbers():
    packed, stored = table_of({"embeddings": np.arange(-8, 8, dtype=np.int8).reshape(2, 8)})
    assert (packed.dtype, packed.params) == ("I8", 16)
    same_bits(packed.rows(stored.fetch, [1, 0])[0], np.arange(8))


def test_a_width_that_contradicts_the_config():
    tensors = {"m.weight": U32, "m.scales": ONES, "m.biases": ONES}
    with pytest.raises(UnsupportedError, match=r"do not fit what the config says \(width 100"):
        table_of(tensors, Claims(width=100))


def test_companions_are_the_module_s_own():
    names = ["a.b.weight", "a.b.scales", "a.b.weight.absmax", "a.bc.scales", "a.scales", "mapping"]
    assert companions("a.b.weight", names) == ["a.b.scales", "a.b.weight.absmax"]
    assert companions("embeddings", ["mapping", "weights", "x"]) == ["mapping", "weights"]
    with pytest.raises(ValueError, match=r"headers of \['m\.scales'\] have not been read"):
        info = TensorInfo("m.weight", "U32", (8, 8), 0, 256)
        recognise("m.weight", {"m.weight": info, "m.scales": None}, Stored({}).fetch)


CLAIMS = [
    (
        {"quantization": {"bits": 4, "group_size": 64, "a.b": {"bits": 6, "group_size": 32}}},
        Claims(None, 6, 32),
    ),
    ({"quantization": {"bits": 4, "group_size": 64, "a.b": False}}, Claims(None, 4, 64)),
    ({"quantization_config": {"weight_block_size": [128, 64]}}, Claims(block=(128, 64))),
    (
        {"text_config": {"quantization_config": {"bits": 3, "checkpoint_format": "GPTQ_v2"}}},
        Claims(None, 3, None, None, "gptq_v2"),
    ),
    (
        {"quantization_config": {"config_groups": {"0": {"weights": {"num_bits": 4}}}}},
        Claims(bits=4),
    ),
    ({"quantization_config": {"bits": -1, "group_size": True, "weight_block_size": [0]}}, Claims()),
    ({"quantization_config": {"config_groups": {"0": 1}}, "quantization": 3}, Claims()),
]


@pytest.mark.parametrize(("config", "claims"), CLAIMS)
def test_claims(config, claims):
    assert read_claims(config, "a.b") == claims


# --- tables in pieces ----------------------------------------------------------------------


def pieces(*shapes):
    rng = np.random.default_rng(5)
    arrays = {
        f"{i}": rng.standard_normal(shape).astype(np.float32) for i, shape in enumerate(shapes)
    }
    stored = Stored(arrays)
    return stored, list(stored.infos.values()), list(arrays.values())


@pytest.mark.parametrize(
    ("shape", "vocab", "axis"),
    [((10, 4), 40, 0), ((10, 4), -1, 0), ((10, 4), 39, 0), ((40, 1), -1, 1), ((40, 1), 40, 1)],
)
def test_what_tensor_parallel_training_split(shape, vocab, axis):
    stored, infos, arrays = pieces(*[shape] * 4)
    table = join_split("tok_embeddings.weight", infos, 4, vocab)
    want = np.concatenate(arrays, axis)
    assert (table.tensor, table.shape) == ("tok_embeddings.weight", want.shape)
    assert table.nbytes == want.nbytes
    same_bits(table.rows(stored.fetch, range(len(want))), want)
    same_bits(table.rows(stored.fetch, range(7, 33)), want[7:33])
    ids = [39, 0, 9, 10, 0, 38]
    same_bits(table.rows(stored.fetch, ids), want[ids])


def test_copies_are_read_once():
    _, infos, arrays = pieces((40, 4), (40, 4))
    table = join_split("t", infos, 4, 40)
    assert (table.shape, table.nbytes) == ((40, 4), arrays[0].nbytes)


def test_pieces_that_do_not_tell():
    _, infos, _ = pieces((10, 4), (10, 4))
    with pytest.raises(UnsupportedError, match="split over 2 files of 10 x 4 each"):
        join_split("t", infos, None, None)
    with pytest.raises(UnsupportedError, match="table 4 wide with 50 rows"):
        join_split("t", infos, 4, 50)
    _, infos, _ = pieces((10, 4), (11, 4))
    with pytest.raises(FormatError, match=r"the pieces of t have the shapes"):
        join_split("t", infos, 4, 20)


def test_a_vocabulary_in_two_parameters():
    stored, infos, arrays = pieces((10, 4), (3, 4))
    table = one_below_another("wte", [plain(info) for info in infos])
    same_bits(table.rows(stored.fetch, range(8, 13)), np.concatenate(arrays)[8:])
    with pytest.raises(FormatError, match=r"have \[10, 3\] rows"):
        side_by_side("wte", [plain(info) for info in infos])
