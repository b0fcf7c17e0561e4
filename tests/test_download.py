"""A table fetched as a slice: in parallel, resumed, once, and equal in every byte."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hub import Hub, in_process, run, settings
from hub.contents import shard
from safetensors import safe_open

from embtool.errors import SourceError
from embtool.header import TensorInfo, read_header
from embtool.source import held, wire
from embtool.source import ranges as source_ranges
from embtool.source.hub import HubSource, open_hub
from embtool.source.ranges import STEP

FILE, INPUT = "model.safetensors", "model.embed_tokens.weight"
ROW = 2560
ROWS = 5 * STEP // ROW
SMALL = {"model.norm.weight": ("BF16", (1280,)), INPUT: ("BF16", (ROWS, 1280))}


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.setattr(wire, "_sleep", lambda seconds, halted: None)
    with Hub() as hub:
        in_process(hub, tmp_path / "home", monkeypatch)
        yield hub


def put(hub, tensors=None, name="org/model"):
    content = shard(tensors or SMALL, 2000)
    hub.put(name, {"config.json": b"{}", FILE: content})
    return content


def open_(**options) -> HubSource:
    return open_hub("org/model", "org/model", **options)


def tensor_of(source, name=INPUT):
    return read_header(lambda a, b: source.bytes(FILE, a, b), source.size(FILE), FILE).tensors[name]


def silent(done, total):
    pass


def stored(path, start, tensor):
    raw = path.read_bytes()
    assert len(raw) == start + tensor.stop - tensor.start
    return raw[start:]


def ranges(hub):
    return [asked.asked_range for asked in hub.log if asked.origin == "cdn"]


def test_a_table_of_131_mb_in_a_shard_of_299_mb_costs_its_own_bytes(hub):
    table = ("BF16", (51_200, 1280))
    content = put(hub, {"model.layers.0.a": ("BF16", (131_250, 640)), INPUT: table})
    assert (len(content), 51_200 * ROW) == (299_074_008 + 0, 131_072_000)
    source = open_()
    source.read("config.json")
    source.has("model.safetensors.index.json")
    tensor = tensor_of(source)
    seen = []
    path, start = source.fetch(FILE, tensor, lambda done, total: seen.append((done, total)))
    assert len(hub.requests()) <= 28
    assert hub.sent() <= 1.001 * 131_072_000
    assert stored(path, start, tensor) == content[tensor.start : tensor.stop]
    assert seen[0] == (0, 131_072_000)
    assert seen[-1] == (131_072_000, 131_072_000)
    assert seen == sorted(seen)


def test_a_slice_is_a_safetensors_file_that_tells_where_it_is_from(hub):
    content = put(hub)
    source = open_()
    tensor = tensor_of(source)
    path, start = source.fetch(FILE, tensor, silent)
    sha256 = hashlib.sha256(content[tensor.start : tensor.stop]).hexdigest()
    with safe_open(path, "np") as file:
        assert list(file.keys()) == [INPUT]
        assert file.metadata() == {
            "source": "org/model/model.safetensors",
            "commit": source.revision,
            "tensor": INPUT,
            "dtype": "BF16",
            "range": f"{tensor.start}-{tensor.stop}",
            "sha256": sha256,
        }
        assert file.get_slice(INPUT).get_shape() == [ROWS, 1280]
    assert start % 64 == 0
    published = source.key(FILE).removeprefix("sha256-")
    folder = path.parents[4]
    assert path == folder / "embtool/org--model/blobs" / published / f"{INPUT}.safetensors"
    names = {one.name for one in path.parent.iterdir()}
    assert names == {"0-65536.bytes", path.name, path.name + ".lock"}


def test_a_packed_tensor_is_kept_as_plain_bytes(hub):
    content = put(hub)
    tensor = TensorInfo("token_embd.weight", "Q8_0", (1000, 32), 4096, 4096 + 34_000)
    path, start = open_().fetch(FILE, tensor, silent)
    assert stored(path, start, tensor) == content[4096 : 4096 + 34_000]
    with safe_open(path, "np") as file:
        assert file.metadata()["dtype"] == "Q8_0"
        assert file.get_slice("token_embd.weight").get_shape() == [34_000]


def test_a_slice_serves_rows_and_later_commits_without_a_body(hub):
    content = put(hub)
    source = open_()
    tensor = tensor_of(source)
    source.rows(FILE, tensor, [4], ROW)
    here = source.fetch(FILE, tensor, silent)
    assert not list(here[0].parent.glob("*.rows"))
    hub.put("org/model", {"config.json": b"{}", "README.md": b".", FILE: content})
    hub.log.clear()
    again = open_()
    assert again.fetch(FILE, tensor, silent) == here
    rows = again.rows(FILE, tensor, [0, ROWS - 1], ROW)
    assert rows[1].tobytes() == content[tensor.stop - ROW : tensor.stop]
    assert hub.bodies("cdn") == []
    offline = open_(offline=True)
    assert np.array_equal(offline.rows(FILE, tensor, [0, ROWS - 1], ROW), rows)


def test_a_whole_shard_in_the_cache_is_used_instead(hub):
    content = put(hub)
    source = open_()
    path = source.shard(FILE, silent)
    tensor = tensor_of(source)
    hub.log.clear()
    assert open_().fetch(FILE, tensor, silent) == (path, tensor.start)
    assert path.read_bytes() == content[0 : len(content)]
    assert hub.sent() == 0


def test_a_shard_whose_bytes_are_not_the_published_ones_is_refused(hub):
    content = put(hub)
    (file,) = (hub.blobs[etag] for etag in hub.blobs)
    flipped = bytearray(content[0 : len(content)])
    flipped[-1] ^= 1
    hub.blobs[file.etag] = type(file)(bytes(flipped), True, file.etag)
    found = hashlib.sha256(flipped).hexdigest()
    with pytest.raises(SourceError) as caught:
        open_().shard(FILE, silent)
    assert caught.value.message == (
        f"org/model: {FILE} has sha256 {found}, and the Hub publishes {file.etag}"
    )
    assert open_().path(FILE) is None
    hub.blobs[file.etag] = file
    assert open_().shard(FILE, silent).read_bytes() == content[0 : len(content)]


def test_verify_checks_the_shard_and_the_slice_against_it(hub):
    content = put(hub)
    source = open_()
    tensor = tensor_of(source)
    path, start = source.fetch(FILE, tensor, silent)
    sha256 = hashlib.sha256(content[tensor.start : tensor.stop]).hexdigest()
    assert source.verify(FILE, tensor, silent) == sha256
    with path.open("r+b") as file:
        file.seek(start + 1000)
        file.write(b"rot")
    with pytest.raises(SourceError, match="does not hold the bytes of model"):
        source.verify(FILE, tensor, silent)
    assert not path.exists()
    assert source.verify(FILE, tensor, silent) == sha256


@pytest.mark.parametrize("kind", ["short", "drop", "503", "429"])
def test_a_fetch_outlives_what_may_pass(hub, kind):
    content = put(hub)
    source = open_()
    tensor = tensor_of(source)
    hub.fault(kind, FILE, times=3)
    path, start = source.fetch(FILE, tensor, silent)
    assert stored(path, start, tensor) == content[tensor.start : tensor.stop]


def interrupted(hub, keep=2):
    """A part whose first `keep` ranges are whole."""
    content = put(hub)
    source = open_()
    tensor = tensor_of(source)
    hub.fault("416", FILE, after=keep, times=99)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SourceError, match="416"):
        patch.setattr(source_ranges, "WORKERS", 1)
        source.fetch(FILE, tensor, silent)
    hub._faults.clear()
    hub.log.clear()
    part = source._slice(FILE, tensor).with_suffix(".safetensors.part")
    log = part.with_name(part.name + ".log")
    assert _whole(log) == set(range(keep))
    return content, tensor, part, log


def test_an_error_loses_nothing_that_had_arrived(hub):
    content, tensor, _, _ = interrupted(hub, keep=3)
    seen = []
    path, start = open_().fetch(FILE, tensor, lambda done, total: seen.append(done))
    assert stored(path, start, tensor) == content[tensor.start : tensor.stop]
    assert len(ranges(hub)) == 2
    # The first of the missing ranges comes alone, to see that it is of the same object.
    assert (seen[0], seen[-1]) == (4 * STEP, 5 * STEP)
    assert seen == sorted(seen)


def finish(content, tensor):
    path, start = open_().fetch(FILE, tensor, silent)
    assert stored(path, start, tensor) == content[tensor.start : tensor.stop]


def test_a_range_that_rotted_in_the_part_is_fetched_again(hub):
    content, tensor, part, log = interrupted(hub)
    index = int(log.read_text().splitlines()[-1].split()[0])
    start = json.loads(log.read_text().splitlines()[0])["start"]
    with part.open("r+b") as file:
        file.seek(start + index * STEP + 5)
        file.write(bytes(100))
    finish(content, tensor)
    first = tensor.start + index * STEP
    assert f"bytes={first}-{first + STEP - 1}" in ranges(hub)


def test_a_log_cut_short_costs_one_range(hub):
    content, tensor, _, log = interrupted(hub)
    log.write_bytes(log.read_bytes()[:-3])
    finish(content, tensor)
    assert len(ranges(hub)) == 5 - 2 + 1


@pytest.mark.parametrize("what", ["part", "log", "plan"])
def test_half_of_a_part_is_as_good_as_none(hub, what):
    content, tensor, part, log = interrupted(hub)
    if what == "plan":
        log.write_text(log.read_text().replace(INPUT, "another"))
    else:
        (part if what == "part" else log).unlink()
    finish(content, tensor)
    assert len(ranges(hub)) == 5


def test_a_part_of_another_object_at_the_cdn_is_begun_again(hub):
    content, tensor, _, log = interrupted(hub)
    log.write_text(log.read_text().replace("cdn-", "old-"))
    finish(content, tensor)
    assert len(set(ranges(hub))) == 5


def test_a_stale_slice_of_other_bytes_is_not_taken(hub):
    content = put(hub)
    source = open_()
    tensor = tensor_of(source)
    path, _ = source.fetch(FILE, tensor, silent)
    raw = path.read_bytes()
    path.write_bytes(raw[:-1])
    assert source.local(FILE, tensor) is None
    other = TensorInfo(INPUT, "BF16", tensor.shape, tensor.start - 2, tensor.stop - 2)
    path.write_bytes(raw)
    assert source.local(FILE, other) is None
    finish(content, tensor)


_FETCH = """
import sys
from embtool.header import read_header
from embtool.errors import SourceError
from embtool.source.hub import open_hub
source = open_hub("org/model", "org/model")
read = lambda a, b: source.bytes("model.safetensors", a, b)
header = read_header(read, source.size("model.safetensors"), "model.safetensors")
tensor = header.tensors["model.embed_tokens.weight"]
try:
    path, start = source.fetch("model.safetensors", tensor, lambda done, total: None)
