"""GGUF files that are cut short, damaged, hostile or of another kind: each is named."""

import random
import struct

import pytest
from gguf_builder import (
    ARRAY,
    BOOL,
    F32,
    F64,
    I32,
    STRING,
    TABLE,
    U8,
    U32,
    packed,
    pair,
    tensor,
    text,
)

from embtool import gguf
from embtool.errors import FormatError, UnsupportedError
from embtool.gguf import NeedMore


def fault(file, nbytes=None, kind=FormatError):
    with pytest.raises(kind) as caught:
        gguf.parse(file, "x", nbytes)
    assert caught.value.advice
    return caught.value.message


@pytest.mark.parametrize(
    ("kind", "content", "shown"),
    [(U32, 0, "0"), (U32, 48, "48"), (I32, -32, "-32"), (F32, 32.0, "32.0"), (BOOL, 1, "True")],
)
def test_bad_alignment(kind, content, shown):
    message = fault(packed([pair("general.alignment", kind, content)]))
    assert message == f"x: general.alignment is {shown}, not a power of two"


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
