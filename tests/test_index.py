"""The index of shards: whole, and found in pieces of it."""

import json

import pytest

from embtool.errors import FormatError
from embtool.header import Index, find_in_fragment, parse_index


def index(weight_map, **metadata):
    return json.dumps({"metadata": metadata, "weight_map": weight_map}).encode()


def test_index():
    raw = index(
        {
            "lm_head.weight": "model-00160-of-000163.safetensors",
            "wte": "model_01-of-72.safetensors",
        },
        total_size=1_369_062_772_000,
        total_parameters=684_531_386_000,
    )
    assert parse_index(raw, "i") == Index(
        {
            "lm_head.weight": "model-00160-of-000163.safetensors",
            "wte": "model_01-of-72.safetensors",
        },
        1_369_062_772_000,
        684_531_386_000,
    )


@pytest.mark.parametrize(
    ("value", "whole"),
    [(5.0e9, 5_000_000_000), (1.5, None), ("7", None), (True, None), (-1, None), (None, None)],
)
def test_index_totals(value, whole):
    assert parse_index(index({}, total_size=value), "i").total_size == whole


def test_index_without_metadata_and_in_a_subfolder():
    raw = b'{"weight_map": {"wte": "part/one.safetensors"}}'
    assert parse_index(raw, "i") == Index({"wte": "part/one.safetensors"}, None, None)
    assert parse_index(b'{"metadata": 3, "weight_map": {}}', "i") == Index({}, None, None)


HOSTILE_SHARDS = [
    "",
    "/etc/passwd",
    "../up.safetensors",
    "a/../../up.safetensors",
    "./here.safetensors",
    "a//b.safetensors",
    "a/",
    "..\\up.safetensors",
    "C:model.safetensors",
    "https://example.org/model.safetensors",
    "a\x00b",
    "a\nb",
]


@pytest.mark.parametrize("shard", [*HOSTILE_SHARDS, 3, None, ["a"], {"a": 1}])
def test_index_shards_stay_in_their_folder(shard):
    with pytest.raises(FormatError) as caught:
        parse_index(index({"good": "model.safetensors", "wte": shard}), "i")
    shown = repr(shard if isinstance(shard, str) else None)
    assert caught.value.message == f"i: {shown} is no name of a shard in its folder"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "i: its JSON is malformed: "),
        (b"[]", "i holds no JSON object"),
        (b"{}", "i has no weight_map of tensors to shards"),
        (b'{"weight_map": []}', "i has no weight_map of tensors to shards"),
        (b'{"weight_map": {"a": "x", "a": "y"}}', "i: its JSON is malformed: the key 'a' stands"),
        (b'{"weight_map": {}} {"weight_map": {}}', "i: its JSON is malformed: Extra data"),
    ],
)
def test_malformed_index(raw, message):
    with pytest.raises(FormatError) as caught:
        parse_index(raw, "i")
    assert caught.value.message.startswith(message)


NAMES = ["lm_head.weight", "model.embed_tokens.weight", "词.weight", 'odd"name\\']
SHARDS = {
    "a.lm_head.weight": "model-00009-of-00009.safetensors",
    "lm_head.weight": "model-00002-of-00009.safetensors",
    "lm_head.weight.scale": "model-00008-of-00009.safetensors",
    "model.embed_tokens.weight": "model-00001-of-00009.safetensors",
    'odd"name\\': "model-00003-of-00009.safetensors",
    'x,"lm_head.weight": "no.safetensors",': "model-00007-of-00009.safetensors",
    "词.weight": "model-00004-of-00009.safetensors",
}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_every_fragment_of_an_index(indent, ascii_only):
    """Cut anywhere, a piece gives the right shard or none; the whole gives all."""
    whole = json.dumps({"weight_map": SHARDS}, indent=indent, ensure_ascii=ascii_only).encode()
    right = {name: SHARDS[name] for name in NAMES}
    assert find_in_fragment(whole, NAMES) == right
    for cut in range(len(whole)):
        for piece in (whole[cut:], whole[:cut], whole[cut : cut + 120]):
            assert find_in_fragment(piece, NAMES).items() <= right.items()
    comma = whole.rindex(b",", 0, whole.index(b'"lm_head.weight":'))
    assert "lm_head.weight" in find_in_fragment(whole[comma:], NAMES)
    assert "lm_head.weight" not in find_in_fragment(whole[comma + 1 :], NAMES)


def test_fragment_of_a_compact_index():
    piece = b'dden","wte":"one.safetensors","b":"tw'
    assert find_in_fragment(piece, ["wte", "b"]) == {"wte": "one.safetensors"}
    assert find_in_fragment(piece, []) == {}
    assert find_in_fragment(b"", ["wte"]) == {}


@pytest.mark.parametrize("shard", HOSTILE_SHARDS)
def test_fragment_shards_stay_in_their_folder(shard):
    with pytest.raises(FormatError) as caught:
        find_in_fragment(index({"wte": shard}), ["wte"])
    assert caught.value.message == f"the index: {shard!r} is no name of a shard in its folder"


def test_fragment_that_is_no_json():
    with pytest.raises(FormatError) as caught:
        find_in_fragment(b'{"wte": "a\\q"}', ["wte"])
    assert caught.value.message.startswith("the index is malformed: ")
