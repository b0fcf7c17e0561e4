"""A file imports only rooms that stand above its own; foreign libraries have one room each."""

import ast
from pathlib import Path

import pytest

import embtool

PACKAGE = Path(embtool.__file__).parent

# From the ground up: a room may import those before it.
FLOORS = [
    ["errors"],
    ["quant", "dtypes", "products", "header", "gguf"],
    ["config"],
    ["packed", "pickles", "vectors"],
    ["tensors", "params", "catalogue"],
    ["space", "search"],
    ["stats", "undertrained", "align", "graph", "projection"],
    ["source"],
    ["vocab"],
    ["table"],
    ["joined"],
    ["writers"],
    ["model"],
    ["queries"],
    ["output", "api"],
    ["plot"],
    ["cli"],
    ["__main__"],
]
HOMES = {
    "huggingface_hub": "source",
    "matplotlib": "plot",
    "opencc": "vocab",
    "rich": "output",
    "tokenizers": "vocab",
    "typer": "cli",
}
ORDER = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def _files():
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def _room(path):
    part = path.relative_to(PACKAGE).parts[0]
    return part.removesuffix(".py")


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""
            yield from (f"{node.module}.{a.name}" for a in node.names if node.module == "embtool")


@pytest.mark.parametrize("path", _files(), ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_point_downwards(path):
    room = _room(path)
    assert room in ORDER, f"{room} has no floor: give it one here and in the design"
    for name in _imports(path):
        top, _, rest = name.partition(".")
        other = rest.split(".")[0]
        if top == "embtool" and other in ORDER and other != room:
            assert ORDER[other] <= ORDER[room], f"{path.name} imports {name} from above"
        if top in HOMES:
            assert HOMES[top] == room, f"{top} is imported in {path}, not in {HOMES[top]}"
        assert top not in ("click", "torch", "transformers"), f"{path} imports {name}"


@pytest.mark.parametrize("path", _files(), ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_files_and_functions_stay_small(path):
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= 300, f"{path} is longer than 300 lines"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            doc = ast.get_docstring(node, clean=False)
            body = node.body[1] if doc and len(node.body) > 1 else node.body[0]
            start = body.lineno if doc else node.lineno
            lines = (node.end_lineno or 0) - start + 1
            assert lines <= 40, f"{path}: {node.name} has {lines} lines"