except SourceError as error:
    sys.exit(f"{error.message} | {error.advice}")
import hashlib
print(hashlib.sha256(path.read_bytes()[start:]).hexdigest())
"""


def sha256_of_table(content):
    return hashlib.sha256(content[len(content) - ROWS * ROW :]).hexdigest()


def test_two_processes_make_one_download(tmp_path):
    with Hub() as hub:
        content = put(hub)
        hub.rate = 20e6
        answers = [None, None]

        def one(at):
            answers[at] = run(hub, tmp_path, _FETCH)

        threads = [threading.Thread(target=one, args=(at,)) for at in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = sha256_of_table(content)
        assert [answer.stdout for answer in answers] == [expected + "\n"] * 2
        big = [asked for asked in ranges(hub) if asked != "bytes=0-65535"]
        assert len(big) == len(set(big)) == 5


@pytest.mark.slow
def test_killed_20_times_at_any_moment_it_ends_identical(tmp_path):
    """No range that was whole in the part is asked for again, whenever the kill came."""
    steps = 25
    random = np.random.default_rng()
    with Hub() as hub:
        content = put(hub, {INPUT: ("BF16", (steps * STEP // ROW, 1280))})
        start = len(content) - steps * STEP
        expected = hashlib.sha256(content[start:]).hexdigest() + "\n"
        hub.rate = 15e6
        log, kills, resumed = None, 0, 0
        while kills < 20:
            whole = _whole(log)
            hub.log.clear()
            child = subprocess.Popen(
                [sys.executable, "-c", _FETCH],
                env=settings(hub, tmp_path),
                stdout=subprocess.PIPE,
                text=True,
            )
            while child.poll() is None and not hub.log:
                time.sleep(0.01)
            try:
                answer, _ = child.communicate(timeout=1.2 * random.random())
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
                kills += 1
            else:
                assert answer == expected
                next(tmp_path.rglob(f"{INPUT}.safetensors")).unlink()
            assert not whole & {(first - start) // STEP for first in _firsts(hub)}
            resumed += bool(whole)
            log = next(tmp_path.rglob("*.part.log"), None)
        assert resumed > 5
        hub.rate = None
        assert run(hub, tmp_path, _FETCH).stdout == expected


def _firsts(hub):
    """Where each range of the table began that was asked for."""
    return [int(asked.removeprefix("bytes=").split("-")[0]) for asked in _big(hub.log)]


def _big(log):
    return [a.asked_range for a in log if a.origin == "cdn" and a.asked_range != "bytes=0-65535"]


def _whole(log):
    if not log or not log.exists():
        return set()
    lines = log.read_text().split("\n")[1:-1]
    return {int(line.split()[0]) for line in lines if line}


def test_a_full_disk_is_a_clear_error_that_loses_nothing(tmp_path):
    """The limit on a file's size stands in for a full disk."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000_000, 20_000_000))"
    with Hub() as hub:
        content = put(hub)
        answer = run(hub, tmp_path, limit + _FETCH)
        assert answer.returncode == 1
        assert answer.stderr.endswith(
            " cannot be written: File too large | free some space, "
            "or point HF_HOME to a folder that can be written\n"
        )
        assert _big(hub.log) == []
        assert not list(tmp_path.rglob("*.part"))
        expected = sha256_of_table(content)
        assert run(hub, tmp_path, _FETCH).stdout == expected + "\n"


