"""`download` of a model whose tokenizer is no tokenizer.json: every file that it is read from."""

import json
from pathlib import Path

import pytest
from cli import run
from hub import Hub, in_process
from hub.contents import header_of
from hub.models import INPUT, SINGLE, Finite, config

MODEL = "org/model"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "king", "queen"]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with Hub() as hub:
        in_process(hub, tmp_path / "home", monkeypatch)
        yield hub


def put(hub, files):
    head, nbytes = header_of({INPUT: ("BF16", (7, 8))})
    content = Finite(head, len(head) + nbytes)
    hub.put(MODEL, {"config.json": config(7, 8), SINGLE: content, **files})


def test_a_word_list_comes_with_its_settings_and_is_read_offline(hub, capsys):
    files = {
        "vocab.txt": "\n".join(WORDS).encode(),
        "tokenizer_config.json": b'{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}',
        "special_tokens_map.json": b'{"unk_token": "[UNK]"}',
    }
    put(hub, {**files, "README.md": b"not asked for"})
    done = run(capsys, "download", MODEL, "-f", "json")
    assert done.code == 0, done.err
    stored = json.loads(done.out)["stored"]
    assert [(one["role"], one["name"]) for one in stored] == [
        ("config", "config.json"),
        ("tokenizer", "vocab.txt"),
        ("tokenizer", "tokenizer_config.json"),
        ("tokenizer", "special_tokens_map.json"),
        ("input", INPUT),
    ]
    for one in stored[1:-1]:
        assert Path(one["path"]).read_bytes() == files[one["name"]]
    hub.log.clear()
    found = run(capsys, "tokens", "King queen", "-m", MODEL, "--offline", "-f", "json")
    assert found.code == 0, found.err
    assert [token["id"] for token in json.loads(found.out)["tokens"]] == [5, 6]
    assert not hub.log


def test_a_model_without_a_tokenizer_is_brought_all_the_same(hub, capsys):
    put(hub, {})
    done = run(capsys, "download", MODEL, "-f", "json")
    assert done.code == 0, done.err
    assert [one["role"] for one in json.loads(done.out)["stored"]] == ["config", "input"]
