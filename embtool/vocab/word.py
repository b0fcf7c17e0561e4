"""A word that was found, and what to say of one that has no row."""

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from embtool.errors import TokenError
from embtool.vocab.display import shown
from embtool.vocab.han import other_spellings

_SUGGESTIONS = 4
# Characters of a word, and pieces, that a message shows.
_SHOWN = 60
_PIECES = 12


class Word(NamedTuple):
    """A typed word that was found.

    form: bare, spaced, id or raw; ids: one, or several where pool names how their rows become
    one; tokens: what the ids look like, None for a row that no token names.
    """

    text: str
    form: str
    ids: tuple[int, ...]
    tokens: tuple[str | None, ...]
    pool: str | None = None


class Speller(Protocol):
    """What words need to know of a vocabulary."""

    @property
    def unknown_id(self) -> int | None:
        """The id that stands for an unknown text."""
        ...

    def token(self, token_id: int) -> str | None:
        """What the token looks like."""
        ...

    def id_of(self, raw: str) -> int | None:
        """The id of a spelling."""
        ...

    @property
    def limits(self) -> str | None:
        """Why texts that are several tokens have no ids here, if they have none."""
        ...

    def form_ids(self, body: str, form: str) -> list[int] | None:
        """The ids of a word in a form; None for `spaced` where the vocabulary has one form."""
        ...


def in_form(speller: Speller, text: str, body: str, form: str) -> Word:
    """The word in a form, whatever its ids are; bare where the vocabulary has one form."""
    ids = speller.form_ids(body, form)
    if ids is None:
        form = "bare"
        ids = speller.form_ids(body, form) or []
    return Word(text, form, tuple(ids), tuple(speller.token(token_id) for token_id in ids))


def is_single(speller: Speller, word: Word) -> bool:
    """Whether the word is one token, and a known one."""
    return len(word.ids) == 1 and not is_unknown(speller, word)


def is_unknown(speller: Speller, word: Word) -> bool:
    """Whether a part of the word is unknown; the unknown token itself may be typed."""
    unknown = speller.unknown_id
    if unknown is None or unknown not in word.ids:
        return False
    return speller.id_of(shown(word.text.lstrip(" "))) != unknown


def check_rows(ids: Sequence[int], names: Sequence[str | None], rows: int | None) -> None:
    """TokenError for the first id that is past the table's rows; names are the tokens'."""
    for token_id, name in zip(ids, names, strict=True):
        if rows is not None and token_id >= rows:
            token = "" if name is None else f" ({name})"
            raise TokenError(
                f"id {token_id}{token} has no row: the table has {rows} rows",
                f"name a row from id:0 to id:{rows - 1}",
            )


def no_row(speller: Speller, word: Word, body: str, rows: int | None) -> TokenError:
    """Why a word has no row of its own, with the nearest spellings that have one."""
    name = _cut(shown(word.text))
    if not word.ids:
        message = f"{name} has no token" + (f": {speller.limits}" if speller.limits else "")
    elif is_unknown(speller, word):
        unknown = speller.token(speller.unknown_id or 0)
        message = f"{name} is unknown to the vocabulary: it becomes {unknown}"
    else:
        pieces = "|".join(token or "" for token in word.tokens[:_PIECES])
        more = "|…" if len(word.tokens) > _PIECES else ""
        message = f"{name} is {len(word.ids)} tokens: {pieces}{more}"
    near = ", ".join(_nearest(speller, body, rows))
    ways = [f"type {near}"] if near else []
    if len(word.ids) > 1 and not is_unknown(speller, word):
        ways.append("take the mean of its tokens with --pool mean")
    ways = ways or ["look for another with embtool find", "name a row with id:N"]
    return TokenError(message, ", or ".join(ways))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _nearest(speller: Speller, body: str, rows: int | None) -> list[str]:
    """Spellings with a row, as they are typed: the word in another form, case, width or script."""
    near: dict[int, str] = {}
    plain = unicodedata.normalize("NFKC", body)
    cases = [body, body.lower(), body.capitalize(), body.upper(), plain, plain.lower()]
    for variant in dict.fromkeys(cases + other_spellings(body)) if len(body) <= _SHOWN else ():
        for form in ("bare", "spaced"):
            word = in_form(speller, variant, variant, form)
            if is_single(speller, word) and (rows is None or word.ids[0] < rows):
                bare = word.form == "bare"
                near.setdefault(word.ids[0], shown(variant) if bare else f'" {shown(variant)}"')
    spelled = speller.id_of(shown(body))
    if spelled is not None and (rows is None or spelled < rows):
        near.setdefault(spelled, f"raw:{shown(body)}")
    return list(near.values())[:_SUGGESTIONS]