def test_a_disk_that_fills_later_keeps_the_part(hub, monkeypatch):
    _, tensor, part, log = interrupted(hub)
    before = _whole(log)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(SourceError, match="cannot be written: No space left on device"):
        open_().fetch(FILE, tensor, silent)
    monkeypatch.undo()
    assert _whole(log) == before
    assert part.is_file()


def test_what_is_held_is_listed_and_removed(hub, tmp_path):
    put(hub)
    put(hub, name="org/other")
    source = open_()
    tensor = tensor_of(source)
    source.rows(FILE, tensor, [1, 2, 3], ROW)
    other = open_hub("org/other", "org/other")
    path, _ = other.fetch(FILE, tensor, silent)
    derived = tmp_path / "home/assets/embtool/derived" / source.key(FILE) / "norms.npy"
    derived.parent.mkdir(parents=True)
    derived.write_bytes(b"12345")

    listed = {(one.model, one.kind): one for one in held.held()}
    rows = listed["org/model", "rows"]
    assert (rows.tensor, rows.commit) == (INPUT, source.revision)
    assert rows.nbytes == len(json.dumps({"tensor": INPUT, "row_nbytes": ROW})) + 1 + 3 * (ROW + 12)
    table = listed["org/other", "table"]
    assert (table.tensor, table.commit, table.path) == (INPUT, other.revision, path)
    assert table.nbytes == path.stat().st_size
    assert listed["org/model", "headers"].nbytes > 65_536
    assert listed["org/model", "derived"].nbytes == 5

    assert held.remove("org/absent") == 0
    assert held.remove("../../hub") == 0
    assert held.remove("derived") == 0
    assert held.remove("org/model") > rows.nbytes
    assert {one.model for one in held.held()} == {"org/other"}
    assert not derived.parent.exists()
    assert path.is_file()


def test_an_interrupted_table_is_listed_as_a_part(hub):
    _, tensor, part, _ = interrupted(hub)
    listed = {one.kind: one for one in held.held()}
    assert listed["part"].tensor == INPUT
    assert listed["part"].nbytes == part.stat().st_size
    with open_()._files._shelf.folder.joinpath("x").open("w"):
        pass
    from huggingface_hub.utils import WeakFileLock

    with WeakFileLock(part.with_suffix(".lock")), pytest.raises(SourceError, match="right now"):
        held.remove("org/model")
    assert part.is_file()
    assert held.remove("org/model") >= tensor.stop - tensor.start
    assert held.held() == []
