"""The chance beside `similarity`: the distribution of a table's own cosines."""

import json
import math
from itertools import combinations

import numpy as np
import pytest
from cli import run
from explain_builders import ROWS, bits, cosine, explained, model, values
from hub import Hub, in_process
from hub.models import put_single, rows_of


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return model(tmp_path_factory.mktemp("tiny") / "m", values())


def test_chance_is_the_distribution_over_all_pairs_as_far_as_a_sample_shows(capsys, tmp_path):
    table = values(500) + 0.7
    table[7] = 0
    table[8, 3] = np.nan
    tokens = [f"<{i}>" for i in range(450)]
    folder = model(tmp_path / "m", table, tokens)
    found = explained(capsys, "id:0", "-m", folder)["chance"]
    # The 50 rows without a token are left out, and so are zero and non-finite rows.
    kept = np.setdiff1d(np.arange(450), [7, 8])
    unit = bits(table)[kept].astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    every = (unit @ unit.T)[np.triu_indices(len(kept), 1)]
    assert 4_000 < found["pairs"] < 4_096
    assert found["seed"] == 0
    error = every.std() / math.sqrt(found["pairs"])
    assert found["mean"] == pytest.approx(every.mean(), abs=4 * error)
    assert found["deviation"] == pytest.approx(every.std(), abs=4 * error)
    for point, value in found["percentiles"].items():
        assert np.mean(every <= value) == pytest.approx(int(point) / 100, abs=0.025)
    assert list(found["percentiles"]) == ["1", "5", "25", "50", "75", "95", "99"]


def test_similarity_says_what_chance_gives(capsys, tiny, tmp_path):
    done = run(capsys, "similarity", "今天", "天气", "-m", tiny, "-f", "json")
    found = json.loads(done.out)
    assert list(found) == ["model", "table", "words", "matrix", "chance"]
    assert found["chance"] == explained(capsys, "a", "-m", tiny)["chance"]
    table = run(capsys, "similarity", "今天", "天气", "-m", tiny, "-f", "table").out
    mean, deviation = found["chance"]["mean"], found["chance"]["deviation"]
    low, high = found["chance"]["percentiles"]["1"], found["chance"]["percentiles"]["99"]
    assert table.endswith(
        "chance: 4,096 random pairs of this table's tokens (a sample, seed 0) have the mean "
        f"{mean:.4f}\n"
        f"and the deviation {deviation:.4f}; 98 of 100 lie between {low:.4f} and {high:.4f}\n"
        "a cosine is a tool of geometry, how near two rows point, and not what a word means\n\n"
    )
    tsv = run(capsys, "similarity", "今天", "天气", "-m", tiny).out
    assert len(tsv.splitlines()) == 3
    words = tmp_path / "words.txt"
    words.write_text("今天\n天气\n", encoding="utf-8")
    lists = ("--rows", str(words), "--cols", str(words))
    done = run(capsys, "similarity", *lists, "-m", tiny, "-f", "json")
    assert json.loads(done.out)["chance"] == found["chance"]


def test_chance_is_counted_in_the_space_of_the_cosines(capsys, tmp_path):
    table = values() + 3
    folder = model(tmp_path / "m", table)
    args = ("similarity", "a", "b", "-m", folder, "-f", "json")
    plain = json.loads(run(capsys, *args).out)
    centered = json.loads(run(capsys, *args, "--center").out)
    rows = bits(table).astype(np.float64)
    for found, moved in ((plain, rows), (centered, rows - rows.mean(axis=0))):
        every = [cosine(moved[i], moved[j]) for i, j in combinations(range(ROWS), 2)]
        assert found["chance"]["mean"] == pytest.approx(np.mean(every), abs=0.02)
        assert found["chance"]["deviation"] == pytest.approx(np.std(every), abs=0.02)
    assert plain["chance"]["mean"] > 0.8
    assert abs(centered["chance"]["mean"]) < 0.1


def test_similarity_asks_the_hub_for_its_words_rows_alone(capsys, tmp_path, monkeypatch):
    with Hub() as hub:
        in_process(hub, tmp_path / "home", monkeypatch)
        put_single(hub, rows=5_000, width=64, header_nbytes=2_000)
        hub.log.clear()
        done = run(capsys, "similarity", "id:3", "id:4000", "-m", "org/model", "-f", "json")
        assert done.code == 0, done.err
        assert json.loads(done.out)["chance"] is None
        assert hub.sent() < 2 * 64 * 2 + 70_000
        page = run(capsys, "similarity", "id:3", "id:4000", "-m", "org/model", "-f", "table").out
        assert "chance" not in page


def test_explain_fetches_a_table_of_the_hub_once(capsys, tmp_path, monkeypatch):
    with Hub() as hub:
        in_process(hub, tmp_path / "home", monkeypatch)
        content = put_single(hub, rows=5_000, width=64, header_nbytes=2_000)
        hub.log.clear()
        found = explained(capsys, "w3 w999", "-m", "org/model", "--random")
        table = 5_000 * 64 * 2
        assert table <= hub.sent() < table + 100_000
        vectors = np.array([token["vector"] for token in found["tokens"]], np.float32)
        assert np.array_equal(vectors, rows_of(content, 5_000, 64, [3, 999]))
        assert found["one_hot"]["product"]["same_bits"] is True
        hub.log.clear()
        assert explained(capsys, "w3 w999", "-m", "org/model", "--random") == found
        assert hub.sent() < 5_000
