"""What a config claims of sizes, scales and quantization: real ones, nested ones, and GGUF's."""

import math

import pytest
from config_builders import REAL, read

from embtool.config import Config, read_config, read_gguf
from embtool.errors import FormatError


@pytest.mark.format(
    "Config",
    kind="75 real configs, from ALBERT to DeepSeek-V4",
    model="see `tests/facts/configs.jsonl`",
    does="gives vocabulary, widths, tied or not, dtype and quantization as known of each",
)
@pytest.mark.parametrize("fact", REAL, ids=lambda fact: f"{fact['model']}:{fact['file']}")
def test_every_real_config_gives_its_sizes(fact):
    config = read_config(fact["config"], fact["file"])
    expected = {key: fact[key] for key in ("vocab_size", "table_width", "hidden_size")}
    assert {key: getattr(config, key) for key in expected} == expected
    assert config.num_layers == fact["num_layers"]
    assert config.dtype == fact["dtype"]
    assert config.quantization == fact["quantization"]
    assert config.notes == ()
    if fact["tied"] is not None:
        assert config.tied is fact["tied"]
        assert config.tied_from.endswith(("tie_word_embeddings", "weight_tying"))


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("deepseek-ai/DeepSeek-V3", ""),
        ("Qwen/Qwen2.5-VL-7B-Instruct", ""),
        ("google/medgemma-27b-it", "text_config"),
        ("moonshotai/Kimi-K2.5", "text_config"),
        ("Qwen/Qwen3-VL-2B-Instruct", "text_config"),
    ],
)
def test_path_of_the_text_model(model, path):
    fact = next(f for f in REAL if f["model"] == model and f["file"] == "config.json")
    assert read_config(fact["config"], "config.json").path == path


@pytest.mark.parametrize(
    ("model", "layers"),
    [("deepseek-ai/DeepSeek-V3", 1), ("moonshotai/Kimi-K2.5", 0), ("Qwen/Qwen3.5-27B", 1)],
)
def test_layers_that_predict_further_tokens(model, layers):
    fact = next(f for f in REAL if f["model"] == model and f["file"] == "config.json")
    assert read_config(fact["config"], "config.json").mtp_layers == layers


@pytest.mark.format(
    "Config",
    kind="sizes nested under `text_config`, others under `vision_config`",
    model="google/gemma-3-4b-it, Qwen/Qwen3-VL-2B-Instruct",
    does="the text model's own come first, then the top; never the vision model's",
)
def test_text_comes_before_the_top_and_vision_never():
    config = read(
        vision_config={"vocab_size": 7, "hidden_size": 7, "tie_word_embeddings": True},
        vocab_size=32000,
        text_config={"vocab_size": 32064, "hidden_size": 4096, "tie_word_embeddings": False},
    )
    assert (config.vocab_size, config.hidden_size, config.path) == (32064, 4096, "text_config")
    assert (config.tied, config.tied_from) == (False, "text_config.tie_word_embeddings")


def test_a_text_section_without_a_vocabulary_leaves_it_to_the_top():
    config = read(vocab_size=257216, text_config={"hidden_size": 2048})
    assert (config.vocab_size, config.hidden_size) == (257216, 2048)


@pytest.mark.format(
    "Config",
    kind="`thinker_config.text_config`, and a talker with a table of its own",
    model="Qwen/Qwen2.5-Omni-7B",
    does="takes the thinker's",
)
def test_deeper_sections_and_a_talker_that_is_no_text_model():
    config = read(
        talker_config={"vocab_size": 8448, "hidden_size": 896},
        thinker_config={
            "audio_config": {"d_model": 1280},
            "text_config": {"vocab_size": 152064, "hidden_size": 3584, "dtype": "bfloat16"},
        },
    )
    assert (config.vocab_size, config.hidden_size, config.dtype) == (152064, 3584, "BF16")
    assert config.path == "thinker_config.text_config"


@pytest.mark.format(
    "Config",
    kind="sizes below another name",
    model="suno/bark (`semantic_config`)",
    does="takes the first section that has both",
)
def test_sizes_below_an_unusual_name_are_the_last_resort():
    config = read(
        model_type="bark", semantic_config={"input_vocab_size": 10048, "hidden_size": 768}
    )
    assert (config.vocab_size, config.hidden_size) == (10048, 768)
    assert config.path == "semantic_config"


