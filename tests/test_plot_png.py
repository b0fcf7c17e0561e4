import subprocess
import sys
from io import BytesIO

import numpy as np
import pytest
from cli import run
from plot_models import CHINESE, WORDS, figures, model_of, spots

from embtool.errors import UnsupportedError
from embtool.plot import render, scene
from embtool.plot.labels import Box
from embtool.plot.scene import Spot
from embtool.queries.candidates import Candidates
from embtool.queries.figure import norm_figure, words_map
from embtool.queries.ground import Choices


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return model_of(tmp_path_factory.mktemp("plot") / "m", WORDS)


@pytest.fixture(scope="module")
def chinese(tmp_path_factory):
    return model_of(tmp_path_factory.mktemp("plot") / "c", CHINESE)


@pytest.fixture
def cjk_font():
    from embtool.plot.fonts import choose

    if choose(["国王猫さくら한국"])[1]:
        pytest.skip("no font here has Chinese: install fonts-noto-cjk")


@pytest.fixture
def no_fonts(monkeypatch):
    """A machine whose only fonts are matplotlib's own."""
    from embtool.plot import fonts

    monkeypatch.setattr(fonts, "_fonts", lambda: ())


def drawn(figure):
    from embtool.plot.png import draw

    return draw(lambda missing: scene(figure, missing))


def test_thirty_labels_do_not_overlap_where_matplotlib_draws_them(model):
    figure = words_map(model, WORDS, Choices(), Candidates())
    placed = spots(figure)
    assert len(placed) == 30 and all(spot.box is not None for spot in placed)
    picture, notes = drawn(figure)
    assert notes == ()
    height = picture.bbox.height
    boxes = []
    for text in picture.axes[0].texts:
        extent = text.get_window_extent(picture.canvas.get_renderer())
        boxes.append(Box(extent.x0, height - extent.y1, extent.width, extent.height))
    labels = [text.get_text() for text in picture.axes[0].texts]
    assert sorted(labels[3:]) == sorted(WORDS)
    assert not any(a.meets(b) for i, a in enumerate(boxes) for b in boxes[:i])
    # what was measured before any font was known holds what is drawn
    for spot in placed:
        box = boxes[labels.index(spot.label)]
        assert spot.box.left <= box.left and box.right <= spot.box.right
        assert spot.box.top <= box.top and box.bottom <= spot.box.bottom


def test_png_is_a_picture_with_ink_where_the_labels_are(model):
    from matplotlib.image import imread

    for name, figure in figures(model).items():
        content, notes = render(figure, "png", 80, colour=False)
        assert notes == (), name
        pixels = imread(BytesIO(content))[:, :, :3]
        picture = scene(figure)
        assert pixels.shape[:2] == (int(picture.height * 2), int(picture.width * 2))
        if name == "map":
            assert content == render(figure, "png", 80, colour=False)[0]
        for spot in picture.marks:
            if isinstance(spot, Spot):
                box = spot.box
                rows = slice(int(box.top * 2), int(box.bottom * 2))
                there = pixels[rows, int(box.left * 2) : int(box.right * 2)]
                assert there.min() < 0.3 and there.max() == 1.0, spot.label


@pytest.mark.usefixtures("cjk_font")
def test_chinese_japanese_and_korean_are_drawn_and_are_no_boxes(chinese):
    figure = words_map(chinese, CHINESE, Choices(), Candidates())
    picture, _ = drawn(figure)
    canvas = np.asarray(picture.canvas.buffer_rgba()) if picture.canvas.draw() is None else None
    height = picture.bbox.height
    drawings = {}
    for text in picture.axes[0].texts[1:]:
        extent = text.get_window_extent(picture.canvas.get_renderer())
        rows = slice(int(height - extent.y1), int(height - extent.y0))
        drawings[text.get_text()] = canvas[rows, int(extent.x0) : int(extent.x1), :3]
    # an empty box has the same few dark pixels for every character
    dark = {text: int((pixels < 128).sum()) for text, pixels in drawings.items()}
    assert dark["数据库"] > dark["猫"] > 30
    assert len({dark[word] for word in ("国王", "女王", "男人", "女人")}) > 1


@pytest.mark.usefixtures("no_fonts")
def test_a_typed_word_without_a_font_says_which_to_install(chinese):
    figure = words_map(chinese, ["国王", "女王"], Choices(), Candidates())
    with pytest.raises(UnsupportedError) as caught:
        render(figure, "png", 80, colour=False)
    assert caught.value.message == "no font on this machine has 国 女 王"
    assert "apt install fonts-noto-cjk)" in caught.value.advice
    assert b"\xe5\x9b\xbd" in render(figure, "svg", 80, colour=False)[0]


@pytest.mark.usefixtures("no_fonts")
def test_a_token_without_a_font_is_shown_by_its_id(tmp_path):
    model = model_of(tmp_path / "m", ["king", "ভাষণ", "猫"])
    figure = words_map(model, ["king"], Choices(), Candidates(), neighbors=2)
    picture, notes = drawn(figure)
    labels = [text.get_text() for text in picture.axes[0].texts]
    assert {"king", "id:1", "id:2"} < set(labels)
    assert len(notes) == 1
    assert notes[0].startswith("tokens with 5 characters that no font here has are shown as ids")
    assert "fonts-noto-cjk fonts-noto-core" in notes[0]
    picture, _ = drawn(norm_figure(model, Choices()))
    labels = [text.get_text() for text in picture.axes[0].texts]
    assert {"king (id 0)", "id 1", "id 2"} < set(labels)


def test_png_without_matplotlib_says_what_to_install(capsys, monkeypatch, tmp_path, model):
    for name in ("embtool.plot.png", "embtool.plot.fonts"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = run(capsys, "plot", "king", "queen", "-m", model.ref, "-o", str(tmp_path / "x.png"))
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: a PNG needs matplotlib, which is not installed\n"
        "  try: pip install 'embtool[plot]', or write .svg or .html, which need nothing more\n"
    )
    assert not (tmp_path / "x.png").exists()


def test_only_a_png_loads_matplotlib(tmp_path, model):
    code = (
        "import sys; from embtool.cli.app import app\n"
        "for ending in ('svg', 'html', 'txt', 'png'):\n"
        "    try: app([*sys.argv[1:-1], f'{sys.argv[-1]}.{ending}'])\n"
        "    except SystemExit: print(ending, 'matplotlib' in sys.modules)"
    )
    args = ["plot", "king", "queen", "-m", model.ref, "-o", str(tmp_path / "x")]
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True)
    assert done.stdout == "svg False\nhtml False\ntxt False\npng True\n"
