"""`diff` of two models: what moved, and how two vocabularies fit together."""

import json
import shutil

import numpy as np
import pytest
from align_builders import _nearest_bf16, _rows
from builders import bf16, byte_tokenizer, folder_model, write_safetensors

from embtool.errors import TokenError
from embtool.model import Model
from embtool.output.plain import plain
from embtool.queries.diff import diff
from embtool.table import Table


def _models(tmp_path, a, b, words=(), **config):
    first = folder_model(tmp_path / "a", a, words, config)
    second = folder_model(tmp_path / "b", b, words, config)
    return Model.open(str(first)), Model.open(str(second))


def test_the_record_of_moved_replaced_added_rows(tmp_path):
    a = _rows(12, 60, 8)
    b = np.concatenate([a, _rows(13, 2, 8)])
    b[7] = a[7] * np.float32(1.5)
    b[9] = -a[9]
    b[11] += a[11] * np.float32(0.1)
    words = [f"w{i}" for i in range(60)]
    first, _ = _models(tmp_path, a, a, words)
    second = Model.open(str(folder_model(tmp_path / "c", b, [*words, "neu", "ganz"])))
    found = diff(first, second)
    assert (found.rows_a, found.rows_b, found.d_model, found.compared) == (60, 62, 8, 60)
    assert (found.equal, found.rounded, found.moved, found.replaced) == (57, 0, 2, 1)
    assert found.rounding is None
    assert [(r.rank, r.id, r.token, r.kind) for r in found.changed] == [
        (1, 9, "w9", "replaced"),
        (2, 7, "w7", "moved"),
        (3, 11, "w11", "moved"),
    ]
    assert [r.cosine for r in found.changed] == pytest.approx([-1, 1, 1])
    assert [r.length for r in found.changed] == pytest.approx([2, 0.5, 0.1], abs=1e-6)
    assert found.median_length == pytest.approx(0.3, abs=1e-6)
    assert [(entry.id, entry.token) for entry in found.added] == [(60, "neu"), (61, "ganz")]
    assert (found.removed, found.renamed.count) == ((), 0)
    assert found.summary == (
        "2 of 60 rows moved, by 0.3 of their length in the median; "
        "1 row made anew, pointing elsewhere; 2 rows added"
    )
    back = diff(second, first, k=1)
    assert [entry.token for entry in back.removed] == ["neu", "ganz"]
    assert len(back.changed) == 1
    assert list(plain(back)) == [
        *("model_a", "model_b", "table_a", "table_b", "dtype_a", "dtype_b", "rows_a", "rows_b"),
        *("d_model", "compared", "equal", "rounded", "rounding", "moved", "replaced"),
        *("median_cosine", "median_length", "added", "removed", "renamed", "changed"),
        *("summary", "notes"),
    ]


def test_a_fine_tune_and_a_change_of_precision_in_words(tmp_path):
    a = _rows(14, 80, 16)
    tuned = a + _rows(15, 80, 16) * np.float32(0.001)
    found = diff(*_models(tmp_path / "1", a, tuned))
    assert (found.moved, found.replaced) == (80, 0)
    assert found.summary.startswith("a fine-tune: 80 of 80 rows moved, by 0.001 of their length")
    found = diff(*_models(tmp_path / "2", a, bf16(a)))
    assert (found.rounded, found.rounding, found.moved) == (80, "cut to BF16", 0)
    assert found.summary == "a change of precision: 80 of 80 rows are cut to BF16"
    found = diff(*_models(tmp_path / "3", bf16(a), bf16(a)))
    assert found.summary == "all rows that both have are equal to the bit"


def test_a_row_that_became_zero_or_broken_comes_first(tmp_path):
    a = _rows(16, 40, 8)
    b = a.copy()
    b[5], b[6, 0], b[7] = 0, np.nan, a[7] * 3
    a[8] = 0
    found = diff(*_models(tmp_path, a, b))
    assert [(r.id, r.cosine, r.kind) for r in found.changed[:2]] == [
        (6, None, "replaced"),
        (8, None, "replaced"),
    ]
    assert [r.id for r in found.changed[2:]] == [7, 5]
    assert found.changed[3].length == 1


def test_renamed_tokens_are_named(tmp_path):
    a = _rows(17, 40, 8)
    words = [f"w{i}" for i in range(40)]
    first, second = _models(tmp_path, a, a, words)
    other = Model.open(str(folder_model(tmp_path / "c", a, [*words[:39], "<image>"])))
    assert diff(first, other).renamed.ids == (39,)
    assert diff(first, second).renamed.ids == ()


def test_the_two_tables_of_one_model(tmp_path):
    a = _rows(18, 50, 8)
    head = a.copy()
    head[[3, 4]] += 1
    folder = folder_model(tmp_path / "m", a)
    alone = diff(*[Model.open(str(folder))] * 2, "input", "output")
    assert alone.notes == ("one table is stored, model.embed_tokens.weight, and serves as both",)
    assert alone.equal == 50
    tensors = {"model.embed_tokens.weight": a, "lm_head.weight": head}
    write_safetensors(folder / "model.safetensors", tensors)
    both = diff(*[Model.open(str(folder))] * 2, "input", "output")
    assert (both.table_b, both.equal, both.moved + both.replaced) == ("lm_head.weight", 48, 2)
    assert both.notes == ("the config says that the tables are tied, but 2 rows differ",)


