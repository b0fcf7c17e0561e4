"""Counting: exact integers, from configs, tables, headers and indices."""

import json
from dataclasses import asdict, fields

import pytest
from config_builders import REAL
from params_builders import table

from embtool.config import Config, read_config
from embtool.errors import FormatError
from embtool.header import TensorInfo
from embtool.params import (
    PRECISIONS,
    Params,
    TableFacts,
    count,
    hypothetical,
    index_total,
    memory,
    stored_total,
)

DEEPSEEK = Config(
    "config.json",
    model_type="deepseek_v3",
    vocab_size=129280,
    hidden_size=7168,
    table_width=7168,
    num_layers=61,
    tied=False,
    tied_from="tie_word_embeddings",
    dtype="BF16",
    quantization="fp8",
)


def test_the_record_has_the_fields_of_the_output_in_order():
    assert [field.name for field in fields(Params)] == [
        "model",
        "revision",
        "source",
        "model_type",
        "vocab_size",
        "d_model",
        "hidden_size",
        "rows",
        "tokens",
        "tied",
        "params",
        "total_params",
        "share",
        "memory",
        "tables",
        "notes",
    ]
    assert [field.name for field in fields(TableFacts)] == [
        "role",
        "tensor",
        "file",
        "dtype",
        "rows",
        "d_model",
        "params",
        "stored_bytes",
    ]


def test_deepseek_v3():
    record = count(
        "deepseek-ai/DeepSeek-V3",
        "hub",
        DEEPSEEK,
        [table(), table("output")],
        revision="e815299",
        tokens=128815,
        equal=False,
        total_params=684531386000,
    )
    assert json.loads(json.dumps(asdict(record))) == {
        "model": "deepseek-ai/DeepSeek-V3",
        "revision": "e815299",
        "source": "hub",
        "model_type": "deepseek_v3",
        "vocab_size": 129280,
        "d_model": 7168,
        "hidden_size": 7168,
        "rows": 129280,
        "tokens": 128815,
        "tied": False,
        "params": 926679040,
        "total_params": 684531386000,
        "share": 1853358080 / 684531386000,
        "memory": {
            "fp32": 3706716160,
            "bf16": 1853358080,
            "fp8": 926679040,
            "int8": 926679040,
            "int4": 463339520,
        },
        "tables": [asdict(table()), asdict(table("output"))],
        "notes": ["465 rows without a token: 129,280 rows, 128,815 tokens"],
    }


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (1, {"fp32": 4, "bf16": 2, "fp8": 1, "int8": 1, "int4": 1}),
        (3, {"fp32": 12, "bf16": 6, "fp8": 3, "int8": 3, "int4": 2}),
        (10**20 + 1, {"fp32": 4 * 10**20 + 4, "int4": 5 * 10**19 + 1}),
    ],
)
def test_memory_is_exact_and_int4_rounds_up(params, expected):
    assert memory(params, tuple(expected)) == expected


def test_precisions_can_be_chosen_and_an_unknown_one_is_an_error():
    assert PRECISIONS == ("fp32", "bf16", "fp8", "int8", "int4")
    assert count("m", "file", None, [table()], precisions=("int4",)).memory == {"int4": 463339520}
    with pytest.raises(FormatError) as error:
        memory(1, ("fp13",))
    assert error.value.message == "unknown precision fp13"
    assert error.value.advice == "choose from fp32, bf16, fp8, int8, int4"


def test_hypothetical_without_a_model():
    record = hypothetical(129280, 4096, total_params=8_000_000_000)
    assert (record.source, record.model, record.rows) == ("given", None, 129280)
    assert (record.params, record.memory["bf16"]) == (529530880, 1059061760)
    assert round(record.share, 3) == 0.066
    assert (record.tied, record.notes) == (None, ())


def test_added_tokens_cost_in_both_tables_when_untied():
    record = hypothetical(1000, 10, total_params=50_000, add_tokens=20, pad_to=64, tied=False)
    assert (record.rows, record.tokens, record.params) == (1024, 1020, 10240)
    assert (record.total_params, record.share) == (50_480, 20480 / 50_480)
    assert [facts.role for facts in record.tables] == ["input", "output"]
    assert record.notes == (
        "4 rows without a token: 1,024 rows, 1,020 tokens",
        "24 more rows of 10: 240 parameters in each table, 480 in both",
    )


