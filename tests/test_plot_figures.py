import json

import numpy as np
import pytest
from builders import folder_model
from cli import run

from embtool import Model
from embtool.errors import TokenError
from embtool.projection import main_plane
from embtool.queries.candidates import Candidates
from embtool.queries.figure import analogy_map, norm_figure, words_map
from embtool.queries.ground import Choices

WORDS = [f"w{i}" for i in range(40)]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(8)
    return (rng.standard_normal((40, 12)) + 0.5).astype(np.float32)


@pytest.fixture(scope="module")
def model(table, tmp_path_factory):
    return Model.open(str(folder_model(tmp_path_factory.mktemp("plot") / "m", table, WORDS)))


def svd_plane(vectors):
    centered = vectors - vectors.mean(axis=0)
    u, s, _ = np.linalg.svd(centered)
    return u[:, :2] * s[:2], s**2 / (s**2).sum()


def coordinates(figure):
    return np.array([(point.x, point.y) for point in figure.points])


def same_up_to_sign(these, those):
    signs = np.sign((these * those).sum(axis=0))
    return np.abs(these - signs * those).max()


def test_words_lie_where_numpys_svd_puts_them(model, table):
    figure = words_map(model, WORDS[:9], Choices(), Candidates())
    expected, shares = svd_plane(table[:9].astype(np.float64))
    assert same_up_to_sign(coordinates(figure), expected) < 1e-12
    assert figure.shares == pytest.approx(shares[:2], abs=1e-12)
    assert [point.text for point in figure.points] == WORDS[:9]
    assert [point.ids for point in figure.points] == [(i,) for i in range(9)]
    lengths = np.linalg.norm(table[:9].astype(np.float64), axis=1)
    assert [point.norm for point in figure.points] == pytest.approx(lengths)
    assert figure.links == () and figure.formula is None and not figure.unit


def test_the_largest_component_of_each_axis_is_positive(table):
    vectors = table.astype(np.float64)
    for some in (vectors, -vectors, vectors[::-1]):
        axes = main_plane(some).axes
        assert (axes[np.arange(2), np.abs(axes).argmax(axis=1)] > 0).all()
        assert np.abs(axes @ axes.T - np.eye(2)).max() < 1e-12


def test_what_is_below_rounding_is_no_axis():
    line = np.outer([0.0, 1.0, 3.0], [0.1, 0.2, 0.7])
    plane = main_plane(line)
    assert plane.axes[1].tolist() == [0, 0, 0]
    assert plane.shares == (1.0, 0.0)
    assert main_plane(np.full((4, 3), 0.1)).shares == (0.0, 0.0)
    assert main_plane(np.array([[2.0], [4.0]])).place(np.array([[2.0], [4.0]])).tolist() == [
        [-1, 0],
        [1, 0],
    ]


def test_neighbors_are_points_once_with_their_cosines(model, table):
    figure = words_map(model, ["w0", "w1"], Choices(), Candidates(), neighbors=3)
    units = table / np.linalg.norm(table, axis=1, keepdims=True)
    cosines = units[:2] @ units.T
    expected = {}
    for word in (0, 1):
        ranked = [i for i in np.argsort(-cosines[word]) if i != word][:3]
        expected |= {(word, int(i)): cosines[word, i] for i in ranked}
    found = {
        (link.start, figure.points[link.end].ids[0]): link.score
        for link in figure.links
        if link.role == "neighbor"
    }
    assert found == pytest.approx(expected, abs=1e-6)
    ids = [point.ids for point in figure.points]
    assert len(set(ids)) == len(ids) == len({i for pair in expected for i in pair})
    assert [point.role for point in figure.points] == ["word"] * 2 + ["neighbor"] * (len(ids) - 2)
    chosen = table[[i for (i,) in ids]].astype(np.float64)
    assert same_up_to_sign(coordinates(figure), svd_plane(chosen)[0]) < 1e-12


