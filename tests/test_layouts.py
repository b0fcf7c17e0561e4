"""Which of a repository's files are its checkpoint, and what is said of the others."""

import numpy as np
import pytest
from builders import folder_model, word_tokenizer
from cli import run
from layout_builders import (
    CONFIG,
    EMBED,
    OTHER,
    TABLE,
    notes,
    put,
    put_index,
    put_json,
    row,
    shards,
)

from embtool import Model
from embtool.errors import FormatError, SourceError


@pytest.mark.format(
    "Layouts",
    kind="shards with an index, beside `consolidated.safetensors`",
    model="Devstral-Small-2507",
    does="reads what the index names; says that the other was passed over",
)
@pytest.mark.format(
    "Layouts",
    kind="shards with an index, beside a stray `model.safetensors`",
    model="repositories with a 4-bit copy beside bf16 shards",
    does="the index wins",
)
def test_the_index_wins_and_the_rest_is_named(tmp_path):
    put_json(tmp_path, "config.json", CONFIG)
    shards(tmp_path)
    put(tmp_path, "consolidated.safetensors", {"tok_embeddings.weight": OTHER})
    put(tmp_path, "model.safetensors", {EMBED: OTHER})
    put(tmp_path, "model.fp16.safetensors", {EMBED: OTHER.astype(np.float16)})
    for part in range(3):
        (tmp_path / f"consolidated.{part:02}.pth").write_bytes(b"")
    for name in ("training_args.bin", "optimizer.pt", "adapter.bin", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    assert row(tmp_path) == [3, 4, 5]
    assert notes(tmp_path) == (
        "other checkpoints passed over: consolidated.*.pth (3 files), consolidated.safetensors, "
        "model.fp16.safetensors, model.safetensors; MODEL:FILE chooses one",
    )
    assert row(f"{tmp_path}:consolidated.safetensors") == [103, 104, 105]
    assert row(f"{tmp_path}:model.safetensors") == [103, 104, 105]
    assert notes(f"{tmp_path}:model.safetensors") == ()


@pytest.mark.format(
    "Layouts",
    kind="`model.safetensors` beside `consolidated.safetensors`",
    model="Ministral-3",
    does="reads `model.safetensors`; says what was passed over",
)
def test_model_safetensors_comes_before_other_names(tmp_path):
    put_json(tmp_path, "config.json", CONFIG)
    put(tmp_path, "model.safetensors", {EMBED: TABLE})
    for number in range(6):
        put(tmp_path, f"copy{number}.safetensors", {EMBED: OTHER})
    assert row(tmp_path) == [3, 4, 5]
    assert notes(tmp_path) == (
        "other checkpoints passed over: copy0.safetensors, copy1.safetensors, copy2.safetensors, "
        "copy3.safetensors and 2 more; MODEL:FILE chooses one",
    )


@pytest.mark.format(
    "Layouts",
    kind="one checkpoint under another name",
    model="WordLlama (`l2_supercat_256.safetensors`)",
    does="the only one there is is read",
)
@pytest.mark.parametrize("name", ["model.fp16.safetensors", "consolidated.safetensors", "x.gguf"])
def test_the_only_checkpoint_is_taken(tmp_path, name):
    put(tmp_path, name, {"tok_embeddings.weight": TABLE})
    if name.endswith(".gguf"):
        with pytest.raises(FormatError, match=r"^x\.gguf is no GGUF file"):
            row(tmp_path)
    else:
        assert row(tmp_path) == [3, 4, 5]


@pytest.mark.format(
    "Layouts",
    kind="an index of a variant",
    model="diffusers (`model.safetensors.index.fp16.json`)",
    does="reads it where it is the only one",
)
def test_a_variant_has_an_index_of_its_own(tmp_path):
    put(tmp_path, "model.fp16-00001-of-00001.safetensors", {EMBED: TABLE})
    weight_map = {EMBED: "model.fp16-00001-of-00001.safetensors"}
    put_index(tmp_path, "model.safetensors.index.fp16.json", weight_map)
    assert row(tmp_path) == [3, 4, 5]


@pytest.mark.format(
    "Layouts",
    kind="several checkpoints of equal right",
    model="repositories of `.safetensors` variants",
    does="an error that names them and how to choose",
)
def test_several_of_equal_right_are_named(tmp_path):
    for name in ("a.fp16.safetensors", "a.safetensors", "b/model.safetensors"):
        put(tmp_path, name, {EMBED: TABLE})
    with pytest.raises(SourceError) as caught:
        row(tmp_path)
    message = f"{tmp_path}: several checkpoints fit: a.fp16.safetensors, a.safetensors"
    assert caught.value.message == message
    assert caught.value.advice == f"name one: {tmp_path}:a.fp16.safetensors"


@pytest.mark.format(
    "Layouts",
    kind="an index in a subfolder",
    model="Alignment-Lab-AI/ALAI-gemma-7b (`7b/1/model.safetensors.index.json`)",
    does="found where nothing stands at the top; its shards are those beside it",
)
def test_a_checkpoint_in_a_subfolder_with_its_own_config_and_tokenizer(tmp_path):
    shards(tmp_path / "7b" / "1")
    put_json(tmp_path, "config.json", CONFIG | {"vocab_size": 9})
    put_json(tmp_path, "7b/1/config.json", CONFIG | {"hidden_size": 7})
    words = [["a", "b", "c", "d"], ["x", "y", "z", "w"]]
    for place, names in zip(("tokenizer.json", "7b/1/tokenizer.json"), words):
        (tmp_path / place).write_text(word_tokenizer(names))
    model = Model.open(str(tmp_path))
    assert model.checkpoint.file == "7b/1/model.safetensors.index.json"
    assert model.config.hidden_size == 7
    assert model.vocabulary.token(1) == "y"
    assert row(tmp_path) == [3, 4, 5]
    (tmp_path / "7b/1/config.json").unlink()
    (tmp_path / "7b/1/tokenizer.json").unlink()
    model = Model.open(f"{tmp_path}:7b/1/model.safetensors.index.json")
    assert (model.config.vocab_size, model.vocabulary.token(1)) == (9, "b")
    assert row(f"{tmp_path}:7b/1/model.safetensors.index.json") == [3, 4, 5]


@pytest.mark.format(
    "Layouts",
    kind="models in subfolders",
    model="Stable Diffusion (`text_encoder/model.safetensors`)",
    does="the one named `model.safetensors` is read, several are named; MODEL:FILE chooses",
)
def test_a_file_in_a_subfolder(tmp_path):
    put(tmp_path, "text_encoder/model.safetensors", {EMBED: TABLE})
    put(tmp_path, "unet/diffusion_pytorch_model.safetensors", {"conv.weight": OTHER})
    assert row(tmp_path) == [3, 4, 5]
    put(tmp_path, "text_encoder_2/model.safetensors", {EMBED: OTHER})
    with pytest.raises(SourceError, match=r"several checkpoints fit: text_encoder/model.saf"):
        row(tmp_path)
    assert row(f"{tmp_path}:text_encoder_2/model.safetensors") == [103, 104, 105]


@pytest.mark.format(
    "Config",
    kind="quantization described in `hf_quant_config.json` alone",
    model="nvidia/DeepSeek-V3.1-NVFP4",
    does="takes the claim from there",
)
def test_the_quantization_that_modelopt_writes_down(tmp_path):
    folder_model(tmp_path, TABLE)
    claim = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}
    put_json(tmp_path, "hf_quant_config.json", {"producer": {"name": "modelopt"}} | claim)
    assert Model.open(str(tmp_path)).config.quantization == "nvfp4"
    put_json(tmp_path, "config.json", CONFIG | {"quantization_config": {"quant_method": "fp8"}})
    assert Model.open(str(tmp_path)).config.quantization == "fp8"
    (tmp_path / "hf_quant_config.json").write_text("[]")
    put_json(tmp_path, "config.json", CONFIG)
    with pytest.raises(FormatError, match=r"hf_quant_config\.json is no JSON object"):
        _ = Model.open(str(tmp_path)).config


def test_the_command_line_says_what_was_passed_over(capsys, tmp_path):
    folder_model(tmp_path, TABLE)
    put(tmp_path, "original/consolidated.safetensors", {EMBED: OTHER})
    done = run(capsys, "params", str(tmp_path), "-f", "table")
    assert (
        "note: other checkpoints passed over: original/consolidated.safetensors; "
        "MODEL:FILE chooses one\n"
    ) in done.out
