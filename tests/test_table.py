import numpy as np
import pytest
from builders import bf16, folder_model, write_safetensors
from safetensors import safe_open

from embtool.errors import FormatError, SourceError, TokenError
from embtool.model import Model


def test_rows_and_blocks_equal_what_was_stored(tmp_path):
    values = np.random.default_rng(1).standard_normal((3001, 48), np.float32)
    folder = folder_model(tmp_path / "m", bf16(values))
    table = Model.open(str(folder)).table()
    expected = (values.view(np.uint32) & 0xFFFF0000).view(np.float32)

    assert table.shape == (3001, 48)
    assert table.dtype == "BF16"
    assert table.nbytes == 3001 * 48 * 2
    assert np.array_equal(table.rows([3000, 0, 7, 7]), expected[[3000, 0, 7, 7]])
    for parts in (1, 2, 5):
        seen = np.full_like(expected, np.nan)
        for part in table.parts(parts):
            for first, block in part:
                seen[first : first + len(block)] = block
        assert np.array_equal(seen, expected)


@pytest.mark.parametrize("row", [-1, 4, 262144])
def test_a_row_out_of_range_is_named_with_both_numbers(tmp_path, row):
    folder = folder_model(tmp_path / "m", np.ones((4, 2), np.float32))
    with pytest.raises(TokenError, match=f"id {row} is out of range: .* 4 rows"):
        Model.open(str(folder)).table().rows([row])


def test_wordllama_equals_the_reader_of_safetensors(wordllama_path):
    table = Model.open(str(wordllama_path)).table()
    with safe_open(wordllama_path, "numpy") as file:
        expected = file.get_tensor("embedding.weight").astype(np.float32)
    assert (table.tensor, table.dtype, table.shape) == ("embedding.weight", "F16", (32000, 256))
    assert np.array_equal(np.concatenate([b.copy() for _, b in table.blocks()]), expected)
    ids = [31999, 0, 12345]
    assert np.array_equal(table.rows(ids), expected[ids])


def test_minilm_has_its_word_table_not_its_position_table(minilm_folder):
    table = Model.open(str(minilm_folder)).table()
    with safe_open(minilm_folder / "model.safetensors", "numpy") as file:
        expected = file.get_tensor("embeddings.word_embeddings.weight")
    assert (table.tensor, table.dtype) == ("embeddings.word_embeddings.weight", "F32")
    assert table.shape == (30522, 384)
    assert np.array_equal(np.concatenate([b.copy() for _, b in table.blocks()]), expected)


def test_another_tensor_by_its_name(minilm_folder):
    model = Model.open(str(minilm_folder))
    table = model.table("embeddings.position_embeddings.weight")
    assert table.shape == (512, 384)
    with pytest.raises(SourceError, match="no nothing table found"):
        model.table("nothing")


def test_a_vector_is_no_table(tmp_path):
    tensors = {"model.embed_tokens.weight": np.ones((3, 2), np.float32), "norm": np.ones(2, "f4")}
    path = write_safetensors(tmp_path / "m.safetensors", tensors)
    with pytest.raises(FormatError, match=r"norm has shape \[2\], not rows x d_model"):
        Model.open(str(path)).table("norm")
