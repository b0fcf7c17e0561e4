"""What a model's config claims about its table: sizes, tied or not, precision, scaling.

Everything here is a claim. The header of the checkpoint is the truth about rows and width, its
tensors are the truth about tied or not.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Config:
    """The claims of one config; what it does not say is None.

    `path` is where the text model's sizes stand: "" for the top, else dotted ("text_config").
    `hidden_size` is the model's width, `table_width` that of the table's rows (other for
    factorised tables: ALBERT, ELECTRA, OPT-350m). `tied` is what the config says, or the default
    of its model type, and `tied_from` which of the two ("text_config.tie_word_embeddings",
    "default of t5"). `dtype` is spelled as safetensors spells it ("BF16"). `quantization` is the
    scheme's name ("fp8", "gptq", "mlx"). `mtp_layers` are layers past `num_layers` that predict
    further tokens. `scale` is the factor that the model puts on a row at run time, `norm` that a
    LayerNorm follows the table. `notes` are sentences about values that could not be used.
    """

    file: str
    model_type: str | None = None
    path: str = ""
    vocab_size: int | None = None
    hidden_size: int | None = None
    table_width: int | None = None
    num_layers: int | None = None
    mtp_layers: int = 0
    tied: bool | None = None
    tied_from: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    scale: float | None = None
    norm: bool = False
    notes: tuple[str, ...] = ()


def read_config(obj: Mapping[str, object], name: str) -> Config:
    """Read the parsed JSON object of `config.json`, `params.json` or a native config.

    `name` is the file's name for messages. A size that is no usable number becomes None and a
    note that names its key. Raises FormatError when `obj` is no JSON object.
    """
    raise NotImplementedError


def read_gguf(metadata: Mapping[str, object], name: str, has_output: bool) -> Config:
    """The same claims from the metadata of a GGUF file (`<architecture>.embedding_length`, ...).

    `has_output`: whether the file stores `output.weight`; without it, the input table is used.
    """
    raise NotImplementedError
