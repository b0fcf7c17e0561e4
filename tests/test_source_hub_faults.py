"""Each way in which a range can go wrong: the right answer or a clear error, never wrong bytes."""

import time

import pytest
from hub import Hub, in_process
from hub.contents import shard

from embtool.errors import SourceError
from embtool.header import TensorInfo
from embtool.source import wire
from embtool.source.hub import HubSource, open_hub
from embtool.source.ranges import RangeIgnoredError

FILE = "model.safetensors"
ROWS, ROW = 40_000, 256
CONTENT = shard({"t": ("F32", (ROWS, 64))}, 1000)
TENSOR = TensorInfo("t", "F32", (ROWS, 64), 1008, 1008 + ROWS * ROW)
FAR = [3, 10_000, 39_999]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with Hub() as hub:
        in_process(hub, tmp_path / "home", monkeypatch)
        hub.put("org/model", {"config.json": b"{}", FILE: CONTENT})
        yield hub


@pytest.fixture
def waits(monkeypatch):
    """Seconds that would have been waited."""
    told = []
    monkeypatch.setattr(wire, "_sleep", lambda seconds, halted: told.append(seconds))
    return told


def open_() -> HubSource:
    return open_hub("org/model", "org/model")


def right_rows():
    return b"".join(CONTENT[1008 + row * ROW : 1008 + (row + 1) * ROW] for row in FAR)


def rows(source):
    return source.rows(FILE, TENSOR, FAR, ROW).tobytes()


@pytest.mark.parametrize("kind", ["short", "drop", "429", "500", "503"])
def test_what_may_pass_is_tried_again(hub, waits, kind):
    hub.fault(kind, FILE, times=2)
    assert rows(open_()) == right_rows()
    assert waits in ([1.0, 1.0], [1.0, 2.0])
    assert len([asked for asked in hub.log if asked.origin == "cdn"]) == 3 + 2


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("ignore-range", "the server ignores ranges: it answers 256 bytes of model.safetensors"),
        ("wrong-range", "Content-Range 'bytes {1}-{2}/10241008', not 'bytes {0}-{1}/10241008'"),
        ("wrong-total", "Content-Range 'bytes {0}-{1}/10241009', not 'bytes {0}-{1}/10241008'"),
        ("gzip", "with a body encoded as gzip"),
        ("long", "with more than the 256 bytes asked for"),
        ("416", "answers a range of model.safetensors with 416"),
        ("412", "answers a range of model.safetensors with 412"),
    ],
)
def test_a_wrong_answer_is_an_error_at_once(hub, waits, kind, said):
    hub.fault(kind, FILE)
    with pytest.raises(SourceError) as caught:
        open_().rows(FILE, TENSOR, [39_999], ROW)
    at = 1008 + 39_999 * ROW
    if kind == "wrong-range":
        # The last row's end cannot move on: the range is a byte shorter.
        said = f"Content-Range 'bytes {at + 1}-{at + 255}/10241008', not 'bytes {at}-{at + 255}"
    else:
        said = said.format(at, at + 255)
    assert said in caught.value.message
    assert waits == []
    assert len([asked for asked in hub.log if asked.origin == "cdn"]) == 1
    # Nothing of it was kept.
    assert rows(open_()) == right_rows()


def test_a_server_without_ranges_is_left_before_it_sends_the_file(hub, waits):
    big = shard({"t": ("F32", (1_000_000, 64))}, 1000)
    hub.put("org/model", {"config.json": b"{}", FILE: big})
    hub.fault("ignore-range", FILE, times=9)
    with pytest.raises(RangeIgnoredError):
        open_().bytes(FILE, 0, 64)
    time.sleep(0.2)  # what the server had begun to send
    assert hub.sent() < 32 << 20
    assert [asked.status for asked in hub.log if asked.origin == "cdn"] == [200]


def test_a_small_file_whose_ranges_are_ignored_is_read_whole(hub, waits):
    hub.put("org/model", {"config.json": b"{}", "index.json": b"0123456789"})
    hub.fault("ignore-range", "index.json", times=9)
    assert open_().bytes("index.json", 2, 5) == b"234"


def test_an_etag_that_changes_between_ranges_is_an_error(hub, waits):
    hub.fault("etag", FILE, after=2)
    with pytest.raises(SourceError, match=r'ETag "?.*: the file has changed'):
        rows(open_())


def test_an_expired_url_is_signed_again_by_one_request(hub, waits):
    source = open_()
    source.size(FILE)
    hub.expire()
    hub.log.clear()
    many = list(range(0, ROWS, 1000))
    got = source.rows(FILE, TENSOR, many, ROW).tobytes()
    at = [1008 + row * ROW for row in many]
    assert got == b"".join(CONTENT[a : a + ROW] for a in at)
    assert [asked.method for asked in hub.log].count("HEAD") == 1


