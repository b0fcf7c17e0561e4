"""Exported rows, read again by the tools that they are for."""

import csv
import json
import re
from pathlib import Path

import duckdb
import numpy as np
import pytest
from builders import bf16, byte_tokenizer, folder_model
from cli import run
from gensim.models import KeyedVectors
from safetensors import safe_open
from safetensors.numpy import load_file

from embtool.vocab import unescape
from embtool.writers.arrays import to_bf16

TOKENS = [
    b"king",
    b" king",
    b" ",
    b"\n",
    b"a b\nc",
    b"\\x20",
    b"\x80",
    b"\xc3",
    b"\t",
    "国".encode(),
]
ROWS = np.random.default_rng(5).standard_normal((12, 6)).astype(np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Ten tokens, some of them spaces and line breaks, and two rows without a token."""
    folder = folder_model(tmp_path_factory.mktemp("m"), ROWS)
    (folder / "tokenizer.json").write_text(byte_tokenizer(TOKENS), encoding="utf-8")
    return folder


@pytest.fixture
def export(capsys, model, tmp_path):
    def write(name, *args):
        path = tmp_path / name
        done = run(capsys, "export", *args, "-m", str(model), "-o", str(path), "-q")
        assert (done.code, done.out, done.err) == (0, "", "")
        assert not path.with_name(name + ".part").exists()
        return path

    return write


def test_npy(export):
    assert np.array_equal(np.load(export("all.npy")), ROWS)
    assert np.array_equal(np.load(export("some.npy", "国", "raw:king")), ROWS[[9, 0]])
    assert np.array_equal(np.load(export("ids.npy", "--ids", "11,3,3")), ROWS[[11, 3, 3]])
    assert np.array_equal(np.load(export("first.npy", "--first", "4")), ROWS[:4])
    assert np.array_equal(np.load(export("only.npy", "--only", "king")), ROWS[:2])


def test_safetensors(export):
    found = load_file(export("all.safetensors", "--ids", "4,2"))
    assert np.array_equal(found["model.embed_tokens.weight"], ROWS[[4, 2]])
    assert found["ids"].tolist() == [4, 2]
    with safe_open(export("half.safetensors", "--dtype", "bf16"), "numpy") as file:
        piece = file.get_slice("model.embed_tokens.weight")
        assert (piece.get_dtype(), piece.get_shape()) == ("BF16", [12, 6])


def test_bfloat16_is_rounded_to_the_nearest_even():
    values = np.array([1, 1.00390625, 1.01171875, -1.5, np.inf, 3.4e38, 0], np.float32)
    expected = [0x3F80, 0x3F80, 0x3F82, 0xBFC0, 0x7F80, 0x7F80, 0]
    assert to_bf16(values).tolist() == expected
    nan = to_bf16(np.array([np.nan], np.float32)).astype(np.uint32) << 16
    assert np.isnan(nan.view(np.float32)).all()


def test_a_table_as_it_is_stored(capsys, tmp_path, gemma_path):
    folder = folder_model(tmp_path / "m", bf16(ROWS))
    path = tmp_path / "x.safetensors"
    done = run(capsys, "export", "-m", str(folder), "-o", str(path), "--dtype", "stored", "-q")
    assert done.code == 0
    raw = path.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    start = 8 + int.from_bytes(raw[:8], "little")
    assert header["model.embed_tokens.weight"]["dtype"] == "BF16"
    assert raw[start : start + 12 * 6 * 2] == bf16(ROWS)[1].tobytes()
    options = ["--dtype", "stored", "--first", "3", "-m", "gemma-3-270m", "-q"]
    done = run(capsys, "export", "-o", str(path), *options)
    assert done.err.startswith("error: a safetensors file cannot hold Q8_0")


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "text"])
def test_gensim_reads_the_same_words_and_rows(export, binary):
    path = export("v.bin" if binary else "v.txt")
    vectors = KeyedVectors.load_word2vec_format(str(path), binary=binary)
    assert len(vectors.key_to_index) == 12
    assert np.array_equal(vectors.vectors, ROWS)
    words = vectors.index_to_key
    assert [unescape(word) for word in words[:10]] == TOKENS
    assert words[10:] == ["id:10", "id:11"]


def test_words_that_would_be_alike_are_told_apart(capsys, tmp_path, minilm_folder):
    path = tmp_path / "v.bin"
    done = run(capsys, "export", "--only", "^ing$", "-m", str(minilm_folder), "-o", str(path), "-q")
    assert done.code == 0
    vectors = KeyedVectors.load_word2vec_format(str(path), binary=True)
    assert vectors.index_to_key == ["ing", "id:13749"]  # ##ing has the lower id, 2075


def test_the_projector_pair(export):
    path = export("p.tsv", "--first", "5")
    vectors = [list(map(float, line.split("\t"))) for line in path.read_text().splitlines()]
    assert np.array_equal(np.array(vectors, np.float32), ROWS[:5])
    with path.with_suffix(".metadata.tsv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert lines[0] == ["token", "id", "raw"]
    assert [line[:2] for line in lines[3:]] == [[" ", "2"], ["\\n", "3"], ["a b\\nc", "4"]]


def test_duckdb_joins_tables_and_finds_neighbors(export):
    path = export("t.parquet")
    rows = duckdb.sql(f"SELECT id, token, norm FROM '{path}' ORDER BY id").fetchall()
    assert [row[0] for row in rows] == list(range(12))
    assert rows[9][1] == "国"
    assert rows[10][1] is None
    assert rows[4][2] == pytest.approx(np.linalg.norm(ROWS[4]), rel=1e-6)
    width = "FLOAT[6]"
    nearest = duckdb.sql(
        f"SELECT b.id FROM '{path}' a, '{path}' b WHERE a.id = 0 AND b.id <> 0 "
        f"ORDER BY array_cosine_similarity(a.vector::{width}, b.vector::{width}) DESC"
    ).fetchall()
    units = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
    expected = [int(i) for i in np.argsort(-(units @ units[0])) if i != 0]
    assert [row[0] for row in nearest] == expected


def test_what_cannot_be_written(capsys, model, tmp_path):
    done = run(capsys, "export", "-m", str(model), "-o", str(tmp_path / "x.doc"), "-q")
    assert done.code == 2
    done = run(capsys, "export", "-m", str(model), "-o", str(tmp_path / "no" / "x.npy"), "-q")
    assert (done.code, done.out) == (1, "")
    assert "cannot be written" in done.err.splitlines()[0]
    done = run(
        capsys, "export", "--ids", "12", "-m", str(model), "-o", str(tmp_path / "x.npy"), "-q"
    )
    assert done.err.startswith("error: id 12 has no row: the table has 12 rows\n")
    assert not list(tmp_path.glob("x*"))


def test_the_recipes_of_the_page(capsys, gemma_path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parent.parent / "docs" / "export.md"
    join, nearest = re.findall(r"```sql\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    options = ["-m", "gemma-3-270m", "--first", "8000", "-q"]
    assert run(capsys, "export", "-o", "table.parquet", *options).code == 0
    (tmp_path / "words.csv").write_text("word,topic\nthe,article\nwater,nature\n")
    found = duckdb.sql(join).fetchall()
    assert ("article", " the") in {(topic, token) for topic, _, token, _ in found}
    assert all(token.strip() in ("the", "water") for _, _, token, _ in found)

    rows = duckdb.sql(nearest).fetchall()
    done = run(capsys, "neighbors", "id:1018", "-k", "5", *options, "-f", "json")
    expected = json.loads(done.out)["neighbors"]
    assert [row[0] for row in rows] == [each["id"] for each in expected]
    assert [row[2] for row in rows] == pytest.approx([e["score"] for e in expected], abs=1e-5)


def test_a_graph_as_parquet_is_the_graph_as_tsv(capsys, model, tmp_path):
    for name in ("g.tsv", "g.parquet"):
        options = ["-m", str(model), "-k", "3", "-o", str(tmp_path / name), "-q"]
        done = run(capsys, "graph", *options)
        assert (done.code, done.out, done.err) == (0, "", "")
    lines = (tmp_path / "g.tsv").read_text(encoding="utf-8").splitlines()
    query = f"SELECT * FROM '{tmp_path / 'g.parquet'}' ORDER BY id, rank"
    found = ["\t".join(map(str, row)) for row in duckdb.sql(query).fetchall()]
    assert len(found) == 36
    assert found == lines[1:]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.parquet", "g.tsv"]
