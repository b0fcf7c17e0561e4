"""Counting: a sentence for every disagreement, and for what is not known."""

import pytest
from params_builders import table

from embtool.config import Config, read_config
from embtool.params import count
from embtool.tensors import PassedOver, Tables


def notes(config=None, tables=(), **known):
    return count("m", "folder", config, tables, **known).notes


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
