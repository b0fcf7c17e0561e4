"""Word vectors in every form, made of the same words and numbers, and how they are read again."""

import io

import numpy as np

from embtool.vectors import HEAD_NBYTES, convert, kind_of, open_mapped

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
