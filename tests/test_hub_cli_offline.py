"""What was answered once is answered again without a network, and nothing is imported for none."""

import json
import os
from pathlib import Path

import pytest
from cli import run
from hub import Hub, in_process
from hub import run as in_a_process
from hub.models import INPUT, put_single

MODEL = "org/model"
QUESTIONS = (
    ("tokens", "w3 w500", "-m", MODEL),
    ("tokens", "--ids", "3,500", "-m", MODEL),
    ("find", "w99", "-m", MODEL),
    ("lookup", "w3 w500", "-m", MODEL),
    ("lookup", "w3", "-m", MODEL, "--table", INPUT, "-f", "json"),
    ("similarity", "w1", "w2", "id:999", "-m", MODEL),
    ("neighbors", "w1", "w2", "-m", MODEL, "-k", "3"),
    ("analogy", "w1", "w2", "w3", "-m", MODEL, "-f", "jsonl"),
    ("download", MODEL),
    ("download", MODEL, "--table", "both"),
    # Last, as it counts the tokens of a tokenizer that is here, and fetches none.
    ("params", MODEL),
    ("params", MODEL, "-f", "json"),
)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with Hub() as hub:
        in_process(hub, tmp_path / "home", monkeypatch)
        hub.tokens["hf_secret"] = (MODEL,)
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        put_single(hub, gated=True)
        yield hub


def answers(capsys, *more):
    """What each question is answered with; `source` tells the cache from the Hub, rightly."""
    found = []
    for question in QUESTIONS:
        done = run(capsys, *question, *more)
        assert done.code == 0, (question, done.err)
        found.append(done.out.replace("\thub\t", "\tcache\t").replace('"hub"', '"cache"'))
    return found


def test_what_was_answered_once_is_answered_again_offline(hub, capsys, tmp_path, monkeypatch):
    from huggingface_hub import constants

    online = answers(capsys)
    # Each question was asked with the token, and the CDN never saw it.
    assert {asked.token for asked in hub.log if asked.origin == "hub"} == {"Bearer hf_secret"}
    assert {asked.token for asked in hub.log if asked.origin == "cdn"} == {None}
    hub.log.clear()

    assert answers(capsys, "--offline") == online
    with monkeypatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        assert answers(capsys) == online
    assert hub.log == []

    # Gone from the Hub, refused by it, or the Hub itself gone: the same, and a note that says so.
    with monkeypatch.context() as patch:
        patch.delenv("HF_TOKEN")
        assert answers(capsys, "-q") == online
        done = run(capsys, "tokens", "w1", "-m", MODEL)
        commit = hub.repos[MODEL].refs["main"][:8]
        assert done.err == (
            f"note: {MODEL}: this model is gated, and no token was sent; "
            f"answering from the cache, commit {commit}\n"
        )
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert answers(capsys, "-q") == online
    done = run(capsys, "tokens", "w1", "-m", MODEL)
    assert done.err == (
        f"note: {MODEL}: 127.0.0.1:9 cannot be reached for config.json: [Errno 111] Connection "
        f"refused; answering from the cache, commit {commit}\n"
    )


def test_a_newer_commit_is_served_by_what_is_kept_of_the_older(hub, capsys):
    """The README changed, and one question alone was asked since: all are answered offline."""
    online = answers(capsys)
    older = hub.repos[MODEL].refs["main"]
    put_single(hub, extra={"README.md": b"new"}, gated=True)
    newer = hub.repos[MODEL].refs["main"]
    assert newer != older
    hub.log.clear()
    assert run(capsys, "tokens", "w3 w500", "-m", MODEL).code == 0
    assert [asked.path for asked in hub.log] == [
        f"/{MODEL}/resolve/main/config.json",
        f"/api/models/{MODEL}/tree/{newer}",
    ]
    again = [answer.replace(older, newer) for answer in online]
    for question, before, now in zip(QUESTIONS, again, answers(capsys, "--offline")):
        # A file that was fetched at the older commit is told by the name of its content.
        assert now == before or question[0] == "download", question


