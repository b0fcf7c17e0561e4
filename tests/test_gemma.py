"""Gemma 3 270M against values that were computed apart from embtool.

golden/gemma-3-270m.json: the table dequantized to float32, cosines in float64; token ids as the
model's own tokenizer gives them.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from embtool.model import Model
from embtool.queries import texts
from embtool.queries.analogy import Sums
from embtool.queries.candidates import Candidates
from embtool.queries.ground import Choices
from embtool.queries.nearest import Nearest
from embtool.queries.similarity import similarity

GOLDEN = json.loads(
    (Path(__file__).parent / "golden" / "gemma-3-270m.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def gemma(gemma_path):
    return Model.open("gemma-3-270m")


def test_the_table(gemma):
    table = gemma.table()
    assert list(table.shape) == GOLDEN["shape"] == [262144, 640]
    assert (table.tensor, table.dtype) == ("token_embd.weight", "Q8_0")
    assert table.nbytes == 262144 * 20 * 34


@pytest.mark.parametrize("case", GOLDEN["texts"], ids=lambda case: ascii(case["text"]))
def test_token_ids_of_a_text(gemma, case):
    assert [token.id for token in texts.tokens(gemma, case["text"]).tokens] == case["ids"]


@pytest.mark.parametrize("case", GOLDEN["neighbors"], ids=lambda case: ascii(case["word"]))
def test_rows_and_neighbors(gemma, case):
    row = gemma.table().rows([case["id"]])[0]
    expected = np.array(case["first_values"], np.float32)
    assert np.array_equal(row[: len(expected)], expected)
    assert np.linalg.norm(row.astype(np.float64)) == pytest.approx(case["norm"], abs=1e-6)

    nearest = Nearest(gemma, Choices(), Candidates(), "cosine", 10)
    (found,) = nearest.words([[case["word"]]], alone=True)
    assert found.query.ids == (case["id"],)
    assert [(n.id, n.raw) for n in found.neighbors] == [(t["id"], t["raw"]) for t in case["top"]]
    scores = [t["score"] for t in case["top"]]
    assert [n.score for n in found.neighbors] == pytest.approx(scores, abs=1e-5)


@pytest.mark.parametrize("case", GOLDEN["analogies"], ids=lambda case: ascii(case["terms"]))
def test_analogies(gemma, case):
    sums = Sums(gemma, Choices(), Candidates(), 10)
    (found,) = sums.answer([[tuple(case["terms"])]], alone=True)
    assert [term.ids[0] for term in found.terms] == case["ids"]
    assert found.method == case["method"]
    assert [(n.id, n.raw) for n in found.answers] == [(t["id"], t["raw"]) for t in case["top"]]
    scores = [t["score"] for t in case["top"]]
    assert [n.score for n in found.answers] == pytest.approx(scores, abs=1e-5)


def test_similarity(gemma):
    case = GOLDEN["similarity"]
    found = similarity(gemma, case["words"], Choices())
    assert np.array(found.matrix) == pytest.approx(np.array(case["matrix"]), abs=1e-6)


def test_a_text_looked_up_is_its_tokens_rows(gemma):
    found = texts.lookup(gemma, "今天西安的天气怎么样", "input", 3)
    assert found.shape == (5, 640)
    assert [row.id for row in found.tokens] == [22601, 181629, 101251, 238190, 114172]
    assert [row.token for row in found.tokens] == ["今天", "西安", "的天", "气", "怎么样"]
    assert np.array_equal(found.matrix, gemma.table().rows([row.id for row in found.tokens]))
    assert all(
        row.vector == tuple(found.matrix[i, :3].tolist()) for i, row in enumerate(found.tokens)
    )
