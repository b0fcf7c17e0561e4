"""Classic word vectors: every form of the same table gives the same words and numbers."""

import gzip
import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from embtool.errors import FormatError, UnsupportedError
from embtool.vectors import (
    HEAD_NBYTES,
    Kind,
    convert,
    kind_of,
    open_mapped,
    read_words,
    repeated,
    word_files,
)

RNG = np.random.default_rng(3)
WORDS = [
    b"the",
    b"\xe5\x8c\x97\xe4\xba\xac",
    b"\xff\xfe",
    b"a_b",
    b"2024",
    b"-",
    b"\xc2\xa0",
    b"3.5",
]
TABLE = RNG.standard_normal((8, 5)).astype(np.float32)
TABLE[3] = [0, -0.0, 1e-30, 3.4e38, 1.5]


def text(words=WORDS, table=TABLE, header=True, space=b" ", end=b"\n"):
    lines = [b"%d %d" % table.shape] if header else []
    lines += [
        space.join([word, *(repr(float(x)).encode() for x in row)])
        for word, row in zip(words, table, strict=True)
    ]
    return end.join(lines) + end


def binary(words=WORDS, table=TABLE, end=b"\n"):
    rows = [w + b" " + row.tobytes() + end for w, row in zip(words, table, strict=True)]
    return b"%d %d\n" % table.shape + b"".join(rows)


def npy(array, **kwargs):
    made = io.BytesIO()
    np.save(made, array, **kwargs)
    return made.getvalue()


def npz(save=np.savez, **arrays):
    made = io.BytesIO()
    save(made, **arrays)
    return made.getvalue()


def fetch_from(raw):
    stored = np.frombuffer(raw, np.uint8)

    def fetch(info, ids, nbytes):
        units = stored[info.start : info.stop].reshape(-1, nbytes)
        return units[ids.start : ids.stop] if isinstance(ids, range) else units[list(ids)]

    return fetch


def read_all(raw, file="vectors"):
    """Words and rows of a whole file, by whichever way it is read."""
    kind = kind_of(raw[:HEAD_NBYTES], file)
    assert kind is not None
    mapped = open_mapped(raw, file, kind)
    if mapped is None:
        chunks = list(convert(io.BytesIO(raw), file, kind))
        words = [word for some, _ in chunks for word in some or ()]
        return words or None, np.concatenate([rows for _, rows in chunks])
    table, fetch = mapped.table, fetch_from(raw)
    rows = table.rows(fetch, range(table.shape[0]))
    ids = RNG.integers(0, len(rows), 9).tolist()
    np.testing.assert_array_equal(table.rows(fetch, ids), rows[ids])
    np.testing.assert_array_equal(table.rows(fetch, range(2, 5)), rows[2:5])
    return mapped.words, rows


def same(raw, file="vectors", words=WORDS, table=TABLE):
    got, rows = read_all(raw, file)
    assert got == words
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, table)


