"""Word vectors that are wrong, cut, hostile or of other numbers: each is refused by a sentence."""

import gzip
import io
import struct
import zipfile

import numpy as np
import pytest
from vector_builders import TABLE, binary, npy, npz, read_all, same, text

from embtool.errors import FormatError, UnsupportedError
from embtool.vectors import Kind, convert, open_mapped

# --- text that is wrong --------------------------------------------------------------------

LINES = [b"a 1 2 3", b"b 4 5 6", b"c 7 8 9"]
WRONG = {
    "a number missing": (1, b"b 4 5", "line 2 has 2 numbers, not 3"),
    "only a word": (2, b"c", "line 3 has 0 numbers, not 3"),
    "no number": (1, b"b 4 five 6", "line 2 has 'five' for a number"),
    "a number cut": (1, b"b 4 5- 6", "line 2 has '5-' for a number"),
    "a number of Python": (1, b"b 4 1_0 6", "line 2 has '1_0' for a number"),
    "bytes": (1, b"b 4 \xff\x00 6", r"line 2 has '\\xff\\x00' for a number"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("gzipped", [True, False])
def test_a_wrong_line_is_named(name, header, gzipped):
    place, line, reason = WRONG[name]
    lines = [*LINES]
    lines[place] = line
    if header:
        lines.insert(0, b"3 3")
        reason = reason.replace(f"line {place + 1}", f"line {place + 2}")
    raw = b"\n".join(lines) + b"\n"
    with pytest.raises(FormatError, match=reason):
        read_all(gzip.compress(raw, mtime=0) if gzipped else raw)


def test_a_wrong_line_far_into_a_file_is_named():
    lines = [b"w%d 1.25 2.5" % i for i in range(200_000)]
    lines[123_456] = b"w 1.25"
    with pytest.raises(FormatError, match="line 123457 has 1 numbers, not 2"):
        read_all(b"\n".join(lines))


def test_two_faults_that_make_up_for_each_other_are_found():
    raw = b"a 1 2\nb 3  \nc 4 5\t6\n"
    with pytest.raises(FormatError, match="line 2 has 1 numbers, not 2"):
        read_all(raw)


@pytest.mark.parametrize(("promised", "there"), [(4, 3), (2, 3)])
def test_another_count_than_promised(promised, there):
    raw = b"%d 3\n" % promised + b"\n".join(LINES[:there]) + b"\n"
    with pytest.raises(FormatError, match=f"has {there} rows, its first line says {promised}"):
        read_all(raw)


def test_a_line_without_end():
    with pytest.raises(FormatError, match="line 2 is longer than"):
        list(convert(io.BytesIO(b"a 1 2\nb" + b" 1" * (5 << 20)), "x", Kind("text")))


def test_nothing():
    with pytest.raises(FormatError, match="holds no vectors"):
        list(convert(io.BytesIO(b""), "x", Kind("text")))
    with pytest.raises(FormatError, match="line 1 has no numbers"):
        list(convert(io.BytesIO(b"a\nb\n"), "x", Kind("text")))


# --- damaged files -------------------------------------------------------------------------


def test_binary_that_is_cut_or_too_long():
    raw = binary()
    for cut in (*range(4, len(raw) - 1), len(raw) + 1):
        changed = raw[:cut] if cut <= len(raw) else raw + b"x"
        with pytest.raises(FormatError):
            open_mapped(changed, "x.bin", Kind("binary"))
        with pytest.raises(FormatError):
            list(
                convert(
                    io.BytesIO(gzip.compress(changed, 1, mtime=0)),
                    "x",
                    Kind("binary", gzipped=True),
                )
            )


@pytest.mark.parametrize(
    "header", [b"999999999999 300\n", b"8 9999999\n", b"8 0\n", b"8\n", b"-1 5\n"]
)
def test_binary_with_a_hostile_header(header):
    raw = header + binary().partition(b"\n")[2]
    with pytest.raises(FormatError):
        open_mapped(raw, "x.bin", Kind("binary"))


def test_a_word_without_end():
    raw = b"1 1\n" + b"x" * 10_000
    with pytest.raises(FormatError, match="word of row 0 from byte 4 on has no end"):
        open_mapped(raw, "x.bin", Kind("binary"))


def test_gzip_that_is_cut_or_changed():
    raw = gzip.compress(text())
    for cut in range(12, len(raw), 9):
        with pytest.raises(FormatError):
            list(convert(io.BytesIO(raw[:cut]), "x.gz", Kind("text", gzipped=True)))
    changed = raw[:-6] + bytes([raw[-6] ^ 1]) + raw[-5:]
    with pytest.raises(FormatError, match="is damaged or truncated"):
        list(convert(io.BytesIO(changed), "x.gz", Kind("text", gzipped=True)))


REFUSED = {
    "objects": (npy(np.array([[{}]], object), allow_pickle=True), r"objects of Python \[1, 1\]"),
    "big-endian": (npy(TABLE.astype(">f4")), r">f4 \[8, 5\]"),
    "integers": (npy(np.ones((8, 5), np.int64)), "<i8"),
    "complex": (npy(TABLE.astype(np.complex64)), "<c8"),
    "a vector": (npy(TABLE[0]), r"<f4 \[5\]"),
    "a record": (npy(np.zeros((2, 2), [("x", "<f4")])), r"\[\('x', '<f4'\)\] \[2, 2\]"),
    "no rows": (npy(TABLE[:0]), r"<f4 \[0, 5\]"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arrays_that_are_refused(name):
    raw, reason = REFUSED[name]
    with pytest.raises(UnsupportedError, match=reason):
        open_mapped(raw, "x.npy", Kind("npy"))
    with pytest.raises(UnsupportedError, match=reason):
        list(convert(io.BytesIO(gzip.compress(raw, mtime=0)), "x", Kind("npy", gzipped=True)))


def test_columns_in_a_compressed_file_are_refused():
    raw = npz(np.savez_compressed, vectors=np.asfortranarray(TABLE))
    with pytest.raises(UnsupportedError, match="column by column, which cannot be read"):
        read_all(raw, "x.npz")


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-8, -5)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (8, 1<<70)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976, 5)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (8, 5.0)}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': __import__('os').mkdir('x'), 'fortran_order': False, 'shape': (8, 5)}",
        "(" * 3000,
        "",
    ],
)
def test_hostile_headers(header, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    raw = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + TABLE.tobytes()
    with pytest.raises(FormatError):
        open_mapped(raw, "x.npy", Kind("npy"))
    assert not list(tmp_path.iterdir())


def test_arrays_that_are_cut():
    for raw, file in ((npy(TABLE), "x.npy"), (npz(E=TABLE), "x.npz")):
        for cut in range(8, len(raw), 11):
            with pytest.raises(FormatError):
                open_mapped(raw[:cut], file, Kind(file[2:]))
    raw = gzip.compress(npy(TABLE)[:-1])
    with pytest.raises(FormatError, match="is truncated: it ends in row 7 of 8"):
        list(convert(io.BytesIO(raw), "x", Kind("npy", gzipped=True)))


def test_npz_that_is_damaged_or_lies():
    raw = npz(np.savez_compressed, vectors=TABLE)
    entry = raw.rindex(b"PK\x01\x02")
    for place, code, value in ((24, "<I", 100), (24, "<I", 2**31), (10, "<H", 12), (8, "<H", 1)):
        changed = bytearray(raw)
        struct.pack_into(code, changed, entry + place, value)
        with pytest.raises((FormatError, UnsupportedError)):
            read_all(bytes(changed), "x.npz")
    changed = bytearray(raw)
    changed[80:90] = b"\xff" * 10
    with pytest.raises(FormatError):
        read_all(bytes(changed), "x.npz")
    with pytest.raises(FormatError, match="has 8 rows and 3 words"):
        read_all(npz(vectors=TABLE, words=np.array(["a", "b", "c"])), "x.npz")
    with pytest.raises(FormatError, match="has 0 matrices of floats: no arrays"):
        made = io.BytesIO()
        zipfile.ZipFile(made, "w").close()
        open_mapped(made.getvalue(), "x.npz", Kind("npz"))


def test_objects_in_an_npz_are_never_unpickled():
    raw = npz(vectors=TABLE, words=np.array([print, "x"], object))
    same(raw, "x.npz", words=None)
