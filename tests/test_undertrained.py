"""Untrained rows: planted ones are found again, and Gemma's own."""

import numpy as np
import pytest
from builders import byte_tokenizer, folder_model, word_tokenizer, write_safetensors

from embtool.errors import TokenError
from embtool.model import Model
from embtool.output.plain import plain
from embtool.queries.undertrained import undertrained

ROWS, WIDTH, PLANTED, REFERENCES = 500, 32, 20, 12


def _planted(seed, tied):
    """A table, the planted ids, and the ids of references, which are padding or have names.

    Untied: untrained rows are short. Tied: they have one direction in common, with some noise.
    """
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((ROWS, WIDTH)) * np.exp(0.2 * rng.standard_normal((ROWS, 1)))
    rows += rng.standard_normal(WIDTH)
    planted = rng.choice(ROWS - REFERENCES, PLANTED, replace=False)
    references = np.arange(ROWS - REFERENCES, ROWS)
    untrained = np.concatenate([planted, references])
    noise = rng.standard_normal((len(untrained), WIDTH))
    if tied:
        rows[untrained] = 0.5 * rng.standard_normal(WIDTH) + 0.05 * noise
    else:
        rows[untrained] = noise * np.exp(0.3 * rng.standard_normal((len(untrained), 1))) * 0.05
    return rows.astype(np.float32), set(planted.tolist()), references.tolist()


def _model(folder, seed, tied, padding):
    rows, planted, references = _planted(seed, tied)
    words = [f"w{i}" for i in range(ROWS - REFERENCES)]
    words += [] if padding else [f"<unused{i}>" for i in range(REFERENCES)]
    folder_model(folder, rows, words, {"tie_word_embeddings": tied})
    if not tied:
        head = np.random.default_rng(seed).standard_normal((ROWS, WIDTH)).astype(np.float32)
        tensors = {"model.embed_tokens.weight": rows, "lm_head.weight": head}
        write_safetensors(folder / "model.safetensors", tensors)
    return Model.open(str(folder)), planted, references


@pytest.mark.parametrize("padding", [True, False], ids=["padding", "names"])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_planted_rows_are_found_and_no_others(tmp_path, tied, padding):
    for seed in range(50):
        model, planted, references = _model(tmp_path / str(seed), seed, tied, padding)
        found = undertrained(model, k=ROWS)
        assert found.indicator == ("cosine" if tied else "norm")
        assert found.table == "model.embed_tokens.weight"
        assert found.references.ids == tuple(references)
        below = {token.id for token in found.tokens if token.value <= found.threshold}
        assert below == planted, f"seed {seed}"
        assert found.below == PLANTED


@pytest.mark.parametrize("seed", range(10))
def test_planted_short_rows_without_any_reference(tmp_path, seed):
    rows, planted, references = _planted(seed, tied=False)
    rows = np.delete(rows, references, axis=0)
    folder = folder_model(tmp_path / "m", rows, [f"w{i}" for i in range(len(rows))])
    found = undertrained(Model.open(str(folder)), k=ROWS)
    assert found.indicator == "norm"
    assert found.references.count == 0
    assert {t.id for t in found.tokens if t.value <= found.threshold} == planted
    assert found.notes == (
        "cosine cannot work here: no row is known to be untrained",
        "no row is known to be untrained: the threshold is a gap between the shortest rows' norms",
    )


def test_the_record_and_its_json(tmp_path):
    rows = np.eye(6, 4, dtype=np.float32)
    rows[:, 3] = [1, 2, 3, 0.01, 5, 0.02]
    folder = folder_model(tmp_path / "m", rows, ["a", "b", "c", "d", "e", "[unused5]"])
    found = undertrained(Model.open(str(folder)), "norm", k=2)
    assert plain(found) == {
        "model": str(folder),
        "table": "model.embed_tokens.weight",
        "indicator": "norm",
        "threshold": pytest.approx((5**0.5 / 100 * 2**0.5) ** 0.5),
        "references": {"count": 1, "ids": [5]},
        "tokens": [
            {
                "rank": 1,
                "id": 3,
                "token": "d",
                "raw": "d",
                "value": rows[3, 3],
                "class": "ordinary",
            },
            {
                **{"rank": 2, "id": 0, "token": "a", "raw": "a"},
                **{"value": pytest.approx(2**0.5), "class": "ordinary"},
            },
        ],
    }
    assert found.below == 1


def test_references_that_are_named(tmp_path):
    rows, planted, references = _planted(1, tied=True)
    folder = folder_model(tmp_path / "m", rows, [f"w{i}" for i in range(ROWS)])
    model = Model.open(str(folder))
    found = undertrained(model, references=references[::-1], k=ROWS)
    assert (found.indicator, found.references.ids) == ("cosine", tuple(references))
    assert {t.id for t in found.tokens if t.value <= found.threshold} == planted
    with pytest.raises(TokenError, match=r"the reference 500 is out of range: .* has 500 rows"):
        undertrained(model, references=[3, 500])
    with pytest.raises(TokenError, match="no row is known to be untrained"):
        undertrained(model, "cosine")


