"""Models with a tokenizer in other files than tokenizer.json, in commands."""

import base64
import json
import shutil

import numpy as np
import pytest
from builders import word_tokenizer, write_safetensors
from cli import run
from conftest import package_file

from embtool import Model

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "king", "##s", "queen"]
TABLE = np.random.default_rng(4).standard_normal((300, 4)).astype(np.float32)
RANKS = b"".join(b"%s %d\n" % (base64.b64encode(bytes([i])), i) for i in range(256))


@pytest.fixture
def folder(tmp_path):
    """A model without any tokenizer."""
    write_safetensors(tmp_path / "model.safetensors", {"embeddings.word_embeddings.weight": TABLE})
    config = {"model_type": "bert", "vocab_size": 300, "hidden_size": 4}
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


def put(folder, name, content):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


def word_list(*pieces):
    return "\n".join(pieces).encode()


def test_minilm_answers_alike_with_either_file(minilm_folder, tmp_path, capsys):
    for name in ("config.json", "vocab.txt", "tokenizer_config.json"):
        shutil.copy(minilm_folder / name, tmp_path / name)
    (tmp_path / "model.safetensors").symlink_to(minilm_folder / "model.safetensors")
    asked = ["neighbors", "king", "-k", "5", "--format", "tsv", "-m"]
    other = run(capsys, *asked, str(tmp_path))
    own = run(capsys, *asked, str(minilm_folder))
    assert (other.code, other.out) == (0, own.out)
    assert "queen" in other.out


def test_tokenizer_json_wins_always(folder):
    put(folder, "vocab.txt", word_list(*PIECES))
    assert Model.open(str(folder)).vocabulary.token(5) == "king"
    (folder / "tokenizer.json").write_text(word_tokenizer(["a", "b"]))
    assert Model.open(str(folder)).vocabulary.token(1) == "b"


def test_the_order_of_the_others(folder):
    put(folder, "vocab.txt", word_list(*PIECES))
    put(folder, "vocab.json", {"x": 0})
    # without merges.txt it holds no tokenizer
    assert Model.open(str(folder)).vocabulary.kind == "wordpiece"
    put(folder, "merges.txt", b"#version: 0.2\n")
    assert Model.open(str(folder)).vocabulary.token(0) == "x"
    put(folder, "tokenizer.model", b"\n\x05\n\x03one\n\x05\n\x03two")
    assert Model.open(str(folder)).vocabulary.token(1) == "two"


def test_ranks_of_any_name_and_a_changed_companion(folder):
    put(folder, "some.tiktoken", RANKS)
    put(folder, "config.json", {"model_type": "qwen", "vocab_size": 300, "hidden_size": 4})
    vocabulary = Model.open(str(folder)).vocabulary
    assert (vocabulary.encode("ab"), vocabulary.size) == ([97, 98], 464)
    decoder = {"256": {"content": "<x>", "special": True}}
    put(folder, "tokenizer_config.json", {"added_tokens_decoder": decoder})
    vocabulary = Model.open(str(folder)).vocabulary
    assert (vocabulary.encode("a<x>"), vocabulary.size) == ([97, 256], 257)


def test_another_tokenizer_is_named_by_its_file_or_folder(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    put(other, "vocab.txt", word_list(*PIECES))
    for ref in (other, other / "vocab.txt"):
        vocabulary = Model.open(str(folder), tokenizer=str(ref)).vocabulary
        assert vocabulary.encode("kings") == [5, 6]
    path = package_file("mistral_common", "data/tokenizer.model.v1")
    shutil.copy(path, other / "tokenizer.model")
    vocabulary = Model.open(str(folder), tokenizer=str(other / "tokenizer.model")).vocabulary
    assert vocabulary.word("king").tokens == (" king",)


def test_what_cannot_be_read_is_said_and_ids_work(folder, capsys):
    put(folder, "vocab.txt", word_list("king", "queen"))
    put(folder, "tokenizer_config.json", {"tokenizer_class": "BertJapaneseTokenizer"})
    asked = ["similarity", "-m", str(folder)]
    done = run(capsys, *asked, "king", "queen")
    assert done.code == 1
    assert done.err == (
        f"error: {folder}: vocab.txt belongs to a tokenizer bertjapanese, whose rules embtool does "
        "not know\n  try: name one with --tokenizer FILE or MODEL, or ask for rows as id:NUMBER\n"
    )
    assert run(capsys, *asked, "id:1", "id:2").code == 0
