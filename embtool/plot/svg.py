"""A picture as SVG: text stays text, which any viewer draws with fonts of its own."""

import re
from dataclasses import replace
from html import escape

from embtool.plot.scene import (
    FONT,
    LIGHT,
    Line,
    Mark,
    Rect,
    Scene,
    Spot,
    Text,
    text_colour,
)

FAMILIES = (
    "system-ui, 'Noto Sans', 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', "
    "'Noto Sans Arabic', sans-serif"
)
# What XML 1.0 has no way to write; display forms have escaped the control characters already.
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def svg(scene: Scene) -> str:
    """A file of its own, on white."""
    size = f'width="{scene.width:g}" height="{scene.height:g}"'
    view = f'viewBox="0 0 {scene.width:g} {scene.height:g}"'
    paper = f'<rect {size} fill="{LIGHT["paper"]}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} role="img">\n'
        f"<title>{text(scene.title)}</title>\n<style>\n{style(LIGHT)}</style>\n{paper}\n"
        f"{body(scene)}</svg>\n"
    )


def body(scene: Scene) -> str:
    """The marks; what can be zoomed into is the group `marks`, cut off at its frame."""
    frame = scene.frame
    clip = f'x="{frame.left:.1f}" y="{frame.top:.1f}"'
    clip += f' width="{frame.width:.1f}" height="{frame.height:.1f}"'
    fixed, marks = (
        "".join(f"{_mark(mark)}\n" for mark in some) for some in (scene.fixed, scene.marks)
    )
    return (
        f'<clipPath id="frame"><rect {clip}/></clipPath>\n{fixed}'
        f'<g clip-path="url(#frame)"><g id="marks">\n{marks}</g></g>\n'
    )


def style(colours: dict[str, str]) -> str:
    """The look of every kind of mark, as CSS."""
    fills = [(kind, colours[kind]) for kind in ("word", "neighbor", "answer", "sum")]
    rules = [
        f"text {{ font-family: {FAMILIES}; font-size: {FONT:g}px; fill: {colours['ink']};"
        f" stroke: {colours['paper']}; stroke-width: 3px; stroke-linejoin: round;"
        " paint-order: stroke; white-space: pre; }",
        ".crowded { visibility: hidden; }",
        f"text.title {{ font-weight: 600; }} text.number {{ stroke: none; }}"
        f" text.faint {{ fill: {colours['faint']}; }}",
        f"line {{ stroke: {colours['rule']}; vector-effect: non-scaling-stroke; }}",
        f"line.neighbor, line.leader {{ stroke: {colours['leader']}; }}"
        " line.leader { stroke-dasharray: 2 2; }",
        f"line.side {{ stroke: {colours['side']}; stroke-width: 1.5px; stroke-dasharray: 6 4; }}",
        f"line.answer {{ stroke: {colours['answer']}; stroke-width: 1.5px; }}",
        *(f"circle.{kind} {{ fill: {fill}; }}" for kind, fill in fills),
        f"circle {{ stroke: {colours['paper']}; stroke-width: 1px; }}",
        *(f"rect.{kind} {{ fill: {colours[kind]}; }}" for kind in ("bar", "warm", "cold")),
    ]
    return "\n".join(rules) + "\n"


def text(written: str) -> str:
    """A text inside SVG or HTML, as content or in quotes."""
    return escape(_NO_XML.sub(lambda found: f"\\u{{{ord(found[0]):X}}}", written))


def _mark(mark: Mark) -> str:
    match mark:
        case Line():
            ends = f'x1="{mark.x1:.1f}" y1="{mark.y1:.1f}" x2="{mark.x2:.1f}" y2="{mark.y2:.1f}"'
            return f'<line class="{mark.kind}" {ends}/>'
        case Rect():
            box = mark.box
            where = f'x="{box.left:.1f}" y="{box.top:.1f}"'
            where += f' width="{box.width:.1f}" height="{box.height:.1f}"'
            title = f"<title>{text(mark.tip)}</title>" if mark.tip else ""
            opacity = f"{mark.opacity:.3f}"
            return f'<rect class="{mark.kind}" fill-opacity="{opacity}" {where}>{title}</rect>'
        case Text():
            return _text(mark)
        case Spot():
            return _spot(mark)


def _text(mark: Text) -> str:
    names = [mark.kind] + (["faint"] if text_colour(mark.kind) == "faint" else [])
    where = f'x="{mark.x:.1f}" y="{mark.y:.1f}" text-anchor="{mark.anchor}"'
    if mark.turn:
        where += f' transform="rotate({-mark.turn:g} {mark.x:.1f} {mark.y:.1f})"'
    size = f' style="font-size: {mark.size:g}px"' if mark.size != FONT else ""
    return f'<text class="{" ".join(names)}" {where}{size}>{text(mark.text)}</text>'


def _spot(spot: Spot) -> str:
    """A point: what stands about it keeps its size when a person zooms."""
    radius = 3.5 if spot.kind == "neighbor" else 5
    line, label = spot.leader, spot.text
    leader = ""
    if line is not None:
        leader = f'<line class="leader" x2="{line.x2 - spot.x:.1f}" y2="{line.y2 - spot.y:.1f}"/>'
    if label is None:
        written = f'<text class="crowded" x="9" y="{FONT * 0.35:.1f}">{text(spot.label)}</text>'
    else:
        written = _text(replace(label, x=label.x - spot.x, y=label.y - spot.y))
    return (
        f'<g class="spot" transform="translate({spot.x:.1f} {spot.y:.1f})">'
        f"<title>{text(spot.tip)}</title>"
        f'<g class="fixed">{leader}<circle class="{spot.kind}" r="{radius:g}"/>{written}</g></g>'
    )
