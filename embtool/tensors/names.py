"""What a tensor's name says: a role, a place in the model, a way of packing."""

from collections.abc import Container
from typing import NamedTuple

from embtool.config import Config

SUFFIXES = (".weight", ".weight_packed", ".qweight")

# The last word of a table's stem, or the last two.
INPUT = frozenset(
    {"embed_tokens", "shared", "wte", "embed_in", "word_embeddings", "word_embedding"}
    | {"tok_embeddings", "token_embedding", "token_embeddings", "text_token_embedding"}
    | {"tokens_embed", "token_embd", "in_out_embed", "input_embedding", "input_embeds_layer"}
)
OUTPUT = frozenset(
    {"lm_head", "generator_lm_head", "lm_head.decoder", "lm_head.linear", "lm_head.out_proj"}
    | {"predictions.decoder", "embed_out", "proj_out", "output_projection", "output_layer"}
    | {"vocab_projector", "lm_loss", "word_embeddings_for_head", "pred_layer.proj"}
)
# Words that name other things too: they count only where nothing has a name from above.
VAGUE_INPUT = frozenset({"embed", "embedding", "embeddings", "transformer.w", ".w"})
VAGUE_OUTPUT = frozenset({"output", "head", "decoder", "transformer.ff_out"})
# The heads that no other kind of model has, so that one can stand for a table that is not stored.
ONLY_HEAD = frozenset({"lm_head", "embed_out", "predictions.decoder", "lm_head.decoder"})
EXTRA = frozenset({"new_embedding", "additional_embedding"})
NORM = frozenset(
    {"embeddings.LayerNorm", "embeddings.layer_norm", "embeddings.norm"}
    | {"word_embeddings_layernorm", "layernorm_embedding", "token_embd_norm"}
)
PER_LAYER = frozenset({"embed_tokens_per_layer", "per_layer_token_embd"})
ROLES = INPUT | OUTPUT | VAGUE_INPUT | VAGUE_OUTPUT | PER_LAYER

# What a training or serving framework put before a whole model's names.
WRAPPER = r"^((module|_orig_mod|base_model\.model|0\.auto_model)\.)+"
# Words of names that belong to another part of a model, and to the part that reads text.
ELSEWHERE = frozenset(
    {"vision", "image", "img", "video", "audio", "speech", "talker", "depth", "dit", "protein"}
    | {"patcher", "patch", "qformer", "vqmodel", "quantize", "mel", "codec", "t2u", "hash"}
    | {"positions", "position", "pos", "type", "segment", "relative", "attention"}
)
TEXT = frozenset({"text", "language", "llm", "thinker"})

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


class Wanted(NamedTuple):
    """Exact names to look for, the likeliest first."""

    input: tuple[str, ...]
    output: tuple[str, ...]


def stem(name: str) -> str | None:
    """A tensor's name without what says that it is a weight; None for biases, scales and such."""
    if name.endswith(SUFFIXES):
        return name.rpartition(".")[0]
    return name if name.rpartition(".")[2] in ("embedding", "embeddings") else None


def scheme(tensor: str, names: Container[str]) -> str | None:
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
    return next((packing for name, packing in beside.items() if name in names), None)


def wanted_names(config: Config | None) -> Wanted:
    """Likely exact names of both tables, for looking into a fragment of a long index."""
    nested = config is not None and config.path != ""
    places = (*INNER, *PLAIN, *OUTER) if nested else (*PLAIN, *INNER, *OUTER)
    inputs = [".".join(filter(None, (place, leaf))) for leaf in LEAVES for place in places]
    return Wanted(
        tuple(f"{name}{suffix}" for suffix in SUFFIXES for name in inputs),
        tuple(f"{name}{suffix}" for suffix in SUFFIXES for name in HEADS),
    )


def ending(name: str) -> tuple[str, ...]:
    """The last word of a tensor's stem, and the last two; none for biases, scales and such.

    `wte.embedding` (Molmo, Flax) ends like `wte` too, and `w` alone like `.w`.
    """
    place = stem(name)
    if place is None:
        return ()
    rest, _, last = place.rpartition(".")
    before = rest.rpartition(".")[2]
    pair = f"{before}.{last}"
    return (last, pair, before) if last in ("embedding", "embeddings") else (last, pair)


def role(name: str) -> str | None:
    """ "input" or "output" where a tensor's name says so."""
    words = ending(name)
    if ROLES.isdisjoint(words):
        return None
    if not (INPUT | PER_LAYER).isdisjoint(words):
        return "input"
    # Every layer has an output; only a head there is worth a word.
    if _layer(name) is not None and words[0] not in ("head", "lm_head"):
        return None
    return "input" if not VAGUE_INPUT.isdisjoint(words) else "output"


def misplaced(name: str, config: Config) -> str | None:
    """Why a tensor with a table's name is no table of the model, or None."""
    if not PER_LAYER.isdisjoint(ending(name)):
        return "holds numbers for each layer, not the model's width"
    if any(part.startswith("mtp_") for part in name.split(".")) or "mtp" in name.split(".")[:-1]:
        return "belongs to the layers that predict further tokens"
    layer = _layer(name)
    if layer and config.num_layers is not None and int(layer) >= config.num_layers:
        return f"is a copy in layer {layer}, past the model's {config.num_layers}"
    if layer:
        return f"stands inside layer {layer}"
    if "visual" in name.split(".")[:-1]:
        return "belongs to another part (visual)"
    other = next((word for word in _words(name) if word in ELSEWHERE), None)
    return f"belongs to another part ({other})" if other else None


def is_of_text(name: str) -> bool:
    """Whether the name says that the tensor is of the part that reads text."""
    return not TEXT.isdisjoint(_words(name))


def _words(name: str) -> list[str]:
    """What stands between dots and underscores, but for the last, which is no module's."""
    return name.replace("_", ".").split(".")[:-1]


def _layer(name: str) -> str | None:
    """The number of the layer that a tensor is in."""
    parts = name.split(".")[1:-1]
    return next((p for p in parts if p.isascii() and p.isdigit() and len(p) <= 9), None)
