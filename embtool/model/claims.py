"""What a model claims about itself: its config and what stands beside it, or GGUF metadata."""

import json

from embtool.config import Config, read_config, read_gguf
from embtool.errors import FormatError
from embtool.model.records import Checkpoint
from embtool.source import Source

_CONFIGS = ("config.json", "params.json")
# ModelOpt writes what it quantized here, and older releases of it nowhere else.
_QUANTIZED = "hf_quant_config.json"


def claims_of_files(source: Source, checkpoint: str | None) -> Config | None:
    """The claims of the config beside the checkpoint's file, else of the model's; None without.

    Raises:
        FormatError: it is no JSON object.
    """
    for config in _CONFIGS:
        name = beside(source, checkpoint, config)
        if source.has(name):
            claims = read_config(read_object(source, name), name)
            quantized = beside(source, checkpoint, _QUANTIZED)
            if claims.quantization is not None or not source.has(quantized):
                return claims
            scheme = read_config(read_object(source, quantized), quantized).quantization
            return claims._replace(quantization=scheme)
    return None


def claims_object(source: Source, checkpoint: str) -> dict[str, object]:
    """The config beside the checkpoint's file as it is, with ModelOpt's own file merged in."""
    found: dict[str, object] = {}
    for config in (_QUANTIZED, "config.json"):
        name = beside(source, checkpoint, config)
        if source.has(name):
            found |= read_object(source, name)
    return found


def claims_of_gguf(checkpoint: Checkpoint) -> Config:
    """The same from a GGUF file's metadata; a part that is absent may hold the output table."""
    may_have_output = "output.weight" in checkpoint.files or not checkpoint.complete
    return read_gguf(checkpoint.metadata or {}, checkpoint.file, may_have_output)


def beside(source: Source, checkpoint: str | None, name: str) -> str:
    """The name of a small file: in the checkpoint's own folder if it is there, else the model's.

    `text_encoder/model.safetensors` has a config of its own, `original/consolidated.safetensors`
    often has none.
    """
    folder, slash, _ = (checkpoint or "").rpartition("/")
    return folder + slash + name if slash and source.has(folder + slash + name) else name


def read_object(source: Source, name: str) -> dict[str, object]:
    """A file of the model that holds one JSON object.

    Raises:
        FormatError: it holds something else.
    """
    try:
        value = json.loads(source.read(name))
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"{source.ref}: {name} is not valid JSON: {error}", "download the file again"
        ) from error
    if not isinstance(value, dict):
        raise FormatError(f"{source.ref}: {name} is no JSON object", "download the file again")
    return value
