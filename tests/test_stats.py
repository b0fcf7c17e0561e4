"""Statistics of a table against float64 computations of the whole table at once."""

from itertools import pairwise

import numpy as np
import pytest
from builders import bf16, folder_model, write_safetensors

from embtool.model import Model
from embtool.output.plain import plain
from embtool.queries.stats import stats
from embtool.stats import duplicates as near_module
from embtool.stats.duplicates import duplicates, near_duplicates
from embtool.stats.spectrum import spectrum
from embtool.stats.survey import mean_cosine, survey
from embtool.table import Table


def _parts(rows, count=2, step=100):
    def part(start, stop):
        buffer = np.empty((step, rows.shape[1]), np.float32)
        for first in range(start, stop, step):
            last = min(first + step, stop)
            buffer[: last - first] = rows[first:last]
            yield first, buffer[: last - first]

    bounds = [len(rows) * i // count for i in range(count + 1)]
    return [part(a, b) for a, b in pairwise(bounds)]


def _survey(rows, **options):
    return survey(_parts(rows, **options), rows.shape)


def _table(seed, rows=2500, width=96):
    """Rows of very unequal directions and lengths, far from the origin."""
    rng = np.random.default_rng(seed)
    scales = np.geomspace(3, 0.01, width)
    return (rng.standard_normal((rows, width)) * scales + 0.7).astype(np.float32)


@pytest.mark.parametrize(("parts", "step"), [(1, 2500), (2, 100), (3, 7), (5, 513)])
def test_all_sums_equal_float64(parts, step):
    rows = _table(1)
    wide = rows.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1)
    units = wide / norms[:, None]
    found = _survey(rows, count=parts, step=step)
    assert found.norms == pytest.approx(norms, rel=1e-12)
    assert found.mean == pytest.approx(wide.mean(axis=0), rel=1e-12)
    assert np.abs(found.second_moment - wide.T @ wide / len(wide)).max() < 1e-12
    assert np.array_equal(found.second_moment, found.second_moment.T)
    assert found.directions.sum(axis=0) == pytest.approx(units.sum(axis=0), rel=1e-11)
    above = np.triu_indices(len(rows), 1)
    expected = (units @ units.T)[above].mean()
    assert mean_cosine(found.directions.sum(axis=0), len(rows)) == pytest.approx(expected, abs=1e-9)


def test_a_table_wider_than_a_panel_is_symmetric():
    rows = np.random.default_rng(2).standard_normal((600, 1100)).astype(np.float32)
    wide = rows.astype(np.float64)
    found = _survey(rows).second_moment
    assert np.abs(found - wide.T @ wide / 600).max() < 1e-12


def test_labels_part_the_unit_vectors():
    rows = _table(3, rows=900)
    labels = np.arange(900) % 7
    units = rows / np.linalg.norm(rows.astype(np.float64), axis=1)[:, None]
    found = survey(_parts(rows), rows.shape, labels, 9)
    for label in range(7):
        expected = units[labels == label].sum(axis=0)
        assert found.directions[label] == pytest.approx(expected, rel=1e-10)
    assert not found.directions[7:].any()


def test_the_spectrum_equals_numpys():
    rows = _table(4)
    moment = rows.astype(np.float64).T @ rows.astype(np.float64) / len(rows)
    values = np.linalg.eigvalsh(moment)[::-1]
    shares = values / values.sum()
    found = spectrum(_survey(rows).second_moment)
    assert found.eigenvalues == pytest.approx(values, rel=1e-9)
    assert found.shares(5) == pytest.approx(shares[:5].tolist(), rel=1e-9)
    entropy = -(shares * np.log(shares)).sum()
    assert found.effective_rank == pytest.approx(np.exp(entropy), rel=1e-9)
    assert found.participation_ratio == pytest.approx(1 / (shares**2).sum(), rel=1e-9)


def test_the_spectrum_of_known_matrices():
    flat = spectrum(np.eye(6) * 3)
    assert (flat.effective_rank, flat.participation_ratio) == pytest.approx((6, 6))
    assert flat.shares(2) == pytest.approx([1 / 6, 1 / 6])
    line = spectrum(np.diag([2.0, 0, 0]))
    assert (line.effective_rank, line.participation_ratio) == (1, 1)
    nothing = spectrum(np.zeros((3, 3)))
    assert (nothing.effective_rank, nothing.participation_ratio) == (None, None)
    assert nothing.shares(3) == [0, 0, 0]


def test_mean_cosine_of_few_rows():
    assert mean_cosine(np.array([1.0, 1.0]), 2) == 0
    assert mean_cosine(np.array([2.0, 0.0]), 2) == 1
    assert mean_cosine(np.array([1.0, 0.0]), 1) is None


