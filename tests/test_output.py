"""Every format, to the letter, for tokens that would break a line, a column or a terminal."""

import csv
import io
import json
from importlib import import_module

import numpy as np
import pytest
from builders import byte_tokenizer, folder_model
from cli import run

from embtool.output import views
from embtool.vocab import unescape

TOKENS = [
    b"[unused7]",
    b"[/INST]",
    b"\t",
    b"\n",
    b"\x1b",
    b'"',
    b",",
    b"\x80",
    b"\\n",
    "狗".encode(),
    "\u202e".encode(),
]
SHOWN = [
    "[unused7]",
    "[/INST]",
    "\\t",
    "\\n",
    "\\x1B",
    '"',
    ",",
    "\\x80",
    "\\\\n",
    "狗",
    "\\u{202E}",
]
RAW = ["[unused7]", "[/INST]", "ĉ", "Ċ", "ě", '"', ",", "Ģ", "\\\\n", "çĭĹ", "âĢ®"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    values = np.eye(len(TOKENS), 12, dtype=np.float32)
    values[:, 11] = np.arange(1, len(TOKENS) + 1)
    folder_model(folder, values)
    (folder / "tokenizer.json").write_text(byte_tokenizer(TOKENS), encoding="utf-8")
    return str(folder)


def test_tsv(capsys, hostile):
    done = run(capsys, "find", "", "-m", hostile)
    lines = [f"{i}\t{token}\t{raw}\n" for i, (token, raw) in enumerate(zip(SHOWN, RAW))]
    assert done.out == "id\ttoken\traw\n" + "".join(lines)
    assert (done.code, done.err) == (0, "")
    assert run(capsys, "find", "", "-m", hostile, "--no-header").out == "".join(lines)
    assert [unescape(line.split("\t")[1]) for line in lines] == TOKENS


def test_csv(capsys, hostile):
    done = run(capsys, "find", "", "-m", hostile, "-f", "csv")
    rows = list(csv.reader(io.StringIO(done.out)))
    assert rows == [["id", "token", "raw"], *map(list, zip(map(str, range(11)), SHOWN, RAW))]
    assert '5,"""",""""\n6,",",","\n' in done.out


def test_json(capsys, hostile):
    done = run(capsys, "find", "", "-m", hostile, "-f", "json")
    assert done.out.count("\n") == 1
    assert json.loads(done.out) == {
        "model": hostile,
        "pattern": "",
        "tokens": [{"id": i, "token": t, "raw": r} for i, (t, r) in enumerate(zip(SHOWN, RAW))],
    }
    assert "狗" in done.out


def test_json_lines(capsys, hostile):
    done = run(capsys, "find", "", "-m", hostile, "-f", "jsonl")
    assert done.out.startswith('{"id": 0, "token": "[unused7]", "raw": "[unused7]"}\n')
    assert [json.loads(line)["token"] for line in done.out.splitlines()] == SHOWN


def test_table_for_people(capsys, hostile):
    done = run(capsys, "find", "", "-m", hostile, "-f", "table")
    assert done.out == "".join(
        f"{line}\n"
        for line in [
            f"11 tokens match , {hostile}",
            "",
            " id   token       raw",
            " " + "─" * 26,
            "  0   [unused7]   [unused7]",
            "  1   [/INST]     [/INST]",
            "  2   \\t          ĉ",
            "  3   \\n          Ċ",
            "  4   \\x1B        ě",
            '  5   "           "',
            "  6   ,           ,",
            "  7   \\x80        Ģ",
            "  8   \\\\n         \\\\n",
            "  9   狗          çĭĹ",
            " 10   \\u{202E}    âĢ®",
            "",
        ]
    )


def test_every_token_can_be_asked_for_by_its_raw_form(capsys, hostile):
    for token_id, raw in enumerate(RAW):
        done = run(capsys, "neighbors", f"raw:{raw}", "-k", "1", "-m", hostile, "-f", "json")
        query = json.loads(done.out)["query"]
        assert (query["form"], query["ids"], query["tokens"]) == (
            "raw",
            [token_id],
            [SHOWN[token_id]],
        )


def test_npy_holds_the_whole_matrix_and_the_ending_sets_the_format(capsys, hostile, tmp_path):
    path = tmp_path / "x.npy"
    done = run(capsys, "lookup", ",\t", "-m", hostile, "-o", str(path), "--dims", "2")
    assert (done.code, done.out, done.err) == (0, "", "")
    matrix = np.load(path)
    assert matrix.dtype == np.float32
    assert matrix.shape == (2, 12)
    assert matrix[0].tolist() == [0.0] * 6 + [1.0, 0.0, 0.0, 0.0, 0.0, 7.0]
    run(capsys, "lookup", ",\t", "-m", hostile, "-o", str(tmp_path / "x.tsv"), "--dims", "1")
    text = (tmp_path / "x.tsv").read_text(encoding="utf-8")
    assert text == (
        "position\tid\ttoken\traw\tnorm\td0\n"
        f"0\t6\t,\t,\t{50**0.5}\t0.0\n"
        "1\t2\t\\t\tĉ\t3.1622776601683795\t0.0\n"
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["-o", "x.npy", "-f", "json"], "x.npy ends as npy, but -f says json"),
        (["-o", "x.unknown"], "x.unknown: its ending names no format"),
    ],
)
def test_contradicting_formats_are_wrong_usage(capsys, hostile, args, said):
    done = run(capsys, "lookup", "狗", "-m", hostile, *args)
    assert (done.code, done.out) == (2, "")
    assert said in " ".join(done.err.replace("│", " ").split())


def test_an_answer_that_is_no_matrix_is_no_npy(capsys, hostile, tmp_path):
    done = run(capsys, "neighbors", "狗", "-m", hostile, "-o", str(tmp_path / "x.npy"))
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: npy holds a matrix, and this answer is none\n  try: choose another format with -f\n"
    )


def test_a_number_that_is_none_is_null_and_never_nan(capsys, tmp_path):
    table = np.array([[1, 2], [np.nan, np.inf]], np.float32)
    folder = folder_model(tmp_path / "m", table, ["a", "b"])
    done = run(capsys, "lookup", "b", "-m", str(folder), "-f", "json")
    (token,) = json.loads(done.out, parse_constant=pytest.fail)["tokens"]
    assert token["vector"] == [None, None]
    assert token["norm"] is None


def test_every_view_that_is_named_is_there():
    for place in (*views._VIEWS.values(), *views._PEOPLE.values(), "counts.brief"):
        file, name = place.split(".")
        assert callable(getattr(import_module(f"embtool.output.{file}"), name)), place
