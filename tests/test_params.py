"""Counting: exact integers, and a sentence for every disagreement."""

import json
from dataclasses import asdict, fields
from pathlib import Path

import pytest

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
from embtool.tensors import PassedOver, Tables

FACTS = Path(__file__).parent / "facts" / "configs.jsonl"
REAL = [json.loads(line) for line in FACTS.read_text(encoding="utf-8").splitlines()]
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


def table(role="input", rows=129280, d_model=7168, tensor=None, dtype="BF16"):
    name = tensor or {"input": "model.embed_tokens.weight", "output": "lm_head.weight"}[role]
    params = rows * d_model
    return TableFacts(role, name, "a.safetensors", dtype, rows, d_model, params, 2 * params)


def notes(config=None, tables=(), **known):
    return count("m", "folder", config, tables, **known).notes


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


def test_neither_config_nor_table():
    record = count("m", "folder", None, ())
    assert (record.rows, record.params, record.memory, record.tables) == (None, None, {}, ())
    assert record.notes == ("no table and no config",)


def test_a_config_without_sizes():
    config = read_config({"normalize": True}, "config.json")
    assert notes(config) == ("config.json does not say how large the table is",)


def test_a_stored_copy_is_counted_once():
    config = Config("config.json", tied=True, tied_from="tie_word_embeddings")
    pair = [table(rows=100, d_model=8), table("output", rows=100, d_model=8)]
    record = count("m", "folder", config, pair, equal=True, total_params=10_000)
    assert (record.tied, record.params, record.total_params) == (True, 800, 9_200)
    assert record.share == 800 / 9_200
    assert record.notes == (
        "lm_head.weight repeats model.embed_tokens.weight: stored twice, counted once",
    )


@pytest.mark.parametrize(
    ("claim", "equal", "sentence"),
    [
        (True, False, "config.json says tied (tie_word_embeddings), but lm_head.weight differs"),
        (False, True, "config.json says untied (tie_word_embeddings), but both tables are equal"),
    ],
)
def test_tensors_decide_on_tied_and_the_claim_is_shown(claim, equal, sentence):
    config = Config("config.json", tied=claim, tied_from="tie_word_embeddings")
    record = count("m", "folder", config, [table(), table("output")], equal=equal)
    assert record.tied is equal
    assert sentence in record.notes


def test_sampled_rows_are_said():
    said = notes(None, [table(), table("output")], equal=False, sampled=True)
    assert said == ("tied or not is sampled: only some rows of the two tables were compared",)


def test_untied_without_an_output_table():
    config = Config("config.json", tied=False, tied_from="tie_word_embeddings")
    record = count("m", "folder", config, [table()])
    assert record.tied is None
    assert record.notes == (
        "config.json says untied (tie_word_embeddings), but no output table is stored",
    )


def test_a_default_is_said_to_be_one():
    config = read_config({"model_type": "gpt2"}, "config.json")
    record = count("m", "folder", config, [table()])
    assert record.tied is True
    assert record.notes == ("tied by the default of gpt2: config.json does not say",)


def test_only_the_head_is_stored():
    found = Tables("lm_head.weight", "lm_head.weight", only_head=True)
    record = count("m", "folder", None, [table(tensor="lm_head.weight")], found=found)
    assert record.tied is True
    assert record.notes == ("only the head is stored (lm_head.weight): it is the input table too",)


def test_config_against_table():
    config = Config("config.json", vocab_size=50277, hidden_size=768, table_width=768, dtype="F16")
    assert notes(config, [table(rows=50280, d_model=1024, dtype="F32")]) == (
        "config.json says vocab_size 50,277, the table has 50,280 rows",
        "config.json says width 768, the table is 1,024 wide",
        "the table is 1,024 wide, the model 768",
        "config.json says F16, the table is stored as F32",
    )


def test_a_factorised_table_is_shown_with_both_widths():
    config = Config("config.json", vocab_size=30000, hidden_size=768, table_width=128)
    record = count("m", "folder", config, [table(rows=30000, d_model=128)])
    assert (record.d_model, record.hidden_size, record.params) == (128, 768, 3840000)
    assert record.notes == ("the table is 128 wide, the model 768",)


def test_tables_of_different_heights():
    pair = [table(rows=128264, d_model=8), table("output", rows=128256, d_model=8)]
    record = count("m", "folder", None, pair, equal=False, total_params=10**7)
    assert record.share == (128264 + 128256) * 8 / 10**7
    assert record.notes == ("the output table is 128,256 x 8, the input table 128,264 x 8",)


@pytest.mark.parametrize(
    ("tokens", "beyond", "said"),
    [
        (262144, 1, ("1 id of the tokenizer without a row: the table has 262,144",)),
        (262143, 0, ("1 row without a token: 262,144 rows, 262,143 tokens",)),
        (262144, 0, ()),
        (None, 0, ()),
    ],
)
def test_rows_without_a_token_and_ids_without_a_row(tokens, beyond, said):
    gemma = [table(rows=262144, d_model=8)]
    assert notes(None, gemma, tokens=tokens, ids_without_row=beyond) == said


def test_what_the_model_does_with_a_row():
    config = Config("config.json", scale=25.298221281347036, scale_from="the square root of 640")
    found = Tables("a", None, extra="b", norm="word_embeddings_layernorm.weight")
    assert notes(config, [table()], found=found) == (
        "at run time the model multiplies a row by 25.2982 (the square root of 640)",
        "at run time a LayerNorm follows the table (word_embeddings_layernorm.weight)",
        "the vocabulary is split: its last rows are in b",
    )


def test_what_was_passed_over_is_named_up_to_a_point():
    copies = tuple(PassedOver(f"model.layers.{k}.e", f"stands inside layer {k}") for k in range(6))
    said = notes(None, [table()], found=Tables("a", None, passed_over=copies))
    assert said[0] == "passed over: model.layers.0.e stands inside layer 0"
    assert said[4:] == ("passed over: 2 more tensors",)


def test_an_unknown_total_of_quantized_weights_and_one_that_is_too_small():
    assert notes(Config("c", quantization="gptq"), [table()]) == (
        "total parameters unknown: the weights are quantized (gptq)",
    )
    record = count("m", "folder", None, [table(rows=100, d_model=8)], total_params=799)
    assert (record.total_params, record.share) == (None, None)
    assert record.notes == ("a total of 799 parameters is less than the tables' 800: left out",)


def test_others_names_cannot_break_a_note():
    said = notes(None, [table()], notes=["a\nb\x1b[31m\u202e\u56fd"])
    assert said == ("a\\nb\\x1b[31m\\u202e\u56fd",)


def test_notes_of_the_config_and_the_caller_come_last_and_once():
    config = Config("c", notes=("from the config",))
    assert notes(config, [table()], notes=["mine", "mine"]) == ("from the config", "mine")


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
