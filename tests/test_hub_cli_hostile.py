"""A model made to do harm: what it names is refused, and nothing outside the cache changes."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli import run
from hub import Hub, in_process
from hub.contents import header_of
from hub.models import INDEX, INPUT, OUTPUT, Finite, config, finite, put_single, words

MODEL = "org/model"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
TABLE = ("BF16", (4, 8))


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with Hub() as hub:
        (tmp_path / "etc").mkdir()
        (tmp_path / "etc" / "passwd").write_text("root")
        in_process(hub, tmp_path / "a" / "home", monkeypatch)
        yield hub


def outside(tmp_path):
    """Every file that is not of this model's in the cache, with its bytes."""
    home = tmp_path / "a" / "home"
    ours = [home / "assets/embtool/org--model", home / "assets/embtool/derived"]
    ours += [home / "hub/models--org--model", home / "hub/.locks/models--org--model"]
    ours += [home / "hub/CACHEDIR.TAG"]
    files = (path for path in tmp_path.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files if not any(map(path.is_relative_to, ours))}


def put_sharded(hub, index, shards=None, pad=0):
    """A model whose index sends the input table anywhere; `pad` more tensors make it a long one."""
    named = {f"model.layers.{i}.weight": SHARDS[1] for i in range(pad)}
    weights = {INPUT: index} | named | {OUTPUT: SHARDS[1]}
    described = {"metadata": {}, "weight_map": weights}
    files = {
        "config.json": config(4, 8, tie_word_embeddings=False),
        "tokenizer.json": words({"w0": 0, "w1": 1}),
        INDEX: json.dumps(described).encode(),
        SHARDS[0]: finite({INPUT: TABLE}),
        SHARDS[1]: finite({OUTPUT: TABLE}),
    }
    hub.put(MODEL, {**files, **(shards or {})})


QUESTIONS = (
    ("params", MODEL),
    ("lookup", "w1", "-m", MODEL),
    ("neighbors", "w1", "-m", MODEL),
    ("download", MODEL, "--table", "both"),
    ("download", MODEL, "--shard"),
)


@pytest.mark.parametrize(
    ("name", "pad"),
    [
        ("../../etc/passwd", 0),
        ("../../etc/passwd", 20_000),
        ("/etc/passwd", 0),
        ("https://host/x.safetensors", 0),
        ("https://host/x.safetensors", 20_000),
        ("file:///etc/passwd", 0),
        ("a\\..\\..\\passwd", 0),
        ("C:\\passwd", 0),
        ("a/../../passwd", 0),
        ("", 0),
        (".", 0),
    ],
    ids=range(11),
)
def test_an_index_that_leads_out_of_the_model(hub, capsys, tmp_path, name, pad):
    put_sharded(hub, name, pad=pad)
    before = outside(tmp_path)
    for question in QUESTIONS:
        done = run(capsys, *question)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("error: ")
        assert "index" in done.err.splitlines()[0]
    assert outside(tmp_path) == before
    assert not any("passwd" in asked.path or "host" in asked.path for asked in hub.log)
    assert not any(asked.path.startswith("/repos/") for asked in hub.log)


@pytest.mark.parametrize("pad", [0, 20_000], ids=["short", "long"])
def test_a_shard_that_lacks_the_tensor_it_should_hold(hub, capsys, tmp_path, pad):
    put_sharded(hub, SHARDS[0], {SHARDS[0]: finite({"other.weight": TABLE})}, pad)
    for question in QUESTIONS:
        done = run(capsys, *question)
        assert (done.code, done.out) == (1, "")
        assert done.err.splitlines() == [
            f"error: {MODEL}: {INDEX} says that {SHARDS[0]} holds {INPUT}, but that shard does not",
            "  try: download the model again, or name a file: MODEL:FILE",
        ]


@pytest.mark.parametrize("pad", [0, 20_000], ids=["short", "long"])
def test_a_shard_that_is_not_there(hub, capsys, pad):
    put_sharded(hub, "model-00003-of-00002.safetensors", pad=pad)
    missing = "names the shard model-00003-of-00002.safetensors"
    for question in QUESTIONS[1:]:
        done = run(capsys, *question)
        assert (done.code, done.out) == (1, "")
        assert f"{MODEL}: {INDEX} {missing}" in done.err
    # The config's claims are still worth counting, with a note.
    record = json.loads(run(capsys, "params", MODEL, "-f", "json").out)
    assert record["rows"] == 4
    assert missing in record["notes"][-1]


def put_named(hub, name):
    """A model whose table has any name, which JSON can hold."""
    head, nbytes = header_of({name: TABLE})
    hub.put(
        MODEL,
        {
            "config.json": config(4, 8),
            "tokenizer.json": words({f"w{i}": i for i in range(4)}),
            "model.safetensors": Finite(head, len(head) + nbytes),
        },
    )


@pytest.mark.parametrize(
    "name",
    [
        "../../../../../etc/passwd",
        "/etc/passwd",
        "../../commits/refs.json",
        "..",
        ".",
        "x" * 400,
        "北京/weight",
        "a\nb\x1b[2J",
        "%2E%2E/%2e",
    ],
    ids=range(9),
)
def test_a_tensor_name_that_would_be_a_path(hub, capsys, tmp_path, name):
    put_named(hub, name)
    before = outside(tmp_path)
    rows = [
        json.loads(run(capsys, *question, "-m", MODEL, "--table", name, "-f", "json").out)
        for question in (("lookup", "w1"), ("neighbors", "w1"), ("lookup", "w1"))
    ]
    assert rows[0] == rows[2]
    assert rows[0]["table"] == name
    done = run(capsys, "download", MODEL, "--table", name, "-f", "json")
    stored = json.loads(done.out)["stored"][-1]
    held = run(capsys, "cache", "-f", "json")
    assert name in {piece["tensor"] for piece in json.loads(held.out)["pieces"]}
    for shown in (
        run(capsys, "cache"),
        run(capsys, "cache", "-f", "table"),
        run(capsys, "params", MODEL, "-f", "table"),
        run(capsys, "lookup", "w1", "-m", MODEL, "--table", name, "-f", "table"),
        run(capsys, "lookup", "w1", "-m", MODEL, "--table", name + "?"),
    ):
        assert "\x1b" not in shown.out + shown.err
        assert "a\nb" not in shown.out + shown.err
    assert outside(tmp_path) == before
    home = tmp_path / "a/home/assets/embtool/org--model/blobs"
    assert stored["path"].startswith(str(home))
    assert stored["path"].removeprefix(str(home)).count("/") == 2
    vector = np.array(rows[0]["tokens"][0]["vector"], np.float32)
    second = Path(stored["path"]).read_bytes()[stored["start"] + 16 :][:16]
    bits = np.frombuffer(second, "<u2").astype(np.uint32) << 16
    assert bits.tobytes() == vector.tobytes()


@pytest.mark.parametrize(
    "model",
    ["../../etc", "org/../../etc/passwd", "org/model@../../x", "org/model:../../etc/passwd"],
)
def test_a_model_name_that_would_be_a_path(hub, capsys, tmp_path, model):
    put_single(hub)
    before = outside(tmp_path)
    for question in (("params", model), ("download", model), ("lookup", "w1", "-m", model)):
        assert run(capsys, *question).code == 1
    assert run(capsys, "cache", "rm", model.partition(":")[2] or model).code == 1
    assert outside(tmp_path) == before
