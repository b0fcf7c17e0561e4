"""What a config says about how its tables were quantized; shapes have the last word."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Section = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Claims:
    """What is said of one table; None where nothing is.

    width: the table's width. bits, group: bits of a number, numbers that share a scale.
    block: rows and columns that share a scale. form: GPTQ's `checkpoint_format`.
    """

    width: int | None = None
    bits: int | None = None
    group: int | None = None
    block: tuple[int, int] | None = None
    form: str | None = None


def read_claims(config: Mapping[str, object], module: str, width: int | None = None) -> Claims:
    """The claims of a parsed `config.json` on the table of `module` ("model.embed_tokens").

    `width` is the table's width, where the config names one. MLX writes `quantization`, with an
    entry of its own for a module that differs; all others write `quantization_config`. ModelOpt's
    `hf_quant_config.json` may be merged in.
    """
    found = Claims(width=width)
    for section in _sections(config):
        own = section.get(module)
        for said in (own, section, *_groups(section)):
            if isinstance(said, Mapping):
                found = Claims(
                    width,
                    found.bits or _whole(said, "bits", "num_bits"),
                    found.group or _whole(said, "group_size"),
                    found.block or _pair(said, "weight_block_size", "block_structure"),
                    found.form or _text(said, "checkpoint_format"),
                )
    return found


def _sections(config: Mapping[str, object]) -> Iterator[Section]:
    for holder in (config, config.get("text_config"), config.get("language_config")):
        if isinstance(holder, Mapping):
            for key in ("quantization", "quantization_config"):
                section = holder.get(key)
                if isinstance(section, Mapping):
                    yield section


def _groups(section: Section) -> Iterator[Section]:
    """The weights' part of compressed-tensors' `config_groups`, where there is one group."""
    groups = section.get("config_groups")
    if isinstance(groups, Mapping) and len(groups) == 1:
        for group in groups.values():
            weights = group.get("weights") if isinstance(group, Mapping) else None
            if isinstance(weights, Mapping):
                yield weights


def _whole(section: Section, *keys: str) -> int | None:
    for key in keys:
        value = section.get(key)
        if type(value) is int and 0 < value < 1 << 31:
            return value
    return None


def _pair(section: Section, *keys: str) -> tuple[int, int] | None:
    for key in keys:
        value = section.get(key)
        if isinstance(value, list) and len(value) == 2 and all(type(v) is int for v in value):
            rows, columns = value
            if min(rows, columns) > 0:
                return rows, columns
    return None


def _text(section: Section, key: str) -> str | None:
    value = section.get(key)
    return value.lower() if isinstance(value, str) else None
