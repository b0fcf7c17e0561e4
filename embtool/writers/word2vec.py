"""word2vec's two formats (https://code.google.com/archive/p/word2vec): words and their rows.

Both begin with a line `ROWS WIDTH`. Text: a line a word, numbers with nine digits, which name a
float32 exactly. Binary: the word, a space, the float32 numbers, a line break.
"""

from typing import BinaryIO

from embtool.writers.rows import Rows


def write_text(file: BinaryIO, rows: Rows) -> None:
    """As gensim's load_word2vec_format(binary=False) reads it."""
    _head(file, rows)
    labels = iter(rows.labels())
    for block in rows.blocks():
        for row in block.tolist():
            numbers = " ".join([f"{number:.9g}" for number in row])
            file.write(f"{next(labels)} {numbers}\n".encode())


def write_binary(file: BinaryIO, rows: Rows) -> None:
    """As gensim's load_word2vec_format(binary=True) reads it."""
    _head(file, rows)
    labels = iter(rows.labels())
    for block in rows.blocks():
        for row in block.astype("<f4", copy=False):
            file.write(next(labels).encode() + b" " + row.tobytes() + b"\n")


def _head(file: BinaryIO, rows: Rows) -> None:
    file.write(f"{len(rows.ids)} {rows.d_model}\n".encode())
