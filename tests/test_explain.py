"""`explain` of a small model: every number against one computed apart, and the page's letters."""

import json
from itertools import combinations

import numpy as np
import pytest
from builders import folder_model
from cli import run
from explain_builders import ROWS, TEXT, TOKENS, WIDTH, cosine, explained, model, values

from embtool.table import Table

IDS = [4, 2, 25, 10, 4]
DISTINCT = [4, 2, 25, 10]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return model(tmp_path_factory.mktemp("tiny") / "m", values())


def test_every_number_of_a_text(capsys, tiny):
    table = values()
    found = explained(capsys, TEXT, "-m", tiny)
    assert (found["model"], found["table"]) == (tiny, "model.embed_tokens.weight")
    assert (found["text"], found["shape"]) == (TEXT, [5, WIDTH])
    assert [token["id"] for token in found["tokens"]] == IDS
    assert [token["vector"] for token in found["tokens"]] == table[IDS].tolist()

    rows = found["addresses"]["rows"]
    assert [(row["id"], row["token"]) for row in rows] == [(i, TOKENS[i]) for i in DISTINCT]
    for row in rows:
        for side, other in (("before", row["id"] - 1), ("after", row["id"] + 1)):
            assert (row[side]["id"], row[side]["token"]) == (other, TOKENS[other])
            expected = cosine(table[row["id"]], table[other])
            assert row[side]["cosine"] == pytest.approx(expected, abs=1e-12)

    one_hot = found["one_hot"]
    eye = np.eye(ROWS)
    assert one_hot["length"] == ROWS
    assert one_hot["zeros"] == np.mean(eye[3] == 0)
    assert one_hot["distance"] == np.linalg.norm(eye[3] - eye[7])
    assert one_hot["cosine"] == eye[3] @ eye[7]
    assert (one_hot["nbytes"], one_hot["row_nbytes"]) == (ROWS * 4, WIDTH * 4)
    assert one_hot["product"] == {
        "ids": DISTINCT,
        "equal": True,
        "same_bits": True,
        "nonfinite": {"count": 0, "ids": []},
    }
    params = ROWS * WIDTH
    assert found["matrix"] == {
        "rows": ROWS,
        "d_model": WIDTH,
        "params": params,
        "dtype": "BF16",
        "nbytes": 2 * params,
        "tied": True,
        "total_params": params,
        "share": 1.0,
    }
    assert (found["new_token"]["params"], found["new_token"]["nbytes"]) == (WIDTH, 2 * WIDTH)
    assert found["read"] == {"rows": 4, "nbytes": 4 * 2 * WIDTH, "share": 4 / ROWS}
    assert (found["scale"], found["random"]) == (None, None)
    assert [pair["ids"] for pair in found["pairs"]] == [
        list(pair) for pair in combinations(DISTINCT, 2)
    ]
    for pair in found["pairs"]:
        i, j = pair["ids"]
        assert pair["tokens"] == [TOKENS[i], TOKENS[j]]
        assert pair["cosine"] == pytest.approx(cosine(table[i], table[j]), abs=1e-12)
        assert pair["random"] is None


def test_random_puts_an_untrained_table_beside_it(capsys, tiny):
    found = explained(capsys, TEXT, "-m", tiny, "--random")
    assert found["random"]["sigma"] == pytest.approx(1 / 4, abs=1e-15)
    chance = found["random"]["chance"]
    assert chance["pairs"] == found["chance"]["pairs"] == 4096
    rows = {
        row: 0.02 * np.random.default_rng((0, row)).standard_normal(WIDTH, np.float32)
        for row in range(ROWS)
    }
    for pair in found["pairs"]:
        expected = cosine(*(rows[row] for row in pair["ids"]))
        assert pair["random"] == pytest.approx(expected, abs=1e-6)
    every = [cosine(rows[i], rows[j]) for i, j in combinations(range(ROWS), 2)]
    assert chance["mean"] == pytest.approx(np.mean(every), abs=0.02)
    assert chance["deviation"] == pytest.approx(np.std(every), abs=0.02)


def test_one_pass_over_the_table_and_no_more(capsys, tiny, monkeypatch):
    passes, read = [], []
    blocks, rows = Table.blocks, Table.rows

    def counted(self, start=0, stop=None):
        for first, block in blocks(self, start, stop):
            passes.extend(range(first, first + len(block)))
            yield first, block

    def counted_rows(self, ids):
        read.append(len(ids))
        return rows(self, ids)

    monkeypatch.setattr(Table, "blocks", counted)
    monkeypatch.setattr(Table, "rows", counted_rows)
    explained(capsys, TEXT, "-m", tiny, "--random")
    assert sorted(passes) == list(range(ROWS))
    assert sum(read) <= 2 * 4096 + 100


