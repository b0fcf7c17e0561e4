"""How a person wants words and rows to count: pools, spaces, sums, candidates, folding."""

import json

import numpy as np
import pytest
from builders import folder_model
from cli import run

from embtool.queries.expression import parse
from embtool.vocab import UsageError


def answer(capsys, *args):
    done = run(capsys, *map(str, args), "-f", "json", "-q")
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.fixture
def gemma(gemma_path, capsys):
    def ask(*args):
        return answer(capsys, *args, "-m", "gemma-3-270m")

    return ask


def test_king_minus_man_plus_woman_in_the_form_that_auto_picks(gemma):
    found = gemma("analogy", "king", "man", "woman", "-k", 1)
    assert [term["form"] for term in found["terms"]] == ["spaced"] * 3
    assert found["answers"][0]["token"] == " queen"
    assert found["answers"][0]["score"] == pytest.approx(0.772, abs=5e-4)
    found = gemma("analogy", "king", "man", "woman", "-k", 1, "--form", "bare")
    assert [term["form"] for term in found["terms"]] == ["bare"] * 3
    assert found["answers"][0]["token"] == "KING"
    assert found["answers"][0]["score"] == pytest.approx(0.544, abs=5e-4)


def test_a_sum_of_any_words_equals_the_analogy(gemma):
    three = gemma("analogy", "国王", "男人", "女人", "-k", 5)
    summed = gemma("analogy", "--expr", "国王 - 男人 + 女人", "-k", 5)
    assert summed == three
    assert summed["formula"] == "国王 - 男人 + 女人"
    twice = gemma("analogy", "--expr", "2 国王 - 2*男人 + 2 女人", "-k", 5)
    assert twice["formula"] == "2 国王 - 2 男人 + 2 女人"
    assert [a["id"] for a in twice["answers"]] == [a["id"] for a in three["answers"]]


@pytest.mark.parametrize("pool", ["mean", "sum", "first", "last"])
def test_a_pool_is_what_it_says(gemma, gemma_path, pool):
    from embtool.model import Model

    found = gemma("neighbors", "天天快乐", "--pool", pool, "-k", 3)
    query = found["query"]
    assert (query["ids"], query["tokens"], query["pool"]) == (
        [152108, 82400],
        ["天天", "快乐"],
        pool,
    )
    rows = Model.open("gemma-3-270m").table().rows([*query["ids"], *_ids(found)]).astype(float)
    pieces, others = rows[:2], rows[2:]
    vector = {"mean": pieces.mean(0), "sum": pieces.sum(0), "first": pieces[0], "last": pieces[1]}
    expected = _cosines(vector[pool][None], others)[0]
    assert [n["score"] for n in found["neighbors"]] == pytest.approx(expected, abs=1e-12)


def _ids(found):
    return [neighbor["id"] for neighbor in found["neighbors"]]


def _cosines(these, those):
    these = these / np.linalg.norm(these, axis=1, keepdims=True)
    those = those / np.linalg.norm(those, axis=1, keepdims=True)
    return these @ those.T


