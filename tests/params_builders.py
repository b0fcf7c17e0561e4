"""Facts of a table, to be counted."""

from embtool.params import TableFacts


def table(role="input", rows=129280, d_model=7168, tensor=None, dtype="BF16"):
    name = tensor or {"input": "model.embed_tokens.weight", "output": "lm_head.weight"}[role]
    params = rows * d_model
    return TableFacts(role, name, "a.safetensors", dtype, rows, d_model, params, 2 * params)
