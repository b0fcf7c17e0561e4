"""Each thing that can go wrong says in one line what failed, on what, and in another what to do."""

import json
import struct

import numpy as np
import pytest
from builders import folder_model, word_tokenizer, write_safetensors
from cli import run

WORDS = ["king", "queen", "[UNK]", "man"]


@pytest.fixture
def model(tmp_path):
    table = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
    return folder_model(tmp_path / "m", table, WORDS)


def fails(capsys, *args):
    """A command that ends with 1, says two lines, and prints no data and no traceback."""
    done = run(capsys, *args, "-q") if "params" not in args else run(capsys, *args)
    assert (done.code, done.out) == (1, "")
    first, second, *rest = done.err.splitlines()
    assert rest == []
    assert first.startswith("error: ")
    assert second.startswith("  try: ")
    return first.removeprefix("error: ")


@pytest.mark.parametrize("ref", ["/nowhere/at/all", "./gone", "~/gone-too", "gone.safetensors"])
def test_a_missing_path_is_an_error_and_never_a_request(capsys, ref):
    assert fails(capsys, "params", ref) == f"{ref}: there is no such file or folder"


def test_a_missing_file_of_a_folder(capsys, model):
    said = fails(capsys, "params", f"{model}:other.gguf")
    assert said == f"{model}: there is no file other.gguf in it"


def test_a_folder_without_a_checkpoint(capsys, tmp_path):
    said = fails(capsys, "lookup", "id:0", "-m", str(tmp_path))
    assert said == f"{tmp_path}: there is no checkpoint in it (.safetensors, .gguf or .bin)"


def test_a_file_without_a_table(capsys, tmp_path):
    path = write_safetensors(tmp_path / "m.safetensors", {"norm.weight": np.ones(2, np.float32)})
    said = fails(capsys, "lookup", "id:0", "-m", str(path))
    assert said == f"{path}: no input table found in m.safetensors; its matrices: none"


