"""Configs that lie: what is no number, no object or too deep is left out, and nothing crashes."""

import pytest
from config_builders import REAL, read

from embtool.config import read_config
from embtool.errors import FormatError


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("32000", "'32000'"),
        (-1, "-1"),
        (0, "0"),
        (True, "True"),
        (32000.0, "32000.0"),
        (float("nan"), "nan"),
        (10**30, "past 2**40"),
        (10**5000, "past 2**40"),
        ([32000], "a list"),
        ({"a": 1}, "an object"),
        ("\x1b[31m\n" + "x" * 90, repr("\x1b[31m\n" + "x" * 34)),
    ],
    ids=[
        "text",
        "negative",
        "zero",
        "bool",
        "float",
        "nan",
        "large",
        "huge",
        "list",
        "object",
        "long",
    ],
)
def test_a_size_that_is_no_number_is_named_and_left_out(value, shown):
    config = read(vocab_size=value, hidden_size=4096)
    assert (config.vocab_size, config.hidden_size) == (None, 4096)
    assert config.notes == (f"config.json: vocab_size is {shown}, not a usable number",)


@pytest.mark.parametrize("value", ["x", -1, True, 1.5, None, [], {}, 10**40, float("inf")])
def test_no_value_of_any_key_is_a_crash(value):
    sample = next(f for f in REAL if f["model"] == "ibm-granite/granite-3.1-1b-a400m-instruct")
    for key in (*sample["config"], "text_config", "quantization_config", "architectures"):
        read_config(sample["config"] | {key: value}, "config.json")


@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_what_is_no_object_is_no_config(value):
    with pytest.raises(FormatError) as error:
        read_config(value, "config.json")
    assert error.value.message == f"config.json holds {type(value).__name__}, not a JSON object"


def test_sections_nest_only_so_deep():
    deep = {"vocab_size": 5, "hidden_size": 5}
    for _ in range(200):
        deep = {"text_config": deep}
    assert read_config(deep, "config.json").vocab_size is None
