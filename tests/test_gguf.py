"""GGUF headers: the package's own files and Gemma's are read, hostile ones named."""

import mmap
import random
import struct

import gguf as peer
import numpy as np
import pytest

from embtool import gguf
from embtool.errors import FormatError, UnsupportedError
from embtool.gguf import NeedMore, Strings
from embtool.header import TensorInfo

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
CODES = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B"} | {
    U64: "Q",
    I64: "q",
    F64: "d",
}


def text(value):
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def value(kind, content):
    if kind == STRING:
        return text(content)
    if kind == ARRAY:
        inner, items = content
        head = struct.pack("<IQ", inner, len(items))
        return head + b"".join(value(inner, item) for item in items)
    return struct.pack("<" + CODES[kind], content)


def pair(key, kind, content):
    return text(key) + struct.pack("<I", kind) + value(kind, content)


def tensor(name, dims, kind, offset):
    head = text(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
    return head + struct.pack("<IQ", kind, offset)


def packed(pairs=(), tensors=(), *, version=3, data=b"", alignment=32, counts=None):
    counts = counts or (len(tensors), len(pairs))
    head = b"GGUF" + struct.pack("<IQQ", version, *counts) + b"".join(pairs) + b"".join(tensors)
    return head + bytes(-len(head) % alignment) + data


TABLE = tensor("token_embd.weight", (64, 3), 8, 0)  # Q8_0: 3 rows of 68 bytes


def fault(file, nbytes=None, kind=FormatError):
    with pytest.raises(kind) as caught:
        gguf.parse(file, "x", nbytes)
    assert caught.value.advice
    return caught.value.message


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


@pytest.mark.parametrize(
    ("kind", "content", "shown"),
    [(U32, 0, "0"), (U32, 48, "48"), (I32, -32, "-32"), (F32, 32.0, "32.0"), (BOOL, 1, "True")],
)
def test_bad_alignment(kind, content, shown):
    message = fault(packed([pair("general.alignment", kind, content)]))
    assert message == f"x: general.alignment is {shown}, not a power of two"


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


def test_a_file_that_ends_among_its_tensors():
    file = packed([], [TABLE, tensor("b", (32,), 0, 224)], data=bytes(352))
    for cut, missing in ((0, 0), (1, 1), (128, 128), (150, 150), (352, 352)):
        got = gguf.parse(file[: len(file) - cut], "x")
        assert got.missing == missing
        assert (got.tensors["token_embd.weight"].stop <= got.nbytes) == (cut <= 148)


PAIRS = [
    pair("general.name", STRING, "tiny"),
    pair("tokens", ARRAY, (STRING, [b"a", b"bc", b"", b"def"])),
    pair("scores", ARRAY, (F32, [0.5, 1.5])),
    pair("nested", ARRAY, (ARRAY, [(U8, [1, 2])])),
    pair("flag", BOOL, 1),
]


def test_every_beginning_of_a_file():
    """Of a longer file it asks for more, bounded by the file; by itself it is truncated."""
    file = packed(PAIRS, [TABLE], data=bytes(204))
    header = len(packed(PAIRS, [TABLE], alignment=1))
    whole = gguf.parse(file, "x").tensors
    for length in range(len(file)):
        if length >= header:
            assert gguf.parse(file[:length], "x", len(file)).tensors == whole
            continue
        with pytest.raises(NeedMore) as caught:
            gguf.parse(file[:length], "x", len(file))
        assert length < caught.value.need <= header
        message = fault(file[:length])
        if 24 <= length < 24 + 13 * len(PAIRS) + 24:
            assert message.startswith("x: 5 metadata keys and 1 tensors are more than a file of ")
        else:
            assert message.startswith(f"x is truncated or damaged: it has {length} bytes, and ")


def test_reading_on_as_asked_ends():
    file = packed(PAIRS, [TABLE], data=bytes(204))
    length, reads = 0, 0
    while True:
        reads += 1
        try:
            got = gguf.parse(memoryview(file)[:length], "x", len(file))
            break
        except NeedMore as more:
            length = more.need
    assert reads < 100
    assert list(got.metadata["tokens"]) == [b"a", b"bc", b"", b"def"]


def test_other_versions_and_byte_orders():
    assert fault(packed(version=1), kind=UnsupportedError) == (
        "x is GGUF version 1, which is not read"
    )
    assert fault(packed(version=4), kind=UnsupportedError) == (
        "x is GGUF version 4, which is not read"
    )
    assert fault(packed(version=0), kind=UnsupportedError) == (
        "x is GGUF version 0, which is not read"
    )
    swapped = b"GGUF" + struct.pack(">IQQ", 3, 0, 0)
    assert fault(swapped, kind=UnsupportedError) == "x is big-endian GGUF, which is not read"


def test_other_files():
    assert fault(b"PK\3\4" + bytes(60)) == r"x is no GGUF file: it begins with b'PK\x03\x04'"
    assert fault(b"") == (
        "x is truncated or damaged: it has 0 bytes, and its header goes on for 24 at least"
    )
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    assert fault(pointer) == "x is a Git LFS pointer, not the file"


HUGE = struct.pack("<Q", (1 << 64) - 1)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (packed(counts=(1 << 60, 0)), "x: 0 metadata keys and 1152921504606846976 tensors are mo"),
        (packed(counts=(0, 1 << 63)), "x: 9223372036854775808 metadata keys and 0 tensors are m"),
        (packed([HUGE + bytes(40)]), "x is truncated or damaged: it has "),
        (packed([text("k") + struct.pack("<I", STRING) + HUGE]), "x is truncated or damaged: "),
        *(
            (
                packed([text("k") + struct.pack("<II", ARRAY, kind) + HUGE + bytes(64)]),
                "x is truncated or damaged: ",
            )
            for kind in (U8, F64, BOOL, STRING, ARRAY)
        ),
        (
            packed([text("k") + struct.pack("<IIQ", ARRAY, STRING, 3) + HUGE + bytes(64)]),
            "x is truncated or damaged: ",
        ),
        (packed([pair("k", U8, 1), pair("k", U8, 2)]), "x: the metadata key 'k' stands twice"),
        (packed([pair("k", BOOL, 2)]), "x: a boolean is neither 0 nor 1"),
        (packed([pair("k", ARRAY, (BOOL, [1, 255]))]), "x: a boolean is neither 0 nor 1"),
        (
            packed([text("k") + struct.pack("<I", 13) + bytes(8)]),
            "x: its metadata has a value of the unknown type 13 before byte 37",
        ),
        (
            packed([text("k") + struct.pack("<IIQ", ARRAY, 99, 0)]),
            "x: its metadata has a value of the unknown type 99 before byte 49",
        ),
        (packed([], [TABLE, TABLE]), "x: the tensor 'token_embd.weight' stands twice"),
        (
            packed([], [tensor("t\x1b", (1,) * 5, 0, 0)]),
            r"x: the tensor 't\x1b' has 5 dimensions, more than 4",
        ),
        (
            packed([], [tensor("t", (1 << 62, 2), 0, 0)]),
            "x: the tensor 't' is larger than any file: [2, 4611686018427387904]",
        ),
        (
            packed([], [tensor("t", (0, 1 << 63), 0, 0)]),
            "x: the tensor 't' is larger than any file: [9223372036854775808, 0]",
        ),
        (packed([], [tensor("t", (1,), 0, 1 << 63)]), "x: the tensor 't' is larger than any file"),
        (
            packed([], [tensor("t", (100, 3), 8, 0)]),
            "x: the tensor 't': 100 elements are no multiple of Q8_0's block of 32",
        ),
        (
            packed([], [tensor("t", (), 8, 0)]),
            "x: the tensor 't': 1 elements are no multiple of Q8_0's block of 32",
        ),
        (
            packed([], [tensor("t", (4,), 0, 16)]),
            "x: the tensor 't' begins at offset 16, no multiple of 32",
        ),
        (
            packed([], [tensor("b", (4,), 0, 32), tensor("a", (9,), 0, 0)]),
            "x: the tensor 'a' ends at byte 132, but the next one begins at 128",
        ),
    ],
)
def test_malformed_files(file, message):
    assert fault(file).startswith(message)


def test_nesting_without_end():
    deep = b"".join(struct.pack("<IQ", ARRAY, 1) for _ in range(5000))
    file = packed([text("k") + struct.pack("<I", ARRAY) + deep])
    assert fault(file) == "x: its metadata is nested too deeply"


def test_damaged_bytes_are_never_a_traceback():
    whole = packed(PAIRS, [TABLE, tensor("b", (32,), 0, 224)], data=bytes(352))
    generator = random.Random(5)
    outcomes = set()
    for _ in range(3000):
        file = bytearray(whole)
        for _ in range(generator.randint(1, 3)):
            file[generator.randrange(len(whole) - 352)] = generator.choice([0, 1, 8, 255, 127])
        try:
            got = gguf.parse(bytes(file), "x")
            list(got.metadata.get("tokens", ()))
            outcomes.add("read")
        except (FormatError, UnsupportedError) as error:
            outcomes.add(type(error).__name__)
    assert outcomes == {"read", "FormatError", "UnsupportedError"}


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
