"""GGUF headers: what the package and Gemma's authors wrote is read."""

import mmap

import gguf as peer
import numpy as np
import pytest
from gguf_builder import (
    ARRAY,
    BOOL,
    CODES,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    STRING,
    TABLE,
    U8,
    U16,
    U32,
    U64,
    packed,
    pair,
    tensor,
)

from embtool import gguf
from embtool.gguf import NeedMore, Strings
from embtool.header import TensorInfo


@pytest.mark.parametrize("version", [2, 3])
def test_a_table(version):
    file = packed([pair("general.name", STRING, "甲")], [TABLE], version=version, data=bytes(204))
    got = gguf.parse(file, "x")
    assert (got.version, got.metadata, got.nbytes) == (version, {"general.name": "甲"}, len(file))
    start = len(file) - 204
    assert got.tensors == {
        "token_embd.weight": TensorInfo("token_embd.weight", "Q8_0", (3, 64), start, len(file))
    }
    assert start % 32 == 0
    assert got.missing == 0


def test_nothing_in_it():
    got = gguf.parse(packed(), "x")
    assert (got.metadata, got.tensors, got.missing) == ({}, {}, 0)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (U8, 200),
        (I8, -3),
        (U16, 65_535),
        (I16, -3),
        (U32, 4_000_000_000),
        (I32, -3),
        (U64, 1 << 63),
        (I64, -(1 << 62)),
        (F32, 0.5),
        (F64, 0.1),
        (STRING, "a\tb"),
        (STRING, ""),
    ],
)
def test_single_values(kind, content):
    got = gguf.parse(packed([pair("k", kind, content)]), "x").metadata["k"]
    assert got == content
    assert type(got) is type(content)


def test_booleans():
    pairs = [pair("yes", BOOL, 1), pair("no", BOOL, 0), pair("many", ARRAY, (BOOL, [1, 0, 1]))]
    got = gguf.parse(packed(pairs), "x").metadata
    assert got["yes"] is True
    assert got["no"] is False
    assert got["many"].dtype == np.bool_
    assert got["many"].tolist() == [True, False, True]


@pytest.mark.parametrize("kind", sorted(set(CODES) - {BOOL}))
def test_arrays_of_numbers_are_views(kind):
    file = packed([pair("odd", ARRAY, (kind, [1, 2, 100])), pair("none", ARRAY, (kind, []))])
    got = gguf.parse(file, "x").metadata
    assert got["odd"].tolist() == [1, 2, 100]
    assert not got["odd"].flags.owndata
    assert np.shares_memory(got["odd"], np.frombuffer(file, np.uint8))
    assert got["none"].shape == (0,)


def test_strings_are_bytes_and_may_be_no_utf_8():
    pieces = [b"the", b"", b"\xff\xfe", "王".encode(), b"a\0b", b"x" * 300]
    got = gguf.parse(packed([pair("tokens", ARRAY, (STRING, pieces))]), "x").metadata["tokens"]
    assert isinstance(got, Strings)
    assert len(got) == 6
    assert list(got) == pieces
    assert list(got) == pieces


def test_arrays_of_arrays():
    content = (ARRAY, [(STRING, [b"a", b"b"]), (U16, [7]), (ARRAY, [(U8, [1])]), (U8, [])])
    got = gguf.parse(packed([pair("k", ARRAY, content), pair("after", U8, 9)]), "x").metadata
    strings, numbers, nested, empty = got["k"]
    assert list(strings) == [b"a", b"b"]
    assert numbers.tolist() == [7]
    assert [inner.tolist() for inner in nested] == [[1]]
    assert empty.tolist() == []
    assert got["after"] == 9


def test_text_that_is_no_utf_8_is_escaped():
    got = gguf.parse(packed([pair(b"k\xff", STRING, b"\xe7\x94")]), "x").metadata
    assert got == {"k\\xff": "\\xe7\\x94"}


def test_alignment():
    pairs = [pair("general.alignment", U32, 256)]
    file = packed(pairs, [TABLE], data=bytes(204), alignment=256)
    assert gguf.parse(file, "x").tensors["token_embd.weight"].start == 256


def test_every_type_of_the_package():
    assert {kind.value: kind.name for kind in peer.GGMLQuantizationType} == gguf.TYPES
    for kind, (elements, nbytes) in peer.GGML_QUANT_SIZES.items():
        file = packed([], [tensor("t", (elements * 2, 5), kind.value, 0)])
        info = gguf.parse(file, "x").tensors["t"]
        assert (info.dtype, info.shape) == (kind.name, (5, elements * 2))
        assert info.stop - info.start == 10 * nbytes