def test_files_of_one_hash_are_not_read(tmp_path, monkeypatch):
    a = _rows(19, 50, 8)
    first, second = _models(tmp_path, a, a)
    monkeypatch.setattr(Table, "key", "sha256-0")
    monkeypatch.setattr(Table, "blocks", None)
    found = diff(first, second)
    assert (found.equal, found.compared) == (50, 50)
    assert found.notes == ("it is one file, or two of one hash, so that no row had to be read",)


def test_other_vocabularies_are_aligned_by_text(tmp_path):
    rng = np.random.default_rng(20)
    words = [f"w{i}" for i in range(400)]
    a = _rows(21, 400, 24)
    turn = np.linalg.qr(rng.standard_normal((24, 24)))[0]
    order = rng.permutation(400)
    b = (a.astype(np.float64) @ turn).astype(np.float32)[order]
    b[order == 17] = _rows(22, 1, 24)
    first = Model.open(str(folder_model(tmp_path / "a", a, words)))
    theirs = [words[i].encode() for i in order[:350]] + [f"x{i}".encode() for i in range(50)]
    folder = folder_model(tmp_path / "b", b)
    (folder / "tokenizer.json").write_text(byte_tokenizer(theirs), encoding="utf-8")
    found = diff(first, Model.open(str(folder)), k=2)
    assert (found.shared, found.held_out) == (350, 70)
    assert found.cosine > 0.98
    assert found.cosine_fitted > 0.98
    assert found.neighbors.mean > 0.95
    assert found.neighbors.chance == pytest.approx(10 / 349)
    assert (found.least_alike[0].token, found.least_alike[0].id_a) == ("w17", 17)
    assert theirs[found.least_alike[0].id_b] == b"w17"
    assert found.least_alike[0].cosine < 0.7

    random = folder_model(tmp_path / "c", _rows(23, 400, 24))
    (random / "tokenizer.json").write_text(byte_tokenizer(theirs), encoding="utf-8")
    nothing = diff(first, Model.open(str(random)))
    assert abs(nothing.cosine) < 0.15
    assert nothing.neighbors.mean < 0.1


def test_other_widths_are_aligned_and_strangers_refused(tmp_path):
    a = _rows(24, 300, 12)
    words = [f"w{i}" for i in range(300)]
    wide = np.concatenate([a, np.zeros((300, 5), np.float32)], axis=1)
    first = Model.open(str(folder_model(tmp_path / "a", a, words)))
    second = Model.open(str(folder_model(tmp_path / "b", wide, words)))
    found = diff(first, second)
    assert (found.d_model_a, found.d_model_b, found.shared) == (12, 17, 300)
    assert found.cosine == pytest.approx(1, abs=1e-9)
    stranger = Model.open(str(folder_model(tmp_path / "c", a, [f"z{i}" for i in range(300)])))
    with pytest.raises(TokenError, match="share 0 tokens, of 300 and 300 rows"):
        diff(first, stranger)


@pytest.fixture(scope="module")
def gemma(gemma_path):
    return Model.open("gemma-3-270m")


@pytest.mark.slow
def test_changed_rows_of_gemma_in_another_dtype(gemma, tmp_path):
    rng = np.random.default_rng(25)
    changed = np.sort(rng.choice(262144, 37, replace=False))
    stored = np.empty((262149, 640), np.uint16)
    for first, block in gemma.table().blocks():
        stored[first : first + len(block)] = bf16(_nearest_bf16(block))[1]
    moved = gemma.table().rows(changed.tolist()) + _rows(26, 37, 640) * np.float32(0.004)
    stored[changed] = bf16(_nearest_bf16(moved))[1]
    stored[262144:] = bf16(_rows(27, 5, 640))[1]
    folder = folder_model(tmp_path / "m", ("BF16", stored))
    found = diff(gemma, Model.open(str(folder)), k=100)
    assert (found.dtype_a, found.dtype_b) == ("Q8_0", "BF16")
    assert (found.equal, found.rounded, found.rounding) == (0, 262107, "rounded to BF16")
    assert sorted(row.id for row in found.changed) == changed.tolist()
    assert {row.kind for row in found.changed} == {"moved"}
    assert [entry.id for entry in found.added] == [262144, 262145, 262146, 262147, 262148]
    shutil.rmtree(folder)


@pytest.mark.slow
def test_gemma_and_deepseeks_vocabulary_align_by_text(gemma, deepseek_tokenizer, tmp_path):
    rows = _rows(28, 129280, 16)
    tensors = {"model.embed_tokens.weight": rows}
    write_safetensors(tmp_path / "model.safetensors", tensors)
    shutil.copy(deepseek_tokenizer, tmp_path / "tokenizer.json")
    claims = {"model_type": "deepseek_v3", "vocab_size": 129280, "hidden_size": 16}
    (tmp_path / "config.json").write_text(json.dumps(claims))
    found = diff(gemma, Model.open(str(tmp_path)), k=5)
    assert (found.shared, found.held_out) == (91171, 18234)
    assert abs(found.cosine) < 0.01
    assert found.neighbors.mean < 0.01
    for token in found.least_alike:
        assert gemma.vocabulary.token(token.id_a) == token.token
