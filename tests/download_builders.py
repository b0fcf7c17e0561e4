"""A table on the loopback Hub that is fetched in five ranges, and how it is fetched."""

from hub import Hub, in_process
from hub.contents import shard

from embtool.header import read_header
from embtool.source import wire
from embtool.source.hub import HubSource, open_hub
from embtool.source.ranges import STEP

FILE, INPUT = "model.safetensors", "model.embed_tokens.weight"
ROW = 2560
ROWS = 5 * STEP // ROW
SMALL = {"model.norm.weight": ("BF16", (1280,)), INPUT: ("BF16", (ROWS, 1280))}


def hub_without_waits(tmp_path, monkeypatch):
    """A fixture's function: an empty Hub, and no pause before another try."""
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


def finish(content, tensor):
    path, start = open_().fetch(FILE, tensor, silent)
    assert stored(path, start, tensor) == content[tensor.start : tensor.stop]
