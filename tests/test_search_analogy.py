"""The three methods against a float64 scan, for single questions and for whole files of them."""

import numpy as np
import pytest
from search_tables import awkward_table, best_of, parts_of

from embtool.errors import UnsupportedError
from embtool.search.analogy import analogies, evaluate_analogies
from embtool.search.blocks import Pass
from embtool.space import Space

METHODS = ["3cosadd", "3cosmul", "pairdirection"]


def unit(vectors):
    wide = np.asarray(vectors, np.float64)
    with np.errstate(all="ignore"):
        return wide / np.sqrt(np.square(wide).sum(axis=-1, keepdims=True))


def scores_of(table, method, terms, weights=(1, -1, 1)):
    """(rows,) float64 by the formulas as the papers have them; NaN for rows that never rank."""
    x, terms = unit(table), unit(terms)
    cosines = [(x * term).sum(axis=1) for term in terms]
    with np.errstate(all="ignore"):
        if method == "3cosadd":
            total = sum(weight * term for weight, term in zip(weights, terms, strict=True))
            scores = (x * unit(total)).sum(axis=1)
        elif method == "3cosmul":
            scores = np.ones(len(x))
            for weight, cosine in zip(weights, cosines, strict=True):
                shifted = (1 + cosine) / 2
                scores = scores * shifted if weight > 0 else scores / (shifted + 1e-6)
        else:
            b, a, c = terms
            steps = x - c
            steps[np.square(steps).sum(axis=1) < 1e-18] = np.nan
            scores = (unit(steps) * unit(b - a)).sum(axis=1)
    scores[~np.isfinite(table).all(axis=1) | ~np.asarray(table).any(axis=1)] = np.nan
    return scores


def a_pass(table, count=1, step=64, **given):
    return Pass(parts_of(table, count, step), lambda ids: table[ids], **given)


TABLE, EQUAL = awkward_table(rows=900, width=20, seed=4)
RNG = np.random.default_rng(8)
QUESTIONS = RNG.choice(np.arange(10, 900), (600, 4))
QUESTIONS[:300, :2] = QUESTIONS[0, :2]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("asked", [1, 2, 40])
@pytest.mark.parametrize(("count", "step"), [(1, 900), (2, 11)])
def test_the_best_answers_are_those_of_a_float64_scan(method, asked, count, step):
    ids = QUESTIONS[280 : 280 + asked, [1, 0, 2]]
    terms = np.arange(ids.size).reshape(ids.shape)
    found = analogies(
        a_pass(TABLE, count, step),
        TABLE[ids.ravel()],
        terms,
        (1, -1, 1),
        k=12,
        method=method,
        exclude=ids.tolist(),
    )
    for question, hits in zip(ids, found, strict=True):
        scores = scores_of(TABLE, method, TABLE[question])
        got = [hit.id for hit in hits]
        np.testing.assert_allclose([hit.score for hit in hits], scores[got], rtol=1e-9, atol=1e-9)
        want = best_of(np.round(scores, 9), 12, question)
        assert [round(scores[i], 8) for i in got] == [round(scores[i], 8) for i in want]
        assert not set(got) & set(question.tolist())


@pytest.mark.parametrize("weights", [(1,), (1, 1), (1, -1, -1, 1, 1)])
def test_3cosmul_takes_any_number_of_terms(weights):
    ids = np.arange(10, 10 + len(weights))
    work, terms = a_pass(TABLE), np.arange(len(ids))[None]
    (hits,) = analogies(work, TABLE[ids], terms, weights, k=6, method="3cosmul", exclude=[ids])
    scores = scores_of(TABLE, "3cosmul", TABLE[ids], weights)
    assert [hit.id for hit in hits] == best_of(scores, 6, ids)


def test_3cosadd_takes_any_weights():
    ids, weights = [30, 31, 32, 33], (2, -0.5, 1, 0.25)
    (hits,) = analogies(a_pass(TABLE), TABLE[ids], np.arange(4)[None], weights, k=6)
    scores = scores_of(TABLE, "3cosadd", TABLE[ids], weights)
    assert [hit.id for hit in hits] == best_of(scores, 6)
    np.testing.assert_allclose([hit.score for hit in hits], scores[[hit.id for hit in hits]])


def test_weights_that_a_method_has_no_meaning_for_are_refused():
    for method, weights in [
        ("3cosmul", (2, -1, 1)),
        ("pairdirection", (1, 1, 1)),
        ("pairdirection", (1, -1)),
    ]:
        terms = np.arange(len(weights))[None]
        with pytest.raises(UnsupportedError) as raised:
            analogies(a_pass(TABLE), TABLE[10:13], terms, weights, k=1, method=method)
        assert method in raised.value.message


