"""Repositories of several files on disk, and what is read of them."""

import json

import numpy as np
from builders import write_safetensors

from embtool import Model
from embtool.queries.counting import model_params

EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"
TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)
OTHER = TABLE + 100
CONFIG = {"model_type": "llama", "vocab_size": 4, "hidden_size": 3, "tie_word_embeddings": True}


def put(folder, name, tensors):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_safetensors(path, tensors)


def put_index(folder, name, weight_map, **metadata):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"metadata": metadata, "weight_map": weight_map}))


def put_json(folder, name, value):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(value))


def row(ref, row_id=1, table="input"):
    return Model.open(str(ref)).table(table).rows([row_id])[0].tolist()


def notes(ref):
    return model_params(Model.open(str(ref))).notes


def shards(folder, values=TABLE):
    put(folder, "model-00001-of-00002.safetensors", {EMBED: values})
    put(folder, "model-00002-of-00002.safetensors", {"model.norm.weight": np.ones(3, np.float32)})
    put_index(
        folder,
        "model.safetensors.index.json",
        {
            EMBED: "model-00001-of-00002.safetensors",
            "model.norm.weight": "model-00002-of-00002.safetensors",
        },
    )
