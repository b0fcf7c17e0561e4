"""A picture as one HTML page without outside requests: pan, zoom, and what a mark is on hover."""

import base64
import hashlib
from pathlib import Path

from embtool.plot.scene import DARK, LIGHT, Scene
from embtool.plot.svg import FAMILIES, body, style, text

_HERE = Path(__file__)
_HELP = "drag to move, wheel or + and - to zoom, double click or 0 to go back"


def html(scene: Scene) -> str:
    """The page. Its policy runs its one script and loads nothing, whatever a token says."""
    script = _HERE.with_name("page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    dark = f"@media (prefers-color-scheme: dark) {{\n{_look(DARK)}}}\n"
    view = f'viewBox="0 0 {scene.width:g} {scene.height:g}"'
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(scene.title)}</title>\n<style>\n{_look(LIGHT)}{dark}</style>\n"
        f'</head>\n<body>\n<svg {view} role="img">\n{body(scene)}</svg>\n'
        f'<p>{_HELP}</p>\n<div id="tip" hidden></div>\n<script>{script}</script>\n'
        "</body>\n</html>\n"
    )


def _look(colours: dict[str, str]) -> str:
    page = _HERE.with_name("page.css").read_text(encoding="utf-8").replace("FAMILIES", FAMILIES)
    for name in ("paper", "ink", "faint", "rule"):
        page = page.replace(name.upper(), colours[name])
    return page + style(colours)
