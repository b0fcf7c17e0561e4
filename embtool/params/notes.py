"""The sentences of `params`: where claims and tables disagree, and what else one must know."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from embtool.config import Config
from embtool.params.records import TableFacts
from embtool.tensors import Tables

LISTED = 4


@dataclass(frozen=True, slots=True)
class Subject:
    """What the sentences are about; `stored` is False for tables that only a config promises."""

    config: Config
    tables: Sequence[TableFacts]
    stored: bool
    equal: bool | None
    sampled: bool
    found: Tables | None


def about_model(subject: Subject, tokens: int | None, ids_without_row: int) -> Iterator[str]:
    """All sentences about one model's tables, the total of its parameters left out."""
    rows = subject.tables[0].rows if subject.tables else None
    yield from about_sizes(subject)
    yield from about_tokens(rows, tokens, ids_without_row)
    yield from about_tying(subject)
    yield from about_use(subject)


def about_sizes(subject: Subject) -> Iterator[str]:
    """Rows, widths and precision: config against table, table against table."""
    config, tables, file = subject.config, subject.tables, subject.config.file
    if not tables:
        yield f"{file or 'no config'} does not say how large the table is"
        return
    table = tables[0]
    if not subject.stored:
        yield f"from {file} alone: the rows of the checkpoint are not checked"
    if config.vocab_size not in (None, table.rows):
        yield f"{file} says vocab_size {config.vocab_size:,}, the table has {table.rows:,} rows"
    if config.table_width not in (None, table.d_model):
        yield f"{file} says width {config.table_width:,}, the table is {table.d_model:,} wide"
    if config.hidden_size not in (None, table.d_model):
        yield f"the table is {table.d_model:,} wide, the model {config.hidden_size:,}"
    for other in tables[1:]:
        if (other.rows, other.d_model) != (table.rows, table.d_model):
            yield (
                f"the output table is {other.rows:,} x {other.d_model:,}, "
                f"the input table {table.rows:,} x {table.d_model:,}"
            )
    plain = config.dtype in ("F64", "F32", "F16", "BF16") and not config.quantization
    if plain and table.dtype not in (None, config.dtype):
        yield f"{file} says {config.dtype}, the table is stored as {table.dtype}"


def about_tokens(rows: int | None, tokens: int | None, ids_without_row: int) -> Iterator[str]:
    """Rows without a token, and ids without a row."""
    if rows is None:
        return
    if tokens is not None and tokens < rows:
        yield f"{_many(rows - tokens, 'row')} without a token: {rows:,} rows, {tokens:,} tokens"
    if ids_without_row:
        yield f"{_many(ids_without_row, 'id')} of the tokenizer without a row: {rows:,} rows"


def about_tying(subject: Subject) -> Iterator[str]:
    """What decides on tied or not, and the claims against it."""
    config, tables = subject.config, subject.tables
    if subject.found is not None and subject.found.only_head:
        yield f"only the head is stored ({subject.found.output}): it is the input table too"
    elif subject.stored and len(tables) == 2:
        yield from _both_stored(subject)
    elif subject.stored and config.tied is False:
        yield f"{config.file} says untied ({config.tied_from}), but no output table is stored"
    elif (
        config.tied is not None and config.tied_from and config.tied_from.startswith("the default")
    ):
        word = "tied" if config.tied else "untied"
        yield f"{word} by {config.tied_from}: {config.file} does not say"


def _both_stored(subject: Subject) -> Iterator[str]:
    config, (table, head) = subject.config, subject.tables
    if subject.sampled:
        yield "tied or not is sampled: only some rows of the two tables were compared"
    if subject.equal:
        yield f"{head.tensor} repeats {table.tensor}: stored twice, counted once"
    if subject.equal is False and config.tied:
        yield f"{config.file} says tied ({config.tied_from}), but {head.tensor} differs"
    if subject.equal and config.tied is False:
        yield f"{config.file} says untied ({config.tied_from}), but both tables are equal"


def about_use(subject: Subject) -> Iterator[str]:
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


def about_total(quantization: str | None, distinct: int, total: int | None) -> Iterator[str]:
    """Why the total is not known, or not believed."""
    if total is None and quantization:
        yield f"total parameters unknown: the weights are quantized ({quantization})"
    if total is not None and total < distinct:
        yield f"a total of {total:,} parameters is less than the tables' {distinct:,}: left out"


def about_growth(
    vocab_size: int, tokens: int, rows: int, d_model: int, tied: bool | None
) -> Iterator[str]:
    """What added tokens and padding cost."""
    yield from about_tokens(rows, tokens, 0)
    added = (rows - vocab_size) * d_model
    if not added:
        return
    cost = f"{_many(rows - vocab_size, 'more row')} of {d_model:,}: {added:,} parameters"
    if tied:
        yield f"{cost}, once, as the tables are tied"
    elif tied is False:
        yield f"{cost} in each table, {2 * added:,} in both"
    else:
        yield f"{cost} where the tables are tied, {2 * added:,} where they are not"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
