"""Pickles of what no tensor needs, malformed ones, and bombs: refused, and at little cost."""

import struct
import tracemalloc

import pytest
from pickle_builders import (
    GOOD,
    REBUILD,
    glob,
    number,
    opened,
    state,
    storage,
    tensor,
    text,
    tuple_of,
    watched,
    zipped,
)

from embtool.errors import EmbtoolError, FormatError, UnsupportedError

nothing_planted = pytest.fixture(autouse=True)(watched)


QUIET = {
    "a persistent id that is text": b"P0\n",
    "a persistent id that is a number": number(1) + b"Q",
    "a persistent id of another kind": tuple_of(text("module"), text("x")) + b"Q",
    "a persistent id of a known function": tuple_of(
        text("storage"), REBUILD, text("0"), text("cpu"), number(6)
    )
    + b"Q",
    "a key that is a path": tuple_of(
        text("storage"), glob("torch.FloatStorage"), number(0), text("cpu"), number(6)
    )
    + b"Q",
    "a storage called": glob("torch.FloatStorage") + number(1 << 20) + b"\x85R",
    "a dtype called": glob("torch.float8_e4m3fn") + b")R",
    "a tensor called": tensor() + b")R",
    "arguments that are no tuple": REBUILD + b"]R",
    "BUILD on a tensor": tensor() + b"}b",
    "a line of text": b"S'x'\n",
    "a number in text": b"I01\n",
    "a long number": b"\x8b" + struct.pack("<i", 2**31 - 1),
    "DUP": b"N2\x86",
    "POP": b"NN0",
    "bytes that may change": b"\x96" + struct.pack("<Q", 4) + b"abcd",
    "a buffer from outside": b"\x97",
}


@pytest.mark.parametrize("name", QUIET)
def test_what_no_tensor_needs_is_refused(name):
    with pytest.raises(UnsupportedError):
        opened(zipped(state("w", tensor(), "x", QUIET[name])))


MALFORMED = {
    "nothing": b"",
    "no STOP": b"\x80\x02N",
    "nothing to stop with": b"\x80\x02.",
    "two values": b"\x80\x02NN.",
    "a mark": b"\x80\x02(.",
    "a mark in the memo": b"\x80\x02(q\x00N.",
    "a mark taken for a value": b"\x80\x02(\x85.",
    "no mark": b"\x80\x02Nt.",
    "an unknown operation": b"\x80\x02\xff.",
    "a memo that is empty": b"\x80\x02h\x07.",
    "an item for no list": b"\x80\x02NNa.",
    "an item for no dictionary": b"\x80\x02]NNs.",
    "a key without a value": b"\x80\x02}(Nu.",
    "text beyond the end": b"\x80\x02X\xff\xff\xff\x7fab.",
    "text beyond any memory": b"\x80\x04\x8d" + b"\xff" * 8 + b".",
    "bytes beyond any memory": b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b".",
    "text that is no UTF-8": b"\x80\x02X\x01\0\0\0\xff.",
    "a global that ends": b"\x80\x02cos\nmk",
    "a global that is no UTF-8": b"\x80\x02c\xff\nx\n.",
    "a number for a name": b"\x80\x04K\x01K\x02\x93.",
    "a storage in two sizes": state("a", tensor(), "b", tensor(count=7)),
    "a storage of two kinds": state("a", tensor(), "b", tensor(kind="torch.IntStorage")),
    "two tensors of one name": state("a.b", tensor(), "a", b"}(" + text("b") + tensor() + b"u"),
    "a dictionary of no pairs": b"\x80\x02"
    + glob("collections.OrderedDict")
    + b"](]("
    + tensor()
    + b"eetR.",
    "a dictionary of a number": b"\x80\x02" + glob("collections.OrderedDict") + b"K\x01\x85R.",
    "deeper than any model": b"\x80\x02" + b"](" * 40 + tensor() + b"e" * 40 + b".",
    "a name longer than any": state("n" * 2000, tensor()),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name):
    with pytest.raises(FormatError, match=r"malformed|no state dict|described wrongly"):
        opened(zipped(MALFORMED[name])).header()


BOMBS = {
    "a memo of two thousand million": b"\x80\x02Nr\xff\xff\xff\x7f0.",
    "each tuple twice the last": b"\x80\x02)q\x00" + b"h\x00h\x00\x86q\x00" * 5000 + b".",
    "each list twice the last, with a tensor": b"\x80\x02]q\x00"
    + b"".join(b"](h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(100))
    + b"("
    + tensor()
    + b"e.",
    "a list within a list within a list": b"\x80\x02" + b"](" * 200_000 + b"e" * 200_000 + b".",
    "a tuple around a tuple": b"\x80\x02)" + b"\x85" * 200_000 + b".",
    "a list that holds itself": b"\x80\x02]q\x00h\x00a.",
    "a frame of any length": b"\x80\x04\x95" + b"\xff" * 8 + GOOD[2:],
    "a long list made a dictionary again and again": b"\x80\x02]("
    + b"N" * 100_000
    + b"eq\x00"
    + (glob("collections.OrderedDict") + b"h\x00\x85R") * 20_000
    + b"t.",
    "a shape used again and again": b"\x80\x02("
    + b"K\x01" * 100_000
    + b"tq\x00"
    + (REBUILD + b"(" + storage() + number(0) + b"h\x00h\x00tR") * 5_000
    + b".",
    "a million marks": b"\x80\x02" + b"(" * 1_000_000 + b".",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_cost_little(name):
    raw = zipped(BOMBS[name])
    tracemalloc.start()
    try:
        opened(raw)
    except EmbtoolError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 200 << 20


def test_a_frame_changes_nothing():
    assert list(opened(zipped(BOMBS["a frame of any length"])).shapes) == ["w"]