def test_broken_rows_count_in_no_sum():
    rows = _table(5, rows=1300)
    good = np.ones(len(rows), bool)
    for row, value in ((3, np.nan), (700, np.inf), (701, -np.inf)):
        rows[row, 5] = value
        good[row] = False
    rows[701, 6] = np.nan
    rows[44] = 0
    wide = rows[good].astype(np.float64)
    found = _survey(rows)
    assert np.flatnonzero(np.isnan(found.norms)).tolist() == [3, 701]
    assert np.flatnonzero(np.isinf(found.norms)).tolist() == [700]
    assert found.mean == pytest.approx(wide.mean(axis=0), rel=1e-12)
    assert found.second_moment == pytest.approx(wide.T @ wide / len(wide), rel=1e-12)
    assert int(found.directed.sum()) == 1296
    nothing = _survey(np.full((4, 3), np.nan, np.float32))
    assert (nothing.mean, nothing.second_moment) == (None, None)


def _rows_of(rows, read=None):
    def rows_of(ids):
        if read is not None:
            read.extend(ids.tolist())
        return rows[ids]

    return rows_of


def test_equal_rows_are_grouped_wherever_they_stand():
    rows = _table(6, rows=2000)
    for group in ([5, 1999], [17, 600, 601, 1400], [0, 3]):
        rows[group[1:]] = rows[group[0]]
    rows[9], rows[10] = 0, -0.0
    rows[[21, 22]] = np.nan
    rows[[23, 24]] = np.inf
    read = []
    found = duplicates(_survey(rows), _rows_of(rows, read))
    assert found == [[0, 3], [5, 1999], [9, 10], [17, 600, 601, 1400]]
    assert sorted(set(read)) == [0, 3, 5, 9, 10, 17, 600, 601, 1400, 1999]


def test_rows_of_one_mark_are_told_apart():
    rows = np.array([[1, 2], [3, 4], [1, 2], [3, 4], [5, 6]], np.float32)
    found = _survey(rows)
    found.marks[:] = 7
    assert duplicates(found, _rows_of(rows)) == [[0, 2], [1, 3]]


def test_no_rows_at_all():
    found = survey([iter(())], (0, 4))
    assert duplicates(found, _rows_of(np.empty((0, 4), np.float32))) == []
    assert near_duplicates(found, _rows_of(np.empty((0, 4), np.float32)), []) == []


@pytest.mark.parametrize("width", [2, 24, 300])
def test_near_rows_are_all_found_and_none_beside(width):
    rng = np.random.default_rng(width)
    rows = rng.standard_normal((1500, width)).astype(np.float32)
    rows[::2] *= 50
    for i in range(300):  # half of them just inside, half just outside
        step = rng.standard_normal(width)
        length = np.linalg.norm(rows[i]) * (0.99e-3 if i % 2 else 1.02e-3)
        rows[1000 + i] = rows[i] + step / np.linalg.norm(step) * length
    rows[1400] = rows[1401]
    wide = rows.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1)
    apart = np.sqrt(((wide[:, None] - wide[None]) ** 2).sum(axis=2)) if width < 100 else None
    if apart is None:
        squares = norms**2
        apart = np.sqrt(np.maximum(squares[:, None] + squares - 2 * wide @ wide.T, 0))
    pairs = np.argwhere(np.triu(apart <= 1e-3 * np.maximum(norms[:, None], norms), 1)).tolist()
    found = _survey(rows)
    groups = near_duplicates(found, _rows_of(rows), [[1400, 1401]])
    expected = {frozenset(pair) for pair in pairs} - {frozenset([1400, 1401])}
    together = {row: set(group) for group in groups for row in group}
    if width > 2:  # on a plane chance puts rows together
        assert {frozenset(group) for group in groups} == expected
        assert len(expected) == 150
    assert all(a in together and b in together[a] for a, b in map(sorted, expected))


def test_groups_of_near_rows_and_the_limit(monkeypatch):
    rows = _table(8, rows=500)
    rows[100:140] = rows[7] * (1 + 1e-5 * np.arange(40)[:, None])
    found = _survey(rows)
    assert near_duplicates(found, _rows_of(rows), []) == [[7, *range(100, 140)]]
    monkeypatch.setattr(near_module, "_AT_ONCE", 50)
    assert near_duplicates(found, _rows_of(rows), []) == [[7, *range(100, 140)]]
    monkeypatch.setattr(near_module, "_MOST_PAIRS", 100)
    assert near_duplicates(found, _rows_of(rows), []) is None


WORDS = ["king", "国王", "42", "Москва", "queen", "!", "女王"]


