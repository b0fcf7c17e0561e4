"""Safetensors headers: what is read, and one message for every way to be malformed."""

import json
import struct

import pytest
from safetensors import SafetensorError, deserialize

from embtool.errors import FormatError
from embtool.header import Header, TensorInfo, read_header

TABLE = {"dtype": "BF16", "shape": [3, 4], "data_offsets": [0, 24]}


def packed(header, data_nbytes):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + bytes(data_nbytes)


def read(file, nbytes=None):
    """Parse a file from memory, and check what it asks for."""
    nbytes = len(file) if nbytes is None else nbytes
    reads = []

    def bytes_of(start, stop):
        reads.append((start, stop))
        return file[start:stop]

    header = read_header(bytes_of, nbytes, "x.safetensors")
    first = min(nbytes, 65_536)
    needed = 8 + int.from_bytes(file[:8], "little")
    assert reads == [(0, first)] + ([(first, needed)] if needed > first else [])
    return header


def fault(file, nbytes=None):
    with pytest.raises(FormatError) as caught:
        read_header(lambda a, b: file[a:b], len(file) if nbytes is None else nbytes, "x")
    assert caught.value.advice
    return caught.value.message


def refused(header, data_nbytes):
    """The message, for a file that the format's own reader refuses too."""
    file = packed(header, data_nbytes)
    with pytest.raises(SafetensorError):
        deserialize(file)
    return fault(file)


def test_a_table_and_metadata():
    file = packed({"__metadata__": {"format": "pt"}, "wte.weight": TABLE}, 24)
    data = len(file) - 24
    assert read(file) == Header(
        {"wte.weight": TensorInfo("wte.weight", "BF16", (3, 4), data, data + 24)},
        {"format": "pt"},
        len(file),
    )


def test_no_tensor_at_all():
    assert read(packed({}, 0)) == Header({}, {}, 10)


def test_entries_in_any_order_padding_and_unknown_keys():
    header = {
        "b": {"dtype": "U8", "shape": [2], "data_offsets": [24, 26], "note": "kept by others"},
        "a": TABLE,
    }
    file = packed(json.dumps(header).encode() + b"   ", 26)
    got = read(file).tensors
    assert [(i.name, i.stop - i.start) for i in got.values()] == [("b", 2), ("a", 24)]
    assert got["b"].stop == len(file)


def test_empty_tensors_and_scalars():
    header = {
        "empty": {"dtype": "F32", "shape": [0, 7], "data_offsets": [0, 0]},
        "scalar": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
        "end": {"dtype": "F32", "shape": [3, 0], "data_offsets": [4, 4]},
        "huge": {"dtype": "F32", "shape": [2**62, 2**62, 0], "data_offsets": [4, 4]},
    }
    shapes = {name: info.shape for name, info in read(packed(header, 4)).tensors.items()}
    assert shapes == {
        "empty": (0, 7),
        "scalar": (),
        "end": (3, 0),
        "huge": (2**62, 2**62, 0),
    }


@pytest.mark.parametrize(
    ("dtype", "elements", "nbytes"),
    [("F4", 4, 2), ("F6_E2M3", 4, 3), ("F6_E3M2", 8, 6), ("F8_E8M0", 3, 3), ("C64", 2, 16)],
)
def test_dtypes_of_odd_width(dtype, elements, nbytes):
    header = {"x": {"dtype": dtype, "shape": [elements], "data_offsets": [0, nbytes]}}
    deserialize(packed(header, nbytes))
    assert read(packed(header, nbytes)).tensors["x"].dtype == dtype
    header["x"]["shape"] = [elements + 1]
    assert refused(header, nbytes).startswith(f"x: the tensor 'x' has {nbytes} bytes, but {dtype}")


def test_an_unknown_dtype_hides_no_other_tensor():
    header = {"odd": {"dtype": "F3_NEW", "shape": [8], "data_offsets": [24, 27]}, "wte": TABLE}
    got = read(packed(header, 27)).tensors
    assert got["odd"].dtype == "F3_NEW"
    assert got["wte"].shape == (3, 4)


@pytest.mark.parametrize("header_nbytes", [65_527, 65_528, 65_529, 200_000])
def test_a_second_read_only_where_it_is_needed(header_nbytes):
    raw = json.dumps({"wte": TABLE}).encode()
    assert "wte" in read(packed(raw + b" " * (header_nbytes - len(raw)), 24)).tensors


def test_a_short_read_is_noticed():
    raw = json.dumps({"wte": TABLE}).encode().ljust(70_000)
    file = packed(raw, 24)
    assert fault(file[:66_000], len(file)) == "x: the header has 70000 bytes, 65992 came"


def test_lfs_pointer():
    pointer = (
        b"version https://git-lfs.github.com/spec/v1\n"
        b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
    )
    with pytest.raises(FormatError) as caught:
        read_header(lambda a, b: pointer[a:b], len(pointer), "model.safetensors")
    assert caught.value.message == "model.safetensors is a Git LFS pointer, not the file"
    assert "git lfs pull" in caught.value.advice


def test_truncated_says_both_numbers():
    file = packed({"wte": TABLE}, 24)
    n = len(file)
    assert fault(file[:-5]) == (
        f"x is truncated: its header describes {n} bytes, the file has {n - 5}"
    )
    assert fault(file[:40]) == f"x is truncated: its header ends at byte {n - 24}, the file at 40"
    assert fault(file[:5]) == "x has 5 bytes, a safetensors file at least 8"
    assert fault(b"") == "x has 0 bytes, a safetensors file at least 8"


def test_bytes_after_the_last_tensor():
    n = len(packed({"wte": TABLE}, 24))
    assert refused({"wte": TABLE}, 25) == (
        f"x is longer than its tensors: its header describes {n} bytes, the file has {n + 1}"
    )


