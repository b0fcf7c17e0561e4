"""Question files: word2vec's format, of questions-words and of CA8."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from embtool.errors import FormatError, SourceError


@dataclass(frozen=True, slots=True)
class Question:
    """A : B = C : D, as it stands in the file; `line` counts from 1."""

    section: str
    line: int
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line that could not be asked, and why."""

    line: int
    text: str
    reason: str


def read_questions(path: Path, *, lower: bool) -> tuple[list[Question], list[str], list[Skipped]]:
    """The questions of a file, its sections in order, and the lines that are neither.

    `: name` begins a section; any other line is four words with white space between, of whatever
    width. `lower` lower-cases the words.

    Raises:
        SourceError: the file cannot be read. FormatError: it is no UTF-8, or has no question.
    """
    questions: list[Question] = []
    sections: list[str] = []
    skipped: list[Skipped] = []
    for number, text in _lines(path):
        if text.startswith(":"):
            sections.append(text[1:].strip())
            continue
        words = tuple((text.lower() if lower else text).split())
        if len(words) == 4:
            sections = sections or [""]
            questions.append(Question(sections[-1], number, words))
        elif words:
            skipped.append(Skipped(number, text, f"{len(words)} words, not 4"))
    if not questions:
        raise FormatError(
            f"{path}: there is no question in it",
            "give lines of four words, and `: name` lines for sections",
        )
    return questions, list(dict.fromkeys(sections)), skipped


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    advice = "give a text file in UTF-8, like questions-words.txt"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}", advice) from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not valid UTF-8: {error}", advice) from error
    for number, line in enumerate(text.split("\n"), 1):
        yield number, line.strip()