def test_an_expired_url_of_a_file_that_changed_is_an_error(hub, waits):
    source = open_()
    source.size(FILE)
    commits = hub.repos["org/model"].commits
    other = hub.put("org/other", {FILE: shard({"t": ("F32", (2, 64))})})
    for commit in commits:
        commits[commit] = hub.repos["org/other"].commits[other]
    hub.expire()
    with pytest.raises(
        SourceError, match=r"a file of \d+ bytes with ETag .* after one of 10241008"
    ):
        rows(source)


def test_a_url_that_is_refused_again_and_again_is_an_error(hub, waits):
    hub.fault("403", FILE, times=9)
    with pytest.raises(SourceError, match="403, with a URL that was signed a moment ago"):
        open_().rows(FILE, TENSOR, [5], ROW)
    assert len(hub.log) < 8


@pytest.mark.slow
def test_a_server_that_hangs_is_given_up(hub, waits, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 1)
    hub.fault("hang", FILE, times=1, seconds=2)
    assert rows(open_()) == right_rows()
    hub.fault("hang", FILE, times=9, seconds=2)
    with pytest.raises(SourceError, match=r"localhost:[0-9]+ cannot be reached for model\.safe"):
        open_().rows(FILE, TENSOR, [5], ROW)
    assert waits == [1.0, 1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "30"}, 30.0),
        ({"RateLimit": '"resolvers";r=0;t=55', "Retry-After": "3"}, 55.0),
        ({"RateLimit": '"resolvers";r=2998;t=172'}, 1.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, 1.0),
        ({}, 1.0),
    ],
)
def test_the_wait_is_the_one_that_was_told(hub, waits, capsys, headers, seconds):
    hub.fault("429", FILE, headers=headers)
    assert open_().bytes(FILE, 0, 8) == CONTENT[0:8]
    assert waits == [seconds]
    told = capsys.readouterr().err
    if seconds < 5:
        assert told == ""
    else:
        host = hub.sign(next(iter(hub.blobs.values()))).split("/")[2]
        assert told == f"note: waiting {seconds:.0f} s for {host}: it answers 429\n"


def test_a_wait_of_an_hour_is_not_waited(hub, waits):
    hub.fault("429", FILE, headers={"Retry-After": "3600"})
    with pytest.raises(SourceError, match="asks to wait 3600 seconds"):
        open_().bytes(FILE, 0, 8)
    assert waits == []


def test_a_server_that_stays_busy_is_given_up(hub, waits):
    hub.fault("503", FILE, times=9)
    with pytest.raises(SourceError, match="it answers 503, 5 times"):
        open_().bytes(FILE, 0, 8)
    assert waits == [1.0, 2.0, 4.0, 8.0]


def test_a_busy_endpoint_is_waited_for_too(hub, waits):
    hub.fault("429", "config.json", times=2, origin="hub", headers={"Retry-After": "2"})
    assert open_().read("config.json") == b"{}"
    assert waits == [2.0, 2.0]


def test_the_token_goes_to_the_endpoint_and_never_to_another_origin(hub, waits, monkeypatch):
    hub.tokens["hf_secret"] = ("org/model",)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.put("org/model", {"config.json": b"{}", FILE: CONTENT}, gated=True)
    source = open_()
    assert source.read("config.json") == b"{}"
    hub.fault("drop", FILE)
    assert rows(source) == right_rows()
    hub.expire()
    assert source.rows(FILE, TENSOR, [77], ROW).tobytes() == CONTENT[1008 + 77 * ROW :][:ROW]
    source.names()
    source.total_params()
    source.fetch(FILE, TENSOR, lambda done, total: None)
    source.shard(FILE, lambda done, total: None)
    seen = {(asked.origin, asked.token) for asked in hub.log}
    assert seen == {("hub", "Bearer hf_secret"), ("cdn", None)}


def test_an_endpoint_that_redirects_each_range_is_asked_once(hub, waits):
    """A Hub may answer the HEAD of who has a token with the file itself, and redirect each GET."""
    source = open_()
    source.size(FILE)
    remote = source._files.remote(FILE)
    remote._location = source._files._url(FILE, source.revision)
    hub.log.clear()
    assert source.bytes(FILE, 8, 16) == CONTENT[8:16]
    assert source.bytes(FILE, 16, 24) == CONTENT[16:24]
    assert [asked.origin for asked in hub.log] == ["hub", "cdn", "cdn"]