def test_a_huge_length_is_not_read():
    def read_first(start, stop):
        assert (start, stop) == (0, 65_536)
        return b"\xff" * 7 + b"\x7f" + bytes(65_528)

    with pytest.raises(FormatError) as caught:
        read_header(read_first, 1 << 50, "x")
    assert caught.value.message == (
        "x: its first 8 bytes call for a header of 9223372036854775807 bytes, "
        "and the format allows 100000000"
    )


def entry(**changes):
    return {"wte": {**TABLE, **changes}}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"", "x: its header is no JSON object"),
        (b"[1]", "x: its header is no JSON object"),
        (b"{", "x: its JSON is malformed: "),
        (b'{"\xff":1}', "x: its JSON is malformed: 'utf-8' codec"),
        ({"wte": 1}, "x: the tensor 'wte' is described by no JSON object"),
        ({"wte": {}}, "x: the tensor 'wte' has no dtype"),
        (entry(dtype=None), "x: the tensor 'wte' has no dtype"),
        (entry(shape=12), "x: the tensor 'wte' has no shape of whole numbers"),
        (entry(shape=[3, 4.0]), "x: the tensor 'wte' has no shape of whole numbers"),
        (entry(shape=[12, True]), "x: the tensor 'wte' has no shape of whole numbers"),
        (entry(shape=[-3, -4]), "x: the tensor 'wte' has no shape of whole numbers"),
        (entry(shape=[2**64]), "x: the tensor 'wte' has no shape of whole numbers"),
        (entry(data_offsets=[24]), "x: the tensor 'wte' has no pair of ascending data_offsets"),
        (entry(data_offsets=[24, 0]), "x: the tensor 'wte' has no pair of ascending data_offsets"),
        (entry(data_offsets=[0, "24"]), "x: the tensor 'wte' has no pair of ascending data_of"),
        (entry(shape=[3, 5]), "x: the tensor 'wte' has 24 bytes, but BF16 [3, 5] takes 30"),
        (entry(dtype="F32"), "x: the tensor 'wte' has 24 bytes, but F32 [3, 4] takes 48"),
        (
            entry(shape=[2**62, 2**62]),
            "x: the tensor 'wte' has 24 bytes, but BF16 [4611686018427387904, 46116860184273879",
        ),
        ({"__metadata__": {"a": 1}, "wte": TABLE}, "x: __metadata__ is no map of strings"),
        ({"__metadata__": [], "wte": TABLE}, "x: __metadata__ is no map of strings"),
    ],
)
def test_malformed_headers(header, message):
    assert refused(header, 24).startswith(message)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_have(constant):
    header = f'{{"wte": {{"dtype": "U8", "shape": [{constant}], "data_offsets": [0, 24]}}}}'
    assert refused(header.encode(), 24) == f"x: its JSON is malformed: {constant} is no JSON"


def test_duplicate_keys():
    one = json.dumps(TABLE)
    header = f'{{"a": {one}, "wte\\u001b": {one}, "wte\\u001b": {one}}}'.encode()
    assert fault(packed(header, 24)) == (
        r"x: its JSON is malformed: the key 'wte\x1b' stands twice"
    )


def test_nesting_and_digits_without_end():
    assert fault(packed(b'{"a":' + b"[" * 200_000, 24)) == "x: its JSON is nested too deeply"
    digits = b'{"a": {"dtype": "U8", "shape": [' + b"9" * 5000 + b"]}}"
    assert fault(packed(digits, 24)).startswith("x: its JSON is malformed: ")


def test_a_shape_without_end_is_quick():
    header = entry(shape=[2**62] * 200_000)
    assert fault(packed(header, 24)).startswith("x: the tensor 'wte' has 24 bytes, but BF16 [46")


@pytest.mark.parametrize(
    ("second", "data_nbytes", "what"),
    [([25, 27], 27, "a hole before"), ([23, 25], 25, "an overlap at"), ([0, 2], 24, "an overlap")],
)
def test_holes_and_overlaps(second, data_nbytes, what):
    header = {"wte": TABLE, "b": {"dtype": "U8", "shape": [2], "data_offsets": second}}
    assert refused(header, data_nbytes).startswith(f"x: {what}")


def test_a_hole_at_the_start():
    message = refused(entry(data_offsets=[1, 25]), 25)
    assert message.startswith("x: a hole before the tensor 'wte': it begins at byte ")


def test_hostile_names_do_not_reach_the_terminal():
    message = fault(packed({"\x1b[2J" + "a" * 1000: 1}, 0))
    assert message.startswith(r"x: the tensor '\x1b[2Jaaa")
    assert len(message) < 200


def test_real_files(wordllama_path, minilm_folder):
    """What safetensors' own reader says of the real tables that packages ship."""
    for path, table, shape, dtype in (
        (wordllama_path, "embedding.weight", (32_000, 256), "F16"),
        (
            minilm_folder / "model.safetensors",
            "embeddings.word_embeddings.weight",
            (30_522, 384),
            "F32",
        ),
    ):
        with path.open("rb") as file:

            def read_at(start, stop, file=file):
                file.seek(start)
                return file.read(stop - start)

            header = read_header(read_at, path.stat().st_size, path.name)
        whole = path.read_bytes()
        assert (header.tensors[table].shape, header.tensors[table].dtype) == (shape, dtype)
        theirs = dict(deserialize(whole))
        assert header.tensors.keys() == theirs.keys()
        for name, info in header.tensors.items():
            assert list(info.shape) == theirs[name]["shape"]
            assert whole[info.start : info.stop] == theirs[name]["data"]
