"""How answers about nearness read as lists: neighbours, analogies, cosines, accuracies."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from embtool.output.view import Cell, View
from embtool.vocab import Word, escape

if TYPE_CHECKING:
    from embtool.queries.cosines import Chance, Cross, Similarity
    from embtool.queries.evaluate import Evaluation, Section, Total
    from embtool.queries.rank import Rank
    from embtool.queries.ranked import Analogy, Answer, Neighbors

_RANKED = ("rank", "id", "token", "raw", "score")
#: Lines that could not be asked, as far as a person sees them; the other formats have them all.
_SHOWN = 5


def neighbors(record: "Neighbors") -> View:
    """A row for each neighbour; the query stands in the title, and beside each row."""
    title = f"{record.metric} neighbors of {label(record.query)}, {record.model}"
    return _ranked(record.neighbors, _text(record.query.text), record.query.form, title)


def analogy(record: "Analogy") -> View:
    """A row for each answer; the sum stands in the title, and beside each row."""
    form = "+".join(dict.fromkeys(term.form for term in record.terms))
    terms = ", ".join(label(Word(t.text, t.form, t.ids, t.tokens, t.pool)) for t in record.terms)
    title = f"{_text(record.formula)} by {record.method}, {record.model}"
    return _ranked(record.answers, _text(record.formula), form, title, f"words: {terms}")


def _ranked(answers: "Sequence[Answer]", query: str, form: str, title: str, *footer: str) -> View:
    variants = [getattr(answer, "variants", None) for answer in answers]
    folded = any(count is not None for count in variants)
    columns = (*_RANKED, *(["variants"] if folded else []), "query", "form")
    rows: list[tuple[Cell, ...]] = [
        (n.rank, n.id, n.token, n.raw, n.score, *([count] if folded else []), query, form)
        for n, count in zip(answers, variants, strict=True)
    ]
    return View(columns, rows, title, footer, beside=2)


def similarity(record: "Similarity") -> View:
    """The matrix, a word's name before its row and above its column."""
    where = f"{record.table}, {record.model}"
    return _matrix(record.words, record.words, record.matrix, where, record.chance)


def cross(record: "Cross") -> View:
    """The same for two lists of words."""
    where = f"{record.table}, {record.model}"
    return _matrix(record.rows, record.columns, record.matrix, where, record.chance)


def _matrix(
    rows: Sequence[Word],
    columns: Sequence[Word],
    values: Sequence[Sequence[float]],
    where: str,
    chance: "Chance | None",
) -> View:
    names = [_text(word.text) for word in rows]
    cells: list[tuple[Cell, ...]] = [
        (name, *cosines) for name, cosines in zip(names, values, strict=True)
    ]
    words = ", ".join(dict.fromkeys(label(word) for word in (*rows, *columns)))
    return View(
        ("word", *(_text(word.text) for word in columns)),
        cells,
        f"cosines, {where}",
        (f"words: {words}", *chance_lines(chance)),
        matrix=np.array(values, np.float64),
    )


def chance_lines(chance: "Chance | None") -> tuple[str, ...]:
    """What to judge a cosine by; nothing where the table is not here."""
    if chance is None:
        return ()
    low, high = (chance.percentiles[point] for point in ("1", "99"))
    return (
        f"chance: {chance.pairs:,} random pairs of this table's tokens (a sample, seed "
        f"{chance.seed}) have the mean {chance.mean:.4f}",
        f"and the deviation {chance.deviation:.4f}; 98 of 100 lie between {low:.4f} and {high:.4f}",
        "a cosine is a tool of geometry, how near two rows point, and not what a word means",
    )


def rank(record: "Rank") -> View:
    """One row: the place of one word among the neighbours of another."""
    columns = ("rank", "of", "score", "word", "other", "metric")
    words = (_text(record.word.text), _text(record.other.text))
    footer = (f"words: {label(record.word)}, {label(record.other)}",)
    row: tuple[Cell, ...] = (record.rank, record.of, record.score, *words, record.metric)
    title = f"{words[1]} among the {record.metric} neighbors of {words[0]}, {record.model}"
    return View(columns, [row], title, footer)


def evaluation(record: "Evaluation") -> View:
    """A row for each section, and one for all; two columns for each method."""
    names = tuple(record.total.methods)
    scored = [f"{name}_{figure}" for name in names for figure in ("correct", "accuracy")]
    columns = ("section", "questions", "covered", *scored)
    rows = [_scores(section.name, section) for section in record.sections]
    title = f"analogies of {record.file}, form {record.form}, {record.model}"
    counted = "are wrong" if record.oov == "wrong" else "are left out"
    left_out = record.total.questions - record.total.covered
    footer = [f"{left_out:,} questions without four rows {counted} (--oov {record.oov})"]
    footer += [f"line {s.line}: {s.reason}" for s in record.skipped[:_SHOWN]]
    if len(record.skipped) > _SHOWN:
        footer.append(f"... and {len(record.skipped) - _SHOWN:,} more lines: -f json has them")
    return View(columns, [*rows, _scores("all", record.total)], title, tuple(footer))


def _scores(name: str, counts: "Section | Total") -> tuple[Cell, ...]:
    cells: tuple[Cell, ...] = (_text(name), counts.questions, counts.covered)
    for score in counts.methods.values():
        cells = (*cells, score.correct, score.accuracy)
    return cells


def label(word: Word) -> str:
    """A word as it was understood: its form, its ids, and the pieces that became one."""
    shown = _text(word.text)
    if not word.ids:
        return shown
    ids = ", ".join(map(str, word.ids))
    pieces = " | ".join(token or "" for token in word.tokens)
    return f"{shown} ({word.form}, id {ids}{f', {word.pool} of {pieces}' if word.pool else ''})"


def _text(text: str) -> str:
    """What a person typed, so that it breaks no line and no column."""
    return escape(text.encode("utf-8", "surrogatepass"))