def test_classes_of_tokens(tmp_path):
    tokens = [b"a", b"b", b"ab", b"\xe5\x9b", b"\xf5", "国".encode()]
    rows = np.eye(6, 5, dtype=np.float32) * np.array([[5], [4], [3], [2], [0.1], [1]], "f4")
    folder = folder_model(tmp_path / "m", rows)
    (folder / "tokenizer.json").write_text(byte_tokenizer(tokens), encoding="utf-8")
    found = undertrained(Model.open(str(folder)), "norm")
    assert found.references.ids == (4,)
    kinds = {token.id: token.kind for token in found.tokens}
    assert kinds == {0: "ordinary", 1: "ordinary", 2: "ordinary", 3: "partial UTF-8", 5: "ordinary"}


def test_a_token_that_its_text_does_not_lead_to(tmp_path):
    rows = np.diag([1, 2, 3, 0.1]).astype(np.float32)
    folder = folder_model(tmp_path / "m", rows)
    words = word_tokenizer(["king", "[UNK]", "queen", "<unused0>"])
    normalized = words.replace('"added_tokens": []', '"added_tokens": [], "normalizer": NORM')
    normalized = normalized.replace(
        "NORM", '{"type": "Replace", "pattern": {"String": "queen"}, "content": "king"}'
    )
    (folder / "tokenizer.json").write_text(normalized, encoding="utf-8")
    found = undertrained(Model.open(str(folder)), "norm")
    kinds = {token.raw: token.kind for token in found.tokens}
    assert kinds["king"] == "ordinary"
    assert kinds["queen"] == "unreachable"


def test_without_a_tokenizer_classes_are_not_known(tmp_path):
    rows, planted, _ = _planted(2, tied=False)
    path = write_safetensors(tmp_path / "alone.safetensors", {"embedding.weight": rows})
    found = undertrained(Model.open(str(path)), k=ROWS)
    assert found.indicator == "norm"
    assert found.references.count == 0
    assert {token.kind for token in found.tokens} == {None}
    below = {token.id for token in found.tokens if token.value <= found.threshold}
    assert below == planted | set(range(ROWS - REFERENCES, ROWS))


def test_two_tables_of_equal_values_are_tied(tmp_path):
    rows, _, _ = _planted(3, tied=True)
    folder = folder_model(tmp_path / "m", rows, [f"w{i}" for i in range(ROWS - REFERENCES)])
    tensors = {"model.embed_tokens.weight": rows, "lm_head.weight": rows}
    write_safetensors(folder / "model.safetensors", tensors)
    assert undertrained(Model.open(str(folder))).indicator == "cosine"
    other = rows.copy()
    other[-1] += 1  # no row that is sampled
    tensors["lm_head.weight"] = other
    write_safetensors(folder / "model.safetensors", tensors)
    assert undertrained(Model.open(str(folder))).indicator == "norm"


def test_references_of_zeros_point_nowhere(tmp_path):
    rows, planted, references = _planted(4, tied=False)
    rows[references] = 0
    folder = folder_model(tmp_path / "m", rows, [f"w{i}" for i in range(ROWS - REFERENCES)])
    found = undertrained(Model.open(str(folder)), k=ROWS)
    assert found.indicator == "norm"
    assert {t.id for t in found.tokens if t.value <= found.threshold} == planted
    assert found.notes == (
        "cosine cannot work on model.embed_tokens.weight: "
        "every row that is known to be untrained is zero",
    )


@pytest.mark.slow
def test_gemma(gemma_path):
    model = Model.open("gemma-3-270m")
    found = undertrained(model, k=60)
    assert (found.indicator, found.table) == ("cosine", "token_embd.weight")
    unused = {i for i in range(262144) if (model.vocabulary.raw(i) or "").startswith("<unused")}
    assert len(unused) == 6242
    assert set(found.references.ids) - unused == {238 + i for i in (0xC0, 0xC1, *range(0xF5, 256))}
    assert unused <= set(found.references.ids)
    ordinary = [token.id for token in found.tokens if token.kind == "ordinary"]
    assert {30083, 48708, 182632, 54267} <= set(ordinary[:13])
    assert 0.02 < found.threshold < 0.1
    assert 1500 < found.below < 2000
    assert found.notes == ()
    norm = undertrained(model, "norm", k=1)
    assert norm.threshold is None
    assert norm.notes == (
        "norm cannot work on token_embd.weight: all norms lie within 0.7% of each other",
    )
