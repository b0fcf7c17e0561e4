"""The catalogue: every entry is well formed, and the known figures come out of it."""

import re
from datetime import date

import pytest

from embtool.catalogue import entry_params, load, lookup


def test_there_are_many_and_each_once_in_order():
    names = [entry.name.lower() for entry in load()]
    assert len(names) >= 60
    assert names == sorted(set(names))
    aliases = [entry.alias.lower() for entry in load() if entry.alias]
    assert len(set(aliases + names)) == len(aliases) + len(names)


@pytest.mark.parametrize("entry", load(), ids=lambda entry: entry.name)
def test_an_entry_is_well_formed(entry):
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", entry.name)
    assert entry.vocab_size > 1000
    assert 64 <= entry.width <= 32768
    assert entry.hidden_size != entry.width
    assert entry.rows is None or entry.rows > entry.vocab_size
    assert entry.tokens is None or entry.tokens <= (entry.rows or entry.vocab_size)
    assert entry.tied in (True, False, None)
    assert entry.dtype in ("BF16", "F16", "F32", None)
    assert isinstance(entry.date, date)
    assert entry.source
    assert "://" not in entry.source
    tables = 2 if entry.tied is False else 1
    assert entry.total_params is None or (
        entry.total_params > tables * entry.vocab_size * entry.width
    )


def test_deepseek_v3():
    entry = lookup("deepseek-ai/deepseek-v3")
    record = entry_params("deepseek-ai/deepseek-v3", entry)
    assert (record.model, record.source) == ("deepseek-ai/deepseek-v3", "catalogue")
    assert (record.vocab_size, record.d_model, record.rows) == (129280, 7168, 129280)
    assert (record.params, record.memory["bf16"]) == (926679040, 1853358080)
    assert (record.tied, record.tokens) == (False, 128815)
    assert [facts.role for facts in record.tables] == ["input", "output"]
    assert record.notes[:2] == (
        "from the catalogue alone: the rows of the checkpoint are not checked",
        "465 rows without a token: 129,280 rows, 128,815 tokens",
    )
    assert record.notes[2].startswith("as of 2026-11-29: config.json in PyPI aiconfigurator-core")


@pytest.mark.parametrize(
    ("name", "rows", "width", "tied", "tokens"),
    [
        ("gpt2", 50257, 768, True, 50257),
        ("bert-base-uncased", 30522, 768, True, None),
        ("Qwen/Qwen3-0.6B", 151936, 1024, True, 151669),
        ("Qwen/Qwen2.5-7B-Instruct", 152064, 3584, False, 151665),
        ("albert/albert-base-v1", 30000, 128, True, None),
        ("state-spaces/mamba-130m", 50280, 768, True, None),
        ("meta-llama/Llama-3.2-11B-Vision-Instruct", 128264, 4096, False, None),
        ("deepseek-ai/DeepSeek-V4-Flash", 129280, 4096, False, 129280),
    ],
)
def test_known_models(name, rows, width, tied, tokens):
    record = entry_params(name, lookup(name), precisions=("int4",))
    assert (record.rows, record.d_model, record.tied, record.tokens) == (rows, width, tied, tokens)
    assert record.memory == {"int4": rows * width // 2}


@pytest.mark.parametrize("name", ["", "nobody/nothing", "deepseek-v3", "None"])
def test_an_unknown_name_has_no_entry(name):
    assert lookup(name) is None
