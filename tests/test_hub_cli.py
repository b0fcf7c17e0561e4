"""What commands cost on a model of the Hub, and that every number is the file's own."""

import json

import numpy as np
import pytest
from cli import run
from hub import Hub, in_process
from hub.models import INPUT, OUTPUT, SINGLE, put_deepseek, put_single, rows_of, words

from embtool.source import hub as hub_source

TEXT = "今天西安的天气怎么样"
IDS = [5237, 23872, 301, 16652, 19602]
DEEPSEEK = "deepseek-ai/DeepSeek-V3"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with Hub() as hub:
        in_process(hub, tmp_path / "home", monkeypatch)
        yield hub


@pytest.fixture
def ask(hub, capsys):
    """Run a command that must succeed; the log is of this command alone."""

    def ask(*args):
        hub.log.clear()
        done = run(capsys, *args)
        assert done.code == 0, done.err
        return done

    return ask


def matrix(ask, path, *args):
    """The rows that `lookup` saves."""
    ask("lookup", *args, "-o", str(path))
    return np.load(path)


def test_params_of_a_one_file_model(hub, ask):
    put_single(hub, rows=262_144, width=640, header_nbytes=20_000, total_params=167_797_760)
    record = json.loads(ask("params", "org/model", "-f", "json").out)
    assert (len(hub.requests()), hub.sent() <= 70_000) == (7, True)
    assert (record["rows"], record["d_model"], record["params"]) == (262_144, 640, 167_772_160)
    assert (record["source"], record["tied"]) == ("hub", True)
    assert record["total_params"] == 167_797_760
    assert record["tables"][0]["stored_bytes"] == 335_544_320
    assert ask("params", "org/model", "-f", "json").out == json.dumps(record) + "\n"
    assert (len(hub.requests()), hub.sent()) == (1, 0)


def test_params_and_lookup_of_163_shards(hub, ask, tmp_path, deepseek_tokenizer):
    shards = put_deepseek(hub, deepseek_tokenizer)
    record = json.loads(ask("params", DEEPSEEK, "-f", "json").out)
    assert len(hub.requests()) <= 22
    assert hub.sent() <= 600_000
    tables = [(table["tensor"], table["file"]) for table in record["tables"]]
    assert tables == [
        (INPUT, "model-00001-of-000163.safetensors"),
        (OUTPUT, "model-00160-of-000163.safetensors"),
    ]
    assert (record["tied"], record["total_params"]) == (False, 684_531_386_000)
    assert (record["tokens"], record["memory"]["bf16"]) == (128_815, 1_853_358_080)
    assert any("sampled" in note for note in record["notes"])

    found = matrix(ask, tmp_path / "a.npy", TEXT, "-m", DEEPSEEK)
    assert (len(hub.requests()), hub.sent()) == (2 + 5, 5 * 14_336)
    table = shards["model-00001-of-000163.safetensors"]
    assert found.tobytes() == rows_of(table, 129_280, 7168, IDS).tobytes()


def test_a_tensor_in_the_middle_of_a_long_index_is_found(hub, ask):
    put_deepseek(hub, words({"w": 7}))
    copy = "model.layers.61.embed_tokens.weight"
    done = ask("lookup", "id:7", "-m", DEEPSEEK, "--table", copy, "-f", "json")
    assert json.loads(done.out)["table"] == copy
    told = done.err.splitlines()[0]
    assert told.startswith(
        f"note: fetching model.safetensors.index.json of {DEEPSEEK}, all of its 9,"
    )
    again = ask("lookup", "id:7", "-m", DEEPSEEK, "--table", copy, "-f", "json")
    assert (again.out, hub.sent()) == (done.out, 0)


def test_rows_cost_their_own_bytes_once(hub, ask, tmp_path, deepseek_tokenizer):
    content = put_single(hub, rows=262_144, width=640, tokenizer=deepseek_tokenizer)
    ask("params", "org/model")

    found = matrix(ask, tmp_path / "a.npy", TEXT, "-m", "org/model")
    assert (len(hub.requests()), hub.sent()) == (2 + 5, 5 * 1280)
    assert found.tobytes() == rows_of(content, 262_144, 640, IDS).tobytes()
    assert matrix(ask, tmp_path / "b.npy", TEXT, "-m", "org/model").tobytes() == found.tobytes()
    assert (len(hub.requests()), hub.sent()) == (1, 0)

    found = matrix(ask, tmp_path / "c.npy", "北京电脑", "-m", "org/model")
    assert (len(hub.requests()), hub.sent()) == (4, 2 * 1280)
    assert found.tobytes() == rows_of(content, 262_144, 640, [6127, 15219]).tobytes()


@pytest.mark.slow
def test_a_table_of_131_mb_in_a_shard_of_299_mb(hub, ask):
    table = 51_200 * 2560
    every = words({f"w{i}": i for i in range(51_200)})
    content = put_single(hub, rows=51_200, width=1280, before=65_625, tokenizer=every)
    assert (table, len(content)) == (131_072_000, 299_072_200)
    done = ask("neighbors", "w7", "-m", "org/model", "-f", "json", "-k", "3")
    assert len(hub.requests()) <= 28
    assert hub.sent() <= 1.001 * table
    assert done.err.startswith(
        f"note: fetching {INPUT} of org/model: 131,072,000 bytes; "
        "the other 168,000,200 bytes of model.safetensors stay there\n0% of 131,072,000 bytes\n"
    )
    rows = rows_of(content, 51_200, 1280, range(51_200))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    scores = unit @ unit[7]
    best = [int(i) for i in np.argsort(-scores) if i != 7][:3]
    assert [near["id"] for near in json.loads(done.out)["neighbors"]] == best
    again = ask("neighbors", "w7", "-m", "org/model", "-f", "json", "-k", "3")
    assert (again.out, again.err, len(hub.requests()), hub.sent()) == (done.out, "", 1, 0)


