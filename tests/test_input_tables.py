"""Input tables of unusual kinds, from the file to the answer: split, scaled, head alone, narrow."""

import json
import math

import numpy as np
import pytest
from builders import bf16, folder_model, word_tokenizer, write_safetensors
from cli import run
from gguf_builder import F32, STRING, U32, packed, pair, tensor

from embtool import Model
from embtool.errors import FormatError, SourceError
from embtool.joined import Joined
from embtool.queries.counting import model_params

WORDS = [f"w{i}" for i in range(12)]
MOLMO = ("model.transformer.wte.embedding", "model.transformer.wte.new_embedding")
VALUES = np.random.default_rng(3).standard_normal((12, 8)).astype(np.float32)


def put(folder, tensors, config=None, words=WORDS, name="model.safetensors"):
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / name, tensors)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(word_tokenizer(words))
    return folder


def molmo(folder, extra=VALUES[9:]):
    config = {"model_type": "molmo", "vocab_size": 9, "hidden_size": 8, "embedding_size": 12}
    return put(folder, dict(zip(MOLMO, (VALUES[:9], extra))), config)


def answer(capsys, *args):
    done = run(capsys, *args, "-f", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.format(
    "Input tables",
    kind="split over two parameters",
    model="allenai/Molmo-7B-D (`wte.embedding`, `wte.new_embedding`), IDEFICS",
    does="one table: the rows of the second follow those of the first",
)
def test_a_split_vocabulary_is_one_table(capsys, tmp_path):
    folder = molmo(tmp_path)
    whole = folder_model(tmp_path / "whole", VALUES, WORDS)
    record = model_params(Model.open(str(folder)))
    assert (record.rows, record.params, record.tokens) == (12, 96, 12)
    assert f"the vocabulary is split: its last rows are in {MOLMO[1]}" in record.notes
    table = Model.open(str(folder)).table()
    assert isinstance(table, Joined)
    assert (table.tensor, table.shape, table.nbytes) == (" + ".join(MOLMO), (12, 8), 12 * 8 * 4)
    ids = [11, 0, 9, 8, 8, 10]
    assert np.array_equal(table.rows(ids), VALUES[ids])
    assert table.rows([]).shape == (0, 8)
    assert (table.dtype, table.params) == ("F32", 96)
    assert table.stored_rows(ids).tobytes() == VALUES[ids].tobytes()
    for word in ("w3", "w10"):
        asked = ("neighbors", word, "-k", "12", "-m")
        here, there = (answer(capsys, *asked, str(each)) for each in (folder, whole))
        assert here["neighbors"] == there["neighbors"]
        assert here["table"] == " + ".join(MOLMO)
        found = answer(capsys, "lookup", word, "-m", str(folder))["tokens"]
        assert [token["vector"] for token in found] == [VALUES[int(word[1:])].tolist()]
    alone = answer(capsys, "lookup", "id:2", "--table", MOLMO[1], "-m", str(folder))
    assert alone["tokens"][0]["vector"] == VALUES[11].tolist()
    done = run(capsys, "lookup", "id:12", "-m", str(folder))
    assert done.err.startswith("error: id 12 has no row: the table has 12 rows\n")


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_parts_of_a_split_table_cover_it_in_order(tmp_path, count):
    table = Model.open(str(molmo(tmp_path))).table()
    seen = np.full((12, 8), np.nan, np.float32)
    firsts = []
    for part in table.parts(count):
        for first, block in part:
            seen[first : first + len(block)] = block
            firsts.append(first)
    assert np.array_equal(seen, VALUES)
    assert firsts == sorted(firsts)
    assert [first for first, _ in table.blocks(10)] == [10]
    assert [(first, len(block)) for first, block in table.blocks(7, 10)] == [(7, 2), (9, 1)]


def test_the_halves_of_a_split_table_are_as_wide_as_each_other(tmp_path):
    folder = molmo(tmp_path, extra=VALUES[9:, :7].copy())
    with pytest.raises(FormatError) as caught:
        Model.open(str(folder)).table()
    assert caught.value.message == (
        f"the vocabulary is split over {MOLMO[0]}, which is 8 wide, and {MOLMO[1]}, which is 7 wide"
    )


def test_halves_that_are_stored_otherwise(tmp_path):
    folder = put(tmp_path, dict(zip(MOLMO, (VALUES[:9], VALUES[9:].astype(np.float16)))))
    table = Model.open(str(folder)).table()
    assert (table.dtype, table.nbytes) == ("F32 + F16", 9 * 8 * 4 + 3 * 8 * 2)
    assert np.array_equal(table.rows([8, 9]), [VALUES[8], VALUES[9].astype(np.float16)])


def test_a_split_table_in_two_shards_has_a_key_of_its_own(tmp_path):
    for name, tensor_name, values in zip("ab", MOLMO, (VALUES[:9], VALUES[9:])):
        write_safetensors(tmp_path / f"{name}.safetensors", {tensor_name: bf16(values)})
    weight_map = {MOLMO[0]: "a.safetensors", MOLMO[1]: "b.safetensors"}
    index = {"metadata": {}, "weight_map": weight_map}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    model = Model.open(str(tmp_path))
    table = model.table()
    keys = {model.tensor(name).key for name in MOLMO}
    assert len(keys) == 2
    assert table.key.startswith("joined-")
    assert table.key not in keys
    one = Model.open(str(molmo(tmp_path / "one"))).table()
    assert one.key == Model.open(str(tmp_path / "one")).tensor(MOLMO[0]).key


@pytest.mark.format(
    "Input tables",
    kind="only the head is stored, though tied",
    model="facebook/MobileLLM-125M (`lm_head.weight`)",
    does="the head is the input table too, and it says so",
)
def test_the_head_alone_serves_as_both_tables(capsys, tmp_path):
    config = {"model_type": "mobilellm", "vocab_size": 12, "hidden_size": 8}
    folder = put(tmp_path, {"lm_head.weight": VALUES}, config | {"tie_word_embeddings": True})
    found = answer(capsys, "lookup", "w4", "-m", str(folder))
    assert found["table"] == "lm_head.weight"
    assert found["tokens"][0]["vector"] == VALUES[4].tolist()
    record = answer(capsys, "params", str(folder))
    assert (record["tied"], record["rows"], record["params"]) == (True, 12, 96)
    said = "only the head is stored (lm_head.weight): it is the input table too"
    assert record["notes"] == [said]


@pytest.mark.format(
    "Input tables",
    kind="narrower than the model",
    model="albert-base-v2 (128 of 768), google/electra-small (128 of 256), facebook/opt-350m",
    does="both widths are shown; rows are as wide as the table",
)
@pytest.mark.parametrize(
    ("key", "model_type"),
    [("embedding_size", "albert"), ("embedding_size", "electra"), ("word_embed_proj_dim", "opt")],
)
def test_a_factorised_table_is_shown_with_both_widths(capsys, tmp_path, key, model_type):
    config = {"model_type": model_type, "vocab_size": 12, "hidden_size": 32, key: 8}
    name = {"opt": "model.decoder.embed_tokens.weight"}.get(
        model_type, f"{model_type}.embeddings.word_embeddings.weight"
    )
    folder = put(tmp_path, {name: VALUES}, config)
    record = answer(capsys, "params", str(folder))
    assert (record["d_model"], record["hidden_size"], record["params"]) == (8, 32, 96)
    assert "the table is 8 wide, the model 32" in record["notes"]
    assert answer(capsys, "lookup", "w4", "-m", str(folder))["shape"] == [1, 8]


@pytest.mark.format(
    "Input tables",
    kind="of another height than the output table",
    model="meta-llama/Llama-3.2-11B-Vision (128,264 and 128,256 rows)",
    does="each is counted and read by its own rows, and the difference is said",
)
def test_input_and_output_of_different_heights(capsys, tmp_path):
    config = {"text_config": {"model_type": "mllama_text_model", "vocab_size": 10}}
    config["text_config"] |= {"hidden_size": 8, "tie_word_embeddings": False}
    names = ("language_model.model.embed_tokens.weight", "language_model.lm_head.weight")
    folder = put(tmp_path, dict(zip(names, (VALUES, VALUES[:10]))), config)
    record = answer(capsys, "params", str(folder))
    assert [table["rows"] for table in record["tables"]] == [12, 10]
    assert "the output table is 10 x 8, the input table 12 x 8" in record["notes"]
    assert answer(capsys, "lookup", "id:11", "-m", str(folder))["shape"] == [1, 8]
    done = run(capsys, "lookup", "id:11", "--table", "output", "-m", str(folder))
    assert done.err.startswith("error: id 11 (w11) has no row: the table has 10 rows\n")


SCALED = [
    ({"model_type": "gemma2"}, math.sqrt(8), "the square root of 8"),
    ({"model_type": "granite", "embedding_multiplier": 12.0}, 12.0, "embedding_multiplier"),
    ({"model_type": "minicpm", "scale_emb": 12}, 12.0, "scale_emb"),
    ({"model_type": "bart", "scale_embedding": True}, math.sqrt(8), "the square root of 8"),
]


@pytest.mark.format(
    "Input tables",
    kind="scaled at run time",
    model="Gemma (square root of d_model), ibm-granite/granite-3.1 (`embedding_multiplier`)",
    does="`params` reports the factor, `lookup --scaled` applies it",
)
@pytest.mark.parametrize(("config", "scale", "why"), SCALED, ids=lambda v: str(v)[:30])
def test_scaling_is_reported_and_applied_when_asked_for(capsys, tmp_path, config, scale, why):
    folder = str(folder_model(tmp_path, VALUES, WORDS, config))
    record = answer(capsys, "params", folder)
    note = f"at run time the model multiplies a row by {scale:.6g} ({why})"
    assert note in record["notes"]
    plain = answer(capsys, "lookup", "w4", "-m", folder)
    assert (plain["scale"], plain["tokens"][0]["vector"]) == (None, VALUES[4].tolist())
    scaled = answer(capsys, "lookup", "w4", "--scaled", "-m", folder)
    expected = VALUES[4] * np.float32(scale)
    assert scaled["scale"] == scale
    assert scaled["tokens"][0]["vector"] == expected.tolist()
    norms = [found["tokens"][0]["norm"] for found in (plain, scaled)]
    assert math.isclose(norms[1], scale * norms[0], rel_tol=1e-6)
    output = tmp_path / "rows.npy"
    assert run(capsys, "lookup", "w4", "--scaled", "-m", folder, "-o", str(output)).code == 0
    assert np.array_equal(np.load(output), expected[None])
    page = run(capsys, "lookup", "w4", "--scaled", "-m", folder, "-f", "table").out
    assert page.startswith(
        f"1 × 8 matrix from model.embed_tokens.weight, times {scale:.6g}, {folder}\n"
    )


def test_a_model_without_a_factor_has_the_factor_1(capsys, tmp_path):
    folder = str(folder_model(tmp_path, VALUES, WORDS))
    scaled = answer(capsys, "lookup", "w4", "--scaled", "-m", folder)
    assert (scaled["scale"], scaled["tokens"][0]["vector"]) == (1.0, VALUES[4].tolist())


def test_scaling_needs_a_config_and_the_input_table(capsys, tmp_path):
    write_safetensors(tmp_path / "bare.safetensors", {"embedding.weight": VALUES})
    file = f"{tmp_path}/bare.safetensors"
    done = run(capsys, "lookup", "id:1", "--scaled", "-m", file)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"error: {file}: there is no config that tells how the model scales its rows\n"
        "  try: leave out --scaled, or name the folder that holds config.json too\n"
    )
    done = run(capsys, "lookup", "id:1", "--scaled", "--table", "output", "-m", file)
    assert done.code == 2
    assert "--scaled is about the input table" in done.err


