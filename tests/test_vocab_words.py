"""Typed words -> rows, on real tokenizers of three families and on made ones."""

import json

import pytest
from conftest import package_file

from embtool.errors import SourceError, TokenError
from embtool.vocab import UsageError, Word, no_vocabulary, open_vocabulary, script


@pytest.fixture(scope="module")
def deepseek(deepseek_tokenizer):
    return open_vocabulary("words-deepseek", "tokenizer.json", deepseek_tokenizer.read_bytes)


@pytest.fixture(scope="module")
def llama2():
    path = package_file("wordllama", "tokenizers/l2_supercat_tokenizer_config.json")
    return open_vocabulary("words-llama2", path.name, path.read_bytes)


@pytest.fixture(scope="module")
def minilm(minilm_folder):
    path = minilm_folder / "tokenizer.json"
    return open_vocabulary("words-minilm", path.name, path.read_bytes)


def made(key, **sections):
    raw = json.dumps({"version": "1.0", "added_tokens": [], **sections}).encode()
    return open_vocabulary(f"words-{key}", "tokenizer.json", lambda: raw)


WHOLE = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
T5 = {
    "pre_tokenizer": {
        "type": "Sequence",
        "pretokenizers": [{"type": "WhitespaceSplit"}, METASPACE],
    },
    "decoder": METASPACE,
    "model": {
        "type": "Unigram",
        "unk_id": 0,
        "vocab": [["<unk>", 0], ["▁king", -1], ["king", -2], ["▁", -3], ["国", -2.5], ["▁国", -2]],
    },
}
GLOVE = {"model": {"type": "WordLevel", "vocab": {"king": 0, "new york": 1}, "unk_token": "<unk>"}}


def refused(vocabulary, text, **choices):
    with pytest.raises(TokenError) as raised:
        vocabulary.word(text, **choices)
    return raised.value.message, raised.value.advice


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("国王", "han"),
        ("々", "han"),
        ("\U00031350", "han"),
        ("ねこ", "kana"),
        ("ネコ", "kana"),
        ("ﾈｺ", "kana"),
        ("ไทย", "thai"),
        ("ລາວ", "lao"),
        ("ខ្មែរ", "khmer"),
        ("မြန်မာ", "myanmar"),
        ("king", "latin"),
        ("Ａ", "latin"),
        ("𝒳", "latin"),
        ("한국", "hangul"),
        ("Москва", "cyrillic"),
        ("מלך", "hebrew"),
        ("2024年", "han"),
        ("2024", None),
        ("-", None),
        ("👑", None),
        ("", None),
    ],
)
def test_the_script_of_the_first_letter(text, name):
    assert script(text) == name


@pytest.mark.parametrize(
    ("text", "form", "ids", "tokens"),
    [
        ("king", "spaced", (10005,), (" king",)),
        (" king", "spaced", (10005,), (" king",)),
        ("  king", "spaced", (10005,), (" king",)),
        ("国王", "bare", (32788,), ("国王",)),
        ("東京", "bare", (66771,), ("東京",)),
        ("カ", "bare", (15961,), ("カ",)),
        ("ไทย", "bare", (39311,), ("ไทย",)),
        ("한국", "spaced", (51345,), (" 한국",)),
        ("—", "bare", (965,), ("—",)),
        ("id:9886", "id", (9886,), ("king",)),
        ("id:00009886", "id", (9886,), ("king",)),
        ("raw:Ġking", "raw", (10005,), (" king",)),
        ("raw:å¤©æ°Ķ", "raw", (16652,), ("天气",)),
    ],
)
def test_byte_level_words(deepseek, text, form, ids, tokens):
    assert deepseek.word(text) == Word(text, form, ids, tokens, None)


def test_the_form_asked_for(deepseek):
    assert deepseek.word("king", form="bare") == Word("king", "bare", (9886,), ("king",))
    assert deepseek.word("king", form="spaced").ids == (10005,)
    assert deepseek.word(" king", form="spaced").ids == (10005,)
    with pytest.raises(UsageError, match=r'^the leading space of " king" means spaced, the form'):
        deepseek.word(" king", form="bare")
    with pytest.raises(UsageError, match=r"^no form both: auto, bare or spaced$"):
        deepseek.word("king", form="both")