def test_an_unknown_dtype(capsys, tmp_path):
    path = tmp_path / "m.safetensors"
    entry = {"dtype": "F7", "shape": [2, 2], "data_offsets": [0, 4]}
    header = json.dumps({"model.embed_tokens.weight": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 4)
    assert "F7" in fails(capsys, "lookup", "id:0", "-m", str(path))


def test_a_malformed_header(capsys, tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(struct.pack("<Q", 4) + b"{{{{")
    assert "m.safetensors" in fails(capsys, "params", str(path))


def test_a_truncated_file_names_both_numbers(capsys, model):
    path = model / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    said = fails(capsys, "lookup", "id:0", "-m", str(model))
    assert str(len(whole)) in said.replace(",", "")
    assert str(len(whole) - 5) in said.replace(",", "")


def test_a_pointer_of_git_lfs_is_named(capsys, model):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    (model / "model.safetensors").write_text(pointer)
    assert "Git LFS pointer" in fails(capsys, "params", str(model))


def test_pickles_are_never_opened(capsys, tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    said = fails(capsys, "lookup", "id:0", "-m", str(tmp_path))
    assert "pytorch_model.bin" in said


def test_no_tokenizer_but_ids_still_work(capsys, model):
    (model / "tokenizer.json").unlink()
    said = fails(capsys, "neighbors", "king", "-m", str(model))
    assert said == f"{model}: there is no tokenizer with it, so words and texts have no ids"
    done = run(capsys, "lookup", "id:2", "-m", str(model))
    assert done.out.splitlines()[1].split("\t")[:4] == ["0", "2", "", ""]
    done = run(capsys, "neighbors", "id:2", "-k", "1", "-m", str(model))
    assert done.out.splitlines()[1].split("\t")[:2] == ["1", "3"]


def test_an_unknown_word(capsys, model):
    said = fails(capsys, "neighbors", "emperor", "-m", str(model))
    assert said == "emperor is unknown to the vocabulary: it becomes [UNK]"


def test_several_tokens_for_a_word_show_the_pieces(capsys, minilm_folder):
    done = run(capsys, "neighbors", "xyzzyq", "-m", str(minilm_folder))
    assert done.code == 1
    assert done.err.splitlines()[0] == "error: xyzzyq is 4 tokens: x|y|zzy|q"
    assert "--pool mean" in done.err.splitlines()[1]
    done = run(
        capsys, "neighbors", "xyzzyq", "--pool", "mean", "-m", str(minilm_folder), "-f", "json"
    )
    query = json.loads(done.out)["query"]
    assert (query["pool"], query["tokens"]) == ("mean", ["x", "y", "zzy", "q"])


@pytest.mark.parametrize("word", ["id:4", "id:262144", "id:" + "9" * 5000])
def test_an_id_out_of_range(capsys, model, word):
    said = fails(capsys, "neighbors", word, "-m", str(model))
    assert word[:20] in said.replace("id ", "id:")


def test_a_tokenizer_with_one_id_more_than_the_table_has_rows(capsys, model):
    tokenizer = word_tokenizer([*WORDS, "<image>"])
    (model / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
    said = fails(capsys, "lookup", "<image>", "-m", str(model))
    assert said == "id 4 (<image>) has no row: the table has 4 rows"
    record = json.loads(run(capsys, "params", str(model), "-f", "json").out)
    assert (record["rows"], record["tokens"]) == (4, 4)
    assert any("1 " in note and "4" in note for note in record["notes"]), record["notes"]


def test_of_several_words_the_good_ones_are_answered(capsys, model):
    done = run(
        capsys, "neighbors", "king", "nobody", "queen", "-k", "1", "-m", str(model), "-f", "json"
    )
    assert done.code == 1
    first, second, third = json.loads(done.out)
    assert first["query"]["text"] == "king"
    assert second == {
        "query": "nobody",
        "error": "nobody is unknown to the vocabulary: it becomes [UNK]",
    }
    assert third["query"]["text"] == "queen"
    assert done.err.count("error: ") == 1


def test_of_several_models_the_good_ones_are_answered(capsys, model):
    done = run(capsys, "params", str(model), "/nowhere", "-f", "jsonl")
    assert done.code == 1
    first, second = map(json.loads, done.out.splitlines())
    assert first["params"] == 8
    assert second == {"query": "/nowhere", "error": "/nowhere: there is no such file or folder"}


@pytest.mark.parametrize(
    "args",
    [
        ["neighbors", "king", "-k", "0"],
        ["neighbors", " king", "--form", "bare"],
        ["neighbors", "king", "--metric", "manhattan"],
        ["neighbors", "king", "-"],
        ["analogy", "king", "man"],
        ["find", "-e", "("],
        ["tokens"],
        ["tokens", "king", "--ids", "1"],
        ["tokens", "--ids", "one"],
        ["params", "--vocab-size", "10"],
        ["nonsense"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2(capsys, model, monkeypatch, args):
    monkeypatch.setenv("EMBTOOL_MODEL", str(model))
    done = run(capsys, *args)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err


def test_a_zero_row_has_no_neighbors(capsys, tmp_path):
    table = np.array([[1, 0], [0, 0], [1, 1]], np.float32)
    folder = folder_model(tmp_path / "z", table, ["a", "b", "c"])
    assert "is zero or not finite" in fails(capsys, "neighbors", "b", "-m", str(folder))
    done = run(capsys, "neighbors", "a", "-k", "9", "-m", str(folder))
    assert [line.split("\t")[1] for line in done.out.splitlines()[1:]] == ["2"]


def test_debugging_adds_the_traceback(capsys, monkeypatch):
    monkeypatch.setenv("EMBTOOL_DEBUG", "1")
    with pytest.raises(Exception, match="there is no such file"):
        run(capsys, "params", "/nowhere")
