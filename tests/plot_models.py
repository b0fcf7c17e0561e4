"""Models and figures that the tests of pictures share."""

import numpy as np
from builders import byte_tokenizer, folder_model

from embtool import Model
from embtool.plot import scene
from embtool.plot.scene import Spot
from embtool.queries.candidates import Candidates
from embtool.queries.figure import analogy_map, norm_figure, words_map
from embtool.queries.ground import Choices
from embtool.queries.similarity import similarity

LATIN = "king queen man woman prince princess royal crown throne knight castle sword"
OTHER = "король королева мужчина женщина ملك ملكة رجل امرأة βασιλιάς"
CITIES = "Paris London Rome Berlin Madrid Lisbon Vienna Prague Athens"
WORDS = [*LATIN.split(), *OTHER.split(), *CITIES.split()]
CHINESE = ["国王", "女王", "男人", "女人", "猫", "狗", "数据库", "微积分", "한국", "さくら"]
HOSTILE = [
    "</script><script>x()</script>",
    '<img src="q" onerror=x()>',
    '" onload="x()',
    "]]><b>&lt;&amp;",
    "--><!--",
    "$x_1$",
    "[/INST]",
    "a\nb\t\\",
    "\u202eevil",
    "\ufffe!",
]


def model_of(folder, words, width=8, seed=4):
    table = np.random.default_rng(seed).standard_normal((len(words), width)).astype(np.float32)
    return Model.open(str(folder_model(folder, table, words)))


def hostile_model(folder):
    model = model_of(folder, HOSTILE)
    tokens = [token.encode() for token in HOSTILE]
    (folder / "tokenizer.json").write_text(byte_tokenizer(tokens))
    return model


def figures(model, compared=10):
    choices, candidates = Choices(), Candidates()
    words = model.vocabulary.displayed()
    return {
        "map": words_map(model, [f"id:{i}" for i in range(len(words))], choices, candidates),
        "neighbors": words_map(model, ["id:0", "id:1"], choices, candidates, 3),
        "analogy": analogy_map(model, ["id:0", "id:1", "id:2"], choices, candidates),
        "norms": norm_figure(model, choices),
        "heatmap": similarity(model, [f"id:{i}" for i in range(compared)], choices),
    }


def spots(figure):
    return [mark for mark in scene(figure).marks if isinstance(mark, Spot)]
