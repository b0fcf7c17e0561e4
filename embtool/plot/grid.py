"""A field of a terminal's cells: texts, and lines in braille dots between them."""

import math

from embtool.plot.measure import cells

#: The bit of each of a cell's dots, by row and column (Unicode's Braille Patterns, from U+2800).
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
#: How a kind of text looks in colour, as ECMA-48's "select graphic rendition".
_LOOKS = {"title": "1", "word": "1;34", "answer": "1;31", "sum": "35", "small": "2", "line": "2"}


def look(text: str, kind: str, colour: bool) -> str:
    """A text in the look of its kind; as it is without colour."""
    code = _LOOKS.get(kind)
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code and text else text


class Grid:
    """Cells (width, height), x to the right and y downwards; what is put later covers."""

    def __init__(self, width: int, height: int) -> None:
        self._texts = [[""] * width for _ in range(height)]
        self._kinds = [["line"] * width for _ in range(height)]
        self._dots = [[0] * width for _ in range(height)]
        self._size = (width, height)

    def put(self, x: int, y: int, text: str, kind: str) -> None:
        """A text that begins at a cell; it must end within the width."""
        for character in text:
            wide = cells(character)
            if not wide:
                # a mark stands on the character before it
                self._texts[y][max(x - 1, 0)] += character
                continue
            self._texts[y][x] = character
            self._kinds[y][x] = kind
            if wide == 2:
                self._texts[y][x + 1] = ""
                self._kinds[y][x + 1] = "covered"
            x += wide

    def line(self, x1: float, y1: float, x2: float, y2: float, *, dashed: bool = False) -> None:
        """Dots from the middle of one cell to that of another."""
        ends = (2 * x1 + 0.5, 4 * y1 + 1.5, 2 * x2 + 0.5, 4 * y2 + 1.5)
        steps = max(1, math.ceil(max(abs(ends[2] - ends[0]), abs(ends[3] - ends[1]))))
        for step in range(steps + 1):
            if dashed and step // 2 % 2:
                continue
            # not round(), which makes 1.5 and 2.5 the same
            x = math.floor(ends[0] + (ends[2] - ends[0]) * step / steps + 0.5)
            y = math.floor(ends[1] + (ends[3] - ends[1]) * step / steps + 0.5)
            if 0 <= x < 2 * self._size[0] and 0 <= y < 4 * self._size[1]:
                self._dots[y // 4][x // 2] |= _DOTS[y % 4][x % 2]

    def lines(self, colour: bool) -> list[str]:
        """The rows as text, without spaces at their ends."""
        return [self._row(y, colour) for y in range(self._size[1])]

    def _row(self, y: int, colour: bool) -> str:
        runs: list[tuple[str, str]] = []
        for text, kind, dots in zip(self._texts[y], self._kinds[y], self._dots[y], strict=True):
            if kind == "covered":
                continue
            shown = text or (chr(0x2800 + dots) if dots else " ")
            if runs and runs[-1][0] == kind:
                runs[-1] = (kind, runs[-1][1] + shown)
            else:
                runs.append((kind, shown))
        while runs and not runs[-1][1].strip(" "):
            runs.pop()
        if runs:
            runs[-1] = (runs[-1][0], runs[-1][1].rstrip(" "))
        return "".join(look(text, kind, colour) for kind, text in runs)
