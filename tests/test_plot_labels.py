import numpy as np
import pytest

from embtool.plot.labels import Box, place
from embtool.plot.measure import cells, cut, ems
from embtool.plot.names import labels, spaces_seen
from embtool.queries.figure import Point

FRAME = Box(10, 20, 900, 600)


def apart(boxes):
    return not any(a.meets(b) for i, a in enumerate(boxes) for b in boxes[:i])


def inside(box, frame):
    return (
        frame.left <= box.left
        and box.right <= frame.right
        and frame.top <= box.top
        and box.bottom <= frame.bottom
    )


def cloud(seed, count, spread):
    rng = np.random.default_rng(seed)
    points = rng.normal(0, spread, (count, 2)) * [900, 600] + [460, 320]
    points = np.clip(points, [40, 50], [880, 590])
    sizes = [(float(width), 19.0) for width in rng.integers(20, 120, count)]
    return [tuple(point) for point in points.tolist()], sizes


@pytest.mark.parametrize("spread", [0.0, 0.02, 0.1, 0.3])
def test_thirty_labels_all_find_room_and_none_covers_another(spread):
    for seed in range(5):
        anchors, sizes = cloud(seed, 30, spread)
        boxes = place(anchors, sizes, FRAME, 8.0)
        assert None not in boxes
        assert apart(boxes)
        assert all(inside(box, FRAME) for box in boxes)
        assert [(box.width, box.height) for box in boxes] == [
            (pytest.approx(width), pytest.approx(height)) for width, height in sizes
        ]
        # nor does a label cover a point
        assert not any(
            box.left < x < box.right and box.top < y < box.bottom
            for box in boxes
            for x, y in anchors
        )
        assert place(anchors, sizes, FRAME, 8.0) == boxes


def test_what_finds_no_room_has_no_box():
    anchors, sizes = cloud(3, 400, 0.2)
    boxes = place(anchors, [(width * 2, height) for width, height in sizes], FRAME, 8.0)
    there = [box for box in boxes if box is not None]
    assert 50 < len(there) < 400
    assert boxes[0] is not None
    assert apart(there)
    assert place([(5, 5)], [(1000, 10)], FRAME, 1) == [None]


def test_a_label_alone_stands_to_the_right():
    assert place([(100, 100)], [(40, 20)], FRAME, 8) == [Box(108, 90, 40, 20)]
    # to the left at the right edge
    assert place([(900, 100)], [(40, 20)], FRAME, 8) == [Box(852, 90, 40, 20)]


def test_a_label_keeps_off_a_line():
    line = (100.0, 100.0, 400.0, 100.0)
    assert place([(100, 100)], [(40, 20)], FRAME, 8, [line]) == [Box(52, 90, 40, 20)]


def test_boxes_of_cells_are_whole():
    rng = np.random.default_rng(5)
    anchors = [tuple(map(float, point)) for point in rng.integers([2, 1], [75, 22], (30, 2))]
    sizes = [(float(width), 1.0) for width in rng.integers(4, 14, 30)]
    boxes = place(anchors, sizes, Box(0, 0, 80, 24), 1.0, whole=True)
    assert None not in boxes
    assert apart(boxes)
    for box, (width, _) in zip(boxes, sizes):
        assert (box.left, box.top) == (int(box.left), int(box.top))
        assert (box.width, box.height) == (width, 1)
    assert place([(10.0, 5.0)], [(6.0, 1.0)], Box(0, 0, 80, 24), 1.0, whole=True) == [
        Box(11, 5, 6, 1)
    ]


def test_widths_in_cells():
    assert [cells(text) for text in ("king", "国王", "e\u0301", "a\u200db", "🙂", "")] == [
        *(4, 4, 1, 2, 2, 0)
    ]
    assert cut("国王" * 20, 9) == "国王国王…"
    assert cut("king", 4) == "king"
    assert cut("kings", 4) == "kin…"


def test_widths_in_ems_are_not_below_those_of_dejavu_sans():
    ft2font = pytest.importorskip("matplotlib.ft2font")
    from matplotlib.font_manager import findfont

    font = ft2font.FT2Font(findfont("DejaVu Sans"))
    font.set_size(100, 72)
    for text in ("king", "WWW mmm", "illicit", "Пожалуйста", "الملك", "ελληνικά", "a_b(x);", "␣"):
        font.set_text(text)
        assert font.get_width_height()[0] / 64 / 100 <= ems(text) + 0.02


def point(token, role="word", token_id=0):
    return Point(token, role, (token_id,), (token,), 1.0, 0.0, 0.0)


def test_spaces_are_seen_where_two_labels_would_be_alike():
    points = [point(" king"), point("king", "neighbor"), point(" queen"), point("  ")]
    assert labels(points) == ["␣king", "king", "queen", "␣␣"]
    assert spaces_seen(" a ") == "␣a␣"


def test_a_token_that_cannot_be_drawn_is_shown_by_its_id():
    points = [point("ভা", "word", 7), point(" ভা", "neighbor", 8), point("b", "neighbor", 9)]
    assert labels(points, frozenset("ভ")) == ["ভা", "id:8", "b"]


def test_sums_and_pooled_words_keep_their_text():
    total = Point("a - b + c", "sum", (), (), 1.0, 0.0, 0.0)
    pooled = Point("\tab", "word", (1, 2), ("a", "b"), 1.0, 0.0, 0.0)
    unnamed = Point("id:5", "word", (5,), (None,), 1.0, 0.0, 0.0)
    assert labels([total, pooled, unnamed]) == ["a - b + c", "\\tab", "id:5"]
