"""A table fetched as a slice: in parallel, once, and equal in every byte."""

import hashlib
import json

import numpy as np
import pytest
from download_builders import (
    FILE,
    INPUT,
    ROW,
    ROWS,
    finish,
    hub_without_waits,
    open_,
    put,
    silent,
    stored,
    tensor_of,
)
from safetensors import safe_open

from embtool.errors import SourceError
from embtool.header import TensorInfo
from embtool.source import held
from embtool.source.hub import open_hub

hub = pytest.fixture(hub_without_waits)


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
