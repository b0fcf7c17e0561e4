"""Tied or not: what a config says, what its type defaults to, and what stays open."""

import pytest
from config_builders import read


@pytest.mark.format(
    "Config",
    kind="no `tie_word_embeddings`",
    model="openai-community/gpt2, bigscience/bloom, google/gemma-2b",
    does="the default of the model type, and a note that only the default is known",
)
@pytest.mark.parametrize(
    ("claims", "tied", "whence"),
    [
        ({"model_type": "gemma"}, True, "the default of gemma"),
        ({"model_type": "llama"}, False, "the default of llama"),
        ({"model_type": "llama", "tie_word_embeddings": True}, True, "tie_word_embeddings"),
        ({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}, True, "the default of gpt2"),
        ({"model_type": "bert", "architectures": ["BertModel"]}, None, None),
        ({"model_type": "a new one"}, None, None),
        ({}, None, None),
    ],
)
def test_tied_is_what_the_config_says_or_its_type_defaults_to(claims, tied, whence):
    config = read(**claims)
    assert (config.tied, config.tied_from, config.notes) == (tied, whence, ())


@pytest.mark.format(
    "Config",
    kind="a default of tying that changed between releases of transformers",
    model="llava, google/mt5-small",
    does="left open, with a note",
)
def test_a_default_that_changed_between_releases_is_no_default():
    config = read(model_type="mt5")
    assert config.tied is None
    assert config.notes == (
        "config.json does not say whether the tables are tied, and the default of mt5 changed "
        "between releases 4 and 5 of transformers",
    )


def test_a_config_that_contradicts_itself_on_tying_says_nothing():
    config = read(tie_word_embeddings=True, text_config={"tie_word_embeddings": False})
    assert config.tied is None
    assert config.notes == (
        "config.json contradicts itself on tying: text_config.tie_word_embeddings is false and "
        "tie_word_embeddings is not",
    )
