"""The sentences of `params`: where claims and tables disagree, and what else one must know."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from embtool.config import Config
from embtool.params.records import TableFacts
from embtool.tensors import Tables

LISTED = 4
PLAIN = ("F64", "F32", "F16", "BF16")


@dataclass(frozen=True, slots=True)
class Subject:
    """What the sentences are about; `stored` is False for tables that only a config promises."""

    config: Config
    tables: Sequence[TableFacts]
    tied: bool | None
    tokens: int | None
    ids_without_row: int
    total_params: int | None
    stored: bool = False
    sampled: bool = False
    found: Tables | None = None

    @property
    def table(self) -> TableFacts | None:
        """The input table."""
        return self.tables[0] if self.tables else None

    @property
    def distinct(self) -> int:
        """Parameters of the tables, one that is tied counted once."""
        return sum(table.params for table in self.tables[: 1 if self.tied else 2])

    @property
    def believed_total(self) -> int | None:
        """The model's parameters, unless they are fewer than its tables'."""
        total = self.total_params
        return total if total is not None and total >= self.distinct else None


def about_model(subject: Subject) -> Iterator[str]:
    """All sentences about one model's tables."""
    yield from _about_sizes(subject)
    yield from _about_tokens(subject)
    yield from _about_tying(subject)
    yield from _about_use(subject)
    yield from _about_total(subject)


def about_growth(subject: Subject) -> Iterator[str]:
    """What added tokens and padding cost, in a table that exists nowhere yet."""
    yield from _about_tokens(subject)
    table, vocab = subject.table, subject.config.vocab_size
    if table is None or vocab is None or table.rows == vocab:
        return
    added = (table.rows - vocab) * table.d_model
    cost = f"{_many(table.rows - vocab, 'more row')} of {table.d_model:,}: {added:,} parameters"
    if subject.tied:
        yield f"{cost}, once, as the tables are tied"
    elif subject.tied is False:
        yield f"{cost} in each table, {2 * added:,} in both"
    else:
        yield f"{cost} where the tables are tied, {2 * added:,} where they are not"


def _about_sizes(subject: Subject) -> Iterator[str]:
    """Rows, widths and precision: config against table, table against table."""
    config, table, file = subject.config, subject.table, subject.config.file
    if table is None:
        yield f"{file} does not say how large the table is" if file else "no table and no config"
        return
    if not subject.stored:
        yield f"from {file} alone: the rows of the checkpoint are not checked"
    if config.vocab_size not in (None, table.rows):
        yield f"{file} says vocab_size {config.vocab_size:,}, the table has {table.rows:,} rows"
    if config.table_width not in (None, table.d_model):
        yield f"{file} says width {config.table_width:,}, the table is {table.d_model:,} wide"
    if config.hidden_size not in (None, table.d_model):
        yield f"the table is {table.d_model:,} wide, the model {config.hidden_size:,}"
    for other in subject.tables[1:]:
        if (other.rows, other.d_model) != (table.rows, table.d_model):
            yield (
                f"the output table is {other.rows:,} x {other.d_model:,}, "
                f"the input table {table.rows:,} x {table.d_model:,}"
            )
    plain = config.dtype in PLAIN and not config.quantization
    if plain and table.dtype not in (None, config.dtype):
        yield f"{file} says {config.dtype}, the table is stored as {table.dtype}"


def _about_tokens(subject: Subject) -> Iterator[str]:
    """Rows without a token, and ids without a row."""
    if subject.table is None:
        return
    rows, tokens = subject.table.rows, subject.tokens
    if tokens is not None and tokens < rows:
        yield f"{_many(rows - tokens, 'row')} without a token: {rows:,} rows, {tokens:,} tokens"
    if subject.ids_without_row:
        beyond = _many(subject.ids_without_row, "id")
        yield f"{beyond} of the tokenizer without a row: the table has {rows:,}"


def _about_tying(subject: Subject) -> Iterator[str]:
    """What decides on tied or not, and the claims against it."""
    config = subject.config
    if subject.found is not None and subject.found.only_head:
        yield f"only the head is stored ({subject.found.output}): it is the input table too"
    elif subject.stored and len(subject.tables) == 2:
        yield from _both_stored(subject)
    elif subject.stored and config.tied is False:
        yield f"{config.file} says untied ({config.tied_from}), but no output table is stored"
    elif config.tied is not None and (config.tied_from or "").startswith("the default"):
        word = "tied" if config.tied else "untied"
        yield f"{word} by {config.tied_from}: {config.file} does not say"


def _both_stored(subject: Subject) -> Iterator[str]:
    config, (table, head) = subject.config, subject.tables
    if subject.sampled:
        yield "tied or not is sampled: only some rows of the two tables were compared"
    if subject.tied:
        yield f"{head.tensor} repeats {table.tensor}: stored twice, counted once"
    if subject.tied is False and config.tied:
        yield f"{config.file} says tied ({config.tied_from}), but {head.tensor} differs"
    if subject.tied and config.tied is False:
        yield f"{config.file} says untied ({config.tied_from}), but both tables are equal"


def _about_use(subject: Subject) -> Iterator[str]:
    """What the model does with a row, and the tensors beside the two tables."""
    config, found = subject.config, subject.found
    if config.scale is not None:
        yield f"at run time the model multiplies a row by {config.scale:.6g} ({config.scale_from})"
    if found is None:
        return
    if found.norm:
        yield f"at run time a LayerNorm follows the table ({found.norm})"
    if found.extra:
        yield f"the vocabulary is split: its last rows are in {found.extra}"
    for other in found.passed_over[:LISTED]:
        yield f"passed over: {other.tensor} {other.reason}"
    if len(found.passed_over) > LISTED:
        yield f"passed over: {len(found.passed_over) - LISTED:,} more tensors"


def _about_total(subject: Subject) -> Iterator[str]:
    """Why the total is not known, or not believed."""
    total, scheme = subject.total_params, subject.config.quantization
    if total is None and scheme:
        yield f"total parameters unknown: the weights are quantized ({scheme})"
    if total is not None and subject.believed_total is None:
        yield (
            f"a total of {total:,} parameters is less than the tables' {subject.distinct:,}: "
            "left out"
        )


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
