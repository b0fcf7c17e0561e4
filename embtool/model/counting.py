"""`params` of a model: what its headers say, checked against its config and its tokenizer."""

from collections.abc import Sequence

import numpy as np

from embtool.catalogue import lookup
from embtool.errors import EmbtoolError, FormatError, SourceError, UnsupportedError
from embtool.header import TensorInfo
from embtool.model import Model
from embtool.model.checkpoint import read_all
from embtool.model.choosing import passed_over
from embtool.params import PRECISIONS, Params, TableFacts, count, index_total, stored_total
from embtool.table import PackedTable, Table
from embtool.tensors import Tables

#: Bytes compared at a time, and rows compared where the tables are far away.
_STEP = 8 << 20
_SAMPLES = 4


def model_params(model: Model, precisions: Sequence[str] = PRECISIONS) -> Params:
    """Count a model's tables; no tokenizer is fetched for it.

    Where no checkpoint can be read, the config's claims are counted, and a note says why.

    Raises:
        EmbtoolError: there is neither a checkpoint nor a config that names its sizes, or the file
            that MODEL names is not there.
    """
    try:
        tables = model.tables
        infos = _infos(model, tables)
    except EmbtoolError as error:
        return _from_config(model, error, precisions)
    facts, unread = _facts(model, infos)
    equal, sampled = (None, False) if unread else _compare(model, infos, facts)
    tokens, beyond = _tokens(model, facts[0].rows)
    total = _total(model, facts)
    return count(
        model.ref,
        model.source.kind,
        model.config,
        facts,
        revision=model.source.revision,
        tokens=tokens,
        ids_without_row=beyond,
        equal=equal,
        sampled=sampled,
        total_params=total,
        found=tables,
        precisions=precisions,
        notes=(*unread, *_notes(model)),
    )


def _from_config(model: Model, error: EmbtoolError, precisions: Sequence[str]) -> Params:
    config = model.config
    named = model.source.checkpoint is not None and isinstance(error, SourceError)
    if named or isinstance(error, FormatError) or config is None or config.vocab_size is None:
        raise error
    tokens, beyond = _tokens(model, config.rows or config.vocab_size)
    return count(
        model.ref,
        model.source.kind,
        config,
        (),
        revision=model.source.revision,
        tokens=tokens,
        ids_without_row=beyond,
        total_params=model.source.total_params(),
        precisions=precisions,
        notes=(error.message.removeprefix(f"{model.ref}: "),),
    )


def _infos(model: Model, tables: Tables) -> dict[str, list[TensorInfo]]:
    """The tensors of each role; a split vocabulary has two.

    Raises:
        SourceError: there is no input table.
    """
    names = {"input": [tables.input, tables.extra]}
    if tables.output != tables.input:
        names["output"] = [tables.output]
    found = {
        role: [info for name in parts if name and (info := model.checkpoint.tensors.get(name))]
        for role, parts in names.items()
    }
    if not found["input"]:
        raise model.no_table("input")
    return {role: parts for role, parts in found.items() if parts}


def _facts(
    model: Model, infos: dict[str, list[TensorInfo]]
) -> tuple[list[TableFacts], tuple[str, ...]]:
    """The tables of each role; and why one is counted without being understood, if one is."""
    facts, unread = [], []
    for role, parts in infos.items():
        try:
            facts.append(_decoded_facts(model, role, parts))
        except UnsupportedError as error:
            facts.append(_claimed_facts(model, role, parts, error))
            unread.append(error.message.removeprefix(f"{model.ref}: "))
    return facts, tuple(unread)


def _decoded_facts(model: Model, role: str, parts: Sequence[TensorInfo]) -> TableFacts:
    """What the tables say: numbers, and the bytes that they are stored in."""
    tables = [model.tensor(info.name) for info in parts]
    first = tables[0]
    rows = sum(table.shape[0] for table in tables)
    params = sum(table.params for table in tables)
    nbytes = sum(table.nbytes for table in tables)
    width = first.shape[1]
    return TableFacts(role, first.tensor, first.file, first.dtype, rows, width, params, nbytes)


def _claimed_facts(
    model: Model, role: str, parts: Sequence[TensorInfo], error: UnsupportedError
) -> TableFacts:
    """Of a table that is not understood the config's width; without one the error is raised."""
    first, config = parts[0], model.config
    if config is None or config.table_width is None:
        raise error
    rows = sum(info.shape[0] for info in parts)
    width = config.table_width
    nbytes = sum(info.stop - info.start for info in parts)
    file = model.checkpoint.files[first.name]
    return TableFacts(role, first.name, file, first.dtype, rows, width, rows * width, nbytes)


def _compare(
    model: Model, infos: dict[str, list[TensorInfo]], facts: Sequence[TableFacts]
) -> tuple[bool | None, bool]:
    """Whether two stored tables are equal, and whether only some rows were compared."""
    if "output" not in infos:
        return None, False
    if (
        len(infos["input"]) > 1
        or len({(fact.rows, fact.d_model, fact.dtype) for fact in facts}) > 1
    ):
        return False, False
    first, second = (model.tensor(infos[role][0].name) for role in ("input", "output"))
    if first.is_cut or second.is_cut:
        return None, False
    here = first.is_here and second.is_here
    plain = not isinstance(first, PackedTable) and not isinstance(second, PackedTable)
    if here and plain:
        return _same_bytes(first, second), False
    rows = first.shape[0]
    ids = [rows * k // _SAMPLES + rows // (2 * _SAMPLES) for k in range(_SAMPLES)]
    if plain:
        return bool(np.array_equal(first.stored_rows(ids), second.stored_rows(ids))), True
    same = np.array_equal(first.rows(ids), second.rows(ids), equal_nan=True)
    return same and (not here or _same_rows(first, second)), not here


def _same_rows(first: Table, second: Table) -> bool:
    pairs = zip(first.blocks(), second.blocks(), strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for (_, a), (_, b) in pairs)


def _same_bytes(first: Table, second: Table) -> bool:
    a, b = first.stored.reshape(-1), second.stored.reshape(-1)
    return all(
        np.array_equal(a[start : start + _STEP], b[start : start + _STEP])
        for start in range(0, len(a), _STEP)
    )


def _tokens(model: Model, rows: int) -> tuple[int | None, int]:
    """Ids that have a row, and ids that have none; without a tokenizer at hand, the catalogue's."""
    vocabulary = model.vocabulary_at_hand
    if vocabulary is None or vocabulary.kind == "none":
        entry = lookup(model.source.repo) if model.source.repo else None
        return (None if entry is None or entry.tokens is None else min(entry.tokens, rows)), 0
    beyond = sum(vocabulary.raw(token_id) is not None for token_id in range(rows, vocabulary.size))
    return vocabulary.count - beyond, beyond


def _notes(model: Model) -> tuple[str, ...]:
    """What is wrong with the checkpoint's files, and which others stand beside them."""
    checkpoint = model.checkpoint
    used = {checkpoint.file, *checkpoint.files.values()}
    beside = passed_over(model.source, used)
    return checkpoint.notes if beside is None else (*checkpoint.notes, beside)


def _total(model: Model, facts: Sequence[TableFacts]) -> int | None:
    """The Hub's own count, else that of the headers if all can be read, else the index's."""
    published = model.source.total_params()
    if published is not None:
        return published
    checkpoint = model.checkpoint
    infos = read_all(model.source, checkpoint)
    if infos is not None:
        return stored_total(infos)
    return index_total(
        checkpoint.total_params, checkpoint.total_nbytes, model.config, facts[0].params
    )
