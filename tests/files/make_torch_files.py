"""How the .bin and .pth files beside this were made, with torch 2.13.0; the tests need no torch."""

from collections import OrderedDict
from pathlib import Path

import torch

HERE = Path(__file__).parent

table = torch.arange(24, dtype=torch.float32).reshape(6, 4)
state = OrderedDict(
    {
        "model.embed_tokens.weight": table.bfloat16(),
        "model.norm.weight": torch.nn.Parameter(torch.ones(4)),
        "lm_head.weight": table,
        "head.rows": table[2:5],
        "head.turned": table.t(),
        "ids": torch.arange(3),
        "small": torch.tensor([1.0, -2.0]).to(torch.float8_e4m3fn),
        "empty": torch.zeros(0, 4),
    }
)
state["tied.weight"] = state["lm_head.weight"]
state._metadata = OrderedDict({"": {"version": 1}})

torch.save(state, HERE / "torch_zip.bin")
torch.save(state, HERE / "torch_legacy.bin", _use_new_zipfile_serialization=False)
torch.save(
    {
        "epoch": 3,
        "state_dict": {"wte.weight": table},
        "optimizer": {"state": {0: {"exp_avg": table}}},
    },
    HERE / "torch_nested.pth",
    pickle_protocol=4,
)
for number, piece in enumerate(table.chunk(2, dim=1)):
    torch.save({"tok_embeddings.weight": piece.clone()}, HERE / f"consolidated.0{number}.pth")
