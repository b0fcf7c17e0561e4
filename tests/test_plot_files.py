import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from cli import run
from plot_models import WORDS, figures, hostile_model, model_of, spots

from embtool.plot import choose_format, render, scene
from embtool.plot.scene import Rect, Spot, Text
from embtool.queries.candidates import Candidates
from embtool.queries.figure import norm_figure, words_map
from embtool.queries.ground import Choices
from embtool.queries.similarity import similarity


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return model_of(tmp_path_factory.mktemp("plot") / "m", WORDS)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    return hostile_model(tmp_path_factory.mktemp("plot") / "h")


SVG = "{http://www.w3.org/2000/svg}"


def test_svg_keeps_text_as_text(model, hostile):
    for figure in (*figures(model).values(), *figures(hostile).values()):
        content, _ = render(figure, "svg", 80, colour=False)
        root = ElementTree.fromstring(content)
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
            *("svg", "title", "style", "rect", "clipPath", "g", "line", "circle", "text")
        }
        texts = [element.text for element in root.iter(f"{SVG}text")]
        marks = [*scene(figure).fixed, *scene(figure).marks]
        shown = [m.text if isinstance(m, Text) else m.label for m in marks if hasattr(m, "x")]
        assert texts == [text.replace("\ufffe", "\\u{FFFE}") for text in shown]
        attributes = {name for element in root.iter() for name in element.attrib}
        assert not any(name.startswith("on") or "href" in name for name in attributes)


class Page(HTMLParser):
    """What a page holds: its tags with their attributes, and its text outside of scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)


def test_html_is_one_page_without_requests_whatever_a_token_says(model, hostile):
    for figure in (*figures(model).values(), *figures(hostile).values()):
        text = render(figure, "html", 80, colour=False)[0].decode()
        assert not re.search(r"https?:|//[a-z]|@import|url\((?!#frame)", text)
        page = Page(text)
        assert page.open == []
        names = [tag for tag, _ in page.tags]
        assert names.count("script") == 1
        assert not {"img", "link", "b", "iframe", "object"} & set(names)
        for tag, attributes in page.tags:
            assert not any(name.startswith("on") for name in attributes), tag
            assert not {"src", "href", "srcset", "xlink:href"} & set(attributes), tag
        policy = next(a["content"] for _, a in page.tags if "http-equiv" in a)
        assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha")
        whole = "".join(page.texts)
        for mark in scene(figure).marks:
            if isinstance(mark, Spot):
                assert mark.label.replace("\ufffe", "\\u{FFFE}") in whole
                assert mark.tip.replace("\ufffe", "\\u{FFFE}") in whole


def test_hover_tells_token_id_and_norm(model, hostile):
    figure = words_map(model, ["king", "queen"], Choices(), Candidates())
    norm = np.linalg.norm(model.table().rows([1])[0].astype(np.float64))
    assert spots(figure)[1].tip == f"token queen\nid 1\nnorm {norm:.4f}"
    tips = [spot.tip.split("\n")[0] for spot in spots(figures(hostile)["map"])]
    assert tips[7] == "token a\\nb\\t\\\\"
    assert tips[8] == "token \\u{202E}evil"


def test_a_heatmap_shows_each_cosine(model):
    record = similarity(model, WORDS[:5], Choices())
    marks = scene(record).marks
    cells = [mark for mark in marks if isinstance(mark, Rect)]
    cosines = [cosine for row in record.matrix for cosine in row]
    assert [cell.opacity for cell in cells] == [abs(cosine) for cosine in cosines]
    assert [cell.kind for cell in cells] == ["cold" if c < 0 else "warm" for c in cosines]
    numbers = [m.text for m in marks if isinstance(m, Text) and m.kind == "number"]
    assert numbers == [f"{cosine:.2f}" for cosine in cosines]
    assert cells[1].tip == f"king, queen\ncosine {cosines[1]:.4f}"


def test_bars_are_as_high_as_the_logarithms_of_the_counts(model):
    record = norm_figure(model, Choices())
    bars = [mark for mark in scene(record).marks if isinstance(mark, Rect)]
    heights = {count: bar.box.height for count, bar in zip(record.histogram.counts, bars)}
    assert len(bars) == 30 and heights[0] == 0
    one = heights[1]
    for count, height in heights.items():
        if count > 1:
            assert height / one == pytest.approx((np.log10(count) + 0.15) / 0.15)


def test_formats_follow_the_ending_and_contradictions_are_refused(tmp_path):
    assert choose_format(None, None) == "text"
    assert choose_format("svg", None) == "svg"
    assert choose_format(None, Path("a.HTML")) == "html"
    assert choose_format("png", Path("picture")) == "png"
    with pytest.raises(ValueError, match=r"x\.svg ends as svg, but -f says png"):
        choose_format("png", Path("x.svg"))
    with pytest.raises(ValueError, match=r"x\.pdf: give a file that ends in \.txt, \.png"):
        choose_format(None, Path("x.pdf"))


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ((), "give words, or --norms without any"),
        (("king", "--norms"), "give words, or --norms without any"),
        (("a", "b", "--heatmap", "--analogy"), "--analogy and --heatmap are two pictures"),
        (("a", "b", "--heatmap", "--neighbors", "3"), "--neighbors belongs to a map of words"),
        (("a", "b", "--analogy"), "an analogy has three words, not 2"),
        (("a", "b", "-o", "x.pdf"), "x.pdf: give a file that ends in"),
    ],
)
def test_wrong_usage(capsys, model, args, reason):
    done = run(capsys, "plot", *args, "-m", model.ref)
    assert (done.code, done.out) == (2, "")
    assert reason in " ".join(done.err.replace("│", " ").split())


def test_a_file_that_cannot_be_written(capsys, model, tmp_path):
    path = tmp_path / "none" / "x.svg"
    done = run(capsys, "plot", "king", "queen", "-m", model.ref, "-o", str(path))
    assert done.code == 1
    assert done.err.startswith(f"error: {path} cannot be written: No such file or directory\n")