def test_a_type_that_is_not_known_stays_listed():
    """It reaches to the next tensor, the last to the end of the file."""
    tensors = [
        tensor("last", (7, 2), 99, 64),
        tensor("first", (7, 2), 98, 0),
        tensor("f", (4,), 0, 32),
    ]
    file = packed([], tensors, data=bytes(100))
    got = gguf.parse(file, "x").tensors
    data = len(file) - 100
    assert list(got.values()) == [
        TensorInfo("last", "GGML_99", (2, 7), data + 64, data + 100),
        TensorInfo("first", "GGML_98", (2, 7), data, data + 32),
        TensorInfo("f", "F32", (4,), data + 32, data + 48),
    ]


def test_scalars_and_empty_tensors():
    tensors = [tensor("s", (), 0, 0), tensor("e", (32, 0), 8, 32), tensor("f", (1,), 0, 32)]
    got = gguf.parse(packed([], tensors, data=bytes(36)), "x")
    assert [info.shape for info in got.tensors.values()] == [(), (0, 32), (1,)]
    assert got.missing == 0


def test_a_file_of_the_package_s_writer(tmp_path):
    path = tmp_path / "w.gguf"
    writer = peer.GGUFWriter(path, "llama")
    writer.add_custom_alignment(64)
    writer.add_uint32("a.u32", 7)
    writer.add_float32("a.f32", 0.25)
    writer.add_bool("a.bool", True)
    writer.add_string("a.string", "北京")
    writer.add_token_list(["a", "北京", "c"])
    writer.add_token_scores([0.0, -1.0, -2.5])
    table = np.arange(6 * 32, dtype=np.float32).reshape(6, 32)
    stored = peer.quants.quantize(table, peer.GGMLQuantizationType.Q8_0)
    writer.add_tensor("token_embd.weight", stored, raw_dtype=peer.GGMLQuantizationType.Q8_0)
    writer.add_tensor("norm.weight", np.ones(5, np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    whole = path.read_bytes()
    got = gguf.parse(whole, path.name)
    assert {k: v for k, v in got.metadata.items() if k.startswith("a.")} == {
        "a.u32": 7,
        "a.f32": 0.25,
        "a.bool": True,
        "a.string": "北京",
    }
    assert list(got.metadata["tokenizer.ggml.tokens"]) == [b"a", "北京".encode(), b"c"]
    assert got.metadata["tokenizer.ggml.scores"].tolist() == [0.0, -1.0, -2.5]
    info = got.tensors["token_embd.weight"]
    assert (info.dtype, info.shape, info.start % 64) == ("Q8_0", (6, 32), 0)
    assert whole[info.start : info.stop] == stored.tobytes()
    info = got.tensors["norm.weight"]
    assert (info.dtype, info.shape) == ("F16", (5,))
    assert whole[info.start : info.stop] == np.ones(5, np.float16).tobytes()


def test_gemma(gemma_path):
    with (
        gemma_path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole,
    ):
        got = gguf.parse(whole, gemma_path.name)
        assert (got.version, len(got.metadata), len(got.tensors)) == (3, 33, 236)
        assert (got.nbytes, got.missing) == (253_113_024, 0)
        assert got.tensors["token_embd.weight"] == TensorInfo(
            "token_embd.weight", "Q8_0", (262_144, 640), 6_527_680, 184_785_600
        )
        assert max(info.stop for info in got.tensors.values()) == got.nbytes
        assert got.metadata["general.architecture"] == "gemma3"
        assert got.metadata["gemma3.embedding_length"] == 640
        assert got.metadata["tokenizer.ggml.add_bos_token"] is True
        tokens = list(got.metadata["tokenizer.ggml.tokens"])
        assert len(got.metadata["tokenizer.ggml.tokens"]) == len(tokens) == 262_144
        assert tokens[:3] == [b"<pad>", b"<eos>", b"<bos>"]
        assert tokens[-1] == b"<unused6241>"
        scores = got.metadata["tokenizer.ggml.scores"]
        assert (scores.dtype, scores.shape) == (np.float32, (262_144,))
        with pytest.raises(NeedMore) as caught:
            gguf.parse(whole[:65_536], gemma_path.name, len(whole))
        assert 8 * 262_144 < caught.value.need < got.tensors["token_embd.weight"].start
        del got, scores  # they hold views of the map, which is about to close