def test_headers_of_any_length(hub, ask, tmp_path):
    for nbytes in (*range(99_990, 100_009), 3_000_000):
        model = f"org/model-{nbytes}"
        content = put_single(hub, model, rows=50, width=8, header_nbytes=nbytes)
        assert content[0:8] == nbytes.to_bytes(8, "little")
        found = matrix(ask, tmp_path / "a.npy", "w0 w49 w13", "-m", model)
        assert found.tobytes() == rows_of(content, 50, 8, [0, 49, 13]).tobytes(), nbytes
        assert hub.sent() <= nbytes + 70_000


def near(ask, word="w1"):
    return json.loads(ask("neighbors", word, "-m", "org/model", "-f", "json").out)["neighbors"]


def test_what_is_here_is_looked_for_in_order(hub, ask, tmp_path):
    """The whole shard, the slice, the kept rows, and only then the network."""
    content = put_single(hub)
    saved = tmp_path / "a.npy"
    right = matrix(ask, saved, "w3 w500", "-m", "org/model")
    assert right.tobytes() == rows_of(content, 1000, 64, [3, 500]).tobytes()
    (rows,) = tmp_path.rglob("*.rows")
    kept = rows.read_bytes()

    answer = near(ask)
    assert hub.sent() == 128_000 + 128
    (slice_,) = tmp_path.rglob(f"{INPUT}.safetensors")
    assert not rows.exists()
    # Rows that lie, with a crc that fits: whoever looks at them first is found out.
    stored = content[len(content) - 128_000 + 3 * 128 :][:128]
    assert stored in kept
    rows.write_bytes(kept.replace(stored, bytes(128)))
    assert matrix(ask, saved, "w3 w500", "-m", "org/model").tobytes() == right.tobytes()
    assert hub.sent() == 0

    ask("download", "org/model", "--shard")
    slice_.write_bytes(slice_.read_bytes()[:-128_000] + bytes(128_000))
    assert near(ask) == answer
    assert matrix(ask, saved, "w3 w500", "-m", "org/model").tobytes() == right.tobytes()
    assert (len(hub.requests()), hub.sent()) == (1, 0)


def test_very_many_scattered_rows_are_a_reason_to_fetch(hub, ask, tmp_path, monkeypatch):
    scattered = {f"w{i}": 97 * i for i in range(300)}
    content = put_single(hub, rows=30_000, width=64, tokenizer=words(scattered))
    some, many = (" ".join(list(scattered)[:count]) for count in (40, 300))
    found = matrix(ask, tmp_path / "a.npy", some, "-m", "org/model")
    assert len(hub.bodies()) == 1 + 40
    assert found.tobytes() == rows_of(content, 30_000, 64, range(0, 97 * 40, 97)).tobytes()

    done = ask("lookup", many, "-m", "org/model", "-o", str(tmp_path / "a.npy"))
    assert done.err.startswith(f"note: fetching {INPUT} of org/model: 3,840,000 bytes; ")
    assert len(hub.bodies()) == 1
    expected = rows_of(content, 30_000, 64, range(0, 97 * 300, 97))
    assert np.load(tmp_path / "a.npy").tobytes() == expected.tobytes()


def test_many_rows_of_a_large_table_are_still_asked_for_one_by_one(hub, ask, tmp_path):
    scattered = {f"w{i}": 970 * i for i in range(270)}
    content = put_single(hub, rows=262_144, width=640, tokenizer=words(scattered))
    assert hub_source._MANY < 270 < len(content) / hub_source._RANGE
    found = matrix(ask, tmp_path / "a.npy", " ".join(scattered), "-m", "org/model")
    assert hub.sent() < 1_000_000
    assert found.tobytes() == rows_of(content, 262_144, 640, scattered.values()).tobytes()


def test_near_duplicates_of_a_question_cost_nothing_more(hub, ask):
    put_single(hub)
    first = ask("similarity", "w1", "w2", "w3", "-m", "org/model", "-f", "json").out
    assert hub.sent() <= 70_000
    assert ask("similarity", "w1", "w2", "w3", "-m", "org/model", "-f", "json").out == first
    assert (len(hub.requests()), hub.sent()) == (1, 0)


def test_a_commit_to_the_readme_refetches_nothing(hub, ask, tmp_path):
    content = put_single(hub)
    right = matrix(ask, tmp_path / "a.npy", "w3 w500", "-m", "org/model")
    near(ask)
    (repo,) = hub.repos.values()
    files = {name: file.content for name, file in repo.commits[repo.refs["main"]].items()}
    small = {n: c[0 : len(c)] if n != SINGLE else content for n, c in files.items()}
    hub.put("org/model", {**small, "README.md": b"new"})
    found = matrix(ask, tmp_path / "a.npy", "w3 w500", "-m", "org/model")
    assert found.tobytes() == right.tobytes()
    assert [asked.origin for asked in hub.bodies("cdn")] == []
