"""How answers for those who train models read: statistics, untrained rows, differences, graphs."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from embtool.output.view import Cell, View

if TYPE_CHECKING:
    from embtool.queries.alignment import Alignment
    from embtool.queries.diff import Diff
    from embtool.queries.graph import Node
    from embtool.queries.records import Entry
    from embtool.queries.rows import Ids
    from embtool.queries.stats import NormedToken, Stats
    from embtool.queries.undertrained import Undertrained

_Row = tuple[Cell, ...]
#: What a page shows of a long list; JSON has all.
_SHOWN = 8
_BAR = 40


def stats(record: "Stats") -> View:
    """A page: norms, spectrum, broken and equal rows, scripts."""
    title = f"{record.table}, {record.dtype}, {record.rows:,} rows × {record.d_model:,}"
    sections = [
        View((), [], f"{title}, {record.model}"),
        *_norms(record),
        _spectrum(record),
        _broken(record),
        *_groups(record),
    ]
    if record.scripts:
        rows: list[_Row] = [
            (s.script, s.rows, s.mean_norm, s.mean_cosine) for s in record.scripts[: 2 * _SHOWN]
        ]
        columns = ("script", "rows", "mean norm", "mean cosine")
        sections.append(View(columns, rows, "By the script of the token's first letter"))
    return View((), [], sections=tuple(sections))


def _norms(record: "Stats") -> Iterable[View]:
    norms = record.norms
    points = (norms.min, norms.p1, norms.median, norms.p99, norms.max)
    yield View(("min", "1%", "median", "99%", "max"), [points], "Norms of the rows")
    most = max(norms.histogram.counts, default=0) or 1
    edges = norms.histogram.edges
    bars: list[_Row] = [
        (f"{low:.4f} – {high:.4f}", f"{count:,}", "█" * round(_BAR * count / most))
        for low, high, count in zip(edges, edges[1:], norms.histogram.counts, strict=False)
    ]
    yield View(("norm", "rows", ""), bars, page=True)
    yield _ends("Shortest", norms.smallest)
    yield _ends("Longest", norms.largest)


def _ends(title: str, tokens: "Sequence[NormedToken]") -> View:
    rows: list[_Row] = [(t.id, t.token, t.raw, t.norm) for t in tokens[:_SHOWN]]
    return View(("id", "token", "raw", "norm"), rows, title)


def _spectrum(record: "Stats") -> View:
    values, about = record.eigenvalues, record.anisotropy
    rows: list[_Row] = [
        (f"{place}. eigenvalue of the second moment", f"{value:.6g}", f"{share:.2%}")
        for place, (value, share) in enumerate(
            zip(values.largest[:_SHOWN], values.shares, strict=False), 1
        )
    ]
    rows += [
        ("effective rank", _figure(values.effective_rank), f"of {record.d_model}"),
        ("participation ratio", _figure(values.participation_ratio), f"of {record.d_model}"),
        ("norm of the mean row", _figure(about.mean_norm), ""),
        ("mean cosine of two rows", _figure(about.mean_cosine), f"{about.pairs:,} pairs"),
    ]
    return View(("what", "value", "of all"), rows, "Directions", page=True)


def _broken(record: "Stats") -> View:
    near = record.near_duplicates.groups
    rows: list[_Row] = [
        ("zero", *_ids(record.zero)),
        ("NaN", *_ids(record.nan)),
        ("infinite", *_ids(record.infinite)),
        ("in groups of equal rows", sum(map(len, record.duplicates)), ""),
        ("in groups of nearly equal rows", None if near is None else sum(map(len, near)), ""),
        ("rows without a token", *_ids(record.rows_without_token)),
        ("tokens without a row", *_ids(record.tokens_without_row)),
    ]
    return View(("rows", "count", "ids"), rows, "Broken, equal and unnamed rows")


def _groups(record: "Stats") -> Iterable[View]:
    """The largest groups of equal rows, by their tokens."""
    groups = sorted(record.duplicates, key=len, reverse=True)[:_SHOWN]
    if groups:
        rows: list[_Row] = [(len(group), _tokens(group)) for group in groups]
        yield View(("rows", "tokens"), rows, "Equal rows")


def undertrained(record: "Undertrained") -> View:
    """A row a token, the least trained first."""
    columns = ("rank", "id", "token", "raw", record.indicator, "class")
    rows: list[_Row] = [(t.rank, t.id, t.token, t.raw, t.value, t.kind) for t in record.tokens]
    title = f"least trained by {record.indicator}, {record.table}, {record.model}"
    footer = [f"references: {record.references.count:,} rows that are known to be untrained"]
    if record.threshold is not None:
        footer.append(f"threshold {record.threshold:.6g}: {record.below:,} tokens are not above it")
    return View(columns, rows, title, tuple(footer), lines=record.tokens, notes=record.notes)


def diff(record: "Diff") -> View:
    """A page: how many rows are equal, moved, new; and the rows that moved most."""
    title = f"{record.table_a}, {record.model_a}  →  {record.table_b}, {record.model_b}"
    facts: list[tuple[str, str | None]] = [
        ("rows", f"{record.rows_a:,} → {record.rows_b:,}, width {record.d_model:,}"),
        ("dtype", f"{record.dtype_a} → {record.dtype_b}"),
        ("equal to the bit", f"{record.equal:,} of {record.compared:,}"),
        ("rounded", f"{record.rounded:,} by {record.rounding}" if record.rounded else None),
        ("moved", f"{record.moved:,}"),
        ("replaced", f"{record.replaced:,}"),
        ("median cosine of those", _figure(record.median_cosine)),
        ("median length of the change", _figure(record.median_length)),
        ("added", _counted(record.added)),
        ("removed", _counted(record.removed)),
        (
            "ids that name another token",
            str(record.renamed.count) if record.renamed.count else None,
        ),
    ]
    rows: list[_Row] = [(name, value) for name, value in facts if value]
    head = View(("what", "value"), rows, title, (record.summary, *record.notes), page=True)
    changed: list[_Row] = [
        (r.rank, r.id, r.token, r.raw, r.kind, r.cosine, r.length) for r in record.changed
    ]
    columns = ("rank", "id", "token", "raw", "kind", "cosine", "length")
    listed = (View(columns, changed, "Rows that changed most"),) if changed else ()
    return View((), [], sections=(head, *listed))


def alignment(record: "Alignment") -> View:
    """A page: two vocabularies' shared tokens, turned onto each other."""
    title = f"{record.table_a}, {record.model_a}  →  {record.table_b}, {record.model_b}"
    overlap = record.neighbors
    rows: list[_Row] = [
        ("tokens of equal text", f"{record.shared:,}"),
        ("of which kept out of the fit", f"{record.held_out:,}"),
        ("mean cosine after the turn, kept out", _figure(record.cosine)),
        ("mean cosine after the turn, fitted", _figure(record.cosine_fitted)),
        (
            f"of the {overlap.k} nearest, in both",
            f"{_figure(overlap.mean)} (by chance {overlap.chance:.4f}; {overlap.sample:,} tokens, "
            f"seed {overlap.seed})",
        ),
    ]
    head = View(("what", "value"), rows, title, page=True)
    least: list[_Row] = [
        (t.rank, t.token, t.id_a, t.id_b, t.cosine) for t in record.least_alike[:_SHOWN]
    ]
    columns = ("rank", "token", "id_a", "id_b", "cosine")
    return View((), [], sections=(head, View(columns, least, "Least alike")))


def node(record: "Node") -> View:
    """A line an edge."""
    from embtool.queries.graph import COLUMNS, edges

    return View(COLUMNS, edges(record))


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _ids(ids: "Ids | None") -> tuple[int | None, str]:
    if ids is None:
        return None, "not known without a tokenizer"
    shown = ", ".join(map(str, ids.ids[:_SHOWN]))
    return ids.count, shown + (", ..." if ids.count > _SHOWN else "")


def _tokens(group: "Sequence[Entry]") -> str:
    shown = " | ".join(entry.token or f"id:{entry.id}" for entry in group[:_SHOWN])
    return shown + (" | ..." if len(group) > _SHOWN else "")


def _counted(entries: "Sequence[Entry]") -> str | None:
    return f"{len(entries):,}: {_tokens(entries)}" if entries else None