def test_a_question_without_a_direction_has_no_answers():
    vectors = TABLE[[10, 11, 3]]
    same = np.array([[0, 0, 1], [0, 1, 0]])
    found = analogies(a_pass(TABLE), vectors, same, (1, -1, 1), k=2, method="pairdirection")
    assert [len(hits) for hits in found] == [0, 2]
    nothing = np.array([[0, 0], [0, 1]])
    found = analogies(a_pass(TABLE), vectors, nothing, (1, -1), k=2)
    assert [len(hits) for hits in found] == [0, 2]
    for method in METHODS:
        zero = np.array([[0, 1, 2], [0, 1, 1]])
        found = analogies(a_pass(TABLE), vectors, zero, (1, -1, 1), k=2, method=method)
        assert [len(hits) for hits in found] == [0, 2]


@pytest.mark.parametrize("method", METHODS)
def test_rows_opposite_to_a_term_or_beside_one_are_scored_in_float64(method):
    rng = np.random.default_rng(1)
    table = rng.standard_normal((400, 12)).astype(np.float32)
    b, a, c = table[:3]
    for place, size in enumerate(np.geomspace(1e-7, 1, 40)):
        noise = rng.standard_normal(12).astype(np.float32) * np.float32(size)
        table[100 + place] = c + noise
        table[200 + place] = noise - a
    table[300] = c
    for asked in (1, 4):
        vectors = np.concatenate([table[:3], rng.standard_normal((9, 12))])
        terms = np.arange(12).reshape(4, 3)[:asked]
        exclude = [[0, 1, 2]] * asked
        found = analogies(
            a_pass(table, 2), vectors, terms, (1, -1, 1), k=60, method=method, exclude=exclude
        )
        scores = scores_of(table, method, [b, a, c])
        want = best_of(scores, 60, [0, 1, 2])
        assert [hit.id for hit in found[0]] == want
        assert 300 not in want or method != "pairdirection"


@pytest.mark.parametrize(("count", "step"), [(1, 2000), (2, 50), (3, 401)])
@pytest.mark.parametrize("allowed", [None, np.arange(900) % 3 > 0])
def test_evaluation_answers_every_question_in_one_pass(count, step, allowed):
    found = evaluate_analogies(a_pass(TABLE, count, step, allowed=allowed), QUESTIONS, METHODS)
    assert list(found) == METHODS
    for method in METHODS:
        assert found[method].dtype == np.int64
        for question, answer in zip(QUESTIONS[::7], found[method][::7].tolist(), strict=True):
            own = question[:3].tolist()
            scores = scores_of(TABLE, method, TABLE[question[[1, 0, 2]]])
            (want,) = best_of(np.round(scores, 12), 1, own, allowed) or [-1]
            assert answer == want, (method, question)


def test_evaluation_in_a_space():
    rng = np.random.default_rng(0)
    table = (rng.standard_normal((500, 16)) + 1).astype(np.float32)
    questions = rng.choice(500, (300, 4))
    components = np.linalg.qr(rng.standard_normal((16, 1)))[0].T
    space = Space(table.mean(axis=0, dtype=np.float64), components)
    moved = space.apply(table)
    work = a_pass(table, 2, space=space)
    found = evaluate_analogies(work, questions, METHODS)
    again = a_pass(table, 1, space=space, norms=work.norms)
    for method, answers in evaluate_analogies(again, questions, METHODS).items():
        np.testing.assert_array_equal(answers, found[method])
        for question, answer in zip(questions[::11], answers[::11].tolist(), strict=True):
            scores = scores_of(moved, method, moved[question[[1, 0, 2]]])
            assert best_of(np.round(scores, 12), 1, question[:3]) in ([answer], [])


def test_evaluation_of_nothing_and_of_rows_that_never_rank():
    empty = np.empty((0, 4), np.int64)
    assert evaluate_analogies(a_pass(TABLE), empty, METHODS)["3cosmul"].tolist() == []
    assert evaluate_analogies(a_pass(TABLE), QUESTIONS, []) == {}
    for method in METHODS:
        nothing = np.empty((0, 3), np.int64)
        assert analogies(a_pass(TABLE), TABLE[:0], nothing, (1, -1, 1), k=1, method=method) == []
    questions = np.array([[3, 10, 11, 12], [10, 4, 11, 12], [10, 11, 12, 13]])
    found = evaluate_analogies(a_pass(TABLE), questions, METHODS)
    for method in METHODS:
        assert (found[method] == -1).tolist() == [True, True, False]
    nobody = np.zeros(900, bool)
    found = evaluate_analogies(a_pass(TABLE, allowed=nobody), questions, ["3cosadd"])
    assert found["3cosadd"].tolist() == [-1, -1, -1]


def test_equal_answers_are_told_apart_by_id():
    table = np.random.default_rng(3).standard_normal((5000, 16)).astype(np.float32)
    table[10::5] = table[1] - table[0] + table[2]
    questions = np.array([[0, 1, 2, 10], [0, 1, 2, 3], [0, 1, 10, 3]])
    found = evaluate_analogies(a_pass(table, 2, 100), questions, ["3cosadd", "3cosmul"])
    assert found["3cosadd"].tolist()[:2] == [10, 10]
    assert found["3cosmul"].tolist()[:2] == [10, 10]
