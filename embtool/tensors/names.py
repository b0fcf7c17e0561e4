"""What a tensor's name says: a role, a place in the model, a way of packing."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from embtool.config import Config

SUFFIXES = (".weight", ".weight_packed", ".qweight")

INPUT = re.compile(
    r"(^|\.)(shared|embed_tokens|embed_in|wte|word_embeddings?|tok_embeddings|tokens_embed"
    r"|token_embd|(text_)?token_embeddings?|in_out_embed|input_embedding|input_embeds_layer)"
    r"(\.embeddings?)?$"
)
OUTPUT = re.compile(
    r"(^|\.)((generator_)?lm_head|embed_out|proj_out|output_projection|output_layer"
    r"|vocab_projector|lm_loss|word_embeddings_for_head|pred_layer\.proj"
    r"|lm_head\.(decoder|linear|out_proj)|predictions\.decoder)$"
)
# Words that name other things too: they count only where nothing has a name from above.
VAGUE_INPUT = re.compile(r"(^|\.)embed(dings?)?$|^(transformer\.)?w$")
VAGUE_OUTPUT = re.compile(r"(^|\.)(output|head|decoder|transformer\.ff_out)$")
# The heads that no other kind of model has, so that one can stand for a table that is not stored.
ONLY_HEAD = re.compile(r"(^|\.)(lm_head|embed_out|predictions\.decoder|lm_head\.decoder)$")
EXTRA = re.compile(r"(^|\.)(new|additional)_embedding$")
NORM = re.compile(
    r"(^|\.)(embeddings\.(LayerNorm|layer_norm|norm)|word_embeddings_layernorm"
    r"|layernorm_embedding|token_embd_norm)\.(weight|gamma)$"
)

# What a training or serving framework put before a whole model's names.
WRAPPER = re.compile(r"^((module|_orig_mod|base_model\.model|0\.auto_model)\.)+")
PER_LAYER = re.compile(r"(embed_tokens_per_layer|per_layer_token_embd)$")
NUMBERED = re.compile(r"\.(\d+)\.")
FURTHER = re.compile(r"(^|\.)mtp[._]")
ELSEWHERE = re.compile(
    r"(^|[._])(vision|image|img|video|audio|speech|talker|depth|dit|protein|patcher|patch|qformer"
    r"|vqmodel|quantize|mel|codec|t2u|hash|positions?|pos|type|segment|relative|attention)[._]"
    r"|(^|\.)visual\."
)
TEXT = re.compile(r"(^|[._])(text|language|llm|thinker)[._]")

# Where models keep their tables, and what they call them: the likeliest first.
INNER = ("model.language_model", "language_model.model", "language_model", "text_model.model")
PLAIN = ("model", "", "transformer", "backbone", "model.transformer", "model.decoder", "decoder")
OUTER = ("gpt_neox", "embeddings", "bert.embeddings", "roberta.embeddings", "model.model")
LEAVES = (
    "embed_tokens",
    "word_embeddings",
    "wte",
    "tok_embeddings",
    "embeddings",
    "shared",
    "embed_in",
    "embedding.word_embeddings",
    "embedding",
    "embed",
    "token_embeddings",
)
HEADS = (
    "lm_head",
    "language_model.lm_head",
    "model.lm_head",
    "embed_out",
    "output",
    "head",
    "proj_out",
    "transformer.output_layer",
    "output_layer",
    "lm_head.decoder",
    "cls.predictions.decoder",
    "text_model.lm_head",
    "model.transformer.ff_out",
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Exact names to look for, the likeliest first."""

    input: tuple[str, ...]
    output: tuple[str, ...]


def stem(name: str) -> str | None:
    """A tensor's name without what says that it is a weight; None for biases, scales and such."""
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name if name.rpartition(".")[2] in ("embedding", "embeddings") else None


def scheme(tensor: str, names: Iterable[str]) -> str | None:
    """How a table is packed, judged by the names beside it; None: plain numbers.

    "mlx" (`.scales`), "gptq" (`.qweight`; AWQ too), "compressed-tensors" (`.weight_packed`),
    "bitsandbytes" (`.weight.absmax`), "scaled" (`.weight_scale`, `.weight_scale_inv`). A packed
    table is not as wide as its last dimension says.
    """
    if tensor.endswith(".qweight"):
        return "gptq"
    if tensor.endswith(".weight_packed"):
        return "compressed-tensors"
    start = stem(tensor) or tensor
    beside = {
        f"{start}.scales": "mlx",
        f"{start}.weight.absmax": "bitsandbytes",
        f"{start}.weight_scale": "scaled",
        f"{start}.weight_scale_inv": "scaled",
    }
    return next((beside[name] for name in names if name in beside), None)


def wanted_names(config: Config | None) -> Wanted:
    """Likely exact names of both tables, for looking into a fragment of a long index."""
    nested = config is not None and config.path != ""
    places = (*INNER, *PLAIN, *OUTER) if nested else (*PLAIN, *INNER, *OUTER)
    inputs = [".".join(filter(None, (place, leaf))) for leaf in LEAVES for place in places]
    return Wanted(
        tuple(f"{name}{suffix}" for suffix in SUFFIXES for name in inputs),
        tuple(f"{name}{suffix}" for suffix in SUFFIXES for name in HEADS),
    )


def role(place: str | None) -> str | None:
    """ "input" or "output" where a name says so; `place` is a tensor's stem."""
    if place is None:
        return None
    place = WRAPPER.sub("", place)
    if INPUT.search(place) or PER_LAYER.search(place):
        return "input"
    numbered = NUMBERED.search(f"{place}.")
    if OUTPUT.search(place) or VAGUE_OUTPUT.search(place):
        # Every layer has an output; only a head there is worth a word.
        return "output" if place.endswith("head") or not numbered else None
    return "input" if VAGUE_INPUT.search(place) and not numbered else None


def misplaced(name: str, config: Config) -> str | None:
    """Why a tensor with a table's name is no table of the model, or None."""
    if PER_LAYER.search(stem(name) or ""):
        return "holds numbers for each layer, not the model's width"
    if FURTHER.search(name):
        return "belongs to the layers that predict further tokens"
    layer = NUMBERED.search(name)
    if layer and config.num_layers is not None and int(layer[1]) >= config.num_layers:
        return f"is a copy in layer {layer[1]}, past the model's {config.num_layers}"
    if layer:
        return f"stands inside layer {layer[1]}"
    other = ELSEWHERE.search(name)
    return f"belongs to another part ({other[0].strip('._')})" if other else None