@pytest.mark.format(
    "Input tables",
    kind="scaled at run time, in a GGUF file",
    model="gemma-3-270m, ibm-granite/granite-3.1 GGUF (`granite.embedding_scale`)",
    does="the same, from its metadata",
)
def test_the_factor_in_a_gguf_file(tmp_path):
    table = tensor("token_embd.weight", (8, 12), 0, 0)
    for name, pairs, scale in (
        ("granite", (pair("granite.embedding_scale", F32, 12.0),), 12.0),
        ("gemma3", (), math.sqrt(8)),
        ("llama", (), None),
    ):
        head = (pair("general.architecture", STRING, name), *pairs)
        head += (pair(f"{name}.embedding_length", U32, 8),)
        (tmp_path / f"{name}.gguf").write_bytes(packed(head, (table,), data=VALUES.tobytes()))
        assert Model.open(f"{tmp_path}/{name}.gguf").config.scale == scale


@pytest.mark.format(
    "Input tables",
    kind="followed by a LayerNorm",
    model="bigscience/bloom, google-bert/bert-base-uncased",
    does="a note names it; rows are those before it",
)
@pytest.mark.parametrize(
    ("table", "norm"),
    [
        ("word_embeddings.weight", "word_embeddings_layernorm.weight"),
        ("bert.embeddings.word_embeddings.weight", "bert.embeddings.LayerNorm.weight"),
        ("embeddings.word_embeddings.weight", "embeddings.LayerNorm.gamma"),
    ],
)
def test_a_layer_norm_after_the_table_is_a_note(capsys, tmp_path, table, norm):
    folder = put(tmp_path, {table: VALUES, norm: np.ones(8, np.float32)}, {"model_type": "bert"})
    record = answer(capsys, "params", str(folder))
    assert f"at run time a LayerNorm follows the table ({norm})" in record["notes"]
    found = answer(capsys, "lookup", "w4", "-m", str(folder))
    assert found["tokens"][0]["vector"] == VALUES[4].tolist()


def test_a_table_that_no_tensor_is(tmp_path):
    with pytest.raises(SourceError, match=r"no lm_head table found in model\.saf"):
        Model.open(str(folder_model(tmp_path, VALUES))).table("lm_head")