def test_the_settings_of_the_environment(tmp_path):
    """`HF_ENDPOINT`, `HF_TOKEN`, `HF_HOME` and `HF_HUB_OFFLINE`, each read in its own process."""
    with Hub() as hub:
        hub.tokens["hf_secret"] = (MODEL,)
        put_single(hub, gated=True)
        question = ["neighbors", "w1", "-m", MODEL, "-k", "3"]
        online = in_a_process(hub, tmp_path, question, HF_TOKEN="hf_secret")
        assert online.returncode == 0, online.stderr
        assert len(online.stdout.splitlines()) == 4
        assert {(a.origin, a.token) for a in hub.log} == {
            ("hub", "Bearer hf_secret"),
            ("cdn", None),
        }
        assert list(tmp_path.rglob(f"{INPUT}.safetensors"))
        hub.log.clear()
        offline = in_a_process(hub, tmp_path, question, HF_HUB_OFFLINE="1")
        assert (offline.stdout, offline.stderr) == (online.stdout, "")
        assert hub.log == []
    dead = in_a_process(None, tmp_path, question)
    assert dead.stdout == online.stdout
    assert dead.stderr.startswith(f"note: {MODEL}: 127.0.0.1:9 cannot be reached")


def test_what_was_never_asked_is_said_to_be_missing(hub, capsys):
    run(capsys, "params", MODEL)
    run(capsys, "lookup", "w1", "-m", MODEL)
    hub.log.clear()
    for question, what in (
        (("lookup", "w2"), f"row 2 of {INPUT}"),
        (("lookup", "w2 w9 w5"), f"row 2 of {INPUT}, with 2 more,"),
        (("neighbors", "w1"), f"the table {INPUT}"),
        (("download",), f"the table {INPUT}"),
    ):
        model = (MODEL,) if question == ("download",) else ("-m", MODEL)
        done = run(capsys, *question, *model, "--offline")
        assert (done.code, done.out) == (1, "")
        assert done.err == (
            f"error: {MODEL}: {what} is not in the cache, and this run is offline\n"
            "  try: run the same command once without --offline and HF_HUB_OFFLINE\n"
        )
    assert hub.log == []


def test_what_is_missing_while_the_hub_is_out_of_reach(hub, capsys, monkeypatch):
    from huggingface_hub import constants

    run(capsys, "lookup", "w2", "-m", MODEL)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    done = run(capsys, "lookup", "w1", "-m", MODEL, "-q")
    assert done.err == (
        f"error: {MODEL}: row 1 of {INPUT} is not in the cache, and 127.0.0.1:9 cannot be reached "
        "for config.json: [Errno 111] Connection refused\n"
        "  try: check the network, HF_ENDPOINT and the proxy; what is cached is read with "
        "--offline\n"
    )


_MODULES = """
import sys
from embtool.cli.app import app
try:
    app(sys.argv[1:])
except SystemExit as ended:
    assert ended.code in (None, 0), ended.code
print(*sorted(sys.modules), sep="\\n", file=sys.stderr)
"""
_CLIENTS = ("httpx", "httpx2", "httpcore", "h11", "requests", "huggingface_hub.file_download")


@pytest.mark.parametrize(
    "question",
    [
        ["--help"],
        ["params", "--vocab-size", "1000", "--d-model", "10"],
        ["neighbors", "国王", "-m", "gemma-3-270m", "-k", "2", "-q"],
        ["lookup", "国王", "-m", "gemma-3-270m", "-q"],
        ["cache"],
    ],
    ids=lambda question: " ".join(question[:2]),
)
def test_who_does_not_use_the_hub_imports_no_client(gemma_path, question):
    code = _MODULES.replace("sys.argv[1:]", json.dumps(question))
    done = in_a_process(None, Path(os.environ["HF_HOME"]), code)
    assert done.returncode == 0, done.stderr
    modules = done.stderr.splitlines()
    assert "embtool.cli" in modules
    heavy = [m for m in modules if m.startswith((*_CLIENTS, "huggingface_hub.hf_api"))]
    assert heavy == []
