"""What a model's config claims about its table: sizes, tied or not, precision, scaling.

Everything here is a claim. The header of the checkpoint is the truth about rows and width, its
tensors are the truth about tied or not.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from embtool.config.sections import (
    LARGEST,
    VOCAB,
    WIDTH,
    Section,
    dotted,
    first,
    home,
    shown,
    text,
    text_sections,
)
from embtool.config.ties import default_changed, tied_by_default
from embtool.errors import FormatError

TABLE_WIDTH = ("embedding_size", "input_embedding_size", "word_embed_proj_dim")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers")
MTP = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
TIED = ("tie_word_embeddings", "weight_tying", "share_decoder_input_output_embed")
MULTIPLIER = ("embedding_multiplier", "scale_emb")

DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "fp32": "F32",
    "float16": "F16",
    "fp16": "F16",
    "half": "F16",
    "bfloat16": "BF16",
    "bf16": "BF16",
    "int8": "I8",
}


class Config(NamedTuple):
    """The claims of one config; what it does not say is None.

    `path` is where the text model's sizes stand: "" for the top, else dotted ("text_config").
    `rows` are those of the table where the config says that they are more than `vocab_size`.
    `hidden_size` is the model's width, `table_width` that of the table's rows (other for
    factorised tables: ALBERT, ELECTRA, OPT-350m). `tied` is what the config says, or the default
    of its model type, and `tied_from` which of the two ("text_config.tie_word_embeddings",
    "the default of t5"). `dtype` is spelled as safetensors spells it ("BF16"). `quantization` is
    the scheme's name ("fp8", "gptq", "mlx"). `mtp_layers` are layers past `num_layers` that
    predict further tokens. `scale` is the factor that the model puts on a row at run time, and
    `scale_from` why. `notes` are sentences about values that could not be used.
    """

    file: str
    model_type: str | None = None
    path: str = ""
    vocab_size: int | None = None
    rows: int | None = None
    hidden_size: int | None = None
    table_width: int | None = None
    num_layers: int | None = None
    mtp_layers: int = 0
    tied: bool | None = None
    tied_from: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    scale: float | None = None
    scale_from: str | None = None
    notes: tuple[str, ...] = ()


def read_config(obj: Mapping[str, object], name: str) -> Config:
    """Read the parsed JSON object of `config.json`, `params.json` or a native config.

    `name` is the file's name for messages. A size that is no usable number becomes None and a
    note that names its key. Raises FormatError when `obj` is no JSON object.
    """
    if not isinstance(obj, Mapping):
        raise FormatError(
            f"{name} holds {type(obj).__name__}, not a JSON object",
            "a model's config is an object with keys such as vocab_size and hidden_size",
        )
    sections = text_sections(obj)
    notes: list[str] = []
    vocab = first(sections, VOCAB, notes, name)
    hidden = first(sections, WIDTH, notes, name)
    width, rows = _table_sizes(sections, vocab, hidden, notes, name)
    model_type = text(sections[-1:], ("model_type",)) or text(sections, ("model_type",))
    tied, tied_from = _tied(sections, model_type, notes, name)
    scale, scale_from = _scale(sections, width, notes, name)
    return Config(
        file=name,
        model_type=model_type,
        path=home(sections),
        vocab_size=vocab,
        rows=rows,
        hidden_size=hidden,
        table_width=width,
        num_layers=first(sections, LAYERS, notes, name),
        mtp_layers=first(sections, MTP, notes, name, smallest=0) or 0,
        tied=tied,
        tied_from=tied_from,
        dtype=_dtype(sections, notes, name),
        quantization=_quantization(sections),
        scale=scale,
        scale_from=scale_from,
        notes=tuple(dict.fromkeys(notes)),
    )


def read_gguf(metadata: Mapping[str, object], name: str, has_output: bool) -> Config:
    """The same claims from the metadata of a GGUF file (`<architecture>.embedding_length`, ...).

    `has_output`: whether the file stores `output.weight`; the format says that a model without it
    uses the input table. Source of the keys: the GGUF specification of ggml.
    """
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str):
        raise FormatError(
            f"{name} has no general.architecture in its metadata",
            "GGUF demands this key; the file is damaged or was not written by a GGUF tool",
        )
    keys = {"vocab_size": "vocab_size", "embedding_length": "hidden_size", "block_count": "n_layer"}
    claims: dict[str, object] = {"model_type": architecture}
    for key, ours in keys.items():
        if f"{architecture}.{key}" in metadata:
            claims[ours] = metadata[f"{architecture}.{key}"]
    if f"{architecture}.embedding_scale" in metadata:
        claims["embedding_multiplier"] = metadata[f"{architecture}.embedding_scale"]
    config = read_config(claims, name)
    if has_output:
        return config._replace(tied=None, tied_from=None)
    return config._replace(tied=True, tied_from="no output.weight in a GGUF file")


def _table_sizes(
    sections: Sequence[Section],
    vocab: int | None,
    hidden: int | None,
    notes: list[str],
    name: str,
) -> tuple[int | None, int | None]:
    """The table's width, and its rows where they are said to be more than the vocabulary.

    `embedding_size` is a width in ALBERT and ELECTRA and a number of rows in Molmo; no table is
    as wide as its vocabulary is long.
    """
    width = first(sections, TABLE_WIDTH, notes, name)
    rows = first(sections, ("padded_vocab_size",), notes, name)
    multiple = first(sections, ("pad_vocab_size_multiple",), notes, name)
    if vocab and width and width >= vocab:
        width, rows = None, width
    if vocab and multiple:
        rows = -(-vocab // multiple) * multiple
    return width or hidden, rows if vocab and rows and rows > vocab else None


def _tied(
    sections: Sequence[Section], model_type: str | None, notes: list[str], name: str
) -> tuple[bool | None, str | None]:
    """What the config says about tying, else the default of the model type, and whence."""
    said: list[tuple[bool, str]] = []
    for path, section in sections:
        for key in TIED:
            value = section.get(key)
            if isinstance(value, bool):
                said.append((value, dotted(path, key)))
            elif value is not None:
                where = dotted(path, key)
                notes.append(f"{name}: {where} is {shown(value)}, neither true nor false")
    if said:
        different = [where for value, where in said if value != said[0][0]]
        if not different:
            return said[0]
        pair = f"{said[0][1]} is {str(said[0][0]).lower()} and {different[0]} is not"
        notes.append(f"{name} contradicts itself on tying: {pair}")
    elif model_type and default_changed(model_type):
        notes.append(
            f"{name} does not say whether the tables are tied, and the default of {model_type} "
            "changed between releases 4 and 5 of transformers"
        )
    elif model_type and tied_by_default(model_type) is not None and _has_head(sections):
        return tied_by_default(model_type), f"the default of {model_type}"
    return None, None


def _has_head(sections: Sequence[Section]) -> bool:
    """False for a class without an output table: BertModel, CLIPTextModel, T5EncoderModel."""
    classes = [section.get("architectures") for _, section in sections]
    named = [names[0] for names in classes if isinstance(names, list) and names]
    return not any(
        isinstance(name, str) and name.endswith("Model") and "Head" not in name for name in named
    )


def _scale(
    sections: Sequence[Section], width: int | None, notes: list[str], name: str
) -> tuple[float | None, str | None]:
    """The run-time factor on a row: sqrt(width) in Gemma and BART, a number in Granite, MiniCPM."""
    for path, section in sections:
        for key in MULTIPLIER:
            value = section.get(key)
            if value is None:
                continue
            if isinstance(value, int | float) and value is not True and 0 < value < LARGEST:
                return (None, None) if value == 1 else (float(value), dotted(path, key))
            notes.append(f"{name}: {dotted(path, key)} is {shown(value)}, not a usable factor")
    gemma = any("gemma" in str(section.get("model_type")) for _, section in sections)
    scaled = any(section.get("scale_embedding") is True for _, section in sections)
    if width and (gemma or scaled):
        return math.sqrt(width), f"the square root of {width}"
    return None, None


def _dtype(sections: Sequence[Section], notes: list[str], name: str) -> str | None:
    for path, section in sections:
        for key in ("torch_dtype", "dtype", "params_dtype", "embedding_dtype"):
            value = section.get(key)
            if isinstance(value, str) and value.removeprefix("torch.") in DTYPES:
                return DTYPES[value.removeprefix("torch.")]
            # "auto" leaves it open, "fp8" is how the other layers are stored.
            if value not in (None, "auto", "fp8"):
                notes.append(f"{name}: {dotted(path, key)} is {shown(value)}, an unknown type")
    return None


def _quantization(sections: Sequence[Section]) -> str | None:
    """The scheme's name; MLX writes `bits` and `group_size` without one."""
    for _, section in sections:
        for key in ("quantization_config", "quantization"):
            value = section.get(key)
            if isinstance(value, Mapping):
                named = text([("", value)], ("quant_method", "quant_algo"))
                if named:
                    plain = re.fullmatch(r"[\w.-]{1,40}", named, re.ASCII)
                    return named.lower() if plain else "an unnamed scheme"
                if "bits" in value:
                    return "mlx"
        if section.get("dtype") == "fp8":
            return "fp8"
    return None
