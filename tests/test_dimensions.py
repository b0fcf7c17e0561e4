"""`dimensions`: components and ends of real tables, against numpy over all their rows."""

import json

import numpy as np
import pytest
from cli import run
from explain_builders import ROWS, TOKENS, WIDTH, model, values
from safetensors.numpy import load_file


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return model(tmp_path_factory.mktemp("tiny") / "m", values())


def asked(capsys, *args):
    done = run(capsys, "dimensions", *args, "-f", "json", "-q")
    assert done.code == 0, done.err
    return json.loads(done.out, parse_constant=pytest.fail)


def best(values, k):
    ids = np.arange(len(values))
    return ids[np.lexsort((ids, -values))][:k].tolist()


def test_the_largest_components_of_a_real_row(capsys, wordllama_path):
    table = load_file(wordllama_path)["embedding.weight"].astype(np.float64)
    assert table.shape == (32_000, 256)
    found = asked(capsys, "id:4567", "-m", str(wordllama_path), "-k", "20")
    row = table[4567]
    assert found["norm"] == pytest.approx(np.linalg.norm(row), rel=1e-12)
    dimensions = [each["dimension"] for each in found["dimensions"]]
    assert dimensions == best(np.abs(row), 20)
    assert [each["rank"] for each in found["dimensions"]] == list(range(1, 21))
    alive = table[table.any(axis=1)]
    for each in found["dimensions"]:
        column = table[:, each["dimension"]]
        spread = alive[:, each["dimension"]]
        assert each["value"] == row[each["dimension"]]
        assert each["share"] == pytest.approx(each["value"] ** 2 / (row @ row), rel=1e-12)
        above = (each["value"] - spread.mean()) / spread.std()
        assert each["deviations"] == pytest.approx(above, rel=1e-9)
        assert [end["id"] for end in each["highest"]] == best(column, 3)
        assert [end["id"] for end in each["lowest"]] == best(-column, 3)
        assert [end["value"] for end in each["highest"]] == column[best(column, 3)].tolist()


def test_the_ends_of_one_dimension_of_a_real_table(capsys, wordllama_path):
    table = load_file(wordllama_path)["embedding.weight"].astype(np.float64)
    alive = table[table.any(axis=1)]
    found = asked(capsys, "--index", "77", "-m", str(wordllama_path), "-k", "50")
    assert (found["dimension"], found["rows"]) == (77, len(alive))
    assert found["mean"] == pytest.approx(alive[:, 77].mean(), rel=1e-9)
    assert found["deviation"] == pytest.approx(alive[:, 77].std(), rel=1e-9)
    assert [end["id"] for end in found["highest"]] == best(table[:, 77], 50)
    assert [end["id"] for end in found["lowest"]] == best(-table[:, 77], 50)


def test_zero_rows_broken_rows_and_rows_without_a_token_stand_at_no_end(capsys, tmp_path):
    table = values(ROWS + 1)
    table[:, 2] = 1
    table[5] = 0
    table[6, 2] = np.inf
    table[ROWS, 2] = 9
    folder = model(tmp_path / "m", table)
    found = asked(capsys, "--index", "2", "-m", folder, "-k", "100")
    kept = [row for row in range(ROWS) if row not in (5, 6)]
    assert [end["id"] for end in found["highest"]] == kept
    assert [end["id"] for end in found["lowest"]] == kept
    assert (found["rows"], found["mean"], found["deviation"]) == (ROWS - 2, 1, 0)
    first = asked(capsys, "a", "-m", folder, "-k", "100")["dimensions"]
    assert len(first) == WIDTH
    assert [each["deviations"] for each in first if each["dimension"] == 2] == [None]


def test_lists_for_pipes_and_pages_for_people(capsys, tiny):
    table = values()
    done = run(capsys, "dimensions", "天气", "-k", "2", "-m", tiny)
    lines = [line.split("\t") for line in done.out.splitlines()]
    assert lines[0] == [
        *("rank", "dimension", "value", "share", "deviations", "highest", "lowest"),
    ]
    order = best(np.abs(table[28]), 2)
    for line, dimension in zip(lines[1:], order):
        assert line[1:3] == [str(dimension), str(float(table[28, dimension]))]
        column = table[:, dimension]
        assert line[5] == " | ".join(TOKENS[i] for i in best(column, 3))
        assert line[6] == " | ".join(TOKENS[i] for i in best(-column, 3))
    people = run(capsys, "dimensions", "天气", "-k", "2", "-m", tiny, "-f", "table").out
    share = sum(table[28, order].astype(np.float64) ** 2) / np.sum(table[28].astype(float) ** 2)
    assert people.endswith(
        f"together they are {share:.1%} of the row's squared length; deviations are those of all "
        "rows in the dimension\n"
        "what stands at the ends of a dimension seldom shares a property that one could name\n\n"
    )
    lines = run(capsys, "dimensions", "天气", "-k", "2", "-m", tiny, "-f", "jsonl").out.splitlines()
    assert [json.loads(line)["dimension"] for line in lines] == order

    done = run(capsys, "dimensions", "--index", "3", "-k", "1", "-m", tiny)
    (high,), (low,) = best(table[:, 3], 1), best(-table[:, 3], 1)
    assert done.out == (
        "end\trank\tid\ttoken\traw\tvalue\n"
        + "".join(
            f"{end}\t1\t{row}\t{TOKENS[row]}\t{TOKENS[row]}\t{float(table[row, 3])}\n"
            for end, row in (("highest", high), ("lowest", low))
        )
    )


def test_a_pool_of_rows_has_dimensions_too(capsys, tiny):
    found = asked(capsys, "abc", "--pool", "mean", "-m", tiny, "-k", "1")
    mean = values()[:3].astype(np.float64).mean(axis=0)
    (largest,) = best(np.abs(mean), 1)
    (each,) = found["dimensions"]
    assert (each["dimension"], each["value"]) == (largest, mean[largest])
    assert found["word"]["pool"] == "mean"


def test_what_is_no_question(capsys, tiny):
    assert run(capsys, "dimensions", "-m", tiny).code == 2
    assert run(capsys, "dimensions", "a", "--index", "0", "-m", tiny).code == 2
    done = run(capsys, "dimensions", "--index", "16", "-m", tiny)
    assert (done.code, done.err) == (
        1,
        "error: dimension 16 is out of range: model.embed_tokens.weight has 16, 0 to 15\n"
        "  try: give one that there is\n",
    )
