"""tokenizer.json: what is read from it, and what the library is never allowed to do."""

import json

import pytest

from embtool.errors import FormatError, TokenError
from embtool.vocab import UsageError, open_vocabulary, unescape

WHOLE = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def added(token_id, content, special=False):
    return {"id": token_id, "content": content, "special": special, **WHOLE}


def words(*names, unknown="[UNK]"):
    return {"type": "WordLevel", "vocab": {n: i for i, n in enumerate(names)}, "unk_token": unknown}


def made(key, **sections):
    raw = json.dumps({"version": "1.0", **sections}).encode()
    return open_vocabulary(f"json-{key}", "tokenizer.json", lambda: raw)


@pytest.fixture(scope="module")
def deepseek(deepseek_tokenizer):
    return open_vocabulary("json-deepseek", "tokenizer.json", deepseek_tokenizer.read_bytes)


def test_deepseek_golden(deepseek):
    ids = deepseek.encode("今天西安的天气怎么样？")
    assert ids == [5237, 23872, 301, 16652, 19602, 1148]
    assert [deepseek.token(i) for i in ids] == ["今天", "西安", "的", "天气", "怎么样", "？"]
    assert deepseek.raw(5237) == "ä»Ĭå¤©"
    assert deepseek.id_of("ä»Ĭå¤©") == 5237


def test_deepseek_sizes_and_added_tokens(deepseek):
    assert (deepseek.size, deepseek.count, deepseek.kind) == (128815, 128815, "bpe-bytes")
    assert deepseek.unknown_id is None
    assert deepseek.token(1) == deepseek.raw(1) == "<｜end▁of▁sentence｜>"
    assert deepseek.encode("a<｜end▁of▁sentence｜>") == [67, 1]
    assert 1 in deepseek.special_ids
    assert 5237 not in deepseek.special_ids
    assert deepseek.token(128815) is None


def test_deepseek_tokens_that_encode_back_to_themselves(deepseek):
    own = deepseek.reachable()
    assert int(own.sum()) == 127345
    assert own[5237]
    assert not own[deepseek.id_of("ä»")]
    again = open_vocabulary("json-deepseek", "tokenizer.json", lambda: pytest.fail("read again"))
    assert again.reachable().tolist() == own.tolist()
    # every word that comes back is now known without the tokenizer
    assert again.word("queen").ids == (35853,)
    assert again.encode("怎么样") == [19602]


def test_minilm_is_neither_cut_nor_padded(minilm_folder):
    path = minilm_folder / "tokenizer.json"
    baked = json.loads(path.read_text())
    assert baked["truncation"]["max_length"] == baked["padding"]["strategy"]["Fixed"] == 128
    minilm = open_vocabulary("json-minilm", path.name, path.read_bytes)
    assert minilm.encode("king") == [2332]
    assert minilm.encode("king", special=True) == [101, 2332, 102]
    assert minilm.encode("king " * 300) == [2332] * 300
    assert (minilm.size, minilm.count, minilm.kind, minilm.unknown_id) == (
        30522,
        30522,
        "wordpiece",
        100,
    )
    assert minilm.special_ids == {0, 100, 101, 102, 103}


def test_minilm_pieces_that_continue_a_word_count_as_typed_inside_one(minilm_folder):
    path = minilm_folder / "tokenizer.json"
    minilm = open_vocabulary("json-minilm", path.name, path.read_bytes)
    own = minilm.reachable()
    assert int(own.sum()) == 29191
    assert own[minilm.id_of("##ing")]
    assert own[minilm.id_of("ing")]
    assert not own[minilm.id_of("[unused7]")]
    # Chinese characters are always words of their own
    assert not own[minilm.id_of("##中")]
    again = open_vocabulary("json-minilm", path.name, lambda: pytest.fail("read again"))
    assert again.word("ing").ids == (13749,)


def test_ids_with_holes():
    vocabulary = made("holes", model={**words(), "vocab": {"a": 0, "b": 4, "": 5}})
    assert (vocabulary.size, vocabulary.count) == (6, 3)
    assert [vocabulary.token(i) for i in range(7)] == ["a", None, None, None, "b", "", None]
    assert vocabulary.displayed() == ["a", "", "", "", "b", ""]
    assert vocabulary.text(5) == b""
    assert vocabulary.text(1) is None
    assert list(vocabulary.find("", regex=True)) == [0, 4, 5]
    assert vocabulary.id_of("") == 5


def test_an_added_token_wins_over_a_piece_with_its_id():
    vocabulary = made("wins", model=words("a", "b"), added_tokens=[added(1, "b", special=True)])
    assert (vocabulary.raw(1), vocabulary.special_ids) == ("b", {1})


def test_a_token_that_the_library_numbers_otherwise_is_not_passed_off():
    tokens = [added(7, "<x>"), added(9, "<y>")]
    vocabulary = made("numbers", model=words("a", "b"), added_tokens=tokens)
    assert (vocabulary.raw(7), vocabulary.raw(9), vocabulary.size) == ("<x>", "<y>", 10)
    assert vocabulary.encode("a") == [0]
    with pytest.raises(FormatError) as raised:
        vocabulary.encode("<y>")
    assert raised.value.message == (
        "tokenizer.json: <y> has the id 9 in the file, and 3 for its tokenizer"
    )
    assert raised.value.advice == "name the row that is meant: id:9 or id:3"