def test_the_record_of_a_small_model(tmp_path):
    rows = np.array(
        [[3, 4], [1, 0], [0, 0], [3, 4], [0, 2], [6, 8], [np.nan, 1], [1, np.inf], [0, 1]],
        np.float32,
    )
    folder = folder_model(tmp_path / "m", rows, [*WORDS[:6], "broken", "wide"])
    found = stats(Model.open(str(folder)), k=2)
    assert (found.rows, found.d_model, found.dtype) == (9, 2, "F32")
    norms = found.norms
    assert (norms.min, norms.median, norms.max) == (0, 2, 10)
    assert norms.p1 == pytest.approx(np.percentile([5, 1, 0, 5, 2, 10, 1], 1))
    assert [(t.id, t.token, t.norm) for t in norms.smallest] == [(2, "42", 0), (1, "国王", 1)]
    assert [(t.id, t.norm) for t in norms.largest] == [(5, 10), (0, 5)]
    assert norms.histogram.edges[0] == 0
    assert norms.histogram.edges[-1] == 10
    assert (len(norms.histogram.counts), sum(norms.histogram.counts)) == (20, 7)
    assert (found.zero.ids, found.nan.ids, found.infinite.ids) == ((2,), (6,), (7,))
    assert [[entry.raw for entry in group] for group in found.duplicates] == [["king", "Москва"]]
    assert found.near_duplicates.groups == ()
    assert found.rows_without_token.ids == (8,)
    assert found.tokens_without_row.ids == ()
    directed = rows[[0, 1, 3, 4, 5, 8]].astype(np.float64)
    units = directed / np.linalg.norm(directed, axis=1)[:, None]
    cosines = (units @ units.T)[np.triu_indices(6, 1)]
    assert found.anisotropy.mean_cosine == pytest.approx(cosines.mean())
    assert found.anisotropy.pairs == 15
    finite = rows[[0, 1, 2, 3, 4, 5, 8]].astype(np.float64)
    assert found.anisotropy.mean_norm == pytest.approx(np.linalg.norm(finite.mean(axis=0)))
    assert found.eigenvalues.total == pytest.approx((finite**2).sum() / 7)
    kinds = {each.script: (each.rows, each.mean_norm) for each in found.scripts}
    assert kinds == {
        "latin": (4, 3.5),
        "no letter": (2, 5),
        "han": (1, 1),
        "cyrillic": (1, 5),
        "no token": (1, 1),
    }


def test_tokens_beyond_the_rows_and_no_tokenizer(tmp_path):
    rows = np.eye(3, dtype=np.float32)
    found = stats(Model.open(str(folder_model(tmp_path / "m", rows, WORDS))))
    assert found.tokens_without_row.ids == (3, 4, 5, 6)
    alone = write_safetensors(tmp_path / "alone.safetensors", {"embedding.weight": rows})
    bare = stats(Model.open(str(alone)))
    assert (bare.rows_without_token, bare.tokens_without_row, bare.scripts) == (None, None, ())
    assert bare.anisotropy.mean_cosine == 0
    assert bare.eigenvalues.effective_rank == pytest.approx(3)


def test_every_byte_is_read_once(tmp_path, monkeypatch):
    rows = _table(9, rows=3000)
    folder = folder_model(tmp_path / "m", bf16(rows))
    seen = []
    blocks = Table.blocks

    def counted(table, start=0, stop=None):
        for first, block in blocks(table, start, stop):
            seen.extend(range(first, first + len(block)))
            yield first, block

    monkeypatch.setattr(Table, "blocks", counted)
    found = stats(Model.open(str(folder)))
    assert sorted(seen) == list(range(3000))
    cut = (rows.view(np.uint32) & 0xFFFF0000).view(np.float32).astype(np.float64)
    values = np.linalg.eigvalsh(cut.T @ cut / len(cut))[::-1]
    assert found.eigenvalues.largest == pytest.approx(values[:10].tolist(), rel=1e-6)
    assert plain(found)["anisotropy"]["mean_norm"] == pytest.approx(
        np.linalg.norm(cut.mean(axis=0)), rel=1e-6
    )


@pytest.mark.slow
def test_gemma(gemma_path):
    found = stats(Model.open("gemma-3-270m"), k=3)
    assert (found.rows, found.d_model, found.dtype) == (262144, 640, "Q8_0")
    assert found.norms.min == pytest.approx(1.027557, abs=1e-6)
    assert found.norms.median == pytest.approx(1.031102, abs=1e-6)
    assert found.norms.max == pytest.approx(1.035106, abs=1e-6)
    assert found.anisotropy.mean_norm == pytest.approx(0.466427, abs=1e-6)
    assert found.anisotropy.mean_cosine == pytest.approx(0.204619, abs=1e-6)
    assert found.eigenvalues.shares == pytest.approx((0.220243, 0.046408, 0.032223), abs=1e-6)
    assert found.eigenvalues.participation_ratio == pytest.approx(18.877749, abs=1e-6)
    assert (found.duplicates, found.near_duplicates.groups) == ((), ())
    assert (found.zero.count, found.nan.count, found.infinite.count) == (0, 0, 0)
    assert (found.rows_without_token.count, found.tokens_without_row.count) == (0, 0)
    kinds = {each.script: each for each in found.scripts}
    assert kinds["latin"].rows == 153053
    assert kinds["cuneiform"].mean_cosine == pytest.approx(0.963827, abs=1e-6)
