"""What is read from the Hub, in how many requests and bytes, and under which names."""

import json

import numpy as np
import pytest
from hub import run
from hub.contents import as_file, header_of, shard
from hub.models import INDEX, INPUT, OUTPUT
from source_builders import GEMMA, ROW, open_, put_gemma, tensor_of

from embtool.errors import SourceError
from embtool.header import find_in_fragment


def test_the_table_of_a_one_file_model_is_found_in_7_requests(hub):
    content, commit = put_gemma(hub)
    source = open_()

    assert json.loads(source.read("config.json")) == {"vocab_size": 262144}
    assert not source.has(INDEX)
    assert source.has("model.safetensors")
    tensor = tensor_of(source, INPUT)
    assert tensor.start == len(content) - 262_144 * ROW
    assert source.revision == commit
    assert source.kind == "hub"
    assert source.total_params() is None
    assert len(hub.requests()) == 7
    files = [{"rfilename": name} for name in ("config.json", "model.safetensors")]
    described = json.dumps({"id": "org/model", "siblings": files})
    assert hub.sent() == 65_536 + 22 + len(described)


def test_far_rows_cost_their_own_bytes_and_are_asked_for_once(hub):
    content, _ = put_gemma(hub)
    tensor = tensor_of(open_(), INPUT)
    ids = [262_143, 0, 99_999, 5, 200_000, 0]
    hub.log.clear()

    rows = open_().rows("model.safetensors", tensor, ids, ROW)
    assert rows.shape == (6, ROW)
    for row, stored in zip(ids, rows, strict=True):
        at = tensor.start + row * ROW
        assert stored.tobytes() == content[at : at + ROW]
    # 0 and 5 are near: one range of six rows, where four gaps cost less than another request.
    assert len(hub.requests()) == 1 + 1 + 5
    assert hub.sent() == 5 * ROW
    hub.log.clear()

    source = open_()
    assert np.array_equal(source.rows("model.safetensors", tensor, ids, ROW), rows)
    assert (len(hub.requests()), hub.sent()) == (1, 0)
    hub.log.clear()

    two = open_().rows("model.safetensors", tensor, [77_777, 5, 177_777], ROW)
    assert two[1].tobytes() == rows[3].tobytes()
    assert len(hub.requests()) == 4
    assert hub.sent() == 2 * ROW


def test_near_rows_merge_up_to_4_kib_of_gap(hub):
    put_gemma(hub)
    source = open_()
    tensor = tensor_of(source, INPUT)
    hub.log.clear()
    source.rows("model.safetensors", tensor, [10, 11, 12, 15, 19, 20], ROW)
    ranges = sorted(asked.asked_range for asked in hub.bodies())
    first = tensor.start + 10 * ROW
    # 12 -> 15 leaves two rows out (2,560 bytes), 15 -> 19 three (3,840).
    assert ranges == [f"bytes={first}-{first + 11 * ROW - 1}"]
    hub.log.clear()
    source.rows("model.safetensors", tensor, [30, 35], ROW)
    assert sorted(asked.sent for asked in hub.bodies()) == [ROW, ROW]


def put_deepseek(hub):
    """163 shards, the index 9 MB, the head in shard 160, second copies in 163."""
    table = ("BF16", (129_280, 7168))
    name = "model-{:05}-of-000163.safetensors".format
    layers = {f"model.layers.{i}.a": ("BF16", (8, 8)) for i in range(300)}
    shards = {name(i): shard({f"model.layers.{i}.b": ("BF16", (8, 8))}) for i in range(2, 163)}
    shards[name(1)] = shard({INPUT: table} | layers)
    shards[name(160)] = shard({OUTPUT: table, "model.norm.weight": ("BF16", (7168,))})
    mtp = {"model.layers.61.embed_tokens.weight": table}
    shards[name(163)] = shard(mtp | {"model.layers.61.shared_head.head.weight": table})
    weights = {INPUT: name(1)} | dict.fromkeys(layers, name(1))
    for layer in range(61):
        for expert in range(256):
            for kind in ("down", "gate", "up"):
                tensor = f"model.layers.{layer}.mlp.experts.{expert}.{kind}_proj.weight"
                weights |= dict.fromkeys((tensor, tensor + "_scale_inv"), name(2 + layer * 2))
    weights |= dict.fromkeys(mtp, name(163)) | {OUTPUT: name(160), "model.norm.weight": name(160)}
    described = {"metadata": {"total_size": 688_586_727_753}, "weight_map": weights}
    index = json.dumps(described, indent=2)
    assert 8_900_000 < len(index) < 10 << 20
    config = json.dumps({"vocab_size": 129_280, "hidden_size": 7168}).encode()
    files = {"config.json": config, INDEX: index.encode(), **shards}
    hub.put("deepseek-ai/DeepSeek-V3", files, total_params=684_531_386_000)
    return {role: (tensor, name(i)) for role, tensor, i in (("i", INPUT, 1), ("o", OUTPUT, 160))}


def test_both_tables_of_163_shards_are_compared_in_22_requests(hub):
    tables = put_deepseek(hub)
    source = open_("deepseek-ai/DeepSeek-V3")

    def look(source):
        assert json.loads(source.read("config.json"))["vocab_size"] == 129_280
        assert source.has(INDEX)
        nbytes = source.size(INDEX)
        found = {}
        for start, stop in ((0, 64 << 10), (nbytes - (256 << 10), nbytes)):
            found |= find_in_fragment(source.bytes(INDEX, start, stop), [INPUT, OUTPUT])
        assert found == dict(tables.values())
        samples = [
            source.rows(file, tensor_of(source, tensor, file), [0, 43_093, 86_186, 129_279], 14_336)
            for tensor, file in tables.values()
        ]
        assert not np.array_equal(*samples)
        assert source.total_params() == 684_531_386_000

    look(source)
    assert len(hub.requests()) <= 22
    assert hub.sent() <= 600_000
    hub.log.clear()
    look(open_("deepseek-ai/DeepSeek-V3"))
    assert (len(hub.requests()), hub.sent()) == (1, 0)