def test_several_tokens_show_the_pieces_and_the_nearest_spellings(deepseek):
    assert refused(deepseek, "kingship") == (
        "kingship is 2 tokens:  kings|hip",
        "take the mean of its tokens with --pool mean",
    )
    assert refused(deepseek, "2024")[0] == "2024 is 2 tokens: 202|4"
    assert refused(deepseek, "QUEEN") == (
        "QUEEN is 2 tokens:  QUE|EN",
        'type " queen", Queen, " Queen", or take the mean of its tokens with --pool mean',
    )
    assert refused(deepseek, "queen", form="bare")[1].startswith('type " queen", Queen, ')
    assert refused(deepseek, "🜏")[0] == r"🜏 is 3 tokens: \xF0\x9F|\x9C|\x8F"
    assert refused(deepseek, "a\tb")[0].startswith(r"a\tb is 2 tokens:  a|\tb")
    message, _ = refused(deepseek, "no such word " * 40)
    assert message.startswith(f"{('no such word ' * 5)[:60]}… is ")
    assert message.endswith("|…")


def test_pooled_words_say_so(deepseek):
    assert deepseek.word("kingship", pool="mean") == Word(
        "kingship", "spaced", (39458, 1674), (" kings", "hip"), "mean"
    )
    assert deepseek.word("king", pool="mean").pool is None
    assert deepseek.word("kingship", form="bare", pool="mean").form == "bare"


def test_a_tokenizer_that_puts_a_space_before_a_text_puts_none_before_a_word(llama2):
    assert llama2.encode("北") == [29871, 30662]
    assert llama2.word("北") == Word("北", "bare", (30662,), ("北",))
    assert refused(llama2, "北京")[0] == "北京 is 2 tokens: 北|京"
    assert llama2.word("king") == Word("king", "spaced", (6989,), (" king",))
    assert llama2.word("king", form="bare") == Word("king", "bare", (9292,), ("king",))
    assert llama2.encode("king") == [6989]
    assert llama2.encode("king", special=True) == [1, 6989]
    assert refused(llama2, "天气")[0] == r"天气 is 4 tokens: 天|\xE6|\xB0|\x94"
    assert refused(llama2, "paris")[1].startswith('type " Paris", or ')


def test_wordpiece_has_one_form(minilm):
    assert minilm.word("king") == Word("king", "bare", (2332,), ("king",))
    assert minilm.word(" King") == Word(" King", "bare", (2332,), ("king",))
    assert minilm.word("king", form="spaced").form == "bare"
    assert minilm.word("raw:##ing") == Word("raw:##ing", "raw", (2075,), ("ing",))
    assert (minilm.token(2075), minilm.raw(2075)) == ("ing", "##ing")
    assert minilm.word("ing").ids == (13749,)
    assert refused(minilm, "##ing") == (
        "##ing is 3 tokens: #|#|ing",
        "type raw:##ing, or take the mean of its tokens with --pool mean",
    )


def test_an_unknown_word_is_an_error_and_the_unknown_token_is_not(minilm):
    expected = (
        "🜏 is unknown to the vocabulary: it becomes [UNK]",
        "look for another with embtool find, or name a row with id:N",
    )
    assert refused(minilm, "🜏") == expected
    assert refused(minilm, "🜏", pool="mean") == expected
    assert refused(minilm, "king 🜏", pool="mean")[0].startswith("king 🜏 is unknown")
    assert minilm.word("[UNK]").ids == (100,)
    assert minilm.encode("king 🜏") == [2332, 100]


def test_where_spaces_are_dropped_the_tokenizer_makes_the_spaced_form():
    vocabulary = made("t5", **T5)
    assert vocabulary.kind == "sentencepiece"
    assert vocabulary.word("king") == Word("king", "spaced", (1,), (" king",))
    assert vocabulary.word("king", form="bare") == Word("king", "bare", (2,), ("king",))
    assert vocabulary.word("国") == Word("国", "bare", (4,), ("国",))
    assert vocabulary.word("国", form="spaced") == Word("国", "spaced", (5,), (" 国",))
    assert vocabulary.encode("king 国") == [1, 5]
    assert vocabulary.reachable().tolist() == [True, True, True, False, True, True]
    # asked again of what is kept: the same
    assert made("t5", **T5).word("国", form="bare").ids == (4,)


def test_a_word_list_has_words_and_nothing_else():
    vocabulary = made("glove", **GLOVE)
    assert (vocabulary.kind, vocabulary.unknown_id) == ("words", None)
    assert vocabulary.word("new york") == Word("new york", "bare", (1,), ("new york",))
    assert refused(vocabulary, "King") == ("King has no token", "type king")
    assert vocabulary.single("King") is None
    assert vocabulary.single("king") == Word("king", "bare", (0,), ("king",))
    with pytest.raises(TokenError, match=r"^tokenizer\.json: no tokens for King: "):
        vocabulary.encode("King")
    assert vocabulary.reachable().tolist() == [True, True]


