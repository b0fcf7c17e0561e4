"""`explain` and `compare`: pages of tables with sentences between them."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from embtool.output.counts import nbytes
from embtool.output.rankings import chance_lines
from embtool.output.view import Cell, View
from embtool.vocab import escape

if TYPE_CHECKING:
    from embtool.queries.compare import Compared, Place
    from embtool.queries.explained import Beside, Explained, OneHot
    from embtool.queries.records import Token

_Row = tuple[Cell, ...]
#: Lines of a table, and characters of a text, that a page shows; JSON has all.
_SHOWN = 12
_TEXT = 60


def explained(record: "Explained") -> View:
    """From a text to its matrix, a section for each step."""
    steps = (_tokens, _addresses, _one_hot, _matrix, _rows, _near, _unknown)
    title = f"From text to matrix: {_cut(record.text)}, {record.model}"
    sections = [section for step in steps for section in step(record)]
    return View((), [], sections=(View((), [], title), *sections))


def _section(
    title: str, columns: Sequence[str], rows: list[_Row], *lines: str, page: bool = False
) -> tuple[View, ...]:
    """A table, and the sentences about it as text of their own, which is not dimmed.

    Without a row the sentences stand alone.
    """
    if not rows:
        return (View((), [], title, lines),)
    table = View(tuple(columns), rows, title, page=page)
    return (table, View((), [], footer=lines)) if lines else (table,)


def _tokens(record: "Explained") -> tuple[View, ...]:
    rows: list[_Row] = [(t.position, t.id, t.token, t.raw) for t in record.tokens[:_SHOWN]]
    title = "1. The text is cut into tokens, and each token has an id"
    columns = ("position", "id", "token", "raw")
    return _section(title, columns, rows, *_more(len(record.tokens), "tokens"))


def _addresses(record: "Explained") -> tuple[View, ...]:
    found = record.addresses
    rows: list[_Row] = [
        (row.id, row.token, *_beside(row.before), *_beside(row.after)) for row in found.rows
    ]
    lines = [
        "An id is the number of a row. The rows beside it are near by number, and by that alone."
    ]
    if found.rank_correlation is not None:
        lines += [
            f"Over {found.pairs:,} random pairs of rows (seed {found.seed}), the rank correlation "
            "of |id difference| and cosine",
            f"is {found.rank_correlation:.4f}: -1 would mean that near ids have near rows, 0 that "
            "ids say nothing of it.",
        ]
    columns = ("id", "token", "id - 1", "cosine", "id + 1", "cosine")
    return _section("2. An id is an address, not a meaning", columns, rows, *lines)


def _beside(beside: "Beside | None") -> tuple[Cell, Cell]:
    return (None, None) if beside is None else (beside.token, beside.cosine)


def _one_hot(record: "Explained") -> tuple[View, ...]:
    found = record.one_hot
    times = found.nbytes / found.row_nbytes
    facts: list[_Row] = [
        ("length", f"{found.length:,}, a place for each row of the table"),
        ("zeros", f"{found.zeros:.4%}"),
        (
            "in fp32",
            f"{found.nbytes:,} bytes, {times:,.1f} times the {found.row_nbytes:,} of a row",
        ),
        ("any two", f"distance {found.distance:.4f} (√2), cosine {found.cosine:g}"),
        ("one-hot @ E", _product(found)),
    ]
    title = "3. The id as a one-hot vector: 1 at the place of the id, 0 elsewhere"
    return _section(title, ("fact", "value"), facts, page=True)


def _product(found: "OneHot") -> str:
    product, count = found.product, len(found.product.ids)
    rows = (
        f"the {count} rows of E that a lookup reads"
        if count != 1
        else "the row that a lookup reads"
    )
    if product.same_bits:
        return f"multiplied with all {found.length:,} rows, it is {rows}, bit for bit"
    if product.equal:
        return f"it is {rows}, but for the signs of zeros: -0 + 0 is 0"
    broken = product.nonfinite
    shown = ", ".join(map(str, broken.ids[:3])) + (", ..." if broken.count > 3 else "")
    return f"it is not {rows}: 0 times an infinity or NaN is NaN, and E holds some (row {shown})"


def _matrix(record: "Explained") -> tuple[View, ...]:
    found = record.matrix
    facts: list[_Row] = [
        ("shape", f"{found.rows:,} rows × {found.d_model:,} d_model"),
        ("parameters", f"{found.params:,}"),
        ("stored", f"{found.dtype}, {nbytes(found.nbytes)}"),
    ]
    if found.share is not None:
        facts.append(("of the model", f"{found.share:.1%} of {found.total_params:,} parameters"))
    facts.append(("a new token", record.new_token.note))
    return _section(f"4. The table E, {record.table}", ("fact", "value"), facts, page=True)


def _rows(record: "Explained") -> tuple[View, ...]:
    shown = len(record.tokens[0].vector) if record.tokens else 0
    rows: list[_Row] = [
        (t.position, t.id, t.token, t.norm, *t.vector) for t in record.tokens[:_SHOWN]
    ]
    (count, width), read = record.shape, record.read
    lines = [*_more(len(record.tokens), "tokens")]
    if width > shown:
        lines.append(f"... and {width - shown:,} more dimensions: --dims {width}")
    lines.append(
        f"Read for it: {read.rows:,} of {record.matrix.rows:,} rows, {read.nbytes:,} bytes, "
        f"{read.share:.4%} of the table."
    )
    if record.scale is not None:
        source = f" ({record.scale.source})" if record.scale.source else ""
        lines.append(f"At run time the model multiplies it by {record.scale.factor:.6g}{source}.")
    columns = ("position", "id", "token", "norm", *(f"d{j}" for j in range(shown)))
    title = f"5. The rows of the tokens: a {count:,} × {width:,} matrix"
    return _section(title, columns, rows, *lines)


def _near(record: "Explained") -> tuple[View, ...]:
    chance, random = record.chance, record.random
    columns = ["token", "token", "one-hot", "cosine"]
    columns += [] if chance is None else ["deviations"]
    columns += [] if random is None else ["untrained", "sigmas"]
    rows: list[_Row] = []
    for pair in record.pairs:
        cells: list[Cell] = [*pair.tokens, 0, pair.cosine]
        if chance is not None:
            cells.append(_deviations(pair.cosine, chance.mean, chance.deviation))
        if random is not None:
            cells += [pair.random, _deviations(pair.random, 0, random.sigma)]
        rows.append(tuple(cells))
    title = "6. What rows can say and one-hot vectors cannot: some are nearer than others"
    return _section(title, columns, rows, *chance_lines(chance), *_untrained(record))


def _deviations(cosine: float | None, mean: float, deviation: float) -> float | None:
    return None if cosine is None or not deviation else (cosine - mean) / deviation


def _untrained(record: "Explained") -> tuple[str, ...]:
    chance, random = record.chance, record.random
    if random is None or random.chance is None:
        return ()
    lines = (
        f"untrained: the same pairs of a random table of this shape (seed {random.seed}) have the "
        f"mean {random.chance.mean:.4f}",
        f"and the deviation {random.chance.deviation:.4f}; sigma is 1/√{record.shape[1]} = "
        f"{random.sigma:.4f}, and a cosine of 0.5 is {0.5 / random.sigma:.1f} sigmas",
    )
    own = None if chance is None else _deviations(0.5, chance.mean, chance.deviation)
    return lines if own is None else (*lines, f"in the trained table 0.5 is {own:.1f} deviations")


def _unknown(record: "Explained") -> tuple[View, ...]:
    lines = [
        "Order: the same tokens in another order are the same rows in another order.",
        "Context: a token has this one row in every text.",
    ]
    repeated = len(record.tokens) - record.read.rows
    if repeated:
        lines.append(f"Of its {len(record.tokens):,} rows, {repeated:,} repeat one before.")
    lines.append("Both come from the layers that read this matrix: embtool compare TEXT TEXT.")
    title = "7. What the matrix does not know"
    return (View((), [], title, tuple(lines)),)


def compared(record: "Compared") -> View:
    """Two texts side by side, the rows they share, and what that says."""
    a, b = record.a, record.b
    pairs = zip_longest(a.tokens, b.tokens)
    beside: list[_Row] = [
        (position, *_cells(first), *_cells(second))
        for position, (first, second) in zip(range(_SHOWN), pairs, strict=False)
    ]
    columns = ("position", "id in A", "A", "id in B", "B")
    shapes = (f"{side.shape[0]:,} × {side.shape[1]:,}" for side in (a, b))
    title = f"A: {_cut(a.text)}, B: {_cut(b.text)}: {' and '.join(shapes)}, {record.model}"
    more = _more(max(len(a.tokens), len(b.tokens)), "positions")
    places = (*record.common, *record.only_a, *record.only_b)
    rows: list[_Row] = [(p.id, p.token, _listed(p.in_a), _listed(p.in_b)) for p in places[:_SHOWN]]
    where = f"Rows of {record.table}, and where they stand"
    lines = (*_more(len(places), "rows"), *_verdicts(record))
    sections = (
        *_section(title, columns, beside, *more),
        *_section(where, ("id", "token", "in A", "in B"), rows, *lines),
    )
    return View((), [], sections=sections)


def _cells(token: "Token | None") -> tuple[Cell, Cell]:
    return (None, None) if token is None else (token.id, token.token)


def _listed(positions: Sequence[int]) -> str | None:
    return ", ".join(map(str, positions)) or None


def _verdicts(record: "Compared") -> list[str]:
    lines = [
        f"In common: {_rows_of(record.common)}; only in A: {_rows_of(record.only_a)}; "
        f"only in B: {_rows_of(record.only_b)}."
    ]
    if record.same_rows:
        lines.append(
            "A row in common is one and the same in both, bit for bit: no context is in it."
        )
    if record.permutation:
        order = " ".join(map(str, record.permutation[:_SHOWN]))
        more = " ..." if len(record.permutation) > _SHOWN else ""
        same = record.permutation == tuple(range(len(record.permutation)))
        lines.append(f"B is A's rows in {'the same' if same else 'another'} order: {order}{more}")
    mean = record.mean
    if mean.identical:
        lines.append("Their mean rows are identical, bit for bit: no order is in the rows.")
    elif mean.cosine is not None:
        lines.append(f"Their mean rows have the cosine {mean.cosine:.4f}.")
    return lines


def _rows_of(places: "Sequence[Place]") -> str:
    names = ", ".join(place.token or str(place.id) for place in places[:4])
    more = ", ..." if len(places) > 4 else ""
    return f"{len(places)} ({names}{more})" if places else "none"


def _more(count: int, what: str) -> tuple[str, ...]:
    rest = count - _SHOWN
    return (f"... and {rest:,} more {what}: -f json has them",) if rest > 0 else ()


def _cut(text: str) -> str:
    short = text if len(text) <= _TEXT else text[:_TEXT] + "…"
    return escape(short.encode("utf-8", "surrogatepass"))
