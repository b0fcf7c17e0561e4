"""vocab.txt -> the tokenizer.json of the same WordPiece tokenizer.

One piece a line, whose number is its id; `##` marks what continues a word. The rules are those of
https://github.com/google-research/bert/blob/master/tokenization.py.
"""

import re

from embtool.vocab.from_files import Made, Settings, assembled, placed, text_of
from embtool.vocab.gguf_json import Json

# Families whose vocab.txt is read by BERT's rules.
_FAMILIES = re.compile(
    "bert|distilbert|electra|mobilebert|squeezebert|convbert|layoutlm|layoutlmv2|lxmert|mpnet|"
    "splinter|retribert|realm|tapas|visual_bert|nomic_bert|ernie|nezha|markuplm|dpr.*"
)
_SPECIAL = ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")
# Words longer than this are unknown to BERT's tokenizer.
_LONGEST_WORD = 100


def made(raw: bytes, file: str, found: Settings) -> Made:
    """The tokenizer; refused where the model is of a family that reads vocab.txt otherwise."""
    if found.family and not _FAMILIES.fullmatch(found.family):
        refused = f"{file} belongs to a tokenizer {found.family}, whose rules embtool does not know"
        return Made({}, refused=refused)
    lines = text_of(raw, file).split("\n")
    vocab = {piece: i for i, line in enumerate(lines) if (piece := line.rstrip("\r"))}
    unknown = found.named("unk_token", "[UNK]")
    if unknown not in vocab:
        refused = f"{file} is no WordPiece vocabulary: {unknown} is not in it"
        return Made({}, refused=refused)
    lowercase, note = found.flag("do_lower_case"), None
    if lowercase is None:
        lowercase = not any(map(_has_capital, vocab))
        note = f"{file}: nothing says whether texts are put in small letters: its pieces say " + (
            "that they are" if lowercase else "that they are not"
        )
    model: Json = {"type": "WordPiece", "vocab": vocab, "continuing_subword_prefix": "##"}
    model |= {"unk_token": unknown, "max_input_chars_per_word": _LONGEST_WORD}
    tokenizer = assembled(
        model,
        found,
        _SPECIAL,
        before=placed(vocab, found.named("cls_token", "[CLS]")),
        after=placed(vocab, found.named("sep_token", "[SEP]")),
        normalizer={
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": found.flag("tokenize_chinese_chars") is not False,
            "strip_accents": found.flag("strip_accents"),
            "lowercase": lowercase,
        },
        pre_tokenizer={"type": "BertPreTokenizer"},
    )
    return Made(tokenizer, note=note)


def _has_capital(piece: str) -> bool:
    return piece.isalpha() and any("A" <= character <= "Z" for character in piece)
