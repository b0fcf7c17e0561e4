"""How byte-level BPE cuts a text before it merges, by the name that a GGUF file gives it.

`tokenizer.ggml.pre` names the pre-tokenizer of a family of models; what it stands for is in no
GGUF file. The steps here are those of the families' own tokenizer.json, in its notation, but for
`default`: llama.cpp made it for files without a name.
"""

from typing import Any, NamedTuple

Step = dict[str, Any]


class Cut(NamedTuple):
    """steps: a tokenizer.json's pre-tokenizers, each of which cuts what those before it left.

    nfc: whether the text is first normalized so. whole: whether a piece that is a token is taken
    as it is, and not merged (`ignore_merges`). begins: whether `<bos>` comes before a text where
    the file does not say.
    """

    steps: tuple[Step, ...]
    nfc: bool = False
    whole: bool = False
    begins: bool = False


def cut_of(name: str) -> Cut | None:
    """What a `pre` stands for; None for an unknown one."""
    return next((cut for names, cut in _CUTS if name in names.split()), None)


def cut_by(pattern: str) -> Cut:
    """What a file's own pattern says: `whole`, as programs do that read ranks and patterns."""
    return Cut((*_at(pattern), *_BYTES), whole=True)


def _at(*patterns: str) -> tuple[Step, ...]:
    """Cut before and after what each pattern matches."""
    return tuple(
        {"type": "Split", "pattern": {"Regex": each}, "behavior": "Isolated", "invert": False}
        for each in patterns
    )


def _bytes(*, gpt2: bool) -> Step:
    """The alphabet of bytes; `gpt2` cuts by that model's pattern first."""
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": gpt2,
    }


_GPT2, _BYTES = (_bytes(gpt2=True),), (_bytes(gpt2=False),)
_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_DIGIT, _THREE = r"\p{N}", "[0-9][0-9][0-9]"
_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_BEFORE = r"[^\r\n\p{L}\p{N}]?"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_SPACE = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_QWEN2 = rf"{_CONTRACTION}|{_BEFORE}\p{{L}}+|\p{{N}}|{_SIGNS}|{_SPACE}"
_LLAMA3 = rf"{_CONTRACTION}|{_BEFORE}\p{{L}}+|\p{{N}}{{1,3}}|{_SIGNS}|{_SPACE}"
_QWEN35 = (
    rf"{_CONTRACTION}|{_BEFORE}[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACE}"
)
# o200k and Mistral's Tekken: a word in capitals ends where small letters have followed.
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_PATHS = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
_O200K = (
    rf"{_BEFORE}{_UPPER}*{_LOWER}+{_CONTRACTION}?|{_BEFORE}{_UPPER}+{_LOWER}*{_CONTRACTION}?"
    rf"|\p{{N}}{{1,3}}|{_PATHS}|{_SPACE}"
)
_TEKKEN = rf"{_BEFORE}{_UPPER}*{_LOWER}+|{_BEFORE}{_UPPER}+{_LOWER}*|\p{{N}}|{_PATHS}|{_SPACE}"
# Kimi: Han characters stand alone, and are no letters of a word.
_LATER, _FIRST = (f"{each[:-1]}&&[^\\p{{Han}}]]" for each in (_LOWER, _UPPER))
_KIMI = (
    rf"\p{{Han}}+|{_BEFORE}{_FIRST}*{_LATER}+{_CONTRACTION}?|{_BEFORE}{_FIRST}+{_LATER}*"
    rf"{_CONTRACTION}?|\p{{N}}{{1,3}}|{_SIGNS}|{_SPACE}"
)
_CJK = "[一-龥\u0800-一가-\ud7ff]+"
# The letters that DeepSeek's first models list: of scripts with capitals, in Unicode's order.
_CASED = (
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ"
    "-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓ"
    "ℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-"
    "𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"
)
_DEEPSEEK = (
    r"[\r\n]",
    rf"\s?[{_CASED}]+",
    r"\s?"
    "[!-/:-~！-／：-～‘-‟\u3000-。]+",
    r"\s+$",
    _CJK,
    _DIGIT,
)
_DEEPSEEK_CODER = (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK, _DIGIT)
_DEEPSEEK_3 = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACE}",
)
_BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
_FALCON: tuple[Step, ...] = (
    {"type": "Punctuation", "behavior": "Contiguous"},
    *_GPT2,
    {"type": "Digits", "individual_digits": False},
    *_at(_THREE),
)
_DEFAULT = (*_at(r"[\p{P}\$\+<=>\^~\|]+", _PATTERN, r"\p{N}+", _THREE), *_BYTES)

# The names of one line mean the same.
_CUTS = (
    ("default", Cut(_DEFAULT)),
    ("gpt-2 phi-2 roberta-bpe jina-v1-en jina-v2-code jina-v2-de jina-v2-es", Cut(_GPT2)),
    ("mpt olmo modern-bert", Cut(_GPT2, nfc=True)),
    ("starcoder refact smollm codeshell exaone", Cut((*_at(_DIGIT), *_GPT2))),
    ("command-r", Cut((*_at(_DIGIT), *_GPT2), nfc=True)),
    ("falcon", Cut(_FALCON)),
    ("llama-bpe llama-v3 llama3", Cut((*_at(_LLAMA3), *_BYTES), whole=True, begins=True)),
    ("glm4 chatglm-bpe", Cut((*_at(_LLAMA3), *_BYTES), whole=True)),
    ("dbrx smaug-bpe", Cut((*_at(_LLAMA3), *_BYTES))),
    ("qwen2 deepseek-r1-qwen", Cut((*_at(_QWEN2), *_BYTES), nfc=True)),
    ("stablelm2 grok-2", Cut((*_at(_QWEN2), *_BYTES))),
    ("qwen35", Cut((*_at(_QWEN35), *_BYTES), nfc=True)),
    ("deepseek-llm", Cut((*_at(*_DEEPSEEK), *_BYTES))),
    ("deepseek-coder", Cut((*_at(*_DEEPSEEK_CODER), *_BYTES))),
    ("deepseek-v3", Cut((*_at(*_DEEPSEEK_3), *_BYTES))),
    ("gpt-4o llama4", Cut((*_at(_O200K), *_BYTES))),
    ("kimi-k2", Cut((*_at(_KIMI), *_BYTES))),
    ("minimax-m2", Cut((*_at(_O200K), *_BYTES), nfc=True)),
    ("tekken", Cut((*_at(_TEKKEN), *_BYTES), whole=True, begins=True)),
    ("bloom poro-chat gpt3-finnish", Cut((*_at(_BLOOM), *_BYTES))),
    ("viking", Cut((*_at(_BLOOM, _DIGIT), *_BYTES))),
)
