"""A GGUF header that was parsed once is not walked again, until the file is another."""

import json
import shutil

import pytest
from cli import run

from embtool.model import Model


@pytest.fixture
def parses(monkeypatch):
    """How often a GGUF file is parsed."""
    import embtool.gguf

    counted = []
    real = embtool.gguf.parse

    def parse(buffer, file, nbytes=None):
        counted.append(file)
        return real(buffer, file, nbytes)

    monkeypatch.setattr(embtool.gguf, "parse", parse)
    return counted


def test_the_second_question_parses_nothing(capsys, gemma_path, tmp_path, parses):
    path = tmp_path / "copy.gguf"
    shutil.copy(gemma_path, path)
    first = run(capsys, "lookup", "今天", "-m", str(path), "-q")
    assert len(parses) >= 1
    parses.clear()
    assert run(capsys, "lookup", "今天", "-m", str(path), "-q") == first
    assert run(capsys, "neighbors", "id:7", "-k", "2", "-m", str(path), "-q").code == 0
    assert parses == []

    kept = Model.open(str(path)).checkpoint
    assert kept.metadata["gemma3.embedding_length"] == 640
    assert parses == []
    assert len(kept.metadata["tokenizer.ggml.tokens"]) == 262144
    assert parses == ["copy.gguf"]
    assert "nothing" not in kept.metadata


@pytest.mark.parametrize("kept", ["{", "{}", json.dumps({"tensors": [[1]]})])
def test_a_damaged_one_is_parsed_again(gemma_path, tmp_path, parses, kept):
    from embtool.source.derived import derived

    path = tmp_path / "copy.gguf"
    shutil.copy(gemma_path, path)
    model = Model.open(str(path))
    expected = model.checkpoint.tensors
    file = derived(model.source.key("copy.gguf"), "gguf-header-1.json")
    assert file.is_file()
    file.write_text(kept)
    parses.clear()
    assert Model.open(str(path)).checkpoint.tensors == expected
    assert parses == ["copy.gguf"]
    assert json.loads(file.read_text())["version"] == 3
