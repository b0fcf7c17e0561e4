"""Every known trap: what is passed over, tables of equal right or of no known name, packed ones."""

import pytest
from tensor_facts import CONFIGS, header, info

from embtool.config import Config
from embtool.errors import FormatError
from embtool.tensors import find_tables, scheme


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


def test_position_ids_are_no_matrix_of_numbers():
    tensors = {"embeddings.ids": info("embeddings.ids", 1, 512, dtype="I64")}
    assert find_tables(tensors, None).input is None


def test_a_header_full_of_candidates_takes_no_long_time():
    names = [f"m{k}.embed_tokens.weight" for k in range(20_000)]
    names += [f"model.layers.{'9' * 5000}.embed_tokens.weight"]
    with pytest.raises(FormatError, match="tensors could be the input table"):
        find_tables(dict.fromkeys(names), Config("c", num_layers=3))