TEXTS = {
    "of word2vec": text(),
    "of GloVe": text(header=False),
    "without its last end": text()[:-1],
    "with spaces at the ends": text(end=b" \n"),
    "with CRLF": text(end=b"\r\n"),
    "with tabs": text(space=b"\t"),
    "with two spaces": text(space=b"  "),
    "with blank lines": text(end=b"\n\n"),
    "with a byte order mark": b"\xef\xbb\xbf" + text(),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text(name):
    assert kind_of(TEXTS[name], "x.vec") == Kind("text")
    same(TEXTS[name])
    same(gzip.compress(TEXTS[name], mtime=0))


@pytest.mark.parametrize("end", [b"\n", b""])
def test_binary(end):
    raw = binary(end=end)
    assert kind_of(raw, "x.bin") == Kind("binary")
    same(raw)
    same(gzip.compress(raw, mtime=0))


ARRAYS = {
    "C order": npy(TABLE),
    "Fortran order": npy(np.asfortranarray(TABLE)),
    "version 2": b"\x93NUMPY\x02\x00" + npy(TABLE)[8:10] + b"\0\0" + npy(TABLE)[10:],
    "npz": npz(vectors=TABLE),
    "compressed npz": npz(np.savez_compressed, vectors=TABLE),
    "npz with other arrays": npz(a=np.zeros(3), b=TABLE),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_without_words(name):
    same(ARRAYS[name], "x.npz" if "npz" in name else "x.npy", words=None)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("name", ["words", "vocab", "anything"])
def test_npz_with_words(save, name):
    words = ["the", "北京", "", "\ud800", "naïve", "a b", "x" * 300, "z"]
    raw = npz(save, vectors=TABLE, **{name: np.array(words)})
    same(raw, "x.npz", [word.encode("utf-8", "surrogatepass") for word in words])
    raw = npz(save, vectors=TABLE, **{name: np.array(WORDS)})
    same(raw, "x.npz", WORDS)


def test_npz_of_several_matrices():
    raw = npz(other=np.ones((2, 2)), embeddings=TABLE)
    same(raw, "x.npz", words=None)
    with pytest.raises(FormatError, match=r"has 2 matrices of floats: a <f8 \[2, 2\], b <f4"):
        read_all(npz(a=np.ones((2, 2)), b=TABLE), "x.npz")


@pytest.mark.parametrize("dtype", ["<f8", "<f2", "|i1"])
def test_other_numbers(dtype):
    table = (TABLE.clip(-100, 100) * 10).astype(dtype)
    wide = table.astype(np.float32)
    same(npy(table), "x.npy", None, wide)
    same(npz(np.savez_compressed, E=table), "x.npz", None, wide)
    same(gzip.compress(npy(table)), "x.npy.gz", None, wide)


def test_long_files_come_in_pieces():
    """Many blocks of text, of gzip, of rows; and private memory stays far below the file."""
    table = RNG.standard_normal((6000, 64)).astype(np.float32)
    words = [b"w%d" % i for i in range(6000)]
    raw = text(words, table, header=False)
    assert len(raw) > 7 << 20
    packed = [raw, gzip.compress(raw, 1, mtime=0), gzip.compress(binary(words, table), 1)]
    for each in packed:
        same(each, words=words, table=table)
    compressed = npz(np.savez_compressed, vectors=table, words=np.array(words))
    same(compressed, "x.npz", words, table)
    stream = io.BytesIO(raw)
    tracemalloc.start()
    seen = sum(len(rows) for _, rows in convert(stream, "x", Kind("text")))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == 6000
    assert peak < 6 << 20


def test_spaces_inside_words():
    words = [b"the", b". . .", b"at name@domain.com", b"1 2", b"to", b"in the 3 d", b"a", b""]
    same(text(words), words=words)
    same(text(words, header=False), words=words)


def test_numbers_are_rounded_once_through_float64():
    numbers = [b"0.1", b"1e400", b"-1e-46", b"nan", b"-inf", b"16777217", b"1.00000005960464488641"]
    raw = b"w " + b" ".join(numbers) + b"\n"
    _, [row] = read_all(raw)
    want = [float(n) for n in numbers]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(row, np.array(want).astype(np.float32))


def test_words_of_one_number():
    same(text(table=TABLE[:, :1]), table=TABLE[:, :1])
    same(text(table=TABLE[:, :1], header=False), table=TABLE[:, :1])


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


# --- what a file is ------------------------------------------------------------------------

KINDS = [
    (b"", "x.txt", None),
    (b"the\nof\n", "x.txt", None),
    (b"the quick brown fox\n", "x.txt", None),
    (b"the 1 2 x\n", "x.txt", None),
    (b"the 0.5 0.25\n", "x.txt", Kind("text")),
    (b"2 2\nthe 0.5 0.25\n", "x.bin", Kind("text")),
    (b"the " + b"0.123456789 " * 6000, "x.txt", Kind("text")),
    (b"\x80\x02\x8a\x0al\xfc", "x.bin", None),
    (b"GGUF\x03\0\0\0", "x.gguf", None),
    (npz(E=TABLE), "x.npz", Kind("npz")),
    (npz(E=TABLE), "x.bin", None),
    (gzip.compress(npz(E=TABLE)), "x.npz.gz", None),
    (gzip.compress(b"hello", mtime=0), "x.gz", None),
    (b"\x1f\x8b\x08" + b"\xff" * 50, "x.gz", None),
]


@pytest.mark.parametrize(("head", "file", "kind"), KINDS, ids=range(len(KINDS)))
def test_kinds(head, file, kind):
    assert kind_of(head[:HEAD_NBYTES], file) == kind


def test_a_model_of_fasttext_is_refused():
    with pytest.raises(UnsupportedError, match="is a model of fastText"):
        kind_of(struct.pack("<ii", 793712314, 12), "cc.en.300.bin")


# --- lists of words ------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [b"a\nb c\n\xff\n", b"a\nb c\n\xff", b"a\r\nb c\r\n\xff\r\n"])
def test_words_beside_a_table(raw):
    assert read_words(raw, 3, "x.vocab") == [b"a", b"b c", b"\xff"]
    with pytest.raises(FormatError, match=r"x\.vocab has 3 lines, and the table 4 rows"):
        read_words(raw, 4, "x.vocab")


def test_an_empty_word_is_a_word():
    assert read_words(b"a\n\nb\n", 3, "x") == [b"a", b"", b"b"]
    assert read_words(b"\n", 1, "x") == [b""]


def test_vectors_are_no_words():
    with pytest.raises(FormatError, match="holds vectors, not words"):
        read_words(text(header=False), 8, "glove.txt")


def test_where_words_may_be():
    assert word_files("a/glove.npy") == (
        "a/glove.vocab",
        "a/glove.words",
        "a/glove.words.txt",
        "a/glove.txt",
        "a/vocab.txt",
        "a/words.txt",
    )
    assert word_files("glove.npy.gz")[0] == "glove.vocab"


def test_words_that_stand_twice():
    assert repeated([b"a", b"b", b"a", b"A", b"b", b"a"]) == [(2, 0), (4, 1), (5, 0)]