@pytest.mark.format(
    "Config",
    kind="`embedding_size` and the like that are a width",
    model="albert-base-v2, facebook/opt-350m (`word_embed_proj_dim`), google/rembert",
    does="the table's width, beside the model's",
)
@pytest.mark.format(
    "Config",
    kind="`embedding_size` and the like that are a number of rows",
    model="allenai/Molmo-7B-D, state-spaces/mamba-130m (`pad_vocab_size_multiple`), Qwen/Qwen-72B",
    does="the table's rows, beside the vocabulary's size",
)
@pytest.mark.parametrize(
    ("claims", "width", "rows"),
    [
        ({"vocab_size": 30000, "hidden_size": 768, "embedding_size": 128}, 128, None),
        ({"vocab_size": 50272, "hidden_size": 1024, "word_embed_proj_dim": 512}, 512, None),
        ({"vocab_size": 250300, "hidden_size": 1152, "input_embedding_size": 256}, 256, None),
        ({"vocab_size": 30145, "emb_dim": 2048}, 2048, None),
        ({"vocab_size": 152064, "hidden_size": 3584, "embedding_size": 152064}, 3584, None),
        ({"vocab_size": 50280, "hidden_size": 2048, "embedding_size": 50304}, 2048, 50304),
        ({"vocab_size": 50277, "d_model": 768, "pad_vocab_size_multiple": 8}, 768, 50280),
        ({"vocab_size": 151851, "hidden_size": 8192, "padded_vocab_size": 152064}, 8192, 152064),
    ],
    ids=["albert", "opt", "rembert", "xlm", "molmo", "molmo-e", "mamba", "qwen1"],
)
def test_width_and_rows_of_the_table(claims, width, rows):
    config = read(**claims)
    assert (config.vocab_size, config.table_width, config.rows) == (
        claims["vocab_size"],
        width,
        rows,
    )


@pytest.mark.parametrize(
    ("claims", "scale", "whence"),
    [
        (
            {"model_type": "gemma3_text", "hidden_size": 640},
            math.sqrt(640),
            "the square root of 640",
        ),
        ({"model_type": "t5gemma", "hidden_size": 4}, 2.0, "the square root of 4"),
        (
            {"model_type": "bart", "d_model": 1024, "scale_embedding": True},
            32.0,
            "the square root of 1024",
        ),
        ({"model_type": "bart", "d_model": 1024, "scale_embedding": False}, None, None),
        ({"model_type": "granite", "embedding_multiplier": 12.0}, 12.0, "embedding_multiplier"),
        ({"model_type": "minicpm3", "scale_emb": 12}, 12.0, "scale_emb"),
        ({"model_type": "falcon_h1", "embedding_multiplier": 1}, None, None),
        ({"model_type": "t5", "d_model": 512}, None, None),
    ],
)
def test_scaling_at_run_time(claims, scale, whence):
    config = read(**claims)
    assert (config.scale, config.scale_from) == (scale, whence)


@pytest.mark.parametrize(
    ("claims", "scheme"),
    [
        ({"quantization_config": {"quant_method": "fp8"}}, "fp8"),
        ({"quantization": {"bits": 4, "group_size": 64}}, "mlx"),
        ({"quantization": {"quant_algo": "NVFP4"}}, "nvfp4"),
        ({"text_config": {"quantization_config": {"quant_method": "gptq"}}}, "gptq"),
        ({"dim": 7168, "dtype": "fp8"}, "fp8"),
        ({"quantization_config": {"quant_method": "x\x1b[31m"}}, "an unnamed scheme"),
        ({"quantization_config": {}}, None),
        ({}, None),
    ],
)
def test_quantization(claims, scheme):
    assert read(**claims).quantization == scheme


@pytest.mark.format(
    "Config",
    kind="no size at all",
    model="minishlab/potion-base-8M (Model2Vec)",
    does="the header alone tells",
)
def test_a_model2vec_config_has_no_size_in_it():
    config = read(normalize=True, embedding_dtype="int8", vocabulary_quantization=10000)
    assert config == Config("config.json", dtype="I8")


@pytest.mark.format(
    "Config",
    kind="GGUF metadata",
    model="gemma-3-270m",
    does="architecture, width, layers, and tied where no `output.weight` is stored",
)
def test_gguf_metadata():
    metadata = {
        "general.architecture": "gemma3",
        "gemma3.embedding_length": 640,
        "gemma3.block_count": 18,
        "llama.vocab_size": 7,
    }
    config = read_gguf(metadata, "a.gguf", has_output=False)
    assert (config.model_type, config.table_width, config.num_layers) == ("gemma3", 640, 18)
    assert (config.vocab_size, config.scale) == (None, math.sqrt(640))
    assert (config.tied, config.tied_from) == (True, "no output.weight in a GGUF file")
    assert read_gguf(metadata, "a.gguf", has_output=True).tied is None


def test_gguf_without_an_architecture():
    with pytest.raises(FormatError) as error:
        read_gguf({}, "a.gguf", has_output=False)
    assert error.value.message == "a.gguf has no general.architecture in its metadata"
