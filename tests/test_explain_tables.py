"""`explain` of other tables: Gemma's own, rows along an arc, broken rows, and no tokenizer."""

import math

import numpy as np
import pytest
from builders import folder_model
from cli import run
from explain_builders import TEXT, cosine, explained, model, q8_0, values

from embtool.model import Model


def test_ids_that_are_more_than_addresses_are_told(capsys, tmp_path):
    """Rows along an arc: the nearer the ids, the nearer the rows."""
    turn = np.linspace(0, 1.5, 300)
    table = np.stack([np.cos(turn), np.sin(turn), np.zeros(300)], axis=1).astype(np.float32)
    folder = str(folder_model(tmp_path / "m", table))
    found = explained(capsys, "id:5", "-m", folder)
    assert found["addresses"]["rank_correlation"] == pytest.approx(-1, abs=1e-4)
    assert found["addresses"]["pairs"] == 4096


def test_sigma_is_the_deviation_of_chance_in_an_untrained_table(capsys, gemma_path):
    found = explained(capsys, "今天西安", "-m", "gemma-3-270m", "--random")
    assert found["random"]["sigma"] == pytest.approx(0.0395285, abs=1e-7)
    assert found["random"]["chance"]["deviation"] == pytest.approx(0.0395285, rel=0.05)
    assert found["random"]["chance"]["mean"] == pytest.approx(0, abs=0.002)


def test_gemma_by_rows_decoded_apart(capsys, gemma_path):
    found = explained(capsys, "今天西安的天气怎么样", "-m", "gemma-3-270m")
    stored = Model.open("gemma-3-270m").table().stored
    ids = [22601, 181629, 101251, 238190, 114172]
    assert [token["id"] for token in found["tokens"]] == ids
    rows = q8_0(stored[ids])
    assert np.array_equal([token["vector"] for token in found["tokens"]], rows)
    assert found["one_hot"]["product"]["same_bits"] is True
    assert found["one_hot"]["zeros"] == pytest.approx(0.999996185, abs=1e-9)
    assert (found["one_hot"]["nbytes"], found["one_hot"]["row_nbytes"]) == (1_048_576, 2_560)
    assert found["matrix"]["share"] == pytest.approx(0.62579, abs=1e-5)
    assert found["read"]["nbytes"] == 5 * 680
    assert found["scale"]["factor"] == pytest.approx(math.sqrt(640), rel=1e-6)
    for pair in found["pairs"]:
        a, b = q8_0(stored[pair["ids"]])
        assert pair["cosine"] == pytest.approx(cosine(a, b), abs=1e-9)

    generator = np.random.default_rng(20)  # another sample than the command's
    first, second = generator.choice(262_144, 6_000, replace=False).reshape(2, 3_000)
    a, b = (q8_0(stored[np.sort(some)])[np.argsort(np.argsort(some))] for some in (first, second))
    unit = [each / np.linalg.norm(each, axis=1)[:, None] for each in (a, b)]
    cosines = (unit[0] * unit[1]).sum(axis=1)
    assert found["chance"]["mean"] == pytest.approx(cosines.mean(), abs=0.008)
    assert found["chance"]["deviation"] == pytest.approx(cosines.std(), abs=0.008)
    assert found["chance"]["percentiles"]["50"] == pytest.approx(np.median(cosines), abs=0.008)
    assert abs(found["addresses"]["rank_correlation"]) < 0.1


def test_a_table_with_broken_rows_says_why_not(capsys, tmp_path):
    table = values()
    table[3, 5] = np.inf
    table[9, 0] = np.nan
    folder = model(tmp_path / "m", table)
    product = explained(capsys, TEXT, "-m", folder)["one_hot"]["product"]
    assert (product["equal"], product["same_bits"]) == (False, False)
    assert product["nonfinite"] == {"count": 2, "ids": [3, 9]}
    page = run(capsys, "explain", TEXT, "-m", folder, "-q").out
    assert (
        "it is not the 4 rows of E that a lookup reads: 0 times an infinity or NaN is NaN, "
        "and E holds some (row 3, 9)\n"
    ) in page
    about = explained(capsys, "id:9", "-m", folder)
    assert about["addresses"]["rows"][0]["before"]["cosine"] is None
    assert about["tokens"][0]["vector"][0] is None


def test_negative_zeros_are_equal_but_not_the_same_bits(capsys, tmp_path):
    table = values()
    table[4, 5] = -0.0
    folder = model(tmp_path / "m", table)
    product = explained(capsys, TEXT, "-m", folder)["one_hot"]["product"]
    assert (product["equal"], product["same_bits"]) == (True, False)
    page = run(capsys, "explain", TEXT, "-m", folder, "-q").out
    assert "but for the signs of zeros: -0 + 0 is 0\n" in page


def test_without_a_tokenizer_a_row_can_still_be_explained(capsys, tmp_path):
    folder = str(folder_model(tmp_path / "m", values()))
    found = explained(capsys, "id:29", "-m", folder)
    assert found["tokens"][0]["token"] is None
    assert found["addresses"]["rows"][0]["after"] is None
    done = run(capsys, "explain", "a", "-m", folder)
    assert done.code == 1
    assert "there is no tokenizer with it" in done.err