@pytest.mark.parametrize(
    ("tied", "sentence"),
    [
        (True, "1 more row of 10: 10 parameters, once, as the tables are tied"),
        (None, "1 more row of 10: 10 parameters where the tables are tied, 20 where they are not"),
    ],
)
def test_added_tokens_cost_once_when_tied(tied, sentence):
    assert hypothetical(1000, 10, add_tokens=1, tied=tied).notes == (sentence,)


@pytest.mark.parametrize(("pad_to", "rows"), [(None, 1000), (1, 1000), (1000, 1000), (7, 1001)])
def test_rows_are_padded_to_a_multiple(pad_to, rows):
    assert hypothetical(1000, 10, pad_to=pad_to).rows == rows


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"vocab_size": 0}, "vocab_size is 0"),
        ({"d_model": -1}, "d_model is -1"),
        ({"pad_to": 0}, "pad_to is 0"),
        ({"add_tokens": -2}, "add_tokens is -2"),
        ({"total_params": 5}, "total_params is 5, but the tables alone have 10,000"),
    ],
)
def test_impossible_numbers(numbers, message):
    with pytest.raises(FormatError) as error:
        hypothetical(**({"vocab_size": 1000, "d_model": 10} | numbers))
    assert error.value.message == message


def test_a_config_alone_gives_a_count_that_is_not_checked():
    record = count("m", "hub", DEEPSEEK, (), tokens=128815)
    assert (record.rows, record.params, record.tied) == (129280, 926679040, False)
    assert [facts.stored_bytes for facts in record.tables] == [None, None]
    assert record.notes[0] == "from config.json alone: the rows of the checkpoint are not checked"


@pytest.mark.parametrize("fact", REAL, ids=lambda fact: fact["model"])
def test_every_real_config_gives_a_count(fact):
    config = read_config(fact["config"], fact["file"])
    record = count(fact["model"], "hub", config, ())
    assert record.params == record.rows * fact["table_width"]
    assert record.rows == fact["vocab_size"]
    assert record.memory["bf16"] == 2 * fact["vocab_size"] * fact["table_width"]


def header(**tensors):
    return {name: TensorInfo(name, dtype, shape, 0, 0) for name, (dtype, shape) in tensors.items()}


def test_total_of_a_header_counts_parameters_alone():
    tensors = header(
        **{
            "embeddings.position_ids": ("I64", (1, 512)),
            "embeddings.word_embeddings.weight": ("F32", (30522, 384)),
            "layer.weight": ("F8_E4M3", (256, 128)),
            "layer.weight_scale_inv": ("F32", (2, 1)),
            "norm.bias": ("F32", (384,)),
            "scalar": ("F32", ()),
        }
    )
    assert stored_total(tensors) == 30522 * 384 + 256 * 128 + 384 + 1


@pytest.mark.parametrize(
    "name", ["a.qweight", "a.weight_packed", "a.weight.absmax", "a.scales", "a.qzeros"]
)
def test_total_of_packed_weights_is_unknown(name):
    assert stored_total(header(**{"e.weight": ("BF16", (9, 9)), name: ("I32", (3, 3))})) is None


@pytest.mark.parametrize(
    ("parameters", "nbytes", "dtype", "quantization", "expected"),
    [
        (3075098624, 6150197248, "BF16", None, 3075098624),
        (None, 352494542848, "BF16", None, 176247271424),
        (28842036848, 54864813280, "BF16", None, 27432406640),
        (8021025280, 6661964712, "F16", "bitsandbytes", 8021025280),
        (None, 8307783680, "BF16", "mlx", None),
        (None, 100, None, None, None),
        (None, 101, "BF16", None, None),
        (None, None, "BF16", None, None),
    ],
    ids=["smollm3", "bloom", "medgemma", "molmo", "mlx", "no-dtype", "odd", "nothing"],
)
def test_total_of_an_index(parameters, nbytes, dtype, quantization, expected):
    config = Config("c", dtype=dtype, quantization=quantization)
    assert index_total(parameters, nbytes, config, 262208 * 5376) == expected