def test_an_analogy_is_a_parallelogram_of_directions(model, table):
    figure = analogy_map(model, ["w3", "w4", "w5"], Choices(), Candidates())
    a, b, c, total, answer = coordinates(figure)
    assert np.abs((a - b) - (total - c)).max() < 1e-12
    units = table.astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    summed = units[3] - units[4] + units[5]
    cosines = units @ summed / np.linalg.norm(summed)
    cosines[[3, 4, 5]] = -2
    best = int(cosines.argmax())
    assert figure.points[4].ids == (best,) and figure.points[4].role == "answer"
    assert figure.links[-1].score == pytest.approx(cosines[best], abs=1e-12)
    expected, _ = svd_plane(units[[3, 4, 5, best]])
    assert same_up_to_sign(np.array([a, b, c, answer]), expected) < 1e-12
    assert figure.formula == "w3 - w4 + w5" and figure.points[3].ids == ()
    assert figure.points[3].norm == pytest.approx(np.linalg.norm(summed))
    assert figure.points[0].norm == pytest.approx(np.linalg.norm(table[3]), rel=1e-6)


def test_a_space_moves_the_points(model, table):
    centered = table.astype(np.float64) - table.astype(np.float64).mean(axis=0)
    figure = words_map(model, WORDS[:5], Choices(remove=1), Candidates())
    top = np.linalg.svd(centered)[2][0]
    moved = centered - np.outer(centered @ top, top)
    assert same_up_to_sign(coordinates(figure), svd_plane(moved[:5])[0]) < 1e-5
    norms = norm_figure(model, Choices(center=True))
    lengths = np.sort(np.linalg.norm(centered, axis=1))
    assert [token.norm for token in norms.lowest] == pytest.approx(lengths[:10], rel=1e-5)


def test_norms_are_numpys(tmp_path, table):
    rows = table.copy()
    rows[7] = 0
    rows[9, 2] = np.nan
    rows[11, 0] = np.inf
    model = Model.open(str(folder_model(tmp_path / "m", rows, WORDS)))
    figure = norm_figure(model, Choices())
    lengths = np.linalg.norm(np.delete(rows, [9, 11], axis=0).astype(np.float64), axis=1)
    counts, edges = np.histogram(lengths, 30)
    assert (figure.rows, figure.finite) == (40, 38)
    assert figure.histogram.counts == tuple(counts)
    assert figure.histogram.edges == pytest.approx(edges, rel=1e-6)
    assert [token.norm for token in figure.lowest] == pytest.approx(np.sort(lengths)[:10])
    assert (figure.lowest[0].id, figure.lowest[0].token) == (7, "w7")


def test_one_word_alone_is_no_map(model):
    with pytest.raises(TokenError, match="two words or more, not 1"):
        words_map(model, ["w1", "w1"], Choices(), Candidates())
    assert len(words_map(model, ["w1"], Choices(), Candidates(), 2).points) == 3


def test_a_sum_that_is_zero_has_no_answer(tmp_path):
    rows = np.array([[1, -1, 0], [1, 0, -1], [0, 1, -1], [2, 1, 1]], np.float32)
    model = Model.open(str(folder_model(tmp_path / "m", rows, ["a", "b", "c", "d"])))
    with pytest.raises(TokenError, match="a - b \\+ c is zero"):
        analogy_map(model, ["a", "b", "c"], Choices(), Candidates())


def test_json_holds_the_figure(capsys, model):
    done = run(capsys, "plot", "w0", "w1", "w2", "-m", model.ref, "-f", "json")
    figure = words_map(model, ["w0", "w1", "w2"], Choices(), Candidates())
    record = json.loads(done.out)
    assert list(record) == ["model", "table", "formula", "unit", "shares", "points", "links"]
    assert list(record["points"][0]) == ["text", "role", "ids", "tokens", "norm", "x", "y"]
    assert [(point["x"], point["y"]) for point in record["points"]] == [
        (point.x, point.y) for point in figure.points
    ]
