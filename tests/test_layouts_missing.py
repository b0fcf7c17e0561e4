"""Files, shards and tensors that a repository lacks: each is named."""

import pytest
from layout_builders import EMBED, HEAD, put_index, row, shards

from embtool import Model
from embtool.errors import FormatError, SourceError, UnsupportedError
from embtool.queries.counting import model_params


@pytest.mark.format(
    "Layouts",
    kind="shards without an index",
    model="partial downloads",
    does="an error that says so; a shard can be named",
)
def test_shards_without_an_index_are_said_to_be_so(tmp_path):
    shards(tmp_path)
    (tmp_path / "model.safetensors.index.json").unlink()
    with pytest.raises(SourceError) as caught:
        row(tmp_path)
    assert caught.value.message == (
        f"{tmp_path}: model-*-of-00002.safetensors (2 files) are the parts of a checkpoint "
        "without an index"
    )
    assert row(f"{tmp_path}:model-00001-of-00002.safetensors") == [3, 4, 5]


def test_a_file_that_is_not_there(tmp_path):
    shards(tmp_path)
    for name in ("model.bin", "sub/Q4_K_M", "gone.safetensors"):
        with pytest.raises(SourceError) as caught:
            row(f"{tmp_path}:{name}")
        assert caught.value.message == f"{tmp_path}: there is no file {name} in it"


@pytest.mark.format(
    "Layouts",
    kind="an index that names a shard that is not there",
    model="interrupted downloads",
    does="an error that names index and shard, where the shard holds a table; else a note",
)
def test_a_shard_that_is_not_there(tmp_path):
    shards(tmp_path)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    assert row(tmp_path) == [3, 4, 5]
    record = model_params(Model.open(str(tmp_path)))
    assert record.total_params is None
    assert record.notes == (
        "model.safetensors.index.json names the shard model-00002-of-00002.safetensors: "
        "model-00002-of-00002.safetensors cannot be read: No such file or directory",
    )
    (tmp_path / "model-00001-of-00002.safetensors").unlink()
    with pytest.raises(SourceError) as caught:
        row(tmp_path)
    assert caught.value.message == (
        f"{tmp_path}: model.safetensors.index.json names the shard "
        "model-00001-of-00002.safetensors: model-00001-of-00002.safetensors cannot be read: "
        "No such file or directory"
    )


@pytest.mark.format(
    "Layouts",
    kind="an index that names a tensor its shard lacks",
    model="Qwen3-1.7B conversions (an empty `lm_head.weight`)",
    does="an error that names both",
)
def test_a_tensor_that_its_shard_lacks(tmp_path):
    shards(tmp_path)
    weight_map = {
        EMBED: "model-00001-of-00002.safetensors",
        HEAD: "model-00002-of-00002.safetensors",
    }
    put_index(tmp_path, "model.safetensors.index.json", weight_map)
    with pytest.raises(FormatError) as caught:
        row(tmp_path)
    assert caught.value.message == (
        f"{tmp_path}: model.safetensors.index.json says that "
        "model-00002-of-00002.safetensors holds lm_head.weight, but that shard does not"
    )


def test_what_is_no_checkpoint_is_named(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(SourceError, match="there is no checkpoint in it"):
        row(tmp_path)
    (tmp_path / "weights").write_text("")
    with pytest.raises(UnsupportedError) as caught:
        row(f"{tmp_path}:weights")
    assert caught.value.message.endswith(": weights is not a kind of checkpoint that is read")
