"""What was read from the Hub once is kept: for other commits, without a network, after damage."""

import numpy as np
import pytest
from hub import Hub, run
from hub.contents import shard
from hub.models import INDEX, INPUT
from source_builders import ROW, open_, put_gemma, tensor_of

from embtool.errors import SourceError
from embtool.source.failures import MissingFileError


def test_a_commit_is_taken_as_it_is_and_a_branch_follows_its_head(hub):
    first = hub.put("org/model", {"config.json": b'{"a": 1}'})
    hub.put("org/model", {"config.json": b'{"a": 2}'}, revision="dev/x")
    assert open_(f"org/model@{first}").read("config.json") == b'{"a": 1}'
    assert open_("org/model@dev/x").read("config.json") == b'{"a": 2}'
    hub.log.clear()
    assert open_(f"org/model@{first}").read("config.json") == b'{"a": 1}'
    assert hub.log == []
    third = hub.put("org/model", {"config.json": b'{"a": 3}'})
    source = open_()
    assert source.read("config.json") == b'{"a": 3}'
    assert source.revision == third


def test_a_commit_to_the_readme_refetches_no_row(hub):
    content, _ = put_gemma(hub)
    tensor = tensor_of(open_(), INPUT)
    rows = open_().rows("model.safetensors", tensor, [3], ROW)
    files = {"config.json": b"{}", "README.md": b"new", "model.safetensors": content}
    hub.put("org/model", files)
    hub.log.clear()
    source = open_()
    assert tensor_of(source, INPUT) == tensor
    assert np.array_equal(source.rows("model.safetensors", tensor, [3], ROW), rows)
    assert [asked.path for asked in hub.bodies("hub")] == [
        f"/api/models/org/model/tree/{source.revision}"
    ]
    assert hub.bodies("cdn") == []


def test_a_model_without_config_still_has_a_commit(hub):
    commit = hub.put("org/model", {"model.safetensors": shard({INPUT: ("F32", (4, 8))})})
    source = open_()
    assert source.revision == commit
    assert not source.has("config.json")
    with pytest.raises(MissingFileError, match=r"has no file config\.json"):
        source.read("config.json")
    hub.log.clear()
    assert not open_().has("config.json")
    assert len(hub.log) == 1


def test_what_was_answered_once_is_answered_again_offline(hub):
    put_gemma(hub, total_params=268_098_176)

    def look(source):
        tensor = tensor_of(source, INPUT)
        return (
            source.revision,
            source.read("config.json"),
            source.has(INDEX),
            source.names(),
            source.key("model.safetensors"),
            source.total_params(),
            source.rows("model.safetensors", tensor, [1, 2, 70_000], ROW).tobytes(),
        )

    answer = look(open_())
    hub.log.clear()
    offline = open_(offline=True)
    assert look(offline) == answer
    assert offline.kind == "cache"
    assert answer[5] == 268_098_176
    with pytest.raises(SourceError, match="not in the cache, and this run is offline"):
        offline.rows("model.safetensors", tensor_of(offline, INPUT), [3], ROW)
    assert hub.log == []


def test_a_model_that_only_huggingface_hub_cached_is_read_offline(hub, tmp_path):
    small = {"config.json": b"{}", "model.safetensors": shard({INPUT: ("F32", (4, 8))})}
    commit = hub.put("org/model", small)
    from huggingface_hub import hf_hub_download

    for name in small:
        hf_hub_download("org/model", name)
    hub.log.clear()
    source = open_(offline=True)
    assert source.revision == commit
    assert not source.has(INDEX)
    tensor = tensor_of(source, INPUT)
    path = source.path("model.safetensors")
    assert source.local("model.safetensors", tensor) == (path, tensor.start)
    assert source.key("model.safetensors") == "sha256-" + path.resolve().name
    rows = source.rows("model.safetensors", tensor, [3], 32)
    assert rows.tobytes() == small["model.safetensors"][tensor.start + 96 : tensor.start + 128]
    assert hub.log == []


def test_a_whole_shard_of_another_commit_serves_as_well(hub):
    small = {"config.json": b"{}", "model.safetensors": shard({INPUT: ("F32", (4, 8))})}
    hub.put("org/model", small)
    from huggingface_hub import hf_hub_download

    path = hf_hub_download("org/model", "model.safetensors")
    hub.put("org/model", {**small, "README.md": b"."})
    source = open_()
    source.size("model.safetensors")
    assert source.path("model.safetensors").samefile(path)


def test_a_dead_network_is_known_soon_and_the_cache_answers_with_a_note(hub, capsys, monkeypatch):
    _, commit = put_gemma(hub)
    open_().read("config.json")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    source = open_()
    assert source.revision == commit
    assert source.kind == "cache"
    told = capsys.readouterr().err
    assert told.startswith("note: org/model: 127.0.0.1:9 cannot be reached for config.json: ")
    assert told.endswith(f"answering from the cache, commit {commit[:8]}\n")
    with pytest.raises(SourceError, match="cannot be reached"):
        open_("org/other").read("config.json")


def test_the_kept_rows_survive_a_torn_end_and_a_flipped_bit(hub):
    content, _ = put_gemma(hub)
    source = open_()
    tensor = tensor_of(source, INPUT)

    def look(*ids):
        rows = open_().rows("model.safetensors", tensor, ids, ROW)
        for row, stored in zip(ids, rows, strict=True):
            at = tensor.start + row * ROW
            assert stored.tobytes() == content[at : at + ROW]

    look(1, 50_000)
    (path,) = (source._files._shelf.folder / "blobs").glob("*/*.rows")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    look(1, 50_000)
    assert path.read_bytes() == whole
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    look(1, 50_000)
    assert len(path.read_bytes()) > len(whole)
    path.write_bytes(b"something else")
    look(1, 50_000)
    assert path.read_bytes() == whole


def test_settings_of_the_environment_are_honoured(tmp_path):
    with Hub() as hub:
        hub.tokens["hf_secret"] = ("org/gated",)
        files = {"config.json": b"{}", "model.safetensors": shard({INPUT: ("F32", (4, 8))})}
        hub.put("org/gated", files, gated=True)
        code = (
            "from embtool.source.hub import open_hub\n"
            "source = open_hub('org/gated', 'org/gated')\n"
            "print(len(source.bytes('model.safetensors', 0, 64)), source.read('config.json'))\n"
        )
        online = run(hub, tmp_path, code, HF_TOKEN="hf_secret")
        assert (online.stdout, online.stderr) == ("64 b'{}'\n", "")
        assert {asked.token for asked in hub.log if asked.origin == "hub"} == {"Bearer hf_secret"}
        assert {asked.token for asked in hub.log if asked.origin == "cdn"} == {None}
        assert (tmp_path / "assets/embtool/org--gated").is_dir()
        hub.log.clear()
        again = run(hub, tmp_path, code, HF_HUB_OFFLINE="1")
        assert (again.stdout, again.stderr) == ("64 b'{}'\n", "")
        assert hub.log == []
