"""`evaluate`: how many analogies of a question file a table answers right."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embtool.model import Model
from embtool.queries.candidates import Candidates
from embtool.queries.failures import need_vocabulary
from embtool.queries.ground import Choices, Ground
from embtool.queries.questions import Question, Skipped, read_questions
from embtool.search.analogy import evaluate_analogies
from embtool.search.blocks import Pass
from embtool.search.methods import Method
from embtool.search.threads import Part
from embtool.source import Progress
from embtool.vocab.scripts import bare_first


@dataclass(frozen=True, slots=True)
class Score:
    """Right answers of a method; `accuracy` is None where no question counts."""

    correct: int
    accuracy: float | None


@dataclass(frozen=True, slots=True)
class Total:
    """All questions: how many there are, how many could be asked, and how they went."""

    questions: int
    covered: int
    methods: dict[str, Score]


@dataclass(frozen=True, slots=True)
class Section:
    """The same for one section."""

    name: str
    questions: int
    covered: int
    methods: dict[str, Score]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What `evaluate` reports.

    Questions in `skipped` count as `oov` says: `skip` not at all, `wrong` as wrong.
    """

    model: str
    table: str
    file: str
    form: str
    oov: str
    total: Total
    sections: tuple[Section, ...]
    skipped: tuple[Skipped, ...]


def evaluate(
    model: Model,
    file: Path,
    choices: Choices,
    candidates: Candidates,
    methods: Sequence[Method],
    *,
    lower: bool,
    oov: str,
    progress: Progress,
) -> Evaluation:
    """Ask every question A : B = C : ? whose four words are one row each; D is the right answer.

    All questions share one pass; the answers are all rows that may rank but the question's own
    three, and only the row of D itself is right.
    """
    questions, sections, skipped = read_questions(file, lower=lower)
    ground = Ground(model, choices, candidates)
    need_vocabulary(model)
    rows, missed = _rows_of(ground, questions)
    covered = [each for each, row in zip(questions, rows, strict=True) if row is not None]
    ids = np.array([row for row in rows if row is not None], np.int64).reshape(-1, 4)
    answers = ground.search(
        lambda work: evaluate_analogies(_watched(work, ground, progress), ids, methods)
    )
    right = {method: answers[method] == ids[:, 3] for method in methods}
    counted = _Counter(questions, covered, right, oov)
    total = Total(*counted.of(None))
    parts = tuple(Section(name, *counted.of(name)) for name in sections)
    left_out = tuple(sorted([*skipped, *missed], key=lambda each: each.line))
    named = (model.ref, ground.table.tensor, str(file), choices.form, oov)
    return Evaluation(*named, total, parts, left_out)


def _rows_of(
    ground: Ground, questions: Sequence[Question]
) -> tuple[list[list[int] | None], list[Skipped]]:
    """The four rows of each question, in one form for all four; None where no form has them.

    With `first`, a word past the first rows is no word, as in gensim's restrict_vocab.
    """
    vocabulary, rows = ground.vocabulary, ground.table.shape[0]
    rows = min(rows, ground.candidates.first or rows)

    @cache
    def row(word: str, form: str) -> int | None:
        found = vocabulary.single(word, form)
        return found.ids[0] if found is not None and found.ids[0] < rows else None

    ids: list[list[int] | None] = []
    skipped: list[Skipped] = []
    for question in questions:
        forms = _forms(ground.choices.form, question.words[0])
        tried = [[row(word, form) for word in question.words] for form in forms]
        whole = next((each for each in tried if None not in each), None)
        ids.append(None if whole is None else [i for i in whole if i is not None])
        if whole is None:
            missing = [w for w, i in zip(question.words, tried[0], strict=True) if i is None]
            reason = f"not one token ({forms[0]}): {', '.join(dict.fromkeys(missing))}"
            skipped.append(Skipped(question.line, " ".join(question.words), reason))
    return ids, skipped


def _forms(form: str, first: str) -> tuple[str, ...]:
    if form != "auto":
        return (form,)
    return ("bare", "spaced") if bare_first(first) else ("spaced", "bare")


class _Counter:
    """Counts questions by section."""

    def __init__(
        self,
        questions: Sequence[Question],
        covered: Sequence[Question],
        right: dict[Method, NDArray[np.bool_]],
        oov: str,
    ) -> None:
        self._questions = [question.section for question in questions]
        self._covered = np.array([question.section for question in covered], object)
        self._right = right
        self._oov = oov

    def of(self, section: str | None) -> tuple[int, int, dict[str, Score]]:
        """Questions, covered ones and scores of one section, or of all."""
        if section is None:
            asked, chosen = len(self._questions), np.ones(len(self._covered), np.bool_)
        else:
            asked, chosen = self._questions.count(section), self._covered == section
        covered = int(chosen.sum())
        of = asked if self._oov == "wrong" else covered
        scores = {}
        for method, right in self._right.items():
            correct = int(right[chosen].sum())
            scores[str(method)] = Score(correct, correct / of if of else None)
        return asked, covered, scores


def _watched(work: Pass, ground: Ground, progress: Progress) -> Pass:
    """The same pass, with the rows that are done told as they go by."""
    lock, total = threading.Lock(), ground.table.shape[0]
    done = 0

    def watch(part: Part) -> Iterator[tuple[int, NDArray[np.float32]]]:
        nonlocal done
        for first, block in part:
            yield first, block
            with lock:
                done += len(block)
                progress(done, total)

    work.parts = [watch(part) for part in work.parts]
    return work
