"""Classic word vectors: every form of the same table gives the same words and numbers."""

import gzip
import io
import tracemalloc

import numpy as np
import pytest
from vector_builders import RNG, TABLE, WORDS, binary, npy, npz, read_all, same, text

from embtool.errors import FormatError
from embtool.vectors import Kind, convert, kind_of

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
