"""Which tensors are the tables: every model class, every real header, every known trap."""

import csv
import json
import re
from pathlib import Path

import pytest

from embtool.config import Config, read_config
from embtool.errors import FormatError
from embtool.header import TensorInfo
from embtool.tensors import find_tables, scheme, wanted_names

FACTS = Path(__file__).parent / "facts"


def lines(name):
    return (FACTS / name).read_text(encoding="utf-8").splitlines()


ROWS = list(csv.DictReader(lines("tensor_names.tsv"), delimiter="\t"))
HEADERS = [json.loads(line) for line in lines("headers.jsonl")]
CONFIGS = {
    fact["model"]: read_config(fact["config"], fact["file"])
    for fact in map(json.loads, lines("configs.jsonl"))
    if fact["file"] == "config.json"
}
# Several tables of equal right, or one whose name and shape other tensors share.
REFUSED = {
    ("bark", "shapes"): "ambiguous",
    ("bark", "names"): "ambiguous",
    ("canine", "shapes"): "ambiguous",
    ("canine", "names"): None,
    ("clvp", "names"): "ambiguous",
    ("csm", "shapes"): None,
    ("csm", "names"): None,
    ("dia", "names"): "ambiguous",
    ("neobert (remote code)", "names"): None,
}
WRAPPERS = ["", "module.", "_orig_mod.", "base_model.model.", "0.auto_model."]
# A head of this name is told by its shape alone.
VAGUE = [f"{wrapper}decoder.weight" for wrapper in WRAPPERS]


def info(name, *shape, dtype="BF16"):
    return TensorInfo(name, dtype, shape, 0, 0)


def header(**shapes):
    return {name: info(name, *shape) for name, shape in shapes.items()}


def shape_of(text):
    return tuple(int(n) for n in text.split("x")) if text else None


def listed(cell):
    return [name for name in cell.split(";") if name]


def cases(row, wrapper):
    """(names -> shapes, input, output) for each name that a checkpoint may give the tables."""
    shape = shape_of(row["input_shape"]) or (30000, 96)
    other = shape_of(row["output_shape"]) or shape
    rest = {
        "model.layers.0.self_attn.q_proj.weight": (shape[1], shape[1]),
        "encoder.layer.0.attention.output.dense.weight": (shape[1], shape[1]),
        "model.norm.weight": (shape[1],),
    }
    for match in re.finditer(r"([\w.]+)\[(\d+)x(\d+)\]", row["others"]):
        rest[match[1]] = (int(match[2]), int(match[3]))
    heads = [*([row["output"]] if row["output"] else []), *listed(row["other_outputs"]), None]
    for table in [row["input"], *listed(row["other_inputs"])]:
        for head in heads:
            if head == "model.decoder.embed_tokens.weight" and table != row["input"]:
                continue
            shapes = {wrapper + name: value for name, value in rest.items()}
            shapes[wrapper + table] = shape
            if head:
                shapes[wrapper + head] = other
            # Without a head, a decoder's own table is the output.
            decoder = f"{wrapper}model.decoder.embed_tokens.weight"
            own = decoder if table == "model.encoder.embed_tokens.weight" else None
            yield shapes, wrapper + table, wrapper + head if head else shapes.get(own) and own
        if row["same"]:
            yield shapes | {wrapper + n: shape for n in listed(row["same"])}, wrapper + table, ...


