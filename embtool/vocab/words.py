"""A typed word -> the ids of its rows: forms, pieces, and what to say where it has no row."""

import re
from collections.abc import Sequence

from embtool.errors import TokenError
from embtool.vocab.display import shown
from embtool.vocab.scripts import bare_first
from embtool.vocab.word import Speller, Word, check_rows, in_form, is_single, is_unknown, no_row

_ID = r"id:([0-9]+)"
# Thousands of digits are more than int() takes.
_DIGITS = 18
_AUTO = {True: ("bare", "spaced"), False: ("spaced", "bare")}


class UsageError(ValueError):
    """A question that contradicts itself: a person's mistake, and no word's."""


def row_named(text: str) -> int | None:
    """The row that a text of exactly `id:` and digits names."""
    match = re.fullmatch(_ID, text) if text.startswith("id:") else None
    if match is None:
        return None
    digits = match[1].lstrip("0")
    if len(digits) > _DIGITS:
        raise TokenError(f"{text[:40]}… is past any table's rows", "name a row that there is")
    return int(digits or "0")


def resolve(
    speller: Speller,
    text: str,
    form: str = "auto",
    pool: str | None = None,
    rows: int | None = None,
) -> Word:
    """The row of a typed word, or with `pool` the rows of its pieces.

    form: auto, bare or spaced; rows: how many the table has. Raises UsageError for a leading
    space with the form bare, TokenError for a word that is unknown or several tokens, and for
    an id without a row.
    """
    word = single(speller, text, form)
    if word is not None:
        return _with_rows(word, rows)
    body, order = _typed(text, form)
    found = [in_form(speller, text, body, each) for each in order]
    known = [word for word in found if word.ids and not is_unknown(speller, word)]
    if pool is not None and known:
        first = known[0]
        return _with_rows(Word(text, first.form, first.ids, first.tokens, pool), rows)
    raise no_row(speller, (known or found)[0], body, rows)


def single(speller: Speller, text: str, form: str) -> Word | None:
    """The row of a typed word that is one token; None where it is none, several or unknown.

    Raises UsageError, and TokenError for an empty word and for a spelling that is no token's.
    """
    named = _named(speller, text)
    if named is not None:
        return named
    body, order = _typed(text, form)
    found = (in_form(speller, text, body, each) for each in order)
    return next((word for word in found if is_single(speller, word)), None)


def resolve_together(
    speller: Speller,
    texts: Sequence[str],
    form: str = "auto",
    pool: str | None = None,
    rows: int | None = None,
) -> list[Word]:
    """The rows of words that belong together, as those of an analogy do.

    With `auto` they take the first form under which one form serves all, in the order of the
    first of them; where there is none, each its own. Words named by id or by spelling do not
    count. Raises as `resolve` does.
    """
    forms_of = dict.fromkeys(texts, form)
    if form == "auto":
        typed = {text: _typed(text, form) for text in texts if _named(speller, text) is None}
        for each in next((order for _, order in typed.values()), ()):
            if all(each in order for _, order in typed.values()) and all(
                is_single(speller, in_form(speller, text, body, each))
                for text, (body, _) in typed.items()
            ):
                # a typed leading space says spaced by itself
                forms_of = {text: "auto" if text.startswith(" ") else each for text in texts}
                break
    return [resolve(speller, text, forms_of[text], pool, rows) for text in texts]


def _named(speller: Speller, text: str) -> Word | None:
    """The row that `id:9886` or `raw:##ing` names; None for a word.

    A spelling is taken as `raw` shows it, escapes and all, else as it is.
    """
    token_id = row_named(text)
    if token_id is not None:
        return Word(text, "id", (token_id,), (speller.token(token_id),))
    if not text.startswith("raw:"):
        return None
    raw = text.removeprefix("raw:")
    found = speller.id_of(raw)
    if found is None:
        raise TokenError(
            f"no token is spelled {shown(raw)}",
            f"look for tokens by a part of them: embtool find -- {shown(raw)[:20]}",
        )
    return Word(text, "raw", (found,), (speller.token(found),))


def _typed(text: str, form: str) -> tuple[str, tuple[str, ...]]:
    """The word without leading spaces, and the forms to try, in order.

    A word of spaces alone is taken as it stands.
    """
    if form not in ("auto", "bare", "spaced"):
        raise UsageError(f"no form {form}: auto, bare or spaced")
    body = text.lstrip(" ")
    if not text:
        raise TokenError("an empty word has no row", "type a word, or name a row with id:N")
    if body == text:
        return body, _AUTO[bare_first(body)] if form == "auto" else (form,)
    if form == "bare":
        raise UsageError(f'the leading space of "{shown(text)}" means spaced, the form says bare')
    return body or text[1:], ("spaced",)


def _with_rows(word: Word, rows: int | None) -> Word:
    check_rows(word.ids, word.tokens, rows)
    return word
