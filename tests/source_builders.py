"""A model of Gemma's shape on the loopback Hub, and its source."""

from hub.contents import shard
from hub.models import INPUT

from embtool.header import read_header
from embtool.source.hub import HubSource, open_hub

GEMMA = {"model.norm.weight": ("BF16", (640,)), INPUT: ("BF16", (262_144, 640))}
ROW = 1280


def open_(ref="org/model", **options) -> HubSource:
    repo, _, revision = ref.partition("@")
    return open_hub(ref, repo, revision or None, **options)


def tensor_of(source, name, file="model.safetensors"):
    header = read_header(lambda a, b: source.bytes(file, a, b), source.size(file), file)
    return header.tensors[name]


def put_gemma(hub, **facts):
    content = shard(GEMMA, 20_000)
    commit = hub.put(
        "org/model",
        {"config.json": b'{"vocab_size": 262144}', "model.safetensors": content},
        **facts,
    )
    return content, commit
