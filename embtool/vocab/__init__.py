"""The vocabulary: id <-> token, what a token looks like, typed word -> ids.

    vocabulary = open_vocabulary(key, "tokenizer.json", read)
    vocabulary = open_gguf_vocabulary(key, "model.gguf", metadata)
    vocabulary = open_files_vocabulary(key, "tokenizer.model", files)    # of several files
    vocabulary = no_vocabulary()                      # no tokenizer: `id:N` still works

`key` is the identity that derived files are kept under (`Source.key`), `name` the file that
errors name, `read()` gives its bytes, `metadata()` its mapping. Nothing is read before the first
question, and nothing but the kept index where that knows the answer.

    class Vocabulary
      size: int                       max id + 1 (0 without a tokenizer)
      count: int                      distinct ids
      kind: str                       bpe-bytes | sentencepiece | wordpiece | words | pieces | none
      unknown_id: int | None          what [UNK] is, if there is such a token
      special_ids: frozenset[int]     tokens that stand for no text (<bos>, [CLS])
      token(id) -> str | None         decoded and escaped; None: no token has that id
      raw(id) -> str | None           the vocabulary's own spelling, escaped
      text(id) -> bytes | None        decoded, not escaped
      id_of(raw) -> int | None        the id of a spelling, as `raw` shows it or as it is
      displayed() -> list[str]        token(id) of ids 0 .. size - 1, "" where there is none
      encode(text, special=False) -> list[int]
      text_ids(text, special=False, rows=None) -> list[int]     a TEXT: also `id:N`, checked
      word(text, form="auto", pool=None, rows=None) -> Word     a WORD: TokenError, UsageError
      single(text, form="auto") -> Word | None                  for thousands: no reason why not
      words_together(texts, form="auto", pool=None, rows=None) -> list[Word]
      find(pattern, regex=False, ignore_case=False) -> Iterator[int]      ids, ascending
      reachable() -> bool array (size,)     whether a token's own text encodes back to it alone

    class Word (frozen): text, form, ids, tokens, pool
      form is bare | spaced | id | raw; pool is None for one id; a token is None for a row that
      no token names.

`rows` is the table's number of rows: an id at or past it is a TokenError. `form` is auto, bare or
spaced; `pool` any name (mean) or None: several ids are then an answer and not an error.
UsageError (a ValueError) is wrong usage: `--form bare` with a typed leading space, a bad regular
expression, an unknown form.

`escape(bytes) -> str` and `unescape(str) -> bytes` are the escapes of every token shown;
`script(text) -> str | None` is the script of a text's first letter.
"""

from embtool.vocab.display import escape, unescape
from embtool.vocab.opening import (
    no_vocabulary,
    open_gguf_vocabulary,
    open_vocabulary,
    open_words,
)
from embtool.vocab.opening_files import open_files_vocabulary
from embtool.vocab.scripts import script
from embtool.vocab.vocabulary import Vocabulary
from embtool.vocab.word import Word
from embtool.vocab.words import UsageError

__all__ = [
    "UsageError",
    "Vocabulary",
    "Word",
    "escape",
    "no_vocabulary",
    "open_files_vocabulary",
    "open_gguf_vocabulary",
    "open_vocabulary",
    "open_words",
    "script",
    "unescape",
]