HOSTILE = [
    ("[unused7]", "[unused7]"),
    ("[/INST]", "[/INST]"),
    ("\t", r"\t"),
    ("\n", r"\n"),
    ("\x1b[31m", r"\x1B[31m"),
    ('"', '"'),
    (",", ","),
    ("a\\n", r"a\\n"),
    ("\u202e", r"\u{202E}"),
    ("\x85", r"\u{85}"),
    ("👩‍👧", "👩‍👧"),
    (" ", " "),
]


def test_a_hostile_vocabulary_comes_back():
    vocabulary = made("hostile", model=words(*(text for text, _ in HOSTILE)))
    assert vocabulary.displayed() == [token for _, token in HOSTILE]
    for token_id, (text, token) in enumerate(HOSTILE):
        assert vocabulary.token(token_id) == vocabulary.raw(token_id) == token
        assert vocabulary.text(token_id) == unescape(token) == text.encode()
        assert vocabulary.id_of(token) == token_id
        assert vocabulary.encode(text) == [token_id]
        assert vocabulary.word(f"raw:{token}").tokens == (token,)


def test_a_lone_continuation_byte_of_a_byte_level_vocabulary():
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    vocab = {"»": 0, "å¤©ä»": 1, "Ċ": 2, "<|x|>": 3}
    model = {"type": "BPE", "vocab": vocab, "merges": []}
    vocabulary = made("bytes", model=model, decoder=level, pre_tokenizer=level)
    assert vocabulary.displayed() == [r"\xBB", r"天\xE4\xBB", r"\n", "<|x|>"]
    assert [vocabulary.text(i) for i in range(2)] == [b"\xbb", "天".encode() + b"\xe4\xbb"]
    assert vocabulary.reachable().tolist() == [False, False, True, False]


def test_find(deepseek):
    assert list(made("find", model=words("king", "King", "a.b", "axb")).find("king")) == [0]
    vocabulary = made("find", model=words("king", "King", "a.b", "axb"))
    assert list(vocabulary.find("KING", ignore_case=True)) == [0, 1]
    assert list(vocabulary.find("a.b")) == [2]
    assert list(vocabulary.find("a.b", regex=True)) == [2, 3]
    assert list(vocabulary.find("^king$", regex=True, ignore_case=True)) == [0, 1]
    with pytest.raises(UsageError, match=r"^\[a is no regular expression: "):
        vocabulary.find("[a", regex=True)
    assert list(deepseek.find("天气")) == [16652, 126928]


MALFORMED = {
    "no json": (b"{", r"tokenizer\.json: it is no JSON: "),
    "not utf-8": (b"\xff", r"tokenizer\.json: it is no JSON: "),
    "too deep": (b"[" * 100_000, r"tokenizer\.json: it is no JSON: "),
    "a list": (b"[]", r"tokenizer\.json: it is no tokenizer: there is no model in it$"),
    "no model": (b"{}", r"tokenizer\.json: it is no tokenizer: there is no model in it$"),
    "no vocabulary": (b'{"model": {}}', r"tokenizer\.json: its model has no vocabulary of pieces"),
    "ids that are no numbers": (
        b'{"model": {"vocab": {"a": "0"}}}',
        r"tokenizer\.json: its model has no vocabulary of pieces and ids$",
    ),
    "pieces that are no text": (
        b'{"model": {"vocab": [[1, 2]]}}',
        r"tokenizer\.json: its model has no vocabulary of pieces and ids$",
    ),
    "a negative id": (
        b'{"model": {"vocab": {"a": -1}}}',
        r"tokenizer\.json: the token id -1 is not in 0 to 16777215$",
    ),
    "a huge id": (
        b'{"model": {"vocab": {"a": 99999999999}}}',
        r"tokenizer\.json: the token id 99999999999 is not in 0 to 16777215$",
    ),
    "an added token without id": (
        b'{"model": {"vocab": {}}, "added_tokens": [{"content": "x"}]}',
        r"tokenizer\.json: an added token without content and id: \{'content': 'x'\}$",
    ),
    "added tokens that are none": (
        b'{"model": {"vocab": {}}, "added_tokens": "x"}',
        r"tokenizer\.json: an added token without content and id: 'x'$",
    ),
}


@pytest.mark.parametrize(("raw", "message"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed(raw, message):
    vocabulary = open_vocabulary("json-malformed", "tokenizer.json", lambda: raw)
    with pytest.raises(FormatError, match=f"^{message}"):
        vocabulary.token(0)


def test_what_the_library_refuses_is_said_when_a_text_is_asked():
    model = {"type": "Foo", "vocab": {"a": 0}}
    vocabulary = made("refused", model=model)
    assert vocabulary.token(0) == "a"
    with pytest.raises(FormatError, match=r"^tokenizer\.json: it is no tokenizer: "):
        vocabulary.encode("a")
    with pytest.raises(FormatError, match=r"^tokenizer\.json: it is no tokenizer: "):
        vocabulary.word("a")


def test_a_word_list_without_an_unknown_word_refuses_and_goes_on():
    vocabulary = made("refuses", model=words("a", "b"), pre_tokenizer={"type": "Whitespace"})
    assert vocabulary.encode("a b") == [0, 1]
    with pytest.raises(TokenError) as raised:
        vocabulary.encode("a c")
    assert raised.value.message.startswith("tokenizer.json: no tokens for a c: ")
    assert raised.value.advice == "ask for another text, or name a row with id:N"
