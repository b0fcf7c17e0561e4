"""What is kept beside the cache: never half, never stale, never foreign, never needed."""

import json
import os
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from embtool.source.derived import derived
from embtool.vocab import open_gguf_vocabulary, open_vocabulary
from embtool.vocab.sealed import CorruptError, seal, unseal

FILES = ("vocabulary.index", "vocabulary.asked", "vocabulary.own")


def tokenizer(*names):
    model = {"type": "WordLevel", "vocab": {n: i for i, n in enumerate(names)}, "unk_token": "a"}
    return json.dumps({"version": "1.0", "model": model}).encode()


def filled(key, *names):
    """A vocabulary of which everything is kept."""
    vocabulary = open_vocabulary(key, "tokenizer.json", lambda: tokenizer(*names))
    assert vocabulary.encode(names[-1]) == [len(names) - 1]
    assert vocabulary.reachable().tolist() == [True] * len(names)
    return vocabulary


def unread(key):
    return open_vocabulary(key, "tokenizer.json", lambda: pytest.fail("the file is read"))


def test_the_file_is_read_once_at_first_and_then_never():
    reads = []

    def read():
        reads.append(1)
        return tokenizer("a", "b")

    vocabulary = open_vocabulary("kept-once", "tokenizer.json", read)
    assert reads == []
    assert (vocabulary.token(1), vocabulary.encode("b"), len(reads)) == ("b", [1], 1)
    again = unread("kept-once")
    assert (again.token(1), again.encode("b"), again.word("b").ids) == ("b", [1], (1,))
    assert [derived("kept-once", name).exists() for name in FILES] == [True, True, False]


