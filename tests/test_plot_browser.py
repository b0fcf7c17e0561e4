import os
import shutil
import subprocess
from html.parser import HTMLParser
from io import BytesIO

import numpy as np
import pytest
from plot_models import CHINESE, WORDS, figures, model_of

from embtool.plot import render, scene
from embtool.plot.scene import DARK, LIGHT

pytestmark = pytest.mark.slow

FLAGS = (
    *("--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--window-size=1000,760", "--virtual-time-budget=3000"),
)
ATTACKS = [
    "</script><script>document.title='broken'</script>",
    "<img src=q onerror=\"document.title='broken'\">",
    '"><svg onload="document.title=\'broken\'">',
    "</text></svg><h1>broken</h1>",
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Chromium on a page: what it makes of it, or the pixels that it shows."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("there is no Chromium here: install chromium")
    flags = [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags.append("--no-sandbox")

    def run(page, *more):
        done = subprocess.run(
            [program, *flags, *more, page.as_uri()], capture_output=True, timeout=180
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    return run


class Dom(HTMLParser):
    """Elements as (tag, attributes, text), in their order."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.inside = [], False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append([tag, dict(attrs), ""])
        self.inside = True

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.elements[-1][2] += data

    def all(self, tag):
        return [(attributes, text) for name, attributes, text in self.elements if name == tag]


def page_of(folder, figure, events=""):
    """The page of a figure; with events, a copy that lets them happen and writes what it sees."""
    text = render(figure, "html", 80, colour=False)[0].decode()
    if events:
        start = text.index("<meta http-equiv")
        text = text[:start] + text[text.index("\n", start) :]
        text = text.replace("</body>", f"<script>{events}{WRITE}</script></body>")
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    return path


def labels(dom):
    """The labels of points, and whether each is shown."""
    marks = [spot.label for spot in dom["scene"].marks if hasattr(spot, "label")]
    texts = dom["dom"].all("text")[-len(marks) :]
    return [(text, "crowded" not in attributes.get("class", "")) for attributes, text in texts]


def pixels(browser, page, folder, *more):
    from matplotlib.image import imread

    path = folder / "shot.png"
    browser(page, f"--screenshot={path}", *more)
    return np.rint(imread(BytesIO(path.read_bytes()))[:, :, :3] * 255).astype(int)


def test_a_browser_shows_thirty_words_and_none_covers_another(browser, tmp_path):
    figure = figures(model_of(tmp_path / "m", WORDS))["map"]
    dom = Dom(browser(page_of(tmp_path, figure), "--dump-dom"))
    # the page's script has measured each label as it is drawn, and would hide what covers one
    assert labels({"dom": dom, "scene": scene(figure)}) == [(word, True) for word in WORDS]
    tips = [attributes["data-tip"] for attributes, _ in dom.all("g") if "data-tip" in attributes]
    assert tips == [
        f"token {point.text}\nid {point.ids[0]}\nnorm {point.norm:.4f}".replace(
            f"id:{point.ids[0]}\n", f"{point.tokens[0]}\n", 1
        )
        for point in figure.points
    ]


def test_labels_do_not_overlap_as_the_browser_draws_them(browser, tmp_path):
    for words in (WORDS, CHINESE):
        figure = figures(model_of(tmp_path / "m", words))["map"]
        for zoom in ("", 'dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));'):
            dom = Dom(browser(page_of(tmp_path, figure, zoom + PAIRS), "--dump-dom"))
            said = {attributes["id"]: text for attributes, text in dom.all("pre")}
            assert said == {"shown": str(len(words)), "pairs": "0"}


def test_no_token_becomes_a_part_of_the_page(browser, tmp_path):
    model = model_of(tmp_path / "m", ATTACKS)
    for name, figure in figures(model, 4).items():
        dom = Dom(browser(page_of(tmp_path, figure), "--dump-dom"))
        assert dom.all("title")[0][1] == scene(figure).title, name
        tags = {tag for tag, _, _ in dom.elements}
        assert not {"img", "h1"} & tags and len(dom.all("svg")) == 1
        assert len(dom.all("script")) == 1


EVENTS = """
const at = (x, y) => ({ clientX: x, clientY: y, bubbles: true, cancelable: true, pointerId: 7 });
const first = document.querySelectorAll("circle")[0].getBoundingClientRect();
const [x, y] = [first.x + first.width / 2, first.y + first.height / 2];
const circle = document.elementFromPoint(x, y);
circle.dispatchEvent(new PointerEvent("pointermove", at(x, y)));
const lines = [];
const say = (name, value) => lines.push([name, value]);
say("tip", document.querySelector("#tip").hidden ? "" : document.querySelector("#tip").textContent);
circle.dispatchEvent(new WheelEvent("wheel", { ...at(x, y), deltaY: -500 }));
const moved = document.querySelectorAll("circle")[0].getBoundingClientRect();
say("zoomed", document.querySelector("#marks").getAttribute("transform"));
say("stays", [moved.x - first.x, moved.y - first.y, moved.width - first.width].map(Math.round));
circle.dispatchEvent(new PointerEvent("pointerdown", at(x, y)));
circle.dispatchEvent(new PointerEvent("pointermove", at(x + 30, y + 20)));
circle.dispatchEvent(new PointerEvent("pointerup", at(x + 30, y + 20)));
const dragged = document.querySelectorAll("circle")[0].getBoundingClientRect();
say("dragged", [dragged.x - moved.x, dragged.y - moved.y].map(Math.round));
dispatchEvent(new KeyboardEvent("keydown", { key: "0" }));
say("back", document.querySelector("#marks").getAttribute("transform"));
"""
WRITE = """
for (const [name, value] of lines) {
  const line = document.createElement("pre");
  line.id = name;
  line.textContent = value;
  document.body.append(line);
}
"""
# Pairs of labels that cover one another as they are drawn; a font's line is higher than its ink.
PAIRS = """
const lines = [];
const boxes = [...document.querySelectorAll(".spot text:not(.crowded)")].map((label) => {
  const { left, right, top, bottom } = label.getBoundingClientRect();
  return { left, right, top: top + 3, bottom: bottom - 3 };
});
lines.push(["shown", boxes.length], ["pairs", boxes.flatMap((a, i) => boxes.slice(0, i).filter(
  (b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)).length]);
"""
# Every character of the labels by itself, in the font of the labels: how many look different?
DRAW = """
const lines = [];
const labels = [...document.querySelectorAll(".spot text")];
const characters = new Set(labels.map((label) => label.textContent).join(""));
const looks = new Set([...characters].map((character) => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 32;
  const context = canvas.getContext("2d");
  context.font = getComputedStyle(labels[0]).font;
  context.fillText(character, 4, 24);
  return canvas.toDataURL();
}));
lines.push(["characters", characters.size], ["looks", looks.size]);
"""


def test_hover_zoom_and_pan(browser, tmp_path):
    figure = figures(model_of(tmp_path / "m", WORDS))["map"]
    dom = Dom(browser(page_of(tmp_path, figure, EVENTS), "--dump-dom"))
    said = {attributes["id"]: text for attributes, text in dom.all("pre")}
    assert said["tip"] == f"token king\nid 0\nnorm {figure.points[0].norm:.4f}"
    scale = float(said["zoomed"].split("scale(")[1].rstrip(")"))
    assert scale == pytest.approx(np.e, abs=1e-6)
    # the point under the pointer stays, and keeps its size
    assert max(abs(int(part)) for part in said["stays"].split(",")) <= 1  # wheels are whole pixels
    assert said["dragged"] == "30,20"
    assert said["back"] == "translate(0 0) scale(1)"


def test_both_themes_are_readable(browser, tmp_path):
    figure = figures(model_of(tmp_path / "m", WORDS))["map"]
    page = page_of(tmp_path, figure)
    for setting, colours in ((1, LIGHT), (0, DARK)):
        theme = f"--blink-settings=preferredColorScheme={setting}"
        shot = pixels(browser, page, tmp_path, theme).reshape(-1, 3)
        seen = {tuple(pixel) for pixel in np.unique(shot, axis=0)}
        wanted = {kind: rgb(colours[kind]) for kind in ("paper", "ink", "word")}
        assert tuple(np.median(shot, axis=0).astype(int)) == wanted["paper"]
        assert set(wanted.values()) <= seen
    for colours in (LIGHT, DARK):
        for kind in ("ink", "faint", "word", "answer", "sum"):
            assert contrast(colours[kind], colours["paper"]) >= 4.5, kind
        # numbers stand on the strongest cells of a heatmap, too
        for kind in ("warm", "cold"):
            assert contrast(colours["ink"], colours[kind]) >= 3, kind


def test_chinese_words_are_no_boxes_in_a_browser(browser, tmp_path):
    if (
        not shutil.which("fc-list")
        or not subprocess.run(["fc-list", ":lang=zh-cn"], capture_output=True).stdout
    ):
        pytest.skip("no font here has Chinese: install fonts-noto-cjk")
    figure = figures(model_of(tmp_path / "m", CHINESE))["map"]
    dom = Dom(browser(page_of(tmp_path, figure, DRAW), "--dump-dom"))
    said = {attributes["id"]: text for attributes, text in dom.all("pre")}
    # boxes would be alike
    assert said["characters"] == said["looks"] == str(len(set("".join(CHINESE))))


def rgb(colour):
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def contrast(one, other):
    """The ratio of luminances by WCAG 2.1: at least 4.5 for text, 3 for large text."""

    def luminance(colour):
        parts = np.array(rgb(colour)) / 255
        parts = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return parts @ [0.2126, 0.7152, 0.0722]

    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)
