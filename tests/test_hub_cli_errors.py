"""What the Hub refuses, lacks or cannot answer: one line that says what, one what to do, and 1."""

import http.server
import json
import threading

import numpy as np
import pytest
from cli import run
from hub import Hub, in_process
from hub.contents import header_of, shard
from hub.models import INPUT, config, put_single, words

from embtool.source import wire

LOG_IN = "log in with `hf auth login` (or set HF_TOKEN)"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.setattr(wire, "_sleep", lambda seconds, halted: None)
    with Hub() as hub:
        in_process(hub, tmp_path / "home", monkeypatch)
        put_single(hub)
        yield hub


@pytest.fixture
def dead(hub, monkeypatch):
    """Nobody answers."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")


def failure(capsys, *args):
    """The two lines of a command that ends with 1 and has no data."""
    done = run(capsys, *args)
    assert (done.code, done.out) == (1, "")
    first, second = done.err.splitlines()
    assert first.startswith("error: ")
    assert second.startswith("  try: ")
    return first.removeprefix("error: "), second.removeprefix("  try: ")


def record(capsys, *args):
    done = run(capsys, "params", *args, "-f", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.parametrize(
    "question",
    [("params",), ("lookup", "w1", "-m"), ("neighbors", "w1", "-m"), ("download",)],
    ids=lambda question: question[0],
)
def test_each_command_says_what_the_hub_refuses(hub, capsys, monkeypatch, question):
    put_single(hub, "org/gated", gated=True)
    put_single(hub, "org/private", private=True)
    for name in ("org/private", "org/absent"):
        assert failure(capsys, *question, name) == (
            f"{name}: there is no such model on {hub.endpoint}, or it is private",
            f"check the name; for a private model {LOG_IN}",
        )
    ask = f"ask for access at https://huggingface.co/org/gated, then {LOG_IN}"
    said = "org/gated: this model is gated, and no token was sent"
    assert failure(capsys, *question, "org/gated") == (said, ask)
    hub.tokens["hf_other"] = ()
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    said = "org/gated: this model is gated, and this token's account has no access"
    assert failure(capsys, *question, "org/gated") == (said, ask)
    assert [asked for asked in hub.log if asked.sent] == []

    hub.tokens["hf_other"] = ("org/gated", "org/private")
    for name in ("org/gated", "org/private"):
        assert run(capsys, *question, name).code == 0


@pytest.mark.parametrize("question", [("params",), ("lookup", "w1", "-m")])
def test_what_the_model_lacks(hub, capsys, question):
    assert failure(capsys, *question, "org/model@v9") == (
        "org/model: it has no revision 'v9'",
        f"see its branches and tags at {hub.endpoint}/org/model",
    )
    commit = hub.repos["org/model"].refs["main"]
    for revision, said in (("", "revision main"), (f"@{commit}", f"revision {commit}")):
        message, advice = failure(capsys, *question, f"org/model{revision}:b.safetensors")
        assert message in (
            f"org/model: it has no file b.safetensors at {said}",
            f"org/model: it has no file b.safetensors at commit {commit}",
        )
        assert advice.startswith(f"see its files at {hub.endpoint}/org/model/tree/")


def test_offline_and_never_seen(hub, capsys):
    for question in (("params",), ("tokens", "w1", "-m"), ("neighbors", "w1", "-m"), ("download",)):
        assert failure(capsys, *question, "org/model", "--offline") == (
            "org/model: the model is not in the cache, and this run is offline",
            "run the same command once without --offline and HF_HUB_OFFLINE",
        )
    assert hub.log == []


def test_a_hub_out_of_reach(hub, dead, capsys):
    for question in (("params",), ("tokens", "w1", "-m"), ("download",)):
        assert failure(capsys, *question, "org/model") == (
            "org/model: 127.0.0.1:9 cannot be reached for config.json: [Errno 111] Connection "
            "refused",
            "check the network, HF_ENDPOINT and the proxy; what is cached is read with --offline",
        )


def test_an_endpoint_that_is_no_hub(hub, capsys, monkeypatch):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    from huggingface_hub import constants

    there = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", there)
    for question in (("params",), ("lookup", "w1", "-m"), ("download",)):
        assert failure(capsys, *question, "org/model") == (
            f"org/model: {there} does not answer like a Hub: no X-Repo-Commit, ETag and size for "
            "config.json",
            "check HF_ENDPOINT, and that no proxy or login page stands in between",
        )
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("why", ["offline", "dead"])
def test_the_catalogue_stands_in_and_says_so(hub, capsys, monkeypatch, why):
    from huggingface_hub import constants

    offline = ("--offline",) if why == "offline" else ()
    reason = "the model is not in the cache, and this run is offline"
    if why == "dead":
        monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
        reason = "127.0.0.1:9 cannot be reached for config.json: [Errno 111] Connection refused"
    known = record(capsys, "deepseek-ai/DeepSeek-V3", *offline)
    assert (known["source"], known["revision"]) == ("catalogue", None)
    assert (known["rows"], known["d_model"], known["params"]) == (129_280, 7168, 926_679_040)
    assert (known["memory"]["bf16"], known["tied"], known["tokens"]) == (
        1_853_358_080,
        False,
        128_815,
    )
    assert known["notes"][0] == (
        "from the catalogue alone: the rows of the checkpoint are not checked"
    )
    assert known["notes"][-1] == reason
    # Beside a list the notes stand on standard error, unless quiet is wanted.
    done = run(capsys, "params", "deepseek-ai/DeepSeek-V3", *offline)
    assert done.out.splitlines()[1].startswith("deepseek-ai/DeepSeek-V3\tcatalogue\t129280\t")
    assert done.err.splitlines()[-1] == f"note: deepseek-ai/DeepSeek-V3: {reason}"
    assert run(capsys, "params", "deepseek-ai/DeepSeek-V3", *offline, "-q").err == ""
    # A row is in no catalogue.
    message, _ = failure(capsys, "lookup", "w1", "-m", "deepseek-ai/DeepSeek-V3", *offline)
    assert message == f"deepseek-ai/DeepSeek-V3: {reason}"
    assert hub.log == []


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"pytorch_model.bin": b"x" * 1000}, "pytorch_model.bin"),
        ({}, "there is no checkpoint in it (.safetensors, .gguf or .bin)"),
        (
            {n: shard({INPUT: ("F32", (2, 2))}) for n in ("a.safetensors", "b.safetensors")},
            "several checkpoints fit: a.safetensors, b.safetensors",
        ),
    ],
    ids=["pickle", "config", "several"],
)
def test_a_checkpoint_that_cannot_be_read_leaves_the_config(hub, capsys, files, said):
    small = {"config.json": config(1000, 64), "tokenizer.json": words({"w1": 1})}
    hub.put("org/other", {**small, **files}, total_params=66_560)
    found = record(capsys, "org/other")
    assert (found["source"], found["rows"], found["params"]) == ("hub", 1000, 64_000)
    assert (found["total_params"], found["tables"][0]["file"]) == (66_560, None)
    assert found["notes"][0] == "from config.json alone: the rows of the checkpoint are not checked"
    assert said in found["notes"][-1]
    assert not found["notes"][-1].startswith("org/other")
    hub.log.clear()
    for question in (("lookup", "w1", "-m"), ("neighbors", "w1", "-m"), ("download",)):
        message, _ = failure(capsys, *question, "org/other")
        assert said in message
    # Nothing was fetched for a table that cannot be had.
    assert not any(asked.path.endswith("tokenizer.json") and asked.sent for asked in hub.log)
    assert run(capsys, "tokens", "w1", "-m", "org/other").code == 0


def test_a_model_that_became_gated_is_counted_from_its_config(hub, capsys):
    small = {"config.json": config(1000, 64), "model.safetensors": shard({INPUT: ("F32", (2, 2))})}
    hub.put("org/was-open", small)
    assert run(capsys, "tokens", "--ids", "1", "-m", "org/was-open").code == 1
    assert record(capsys, "org/was-open")["rows"] == 2
    (etag,) = (e for e, f in hub.blobs.items() if f.content is small["model.safetensors"])
    from embtool.source.derived import assets

    for kept in (assets() / "org--was-open/blobs" / etag).iterdir():
        kept.unlink()
    hub.repos["org/was-open"].gated = True
    done = run(capsys, "params", "org/was-open", "-f", "json")
    found = json.loads(done.out)
    assert (found["source"], found["rows"], found["d_model"]) == ("cache", 1000, 64)
    assert found["notes"][-1] == (
        "model.safetensors is not in the cache, and this model is gated, and no token was sent"
    )
    assert done.err.startswith(
        "note: org/was-open: this model is gated, and no token was sent; answering from the cache"
    )
    assert done.code == 0


def test_the_good_of_several_models_are_answered(hub, capsys):
    put_single(hub, "org/second", rows=2000)
    args = ("org/model", "org/absent", "org/second", "-f", "json", "--sort", "params")
    done = run(capsys, "params", *args)
    assert done.code == 1
    first, second, third = json.loads(done.out)
    assert (first["model"], second["model"]) == ("org/second", "org/model")
    said = f"org/absent: there is no such model on {hub.endpoint}, or it is private"
    assert third == {"query": "org/absent", "error": said}
    assert done.err.splitlines()[0] == f"error: {said}"
    # For people it is one table, with the bytes of one precision.
    done = run(capsys, "params", "org/model", "org/second", "-f", "table", "--sort", "rows")
    names, _, *lines = done.out.split("\n\n")[0].strip("\n").splitlines()
    expected = "model source rows d_model tokens tied params total share bf16"
    assert " ".join(names.split()) == expected
    assert [line.split()[0] for line in lines] == ["org/second", "org/model"]


def test_a_hub_that_breaks_off_in_the_middle_of_a_table(hub, capsys):
    hub.fault("416", "model.safetensors", after=1, times=99)
    done = run(capsys, "download", "org/model", "-q")
    host = "localhost"
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"error: org/model: {host} answers a range of model.safetensors with 416\n"
        "  try: run the command again; if it stays so, the mirror or proxy in between is at fault\n"
    )
    hub._faults.clear()
    assert run(capsys, "download", "org/model", "-q").code == 0


def test_a_broken_row_is_refused_without_a_warning(hub, capsys):
    """A NaN that signals, as damaged rows hold them."""
    head, nbytes = header_of({INPUT: ("BF16", (4, 2))})
    table = np.array([[0x3F80] * 2, [0x7F81, 0x3F80], [0x3F80, 0xBF80], [0x3F80] * 2], "<u2")
    assert table.nbytes == nbytes
    small = {"config.json": config(4, 2), "tokenizer.json": words({f"w{i}": i for i in range(4)})}
    hub.put("org/broken", {**small, "model.safetensors": head + table.tobytes()})
    for question in (
        ("neighbors", "w1"),
        ("similarity", "w0", "w1"),
        ("analogy", "w0", "w1", "w2"),
    ):
        message, _ = failure(capsys, *question, "-m", "org/broken", "-q")
        assert message == "the row of w1 (id 1) is zero or not finite, so nothing is near it"
