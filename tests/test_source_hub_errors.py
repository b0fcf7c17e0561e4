"""What cannot be read from the Hub: one line that says what, and one that says what to do."""

import http.server
import threading
import time

import pytest
from hub import Hub, in_process, run

from embtool.errors import SourceError
from embtool.source import wire
from embtool.source.hub import open_hub


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.setattr(wire, "_sleep", lambda seconds, halted: None)
    with Hub() as hub:
        in_process(hub, tmp_path / "home", monkeypatch)
        hub.put("org/model", {"config.json": b"{}"})
        yield hub


def failure(repo="org/model", revision=None, file="config.json", *, offline=False):
    with pytest.raises(SourceError) as caught:
        open_hub(repo, repo, revision, offline=offline).read(file)
    return caught.value.message, caught.value.advice


def test_gated_without_a_token_and_without_access(hub, monkeypatch):
    hub.put("org/gated", {"config.json": b"{}"}, gated=True)
    ask = (
        "ask for access at https://huggingface.co/org/gated, then log in with `hf auth login` "
        "(or set HF_TOKEN)"
    )
    assert failure("org/gated") == ("org/gated: this model is gated, and no token was sent", ask)
    hub.tokens["hf_other"] = ()
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    said = "org/gated: this model is gated, and this token's account has no access"
    assert failure("org/gated") == (said, ask)


def test_absent_or_private(hub):
    hub.put("org/private", {"config.json": b"{}"}, private=True)
    for repo in ("org/absent", "org/private"):
        assert failure(repo) == (
            f"{repo}: there is no such model on {hub.endpoint}, or it is private",
            "check the name; for a private model log in with `hf auth login` (or set HF_TOKEN)",
        )


def test_a_token_that_is_refused(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_old")
    said = f"{hub.endpoint} refuses this token (Invalid credentials in Authorization header)"
    assert failure() == (
        f"org/model: {said}",
        "log in with `hf auth login` (or set HF_TOKEN) again, or unset HF_TOKEN for a public model",
    )


def test_no_such_revision(hub):
    assert failure(revision="v9") == (
        "org/model: it has no revision 'v9'",
        f"see its branches and tags at {hub.endpoint}/org/model",
    )


def test_no_such_file(hub):
    assert failure(file="x/y.json") == (
        "org/model: it has no file x/y.json at revision main",
        f"see its files at {hub.endpoint}/org/model/tree/main",
    )


@pytest.mark.parametrize("repo", ["a/b/c", "a--b/c", ".a/b", "a/b.git"])
def test_no_valid_id(hub, repo):
    message, advice = failure(repo)
    assert message.startswith(f"{repo}: this is no id of a model: ")
    assert advice == "give it as owner/name"
    assert hub.log == []


def test_offline_and_not_cached(hub):
    assert failure(offline=True) == (
        "org/model: the model is not in the cache, and this run is offline",
        "run the same command once without --offline and HF_HUB_OFFLINE",
    )
    assert hub.log == []


def test_a_login_page_is_no_hub(hub):
    hub.fault("page", "config.json", origin="hub", times=9)
    said = f"org/model: {hub.endpoint} does not answer like a Hub: no X-Repo-Commit, ETag and size"
    assert failure() == (
        f"{said} for config.json",
        "check HF_ENDPOINT, and that no proxy or login page stands in between",
    )


def test_a_web_server_is_no_hub(hub, tmp_path, monkeypatch):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    message, _ = failure()
    server.shutdown()
    server.server_close()
    assert f"http://127.0.0.1:{server.server_port} does not answer like a Hub" in message


def test_a_server_that_fails(hub):
    hub.fault("500", "config.json", origin="hub", times=9)
    message, advice = failure()
    assert message.endswith("has no answer for config.json: it answers 500, 5 times")
    assert advice == "try again later; see https://status.huggingface.co"


def test_a_refused_connection_is_known_in_a_moment(tmp_path):
    code = (
        "from embtool.source.hub import open_hub\n"
        "from embtool.errors import SourceError\n"
        "for revision in (None, 40 * 'a'):\n"
        "    try: open_hub('a/b', 'a/b', revision).read('config.json')\n"
        "    except SourceError as error: print(error.message); print(error.advice)\n"
    )
    before = time.monotonic()
    answer = run(None, tmp_path, code)
    assert time.monotonic() - before < 10
    said = "a/b: 127.0.0.1:9 cannot be reached for config.json: [Errno 111] Connection refused"
    advice = "check the network, HF_ENDPOINT and the proxy; what is cached is read with --offline"
    assert answer.stdout == f"{said}\n{advice}\n" * 2
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("proxy", "said"),
    [("socks5://127.0.0.1:9", "SOCKS proxy"), ("gopher://127.0.0.1:9", "gopher")],
)
def test_a_proxy_that_cannot_be_used(tmp_path, proxy, said):
    code = (
        "import sys; sys.modules['socksio'] = None\n"
        "from embtool.source.hub import open_hub\n"
        "from embtool.errors import SourceError\n"
        "try: open_hub('a/b', 'a/b').read('config.json')\n"
        "except SourceError as error: print(error.message); print(error.advice)\n"
    )
    with Hub() as hub:
        hub.put("a/b", {"config.json": b"{}"})
        answer = run(hub, tmp_path, code, ALL_PROXY=proxy)
        assert hub.log == []
    message, advice = answer.stdout.splitlines()
    assert message.startswith("the proxy that is set cannot be used: ")
    assert said in message
    assert "socksio" in advice


def test_a_cache_that_cannot_be_written_makes_rows_slower_and_not_wrong(hub, tmp_path, capsys):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "assets").write_text("a file where a folder should be")
    from hub.contents import shard

    from embtool.header import TensorInfo

    content = shard({"t": ("F32", (100, 8))}, 96)
    hub.put("org/model", {"config.json": b"{}", "model.safetensors": content})
    source = open_hub("org/model", "org/model")
    tensor = TensorInfo("t", "F32", (100, 8), 104, 104 + 3200)
    rows = source.rows("model.safetensors", tensor, [7], 32)
    assert rows.tobytes() == content[104 + 224 : 104 + 256]
    told = capsys.readouterr().err
    assert "cannot be written" in told
    with pytest.raises(SourceError) as caught:
        source.fetch("model.safetensors", tensor, lambda done, total: None)
    assert "cannot be written: " in caught.value.message
    assert caught.value.advice == (
        "free some space, or point HF_HOME to a folder that can be written"
    )
