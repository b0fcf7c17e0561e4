"""vocab.json and merges.txt -> the tokenizer.json of the same byte-level BPE.

vocab.json maps pieces, in GPT-2's alphabet of bytes, to ids; a line of merges.txt is two pieces
that are joined, the earlier the sooner (https://github.com/openai/gpt-2).
"""

import re
from collections.abc import Iterator

from embtool.errors import FormatError
from embtool.vocab.contents import ADVICE
from embtool.vocab.cuts import Cut, cut_of
from embtool.vocab.from_files import Made, Settings, assembled, json_of, placed, text_of
from embtool.vocab.gguf_json import Json, Special
from embtool.vocab.tokenizer_files import MERGES, Files

_ROBERTA = "roberta|bart|mvp|longformer|led|blenderbot|camembert"
_FAMILIES = (
    (r"qwen3_[56].*", "qwen35"),
    (r"qwen[23].*", "qwen2"),
    (rf"gpt2|gpt_neo|gptj|opt|codegen|phi|whisper|gpt_bigcode|{_ROBERTA}", "gpt-2"),
)
_SPECIAL = ("<|endoftext|>", "<s>", "<pad>", "</s>", "<unk>", "<mask>")
_SUFFIX = "</w>"


def made(raw: bytes, file: str, found: Settings, files: Files) -> Made:
    """The tokenizer; uncut for a family whose way to cut texts is not known."""
    vocab = json_of(raw, file)
    if not vocab or any(type(token_id) is not int for token_id in vocab.values()):
        raise FormatError(f"{file}: it maps no pieces to ids", ADVICE)
    name = next((cut for family, cut in _FAMILIES if re.fullmatch(family, found.family)), None)
    cut = cut_of(name or "gpt-2") or Cut(())
    prefix = found.flag("add_prefix_space") is True
    steps = [
        step | {"add_prefix_space": prefix} if step["type"] == "ByteLevel" else step
        for step in cut.steps
    ]
    merges = list(_merges(files))
    before, after = _around(vocab, found)
    tokenizer = assembled(
        {"type": "BPE", "vocab": vocab, "merges": merges},
        found,
        _SPECIAL,
        before=before,
        after=after,
        normalizer={"type": "NFC"} if cut.nfc else None,
        pre_tokenizer={"type": "Sequence", "pretokenizers": steps},
    )
    for token in tokenizer["added_tokens"]:
        # of RoBERTa's classes
        if token["content"] == "<mask>" and token["id"] not in found.added:
            token["lstrip"] = True
    if any(right.endswith(_SUFFIX) for _, right in merges):
        refused = f"{file} marks the ends of words with {_SUFFIX}, which embtool does not apply"
        return Made(tokenizer, refused=refused)
    note = f"nothing says how {file} cuts texts: they are cut in GPT-2's way"
    return Made(
        tokenizer,
        note=None if found.family else note,
        uncut=found.family if found.family and name is None else None,
    )


def _merges(files: Files) -> Iterator[list[str]]:
    raw = files(MERGES)
    if raw is None:
        raise FormatError(f"there is no {MERGES} beside it", ADVICE)
    for number, line in enumerate(text_of(raw, MERGES).split("\n")):
        text = line.rstrip("\r")
        if not text or text.startswith("#version"):
            continue
        pair = text.split(" ")
        if len(pair) != 2:
            raise FormatError(f"{MERGES}: its line {number + 1} is no two pieces", ADVICE)
        yield pair


def _around(vocab: Json, found: Settings) -> tuple[Special, Special]:
    """What stands around a text: RoBERTa's classes put <s> and </s> there, others what is said."""
    if re.fullmatch(_ROBERTA, found.family):
        names = found.named("cls_token", "<s>"), found.named("sep_token", "</s>")
        return placed(vocab, names[0]), placed(vocab, names[1])
    begins = found.flag("add_bos_token")
    wanted = found.family == "opt" if begins is None else begins
    ends = found.flag("add_eos_token") is True
    return (
        placed(vocab, found.named("bos_token", "</s>")) if wanted else None,
        placed(vocab, found.named("eos_token")) if ends else None,
    )
