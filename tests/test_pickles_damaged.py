"""Torch's files damaged at every place: refused by a sentence, or the damage is harmless."""

import struct
import zipfile

import numpy as np
import pytest
from pickle_builders import FILES, GOOD, glob, legacy, opened, state, tensor, text, tuple_of, zipped

from embtool.errors import FormatError, UnsupportedError

BAD_TENSORS = {
    "past its storage": (tensor(first=1), "'w' needs 28 bytes of a storage that has 24"),
    "larger than any file": (tensor((2**31 - 1,) * 4, (1,) * 4), None),
    "a side too many": (tensor((2, 3), (1,)), "2 sides and 1 strides"),
    "a negative side": (tensor((-2, 3)), "no whole numbers"),
    "a storage of something": (
        glob("torch._utils._rebuild_tensor_v2") + tuple_of(b"N", b"N", b")", b")") + b"R",
        "its storage is a NoneType",
    ),
    "no arguments": (glob("torch._utils._rebuild_tensor_v2") + b")R", "described wrongly"),
    "65 sides": (tensor((1,) * 65, (1,) * 65), "no short tuple"),
}


@pytest.mark.parametrize("name", BAD_TENSORS)
def test_a_tensor_that_cannot_be(name):
    value, reason = BAD_TENSORS[name]
    with pytest.raises((FormatError, UnsupportedError), match=reason):
        opened(zipped(state("w", value))).header(["w"])


def test_every_cut_of_a_file_is_refused():
    for name in ("torch_zip.bin", "torch_legacy.bin"):
        raw = (FILES / name).read_bytes()
        for cut in range(0, len(raw), 7):
            with pytest.raises((FormatError, UnsupportedError)):
                opened(raw[:cut]).header()


def test_every_changed_byte_is_refused_or_harmless():
    """No damage leads to anything but an answer or an error of the tool's own."""
    rng = np.random.default_rng(1)
    for name in ("torch_zip.bin", "torch_legacy.bin"):
        raw = (FILES / name).read_bytes()
        for at in range(0, len(raw), 3):
            changed = bytearray(raw)
            changed[at] ^= int(rng.integers(1, 256))
            try:
                header = opened(bytes(changed)).header()
            except (FormatError, UnsupportedError):
                continue
            assert all(0 <= t.start <= t.stop <= len(raw) for t in header.tensors.values())


LEGACY = {
    "another magic": ({"magic": b"\x80\x02\x8a\x0a" + b"\x01" * 10 + b"."}, "begins with"),
    "another protocol": ({"protocol": b"\x80\x02K\x07."}, "its protocol is 7"),
    "big-endian": ({"machine": state("little_endian", b"\x89")}, "big-endian machine"),
    "no list of keys": ({"keys": b"\x80\x02N."}, "no list of its storages"),
    "another key": ({"keys": b"\x80\x02](" + text("9") + b"e."}, "lists 1 storages"),
}


@pytest.mark.parametrize("name", LEGACY)
def test_the_older_format_damaged(name):
    changed, reason = LEGACY[name]
    with pytest.raises((FormatError, UnsupportedError), match=reason):
        opened(legacy(**changed))


def test_the_older_format_with_another_count():
    raw = legacy(storages=(("0", 5, bytes(24)),))
    with pytest.raises(FormatError, match="has 5 numbers, not 6"):
        opened(raw).header()
    with pytest.raises(FormatError, match="is truncated: it should have"):
        opened(legacy()[:-1])


ZIPS = {
    "compressed": (zipped(GOOD, method=zipfile.ZIP_DEFLATED), "is compressed"),
    "no storage": (zipped(GOOD, {"1": b"1234"}), "has no member 'archive/data/0'"),
    "a short storage": (zipped(GOOD, {"0": bytes(20)}), "has 20 bytes, 24 are needed"),
    "big-endian": (zipped(more={"archive/byteorder": b"big"}), "big-endian machine"),
    "no pickle": (zipped(more={"x": b""}).replace(b"data.pkl", b"data.pkx"), "0 members NAME"),
    "two pickles": (zipped(more={"other/data.pkl": GOOD}), "2 members NAME/data.pkl"),
    "bytes behind": (zipped() + b"x", "no end record"),
    "another name in the local header": (
        zipped().replace(b"archive/data/0", b"archive/data/1", 1),
        "a header that is not the directory's",
    ),
    "LFS": (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
    "a tar": (b"storages/\0\0", "no file that torch saved"),
    "nothing": (b"", "no file that torch saved"),
    "no tensors": (zipped(b"\x80\x02}."), "holds no tensor"),
}


@pytest.mark.parametrize("name", ZIPS)
def test_zip_files_that_are_refused(name):
    raw, reason = ZIPS[name]
    with pytest.raises((FormatError, UnsupportedError), match=reason):
        opened(raw).header()


def directory(raw):
    """Where the central directory's entry of the storage and the end record begin."""
    return raw.rindex(b"PK\x01\x02"), raw.rindex(b"PK\x05\x06")


@pytest.mark.parametrize(
    ("place", "code", "value"),
    [
        (20, "<I", 25),  # stored bytes
        (24, "<I", 2**32 - 2),  # unpacked bytes
        (42, "<I", 2**31),  # where it is
        (42, "<I", 1),
        (8, "<H", 1),  # encrypted
        (28, "<H", 60_000),  # its name's length
        (20, "<I", 2**32 - 1),  # a zip64 field that is not there
    ],
)
def test_a_directory_that_lies(place, code, value):
    raw = bytearray(zipped())
    entry, _ = directory(bytes(raw))
    struct.pack_into(code, raw, entry + place, value)
    with pytest.raises((FormatError, UnsupportedError)):
        opened(bytes(raw)).header()


@pytest.mark.parametrize(
    ("place", "code", "value"),
    [(10, "<H", 65_535), (12, "<I", 2**32 - 1), (16, "<I", 0), (16, "<I", 2**32 - 1), (4, "<H", 3)],
)
def test_an_end_record_that_lies(place, code, value):
    raw = bytearray(zipped())
    _, end = directory(bytes(raw))
    struct.pack_into(code, raw, end + place, value)
    with pytest.raises(FormatError):
        opened(bytes(raw))


def test_a_huge_pickle_is_not_read():
    raw = zipped(GOOD[:-1] + b"N0" * (3 << 20) + b".")
    with pytest.raises(UnsupportedError, match="its pickle has 6291"):
        opened(raw)
