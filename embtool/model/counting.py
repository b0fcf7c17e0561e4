"""`params` of a model: what its headers say, checked against its config and its tokenizer."""

from collections.abc import Sequence

import numpy as np

from embtool.errors import EmbtoolError
from embtool.model import Model
from embtool.params import PRECISIONS, Params, TableFacts, count
from embtool.table import Table

#: Bytes compared at a time, and rows compared where the tables are far away.
_STEP = 8 << 20
_SAMPLES = 4


def model_params(model: Model, precisions: Sequence[str] = PRECISIONS) -> Params:
    """Count a model's table; no tokenizer is fetched for it.

    Raises:
        EmbtoolError: neither a checkpoint nor a config can be read.
    """
    tables = _tables(model)
    equal, sampled = _compare(tables)
    tokens, beyond = _tokens(model, tables[0][1].shape[0])
    return count(
        model.ref,
        model.source.kind,
        model.config,
        [_facts(role, table) for role, table in tables],
        revision=model.source.revision,
        tokens=tokens,
        ids_without_row=beyond,
        equal=equal,
        sampled=sampled,
        total_params=_total(model),
        precisions=precisions,
        notes=model.notes,
    )


def _tables(model: Model) -> list[tuple[str, Table]]:
    roles = [("input", model.table("input"))]
    if model.tables.output is not None and model.tables.output != model.tables.input:
        roles.append(("output", model.table("output")))
    return roles


def _facts(role: str, table: Table) -> TableFacts:
    rows, d_model = table.shape
    return TableFacts(
        role, table.tensor, table.file, table.dtype, rows, d_model, rows * d_model, table.nbytes
    )


def _compare(tables: Sequence[tuple[str, Table]]) -> tuple[bool | None, bool]:
    """Whether two stored tables are equal, and whether only some rows were compared."""
    if len(tables) < 2:
        return None, False
    first, second = tables[0][1], tables[1][1]
    if first.shape != second.shape or first.dtype != second.dtype:
        return False, False
    if first.is_here and second.is_here:
        return _same_bytes(first, second), False
    rows = first.shape[0]
    ids = [rows * k // _SAMPLES + rows // (2 * _SAMPLES) for k in range(_SAMPLES)]
    return bool(np.array_equal(first.stored_rows(ids), second.stored_rows(ids))), True


def _same_bytes(first: Table, second: Table) -> bool:
    a, b = first.stored.reshape(-1), second.stored.reshape(-1)
    return all(
        np.array_equal(a[start : start + _STEP], b[start : start + _STEP])
        for start in range(0, len(a), _STEP)
    )


def _tokens(model: Model, rows: int) -> tuple[int | None, int]:
    """Ids that have a row, and ids that have none; None where no tokenizer is at hand."""
    vocabulary = model.local_vocabulary
    if vocabulary is None or vocabulary.kind == "none":
        return None, 0
    beyond = vocabulary.count_from(rows)
    return vocabulary.count - beyond, beyond


def _total(model: Model) -> int | None:
    """All numbers stored, from the headers where they are all here; packed ones are none."""
    checkpoint = model.checkpoint
    infos = [info for info in checkpoint.tensors.values() if info is not None]
    if not checkpoint.complete or len(infos) < len(checkpoint.tensors):
        return checkpoint.total_params
    return sum(int(np.prod(info.shape, dtype=object)) for info in infos)