TABLE = np.random.default_rng(11).standard_normal((300, 12)).astype(np.float32) + 2
WORDS = [f"w{i}" for i in range(300)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return folder_model(tmp_path_factory.mktemp("made"), TABLE, WORDS)


@pytest.mark.parametrize("remove", [0, 1, 3])
def test_centred_rows_and_removed_components(capsys, made, remove):
    wide = TABLE.astype(np.float64)
    moved = wide - wide.mean(axis=0)
    directions = np.linalg.svd(moved, full_matrices=False)[2][:remove]
    moved -= moved @ directions.T @ directions
    cosines = _cosines(moved, moved)
    options = ["--remove-components", remove] if remove else ["--center"]
    for _ in range(2):  # computed, and then from what was kept
        found = answer(capsys, "neighbors", "w5", "-k", 4, "-m", made, *options)
        best = [i for i in np.argsort(-cosines[5], kind="stable") if i != 5][:4]
        assert _ids(found) == best
        scores = [n["score"] for n in found["neighbors"]]
        assert scores == pytest.approx(cosines[5, best], abs=1e-6)
    matrix = answer(capsys, "similarity", "w1", "w2", "-m", made, *options)["matrix"]
    assert matrix[0][1] == pytest.approx(cosines[1, 2], abs=1e-6)


def test_the_point_between_words(capsys, made):
    found = answer(capsys, "neighbors", "--between", "w1", "w2", "-k", 3, "-m", made)
    wide = TABLE.astype(np.float64)
    units = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    cosines = _cosines((units[1] + units[2])[None], wide)[0]
    best = [i for i in np.argsort(-cosines) if i not in (1, 2)][:3]
    assert _ids(found) == best
    assert (found["query"]["text"], found["query"]["pool"]) == ("w1 + w2", "between")


def test_any_vector_from_a_file_or_standard_input(capsys, made, tmp_path, monkeypatch):
    np.save(tmp_path / "v.npy", TABLE[[7, 8]])
    first, second = answer(capsys, "neighbors", "--vector", tmp_path / "v.npy", "-k", 1, "-m", made)
    assert (_ids(first), _ids(second)) == ([7], [8])
    assert first["query"] == {
        "text": "v.npy[0]",
        "form": "vector",
        "ids": [],
        "tokens": [],
        "pool": None,
    }
    np.save(tmp_path / "narrow.npy", TABLE[0, :5])
    done = run(capsys, "neighbors", "--vector", str(tmp_path / "narrow.npy"), "-m", str(made), "-q")
    assert done.code == 1
    assert done.err.startswith(
        "error: narrow.npy holds 1 x 5 numbers, and the table's rows are 12 wide\n"
    )


def test_the_cosines_of_two_lists(capsys, made, tmp_path):
    (tmp_path / "a").write_text("w1\nw2\n")
    (tmp_path / "b").write_text("w3\r\n\nw4\nw5")
    options = ["--rows", tmp_path / "a", "--cols", tmp_path / "b", "-m", made]
    found = answer(capsys, "similarity", *options)
    expected = _cosines(TABLE[[1, 2]].astype(float), TABLE[[3, 4, 5]].astype(float))
    assert np.array(found["matrix"]) == pytest.approx(expected, abs=1e-12)
    done = run(capsys, "similarity", *map(str, options), "-q")
    assert done.out.splitlines()[0] == "word\tw3\tw4\tw5"


def test_the_place_of_one_word_among_the_neighbors_of_another(capsys, made):
    cosines = _cosines(TABLE[[9]].astype(float), TABLE.astype(float))[0]
    place = 1 + sum(c > cosines[20] for i, c in enumerate(cosines) if i not in (9, 20))
    found = answer(capsys, "rank", "w9", "w20", "-m", made)
    assert (found["rank"], found["of"]) == (place, 299)
    assert found["score"] == pytest.approx(cosines[20], abs=1e-12)


def test_the_rank_is_the_place_in_the_list(gemma):
    ranked = gemma("neighbors", "国王", "-k", 10)["neighbors"]
    found = gemma("rank", "国王", "女王")
    assert (found["rank"], found["of"]) == (10, 262143)
    assert found["score"] == ranked[9]["score"]


def test_candidates(gemma):
    ranked = gemma("neighbors", "国王", "-k", 1500)["neighbors"]

    def chosen(*options):
        found = gemma("neighbors", "国王", "-k", 4, *options)["neighbors"]
        return [(neighbor["id"], neighbor["score"]) for neighbor in found]

    def expected(wanted):
        return [(n["id"], n["score"]) for n in ranked if wanted(n["token"])][:4]

    def han(token):
        return token.strip()[:1] >= "\u4e00" and token.strip()[0] <= "\u9fff"

    def latin(token):
        return token.strip()[:1].isalpha() and token.strip()[0] < "\u0250"

    assert chosen("--script", "han") == expected(han)
    assert chosen("--only", "^[A-Z]") == expected(lambda t: "A" <= t[0] <= "Z")
    words = expected(lambda t: latin(t) and t.startswith(" "))
    assert chosen("--words", "--script", "latin") == words
    first = [(n["id"], n["score"]) for n in ranked if n["id"] < 30_000][:4]
    assert chosen("--first", 30_000) == first


def test_candidates_that_leave_no_row(capsys, made):
    done = run(capsys, "neighbors", "w1", "--script", "klingon", "-m", str(made), "-q")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: none of 300 rows is a candidate\n")


def test_special_tokens_and_rows_without_a_token_never_rank_where_they_should_not(capsys, tmp_path):
    table = np.array([[1, 0], [1, 0.1], [1, 0.2], [1, 0.3]], np.float32)
    folder = folder_model(tmp_path / "m", table, ["a", "b", "c"])
    assert _ids(answer(capsys, "neighbors", "a", "-m", folder)) == [1, 2]
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    special = {"id": 1, "content": "b", "special": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    tokenizer["added_tokens"] = [special | flags]
    path.write_text(json.dumps(tokenizer))
    assert _ids(answer(capsys, "neighbors", "a", "--exclude-special", "-m", folder)) == [2]


def test_folding_shows_one_spelling_and_counts_the_rest(gemma):
    plain = gemma("neighbors", "king", "-k", 40)["neighbors"]
    found = gemma("neighbors", "king", "-k", 3, "--fold")["neighbors"]
    keys = [n["token"].strip().casefold() for n in plain]
    assert [n["token"].strip().casefold() for n in found] == list(dict.fromkeys(keys))[:3]
    assert found[0]["variants"] >= keys.count(keys[0]) - 1 > 0
    assert list(found[0]) == ["rank", "id", "token", "raw", "score", "variants"]


@pytest.mark.parametrize(
    ("text", "words", "weights"),
    [
        ("a - b + c", ("a", "b", "c"), (1, -1, 1)),
        ("- a + b", ("a", "b"), (-1, 1)),
        ("2 king - 0.5*man", ("king", "man"), (2, -0.5)),
        ("2024 - 2023 + 2022", ("2024", "2023", "2022"), (1, -1, 1)),
        ("well-known − c++", ("well-known", "c++"), (1, -1)),
        ("a", ("a",), (1,)),
    ],
)
def test_sums_as_people_write_them(text, words, weights):
    assert parse(text) == (words, weights)


@pytest.mark.parametrize("text", ["a b", "a +", "+", "", "a + + b", "two king + a", "2 2 a"])
def test_what_is_no_sum(text):
    with pytest.raises(UsageError, match="is no sum"):
        parse(text)