@pytest.mark.parametrize("nbytes", [*range(99_990, 100_009), 3_000_000])
def test_a_header_of_any_length_is_read_exactly(hub, nbytes):
    tensors = {f"layers.{i}.weight": ("F32", (2,)) for i in range(900)} | {INPUT: ("F32", (4, 8))}
    content = shard(tensors, nbytes)
    hub.put("org/model", {"config.json": b"{}", "model.safetensors": content})
    source = open_()
    tensor = tensor_of(source, INPUT)
    assert tensor.start == 8 + nbytes + 900 * 8
    assert hub.sent() <= 65_536 + 8 + nbytes
    stored = source.rows("model.safetensors", tensor, [0, 3], 32)
    assert stored[1].tobytes() == content[tensor.start + 96 : tensor.start + 128]
    hub.log.clear()
    assert tensor_of(open_(), INPUT) == tensor
    assert hub.sent() == 0


def test_an_old_bare_name_is_followed_to_its_new_home(hub):
    files = {"config.json": b'{"n": 1}', "model.safetensors": shard({INPUT: ("F32", (4, 8))})}
    hub.put("openai-community/gpt2", files)
    hub.put("gpt2", {}, renamed="openai-community/gpt2")
    hub.repos["gpt2"].commits = hub.repos["openai-community/gpt2"].commits
    hub.repos["gpt2"].refs = hub.repos["openai-community/gpt2"].refs
    source = open_("gpt2")
    assert source.read("config.json") == b'{"n": 1}'
    assert tensor_of(source, INPUT).shape == (4, 8)


def test_names_come_from_one_list_that_is_kept_with_sizes_and_hashes(hub):
    _, commit = put_gemma(hub)
    hub.page = 1
    names = ["config.json", "model.safetensors"]
    source = open_(f"org/model@{commit}")
    assert source.names() == names
    assert [asked.path for asked in hub.log] == [f"/api/models/org/model/tree/{commit}"] * 2
    assert source.size("model.safetensors") == len(shard(GEMMA, 20_000))
    assert source.key("model.safetensors").startswith("sha256-")
    assert len(hub.log) == 2
    assert open_(f"org/model@{commit}").names() == names
    assert len(hub.log) == 2


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "http://host/x", "a\\..\\b", "a/../../b", ""]
)
def test_a_file_name_that_leaves_the_model_is_refused(hub, name):
    put_gemma(hub)
    source = open_()
    for look in (source.read, source.has, source.size, source.path, source.key):
        with pytest.raises(SourceError, match="leaves the model's folder"):
            look(name)


@pytest.mark.parametrize(
    "name", ["../../../../escaped", "/escaped", "x" * 400, ".", "..", "北京/weight", "a\nb"]
)
def test_a_tensor_name_stays_a_name(hub, tmp_path, name):
    content = shard({name: ("F32", (4, 8))})
    hub.put("org/model", {"config.json": b"{}", "model.safetensors": content})
    source = open_()
    tensor = tensor_of(source, name)
    before = {path for path in tmp_path.rglob("*") if "assets" not in path.parts}
    rows = source.rows("model.safetensors", tensor, [2], 32)
    assert rows.tobytes() == content[tensor.start + 64 : tensor.start + 96]
    path, start = source.fetch("model.safetensors", tensor, lambda done, total: None)
    assert path.read_bytes()[start:] == content[tensor.start : tensor.stop]
    assert path.parent.parent.name == "blobs"
    after = {path for path in tmp_path.rglob("*") if "assets" not in path.parts}
    assert after == before


def test_importing_the_sources_brings_no_client(tmp_path):
    code = "import sys, embtool.source, embtool.source.local; print(*sorted(sys.modules))"
    modules = run(None, tmp_path, code).stdout.split()
    assert "embtool.source" in modules
    for heavy in ("httpx2", "httpx", "huggingface_hub.file_download", "huggingface_hub.hf_api"):
        assert heavy not in modules


def test_the_loopback_hub_names_files_as_git_and_sha256_do():
    assert as_file("a.json", b"x\n").etag == "587be6b4c3f93f93c489c0111bba5596147a26cb"
    head, nbytes = header_of({"t": ("F32", (2, 3))}, 100)
    assert (len(head), nbytes) == (108, 24)


def test_a_refusal_is_asked_for_once(hub):
    source = open_("org/absent")
    for look in (source.names, lambda: source.has(INDEX), lambda: source.read("config.json")):
        with pytest.raises(SourceError, match="there is no such model"):
            look()
    assert len(hub.log) == 1


def test_a_whole_file_is_brought_without_a_bar_and_with_its_progress(hub, capfd):
    put_gemma(hub)
    source = open_()
    seen = []
    hub.put("org/model", {"model.safetensors": shard({INPUT: ("F32", (400_000, 8))})})
    path = source.shard("model.safetensors", lambda done, total: seen.append((done, total)))
    nbytes = path.stat().st_size
    assert seen[-1] == (nbytes, nbytes)
    assert len(seen) > 1
    assert capfd.readouterr() == (
        "",
        f"note: fetching model.safetensors of org/model, all of its {nbytes:,} bytes\n"
        "note: comparing model.safetensors with the sha256 that the Hub publishes for it\n",
    )
