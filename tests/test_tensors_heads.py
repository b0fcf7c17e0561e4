"""Which tensor is the output table, and when a head is the input table too."""

import pytest
from tensor_facts import CONFIGS, header

from embtool.config import Config
from embtool.tensors import find_tables


@pytest.mark.parametrize("head", ["lm_head.weight", "cls.predictions.decoder.weight"])
def test_only_the_head_is_stored(head):
    tensors = header(**{head: (32000, 576), "model.layers.0.mlp.up.weight": (1536, 576)})
    found = find_tables(tensors, Config("c", vocab_size=32000, table_width=576))
    assert (found.input, found.output, found.only_head) == (head, head, True)


def test_only_the_head_of_an_untied_model_is_no_table():
    tensors = header(**{"lm_head.weight": (32000, 576)})
    found = find_tables(tensors, Config("c", vocab_size=32000, table_width=576, tied=False))
    assert (found.input, found.only_head) == (None, False)


def test_tables_of_different_heights():
    tensors = header(
        **{
            "language_model.model.embed_tokens.weight": (128264, 8192),
            "language_model.lm_head.weight": (128256, 8192),
        }
    )
    found = find_tables(tensors, CONFIGS["meta-llama/Llama-3.2-90B-Vision-Instruct"])
    assert (found.input, found.output) == tuple(tensors)


@pytest.mark.format(
    "Names",
    kind="a head that is no vocabulary",
    model="OpenAssistant/oasst-rm-2.1-pythia-1.4b",
    does="no output table",
)
def test_a_reward_head_is_no_output_table():
    tensors = header(**{"model.embed_tokens.weight": (32000, 64), "lm_head.weight": (1, 64)})
    found = find_tables(tensors, None)
    assert (found.input, found.output) == ("model.embed_tokens.weight", None)


@pytest.mark.parametrize("name", ["output.weight", "decoder.weight", "head.weight"])
@pytest.mark.parametrize(("shape", "fits"), [((32000, 64), True), ((64, 64), False)])
def test_a_vague_head_counts_only_where_its_shape_fits(name, shape, fits):
    tensors = header(**{"model.embed_tokens.weight": (32000, 64), name: shape})
    assert find_tables(tensors, None).output == (name if fits else None)


@pytest.mark.format(
    "Names",
    kind="encoder and decoder with a table each",
    model="facebook/wmt19-en-de (FSMT)",
    does="the encoder's is the input, the decoder's the output",
)
def test_encoder_and_decoder_with_a_table_each():
    tensors = header(
        **{
            "model.decoder.embed_tokens.weight": (42024, 64),
            "model.encoder.embed_tokens.weight": (42024, 64),
        }
    )
    found = find_tables(tensors, None)
    assert found.input == "model.encoder.embed_tokens.weight"
    assert found.output == "model.decoder.embed_tokens.weight"


@pytest.mark.format(
    "Names",
    kind="one table under three names",
    model="google-t5/t5-small",
    does="`shared`; the copies are named",
)
def test_the_shared_table_comes_before_its_copies():
    names = ["decoder.embed_tokens", "encoder.embed_tokens", "shared"]
    found = find_tables(header(**{f"{name}.weight": (32128, 64) for name in names}), None)
    assert (found.input, found.output) == ("shared.weight", None)
    assert [other.reason for other in found.passed_over] == ["is stored beside shared.weight"] * 2