@pytest.mark.parametrize("name", FILES)
def test_every_cut_and_every_changed_byte_is_noticed(name):
    key = f"kept-cut-{name}"
    filled(key, "a", "b", "c")
    path = derived(key, name)
    whole = path.read_bytes()
    changed = [whole[:cut] for cut in (0, 1, 20, len(whole) // 2, len(whole) - 1)]
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        changed.append(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
    for content in [*changed, whole + b"x", b"\0" * len(whole), b"embvoc\0\x02" + b"\xff" * 400]:
        path.write_bytes(content)
        vocabulary = open_vocabulary(key, "tokenizer.json", lambda: tokenizer("a", "b", "c"))
        assert vocabulary.displayed() == ["a", "b", "c"]
        assert [vocabulary.encode(text) for text in "abc"] == [[0], [1], [2]]
        assert vocabulary.reachable().tolist() == [True, True, True]
    filled(key, "a", "b", "c")
    assert unread(key).encode("c") == [2]


def test_pages_that_changed_places_and_bytes_that_were_lost_are_noticed():
    whole = bytearray(seal(b"embtests", {"a": 1}, {"numbers": np.arange(5000)}))
    assert unseal(b"embtests", bytes(whole)).arrays["numbers"].tolist() == list(range(5000))
    first, second, third = (slice(4096 * k + 32, 4096 * (k + 1) + 32) for k in (1, 2, 3))
    for changes in ([(first, second), (second, first)], [(third, first)], [(first, None)]):
        changed = whole.copy()
        for to, source in changes:
            changed[to] = bytes(4096) if source is None else whole[source]
        with pytest.raises(CorruptError):
            unseal(b"embtests", bytes(changed))


def test_a_head_that_fits_its_checksum_and_says_nothing_is_no_file():
    sections = (b'{"sections": []}', b'{"sections": {"a": ["<x8", 0, 1]}}')
    for text in (b"", b"null", b"[]", b"{}", *sections):
        body = text + b" " * (-len(text) % 8)
        checksum = (sum(struct.unpack(f"<{len(body) // 8}Q", body)) + len(body)) % 2**64
        frame = struct.pack("<8sQQQ", b"embtests", 32 + len(body), checksum, len(body))
        with pytest.raises(CorruptError):
            unseal(b"embtests", frame + body)


def test_files_of_another_vocabulary_do_not_answer():
    filled("kept-one", "a", "b", "c")
    filled("kept-two", "c", "b", "a")
    for name in ("vocabulary.asked", "vocabulary.own"):
        derived("kept-two", name).write_bytes(derived("kept-one", name).read_bytes())
    other = open_vocabulary("kept-two", "tokenizer.json", lambda: tokenizer("c", "b", "a"))
    assert [other.encode(text) for text in "abc"] == [[2], [1], [0]]
    # a GGUF file and a tokenizer.json never answer for each other
    metadata = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": [b"z"]}
    gguf = open_gguf_vocabulary("kept-one", "model.gguf", lambda: metadata)
    assert gguf.displayed() == ["z"]


def test_a_line_that_was_cut_costs_no_other_line():
    filled("kept-lines", "a", "b", "c")
    path = derived("kept-lines", "vocabulary.asked")
    path.write_bytes(path.read_bytes() + b"0123456789abcdef 1")
    vocabulary = open_vocabulary("kept-lines", "tokenizer.json", lambda: tokenizer("a", "b", "c"))
    assert vocabulary.encode("b") == [1]
    assert vocabulary.encode("c") == [2]
    assert unread("kept-lines").encode("c") == [2]


def test_texts_are_not_kept_in_clear_and_long_ones_not_at_all():
    vocabulary = filled("kept-clear", "a", "a secret")
    path = derived("kept-clear", "vocabulary.asked")
    assert b"secret" not in path.read_bytes()
    before = path.stat().st_size
    assert vocabulary.encode("b" * 3000) == [0]
    assert path.stat().st_size == before


def test_a_file_of_asked_texts_that_grew_too_large_is_begun_again():
    filled("kept-large", "a", "b")
    path = derived("kept-large", "vocabulary.asked")
    path.write_bytes(b"x" * (4 << 20) + b"\n")
    vocabulary = open_vocabulary("kept-large", "tokenizer.json", lambda: tokenizer("a", "b"))
    assert vocabulary.encode("b x") == [0]
    assert path.stat().st_size < 200


def test_a_cache_that_cannot_be_written_means_slower(tmp_path, capsys, monkeypatch):
    from embtool.source import derived as module
    from embtool.vocab import kept

    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    monkeypatch.setattr(module, "_noted", False)
    monkeypatch.setattr(kept, "derived", lambda key, name: blocked / key / name)
    vocabulary = open_vocabulary("kept-no", "tokenizer.json", lambda: tokenizer("a", "b"))
    assert vocabulary.encode("b") == [1]
    assert vocabulary.reachable().tolist() == [True, True]
    assert vocabulary.reachable().tolist() == [True, True]
    assert vocabulary.word("b").ids == (1,)
    assert capsys.readouterr().err.count("note: the cache ") == 1


SCRIPT = """
import json, sys
from embtool.vocab import open_vocabulary
names = [f"w{i}" for i in range(4000)]
model = {"type": "WordLevel", "vocab": {n: i for i, n in enumerate(names)}, "unk_token": "w0"}
raw = json.dumps({"version": "1.0", "model": model}).encode()
seed = int(sys.argv[1])
for turn in range(20):
    vocabulary = open_vocabulary("kept-race", "tokenizer.json", lambda: raw)
    for i in range(seed, 4000, 211):
        assert vocabulary.encode(f"w{i}") == [i], i
        assert vocabulary.token(i) == f"w{i}"
    if turn == 10:
        assert vocabulary.reachable().all()
"""


def test_processes_that_write_at_once_never_see_half(tmp_path):
    environment = {**os.environ, "HF_HOME": str(tmp_path)}

    def run(seed):
        command = [sys.executable, "-c", SCRIPT, str(seed)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, [1, 2, 3, 1]))
    assert [result.stderr for result in results] == [""] * 4
    assert [result.returncode for result in results] == [0] * 4
    folder = next(Path(tmp_path).rglob("kept-race"))
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    lines = (folder / "vocabulary.asked").read_bytes().splitlines()
    assert all(len(line.split(b" ")) == 3 for line in lines)


KNOWN = """
import sys
from embtool.vocab import open_vocabulary
vocabulary = open_vocabulary("kept-lazy", "tokenizer.json", lambda: open(sys.argv[1], "rb").read())
assert vocabulary.word("b").ids == (1,)
print("tokenizers" in sys.modules, "json" in sys.modules)
"""


def test_a_known_word_never_imports_the_library(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(tokenizer("a", "b"))

    def run():
        command = [sys.executable, "-c", KNOWN, str(path)]
        environment = {**os.environ, "HF_HOME": str(tmp_path)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    assert run().stdout.split()[0] == "True"
    path.unlink()
    assert run().stdout.split()[0] == "False"