def test_the_page_to_the_letter(capsys, tmp_path):
    table = np.array([[3, 4], [4, -3], [0, 1], [6, 8]], np.float32)
    folder = str(folder_model(tmp_path / "m", table, ["a", "b", "c", "d"]))
    done = run(capsys, "explain", "b", "-m", folder, "--random")
    assert (done.code, done.err) == (0, "")
    chance = explained(capsys, "b", "-m", folder, "--random")
    own, random = chance["chance"], chance["random"]["chance"]
    correlation = chance["addresses"]["rank_correlation"]
    low, high = own["percentiles"]["1"], own["percentiles"]["99"]
    mean, deviation = f"{random['mean']:.4f}", f"{random['deviation']:.4f}"
    half = (0.5 - own["mean"]) / own["deviation"]
    assert (
        done.out
        == f"""\
From text to matrix: b, {folder}

1. The text is cut into tokens, and each token has an id

 position   id   token   raw
 ───────────────────────────
        0    1   b       b

2. An id is an address, not a meaning

 id   token   id - 1   cosine   id + 1    cosine
 ───────────────────────────────────────────────
  1   b       a        0.0000   c        -0.6000

An id is the number of a row. The rows beside it are near by number, and by that alone.
Over 4,096 random pairs of rows (seed 0), the rank correlation of |id difference| and cosine
is {correlation:.4f}: -1 would mean that near ids have near rows, 0 that ids say nothing of it.

3. The id as a one-hot vector: 1 at the place of the id, 0 elsewhere

 length        4, a place for each row of the table
 zeros         75.0000%
 in fp32       16 bytes, 2.0 times the 8 of a row
 any two       distance 1.4142 (√2), cosine 0
 one-hot @ E   multiplied with all 4 rows, it is the row that a lookup reads, bit for bit

4. The table E, model.embed_tokens.weight

 shape          4 rows × 2 d_model
 parameters     8
 stored         F32, 32 bytes
 of the model   100.0% of 8 parameters
 a new token    1 more row of 2: 2 parameters, once, as the tables are tied

5. The rows of the tokens: a 1 × 2 matrix

 position   id   token     norm       d0        d1
 ─────────────────────────────────────────────────
        0    1   b       5.0000   4.0000   -3.0000

Read for it: 1 of 4 rows, 8 bytes, 25.0000% of the table.

6. What rows can say and one-hot vectors cannot: some are nearer than others

chance: 4,096 random pairs of this table's tokens (a sample, seed 0) have the mean {own["mean"]:.4f}
and the deviation {own["deviation"]:.4f}; 98 of 100 lie between {low:.4f} and {high:.4f}
a cosine is a tool of geometry, how near two rows point, and not what a word means
untrained: the same pairs of a random table of this shape (seed 0) have the mean {mean}
and the deviation {deviation}; sigma is 1/√2 = 0.7071, and a cosine of 0.5 is 0.7 sigmas
in the trained table 0.5 is {half:.1f} deviations

7. What the matrix does not know

Order: the same tokens in another order are the same rows in another order.
Context: a token has this one row in every text.
Both come from the layers that read this matrix: embtool compare TEXT TEXT.

"""
    )
    assert own["mean"] == pytest.approx(np.mean([0, 0.8, 1, -0.6, 0, 0.8]), abs=0.05)
    assert (low, high) == pytest.approx((-0.6, 1), abs=1e-12)


def test_a_long_text_is_cut_short_on_the_page_alone(capsys, tiny):
    text = "abcdefghijklmnopqrstuvwxyz" * 3
    found = explained(capsys, text, "-m", tiny)
    assert len(found["tokens"]) == 78
    assert found["one_hot"]["product"]["ids"] == list(range(16))
    assert found["read"]["rows"] == 26
    assert len(found["pairs"]) == 15
    page = run(capsys, "explain", text, "-m", tiny, "-q").out
    assert page.startswith(f"From text to matrix: {text[:60]}…, ")
    assert page.count("... and 66 more tokens: -f json has them\n") == 2
    assert "Of its 78 rows, 52 repeat one before.\n" in page
    assert "... and 12 more dimensions: --dims 16\n" in page
    assert "more dimensions" not in run(capsys, "explain", "a", "-m", tiny, "--dims", "16").out


def test_an_empty_text_is_nothing_to_explain(capsys, tiny):
    done = run(capsys, "explain", "", "-m", tiny)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"error: {tiny}: the text has no tokens to explain\n  try: give a longer text\n"
    )


def test_a_page_is_text_or_json(capsys, tiny, tmp_path):
    done = run(capsys, "explain", "a", "-m", tiny, "-f", "tsv")
    assert (done.code, done.out) == (2, "")
    done = run(capsys, "explain", "a", "-m", tiny, "-o", str(tmp_path / "x.tsv"))
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: tsv holds columns, and this answer is a page\n  try: choose -f table or -f json\n"
    )
    page = run(capsys, "explain", "a", "-m", tiny).out
    run(capsys, "explain", "a", "-m", tiny, "-o", str(tmp_path / "x.txt"))
    assert (tmp_path / "x.txt").read_text(encoding="utf-8") == page
    run(capsys, "explain", "a", "-m", tiny, "-o", str(tmp_path / "x.json"))
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["shape"] == [1, WIDTH]
    lines = run(capsys, "explain", "a", "-m", tiny, "-f", "jsonl").out
    assert lines == (tmp_path / "x.json").read_text(encoding="utf-8")