@pytest.mark.format(
    "Names",
    kind="every model type that names a table, with and without prefixes, old names and new",
    model="384 model classes, see `tests/facts/tensor_names.tsv`",
    does="finds that table and no other",
)
@pytest.mark.parametrize("known", ["shapes", "names"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model_type']}-{row['class']}")
def test_every_model_class_gives_its_own_table(row, known):
    refused = REFUSED.get((row["model_type"], known), "no")
    wrappers = WRAPPERS if known == "shapes" else WRAPPERS[:1]
    for shapes, table, head in (case for each in wrappers for case in cases(row, each)):
        tensors = {n: info(n, *s) if known == "shapes" else None for n, s in shapes.items()}
        config = config_of(row, *shapes[table])
        if refused == "ambiguous":
            with pytest.raises(FormatError, match="tensors could be the input table: "):
                find_tables(tensors, config)
            continue
        found = find_tables(tensors, config)
        assert found.input == (None if refused is None else table)
        if head is not ... and (known == "shapes" or head not in VAGUE):
            assert found.output == head


def config_of(row, rows, width):
    hidden = shape_of(row["output_shape"])
    return Config(
        "config.json",
        vocab_size=rows,
        table_width=width,
        hidden_size=hidden[1] if hidden else width,
        num_layers=4,
    )


@pytest.mark.format(
    "Names",
    kind="every header and index of a list of real ones",
    model="see `tests/facts/headers.jsonl`",
    does="finds its tables and no other",
)
@pytest.mark.parametrize("fact", HEADERS, ids=lambda fact: fact["source"].split(" ")[0][-50:])
@pytest.mark.parametrize("configured", [True, False])
def test_every_real_header_gives_its_own_tables(fact, configured):
    tensors = {
        name: value and info(name, *value[1], dtype=value[0])
        for name, value in fact["tensors"].items()
    }
    found = find_tables(tensors, CONFIGS.get(fact["model"]) if configured else None)
    assert (found.input, found.output) == (fact["input"], fact["output"])


@pytest.mark.format(
    "Names",
    kind="copies of the table in layers that predict further tokens",
    model="deepseek-ai/DeepSeek-V3 (layer 61)",
    does="passed over, and named",
)
def test_copies_for_further_tokens_are_passed_over():
    tensors = header(
        **{
            "model.embed_tokens.weight": (129280, 7168),
            "model.layers.61.embed_tokens.weight": (129280, 7168),
            "model.layers.61.shared_head.head.weight": (129280, 7168),
            "lm_head.weight": (129280, 7168),
            "mtp.embed_tokens.weight": (129280, 7168),
        }
    )
    found = find_tables(tensors, CONFIGS["deepseek-ai/DeepSeek-V3"])
    assert (found.input, found.output) == ("model.embed_tokens.weight", "lm_head.weight")
    assert [(other.tensor, other.reason) for other in found.passed_over] == [
        ("model.layers.61.embed_tokens.weight", "is a copy in layer 61, past the model's 61"),
        ("model.layers.61.shared_head.head.weight", "is a copy in layer 61, past the model's 61"),
        ("mtp.embed_tokens.weight", "belongs to the layers that predict further tokens"),
    ]


@pytest.mark.format(
    "Names",
    kind="tables for each layer, for pictures and for sound",
    model="google/gemma-3n-E4B (`embed_tokens_per_layer`, 4.4 times as large)",
    does="passed over, and named",
)
def test_per_layer_vision_and_audio_tables_are_passed_over():
    tensors = header(
        **{
            "model.language_model.embed_tokens_per_layer.weight": (262144, 8960),
            "model.embed_vision.embedding.weight": (128, 2048),
            "model.embed_audio.embedding.weight": (128, 1536),
            "model.vision_tower.embeddings.position_embedding.weight": (256, 1152),
            "model.language_model.embed_tokens.weight": (262400, 2048),
        }
    )
    found = find_tables(tensors, None)
    assert (found.input, found.output) == ("model.language_model.embed_tokens.weight", None)
    assert [(other.tensor, other.reason) for other in found.passed_over] == [
        (
            "model.language_model.embed_tokens_per_layer.weight",
            "holds numbers for each layer, not the model's width",
        ),
        ("model.embed_vision.embedding.weight", "belongs to another part (vision)"),
        ("model.embed_audio.embedding.weight", "belongs to another part (audio)"),
    ]


@pytest.mark.parametrize("name", ["token_embd.weight", "per_layer_token_embd.weight"])
def test_gguf_names(name):
    tensors = header(**{name: (262144, 640), "output.weight": (262144, 640)})
    found = find_tables(tensors, None)
    if name == "token_embd.weight":
        assert (found.input, found.output) == ("token_embd.weight", "output.weight")
    else:
        assert found.input is None


@pytest.mark.parametrize(
    ("names", "table", "extra"),
    [
        (
            {
                "model.transformer.wte.embedding": (152064, 3584),
                "model.transformer.wte.new_embedding": (128, 3584),
            },
            "model.transformer.wte.embedding",
            "model.transformer.wte.new_embedding",
        ),
        (
            {
                "model.embed_tokens.weight": (32000, 4096),
                "model.embed_tokens.additional_embedding.weight": (2, 4096),
            },
            "model.embed_tokens.weight",
            "model.embed_tokens.additional_embedding.weight",
        ),
    ],
    ids=["molmo", "idefics"],
)
def test_a_vocabulary_split_over_two_parameters(names, table, extra):
    found = find_tables(header(**names), None)
    assert (found.input, found.extra) == (table, extra)


@pytest.mark.parametrize("head", ["lm_head.weight", "cls.predictions.decoder.weight"])
def test_only_the_head_is_stored(head):
    tensors = header(**{head: (32000, 576), "model.layers.0.mlp.up.weight": (1536, 576)})
    found = find_tables(tensors, Config("c", vocab_size=32000, table_width=576))
    assert (found.input, found.output, found.only_head) == (head, head, True)


def test_only_the_head_of_an_untied_model_is_no_table():
    tensors = header(**{"lm_head.weight": (32000, 576)})
    found = find_tables(tensors, Config("c", vocab_size=32000, table_width=576, tied=False))
    assert (found.input, found.only_head) == (None, False)


def test_tables_of_different_heights():
    tensors = header(
        **{
            "language_model.model.embed_tokens.weight": (128264, 8192),
            "language_model.lm_head.weight": (128256, 8192),
        }
    )
    found = find_tables(tensors, CONFIGS["meta-llama/Llama-3.2-90B-Vision-Instruct"])
    assert (found.input, found.output) == tuple(tensors)


@pytest.mark.format(
    "Names",
    kind="a head that is no vocabulary",
    model="OpenAssistant/oasst-rm-2.1-pythia-1.4b",
    does="no output table",
)
def test_a_reward_head_is_no_output_table():
    tensors = header(**{"model.embed_tokens.weight": (32000, 64), "lm_head.weight": (1, 64)})
    found = find_tables(tensors, None)
    assert (found.input, found.output) == ("model.embed_tokens.weight", None)


@pytest.mark.parametrize("name", ["output.weight", "decoder.weight", "head.weight"])
@pytest.mark.parametrize(("shape", "fits"), [((32000, 64), True), ((64, 64), False)])
def test_a_vague_head_counts_only_where_its_shape_fits(name, shape, fits):
    tensors = header(**{"model.embed_tokens.weight": (32000, 64), name: shape})
    assert find_tables(tensors, None).output == (name if fits else None)


@pytest.mark.format(
    "Names",
    kind="encoder and decoder with a table each",
    model="facebook/wmt19-en-de (FSMT)",
    does="the encoder's is the input, the decoder's the output",
)
def test_encoder_and_decoder_with_a_table_each():
    tensors = header(
        **{
            "model.decoder.embed_tokens.weight": (42024, 64),
            "model.encoder.embed_tokens.weight": (42024, 64),
        }
    )
    found = find_tables(tensors, None)
    assert found.input == "model.encoder.embed_tokens.weight"
    assert found.output == "model.decoder.embed_tokens.weight"


@pytest.mark.format(
    "Names",
    kind="one table under three names",
    model="google-t5/t5-small",
    does="`shared`; the copies are named",
)
def test_the_shared_table_comes_before_its_copies():
    names = ["decoder.embed_tokens", "encoder.embed_tokens", "shared"]
    found = find_tables(header(**{f"{name}.weight": (32128, 64) for name in names}), None)
    assert (found.input, found.output) == ("shared.weight", None)
    assert [other.reason for other in found.passed_over] == ["is stored beside shared.weight"] * 2


@pytest.mark.format(
    "Names",
    kind="several tables of equal right",
    model="checkpoints of two models in one",
    does="an error that lists them, unless the config decides",
)
def test_two_tables_of_equal_right_are_an_error_until_the_config_decides():
    tensors = header(**{"a.embed_tokens.weight": (50, 8), "b.embed_tokens.weight": (60, 8)})
    with pytest.raises(FormatError) as error:
        find_tables(tensors, None)
    assert error.value.message == (
        "2 tensors could be the input table: a.embed_tokens.weight [50, 8], "
        "b.embed_tokens.weight [60, 8]"
    )
    assert error.value.advice == "name one of them with --table TENSOR"
    config = Config("c", vocab_size=60, table_width=8)
    assert find_tables(tensors, config).input == "b.embed_tokens.weight"


def test_the_path_of_the_config_decides_between_equals():
    names = ["semantic", "coarse_acoustics"]
    tensors = header(**{f"{name}.input_embeds_layer.weight": (10048, 768) for name in names})
    config = Config("c", path="semantic_config", vocab_size=10048, table_width=768)
    assert find_tables(tensors, config).input == "semantic.input_embeds_layer.weight"


def test_the_shape_finds_a_table_of_an_unknown_name():
    tensors = header(**{"lexicon.weight": (500, 16), "mixer.weight": (500, 17)})
    assert find_tables(tensors, None).input is None
    config = Config("c", vocab_size=500, table_width=16)
    assert find_tables(tensors, config).input == "lexicon.weight"


@pytest.mark.format(
    "Names",
    kind="a name that nobody knows",
    model="one matrix in a file",
    does="the only matrix is the table",
)
def test_the_only_matrix_of_a_file_is_its_table():
    tensors = header(**{"vectors": (500, 16), "bias": (16,)})
    assert find_tables(tensors, None).input == "vectors"


@pytest.mark.parametrize("name", ["position.weight", "model.layers.0.weight", "lm_head.weight"])
def test_the_only_matrix_is_no_table_if_it_stands_elsewhere(name):
    tensors = header(**{name: (500, 16)})
    found = find_tables(tensors, Config("c", vocab_size=None, tied=False))
    assert found.input is None
    assert [other.tensor for other in found.passed_over] == [name]


def test_nothing_at_all():
    found = find_tables({}, None)
    assert (found.input, found.output, found.extra, found.norm) == (None, None, None, None)


def test_the_norm_after_the_table():
    tensors = header(
        **{"word_embeddings.weight": (50, 8), "word_embeddings_layernorm.weight": (8,)}
    )
    assert find_tables(tensors, None).norm == "word_embeddings_layernorm.weight"


@pytest.mark.parametrize(
    ("table", "beside", "expected"),
    [
        ("a.embed_tokens.weight", ["a.embed_tokens.scales", "a.embed_tokens.biases"], "mlx"),
        ("a.embed_tokens.weight_packed", ["a.embed_tokens.weight_scale"], "compressed-tensors"),
        ("a.embed_tokens.qweight", ["a.embed_tokens.qzeros", "a.embed_tokens.scales"], "gptq"),
        ("a.embed_tokens.weight", ["a.embed_tokens.weight.absmax"], "bitsandbytes"),
        ("a.embed_tokens.weight", ["a.embed_tokens.weight_scale"], "scaled"),
        ("a.embed_tokens.weight", ["b.embed_tokens.scales"], None),
    ],
)
def test_packed_tables_are_found_and_named(table, beside, expected):
    tensors = dict.fromkeys([table, *beside])
    assert scheme(table, tensors) == expected
    found = find_tables(tensors, None)
    assert (found.input, found.packed) == (table, expected)


def test_a_packed_table_is_narrower_than_the_config_says():
    tensors = {
        "model.embed_tokens.weight": info("model.embed_tokens.weight", 151936, 640, dtype="U32"),
        "model.embed_tokens.scales": info("model.embed_tokens.scales", 151936, 80),
        "lm_head.weight": info("lm_head.weight", 151936, 640, dtype="U32"),
        "lm_head.scales": info("lm_head.scales", 151936, 80),
    }
    found = find_tables(tensors, CONFIGS["lmstudio-community/Qwen3-14B-MLX-4bit"])
    assert (found.input, found.output) == ("model.embed_tokens.weight", "lm_head.weight")


@pytest.mark.parametrize("fact", HEADERS, ids=lambda fact: fact["source"].split(" ")[0][-50:])
def test_wanted_names_hold_those_of_the_sharded_models(fact):
    wanted = wanted_names(CONFIGS.get(fact["model"]))
    assert fact["output"] is None or fact["output"] in wanted.output
    assert fact["input"] in wanted.input or not fact["input"].endswith(".weight")


def test_wanted_names_of_a_nested_model_come_first():
    nested = wanted_names(CONFIGS["google/medgemma-27b-it"])
    assert nested.input[0] == "model.language_model.embed_tokens.weight"
    assert wanted_names(None).input[0] == "model.embed_tokens.weight"


def test_position_ids_are_no_matrix_of_numbers():
    tensors = {"embeddings.ids": info("embeddings.ids", 1, 512, dtype="I64")}
    assert find_tables(tensors, None).input is None


def test_a_header_full_of_candidates_takes_no_long_time():
    names = [f"m{k}.embed_tokens.weight" for k in range(20_000)]
    names += [f"model.layers.{'9' * 5000}.embed_tokens.weight"]
    with pytest.raises(FormatError, match="tensors could be the input table"):
        find_tables(dict.fromkeys(names), Config("c", num_layers=3))
