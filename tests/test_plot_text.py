import io
import re
import sys

import numpy as np
import pytest
from builders import folder_model
from cli import run
from plot_models import WORDS, figures, hostile_model, model_of

from embtool import Model
from embtool.plot import render
from embtool.plot.measure import cells
from embtool.plot.writing import Target
from embtool.queries.candidates import Candidates
from embtool.queries.figure import analogy_map, norm_figure, words_map
from embtool.queries.ground import Choices
from embtool.queries.similarity import similarity

SQUARE = np.array([[3, 1], [-3, 1], [3, -1], [-3, -1]], np.float32)


@pytest.fixture(scope="module")
def square(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plot") / "m"
    return Model.open(str(folder_model(folder, SQUARE, ["猫", "dog", "ملك", "[x]"])))


def text(figure, width, colour=False):
    content, notes = render(figure, "text", width, colour=colour)
    assert notes == ()
    return content.decode()


def test_a_map_in_cells(square):
    figure = words_map(square, ["猫", "dog", "ملك", "[x]"], Choices(), Candidates())
    title, caption, axes, blank, *rows, end = text(figure, 40).split("\n")
    assert title.startswith("4 words, ") and caption.startswith("rows of model.embed_tokens")
    assert axes == "axes: 90% and 10% of the variance"
    assert len(rows) == 16 and blank == end == ""
    assert [(y, row) for y, row in enumerate(rows) if row] == [
        (5, f"  ● dog{' ' * 27}猫 ●"),
        (10, f"  ● [x]{' ' * 26}ملك ●"),
    ]


def test_lines_are_braille(tmp_path):
    rows = np.array([[0, 1, 0], [1, 0, 0], [0.8, 0.6, 0], [-1, 0.1, 0]], np.float32)
    model = Model.open(str(folder_model(tmp_path / "m", rows, ["a", "b", "c", "d"])))
    drawn = text(analogy_map(model, ["a", "b", "c"], Choices(), Candidates()), 60)
    assert "a - b + c ≈ d" in drawn.split("\n")[0]
    assert all(drawn.count(mark) == 1 for mark in "×★") and drawn.count("●") == 3
    assert "a - b + c" in drawn.split("\n", 5)[5]
    assert len(re.findall("[\u2801-\u28ff]", drawn)) > 30


@pytest.mark.parametrize("width", [40, 60, 80, 133])
def test_no_line_is_wider_than_the_terminal(tmp_path, width):
    models = (model_of(tmp_path / "m", WORDS), hostile_model(tmp_path / "h"))
    for model in models:
        for figure in figures(model).values():
            drawn = render(figure, "text", width, colour=False)[0].decode()
            assert max(map(cells, drawn.split("\n"))) <= width


def test_thirty_words_are_all_there(tmp_path):
    figure = figures(model_of(tmp_path / "m", WORDS))["map"]
    drawn = text(figure, 100)
    assert 28 <= drawn.count("●") <= 30  # two may lie in one cell
    body = " ".join(drawn.split("\n")[4:])
    assert sorted(re.sub("[●\u2800-\u28ff]", " ", body).split()) == sorted(WORDS)


def test_norms_in_columns(tmp_path):
    rows = np.zeros((1112, 2), np.float32)
    rows[:1000, 0], rows[1000:1100, 0], rows[1100:1110, 0], rows[1110, 0] = 1, 2, 3, 4
    words = [f"w{i}" for i in range(1112)]
    model = Model.open(str(folder_model(tmp_path / "m", rows, words)))
    lines = text(norm_figure(model, Choices()), 66).split("\n")
    assert lines[0].startswith("norms of 1,112 rows, ")
    # 30 bins of 2 columns: 0, 1, 2, 3 and 4 stand in the bins 0, 7, 15, 22 and 29
    bars = [line[6:].ljust(60) for line in lines[3:15]]
    heights = [sum(" ▁▂▃▄▅▆▇█".index(row[2 * bin_]) for row in bars) for bin_ in range(30)]
    expected = {7: 1000, 15: 100, 22: 10, 29: 1, 0: 1}
    assert {place: height for place, height in enumerate(heights) if height} == {
        place: round((np.log10(count) + 0.15) / 3.15 * 96) for place, count in expected.items()
    }
    assert [line[:5].strip() for line in lines[3:15]] == [
        *("1,000", "", "", "", "100", "", "", "", "10", "", "", "1")
    ]
    assert lines[15].split() == ["0", "1", "2", "3", "4"]
    assert lines[17:19] == ["the shortest rows", "    0.0000  w1111 (id 1111)"]


def test_cosines_in_a_table_that_folds(capsys, monkeypatch, square):
    monkeypatch.setenv("COLUMNS", "40")
    done = run(capsys, "plot", "猫", "dog", "ملك", "[x]", "--heatmap", "-m", square.ref)
    assert done.out.split("\n")[-6:] == [
        "          1      2      3      4",
        "1 猫   1.00█ -0.80▓  0.80▓ -1.00█",
        "2 dog -0.80▓  1.00█ -1.00█  0.80▓",
        "3 ملك  0.80▓ -1.00█  1.00█ -0.80▓",
        "4 [x] -1.00█  0.80▓ -0.80▓  1.00█",
        "",
    ]
    six = similarity(square, ["猫", "dog", "猫", "dog", "dog", "猫"], Choices())
    table = text(six, 20).split("\n")  # which is drawn for 40 columns
    assert table[-9:] == [
        "",
        "          6",
        "1 猫   1.00█",
        "2 dog -0.80▓",
        "3 猫   1.00█",
        "4 dog -0.80▓",
        "5 dog -0.80▓",
        "6 猫   1.00█",
        "",
    ]
    assert table[-16] == "          1      2      3      4      5"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_colour_on_a_terminal_alone_and_not_with_no_color(monkeypatch, square):
    figure = words_map(square, ["猫", "dog"], Choices(), Candidates())
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("TERM", "xterm")
    plain = text(figure, 50)
    for no_color, stream, coloured in (
        (None, Terminal(), True),
        ("1", Terminal(), False),
        (None, io.StringIO(), False),
    ):
        monkeypatch.setattr(sys, "stdout", stream)
        if no_color is None:
            monkeypatch.delenv("NO_COLOR", raising=False)
        else:
            monkeypatch.setenv("NO_COLOR", no_color)
        assert Target(None, None).write(figure) == ()
        assert ("\x1b[1;34m● dog" in stream.getvalue()) is coloured
        assert re.sub("\x1b\\[[0-9;]*m", "", stream.getvalue()) == plain
    monkeypatch.setattr(sys, "stdout", Terminal())
    with pytest.raises(ValueError, match="a PNG is no text for a terminal"):
        Target("png", None)


def test_colours_of_cosines(square):
    drawn = text(similarity(square, ["猫", "dog"], Choices()), 60, colour=True)
    assert " \x1b[30;48;2;239;127;53m  1.00\x1b[0m" in drawn
    assert "48;2;" in drawn and "-0.80\x1b[0m" in drawn and "▓" not in drawn
