"""Which tensors are the tables: every model class and every real header."""

import csv
import re

import pytest
from tensor_facts import CONFIGS, HEADERS, info, lines

from embtool.config import Config
from embtool.errors import FormatError
from embtool.tensors import find_tables, wanted_names

ROWS = list(csv.DictReader(lines("tensor_names.tsv"), delimiter="\t"))
# Several tables of equal right, or one whose name and shape other tensors share.
REFUSED = {
    ("bark", "shapes"): "ambiguous",
    ("bark", "names"): "ambiguous",
    ("canine", "shapes"): "ambiguous",
    ("canine", "names"): None,
    ("clvp", "names"): "ambiguous",
    ("csm", "shapes"): None,
    ("csm", "names"): None,
    ("dia", "names"): "ambiguous",
    ("neobert (remote code)", "names"): None,
}
WRAPPERS = ["", "module.", "_orig_mod.", "base_model.model.", "0.auto_model."]
# A head of this name is told by its shape alone.
VAGUE = [f"{wrapper}decoder.weight" for wrapper in WRAPPERS]


def shape_of(text):
    return tuple(int(n) for n in text.split("x")) if text else None


def listed(cell):
    return [name for name in cell.split(";") if name]


def cases(row, wrapper):
    """(names -> shapes, input, output) for each name that a checkpoint may give the tables."""
    shape = shape_of(row["input_shape"]) or (30000, 96)
    other = shape_of(row["output_shape"]) or shape
    rest = {
        "model.layers.0.self_attn.q_proj.weight": (shape[1], shape[1]),
        "encoder.layer.0.attention.output.dense.weight": (shape[1], shape[1]),
        "model.norm.weight": (shape[1],),
    }
    for match in re.finditer(r"([\w.]+)\[(\d+)x(\d+)\]", row["others"]):
        rest[match[1]] = (int(match[2]), int(match[3]))
    heads = [*([row["output"]] if row["output"] else []), *listed(row["other_outputs"]), None]
    for table in [row["input"], *listed(row["other_inputs"])]:
        for head in heads:
            if head == "model.decoder.embed_tokens.weight" and table != row["input"]:
                continue
            shapes = {wrapper + name: value for name, value in rest.items()}
            shapes[wrapper + table] = shape
            if head:
                shapes[wrapper + head] = other
            # Without a head, a decoder's own table is the output.
            decoder = f"{wrapper}model.decoder.embed_tokens.weight"
            own = decoder if table == "model.encoder.embed_tokens.weight" else None
            yield shapes, wrapper + table, wrapper + head if head else shapes.get(own) and own
        if row["same"]:
            yield shapes | {wrapper + n: shape for n in listed(row["same"])}, wrapper + table, ...


@pytest.mark.format(
    "Names",
    kind="every model type that names a table, with and without prefixes, old names and new",
    model="384 model classes, see `tests/facts/tensor_names.tsv`",
    does="finds that table and no other",
)
@pytest.mark.parametrize("known", ["shapes", "names"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model_type']}-{row['class']}")
def test_every_model_class_gives_its_own_table(row, known):
    refused = REFUSED.get((row["model_type"], known), "no")
    wrappers = WRAPPERS if known == "shapes" else WRAPPERS[:1]
    for shapes, table, head in (case for each in wrappers for case in cases(row, each)):
        tensors = {n: info(n, *s) if known == "shapes" else None for n, s in shapes.items()}
        config = config_of(row, *shapes[table])
        if refused == "ambiguous":
            with pytest.raises(FormatError, match="tensors could be the input table: "):
                find_tables(tensors, config)
            continue
        found = find_tables(tensors, config)
        assert found.input == (None if refused is None else table)
        if head is not ... and (known == "shapes" or head not in VAGUE):
            assert found.output == head


def config_of(row, rows, width):
    hidden = shape_of(row["output_shape"])
    return Config(
        "config.json",
        vocab_size=rows,
        table_width=width,
        hidden_size=hidden[1] if hidden else width,
        num_layers=4,
    )


@pytest.mark.format(
    "Names",
    kind="every header and index of a list of real ones",
    model="see `tests/facts/headers.jsonl`",
    does="finds its tables and no other",
)
@pytest.mark.parametrize("fact", HEADERS, ids=lambda fact: fact["source"].split(" ")[0][-50:])
@pytest.mark.parametrize("configured", [True, False])
def test_every_real_header_gives_its_own_tables(fact, configured):
    tensors = {
        name: value and info(name, *value[1], dtype=value[0])
        for name, value in fact["tensors"].items()
    }
    found = find_tables(tensors, CONFIGS.get(fact["model"]) if configured else None)
    assert (found.input, found.output) == (fact["input"], fact["output"])


@pytest.mark.parametrize("fact", HEADERS, ids=lambda fact: fact["source"].split(" ")[0][-50:])
def test_wanted_names_hold_those_of_the_sharded_models(fact):
    wanted = wanted_names(CONFIGS.get(fact["model"]))
    assert fact["output"] is None or fact["output"] in wanted.output
    assert fact["input"] in wanted.input or not fact["input"].endswith(".weight")


def test_wanted_names_of_a_nested_model_come_first():
    nested = wanted_names(CONFIGS["google/medgemma-27b-it"])
    assert nested.input[0] == "model.language_model.embed_tokens.weight"
    assert wanted_names(None).input[0] == "model.embed_tokens.weight"
