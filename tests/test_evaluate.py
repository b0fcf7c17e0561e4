"""Accuracy on question files: real tables against figures computed apart, and hostile files."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from builders import folder_model
from cli import run
from conftest import package_file

GLOVE = Path(__file__).parent.parent / "scripts" / "glove"


@pytest.fixture(scope="session")
def questions_words():
    """word2vec's questions: 19,544 in 14 sections; gensim ships them for its own tests."""
    assert importlib.util.find_spec("gensim"), "pip install -e '.[test]'"
    return package_file("gensim", "test/test_data/questions-words.txt")


@pytest.fixture(scope="session")
def glove(tmp_path_factory):
    folder = tmp_path_factory.mktemp("glove")
    subprocess.run([sys.executable, GLOVE, folder], check=True, stdout=subprocess.DEVNULL)
    return folder


def total(capsys, *args):
    done = run(capsys, "evaluate", *map(str, args), "-f", "json", "-q")
    assert (done.code, done.err) == (0, "")
    record = json.loads(done.out)
    counts = record["total"]
    correct = [score["correct"] for score in counts["methods"].values()]
    for score in counts["methods"].values():
        assert score["accuracy"] == score["correct"] / counts["covered"]
    assert sum(section["covered"] for section in record["sections"]) == counts["covered"]
    assert len(record["skipped"]) == counts["questions"] - counts["covered"]
    return counts["questions"], counts["covered"], correct


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "covered", "correct"),
    [
        (["--form", "spaced"], 14648, [11259, 11610]),
        (["--form", "spaced", "--center"], 14648, [11479, 11842]),
        (["--form", "bare"], 2960, [1569, 1750]),
    ],
    ids=["spaced", "spaced-center", "bare"],
)
def test_questions_words_on_gemma(capsys, gemma_path, questions_words, options, covered, correct):
    found = total(capsys, questions_words, "-m", "gemma-3-270m", *options)
    assert found[:2] == (19544, covered)
    assert found[2] == pytest.approx(correct, abs=5)


@pytest.mark.slow
def test_questions_words_on_glove(capsys, glove, questions_words):
    found = total(capsys, questions_words, "-m", glove, "--lower", "--first", 30000)
    assert found == (19544, 14877, [7393, 6434])
    found = total(capsys, questions_words, "-m", glove, "--lower", "--method", "3cosadd")
    assert found == (19544, 19544, [9033])


WORDS = ["man", "woman", "king", "queen", "boy", "girl"]
# Directions for woman, man, royal, young; a word has one of each pair, so that all are as long.
ROWS = [[1, 0, 0, 0, 1], [0, 1, 0, 0, 1], [1, 0, 1, 0, 0], [0, 1, 1, 0, 0]]
ROWS += [[1, 0, 0, 1, 0], [0, 1, 0, 1, 0]]
FILE = (
    "\ufeffking queen man woman\r\n"
    ": royal \r\n"
    "man\u3000woman\u3000king\u3000queen\r\n"
    "man woman king\r\n"
    "\r\n"
    ": empty\r\n"
    ": young\r\n"
    "man woman boy girl\r\n"
    "man woman prince princess\r\n"
    "MAN WOMAN BOY KING\r\n"
)


@pytest.fixture
def royal(tmp_path):
    folder = folder_model(tmp_path / "m", np.array(ROWS, np.float32), WORDS)
    (tmp_path / "q.txt").write_bytes(FILE.encode())
    return ["evaluate", str(tmp_path / "q.txt"), "-m", str(folder)]


def test_nothing_in_a_file_is_dropped_in_silence(capsys, royal):
    record = json.loads(run(capsys, *royal, "-f", "json", "-q").out)
    assert record["total"] == {
        "questions": 5,
        "covered": 3,
        "methods": {
            "3cosadd": {"correct": 3, "accuracy": 1.0},
            "3cosmul": {"correct": 3, "accuracy": 1.0},
        },
    }
    names = [(s["name"], s["questions"], s["covered"]) for s in record["sections"]]
    assert names == [("", 1, 1), ("royal", 1, 1), ("empty", 0, 0), ("young", 3, 1)]
    assert record["sections"][2]["methods"]["3cosadd"] == {"correct": 0, "accuracy": None}
    assert record["skipped"] == [
        {"line": 4, "text": "man woman king", "reason": "3 words, not 4"},
        {
            "line": 9,
            "text": "man woman prince princess",
            "reason": "not one token (spaced): prince, princess",
        },
        {
            "line": 10,
            "text": "MAN WOMAN BOY KING",
            "reason": "not one token (spaced): MAN, WOMAN, BOY, KING",
        },
    ]
    assert (record["form"], record["oov"]) == ("auto", "skip")


def test_lower_and_wrong(capsys, royal):
    args = [*royal, "--lower", "--oov", "wrong", "--method", "pairdirection", "-f", "json", "-q"]
    record = json.loads(run(capsys, *args).out)
    assert (record["oov"], record["total"]["covered"]) == ("wrong", 4)
    assert record["total"]["methods"] == {"pairdirection": {"correct": 3, "accuracy": 3 / 5}}


def test_a_person_reads_what_was_left_out(capsys, royal):
    done = run(capsys, *royal, "-f", "table", "-q")
    assert "2 questions without four rows are left out (--oov skip)\n" in done.out
    assert "line 4: 3 words, not 4\n" in done.out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b": only\n: sections\n", "there is no question in it"),
        (b"\xff\xfe", "is not valid UTF-8"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_is_none(capsys, royal, tmp_path, content, said):
    path = tmp_path / "other.txt"
    if content is not None:
        path.write_bytes(content)
    done = run(capsys, "evaluate", str(path), *royal[2:], "-q")
    assert (done.code, done.out) == (1, "")
    assert said in done.err.splitlines()[0]


def test_progress_goes_to_standard_error(capsys, royal):
    done = run(capsys, *royal)
    assert "100% of 6 rows\n" in done.err or "0% of 6 rows" in done.err
    assert done.out.startswith("section\tquestions\tcovered\t3cosadd_correct\t3cosadd_accuracy\t")


def test_an_unknown_method_is_wrong_usage(capsys, royal):
    assert run(capsys, *royal, "--method", "3cosdiv").code == 2