def test_rows_and_tokens_need_not_be_the_same_number():
    added = [{"id": 3, "content": "<image>", "special": True, **WHOLE}]
    model = {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "[UNK]": 2}, "unk_token": "[UNK]"}
    vocabulary = made("rows", model=model, added_tokens=added)
    assert vocabulary.word("<image>").ids == (3,)
    assert refused(vocabulary, "<image>", rows=3) == (
        "id 3 (<image>) has no row: the table has 3 rows",
        "name a row from id:0 to id:2",
    )
    assert refused(vocabulary, "id:3", rows=3)[0] == (
        "id 3 (<image>) has no row: the table has 3 rows"
    )
    assert refused(vocabulary, "id:4", rows=3)[0] == "id 4 has no row: the table has 3 rows"
    assert vocabulary.word("id:6", rows=7) == Word("id:6", "id", (6,), (None,))
    assert refused(vocabulary, "id:" + "9" * 5000)[0] == (
        f"id:{'9' * 37}… is past any table's rows"
    )
    assert vocabulary.text_ids("id:1", rows=3) == [1]
    with pytest.raises(TokenError, match=r"^id 3 \(<image>\) has no row"):
        vocabulary.text_ids("<image>", rows=3)
    assert vocabulary.text_ids("id:x") == [2]


def test_words_that_stand_together_take_one_form(deepseek):
    def forms(*texts, **choices):
        return [(w.form, w.ids[0]) for w in deepseek.words_together(texts, **choices)]

    assert forms("国王", "男人", "女人") == [("bare", 32788), ("bare", 9950), ("bare", 9360)]
    assert forms("king", "man", "woman") == [("spaced", 10005), ("spaced", 836), ("spaced", 6626)]
    # 国王 is no token with a space before it, so that all are bare
    assert forms("king", "国王") == [("bare", 9886), ("bare", 32788)]
    # queen is one token spaced only, 国王 bare only: each its own
    assert forms("queen", "国王") == [("spaced", 35853), ("bare", 32788)]
    assert forms("king", "id:5", "raw:Ġman") == [("spaced", 10005), ("id", 5), ("raw", 836)]
    # a typed space says spaced for itself, and so for all that can
    assert forms("国", " king")[1] == ("spaced", 10005)
    assert forms("king", "man", form="bare")[0] == ("bare", 9886)
    assert forms("id:1", "id:2") == [("id", 1), ("id", 2)]
    assert forms("king", "king") == [("spaced", 10005)] * 2
    with pytest.raises(TokenError, match=r"^kingship is 2 tokens"):
        deepseek.words_together(["king", "kingship"])
    pooled = deepseek.words_together(["king", "kingship"], pool="mean")
    assert [(w.form, w.pool) for w in pooled] == [("spaced", None), ("spaced", "mean")]


def test_empty_and_blank_words(deepseek):
    assert refused(deepseek, "") == (
        "an empty word has no row",
        "type a word, or name a row with id:N",
    )
    assert deepseek.word(" ") == Word(" ", "spaced", (223,), (" ",))
    assert deepseek.word("  ").tokens == ("  ",)


def test_what_is_no_text(deepseek):
    assert refused(deepseek, "\udce4")[0] == r"\xE4 has no token"
    with pytest.raises(TokenError, match=r"^\\xE4 is no UTF-8 text$"):
        deepseek.encode("\udce4")


def test_spellings_as_they_are_shown_or_as_they_are(deepseek):
    added = [{"id": 1, "content": "a\\b", "special": False, **WHOLE}]
    added.append({"id": 2, "content": "\n", "special": False, **WHOLE})
    vocabulary = made("raw", model={"type": "WordLevel", "vocab": {"x": 0}}, added_tokens=added)
    assert vocabulary.word(r"raw:a\\b").ids == (1,)
    assert vocabulary.word(r"raw:a\b").ids == (1,)
    assert vocabulary.word(r"raw:\n").ids == (2,)
    assert vocabulary.word("raw:\n").ids == (2,)
    assert refused(vocabulary, "raw:zz") == (
        "no token is spelled zz",
        "look for tokens by a part of them: embtool find -- zz",
    )


def test_without_a_tokenizer_ids_still_work():
    vocabulary = no_vocabulary()
    assert (vocabulary.kind, vocabulary.size, vocabulary.count) == ("none", 0, 0)
    assert vocabulary.word("id:7", rows=8) == Word("id:7", "id", (7,), (None,))
    assert vocabulary.text_ids("id:7") == [7]
    assert vocabulary.displayed() == []
    assert list(vocabulary.find("a")) == []
    for asked in (vocabulary.word, vocabulary.encode, vocabulary.text_ids):
        with pytest.raises(
            SourceError, match=r"^there is no tokenizer, so that a text has no rows$"
        ):
            asked("king")
    with pytest.raises(TokenError, match=r"^no token is spelled x$"):
        vocabulary.word("raw:x")
