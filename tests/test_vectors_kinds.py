"""What kind of vectors a file holds, and the lists of words beside it."""

import gzip
import struct

import pytest
from vector_builders import TABLE, npz, text

from embtool.errors import FormatError, UnsupportedError
from embtool.vectors import HEAD_NBYTES, Kind, kind_of, read_words, repeated, word_files

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
